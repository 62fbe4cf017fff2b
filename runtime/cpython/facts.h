/* Purpose:   what the interpreters do differently, as far as the layers above must know.
 * Model:     one constant for each fact, so that nobody else asks for a version.
 * Threading: none. Ownership: none.
 */
#ifndef FG_CPYTHON_FACTS_H
#define FG_CPYTHON_FACTS_H

#include <Python.h>

enum {
    FG_FACT_INVERTED_BOOL_WARNS = PY_VERSION_HEX >= 0x030c0000 /* ~True gives a DeprecationWarning */
};

#endif
