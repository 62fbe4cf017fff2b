/* Purpose:   calls in which something broke the graph: the host makes them, what they call is compiled by itself (resume_inner.c).
 * Model:     a resume table has gates for the code that its function calls so. A function of C, a constant of the target, turns what is called into a gate for one call.
 * Invariants: between calls the gates refer to nothing of the user's. Whatever goes wrong, the call is made without a gate.
 * Threading: the GIL is held.
 * Ownership: the table owns its gates; the function counts the table.
 */
#ifndef FG_TRACER_RESUME_INNER_H
#define FG_TRACER_RESUME_INNER_H

#include "tracer/resume.h"

FG_NEW PyObject *fg_inner_function_new(fg_resume_table *table, FG_BORROWED PyObject *rules);
void fg_inner_gates_drop(fg_resume_table *table);
int fg_inner_gates_traverse(const fg_resume_table *table, visitproc visit, void *arg);
fg_status fg_inner_types_init(void);

#endif
