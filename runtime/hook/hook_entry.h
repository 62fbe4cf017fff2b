/* Purpose:   one specialised version of a function: what the compiler hands over and the cache keeps.
 * Model:     guards decide whether it may run; code is the target, whose arguments are the description's outputs in order.
 * Invariants: immutable once published, but for hits, recency and validity. It holds no function object, globals dict, cell, tensor or frame of the user.
 * Threading: the GIL is held.
 * Ownership: counted through its cache link. The maker has the first count and hands it over by returning the entry from the compile callback.
 */
#ifndef FG_HOOK_ENTRY_H
#define FG_HOOK_ENTRY_H

#include "cache/cache.h"
#include "guards/guard_desc.h"
#include "runtime/cpython/straight.h"

typedef struct fg_entry {
    fg_cache_entry link; /* first member */
    uint64_t uid;        /* never used again in this process; assigned at publication */
    uint64_t hits;
    FG_OWNED PyCodeObject *code; /* the target's */
    uint8_t uses_closure;        /* the target function gets the user's function's closure */
    uint8_t is_host;             /* the target goes on in the user's own code */
    uint8_t planned;             /* straight was asked for */
    fg_straight *straight;       /* a way to run code without the interpreter's loop, or NULL */
    uint8_t published;
    uint8_t repeatable; /* a call may be run again on copies of what it reaches: no I/O, no hidden state, nothing shared is written */
    fg_desc *desc;      /* owned */
    /* For tools, never looked at on the hit path; all may be NULL. */
    FG_OWNED PyObject *graphs;
    FG_OWNED PyObject *extra;   /* dict */
    int32_t frame_id, entry_id; /* the compile id "frame/entry" */
    size_t nbytes;              /* of what the maker adds, its graphs; fg_entry_nbytes adds the rest */
    size_t program_bytes;       /* its share of the program that was built last with it */
} fg_entry;

/* An empty entry with count 1; the maker fills code, desc and what it likes. */
fg_status fg_entry_new(fg_entry **out);
static inline void fg_entry_take(fg_entry *entry)
{
    fg_cache_entry_take(&entry->link);
}
static inline void fg_entry_drop(fg_entry *entry)
{
    fg_cache_entry_drop(&entry->link);
}
/* Never hit again from now on. Only stores to memory. */
static inline void fg_entry_invalidate(fg_entry *entry)
{
    fg_cache_entry_invalidate(&entry->link);
}
size_t fg_entry_nbytes(const fg_entry *entry);

/* The Python view: framegate._core.Entry, which counts the entry. */
extern PyTypeObject fg_entry_object_type;
FG_NEW PyObject *fg_entry_object_new(fg_entry *entry, FG_BORROWED PyObject *backend);
/* The guards of an entry as Python sees them: framegate._core.Guards. */
FG_NEW PyObject *fg_entry_guards_new(fg_entry *entry);
/* The entry of such an object, borrowed; TypeError otherwise. */
fg_entry *fg_entry_object_get(FG_BORROWED PyObject *object);

#endif
