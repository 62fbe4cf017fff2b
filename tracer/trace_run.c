/* The loops over instructions: of the whole trace, of a call in the middle of an instruction, of a generator up to its next yield. */
#include "runtime/cpython/frame.h"
#include "tracer/trace.h"

static fg_flow run_until(fg_trace *t, fg_tframe *caller)
{
    bool returned = false;
    fg_value *value;
    if (t->inline_depth > 60)
        return fg_break(t, FG_BREAK_RECURSION, "calls in the middle of instructions nested too deep");
    while (t->frame != caller) {
        if (--t->budget < 0)
            return fg_break(t, FG_BREAK_TOO_LONG, "the instruction budget of one trace is used up");
        fg_flow flow = fg_trace_step(t, &returned, &value);
        FG_DO(flow == FG_FLOW_RAISE ? fg_unwind(t) : flow);
    }
    return FG_FLOW_OK;
}

fg_flow fg_call_now(fg_trace *t, fg_value *f, fg_value **args, int32_t n, PyObject *kwnames, fg_value **out)
{
    fg_tframe *caller = t->frame;
    FG_DO(fg_call(t, f, args, n, kwnames, out));
    fg_tframe *callee = t->frame;
    if (callee == caller)
        return FG_FLOW_OK;
    callee->on_result = FG_RESULT_KEEP;
    FG_DO(run_until(t, caller));
    *out = callee->yielded;
    return FG_FLOW_OK;
}

fg_flow fg_call_catching(fg_trace *t, fg_value *f, fg_value **args, int32_t n, PyObject *type, fg_value **out)
{
    fg_tframe *caller = t->frame;
    fg_value *raised = t->raised;
    const fg_flow flow = fg_call(t, f, args, n, NULL, out);
    if (flow == FG_FLOW_RAISE)
        return fg_break(t, FG_BREAK_RAISES_INSIDE, "%s", t->raised->type->tp_name);
    FG_DO(flow);
    fg_tframe *callee = t->frame;
    if (callee == caller)
        return FG_FLOW_OK;
    callee->on_result = FG_RESULT_KEEP;
    callee->catches = (PyTypeObject *)type;
    FG_DO(run_until(t, caller));
    *out = callee->yielded;
    if (*out == NULL)
        FG_SET(t, t->raised, raised);
    return FG_FLOW_OK;
}

fg_flow fg_trace_resume(fg_trace *t, fg_tframe *generator, fg_value **out)
{
    fg_tframe *caller = t->frame;
    *out = NULL;
    for (fg_tframe *f = caller; f != NULL; f = f->parent)
        if (f == generator)
            return fg_break(t, FG_BREAK_RAISES, "generator already executing");
    if (generator->is_finished)
        return FG_FLOW_OK;
    FG_SET(t, generator->parent, caller);
    FG_SET(t, generator->site, fg_site_here(t));
    FG_SET(t, generator->covered, (uint8_t)fg_is_covered_inside(t));
    FG_SET(t, t->inline_depth, t->inline_depth + 1);
    FG_SET(t, t->frame, generator);
    FG_DO(run_until(t, caller));
    FG_SET(t, t->inline_depth, t->inline_depth - 1);
    *out = generator->is_finished ? NULL : generator->yielded;
    return FG_FLOW_OK;
}

/* An exception that is handled, or that a variable still names, has no run-time form: nothing of what it led to can be left half done, so a break takes all
 * of it back, to before the instruction that raised it. */
static bool is_settled(const fg_trace *t)
{
    const fg_tframe *f = t->root;
    if (t->handled != NULL || f->n_saved > 0) /* nor has what a comprehension has saved of an unbound variable */
        return false;
    for (int32_t i = 0; t->raised != NULL && i < f->n_locals; i++)
        if (f->locals[i] != NULL && fg_is_exception(f->locals[i]))
            return false;
    for (int32_t i = 0; t->raised != NULL && i < f->sp; i++)
        if (fg_is_exception(f->stack[i]))
            return false;
    return true;
}

/* Where the call was traced before, and what that trace went on to make has no run-time form. */
static fg_flow stop(fg_trace *t)
{
    const fg_break_info *why = &t->stop->why;
    const fg_flow flow = fg_break(t, why->reason, "%U", why->context);
    if (flow == FG_FLOW_BREAK)
        Py_XSETREF(t->broke.stack, Py_NewRef(why->stack));
    return flow;
}

fg_flow fg_trace_run(fg_trace *t, bool *returned, fg_value **result)
{
    fg_trace_mark mark = fg_trace_mark_get(t);
    bool is_segment = t->ir.start_pc >= 0;
    *returned = false;
    if (is_segment)
        FG_DO(fg_drop_frame_init(t));
    for (;;) {
        if (t->frame == t->root) {
            if (is_segment)
                FG_DO(fg_drop_frame(t, mark));
            if (is_settled(t)) {
                t->n_log = 0; /* nothing is ever taken back beyond the root instruction */
                mark = fg_trace_mark_get(t);
            }
        }
        fg_flow flow = FG_FLOW_OK;
        if (t->frame == t->root && t->now++ >= t->stop->at)
            flow = stop(t);
        else if ((--t->budget & 1023) == 0 && fg_signal_is_pending())
            flow = fg_break(t, FG_BREAK_RAISES, "a signal waits for its handler"); /* which is the user's, in a frame of theirs */
        else if (t->budget < 0)
            flow = fg_break(t, FG_BREAK_TOO_LONG, "the instruction budget of one trace is used up");
        else
            flow = fg_trace_step(t, returned, result);
        if (flow == FG_FLOW_RAISE)
            flow = fg_unwind(t);
        if (flow == FG_FLOW_OK && *returned) {
            fg_reg unused; /* here a result without a run-time form is still a break like any other */
            flow = fg_materialise(t, *result, &unused);
        }
        if (flow == FG_FLOW_BREAK) {
            *returned = false;
            fg_trace_rewind(t, mark);
        }
        if (flow != FG_FLOW_OK || *returned)
            return flow;
    }
}
