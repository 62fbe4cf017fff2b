/* Purpose:   how a version wants frames disposed of that its own evaluator did not evaluate.
 * Model:     one implementation in each version's folder.
 * Threading: the GIL is held.
 * Ownership: after either function the frame and what it held are gone, or its caller sees to that.
 */
#ifndef FG_CPYTHON_EVAL_VERSION_H
#define FG_CPYTHON_EVAL_VERSION_H

#include "runtime/base/status.h"
#include "runtime/cpython/frame_fields.h"

/* Once, before the others. */
fg_status fg_version_eval_init(void);
/* The frame was evaluated by other means. It is fresh and its thread's newest on the stack of frames. A pending exception is kept. */
void fg_version_frame_done(PyThreadState *thread, _PyInterpreterFrame *frame);
/* End the frame with a RecursionError; gives NULL. */
FG_NEW PyObject *fg_version_frame_refuse(PyThreadState *thread, _PyInterpreterFrame *frame, int throwflag);

#endif
