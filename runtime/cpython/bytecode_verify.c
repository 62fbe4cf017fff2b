/* The verifier: the same typed pass that the decoder trusts, plus what the interpreter takes on trust from a code object. */
#include "runtime/cpython/bytecode_raw.h"

static const char *check_operands(const fg_raw_code *raw)
{
    const PyCodeObject *code = raw->code;
    const Py_ssize_t n_consts = PyTuple_GET_SIZE(code->co_consts), n_names = PyTuple_GET_SIZE(code->co_names);
    const uint8_t *kinds = (const uint8_t *)PyBytes_AS_STRING(code->co_localspluskinds);
    int resumes = 0;
    for (int32_t i = 0; i < raw->n_ops; i++) {
        const fg_raw *op = &raw->ops[i];
        const Py_ssize_t n = op->arg;
        if (!op->reachable)
            continue;
        switch (fg_raw_kinds[op->op]) {
        case FG_RAW_KIND_CONST:
            if (n >= n_consts)
                return "constant index out of range";
            break;
        case FG_RAW_KIND_NAME:
        case FG_RAW_KIND_GLOBAL:
        case FG_RAW_KIND_ATTR:
        case FG_RAW_KIND_SUPER:
        case FG_RAW_KIND_IMPORT:
            if ((Py_ssize_t)fg_raw_name_index(op) >= n_names)
                return "name index out of range";
            break;
        case FG_RAW_KIND_SLOT:
            if (n >= code->co_nlocalsplus)
                return "slot out of range";
            break;
        case FG_RAW_KIND_SLOTS:
            if (n > 255 || n >> 4 >= code->co_nlocalsplus || (n & 15) >= code->co_nlocalsplus)
                return "slot out of range";
            break;
        default: break;
        }
        switch (op->op) {
        case FG_RAW_LOAD_DEREF:
        case FG_RAW_STORE_DEREF:
        case FG_RAW_DELETE_DEREF:
            if (!(kinds[n] & 0xc0))
                return "cell operation on a slot that is no cell";
            break;
        case FG_RAW_MAKE_CELL:
            if (!(kinds[n] & (FG_COMPREHENSIONS_ARE_INLINE ? 0xc0 : 0x40)))
                return "MAKE_CELL of a slot that is no cell variable";
            break;
        case FG_RAW_COPY_FREE_VARS:
            if (n != code->co_nfreevars)
                return "COPY_FREE_VARS of another number of variables";
            break;
        case FG_RAW_BINARY_OP:
            if (n >= FG_BINARY_OPS)
                return "BINARY_OP argument out of range";
            break;
        case FG_RAW_RAISE_VARARGS:
            if (n > 2)
                return "RAISE_VARARGS argument out of range";
            break;
        case FG_RAW_RESUME: resumes++; break;
        default: break;
        }
        const char *why = fg_version_operand(raw, i);
        if (why != NULL)
            return why;
    }
    /* Without one the frame never counts as complete: it is missing in tracebacks and sys._getframe. */
    return resumes ? NULL : "no RESUME";
}

fg_status fg_verify_code(PyCodeObject *code, const char **why)
{
    fg_raw_code raw;
    *why = NULL;
    fg_status st = fg_raw_read(code, &raw);
    if (st == FG_OK)
        st = fg_raw_flow(&raw);
    if (st == FG_OK && (*why = check_operands(&raw)))
        st = FG_ERR_BUG;
    if (st == FG_ERR_INVALID || st == FG_ERR_UNSUPPORTED) {
        *why = raw.why;
        st = FG_ERR_BUG;
    }
    fg_raw_fini(&raw);
    return st;
}
