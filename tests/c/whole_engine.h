/* Purpose:   the whole engine in one test program: framegate._core is built in, the package comes from the source tree.
 * Threading: call once, before Py_Initialize.
 */
#ifndef FG_TESTS_WHOLE_ENGINE_H
#define FG_TESTS_WHOLE_ENGINE_H

/* Make framegate._core importable. 0, or -1 (out of memory). */
int whole_engine_install(void);
/* After Py_Initialize: run a Python file of tests/c as __main__. 0, or -1 after its traceback was printed. */
int whole_engine_run(const char *name);

#endif
