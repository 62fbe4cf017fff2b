/* The functions behind cpython_… of the extension module: arguments to C and back, no logic. */
#include "runtime/cpython/cpython_module.h"
#include "runtime/base/alloc.h"
#include "runtime/cpython/canonical.h"
#include "runtime/cpython/dict_watch.h"
#include "runtime/cpython/frame.h"
#include "runtime/cpython/function.h"
#include "runtime/cpython/straight.h"
#include <string.h>

static PyObject *raise_status(fg_status st, const char *why)
{
    if (st == FG_ERR_NOMEM)
        return PyErr_NoMemory();
    if (st != FG_ERR_PYTHON)
        PyErr_Format(PyExc_ValueError, "%s: %s", fg_status_text(st), why && *why ? why : "no details");
    return NULL;
}

static PyCodeObject *as_code(PyObject *object)
{
    if (!PyCode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "a code object is needed, not %.100s", Py_TYPE(object)->tp_name);
        return NULL;
    }
    return (PyCodeObject *)object;
}

static PyObject *instr_tuple(const fg_instr *at)
{
    PyObject *object = at->obj ? at->obj : Py_None;
    return Py_BuildValue("(siiiiii(iiii)iO)", fg_cop_name(at->op), at->op, at->flags, at->arg, at->target, at->handler, at->depth, at->line,
                         at->end_line, at->col, at->end_col, at->offset, object);
}

/* decode(code) -> (instructions, handlers, max_depth) */
static PyObject *decode(PyObject *self, PyObject *arg)
{
    (void)self;
    PyCodeObject *code = as_code(arg);
    fg_icode *icode;
    if (!code)
        return NULL;
    const fg_status st = fg_decode(code, &icode);
    if (st != FG_OK)
        return raise_status(st, fg_canonical_why());
    PyObject *instrs = PyList_New(icode->n_instrs), *handlers = PyList_New(icode->n_handlers), *result = NULL;
    if (!instrs || !handlers)
        goto fail;
    for (int32_t i = 0; i < icode->n_instrs; i++) {
        PyObject *item = instr_tuple(&icode->instrs[i]);
        if (!item)
            goto fail;
        PyList_SET_ITEM(instrs, i, item);
    }
    for (int32_t h = 0; h < icode->n_handlers; h++) {
        PyObject *item = Py_BuildValue("(iii)", icode->handlers[h].target, icode->handlers[h].depth, icode->handlers[h].lasti);
        if (!item)
            goto fail;
        PyList_SET_ITEM(handlers, h, item);
    }
    result = Py_BuildValue("(OOi)", instrs, handlers, icode->max_depth);
fail:
    Py_XDECREF(instrs);
    Py_XDECREF(handlers);
    fg_icode_release(icode);
    return result;
}

/* Fill the fields that stay as the code object has them; drop_names releases them. */
static int take_names(PyCodeObject *code, fg_asm *in)
{
    in->base = code;
    in->argcount = code->co_argcount;
    in->posonlyargcount = code->co_posonlyargcount;
    in->kwonlyargcount = code->co_kwonlyargcount;
    in->flags = code->co_flags;
    in->firstlineno = code->co_firstlineno;
    in->first_const = PyTuple_GET_SIZE(code->co_consts) ? PyTuple_GET_ITEM(code->co_consts, 0) : NULL;
    in->varnames = PyCode_GetVarnames(code);
    in->cellvars = PyCode_GetCellvars(code);
    in->freevars = PyCode_GetFreevars(code);
    return in->varnames && in->cellvars && in->freevars;
}

static void drop_names(fg_asm *in)
{
    Py_XDECREF(in->varnames);
    Py_XDECREF(in->cellvars);
    Py_XDECREF(in->freevars);
}

/* roundtrip(code) -> code */
static PyObject *roundtrip(PyObject *self, PyObject *arg)
{
    (void)self;
    PyCodeObject *code = as_code(arg), *made = NULL;
    fg_icode *icode = NULL;
    fg_asm in = {0};
    fg_status st;
    if (!code)
        return NULL;
    FG_TRY(fg_decode(code, &icode));
    in.instrs = icode->instrs;
    in.n_instrs = icode->n_instrs;
    in.handlers = icode->handlers;
    in.n_handlers = icode->n_handlers;
    st = FG_ERR_PYTHON;
    if (!take_names(code, &in))
        goto fail;
    st = fg_assemble(&in, &made);
fail:
    drop_names(&in);
    fg_icode_release(icode);
    return st == FG_OK ? (PyObject *)made : raise_status(st, fg_canonical_why());
}

static int op_number(const char *name)
{
    for (int op = 0; op < FG_N_COPS; op++)
        if (strcmp(fg_cop_name(op), name) == 0)
            return op;
    return -1;
}

