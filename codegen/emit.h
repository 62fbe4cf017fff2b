/* Purpose:   from a trace to a code object.
 * Model:     the target is a function whose arguments are the inputs of the trace. Steps are emitted in program order as the instructions that plain Python
 *            would run; a value used once by the step that follows stays on the stack (emit_tree.c). A trace that ends in a graph break becomes a
 *            *host*: after the steps it restores locals and stack and goes on in a copy of the user's own bytecode (emit_host.c), where the breaking
 *            instruction runs natively; resume points behind it hand over to segments (segment.h). A segment's own target gives a tuple instead.
 * Invariants: lines and columns are the user's. No name of a generated local is an identifier.
 * Threading: the GIL is held.
 * Ownership: the result is a new reference; everything else is borrowed from the trace.
 */
#ifndef FG_CODEGEN_EMIT_H
#define FG_CODEGEN_EMIT_H

#include "codegen/ir.h"
#include <stdbool.h>

/* Makes the objects a host calls at resume points. slot_map[i] is the host's slot of the user's slot i. New references. */
typedef struct fg_resume_maker {
    void *context;
    PyObject *(*segment)(void *context, int32_t pc, int32_t depth, const int16_t *slot_map, int32_t n_slots, int32_t host_slots);
    PyObject *(*chain)(void *context, const int16_t *slot_map, int32_t n_slots);
    bool (*is_known_break)(void *context, int32_t pc);
} fg_resume_maker;

typedef struct fg_emit_input {
    const fg_ir *ir;
    PyObject *const *graphs;      /* callables of GRAPH steps */
    const fg_resume_maker *maker; /* needed where ir->exit.is_break and the trace is no segment */
} fg_emit_input;

fg_status fg_emit_target(const fg_emit_input *input, FG_NEW PyCodeObject **out, uint8_t *uses_closure);

#endif
