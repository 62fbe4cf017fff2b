/* Which site belongs to a code object and options: a hash table by the code's address. A row watches its code object through a weak reference, whose
 * callback takes the row and its sites out when the code dies, before the address can be used again.
 *
 * A site whose gates are all gone is kept for the next gate of the same code (a decorated inner function is made again and again), but only
 * a few per code object: a backend object made anew for each gate would otherwise add a site each time. The registry's count is one that the collector
 * cannot see, so a site with gates is counted only if its options hold nothing that could lead to a gate; one without gates also while somebody else
 * holds its backend.
 */
#include "runtime/base/alloc.h"
#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/hook/hook_site.h"

enum { MAX_ORPHANS = 4, FIRST_BUCKETS = 64 };

typedef struct code_row {
    PyCodeObject *code; /* not a reference; alive while the row is in the table */
    FG_OWNED PyObject *weakref;
    fg_site *sites; /* newest first; counted if kept */
    struct code_row *next;
} code_row;

static struct {
    code_row **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_rows;
} table;

static code_row **bucket_of(const void *code)
{
    return &table.buckets[fg_hash_pointer(code) & (table.n_buckets - 1)];
}

static fg_status grow(void)
{
    size_t n = table.n_buckets ? table.n_buckets * 2 : FIRST_BUCKETS;
    code_row **buckets = fg_calloc(n, sizeof *buckets), **old = table.buckets;
    size_t n_old = table.n_buckets;
    if (buckets == NULL)
        return FG_ERR_NOMEM;
    table.buckets = buckets;
    table.n_buckets = n;
    for (size_t i = 0; i < n_old; i++)
        for (code_row *row = old[i], *next; row != NULL; row = next) {
            next = row->next;
            code_row **bucket = bucket_of(row->code);
            row->next = *bucket;
            *bucket = row;
        }
    fg_free(old);
    return FG_OK;
}

static code_row *find_row(PyCodeObject *code)
{
    code_row *row = table.n_buckets ? *bucket_of(code) : NULL;
    while (row != NULL && row->code != code)
        row = row->next;
    return row;
}

void fg_registry_forget(fg_site *site)
{
    code_row *row = site->registered;
    if (row == NULL)
        return;
    fg_site **at = &row->sites;
    while (*at != site)
        at = &(*at)->next_of_code;
    *at = site->next_of_code;
    site->next_of_code = NULL;
    site->registered = NULL;
    site->code = NULL;
    if (site->kept) {
        site->kept = 0;
        fg_site_drop(site);
    }
}

/* The weak reference's callback: self is the row's address. */
static PyObject *code_died(PyObject *self, PyObject *weakref)
{
    code_row *row = PyLong_AsVoidPtr(self);
    if (row == NULL)
        return NULL;
    for (code_row **at = bucket_of(row->code); *at != NULL; at = &(*at)->next)
        if (*at == row) {
            *at = row->next;
            table.n_rows--;
            break;
        }
    (void)weakref;
    while (row->sites != NULL)
        fg_registry_forget(row->sites);
    Py_CLEAR(row->weakref);
    fg_free(row);
    Py_RETURN_NONE;
}

static PyMethodDef code_died_def = {"code_died", code_died, METH_O, NULL};

static fg_status add_row(PyCodeObject *code, code_row **out)
{
    fg_status st = FG_OK;
    PyObject *address = NULL, *callback = NULL;
    code_row *row = fg_calloc(1, sizeof *row);
    if (row == NULL)
        return FG_ERR_NOMEM;
    if (table.n_rows >= table.n_buckets)
        FG_TRY(grow());
    st = FG_ERR_PYTHON;
    if ((address = PyLong_FromVoidPtr(row)) == NULL || (callback = PyCFunction_New(&code_died_def, address)) == NULL ||
        (row->weakref = PyWeakref_NewRef((PyObject *)code, callback)) == NULL)
        goto fail;
    Py_DECREF(callback);
    Py_DECREF(address);
    row->code = code;
    code_row **bucket = bucket_of(code);
    row->next = *bucket;
    *bucket = row;
    table.n_rows++;
    *out = row;
    return FG_OK;
fail:
    Py_XDECREF(callback);
    Py_XDECREF(address);
    fg_free(row);
    return st;
}

static Py_ssize_t backend_count(const fg_site *site)
{
    PyObject *backend = fg_site_options_backend(&site->options);
    return backend == NULL ? 0 : Py_REFCNT(backend);
}

/* A site without gates whose backend only it holds; NULL: none. */
static fg_site *find_stale(const code_row *row)
{
    for (fg_site *site = row->sites; site != NULL; site = site->next_of_code)
        if (site->kept && site->owners == NULL && !site->options.immortal && backend_count(site) <= 1)
            return site;
    return NULL;
}

/* The caller keeps the code, and so the row: dropping a site may run anything. */
static void drop_stale(code_row *row)
{
    for (fg_site *site; (site = find_stale(row)) != NULL;)
        fg_registry_forget(site);
}

fg_status fg_registry_site(PyCodeObject *code, const fg_site_options *options, fg_site **out)
{
    fg_status st = FG_OK;
    code_row *row = find_row(code);
    if (row == NULL)
        FG_TRY(add_row(code, &row));
    drop_stale(row);
    for (fg_site *site = row->sites; site != NULL; site = site->next_of_code)
        if (fg_site_options_equal(&site->options, options)) {
            *out = site;
            if (site->kept && !site->options.immortal)
                site->kept = 0; /* the registry's count is the caller's from here on */
            else
                fg_site_take(site);
            return FG_OK;
        }
    fg_site *site;
    FG_TRY(fg_site_new(code, options, &site));
    site->registered = row;
    site->next_of_code = row->sites;
    row->sites = site;
    if (site->options.immortal) {
        site->kept = 1;
        fg_site_take(site);
    }
    *out = site;
fail:
    return st;
}

void fg_registry_owner_gone(fg_site *gone)
{
    code_row *row = gone->registered;
    int orphans = 0;
    fg_site *oldest = NULL;
    if (!gone->kept && !gone->is_garbage && gone->options.only_backend && backend_count(gone) > 1) {
        gone->kept = 1;
        fg_site_take(gone);
    }
    drop_stale(row);
    for (fg_site *site = row->sites; site != NULL; site = site->next_of_code)
        if (site->kept && site->owners == NULL) {
            orphans++;
            oldest = site;
        }
    if (orphans <= MAX_ORPHANS)
        return;
    FG_TRACE(HOOK, "site %p has no gate and makes room", (void *)oldest);
    fg_registry_forget(oldest);
}