static int read_instr(PyObject *item, fg_instr *out)
{
    const char *name;
    PyObject *object = NULL;
    int arg = 0, target = -1, handler = -1, flags = 0, line = -1, end_line = -1, col = -1, end_col = -1;
    if (!PyTuple_Check(item) ||
        !PyArg_ParseTuple(item, "s|iOiiiiiii", &name, &arg, &object, &target, &handler, &flags, &line, &end_line, &col, &end_col))
        return 0;
    const int op = op_number(name);
    if (op < 0) {
        PyErr_Format(PyExc_ValueError, "no canonical instruction %s", name);
        return 0;
    }
    *out = (fg_instr){.op = (uint8_t)op,
                      .flags = (uint8_t)flags,
                      .arg = arg,
                      .target = target,
                      .handler = handler,
                      .offset = -1,
                      .line = line,
                      .end_line = end_line,
                      .col = col,
                      .end_col = end_col,
                      .obj = object};
    return 1;
}

/* assemble(base, instructions, handlers=(), varnames=None): instructions are tuples (name, arg, object, target, handler, flags, line, …). */
static PyObject *assemble(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *base, *list, *handler_list = NULL, *varnames = NULL, *instrs = NULL, *entries = NULL;
    PyCodeObject *made = NULL;
    fg_asm in = {0};
    fg_instr *out = NULL;
    fg_handler *handlers = NULL;
    fg_status st = FG_ERR_PYTHON;
    if (!PyArg_ParseTuple(args, "O!O|OO", &PyCode_Type, &base, &list, &handler_list, &varnames))
        return NULL;
    if (!(instrs = PySequence_Tuple(list)) || !(entries = handler_list ? PySequence_Tuple(handler_list) : PyTuple_New(0)))
        goto fail;
    out = fg_calloc((size_t)PyTuple_GET_SIZE(instrs) + 1, sizeof *out);
    handlers = fg_calloc((size_t)PyTuple_GET_SIZE(entries) + 1, sizeof *handlers);
    if (!out || !handlers) {
        st = FG_ERR_NOMEM;
        goto fail;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(instrs); i++)
        if (!read_instr(PyTuple_GET_ITEM(instrs, i), &out[i]))
            goto fail;
    for (Py_ssize_t h = 0; h < PyTuple_GET_SIZE(entries); h++)
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(entries, h), "iii", &handlers[h].target, &handlers[h].depth, &handlers[h].lasti))
            goto fail;
    if (!take_names((PyCodeObject *)base, &in))
        goto fail;
    if (varnames && varnames != Py_None) {
        Py_INCREF(varnames);
        Py_SETREF(in.varnames, varnames);
    }
    in.instrs = out;
    in.n_instrs = (int32_t)PyTuple_GET_SIZE(instrs);
    in.handlers = handlers;
    in.n_handlers = (int32_t)PyTuple_GET_SIZE(entries);
    st = fg_assemble(&in, &made);
fail:
    drop_names(&in);
    fg_free(handlers);
    fg_free(out);
    Py_XDECREF(entries);
    Py_XDECREF(instrs);
    return st == FG_OK ? (PyObject *)made : raise_status(st, fg_canonical_why());
}

/* verify(code): None, or ValueError saying what is wrong */
static PyObject *verify(PyObject *self, PyObject *arg)
{
    (void)self;
    const char *why = NULL;
    PyCodeObject *code = as_code(arg);
    if (!code)
        return NULL;
    const fg_status st = fg_verify_code(code, &why);
    return st == FG_OK ? Py_NewRef(Py_None) : raise_status(st, why);
}

/* straight_run(function, *args): (result,) of the function's code run without the interpreter's loop; None where there is no such way */
static PyObject *straight_run(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    if (n < 1 || !PyFunction_Check(args[0]) || n - 1 != ((PyCodeObject *)((PyFunctionObject *)args[0])->func_code)->co_argcount) {
        PyErr_SetString(PyExc_TypeError, "a function and as many arguments as it has parameters are needed");
        return NULL;
    }
    fg_straight *plan;
    const fg_status st = fg_straight_plan((PyCodeObject *)((PyFunctionObject *)args[0])->func_code, &plan);
    if (st != FG_OK)
        return raise_status(st, NULL);
    if (plan == NULL)
        return Py_NewRef(Py_None);
    PyObject *result = fg_straight_run(plan, args[0], args + 1);
    fg_free(plan);
    return result == NULL ? NULL : Py_BuildValue("(N)", result);
}

static PyObject *stack_left(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyLong_FromSize_t(fg_stack_left());
}

/* instance_attr(object, name) -> (value,) or None */
static PyObject *instance_attr(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *object, *name;
    if (!PyArg_ParseTuple(args, "OU", &object, &name))
        return NULL;
    PyObject *value = fg_instance_attr(object, name);
    return value ? PyTuple_Pack(1, value) : Py_NewRef(Py_None);
}

