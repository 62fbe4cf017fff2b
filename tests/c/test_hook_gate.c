/* Gates and sites over a stand-in for guards: an entry accepts calls whose first argument has one exact type, and its target gets the first slots.
 * The cases are Python, run in an embedded interpreter; `compiler` decides what a miss compiles. */
#include <Python.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guards/guard_program.h"
#include "runtime/base/alloc.h"
#include "runtime/cpython/frame.h"
#include "runtime/hook/hook_gate.h"
#include "runtime/hook/hook_module.h"
#include "tests/c/alloc_failing.h"

#include <string.h>

/* --- the stand-in --- */

struct fg_desc {
    PyObject *type; /* borrowed; NULL: any */
    uint32_t n_outputs;
    int lies; /* accepts in fg_desc_check, never in the program */
    void (*invalidate)(void *);
    void *entry;
};

struct fg_program {
    size_t n;
    const fg_desc *descs[];
};

static int descs_alive, programs_alive, traced, fake_busy;
static int evaluations_pending, compiles_pending; /* how many saw an exception set */
static size_t fake_stack = 1 << 20;
static fg_desc *last_desc;

static int accepts(const fg_desc *d, const fg_view *view)
{
    return d->type == NULL || (view->n_slots > 0 && (PyObject *)Py_TYPE(view->slots[0]) == d->type);
}

void fg_desc_free(fg_desc *desc)
{
    descs_alive -= desc != NULL;
    fg_free(desc);
}
int fg_desc_check(const fg_desc *desc, const fg_view *view)
{
    return accepts(desc, view);
}
PyObject *fg_desc_explain(const fg_desc *desc, const fg_view *view)
{
    return accepts(desc, view) ? PyList_New(0) : Py_BuildValue("[s]", "another type");
}
PyObject *fg_desc_tree_str(const fg_desc *desc)
{
    return PyUnicode_FromFormat("type %R", desc->type == NULL ? Py_None : desc->type);
}
PyObject *fg_desc_to_text(const fg_desc *desc)
{
    return fg_desc_tree_str(desc);
}
fg_status fg_desc_from_text(PyObject *text, PyObject *resolve, fg_desc **out)
{
    (void)text, (void)resolve;
    *out = NULL;
    return FG_ERR_INVALID;
}
Py_ssize_t fg_desc_n_guards(const fg_desc *desc)
{
    return desc->type != NULL;
}
size_t fg_desc_nbytes(const fg_desc *desc)
{
    return sizeof *desc;
}
int fg_desc_traverse(const fg_desc *desc, visitproc visit, void *arg)
{
    (void)desc, (void)visit, (void)arg;
    return 0;
}
size_t fg_program_nbytes(const fg_program *program)
{
    (void)program;
    return 100;
}
int fg_desc_refusing_kind(const fg_desc *desc, const fg_view *view)
{
    (void)desc, (void)view;
    return FG_GUARD_TYPE;
}
const char *fg_guard_text(fg_guard_kind kind)
{
    (void)kind;
    return "kind";
}
void fg_desc_clear(fg_desc *desc)
{
    (void)desc;
}
void fg_desc_on_death(fg_desc *desc, void (*invalidate)(void *), void *entry)
{
    desc->invalidate = invalidate;
    desc->entry = entry;
}
fg_status fg_program_build(const fg_desc *const *descs, size_t n, const fg_program *old, fg_program **out)
{
    fg_program *p = fg_malloc(sizeof *p + n * sizeof *descs);
    if (p == NULL)
        return FG_ERR_NOMEM;
    assert_true(old == NULL || old->n > 0);
    p->n = n;
    memcpy(p->descs, descs, n * sizeof *descs);
    programs_alive++;
    *out = p;
    return FG_OK;
}
void fg_program_free(fg_program *program)
{
    programs_alive--;
    fg_free(program);
}
uint32_t fg_program_max_inputs(const fg_program *program)
{
    uint32_t most = 0;
    for (size_t i = 0; i < program->n; i++)
        most = program->descs[i]->n_outputs > most ? program->descs[i]->n_outputs : most;
    return most;
}
fg_eval_result fg_program_eval(const fg_program *program, const fg_view *view, const uint64_t *recency, const uint64_t *usable,
                               PyObject **inputs, fg_eval *out)
{
    evaluations_pending += PyErr_Occurred() != NULL;
    if (fake_busy)
        return FG_EVAL_BUSY;
    size_t best = program->n;
    for (size_t i = 0; i < program->n; i++) {
        if ((usable != NULL && !((usable[i / 64] >> (i % 64)) & 1)) || program->descs[i]->lies || !accepts(program->descs[i], view))
            continue;
        if (best == program->n || (recency != NULL && recency[i] > recency[best]))
            best = i;
    }
    if (best == program->n)
        return FG_EVAL_MISS;
    for (uint32_t o = 0; o < program->descs[best]->n_outputs; o++)
        inputs[o] = view->slots[o];
    *out = (fg_eval){(uint32_t)best, program->descs[best]->n_outputs, NULL, 0};
    return FG_EVAL_HIT;
}
void fg_eval_release(fg_eval *eval)
{
    (void)eval;
}
int fg_thread_traced(void)
{
    return traced;
}
fg_thread_stack fg_thread_stack_last; /* nobody's: every call asks the two above and below */
int fg_stack_fits_plain(void)
{
    return 0;
}
int fg_thread_is_plain(void)
{
    return 0;
}
void fg_thread_plain_enter(void)
{
}
void fg_thread_plain_leave(void)
{
}
size_t fg_stack_left(void)
{
    return fake_stack;
}

