/* GuardDesc and GuardProgram. Calls are given as (args, closure, globals, builtins, func), all optional but args. */
#include "guards/guard_python.h"
#include "guards/adaptor_torch_globals.h"
#include "guards/guard_drop.h"
#include "guards/guard_memo.h"
#include "runtime/cpython/iterators.h"
#include <string.h>
#include <time.h>

typedef struct desc_object {
    PyObject_HEAD fg_desc *desc;
    Py_ssize_t n_users; /* programs built of it and alive, walks under way: it may not change then */
} desc_object;

typedef struct program_object {
    PyObject_HEAD fg_program *program;
    FG_OWNED PyObject *descs; /* tuple */
} program_object;

static PyTypeObject desc_type, program_type;

static PyObject *raise_status(fg_status st)
{
    if (st == FG_ERR_NOMEM)
        PyErr_NoMemory();
    else if (st != FG_ERR_PYTHON)
        PyErr_SetString(st == FG_ERR_UNSUPPORTED ? PyExc_NotImplementedError : PyExc_ValueError, fg_status_text(st));
    return NULL;
}

fg_desc *fg_guard_desc_get(PyObject *object)
{
    if (Py_IS_TYPE(object, &desc_type))
        return ((desc_object *)object)->desc;
    PyErr_Format(PyExc_TypeError, "GuardDesc expected, not %.200s", Py_TYPE(object)->tp_name);
    return NULL;
}

PyObject *fg_guard_desc_wrap(fg_desc *desc)
{
    desc_object *self = PyObject_GC_New(desc_object, &desc_type);
    if (self == NULL) {
        fg_desc_free(desc);
        return NULL;
    }
    self->desc = desc;
    self->n_users = 0;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

/* ---- the view of a call ---- */

static int parse_view(PyObject *args, PyObject *kwargs, const char *format, char **keywords, fg_view *view, PyObject **one, PyObject **two)
{
    PyObject *slots, *closure = Py_None, *globals = Py_None, *builtins = Py_None, *func = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, keywords, &PyTuple_Type, &slots, &closure, &globals, &builtins, &func, one, two))
        return -1;
    if (closure != Py_None && !PyTuple_CheckExact(closure)) {
        PyErr_SetString(PyExc_TypeError, "closure must be a tuple of cells or None");
        return -1;
    }
    *view = (fg_view){
        .slots = ((PyTupleObject *)slots)->ob_item,
        .n_slots = PyTuple_GET_SIZE(slots),
        .closure = closure != Py_None ? closure : NULL,
        .globals = globals != Py_None ? globals : NULL,
        .builtins = builtins != Py_None ? builtins : NULL,
        .func = func != Py_None ? func : NULL,
    };
    return 0;
}

#define VIEW_KEYWORDS "args", "closure", "globals", "builtins", "func"
static char *view_keywords[] = {VIEW_KEYWORDS, NULL};

/* A call with unset slots: a tuple in which this object stands for NULL. */
static PyObject *unbound_marker;

static int view_unbind(fg_view *view, PyObject ***copy)
{
    PyObject **slots = fg_malloc(((size_t)view->n_slots + 1) * sizeof *slots);
    if (slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < view->n_slots; i++)
        slots[i] = view->slots[i] == unbound_marker ? NULL : view->slots[i];
    view->slots = *copy = slots;
    return 0;
}

/* ---- GuardDesc ---- */

static PyObject *desc_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"slot_names", "free_names", NULL};
    PyObject *slots = NULL, *frees = NULL;
    fg_desc *desc;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O!O!", keywords, &PyTuple_Type, &slots, &PyTuple_Type, &frees))
        return NULL;
    fg_status st = fg_desc_new(&desc);
    if (st != FG_OK)
        return raise_status(st);
    fg_desc_names_set(desc, slots, frees);
    return fg_guard_desc_wrap(desc);
}

