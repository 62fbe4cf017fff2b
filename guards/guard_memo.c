/* Recording of memos: the stretch is run once more, instruction by instruction, and each result is put into words.
 *
 *   instruction            what decides it
 *   LOAD_, NONE_x          the type of the parent, then its dict's version, the field or the element
 *   conditions             the type, the length, the value of what cannot change while it lives; an identity is decided by the address alone
 *   tensors                the words that their adaptor reads
 *
 * Rules for changing it: an instruction whose result cannot be put into words makes the whole stretch unrecorded; a register's flag STEADY is set
 * only by a read that proves the object alive since then.
 */
#define FG_EXPLAIN 0
#include "guards/guard_memo.h"
#include "guards/guard_bodies.h"
#include "guards/guard_read.h"

typedef struct recorder {
    const fg_program *program;
    const fg_memo *memo;
    const fg_view *view;
    PyObject **regs;
    fg_words words;
    fg_memo_reg ins[FG_MEMO_WIDE], outs[FG_MEMO_WIDE];
    uint8_t steady[FG_MEMO_WIDE]; /* of outs */
    uint32_t n_ins, n_outs, failed;
    int fine; /* of the memo whose instructions these are */
} recorder;

/* The register's value, noted as one that the stretch starts from if it did not make it. */
static PyObject *reg_value(recorder *r, uint32_t reg, int *steady)
{
    *steady = 0;
    for (uint32_t i = 0; i < r->n_outs; i++) {
        if (r->outs[i].reg == reg) {
            *steady = r->steady[i];
            return r->outs[i].value;
        }
    }
    PyObject *value = r->regs[reg];
    for (uint32_t i = 0; i < r->n_ins; i++) {
        if (r->ins[i].reg == reg)
            return value;
    }
    r->ins[r->n_ins++] = (fg_memo_reg){reg, value};
    return value;
}

static fg_proof prove_type(recorder *r, uint32_t reg, PyObject *object, int steady)
{
    return fg_words_type(&r->words, object, steady, r->program->reg_facts[reg] & FG_REG_TYPED);
}

static fg_proof prove_field(recorder *r, const void *at)
{
    fg_words_add(&r->words, at);
    return FG_PROOF_OBJECT;
}

static fg_proof prove_code(recorder *r, PyObject *function)
{
    if (!PyFunction_Check(function))
        return FG_PROOF_NONE;
    const void *way = fg_function_way((PyFunctionObject *)function);
    if (way != NULL)
        fg_words_add(&r->words, way);
    return prove_field(r, &((PyFunctionObject *)function)->func_code);
}