/* --- the compile callback: compiler(slots) -> None, or (code, type, n_outputs, uses_closure, lies) --- */

static PyObject *names;

static fg_status compile(fg_compile_request *request, fg_entry **out)
{
    fg_entry *entry = NULL;
    compiles_pending += PyErr_Occurred() != NULL;
    PyObject *compiler = PyDict_GetItemString(names, "compiler"), *slots = PyTuple_New(request->view->n_slots);
    for (Py_ssize_t i = 0; i < request->view->n_slots; i++)
        PyTuple_SET_ITEM(slots, i, Py_NewRef(request->view->slots[i]));
    PyObject *made = PyObject_CallOneArg(compiler, slots), *code, *type;
    Py_DECREF(slots);
    if (made == NULL)
        return FG_ERR_PYTHON;
    if (!PyTuple_Check(made)) {
        request->forever = made == Py_False;
        Py_DECREF(made);
        return FG_ERR_UNSUPPORTED;
    }
    int n_outputs, uses_closure, lies;
    assert_true(PyArg_ParseTuple(made, "OOipp", &code, &type, &n_outputs, &uses_closure, &lies));
    if (fg_entry_new(&entry) == FG_OK && (entry->desc = fg_calloc(1, sizeof *entry->desc)) != NULL) {
        descs_alive++;
        entry->code = (PyCodeObject *)Py_NewRef(code);
        entry->uses_closure = (uint8_t)uses_closure;
        entry->desc->type = type == Py_None ? NULL : type;
        entry->desc->n_outputs = (uint32_t)n_outputs;
        entry->desc->lies = lies;
        last_desc = entry->desc;
    } else if (entry != NULL) {
        fg_entry_drop(entry);
        entry = NULL;
    }
    Py_DECREF(made);
    *out = entry;
    return entry == NULL ? FG_ERR_NOMEM : FG_OK;
}

static PyObject *set_fake(PyObject *self, PyObject *args)
{
    (void)self;
    const char *what;
    Py_ssize_t value;
    if (!PyArg_ParseTuple(args, "sn", &what, &value))
        return NULL;
    if (strcmp(what, "traced") == 0)
        traced = (int)value;
    else if (strcmp(what, "stack") == 0)
        fake_stack = (size_t)value;
    else if (strcmp(what, "busy") == 0)
        fake_busy = (int)value;
    else if (strcmp(what, "strict") == 0)
        fg_hook.strict = (uint8_t)value;
    else if (strcmp(what, "die") == 0)
        last_desc->invalidate(last_desc->entry);
    else if (strcmp(what, "fail") == 0)
        alloc_failing_at((size_t)value);
    else if (strcmp(what, "fired") == 0)
        return PyBool_FromLong(alloc_failing_fired());
    else if (strcmp(what, "programs") == 0)
        return PyLong_FromLong(programs_alive);
    else if (strcmp(what, "descs") == 0)
        return PyLong_FromLong(descs_alive);
    Py_RETURN_NONE;
}

static PyMethodDef fake_functions[] = {{"fake", set_fake, METH_VARARGS, NULL}, {0}};

