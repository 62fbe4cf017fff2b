/* One load and a return, in the machine code of x86-64:
 *
 *     [F3 0F 1E FA]  0F B6 47 dd         C3     movzx eax, byte [rdi + dd]         a member of the object that is passed
 *     [F3 0F 1E FA]  0F B6 87 dd dd dd dd C3    movzx eax, byte [rdi + dddddddd]
 *     [F3 0F 1E FA]  0F B6 05 dd dd dd dd C3    movzx eax, byte [rip + dddddddd]   a static byte
 *
 * and for a thread-local byte, whose module and offset a record names that the loader turns into an address:
 *
 *     [F3 0F 1E FA]  48 83 EC 08  48 8D 3D dd dd dd dd  E8 ff ff ff ff  0F B6 80 oo oo oo oo  48 83 C4 08  C3
 *                    sub rsp, 8   lea rdi, [rip + d]    call f          movzx eax, byte [rax + o]   add rsp, 8   ret
 *
 * The code is only read. What f is cannot be seen; the caller sees that the byte follows the getter.
 */
#include "guards/adaptor_torch_fields.h"
#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)

extern void *__tls_get_addr(void *record); /* the loader's */

/* Behind the mark of a place that may be jumped to, if it has one. */
static const uint8_t *skip_landing(const void *code)
{
    static const uint8_t landing[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    return code == NULL || memcmp(code, landing, sizeof landing) != 0 ? code : (const uint8_t *)code + sizeof landing;
}

static int32_t displacement(const uint8_t *at)
{
    int32_t far;
    memcpy(&far, at, sizeof far);
    return far;
}

enum { RETURN = 0xc3, BASE_SHORT = 0x47, BASE_LONG = 0x87, STATIC = 0x05 };

const volatile uint8_t *fg_torch_field_of(const void *getter, const void *self)
{
    const uint8_t *code = skip_landing(getter);

    if (code == NULL || code[0] != 0x0f || code[1] != 0xb6)
        return NULL;
    if (code[2] == BASE_SHORT)
        return code[4] == RETURN && self != NULL ? (const volatile uint8_t *)self + (int8_t)code[3] : NULL;
    if (code[7] != RETURN)
        return NULL;
    if (code[2] == BASE_LONG)
        return self != NULL ? (const volatile uint8_t *)self + displacement(code + 3) : NULL;
    return code[2] == STATIC ? code + 7 + displacement(code + 3) : NULL;
}

const volatile uint8_t *fg_torch_thread_field_of(const void *getter)
{
    static const uint8_t open[7] = {0x48, 0x83, 0xec, 8, 0x48, 0x8d, 0x3d}, load[3] = {0x0f, 0xb6, 0x80},
                         close[5] = {0x48, 0x83, 0xc4, 8, RETURN};
    enum { CALL = 11, LOAD = 16, CLOSE = 23 };
    const uint8_t *code = skip_landing(getter);

    if (code == NULL || memcmp(code, open, sizeof open) != 0 || code[CALL] != 0xe8 || memcmp(code + LOAD, load, sizeof load) != 0 ||
        memcmp(code + CLOSE, close, sizeof close) != 0)
        return NULL;
    const uint8_t *record = code + CALL + displacement(code + sizeof open);
    return (const volatile uint8_t *)__tls_get_addr((void *)(uintptr_t)record) + displacement(code + LOAD + sizeof load);
}

#else

const volatile uint8_t *fg_torch_field_of(const void *getter, const void *self)
{
    (void)getter;
    (void)self;
    return NULL;
}

const volatile uint8_t *fg_torch_thread_field_of(const void *getter)
{
    (void)getter;
    return NULL;
}

#endif
