#include "tracer/resume.h"

#include "runtime/base/alloc.h"
#include "runtime/cpython/frame.h"
#include "runtime/hook/hook_config.h"
#include "tracer/resume_chain.h"
#include "tracer/resume_inner.h"
#include <string.h>

enum { SMALL_STACK = 64, STACK_ROOM = 64 * 1024 };

/* --- tables */

void fg_resume_table_drop(fg_resume_table *table)
{
    if (--table->count > 0)
        return;
    fg_free(table->breaks);
    fg_free(table);
}

/* The root site is gone, and so may be the code object. What the table owns it owns for the root site; hosts that live on find it empty. */
static void table_cut_off(fg_resume_table *table)
{
    table->code = NULL;
    table->root = NULL;
    while (table->sites != NULL) {
        struct fg_segment_site *first = table->sites;
        table->sites = first->next;
        fg_site_drop(first->site);
        fg_free(first);
    }
    fg_inner_gates_drop(table);
    Py_CLEAR(table->chains);
}

static void root_clear(void *user)
{
    table_cut_off(((fg_resume_point *)user)->table);
}

static void root_free(void *user)
{
    fg_resume_point *point = user;
    table_cut_off(point->table);
    fg_resume_table_drop(point->table);
    fg_free(point);
}

static int root_traverse(void *user, visitproc visit, void *arg)
{
    fg_resume_table *table = ((fg_resume_point *)user)->table;
    for (struct fg_segment_site *s = table->sites; s != NULL; s = s->next)
        Py_VISIT(s->site);
    Py_VISIT(table->chains);
    return fg_inner_gates_traverse(table, visit, arg);
}

static const fg_site_user_ops root_ops = {.traverse = root_traverse, .clear = root_clear, .free = root_free};
static const fg_site_user_ops point_ops = {.free = fg_free};

fg_status fg_resume_root(fg_site *site, fg_resume_point **out)
{
    if (site->user != NULL) {
        *out = site->user;
        return FG_OK;
    }
    fg_resume_table *table = fg_calloc(1, sizeof *table);
    fg_resume_point *point = fg_calloc(1, sizeof *point);
    if (table == NULL || point == NULL) {
        fg_free(table);
        fg_free(point);
        return FG_ERR_NOMEM;
    }
    table->count = 1;
    table->code = site->code;
    table->root = site;
    point->table = table;
    point->pc = -1;
    fg_site_user_set(site, point, &root_ops);
    *out = point;
    return FG_OK;
}

fg_status fg_resume_note_break(fg_resume_table *table, int32_t pc)
{
    for (int32_t i = 0; i < table->n_breaks; i++)
        if (table->breaks[i] == pc)
            return FG_OK;
    int32_t *breaks = fg_realloc(table->breaks, (size_t)(table->n_breaks + 1) * sizeof *breaks);
    if (breaks == NULL)
        return FG_ERR_NOMEM;
    table->breaks = breaks;
    breaks[table->n_breaks++] = pc;
    return FG_OK;
}

static bool is_known_break(void *context, int32_t pc)
{
    const fg_resume_table *table = context;
    for (int32_t i = 0; i < table->n_breaks; i++)
        if (table->breaks[i] == pc)
            return true;
    return false;
}

/* The site of a resume point; borrowed from the table. */
static fg_status segment_site(fg_resume_table *table, int32_t pc, int32_t depth, fg_site **out)
{
    for (struct fg_segment_site *s = table->sites; s != NULL; s = s->next)
        if (s->pc == pc) {
            *out = s->site;
            return FG_OK;
        }
    if (table->code == NULL)
        return FG_ERR_UNSUPPORTED;
    struct fg_segment_site *made = fg_calloc(1, sizeof *made);
    fg_resume_point *point = fg_calloc(1, sizeof *point);
    fg_site *root = table->root; /* making an object may run the collector, and with it anything */
    fg_site_take(root);
    fg_status st = made && point ? fg_site_new(table->code, &root->options, &made->site) : FG_ERR_NOMEM;
    if (st == FG_OK && table->root == NULL) {
        fg_site_drop(made->site);
        st = FG_ERR_UNSUPPORTED;
    }
    fg_site_drop(root);
    if (st != FG_OK) {
        fg_free(made);
        fg_free(point);
        return st;
    }
    *point = (fg_resume_point){table, pc, depth};
    fg_site_user_set(made->site, point, &point_ops);
    made->pc = pc;
    made->next = table->sites;
    table->sites = made;
    *out = made->site;
    return FG_OK;
}

