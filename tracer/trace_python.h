/* Purpose:   small facts about Python objects and loaded libraries that several parts of the tracer ask for.
 * Threading: the GIL is held.
 */
#ifndef FG_TRACER_TRACE_PYTHON_H
#define FG_TRACER_TRACE_PYTHON_H

#include "tracer/trace.h"

/* The objects the tracer names: looked up once per process. */
typedef struct fg_py_names {
#define FG_NAME(ID, TEXT) PyObject *ID;
#include "tracer/trace_names.def"
#undef FG_NAME
    PyObject *object_setattr, *object_getattribute, *object_new, *object_init, *object_class;
    PyTypeObject *numpy_generic, *numpy_dtype, *numpy_ndarray, *numpy_ufunc, *numpy_bool, *numpy_dispatcher, *numpy_finfo, *numpy_iinfo;
} fg_py_names;
extern fg_py_names fg_names;
fg_status fg_py_names_init(void);

bool fg_py_is_numpy_scalar(PyTypeObject *type); /* numpy.generic of a numeric kind: immutable */
/* What is called is C code: no frame of Python code is between it and its caller. */
bool fg_py_is_c_code(PyObject *callable);
bool fg_py_is_library_constant(PyTypeObject *type); /* numpy dtype, ufunc, torch dtype/device/layout: immutable C objects */
bool fg_py_is_torch_type(PyTypeObject *type);
/* The rule that the package or the user gave for a callable, borrowed; NULL: none. Never raises. */
PyObject *fg_py_rule(PyObject *rules, PyObject *callable);
int fg_py_range_parts(fg_trace *t, PyObject *range, PyObject *parts[3]);
/* Look a name up in the MRO without running code; borrowed or NULL. */
PyObject *fg_py_type_lookup(PyTypeObject *type, PyObject *name);
/* The real module `torch.nn.Module` class or `torch` attribute if torch is loaded, borrowed (kept for the process) or NULL. */
PyObject *fg_py_torch_module_class(void);
PyObject *fg_py_torch_module_file(void);     /* the module torch.nn.modules.module */
PyTypeObject *fg_py_torch_tensor_type(void); /* torch.Tensor, NULL if torch is not loaded */
bool fg_py_is_torch_result(PyTypeObject *type);
/* The element that a name of it stands for, -1: none. */
Py_ssize_t fg_py_result_field(PyTypeObject *type, PyObject *name);
bool fg_py_is_limits(PyTypeObject *type); /* finfo and iinfo, of torch: immutable, a new object each time; of NumPy: one for each dtype */
bool fg_py_is_numpy_limits(PyTypeObject *type);
bool fg_py_is_torch_size(PyTypeObject *type);
/* What a function that pybind11 made is bound to: its own record, nothing of the user's. */
bool fg_py_is_function_record(PyObject *self);
bool fg_py_is_fake(PyObject *object);
FG_NEW PyObject *fg_py_callable_name(PyObject *callable);
bool fg_py_has_side_effects(PyObject *callable); /* print and its like: for the wording of a break */
bool fg_py_is_index(PyObject *callable);         /* operator.index */
int fg_py_pure_module(PyObject *callable);       /* 1: a function of math, 2: of operator, 0 */
bool fg_py_is_plain_exception(PyTypeObject *type);
bool fg_py_is_simple_exception(PyTypeObject *type, PyObject *kwnames);
bool fg_py_is_polyfill(PyCodeObject *code);
bool fg_py_is_library(PyCodeObject *code);
/* False for modules of the standard library that work for themselves (inspect, logging, re …); true for those that stand around calls of other code. */
bool fg_py_leads_to_users(PyCodeObject *code);
FG_NEW PyObject *fg_py_icode_capsule(FG_STEALS fg_icode *icode);

#endif
