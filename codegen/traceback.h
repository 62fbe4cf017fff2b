/* Purpose:   traceback entries of inlined calls, added when an exception leaves generated code.
 * Model:     a chain is a constant tuple of (code, globals weakly, byte offset, line), outermost inlined call first. The handler of generated code calls
 *            the one function `complete(exception, chain)`.
 * Threading: the GIL is held.
 */
#ifndef FG_CODEGEN_TRACEBACK_H
#define FG_CODEGEN_TRACEBACK_H

#include "codegen/ir.h"

FG_NEW PyObject *fg_traceback_chain(const fg_ir *ir, int32_t site);
FG_NEW PyObject *fg_traceback_function(void);
/* The same for a graph, whose operations stand in several places: (graph, {site: (line and column in the root frame, chain)}, site of the first). */
FG_NEW PyObject *fg_traceback_places(const fg_ir *ir, FG_BORROWED PyObject *graph);
FG_NEW PyObject *fg_traceback_graph_function(void);
/* The frame in which a site stands and that many of those that called it, outermost first: rows like those of a chain. */
FG_NEW PyObject *fg_traceback_part(const fg_ir *ir, int32_t site, int32_t levels);
/* Such rows as the traceback of an exception that has none. */
void fg_traceback_rows(PyObject *exception, FG_BORROWED PyObject *rows);
/* add_context(exception, type, args, part): the exception, and what is its context already, came up while one of this type was being handled. */
FG_NEW PyObject *fg_traceback_context_function(void);
/* strip(exception): drops the entry of the running frame, which only called a segment or a chain: the user's line is in the entry below. */
FG_NEW PyObject *fg_traceback_strip_function(void);

#endif
