/* Guard descriptions as Python sees them. They are here rather than in guards/ because a check takes the arguments of a call, and binding those is this
 * layer's business.
 */
#include "guards/guard_program.h"
#include "runtime/base/alloc.h"
#include "runtime/hook/hook_bind.h"
#include "runtime/hook/hook_entry.h"
#include "runtime/hook/hook_gate.h"
#include "runtime/hook/hook_module.h"

typedef struct guards_object {
    PyObject_HEAD fg_desc *desc;
    fg_entry *entry;     /* counted, and the owner of desc; NULL: desc is ours */
    fg_program *program; /* of desc alone, for check; NULL until it is asked */
} guards_object;

static fg_desc *desc_of(PyObject *self)
{
    return ((guards_object *)self)->desc;
}

static void guards_dealloc(PyObject *object)
{
    guards_object *self = (guards_object *)object;
    fg_desc *desc = self->desc;
    fg_entry *entry = self->entry;
    fg_program_free(self->program);
    PyObject_Free(self);
    if (entry != NULL)
        fg_entry_drop(entry);
    else
        fg_desc_free(desc);
}

static PyObject *guards_str(PyObject *self)
{
    return fg_desc_tree_str(desc_of(self));
}

static PyObject *guards_to_text(PyObject *self, PyObject *unused)
{
    (void)unused;
    return fg_desc_to_text(desc_of(self));
}

static Py_ssize_t guards_length(PyObject *self)
{
    return fg_desc_n_guards(desc_of(self));
}

static PySequenceMethods guards_sequence = {.sq_length = guards_length};

static PyMethodDef guards_methods[] = {
    {"to_text", guards_to_text, METH_NOARGS, "The exact text form, which guards_from_text reads."},
    {0},
};

PyTypeObject fg_guards_object_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Guards",
    .tp_basicsize = sizeof(guards_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = PyDoc_STR("The guards of one entry, or read from text."),
    .tp_dealloc = guards_dealloc,
    .tp_str = guards_str,
    .tp_as_sequence = &guards_sequence,
    .tp_methods = guards_methods,
};

static PyObject *guards_new(fg_desc *desc, fg_entry *entry)
{
    guards_object *self = PyObject_New(guards_object, &fg_guards_object_type);
    if (self == NULL) {
        if (entry == NULL)
            fg_desc_free(desc);
        return NULL;
    }
    if (entry != NULL)
        fg_entry_take(entry);
    self->desc = desc;
    self->entry = entry;
    self->program = NULL;
    return (PyObject *)self;
}

static PyObject *raise_status(fg_status st)
{
    if (st == FG_ERR_NOMEM)
        return PyErr_NoMemory();
    if (!PyErr_Occurred())
        PyErr_SetString(st == FG_ERR_INVALID ? PyExc_ValueError : PyExc_RuntimeError, fg_status_text(st));
    return NULL;
}

PyObject *fg_entry_guards_new(fg_entry *entry)
{
    return guards_new(entry->desc, entry);
}

static PyObject *entry_guards(PyObject *module, PyObject *object)
{
    (void)module;
    fg_entry *entry = fg_entry_object_get(object);
    return entry == NULL ? NULL : guards_new(entry->desc, entry);
}

static PyObject *guards_from_text(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *text, *resolve = NULL;
    fg_desc *desc = NULL;
    if (!PyArg_ParseTuple(args, "U|O:guards_from_text", &text, &resolve))
        return NULL;
    fg_status st = fg_desc_from_text(text, resolve == Py_None ? NULL : resolve, &desc);
    return st == FG_OK ? guards_new(desc, NULL) : raise_status(st);
}

/* A call (args, kwargs) of a function as an array: positional values, then the keywords' ones, whose names are in *kwnames. */
static fg_status spread_call(PyObject *args, PyObject *kwargs, PyObject ***values, PyObject **kwnames)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args), n_keywords = kwargs == NULL ? 0 : PyDict_GET_SIZE(kwargs), at = 0;
    PyObject *key, *value;
    *kwnames = NULL;
    *values = fg_calloc((size_t)(n + n_keywords) + 1, sizeof **values);
    if (*values == NULL)
        return FG_ERR_NOMEM;
    for (Py_ssize_t i = 0; i < n; i++)
        (*values)[i] = PyTuple_GET_ITEM(args, i);
    if (n_keywords > 0 && (*kwnames = PyTuple_New(n_keywords)) == NULL)
        return FG_ERR_PYTHON;
    for (Py_ssize_t i = 0; i < n_keywords && PyDict_Next(kwargs, &at, &key, &value); i++) {
        PyTuple_SET_ITEM(*kwnames, i, Py_NewRef(key));
        (*values)[n + i] = value;
    }
    return FG_OK;
}