static void desc_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    fg_desc_free(((desc_object *)self)->desc);
    PyObject_GC_Del(self);
}

static int desc_traverse(PyObject *self, visitproc visit, void *arg)
{
    return fg_desc_traverse(((desc_object *)self)->desc, visit, arg);
}

static int desc_clear(PyObject *self)
{
    fg_desc_clear(((desc_object *)self)->desc);
    return 0;
}

static fg_desc *desc_open(PyObject *self)
{
    desc_object *object = (desc_object *)self;
    if (object->n_users > 0) {
        PyErr_SetString(PyExc_RuntimeError, "a program was built of this description, or it is being checked: it cannot change now");
        return NULL;
    }
    return object->desc;
}

static int find_accessor(const char *text)
{
    for (int i = 0; i < FG_N_ACCESSORS; i++) {
        if (strcmp(fg_accessor_text(i), text) == 0)
            return i;
    }
    PyErr_Format(PyExc_ValueError, "no accessor '%s'", text);
    return -1;
}

static int find_kind(const char *text)
{
    for (int i = 0; i < FG_N_GUARDS; i++) {
        if (strcmp(fg_guard_text(i), text) == 0)
            return i;
    }
    PyErr_Format(PyExc_ValueError, "no guard kind '%s'", text);
    return -1;
}

static PyObject *desc_source(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"accessor", "parent", "key", "index", NULL};
    const char *text;
    int parent = FG_NODE_NONE, acc;
    PyObject *key = NULL;
    long long index = 0;
    fg_node node;
    fg_desc *desc = desc_open(self);
    if (desc == NULL || !PyArg_ParseTupleAndKeywords(args, kwargs, "s|iOL", keywords, &text, &parent, &key, &index) ||
        (acc = find_accessor(text)) < 0)
        return NULL;
    fg_status st = fg_desc_source(desc, acc, parent, key, index, &node);
    return st == FG_OK ? PyLong_FromLong(node) : raise_status(st);
}

static int read_meta(const fg_tensor_adaptor *adaptor, int kind, PyObject *object, fg_tensor_meta *meta, const char **why)
{
    if (kind != FG_GUARD_GRADIENT)
        return adaptor->read(adaptor, object, meta, why);
    *why = "it has no gradient that could be read";
    int r = adaptor->gradient != NULL ? adaptor->gradient(adaptor, object, meta) : 0;
    meta->adaptor = adaptor;
    return r;
}

static PyObject *desc_guard(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"kind", "node", "object", "lo", "hi", "code", "line", NULL};
    const char *text;
    int node = FG_NODE_NONE, kind, line = 0;
    PyObject *object = NULL, *code = NULL;
    long long lo = 0, hi = 0;
    fg_desc *desc = desc_open(self);
    if (desc == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "s|iOLLO!i", keywords, &text, &node, &object, &lo, &hi, &PyCode_Type, &code, &line) ||
        (kind = find_kind(text)) < 0)
        return NULL;
    fg_guard_arg arg = {.object = object, .lo = lo, .hi = hi};
    fg_tensor_meta meta;
    fg_torch_state state;
    if (fg_guard_arg_class(kind) == FG_ARG_META) {
        const char *why = "no adaptor knows this type";
        const fg_tensor_adaptor *adaptor = object != NULL ? fg_tensor_adaptor_describe(Py_TYPE(object)) : NULL;
        memset(&meta, 0, sizeof meta);
        if (adaptor == NULL || read_meta(adaptor, kind, object, &meta, &why) != 1) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "the object cannot be read as a tensor: %s", why);
            return NULL;
        }
        arg.meta = &meta;
    } else if (fg_guard_arg_class(kind) == FG_ARG_STATE) {
        memset(&state, 0, sizeof state);
        if (fg_torch_state_read(&state) != 1) {
            PyErr_SetString(PyExc_RuntimeError, "the torch state cannot be read");
            return NULL;
        }
        arg.state = &state;
    }
    if (kind == FG_GUARD_TORCH_GLOBALS && lo == 0 && hi == 0) {
        fg_torch_globals globals;
        if (fg_torch_globals_read(&globals) != 1) {
            PyErr_SetString(PyExc_RuntimeError, "torch's switches cannot be read");
            return NULL;
        }
        arg.lo = globals.bits;
        arg.hi = globals.threads;
    }
    fg_status st = fg_desc_guard(desc, kind, node, arg, (fg_origin){(PyCodeObject *)code, line});
    return st == FG_OK ? Py_NewRef(Py_None) : raise_status(st);
}

