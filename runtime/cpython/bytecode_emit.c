/* From real instructions to a code object: prefixes and jump distances, bytes, location table, exception table.
 *
 * Sizes: an instruction is prefixes + one unit + caches. A jump's prefixes depend on its distance and distances on prefixes, so prefixes
 * start at none and only grow until nothing changes; that ends, because there are three at most.
 */
#include "runtime/cpython/bytecode_assemble.h"
#include "runtime/base/alloc.h"
#include <string.h>

static fg_status refuse(fg_assembler *a, const char *why)
{
    a->why = why;
    return FG_ERR_INVALID;
}

static int prefixes_for(uint32_t arg)
{
    return arg > 0xffffff ? 3 : arg > 0xffff ? 2 : arg > 0xff;
}

static int32_t size_of(const fg_real *real)
{
    return real->prefixes + 1 + fg_raw_caches[real->op];
}

static fg_status lay_out(fg_assembler *a, int32_t *n_units)
{
    for (int32_t i = 0; i < a->n_out; i++) {
        fg_real *real = &a->out[i];
        real->prefixes = (uint8_t)prefixes_for(real->arg);
        if (real->target < 0)
            continue;
        real->target = real->landing ? a->landings[real->landing][real->target] : a->first[real->target];
        if (real->target >= a->n_out)
            return refuse(a, "jump to nothing");
        if (real->target <= i) {
            real->op = (uint8_t)fg_version_backward(real->op, a->in->instrs[real->source].flags & FG_IF_QUIET);
            if (!real->op)
                return refuse(a, "FOR_ITER and SEND jump forward only");
        }
    }
    int changed;
    do {
        int64_t unit = 0;
        changed = 0;
        for (int32_t i = 0; i < a->n_out; i++) {
            a->out[i].unit = (int32_t)unit;
            unit += size_of(&a->out[i]);
            if (unit > INT32_MAX / 4)
                return refuse(a, "code too large");
        }
        *n_units = (int32_t)unit;
        for (int32_t i = 0; i < a->n_out; i++) {
            fg_real *real = &a->out[i];
            if (real->target < 0)
                continue;
            const int32_t next = real->unit + size_of(real), to = a->out[real->target].unit;
            real->arg = (uint32_t)(real->target <= i ? next - to : to - next);
            const int needed = prefixes_for(real->arg);
            if (needed > real->prefixes) {
                real->prefixes = (uint8_t)needed;
                changed = 1;
            }
        }
    } while (changed);
    for (int32_t i = 0; i < a->n_out; i++)
        if (FG_SEND_IS_SHORT && a->out[i].op == FG_RAW_SEND && a->out[i].prefixes)
            return refuse(a, "SEND jumps too far: generator.throw() reads its one byte argument");
    return FG_OK;
}

static PyObject *write_units(const fg_assembler *a, int32_t n_units)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, 2 * (Py_ssize_t)n_units);
    if (!bytes)
        return NULL;
    uint8_t *at = (uint8_t *)PyBytes_AS_STRING(bytes);
    for (int32_t i = 0; i < a->n_out; i++) {
        const fg_real *real = &a->out[i];
        for (int shift = 8 * real->prefixes; shift > 0; shift -= 8) {
            *at++ = FG_RAW_EXTENDED_ARG;
            *at++ = (uint8_t)(real->arg >> shift);
        }
        *at++ = real->op;
        *at++ = (uint8_t)real->arg;
        memset(at, 0, 2 * (size_t)fg_raw_caches[real->op]);
        at += 2 * fg_raw_caches[real->op];
    }
    return bytes;
}

/* A byte string that grows. */
typedef struct fg_text {
    uint8_t *bytes;
    size_t n, room;
    int failed;
} fg_text;

static void put_byte(fg_text *text, int byte)
{
    if (text->n == text->room) {
        const size_t room = text->room ? 2 * text->room : 256;
        uint8_t *bigger = fg_realloc(text->bytes, room);
        if (!bigger) {
            text->failed = 1;
            return;
        }
        text->bytes = bigger, text->room = room;
    }
    text->bytes[text->n++] = (uint8_t)byte;
}

static PyObject *text_finish(fg_text *text)
{
    PyObject *bytes = text->failed ? PyErr_NoMemory() : PyBytes_FromStringAndSize((const char *)text->bytes, (Py_ssize_t)text->n);
    fg_free(text->bytes);
    return bytes;
}

