/* Purpose:   a site: the place where specialised versions are looked up, run and made.
 * Model:     a site has a cache of entries for one code object (or one resume point) and one set of options. Owners use it: a gate, a segment.
 *            An owner keeps what belongs to a function rather than to the code: run state, compile count, and the targets (function objects
 *            made from an entry's code with the caller's globals and closure).
 * Invariants: an entry is published only if its guards accept the view it was made for. Nothing runs between the last guard and the target.
 *            A site is not waited for: a miss while it compiles is PLAIN, unless wait_for_compile is on and another thread compiles.
 * Threading: the GIL is held.
 * Ownership: a site is an object that the collector sees: owners count it, it counts its snapshot through its cache and owns a reference to its options.
 *            A backend may hold the gate that has it, so the way gate, site, options or entries, gate must be one that can be collected.
 */
#ifndef FG_HOOK_SITE_H
#define FG_HOOK_SITE_H

#include "guards/guard_program.h"
#include "guards/guard_view.h"
#include "runtime/hook/hook_config.h"
#include "runtime/hook/hook_entry.h"

typedef struct fg_site fg_site;
typedef struct fg_site_owner fg_site_owner;

typedef enum fg_outcome {
    FG_OUTCOME_ERROR = -1, /* an exception is set; the call must not run */
    FG_OUTCOME_PLAIN = 0,  /* run the user's own code; nothing is set */
    FG_OUTCOME_HIT = 1     /* the target ran: *result, or NULL with the target's exception */
} fg_outcome;

typedef struct fg_site_options {
    FG_OWNED PyObject *dict;            /* all options as given, NULL: none. Ours alone, but the collector may clear it before who has it */
    Py_ssize_t n_items;                 /* of dict, while it was not cleared */
    FG_BORROWED PyObject *held_backend; /* dict["backend"], held by dict; NULL: none. Ask fg_site_options_backend */
    uint8_t fullgraph;
    int8_t dynamic;       /* -1: None */
    uint32_t cache_size;  /* 0: the configured default at the time of a compile */
    uint8_t immortal;     /* nothing in it that could lead to a gate: the registry may keep sites that have it */
    uint8_t only_backend; /* nothing but the backend */
} fg_site_options;

/* 0: the collector has cleared the dict; what had these options is garbage. */
static inline int fg_site_options_stand(const fg_site_options *options)
{
    return options->dict == NULL || PyDict_GET_SIZE(options->dict) == options->n_items;
}

/* Borrowed; NULL: none, or not any more. */
static inline PyObject *fg_site_options_backend(const fg_site_options *options)
{
    return fg_site_options_stand(options) ? options->held_backend : NULL;
}

/* One miss, as the compile callback sees it. Everything is borrowed and alive until the callback returns. */
typedef struct fg_compile_request {
    fg_site *site;
    fg_site_owner *owner;
    const fg_view *view;
    FG_BORROWED PyCodeObject *code; /* the user's; of a segment what fg_site_new was given */
    const fg_site_options *options;
    FG_BORROWED PyObject *object; /* the gate or segment, may be NULL */
    void *user;                   /* fg_site_user of this site */
    int32_t frame_id, entry_id;
    int n_entries;  /* living entries of this site: 0 is a first compile */
    uint64_t pause; /* misses that run plain before the next compile, if this one too gives no entry; 0: none */
    /* Out: with FG_ERR_UNSUPPORTED, 1 means whatever the arguments: this site never compiles again until reset. */
    int forever;
} fg_compile_request;

/* FG_OK: *out is an entry that is handed over (NULL counts as unsupported). FG_ERR_PYTHON: the exception goes to the caller. Anything else:
 * the call runs plain. */
typedef fg_status (*fg_compile_fn)(fg_compile_request *request, fg_entry **out);
void fg_hook_compile_set(fg_compile_fn compile);

typedef struct fg_target {
    uint64_t uid; /* of its entry, 0: none */
    FG_OWNED PyObject *func;
} fg_target;

/* What the upper layer keeps with a site. Each function may be NULL. */
typedef struct fg_site_user_ops {
    int (*traverse)(void *user, visitproc visit, void *arg); /* references that it owns */
    void (*clear)(void *user);                               /* give them up; the site stays */
    void (*free)(void *user);                                /* the site dies */
} fg_site_user_ops;

struct fg_site {
    PyObject_HEAD fg_cache cache;
    uint32_t compiling;  /* fork generation that is compiling here, 0: nobody */
    uint8_t never;       /* a compile said "forever" */
    uint8_t n_vain;      /* compiles in a row that gave no entry */
    uint64_t vain_until; /* no other before this miss */
    int32_t frame_id;    /* -1 until the first compile */
    int32_t next_entry_id;
    uint64_t misses;
    FG_BORROWED PyCodeObject *code; /* the registry's owners keep it alive while they use the site */
    fg_site_options options;
    fg_site_owner *owners;
    void *user;
    const fg_site_user_ops *user_ops;
    fg_site *next_all, *prev_all; /* list of all sites */
    fg_site *next_of_code;        /* registry: sites of one code object */
    void *registered;             /* registry: the code's row, NULL if this site is in none */
    uint8_t kept;                 /* registry: it counts this site */
    uint8_t is_garbage;           /* the collector has cleared it */
};

