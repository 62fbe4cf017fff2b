/* The host of a graph break: restore the frame, then go on in a copy of the user's bytecode.
 *
 *     steps of the trace
 *     locals := values, stack := values, temporaries deleted
 *     jump ──► body: the user's instructions that can be reached from the break, with the user's handlers
 *                  …  breaking instruction (runs natively, in a real frame of the user's function)
 *                  ── resume stub: r = ~segment; r is None → just go on ──►  out: (id, payload) = r
 *                  …                                                              id 0: return payload
 *                                                                                 id i+1: stack := payload, jump to instruction i
 *                                                                                 id ~i: stack := payload, raise its top at instruction i
 *                                                                                 else: return chain(id, payload)
 *
 * A segment reads and writes this frame's locals itself (segment.h). Rules:
 *  1. A stub stands on the edge from an instruction that may break to the next one, never inside an exception handler, and has no handler of its own.
 *  2. Every instruction that may run Python has an arm in the dispatch, so that a segment can end there; what has none goes through the chain.
 *  6. Where steps are caught (emit_catch.c) the body also has the user's handlers, which are entered by raising; a trace that returns has a host for
 *     those alone, without stubs.
 *  4. The stack of the body holds values only, as segments read it and arms build it: no method pairs, no NULLs across a resume point.
 *  5. Between the body and a segment nothing looks for signals or other asynchronous exceptions, for which the frame may have handlers: a segment is
 *     called by an operator, and what comes up meanwhile comes up in the body, at the latest on the way back to it.
 *  3. The body keeps the user's order, so an edge that falls through does so here.
 */
#include "codegen/emit_private.h"

#include "codegen/super_call.h"
#include "codegen/traceback.h"
#include "runtime/cpython/facts.h"

#include <string.h>

enum { MAX_ARMS = 48, MAX_STUBS = 48 };

typedef struct fg_host {
    fg_emit_state *e;
    const fg_icode *root;
    uint8_t *reached;
    int16_t *exc_depth;  /* handlers entered and not left, per instruction */
    int32_t *at;         /* where an instruction stands in the output, -1 */
    int32_t *arm;        /* where its arm stands, -1 */
    uint8_t *is_breaker; /* a resume stub follows it */
    int32_t *handler_of; /* per handler of the user's: its place in the output */
    int32_t body;        /* where the body begins in the output */
    int32_t id_slot, payload_slot;
    int32_t strip_handler; /* of calls to segments and chains: takes this frame's entry out of the traceback */
    struct fg_patch {
        int32_t from, to_instr; /* output index; instruction index (a body jump) */
    } * patches;
    int32_t n_patches;
    struct fg_out_patch {
        int32_t from, depth;
    } * outs; /* jumps of stubs to their "out" part */
    int32_t n_outs;
} fg_host;

/* --- locals */

enum { KIND_LOCAL = 0x20, KIND_CELL = 0x40, KIND_FREE = 0x80 }; /* the other bits are not of interest here */

static int32_t kind_of(const PyCodeObject *code, Py_ssize_t i)
{
    return ((unsigned char *)PyBytes_AS_STRING(code->co_localspluskinds))[i] & (KIND_LOCAL | KIND_CELL | KIND_FREE);
}

fg_status fg_emit_host_locals(fg_emit_state *e)
{
    PyCodeObject *code = e->ir->root->code;
    Py_ssize_t n = PyTuple_GET_SIZE(code->co_localsplusnames);
    e->slot_map = fg_arena_alloc(e->arena, (size_t)(n + 1) * sizeof *e->slot_map);
    if (e->slot_map == NULL)
        return FG_ERR_NOMEM;
    PyObject *vars = PyList_New(0), *cells = PyList_New(0), *frees = PyList_New(0);
    fg_status st = FG_ERR_PYTHON;
    if (vars == NULL || cells == NULL || frees == NULL)
        goto done;
    if (n + e->n_inputs > 30000) {
        st = FG_ERR_LIMIT;
        goto done;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        int32_t kind = kind_of(code, i);
        PyObject *to = kind & KIND_FREE ? frees : kind & KIND_CELL ? cells : vars;
        e->slot_map[i] = (int16_t)(to == vars ? e->n_inputs + PyList_GET_SIZE(vars) : PyList_GET_SIZE(to));
        if (PyList_Append(to, PyTuple_GET_ITEM(code->co_localsplusnames, i)) < 0)
            goto done;
    }
    e->varnames = PyList_AsTuple(vars);
    e->cellvars = PyList_AsTuple(cells);
    e->freevars = PyList_AsTuple(frees);
    e->n_user_vars = (int32_t)PyList_GET_SIZE(vars);
    if (e->varnames && e->cellvars && e->freevars)
        st = FG_OK;
done:
    Py_XDECREF(vars);
    Py_XDECREF(cells);
    Py_XDECREF(frees);
    return st;
}