static PyObject *desc_relation(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"kind", "nodes", "code", "line", "expression", NULL};
    const char *expression = NULL;
    const char *text;
    int kind, line = 0;
    PyObject *nodes, *code = NULL, *result = NULL;
    fg_desc *desc = desc_open(self);
    if (desc == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "sO!|O!is", keywords, &text, &PyTuple_Type, &nodes, &PyCode_Type, &code, &line,
                                     &expression) ||
        (kind = find_kind(text)) < 0)
        return NULL;
    size_t n = (size_t)PyTuple_GET_SIZE(nodes);
    fg_node *ids = fg_malloc((n + 1) * sizeof *ids);
    if (ids == NULL)
        return PyErr_NoMemory();
    for (size_t i = 0; i < n; i++) {
        ids[i] = (fg_node)PyLong_AsLong(PyTuple_GET_ITEM(nodes, i));
        if (ids[i] == -1 && PyErr_Occurred())
            goto done;
    }
    fg_origin origin = {(PyCodeObject *)code, line};
    fg_status st = FG_ERR_INVALID;
    if (fg_guard_arg_class(kind) != FG_ARG_EXPR)
        st = expression == NULL ? fg_desc_relation(desc, kind, ids, n, origin) : st;
    else if (expression != NULL)
        st = fg_desc_expression(desc, ids, n, expression, origin);
    result = st == FG_OK ? Py_NewRef(Py_None) : raise_status(st);
done:
    fg_free(ids);
    return result;
}

static PyObject *desc_output(PyObject *self, PyObject *arg)
{
    fg_desc *desc = desc_open(self);
    long node = desc != NULL ? PyLong_AsLong(arg) : -1;
    uint32_t position;
    if (desc == NULL || (node == -1 && PyErr_Occurred()))
        return NULL;
    fg_status st = fg_desc_output(desc, (fg_node)node, &position);
    return st == FG_OK ? PyLong_FromUnsignedLong(position) : raise_status(st);
}

static PyObject *desc_mark(PyObject *self, PyObject *unused)
{
    fg_desc_mark mark = fg_desc_mark_get(((desc_object *)self)->desc);
    (void)unused;
    return Py_BuildValue("(III)", mark.n_nodes, mark.n_guards, mark.n_outputs);
}

static PyObject *desc_rewind(PyObject *self, PyObject *arg)
{
    fg_desc *desc = desc_open(self);
    fg_desc_mark mark;
    if (desc == NULL || !PyArg_ParseTuple(arg, "III", &mark.n_nodes, &mark.n_guards, &mark.n_outputs))
        return NULL;
    fg_desc_rewind(desc, mark);
    Py_RETURN_NONE;
}

static PyObject *desc_check(PyObject *self, PyObject *args, PyObject *kwargs)
{
    fg_view view;
    PyObject **copy = NULL;
    if (parse_view(args, kwargs, "O!|OOOO", view_keywords, &view, NULL, NULL) < 0 || view_unbind(&view, &copy) < 0)
        return NULL;
    ((desc_object *)self)->n_users++;
    int ok = fg_desc_check(((desc_object *)self)->desc, &view);
    ((desc_object *)self)->n_users--;
    fg_free(copy);
    return ok < 0 ? NULL : PyBool_FromLong(ok);
}

