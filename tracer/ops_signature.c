/* Signature texts: "a axis: out> | keepdims:" -> fg_op_signature.
 *
 * Several hundred rows share about two hundred texts, so parsed signatures are kept in a dict from text to capsule, for the life of the process.
 */
#include "runtime/base/alloc.h"
#include "tracer/ops_registry.h"
#include <string.h>

static PyObject *g_parsed; /* text -> capsule */
static const char *const CAPSULE = "framegate.op_signature";

static int role_from_mark(char mark)
{
    switch (mark) {
    case ':': return FG_ROLE_CONSTANT;
    case '>': return FG_ROLE_OUT;
    case '!': return FG_ROLE_WRITTEN;
    case '?': return FG_ROLE_INPLACE;
    case '\'': return FG_ROLE_TEXT;
    case '+': return FG_ROLE_REQUIRED;
    case '#': return FG_ROLE_COUNT;
    }
    return FG_ROLE_OPERAND;
}

static int is_name_char(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Borrowed; NULL: no such constant. */
static PyObject *fixed_value(const char *text, size_t length)
{
    if (length == 4 && memcmp(text, "None", 4) == 0)
        return Py_None;
    if (length == 4 && memcmp(text, "True", 4) == 0)
        return Py_True;
    if (length == 5 && memcmp(text, "False", 5) == 0)
        return Py_False;
    return NULL;
}

static fg_status parse_param(const char *word, size_t length, fg_op_param *param)
{
    size_t name_length = 0;
    while (name_length < length && is_name_char(word[name_length]))
        name_length++;
    size_t rest = length - name_length;
    if (name_length == 0)
        return FG_ERR_INVALID;
    param->value = NULL;
    if (rest == 0) {
        param->role = FG_ROLE_OPERAND;
    } else if (word[name_length] == '=') {
        param->role = FG_ROLE_FIXED;
        param->value = Py_XNewRef(fixed_value(word + name_length + 1, rest - 1));
        if (param->value == NULL)
            return FG_ERR_INVALID;
    } else {
        param->role = (uint8_t)role_from_mark(word[name_length]);
        if (rest != 1 || param->role == FG_ROLE_OPERAND)
            return FG_ERR_INVALID;
    }
    param->name = PyUnicode_FromStringAndSize(word, (Py_ssize_t)name_length);
    if (param->name == NULL) {
        Py_CLEAR(param->value);
        return FG_ERR_PYTHON;
    }
    PyUnicode_InternInPlace(&param->name);
    return FG_OK;
}

static void signature_free(fg_op_signature *signature)
{
    if (signature == NULL)
        return;
    for (uint16_t i = 0; i < signature->n_params; i++) {
        Py_XDECREF(signature->params[i].name);
        Py_XDECREF(signature->params[i].value);
    }
    fg_free(signature);
}

static fg_status parse_text(const char *text, size_t length, fg_op_signature **out)
{
    fg_status st = FG_OK;
    size_t capacity = length / 2 + 1; /* a word and its space are two characters or more */
    fg_op_signature *signature;
    if (capacity > UINT16_MAX)
        return FG_ERR_LIMIT;
    signature = fg_calloc(1, sizeof(*signature) + capacity * sizeof(fg_op_param));
    if (signature == NULL)
        return FG_ERR_NOMEM;
    int keyword_only = 0;
    for (size_t at = 0; at < length;) {
        size_t end = at;
        if (text[at] == ' ') {
            at++;
            continue;
        }
        while (end < length && text[end] != ' ')
            end++;
        const char *word = text + at;
        size_t n = end - at;
        at = end;
        if (n == 1 && *word == '/') {
            signature->n_named_from = signature->n_params;
        } else if (n == 1 && *word == '|') {
            keyword_only = 1;
        } else if (*word == '*') {
            fg_op_param rest = {NULL, NULL, 0};
            FG_TRY(parse_param(word + 1, n - 1, &rest));
            signature->rest = rest.role;
            Py_DECREF(rest.name);
            Py_XDECREF(rest.value);
            keyword_only = 1;
        } else {
            FG_TRY(parse_param(word, n, &signature->params[signature->n_params]));
            signature->n_params++;
            signature->n_positional = (uint16_t)(signature->n_positional + !keyword_only);
        }
    }
    *out = signature;
    return FG_OK;
fail:
    signature_free(signature);
    return st;
}

fg_status fg_op_signature_parse(PyObject *text, const fg_op_signature **out)
{
    fg_status st = FG_ERR_PYTHON;
    fg_op_signature *signature = NULL;
    PyObject *capsule = NULL;
    Py_ssize_t length;
    if (!PyUnicode_CheckExact(text))
        return FG_ERR_INVALID;
    if (g_parsed == NULL && (g_parsed = PyDict_New()) == NULL)
        return FG_ERR_PYTHON;
    PyObject *known = PyDict_GetItemWithError(g_parsed, text);
    if (known != NULL) {
        *out = PyCapsule_GetPointer(known, CAPSULE);
        return *out != NULL ? FG_OK : FG_ERR_PYTHON;
    }
    if (PyErr_Occurred())
        return FG_ERR_PYTHON;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &length);
    if (utf8 == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(parse_text(utf8, (size_t)length, &signature));
    capsule = PyCapsule_New(signature, CAPSULE, NULL);
    if (capsule == NULL || PyDict_SetItem(g_parsed, text, capsule) < 0) {
        st = FG_ERR_PYTHON;
        goto fail;
    }
    Py_DECREF(capsule);
    *out = signature;
    return FG_OK;
fail:
    Py_XDECREF(capsule); /* has no destructor: the signature is still ours */
    signature_free(signature);
    return st;
}
