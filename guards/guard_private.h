/* Purpose:   the inside of a description, shared by the files of this layer.
 * Model:     nodes[] (sources), guards[] (conditions and relations), outputs[] and holds[] only grow at the end; a mark is their four lengths and
 *            rewinding pops. Hash chains are threaded through the records, newest first, so that popping is taking the head.
 * Invariants: nodes[i].parent < i. A hold belongs to the newest record that was added when it was taken (holds_before).
 * Threading: the GIL is held.
 * Ownership: holds[] owns every object of the user or of the program that the description mentions; records only borrow from it.
 */
#ifndef FG_GUARD_PRIVATE_H
#define FG_GUARD_PRIVATE_H
#include <string.h>

#include "guards/guard_const.h"
#include "guards/guard_desc.h"
#include "guards/guard_expr.h"
#include "guards/guard_program.h"
#include "runtime/base/alloc.h"
#include "runtime/cpython/dict.h"

/* What a body compares with. p: TYPE, ID: an address that is compared only. CONST, keys and names: the object. TENSOR: fg_meta_record.
 * TORCH_STATE: fg_torch_state. NODES, EXPR: the sources, lo of them; hi is the address of the expression. lo, hi: the ints of INT and RANGE; for CONST lo is the value and hi 1 when it is an int that fits; for keys and
 * names lo is the hash. */
typedef struct fg_leaf {
    const void *p;
    int64_t lo, hi;
} fg_leaf;

typedef struct fg_meta_record {
    const fg_tensor_adaptor *adaptor; /* NULL: unknown here, never matches */
    const PyTypeObject *type;         /* address only; NULL: unbound, never matches */
    uint64_t keys;
    int32_t dtype;
    int16_t device_type, device_index;
    uint8_t requires_grad, layout;
    int32_t ndim;
    int64_t dims[]; /* ndim sizes, then ndim strides */
} fg_meta_record;

typedef struct fg_hold {
    FG_OWNED PyObject *ref;   /* the object, or the weak reference to it; NULL: unbound */
    PyObject *raw;            /* its address; NULL: unbound */
    FG_OWNED PyObject *label; /* str: how an unbound one was written; NULL otherwise */
    uint8_t weak;
    uint8_t own; /* made for the entry (fg_desc_own) */
} fg_hold;

typedef struct fg_node_record {
    uint8_t acc;    /* fg_accessor */
    uint8_t impure; /* reading it or an ancestor may run Python */
    fg_node parent;
    int64_t index;
    PyObject *key;  /* borrowed from its hold; NULL: none, or unbound (see hold) */
    Py_hash_t hash; /* of the key */
    uint64_t chain_hash;
    int32_t hold; /* -1: none */
    int32_t chain_next;
    int32_t output; /* position, -1: none */
    uint32_t holds_before;
} fg_node_record;

typedef struct fg_guard_record {
    uint8_t kind; /* fg_guard_kind */
    fg_node node; /* FG_NODE_NONE for the torch states and relations */
    fg_leaf leaf;
    void *owned;             /* fg_meta_record, fg_torch_state or the node array of a relation, with the expression behind it */
    uint32_t n_ids;          /* relations: ids is owned, as fg_node[] */
    int32_t hold;            /* -1: none */
    FG_OWNED PyObject *file; /* NULL: unknown */
    int line;
    FG_OWNED PyObject *library; /* TENSOR: the adaptor's name, for text */
    uint64_t chain_hash;
    int32_t chain_next;
    uint32_t holds_before;
} fg_guard_record;

struct fg_desc {
    fg_node_record *nodes;
    fg_guard_record *guards;
    fg_node *outputs;
    fg_hold *holds;
    uint32_t n_nodes, cap_nodes, n_guards, cap_guards, n_outputs, cap_outputs, n_holds, cap_holds;
    int32_t *node_heads, *guard_heads; /* chains; both of n_heads (a power of two) */
    uint32_t n_heads;
    size_t block_bytes;
    void *block; /* sealed: all arrays, and what the guards own, are in it; nothing can be added */
    FG_OWNED PyObject *slot_names, *free_names;
    FG_OWNED PyObject *watch; /* callback object of the weak references */
    int dead;                 /* something held weakly has died; stored from inside GC */
    void (*invalidate)(void *entry);
    void *entry;
};

/* What was made for the entry (fg_desc_own) is no condition, and nothing that a text could name. */
static inline int fg_node_is_own(const fg_desc *desc, fg_node node)
{
    return desc->nodes[node].hold >= 0 && desc->holds[desc->nodes[node].hold].own;
}

/* ---- tables over the .def files ---- */
typedef enum fg_key_class { FG_KEY_NONE, FG_KEY_INDEX, FG_KEY_NAME, FG_KEY_OBJECT } fg_key_class;
typedef enum fg_arg_class {
    FG_ARG_NONE,
    FG_ARG_OBJECT,
    FG_ARG_INT,
    FG_ARG_RANGE,
    FG_ARG_META,
    FG_ARG_STATE,
    FG_ARG_NODES,
    FG_ARG_EXPR
} fg_arg_class;
const char *fg_accessor_text(fg_accessor acc);
fg_key_class fg_accessor_key(fg_accessor acc);
fg_arg_class fg_guard_arg_class(fg_guard_kind kind);
int fg_accessor_is_root(fg_accessor acc);

