/* Purpose:   super() without arguments in a host, whose frame is laid out otherwise than the user's.
 * Model:     super_here(name, cell slot, first slot, first is a cell) does what calling `name` without arguments does in the user's own frame. `name` is
 *            what the name `super` gave: anything else than super or a class derived from it is called without arguments. A slot of -1: the function has none.
 *            super_of((name, class, first argument)) does so where the instruction has loaded the two (3.12).
 * Threading: the GIL is held.
 */
#ifndef FG_CODEGEN_SUPER_CALL_H
#define FG_CODEGEN_SUPER_CALL_H

#include "runtime/base/status.h"
#include <Python.h>

FG_NEW PyObject *fg_super_function(void);
FG_NEW PyObject *fg_super_of_function(void);

#endif
