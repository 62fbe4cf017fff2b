/* Purpose:   memos: a stretch of a program's instructions is passed over while nothing that it would read has changed.
 * Model:     when the stretch has been run, the words of memory that decided each of its results are noted (runtime/cpython/words.h): versions
 *            of dicts and types, pointers, lengths, tensor metadata. As long as all of them are what they were, for the same objects in the
 *            registers that it starts from and the same live entries, running it again would give the same; so its registers and bits are set.
 *            A row of memos that have lasted gets one record for all of them (guard_wide.c), in which dicts are not looked at but watched.
 *            What changes all the time is read entry by entry instead of by the version of its dict (`fine`), then left alone for longer and longer.
 * Invariants: the words are compared in order, each proves the ones after it readable. A hit writes nothing but its count.
 * Threading: the GIL is held; nothing in here runs Python, so no other thread can see a memo half made.
 * Ownership: the program owns its memos. Everything that a memo mentions is borrowed and dereferenced only behind the words that prove it alive.
 */
#ifndef FG_GUARD_MEMO_H
#define FG_GUARD_MEMO_H

#include "guards/guard_insn.h"
#include "runtime/cpython/dict_watch.h"
#include "runtime/cpython/words.h"

/* Instructions of a stretch: at least enough to be worth it, at most so many that one change does not cost much. */
#define FG_MEMO_WORTH 4
#define FG_MEMO_STRETCH 32
/* A row that gets a wide memo: at least so many memos, at most so many instructions in them. */
#define FG_MEMO_ROW 2
#define FG_MEMO_WIDE 128
/* Changes after which the dicts of a stretch are looked at again instead of being watched. */
#define FG_MEMO_LOUD 2
/* Evaluations for which all memos of a row must have held before it is recorded. */
#ifndef FG_MEMO_CALM /* fuzzers wait for less */
#define FG_MEMO_CALM 64u
#endif

typedef struct fg_memo_reg {
    uint32_t reg;
    PyObject *value;
} fg_memo_reg;

typedef struct fg_memo {
    uint32_t n_words, n_ins, n_outs, n_watches; /* all 0 while there is no record */
    uint32_t hits;                              /* since the record was made */
    uint64_t seen, kept;                        /* live entries before and after */
    fg_word *words;                             /* one block: words, ins, outs, watches */
    fg_memo_reg *ins, *outs;
    fg_dict_watch *watches; /* of dicts that the record takes for unchanged without looking */
    uint32_t first, n;      /* the instructions */
    uint32_t failed;        /* position of the one that failed last, if any did */
    uint16_t wait;          /* evaluations to let pass before the next record */
    uint8_t strikes;        /* records that did not last */
    uint8_t fine;           /* no versions of dicts */
    uint8_t recorded;
    uint8_t changed;  /* a dict that is watched for the record has changed */
    uint8_t loudness; /* times that this happened by a dict of this stretch */
    uint8_t wide;     /* over a row of memos */
} fg_memo;

/* A new memo lets the check of a new entry pass before it records. */
#define FG_MEMO_FIRST_WAIT 1

/* 1 if the record holds: the registers are set. */
static inline int fg_memo_try(fg_memo *memo, PyObject **regs, uint64_t live)
{
    if (!memo->recorded || memo->changed || live != memo->seen)
        return 0;
    for (uint32_t i = 0; i < memo->n_ins; i++) {
        if (regs[memo->ins[i].reg] != memo->ins[i].value)
            return 0;
    }
    if (!fg_words_hold(memo->words, memo->n_words))
        return 0;
    for (uint32_t i = 0; i < memo->n_outs; i++)
        regs[memo->outs[i].reg] = memo->outs[i].value;
    memo->hits++;
    return 1;
}

/* An empty memo, which the program owns. */
fg_status fg_memo_new(fg_program *program, fg_memo **out);

/* After a failed try: the stretch run here and recorded, if it is time for that. 1 done (live is what is left); 0 run it as it stands. */
int fg_memo_renew(const fg_program *program, fg_memo *memo, const fg_view *view, PyObject **regs, uint64_t *live);

/* 1 if the instruction may be inside a stretch. */
int fg_memo_takes(fg_pi op);
size_t fg_memo_nbytes(const fg_memo *memo);
void fg_memo_free(fg_memo *memo);

#endif