void fg_desc_free_arrays(fg_desc *desc);

/* ---- holds (guard_hold.c) ---- */
typedef enum fg_hold_mode {
    FG_HOLD_IDENTITY, /* weakly where it can be; a container of the user's is refused */
    FG_HOLD_OWNED,    /* strongly, whatever it is: for the callable of ACCEPTS (see fg_desc_traverse) */
    FG_HOLD_VALUE     /* a scalar, a name, a plain key: strongly, but a class of the user's weakly */
} fg_hold_mode;
fg_status fg_hold_take(fg_desc *desc, PyObject *object, fg_hold_mode mode, int32_t *out);
fg_status fg_hold_unbound(fg_desc *desc, PyObject *label, int32_t *out);
void fg_hold_pop_to(fg_desc *desc, uint32_t n);
/* The object while it lives, borrowed; NULL: dead or unbound. */
static inline PyObject *fg_hold_get(const fg_hold *hold)
{
    if (!hold->weak)
        return hold->ref;
    PyObject *object = fg_weakref_target(hold->ref);
    return object == Py_None ? NULL : object;
}
FG_BORROWED PyObject *fg_watch_get(fg_desc *desc); /* made when it is wanted first; NULL with an exception */
void fg_watch_forget(fg_desc *desc);
/* 1 if a weak reference's callback is that of a description, of whichever. */
int fg_watch_is(const PyObject *callback);

/* 1 for the kinds that are on no source. */
static inline int fg_guard_is_loose(fg_guard_kind kind)
{
    return kind == FG_GUARD_TORCH_STATE || kind == FG_GUARD_TORCH_GLOBALS || kind == FG_GUARD_ABC_TOKEN;
}

/* 1 if the argument of this kind is an object by its address (held as FG_HOLD_IDENTITY), not by its value. */
static inline int fg_guard_is_identity(fg_guard_kind kind)
{
    return kind == FG_GUARD_TYPE || kind == FG_GUARD_ID || kind == FG_GUARD_ACCEPTS || kind == FG_GUARD_SUBTYPE ||
           kind == FG_GUARD_NO_SUBTYPE;
}

/* ---- records (guard_desc.c) ---- */
/* As the public ones, but the key or the argument's object may be an unbound hold with this label, and the origin is a file name. */
fg_status fg_desc_source_any(fg_desc *desc, fg_accessor acc, fg_node parent, PyObject *key, PyObject *label, int64_t index, fg_node *out);
fg_status fg_desc_guard_any(fg_desc *desc, fg_guard_kind kind, fg_node node, const fg_guard_arg *arg, PyObject *label, PyObject *library,
                            PyObject *file, int line);
fg_status fg_desc_relation_any(fg_desc *desc, fg_guard_kind kind, const fg_node *nodes, size_t n, const fg_expr *expr, PyObject *file,
                               int line);
/* The expression of an EXPR, NULL for other relations. */
static inline const fg_expr *fg_guard_expr(fg_guard_kind kind, const fg_leaf *leaf)
{
    return kind == FG_GUARD_EXPR ? (const fg_expr *)(intptr_t)leaf->hi : NULL;
}
/* The length that the kind LENGTH speaks of, -1: of another kind of object. */
Py_ssize_t fg_builtin_length(PyObject *v);
int fg_leaf_same(fg_guard_kind kind, const fg_leaf *a, const fg_leaf *b);
uint64_t fg_leaf_hash(fg_guard_kind kind, const fg_leaf *leaf);
int fg_meta_same(const fg_meta_record *a, const fg_meta_record *b);
int fg_state_same(const fg_torch_state *a, const fg_torch_state *b);
/* The tensor record that a condition of the node has, or NULL. */
const fg_meta_record *fg_desc_meta_of(const fg_desc *desc, fg_node node);
/* The exact type that a condition of the node demands (TYPE, TENSOR), an address; NULL: none. */
const PyTypeObject *fg_desc_type_of(const fg_desc *desc, fg_node node);

/* ---- what an entry needs of each source (guard_want.c) ---- */
enum { FG_WANT_PRESENT = 1, FG_WANT_ABSENT = 2 };
typedef struct fg_want {
    uint8_t *of_node;  /* FG_WANT_ bits; 0: the source takes no part */
    int32_t *by_node;  /* guard indices grouped by node, ascending; relations and states last */
    uint32_t *first;   /* n_nodes + 2 positions in by_node */
    uint8_t *impure;   /* of each guard: fg_guard_is_impure */
    uint32_t n_impure; /* what may run Python: sources that take part, conditions, the users' callables */
    uint8_t user;      /* there is an ACCEPTS */
    uint8_t never;     /* cannot match: wants something both present and absent, or mentions something unbound */
} fg_want;
/* 1 if evaluating the condition may run Python: it is on an impure source, or goes through an adaptor that does not declare what it uses pure. A
 * user's callable is told apart by its kind. */
