/* Guard descriptions as Python sees them: the base of framegate.GuardTree. They are here rather than in guards/ because a check takes the arguments of a
 * call, and binding those is this layer's business.
 *
 * A tree that knows its function keeps the function's shape and a program of its one description, both made at the first check, so that a check of a call
 * whose arguments fit exactly does what a gate does before it runs a target, and no more.
 */
#include "guards/guard_program.h"
#include "runtime/base/alloc.h"
#include "runtime/hook/hook_bind.h"
#include "runtime/hook/hook_entry.h"
#include "runtime/hook/hook_gate.h"
#include "runtime/hook/hook_module.h"

enum { FEW_INPUTS = 16, FEW_VALUES = 16 };

typedef struct guards_object {
    PyObject_HEAD fg_desc *desc;
    fg_entry *entry;        /* counted, and the owner of desc; NULL: desc is ours or base's */
    PyObject *base;         /* the tree that owns desc, or NULL */
    PyFunctionObject *func; /* whose calls are checked; NULL: of none */
    PyCodeObject *code;     /* that shape and n_exact are of; NULL until the first check */
    fg_bind_shape shape;
    Py_ssize_t n_exact;
    fg_program *program; /* of desc alone; NULL until the first check */
} guards_object;

static guards_object *guards_of(PyObject *self)
{
    return (guards_object *)self;
}

static int guards_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(guards_of(self)->func);
    Py_VISIT(guards_of(self)->base);
    return 0;
}

static int guards_clear(PyObject *self)
{
    Py_CLEAR(guards_of(self)->func);
    return 0;
}

static void guards_dealloc(PyObject *object)
{
    guards_object *self = guards_of(object);
    PyObject_GC_UnTrack(object);
    guards_clear(object);
    fg_program_free(self->program);
    fg_bind_shape_fini(&self->shape);
    Py_XDECREF(self->code);
    if (self->entry != NULL)
        fg_entry_drop(self->entry);
    else if (self->base == NULL)
        fg_desc_free(self->desc);
    Py_XDECREF(self->base);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *guards_str(PyObject *self)
{
    return fg_desc_tree_str(guards_of(self)->desc);
}

static PyObject *guards_to_text(PyObject *self, PyObject *unused)
{
    (void)unused;
    return fg_desc_to_text(guards_of(self)->desc);
}

static Py_ssize_t guards_length(PyObject *self)
{
    return fg_desc_n_guards(guards_of(self)->desc);
}

/* One of entry and base is given, or desc alone, which is the new object's from here on, whatever becomes of it. */
static PyObject *guards_new(PyTypeObject *type, fg_desc *desc, fg_entry *entry, PyObject *base, PyObject *func)
{
    guards_object *self = (guards_object *)type->tp_alloc(type, 0);
    if (self == NULL) {
        if (entry == NULL && base == NULL)
            fg_desc_free(desc);
        return NULL;
    }
    if (entry != NULL)
        fg_entry_take(entry);
    self->desc = desc;
    self->entry = entry;
    self->base = Py_XNewRef(base);
    self->func = (PyFunctionObject *)Py_XNewRef(func);
    return (PyObject *)self;
}

PyObject *fg_entry_guards_new(fg_entry *entry)
{
    return guards_new(&fg_guards_object_type, entry->desc, entry, NULL, NULL);
}

/* cls(entry or guards, function): guards of calls of this function. */
static PyObject *guards_tp_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *source, *func;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0)
        return PyErr_Format(PyExc_TypeError, "%s() takes no keyword arguments", type->tp_name);
    if (!PyArg_ParseTuple(args, "OO:GuardTree", &source, &func))
        return NULL;
    if (fg_gate_check(func))
        func = ((fg_gate *)func)->func;
    if (!PyFunction_Check(func))
        return PyErr_Format(PyExc_TypeError, "guards are checked for a Python function, not for '%.200s'", Py_TYPE(func)->tp_name);
    if (PyObject_TypeCheck(source, &fg_guards_object_type)) {
        guards_object *of = guards_of(source);
        return guards_new(type, of->desc, of->entry, of->entry != NULL ? NULL : of->base != NULL ? of->base : source, func);
    }
    fg_entry *entry = fg_entry_object_get(source);
    return entry == NULL ? NULL : guards_new(type, entry->desc, entry, NULL, func);
}

static PyObject *raise_status(fg_status st)
{
    if (st == FG_ERR_NOMEM)
        return PyErr_NoMemory();
    if (!PyErr_Occurred())
        PyErr_SetString(st == FG_ERR_INVALID ? PyExc_ValueError : PyExc_RuntimeError, fg_status_text(st));
    return NULL;
}

static PyObject *guards_from_text(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"text", "resolve", NULL};
    PyObject *text, *resolve = NULL;
    fg_desc *desc = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|O:from_text", names, &text, &resolve))
        return NULL;
    fg_status st = fg_desc_from_text(text, resolve == Py_None ? NULL : resolve, &desc);
    return st == FG_OK ? guards_new((PyTypeObject *)type, desc, NULL, NULL, NULL) : raise_status(st);
}

/* Make the shape that of the function's code now, which a user may replace. */
static fg_status prepare(guards_object *self)
{
    PyCodeObject *code = (PyCodeObject *)self->func->func_code, *old = self->code;
    const fg_desc *desc = self->desc;
    fg_status st = FG_OK;
    fg_bind_shape shape, old_shape = self->shape;
    if (code != old) {
        Py_INCREF(code);
        if ((st = fg_bind_shape_init(&shape, code)) != FG_OK) {
            Py_DECREF(code);
            return st;
        }
        self->code = code;
        self->shape = shape;
        self->n_exact = fg_bind_shape_exact(&shape);
        fg_bind_shape_fini(&old_shape);
        Py_XDECREF(old);
    }
    return self->program == NULL ? fg_program_build(&desc, 1, NULL, &self->program) : FG_OK;
}