static void put_location_number(fg_text *text, uint32_t value)
{
    for (; value >= 64; value >>= 6)
        put_byte(text, 0x40 | (value & 0x3f));
    put_byte(text, (int)value);
}

static void put_location_delta(fg_text *text, int32_t value)
{
    put_location_number(text, value < 0 ? (0u - (uint32_t)value) << 1 | 1 : (uint32_t)value << 1);
}

/* One entry of up to eight units; line is the line of the entry before and moves on. */
static void put_location(fg_text *text, const fg_instr *at, int32_t units, int32_t *line)
{
    const int head = 0x80 | (units - 1);
    if (at->line < 0) {
        put_byte(text, head | 15 << 3);
        return;
    }
    const int32_t delta = at->line - *line, width = at->end_col - at->col;
    const int columns = at->col >= 0 && at->end_col >= 0 && at->end_line >= at->line;
    *line = at->line;
    if (!columns) {
        if (at->end_line > at->line && at->end_line < INT32_MAX / 4) {
            put_byte(text, head | 14 << 3);
            put_location_delta(text, delta);
            put_location_number(text, (uint32_t)(at->end_line - at->line));
            put_location_number(text, at->col >= 0 ? (uint32_t)at->col + 1 : 0);
            put_location_number(text, at->end_col >= 0 ? (uint32_t)at->end_col + 1 : 0);
        } else {
            put_byte(text, head | 13 << 3);
            put_location_delta(text, delta);
        }
    } else if (at->end_line == at->line && delta == 0 && at->col < 80 && width >= 0 && width < 16) {
        put_byte(text, head | at->col >> 3 << 3);
        put_byte(text, (at->col & 7) << 4 | width);
    } else if (at->end_line == at->line && delta >= 0 && delta < 3 && at->col < 128 && at->end_col < 128) {
        put_byte(text, head | (10 + delta) << 3);
        put_byte(text, at->col);
        put_byte(text, at->end_col);
    } else {
        put_byte(text, head | 14 << 3);
        put_location_delta(text, delta);
        put_location_number(text, (uint32_t)(at->end_line - at->line));
        put_location_number(text, (uint32_t)at->col + 1);
        put_location_number(text, (uint32_t)at->end_col + 1);
    }
}

static int same_location(const fg_instr *a, const fg_instr *b)
{
    return a->line == b->line && a->end_line == b->end_line && a->col == b->col && a->end_col == b->end_col;
}

static PyObject *write_locations(const fg_assembler *a)
{
    fg_text text = {0};
    int32_t line = a->in->firstlineno;
    for (int32_t i = 0; i < a->n_out;) {
        const fg_instr *at = &a->in->instrs[a->out[i].source];
        int32_t units = 0;
        for (; i < a->n_out && same_location(at, &a->in->instrs[a->out[i].source]); i++)
            units += size_of(&a->out[i]);
        for (; units > 0; units -= 8)
            put_location(&text, at, units < 8 ? units : 8, &line);
    }
    return text_finish(&text);
}

static void put_handler_number(fg_text *text, uint32_t value, int mark)
{
    for (int shift = 30; shift > 0; shift -= 6)
        if (value >> shift) {
            put_byte(text, mark | 0x40 | (value >> shift & 0x3f));
            mark = 0;
        }
    put_byte(text, mark | (value & 0x3f));
}

/* An instruction that cannot raise is covered too where its neighbours are, unless its stack is too low for the handler. */
static int32_t handler_of(const fg_assembler *a, const fg_real *real)
{
    const int32_t h = a->in->instrs[real->source].handler;
    return h >= 0 && a->handler_depth[h] >= 0 && real->depth >= a->handler_depth[h] ? h : -1;
}

static int same_handler(const fg_assembler *a, int32_t g, int32_t h)
{
    if (g == h)
        return 1;
    if (g < 0 || h < 0)
        return 0;
    const fg_handler *x = &a->in->handlers[g], *y = &a->in->handlers[h];
    return x->target == y->target && a->handler_depth[g] == a->handler_depth[h] && !x->lasti == !y->lasti;
}