int fg_guard_is_impure(const fg_desc *desc, const fg_guard_record *guard);
fg_status fg_want_init(const fg_desc *desc, fg_want *want);
void fg_want_fini(fg_want *want);

/* ---- walking one description (guard_walk.c) ---- */
typedef struct fg_walk fg_walk;
struct fg_walk {
    const fg_desc *desc;
    const fg_view *view;
    fg_want want;
    PyObject **values; /* of the sources; NULL where there is none */
    uint8_t *failed;   /* the source has no legal value, or a condition on it failed */
    PyObject **held;   /* new references taken in the impure pass */
    uint32_t n_held;
    int keep_going;
    /* Evaluate one condition, v NULL for relations and states: 1, 0, -1 error. Told of a source that cannot be read, too. */
    int (*fact)(fg_walk *walk, const fg_guard_record *guard, PyObject *v);
    int (*unreadable)(fg_walk *walk, fg_node node, int found); /* 0 or -1 */
    void *context;
};
/* 1 all hold, 0 not, -1 error (FG_ERR_NOMEM or a Python exception is set; the exception is set in both cases). */
int fg_walk_run(fg_walk *walk);
/* fg_desc_check that also gives the sources' values and the references that keep the impure ones alive. All three are the caller's to free (the
 * references by fg_eval_release), whatever the answer. */
int fg_desc_check_values(const fg_desc *desc, const fg_view *view, PyObject ***values, PyObject ***held, uint32_t *n_held);
/* 1 for the relations whose sources are read as tensors; adaptors of their sources, in order, by the tensor or the type that another condition
 * demands, NULL: none. out has room for guard->n_ids. */
static inline int fg_relation_reads_tensors(fg_guard_kind kind)
{
    return kind == FG_GUARD_STORAGE_DISTINCT || kind == FG_GUARD_MEMORY_APART || kind == FG_GUARD_EXPR;
}
const fg_tensor_adaptor *fg_relation_adaptor(const fg_desc *desc, fg_node node);
void fg_relation_adaptors(const fg_desc *desc, const fg_guard_record *guard, const fg_tensor_adaptor **out);

/* 1 if instances of the type have a member of PyObject pointer type at this offset. */
int fg_slot_is_member(const PyTypeObject *type, int64_t offset);

/* ---- text pieces ---- */
FG_NEW PyObject *fg_object_text(PyObject *object); /* exact form of a constant or identity */
FG_NEW PyObject *fg_hold_text(const fg_hold *hold);
FG_NEW PyObject *fg_guard_arg_text(const fg_desc *desc, const fg_guard_record *guard); /* exact form of the argument, "" if it has none */
/* For people (guard_words.c): a constant or identity, an argument, any value in short. sized_of: its length by its storage, -1: none. */
FG_NEW PyObject *fg_plain_text(PyObject *object);
FG_NEW PyObject *fg_plain_hold(const fg_hold *hold);
FG_NEW PyObject *fg_plain_arg(const fg_desc *desc, const fg_guard_record *guard);
FG_NEW PyObject *fg_value_brief(PyObject *value);
static inline const char *fg_article(const char *name)
{
    return *name != 0 && strchr("aeiouAEIOU", *name) != NULL ? "an" : "a";
}
Py_ssize_t fg_sized_of(PyObject *value);
FG_NEW PyObject *fg_state_sentence(const fg_torch_state *state);
FG_NEW PyObject *fg_guard_sentence(const fg_desc *desc, const fg_guard_record *guard); /* for people: "x.lr == 0.1" */
FG_NEW PyObject *fg_meta_sentence(const fg_meta_record *meta, PyObject *source, PyObject *type);
/* How one field differs, the field by the name it has in guard_bodies.h. */
FG_NEW PyObject *fg_meta_difference(const char *field, const fg_tensor_adaptor *adaptor, int64_t seen, int64_t want);
FG_NEW PyObject *fg_state_difference(const char *field, int64_t seen, int64_t want);
FG_NEW PyObject *fg_guard_origin_text(const fg_guard_record *guard); /* "  (file:line)" or "" */
/* "module:qualname" that leads back to the object, or None; NULL: error. */
FG_NEW PyObject *fg_identity_name(PyObject *object);
/* The object of that name among the modules that are loaded, or NULL (no exception: there is none). */
FG_NEW PyObject *fg_identity_find(PyObject *name);
/* Append the formatted text to a list of str; 0 or -1. */
int fg_text_add(PyObject *list, const char *format, ...);
/* Append the text (taken; NULL: error passed on). */
int fg_text_take(PyObject *list, FG_STEALS PyObject *text);
FG_NEW PyObject *fg_text_join(FG_STEALS PyObject *list, const char *separator);

/* Grow an array by doubling; FG_ERR_NOMEM leaves it as it was. */
fg_status fg_grow(void *array, uint32_t *cap, uint32_t need, size_t item);

/* What a class made by C has under a name. */
static inline int fg_is_descriptor(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    return type == &PyMethodDescr_Type || type == &PyClassMethodDescr_Type || type == &PyGetSetDescr_Type || type == &PyMemberDescr_Type ||
           type == &PyWrapperDescr_Type;
}

#endif