/* Call a gate with an exception pending, as C code in a destructor might: how many evaluations and compiles saw it. */
static PyObject *call_pending(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *gate = PyTuple_GET_ITEM(args, 0), *arg = PyTuple_GET_ITEM(args, 1);
    evaluations_pending = compiles_pending = 0;
    PyErr_SetString(PyExc_LookupError, "pending");
    PyObject *result = PyObject_Vectorcall(gate, &arg, 1, NULL);
    PyErr_Clear();
    Py_XDECREF(result);
    return Py_BuildValue("ii", evaluations_pending, compiles_pending);
}
static PyMethodDef pending_functions[] = {{"call_pending", call_pending, METH_VARARGS, NULL}, {0}};

static const char prelude[] =
    "import sys, types, gc, copy, pickle, weakref, inspect, functools\n"
    "exc = types.ModuleType('framegate.exc')\n"
    "for n in ('RecompileLimitExceeded', 'FailOnRecompile', 'InternalError'): setattr(exc, n, type(n, (Exception,), {}))\n"
    "pkg = types.ModuleType('framegate'); pkg.__path__ = []; sys.modules['framegate'] = pkg; sys.modules['framegate.exc'] = exc\n"
    "log = []\n"
    "def by_type(slots):\n"
    "    log.append(slots)\n"
    "    return TARGET, type(slots[0]), 1, False, False\n"
    "def target(x): return ('compiled', x)\n"
    "TARGET = target.__code__\n"
    "compiler = by_type\n"
    "def raises(kind, f, *a, **k):\n"
    "    try: f(*a, **k)\n"
    "    except kind as e: return str(e)\n"
    "    raise AssertionError('nothing raised')\n"
    "def fresh(ns=None):\n"
    "    d = {}\n"
    "    exec('def f(x): return (\"plain\", x)', d if ns is None else ns)\n"
    "    return (d if ns is None else ns)['f']\n";

typedef struct script {
    const char *name, *text;
} script;