/* What decides a read from this parent, whose type is proven. */
static fg_proof prove_read(recorder *r, fg_accessor acc, PyObject *parent, const fg_leaf *leaf)
{
    fg_words *words = &r->words;
    PyObject *key = (PyObject *)leaf->p;

    switch (acc) {
    case FG_ACC_CELL_CONTENTS: return PyCell_Check(parent) ? prove_field(r, &((PyCellObject *)parent)->ob_ref) : FG_PROOF_NONE;
    case FG_ACC_DICT_ITEM: return PyDict_Check(parent) ? fg_words_dict(words, parent, key, (Py_hash_t)leaf->lo, r->fine) : FG_PROOF_NONE;
    case FG_ACC_DICT_KEY: /* an OrderedDict has an order that no version tells */
        return PyDict_CheckExact(parent) ? fg_words_dict_version(words, parent) : FG_PROOF_NONE;
    case FG_ACC_LIST_ITEM: return PyList_Check(parent) ? fg_words_element(words, parent, (Py_ssize_t)leaf->lo) : FG_PROOF_NONE;
    case FG_ACC_TUPLE_ITEM: return PyTuple_Check(parent) ? fg_words_element(words, parent, (Py_ssize_t)leaf->lo) : FG_PROOF_NONE;
    case FG_ACC_TYPE: return FG_PROOF_OBJECT;
    case FG_ACC_TYPE_LOOKUP: return PyType_Check(parent) ? fg_words_type_version(words, (PyTypeObject *)parent) : FG_PROOF_NONE;
    case FG_ACC_INSTANCE_ATTR: return fg_words_attr(words, parent, key, (Py_hash_t)leaf->lo, r->fine);
    case FG_ACC_SLOT_ATTR: return prove_field(r, (char *)parent + leaf->lo);
    case FG_ACC_MODULE_DICT: return PyModule_Check(parent) ? fg_words_module_dict(words, parent) : FG_PROOF_NONE;
#define FIELD(ACC, CHECK, TYPE, NAME) \
    case FG_ACC_##ACC: return CHECK(parent) ? prove_field(r, &((TYPE *)parent)->NAME) : FG_PROOF_NONE;
        FIELD(FUNC_DEFAULTS, PyFunction_Check, PyFunctionObject, func_defaults)
        FIELD(FUNC_KWDEFAULTS, PyFunction_Check, PyFunctionObject, func_kwdefaults)
        FIELD(FUNC_CLOSURE, PyFunction_Check, PyFunctionObject, func_closure)
        FIELD(FUNC_GLOBALS, PyFunction_Check, PyFunctionObject, func_globals)
        FIELD(FUNC_BUILTINS, PyFunction_Check, PyFunctionObject, func_builtins)
        FIELD(METHOD_FUNC, PyMethod_Check, PyMethodObject, im_func)
        FIELD(METHOD_SELF, PyMethod_Check, PyMethodObject, im_self)
        FIELD(MRO, PyType_Check, PyTypeObject, tp_mro)
        FIELD(CODE_CONSTS, PyCode_Check, PyCodeObject, co_consts)
        FIELD(BUILTIN_SELF, PyCFunction_Check, PyCFunctionObject, m_self)
        FIELD(BASES, PyType_Check, PyTypeObject, tp_bases)
#undef FIELD
    case FG_ACC_FUNC_CODE: return prove_code(r, parent);
    case FG_ACC_FUNC_PART: return PyFunction_Check(parent) ? prove_field(r, fg_func_part(parent, leaf->lo)) : FG_PROOF_NONE;
    case FG_ACC_CODE_PART: return PyCode_Check(parent) ? prove_field(r, fg_code_part(parent, leaf->lo)) : FG_PROOF_NONE;
    default: /* roots are not in stretches, the rest is rare */ return FG_PROOF_NONE;
    }
}

static int is_value_type(PyObject *v)
{
    return fg_const_is_scalar(v) || v == Py_None || v == Py_Ellipsis;
}

static int is_singleton(PyObject *v)
{
    return v == Py_None || v == Py_True || v == Py_False || v == Py_Ellipsis;
}

/* A condition on the value of something that cannot change: settled by its address while it lives on. */
static fg_proof prove_value(recorder *r, PyObject *v, int steady)
{
    if (is_singleton(v) || (steady && is_value_type(v)))
        return FG_PROOF_OBJECT;
    if (PyFloat_CheckExact(v)) {
        fg_words_add(&r->words, &v->ob_type);
        return prove_field(r, &((PyFloatObject *)v)->ob_fval);
    }
    return FG_PROOF_NONE;
}

static fg_proof prove_length(recorder *r, uint32_t reg, PyObject *v, int steady)
{
    if (is_singleton(v) || (steady && is_value_type(v)))
        return FG_PROOF_OBJECT;
    fg_words_contents(&r->words, v);
    if (prove_type(r, reg, v, steady) == FG_PROOF_NONE)
        return FG_PROOF_NONE;
    return fg_words_length(&r->words, v);
}

static fg_proof prove_truth(recorder *r, PyObject *v, int steady)
{
    if (PyList_CheckExact(v) || PyTuple_CheckExact(v) || PyDict_CheckExact(v) || Py_IS_TYPE(v, &PySet_Type) ||
        Py_IS_TYPE(v, &PyFrozenSet_Type)) {
        fg_words_contents(&r->words, v);
        if (fg_words_type(&r->words, v, steady, 0) == FG_PROOF_NONE)
            return FG_PROOF_NONE;
        return fg_words_length(&r->words, v);
    }
    return prove_value(r, v, steady);
}

