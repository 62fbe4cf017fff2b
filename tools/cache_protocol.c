/* An exhaustive check of the protocol by which the cache publishes and reclaims snapshots (cache/cache_publish.c, cache/cache_lookup.c, cache/epoch.c).
 *
 * The protocol is written down once more as a machine whose steps are the atomic accesses of the code. For a few threads with a few calls each, every
 * interleaving is walked, each state once, and checked:
 *
 *     use after free   no step reads a snapshot or an entry that was freed, even if its memory was given out again; nothing is freed twice
 *     one snapshot     two reads of a look-up's snapshot see the same entries (guarantee D)
 *     validity         a look-up does not return an entry that was invalid when it began (guarantee C)
 *     nothing lost     at the end an entry that was added and is valid is in the cache (guarantee B)
 *     nothing leaked   at the end, after the cache is closed, every snapshot and entry was freed
 *     epochs           the global epoch never goes back
 *
 * Then the protocol is broken in each way of `faults`, and some scenario must notice: a check that cannot fail proves nothing.
 *
 * Freed memory is given out again at once, so that a compare-and-swap can be fooled by an address; a ghost generation beside each pointer tells the
 * checker, not the protocol, what it was meant to be. Memory is sequentially consistent here; what weaker orders may do is argued in cache/epoch.c and
 * watched by the thread sanitizer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SNAPSHOTS = 6, N_ENTRIES = 3, MAX_THREADS = 4, MAX_OPS = 4 };

#define FAULTS(ROW)                                                                       \
    ROW(NONE, "the protocol as it is")                                                    \
    ROW(LOAD_BEFORE_ENTER, "a look-up loads the snapshot before it marks its section")    \
    ROW(FREE_ONE_EPOCH_LATER, "what is retired is freed one epoch later, not two")        \
    ROW(NO_SCAN, "the epoch advances without looking at the readers")                     \
    ROW(STORE_EPOCH, "the epoch is stored, not compared and swapped")                     \
    ROW(EPOCH_BEFORE_UNLINK, "the epoch of a retired snapshot is read before the unlink") \
    ROW(OLD_NOT_COUNTED, "a writer does not count the snapshot it builds from")           \
    ROW(STORE_CURRENT, "a writer stores its snapshot, not comparing")                     \
    ROW(ENTRIES_NOT_COUNTED, "a snapshot does not count its entries")                     \
    ROW(KEPT_FORGOTTEN, "what is not due is not put back")                                \
    ROW(EXIT_BEFORE_TAKE, "a look-up leaves its section before it counts the entry")      \
    ROW(ENTRY_NOT_TAKEN, "a look-up does not count the entry it returns")                 \
    ROW(NO_VALIDITY, "a look-up does not ask whether the entry is valid")                 \
    ROW(RESET_KEEPS_VALID, "a reset leaves its entries valid")                            \
    ROW(LOSER_LEAKS, "who loses the race does not free its snapshot")                     \
    ROW(EDIT_IN_PLACE, "a writer adds to the published snapshot")                         \
    ROW(FREE_AT_ONCE, "an unlinked snapshot is dropped without waiting")

typedef enum fault {
#define ROW(NAME, TEXT) FAULT_##NAME,
    FAULTS(ROW)
#undef ROW
        N_FAULTS
} fault;
static const char *const fault_text[] = {
#define ROW(NAME, TEXT) TEXT,
    FAULTS(ROW)
#undef ROW
};

typedef enum op { OP_END, OP_LOOKUP, OP_ADD, OP_REMOVE, OP_RESET, OP_POLL } op;

/* Where a thread is. Each name is the one atomic step that it does next. */
typedef enum pc {
    PC_START,
    PC_ENTER_LOAD,
    PC_ENTER_MARK,
    PC_LOAD,
    PC_MATCH,
    PC_VALID,
    PC_TAKE,
    PC_LEAVE,
    PC_USE,
    PC_COUNT_OLD,
    PC_LEAVE_WRITER,
    PC_BUILD,
    PC_SWAP,
    PC_RETIRE_EPOCH,
    PC_RETIRE_PUSH,
    PC_POLL_EMPTY,
    PC_POLL_NOW,
    PC_POLL_SCAN,
    PC_POLL_ADVANCE,
    PC_POLL_SWAP,
    PC_POLL_JUDGE,
    PC_POLL_PUSH,
    PC_POLL_FREE,
    PC_INVALIDATE,
    PC_DROP_OLD,
    PC_DONE
} pc;

