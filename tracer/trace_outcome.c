/* Decisions on numbers that vary: a fact about the outcome instead of one about each number.
 *
 *     n = state.n + 1          first entry     state.n == 0
 *     if n % 10 == 0: …        later ones      not ((state.n + 1) % 10 == 0)
 *
 * A number that an earlier entry of this code fixed to another value has been seen to vary. What is computed from it by arithmetic that a guard can do
 * (guard_expr.h) is then put as one condition over the sources, which stay what they are: run-time scalars. Rules: what the guard computes is exactly
 * what the program does, so ints are of 64 bits all the way and the result of float arithmetic is never fixed (a zero has two signs), only compared. A
 * few such conditions are worth it; a trace that decides more often fixes the numbers, as it does those that are used as what they are.
 */
#include "tracer/trace_python.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_OUTCOMES = 8, MAX_OPERATIONS = 24, MAX_SOURCES = 8, ROOM = 1024 };
enum { UNKNOWN, VARIES, STANDS };

typedef struct condition {
    char text[ROOM];
    size_t n_text;
    fg_node nodes[MAX_SOURCES];
    fg_value *computed[MAX_OPERATIONS];
    int n_nodes, n_computed;
    bool varies;
} condition;

static bool add(condition *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(c->text + c->n_text, ROOM - c->n_text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= ROOM - c->n_text)
        return false;
    c->n_text += (size_t)n;
    return true;
}

/* 64 bits, or a float. */
static bool fits(const fg_value *v)
{
    int overflow = 0;
    if (v->real == NULL || Py_TYPE(v->real) != v->type)
        return false;
    if (v->type == &PyFloat_Type)
        return true;
    if (v->type != &PyLong_Type && v->type != &PyBool_Type)
        return false;
    (void)PyLong_AsLongLongAndOverflow(v->real, &overflow);
    return !overflow;
}

static bool varies(const fg_trace *t, fg_value *v)
{
    if (v->varies == UNKNOWN) {
        v->varies = STANDS;
        for (uint32_t i = 0; i < t->n_before && v->varies == STANDS; i++)
            if (fg_desc_fixes_otherwise(t->before[i], t->desc, FG_GUARD_CONST, v->node, v->real))
                v->varies = VARIES;
    }
    return v->varies == VARIES;
}

static const char *binary_text(int op, const fg_value *a, const fg_value *b)
{
    static const char *const texts[] = {"+", NULL, "//", NULL, NULL, "*", "%", NULL, NULL, NULL, "-", NULL, NULL};
    const char *text = texts[op % FG_OP_INPLACE];
    const bool divides = text != NULL && (*text == '/' || *text == '%');
    return divides && (a->type == &PyFloat_Type || b->type == &PyFloat_Type) ? NULL : text;
}

static bool add_constant(condition *c, const fg_value *v)
{
    uint64_t bits;
    if (v->type != &PyFloat_Type)
        return add(c, "%lld ", PyLong_AsLongLong(v->real));
    const double number = PyFloat_AS_DOUBLE(v->real);
    memcpy(&bits, &number, sizeof bits);
    return add(c, "float:0x%llx ", (unsigned long long)bits);
}

static bool add_source(fg_trace *t, condition *c, fg_value *v)
{
    int at = 0;
    while (at < c->n_nodes && c->nodes[at] != v->node)
        at++;
    if (at == MAX_SOURCES)
        return false;
    if (at == c->n_nodes)
        c->nodes[c->n_nodes++] = v->node;
    c->varies |= varies(t, v);
    return add(c, "v%d ", at);
}

/* Postfix, one blank after each word; false: a guard cannot compute it. */
static bool write_value(fg_trace *t, condition *c, fg_value *v)
{
    static const char *const compares[] = {"<", "<=", "==", "!=", ">", ">="};
    const char *text;
    if (!fits(v))
        return false;
    if (v->kind == FG_V_CONST) /* or fixed by a fact of its own */
        return add_constant(c, v);
    if (v->kind == FG_V_SCALAR && v->node != FG_NODE_NONE)
        return add_source(t, c, v);
    if (v->items == NULL || v->step < 0 || c->n_computed == MAX_OPERATIONS)
        return false;
    c->computed[c->n_computed++] = v;
    const fg_step *step = &t->ir.steps[v->step];
    switch (step->op) {
    case FG_STEP_BINARY: text = v->n == 2 ? binary_text(step->arg, v->items[0], v->items[1]) : NULL; break;
    case FG_STEP_COMPARE: text = v->n == 2 ? compares[step->arg] : NULL; break;
    case FG_STEP_UNARY: text = v->n == 1 && step->arg == FG_OP_UNARY_NEGATIVE ? "neg" : NULL; break;
    default: text = NULL; break;
    }
    for (int32_t i = 0; text != NULL && i < v->n; i++)
        if (!write_value(t, c, v->items[i]))
            return false;
    return text != NULL && add(c, "%s ", text);
}

static fg_flow settle(fg_trace *t, condition *c)
{
    c->text[c->n_text - 1] = '\0';
    FG_DO(fg_guard_holds(t, c->nodes, (size_t)c->n_nodes, c->text));
    for (int i = 0; i < c->n_computed; i++) { /* the guard has computed them all: none raises */
        fg_step *step = &t->ir.steps[c->computed[i]->step];
        if (step->flags & FG_SF_RAISES)
            FG_SET(t, step->flags, (uint8_t)(step->flags & ~FG_SF_RAISES));
    }
    FG_SET(t, t->n_outcomes, t->n_outcomes + 1);
    return FG_FLOW_OK;
}

static bool is_worth_it(const fg_trace *t, const fg_value *v)
{
    return t->n_before > 0 && t->n_outcomes < MAX_OUTCOMES && v->kind == FG_V_SCALAR && v->node == FG_NODE_NONE && v->items != NULL;
}

fg_flow fg_outcome_value(fg_trace *t, fg_value *v, bool *fixed)
{
    condition c = {.n_text = 0};
    *fixed = false;
    if (!is_worth_it(t, v) || v->type == &PyFloat_Type || !write_value(t, &c, v) || !c.varies)
        return FG_FLOW_OK;
    if (v->type == &PyBool_Type ? v->real == Py_False && !add(&c, "not ") : !add(&c, "%lld == ", PyLong_AsLongLong(v->real)))
        return FG_FLOW_OK;
    FG_DO(settle(t, &c));
    FG_SET(t, v->kind, FG_V_CONST);
    *fixed = true;
    return FG_FLOW_OK;
}

fg_flow fg_outcome_truth(fg_trace *t, fg_value *v, bool truth, bool *fixed)
{
    condition c = {.n_text = 0};
    *fixed = false;
    if (!is_worth_it(t, v) || !write_value(t, &c, v) || !c.varies || (!truth && !add(&c, "not ")))
        return FG_FLOW_OK;
    FG_DO(settle(t, &c));
    *fixed = true;
    return FG_FLOW_OK;
}
