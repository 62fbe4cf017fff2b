/* Purpose:   this layer as Python sees it, for its tests: decode, assemble and verify code objects, look at frames and instances.
 * Model:     functions named cpython_… of the extension module.
 * Threading: the GIL is held.
 */
#ifndef FG_CPYTHON_MODULE_H
#define FG_CPYTHON_MODULE_H

#include <Python.h>

int fg_cpython_module_init(PyObject *module); /* 0, or -1 with an exception */

#endif
