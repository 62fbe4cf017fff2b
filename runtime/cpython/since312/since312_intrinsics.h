/* Purpose:   which canonical instruction an intrinsic function of CPython 3.12 and later is.
 * Model:     one table, read in both directions.
 * Threading: none. Ownership: none.
 */
#ifndef FG_CPYTHON_SINCE312_INTRINSICS_H
#define FG_CPYTHON_SINCE312_INTRINSICS_H

#include "runtime/cpython/bytecode_raw.h"
#include "runtime/cpython/canonical.h"

typedef struct fg_intrinsic {
    uint8_t raw, number, op;
} fg_intrinsic;

/* Mirrors Include/internal/pycore_intrinsics.h. */
static const fg_intrinsic fg_intrinsics[] = {
    {FG_RAW_CALL_INTRINSIC_1, 1, FG_OP_PRINT},
    {FG_RAW_CALL_INTRINSIC_1, 2, FG_OP_IMPORT_STAR},
    {FG_RAW_CALL_INTRINSIC_1, 3, FG_OP_STOPITERATION_ERROR},
    {FG_RAW_CALL_INTRINSIC_1, 4, FG_OP_ASYNC_GEN_WRAP},
    {FG_RAW_CALL_INTRINSIC_1, 5, FG_OP_UNARY_POSITIVE},
    {FG_RAW_CALL_INTRINSIC_1, 6, FG_OP_LIST_TO_TUPLE},
    {FG_RAW_CALL_INTRINSIC_1, 7, FG_OP_TYPEVAR},
    {FG_RAW_CALL_INTRINSIC_1, 8, FG_OP_PARAMSPEC},
    {FG_RAW_CALL_INTRINSIC_1, 9, FG_OP_TYPEVARTUPLE},
    {FG_RAW_CALL_INTRINSIC_1, 10, FG_OP_SUBSCRIPT_GENERIC},
    {FG_RAW_CALL_INTRINSIC_1, 11, FG_OP_TYPEALIAS},
    {FG_RAW_CALL_INTRINSIC_2, 1, FG_OP_PREP_RERAISE_STAR},
    {FG_RAW_CALL_INTRINSIC_2, 2, FG_OP_TYPEVAR_WITH_BOUND},
    {FG_RAW_CALL_INTRINSIC_2, 3, FG_OP_TYPEVAR_WITH_CONSTRAINTS},
    {FG_RAW_CALL_INTRINSIC_2, 4, FG_OP_SET_FUNCTION_TYPE_PARAMS},
#if PY_VERSION_HEX >= 0x030d0000
    {FG_RAW_CALL_INTRINSIC_2, 5, FG_OP_SET_TYPEPARAM_DEFAULT},
#endif
};
enum { FG_N_INTRINSICS = sizeof fg_intrinsics / sizeof *fg_intrinsics };

/* -1: none. */
static inline int fg_intrinsic_op(int raw, uint32_t number)
{
    for (int k = 0; k < FG_N_INTRINSICS; k++)
        if (fg_intrinsics[k].raw == raw && fg_intrinsics[k].number == number)
            return fg_intrinsics[k].op;
    return -1;
}

static inline const fg_intrinsic *fg_intrinsic_of(int op)
{
    for (int k = 0; k < FG_N_INTRINSICS; k++)
        if (fg_intrinsics[k].op == op)
            return &fg_intrinsics[k];
    return NULL;
}

#endif
