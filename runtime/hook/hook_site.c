/* Sites: their lives, owners and the list of all of them. What a call does with a site is in hook_dispatch.c, options are read in hook_options.c. */
#include "runtime/hook/hook_site.h"
#include "runtime/base/alloc.h"
#include "runtime/base/log.h"

#include <string.h>

static fg_site *all_sites;
static PyTypeObject fg_site_type;

/* --- the merged program of a snapshot --- */

static fg_status build_program(void *owner, fg_cache_entry *const *entries, size_t n, void *old, void **out)
{
    (void)owner;
    const fg_desc **descs = fg_malloc(n * sizeof *descs);
    if (descs == NULL)
        return FG_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        descs[i] = ((fg_entry *)entries[i])->desc;
    fg_program *program = NULL;
    fg_status st = fg_program_build(descs, n, old, &program);
    size_t share = st == FG_OK && n > 0 ? fg_program_nbytes(program) / n : 0;
    for (size_t i = 0; i < n && st == FG_OK; i++)
        ((fg_entry *)entries[i])->program_bytes = share;
    fg_free(descs);
    *out = program;
    return st;
}

static void free_program(void *program)
{
    fg_program_free(program);
}

static const fg_cache_ops site_cache_ops = {.build = build_program, .program_free = free_program};

/* --- lives --- */

uint32_t fg_site_cache_size(const fg_site *site)
{
    return site->options.cache_size ? site->options.cache_size : fg_hook.cache_size;
}

fg_status fg_site_new(PyCodeObject *code, const fg_site_options *options, fg_site **out)
{
    fg_site *site = PyObject_GC_New(fg_site, &fg_site_type);
    *out = site;
    if (site == NULL) {
        PyErr_Clear();
        return FG_ERR_NOMEM;
    }
    memset((char *)site + sizeof(PyObject), 0, sizeof *site - sizeof(PyObject));
    site->frame_id = -1;
    site->code = code;
    if (options != NULL) {
        site->options = *options;
        Py_XINCREF(site->options.dict);
    } else {
        site->options.dynamic = -1;
    }
    fg_cache_init(&site->cache, FG_CACHE_LOCKED, &site_cache_ops, site, NULL, fg_site_cache_size(site));
    site->next_all = all_sites;
    if (all_sites != NULL)
        all_sites->prev_all = site;
    all_sites = site;
    PyObject_GC_Track(site);
    return FG_OK;
}

void fg_site_take(fg_site *site)
{
    Py_INCREF(site);
}

void fg_site_drop(fg_site *site)
{
    Py_DECREF(site);
}

static void unlink_site(fg_site *site)
{
    if (site->prev_all != NULL)
        site->prev_all->next_all = site->next_all;
    else
        all_sites = site->next_all;
    if (site->next_all != NULL)
        site->next_all->prev_all = site->prev_all;
    site->next_all = site->prev_all = NULL;
}

/* A code object is none of the collector's, so its constants are visited from here; that is right only if nobody else keeps it: the entry, and the
 * targets made from it, which are their owners' alone (a target that runs has its frame's reference too). */
static int code_is_ours(const fg_site *site, const fg_entry *entry)
{
    Py_ssize_t known = 1;
    for (const fg_site_owner *owner = site->owners; owner != NULL; owner = owner->next)
        for (uint32_t i = 0; i < owner->n_targets; i++)
            if (owner->targets[i].uid == entry->uid && owner->targets[i].func != NULL) {
                if (Py_REFCNT(owner->targets[i].func) != 1)
                    return 0;
                known++;
            }
    return entry->code != NULL && Py_REFCNT(entry->code) == known;
}

/* Snapshots and entries are counted by who uses them: what somebody else counts belongs to the running program, and is not visited. */
static int site_traverse(PyObject *self, visitproc visit, void *arg)
{
    fg_site *site = (fg_site *)self;
    fg_cache_snapshot *snapshot = fg_cache_snapshot_peek(&site->cache);
    uint32_t n = snapshot != NULL && fg_load_relaxed(&snapshot->count) == 1 ? snapshot->n : 0;
    for (uint32_t i = 0; i < n; i++) {
        fg_entry *entry = (fg_entry *)snapshot->entries[i];
        if (fg_load_relaxed(&entry->link.count) != 1)
            continue;
        Py_VISIT(entry->graphs);
        Py_VISIT(entry->extra);
        int stop = entry->desc != NULL ? fg_desc_traverse(entry->desc, visit, arg) : 0;
        if (stop)
            return stop;
        if (code_is_ours(site, entry))
            Py_VISIT(entry->code->co_consts);
    }
    Py_VISIT(site->options.dict);
    return site->user_ops != NULL && site->user_ops->traverse != NULL ? site->user_ops->traverse(site->user, visit, arg) : 0;
}