static PyObject *instance_attrs(PyObject *self, PyObject *object)
{
    (void)self;
    PyObject *list = PyList_New(0), *name, *value;
    Py_ssize_t position = 0;
    while (list && fg_instance_attr_next(object, &position, &name, &value)) {
        PyObject *pair = PyTuple_Pack(2, name, value);
        if (!pair || PyList_Append(list, pair) < 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

/* frame() -> (code, function, line, locals without unbound ones) of the caller */
static PyObject *frame(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    fg_frame *current = fg_frame_current();
    if (!current)
        return Py_NewRef(Py_None);
    PyCodeObject *code = fg_frame_code(current);
    PyObject *locals = PyDict_New();
    for (Py_ssize_t i = 0; locals && i < PyTuple_GET_SIZE(code->co_localsplusnames); i++) {
        PyObject *value = fg_frame_slot(current, i);
        if (value && PyDict_SetItem(locals, PyTuple_GET_ITEM(code->co_localsplusnames, i), value) < 0)
            Py_CLEAR(locals);
    }
    if (!locals)
        return NULL;
    return Py_BuildValue("(OOiN)", code, fg_frame_func(current), fg_frame_line(current), locals);
}

static PyObject *slot_set(PyObject *self, PyObject *args)
{
    (void)self;
    int index;
    PyObject *value;
    fg_frame *current = fg_frame_current();
    if (!PyArg_ParseTuple(args, "iO", &index, &value))
        return NULL;
    if (!current || index < 0 || index >= PyTuple_GET_SIZE(fg_frame_code(current)->co_localsplusnames)) {
        PyErr_SetString(PyExc_IndexError, "no such slot");
        return NULL;
    }
    fg_frame_slot_set(current, index, Py_NewRef(value));
    Py_RETURN_NONE;
}

static PyObject *traced(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyBool_FromLong(fg_thread_traced());
}

static PyObject *dict_version(PyObject *self, PyObject *dict)
{
    (void)self;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "a dict is needed");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(fg_dict_version(dict));
}

static PyObject *type_version(PyObject *self, PyObject *type)
{
    (void)self;
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "a type is needed");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(fg_type_version((PyTypeObject *)type));
}

/* traceback_add(exception, code, globals, byte_offset, line) */
static PyObject *traceback_add(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *exception, *code, *globals;
    int byte_offset, line;
    if (!PyArg_ParseTuple(args, "OO!Oii", &exception, &PyCode_Type, &code, &globals, &byte_offset, &line))
        return NULL;
    const fg_status st = fg_traceback_add(exception, (PyCodeObject *)code, globals, byte_offset, line);
    return st == FG_OK ? Py_NewRef(Py_None) : raise_status(st, "exception, code object and globals dict are needed");
}

static PyObject *watched(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyLong_FromSsize_t(fg_dict_watched());
}

static PyMethodDef methods[] = {
    {"cpython_decode", decode, METH_O, "decode(code) -> (instructions, handlers, max_depth)"},
    {"cpython_roundtrip", roundtrip, METH_O, "roundtrip(code) -> an equal code object, decoded and assembled again"},
    {"cpython_assemble", assemble, METH_VARARGS, "assemble(base, instructions, handlers=(), varnames=None) -> code"},
    {"cpython_verify", verify, METH_O, "verify(code): ValueError if the interpreter could not run it safely"},
    {"cpython_straight_run", (PyCFunction)(void (*)(void))straight_run, METH_FASTCALL,
     "straight_run(function, *args) -> (result,) or None"},
    {"cpython_stack_left", stack_left, METH_NOARGS, "bytes of C stack left to this thread"},
    {"cpython_instance_attr", instance_attr, METH_VARARGS, "instance_attr(object, name) -> (value,) or None"},
    {"cpython_instance_attrs", instance_attrs, METH_O, "instance_attrs(object) -> [(name, value)] in insertion order"},
    {"cpython_frame", frame, METH_NOARGS, "frame() -> (code, function, line, bound slots) of the caller"},
    {"cpython_slot_set", slot_set, METH_VARARGS, "slot_set(index, value): replace a slot of the caller"},
    {"cpython_watched", watched, METH_NOARGS, "how many dicts are watched for memos; -1: they cannot be"},
    {"cpython_traced", traced, METH_NOARGS, "whether this thread is traced or profiled"},
    {"cpython_dict_version", dict_version, METH_O, "version of a dict"},
    {"cpython_type_version", type_version, METH_O, "version of a type"},
    {"cpython_traceback_add", traceback_add, METH_VARARGS, "traceback_add(exception, code, globals, byte_offset, line)"},
    {NULL, NULL, 0, NULL},
};

int fg_cpython_module_init(PyObject *module)
{
    if (Py_Version >> 16 != PY_VERSION_HEX >> 16) {
        PyErr_Format(PyExc_ImportError, "framegate was built for CPython %d.%d; this is %d.%d", PY_MAJOR_VERSION, PY_MINOR_VERSION,
                     (int)(Py_Version >> 24), (int)(Py_Version >> 16 & 255));
        return -1;
    }
    return fg_function_init() < 0 || fg_dict_watch_init() < 0 ? -1 : PyModule_AddFunctions(module, methods);
}
