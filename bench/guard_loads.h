/* Purpose:   the lower bounds of the rows of bench_guards.c: the words that decide a case, read and compared by hand.
 * Model:     a loop per shape of memory. Each reads through volatile pointers, as little as a check of that kind can do with.
 * Invariants: none of them calls anything.
 * Threading: one thread; the GIL is held.
 * Ownership: as of fg_guard_case; nothing is kept.
 */
#ifndef FG_BENCH_GUARD_LOADS_H
#define FG_BENCH_GUARD_LOADS_H

#include "bench/guard_cases.h"

uint64_t fg_loads_nothing(void *state, size_t n);  /* no object decides */
uint64_t fg_loads_slot(void *state, size_t n);     /* the slot itself */
uint64_t fg_loads_two(void *state, size_t n);      /* two slots against each other */
uint64_t fg_loads_type(void *state, size_t n);     /* the object's type */
uint64_t fg_loads_size(void *state, size_t n);     /* type and size */
uint64_t fg_loads_float(void *state, size_t n);    /* type and 8 bytes */
uint64_t fg_loads_int(void *state, size_t n);      /* type, size, digit */
uint64_t fg_loads_str(void *state, size_t n);      /* type, length, first 8 characters */
uint64_t fg_loads_dict(void *state, size_t n);     /* type and version of a dict */
uint64_t fg_loads_globals(void *state, size_t n);  /* version of the view's globals */
uint64_t fg_loads_builtins(void *state, size_t n); /* version of the view's builtins */
uint64_t fg_loads_freevar(void *state, size_t n);  /* contents of the first cell */
uint64_t fg_loads_attr(void *state, size_t n);     /* type, inline values, first of them */
uint64_t fg_loads_list(void *state, size_t n);     /* type, size, array, first item */
uint64_t fg_loads_tuple(void *state, size_t n);    /* type, size, first item */
uint64_t fg_loads_field(void *state, size_t n);    /* type and the word at the case's field */
uint64_t fg_loads_version(void *state, size_t n);  /* version of the object, which is a type */
uint64_t fg_loads_ndarray(void *state, size_t n);  /* type, dtype, flags, sizes and strides of an array */
uint64_t fg_loads_storage(void *state, size_t n);  /* data of two arrays */
uint64_t fg_loads_places(void *state, size_t n);   /* type, size and digit of all eight slots */
uint64_t fg_loads_modules(void *state, size_t n);  /* type, flag and array of each layer, found before */
uint64_t fg_loads_tree(void *state, size_t n);     /* a chain of inline values, counting */
uint64_t fg_loads_dicts(void *state, size_t n);    /* a chain of dicts, counting: key tables and values, for the versions change */

/* The evaluation, and what a row of trees changes before each one. */
uint64_t fg_run_eval(void *state, size_t n);
uint64_t fg_run_tree(void *state, size_t n);
uint64_t fg_idle_tree(void *state, size_t n);

#endif
