/* Sites: their lives, options, owners and the list of all of them. What a call does with a site is in hook_dispatch.c. */
#include "runtime/hook/hook_site.h"
#include "runtime/base/alloc.h"
#include "runtime/base/log.h"

#include <string.h>

static fg_site *all_sites;

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
    fg_free(descs);
    *out = program;
    return st;
}

static void free_program(void *program)
{
    fg_program_free(program);
}

static const fg_cache_ops site_cache_ops = {.build = build_program, .program_free = free_program};

/* --- options --- */

static fg_status read_count(PyObject *value, const char *name, uint32_t *out)
{
    if (value == NULL || value == Py_None)
        return FG_OK;
    long count = PyLong_AsLong(value);
    if (count == -1 && PyErr_Occurred())
        return FG_ERR_PYTHON;
    if (count < 1 || count > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s must be a positive integer", name);
        return FG_ERR_PYTHON;
    }
    *out = (uint32_t)count;
    return FG_OK;
}

/* *out is borrowed, NULL: there is none. */
static fg_status read_item(PyObject *dict, const char *name, PyObject **out)
{
    PyObject *key = PyUnicode_FromString(name);
    if (key == NULL)
        return FG_ERR_PYTHON;
    *out = PyDict_GetItemWithError(dict, key);
    Py_DECREF(key);
    return *out == NULL && PyErr_Occurred() ? FG_ERR_PYTHON : FG_OK;
}

fg_status fg_site_options_read(PyObject *dict, fg_site_options *out)
{
    fg_status st = FG_OK;
    PyObject *value;
    memset(out, 0, sizeof *out);
    out->dynamic = -1;
    if (dict == NULL || dict == Py_None)
        return FG_OK;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "options must be a dict or None, not '%.200s'", Py_TYPE(dict)->tp_name);
        return FG_ERR_PYTHON;
    }
    /* A copy: what a site was found by must not change under it. */
    if ((out->dict = PyDict_Copy(dict)) == NULL)
        return FG_ERR_PYTHON;
    FG_TRY(read_item(out->dict, "backend", &out->backend));
    FG_TRY(read_item(out->dict, "fullgraph", &value));
    if (value != NULL) {
        int truth = PyObject_IsTrue(value);
        if (truth < 0) {
            st = FG_ERR_PYTHON;
            goto fail;
        }
        out->fullgraph = (uint8_t)truth;
    }
    FG_TRY(read_item(out->dict, "dynamic", &value));
    if (value != NULL && value != Py_None)
        out->dynamic = value == Py_True;
    FG_TRY(read_item(out->dict, "cache_size", &value));
    FG_TRY(read_count(value, "cache_size", &out->cache_size));
    return FG_OK;
fail:
    fg_site_options_clear(out);
    return st;
}

void fg_site_options_clear(fg_site_options *options)
{
    options->backend = NULL;
    Py_CLEAR(options->dict);
}

/* Runs no code of the user: exact types whose comparison is C's own, identity for the rest. */
static int values_equal(PyObject *a, PyObject *b)
{
    if (a == b)
        return 1;
    if (Py_TYPE(a) != Py_TYPE(b))
        return 0;
    if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a) || PyFloat_CheckExact(a)) {
        int equal = PyObject_RichCompareBool(a, b, Py_EQ);
        if (equal < 0)
            PyErr_Clear();
        return equal == 1;
    }
    if (PyDict_CheckExact(a)) {
        fg_site_options one = {.dict = a}, two = {.dict = b};
        return fg_site_options_equal(&one, &two);
    }
    return 0;
}

static Py_ssize_t n_options(PyObject *dict)
{
    Py_ssize_t at = 0, n = 0;
    PyObject *key, *value;
    while (dict != NULL && PyDict_Next(dict, &at, &key, &value))
        n += !(PyUnicode_CheckExact(key) && PyUnicode_CompareWithASCIIString(key, "recompile_limit") == 0);
    return n;
}

int fg_site_options_equal(const fg_site_options *a, const fg_site_options *b)
{
    if (n_options(a->dict) != n_options(b->dict))
        return 0;
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (a->dict != NULL && PyDict_Next(a->dict, &at, &key, &value)) {
        if (!PyUnicode_CheckExact(key))
            return 0;
        if (PyUnicode_CompareWithASCIIString(key, "recompile_limit") == 0)
            continue;
        PyObject *other = b->dict == NULL ? NULL : PyDict_GetItem(b->dict, key);
        if (other == NULL || !values_equal(value, other))
            return 0;
    }
    return 1;
}

/* --- lives --- */

uint32_t fg_site_cache_size(const fg_site *site)
{
    return site->options.cache_size ? site->options.cache_size : fg_hook.cache_size;
}

fg_status fg_site_new(PyCodeObject *code, const fg_site_options *options, fg_site **out)
{
    fg_site *site = fg_calloc(1, sizeof *site);
    *out = site;
    if (site == NULL)
        return FG_ERR_NOMEM;
    site->count = 1;
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
    return FG_OK;
}

void fg_site_take(fg_site *site)
{
    site->count++;
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

void fg_site_drop(fg_site *site)
{
    FG_ASSERT(site->count > 0);
    if (--site->count > 0)
        return;
    FG_ASSERT(site->owners == NULL);
    unlink_site(site);
    fg_cache_fini(&site->cache, NULL);
    if (site->user_free != NULL)
        site->user_free(site->user);
    fg_site_options_clear(&site->options);
    fg_free(site);
}

void fg_site_user_set(fg_site *site, void *user, void (*user_free)(void *user))
{
    site->user = user;
    site->user_free = user_free;
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
    return 0;
}

/* --- all sites --- */

void fg_site_reset(fg_site *site)
{
    fg_site_take(site);
    site->never = 0;
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
