"""Functions, classes, objects, generators and counters that another thing is made of between two calls: ten changes, two calls after each, as plain."""

import functools
import re
import types
import weakref

import framegate
import pytest

P = []
def prog(f): P.append(f); return f
def mk(src, **ns):
    d = dict(ns); exec(src, d); return d
@prog
def code_swap():
    def h(x): return x + 1
    def k(x): return x * 10
    def use(x): return h(x)
    return use, lambda i: setattr(h, '__code__', [k.__code__, (lambda x: x - 1).__code__, h.__code__][i % 3]), (3,)
@prog
def defaults_swap():
    def h(x, y=1, *, z=2): return x, y, z
    def use(x): return h(x)
    def ch(i):
        h.__defaults__ = [(5,), None, (6,)][i % 3]; h.__kwdefaults__ = [{'z': 9}, {'z': i}, None][i % 3]
    return use, ch, (3,)
@prog
def kwdefaults_mutate():
    def h(x, *, z=2): return x, z
    def use(x): return h(x)
    return use, lambda i: h.__kwdefaults__.__setitem__('z', i), (3,)
@prog
def closure_cell():
    n = 1
    def h(x): return x + n
    def use(x): return h(x)
    def ch(i): h.__closure__[0].cell_contents = [2.5, 'a' if False else 7, 9][i % 3]
    return use, ch, (3,)
@prog
def own_code():
    def use(x): return x + 1
    def other(x): return [x]
    return use, lambda i: setattr(use, '__code__', other.__code__ if i == 0 else (lambda x: {x}).__code__), (3,)
@prog
def own_defaults():
    def use(x=1, y=2): return x, y
    return use, lambda i: setattr(use, '__defaults__', (i, i + 1) if i else (7,) * 2), ()
@prog
def class_swap():
    class A:
        def m(self): return 'A'
    class B:
        def m(self): return 'B'
    a = A()
    def use(): return a.m(), type(a).__name__
    return use, lambda i: setattr(a, '__class__', [B, A, B][i % 3]), ()
@prog
def method_swap():
    class A:
        def m(self): return 'A'
    a = A()
    def use(): return a.m()
    def ch(i):
        if i == 0: A.m = lambda self: 'new'
        elif i == 1: a.m = lambda: 'inst'
        else: del a.m
    return use, ch, ()
@prog
def dict_swap():
    class A: pass
    a = A(); a.x = 1
    def use():
        a.x += 1
        return a.x, sorted(vars(a))
    def ch(i): a.__dict__ = {'x': i * 10, 'y%d' % i: 1}
    return use, ch, ()
@prog
def bases_swap():
    class P1:
        def m(self): return 1
    class P2:
        def m(self): return 2
    class A(P1): pass
    a = A()
    def use(): return a.m()
    return use, lambda i: setattr(A, '__bases__', [(P2,), (P1,), (P2, P1)][i % 3]), ()
@prog
def getattr_added():
    class A: pass
    a = A()
    def use():
        try: return a.zz
        except AttributeError as e: return 'none'
    def ch(i):
        if i == 0: A.__getattr__ = lambda self, n: n
        elif i == 1: A.__getattribute__ = lambda self, n: n * 2
        else: del A.__getattribute__
    return use, ch, ()
@prog
def property_swap():
    class A:
        @property
        def p(self): return 1
    a = A()
    def use(): return a.p
    def ch(i): A.p = [property(lambda s: 2), 5, property(lambda s: 'x')][i % 3]
    return use, ch, ()
@prog
def global_fn_swap():
    d = mk("def h(x): return x+1\ndef use(x): return h(x), [h(y) for y in (x, x)]\n")
    return d['use'], lambda i: d.__setitem__('h', [lambda x: x * 2, abs, str][i % 3]), (3,)
@prog
def builtin_shadow():
    d = mk("def use(x): return len(x), sum(x)\n")
    def ch(i):
        if i == 0: d['len'] = lambda x: 'L'
        elif i == 1: del d['len']; d['sum'] = max
        else: del d['sum']
    return d['use'], ch, ([1, 2],)
