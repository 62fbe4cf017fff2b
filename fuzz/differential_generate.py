"""Random well-formed Python programs.

Purpose:    `generate(seed)` gives a `Program`: the text of a module with a function `target`, the calls to make on it, and what changes between.
Model:      Expressions are drawn by kind (int, float, bool, str, list, dict, tuple, set, array, object), so most programs run without an
            error, and by depth, so they end. Statements see the names that are surely bound; a branch's own names are forgotten after it.
Invariants: One seed, one text, on every run and machine: a single random.Random is the only source of choice and no set is iterated.
            Every loop is bounded, every shift and power small, no text doubles itself: a program ends in well under a millisecond.
To add a feature: a method of `_Writer` named after it plus a line in `_STATEMENTS` (weight, method) or in the table of its kind.
"""
from typing import NamedTuple

from differential_expressions import PARAMS, Expressions

HEAD = '''import numpy as np
import contextlib
import functools
import warnings
G_fn = lambda v: v * 2 + 1
class Box:
    count = 0
    kinds = ["a"]
    def __init__(self, n, xs=None):
        self.n = n
        self.xs = [] if xs is None else xs
    def __repr__(self):
        return f"{type(self).__name__}({self.n}, {self.xs})"
    def bump(self, by=1):
        self.n += by
        return self.n
    @property
    def size(self):
        return len(self.xs) + self.n % 3
    @staticmethod
    def twice(v):
        return v + v
    @classmethod
    def made(cls, n):
        cls.count += 1
        return cls(n, [n])
class Sub(Box):
    def bump(self, by=2):
        return super().bump(by) - 1
    def __len__(self):
        return len(self.xs)
    def __eq__(self, other):
        return isinstance(other, Box) and self.n == other.n
class Pair:
    __slots__ = ("a", "b")
    def __init__(self, a, b):
        self.a, self.b = a, b
    def __repr__(self):
        return f"<{self.a}, {self.b}>"
    def __add__(self, other):
        return Pair(self.a + other.a, self.b - other.b)
    def __getitem__(self, k):
        return (self.a, self.b)[k]
class Ctx:
    log = []
    def __init__(self, tag, eat=False):
        self.tag, self.eat = tag, eat
    def __repr__(self):
        return "Ctx " + self.tag
    def __enter__(self):
        Ctx.log.append("+" + self.tag)
        return self
    def __exit__(self, kind, value, tb):
        Ctx.log.append("-" + self.tag)
        return self.eat and kind is not None
LOG = Ctx.log
KINDS = Box.kinds
def frozen(a):
    a.setflags(write=False)
    return a
# ^ the same in every program
'''

_GLOBALS = '''G_i = {g_i}
G_f = {g_f}
G_s = {g_s}
G_L = {g_L}
G_D = {g_D}
G_A = {g_A}
G_O = Box({g_o})
'''

_SHAPES = ((3,), (3,), (4,), (2, 3), (2, 2), (1,), (), (2, 1, 2), (0,))


class Program(NamedTuple):
    seed: int
    text: str
    n_calls: int
    rebind: bool  # the compiled function also takes the name `target`


