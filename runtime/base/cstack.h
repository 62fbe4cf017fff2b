/* Purpose:   the C call stack on stderr when an invariant of ours is broken.
 * Model:     off unless the environment variable FRAMEGATE_C_STACK is 1; frames are symbols where the object exports them, else offsets
 *            into the object, for addr2line.
 * Invariants: allocates nothing of ours and runs no Python, so that it may be called anywhere.
 * Threading: any thread.
 * Ownership: none.
 */
#ifndef FG_BASE_CSTACK_H
#define FG_BASE_CSTACK_H

void fg_cstack_dump(void);

#endif