@prog
def builtins_dict():
    b = {'len': len, '__import__': __import__}
    d = {'__builtins__': b}; exec("def use(x): return len(x)\n", d)
    return d['use'], lambda i: b.__setitem__('len', [lambda x: 'B', len, lambda x: 3][i % 3]), ([1],)
@prog
def gen_left():
    def g():
        for i in range(5): yield i
    def use():
        it = g(); a = next(it); b = next(it)
        return a, b, list(it)
    return use, lambda i: setattr(g, '__code__', (lambda: (yield i)).__code__ if i == 5 else g.__code__), ()
@prog
def gen_closed():
    log = []
    def g():
        try:
            yield 1
            yield 2
        finally:
            log.append('fin')
    def use():
        it = g(); a = next(it); it.close()
        return a, list(log)
    return use, lambda i: log.clear(), ()
@prog
def gen_thrown():
    def g():
        while True:
            try:
                r = yield 1
            except ValueError as e:
                yield str(e)
    def use(x):
        it = g(); next(it)
        return it.throw(ValueError('v%d' % x)), next(it)
    return use, lambda i: None, (3,)
@prog
def gen_sent():
    def g():
        t = 0
        while True:
            x = yield t
            if x is None: return
            t += x
    def use(x):
        it = g(); next(it); it.send(x); r = it.send(2)
        try: it.send(None)
        except StopIteration as e: return r, e.value
    return use, lambda i: None, (3,)
@prog
def gen_stored():
    class H: pass
    h = H()
    def g():
        n = 0
        while n < 6:
            n += 1
            yield n
    h.it = g()
    def use():
        return next(h.it, 'end')
    def ch(i):
        if i == 1: h.it = g()
        if i == 2: h.it.close()
    return use, ch, ()
@prog
def gen_in_loop_break():
    def g(n):
        for i in range(n): yield i
    def use(n):
        out = []
        for v in g(n):
            if v == 2: break
            out.append(v)
        else: out.append('else')
        return out
    return use, lambda i: None, (4,)
@prog
def gen_return_value():
    def g(): 
        x = yield 1
        return 5
    def outer():
        r = yield from g()
        yield r
    def use(): return list(outer())
    return use, lambda i: None, ()
@prog
def gen_reenter():
    class H: pass
    h = H()
    def g():
        yield 1
        try: next(h.it)
        except ValueError as e: yield str(e)
    def use():
        h.it = g()
        return list(h.it)
    return use, lambda i: None, ()
@prog
def gen_escape_exc():
    def g(n):
        yield 1
        raise KeyError(n)
    def use(n):
        out = []
        try:
            for v in g(n): out.append(v)
        except KeyError as e: out.append(e.args)
        return out
    return use, lambda i: None, (3,)
@prog
def genexp_late():
    n = [1]
    def use(x):
        k = x
        it = (a + k for a in n)
        k = 100
        n.append(2)
        r = list(it); n.pop()
        return r
    return use, lambda i: n.__setitem__(0, i), (3,)
def counter(src_inc, src_read):
    def p():
        class H:
            c = 0
            __slots__ = ('s', '__dict__', '__weakref__')
        h = H(); h.a = 0; h.s = 0
        D = {'k': 0, 1: 0}; L = [0, [0]]; T = ([0],)
        d = dict(h=h, D=D, L=L, T=T, H=H, G=0, log=[])
        exec("def use(k):\n    global G\n    " + src_inc + "\n    if " + src_read + " > 2 and " + src_read + " != 5: return 'hi', " + src_read + "\n    return " + src_read + "\n", d)
        return d['use'], lambda i: None, (1,)
    p.__name__ = 'counter_' + src_read
    return p