/* Cells and frees come after all variables, whose number is known once the temporaries are. */
static void finish_slot_map(fg_emit_state *e)
{
    PyCodeObject *code = e->ir->root->code;
    int32_t variables = e->n_inputs + e->n_user_vars + e->n_temps, cells = (int32_t)PyTuple_GET_SIZE(e->cellvars);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_localsplusnames); i++) {
        int32_t kind = kind_of(code, i);
        if (kind & KIND_FREE)
            e->slot_map[i] = (int16_t)(e->slot_map[i] + variables + cells);
        else if (kind & KIND_CELL)
            e->slot_map[i] = (int16_t)(e->slot_map[i] + variables);
    }
}

/* --- which instructions the body has */

static bool is_end(int op)
{
    return op == FG_OP_RETURN_VALUE || op == FG_OP_RAISE_VARARGS || op == FG_OP_RERAISE || op == FG_OP_JUMP;
}

static bool is_known_break(const fg_host *h, int32_t i)
{
    return h->e->input->maker->is_known_break(h->e->input->maker->context, i);
}

static bool may_break(const fg_host *h, int32_t i)
{
    const fg_icode *root = h->root;
    const fg_instr *in = &root->instrs[i];
    if (fg_icode_group_start(root, i) != i)
        return false;
    if (fg_icode_group_end(root, i) != i)
        return true;
    switch ((fg_cop)in->op) {
    case FG_OP_RESUME:
    case FG_OP_JUMP:
    case FG_OP_PUSH_EXC_INFO:
    case FG_OP_POP_EXCEPT:
    case FG_OP_CHECK_EXC_MATCH:
    case FG_OP_RERAISE:
    case FG_OP_RETURN_VALUE:
    case FG_OP_LOAD_FAST: return false;
    case FG_OP_STORE_FAST: /* where what is assigned over has a finalizer */
    case FG_OP_POP_TOP: return i == h->e->ir->exit.pc || is_known_break(h, i);
    default: return fg_cop_raises(in->op) > 0;
    }
}

static fg_status reach(fg_host *h, int32_t from, int32_t exc_depth)
{
    int32_t n = h->root->n_instrs, top = 0, *todo = fg_arena_alloc(h->e->arena, (size_t)(3 * n + 3) * sizeof *todo);
    if (todo == NULL)
        return FG_ERR_NOMEM;
    if (h->reached[from])
        return FG_OK;
    todo[top++] = from;
    h->exc_depth[from] = (int16_t)exc_depth;
    h->reached[from] = 1;
    while (top > 0) {
        int32_t i = todo[--top];
        const fg_instr *in = &h->root->instrs[i];
        int32_t depth = h->exc_depth[i] - (in->op == FG_OP_POP_EXCEPT);
        int32_t next[3] = {is_end(in->op) ? -1 : i + 1, in->target, -1}, depths[3] = {depth, depth, h->exc_depth[i] + 1};
        if (in->handler >= 0 && (fg_cop_raises(in->op) > 0 || may_break(h, i))) /* the jump of an arm back to it looks for signals */
            next[2] = h->root->handlers[in->handler].target;
        for (int k = 0; k < 3; k++)
            if (next[k] >= 0 && next[k] < n && !h->reached[next[k]]) {
                h->reached[next[k]] = 1;
                h->exc_depth[next[k]] = (int16_t)depths[k];
                todo[top++] = next[k];
            }
    }
    return FG_OK;
}