/* All of bytes: two states are equal when their bytes are. A pointer is slot + 1 and 0 for NULL; masks have a bit for each slot. */
typedef struct thread {
    uint8_t pc, op; /* position in the scenario's list */
    uint8_t seen;   /* the reader's mark */
    uint8_t epoch, scan;
    uint8_t old, old_gen, next;
    uint8_t entry, tried, match, invalid_before;
    uint8_t mine, kept; /* limbo taken; what of it is not due */
} thread;

typedef struct state {
    uint8_t now, current, limbo, added, valid;
    uint8_t count[N_SNAPSHOTS], gen[N_SNAPSHOTS], mask[N_SNAPSHOTS], retired[N_SNAPSHOTS];
    uint8_t entry_count[N_ENTRIES];
    thread t[MAX_THREADS];
} state;

typedef struct scenario {
    const char *name;
    uint8_t there; /* entries that are there at the start */
    uint8_t n;
    uint8_t ops[MAX_THREADS][MAX_OPS]; /* op, with the entry in the high half */
} scenario;

#define ADD(E) (OP_ADD | (E) << 4)
#define REMOVE(E) (OP_REMOVE | (E) << 4)

static const scenario scenarios[] = {
    {"two readers, a writer that adds and polls, a reset", 1, 4, {{OP_LOOKUP}, {OP_LOOKUP}, {ADD(1)}, {OP_RESET, OP_POLL}}},
    {"two writers, a reader", 1, 3, {{ADD(1)}, {ADD(2)}, {OP_LOOKUP}}},
    {"a writer against a reset, reading on", 1, 3, {{ADD(1), ADD(2)}, {OP_RESET, OP_POLL}, {OP_LOOKUP, OP_LOOKUP}}},
    {"an entry is removed, two readers", 3, 3, {{REMOVE(0), OP_POLL, OP_POLL}, {OP_LOOKUP}, {OP_LOOKUP}}},
    {"removals that race", 3, 3, {{REMOVE(0)}, {REMOVE(1), OP_POLL}, {OP_LOOKUP}}},
};
enum { N_SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

static fault broken;
static const char *violation;

static void check(int holds, const char *what)
{
    if (!holds && violation == NULL)
        violation = what;
}

/* ---- memory ---- */

static void entry_drop(state *s, unsigned e)
{
    check(s->entry_count[e] > 0, "an entry is freed twice");
    if (s->entry_count[e] > 0)
        s->entry_count[e]--;
}

static void snapshot_drop(state *s, uint8_t pointer)
{
    unsigned i = pointer - 1u;
    check(s->count[i] > 0, "a snapshot is freed twice");
    if (s->count[i] == 0 || --s->count[i] > 0)
        return;
    for (unsigned e = 0; e < N_ENTRIES; e++)
        if (s->mask[i] >> e & 1)
            entry_drop(s, e);
    s->gen[i]++;
}

static uint8_t snapshot_new(state *s, uint8_t mask)
{
    for (unsigned i = 0; i < N_SNAPSHOTS; i++) {
        if (s->count[i] != 0)
            continue;
        s->count[i] = 1;
        s->mask[i] = mask;
        s->retired[i] = 0;
        for (unsigned e = 0; e < N_ENTRIES && broken != FAULT_ENTRIES_NOT_COUNTED; e++)
            s->entry_count[e] += mask >> e & 1;
        return (uint8_t)(i + 1);
    }
    check(0, "the model has too few snapshots");
    return 1;
}

static void use(const state *s, const thread *t)
{
    check(s->count[t->old - 1] > 0 && s->gen[t->old - 1] == t->old_gen, "a snapshot is used after it was freed");
}

/* ---- one step of one thread ---- */

static void next_op(thread *t)
{
    t->op++;
    t->pc = PC_START;
    t->epoch = t->scan = t->old = t->old_gen = t->next = t->entry = t->tried = t->match = t->invalid_before = t->mine = t->kept = 0;
}

static void start(state *s, thread *t, op what, unsigned entry)
{
    switch (what) {
    case OP_END: t->pc = PC_DONE; return;
    case OP_POLL: t->pc = PC_POLL_EMPTY; return;
    case OP_REMOVE: s->valid &= (uint8_t) ~(1u << entry); break;
    case OP_LOOKUP: t->invalid_before = (uint8_t)~s->valid; break;
    case OP_ADD:
    case OP_RESET: break;
    }
    t->pc = what == OP_LOOKUP && broken == FAULT_LOAD_BEFORE_ENTER ? PC_LOAD : PC_ENTER_LOAD;
}

static void load(state *s, thread *t, op what)
{
    t->old = s->current;
    t->old_gen = t->old != 0 ? s->gen[t->old - 1] : 0;
    if (what != OP_LOOKUP)
        t->pc = t->old != 0 && broken != FAULT_OLD_NOT_COUNTED ? PC_COUNT_OLD : PC_LEAVE_WRITER;
    else if (broken == FAULT_LOAD_BEFORE_ENTER)
        t->pc = PC_ENTER_LOAD;
    else
        t->pc = t->old != 0 ? PC_MATCH : PC_LEAVE;
}

/* The look-up: the owner's match names a candidate, its validity is read last. */
static void match(state *s, thread *t)
{
    if (t->old == 0) {
        t->pc = PC_LEAVE;
        return;
    }
    use(s, t);
    uint8_t mask = s->mask[t->old - 1];
    check(t->tried == 0 || mask == t->match, "a look-up sees two snapshots");
    t->match = mask;
    unsigned e = 0;
    while (e < N_ENTRIES && !((mask & ~t->tried) >> e & 1))
        e++;
    t->entry = (uint8_t)(e < N_ENTRIES ? e + 1 : 0);
    t->pc = t->entry == 0 ? PC_LEAVE : broken == FAULT_NO_VALIDITY ? PC_TAKE : PC_VALID;
}

static void validity(state *s, thread *t)
{
    use(s, t);
    check(s->mask[t->old - 1] == t->match, "a look-up sees two snapshots");
    if (s->valid >> (t->entry - 1) & 1) {
        t->pc = broken == FAULT_EXIT_BEFORE_TAKE ? PC_LEAVE : PC_TAKE;
    } else {
        t->tried |= (uint8_t)(1u << (t->entry - 1));
        t->entry = 0;
        t->pc = PC_MATCH;
    }
}

static void take(state *s, thread *t)
{
    check(s->entry_count[t->entry - 1] > 0, "an entry is used after it was freed");
    if (broken != FAULT_ENTRY_NOT_TAKEN)
        s->entry_count[t->entry - 1]++;
    t->pc = t->seen != 0 ? PC_LEAVE : PC_USE;
}

static void build(state *s, thread *t, op what, unsigned entry)
{
    uint8_t stay = 0, mask = 0;
    if (t->old != 0) {
        use(s, t);
        mask = s->mask[t->old - 1];
        stay = mask & s->valid;
    }
    t->pc = PC_SWAP;
    if (what == OP_RESET) {
        t->next = 0;
        if (t->old == 0)
            next_op(t);
    } else if (what == OP_REMOVE && stay == mask) {
        t->pc = t->old != 0 ? PC_DROP_OLD : PC_START;
        if (t->old == 0)
            next_op(t);
    } else {
        stay |= (uint8_t)(what == OP_ADD ? 1u << entry : 0);
        if (broken == FAULT_EDIT_IN_PLACE && what == OP_ADD && t->old != 0) {
            s->mask[t->old - 1] |= (uint8_t)(1u << entry);
            s->entry_count[entry]++;
            s->added |= (uint8_t)(1u << entry);
            t->pc = PC_DROP_OLD;
            return;
        }
        t->next = stay != 0 ? snapshot_new(s, stay) : 0;
    }
    if (broken == FAULT_EPOCH_BEFORE_UNLINK && t->pc == PC_SWAP && t->old != 0)
        t->pc = PC_RETIRE_EPOCH;
}

static void swap(state *s, thread *t, op what, unsigned entry)
{
    if (s->current != t->old && broken != FAULT_STORE_CURRENT) {
        if (t->next != 0 && broken != FAULT_LOSER_LEAKS)
            snapshot_drop(s, t->next);
        if (t->old != 0 && broken != FAULT_OLD_NOT_COUNTED)
            snapshot_drop(s, t->old);
        t->old = t->old_gen = t->next = 0;
        t->pc = PC_ENTER_LOAD;
        return;
    }
    s->current = t->next;
    if (what == OP_ADD)
        s->added |= (uint8_t)(1u << entry);
    if (t->old == 0) {
        if (what == OP_ADD)
            entry_drop(s, entry); /* the caller's count */
        next_op(t);
    } else if (broken == FAULT_FREE_AT_ONCE) {
        snapshot_drop(s, t->old);
        t->pc = what == OP_RESET ? PC_INVALIDATE : PC_DROP_OLD;
    } else {
        t->pc = broken == FAULT_EPOCH_BEFORE_UNLINK ? PC_RETIRE_PUSH : PC_RETIRE_EPOCH;
    }
}

static void poll_end(thread *t, op what)
{
    if (what == OP_POLL)
        next_op(t);
    else
        t->pc = what == OP_RESET && broken != FAULT_RESET_KEEPS_VALID ? PC_INVALIDATE : PC_DROP_OLD;
}

static void poll_scan(state *s, thread *t, unsigned n)
{
    uint8_t seen = s->t[t->scan].seen;
    if (broken != FAULT_NO_SCAN && seen != 0 && seen != t->epoch)
        t->pc = PC_POLL_SWAP;
    else if (++t->scan == n)
        t->pc = PC_POLL_ADVANCE;
}

static void poll_judge(state *s, thread *t, op what)
{
    uint8_t age = broken == FAULT_FREE_ONE_EPOCH_LATER ? 1 : 2;
    t->kept = 0;
    for (unsigned i = 0; i < N_SNAPSHOTS; i++)
        if ((t->mine >> i & 1) && s->now < s->retired[i] + age)
            t->kept |= (uint8_t)(1u << i);
    t->mine &= (uint8_t)~t->kept;
    if (broken == FAULT_KEPT_FORGOTTEN)
        t->kept = 0;
    t->pc = t->kept != 0 ? PC_POLL_PUSH : PC_POLL_FREE;
    if (t->kept == 0 && t->mine == 0)
        poll_end(t, what);
}

static void poll_free(state *s, thread *t, op what)
{
    for (unsigned i = 0; i < N_SNAPSHOTS; i++) {
        if (!(t->mine >> i & 1))
            continue;
        t->mine &= (uint8_t) ~(1u << i);
        snapshot_drop(s, (uint8_t)(i + 1));
        break;
    }
    if (t->mine == 0)
        poll_end(t, what);
}

static void step(state *s, const scenario *of, unsigned who)
{
    thread *t = &s->t[who];
    uint8_t packed = t->op < MAX_OPS ? of->ops[who][t->op] : OP_END;
    op what = packed & 15;
    unsigned entry = packed >> 4;

    switch ((pc)t->pc) {
    case PC_START: start(s, t, what, entry); break;
    case PC_ENTER_LOAD: t->epoch = s->now, t->pc = PC_ENTER_MARK; break;
    case PC_ENTER_MARK:
        t->seen = t->epoch;
        t->epoch = 0;
        t->pc = what == OP_LOOKUP && broken == FAULT_LOAD_BEFORE_ENTER ? PC_MATCH : PC_LOAD;
        break;
    case PC_LOAD: load(s, t, what); break;
    case PC_MATCH: match(s, t); break;
    case PC_VALID: validity(s, t); break;
    case PC_TAKE: take(s, t); break;
    case PC_LEAVE:
        t->seen = 0;
        if (t->entry == 0)
            next_op(t);
        else
            t->pc = broken == FAULT_EXIT_BEFORE_TAKE ? PC_TAKE : PC_USE;
        break;
    case PC_USE:
        check(s->entry_count[t->entry - 1] > 0, "an entry is used after it was freed");
        check(!(t->invalid_before >> (t->entry - 1) & 1), "an entry is returned that was invalid before");
        if (broken != FAULT_ENTRY_NOT_TAKEN)
            entry_drop(s, t->entry - 1u);
        next_op(t);
        break;
    case PC_COUNT_OLD:
        use(s, t);
        s->count[t->old - 1]++;
        t->pc = PC_LEAVE_WRITER;
        break;
    case PC_LEAVE_WRITER: t->seen = 0, t->pc = PC_BUILD; break;
    case PC_BUILD: build(s, t, what, entry); break;
    case PC_SWAP: swap(s, t, what, entry); break;
    case PC_RETIRE_EPOCH:
        s->retired[t->old - 1] = s->now;
        t->pc = broken == FAULT_EPOCH_BEFORE_UNLINK ? PC_SWAP : PC_RETIRE_PUSH;
        break;
    case PC_RETIRE_PUSH: s->limbo |= (uint8_t)(1u << (t->old - 1)), t->pc = PC_POLL_EMPTY; break;
    case PC_POLL_EMPTY:
        t->pc = PC_POLL_NOW;
        if (s->limbo == 0)
            poll_end(t, what);
        break;
    case PC_POLL_NOW: t->epoch = s->now, t->scan = 0, t->pc = PC_POLL_SCAN; break;
    case PC_POLL_SCAN: poll_scan(s, t, of->n); break;
    case PC_POLL_ADVANCE:
        if (broken == FAULT_STORE_EPOCH || s->now == t->epoch) {
            check(t->epoch + 1 >= s->now, "the epoch goes back");
            s->now = t->epoch + 1;
        }
        t->pc = PC_POLL_SWAP;
        break;
    case PC_POLL_SWAP: t->mine = s->limbo, s->limbo = 0, t->epoch = t->scan = 0, t->pc = PC_POLL_JUDGE; break;
    case PC_POLL_JUDGE: poll_judge(s, t, what); break;
    case PC_POLL_PUSH:
        s->limbo |= t->kept;
        t->kept = 0;
        t->pc = PC_POLL_FREE;
        if (t->mine == 0)
            poll_end(t, what);
        break;
    case PC_POLL_FREE: poll_free(s, t, what); break;
    case PC_INVALIDATE:
        use(s, t);
        s->valid &= (uint8_t)~s->mask[t->old - 1];
        t->pc = PC_DROP_OLD;
        break;
    case PC_DROP_OLD:
        if (broken != FAULT_OLD_NOT_COUNTED)
            snapshot_drop(s, t->old);
        if (what == OP_ADD)
            entry_drop(s, entry); /* the caller's count */
        next_op(t);
        break;
    case PC_DONE: break;
    }
}

/* All threads are done: what is there, then fg_cache_fini and fg_epoch_fini. */
static void end(state s)
{
    uint8_t there = s.current != 0 ? s.mask[s.current - 1] : 0;
    check((s.added & s.valid & ~there) == 0, "a valid entry was lost");
    if (s.current != 0)
        snapshot_drop(&s, s.current);
    for (unsigned i = 0; i < N_SNAPSHOTS; i++)
        if (s.limbo >> i & 1)
            snapshot_drop(&s, (uint8_t)(i + 1));
    for (unsigned i = 0; i < N_SNAPSHOTS; i++)
        check(s.count[i] == 0, "a snapshot leaked");
    for (unsigned e = 0; e < N_ENTRIES; e++)
        check(s.entry_count[e] == 0, "an entry leaked");
}

/* ---- the search ---- */

static state *states; /* the set of seen ones, open addressing, by index + 1 in `table` */
static uint32_t *table, n_states, table_size = 1u << 23, room = 1u << 22;

static int is_new(const state *s)
{
    uint64_t words[(sizeof *s + 7) / 8] = {0}, hash = 0;
    memcpy(words, s, sizeof *s);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 31;
    }
    uint32_t at = (uint32_t)(hash ^ hash >> 29) & (table_size - 1);
    for (; table[at] != 0; at = (at + 1) & (table_size - 1))
        if (memcmp(&states[table[at] - 1], s, sizeof *s) == 0)
            return 0;
    check(n_states < room, "the model has too many states");
    if (n_states == room)
        return 0;
    states[n_states++] = *s;
    table[at] = n_states;
    return 1;
}