/* The outputs as the description alone finds them; None: no match. */
static PyObject *desc_values(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const fg_desc *desc = ((desc_object *)self)->desc;
    fg_view view;
    PyObject **copy = NULL, **values = NULL, *list = NULL;
    fg_eval held = {0};
    if (parse_view(args, kwargs, "O!|OOOO", view_keywords, &view, NULL, NULL) < 0 || view_unbind(&view, &copy) < 0)
        return NULL;
    ((desc_object *)self)->n_users++;
    int ok = fg_desc_check_values(desc, &view, &values, &held.held, &held.n_held);
    ((desc_object *)self)->n_users--;
    if (ok == 0)
        list = Py_NewRef(Py_None);
    else if (ok > 0)
        list = PyList_New(desc->n_outputs);
    for (uint32_t i = 0; ok > 0 && list != NULL && i < desc->n_outputs; i++)
        PyList_SET_ITEM(list, i, Py_NewRef(values[desc->outputs[i]]));
    fg_eval_release(&held);
    fg_free(values);
    fg_free(copy);
    return list;
}

static PyObject *desc_explain(PyObject *self, PyObject *args, PyObject *kwargs)
{
    fg_view view;
    PyObject **copy = NULL;
    if (parse_view(args, kwargs, "O!|OOOO", view_keywords, &view, NULL, NULL) < 0 || view_unbind(&view, &copy) < 0)
        return NULL;
    ((desc_object *)self)->n_users++;
    PyObject *list = fg_desc_explain(((desc_object *)self)->desc, &view);
    ((desc_object *)self)->n_users--;
    fg_free(copy);
    return list;
}

static PyObject *desc_to_text(PyObject *self, PyObject *unused)
{
    (void)unused;
    return fg_desc_to_text(((desc_object *)self)->desc);
}

static PyObject *desc_from_text(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"text", "resolve", NULL};
    PyObject *text, *resolve = Py_None;
    fg_desc *desc;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", keywords, &text, &resolve))
        return NULL;
    fg_status st = fg_desc_from_text(text, resolve, &desc);
    return st == FG_OK ? fg_guard_desc_wrap(desc) : raise_status(st);
}

static PyObject *desc_source_str(PyObject *self, PyObject *arg)
{
    long node = PyLong_AsLong(arg);
    if (node == -1 && PyErr_Occurred())
        return NULL;
    return fg_desc_source_str(((desc_object *)self)->desc, (fg_node)node);
}

static PyObject *desc_str(PyObject *self)
{
    return fg_desc_tree_str(((desc_object *)self)->desc);
}

static Py_ssize_t desc_length(PyObject *self)
{
    return fg_desc_n_guards(((desc_object *)self)->desc);
}

static PyObject *desc_get_dead(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((desc_object *)self)->desc->dead);
}

static PyObject *desc_get_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(fg_desc_nbytes(((desc_object *)self)->desc));
}

static PyObject *desc_get_n_sources(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLong(((desc_object *)self)->desc->n_nodes);
}

