/* Purpose:   a small tensor type of no known library, which exports the DLPack exchange table.
 * Model:     Tensor(shape, strides=None, dtype=(2, 32, 1), fail=False): a description without data; fail makes its table's function raise.
 * Threading: the GIL is held.
 * Ownership: the type is a new reference.
 */
#ifndef FG_TESTS_DLPACK_TYPE_H
#define FG_TESTS_DLPACK_TYPE_H

#include <Python.h>

PyObject *dlpack_type_new(int with_table, uint32_t major);

#endif
