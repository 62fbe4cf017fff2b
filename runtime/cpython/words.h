/* Purpose:   which words of memory prove that a pure read would give again what it gave: for memos, which skip reads by comparing words.
 * Model:     a read of an object is put into words by the functions below, each with the value it has now. As long as every word of the list,
 *            compared in order, is what it was, the same reads have the same results. The version of a dict or a type is one word that stands for
 *            all of its contents. A dict that is watched (dict_watch.h) needs none.
 * Invariants: a word's address is only valid while the words before it hold: they prove that the object is alive and has that layout. So a list
 *            is compared from the front and left at the first difference. Nothing here allocates, raises or runs Python.
 *            The caller has proven the object's type (fg_words_type) before it puts down a read of its layout.
 * Threading: the GIL is held.
 * Ownership: addresses are borrowed.
 */
#ifndef FG_CPYTHON_WORDS_H
#define FG_CPYTHON_WORDS_H

#include "runtime/cpython/dict.h"
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fg_word {
    const void *at; /* 8 bytes that have values: no padding, which nobody writes */
    uint64_t value;
} fg_word;

#define FG_WORDS_ROOM 512
#define FG_WORDS_DICTS 128
typedef struct fg_words {
    uint32_t n;
    uint8_t overflow;  /* more than there is room for: the list proves nothing */
    uint8_t n_dicts;   /* dicts that are to be watched as long as the list is used: it holds only while none of them has changed */
    uint8_t *loudness; /* where their changes are counted; NULL: dicts are put into words */
    fg_word items[FG_WORDS_ROOM];
    struct {
        PyObject *dict;
        uint8_t *loudness;
    } dicts[FG_WORDS_DICTS];
} fg_words;

/* FG_PROOF_NONE: cannot be put into words. OBJECT: the words prove the address of the object that was read. STEADY: they prove, too, that it has
 * been alive ever since, so that what cannot change about it still holds. */
typedef enum fg_proof { FG_PROOF_NONE = 0, FG_PROOF_OBJECT, FG_PROOF_STEADY } fg_proof;

/* The word at this address as it is now; a repetition is dropped. */
void fg_words_add(fg_words *words, const void *at);
/* A field shorter than a word, with padding behind it: the eight bytes that end where it ends. What is before it is as much the object's. */
static inline void fg_words_add_short(fg_words *words, const void *field, size_t size)
{
    fg_words_add(words, (const char *)field + size - sizeof(uint64_t));
}

/* What is put down next reads the contents of this object. If it is a dict that may be watched, it takes no words. */
void fg_words_contents(fg_words *words, PyObject *object);
/* The object's type. steady: the object's pointer was proven STEADY. known: the identity of its type is guarded otherwise. */
fg_proof fg_words_type(fg_words *words, PyObject *object, int steady, int known);
/* All that lookups in this type find. */
fg_proof fg_words_type_version(fg_words *words, PyTypeObject *type);

/* What a lookup of key in the dict (or an instance of a subclass) gives. fine: by the entry alone, for a dict whose other entries change all the
 * time, else by the version of the whole. */
fg_proof fg_words_dict(fg_words *words, PyObject *dict, PyObject *key, Py_hash_t hash, int fine);
/* The contents of a dict and, if it is an exact one, their order. */
fg_proof fg_words_dict_version(fg_words *words, PyObject *dict);
/* What fg_attr_find gives. */
fg_proof fg_words_attr(fg_words *words, PyObject *object, PyObject *name, Py_hash_t hash, int fine);

/* The dict of a module; element i of a list or tuple; the length of a container that fg_words_type has proven (list, tuple, dict, set, bytes). */
fg_proof fg_words_module_dict(fg_words *words, PyObject *module);
fg_proof fg_words_element(fg_words *words, PyObject *sequence, Py_ssize_t index);
fg_proof fg_words_length(fg_words *words, PyObject *container);

static inline uint64_t fg_word_now(const void *at)
{
    uint64_t now;
    memcpy(&now, at, sizeof now);
    return now;
}

/* 1 if all words hold. In order: none is read before the ones in front of it. */
static inline int fg_words_hold(const fg_word *words, uint32_t n)
{
#define HOLDS(I) (fg_word_now(words[I].at) == words[I].value)
    for (; n >= 8; n -= 8, words += 8) {
        if (!(HOLDS(0) && HOLDS(1) && HOLDS(2) && HOLDS(3) && HOLDS(4) && HOLDS(5) && HOLDS(6) && HOLDS(7)))
            return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!HOLDS(i))
            return 0;
    }
    return 1;
#undef HOLDS
}

#ifdef __cplusplus
}
#endif

#endif
