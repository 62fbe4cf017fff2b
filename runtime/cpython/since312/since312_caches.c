/* How long the instructions of the live bytes are, which may be specialised, instrumented or entries to compiled traces. */
#include "runtime/cpython/since312/since312.h"
#define Py_BUILD_CORE 1
#if PY_VERSION_HEX >> 16 == 0x030c
#define NEED_OPCODE_TABLES 1 /* the interpreter exports them since 3.15 */
#include <internal/pycore_opcode.h>
#undef NEED_OPCODE_TABLES
#else
#if PY_VERSION_HEX < 0x030f0000
#define NEED_OPCODE_METADATA 1
#endif
#include <internal/pycore_opcode_metadata.h>
#undef NEED_OPCODE_METADATA
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_code.h>
#include <internal/pycore_instruments.h>
#include <internal/pycore_optimizer.h>
#endif
#undef Py_BUILD_CORE

static int line_opcode(const _PyCoMonitoringData *watched, Py_ssize_t u)
{
#if PY_VERSION_HEX < 0x030e0000
    return watched->lines[u].original_opcode;
#else
    return watched->lines->data[u * watched->lines->bytes_per_entry];
#endif
}

/* What stands at a place of the code, behind the entry to a trace. */
static int live_opcode(const PyCodeObject *code, Py_ssize_t u)
{
    const int op = (uint8_t)code->co_code_adaptive[2 * u];
#if PY_VERSION_HEX >= 0x030e0000
    const uint8_t index = (uint8_t)code->co_code_adaptive[2 * u + 1];
    const _PyExecutorArray *executors = code->co_executors;
    if (op == ENTER_EXECUTOR && executors != NULL && index < executors->size)
        return executors->executors[index]->vm_data.opcode;
#endif
    return op;
}

/* Mirrors _Py_GetBaseCodeUnit of Python/instrumentation.c. */
int fg_version_live_caches(PyCodeObject *code, Py_ssize_t u)
{
    const _PyCoMonitoringData *watched = code->_co_monitoring;
    int op = live_opcode(code, u);
    if (op == INSTRUMENTED_LINE && watched != NULL && watched->lines != NULL)
        op = line_opcode(watched, u);
    if (op == INSTRUMENTED_INSTRUCTION && watched != NULL && watched->per_instruction_opcodes != NULL)
        op = watched->per_instruction_opcodes[u];
    switch (op) {
    case INSTRUMENTED_CALL: op = CALL; break;
#ifdef INSTRUMENTED_CALL_KW
    case INSTRUMENTED_CALL_KW: op = CALL_KW; break;
#endif
    case INSTRUMENTED_CALL_FUNCTION_EX: op = CALL_FUNCTION_EX; break;
    case INSTRUMENTED_RESUME: op = RESUME; break;
    case INSTRUMENTED_FOR_ITER: op = FOR_ITER; break;
    case INSTRUMENTED_LOAD_SUPER_ATTR: op = LOAD_SUPER_ATTR; break;
    case INSTRUMENTED_JUMP_BACKWARD: op = JUMP_BACKWARD; break;
    case INSTRUMENTED_POP_JUMP_IF_TRUE: op = POP_JUMP_IF_TRUE; break;
    case INSTRUMENTED_POP_JUMP_IF_FALSE: op = POP_JUMP_IF_FALSE; break;
    case INSTRUMENTED_POP_JUMP_IF_NONE: op = POP_JUMP_IF_NONE; break;
    case INSTRUMENTED_POP_JUMP_IF_NOT_NONE: op = POP_JUMP_IF_NOT_NONE; break;
    default: break; /* the others have no cache, instrumented or not */
    }
    return _PyOpcode_Caches[_PyOpcode_Deopt[op]];
}
