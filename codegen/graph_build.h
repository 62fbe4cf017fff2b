/* Purpose:   build one framegate.Graph from steps.
 * Model:     what the steps use and do not make is a placeholder, in order of first use; containers of operands are nested arguments.
 * Threading: the GIL is held.
 * Ownership: the graph is a new reference; nodes are borrowed from it, arrays are in the arena.
 */
#ifndef FG_CODEGEN_GRAPH_BUILD_H
#define FG_CODEGEN_GRAPH_BUILD_H

#include "codegen/ir.h"
#include <stdbool.h>

typedef struct fg_graph_builder {
    fg_ir *ir;
    PyObject *graph;   /* out */
    PyObject **nodes;  /* per register */
    uint8_t *in_graph; /* per register: made by one of the steps */
    fg_reg *inputs;    /* out: registers of the placeholders */
    int32_t n_inputs;
} fg_graph_builder;

fg_status fg_graph_build(fg_graph_builder *builder, const int32_t *steps, int32_t n, const fg_reg *outputs, int32_t n_outputs);
/* tuple, list and slice displays: they appear inside the arguments of graph nodes */
bool fg_step_is_structure(const fg_step *step);

#endif
