/* Reading a code object: units, location table and exception table into one array of instructions.
 *
 * Formats (the interpreter describes them in Objects/locations.md and Objects/exception_handling_notes.txt):
 *   code       two bytes a unit: opcode, argument byte. EXTENDED_ARG units before an instruction give its upper argument bytes; cache units
 *              follow it. A jump lands on the first prefix.
 *   locations  entries of one to eight units: 0x80 | form << 3 | units - 1, then columns and line deltas as the form says.
 *   handlers   (start, length, target, depth << 1 | lasti) in six-bit groups, the highest first; bit 6 says that more follow, bit 7 marks
 *              the first byte of an entry.
 */
#include "runtime/cpython/bytecode_raw.h"
#include <string.h>

const uint8_t fg_raw_kinds[256] = {
#define FG_RAW_OP(NAME, NUMBER, CACHES, KIND) [NUMBER] = FG_RAW_KIND_##KIND,
#include FG_VERSION_OPCODES
#undef FG_RAW_OP
};

const uint8_t fg_raw_caches[256] = {
#define FG_RAW_OP(NAME, NUMBER, CACHES, KIND) [NUMBER] = CACHES,
#include FG_VERSION_OPCODES
#undef FG_RAW_OP
};

static fg_status refuse(fg_raw_code *raw, fg_status st, const char *why)
{
    raw->why = why;
    return st;
}

static fg_status read_units(fg_raw_code *raw)
{
    const uint8_t *units = (const uint8_t *)PyBytes_AS_STRING(raw->bytes);
    const Py_ssize_t size = PyBytes_GET_SIZE(raw->bytes);
    if (size % 2 || size > INT32_MAX)
        return refuse(raw, FG_ERR_INVALID, "odd or huge code size");
    const int32_t n_units = (int32_t)(size / 2);
    int32_t *at = fg_arena_alloc(&raw->arena, ((size_t)n_units + 1) * sizeof *at); /* unit -> index + 1 */
    raw->ops = fg_arena_alloc(&raw->arena, ((size_t)n_units + 1) * sizeof *raw->ops);
    if (!at || !raw->ops)
        return FG_ERR_NOMEM;

    int32_t n = 0;
    for (int32_t u = 0; u < n_units;) {
        fg_raw *op = &raw->ops[n];
        uint32_t arg = 0;
        op->start = u;
        int prefixes = 0;
        while (units[2 * u] == FG_RAW_EXTENDED_ARG) {
            arg = (arg | units[2 * u + 1]) << 8;
            if (++u >= n_units || ++prefixes > 3)
                return refuse(raw, FG_ERR_INVALID, "EXTENDED_ARG without an instruction, or more than three of them");
        }
        op->op = units[2 * u];
        op->arg = arg | units[2 * u + 1];
        op->unit = u;
        op->end = u + 1 + fg_raw_caches[op->op];
        op->target = op->entry = op->state = -1;
        op->line = op->end_line = op->col = op->end_col = -1;
        if (fg_raw_kinds[op->op] == FG_RAW_KIND_INVALID || op->op == FG_RAW_CACHE)
            return refuse(raw, FG_ERR_UNSUPPORTED, "an opcode that is never in a code object's own bytes");
        if (op->end > n_units)
            return refuse(raw, FG_ERR_INVALID, "inline cache past the end");
        for (int32_t c = u + 1; c < op->end; c++)
            if (units[2 * c])
                return refuse(raw, FG_ERR_INVALID, "inline cache unit with an opcode");
        if (op->arg > INT32_MAX / 4)
            return refuse(raw, FG_ERR_INVALID, "argument out of range");
        at[op->start] = ++n;
        u = op->end;
    }
    raw->n_ops = n;
    if (!n)
        return refuse(raw, FG_ERR_INVALID, "empty code");

    for (int32_t i = 0; i < n; i++) {
        fg_raw *op = &raw->ops[i];
        const int kind = fg_raw_kinds[op->op];
        if (kind != FG_RAW_KIND_JUMP_AHEAD && kind != FG_RAW_KIND_JUMP_BACK)
            continue;
        const int64_t to = kind == FG_RAW_KIND_JUMP_AHEAD ? (int64_t)op->end + op->arg : (int64_t)op->end - op->arg;
        if (to < 0 || to >= n_units || !at[to])
            return refuse(raw, FG_ERR_INVALID, "jump into the middle of an instruction or out of the code");
        op->target = at[to] - 1;
    }

    for (int32_t e = 0; e < raw->n_entries; e++) {
        fg_raw_entry *entry = &raw->entries[e];
        if (entry->target < 0 || entry->target >= n_units || !at[entry->target] || entry->end > n_units)
            return refuse(raw, FG_ERR_INVALID, "exception table entry out of the code");
        entry->target = at[entry->target] - 1;
    }
    int32_t e = 0;
    for (int32_t i = 0; i < n && e < raw->n_entries; i++) {
        while (e < raw->n_entries && raw->entries[e].end <= raw->ops[i].unit)
            e++;
        if (e < raw->n_entries && raw->entries[e].start <= raw->ops[i].unit)
            raw->ops[i].entry = e;
    }
    return FG_OK;
}

/* One number of the exception table; -1: the table ends inside it or it is too large. */
static int64_t read_handler_number(const uint8_t **at, const uint8_t *end)
{
    int64_t value = 0;
    for (int groups = 0; *at < end && groups < 6; groups++) {
        const uint8_t byte = *(*at)++;
        value = value << 6 | (byte & 0x3f);
        if (!(byte & 0x40))
            return value <= INT32_MAX ? value : -1;
    }
    return -1;
}

