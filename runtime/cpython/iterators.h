/* Purpose:   read iterators, deques and views without advancing them and without running Python.
 * Model:     an iterator is its parts (objects: what it goes over, a function) and its state (numbers: position, what remains). The exact builtin
 *            types and those of itertools and collections are known; an instance of a subclass is none of them.
 * Invariants: no function here but init allocates, raises, runs Python or changes a reference count.
 * Threading: the GIL is held.
 * Ownership: parts and items are borrowed from the iterator or the container.
 */
#ifndef FG_CPYTHON_ITERATORS_H
#define FG_CPYTHON_ITERATORS_H

#include "runtime/cpython/dict.h"

/* Find the types that only a module names (itertools, collections, array). Without it they are unknown: nothing is told of their instances. */
fg_status fg_iterators_init(void);

/* The state by type, and its parts:
 *   tuple, list, reversed list, str, bytes, bytearray    (position, items that remain now)            0 the sequence
 *   range                                                (next, step, items that remain)
 *   dict keys, values, items and their reverses, set     (items that remain, 1 if its size is as it was)   0 the container
 *   OrderedDict keys, values, items                      (1 if its size is as it was)                 0 the dict, 1 the next key
 *   sequence iterator, reversed                          (position)                                   0 the sequence
 *   enumerate                                            (next number)                                0 the iterator
 *   zip                                                  (1 if strict)                                0 the tuple of iterators
 *   map                                                  ()                                           0 the tuple of iterators, 1 the function
 *   filter                                               ()                                           0 the iterator, 1 the function
 *   callable iterator                                    ()                                           0 the callable, 1 the sentinel
 *   itertools.count                                      (next number), () where it is no small int   0 the next number if it is an object, 1 the step
 *   itertools.repeat                                     (times that remain, -1 for ever)             0 the object
 *   itertools.chain                                      ()                                           0 the iterator of iterables, 1 the one under way
 *   itertools.islice                                     (next, stop, step, position)                 0 the iterator
 *   itertools.cycle                                      (position, 1 in the first round)             0 the iterator, 1 what it has saved
 *   deque iterator                                       (items that remain, 1 if the deque is as it was)   0 the deque
 * A part that is not there (any more) is NULL. */
#define FG_ITERATOR_STATE 4
#define FG_ITERATOR_PARTS 2
typedef struct fg_iterator {
    PyObject *parts[FG_ITERATOR_PARTS];
    int64_t state[FG_ITERATOR_STATE];
    int n_parts, n_state;
} fg_iterator;

/* 1 read, 0 no iterator whose state can be told. */
int fg_iterator_read(PyObject *object, fg_iterator *out);

/* What the iterator of a tuple, list or reversed list gives after `ahead` others: FOUND, ABSENT beyond the end, UNDECIDED for other objects. */
fg_find fg_iterator_item(PyObject *object, int64_t ahead, PyObject **value);

/* An exact itertools.count. */
int fg_is_count(PyObject *object);

/* 1 for a deque or an instance of a subclass; its item i, NULL beyond the end. */
int fg_is_deque(PyObject *object);
FG_BORROWED PyObject *fg_deque_item(PyObject *deque, int64_t index);

/* What a named tuple has under the name of a field. */
int fg_is_tuple_field(PyObject *object);

/* Number of items of an exact or inherited deque or array.array; of a range, if it fits; -1: another kind of object. */
Py_ssize_t fg_sized_length(PyObject *object);

/* The dict behind a view of its keys, values or items; NULL: no such view. */
FG_BORROWED PyObject *fg_view_dict(PyObject *object);

#endif
