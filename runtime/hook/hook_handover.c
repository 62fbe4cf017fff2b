#include "runtime/hook/hook_handover.h"

#include "guards/guard_drop.h"
#include "runtime/base/alloc.h"
#include "runtime/cpython/canonical.h"
#include "runtime/cpython/eval_hook.h"
#include "runtime/cpython/frame.h"
#include "runtime/cpython/function.h"

enum { FEW = 16, MAX_PARTS = 1000, MAX_DEPTH = 8 };

PyObject *fg_handover_plain(PyObject *gate, PyObject *func, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *few[FEW], **given = few, *result;
    fg_frame_args *stack = NULL;
    for (Py_ssize_t i = 0; i < n && stack == NULL && fg_function_runs_its_code((PyFunctionObject *)func); i++)
        if (Py_REFCNT(args[i]) == 1 && (stack = fg_frame_args_find(gate, args, n)) == NULL)
            break;
    /* Its frame is not for whoever intercepts: it was decided here. */
    fg_eval_mark(func);
    if (stack == NULL || (n > FEW && (given = fg_malloc((size_t)n * sizeof *given)) == NULL)) {
        result = ((PyFunctionObject *)func)->vectorcall(func, args, nargsf, kwnames);
        fg_eval_unmark();
        return result;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        given[i] = args[i];
        if (Py_REFCNT(given[i]) == 1 && fg_frame_args_take(stack, i))
            Py_SET_REFCNT(given[i], 0);
    }
    result = ((PyFunctionObject *)func)->vectorcall(func, given, (size_t)PyVectorcall_NARGS(nargsf), kwnames);
    fg_eval_unmark();
    if (given != few)
        fg_free(given);
    return result;
}

static int is_among(PyObject *o, PyObject *const *inputs, uint32_t n_inputs)
{
    for (uint32_t i = 0; i < n_inputs; i++)
        if (inputs[i] == o)
            return 1;
    return 0;
}

/* Arguments that were bound have a reference in the slots of the view too. Those of a frame have that, and it may do without: whoever counts or lets go finds
 * the references that there are in plain Python. */
void fg_handover_inputs(PyObject *gate, const fg_view *view, PyObject *const *inputs, uint32_t n_inputs)
{
    const int is_bound = view->slots != view->lent;
    fg_frame_args *stack = NULL;
    PyObject **slots = (PyObject **)view->slots;
    for (Py_ssize_t i = 0; i < view->n_lent; i++) {
        PyObject *o = view->lent[i];
        Py_ssize_t slot = 0;
        if (o == NULL || (view->frame == NULL && Py_REFCNT(o) != 1 + is_bound) || !is_among(o, inputs, n_inputs))
            continue;
        if (view->frame != NULL && Py_REFCNT(o) > 1) {
            fg_frame_slot_drop(view->frame, i);
            continue;
        }
        if (view->frame != NULL) {
            fg_frame_slot_forget(view->frame, i);
            Py_SET_REFCNT(o, 0);
            continue;
        }
        while (is_bound && slot < view->n_slots && slots[slot] != o)
            slot++;
        if ((is_bound && slot == view->n_slots) || (stack == NULL && (stack = fg_frame_args_find(gate, view->lent, view->n_lent)) == NULL))
            return;
        if (!fg_frame_args_take(stack, i))
            continue;
        if (is_bound)
            slots[slot] = Py_NewRef(Py_None);
        Py_SET_REFCNT(o, 0);
    }
}

/* What dies with an argument is what it alone keeps: a container's end is heard if that of a part is which has no other reference. */
typedef struct parts {
    int depth, left;
} parts;

static int is_heard(PyObject *o, parts *p);

static int visit(PyObject *part, void *state)
{
    return is_heard(part, state);
}

/* Its end does nothing but give up what the collector's walk shows. */
static int only_holds(const PyTypeObject *type)
{
    return type == &PyList_Type || type == &PyTuple_Type || type == &PyDict_Type || type == &PySet_Type || type == &PyFrozenSet_Type ||
           type == &PyCell_Type || type == &PyFunction_Type || type == &PyMethod_Type || type == &PySlice_Type || type == &PyMap_Type ||
           type == &PyFilter_Type || type == &PyZip_Type || type == &PyEnum_Type || type == &PyReversed_Type;
}

static int is_heard(PyObject *o, parts *p)
{
    PyTypeObject *type = Py_TYPE(o);
    int heard;
    if (Py_REFCNT(o) != 1 || fg_drop_is_trivial(o))
        return 0;
    if (!only_holds(type) || fg_object_weakrefs(o) != NULL)
        return !fg_drop_passes(o);
    if (p->depth >= MAX_DEPTH || --p->left < 0)
        return 1; /* rather than look further */
    p->depth++;
    heard = type->tp_traverse(o, visit, p);
    p->depth--;
    return heard;
}

int fg_handover_hears(PyObject *arg)
{
    parts p = {0, MAX_PARTS};
    return is_heard(arg, &p);
}

int fg_handover_drops_args(PyCodeObject *code)
{
    enum { CELL = 0x40 };
    int n = code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0) + ((code->co_flags & CO_VARKEYWORDS) != 0);
    const unsigned char *kinds = (const unsigned char *)PyBytes_AS_STRING(code->co_localspluskinds);
    fg_icode *icode;
    int drops = 0;
    if (n == 0 || fg_decode(code, &icode) != FG_OK) {
        PyErr_Clear();
        return n > 0;
    }
    for (int32_t i = 0; i < icode->n_instrs && !drops; i++) {
        const fg_instr *in = &icode->instrs[i];
        const int lets_go =
            in->op == FG_OP_STORE_FAST || in->op == FG_OP_DELETE_FAST || in->op == FG_OP_STORE_DEREF || in->op == FG_OP_DELETE_DEREF;
        drops = lets_go && in->arg < n && (in->op == FG_OP_STORE_FAST || in->op == FG_OP_DELETE_FAST || (kinds[in->arg] & CELL));
    }
    fg_icode_release(icode);
    return drops;
}