for inc, read in [("G += k", "G"), ("h.a += k", "h.a"), ("h.s += k", "h.s"), ("H.c += k", "H.c"), ("D['k'] += k", "D['k']"), ("D[1] += k", "D[1]"), ("L[0] += k", "L[0]"), ("L[1][0] += k", "L[1][0]"), ("T[0][0] += k", "T[0][0]"), ("log.append(k)", "len(log)"), ("use.__dict__['n'] = use.__dict__.get('n', 0) + k", "use.__dict__['n']"), ("use.n = getattr(use, 'n', 0) + k", "use.n"), ("D['q'] = D.get('q', 0) + k", "D['q']"), ("h.__dict__['w'] = h.__dict__.get('w', 0) + k", "h.w"), ("D.update(k=D['k'] + k)", "D['k']"), ("L.insert(0, L[0] + k)", "L[0]"), ("log += [k]", "len(log)") , ("G = G * 2 + k", "G"), ("h.a = -h.a + k * 3", "h.a"), ("G -= k", "-G"), ("G = (G + k) % 4", "G"), ("G ^= k", "G"), ("G += True", "G"), ("G += 0.5", "G"), ("h.a = h.a + k if h.a < 3 else 0", "h.a")]:
    if inc.startswith("log +="): inc = "globals()['log'].extend([k])"
    P.append(counter(inc, read))
@prog
def nonlocal_counter():
    n = 0
    def use(k):
        nonlocal n
        n += k
        return 'big' if n > 3 else n
    return use, lambda i: None, (1,)
@prog
def default_counter():
    def use(k, acc=[0]):
        acc[0] += k
        return acc[0] > 3
    return use, lambda i: None, (1,)
@prog
def itertools_count():
    import itertools
    c = itertools.count()
    def use(): 
        v = next(c)
        return v if v > 2 else -v
    return use, lambda i: None, ()
@prog
def lru():
    @functools.lru_cache(None)
    def h(x): return [x]
    def use(x): return h(x) is h(x), h.cache_info().hits > 2
    return use, lambda i: h.cache_clear() if i == 2 else None, (3,)
@prog
def partial_swap():
    def h(x, y): return x - y
    p = [functools.partial(h, 1)]
    def use(x): return p[0](x)
    return use, lambda i: p.__setitem__(0, functools.partial(h, i * 5)), (3,)
@prog
def method_of_instance_fn():
    class A: pass
    a = A()
    def m(self, x): return self is a, x
    a.m = types.MethodType(m, a)
    def use(x): return a.m(x)
    return use, lambda i: setattr(a, 'm', [types.MethodType(lambda s, x: 'z', a), m.__get__(3), len][i % 3] if i != 2 else (lambda x: x)), (3,)
@prog
def static_swap():
    class A:
        @staticmethod
        def s(x): return x
    def use(x): return A.s(x), A().s(x)
    return use, lambda i: setattr(A, 's', [staticmethod(lambda x: -x), classmethod(lambda c, x: c.__name__), lambda *a: len(a)][i % 3]), (3,)
@prog
def slots_del():
    class A: __slots__ = ('x',)
    a = A(); a.x = 1
    def use(): return getattr(a, 'x', 'no'), hasattr(a, 'x')
    def ch(i):
        if i % 2 == 0: del a.x
        else: a.x = i
    return use, ch, ()
@prog
def mro_len():
    class A:
        def __len__(self): return 3
    a = A()
    def use(): return len(a), bool(a)
    return use, lambda i: setattr(A, '__len__', [lambda s: 0, lambda s: 5, lambda s: 1][i % 3]), ()
@prog
def bool_grown():
    class A: pass
    a = A()
    def use(): return 1 if a else 2
    def ch(i):
        if i == 0: A.__bool__ = lambda s: False
        elif i == 1: del A.__bool__; A.__len__ = lambda s: 0
        else: del A.__len__
    return use, ch, ()
@prog
def eq_grown():
    class A: pass
    a, b = A(), A()
    def use(): return a == b, a != b, a in [b]
    def ch(i):
        if i == 0: A.__eq__ = lambda s, o: True
        elif i == 1: A.__eq__ = lambda s, o: NotImplemented
        else: del A.__eq__
    return use, ch, ()
@prog
def metaclass_call():
    class M(type):
        pass
    class A(metaclass=M):
        def __init__(self, x): self.x = x
    def use(x): 
        r = A(x)
        return r if isinstance(r, int) else r.x
    def ch(i):
        if i == 0: M.__call__ = lambda c, x: 5
        elif i == 1: del M.__call__
        else: A.__new__ = staticmethod(lambda c, x: 9)
    return use, ch, (3,)
