/* Purpose:   places in torch's memory that a getter of torch's reads.
 * Model:     a getter that is compiled to one load and a return names the place in its code. What does not look so, or is on another machine than x86-64,
 *            has no place and is asked by a call.
 * Invariants: the place is that of the getter's own load, and gave what the getter said when it was found.
 * Threading: none; called once.
 * Ownership: the places belong to torch and live as long as the process.
 */
#ifndef FG_GUARDS_ADAPTOR_TORCH_FIELDS_H
#define FG_GUARDS_ADAPTOR_TORCH_FIELDS_H

#include <stdint.h>

/* The byte that getter(self) loads; NULL: not found. self is NULL for a getter of a static byte. */
const volatile uint8_t *fg_torch_field_of(const void *getter, const void *self);

/* The byte of this thread that a getter of a thread-local byte loads; NULL: not found. Not cheap: once for each thread. */
const volatile uint8_t *fg_torch_thread_field_of(const void *getter);

#endif
