"""Comprehensions that are part of their function, super() as an instruction, generators with the handlers that every one has, and the syntax of CPython 3.12: compiled
functions against plain Python, as source, because older versions cannot read some of it."""

import sys

import framegate
import pytest

CASES = {
    "the variable of a comprehension hides one of the function": ("def f(x):\n r = [x for x in range(3)]\n return x, r", "9"),
    "an unbound variable stays unbound": (
        "def f(flag):\n if flag: y = 1\n r = [y for y in range(3)]\n try: return y, r\n except UnboundLocalError as e: return str(e), r",
        "0",
    ),
    "a bound variable comes back": (
        "def f(flag):\n if flag: y = 1\n r = [y for y in range(3)]\n try: return y, r\n except UnboundLocalError as e: return str(e), r",
        "1",
    ),
    "a comprehension with calls that are not traced": ("def f(a, out):\n return [out.append(i) or i for i in a if print(end='') is None]", "[1, 2], []"),
    "an error in a comprehension": (
        "def f(a):\n try: return [1 // i for i in a]\n except ZeroDivisionError as e: return 'z', e.__traceback__.tb_lineno",
        "[1, 0]",
    ),
    "nested comprehensions": ("def f(a):\n return [[y for y in range(x) if y] for x in a], {k: {v for v in range(k)} for k in a}", "[2, 3]"),
    "closures over the variable of a comprehension": ("def f(a):\n return [g() for g in [lambda: (i, a) for i in range(3)]]", "3"),
    "a cell of a comprehension named like a variable of an outer function": (
        "def outer():\n t = 5\n def g(a):\n  first = t\n  r = [lambda: t + a for t in (1, 2) if print(end='') is None]\n"
        "  return first, [h() for h in r]\n return g\nf = outer()",
        "3",
    ),
    "an assignment out of a comprehension": ("def f(a):\n x = 1\n z = [x := x + i for i in a]\n print(end='')\n return x, z", "[1, 2]"),
    "locals() beside a comprehension": ("def f(a):\n b = [x for x in a]\n return sorted(locals()), b", "[1]"),
    "a loop whose condition is at its end": (
        "def f(n):\n r = 0\n while n:\n  n -= 1\n  if n % 2: continue\n  print(end='')\n  r += n\n return r",
        "7",
    ),
    "slices of an object that shows them": (
        "class S:\n def __getitem__(s, k): return k\n def __setitem__(s, k, v): s.k = k, v\n"
        "def f(a, b):\n s = S()\n s[a:b] = 3\n return s[a:b], s[a:], s.k",
        "1, 2",
    ),
    "close() runs a finally": (
        "log = []\ndef f(n):\n def g():\n  try:\n   yield n\n   yield n + 1\n  finally: log.append(n)\n"
        " it = g()\n r = next(it)\n it.close()\n n = len(log)\n log.clear()\n return r, n, list(g()), log.clear()",
        "3",
    ),
    "StopIteration that leaves a generator": (
        "def f(n):\n def g():\n  if n: raise StopIteration\n  yield 1\n try: return list(g())\n except RuntimeError as e: return str(e)",
        "1",
    ),
    "super() and super(cls, self)": (
        "class B:\n def m(self, v): return v + 1\n"
        "class D(B):\n def m(self, v):\n  print(end='')\n  r = super().m(v)\n  print(end='')\n  return super(D, self).m(r), [super(D, self).m(j) for j in range(3)]\n"
        "f = D().m.__func__\nargs = (D(), 4)",
        None,
    ),
    "super() without its cell": (
        "class B:\n def m(self): return 1\n"
        "class D(B):\n def m(self):\n  print(end='')\n  del self\n  try: return super().m()\n  except (RuntimeError, UnboundLocalError) as e: return repr(e)\n"
        "f = D.m\nargs = (D(),)",
        None,
    ),
    "something else named super": (
        "class Other:\n def m(self): return 'other'\ndef super(*a): return Other()\n"
        "class D:\n def m(self):\n  print(end='')\n  return super().m(), __class__\nf = D.m\nargs = (D(),)",
        None,
    ),
}

NEW_CASES = {
    "a generic function": ("def f[T](x: T) -> list[T]:\n return [x for _ in range(2)]", "3"),
    "a generic function inside": ("def f(a):\n def inner[T](q: T): return q\n return inner(a) + 1", "2"),
    "a type alias": ("def f(a):\n type A = int\n return A.__name__, a", "2"),
    "nested f-strings": ("""def f(a):\n return f"{a!r:>{len('x'*5)}} {f'{a:{'>'+str(4)}}'}" """, "12"),
}


def check(source, args):
    space = {}
    exec(source, space)
    f = space["f"]
    args = f"({args},)" if args is not None else "args"
    want = repr(f(*eval(args, space)))
    compiled = framegate.compile(f)
    assert [repr(compiled(*eval(args, space))) for _ in range(5)] == [want] * 5


@pytest.mark.parametrize("name", CASES)
def test_same_as_plain_python(name):
    check(*CASES[name])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of 3.12")
@pytest.mark.parametrize("name", NEW_CASES)
def test_new_syntax_is_the_same_as_plain_python(name):
    check(*NEW_CASES[name])


def test_a_comprehension_in_the_middle_leaves_no_break():
    def f(a):
        x = 5
        return [[x + y for y in row if y] for row in a], x

    compiled = framegate.compile(f, fullgraph=True)
    assert compiled([[1, 2], [0, 3]]) == compiled([[1, 2], [0, 3]]) == f([[1, 2], [0, 3]])
