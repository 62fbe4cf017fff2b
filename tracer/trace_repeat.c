/* Whether calls that an entry serves may be run a second time, as plain Python on copies of what they reach, and nobody notices: what
 * FRAMEGATE_VERIFY asks before it compares.
 *
 * 1. The trace is all of the function: what runs behind a graph break may do anything.
 * 2. No rule of the user took part: behind allow_in_graph, assume_constant_result and substitutes there is code that was not looked at.
 * 3. No operation has hidden state (random generators).
 * 4. No state of the thread is left set.
 * 5. What is written was made by the call, or is reached from its arguments, closure and globals through nothing that all calls share: classes,
 *    modules and the objects of the entry are not copied, and would be changed twice.
 */
#include "tracer/trace.h"

/* A constant that may stand beside effects: nothing in it can change. */
static bool is_fixed(PyObject *o)
{
    return fg_is_fold_const(o) || PyCode_Check(o) || PyCFunction_CheckExact(o) || Py_IS_TYPE(o, &PyMethodDescr_Type) ||
           Py_IS_TYPE(o, &PyWrapperDescr_Type);
}

static bool is_callee(const fg_step *step, int32_t i)
{
    return i == 0 && (step->op == FG_STEP_CALL || step->op == FG_STEP_CALL_EX);
}

static bool operand_is_private(const fg_trace *t, const fg_step *step, int32_t i)
{
    const fg_ir_reg *r = &t->ir.regs[step->args[i]];
    switch ((fg_reg_kind)r->kind) {
    case FG_REG_CONST:
        if (is_callee(step, i) || is_fixed(r->object))
            return true;
        return PyType_Check(r->object) && !(step->flags & FG_SF_EFFECT); /* object.__new__(cls) */
    case FG_REG_INPUT:
        if (r->object != NULL && fg_is_fold_const(r->object))
            return true;
        if (r->object == NULL || PyType_Check(r->object) || PyModule_Check(r->object))
            return false;
        return fg_desc_output_is_private(t->desc, (uint32_t)r->index) == 1;
    case FG_REG_STEP: return true; /* of operands that were looked at */
    }
    return false;
}

bool fg_trace_is_repeatable(const fg_trace *t)
{
    bool effects = false;
    if (t->uses_rules || t->ambient != NULL || t->ir.exit.is_break || t->ir.start_pc >= 0)
        return false;
    for (int32_t i = 0; i < t->ir.n_steps; i++) {
        const fg_step *step = &t->ir.steps[i];
        const fg_op_row *row = step->row;
        if (row != NULL && (row->flags & FG_OPF_STATE))
            return false;
        effects = effects || (step->flags & FG_SF_EFFECT);
    }
    if (!effects)
        return true;
    for (int32_t i = 0; i < t->ir.n_steps; i++)
        for (int32_t k = 0; k < t->ir.steps[i].n_args; k++)
            if (!operand_is_private(t, &t->ir.steps[i], k))
                return false;
    return fg_desc_aliases_are_private(t->desc) == 1;
}
