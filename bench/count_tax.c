/* Counts the instructions of plain Python code, under callgrind: `count_tax MODE`. tax_code.py (on PYTHONPATH) has the workloads and
 * what each mode does first. Each workload runs in two lengths, each a part of callgrind's output; their difference over the difference of
 * the lengths is what one iteration costs, whatever surrounds the loop. tools/counts.py compares the modes. */
#include <Python.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

enum { SHORT = 200, LONG = 1200 };

/* ---- an allocator whose every call costs the same, whatever the heap looks like ------------------------------------------------------------
 * CPython's own costs a little more in a pool that happens to be full, and libc's looks at the neighbours of a block; which of that a loop meets
 * is decided by all that was allocated before it. Here a block belongs to a class of sizes, powers of two, and is taken from and put back to the
 * front of that class's list. The word before a block is its class. All callers hold the GIL. */

enum { CLASSES = 48, SMALLEST = 6, REFILL = 1 << 20 };

static void *free_blocks[CLASSES];

static unsigned class_of(size_t n)
{
    return n + 16 <= (size_t)1 << SMALLEST ? SMALLEST : 64u - (unsigned)__builtin_clzll(n + 15);
}

/* Fills a list in one go, so that it happens before the counting. */
static void refill(unsigned class)
{
    size_t each = (size_t)1 << class, room = each > REFILL ? each : REFILL;
    char *memory = aligned_alloc(64, room);
    for (size_t at = 0; memory && at < room; at += each) {
        void **block = (void **)(memory + at + 16);
        memcpy(memory + at + 8, &(uint64_t){class}, sizeof(uint64_t));
        *block = free_blocks[class];
        free_blocks[class] = block;
    }
}

static void *block_new(void *context, size_t n)
{
    unsigned class = class_of(n);
    (void)context;
    if (!free_blocks[class])
        refill(class);
    void **block = free_blocks[class];
    if (block)
        free_blocks[class] = *block;
    return block;
}

static void *block_zeroed(void *context, size_t count, size_t each)
{
    void *block = block_new(context, count * each);
    return block ? memset(block, 0, count * each) : NULL;
}

static uint64_t block_class(const void *block)
{
    uint64_t class;
    memcpy(&class, (const char *)block - 8, sizeof class);
    return class;
}

static void block_free(void *context, void *block)
{
    (void)context;
    if (block) {
        uint64_t class = block_class(block);
        *(void **)block = free_blocks[class];
        free_blocks[class] = block;
    }
}

static void *block_resize(void *context, void *block, size_t n)
{
    if (!block)
        return block_new(context, n);
    size_t room = ((size_t)1 << block_class(block)) - 16;
    if (n <= room)
        return block;
    void *larger = block_new(context, n);
    if (larger) {
        memcpy(larger, block, room);
        block_free(context, block);
    }
    return larger;
}

static void allocator_set(void)
{
    PyMemAllocatorEx allocator = {NULL, block_new, block_zeroed, block_resize, block_free};
    PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &allocator);
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &allocator);
}

/* ---- counting ------------------------------------------------------------------------------------------------------------------------------ */

/* around(workload, n) of tax_code.py. */
static int run(PyObject *around, PyObject *workload, int n)
{
    PyObject *done = PyObject_CallFunction(around, "Oi", workload, n);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int count(PyObject *around, PyObject *name, PyObject *workload)
{
    char label[128];
    for (int i = 0; i < 3; i++)
        if (run(around, workload, SHORT) < 0)
            return -1;
    CALLGRIND_START_INSTRUMENTATION;
    for (int n = SHORT; n <= LONG; n += LONG - SHORT) {
        snprintf(label, sizeof label, "%s run %d", PyUnicode_AsUTF8(name), n);
        CALLGRIND_ZERO_STATS;
        if (run(around, workload, n) < 0)
            return -1;
        CALLGRIND_DUMP_STATS_AT(label);
    }
    CALLGRIND_STOP_INSTRUMENTATION;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2 || !RUNNING_ON_VALGRIND) {
        fprintf(stderr, "count_tax MODE, under valgrind: ./dev counts\n");
        return 2;
    }
    PyPreConfig before;
    PyPreConfig_InitPythonConfig(&before);
    if (PyStatus_Exception(Py_PreInitialize(&before)))
        return 1;
    allocator_set();
    Py_Initialize();
    PyObject *module = PyImport_ImportModule("tax_code"), *name, *workload;
    PyObject *around = module ? PyObject_CallMethod(module, "prepare", "s", argv[1]) : NULL;
    PyObject *workloads = around ? PyObject_GetAttrString(module, "WORKLOADS") : NULL;
    for (Py_ssize_t at = 0; workloads && PyDict_Next(workloads, &at, &name, &workload);)
        if (count(around, name, workload) < 0)
            break;
    if (PyErr_Occurred()) {
        PyErr_Print();
        return 1;
    }
    return 0;
}
