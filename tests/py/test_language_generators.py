"""Generator functions run on demand inside a trace: same values, same order of what they do, same errors as in plain Python."""

from __future__ import annotations

import copy
import traceback

import framegate
import pytest
from framegate import config


# fmt: off
def count(n):
    i=0
    while i<n:
        yield i
        i+=1
def chain(*its):
    for it in its:
        yield from it
def ret(n):
    yield 1
    return n*2
def outer(n):
    r = yield from ret(n)
    yield r
    x = yield from [7,8]
    yield x
def tree(t):
    if isinstance(t,tuple):
        for c in t: yield from tree(c)
    else: yield t
def two(a):
    b = yield a
    yield b
class C:
    def __init__(s): s.items=[1,2,3]; s.d={'a':1}
    def __iter__(s):
        yield from s.items
    def named(s):
        for k,v in s.d.items(): yield k,v
def f1(n): return sum(count(n)), list(count(3)), [x*2 for x in count(n)]
def f2(a,b): return list(chain(a,b)), tuple(chain([1],(2,3)))
def f3(n): return list(outer(n))
def f4(t): return list(tree(t)), max(tree(t)), any(x>2 for x in tree(t))
def f5(c): return list(c), dict(c.named()), sorted(c)
def f6(n):
    g=count(n); a=next(g); b=next(g); rest=list(g); return a,b,rest,next(g,'end')
def f7(n):
    g=count(n); out=[]
    for x in g:
        out.append(x)
        print(end='')
        if x==2: break
    return out, list(g)
def f8(n): return count(n)
def f9(n):
    g=count(n); next(g); return g
def f10(n):
    g=two(n); next(g); return next(g)
def f11(n):
    g=two(n); next(g); return g.send(5)
def f12(n): return next(count(0))
def bad():
    yield 1
    raise ValueError('x')
def f13(n): return list(bad())
def bad2():
    yield next(iter([]))
def f14(n): return list(bad2())
def f15(n):
    log=[]
    def g():
        for i in range(n):
            log.append(i); yield i
    it=g(); log.append('start'); next(it); log.append('mid'); next(it); return log
def f16(n):
    g=count(n)
    return g is iter(g), type(g).__name__, bool(g)
def f17(n):
    x=[0]
    def g():
        while x[0]<n:
            x[0]+=1
            yield x[0]
    return [ (a, x[0]) for a in g()]
def f18(n):
    a,b,c=count(3); return a,b,c,*count(2)
def f19(n):
    return dict(zip(count(n),count(n+1))), {*count(n)}, len(list(map(str,count(n)))), 2 in count(n)
def f20(n):
    def fib():
        a,b=0,1
        while True:
            yield a
            a,b=b,a+b
    out=[]
    for x in fib():
        if x>n: break
        out.append(x)
    return out
def f21(n):
    g=count(n)
    try:
        return [x/(2-x) for x in g]
    except ZeroDivisionError as e:
        return list(g)
def f22(n):
    g=count(n); g.close(); return list(g)
def f23(l):
    def g():
        for x in l: yield x
    out=[]
    for x in g():
        if len(l)<6: l.append(x*10)
        out.append(x)
    return out
CASES = [(f1,(4,),(6,)),(f2,([1,2],[3]),([],[9])),(f3,(4,),(5,)),(f4,((1,(2,3)),),((4,(1,),()),)),(f5,(C(),),(C(),)),(f6,(3,),(2,)),(f7,(5,),(2,)),(f8,(3,)),(f9,(3,)),(f10,(1,)),(f11,(1,)),(f12,(1,)),(f13,(1,)),(f14,(1,)),(f15,(4,)),(f16,(3,)),(f17,(4,)),(f18,(4,)),(f19,(4,)),(f20,(50,)),(f21,(5,)),(f22,(4,)),(f23,([1,2,3],))]
# fmt: on


def outcome(function, args):
    args = copy.deepcopy(args)
    try:
        result = function(*args)
    except Exception as error:  # noqa: BLE001
        lines = [(entry.name, entry.lineno) for entry in traceback.extract_tb(error.__traceback__)[1:]]
        return type(error), str(error), lines, type(error.__cause__)
    if hasattr(result, "gi_frame"):
        result = ("generator", list(result))
    return repr(result), [repr(arg) for arg in args if not isinstance(arg, C)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_generators_are_as_in_plain_python(case):
    function, *argument_lists = case
    with config.patch(strict_errors=True):
        run = framegate.compile(function)
        for args in argument_lists * 2:
            for _ in range(2):
                assert outcome(function, args) == outcome(run, args)


def test_generators_without_handlers_leave_no_break():
    def total(n):
        return sum(count(n)) + len(list(outer(n))) + len(list(tree((n, (n, n)))))

    run = framegate.compile(total, fullgraph=True)
    assert [run(n) for n in (3, 3, 5)] == [total(n) for n in (3, 3, 5)]


def test_a_generator_with_clean_up_is_left_to_python():
    log = []

    def guarded(n):
        try:
            for i in range(n):
                yield i
        finally:
            log.append("closed")

    def first(n):
        for x in guarded(n):
            if x == 1:
                return x
        return None

    run = framegate.compile(first)
    assert run(3) == 1 and log == ["closed"] and run(1) is None and len(log) == 2