static PyObject *write_handlers(const fg_assembler *a)
{
    fg_text text = {0};
    for (int32_t i = 0; i < a->n_out;) {
        const int32_t h = handler_of(a, &a->out[i]), start = a->out[i].unit;
        int32_t end = start;
        for (; i < a->n_out && same_handler(a, h, handler_of(a, &a->out[i])); i++)
            end = a->out[i].unit + size_of(&a->out[i]);
        if (h < 0)
            continue;
        put_handler_number(&text, (uint32_t)start, 0x80);
        put_handler_number(&text, (uint32_t)(end - start), 0);
        put_handler_number(&text, (uint32_t)a->out[a->first[a->in->handlers[h].target]].unit, 0);
        put_handler_number(&text, (uint32_t)a->handler_depth[h] << 1 | (a->in->handlers[h].lasti != 0), 0);
    }
    return text_finish(&text);
}

enum {
    ARGCOUNT,
    POSONLY,
    KWONLY,
    NLOCALS,
    STACKSIZE,
    FLAGS,
    FIRSTLINE,
    CODE,
    CONSTS,
    NAMES,
    VARNAMES,
    FREEVARS,
    CELLVARS,
    NAME,
    QUALNAME,
    LINETABLE,
    HANDLERS,
    N_FIELDS
};

static PyObject *field_names(void)
{
    static PyObject *names; /* lives as long as the process */
    static const char *const fields[N_FIELDS] = {"co_argcount",  "co_posonlyargcount", "co_kwonlyargcount", "co_nlocals", "co_stacksize",
                                                 "co_flags",     "co_firstlineno",     "co_code",           "co_consts",  "co_names",
                                                 "co_varnames",  "co_freevars",        "co_cellvars",       "co_name",    "co_qualname",
                                                 "co_linetable", "co_exceptiontable"};
    if (names)
        return names;
    PyObject *made = PyTuple_New(N_FIELDS);
    for (int f = 0; made && f < N_FIELDS; f++) {
        PyObject *name = PyUnicode_InternFromString(fields[f]);
        if (!name)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, f, name);
    }
    return names = made;
}

fg_status fg_assembler_emit(fg_assembler *a, PyCodeObject **out)
{
    const fg_asm *in = a->in;
    PyObject *fields[1 + N_FIELDS] = {(PyObject *)in->base}, **field = fields + 1, *replace = NULL, *made = NULL;
    int32_t n_units;
    fg_status st;
    FG_TRY(lay_out(a, &n_units));
    st = FG_ERR_PYTHON;

    PyObject *names = field_names();
    if (!names || !(replace = PyUnicode_InternFromString("replace")))
        goto fail;
    field[ARGCOUNT] = PyLong_FromLong(in->argcount);
    field[POSONLY] = PyLong_FromLong(in->posonlyargcount);
    field[KWONLY] = PyLong_FromLong(in->kwonlyargcount);
    field[NLOCALS] = PyLong_FromSsize_t(PyTuple_GET_SIZE(in->varnames));
    field[STACKSIZE] = PyLong_FromLong(a->max_depth);
    field[FLAGS] = PyLong_FromLong(in->flags);
    field[FIRSTLINE] = PyLong_FromLong(in->firstlineno);
    field[CODE] = write_units(a, n_units);
    field[CONSTS] = fg_pool_tuple(&a->constants);
    field[NAMES] = fg_pool_tuple(&a->names);
    field[VARNAMES] = Py_NewRef(in->varnames);
    field[FREEVARS] = Py_NewRef(in->freevars);
    field[CELLVARS] = Py_NewRef(in->cellvars);
    field[NAME] = Py_NewRef(in->name ? in->name : in->base->co_name);
    field[QUALNAME] = Py_NewRef(in->qualname ? in->qualname : in->base->co_qualname);
    field[LINETABLE] = write_locations(a);
    field[HANDLERS] = write_handlers(a);
    for (int f = 0; f < N_FIELDS; f++)
        if (!field[f])
            goto fail;
    made = PyObject_VectorcallMethod(replace, fields, 1, names);
    if (!made)
        goto fail;
    if (!PyCode_Check(made)) {
        st = refuse(a, "code.replace gave no code object");
        goto fail;
    }
#ifndef NDEBUG
    const char *why;
    if ((st = fg_verify_code((PyCodeObject *)made, &why)) != FG_OK) {
        a->why = why;
        goto fail;
    }
#endif
    *out = (PyCodeObject *)made;
    made = NULL;
    st = FG_OK;
fail:
    Py_XDECREF(made);
    Py_XDECREF(replace);
    for (int f = 0; f < N_FIELDS; f++)
        Py_XDECREF(field[f]);
    return st;
}
