/* The evaluation loop, included three times by guard_eval.c with another FG_MODE each:
 *
 *   FG_ONE    one entry: no masks at all; the first failure is the end
 *   FG_WORD   up to 64 entries: alive is one word, masks are in the instructions
 *   FG_WIDE   more: alive is an array of words, masks lie in the program's pool
 *
 * Gives 1 while any entry is alive, 0 when none is, -1 out of memory. Nothing in here runs Python.
 */

#if FG_MODE == FG_ONE
#define FG_ENTER
#define FG_FAILED goto failed
#define FG_REFUSE return 0
#elif FG_MODE == FG_WORD
#define FG_ENTER              \
    if (!(live & in->mask)) { \
        in += in->skip;       \
        continue;             \
    }
#define FG_CLEAR(BITS)   \
    do {                 \
        live &= ~(BITS); \
        if (live == 0)   \
            return 0;    \
    } while (0)
#define FG_FAILED goto failed
#define FG_REFUSE FG_CLEAR(in->mask)
#define FG_ROW_HIT(SLOT)                    \
    do {                                    \
        FG_CLEAR(in->mask & ~(SLOT)->mask); \
        goto next;                          \
    } while (0)
#else
#define FG_ENTER                                                  \
    if (!words_meet(alive, program->masks + in->mask, n_words)) { \
        in += in->skip;                                           \
        continue;                                                 \
    }
#define FG_FAILED goto failed
#define FG_REFUSE                                                          \
    do {                                                                   \
        if (!words_clear(alive, program->masks + in->mask, NULL, n_words)) \
            return 0;                                                      \
    } while (0)
#define FG_ROW_HIT(SLOT)                                                                            \
    do {                                                                                            \
        if (!words_clear(alive, program->masks + in->mask, program->masks + (SLOT)->mask, n_words)) \
            return 0;                                                                               \
        goto next;                                                                                  \
    } while (0)
#endif

/* Go on with the row's entries and those that did not ask. */
#define FG_TABLE(FOUND)                \
    do {                               \
        const fg_slot *slot = (FOUND); \
        if (slot != NULL)              \
            FG_ROW_HIT(slot);          \
        FG_FAILED;                     \
    } while (0)

#if FG_MODE == FG_WORD
#define FG_LEAVE (*alive = live, 1)
#elif FG_MODE == FG_ONE
#define FG_LEAVE (*out = (fg_eval){.winner = 0, .n_inputs = program->entries[0].n_outputs}, 1)
#else
#define FG_LEAVE 1
#endif

