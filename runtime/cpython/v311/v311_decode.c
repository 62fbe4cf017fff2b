/* The instructions of CPython 3.11 that are not one to one:
 *
 *   real                                  canonical
 *   LOAD_GLOBAL with its low bit          CALLEE; LOAD_GLOBAL
 *   PRECALL n; CALL n                     CALL n; with a plain first argument in the callee's two slots CALL n+1, flag PLAIN
 *   KW_NAMES c; PRECALL; CALL             LOAD_CONST c; CALL_KW (until312.h has the others that 3.12 has, too)
 *   LOAD_GLOBAL super; CALL 0; attribute  LOAD_GLOBAL; LOAD_DEREF __class__; first argument; CALL_SUPER 0
 *   JUMP_IF_x_OR_POP                      COPY 1 (flag OR_POP); JUMP_IF_x; POP_TOP
 *   LOAD_CLASSDEREF                       LOAD_LOCALS; LOAD_FROM_DICT_OR_DEREF
 *   IMPORT_STAR, PRINT_EXPR               IMPORT_STAR or PRINT; POP_TOP
 *
 * v311_lower.c is the mirror.
 */
#include "runtime/cpython/until312/until312.h"
#include "runtime/cpython/until313/until313.h"

int64_t fg_version_most_decoded(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_LOAD_GLOBAL: return 4;
    case FG_RAW_JUMP_IF_FALSE_OR_POP:
    case FG_RAW_JUMP_IF_TRUE_OR_POP: return 3;
    case FG_RAW_LOAD_CLASSDEREF:
    case FG_RAW_IMPORT_STAR:
    case FG_RAW_PRINT_EXPR: return 2;
    default: return fg_until312_most_decoded(op);
    }
}

/* super() without arguments, used at once for an attribute: gives the slot of __class__, or -1. */
static int32_t zero_argument_super(const fg_decoder *d, int32_t i, PyObject *name)
{
    const fg_raw *op = &d->raw.ops[i];
    const PyCodeObject *code = d->raw.code;
    if (!(op->arg & 1) || i + 3 >= d->raw.n_ops || op[1].op != FG_RAW_PRECALL || op[2].op != FG_RAW_CALL || op[2].arg != 0 ||
        (op[3].op != FG_RAW_LOAD_ATTR && op[3].op != FG_RAW_LOAD_METHOD) || op[1].state >= 0 || op[2].state >= 0 || op[3].state >= 0 ||
        code->co_argcount < 1 || PyUnicode_CompareWithASCIIString(name, "super") != 0)
        return -1;
    for (int32_t slot = code->co_nlocalsplus - code->co_nfreevars; slot < code->co_nlocalsplus; slot++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, slot), "__class__") == 0)
            return slot;
    return -1;
}

static void decode_super(fg_decoder *d, const fg_raw *op, PyObject *name, int32_t class_slot)
{
    const fg_raw *call = op + 2;
    const int cell = PyBytes_AS_STRING(d->raw.code->co_localspluskinds)[0] & 0x40;
    fg_decoder_put(d, op, FG_OP_LOAD_GLOBAL, 0)->obj = name;
    fg_decoder_settle(d);
    fg_decoder_add(d, call, FG_OP_LOAD_DEREF, class_slot);
    fg_decoder_add(d, call, cell ? FG_OP_LOAD_DEREF : FG_OP_LOAD_FAST, 0);
    if (!cell)
        d->out[d->n_out - 1].flags = FG_IF_CHECK;
    fg_decoder_add(d, call, FG_OP_CALL_SUPER, 0);
}

fg_status fg_version_decode_one(fg_decoder *d, int32_t i, PyObject *object, int32_t *skip, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    const int32_t n = (int32_t)op->arg;

    *done = FG_DECODED_LAST;
    switch (op->op) {
    case FG_RAW_LOAD_GLOBAL: {
        const int32_t slot = zero_argument_super(d, i, object);
        if (slot >= 0) {
            decode_super(d, op, object, slot);
            *skip = 2;
            *done = FG_DECODED_ALL;
            return FG_OK;
        }
        if (op->arg & 1)
            fg_decoder_add(d, op, FG_OP_CALLEE, 0);
        fg_decoder_put(d, op, FG_OP_LOAD_GLOBAL, 0)->obj = object;
        return FG_OK;
    }
    case FG_RAW_PRECALL:
        if (i + 1 >= d->raw.n_ops || op[1].op != FG_RAW_CALL || op[1].arg != op->arg || op[1].state >= 0)
            return fg_decoder_refuse(d, "PRECALL without its CALL");
        *done = FG_DECODED_ALL;
        return FG_OK;
    case FG_RAW_KW_NAMES:
        if (i + 2 >= d->raw.n_ops || op[1].op != FG_RAW_PRECALL || op[1].state >= 0 || !PyTuple_CheckExact(object))
            return fg_decoder_refuse(d, "KW_NAMES without its call");
        fg_decoder_put(d, op, FG_OP_LOAD_CONST, 0)->obj = object;
        return FG_OK;
    case FG_RAW_CALL:
        if (i < 1 || op[-1].op != FG_RAW_PRECALL)
            return fg_decoder_refuse(d, "CALL without its PRECALL");
        return fg_decoder_call(d, op, i >= 2 && op[-2].op == FG_RAW_KW_NAMES);
    case FG_RAW_LOAD_CLASSDEREF:
        fg_decoder_add(d, op, FG_OP_LOAD_LOCALS, 0);
        fg_decoder_put(d, op, FG_OP_LOAD_FROM_DICT_OR_DEREF, n);
        return FG_OK;
    case FG_RAW_IMPORT_STAR:
    case FG_RAW_PRINT_EXPR:
        fg_decoder_add(d, op, op->op == FG_RAW_IMPORT_STAR ? FG_OP_IMPORT_STAR : FG_OP_PRINT, 0);
        fg_decoder_put(d, op, FG_OP_POP_TOP, 0);
        return FG_OK;
    case FG_RAW_JUMP_IF_FALSE_OR_POP:
    case FG_RAW_JUMP_IF_TRUE_OR_POP:
        fg_decoder_put(d, op, FG_OP_COPY, 1)->flags = FG_IF_OR_POP;
        fg_decoder_settle(d);
        fg_decoder_put(d, op, op->op == FG_RAW_JUMP_IF_TRUE_OR_POP ? FG_OP_JUMP_IF_TRUE : FG_OP_JUMP_IF_FALSE, 0)->target = op->target;
        fg_decoder_settle(d);
        fg_decoder_put(d, op, FG_OP_POP_TOP, 0);
        return FG_OK;
#define BRANCH(NAME)                        \
    case FG_RAW_POP_JUMP_FORWARD_IF_##NAME: \
    case FG_RAW_POP_JUMP_BACKWARD_IF_##NAME: fg_decoder_put(d, op, FG_OP_JUMP_IF_##NAME, 0)->target = op->target; return FG_OK;
        BRANCH(TRUE)
        BRANCH(FALSE)
        BRANCH(NONE)
        BRANCH(NOT_NONE)
#undef BRANCH
    default: {
        const fg_status st = fg_until312_decode_one(d, i, done);
        return st != FG_OK || *done != FG_DECODED_NOT ? st : fg_until313_decode_one(d, i, done);
    }
    }
}
