/* Purpose:   what the interpreters do differently, as far as the layers above must know.
 * Model:     one constant for each fact, so that nobody else asks for a version.
 * Threading: none. Ownership: none.
 */
#ifndef FG_CPYTHON_FACTS_H
#define FG_CPYTHON_FACTS_H

#include <Python.h>
#include <limits.h>

enum {
    FG_FACT_MOST_ARGUMENTS = PY_VERSION_HEX < 0x030e0000 ? INT_MAX : 64, /* of a frame that an interception may take over */
    FG_FACT_ARGUMENTS_ROOM = PY_VERSION_HEX < 0x030e0000 ? 1 : 64,       /* their slots are objects, or are made such in room */
    FG_FACT_INVERTED_BOOL_WARNS = PY_VERSION_HEX >= 0x030c0000,          /* ~True gives a DeprecationWarning */
    FG_FACT_SLOTS_END_BACKWARDS = PY_VERSION_HEX >= 0x030e0000,          /* a frame drops its variables from the last one on */
    FG_FACT_VALUES_MAY_BE_WIDE =
        PY_VERSION_HEX >= 0x030e0000 /* a value on the stack of a frame may take two slots, and does so on all paths that meet there */
};

/* A str that is the first constant of a code object is its docstring: always, or where a flag says so. */
#if PY_VERSION_HEX < 0x030e0000
#define FG_HAS_DOCSTRING(code) 1
#else
#define FG_HAS_DOCSTRING(code) (((code)->co_flags & CO_HAS_DOCSTRING) != 0)
#endif

#endif