/* By a program, as the entry's own call would be: it knows what has not changed since the last check. */
static PyObject *check_view(guards_object *self, const fg_view *view)
{
    fg_eval eval = {0};
    PyObject *few[FEW_INPUTS], **inputs = few;
    uint32_t room = fg_program_max_inputs(self->program);
    if (FG_UNLIKELY(room > FEW_INPUTS) && (inputs = fg_malloc(room * sizeof *inputs)) == NULL)
        return PyErr_NoMemory();
    fg_eval_result answer = fg_program_eval(self->program, view, NULL, NULL, inputs, &eval);
    if (eval.held != NULL)
        fg_eval_release(&eval);
    if (FG_UNLIKELY(inputs != few))
        fg_free(inputs);
    if (FG_LIKELY(answer <= FG_EVAL_HIT))
        return Py_NewRef(answer == FG_EVAL_HIT ? Py_True : Py_False);
    if (answer == FG_EVAL_ERROR)
        return NULL;
    int accepts = fg_desc_check(self->desc, view);
    return accepts < 0 ? NULL : PyBool_FromLong(accepts);
}

static PyObject *explain_view(guards_object *self, const fg_view *view)
{
    return fg_desc_explain(self->desc, view);
}

static PyObject *false_answer(void)
{
    return Py_NewRef(Py_False);
}

static PyObject *no_fit_answer(void)
{
    return Py_BuildValue("[s]", "the arguments do not fit the function's parameters");
}

static inline fg_view view_of(PyObject *const *slots, Py_ssize_t n, PyFunctionObject *func)
{
    return (fg_view){slots, n, func->func_closure, func->func_globals, func->func_builtins, (PyObject *)func, NULL, 0, NULL};
}

typedef PyObject *(*view_user)(guards_object *self, const fg_view *view);

/* Bind a call to the function's parameters and use the view; does_not_fit is what a call gives that does not bind. */
static PyObject *with_call(guards_object *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, view_user use,
                           PyObject *(*does_not_fit)(void))
{
    if (self->func == NULL) {
        PyErr_SetString(PyExc_ValueError, "this guard tree was read from text and knows no function; use tree.bind(fn).check(...)");
        return NULL;
    }
    fg_status st = prepare(self);
    if (st != FG_OK)
        return raise_status(st);
    PyObject *few[FEW_VALUES] = {NULL}, **slots = few, *result;
    PyFunctionObject *func = (PyFunctionObject *)Py_NewRef(self->func);
    Py_ssize_t n_slots = self->shape.n_slots; /* the shape may be another one after the call */
    if (kwnames == NULL && n == self->n_exact) {
        fg_view view = view_of(args, n, func);
        result = use(self, &view);
    } else if (n_slots >= FEW_VALUES && (slots = fg_calloc((size_t)n_slots + 1, sizeof *slots)) == NULL) {
        result = PyErr_NoMemory();
    } else if (fg_bind_call(&self->shape, (PyObject *)func, args, n, kwnames, slots)) {
        fg_view view = view_of(slots, n_slots, func);
        result = use(self, &view);
        fg_bind_release(slots, n_slots);
    } else {
        result = does_not_fit();
    }
    if (slots != few)
        fg_free(slots);
    Py_DECREF(func);
    return result;
}

static PyObject *guards_check(PyObject *object, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    guards_object *self = guards_of(object);
    if (FG_LIKELY(kwnames == NULL) && FG_LIKELY(self->program != NULL) && FG_LIKELY(self->func != NULL) &&
        FG_LIKELY(self->func->func_code == (PyObject *)self->code) && FG_LIKELY(n == self->n_exact)) {
        fg_view view = view_of(args, n, self->func);
        return check_view(self, &view);
    }
    return with_call(self, args, n, kwnames, check_view, false_answer);
}

static PyObject *guards_explain(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    return with_call(guards_of(self), args, n, kwnames, explain_view, no_fit_answer);
}

#define METHOD(function) (PyCFunction)(void (*)(void))(function)

static PyMethodDef guards_methods[] = {
    {"check", METHOD(guards_check), METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("check(*args, **kwargs) -> bool\n\nDo all guards hold for a call with these arguments? Arguments that do not fit the "
               "function's parameters give False. ValueError for a tree from text that was not bound to a function.")},
    {"explain", METHOD(guards_explain), METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR(
         "explain(*args, **kwargs) -> list[str]\n\nThe conditions that fail for a call with these arguments, each with the value seen "
         "and the user's line; empty if all hold.")},
    {"to_text", guards_to_text, METH_NOARGS,
     PyDoc_STR("to_text() -> str\n\nThe exact text form. An object's identity is written ``module:qualname`` where that names it, else as "
               "one that never matches.")},
    {"from_text", METHOD(guards_from_text), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     PyDoc_STR(
         "from_text(text, resolve=None) -> GuardTree\n\nRead a text form. ``resolve(name)`` supplies the objects of identities; without "
         "it, or where it raises LookupError, they never match. ValueError for bad text.")},
    {0},
};

static PySequenceMethods guards_sequence = {.sq_length = guards_length};

PyTypeObject fg_guards_object_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Guards",
    .tp_basicsize = sizeof(guards_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc = PyDoc_STR("The guards of one entry, or read from text."),
    .tp_new = guards_tp_new,
    .tp_dealloc = guards_dealloc,
    .tp_traverse = guards_traverse,
    .tp_clear = guards_clear,
    .tp_str = guards_str,
    .tp_as_sequence = &guards_sequence,
    .tp_methods = guards_methods,
};
