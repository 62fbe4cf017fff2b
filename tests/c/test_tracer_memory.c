/* The engine when memory runs out: each allocation between a miss and the answer of the call, the engine's own and the interpreter's, is made to
 * fail in turn. The cases and what is asserted of them are in tracer_memory.py; here is only what makes allocations fail. */
#include <Python.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/c/alloc_failing.h"
#include "tests/c/whole_engine.h"

/* --- the interpreter's allocators --- */

static PyMemAllocatorEx below[3];
static int with_python; /* do allocations of the interpreter count? */

static int python_fails(void)
{
    return with_python && alloc_failing_now();
}

static void *failing_malloc(void *context, size_t size)
{
    PyMemAllocatorEx *to = context;
    return python_fails() ? NULL : to->malloc(to->ctx, size);
}

static void *failing_calloc(void *context, size_t count, size_t size)
{
    PyMemAllocatorEx *to = context;
    return python_fails() ? NULL : to->calloc(to->ctx, count, size);
}

static void *failing_realloc(void *context, void *block, size_t size)
{
    PyMemAllocatorEx *to = context;
    return python_fails() ? NULL : to->realloc(to->ctx, block, size);
}

static void failing_free(void *context, void *block)
{
    PyMemAllocatorEx *to = context;
    to->free(to->ctx, block);
}

static void python_install(void)
{
    static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
    for (int i = 0; i < 3; i++) {
        PyMem_GetAllocator(domains[i], &below[i]);
        PyMemAllocatorEx above = {&below[i], failing_malloc, failing_calloc, failing_realloc, failing_free};
        PyMem_SetAllocator(domains[i], &above);
    }
}

/* --- what the cases call --- */

static PyObject *failing_at(PyObject *self, PyObject *args)
{
    Py_ssize_t n;
    int all;
    (void)self;
    if (!PyArg_ParseTuple(args, "np", &n, &all))
        return NULL;
    with_python = all;
    alloc_failing_at((size_t)n);
    Py_RETURN_NONE;
}

static PyObject *failing_off(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    alloc_failing_disarm();
    return PyBool_FromLong(alloc_failing_fired());
}

static PyObject *failing_living(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return PyLong_FromSize_t(alloc_failing_living());
}

static PyObject *failing_living_bytes(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return PyLong_FromSize_t(alloc_failing_living_bytes());
}

static PyMethodDef methods[] = {
    {"at", failing_at, METH_VARARGS, "at(n, all): the nth allocation from now on fails; all: the interpreter's count too."},
    {"off", failing_off, METH_NOARGS, "Nothing fails any more. True if something did."},
    {"living", failing_living, METH_NOARGS, "Blocks of the engine in use."},
    {"living_bytes", failing_living_bytes, METH_NOARGS, "Their bytes."},
    {0},
};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "failing", .m_size = -1, .m_methods = methods};

static PyObject *init_failing(void)
{
    return PyModule_Create(&definition);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_int_equal(whole_engine_run("tracer_memory.py"), 0);
}

static void nbytes_is_what_the_allocator_counts(void **state)
{
    (void)state;
    assert_int_equal(whole_engine_run("entry_memory.py"), 0);
}

static int start(void **state)
{
    (void)state;
    alloc_failing_install();
    if (whole_engine_install() < 0 || PyImport_AppendInittab("failing", init_failing) < 0)
        return -1;
    Py_Initialize();
    python_install();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nbytes_is_what_the_allocator_counts), cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, start, NULL);
}
