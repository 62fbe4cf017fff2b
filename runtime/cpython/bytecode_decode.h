/* Purpose:   the decoder's state and helpers, for bytecode_decode.c and the part of it that each version has.
 * Model:     the walk goes through the reachable instructions in code order; each becomes canonical instructions by fg_decoder_put and
 *            fg_decoder_settle, or both at once by fg_decoder_add.
 * Threading: the GIL is held.
 * Ownership: the decoder owns its raw code and the scratch array; objects are borrowed from the code object.
 */
#ifndef FG_CPYTHON_BYTECODE_DECODE_H
#define FG_CPYTHON_BYTECODE_DECODE_H

#include "runtime/cpython/bytecode_raw.h"
#include "runtime/cpython/canonical_cache.h"

typedef struct fg_decoder {
    fg_raw_code raw;
    fg_raw_stack stack;
    fg_instr *out; /* scratch, copied into the result's block */
    int32_t n_out;
    int32_t *first;    /* real index -> first canonical index */
    int32_t *handlers; /* table entry -> handler index, -1 */
    int32_t values;    /* canonical depth now */
    int32_t max_values;
} fg_decoder;

fg_status fg_decoder_refuse(fg_decoder *d, const char *why);
fg_instr *fg_decoder_put(fg_decoder *d, const fg_raw *from, int op, int32_t arg);
/* Account for what the last instruction put does to the canonical stack. */
void fg_decoder_settle(fg_decoder *d);
void fg_decoder_add(fg_decoder *d, const fg_raw *from, int op, int32_t arg);
/* CALL and CALL_KW; the last instruction put is the names constant of the latter. Not settled. */
fg_status fg_decoder_call(fg_decoder *d, const fg_raw *op, int keywords);

/* The version's part. At most so many canonical instructions come of this one; 0: one of those that all versions have. */
int64_t fg_version_most_decoded(const fg_raw *op);
/* Decode instruction i, whose constant or name is `object`, and *skip more behind it; *done 0: one of those that all versions have. The last one put
 * is settled by the caller if *done is FG_DECODED_LAST. */
enum { FG_DECODED_NOT, FG_DECODED_ALL, FG_DECODED_LAST };
fg_status fg_version_decode_one(fg_decoder *d, int32_t i, FG_BORROWED PyObject *object, int32_t *skip, int *done);

#endif