struct fg_site_owner {
    fg_site *site;
    fg_target *targets; /* at the index the entry has in the snapshot, moved there when found elsewhere */
    uint32_t n_targets;
    uint8_t state;    /* fg_run_state */
    uint8_t shared;   /* used by several functions (a segment, a row of an interception): targets are lent what is the function's */
    uint8_t at_limit; /* recompile_limit was reached: as run-only until reset */
    uint32_t compiles;
    uint32_t recompile_limit; /* 0: the configured default */
    FG_BORROWED PyObject *object;
    fg_site_owner *next, **link; /* list of the site's owners */
};

/* A site of its own (segments); *options is copied with a new reference. code is borrowed: the caller keeps it alive. */
fg_status fg_site_new(PyCodeObject *code, const fg_site_options *options, fg_site **out);
void fg_site_take(fg_site *site);
void fg_site_drop(fg_site *site);
/* The upper layer's data of a site. */
void fg_site_user_set(fg_site *site, void *user, const fg_site_user_ops *ops);
fg_status fg_site_type_init(void);

/* *options from a dict (or NULL/None): backend, backend_lives (it is known by name and lives for ever), fullgraph, dynamic, cache_size are read, the rest
 * is kept. */
fg_status fg_site_options_read(FG_BORROWED PyObject *dict, fg_site_options *out);
void fg_site_options_clear(fg_site_options *options);
/* Identity for objects, value for None, bool, int and str; recompile_limit is an owner's and does not count. 1, 0, never fails. */
int fg_site_options_equal(const fg_site_options *a, const fg_site_options *b);

/* The shared site of a code object and options, counted for the caller. */
fg_status fg_registry_site(PyCodeObject *code, const fg_site_options *options, fg_site **out);

void fg_site_owner_init(fg_site_owner *owner, FG_BORROWED PyObject *object);
/* Change the site (counted by the owner from then on); NULL detaches. Drops the targets. */
void fg_site_owner_attach(fg_site_owner *owner, fg_site *site);
void fg_site_owner_fini(fg_site_owner *owner);
int fg_site_owner_traverse(fg_site_owner *owner, visitproc visit, void *arg);

/* Look up, run; on a miss compile, publish and run. The caller has done the checks that are not the site's (fg_hook.plain, tracing, stack). */
fg_outcome fg_site_dispatch(fg_site_owner *owner, const fg_view *view, FG_NEW PyObject **result);

/* The entry that this view would hit (counted), without running or compiling anything; *out NULL: none. */
fg_status fg_site_find(fg_site *site, const fg_view *view, fg_entry **out);

/* Give the site an entry made by somebody else: steals the count. It is published if its guards accept the view (FG_ERR_INVALID otherwise);
 * with view NULL unchecked. */
fg_status fg_site_publish(fg_site *site, fg_entry *entry, const fg_view *view);

/* Drop entries, limits and the "never" mark; targets of its owners too. */
void fg_site_reset(fg_site *site);
void fg_site_reset_all(void);
/* Call for each living site until visit gives non-zero; visit must not run Python. */
int fg_site_each(int (*visit)(fg_site *site, void *arg), void *arg);
/* Sum of hits of all living entries and of those gone. */
uint64_t fg_site_total_hits(void);
/* Entries that the site may keep now. */
uint32_t fg_site_cache_size(const fg_site *site);

/* Layer-internal (hook_target.c, hook_site.c). */
fg_status fg_target_make(const fg_site_owner *owner, fg_entry *entry, const fg_view *view, FG_NEW PyObject **out);
/* A shared owner's targets have no globals and no closure between calls (rest); a call lends its own and takes them back when the target has returned. */
typedef enum fg_lend { FG_LEND_TAKEN, FG_LEND_RUNS, FG_LEND_LENT } fg_lend;
fg_status fg_target_rest(PyObject *target);
/* TAKEN: it is in use with the globals or closure of another function. RUNS: with these. */
fg_lend fg_target_lend(PyObject *target, const fg_view *view);
void fg_target_returned(fg_site_owner *owner, PyObject *target);
/* Keep a target at this index; steals func. */
fg_status fg_target_keep(fg_site_owner *owner, uint32_t index, const fg_entry *entry, FG_STEALS PyObject *func);
/* Move an existing target of the entry to this index; 0: there is none. */
int fg_target_move(fg_site_owner *owner, uint32_t index, const fg_entry *entry);
/* Drop targets whose entries are in no snapshot any more. */
void fg_target_purge(fg_site *site);
void fg_target_drop_all(fg_site_owner *owner);
void fg_registry_owner_gone(fg_site *site);
/* Take a site out of the registry, which gives up its count. */
void fg_registry_forget(fg_site *site);

#endif
