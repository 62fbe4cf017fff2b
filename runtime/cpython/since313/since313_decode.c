/* Decoding what CPython 3.13 and later versions have in common; the table is in since313.h, the mirror in since313_lower.c.
 *
 * A test is only part of its branch if both have the same position: the test is what may raise, and the traceback shows it.
 */
#include "runtime/cpython/since313/since313.h"

int64_t fg_since313_most_decoded(const fg_raw *op)
{
    switch (op->op) {
    case FG_RAW_LOAD_FAST_LOAD_FAST:
    case FG_RAW_STORE_FAST_LOAD_FAST:
    case FG_RAW_STORE_FAST_STORE_FAST:
    case FG_RAW_COMPARE_OP: return 2;
    default: return fg_since312_most_decoded(op);
    }
}

void fg_since313_put_pair(fg_decoder *d, const fg_raw *op, int first, int second)
{
    fg_decoder_add(d, op, first, (int32_t)op->arg >> 4);
    fg_decoder_put(d, op, second, (int32_t)op->arg & 15)->flags = FG_IF_FUSED;
}

static int canonical_test(int op)
{
    switch (op) {
    case FG_RAW_POP_JUMP_IF_TRUE: return FG_OP_JUMP_IF_TRUE;
    case FG_RAW_POP_JUMP_IF_FALSE: return FG_OP_JUMP_IF_FALSE;
    case FG_RAW_UNARY_NOT: return FG_OP_UNARY_NOT;
    default: return -1;
    }
}

/* The instruction after a test for truth can be one with it. */
static int takes_test(const fg_decoder *d, int32_t i)
{
    const fg_raw *op = &d->raw.ops[i];
    return i + 1 < d->raw.n_ops && canonical_test(op[1].op) >= 0 && op[1].state < 0 && op[1].line == op->line &&
           op[1].end_line == op->end_line && op[1].col == op->col && op[1].end_col == op->end_col;
}

static void put_test(fg_decoder *d, const fg_raw *at, const fg_raw *op, int flags)
{
    fg_instr *instr = fg_decoder_put(d, at, canonical_test(op->op), 0);
    instr->target = op->target;
    instr->flags = (uint8_t)flags;
}

fg_status fg_since313_decode_one(fg_decoder *d, int32_t i, PyObject *object, int32_t *skip, int *done)
{
    const fg_raw *op = &d->raw.ops[i];
    *done = FG_DECODED_LAST;
    switch (op->op) {
    case FG_RAW_LOAD_GLOBAL:
        fg_decoder_put(d, op, FG_OP_LOAD_GLOBAL, 0)->obj = object;
        if (op->arg & 1) {
            fg_decoder_settle(d);
            fg_decoder_put(d, op, FG_OP_CALLEE, 0);
        }
        return FG_OK;
    case FG_RAW_CALL: return fg_decoder_call(d, op, 0);
    case FG_RAW_CALL_KW:
        if (op->state >= 0 || d->n_out < 1 || d->out[d->n_out - 1].op != FG_OP_LOAD_CONST || !PyTuple_CheckExact(d->out[d->n_out - 1].obj))
            return fg_decoder_refuse(d, "keyword names are no constant tuple");
        return fg_decoder_call(d, op, 1);
    case FG_RAW_LOAD_FAST_LOAD_FAST: fg_since313_put_pair(d, op, FG_OP_LOAD_FAST, FG_OP_LOAD_FAST); return FG_OK;
    case FG_RAW_STORE_FAST_LOAD_FAST: fg_since313_put_pair(d, op, FG_OP_STORE_FAST, FG_OP_LOAD_FAST); return FG_OK;
    case FG_RAW_STORE_FAST_STORE_FAST: fg_since313_put_pair(d, op, FG_OP_STORE_FAST, FG_OP_STORE_FAST); return FG_OK;
    case FG_RAW_TO_BOOL:
        if (!takes_test(d, i))
            break;
        put_test(d, op, op + 1, 0);
        *skip = 1;
        return FG_OK;
    case FG_RAW_COMPARE_OP:
        if (!(op->arg & FG_COMPARE_GIVES_BOOL))
            break;
        if (op->arg >> FG_COMPARE_SHIFT > 5)
            return fg_decoder_refuse(d, "COMPARE_OP argument out of range");
        fg_decoder_add(d, op, FG_OP_COMPARE_OP, (int32_t)op->arg >> FG_COMPARE_SHIFT);
        if (!takes_test(d, i)) {
            fg_decoder_put(d, op, FG_OP_TO_BOOL, 0);
            return FG_OK;
        }
        put_test(d, op, op + 1, 0);
        *skip = 1;
        return FG_OK;
    case FG_RAW_UNARY_NOT:
    case FG_RAW_POP_JUMP_IF_TRUE:
    case FG_RAW_POP_JUMP_IF_FALSE: put_test(d, op, op, FG_IF_EXACT); return FG_OK;
    case FG_RAW_RESUME: fg_decoder_put(d, op, FG_OP_RESUME, (int32_t)op->arg & FG_RESUME_KINDS); return FG_OK;
    default: return fg_since312_decode_one(d, i, object, done);
    }
    *done = FG_DECODED_NOT;
    return op->op == FG_RAW_COMPARE_OP ? fg_since312_decode_one(d, i, object, done) : FG_OK;
}