/* Nobody but garbage knows the site. What garbage still calls on its way out runs plain. */
static int site_clear(PyObject *self)
{
    fg_site *site = (fg_site *)self;
    fg_registry_forget(site);
    site->is_garbage = 1;
    fg_site_reset(site);
    site->never = 1;
    if (site->user_ops != NULL && site->user_ops->clear != NULL)
        site->user_ops->clear(site->user);
    fg_site_options_clear(&site->options);
    return 0;
}

static void site_dealloc(PyObject *self)
{
    fg_site *site = (fg_site *)self;
    PyObject_GC_UnTrack(self);
    FG_ASSERT(site->owners == NULL);
    fg_registry_forget(site);
    unlink_site(site);
    fg_cache_fini(&site->cache, NULL);
    if (site->user_ops != NULL && site->user_ops->free != NULL)
        site->user_ops->free(site->user);
    fg_site_options_clear(&site->options);
    PyObject_GC_Del(self);
}

static PyTypeObject fg_site_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "framegate._core.Site",
    .tp_basicsize = sizeof(fg_site),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = site_dealloc,
    .tp_traverse = site_traverse,
    .tp_clear = site_clear,
};

fg_status fg_site_type_init(void)
{
    return PyType_Ready(&fg_site_type) < 0 ? FG_ERR_PYTHON : FG_OK;
}

void fg_site_user_set(fg_site *site, void *user, const fg_site_user_ops *ops)
{
    site->user = user;
    site->user_ops = ops;
}

/* --- owners --- */

void fg_site_owner_init(fg_site_owner *owner, PyObject *object)
{
    memset(owner, 0, sizeof *owner);
    owner->object = object;
}

void fg_site_owner_attach(fg_site_owner *owner, fg_site *site)
{
    fg_site *old = owner->site;
    if (old == site)
        return;
    if (site != NULL)
        fg_site_take(site);
    if (old != NULL) {
        *owner->link = owner->next;
        if (owner->next != NULL)
            owner->next->link = owner->link;
    }
    owner->site = site;
    owner->next = NULL;
    owner->link = NULL;
    if (site != NULL) {
        owner->next = site->owners;
        owner->link = &site->owners;
        if (owner->next != NULL)
            owner->next->link = &owner->next;
        site->owners = owner;
    }
    fg_target_drop_all(owner);
    if (old != NULL) {
        if (old->owners == NULL && old->registered != NULL)
            fg_registry_owner_gone(old);
        fg_site_drop(old);
    }
}

void fg_site_owner_fini(fg_site_owner *owner)
{
    fg_site_owner_attach(owner, NULL);
    fg_target_drop_all(owner);
}

int fg_site_owner_traverse(fg_site_owner *owner, visitproc visit, void *arg)
{
    for (uint32_t i = 0; i < owner->n_targets; i++)
        Py_VISIT(owner->targets[i].func);
    Py_VISIT(owner->site);
    return 0;
}

/* --- all sites --- */

void fg_site_reset(fg_site *site)
{
    fg_site_take(site);
    site->never = 0;
    site->n_vain = 0;
    site->vain_until = 0;
    site->next_entry_id = 0;
    for (fg_site_owner *owner = site->owners; owner != NULL; owner = owner->next) {
        owner->compiles = 0;
        owner->at_limit = 0;
    }
    fg_cache_reset(&site->cache, NULL);
    fg_target_purge(site);
    fg_site_drop(site);
}

void fg_site_reset_all(void)
{
    /* A reset may run anything: the site it works on and its successor are counted, and counted sites keep their place in the list. */
    fg_site *site = all_sites;
    if (site != NULL)
        fg_site_take(site);
    while (site != NULL) {
        fg_site_reset(site);
        if (site->owners == NULL && !site->options.immortal)
            fg_registry_forget(site);
        fg_site *next = site->next_all;
        if (next != NULL)
            fg_site_take(next);
        fg_site_drop(site);
        site = next;
    }
}

int fg_site_each(int (*visit)(fg_site *site, void *arg), void *arg)
{
    for (fg_site *site = all_sites; site != NULL; site = site->next_all) {
        int stop = visit(site, arg);
        if (stop)
            return stop;
    }
    return 0;
}

static int add_hits(fg_site *site, void *arg)
{
    const fg_cache_snapshot *snapshot = fg_cache_snapshot_peek(&site->cache);
    for (uint32_t i = 0; snapshot != NULL && i < snapshot->n; i++)
        *(uint64_t *)arg += ((fg_entry *)snapshot->entries[i])->hits;
    return 0;
}

uint64_t fg_site_total_hits(void)
{
    uint64_t total = fg_hook.counters[FG_COUNT_HITS];
    fg_site_each(add_hits, &total);
    return total;
}
