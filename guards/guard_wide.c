/* Wide memos: one record for a row of memos that have all lasted.
 *
 * A memo covers an object, so that one which changes takes no other along. Where nothing changes, the records of neighbours repeat what they have in
 * common (the list that the objects are in, the version of their class), and each is entered and left. A row of memos with nothing between them is
 * therefore led by a wide one over all their instructions. It is recorded once every memo in it has held for a while; as long as it holds, the row is
 * passed over. When it does not hold, the memos in it serve as if it were not there, and it waits, longer with each record that did not last.
 *
 *     WIDE skip ────────────────────────────┐
 *     MEMO skip ─┐                          │
 *     LOAD …     │                          │
 *     MEMO skip <┘─┐                        │
 *     LOAD …       │                        │
 *     …          <─┘                      <─┘
 *
 * Rules for changing it: the row is found when the program is complete; a way that led to its first memo leads to the wide one.
 */
#include "guards/guard_memo.h"
#include "guards/guard_merge.h"

/* Words that an instruction takes in a record, at the most that is usual; a row stays below what a recorder has room for. */
#define WORDS_OF_TENSOR 12
#define WORDS_OF_OTHER 3

static uint32_t words_of(const fg_insn *in)
{
    switch ((fg_pi)in->op) {
    case FG_PI_MEMO: return 0;
    case FG_PI_FACT_TENSOR:
    case FG_PI_FACT_NUMPY: return WORDS_OF_TENSOR;
    default: return WORDS_OF_OTHER;
    }
}

/* Where the row that begins with the memo at `first` ends: memos without a gap, as many as one record has room for. */
static uint32_t row_end(const fg_program *program, uint32_t first, uint32_t *n_memos)
{
    uint32_t at = first, words = 0, instructions = 0;
    for (*n_memos = 0; at < program->n_code && program->code[at].op == FG_PI_MEMO; (*n_memos)++) {
        uint32_t next = at + program->code[at].skip + 1, more = 0;
        for (uint32_t i = at; i < next; i++)
            more += words_of(&program->code[i]);
        if (words + more > FG_WORDS_ROOM || instructions + program->code[at].skip > FG_MEMO_WIDE)
            break;
        words += more;
        instructions += program->code[at].skip;
        at = next;
    }
    return at;
}

typedef struct row {
    uint32_t first, end; /* in the code without wide memos */
} row;

/* An instruction's new place is its old one and the wide memos in front of it: before[i], one that leads the row which begins at i among them. What led to
 * such an i leads to the wide memo. */
static void move_code(fg_program *program, const fg_insn *old, const uint32_t *old_keys, uint32_t n_old, const uint32_t *before)
{
    for (uint32_t i = 0; i < n_old; i++) {
        const uint32_t to = i + before[i], end = i + old[i].skip + 1;
        program->code[to] = old[i];
        program->code[to].skip = end + before[end - 1] - to - 1;
        program->keys[to] = old_keys[i];
        if (old[i].op == FG_PI_MEMO)
            ((fg_memo *)old[i].leaf.p)->first = to + 1;
    }
}

static void lead(fg_program *program, fg_memo *memo, uint32_t at, uint32_t end)
{
    fg_insn *wide = &program->code[at];
    memo->first = at + 1;
    memo->n = end - at - 1;
    *wide = (fg_insn){.op = FG_PI_MEMO_WIDE, .skip = memo->n, .leaf = {.p = memo}};
    program->keys[at] = program->keys[at + 1];
    for (uint32_t i = 1; i <= memo->n; i++)
        wide->mask |= wide[i].mask;
}

static uint32_t find_rows(const fg_program *program, row *rows, uint32_t *before)
{
    uint32_t n = 0;
    for (uint32_t i = 0, end, n_memos; i < program->n_code; i = end) {
        end = i + 1;
        if (program->code[i].op == FG_PI_MEMO) {
            uint32_t stop = row_end(program, i, &n_memos);
            if (n_memos >= FG_MEMO_ROW)
                rows[n++] = (row){i, stop};
            end = stop > i ? stop : end;
        }
        for (uint32_t k = i; k < end; k++)
            before[k] = n;
    }
    return n;
}

fg_status fg_build_widen(fg_program *program)
{
    fg_status st = FG_OK;
    const uint32_t n_old = program->n_code, first_memo = program->n_memos;
    uint32_t *before = fg_calloc((size_t)n_old + 1, sizeof *before), *keys = NULL;
    row *rows = fg_calloc((size_t)program->n_memos + 1, sizeof *rows);
    fg_insn *code = NULL;

    if (before == NULL || rows == NULL)
        FG_TRY(FG_ERR_NOMEM);
    const uint32_t n_rows = find_rows(program, rows, before);
    if (n_rows == 0)
        goto fail;
    for (uint32_t i = 0; i < n_rows; i++) {
        fg_memo *memo = NULL;
        FG_TRY(fg_memo_new(program, &memo));
        memo->wide = 1;
        memo->wait = FG_MEMO_CALM;
    }
    code = fg_calloc((size_t)n_old + n_rows, sizeof *code);
    keys = fg_calloc((size_t)n_old + n_rows, sizeof *keys);
    if (code == NULL || keys == NULL)
        FG_TRY(FG_ERR_NOMEM);
    fg_insn *old = program->code;
    uint32_t *old_keys = program->keys;
    program->code = code;
    program->keys = keys;
    program->n_code = n_old + n_rows;
    move_code(program, old, old_keys, n_old, before);
    for (uint32_t i = 0; i < n_rows; i++)
        lead(program, program->memos[first_memo + i], rows[i].first + before[rows[i].first] - 1, rows[i].end + before[rows[i].end - 1]);
    code = old;
    keys = old_keys;
fail:
    fg_free(code);
    fg_free(keys);
    fg_free(before);
    fg_free(rows);
    return st;
}