#if FG_MODE == FG_ONE
static int run_one(const fg_program *program, const fg_view *view, PyObject **regs, fg_eval *out)
#elif FG_MODE == FG_WORD
static int run_word(const fg_program *program, const fg_view *view, PyObject **regs, uint64_t *alive)
#else
static int run_wide(const fg_program *program, const fg_view *view, PyObject **regs, uint64_t *alive)
#endif
{
#if FG_MODE == FG_WORD
    uint64_t live = *alive;
#elif FG_MODE == FG_WIDE
    const uint32_t n_words = program->n_words;
#endif
    fg_insn *in = program->code;

    for (;; in++) {
        FG_ENTER
        if (in->op >= FG_N_PIS)
            __builtin_unreachable(); /* saves the switch its range check */
        switch ((fg_pi)in->op) {
#define FG_LOAD_CASE(NAME)                                                                                  \
    case FG_PI_LOAD_##NAME: {                                                                               \
        PyObject *v;                                                                                        \
        if (fg_read_##NAME(view, regs[in->src], (PyObject *)in->leaf.p, in->leaf.lo, &v) != FG_FIND_FOUND)  \
            FG_FAILED;                                                                                      \
        regs[in->dst] = v;                                                                                  \
        if (in->leaf.hi != 0 && (intptr_t)Py_TYPE(v) != (intptr_t)in->leaf.hi)                              \
            FG_FAILED;                                                                                      \
        goto next;                                                                                          \
    }                                                                                                       \
    case FG_PI_NONE_##NAME: {                                                                               \
        PyObject *v;                                                                                        \
        if (fg_read_##NAME(view, regs[in->src], (PyObject *)in->leaf.p, in->leaf.lo, &v) != FG_FIND_ABSENT) \
            FG_FAILED;                                                                                      \
        goto next;                                                                                          \
    }
#define FG_ACCESSOR(NAME, TEXT, KEY) FG_LOAD_CASE(NAME)
#include "guards/accessors.def"
#undef FG_ACCESSOR
#undef FG_LOAD_CASE

#define FG_FACT_CASE(NAME)                              \
    case FG_PI_FACT_##NAME:                             \
        if (!fg_check_##NAME(regs[in->src], &in->leaf)) \
            FG_FAILED;                                  \
        goto next;
#define FG_RELATION_CASE(NAME)                                                                           \
    case FG_PI_FACT_##NAME: {                                                                            \
        const fg_relation *relation = in->leaf.p;                                                        \
        int one = fg_check_##NAME(regs, relation->ids, relation->n, relation->adaptors, relation->expr); \
        if (one < 0)                                                                                     \
            return -1;                                                                                   \
        if (!one)                                                                                        \
            FG_FAILED;                                                                                   \
        goto next;                                                                                       \
    }
#define FG_CASE_NONE FG_FACT_CASE
#define FG_CASE_OBJECT FG_FACT_CASE
#define FG_CASE_INT FG_FACT_CASE
#define FG_CASE_RANGE FG_FACT_CASE
#define FG_CASE_META FG_FACT_CASE
#define FG_CASE_STATE FG_FACT_CASE
#define FG_CASE_NODES FG_RELATION_CASE
#define FG_CASE_EXPR FG_RELATION_CASE
#define FG_GUARD(NAME, TEXT, ARG) FG_CASE_##ARG(NAME)
#include "guards/guard_kinds.def"
#undef FG_GUARD
#undef FG_CASE_NONE
#undef FG_CASE_OBJECT
#undef FG_CASE_INT
#undef FG_CASE_RANGE
#undef FG_CASE_META
#undef FG_CASE_STATE
#undef FG_CASE_NODES
#undef FG_CASE_EXPR
#undef FG_FACT_CASE
#undef FG_RELATION_CASE

        case FG_PI_LOAD_TYPE_VERSIONED: {
            const fg_lookup *lookup = in->leaf.p;
            PyObject *v;
            if (lookup_find(lookup, regs[in->src], &v) != FG_FIND_FOUND)
                FG_FAILED;
            regs[in->dst] = v;
            if (in->leaf.hi != 0 && (intptr_t)Py_TYPE(v) != (intptr_t)in->leaf.hi)
                FG_FAILED;
            goto next;
        }
        case FG_PI_FACT_MEMBERS:
            if (!members_hold((fg_members *)in->leaf.p))
                FG_FAILED;
            goto next;
#if FG_MODE != FG_ONE
        case FG_PI_TABLE_TYPE: FG_TABLE(table_find_pointer(in->leaf.p, Py_TYPE(regs[in->src])));
        case FG_PI_TABLE_ID: FG_TABLE(table_find_pointer(in->leaf.p, regs[in->src]));
        case FG_PI_TABLE_CONST: FG_TABLE(table_find_const(in->leaf.p, regs[in->src]));
        case FG_PI_TABLE_LENGTH: FG_TABLE(table_find_length(in->leaf.p, regs[in->src]));
        case FG_PI_TABLE_TENSOR: FG_TABLE(table_find_tensor(&in->leaf, regs[in->src]));
        case FG_PI_TABLE_NUMPY: FG_TABLE(table_find_numpy(in->leaf.p, regs[in->src]));
        case FG_PI_TABLE_STATE: FG_TABLE(table_find_state(in->leaf.p));
#else
        /* One entry has no two conditions that a table could tell apart. */
        case FG_PI_TABLE_TYPE:
        case FG_PI_TABLE_ID:
        case FG_PI_TABLE_CONST:
        case FG_PI_TABLE_LENGTH:
        case FG_PI_TABLE_TENSOR:
        case FG_PI_TABLE_NUMPY:
        case FG_PI_TABLE_STATE: return 0;
#endif
        case FG_PI_FACT_NUMPY:
            if (!check_numpy(regs[in->src], in->leaf.p))
                FG_FAILED;
            goto next;
        case FG_PI_DISTINCT_MANY: {
            int one = distinct_again((fg_relation *)in->leaf.p, regs);
            if (one < 0)
                return -1;
            if (!one)
                FG_FAILED;
            goto next;
        }
        case FG_PI_MEMO:
        case FG_PI_MEMO_WIDE: {
#if FG_MODE != FG_WIDE
            fg_memo *memo = (fg_memo *)in->leaf.p;
#if FG_MODE == FG_ONE
            uint64_t live = 1;
#endif
            if (fg_memo_try(memo, regs, live))
                live = memo->kept;
            else if (!fg_memo_renew(program, memo, view, regs, &live))
                goto next;
            if (live == 0) {
                fg_insn_failed(&program->code[memo->failed]);
                return 0;
            }
            in += in->skip;
#endif
            goto next;
        }
        case FG_PI_END: return FG_LEAVE;
        case FG_N_PIS: __builtin_unreachable();
        }
    failed:
        fg_insn_failed(in);
        FG_REFUSE;
#if FG_MODE != FG_ONE
        in += in->skip;
#endif
    next:;
    }
}

#undef FG_ENTER
#undef FG_FAILED
#undef FG_REFUSE
#undef FG_CLEAR
#undef FG_ROW_HIT
#undef FG_TABLE
#undef FG_LEAVE
#undef FG_MODE
