/* Decoding what CPython 3.14 and later versions have in common; the table is in since314.h, the mirror in since314_lower.c. */
#include "runtime/cpython/since314/since314.h"

enum { WITH_LENGTH = 6 };

int64_t fg_since314_most_decoded(const fg_raw *op)
{
    return op->op == FG_RAW_LOAD_FAST_BORROW_LOAD_FAST_BORROW ? 2 : fg_since313_most_decoded(op);
}

/* The instructions that a `with` begins with stand here, all of one handler and nothing leads between them. */
static int begins_with(const fg_decoder *d, int32_t i)
{
    static const uint8_t ops[WITH_LENGTH] = {FG_RAW_COPY, FG_RAW_LOAD_SPECIAL, FG_RAW_SWAP, FG_RAW_SWAP, FG_RAW_LOAD_SPECIAL, FG_RAW_CALL};
    const fg_raw *op = &d->raw.ops[i];
    if (i + WITH_LENGTH > d->raw.n_ops)
        return 0;
    for (int k = 0; k < WITH_LENGTH; k++)
        if (op[k].op != ops[k] || op[k].entry != op->entry || (k && op[k].state >= 0))
            return 0;
    return op->arg == 1 && op[2].arg == 2 && op[3].arg == 3 && op[5].arg == 0 &&
           (op[1].arg == FG_SPECIAL_EXIT || op[1].arg == FG_SPECIAL_ASYNC_EXIT) && op[4].arg == op[1].arg - 1;
}

static int is_keywords(const fg_decoder *d, int32_t i)
{
    const fg_raw *op = &d->raw.ops[i];
    return i + 1 < d->raw.n_ops && op[1].op == FG_RAW_CALL_FUNCTION_EX && op[1].state < 0;
}

fg_status fg_since314_decode_one(fg_decoder *d, int32_t i, PyObject *object, int32_t *skip, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    const int32_t n = (int32_t)op->arg;
    const int top = d->stack.depth > 0 ? d->stack.types[d->stack.depth - 1] : FG_SLOT_VALUE;
    *done = FG_DECODED_LAST;
    switch (op->op) {
    case FG_RAW_LOAD_FAST_BORROW: fg_decoder_put(d, op, FG_OP_LOAD_FAST, n); return FG_OK;
    case FG_RAW_LOAD_FAST_BORROW_LOAD_FAST_BORROW: fg_since313_put_pair(d, op, FG_OP_LOAD_FAST, FG_OP_LOAD_FAST); return FG_OK;
    case FG_RAW_LOAD_SMALL_INT: {
        PyObject *number = PyLong_FromLong(n);
        if (number == NULL)
            return FG_ERR_PYTHON;
        Py_DECREF(number);
        if (n > FG_MOST_SMALL_INT) /* the others live as long as the interpreter */
            return fg_decoder_refuse(d, "LOAD_SMALL_INT argument out of range");
        fg_decoder_put(d, op, FG_OP_LOAD_CONST, 0)->obj = number;
        return FG_OK;
    }
    case FG_RAW_LOAD_COMMON_CONSTANT: {
        PyObject *plain = fg_version_common_constant(op->arg);
        if (plain == NULL && n > FG_COMMON_SET)
            return fg_decoder_refuse(d, "unknown common constant");
        fg_decoder_put(d, op, plain != NULL ? FG_OP_LOAD_CONST : FG_OP_LOAD_COMMON, plain != NULL ? 0 : n)->obj =
            plain != NULL ? plain : fg_common_object(n);
        return FG_OK;
    }
    case FG_RAW_BINARY_OP:
        if (n != FG_BINARY_OP_SUBSCR)
            break;
        fg_decoder_put(d, op, FG_OP_BINARY_SUBSCR, 0);
        return FG_OK;
    case FG_RAW_PUSH_NULL:
        if (!is_keywords(d, i))
            break;
        *done = FG_DECODED_ALL;
        return FG_OK;
    case FG_RAW_LOAD_GLOBAL:
        if (!is_keywords(d, i))
            break;
        fg_decoder_put(d, op, FG_OP_LOAD_GLOBAL, 0)->obj = object;
        return FG_OK;
    case FG_RAW_CALL_FUNCTION_EX: fg_decoder_put(d, op, FG_OP_CALL_EX, top == FG_SLOT_VALUE); return FG_OK;
    case FG_RAW_COPY:
        if (!begins_with(d, i))
            break;
        fg_decoder_put(d, op, op[1].arg == FG_SPECIAL_EXIT ? FG_OP_BEFORE_WITH : FG_OP_BEFORE_ASYNC_WITH, 0);
        *skip = WITH_LENGTH - 1;
        return FG_OK;
    case FG_RAW_LOAD_SPECIAL: return fg_decoder_refuse(d, "LOAD_SPECIAL outside the beginning of a with");
    case FG_RAW_POP_ITER:
        if (top == FG_SLOT_SPENT)
            break;
        fg_decoder_put(d, op, FG_OP_POP_TOP, 0)->flags = FG_IF_ITER;
        return FG_OK;
    case FG_RAW_POP_TOP:
        if (top == FG_SLOT_VALUE) {
            fg_decoder_put(d, op, FG_OP_POP_TOP, 0);
            return FG_OK;
        }
        *done = FG_DECODED_ALL;
        return FG_OK;
    case FG_RAW_END_ASYNC_FOR: fg_decoder_put(d, op, FG_OP_END_ASYNC_FOR, 0); return FG_OK;
    case FG_RAW_NOT_TAKEN: *done = FG_DECODED_ALL; return FG_OK;
    default: break;
    }
    if (op->op == FG_RAW_POP_ITER) {
        *done = FG_DECODED_ALL;
        return FG_OK;
    }
    *done = FG_DECODED_NOT;
    return fg_since313_decode_one(d, i, object, skip, done);
}
