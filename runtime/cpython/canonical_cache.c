/* The cache of decoded code: see canonical_cache.h for who holds what. */
#include "runtime/cpython/canonical_cache.h"
#include "runtime/base/alloc.h"
#include <stdalign.h>

/* The slots have had official names since 3.12. */
#if PY_VERSION_HEX >= 0x030c0000
#define request_slot PyUnstable_Eval_RequestCodeExtraIndex
#define get_slot PyUnstable_Code_GetExtra
#define set_slot PyUnstable_Code_SetExtra
#else
#define request_slot _PyEval_RequestCodeExtraIndex
#define get_slot _PyCode_GetExtra
#define set_slot _PyCode_SetExtra
#endif

typedef struct fg_icode_block {
    Py_ssize_t holders;
    int kept; /* in its code object's slot */
    alignas(16) fg_icode icode;
} fg_icode_block;

/* The slot belongs to the interpreter that asked first; others decode without a cache. */
static Py_ssize_t slot = -1;
static PyInterpreterState *slot_owner;

static _Thread_local const char *last_why;

void fg_canonical_why_set(const char *why)
{
    last_why = why;
}

const char *fg_canonical_why(void)
{
    return last_why ? last_why : "";
}

static fg_icode_block *block_of(fg_icode *icode)
{
    return (fg_icode_block *)((char *)icode - offsetof(fg_icode_block, icode));
}

fg_icode *fg_icode_block_new(size_t size)
{
    fg_icode_block *block = fg_calloc(1, sizeof *block + size);
    return block ? &block->icode : NULL;
}

void *fg_icode_block_data(fg_icode *icode)
{
    return block_of(icode) + 1;
}

/* The code object dies. The interpreter calls this with NULL for code objects that never used the slot. */
static void forget(void *kept)
{
    if (kept)
        fg_free(block_of(kept));
}

static int slot_is_ours(void)
{
    PyInterpreterState *interp = PyInterpreterState_Get();
    if (!slot_owner) {
        slot_owner = interp;
        slot = request_slot(forget);
    }
    return slot >= 0 && interp == slot_owner;
}

/* Keep a decoded form with its code object; gives the one to use. Decoding may have run the collector, and so anything, also another decoding of the
 * same code whose result somebody holds by now: the first stays. Without memory for the slot this one is used once. */
static fg_icode *keep(PyCodeObject *code, fg_icode *icode)
{
    fg_icode *first = NULL;
    if (get_slot((PyObject *)code, slot, (void **)&first) == 0 && first) {
        fg_free(block_of(icode));
        return first;
    }
    if (set_slot((PyObject *)code, slot, icode) == 0)
        block_of(icode)->kept = 1;
    else
        PyErr_Clear();
    return icode;
}

fg_status fg_decode(PyCodeObject *code, fg_icode **out)
{
    fg_icode *icode = NULL;
    const char *why = NULL;
    const int cached = slot_is_ours();
    last_why = NULL;
    if (cached && get_slot((PyObject *)code, slot, (void **)&icode) < 0)
        return FG_ERR_PYTHON;
    if (icode) {
        fg_icode_retain(icode);
        *out = icode;
        return FG_OK;
    }
    const fg_status st = fg_version_decode(code, &icode, &why);
    if (st != FG_OK) {
        last_why = why;
        return st;
    }
    icode->code = code;
    if (cached)
        icode = keep(code, icode);
    fg_icode_retain(icode);
    *out = icode;
    return FG_OK;
}

void fg_icode_retain(fg_icode *icode)
{
    if (block_of(icode)->holders++ == 0)
        Py_INCREF(icode->code);
}

void fg_icode_release(fg_icode *icode)
{
    if (!icode || --block_of(icode)->holders)
        return;
    PyCodeObject *code = icode->code;
    if (!block_of(icode)->kept)
        fg_free(block_of(icode));
    Py_DECREF(code); /* may free a kept icode through forget() */
}
