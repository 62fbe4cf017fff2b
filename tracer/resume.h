/* Purpose:   segments and chains: how a host (codegen/emit_host.c) goes on compiled after an instruction that broke the graph.
 * Model:     each code object and options has one resume table: a site per resume point, and the set of instructions known to break. A Segment is the
 *            object that a host calls at a resume point: it reads the host frame's locals and stack, looks up an entry, and on a hit writes back
 *            the locals that the target changed. It gives None (go on natively), (0, result of the function) or (i + 1, stack for instruction i).
 *            A Chain serves an answer for which a host has no arm: it builds a host that starts there and gives that function's result.
 * Invariants: the table borrows its code object; when the root site dies the table is cut off and segments answer None.
 * Threading: the GIL is held.
 * Ownership: tables are counted by the root site and by the objects in hosts.
 */
#ifndef FG_TRACER_RESUME_H
#define FG_TRACER_RESUME_H

#include "codegen/emit.h"
#include "runtime/cpython/frame.h"
#include "runtime/hook/hook_site.h"
#include <stdbool.h>

typedef struct fg_resume_table fg_resume_table;

/* What a segment's site carries for the compile callback; a root site carries the same with pc -1. */
typedef struct fg_resume_point {
    fg_resume_table *table; /* borrowed from the site */
    int32_t pc;             /* -1: the function's start */
    int32_t depth;
} fg_resume_point;

/* The point of the root site, made and attached at its first compile. */
fg_status fg_resume_root(fg_site *site, fg_resume_point **out);
/* For fg_emit_target. maker->context is the table. */
void fg_resume_maker_init(fg_resume_table *table, fg_resume_maker *maker);
/* Note that this instruction broke a trace; later hosts have a stub behind it. */
fg_status fg_resume_note_break(fg_resume_table *table, int32_t pc);

/* While a segment's target runs, the host's frame is hidden: the target's stands for it. Asked by the compile callback of a segment. */
fg_hidden_frame *fg_resume_host(void);

/* One count less. */
void fg_resume_table_drop(fg_resume_table *table);

fg_status fg_resume_types_init(void);

#endif