static const script scripts[] = {
    {"a miss compiles, a hit does not",
     "log.clear(); g = gate_new(fresh())\n"
     "assert g(1) == ('compiled', 1) and g(2) == ('compiled', 2) and len(log) == 1\n"
     "assert g('s') == ('compiled', 's') and len(log) == 2\n"
     "e = entries(g); assert [x.hits for x in e] == [1, 2] and e[0].compile_id.endswith('/1') and e[0].valid and e[0].code is TARGET\n"
     "assert gate_find(g, 5) == e[1] and gate_find(g, 1.5) is None\n"
     "t = Guards(e[1], g); assert t.check(5) is True and t.check() is False and t.check(x=5) is True and t.check(y=5) is False\n"
     "assert t.explain('s') == ['another type'] and len(t) == 1 and Guards(t, g).check(5)\n"},
    {"gates of one code and options share entries",
     "log.clear(); f = fresh(); b = object(); g, h = gate_new(f, {'backend': b}), gate_new(f, {'backend': b, 'recompile_limit': 3})\n"
     "g(1); h(1); assert len(log) == 1\n"
     "k = gate_new(f, {'backend': object()}); k(1); assert len(log) == 2\n"},
    {"entries vanish with the code object",
     "fake('strict', 0); reset(); n = fake('descs', 0); f = fresh(); g = gate_new(f); g(1); assert fake('descs', 0) == n + 1\n"
     "w = weakref.ref(f.__code__); del f, g; log.clear(); gc.collect(); assert w() is None and fake('descs', 0) == n, fake('descs', 0)\n"},
    {"binding errors are the plain function's", "exec('def f(a, b=2, /, c=3, *r, d, e=5, **k): return (a, b, c, r, d, e, k)', ns := {}); f "
                                                "= ns['f']; compiler = lambda slots: None; g = gate_new(f)\n"
                                                "for a, k in [((), {}), ((1,), {}), ((1,), {'a': 1, 'd': 1}), ((1, 2, 3), {'c': 1, 'd': "
                                                "1}), ((1,), {'d': 2, 'z': 3}), ((1, 2, 3, 4, 5), {'d': 0, 'e': 1})]:\n"
                                                "    def out(fn):\n"
                                                "        try: return fn(*a, **k)\n"
                                                "        except TypeError as e: return str(e)\n"
                                                "    assert out(f) == out(g), (out(f), out(g))\n"
                                                "compiler = by_type\n"},
    {"slots are CPython's fast locals",
     "exec('def f(a, b=2, /, c=3, *r, d, e=5, **k): return 0', ns := {}); f = ns['f']; seen = []\n"
     "compiler = lambda slots: seen.append(slots)\n"
     "g = gate_new(f, {'recompile_limit': 99}); g(1, d=4); g(1, 7, 8, 9, 10, d=4, q=1); g(0, d=1, c=2, e=3)\n"
     "assert seen == [(1, 2, 3, 4, 5, (), {}), (1, 7, 8, 4, 5, (9, 10), {'q': 1}), (0, 2, 2, 1, 3, (), {})], seen\n"
     "f.__defaults__ = (20, 30); f.__kwdefaults__ = {'d': 40}; seen.clear(); g(1, e=2); assert seen == [(1, 20, 30, 40, 2, (), {})]\n"
     "exec('def h(a): return a', ns); h = gate_new(ns['h']); seen.clear(); h(a=3); assert seen == [(3,)]; compiler = by_type\n"},
    {"a replaced __code__ is another cache",
     "log.clear(); f = fresh(); g = gate_new(f); g(1); old = f.__code__; exec('def f(x, y): return (\"new\", x, y)', ns := {}); f.__code__ "
     "= ns['f'].__code__\n"
     "assert g(1, 2) == ('compiled', 1) and len(log) == 2; f.__code__ = old; g(1); assert len(log) == 2\n"},
    {"recompile_limit", "log.clear(); g = gate_new(fresh(), {'recompile_limit': 2}); g(1); g('a'); assert g(1.5) == ('plain', 1.5) and "
                        "g(2) == ('compiled', 2) and len(log) == 2\n"
                        "g = gate_new(fresh(), {'recompile_limit': 1, 'fullgraph': True}); g(1); assert 'recompile_limit' in "
                        "raises(exc.RecompileLimitExceeded, g, 'a')\n"
                        "assert g(1) == ('compiled', 1); reset(); assert g('a') == ('compiled', 'a')\n"
                        "raises(ValueError, gate_new, fresh(), {'recompile_limit': 0}); raises(TypeError, gate_new, len); "
                        "raises(TypeError, gate_new, fresh(), 5)\n"},
    {"cache_size evicts the least recently used",
     "log.clear(); g = gate_new(fresh(), {'cache_size': 2}); g(1); g('a'); g(2); g(1.5)\n"
     "assert g(3) == ('compiled', 3) and len(log) == 3; g('a'); assert len(log) == 4 and len(entries(g)) == 2\n"},
    {"stances and run states",
     "g = gate_new(fresh()); assert set_stance('force_eager') == 'default'; assert g(1) == ('plain', 1)\n"
     "set_stance('fail_on_recompile'); assert g(1) == ('compiled', 1); raises(exc.FailOnRecompile, g, 'a'); assert g(1) == ('compiled', "
     "1)\n"
     "set_stance('eager_on_recompile'); assert g('a') == ('plain', 'a'); set_stance('default'); raises(ValueError, set_stance, 'x')\n"
     "set_run_state(g, 'run_only'); assert g('a') == ('plain', 'a') and g(1) == ('compiled', 1)\n"
     "set_run_state(g, 'disabled'); assert g(1) == ('plain', 1); set_run_state(g, 'default'); assert g('a') == ('compiled', 'a')\n"},
    {"a death invalidates, the next miss rebuilds",
     "log.clear(); g = gate_new(fresh()); g(1); g('a'); fake('die', 0); n = fake('descs', 0); assert len(entries(g)) == 1\n"
     "assert g(1) == ('compiled', 1) and g('a') == ('compiled', 'a') and len(log) == 3 and fake('descs', 0) == n\n"},
    {"unsupported runs plain, forever stops asking",
     "calls = []; compiler = lambda s: calls.append(1); g = gate_new(fresh()); g(1); g(1); assert len(calls) == 2\n"
     "compiler = lambda s: calls.append(1) or False; g(1); g(1); g(1); assert len(calls) == 3; compiler = by_type\n"},
    {"an exception of the compiler reaches the caller",
     "def compiler(s): raise KeyError('boom')\n"
     "g = gate_new(fresh()); assert raises(KeyError, g, 1) == \"'boom'\"; compiler = by_type; assert g(1) == ('compiled', 1)\n"},
    {"an entry whose guards refuse its own call is not kept",
     "compiler = lambda s: (TARGET, dict, 1, False, False); g = gate_new(fresh()); n = stats()['self_check_failed']\n"
     "assert g(1) == ('plain', 1) and stats()['self_check_failed'] == n + 1 and not entries(g)\n"
     "fake('strict', 1); assert 'another type' in raises(exc.InternalError, g, 1); fake('strict', 0)\n"
     "compiler = lambda s: (TARGET, int, 1, False, True); assert g(1) == ('plain', 1) and stats()['self_check_failed'] == n + 3 and not "
     "entries(g); compiler = by_type\n"},
    {"re-entrant misses run plain",
     "def compiler(s): inner.append(g(s[0])); return by_type(s)\n"
     "inner = []; g = gate_new(fresh()); assert g(1) == ('compiled', 1) and inner == [('plain', 1)]; compiler = by_type\n"},
    {"closures and globals are the caller's",
     "exec('def outer(v):\\n def f(x): return (v, x, G)\\n return f', ns := {'G': 'g1'}); f1, f2 = ns['outer'](1), ns['outer'](2)\n"
     "f3 = types.FunctionType(f1.__code__, {'G': 'g3'}, closure=f1.__closure__); compiler = lambda s: (f1.__code__, None, 1, True, False)\n"
     "a, b, c = map(gate_new, (f1, f2, f3)); n = stats()['compiles']\n"
     "assert (a(0), b(0), c(0), a(0)) == ((1, 0, 'g1'), (2, 0, 'g1'), (1, 0, 'g3'), (1, 0, 'g1')) and stats()['compiles'] == n + 1\n"
     "w = weakref.ref(f2); del f2, b; gc.collect(); assert w() is None; compiler = by_type\n"},
    {"tracing, generators, busy guards and an exhausted stack",
     "g = gate_new(fresh()); g(1); fake('traced', 1); assert g(1) == ('plain', 1); fake('traced', 0); fake('busy', 1); assert g(1) == "
     "('plain', 1); fake('busy', 0)\n"
     "fake('stack', 100); assert 'f' in raises(RecursionError, g, 1); fake('stack', 1 << 20); assert g(1) == ('compiled', 1)\n"
     "exec('def gen(x): yield x', ns := {}); h = gate_new(ns['gen']); assert list(h(1)) == [1] and inspect.isgeneratorfunction(h)\n"},
    {"a pending exception is kept up to the target, and away from the compiler",
     "g = gate_new(fresh()); fake('strict', 0); assert call_pending(g, 1) == (2, 0) and call_pending(g, 1) == (1, 0) and len(entries(g)) "
     "== 1\n"},
    {"a gate looks like its function",
     "exec('def f(x: int, y=2) -> str:\\n \"doc\"\\n return x', ns := {'__name__': 'place'}); f = ns['f']; g = gate_new(f)\n"
     "for n in ('__name__', '__qualname__', '__doc__', '__module__', '__code__', '__defaults__', '__kwdefaults__', '__annotations__', "
     "'__globals__', '__closure__', '__dict__'):\n"
     "    assert getattr(g, n) is getattr(f, n), n\n"
     "g.mine = 5; assert f.mine == 5; del g.mine; assert not hasattr(f, 'mine'); g.__name__ = 'other'; assert f.__name__ == 'other'\n"
     "assert g.__wrapped__ is f and inspect.signature(g) == inspect.signature(f) and '__wrapped__' in dir(g) and 'f' in repr(g)\n"
     "assert copy.copy(g) is g and copy.deepcopy(g) is g and weakref.ref(g)() is g and functools.wraps(f)(g) is g and inspect.unwrap(g) is "
     "f\n"
     "class C: m = g\n"
     "c = C(); assert isinstance(c.m, types.MethodType) and c.m.__self__ is c and C.m is g\n"
     "assert type(raises(AttributeError, getattr, g, 'no')) is str and raises(TypeError, g.__class__) and callable(g)\n"},
    {"pickling by name, else through the reducer", "m = types.ModuleType('place2'); sys.modules['place2'] = m; exec('def f(x): return x', "
                                                   "m.__dict__); g = m.f = gate_new(m.f); assert pickle.loads(pickle.dumps(g)) is g\n"
                                                   "m.f = None; assert 'pickle' in raises(TypeError, pickle.dumps, g); "
                                                   "set_gate_reducer(lambda g: (len, ([],))); assert pickle.loads(pickle.dumps(g)) == 0\n"
                                                   "set_gate_reducer(None)\n"},
    {"cycles through a gate are collected", "f = fresh(ns := {}); g = ns['g'] = gate_new(f); g(1); w = weakref.ref(g); log.clear(); del f, "
                                            "g, ns; gc.collect(); assert w() is None\n"},
    {"an entry that goes while its target runs",
     "exec('def f(x): return 0', ns := {}); g = gate_new(ns['f']); ns['reset'] = reset; ns['g'] = g\n"
     "exec('def t(x):\\n reset()\\n return x', ns); compiler = lambda s: (ns['t'].__code__, int, 1, False, False)\n"
     "assert g(5) == 5 and g(6) == 6 and not entries(g); compiler = by_type\n"},
    {"gates made and dropped leave no sites behind",
     "exec('def outer():\\n def f(x): return x\\n return f', ns := {}); outer = ns['outer']; n = fake('descs', 0)\n"
     "for i in range(50): gate_new(outer(), {'backend': object()})(1)\n"
     "assert fake('descs', 0) <= n + 5, fake('descs', 0)\n"},
    {"many inputs and many slots",
     "names_ = ', '.join('a%d' % i for i in range(60)); exec('def f(%s): return 1\\ndef t(%s): return (a0, a59)' % (names_, names_), ns := "
     "{})\n"
     "compiler = lambda s: (ns['t'].__code__, int, 60, False, False); g = gate_new(ns['f']); a = tuple(range(60))\n"
     "assert g(*a) == (0, 59) and g(*a[:-1], a59=7) == (0, 7) and g(**{'a%d' % i: i for i in range(60)}) == (0, 59); compiler = by_type\n"},
    {"running out of memory runs plain and corrupts nothing", "log.clear(); seen = set()\n"
                                                              "for n in range(1, 60):\n"
                                                              "    f = fresh(); g = gate_new(f); fake('fail', n)\n"
                                                              "    try: r = g(1)\n"
                                                              "    finally: fired = fake('fired', 0); fake('fail', 0)\n"
                                                              "    assert r in (('plain', 1), ('compiled', 1)), r\n"
                                                              "    assert g(2) == ('compiled', 2); seen.add(r[0])\n"
                                                              "    if not fired: break\n"
                                                              "assert seen == {'plain', 'compiled'} and not fired, (n, seen)\n"},
    {"a child process compiles what its parent was compiling",
     "import os, threading\n"
     "def compiler(s):\n"
     "    if threading.current_thread() is not threading.main_thread():\n"
     "        started.set(); go.wait(10)\n"
     "    return by_type(s)\n"
     "started, go = threading.Event(), threading.Event(); g = gate_new(fresh()); t = threading.Thread(target=g, args=(1,)); t.start(); "
     "started.wait(10)\n"
     "assert g(1) == ('plain', 1)\n"
     "pid = os.fork()\n"
     "if pid == 0: os._exit(0 if g(1) == ('compiled', 1) else 7)\n"
     "status = os.waitpid(pid, 0)[1]; go.set(); t.join(); assert status == 0 and g(1) == ('compiled', 1); compiler = by_type\n"},
};

static void run_script(void **state)
{
    const script *s = *state;
    PyObject *result = PyRun_String(s->text, Py_file_input, names, names);
    if (result == NULL) {
        PyErr_Print();
        fail_msg("%s", s->name);
    }
    Py_DECREF(result);
    assert_false(PyErr_Occurred());
}

int main(void)
{
    enum { N = sizeof scripts / sizeof *scripts };
    struct CMUnitTest tests[N];
    alloc_failing_install();
    Py_InitializeEx(0);
    PyObject *core = PyModule_New("framegate._core");
    if (core == NULL || fg_hook_module_init(core) != FG_OK || PyModule_AddFunctions(core, fake_functions) < 0 ||
        PyModule_AddFunctions(core, pending_functions) < 0)
        return 1;
    names = PyDict_Copy(PyModule_GetDict(core));
    if (PyRun_String(prelude, Py_file_input, names, names) == NULL) {
        PyErr_Print();
        return 1;
    }
    fg_hook_compile_set(compile);
    for (int i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){scripts[i].name, run_script, NULL, NULL, (void *)&scripts[i]};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return Py_FinalizeEx() < 0 ? 1 : failed;
}