typedef PyObject *(*view_user)(guards_object *guards, const fg_view *view);

/* Bind the call to the function's parameters and use the view; does_not_fit is what a call gives that does not bind. */
static PyObject *with_call(PyObject *args, const char *format, view_user use, PyObject *(*does_not_fit)(void))
{
    fg_status st = FG_OK;
    PyObject *guards, *func, *call_args, *call_kwargs = NULL, *result = NULL, *kwnames = NULL;
    PyObject **values = NULL, **slots = NULL;
    fg_bind_shape shape = {0};
    if (!PyArg_ParseTuple(args, format, &fg_guards_object_type, &guards, &func, &PyTuple_Type, &call_args, &PyDict_Type, &call_kwargs))
        return NULL;
    if (fg_gate_check(func))
        func = ((fg_gate *)func)->func;
    if (!PyFunction_Check(func))
        return PyErr_Format(PyExc_TypeError, "guards are checked for a Python function, not for '%.200s'", Py_TYPE(func)->tp_name);
    PyFunctionObject *function = (PyFunctionObject *)Py_NewRef(func);
    FG_TRY(fg_bind_shape_init(&shape, (PyCodeObject *)function->func_code));
    FG_TRY(spread_call(call_args, call_kwargs, &values, &kwnames));
    st = FG_ERR_NOMEM;
    if ((slots = fg_calloc((size_t)shape.n_slots + 1, sizeof *slots)) == NULL)
        goto fail;
    st = FG_OK;
    if (fg_bind_call(&shape, func, values, PyTuple_GET_SIZE(call_args), kwnames, slots)) {
        fg_view view = {slots, shape.n_slots, function->func_closure, function->func_globals, function->func_builtins, func};
        result = use((guards_object *)guards, &view);
    } else {
        result = does_not_fit();
    }
fail:
    if (slots != NULL)
        fg_bind_release(slots, shape.n_slots);
    fg_free(slots);
    fg_free(values);
    Py_XDECREF(kwnames);
    fg_bind_shape_fini(&shape);
    Py_DECREF(function);
    return st == FG_OK ? result : raise_status(st);
}

/* By a program, as the entry's own call would be: it knows what has not changed since the last check. */
static PyObject *use_check(guards_object *guards, const fg_view *view)
{
    const fg_desc *desc = guards->desc;
    fg_eval eval = {0};
    PyObject *few[16], **inputs = few;

    fg_status st = guards->program == NULL ? fg_program_build(&desc, 1, NULL, &guards->program) : FG_OK;
    if (st != FG_OK)
        return raise_status(st);
    uint32_t room = fg_program_max_inputs(guards->program);
    if (room > sizeof few / sizeof *few && (inputs = fg_malloc(room * sizeof *inputs)) == NULL)
        return PyErr_NoMemory();
    fg_eval_result answer = fg_program_eval(guards->program, view, NULL, NULL, inputs, &eval);
    if (answer == FG_EVAL_HIT)
        fg_eval_release(&eval);
    if (inputs != few)
        fg_free(inputs);
    if (answer != FG_EVAL_BUSY)
        return answer == FG_EVAL_ERROR ? NULL : PyBool_FromLong(answer == FG_EVAL_HIT);
    int accepts = fg_desc_check(desc, view);
    return accepts < 0 ? NULL : PyBool_FromLong(accepts);
}

static PyObject *use_explain(guards_object *guards, const fg_view *view)
{
    return fg_desc_explain(guards->desc, view);
}

static PyObject *false_answer(void)
{
    return Py_NewRef(Py_False);
}

static PyObject *no_fit_answer(void)
{
    return Py_BuildValue("[s]", "the arguments do not fit the function's parameters");
}

static PyObject *guards_check(PyObject *module, PyObject *args)
{
    (void)module;
    return with_call(args, "O!OO!|O!:guards_check", use_check, false_answer);
}

static PyObject *guards_explain(PyObject *module, PyObject *args)
{
    (void)module;
    return with_call(args, "O!OO!|O!:guards_explain", use_explain, no_fit_answer);
}

PyMethodDef fg_guards_functions[] = {
    {"entry_guards", entry_guards, METH_O, "entry_guards(entry) -> Guards"},
    {"guards_from_text", guards_from_text, METH_VARARGS, "guards_from_text(text, resolve=None) -> Guards; ValueError for bad text."},
    {"guards_check", guards_check, METH_VARARGS, "guards_check(guards, function, args, kwargs={}) -> bool"},
    {"guards_explain", guards_explain, METH_VARARGS, "guards_explain(guards, function, args, kwargs={}) -> list of failing conditions"},
    {0},
};