class _Writer(Expressions):
    # -- statements

    def s_assign(self) -> None:
        k = self.r.choice("iiiffbssLLLDTSAAAAO")
        text = self.e(k, self.r.randint(1, 3))
        target = self.pick(k) if self.r.random() < 0.3 and not self.in_function else None
        if target is None or target.startswith("G_"):
            target = self.name(k)
        self.put(f"{target} = {text}")
        self.bind(k, target)

    def s_augmented(self) -> None:
        k = self.r.choice("iiifsAAAL")
        target = self.pick(k)
        if target is None or (self.in_function and target not in self.locals_by_scope):
            return self.s_assign()
        r = self.r
        if k == "i":
            self.put(f"{target} {r.choice(('+=', '-=', '*=', '//=', '%=', '|='))} {self.e_i(1)}")
        elif k == "f":
            self.put(f"{target} {r.choice(('+=', '-=', '*='))} {self.e_f(1)}")
        elif k == "s":
            self.put(f"{target} += {self.literal('s')}")
        elif k == "L":
            self.put(f"{target} += {self.literal('L')}")
        else:
            self.put(f"{target} {r.choice(('+=', '-=', '*='))} {self.e(r.choice('Ai'), r.randint(0, 1))}")

    def s_mutate(self) -> None:
        r = self.r
        c = r.randrange(20)
        if c < 5:
            xs = self.leaf_named("L")
            self.put(r.choice((
                f"{xs}.append({self.e_i(1)})", f"{xs}.extend({self.literal('L')})", f"{xs}.insert(0, {self.e_i(0)})",
                f"{xs}.reverse()", f"{xs}.sort()", f"{xs}[:1] = [{self.e_i(0)}, 1]", f"{xs} and {xs}.pop()",
                f"{xs}[0:0] = {self.literal('T')}", f"{xs}.clear()", f"del {xs}[1:]")))
        elif c < 9:
            m = self.leaf_named("D")
            self.put(r.choice((
                f"{m}[{self.e_s(0)}] = {self.e_i(1)}", f"{m}.update(u={self.e_i(0)})", f"{m}.setdefault('z', {self.e_i(0)})",
                f"{m}.pop('a', None)", f"{m}['n'] = {m}.get('n', 0) + 1", f"{m} |= {self.literal('D')}" if m in self.locals_by_scope else f"{m}.update({self.literal('D')})")))
        elif c < 13:
            o = self.leaf_O()
            self.put(r.choice((
                f"{o}.n = {self.e_i(1)}", f"{o}.n += 1", f"{o}.xs.append({self.e_i(0)})", f"{o}.extra = {self.e('s', 0)}",
                f"{o}.bump()", f"setattr({o}, 'tag', {self.e_i(0)})", f"{o}.xs = {self.e_L(1)}", f"{o}.__dict__.pop('extra', None)")))
        elif c < 17:
            a = self.pick("A")
            if a is None:
                return self.s_assign()
            index = r.choice(("...", "0", ":1", "-1", "::2")) if self.shape and 0 not in self.shape else "..."
            self.put(r.choice((
                f"{a}[{index}] = {self.e(r.choice('iib'), 0)}", f"{a}[{index}] += 1", f"{a}[...] = {self.e_A(1)}",
                f"{a}[{a} > 1] = 0", f"np.add({a}, 1, out={a})", f"{a}.fill(2)" if r.random() < 0.5 else f"{a}[{index}] *= 2")))
        elif c == 17:
            self.put(r.choice(("Box.count += 1", "Box.kinds.append('k')", "KINDS.append('m')", "Ctx.log.append('t')")))
        elif c == 18:
            s = self.pick("S")
            if s is None:
                return self.s_assign()
            self.put(f"hasattr({s}, 'add') and {s}.{r.choice(('add(1)', 'discard(2)', 'update([4, 5])'))}")
        elif not self.in_function:
            self.put(r.choice((f"G_i = {self.e_i(1)}", "G_i += 1", f"G_f = {self.e_f(1)}", f"G_s = {self.literal('s')}")))
        else:
            self.s_print()

    def block(self, n: int) -> None:
        self.depth += 1
        kept = self.snapshot()
        size = len(self.lines)
        self.body(n)
        if len(self.lines) == size:
            self.put("pass")
        self.names = kept
        self.depth -= 1

    def body(self, n: int) -> None:
        for _ in range(n):
            if self.budget <= 0:
                break
            self.budget -= 1
            choice = self.r.choices(_METHODS, cum_weights=_WEIGHTS)[0]
            if self.depth > 4 and choice in _NESTING:
                choice = "s_assign"
            getattr(self, choice)()

    def s_if(self) -> None:
        r = self.r
        self.put(f"if {self.e(r.choice('bbbiLs'), r.randint(1, 2))}:")
        self.block(r.randint(1, 2))
        if r.random() < 0.3:
            self.put(f"elif {self.e_b(1)}:")
            self.block(1)
        if r.random() < 0.5:
            self.put("else:")
            self.block(r.randint(1, 2))

    def s_for(self) -> None:
        r = self.r
        v, w = self.name("i"), self.name("i")
        head, bound = r.choice((
            (f"for {v} in range({r.randint(1, 4)}):", (v,)),
            (f"for {v} in {self.e_L(1)}[:4]:", (v,)),
            (f"for {v}, {w} in enumerate({self.e_L(1)}[:4]):", (v, w)),
            (f"for {v}, {w} in zip({self.e_L(1)}[:4], {self.e(r.choice('LT'), 1)}):", (v, w)),
            (f"for {v} in reversed({self.e_L(1)}[:3]):", (v,)),
            (f"for {w} in {self.e_T(1)}:", (w,)),
        ))
        self.put(head)
        kept = self.snapshot()
        for b in bound:
            self.bind("i", b)
        self.in_loop += 1
        self.block(r.randint(1, 3))
        self.in_loop -= 1
        self.names = kept
        if r.random() < 0.25:
            self.put("else:")
            self.block(1)

    def s_rows(self) -> None:
        """A loop over an array, which its body may write: each row is read when its turn comes."""
        r = self.r
        a, v, w = self.leaf_named("A"), self.name("i"), self.name("L")
        if r.random() < 0.3:
            self.put(f"LOG.append(type(iter({a})).__name__)" if r.random() < 0.5 else f"{v}, {w} = {a}")
            return
        head, bound = r.choice(((f"for {w} in {a}:", False), (f"for {v}, {w} in enumerate({a}):", True), (f"for {w}, {v} in zip({a}, range(3)):", True)))
        self.put(head)
        kept = self.snapshot()
        if bound:
            self.bind("i", v)
        self.put("    " + r.choice((f"LOG.append({w} * 1)", f"{a}[...] = 3", f"{a}[1:] += {w}")))
        self.in_loop += 1
        self.block(r.randint(1, 2))
        self.in_loop -= 1
        self.put(f"    LOG.append({w} * 1)")
        self.names = kept

    def s_while(self) -> None:
        r = self.r
        v = self.name("i")
        self.put(f"{v} = {r.randint(1, 4)}")
        self.put(f"while {v} > 0{r.choice(('', f' and {self.e_b(0)}'))}:")
        self.put(f"    {v} -= 1")
        kept = self.snapshot()
        self.in_loop += 1
        self.block(r.randint(1, 2))
        self.in_loop -= 1
        self.names = kept
        if r.random() < 0.2:
            self.put("else:")
            self.block(1)

    def s_jump(self) -> None:
        if self.in_loop:
            self.put(f"if {self.e_b(1)}:")
            self.put(f"    {self.r.choice(('break', 'continue'))}")
        elif self.depth > 1 or self.r.random() < 0.2:
            self.put(f"if {self.e_b(1)}:")
            self.put(f"    return {self.result()}")

    def s_try(self) -> None:
        r = self.r
        self.put("try:")
        self.block(r.randint(1, 2))
        if r.random() < 0.4:
            a, b = self.leaf_named("A"), self.leaf_named("A")
            self.put("    " + r.choice((f"LOG.append(({a} @ {b}).sum())", f"LOG.append(({a} + {b}[:2]).shape)", f"LOG.append({a}.reshape(7))", f"{a}[{self.e_i(0)}]",
                                         f"LOG.append(np.concatenate(({a}, {b}[None])))", f"LOG.extend(v @ {b} for v in ({b}, {a}))")))
        if r.random() < 0.5:
            self.put("    " + r.choice((f"raise ValueError({self.e_i(0)})", "{}['none']", f"{self.e_L(0)}[9]",
                                         f"if {self.e_b(1)}: raise KeyError({self.e_s(0)})", f"{self.e_i(0)} // {self.e_i(0)}")))
        form = r.random()
        if form < 0.75:
            v = self.name("s")
            self.put(f"except {r.choice(('ValueError', 'KeyError', '(KeyError, IndexError)', 'Exception', 'LookupError', 'ZeroDivisionError', '(ValueError, TypeError)'))} as {v}:")
            kept = self.snapshot()
            self.block(1)
            if r.random() < 0.6:
                self.put("    " + r.choice((f"{self.leaf_named('L')}.append(len({v}.args))", f"print(repr({v}))", f"LOG.append(str({v}))", f"LOG.append({self.leaf_named('A')} * 2)", "raise", f"raise RuntimeError('w') from {v}",
                                             f"LOG.append(type({v}).__name__)")))
            self.names = kept
            if r.random() < 0.2:
                self.put("else:")
                self.block(1)
        if form >= 0.6:
            self.put("finally:")
            self.block(1)

    def s_import(self) -> None:
        r = self.r
        v = self.name("f")
        form = r.choice(("import math; {} = math.sqrt(2.0)", "from math import pi as {}", "import os.path as p; {} = float(len(p.sep))", "from numpy import linalg as la; {} = float(la.norm(np.ones(4)))"))
        self.put(form.format(v))
        self.bind("f", v)

    def s_with(self) -> None:
        r = self.r
        if r.random() < 0.3:
            manager = r.choice((f"contextlib.suppress({r.choice(('ValueError', 'LookupError', 'Exception'))})", "contextlib.nullcontext()", "np.errstate(all='ignore')"))
            self.put(f"with {manager}:")
            self.block(r.randint(1, 2))
            if r.random() < 0.4:
                self.put(f"    LOG.append({self.leaf_named('A')} @ {self.leaf_named('A')})")
            return
        eat = r.choice(("", ", True"))
        self.put(f"with Ctx({self.literal('s')}{eat}){r.choice(('', ' as cm'))}:")
        self.block(r.randint(1, 2))
        if r.random() < 0.3:
            self.put(f"    if {self.e_b(1)}: raise ValueError('in with')")

    def s_print(self) -> None:
        self.put(f"print({self.e(self.r.choice('isfLb'), 1)}{self.r.choice(('', ', sep=chr(45)', ', end=str()', f', {self.e_s(0)}'))})")

    def s_warn(self) -> None:
        self.put(f"warnings.warn({self.literal('s')}, {self.r.choice(('UserWarning', 'DeprecationWarning'))})")

    def s_nested(self) -> None:
        r = self.r
        name = f"f{self.fresh}"
        self.fresh += 1
        free = self.pick("i")
        write = free is not None and not self.in_function and r.random() < 0.6
        self.put(f"def {name}(p, q={self.e_i(0)}):")
        self.depth += 1
        if write and free in self.locals_by_scope_now():
            self.put(f"nonlocal {free}")
            self.put(f"{free} = {free} + p")
        kept, loops, scope = self.snapshot(), self.in_loop, self.locals_by_scope
        self.locals_by_scope = []
        self.bind("i", "p")
        self.bind("i", "q")
        self.in_loop, self.in_function = 0, self.in_function + 1
        if r.random() < 0.5:
            t = self.name("i")
            self.put(f"{t} = {self.e_i(2)}")
            self.bind("i", t)
        self.put(f"return {self.e_i(2)}")
        self.names, self.in_loop, self.locals_by_scope = kept, loops, scope
        self.in_function -= 1
        self.depth -= 1
        v = self.name("i")
        self.put(f"{v} = {name}({self.e_i(1)}{r.choice(('', f', {self.e_i(0)}', f', q={self.e_i(0)}'))})")
        self.bind("i", v)
        if r.random() < 0.25:
            self.closures.append(name)

    def locals_by_scope_now(self) -> list[str]:
        return [n for n in self.names["i"] if not n.startswith("G_")]

    def s_unpack(self) -> None:
        r = self.r
        v, w, x = self.name("i"), self.name("i"), self.name("L")
        c = r.randrange(4)
        if c == 0:
            self.put(f"{v}, {w} = {self.e_i(1)}, {self.e_i(1)}")
            self.bind("i", v)
            self.bind("i", w)
        elif c == 1:
            self.put(f"{v}, *{x} = [{self.e_i(0)}] + {self.e_L(1)}")
            self.bind("i", v)
            self.bind("L", x)
        elif c == 2:
            a, b = self.pick("i"), self.pick("i")
            if a and b and not self.in_function:
                self.put(f"{a}, {b} = {b}, {a}")
        else:
            self.put(f"if ({v} := {self.e_i(1)}) > 1:")
            self.put(f"    {self.leaf_named('L')}.append({v})")
            self.bind("i", v)

    def s_alias(self) -> None:
        k = self.r.choice("LADO")
        source = self.leaf_named(k)
        v = self.name(k)
        if k == "A" and self.r.random() < 0.5 and source != "G_A" and self.shape:
            self.put(f"{v} = {source}[{self.r.choice((':', '::-1', '...'))}]")
        else:
            self.put(f"{v} = {source}")
        self.bind(k, v)

    def s_match(self) -> None:
        r = self.r
        self.put(f"match {self.e(r.choice('iLDT'), 1)}:")
        for pattern in r.sample(("0", "[1, *_]", "{'a': 1}", "[]", "(_, _)", "int()"), 2):
            self.put(f"    case {pattern}:")
            self.depth += 1
            self.block(1)
            self.depth -= 1
        self.put("    case _:")
        self.depth += 1
        self.block(1)
        self.depth -= 1

    def s_raise(self) -> None:
        r = self.r
        self.put(f"if {self.e_b(2)}:")
        self.put(f"    raise {r.choice(('ValueError', 'KeyError', 'RuntimeError'))}({self.e(r.choice('is'), 0)})")

    def result(self) -> str:
        r = self.r
        kinds = [r.choice("iiffbsLLDTSAAAO") for _ in range(r.randint(1, 3))]
        parts = [self.pick(k) if r.random() < 0.5 and self.pick(k) else self.e(k, 1) for k in kinds]
        return parts[0] if len(parts) == 1 else "(" + ", ".join(parts) + ")"

    # -- whole program

    def helper(self) -> None:
        r = self.r
        n = len(self.helpers)
        shape = r.choice(("default", "star", "kw", "list"))
        name = f"h{n}"
        self.depth = 0
        self.names = {k: [] for k in PARAMS}
        head = {"default": "p, q=3", "star": "*p", "kw": "p, **q", "list": "p, q"}[shape]
        self.put(f"def {name}({head}):")
        self.depth = 1
        self.in_function = 1
        if shape == "default":
            self.bind("i", "p")
            self.bind("i", "q")
        elif shape == "star":
            self.put("t = len(p)")
            self.bind("T", "p")
            self.bind("i", "t")
        elif shape == "kw":
            self.put("t = sum(q.values())")
            self.bind("i", "p")
            self.bind("i", "t")
            self.bind("D", "q")
        else:
            self.bind("L", "p")
            self.bind("i", "q")
        self.locals_by_scope = []
        if r.random() < 0.3:
            self.s_mutate()
        if r.random() < 0.3:
            self.put(f"if {self.e_b(1)}:")
            self.put(f"    return {self.e_i(1)}")
        self.put(f"return {self.e_i(2)}")
        self.in_function = 0
        self.helpers.append((name, "i", shape))

    def arguments(self, kinds: list[str], shape: tuple, alias: list[int], base: list[str], keep: float) -> list[str]:
        values = [b if self.r.random() < keep else self.literal(k, shape) for k, b in zip(kinds, base)]
        for i, source in enumerate(alias):
            if source >= 0:
                values[i] = values[source]
        return values

    def program(self, seed: int) -> Program:
        r = self.r
        self.shape = self.g_shape = r.choice(_SHAPES)
        head = HEAD + _GLOBALS.format(g_i=self.literal("i"), g_f=r.choice(("0.5", "2.0", "-1.5")), g_s=self.literal("s"), g_L=self.literal("L"),
                            g_D=self.literal("D"), g_A=self.array(self.shape).replace("frozen(", "("), g_o=self.literal("i"))
        for _ in range(r.randint(0, 2)):
            self.helper()
        self.depth = 0
        self.names = {k: [] for k in PARAMS}
        kinds = [r.choice("iiffbsLLDTSAAAO") for _ in range(r.randint(1, 5))]
        params = [f"a{i}" for i in range(len(kinds))]
        n_default = min(len(kinds), r.choice((0, 0, 0, 1, 2)))
        shown = [p if i < len(params) - n_default else f"{p}={self.literal(kinds[i], self.shape)}" for i, p in enumerate(params)]
        star = r.random()
        if star < 0.1:
            shown.append("*rest")
        if star > 0.92:
            shown.append("**kw")
        factory = r.random() < 0.2
        if factory:
            self.put("def factory(c0, c1):")
            self.depth = 1
        self.put(f"def target({', '.join(shown)}):")
        self.depth += 1
        for k, p in zip(kinds, params):
            self.bind(k, p)
        if star < 0.1:
            self.bind("T", "rest")
        if star > 0.92:
            self.bind("D", "kw")
        self.put("global G_i, G_f, G_s")
        self.locals_by_scope = list(params)
        if factory:
            self.put("nonlocal c0, c1")
            self.bind("i", "c0")
            self.bind("L", "c1")
            self.locals_by_scope += ["c0", "c1"]
        self.budget = r.randint(4, 16)
        self.body(self.budget)
        result = self.result()
        if self.closures and r.random() < 0.4:
            result = f"({result}, lambda: {self.closures[0]}({self.literal('i')}))" if self._bound(self.closures[0], self.depth) else result
        self.put(f"return {result}")
        if factory:
            self.lines += ["    return target", f"target = factory({self.literal('i')}, {self.literal('L')})"]
        text = head + "\n".join(self.lines) + "\n" + self.calls(kinds, params, n_default, star)
        return Program(seed, text, self.n_calls, r.random() < 0.3)

    def _bound(self, name: str, depth: int) -> bool:
        return any(line.startswith("    " * depth + f"def {name}(") for line in self.lines)

    def calls(self, kinds: list[str], params: list[str], n_default: int, star: float) -> str:
        r = self.r
        alias = [-1] * len(kinds)
        for i in range(1, len(kinds)):
            if kinds[i] in "LDAO" and r.random() < 0.2:
                same = [j for j in range(i) if kinds[j] == kinds[i]]
                if same:
                    alias[i] = r.choice(same)
        base = [self.literal(k, self.shape) for k in kinds]
        self.n_calls = 4 if r.random() < 0.35 else 3
        out = ["KEEP = " + (self.literal("O") if r.random() < 0.5 else "[1, 2]")]
        for k in range(self.n_calls):
            shape = self.shape
            use = list(kinds)
            if k == 2 and r.random() < 0.3:
                shape = r.choice(_SHAPES)
            if k == 3:
                j = r.randrange(len(kinds))
                use[j] = r.choice({"i": "fbs", "f": "ib", "b": "i", "s": "i", "L": "TDi", "D": "L", "T": "L", "S": "L", "A": "fi", "O": "O"}[kinds[j]])
            values = self.arguments(use, shape, alias if k != 1 or r.random() < 0.6 else [-1] * len(kinds), base, (1.0, 0.6, 0.4, 0.5)[k]) if use == kinds \
                else [base[i] if use[i] == kinds[i] else self.literal(use[i], shape) for i in range(len(kinds))]
            for i, kind in enumerate(use):
                if kind == "O" and r.random() < 0.3:
                    values[i] = "G_O"
            out.append(f"def call{k}():")
            if k and r.random() < 0.4:
                out.append("    global G_i, G_fn, G_A")
                out.append("    " + r.choice((f"G_i = {self.literal('i')}", f"G_L.append({self.literal('i')})", "G_D['k'] = 5", "G_O.n += 1",
                                               "G_fn = lambda v: v - 1", "Box.count = 10", f"G_A = {self.array(self.g_shape).replace('frozen(', '(')}", "unrelated = 1")))
            names = []
            for i, v in enumerate(values):
                out.append(f"    b{i} = {f'b{alias[i]}' if alias[i] >= 0 and values[i] == values[alias[i]] else v}")
                names.append(f"b{i}")
            n_given = len(names) - (r.randint(0, n_default) if n_default else 0)
            n_pos = n_given if star < 0.1 or r.random() < 0.8 else r.randint(0, n_given)
            pos = names[:n_pos]
            if star < 0.1 and n_given == len(names):
                pos += [self.literal("i") for _ in range(r.randint(0, 2))]
            kws = [f"{params[i]!r}: {names[i]}" for i in range(n_pos, n_given)]
            if star > 0.92:
                kws += [f"'w{j}': {self.literal('i')}" for j in range(r.randint(0, 2))]
            out.append(f"    return ({''.join(p + ', ' for p in pos)}), {{{', '.join(kws)}}}")
        return "\n".join(out) + "\n"


_STATEMENTS = (
    (26, "s_assign"), (9, "s_augmented"), (20, "s_mutate"), (9, "s_if"), (9, "s_for"), (3, "s_rows"), (4, "s_while"), (5, "s_jump"), (5, "s_try"),
    (3, "s_with"), (2, "s_import"), (3, "s_print"), (1, "s_warn"), (6, "s_nested"), (5, "s_unpack"), (4, "s_alias"), (2, "s_match"), (2, "s_raise"),
)
_METHODS = [m for _, m in _STATEMENTS]
_WEIGHTS = [sum(w for w, _ in _STATEMENTS[: i + 1]) for i in range(len(_STATEMENTS))]
_NESTING = {"s_if", "s_for", "s_rows", "s_while", "s_try", "s_with", "s_nested", "s_match"}


def generate(seed: int) -> Program:
    """The program of a seed."""
    return _Writer(seed).program(seed)