static bool is_call(const fg_instr *in)
{
    return in->op == FG_OP_CALL || in->op == FG_OP_CALL_KW || in->op == FG_OP_CALL_EX || in->op == FG_OP_BEFORE_WITH;
}

/* Something worth compiling can be reached from here before the function ends. */
static bool is_worth_resuming(const fg_host *h, int32_t pc)
{
    for (int32_t i = pc, left = 40; left > 0 && i < h->root->n_instrs; left--) {
        const fg_instr *in = &h->root->instrs[i];
        switch ((fg_cop)in->op) {
        case FG_OP_RETURN_VALUE:
        case FG_OP_RAISE_VARARGS:
        case FG_OP_RERAISE: return false;
        case FG_OP_JUMP: i = in->target; continue;
        case FG_OP_NOP:
        case FG_OP_POP_TOP:
        case FG_OP_LOAD_CONST:
        case FG_OP_LOAD_FAST:
        case FG_OP_STORE_FAST:
        case FG_OP_LOAD_DEREF:
        case FG_OP_SWAP:
        case FG_OP_COPY:
        case FG_OP_CALLEE:
        case FG_OP_POP_EXCEPT:
        case FG_OP_BUILD_TUPLE: i++; continue;
        default: return true;
        }
    }
    return true;
}

static bool may_resume_at(const fg_host *h, int32_t pc)
{
    return pc < h->root->n_instrs && h->reached[pc] && h->exc_depth[pc] == 0 && !fg_icode_has_saved(h->root, pc) &&
           is_worth_resuming(h, pc);
}

/* --- parts of the output */

static int32_t handler_at(const fg_host *h, int32_t i)
{
    int32_t handler = h->root->instrs[i].handler;
    return handler >= 0 && h->reached[h->root->handlers[handler].target] ? h->handler_of[handler] : -1;
}

/* A jump back looks for signals, as if it were the instruction that it leads to. 3.11 asks for the handler of what stands before that one, so body
 * instructions have their own handler there too. */
static fg_status emit_jump_to(fg_host *h, int32_t i, int32_t *jump)
{
    h->e->where = &h->root->instrs[i];
    h->e->handler = handler_at(h, i);
    fg_status st = fg_emit_jump(h->e, FG_OP_JUMP, jump);
    h->e->where = NULL;
    h->e->handler = -1;
    return st;
}

static fg_status emit_stub(fg_host *h, int32_t pc)
{
    fg_emit_state *e = h->e;
    const fg_resume_maker *maker = e->input->maker;
    int32_t depth = h->root->instrs[pc].depth, host_slots = e->n_inputs + e->n_user_vars + e->n_temps +
                                                            (int32_t)PyTuple_GET_SIZE(e->cellvars) + (int32_t)PyTuple_GET_SIZE(e->freevars);
    PyObject *segment = fg_emit_own(e, maker->segment(maker->context, pc, depth, e->slot_map,
                                                      (int32_t)PyTuple_GET_SIZE(h->root->code->co_localsplusnames), host_slots));
    fg_status st;
    if (segment == NULL)
        return FG_ERR_PYTHON;
    e->where = &h->root->instrs[pc];
    e->handler = -1;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, segment));
    e->handler = h->strip_handler;
    FG_TRY(fg_emit_op(e, FG_OP_UNARY_INVERT, 0, NULL)); /* rule 5 */
    e->handler = -1;
    FG_TRY(fg_emit_op(e, FG_OP_COPY, 1, NULL));
    h->outs[h->n_outs].depth = depth;
    FG_TRY(fg_emit_jump(e, FG_OP_JUMP_IF_NOT_NONE, &h->outs[h->n_outs].from));
    h->n_outs++;
    e->handler = handler_at(h, pc); /* what follows may be jumped back to */
    FG_TRY(fg_emit_op(e, FG_OP_POP_TOP, 0, NULL));
    e->handler = -1;