static fg_proof prove_keys(recorder *r, PyObject *v, int steady)
{
    fg_words_contents(&r->words, v);
    if (!PyDict_CheckExact(v) || fg_words_type(&r->words, v, steady, 0) == FG_PROOF_NONE)
        return FG_PROOF_NONE;
    return fg_words_dict_version(&r->words, v);
}

static fg_proof prove_tensor(recorder *r, const fg_insn *in, PyObject *v, int steady)
{
    const fg_meta_record *want = in->leaf.p;
    /* Of another type: that alone decides. Its own type is kept from dying by the adaptor, or by being static. */
    if (fg_words_type(&r->words, v, steady, 1) == FG_PROOF_NONE || want->adaptor == NULL)
        return FG_PROOF_NONE;
    if (Py_TYPE(v) != want->type)
        return FG_PROOF_OBJECT;
    return want->adaptor->words != NULL && want->adaptor->words(v, &r->words) ? FG_PROOF_OBJECT : FG_PROOF_NONE;
}

/* What decides a condition on v. */
static fg_proof prove_fact(recorder *r, const fg_insn *in, PyObject *v, int steady)
{
    switch ((fg_pi)in->op) {
    case FG_PI_FACT_PRESENT:
    case FG_PI_FACT_NOT_NONE:
    case FG_PI_FACT_ID: return FG_PROOF_OBJECT; /* the address alone */
    case FG_PI_FACT_TYPE: return fg_words_type(&r->words, v, steady, 1);
    case FG_PI_FACT_CONST:
        return (const void *)v == in->leaf.p ? FG_PROOF_OBJECT : prove_value(r, v, steady); /* the entry keeps its constant */
    case FG_PI_FACT_FLOAT_NAN:
    case FG_PI_FACT_INT_RANGE: return prove_value(r, v, steady);
    case FG_PI_FACT_SUBTYPE:
    case FG_PI_FACT_NO_SUBTYPE: /* another MRO is another version */
        if (prove_type(r, in->src, v, steady) == FG_PROOF_NONE || !PyType_Check(v))
            return FG_PROOF_NONE;
        return fg_words_type_version(&r->words, (PyTypeObject *)v);
    case FG_PI_FACT_TRUTH: return prove_truth(r, v, steady);
    case FG_PI_FACT_LENGTH: return prove_length(r, in->src, v, steady);
    case FG_PI_FACT_DICT_HAS:
    case FG_PI_FACT_DICT_LACKS:
        fg_words_contents(&r->words, v);
        if (prove_type(r, in->src, v, steady) == FG_PROOF_NONE || !PyDict_Check(v))
            return FG_PROOF_NONE;
        return fg_words_dict(&r->words, v, (PyObject *)in->leaf.p, (Py_hash_t)in->leaf.lo, r->fine);
    case FG_PI_FACT_DICT_KEYS: return prove_keys(r, v, steady);
    case FG_PI_FACT_ATTR_HAS:
    case FG_PI_FACT_ATTR_LACKS:
        if (prove_type(r, in->src, v, steady) == FG_PROOF_NONE)
            return FG_PROOF_NONE;
        return fg_words_attr(&r->words, v, (PyObject *)in->leaf.p, (Py_hash_t)in->leaf.lo, r->fine);
    case FG_PI_FACT_TENSOR:
    case FG_PI_FACT_NUMPY: return prove_tensor(r, in, v, steady);
    default: /* fg_memo_takes does not let it in */ return FG_PROOF_NONE;
    }
}

