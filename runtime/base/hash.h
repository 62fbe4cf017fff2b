/* Purpose:   one hash function for every table of the engine: XXH3, inlined.
 * Model:     fg_hash_bytes for keys in memory, fg_hash_word and fg_hash_mix for pointers and integers.
 * Invariants: values are stable inside a process only; nothing writes them to a file.
 * Threading: pure functions.
 * Ownership: none.
 */
#ifndef FG_BASE_HASH_H
#define FG_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

static inline uint64_t fg_hash_bytes(const void *bytes, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, size, seed);
}

/* A full avalanche of one word (the murmur3 finaliser's structure with the constants of splitmix64). */
static inline uint64_t fg_hash_word(uint64_t word)
{
    word ^= word >> 30;
    word *= UINT64_C(0xbf58476d1ce4e5b9);
    word ^= word >> 27;
    word *= UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 31);
}

static inline uint64_t fg_hash_mix(uint64_t seed, uint64_t word)
{
    return fg_hash_word(seed * UINT64_C(0x9e3779b97f4a7c15) + word);
}

static inline uint64_t fg_hash_pointer(const void *pointer)
{
    return fg_hash_word((uint64_t)(uintptr_t)pointer);
}

#endif