static PyMethodDef desc_methods[] = {
    {"source", (PyCFunction)(void (*)(void))desc_source, METH_VARARGS | METH_KEYWORDS,
     "source(accessor, parent=-1, key=None, index=0) -> number"},
    {"guard", (PyCFunction)(void (*)(void))desc_guard, METH_VARARGS | METH_KEYWORDS,
     "guard(kind, node=-1, object=None, lo=0, hi=0, code=None, line=0); a tensor's metadata, the torch state and switches are read now"},
    {"relation", (PyCFunction)(void (*)(void))desc_relation, METH_VARARGS | METH_KEYWORDS,
     "relation(kind, nodes, code=None, line=0, expression=None)"},
    {"output", desc_output, METH_O, "output(node) -> position"},
    {"mark", desc_mark, METH_NOARGS, "mark() -> position for rewind"},
    {"rewind", desc_rewind, METH_O, "rewind(mark): take back everything added since"},
    {"check", (PyCFunction)(void (*)(void))desc_check, METH_VARARGS | METH_KEYWORDS,
     "check(args, closure, globals, builtins, func) -> bool"},
    {"values", (PyCFunction)(void (*)(void))desc_values, METH_VARARGS | METH_KEYWORDS,
     "values(args, closure=None, globals=None, builtins=None, func=None) -> the outputs, or None where check() is False"},
    {"explain", (PyCFunction)(void (*)(void))desc_explain, METH_VARARGS | METH_KEYWORDS,
     "explain(args, closure, globals, builtins, func) -> list of the conditions that fail"},
    {"to_text", desc_to_text, METH_NOARGS, "to_text() -> the exact form that from_text reads"},
    {"from_text", (PyCFunction)(void (*)(void))desc_from_text, METH_VARARGS | METH_KEYWORDS | METH_CLASS, "from_text(text, resolve=None)"},
    {"source_str", desc_source_str, METH_O, "source_str(node) -> the Python expression of a source"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef desc_getset[] = {
    {"dead", desc_get_dead, NULL, "something held weakly has died: never matches again", NULL},
    {"nbytes", desc_get_nbytes, NULL, "bytes the description takes", NULL},
    {"n_sources", desc_get_n_sources, NULL, "number of sources", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PySequenceMethods desc_sequence = {.sq_length = desc_length};

static PyTypeObject desc_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.GuardDesc",
    .tp_basicsize = sizeof(desc_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = desc_new,
    .tp_dealloc = desc_dealloc,
    .tp_traverse = desc_traverse,
    .tp_clear = desc_clear,
    .tp_methods = desc_methods,
    .tp_getset = desc_getset,
    .tp_str = desc_str,
    .tp_as_sequence = &desc_sequence,
    .tp_doc = "The guards of one entry.",
};

/* ---- GuardProgram ---- */

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"descs", "old", NULL};
    PyObject *sequence, *tuple, *old = NULL;
    fg_program *program = NULL;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O!", keywords, &sequence, &program_type, &old) ||
        (tuple = PySequence_Tuple(sequence)) == NULL)
        return NULL;
    size_t n = (size_t)PyTuple_GET_SIZE(tuple);
    const fg_desc **descs = fg_malloc((n + 1) * sizeof *descs);
    fg_status st = descs != NULL ? FG_OK : FG_ERR_NOMEM;
    for (size_t i = 0; st == FG_OK && i < n; i++)
        st = (descs[i] = fg_guard_desc_get(PyTuple_GET_ITEM(tuple, i))) != NULL ? FG_OK : FG_ERR_PYTHON;
    if (st == FG_OK)
        st = fg_program_build(descs, n, old != NULL ? ((program_object *)old)->program : NULL, &program);
    fg_free(descs);
    program_object *self = st == FG_OK ? PyObject_GC_New(program_object, &program_type) : NULL;
    if (self == NULL) {
        fg_program_free(program);
        Py_DECREF(tuple);
        return st == FG_OK ? NULL : raise_status(st);
    }
    self->program = program;
    self->descs = tuple;
    for (size_t i = 0; i < n; i++)
        ((desc_object *)PyTuple_GET_ITEM(tuple, i))->n_users++;
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

/* The descriptions drop what leads back here. */
static int program_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((program_object *)self)->descs);
    return 0;
}

static void program_dealloc(PyObject *self)
{
    program_object *object = (program_object *)self;
    PyObject_GC_UnTrack(self);
    fg_program_free(object->program);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object->descs); i++)
        ((desc_object *)PyTuple_GET_ITEM(object->descs, i))->n_users--;
    Py_DECREF(object->descs);
    PyObject_GC_Del(self);
}

static const char *const result_names[] = {[FG_EVAL_MISS] = "miss", [FG_EVAL_HIT] = "hit", [FG_EVAL_BUSY] = "busy"};