fail:
    return st;
}

/* The part of each stub that takes the answer apart; one block per stack depth, where values of one depth take as many slots. */
static fg_status emit_outs(fg_host *h)
{
    fg_emit_state *e = h->e;
    fg_status st;
    int32_t jump;
    e->where = NULL;
    e->handler = -1;
    for (int32_t i = 0; i < h->n_outs; i++) {
        if (e->out[h->outs[i].from].target >= 0)
            continue;
        int32_t block = e->n_out;
        for (int32_t k = i; k < h->n_outs; k++)
            if (h->outs[k].depth == h->outs[i].depth && (k == i || !FG_FACT_VALUES_MAY_BE_WIDE || h->outs[i].depth == 0))
                e->out[h->outs[k].from].target = block;
        FG_TRY(fg_emit_op(e, FG_OP_UNPACK_SEQUENCE, 2, NULL));
        FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, h->id_slot, NULL));
        FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, h->payload_slot, NULL));
        for (int32_t k = 0; k < h->outs[i].depth; k++)
            FG_TRY(fg_emit_op(e, FG_OP_POP_TOP, 0, NULL));
        FG_TRY(fg_emit_jump(e, FG_OP_JUMP, &jump));
        e->out[jump].target = -2; /* to the dispatch, filled when it stands */
    }
    return FG_OK;
fail:
    return st;
}

/* Before a return: variables end in the order of the user's slots, or from the last one on (since 3.14). Here cells stand behind all variables, so where an
 * argument is a cell, what ends up to there ends by hand. */
static fg_status emit_ends(fg_host *h)
{
    fg_emit_state *e = h->e;
    fg_status st = FG_OK;
    PyCodeObject *code = h->root->code;
    const Py_ssize_t n = PyTuple_GET_SIZE(code->co_localsplusnames);
    const int step = FG_FACT_SLOTS_END_BACKWARDS ? -1 : 1;
    const Py_ssize_t first = step > 0 ? 0 : n - 1, end = step > 0 ? n : -1;
    Py_ssize_t last = end - step;
    while (last != first - step && kind_of(code, last) != (KIND_LOCAL | KIND_CELL))
        last -= step;
    for (Py_ssize_t i = first; i != last + step; i += step) {
        if (kind_of(code, i) & KIND_FREE)
            continue;
        FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, Py_None));
        FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, e->slot_map[i], NULL));
    }
fail:
    return st;
}

/* A segment may hand over an exception of this place, and the handler that takes it is here. */
static bool takes_raise(const fg_host *h, int32_t i)
{
    const int32_t handler = fg_icode_handler_pass(h->root, h->root->instrs[i].handler, NULL);
    return handler >= 0 && h->reached[i] && h->exc_depth[i] == 0 && fg_icode_raise_place(h->root, i) == i &&
           h->reached[h->root->handlers[handler].target];
}

/* [what the handler keeps, exception]: it is raised under the handler that takes what comes up at an instruction. */
static fg_status emit_raise(fg_host *h, int32_t i)
{
    fg_emit_state *e = h->e;
    e->where = &h->root->instrs[i];
    e->handler = h->handler_of[fg_icode_handler_pass(h->root, e->where->handler, NULL)];
    fg_status st = fg_emit_op(e, FG_OP_RERAISE, 0, NULL);
    e->where = NULL;
    e->handler = -1;
    return st;
}

static fg_status emit_test(fg_host *h, int32_t id, int32_t *jump)
{
    fg_emit_state *e = h->e;
    fg_status st;
    PyObject *number = fg_emit_own(e, PyLong_FromLong(id));
    if (number == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, h->id_slot, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, number));
    FG_TRY(fg_emit_op(e, FG_OP_COMPARE_OP, 2, NULL));
    return fg_emit_jump(e, FG_OP_JUMP_IF_TRUE, jump);
fail:
    return st;
}

/* [] -> [payload]: it is on the stack and nowhere else. */
static fg_status emit_payload(fg_host *h, int32_t depth)
{
    fg_emit_state *e = h->e;
    fg_status st;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, h->payload_slot, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_DELETE_FAST, h->id_slot, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_DELETE_FAST, h->payload_slot, NULL));
    return fg_emit_op(e, FG_OP_UNPACK_SEQUENCE, depth, NULL);