/* Not taken: what may change without a word that tells, and what is too rare. */
static int takes_accessor(fg_accessor acc)
{
    static const uint8_t left_out[] = {FG_ACC_GETATTR,       FG_ACC_RANGE_PART,    FG_ACC_SLICE_PART, FG_ACC_DESCR_FUNC,
                                       FG_ACC_PROPERTY_PART, FG_ACC_PROXY_MAPPING, FG_ACC_WEAKREF,    FG_ACC_ITER_PART,
                                       FG_ACC_ITER_ITEM,     FG_ACC_DEQUE_ITEM,    FG_ACC_VIEW_DICT,  FG_ACC_TYPE_PART};
    return !fg_accessor_is_root(acc) && memchr(left_out, acc, sizeof left_out) == NULL;
}

/* The accessor of a LOAD_ (found 1) or NONE_ (found 0); -1: another instruction. */
static int accessor_of(fg_pi op, int *found)
{
    switch (op) {
#define FG_ACCESSOR(NAME, TEXT, KEY)                          \
    case FG_PI_LOAD_##NAME: *found = 1; return FG_ACC_##NAME; \
    case FG_PI_NONE_##NAME:                                   \
        *found = 0;                                           \
        return FG_ACC_##NAME;
#include "guards/accessors.def"
#undef FG_ACCESSOR
    case FG_PI_LOAD_TYPE_VERSIONED: *found = 1; return FG_ACC_TYPE_LOOKUP;
    default: return -1;
    }
}

/* Conditions that can be put into words; those on exact ndarrays are FACT_NUMPY besides. */
/* clang-format off */
#define MEMO_FACTS(F) \
    F(PRESENT) F(NOT_NONE) F(ID) F(TYPE) F(CONST) F(SUBTYPE) F(NO_SUBTYPE) F(TRUTH) F(LENGTH) \
    F(DICT_HAS) F(DICT_LACKS) F(DICT_KEYS) F(ATTR_HAS) F(ATTR_LACKS) F(FLOAT_NAN) F(INT_RANGE) F(TENSOR)
/* clang-format on */

int fg_memo_takes(fg_pi op)
{
    int found, acc = accessor_of(op, &found);
    if (acc >= 0)
        return takes_accessor((fg_accessor)acc);
    switch (op) {
#define CASE(NAME) case FG_PI_FACT_##NAME:
        MEMO_FACTS(CASE)
#undef CASE
    case FG_PI_FACT_NUMPY: return 1;
    default: return 0;
    }
}

/* Whether the condition holds, by the body that the evaluation uses. */
static int fact_holds(const fg_insn *in, PyObject *v)
{
    switch ((fg_pi)in->op) {
#define CASE(NAME) \
    case FG_PI_FACT_##NAME: return fg_check_##NAME(v, &in->leaf);
        MEMO_FACTS(CASE)
#undef CASE
    case FG_PI_FACT_NUMPY: return fg_check_TENSOR(v, &in->leaf);
    default: return 0;
    }
}

/* Run one instruction and put its result into words. 1 holds, 0 fails, -1 cannot be recorded. */
static int record_one(recorder *r, const fg_insn *in)
{
    int steady, found = 0, acc = accessor_of((fg_pi)in->op, &found);
    PyObject *v = reg_value(r, in->src, &steady), *value = NULL;

    if (acc < 0)
        return prove_fact(r, in, v, steady) == FG_PROOF_NONE ? -1 : fact_holds(in, v);

    fg_leaf leaf = in->leaf;
    if (in->op == FG_PI_LOAD_TYPE_VERSIONED) {
        const fg_lookup *lookup = leaf.p;
        leaf.p = lookup->name;
        leaf.lo = (int64_t)lookup->hash;
    }
    if (acc == FG_ACC_DICT_ITEM || acc == FG_ACC_DICT_KEY)
        fg_words_contents(&r->words, v);
    if (acc == FG_ACC_TYPE)
        fg_words_add(&r->words, &v->ob_type);
    else if (prove_type(r, in->src, v, steady) == FG_PROOF_NONE)
        return -1;
    fg_proof proof = prove_read(r, (fg_accessor)acc, v, &leaf);
    if (proof == FG_PROOF_NONE)
        return -1;
    fg_find got = fg_read_any((fg_accessor)acc, r->view, v, (PyObject *)leaf.p, leaf.lo, &value);
    if (got == FG_FIND_UNDECIDED)
        return -1;
    if (!found)
        return got == FG_FIND_ABSENT;
    if (got != FG_FIND_FOUND)
        return 0;
    r->steady[r->n_outs] = proof == FG_PROOF_STEADY;
    r->outs[r->n_outs++] = (fg_memo_reg){in->dst, value};
    if (in->leaf.hi == 0)
        return 1;
    fg_words_type(&r->words, value, proof == FG_PROOF_STEADY, 1);
    return (intptr_t)Py_TYPE(value) == (intptr_t)in->leaf.hi;
}

