/* The table of precisions, found by its shape.
 *
 * torch::Context has a std::unordered_map<pair<backend, operation>, precision>. Of its memory, 8 bytes at a time, each place is tried as such a table:
 *
 *     table:  buckets | how many buckets | first node | how many nodes        node:  next | backend, operation, value (int32 each)
 *
 * The nodes must be nine: backend 0 with operation 0, backends 1 and 2 with operations 0 to 3, each once, with values below 16. Memory is read through the
 * kernel (fg_torch_probe), since nothing is known of it before; nothing of torch's is changed for the search.
 */
#include "guards/adaptor_torch_precision.h"
#include "guards/adaptor_torch.h"
#include <string.h>

enum { WINDOW = 4096 };

typedef struct node {
    uint64_t next;
    int32_t backend, operation, value, padding;
} node;

/* Walk the nodes; fill in the places. 1 if it is the table. */
static int is_table(uint64_t first, const int32_t **places)
{
    uint32_t seen = 0;
    int n = 0;
    node at;

    for (uint64_t address = first; address != 0; address = at.next) {
        if (n == FG_TORCH_PRECISIONS || address % 8 != 0 || fg_torch_probe((const void *)(uintptr_t)address, &at, sizeof at) != sizeof at)
            return 0;
        if (at.backend < 0 || at.backend > 2 || at.operation < 0 || at.operation > (at.backend == 0 ? 0 : 3) || at.value < 0 ||
            at.value > 15 || (seen >> (4 * at.backend + at.operation) & 1))
            return 0;
        seen |= UINT32_C(1) << (4 * at.backend + at.operation);
        places[n++] = (const int32_t *)(uintptr_t)(address + offsetof(node, value));
    }
    return n == FG_TORCH_PRECISIONS;
}

int fg_torch_precision_find(const void *context, const int32_t *places[FG_TORCH_PRECISIONS])
{
    static char window[WINDOW];
    size_t size = fg_torch_probe(context, window, sizeof window);

    for (size_t at = 0; at + 32 <= size; at += 8) {
        uint64_t table[4];
        memcpy(table, window + at, sizeof table);
        if (table[0] != 0 && table[1] != 0 && table[3] == FG_TORCH_PRECISIONS && is_table(table[2], places))
            return 1;
    }
    return 0;
}