fail:
    return st;
}

static fg_status emit_dispatch(fg_host *h)
{
    fg_emit_state *e = h->e;
    const fg_resume_maker *maker = e->input->maker;
    fg_status st;
    int32_t to_return, n_slots = (int32_t)PyTuple_GET_SIZE(h->root->code->co_localsplusnames), n_arms = 0, jump;
    e->where = NULL;
    e->handler = -1;
    int32_t dispatch = e->n_out;
    for (int32_t i = 0; i < dispatch; i++)
        if (e->out[i].target == -2)
            e->out[i].target = dispatch;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, h->id_slot, NULL));
    FG_TRY(fg_emit_jump(e, FG_OP_JUMP_IF_FALSE, &to_return));
    int32_t *tests = fg_arena_alloc(e->arena, (size_t)(h->root->n_instrs + 1) * sizeof *tests);
    int32_t *raises = fg_arena_alloc(e->arena, (size_t)(h->root->n_instrs + 1) * sizeof *raises);
    if (tests == NULL || raises == NULL)
        return FG_ERR_NOMEM;
    for (int32_t i = 0; i < h->root->n_instrs; i++) {
        tests[i] = -1;
        if (!h->reached[i] || h->exc_depth[i] != 0 || !may_break(h, i) ||
            (n_arms >= MAX_ARMS && !h->is_breaker[i] && fg_icode_group_end(h->root, i) == i))
            continue;
        FG_TRY(emit_test(h, i + 1, &tests[i]));
        n_arms++;
    }
    n_arms = 0;
    for (int32_t i = 0; i < h->root->n_instrs; i++) {
        raises[i] = -1;
        if (n_arms < MAX_ARMS && takes_raise(h, i)) {
            FG_TRY(emit_test(h, ~i, &raises[i]));
            n_arms++;
        }
    }
    PyObject *chain = fg_emit_own(e, maker->chain(maker->context, e->slot_map, n_slots));
    if (chain == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, chain));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, h->id_slot, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, h->payload_slot, NULL));
    e->handler = h->strip_handler;
    FG_TRY(fg_emit_op(e, FG_OP_CALL, 2, NULL));
    e->handler = -1;
    FG_TRY(fg_emit_op(e, FG_OP_RETURN_VALUE, 0, NULL));
    PyObject *strip = fg_emit_own(e, fg_traceback_strip_function());
    if (strip == NULL)
        return FG_ERR_PYTHON;
    e->handlers[h->strip_handler].target = e->n_out;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, strip));
    FG_TRY(fg_emit_op(e, FG_OP_COPY, 2, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_CALL, 1, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_POP_TOP, 0, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_RERAISE, 0, NULL));
    e->out[to_return].target = e->n_out;
    FG_TRY(emit_ends(h));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_FAST, h->payload_slot, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_RETURN_VALUE, 0, NULL));
    for (int32_t i = 0; i < h->root->n_instrs; i++) {
        if (tests[i] < 0)
            continue;
        e->out[tests[i]].target = e->n_out;
        FG_TRY(emit_payload(h, h->root->instrs[i].depth));
        FG_TRY(emit_jump_to(h, i, &jump));
        e->out[jump].target = h->at[i];
    }
    for (int32_t i = 0; i < h->root->n_instrs; i++) {
        if (raises[i] < 0)
            continue;
        e->out[raises[i]].target = e->n_out;
        FG_TRY(emit_payload(h, h->root->handlers[fg_icode_handler_pass(h->root, h->root->instrs[i].handler, NULL)].depth + 1));
        FG_TRY(emit_raise(h, i));
    }
    return FG_OK;
fail:
    return st;
}