/* From here on the instructions are this memo's. In a wide record its dicts are watched, unless they change too often. */
static void begin_memo(recorder *r, fg_memo *memo)
{
    r->fine = memo->fine;
    r->words.loudness = !memo->fine && memo->loudness < FG_MEMO_LOUD ? &memo->loudness : NULL;
}

/* Run the stretch. 1 recorded (r and live are filled), 0 it cannot be. */
static int record_all(recorder *r, uint64_t *live)
{
    const fg_insn *code = r->program->code;
    uint32_t end = r->memo->first + r->memo->n;

    for (uint32_t at = r->memo->first; at < end && *live != 0; at++) {
        const fg_insn *in = &code[at];
        if (in->op == FG_PI_MEMO) {
            begin_memo(r, (fg_memo *)in->leaf.p);
            continue;
        }
        if (!(*live & in->mask)) {
            at += in->skip;
            continue;
        }
        int one = record_one(r, in);
        if (one < 0 || r->words.overflow)
            return 0;
        if (one == 0) {
            r->failed = at;
            *live &= ~in->mask;
            at += in->skip;
        }
    }
    return 1;
}

/* The record is over. */
static void let_go(fg_memo *memo)
{
    for (uint32_t i = 0; i < memo->n_watches; i++)
        fg_dict_watch_drop(&memo->watches[i]);
    memo->n_watches = 0;
    memo->recorded = 0;
}

static fg_status keep(fg_memo *memo, const recorder *r)
{
    uint32_t n_outs = 0;
    const fg_words *words = &r->words;
    size_t size = words->n * sizeof(fg_word) + (r->n_ins + r->n_outs) * sizeof(fg_memo_reg) + words->n_dicts * sizeof(fg_dict_watch);
    fg_word *block = fg_malloc(size > 0 ? size : 1);

    if (block == NULL)
        return FG_ERR_NOMEM;
    memcpy(block, words->items, words->n * sizeof(fg_word));
    fg_memo_reg *regs = (fg_memo_reg *)(block + words->n);
    memcpy(regs, r->ins, r->n_ins * sizeof *regs);
    for (uint32_t i = 0; i < r->n_outs; i++) {
        if (r->program->reg_facts[r->outs[i].reg] & FG_REG_NEEDED)
            regs[r->n_ins + n_outs++] = r->outs[i];
    }
    fg_free(memo->words);
    memo->words = block;
    memo->ins = regs;
    memo->outs = regs + r->n_ins;
    memo->watches = (fg_dict_watch *)(regs + r->n_ins + n_outs);
    memo->n_words = words->n;
    memo->n_ins = r->n_ins;
    memo->n_outs = n_outs;
    memo->changed = 0;
    for (uint32_t i = 0; i < words->n_dicts; i++) {
        fg_status st = fg_dict_watch_set(&memo->watches[i], words->dicts[i].dict, &memo->changed, words->dicts[i].loudness);
        if (st != FG_OK) {
            let_go(memo);
            return st;
        }
        memo->n_watches++;
    }
    return FG_OK;
}

fg_status fg_memo_new(fg_program *program, fg_memo **out)
{
    fg_memo *memo = fg_calloc(1, sizeof *memo);
    if (memo == NULL)
        return FG_ERR_NOMEM;
    if (fg_grow(&program->memos, &program->cap_memos, program->n_memos + 1, sizeof(fg_memo *)) != FG_OK) {
        fg_free(memo);
        return FG_ERR_NOMEM;
    }
    program->memos[program->n_memos++] = memo;
    *out = memo;
    return FG_OK;
}

