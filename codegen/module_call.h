/* Purpose:   the call slot of compiled modules: the objects that framegate.compile(module) gives.
 * Model:     such an object has two slots, the module it stands for and a gate. A call goes to the gate with that module as the first argument; where a hook or an
 *            instance attribute changes what a call means, it goes to the class's own __call__ instead.
 * Invariants: the slot is put only into classes that the package made, whose two slots are at the offsets given when it was armed.
 * Threading: the GIL is held.
 * Ownership: the state of the slot is an attribute of the class and dies with it.
 */
#ifndef FG_CODEGEN_MODULE_CALL_H
#define FG_CODEGEN_MODULE_CALL_H

#include "runtime/base/status.h"
#include <Python.h>

/* Adds module_call_arm(class, plain_call, global_hooks) to the module. */
fg_status fg_module_call_init(PyObject *module);

#endif