/* super() finds the class and the first argument in the slots that the user's own frame would have: here they are named. */
static fg_status emit_super(fg_host *h, int32_t class_slot, int32_t first_slot_of_user, bool is_cell)
{
    fg_emit_state *e = h->e;
    fg_status st;
    PyObject *function = fg_emit_own(e, fg_super_function()),
             *cell_slot = fg_emit_own(e, PyLong_FromLong(class_slot < 0 ? -1 : e->slot_map[class_slot])),
             *first_slot = fg_emit_own(e, PyLong_FromLong(first_slot_of_user < 0 ? -1 : e->slot_map[first_slot_of_user]));
    if (function == NULL || cell_slot == NULL || first_slot == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, function));
    FG_TRY(fg_emit_op(e, FG_OP_SWAP, 2, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, cell_slot));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, first_slot));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, is_cell ? Py_True : Py_False));
    return fg_emit_op(e, FG_OP_CALL, 4, NULL);
fail:
    return st;
}

/* Where its arguments are loaded like others. */
static fg_status emit_super_of(fg_host *h, const fg_instr *in)
{
    fg_emit_state *e = h->e;
    fg_status st;
    if (in->arg == 2)
        return fg_emit_op(e, FG_OP_CALL, 2, NULL);
    PyObject *function = fg_emit_own(e, fg_super_of_function());
    if (function == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_emit_op(e, FG_OP_BUILD_TUPLE, 3, NULL));
    FG_TRY(fg_emit_op(e, FG_OP_LOAD_CONST, 0, function));
    FG_TRY(fg_emit_op(e, FG_OP_SWAP, 2, NULL));
    return fg_emit_op(e, FG_OP_CALL, 1, NULL);
fail:
    return st;
}

static fg_status emit_copy(fg_host *h, const fg_instr *in)
{
    fg_emit_state *e = h->e;
    fg_status st = fg_emit_op(e, in->op == FG_OP_LOAD_METHOD ? FG_OP_LOAD_ATTR : (fg_cop)in->op, in->arg, in->obj);
    if (st != FG_OK)
        return st;
    fg_instr *copy = &e->out[e->n_out - 1];
    copy->flags = in->flags;
    switch ((fg_cop)in->op) {
    case FG_OP_LOAD_FAST:
    case FG_OP_STORE_FAST:
    case FG_OP_DELETE_FAST:
    case FG_OP_LOAD_FAST_AND_CLEAR:
    case FG_OP_LOAD_DEREF:
    case FG_OP_STORE_DEREF:
    case FG_OP_DELETE_DEREF:
    case FG_OP_MAKE_CELL:
    case FG_OP_LOAD_FROM_DICT_OR_DEREF: copy->arg = e->slot_map[in->arg]; break;
    default: break;
    }
    return FG_OK;
}

