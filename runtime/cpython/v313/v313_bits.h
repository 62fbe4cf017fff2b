/* Purpose:   the bits of CPython 3.13's COMPARE_OP and RESUME, for decoder and lowering.
 * Model:     as the comments say.
 * Threading: none. Ownership: none.
 */
#ifndef FG_CPYTHON_V313_BITS_H
#define FG_CPYTHON_V313_BITS_H

enum {
    FG_COMPARE_GIVES_BOOL = 16, /* COMPARE_OP tests its result for truth, too */
    FG_RESUME_OUTERMOST = 4     /* RESUME behind a YIELD_VALUE under one handler, the one that a generator has anyway */
};

#endif