/* order: sequence of indices; usable: int of bits; None for either. */
static int parse_preferences(const fg_program *program, PyObject *order, PyObject *usable, uint64_t *recency, uint64_t *words)
{
    if (order != Py_None) {
        PyObject *fast = PySequence_Fast(order, "order must be a sequence");
        if (fast == NULL)
            return -1;
        Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
        for (Py_ssize_t k = 0; k < n && !PyErr_Occurred(); k++) { /* the first one listed is preferred */
            long i = PyLong_AsLong(PySequence_Fast_GET_ITEM(fast, k));
            if (i >= 0 && (unsigned long)i < program->n_entries)
                recency[i] = (uint64_t)(n - k);
        }
        Py_DECREF(fast);
        if (PyErr_Occurred())
            return -1;
    }
    if (usable != Py_None) {
        if (!PyLong_CheckExact(usable)) {
            PyErr_SetString(PyExc_TypeError, "usable must be an int of bits");
            return -1;
        }
        PyObject *at = Py_NewRef(usable), *shift = PyLong_FromLong(64);
        for (uint32_t w = 0; at != NULL && shift != NULL && w < program->n_words; w++) {
            words[w] = PyLong_AsUnsignedLongLongMask(at);
            Py_SETREF(at, PyNumber_Rshift(at, shift));
        }
        Py_XDECREF(at);
        Py_XDECREF(shift);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

typedef struct call {
    fg_view view;
    PyObject **slots, **inputs;
    uint64_t *recency;
    uint64_t *words;
    PyObject *order, *usable;
} call;

static void call_fini(call *c)
{
    fg_free(c->slots);
    fg_free(c->inputs);
    fg_free(c->recency);
    fg_free(c->words);
}

static int call_init(call *c, const fg_program *program, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {VIEW_KEYWORDS, "order", "usable", NULL};
    *c = (call){.order = Py_None, .usable = Py_None};
    if (parse_view(args, kwargs, "O!|OOOOOO", keywords, &c->view, &c->order, &c->usable) < 0 || view_unbind(&c->view, &c->slots) < 0)
        return -1;
    c->inputs = fg_malloc((fg_program_max_inputs(program) + 1) * sizeof *c->inputs);
    c->recency = fg_calloc(program->n_entries + 1, sizeof *c->recency);
    c->words = fg_calloc(program->n_words + 1, sizeof *c->words);
    if (c->inputs == NULL || c->recency == NULL || c->words == NULL) {
        call_fini(c);
        PyErr_NoMemory();
        return -1;
    }
    if (parse_preferences(program, c->order, c->usable, c->recency, c->words) < 0) {
        call_fini(c);
        return -1;
    }
    return 0;
}

static PyObject *program_eval(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const fg_program *program = ((program_object *)self)->program;
    call c;
    fg_eval eval = {0};
    PyObject *result = NULL;

    if (call_init(&c, program, args, kwargs) < 0)
        return NULL;
    fg_eval_result answer =
        fg_program_eval(program, &c.view, c.order != Py_None ? c.recency : NULL, c.usable != Py_None ? c.words : NULL, c.inputs, &eval);
    if (answer == FG_EVAL_HIT) {
        PyObject *inputs = PyTuple_New(eval.n_inputs);
        for (uint32_t i = 0; inputs != NULL && i < eval.n_inputs; i++)
            PyTuple_SET_ITEM(inputs, i, Py_NewRef(c.inputs[i]));
        if (inputs != NULL)
            result = Py_BuildValue("(sIN)", result_names[answer], eval.winner, inputs);
        fg_eval_release(&eval);
    } else if (answer != FG_EVAL_ERROR) {
        result = Py_BuildValue("(sOO)", result_names[answer], Py_None, Py_None);
    }
    call_fini(&c);
    return result;
}

/* Bit i: entry i alone would win. Evaluates once for each entry. */
static PyObject *program_alive(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const fg_program *program = ((program_object *)self)->program;
    call c;
    PyObject *bits;

    if (call_init(&c, program, args, kwargs) < 0)
        return NULL;
    bits = PyLong_FromLong(0);
    for (uint32_t i = 0; bits != NULL && i < program->n_entries; i++) {
        fg_eval eval = {0};
        memset(c.words, 0, program->n_words * sizeof *c.words);
        c.words[i / 64] = UINT64_C(1) << (i % 64);
        fg_eval_result answer = fg_program_eval(program, &c.view, NULL, c.words, c.inputs, &eval);
        if (answer == FG_EVAL_HIT) {
            fg_eval_release(&eval);
            PyObject *one = PyLong_FromLong(1), *shift = PyLong_FromUnsignedLong(i);
            PyObject *bit = one != NULL && shift != NULL ? PyNumber_Lshift(one, shift) : NULL;
            Py_SETREF(bits, bit != NULL ? PyNumber_Or(bits, bit) : NULL);
            Py_XDECREF(one);
            Py_XDECREF(shift);
            Py_XDECREF(bit);
        } else if (answer == FG_EVAL_ERROR) {
            Py_CLEAR(bits);
        }
    }
    call_fini(&c);
    return bits;
}

/* Nanoseconds of one evaluation, the least of many short rounds, so that other work on the machine does not count. */
static PyObject *program_time(PyObject *self, PyObject *args, PyObject *kwargs)
{
    const fg_program *program = ((program_object *)self)->program;
    enum { ROUNDS = 300, TIMES = 2000 };
    call c;
    double best = 1e30;

    if (call_init(&c, program, args, kwargs) < 0)
        return NULL;
    for (int round = 0; round < ROUNDS; round++) {
        struct timespec start, end;
        timespec_get(&start, TIME_UTC);
        for (int i = 0; i < TIMES; i++) {
            fg_eval eval;
            fg_eval_result answer = fg_program_eval(program, &c.view, c.order != Py_None ? c.recency : NULL,
                                                    c.usable != Py_None ? c.words : NULL, c.inputs, &eval);
            if (answer == FG_EVAL_HIT)
                fg_eval_release(&eval);
            else if (answer == FG_EVAL_ERROR) {
                call_fini(&c);
                return NULL;
            }
        }
        timespec_get(&end, TIME_UTC);
        double ns = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / TIMES;
        best = ns < best ? ns : best;
    }
    call_fini(&c);
    return PyFloat_FromDouble(best);
}

static const char *pi_name(unsigned op)
{
    static const char *const names[] = {
#define FG_ACCESSOR(NAME, TEXT, KEY) "load " TEXT, "none " TEXT,
#include "guards/accessors.def"
#undef FG_ACCESSOR
#define FG_GUARD(NAME, TEXT, ARG) "fact " TEXT,
#include "guards/guard_kinds.def"
#undef FG_GUARD
        "load type_lookup, versioned",
        "fact members",
        "table type_is",
        "table is",
        "table equals",
        "table length",
        "table tensor",
        "table ndarray",
        "fact ndarray",
        "table torch_state",
        "fact distinct of many",
        "memo",
        "wide memo",
        "end",
    };
    _Static_assert(sizeof names / sizeof *names == FG_N_PIS, "a name for each instruction");
    return op < sizeof names / sizeof *names ? names[op] : "?";
}

static PyObject *program_dump(PyObject *self, PyObject *unused)
{
    const fg_program *program = ((program_object *)self)->program;
    PyObject *list = PyList_New(0);
    (void)unused;
    for (uint32_t i = 0; list != NULL && i < program->n_code; i++) {
        const fg_insn *in = &program->code[i];
        char mask[24];
        snprintf(mask, sizeof mask, "%llx", (unsigned long long)(program->n_words == 1 ? in->mask : program->masks[in->mask]));
        if (fg_text_add(list, "%u: %s%s src=%u dst=%u skip=%u mask=%s", i, pi_name(in->op),
                        in->op < FG_PI_FACT_PRESENT && in->leaf.hi != 0 ? " + type" : "", in->src, in->dst, in->skip, mask) < 0)
            Py_CLEAR(list);
    }
    return fg_text_join(list, "\n");
}

/* One tuple for each memo. */
static PyObject *program_memos(PyObject *self, PyObject *unused)
{
    const fg_program *program = ((program_object *)self)->program;
    PyObject *list = PyList_New(0);
    (void)unused;
    for (uint32_t i = 0; list != NULL && i < program->n_memos; i++) {
        const fg_memo *memo = program->memos[i];
        PyObject *row =
            Py_BuildValue("(IIIOOO)", (unsigned)memo->n, (unsigned)(memo->recorded ? memo->n_words : 0), (unsigned)memo->hits,
                          memo->recorded ? Py_True : Py_False, memo->fine ? Py_True : Py_False, memo->wide ? Py_True : Py_False);
        if (row == NULL || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *program_get_nbytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(fg_program_nbytes(((program_object *)self)->program));
}

static PyMethodDef program_methods[] = {
    {"eval", (PyCFunction)(void (*)(void))program_eval, METH_VARARGS | METH_KEYWORDS,
     "eval(args, closure, globals, builtins, func, order, usable) -> (result, winner, inputs)"},
    {"alive", (PyCFunction)(void (*)(void))program_alive, METH_VARARGS | METH_KEYWORDS, "alive(...) -> int, bit i: entry i matches"},
    {"time", (PyCFunction)(void (*)(void))program_time, METH_VARARGS | METH_KEYWORDS, "time(...) -> nanoseconds of one evaluation"},
    {"dump", program_dump, METH_NOARGS, "dump() -> the instructions"},
    {"memos", program_memos, METH_NOARGS,
     "memos() -> [(instructions, words, hits, recorded, fine, wide)], one for each stretch that has a memo"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef program_getset[] = {
    {"nbytes", program_get_nbytes, NULL, "bytes the program takes", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject program_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.GuardProgram",
    .tp_basicsize = sizeof(program_object),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = program_new,
    .tp_dealloc = program_dealloc,
    .tp_traverse = program_traverse,
    .tp_methods = program_methods,
    .tp_getset = program_getset,
    .tp_doc = "The merged program of several GuardDesc. old: a program of the same function; what failed in it comes first.",
};

/* ---- the module ---- */

static PyObject *rows(int n, const char *(*text)(int))
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple != NULL && i < n; i++) {
        PyObject *name = PyUnicode_FromString(text(i));
        if (name == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, name);
    }
    return tuple;
}

static const char *accessor_text(int i)
{
    return fg_accessor_text(i);
}

static const char *guard_text(int i)
{
    return fg_guard_text(i);
}

static int add(PyObject *module, const char *name, PyObject *value)
{
    int bad = value == NULL || PyModule_AddObjectRef(module, name, value) < 0;
    Py_XDECREF(value);
    return bad;
}

fg_status fg_guards_module_init(PyObject *module)
{
    if (fg_iterators_init() != FG_OK || fg_drop_init() != FG_OK || PyType_Ready(&desc_type) < 0 || PyType_Ready(&program_type) < 0)
        return FG_ERR_PYTHON;
    if (unbound_marker == NULL && (unbound_marker = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type)) == NULL)
        return FG_ERR_PYTHON;
    if (add(module, "GuardDesc", Py_NewRef((PyObject *)&desc_type)) || add(module, "GuardProgram", Py_NewRef((PyObject *)&program_type)) ||
        add(module, "guard_unbound", Py_NewRef(unbound_marker)) || add(module, "guard_accessors", rows(FG_N_ACCESSORS, accessor_text)) ||
        add(module, "guard_kinds", rows(FG_N_GUARDS, guard_text)))
        return FG_ERR_PYTHON;
    return FG_OK;
}