static fg_status emit_body(fg_host *h)
{
    fg_emit_state *e = h->e;
    fg_status st;
    int32_t n_stubs = 0, start = e->n_out, *handler_of = fg_arena_alloc(e->arena, (size_t)(h->root->n_handlers + 1) * sizeof *handler_of);
    fg_handler *handlers = fg_arena_alloc(e->arena, (size_t)(e->n_handlers + h->root->n_handlers + 2) * sizeof *handlers);
    if (handler_of == NULL || handlers == NULL)
        return FG_ERR_NOMEM;
    if (e->n_handlers)
        memcpy(handlers, e->handlers, (size_t)e->n_handlers * sizeof *handlers);
    e->handlers = handlers;
    e->handler_of = h->handler_of = handler_of;
    for (int32_t i = 0; i < h->root->n_handlers; i++) {
        handler_of[i] = e->n_handlers;
        handlers[e->n_handlers++] = h->root->handlers[i];
    }
    h->strip_handler = e->n_handlers;
    handlers[e->n_handlers++] = (fg_handler){.target = -1, .depth = 0, .lasti = 0};
    e->cap_handlers = e->n_handlers;
    for (int32_t i = 0; i < h->root->n_instrs; i++) {
        if (!h->reached[i])
            continue;
        const fg_instr *in = &h->root->instrs[i];
        e->where = in;
        e->handler = handler_at(h, i);
        if (e->n_out == h->body && e->ir->exit.is_break)
            e->out[e->n_out - 1].handler = e->handler; /* the jump into the body, which cannot raise */
        else if (e->out[e->n_out - 1].handler != e->handler)
            FG_TRY(fg_emit_op(e, FG_OP_NOP, 0, NULL));
        h->at[i] = e->n_out;
        if (in->op == FG_OP_CALLEE)
            continue; /* rule 4: the assembler finds a form of the call that needs no NULL below */
        if (in->op == FG_OP_CALL_SUPER) {
            FG_TRY(emit_super_of(h, in));
        } else if (h->root->instrs[fg_icode_group_end(h->root, i)].op == FG_OP_CALL_SUPER) {
            FG_TRY(emit_super(h, in->arg, in[1].arg, in[1].op == FG_OP_LOAD_DEREF));
            i = fg_icode_group_end(h->root, i);
        } else if (in->op == FG_OP_CALL && in->arg == 0 && fg_icode_super_at(h->root, i) != FG_SUPER_NOT) {
            const PyCodeObject *code = h->root->code;
            const int32_t first = code->co_argcount > 0 ? 0 : -1;
            FG_TRY(emit_super(h, fg_icode_class_slot(h->root), first, first == 0 && (kind_of(code, 0) & KIND_CELL)));
        } else {
            if (in->op == FG_OP_RETURN_VALUE)
                FG_TRY(emit_ends(h));
            FG_TRY(emit_copy(h, in));
        }
        bool wants_stub = h->is_breaker[i];
        if (in->target >= 0) {
            h->patches[h->n_patches].from = e->n_out - 1;
            h->patches[h->n_patches++].to_instr = in->target;
        }
        if (wants_stub && !is_end(in->op) && n_stubs < MAX_STUBS && may_resume_at(h, i + 1)) {
            n_stubs++;
            FG_TRY(emit_stub(h, i + 1));
        }
    }
    /* taken edges of breaking branches get a stub of their own, out of line */
    int32_t n_patches = h->n_patches;
    for (int32_t k = 0; k < n_patches; k++) {
        struct fg_patch *p = &h->patches[k];
        int32_t from_instr = -1, jump;
        for (int32_t i = 0; i < h->root->n_instrs && from_instr < 0; i++)
            if (h->at[i] == p->from)
                from_instr = i;
        e->out[p->from].target = h->at[p->to_instr];
        const fg_instr *in = &h->root->instrs[from_instr];
        if (h->is_breaker[from_instr] && in->op != FG_OP_JUMP && in->op != FG_OP_SEND && n_stubs < MAX_STUBS &&
            may_resume_at(h, p->to_instr)) {
            n_stubs++;
            e->out[p->from].target = e->n_out;
            FG_TRY(emit_stub(h, p->to_instr));
            FG_TRY(emit_jump_to(h, p->to_instr, &jump));
            e->out[jump].target = h->at[p->to_instr];
        }
    }
    for (int32_t i = 0; i < h->root->n_handlers; i++) {
        int32_t to = h->at[h->root->handlers[i].target];
        handlers[handler_of[i]].target = to >= 0 ? to : start; /* a handler nobody can reach */
    }
    return FG_OK;
fail:
    return st;
}

static fg_status restore_frame(fg_emit_state *e)
{
    const fg_ir_exit *exit = &e->ir->exit;
    fg_status st;
    Py_ssize_t n = PyTuple_GET_SIZE(e->ir->root->code->co_localsplusnames);
    /* locals() takes a cell for a value until it sees that the frame has made it, so each is made here before the real one is put in its place */
    for (Py_ssize_t i = 0; i < n; i++)
        if (kind_of(e->ir->root->code, i) & KIND_CELL)
            FG_TRY(fg_emit_op(e, FG_OP_MAKE_CELL, e->slot_map[i], NULL));
    for (Py_ssize_t i = 0; i < n; i++) {
        if (exit->slots[i] == FG_REG_NONE || (kind_of(e->ir->root->code, i) & KIND_FREE))
            continue;
        FG_TRY(fg_emit_load(e, exit->slots[i]));
        FG_TRY(fg_emit_op(e, FG_OP_STORE_FAST, e->slot_map[i], NULL));
    }
    for (int32_t i = 0; i < exit->depth; i++)
        FG_TRY(fg_emit_load(e, exit->stack[i]));
    for (int32_t i = 0; i < e->n_inputs; i++)
        FG_TRY(fg_emit_op(e, FG_OP_DELETE_FAST, i, NULL));
    for (int32_t i = 0; i < e->n_temps; i++)
        if (e->temp_live[i] == 1)
            FG_TRY(fg_emit_op(e, FG_OP_DELETE_FAST, e->temp_base + i, NULL));
    return FG_OK;
fail:
    return st;
}

