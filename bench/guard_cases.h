/* Purpose:   guard programs to measure, with the calls that they are evaluated on.
 * Model:     a case is a program of 1 to 512 entries and as many views, taken round robin. Descriptions come from their text form, objects from
 *            Python expressions in one namespace (guard_cases.c shows it); an identity in a text is such an expression: @'b:C'.
 * Invariants: when a case has been made, each view has been evaluated once and gave what the row says: entry i, or a miss.
 * Threading: one thread; the GIL is held.
 * Ownership: a case and all its objects live until the program ends.
 */
#ifndef FG_BENCH_GUARD_CASES_H
#define FG_BENCH_GUARD_CASES_H

#include "bench/bench_rows.h"
#include "guards/guard_program.h"

enum { FG_CASE_SLOTS = 8, FG_CASE_ENTRIES = 512 };

/* Options of a row. */
enum {
    FG_CASE_HIT,
    FG_CASE_MISS,
};

/* Options of a row of trees: what changes before each evaluation, and how the attributes are kept. */
enum {
    FG_TREE_STILL,
    FG_TREE_ROOT_COUNTS, /* one attribute of the root, which no guard reads */
    FG_TREE_ALL_COUNT,   /* one such attribute of each object */
    FG_TREE_CHANGE = 3,  /* mask of the above */
    FG_TREE_DICTS = 4,   /* the objects have dicts; else inline values */
    FG_TREE_MISS = 8,    /* the leaf is another one */
};

typedef struct fg_guard_case {
    fg_program *program;
    fg_view *view;                     /* n_views */
    PyObject *(*slots)[FG_CASE_SLOTS]; /* of each view */
    size_t n_views;
    const void *expected; /* what a lower bound compares with */
    size_t field;         /* offset of the word that it reads behind the type */
    PyObject **nodes;     /* the objects of a tree from the root; n_nodes, then the leaf */
    size_t n_nodes, n_counting;
    PyObject *numbers[2]; /* what a counting attribute is set to, in turns */
    PyObject **inputs;
} fg_guard_case;

/* Starts the interpreter and the guard layer; 0 is success. */
int fg_cases_start(void);

/* text: description of one entry; args: expression of the tuple of arguments; option: FG_CASE_…; size: the case's field. */
void *fg_case_fact(const fg_bench_row *row);
/* size entries whose one array argument differs in its length. */
void *fg_case_sizes(const fg_bench_row *row);
/* size entries over eight int arguments: entry i differs from the others in the value of argument i % 8. */
void *fg_case_places(const fg_bench_row *row);
/* A module of size layers in a dict, each with a flag and a dict of one array; option: FG_CASE_…. */
void *fg_case_modules(const fg_bench_row *row);
/* A chain of size objects, each the attribute `a` of the one before it; option: FG_TREE_…. */
void *fg_case_tree(const fg_bench_row *row);

#endif