/* Whether a wide memo is to be recorded now: all memos of its row have held for a while. */
static int is_calm(const fg_program *program, fg_memo *memo)
{
    if (memo->recorded) { /* and did not hold */
        memo->strikes = (uint8_t)(memo->hits >= 4 * FG_MEMO_CALM ? 0 : memo->strikes + (memo->strikes < 6));
        memo->wait = (uint16_t)(FG_MEMO_CALM << memo->strikes);
        let_go(memo);
        return 0;
    }
    if (memo->wait > 0) {
        memo->wait--;
        return 0;
    }
    for (uint32_t at = memo->first; at < memo->first + memo->n; at++) {
        const fg_memo *in_row = program->code[at].op == FG_PI_MEMO ? program->code[at].leaf.p : NULL;
        if (in_row != NULL && !(in_row->recorded && in_row->hits >= FG_MEMO_CALM)) {
            memo->wait = FG_MEMO_CALM;
            return 0;
        }
    }
    return 1;
}

/* The decision for a memo of its own, and its bookkeeping. */
static int is_due(fg_memo *memo)
{
    if (memo->wait > 0) {
        memo->wait--;
        return 0;
    }
    if (memo->recorded && memo->hits >= FG_MEMO_CALM)
        memo->strikes = 0;
    else if (memo->recorded)
        memo->strikes++;
    if (memo->strikes >= 2)
        memo->fine = 1;
    let_go(memo);
    return 1;
}

static int record(recorder *r, const fg_program *program, const fg_memo *memo, const fg_view *view, PyObject **regs, uint64_t live,
                  uint64_t *left)
{
    r->program = program;
    r->memo = memo;
    r->view = view;
    r->regs = regs;
    r->words.n = 0;
    r->words.overflow = r->words.n_dicts = 0;
    r->n_ins = r->n_outs = 0;
    r->failed = memo->first;
    r->fine = memo->fine;
    *left = live;
    return record_all(r, left);
}

int fg_memo_renew(const fg_program *program, fg_memo *memo, const fg_view *view, PyObject **regs, uint64_t *live)
{
    if (memo->wide ? !is_calm(program, memo) : !is_due(memo))
        return 0;
    recorder r;
    uint64_t left;
    r.words.loudness = NULL;
    int proven = record(&r, program, memo, view, regs, *live, &left);
    if (!proven && !memo->wide && memo->loudness < FG_MEMO_LOUD) {
        /* The contents of dicts that cannot be put into words (since 3.14 they have no version) are watched. */
        r.words.loudness = &memo->loudness;
        proven = record(&r, program, memo, view, regs, *live, &left);
    }
    if (!proven) {
        memo->strikes += memo->strikes < 6 ? 3 : 1;
    } else if (keep(memo, &r) == FG_OK) {
        memo->recorded = 1;
        memo->hits = 0;
        memo->seen = *live;
        memo->kept = left;
        memo->failed = r.failed;
    }
    if (memo->strikes > 12)
        memo->strikes = 12;
    memo->wait = (uint16_t)(memo->wide ? FG_MEMO_CALM << memo->strikes / 2 : memo->strikes < 3 ? 0 : 1u << memo->strikes);
    if (!memo->recorded)
        return 0;
    for (uint32_t i = 0; i < r.n_outs; i++)
        regs[r.outs[i].reg] = r.outs[i].value;
    *live = left;
    return 1;
}

size_t fg_memo_nbytes(const fg_memo *memo)
{
    return sizeof *memo + memo->n_words * sizeof(fg_word) + (memo->n_ins + memo->n_outs) * sizeof(fg_memo_reg) +
           memo->n_watches * sizeof(fg_dict_watch);
}

void fg_memo_free(fg_memo *memo)
{
    if (memo == NULL)
        return;
    let_go(memo);
    fg_free(memo->words);
    fg_free(memo);
}