fg_status fg_emit_host(fg_emit_state *e)
{
    fg_status st = FG_ERR_NOMEM;
    const fg_icode *root = e->ir->root;
    const bool is_break = e->ir->exit.is_break;
    size_t n = (size_t)root->n_instrs + 1;
    fg_host h = {.e = e, .root = root};
    h.reached = fg_arena_alloc(e->arena, n);
    h.exc_depth = fg_arena_alloc(e->arena, n * sizeof *h.exc_depth);
    h.at = fg_arena_alloc(e->arena, n * sizeof *h.at);
    h.is_breaker = fg_arena_alloc(e->arena, n);
    h.patches = fg_arena_alloc(e->arena, n * sizeof *h.patches);
    h.outs = fg_arena_alloc(e->arena, (size_t)(2 * MAX_STUBS + 2) * sizeof *h.outs);
    if (!h.reached || !h.exc_depth || !h.at || !h.is_breaker || !h.patches || !h.outs)
        return st;
    for (size_t i = 0; i < n; i++)
        h.at[i] = -1;
    int32_t n_steps_temps = e->n_temps;
    e->where = &root->instrs[e->ir->exit.pc];
    e->n_free = 0; /* more temporaries, told apart from those of the steps */
    FG_TRY(fg_emit_temp(e, &h.id_slot));
    FG_TRY(fg_emit_temp(e, &h.payload_slot));
    e->temp_live[n_steps_temps] = e->temp_live[n_steps_temps + 1] = 0;
    FG_TRY(fg_emit_catch_temps(e));
    finish_slot_map(e);
    if (is_break) {
        FG_TRY(restore_frame(e));
        if (!e->ir->exit.is_raise)
            FG_TRY(reach(&h, e->ir->exit.pc, 0));
        else
            FG_TRY(reach(&h, root->handlers[fg_icode_handler_pass(root, root->instrs[e->ir->exit.pc].handler, NULL)].target, 1));
    }
    for (int32_t i = 0; i < e->n_blocks; i++)
        if (e->blocks[i].caught >= 0)
            FG_TRY(reach(&h, root->handlers[e->ir->catches[e->blocks[i].caught].handler].target, 1));
    int32_t calls = 0;
    for (int32_t i = 0; i < root->n_instrs && is_break; i++)
        if (h.reached[i] && h.exc_depth[i] == 0 && may_break(&h, i)) {
            int32_t at = fg_icode_group_end(root, i); /* the stub stands behind the call */
            h.is_breaker[at] = i == e->ir->exit.pc || is_known_break(&h, i) || (is_call(&root->instrs[at]) && calls++ < MAX_STUBS / 2);
        }
    int32_t enter = -1;
    if (is_break)
        FG_TRY(fg_emit_jump(e, FG_OP_JUMP, &enter));
    h.body = e->n_out;
    FG_TRY(emit_body(&h));
    if (is_break)
        e->out[enter].target = e->ir->exit.is_raise ? e->n_out : h.at[e->ir->exit.pc];
    if (is_break && e->ir->exit.is_raise)
        FG_TRY(emit_raise(&h, e->ir->exit.pc));
    if (h.n_outs > 0) {
        FG_TRY(emit_outs(&h));
        FG_TRY(emit_dispatch(&h));
    } else {
        e->handlers[h.strip_handler].target = h.body; /* nobody's */
    }
    e->handler = -1;
    return FG_OK;
fail:
    return st;
}