/* Threads with the same calls are interchangeable, unless a scan has looked at one of them only: of the states that differ by who is who, one is
 * kept. */
static void sort_twins(state *s, const scenario *of)
{
    for (unsigned i = 0; i + 1 < of->n; i++) {
        int between = 0;
        for (unsigned k = 0; k < of->n; k++)
            between |= s->t[k].pc == PC_POLL_SCAN && s->t[k].scan == i + 1;
        if (!between && memcmp(of->ops[i], of->ops[i + 1], MAX_OPS) == 0 && memcmp(&s->t[i], &s->t[i + 1], sizeof s->t[i]) > 0) {
            thread other = s->t[i];
            s->t[i] = s->t[i + 1];
            s->t[i + 1] = other;
        }
    }
}

static void search(const scenario *of)
{
    state first;
    memset(&first, 0, sizeof first);
    memset(table, 0, table_size * sizeof *table);
    n_states = 0;
    violation = NULL;
    first.now = 1;
    first.valid = (1u << N_ENTRIES) - 1;
    first.added = of->there;
    first.current = snapshot_new(&first, of->there);
    for (unsigned i = 0; i < of->n; i++)
        for (unsigned k = 0; k < MAX_OPS; k++)
            if ((of->ops[i][k] & 15) == OP_ADD)
                first.entry_count[of->ops[i][k] >> 4]++;
    is_new(&first);
    /* States are numbered as they are found, so the list is its own queue: the search goes by breadth. */
    for (uint32_t at = 0; at < n_states && violation == NULL; at++) {
        int all_done = 1;
        for (unsigned who = 0; who < of->n && violation == NULL; who++) {
            if (states[at].t[who].pc == PC_DONE)
                continue;
            state s = states[at];
            all_done = 0;
            step(&s, of, who);
            sort_twins(&s, of);
            if (violation == NULL)
                is_new(&s);
        }
        if (all_done)
            end(states[at]);
    }
}

int main(void)
{
    int failed = 0;
    states = malloc(room * sizeof *states);
    table = malloc(table_size * sizeof *table);
    if (states == NULL || table == NULL)
        return 2;
    for (int f = 0; f < N_FAULTS; f++) {
        const char *seen = NULL;
        broken = (fault)f;
        for (unsigned i = 0; i < N_SCENARIOS && seen == NULL; i++) {
            search(&scenarios[i]);
            seen = violation;
            if (f == FAULT_NONE)
                printf("%s: %u states, %s\n", scenarios[i].name, n_states, seen != NULL ? seen : "all is well");
            else if (seen != NULL)
                printf("%s: %s\n", fault_text[f], seen);
        }
        if ((seen != NULL) != (f != FAULT_NONE)) {
            failed = 1;
            printf("WRONG: %s: %s\n", fault_text[f], seen != NULL ? seen : "nobody noticed");
        }
    }
    free(states);
    free(table);
    return failed;
}