static fg_status read_handlers(fg_raw_code *raw)
{
    PyObject *table = raw->code->co_exceptiontable;
    const uint8_t *at = (const uint8_t *)PyBytes_AS_STRING(table), *end = at + PyBytes_GET_SIZE(table);
    int32_t n = 0;
    for (const uint8_t *p = at; p < end; p++)
        n += *p >> 7;
    if (!n)
        return at == end ? FG_OK : refuse(raw, FG_ERR_INVALID, "exception table without an entry");
    raw->entries = fg_arena_alloc(&raw->arena, (size_t)n * sizeof *raw->entries);
    if (!raw->entries)
        return FG_ERR_NOMEM;
    int32_t last = 0;
    for (int32_t e = 0; e < n; e++) {
        fg_raw_entry *entry = &raw->entries[e];
        if (at >= end || !(*at & 0x80))
            return refuse(raw, FG_ERR_INVALID, "exception table entry without its mark");
        const int64_t start = read_handler_number(&at, end), length = read_handler_number(&at, end);
        const int64_t target = read_handler_number(&at, end), depth = read_handler_number(&at, end);
        if (start < last || length <= 0 || target < 0 || depth < 0 || start + length > INT32_MAX)
            return refuse(raw, FG_ERR_INVALID, "exception table is not sorted or ends inside an entry");
        *entry = (fg_raw_entry){(int32_t)start, (int32_t)(start + length), (int32_t)target, (int32_t)(depth >> 1), depth & 1, -1};
        last = entry->end;
    }
    if (at != end)
        return refuse(raw, FG_ERR_INVALID, "exception table has bytes after its last entry");
    raw->n_entries = n;
    return FG_OK;
}

typedef struct fg_locations {
    const uint8_t *at, *end;
    int broken;
} fg_locations;

static int location_byte(fg_locations *in)
{
    if (in->at < in->end)
        return *in->at++;
    in->broken = 1;
    return 0;
}

static int32_t location_number(fg_locations *in)
{
    uint32_t value = 0;
    for (int shift = 0; shift < 30; shift += 6) {
        const int byte = location_byte(in);
        value |= (uint32_t)(byte & 0x3f) << shift;
        if (!(byte & 0x40))
            return (int32_t)value;
    }
    /* A sixth group holds the top two bits. */
    value |= (uint32_t)(location_byte(in) & 3) << 30;
    return (int32_t)value;
}

/* Sums wrap: a table that somebody wrote may say anything. */
static int32_t location_sum(int32_t to, fg_locations *in)
{
    const uint32_t value = (uint32_t)location_number(in), delta = value & 1 ? 0 - (value >> 1) : value >> 1;
    return (int32_t)((uint32_t)to + delta);
}

static int32_t location_column(fg_locations *in)
{
    return (int32_t)((uint32_t)location_number(in) - 1);
}

static fg_status read_locations(fg_raw_code *raw)
{
    PyObject *table = raw->code->co_linetable;
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(table);
    fg_locations in = {bytes, bytes + PyBytes_GET_SIZE(table), 0};
    int32_t line = raw->code->co_firstlineno, unit = 0, i = 0;
    while (in.at < in.end && i < raw->n_ops) {
        const int head = location_byte(&in), form = head >> 3 & 15;
        int32_t first = -1, last = -1, col = -1, end_col = -1;
        if (!(head & 0x80))
            return refuse(raw, FG_ERR_INVALID, "location entry without its mark");
        if (form < 10) {
            const int byte = location_byte(&in);
            first = last = line;
            col = form << 3 | byte >> 4;
            end_col = col + (byte & 15);
        } else if (form < 13) {
            first = last = line = (int32_t)((uint32_t)line + (uint32_t)form - 10);
            col = location_byte(&in);
            end_col = location_byte(&in);
        } else if (form == 13) {
            first = last = line = location_sum(line, &in);
        } else if (form == 14) {
            first = line = location_sum(line, &in);
            last = (int32_t)((uint32_t)first + (uint32_t)location_number(&in));
            col = location_column(&in);
            end_col = location_column(&in);
        }
        if (in.broken)
            return refuse(raw, FG_ERR_INVALID, "location table ends inside an entry");
        unit += (head & 7) + 1;
        for (; i < raw->n_ops && raw->ops[i].unit < unit; i++) {
            fg_raw *op = &raw->ops[i];
            op->line = first, op->end_line = last, op->col = col, op->end_col = end_col;
        }
    }
    return FG_OK;
}

/* The interpreter's reader (deopt_code of Objects/codeobject.c) clears the cache units after each instruction, also those that a code object made from
 * arbitrary bytes does not have: it would write behind the end. */
static int is_whole(PyCodeObject *code)
{
    const Py_ssize_t n = Py_SIZE(code);
    Py_ssize_t u = 0;
    while (u < n)
        u += 1 + fg_version_live_caches(code, u);
    return u == n;
}

fg_status fg_raw_read(PyCodeObject *code, fg_raw_code *out)
{
    fg_status st;
    memset(out, 0, sizeof *out);
    fg_arena_init(&out->arena);
    out->code = code;
    if (!is_whole(code))
        return refuse(out, FG_ERR_INVALID, "the code ends inside an instruction");
    out->bytes = PyCode_GetCode(code);
    if (!out->bytes)
        return FG_ERR_PYTHON;
    if ((st = read_handlers(out)) != FG_OK || (st = read_units(out)) != FG_OK)
        return st;
    return read_locations(out);
}

void fg_raw_fini(fg_raw_code *raw)
{
    Py_CLEAR(raw->bytes);
    fg_arena_fini(&raw->arena);
}
