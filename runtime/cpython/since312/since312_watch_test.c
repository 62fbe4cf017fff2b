/* Whether this interpreter announces every way of changing a dict: each is done to a watched one.
 *
 * Stores of the interpreter's own are done so often that they have been specialised. A dict that cannot be watched is passed over.
 */
#include "runtime/cpython/dict_watch.h"

static const char trial_text[] =
    "class C: pass\n"
    "class E:\n"
    "    def __index__(self): return 0\n"
    "def own():\n"
    "    o = C(); o.a, o.b = 0, 1; return o, vars(o)\n"
    "def given():\n"
    "    o = C(); o.__dict__ = {'a': 0, 'b': 1}; return o, o.__dict__\n"
    "def grown():\n"
    "    o, d = own()\n"
    "    for i in range(20): d['x%d' % i] = i\n"
    "    return o, d\n"
    "def store(o, d): o.a = E()\n"
    "def add(o, d): o.c = E()\n"
    "def drop(o, d): del o.a\n"
    "def put(o, d): d['a'] = E()\n"
    "def remove(o, d): del d['a']\n"
    "names = {'a': 0, 'E': E}\n"
    "exec('def store_global():\\n global a\\n a = E()\\ndef drop_global():\\n global a\\n del a', names)\n"
    "def replace(o, d):\n"
    "    d |= {'a': E()}\n"
    "ways = [store, add, drop, put, remove, replace,\n"
    "    lambda o, d: setattr(o, 'a', E()), lambda o, d: delattr(o, 'a'), lambda o, d: object.__setattr__(o, 'new', E()),\n"
    "    lambda o, d: object.__delattr__(o, 'a'), lambda o, d: d.__setitem__('a', E()), lambda o, d: d.__setitem__(1, E()),\n"
    "    lambda o, d: d.__delitem__('a'), lambda o, d: d.update(a=E()), lambda o, d: d.update({'c': E()}), lambda o, d: d.update([('a', "
    "E())]),\n"
    "    lambda o, d: d.setdefault('new', E()), lambda o, d: d.pop('a'), lambda o, d: d.popitem(), lambda o, d: d.clear(),\n"
    "    lambda o, d: d.__init__(a=E()), lambda o, d: d.__ior__({'a': E()}), lambda o, d: exec('a = E()', {'E': E}, d),\n"
    "    lambda o, d: exec('del a', {}, d), lambda o, d: exec('a = 5', d)]\n"
    "def fresh(f):\n"
    "    return type(f)(f.__code__.replace(), globals())\n"
    "def each(make, ways):\n"
    "    for way in ways:\n"
    "        o, d = make()\n"
    "        if watch(d):\n"
    "            way(o, d)\n"
    "            if not seen(): return False\n"
    "    for way in fresh(store), fresh(put):\n"
    "        o, d = make()\n"
    "        for i in range(12):\n"
    "            if watch(d):\n"
    "                way(o, d)\n"
    "                if not seen(): return False\n"
    "    for way in fresh(add), fresh(drop), fresh(remove):\n"
    "        for i in range(12):\n"
    "            o, d = make()\n"
    "            if watch(d):\n"
    "                way(o, d)\n"
    "                if not seen(): return False\n"
    "    o, d = make()\n"
    "    if watch(d):\n"
    "        d = None\n"
    "        if seen(): return False\n"
    "        o = None\n"
    "        if not seen(): return False\n"
    "    return True\n"
    "def empty():\n"
    "    for way in [lambda d: d.update({'a': 1}), lambda d: d.setdefault('a'), lambda d: d.__setitem__('a', 1), lambda d: "
    "d.update(a=1)]:\n"
    "        d = {}\n"
    "        if not watch(d) or seen(): return False\n"
    "        way(d)\n"
    "        if not seen(): return False\n"
    "    watch(d)\n"
    "    d = None\n"
    "    return seen()\n"
    "def globals_of():\n"
    "    for i in range(12):\n"
    "        if not watch(names): return False\n"
    "        names['store_global']()\n"
    "        if not seen(): return False\n"
    "    watch(names)\n"
    "    names['drop_global']()\n"
    "    return seen()\n"
    "def cycle():\n"
    "    d = {}; d['d'] = d\n"
    "    if not watch(d): return False\n"
    "    d.pop('d') is d\n"
    "    return seen()\n"
    "fine = each(own, ways) and each(given, ways) and each(grown, ways[:6]) and empty() and globals_of() and cycle()\n";

int fg_dict_watch_try(PyCFunction watch, PyCFunction seen)
{
    static PyMethodDef watch_def = {"watch", NULL, METH_O, NULL}, seen_def = {"seen", NULL, METH_NOARGS, NULL};
    watch_def.ml_meth = watch;
    seen_def.ml_meth = seen;
    PyObject *names = PyDict_New(), *watcher = PyCFunction_New(&watch_def, NULL), *seer = PyCFunction_New(&seen_def, NULL), *done = NULL;
    int fine = 0;

    if (names != NULL && watcher != NULL && seer != NULL && PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) == 0 &&
        PyDict_SetItemString(names, "watch", watcher) == 0 && PyDict_SetItemString(names, "seen", seer) == 0)
        done = PyRun_String(trial_text, Py_file_input, names, names);
    if (done != NULL)
        fine = PyDict_GetItemString(names, "fine") == Py_True;
    if (names != NULL)
        PyDict_Clear(names); /* classes and functions refer to it */
    Py_XDECREF(done);
    Py_XDECREF(names);
    Py_XDECREF(watcher);
    Py_XDECREF(seer);
    PyErr_Clear();
    return fine;
}
