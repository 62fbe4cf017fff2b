"""reversed() of objects of the user's: by __reversed__, or by length and index, each element when it is its turn."""

import operator

import pytest
from support_engine import needs_engine

pytestmark = needs_engine

import framegate  # noqa: E402


class Seq:
    def __init__(self, n, fails=-1): self.n, self.fails, self.log = n, fails, []
    def __len__(self): return self.n

    def __getitem__(self, i):
        if i == self.fails:
            raise IndexError("the end")
        return i * 10


class Logs(Seq):
    def __getitem__(self, i):
        self.log.append(i)
        return i


class Own:
    def __reversed__(self): return iter([3, 2, 1])


class Number:
    def __reversed__(self): return 5


class Refuses(Seq):
    __reversed__ = None


class NoLength:
    def __getitem__(self, i): return i


class OfList(list):
    pass


class OfDict(dict):
    pass


MAKE = {
    "sequence": lambda: Seq(3), "empty": lambda: Seq(0), "ends": lambda: Seq(4, fails=1), "ends at once": lambda: Seq(4, fails=3), "writes": lambda: Logs(2), "own": Own, "number": Number,
    "refuses": lambda: Refuses(2), "no length": NoLength, "negative": lambda: Seq(-1), "list": lambda: OfList([1, 2]), "dict": lambda: OfDict(a=1), "plain": object,
}


def seen(f, *args):
    try:
        return f(*args)
    except Exception as error:
        return type(error), str(error).split(" at 0x")[0]


@pytest.mark.parametrize("name", MAKE)
def test_reversed_gives_and_raises_what_plain_python_does(name):
    def all_of(o, x): return [i * x for i in reversed(o)], getattr(o, "log", None)
    def first(o, x): return next(reversed(o), x), list(enumerate(reversed(o)))

    def caught(o, x):
        try:
            return list(reversed(o)), x
        except (IndexError, TypeError) as error:
            return str(error)
    for f in (all_of, first, caught):
        g = framegate.compile(f)
        for x in (2, 3, 2):
            assert seen(f, MAKE[name](), x) == seen(g, MAKE[name](), x)


def test_what_it_goes_over_may_change():
    def f(s, x):
        out = []
        for i in reversed(s):
            out.append(i * x)
            s.n = 1
        return out, s.log
    g = framegate.compile(f)
    for n in (3, 4, 3):
        assert f(Logs(n), 2) == g(Logs(n), 2)


def test_an_int_is_its_own_index():
    def f(x): return [10, 20, 30][operator.index(x)] if operator.index(x) < 3 else None
    g = framegate.compile(f)
    for x in (1, 2, 5, True, 1.0, 2**70, -1, "a"):
        assert seen(f, x) == seen(g, x)


def test_module_lists_from_the_end():
    torch = pytest.importorskip("torch")
    layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(3)])

    def f(x):
        for layer in reversed(layers):
            x = layer(x)
        return x, layers[1](x)
    g = framegate.compile(f, fullgraph=True)
    x = torch.ones(2, 3)
    for _ in range(2):
        assert all(torch.equal(a, b) for a, b in zip(f(x), g(x), strict=True))
        layers.append(torch.nn.Linear(3, 3))