@prog
def init_swap():
    class A:
        def __init__(self, x): self.x = x
    def use(x): return vars(A(x))
    return use, lambda i: setattr(A, '__init__', [lambda s, x: setattr(s, 'y', x), lambda s, x: None, lambda s, x: s.__dict__.update(q=1)][i % 3]), (3,)
@prog
def iter_swap():
    class A:
        def __iter__(self): return iter([1, 2])
    a = A()
    def use(): return [x for x in a], list(a), sum(a)
    def ch(i):
        def g(self): yield 7
        A.__iter__ = [g, lambda s: iter('a') if False else iter((3,)), lambda s: map(abs, [-1])][i % 3]
    return use, ch, ()
@prog
def ctx_swap():
    class A:
        def __enter__(self): return 1
        def __exit__(self, *e): return True
    a = A()
    def use(x):
        with a as v:
            if x: raise ValueError
            return v
        return 'swallowed'
    def ch(i):
        A.__enter__ = lambda s: i
        if i == 2: A.__exit__ = lambda s, *e: None
    return use, ch, (0,)
@prog
def setattr_grown():
    log = []
    class A: pass
    a = A()
    def use(x):
        a.x = x
        return vars(a).get('x'), list(log)
    def ch(i):
        if i == 0: A.__setattr__ = lambda s, n, v: log.append(n)
        elif i == 1: del A.__setattr__
        else: A.x = property(lambda s: 1, lambda s, v: log.append(v))
    return use, ch, (3,)
@prog
def annotations_and_doc():
    def h(x: int): 
        "doc"
        return x
    def use(): return h.__doc__, h.__name__, h.__qualname__[-1], h.__module__ is not None
    def ch(i): h.__doc__ = i; h.__name__ = 'n%d' % i; h.__qualname__ = 'q%d' % i
    return use, ch, ()
@prog
def weakref_dead():
    class A: pass
    box = [A()]
    r = [weakref.ref(box[0])]
    def use(): return r[0]() is None
    def ch(i):
        if i == 0: box.clear()
        elif i == 1: box.append(A()); r[0] = weakref.ref(box[0])
    return use, ch, ()
@prog
def dict_order():
    d = {'a': 1, 'b': 2}
    def use(): return list(d), [v for k, v in d.items()], next(iter(d))
    def ch(i):
        k = next(iter(d)); d[k] = d.pop(k)
    return use, ch, ()
@prog
def same_object_two_names():
    class A: pass
    a = A(); b = A(); a.x = b.x = 0
    box = [a, b]
    def use():
        box[0].x += 1
        return box[1].x
    return use, lambda i: box.__setitem__(1, a if i % 2 == 0 else b), ()
@prog
def func_attrs():
    def h(x): return x + h.n
    h.n = 1
    def use(x): return h(x)
    def ch(i):
        if i == 2: h.__dict__ = {'n': 50}
        else: h.n = i * 2.5
    return use, ch, (3,)
@prog
def wrapped():
    def deco(f):
        @functools.wraps(f)
        def w(*a, **k): return f(*a, **k)
        return w
    @deco
    def h(x, y=1): return x, y
    def use(x): return h(x), h(x, y=2)
    def ch(i):
        h.__wrapped__.__defaults__ = (i,)
        h.__closure__[0].cell_contents = (lambda *a, **k: (a, k)) if i == 1 else h.__wrapped__
    return use, ch, (3,)
def shown(value):
    return re.sub("0x[0-9a-f]+", "", repr(value))


def story(make, wrap):
    fn, change, args = make()
    f, told = wrap(fn), []
    for i in range(10):
        for _ in range(2):
            try:
                told.append(shown(f(*args)))
            except framegate.exc.InternalError:
                raise
            except Exception as e:
                told.append(shown((type(e), e)))
        try:
            change(i)
        except Exception as e:
            told.append(("change", shown(e)))
    return told


@pytest.mark.parametrize("backend", ["eager", "callable"])
@pytest.mark.parametrize("make", P, ids=lambda make: make.__name__)
def test_each_call_is_as_plain(make, backend):
    options = {} if backend == "eager" else {"backend": lambda graph, examples: graph}
    assert story(make, lambda fn: framegate.compile(fn, **options)) == story(make, lambda fn: fn)