/* --- Segment */

typedef struct fg_segment {
    PyObject_HEAD fg_resume_table *table; /* counted */
    fg_site_owner owner;
    int32_t pc, depth, n_slots, host_slots;
    int16_t *slot_map;
} fg_segment;

/* (id, stack, slots, values …) of a segment that broke: write the locals, give (id, stack). */
static PyObject *apply_break(fg_segment *self, fg_frame *frame, PyObject *result)
{
    PyObject *slots = PyTuple_GET_ITEM(result, 2);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(slots); i++) {
        long slot = PyLong_AsLong(PyTuple_GET_ITEM(slots, i));
        bool unbind = slot < 0;
        fg_frame_slot_set(frame, self->slot_map[unbind ? ~slot : slot], unbind ? NULL : Py_NewRef(PyTuple_GET_ITEM(result, 3 + i)));
    }
    PyObject *pair = PyTuple_Pack(2, PyTuple_GET_ITEM(result, 0), PyTuple_GET_ITEM(result, 1));
    Py_DECREF(result);
    return pair;
}

static _Thread_local fg_hidden_frame *host; /* of the innermost segment that runs on this thread */

fg_hidden_frame *fg_resume_host(void)
{
    return host;
}

/* ~segment: an operator, so that the interpreter does not look for signals behind it (emit_host.c, rule 5). */
static PyObject *segment_invert(PyObject *object)
{
    fg_segment *self = (fg_segment *)object;
    fg_frame *frame = fg_frame_current();
    PyObject *func = frame ? fg_frame_func(frame) : NULL, *few[SMALL_STACK], **slots = few, *result = NULL;
    if (self->table->code == NULL || self->owner.site == NULL || self->owner.site->never || fg_hook.plain || func == NULL ||
        !PyFunction_Check(func) || fg_stack_left() < STACK_ROOM || (fg_thread_traced() && !fg_hook.compile_under_tracing))
        Py_RETURN_NONE;
    Py_ssize_t n = self->n_slots + self->depth;
    if (n > SMALL_STACK && (slots = fg_malloc((size_t)n * sizeof *slots)) == NULL)
        Py_RETURN_NONE;
    for (int32_t i = 0; i < self->n_slots; i++)
        slots[i] = fg_frame_slot(frame, self->slot_map[i]);
    fg_frame_values(frame, self->host_slots, self->depth, slots + self->n_slots);
    PyFunctionObject *f = (PyFunctionObject *)func;
    fg_hidden_frame hidden, *const outer = host;
    fg_view view = {slots, n, f->func_closure, f->func_globals, f->func_builtins, func, NULL, 0, NULL};
    Py_INCREF(self);
    fg_frame_hide(&hidden, frame);
    host = &hidden;
    fg_thread_levels_add(FG_EVALUATOR_LEVELS); /* the C stack was measured above */
    fg_outcome outcome = fg_site_dispatch(&self->owner, &view, &result);
    fg_thread_levels_add(-FG_EVALUATOR_LEVELS);
    host = outer;
    fg_frame_show(&hidden);
    if (slots != few)
        fg_free(slots);
    if (outcome == FG_OUTCOME_ERROR && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        /* It came up while the package's own code ran. Nothing of the segment has happened: it waits for the frame, which may have a handler. */
        PyErr_Clear();
        PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), PyExc_KeyboardInterrupt);
        outcome = FG_OUTCOME_PLAIN;
    }
    if (outcome == FG_OUTCOME_PLAIN) {
        result = Py_NewRef(Py_None);
    } else if (outcome == FG_OUTCOME_HIT && result != NULL) {
        if (!PyTuple_Check(result) || PyTuple_GET_SIZE(result) < 2) {
            Py_CLEAR(result);
            PyErr_SetString(PyExc_SystemError, "framegate: a segment gave no tuple");
        } else if (PyTuple_GET_SIZE(result) > 2) {
            result = apply_break(self, frame, result);
        }
    }
    Py_DECREF(self);
    return result;
}

static PyNumberMethods segment_as_number = {.nb_invert = segment_invert};

