/* The parser of the text form (guard_text.c says what it looks like). A line that is wrong raises ValueError with its number. */
#include "guards/guard_private.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const char *at;
    int line;
    fg_desc *desc;
    PyObject *resolve; /* borrowed; NULL: none */
    fg_node *nodes;    /* number in the text -> source */
    uint32_t n_nodes, cap_nodes;
    const char *problem;
} parser;

#define MAX_NESTING 64

static int wrong(parser *p, const char *problem)
{
    if (p->problem == NULL)
        p->problem = problem;
    return -1;
}

static void blanks(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')
        p->at++;
}

static int at_end(parser *p)
{
    blanks(p);
    return *p->at == '\n' || *p->at == '\0';
}

/* Take the word if the text goes on with exactly it. */
static int word(parser *p, const char *text)
{
    size_t n = strlen(text);
    blanks(p);
    if (strncmp(p->at, text, n) != 0)
        return 0;
    char after = p->at[n], last = text[n - 1];
    int letter = (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z') || last == '_';
    if (letter && ((after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z') || after == '_' || (after >= '0' && after <= '9')))
        return 0;
    p->at += n;
    return 1;
}

static int integer(parser *p, int64_t *out)
{
    char *end;
    blanks(p);
    if (*p->at != '-' && (*p->at < '0' || *p->at > '9'))
        return wrong(p, "a number is expected");
    errno = 0;
    *out = strtoll(p->at, &end, 10);
    if (end == p->at || errno == ERANGE)
        return wrong(p, "a number is expected that fits 64 bits");
    p->at = end;
    return 0;
}

static int unsigned_integer(parser *p, uint64_t *out)
{
    char *end;
    blanks(p);
    if (*p->at < '0' || *p->at > '9')
        return wrong(p, "a number is expected");
    errno = 0;
    *out = strtoull(p->at, &end, 0);
    if (end == p->at || errno == ERANGE)
        return wrong(p, "a number is expected that fits 64 bits");
    p->at = end;
    return 0;
}

/* From the opening quote to after the closing one; gives what lies between, escapes untouched. */
static int quoted(parser *p, const char **start, size_t *n)
{
    char quote = *p->at;
    if (quote != '\'' && quote != '"')
        return wrong(p, "a string is expected");
    *start = ++p->at;
    while (*p->at != quote) {
        if (*p->at == '\0' || *p->at == '\n')
            return wrong(p, "a string does not end");
        p->at += *p->at == '\\' && p->at[1] != '\0' && p->at[1] != '\n' ? 2 : 1;
    }
    *n = (size_t)(p->at - *start);
    p->at++;
    return 0;
}

static PyObject *string(parser *p)
{
    const char *start;
    size_t n;
    blanks(p);
    if (quoted(p, &start, &n) < 0)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)start[i] >= 0x80) {
            wrong(p, "a string has bytes beyond ASCII");
            return NULL;
        }
        if (start[i] == '\\' && start[i + 1] == 'N') {
            wrong(p, "character names are not understood");
            return NULL;
        }
        i += start[i] == '\\';
    }
    return PyUnicode_DecodeUnicodeEscape(start, (Py_ssize_t)n, "strict");
}

static int floating(parser *p, double *out)
{
    blanks(p);
    if (word(p, "float:")) {
        uint64_t bits;
        if (unsigned_integer(p, &bits) < 0)
            return -1;
        memcpy(out, &bits, sizeof bits);
        return 0;
    }
    char *end;
    *out = PyOS_string_to_double(p->at, &end, NULL);
    if (PyErr_Occurred())
        return -1;
    p->at = end;
    return 0;
}

static PyObject *number(parser *p)
{
    size_t n = strspn(p->at, "-+0123456789abcdefxABCDEFX.eE");
    char digits[4096];
    int hex = strncmp(p->at, "0x", 2) == 0 || strncmp(p->at, "-0x", 3) == 0;

    if (!hex && (memchr(p->at, '.', n) != NULL || memchr(p->at, 'e', n) != NULL)) {
        double value;
        return floating(p, &value) == 0 ? PyFloat_FromDouble(value) : NULL;
    }
    if (n == 0) {
        wrong(p, "a constant is expected");
        return NULL;
    }
    char *text = n < sizeof digits ? digits : fg_malloc(n + 1);
    if (text == NULL)
        return PyErr_NoMemory();
    memcpy(text, p->at, n);
    text[n] = '\0';
    char *end = text;
    PyObject *value = PyLong_FromString(text, &end, hex ? 16 : 10);
    p->at += end - text;
    if (value == NULL && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
        wrong(p, "a number cannot be read");
    }
    if (text != digits)
        fg_free(text);
    return value;
}

/* An identity: the object, or NULL with *label set (unbound), or NULL without (error). */
static PyObject *identity(parser *p, PyObject **label)
{
    const char *start = p->at;
    int named = *p->at == '@';

    p->at++;
    PyObject *name = string(p), *object = NULL;
    if (name == NULL)
        return NULL;
    if (named)
        object = fg_identity_find(name);
    if (object == NULL && !PyErr_Occurred() && p->resolve != NULL) {
        object = PyObject_CallOneArg(p->resolve, name);
        if (object == NULL && PyErr_ExceptionMatches(PyExc_LookupError))
            PyErr_Clear();
        else if (object == Py_None)
            Py_CLEAR(object);
    }
    Py_DECREF(name);
    if (object == NULL && !PyErr_Occurred())
        *label = PyUnicode_FromStringAndSize(start, p->at - start);
    return object;
}

static PyObject *constant(parser *p, PyObject **label, int nesting);

static PyObject *tuple(parser *p, PyObject **label, int nesting)
{
    PyObject *list = PyList_New(0), *result = NULL;
    p->at++;
    while (list != NULL) {
        if (word(p, ")")) {
            result = PyList_AsTuple(list);
            break;
        }
        PyObject *item = constant(p, label, nesting + 1);
        if (item == NULL)
            break;
        int bad = PyList_Append(list, item);
        Py_DECREF(item);
        if (bad)
            break;
        if (!word(p, ",")) {
            wrong(p, "a tuple's item ends with a comma");
            break;
        }
    }
    Py_XDECREF(list);
    return result;
}

/* NULL with *label: unbound; NULL without: error. Inside a tuple an unbound identity makes the whole unbound. */
static PyObject *constant(parser *p, PyObject **label, int nesting)
{
    blanks(p);
    if (nesting > MAX_NESTING) {
        wrong(p, "tuples are nested too deep");
        return NULL;
    }
    if (word(p, "None"))
        return Py_NewRef(Py_None);
    if (word(p, "True"))
        return Py_NewRef(Py_True);
    if (word(p, "False"))
        return Py_NewRef(Py_False);
    if (word(p, "Ellipsis"))
        return Py_NewRef(Py_Ellipsis);
    if (word(p, "NotImplemented"))
        return Py_NewRef(Py_NotImplemented);
    if (*p->at == '@' || *p->at == '?')
        return identity(p, label);
    if (*p->at == '(')
        return tuple(p, label, nesting);
    if (*p->at == '\'' || *p->at == '"')
        return string(p);
    if (*p->at == 'b' && (p->at[1] == '\'' || p->at[1] == '"')) {
        const char *start;
        size_t n;
        p->at++;
        return quoted(p, &start, &n) == 0 ? PyBytes_DecodeEscape(start, (Py_ssize_t)n, "strict", 0, NULL) : NULL;
    }
    if (word(p, "complex(")) {
        double real, imag;
        if (floating(p, &real) < 0)
            return NULL;
        if (!word(p, ",")) {
            wrong(p, "a complex number has two parts");
            return NULL;
        }
        if (floating(p, &imag) < 0)
            return NULL;
        if (!word(p, ")")) {
            wrong(p, "a complex number ends with )");
            return NULL;
        }
        return PyComplex_FromDoubles(real, imag);
    }
    if (strncmp(p->at, "float:", 6) == 0) {
        double value;
        return floating(p, &value) == 0 ? PyFloat_FromDouble(value) : NULL;
    }
    return number(p);
}

/* As constant; an unbound one's label is the text it was written as. */
static int object(parser *p, PyObject **value, PyObject **label)
{
    blanks(p);
    const char *start = p->at;
    *label = NULL;
    *value = constant(p, label, 0);
    if (*value != NULL) {
        Py_CLEAR(*label);
        return 0;
    }
    if (*label == NULL)
        return -1;
    if (*start == '(') {
        /* The tuple stops at the unbound item: find its end, strings passed over. */
        int depth = 0;
        p->at = start;
        do {
            const char *skip;
            size_t n;
            if (*p->at == '\'' || *p->at == '"') {
                if (quoted(p, &skip, &n) < 0) {
                    Py_CLEAR(*label);
                    return -1;
                }
                continue;
            }
            if (*p->at == '\0' || *p->at == '\n') {
                Py_CLEAR(*label);
                return wrong(p, "a tuple does not end");
            }
            depth += (*p->at == '(') - (*p->at == ')');
            p->at++;
        } while (depth > 0);
        Py_SETREF(*label, PyUnicode_FromStringAndSize(start, p->at - start));
        if (*label == NULL)
            return -1;
    }
    return 0;
}

static int node_number(parser *p, fg_node *out)
{
    int64_t n;
    blanks(p);
    if (*p->at != 'n')
        return wrong(p, "a source is expected, like n0");
    p->at++;
    if (integer(p, &n) < 0)
        return -1;
    if (n < 0 || n >= (int64_t)p->n_nodes)
        return wrong(p, "this source is not there yet");
    *out = p->nodes[n];
    return 0;
}

static int status_is_ok(parser *p, fg_status st)
{
    if (st == FG_OK)
        return 1;
    if (st == FG_ERR_NOMEM)
        PyErr_NoMemory();
    else if (st != FG_ERR_PYTHON)
        wrong(p, st == FG_ERR_UNSUPPORTED ? "this object cannot be held or looked up by guards" : "this combination is not valid");
    return 0;
}

/* nK = accessor [parent] [index or key] */
static int node_line(parser *p)
{
    static const char *const texts[] = {
#define FG_ACCESSOR(NAME, TEXT, KEY) TEXT,
#include "guards/accessors.def"
#undef FG_ACCESSOR
    };
    int64_t n = 0, index = 0;
    int acc = 0;
    fg_node parent = FG_NODE_NONE, made;
    PyObject *key = NULL, *label = NULL;
    int bad = -1;

    if (integer(p, &n) < 0)
        return -1;
    if (n != (int64_t)p->n_nodes)
        return wrong(p, "sources are numbered from 0 on");
    if (!word(p, "="))
        return wrong(p, "= is expected");
    while (acc < FG_N_ACCESSORS && !word(p, texts[acc]))
        acc++;
    if (acc == FG_N_ACCESSORS)
        return wrong(p, "no such accessor");
    if (!fg_accessor_is_root(acc) && node_number(p, &parent) < 0)
        return -1;
    switch (fg_accessor_key(acc)) {
    case FG_KEY_NONE: break;
    case FG_KEY_INDEX:
        if (integer(p, &index) < 0)
            return -1;
        break;
    case FG_KEY_NAME:
    case FG_KEY_OBJECT:
        if (object(p, &key, &label) < 0)
            return -1;
        break;
    }
    if (status_is_ok(p, fg_desc_source_any(p->desc, acc, parent, key, label, index, &made)) &&
        status_is_ok(p, fg_grow(&p->nodes, &p->cap_nodes, p->n_nodes + 1, sizeof *p->nodes))) {
        p->nodes[p->n_nodes++] = made;
        bad = 0;
    }
    Py_XDECREF(key);
    Py_XDECREF(label);
    return bad;
}

/* 'file':line, or nothing. */
static int origin(parser *p, PyObject **file, int *line)
{
    int64_t n = 0;
    *file = NULL;
    *line = 0;
    if (at_end(p))
        return 0;
    if ((*file = string(p)) == NULL)
        return -1;
    if (!word(p, ":") || integer(p, &n) < 0)
        return wrong(p, "a file name is followed by :line");
    *line = (int)n;
    return 0;
}

static int field(parser *p, const char *name, int64_t lo, int64_t hi, int64_t *out)
{
    if (!word(p, name))
        return wrong(p, "a field is missing");
    if (integer(p, out) < 0)
        return -1;
    return *out >= lo && *out <= hi ? 0 : wrong(p, "a field is out of its range");
}

static int dims(parser *p, int64_t *out, int32_t *n)
{
    *n = 0;
    while (!word(p, ")")) {
        if (*n >= FG_TENSOR_MAX_DIM)
            return wrong(p, "too many dimensions");
        if (integer(p, &out[(*n)++]) < 0)
            return -1;
        if (!word(p, ","))
            return wrong(p, "a size ends with a comma");
    }
    return 0;
}

static int meta_arg(parser *p, fg_tensor_meta *meta, PyObject **library, PyObject **type, PyObject **label)
{
    int64_t value;
    int32_t n;

    memset(meta, 0, sizeof *meta);
    if ((*library = string(p)) == NULL || object(p, type, label) < 0)
        return -1;
    if (*type != NULL) {
        if (!PyType_Check(*type))
            return wrong(p, "a tensor's type is a type");
        meta->type = (PyTypeObject *)*type;
        meta->adaptor = fg_tensor_adaptor_describe(meta->type);
        if (PyErr_Occurred())
            return -1;
    }
    if (!word(p, "keys=") || unsigned_integer(p, &meta->keys) < 0)
        return wrong(p, "a field is missing");
#define FG_FIELD(NAME, FIELD, LO, HI)       \
    if (field(p, NAME, LO, HI, &value) < 0) \
        return -1;                          \
    meta->FIELD = value;
    FG_FIELD("dtype=", dtype, INT32_MIN, INT32_MAX)
    FG_FIELD("device=", device_type, INT16_MIN, INT16_MAX)
    FG_FIELD(":", device_index, INT16_MIN, INT16_MAX)
    FG_FIELD("grad=", requires_grad, 0, UINT8_MAX)
    FG_FIELD("layout=", layout, 0, UINT8_MAX)
    if (!word(p, "sizes=(") || dims(p, meta->own, &meta->ndim) < 0)
        return wrong(p, "sizes are missing");
    if (!word(p, "strides=(") || dims(p, meta->own + FG_TENSOR_MAX_DIM, &n) < 0)
        return wrong(p, "strides are missing");
    if (n != meta->ndim)
        return wrong(p, "as many strides as sizes are needed");
    meta->sizes = meta->own;
    meta->strides = meta->own + FG_TENSOR_MAX_DIM;
    return 0;
}

static int state_arg(parser *p, fg_torch_state *state)
{
    int64_t value;
    memset(state, 0, sizeof *state);
    if (!word(p, "included=") || unsigned_integer(p, &state->keys_included) < 0 || !word(p, "excluded=") ||
        unsigned_integer(p, &state->keys_excluded) < 0)
        return wrong(p, "a field is missing");
    fg_torch_state *meta = state; /* the macro's name for what it fills */
    FG_FIELD("device=", default_device, INT64_MIN, INT64_MAX)
    FG_FIELD("autograd=", autograd, 0, UINT8_MAX)
    FG_FIELD("modes=", function_mode_depth, 0, UINT8_MAX)
    FG_FIELD("disabled=", function_disabled, 0, UINT8_MAX)
    FG_FIELD("dtype=", default_dtype, INT8_MIN, INT8_MAX)
    FG_FIELD("autocast=", autocast_dtype[0], INT8_MIN, INT8_MAX)
    FG_FIELD(":", autocast_dtype[1], INT8_MIN, INT8_MAX)
    FG_FIELD("present=", present, 0, 1)
    return 0;
}

static int kind_word(parser *p, fg_guard_kind *out)
{
    static const char *const texts[] = {
#define FG_GUARD(NAME, TEXT, ARG) TEXT,
#include "guards/guard_kinds.def"
#undef FG_GUARD
    };
    int kind = 0;
    while (kind < FG_N_GUARDS && !word(p, texts[kind]))
        kind++;
    *out = kind;
    return kind < FG_N_GUARDS ? 0 : wrong(p, "no such condition");
}

/* guard nK|- kind [argument] [origin] */
static int guard_line(parser *p)
{
    fg_node node = FG_NODE_NONE;
    fg_guard_kind kind;
    fg_guard_arg arg = {0};
    fg_tensor_meta meta;
    fg_torch_state state;
    PyObject *value = NULL, *label = NULL, *library = NULL, *file = NULL;
    int line, bad = -1;

    if (!word(p, "-") && node_number(p, &node) < 0)
        return -1;
    if (kind_word(p, &kind) < 0)
        return -1;
    switch (fg_guard_arg_class(kind)) {
    case FG_ARG_NONE: break;
    case FG_ARG_OBJECT:
        if (object(p, &value, &label) < 0)
            goto done;
        arg.object = value;
        break;
    case FG_ARG_INT:
        if (integer(p, &arg.lo) < 0)
            goto done;
        break;
    case FG_ARG_RANGE:
        if (integer(p, &arg.lo) < 0 || integer(p, &arg.hi) < 0)
            goto done;
        break;
    case FG_ARG_META:
        if (meta_arg(p, &meta, &library, &value, &label) < 0)
            goto done;
        arg.meta = &meta;
        break;
    case FG_ARG_STATE:
        if (state_arg(p, &state) < 0)
            goto done;
        arg.state = &state;
        break;
    case FG_ARG_NODES:
    case FG_ARG_EXPR: wrong(p, "a relation has a line of its own"); goto done;
    }
    if (origin(p, &file, &line) < 0)
        goto done;
    bad = status_is_ok(p, fg_desc_guard_any(p->desc, kind, node, &arg, label, library, file, line)) ? 0 : -1;
done:
    Py_XDECREF(value);
    Py_XDECREF(label);
    Py_XDECREF(library);
    Py_XDECREF(file);
    return bad;
}

static int expression(parser *p, size_t n, fg_expr **out)
{
    PyObject *text = string(p);
    const char *problem = NULL, *utf8 = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    fg_status st = utf8 != NULL ? fg_expr_parse(utf8, n, out, &problem) : FG_ERR_PYTHON;
    Py_XDECREF(text);
    if (problem != NULL)
        return wrong(p, problem);
    return status_is_ok(p, st) ? 0 : -1;
}

/* relation kind nK nK … ['expression'] [origin] */
static int relation_line(parser *p)
{
    fg_guard_kind kind;
    fg_node *nodes = NULL;
    fg_expr *expr = NULL;
    uint32_t n = 0, cap = 0;
    PyObject *file = NULL;
    int line, bad = -1;

    if (kind_word(p, &kind) < 0)
        return -1;
    while (!at_end(p) && *p->at == 'n') {
        fg_node node;
        if (node_number(p, &node) < 0 || !status_is_ok(p, fg_grow(&nodes, &cap, n + 1, sizeof *nodes)))
            goto done;
        nodes[n++] = node;
    }
    if (fg_guard_arg_class(kind) == FG_ARG_EXPR && expression(p, n, &expr) < 0)
        goto done;
    if (origin(p, &file, &line) == 0)
        bad = status_is_ok(p, fg_desc_relation_any(p->desc, kind, nodes, n, expr, file, line)) ? 0 : -1;
done:
    fg_free(nodes);
    fg_free(expr);
    Py_XDECREF(file);
    return bad;
}

static int names_line(parser *p)
{
    PyObject *slots = NULL, *frees = NULL, *label = NULL;
    int bad = -1;
    if (object(p, &slots, &label) == 0 && label == NULL && object(p, &frees, &label) == 0 && label == NULL) {
        if ((slots == Py_None || PyTuple_CheckExact(slots)) && (frees == Py_None || PyTuple_CheckExact(frees))) {
            fg_desc_names_set(p->desc, slots == Py_None ? NULL : slots, frees == Py_None ? NULL : frees);
            bad = 0;
        }
    }
    if (bad && !PyErr_Occurred())
        wrong(p, "names are two tuples of strings, or None");
    Py_XDECREF(slots);
    Py_XDECREF(frees);
    Py_XDECREF(label);
    return bad;
}

static int one_line(parser *p)
{
    fg_node node;
    uint32_t position;

    if (at_end(p) || *p->at == '#') {
        p->at += strcspn(p->at, "\n");
        return 0;
    }
    int bad;
    if (word(p, "guard"))
        bad = guard_line(p);
    else if (word(p, "relation"))
        bad = relation_line(p);
    else if (word(p, "names"))
        bad = names_line(p);
    else if (word(p, "output"))
        bad = node_number(p, &node) < 0 || !status_is_ok(p, fg_desc_output(p->desc, node, &position)) ? -1 : 0;
    else if (*p->at == 'n')
        bad = (p->at++, node_line(p));
    else
        bad = wrong(p, "no such line");
    if (bad == 0 && !at_end(p))
        bad = wrong(p, "there is more on the line than it needs");
    return bad;
}

fg_status fg_desc_from_text(PyObject *text, PyObject *resolve, fg_desc **out)
{
    fg_status st;
    Py_ssize_t size = 0;
    parser p = {.line = 1, .resolve = resolve == Py_None ? NULL : resolve};

    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "guard text must be a str, not %.200s", Py_TYPE(text)->tp_name);
        return FG_ERR_PYTHON;
    }
    p.at = PyUnicode_AsUTF8AndSize(text, &size);
    if (p.at == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(fg_desc_new(&p.desc));
    if (strlen(p.at) != (size_t)size)
        wrong(&p, "the text has a zero character");
    else if (!word(&p, "framegate-guards") || !word(&p, "1") || !at_end(&p))
        wrong(&p, "the first line is: framegate-guards 1");
    while (p.problem == NULL && !PyErr_Occurred() && *p.at != '\0') {
        if (*p.at == '\n') {
            p.at++;
            p.line++;
        }
        if (one_line(&p) < 0)
            break;
    }
    if (p.problem != NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "guard text, line %d: %s", p.line, p.problem);
    if (PyErr_Occurred())
        FG_TRY(FG_ERR_PYTHON);
    fg_free(p.nodes);
    *out = p.desc;
    return FG_OK;
fail:
    fg_free(p.nodes);
    fg_desc_free(p.desc);
    return st;
}