static void segment_dealloc(PyObject *object)
{
    fg_segment *self = (fg_segment *)object;
    PyObject_GC_UnTrack(self);
    fg_site_owner_fini(&self->owner);
    fg_free(self->slot_map);
    if (self->table)
        fg_resume_table_drop(self->table);
    PyObject_GC_Del(self);
}

static int segment_traverse(PyObject *object, visitproc visit, void *arg)
{
    return fg_site_owner_traverse(&((fg_segment *)object)->owner, visit, arg);
}

static PyObject *segment_repr(PyObject *object)
{
    return PyUnicode_FromFormat("<framegate segment at instruction %d>", (int)((fg_segment *)object)->pc);
}

static PyTypeObject segment_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Segment",
    .tp_basicsize = sizeof(fg_segment),
    .tp_dealloc = segment_dealloc,
    .tp_repr = segment_repr,
    .tp_as_number = &segment_as_number,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_traverse = segment_traverse,
};

static PyObject *segment_new(void *context, int32_t pc, int32_t depth, const int16_t *slot_map, int32_t n_slots, int32_t host_slots)
{
    fg_resume_table *table = context;
    fg_site *site;
    fg_status st = segment_site(table, pc, depth, &site);
    if (st != FG_OK) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        return NULL;
    }
    fg_segment *self = PyObject_GC_New(fg_segment, &segment_type);
    if (self == NULL)
        return NULL;
    self->table = NULL;
    fg_site_owner_init(&self->owner, (PyObject *)self);
    self->owner.shared = 1;
    self->pc = pc;
    self->depth = depth;
    self->n_slots = n_slots;
    self->host_slots = host_slots;
    self->slot_map = fg_malloc((size_t)(n_slots + 1) * sizeof *slot_map);
    PyObject_GC_Track(self);
    if (self->slot_map == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    memcpy(self->slot_map, slot_map, (size_t)n_slots * sizeof *slot_map);
    fg_site_owner_attach(&self->owner, site);
    self->table = table;
    table->count++;
    return (PyObject *)self;
}

/* --- Chain */

typedef struct fg_chain {
    PyObject_HEAD fg_resume_table *table; /* counted */
    int32_t n_slots;
    int16_t slot_map[];
} fg_chain;

static PyObject *chain_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    fg_chain *self = (fg_chain *)object;
    PyObject *id, *stack;
    fg_frame *frame = fg_frame_current();
    PyObject *func = frame ? fg_frame_func(frame) : NULL;
    (void)kwargs;
    if (!PyArg_ParseTuple(args, "OO!", &id, &PyTuple_Type, &stack))
        return NULL;
    long number = PyLong_AsLong(id), pc = number > 0 ? number - 1 : number;
    if (func == NULL || !PyFunction_Check(func) || self->table->code == NULL) {
        PyErr_SetString(PyExc_SystemError, "framegate: a graph break cannot be resumed, its function is gone");
        return NULL;
    }
    return fg_chain_run(self->table, (int32_t)pc, (PyFunctionObject *)func, frame, self->slot_map, self->n_slots, stack);
}

static void chain_dealloc(PyObject *object)
{
    fg_resume_table_drop(((fg_chain *)object)->table);
    PyObject_Free(object);
}

static PyTypeObject chain_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Chain",
    .tp_basicsize = sizeof(fg_chain),
    .tp_itemsize = sizeof(int16_t),
    .tp_dealloc = chain_dealloc,
    .tp_call = chain_call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

static PyObject *chain_new(void *context, const int16_t *slot_map, int32_t n_slots)
{
    fg_resume_table *table = context;
    fg_chain *self = PyObject_NewVar(fg_chain, &chain_type, n_slots);
    if (self == NULL)
        return NULL;
    self->table = table;
    table->count++;
    self->n_slots = n_slots;
    memcpy(self->slot_map, slot_map, (size_t)n_slots * sizeof *slot_map);
    return (PyObject *)self;
}

void fg_resume_maker_init(fg_resume_table *table, fg_resume_maker *maker)
{
    *maker = (fg_resume_maker){table, segment_new, chain_new, is_known_break};
}

fg_status fg_resume_types_init(void)
{
    return PyType_Ready(&segment_type) < 0 || PyType_Ready(&chain_type) < 0 ? FG_ERR_PYTHON : fg_inner_types_init();
}
