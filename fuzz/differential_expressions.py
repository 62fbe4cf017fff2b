"""Random literals and expressions, by kind and depth; the lower half of the program generator (see differential_generate.py).

A kind is one letter: i int, f float, b bool, s str, L list of int, D dict of str to int, T tuple, S set, A array, O object. `e_X(d)`
gives an expression of kind X whose depth is at most d; at depth 0 it is a name or a literal.
"""
import random

PARAMS = "ifbsLDTSAO"
DTYPES = ("float64", "float64", "float32", "int64", "int32", "bool", "complex128")


class Expressions:
    """State of one program being written (names in scope, indentation) and the expression kinds."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, list[str]] = {k: [] for k in PARAMS}
        self.fresh = 0
        self.in_loop = 0
        self.in_function = 0
        self.helpers: list[tuple[str, str, str]] = []
        self.budget = 0
        self.locals_by_scope: list[str] = []
        self.shape: tuple = (3,)
        self.g_shape: tuple = (3,)
        self.closures: list[str] = []
        self.n_calls = 3

    # -- text

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, kind: str) -> str:
        self.fresh += 1
        return f"{'v' if kind != 'A' else 'm'}{self.fresh}"

    def bind(self, kind: str, name: str) -> None:
        names = self.names[kind]
        if name not in names:
            names.append(name)

    def pick(self, kind: str) -> str | None:
        names = self.names[kind]
        return self.r.choice(names) if names else None

    def snapshot(self) -> dict[str, list[str]]:
        return {k: list(v) for k, v in self.names.items()}

    # -- literals, also used for the arguments of the calls

    def literal(self, kind: str, shape: tuple = (3,)) -> str:
        r = self.r
        if kind == "i":
            return str(r.choice((0, 1, 2, 3, -1, 5, 7, 10, 257, -300, 2**40)))
        if kind == "f":
            return r.choice(("0.0", "-0.0", "-0.0", "1.0", "0.5", "-2.25", "3.0", "1e10", "float('nan')", "float('inf')", "0.1"))
        if kind == "b":
            return r.choice(("True", "False"))
        if kind == "s":
            return repr(r.choice(("", "a", "ab", "Key", "x y", "q", "é", "12")))
        if kind == "L":
            return "[" + ", ".join(self.literal("i") for _ in range(r.randint(0, 4))) + "]"
        if kind == "D":
            keys = r.sample(("a", "b", "c", "k"), r.randint(0, 3))
            return "{" + ", ".join(f"{k!r}: {self.literal('i')}" for k in keys) + "}"
        if kind == "T":
            items = [self.literal("i") for _ in range(r.randint(0, 3))]
            return "(" + ", ".join(items) + (",)" if items else ")")
        if kind == "S":
            items = [self.literal("i") for _ in range(r.randint(0, 3))]
            return "{" + ", ".join(items) + "}" if items else "set()"
        if kind == "O":
            return f"{r.choice(('Box', 'Box', 'Sub'))}({self.literal('i')}, {self.literal('L')})"
        return self.array(shape)

    def array(self, shape: tuple) -> str:
        r = self.r
        n = 1
        for d in shape:
            n *= d
        dtype = r.choice(DTYPES)
        start = r.choice((0, 1, -2))
        text = f"np.arange({start}, {start + n}).astype({dtype!r}).reshape({shape})"
        form = r.random()
        if form < 0.08 and len(shape) > 1:
            text = f"np.asfortranarray({text})"
        elif form < 0.16 and shape and shape[0]:
            text = f"np.arange({2 * n}).astype({dtype!r})[::2].reshape({shape})" if len(shape) > 1 else f"np.arange({2 * n}).astype({dtype!r})[::2]"
        elif form < 0.20:
            text = f"frozen({text})"
        elif form < 0.24 and len(shape) == 1:
            text = f"{text}[::-1]"
        return text

    # -- expressions by kind

    def e(self, kind: str, d: int) -> str:
        return getattr(self, "e_" + kind)(d)

    def leaf(self, kind: str) -> str:
        if self.r.random() < 0.8:
            found = self.pick(kind)
            if found:
                return found
        return self.literal(kind, self.shape)

    def e_i(self, d: int) -> str:
        r = self.r
        if d <= 0:
            return "G_i" if r.random() < 0.12 else self.leaf("i")
        d -= 1
        c = r.randrange(26)
        if c < 7:
            return f"({self.e_i(d)} {r.choice('+-*+-')} {self.e_i(d)})"
        if c == 7:
            return f"({self.e_i(d)} {r.choice(('//', '%'))} {r.choice((self.e_i(d), '3', '7', '-2'))})"
        if c == 8:
            return f"({self.e_i(d)} {r.choice('&|^')} {self.e_i(d)})"
        if c == 9:
            return f"(abs({self.e_i(d)}) % 5 {r.choice(('<<', '>>', '**'))} {r.choice('0123')})"
        if c == 10:
            return f"len({self.e(r.choice('LDTSs'), d)})"
        if c == 11:
            return f"({self.e_i(d)} if {self.e_b(d)} else {self.e_i(d)})"
        if c == 12:
            return f"sum({self.e(r.choice('LT'), d)})"
        if c == 13:
            return f"{r.choice(('max', 'min'))}({self.e_i(d)}, {self.e_i(d)})"
        if c == 14:
            return f"{self.e_L(d)}[{r.choice(('0', '-1', '1', self.e_i(0)))}]"
        if c == 15:
            return f"{self.e_D(d)}.get({self.e_s(0)}, {self.e_i(0)})"
        if c == 16:
            return f"{self.leaf_O()}.{r.choice(('n', 'n', 'size', 'bump()', 'bump(2)', 'bump(by=3)'))}"
        if c == 17:
            return f"int({self.e_b(d)})"
        if c == 18:
            return f"{r.choice('-~+')}{self.e_i(0)}"
        if c == 19:
            helper = [h for h in self.helpers if h[1] == "i"]
            if helper:
                return self.call_helper(r.choice(helper), d)
            return f"G_fn({self.e_i(d)})"
        if c == 20:
            return f"{self.e_A(d)}.{r.choice(('ndim', 'size', 'shape[0]', 'itemsize'))}"
        if c == 21:
            return f"(lambda q, w={self.e_i(0)}: q {r.choice('+-*')} w)({self.e_i(d)})"
        if c == 22:
            return f"functools.reduce(lambda p, q: p {r.choice('+-')} q, {self.e_L(d)}, {self.e_i(0)})"
        if c == 23:
            return f"Box.{r.choice(('twice(' + self.e_i(d) + ')', 'count', 'made(' + self.e_i(d) + ').n'))}"
        if c == 24:
            return f"sorted({self.e_L(d)} + [0])[{r.choice(('0', '-1'))}]"
        return f"(Pair({self.e_i(d)}, {self.e_i(0)}) + Pair(1, {self.e_i(0)}))[{r.choice('01')}]"

    def e_f(self, d: int) -> str:
        r = self.r
        if d <= 0:
            return "G_f" if r.random() < 0.12 else self.leaf("f")
        d -= 1
        c = r.randrange(12)
        if c < 5:
            return f"({self.e_f(d)} {r.choice('+-*')} {self.e(r.choice('fi'), d)})"
        if c == 5:
            return f"({self.e_f(d)} / {r.choice((self.e_f(d), '2.0', '3'))})"
        if c == 6:
            return f"float({self.e_i(d)} % 1000)"
        if c == 7:
            return f"({self.e_f(d)} if {self.e_b(d)} else {self.e_f(d)})"
        if c == 8:
            return f"abs({self.e_f(d)})"
        if c == 9:
            return f"round({self.e_f(0)}, 1)"
        if c == 10:
            return f"float(np.real({self.e_A(d)}.sum()))"
        return f"(-{self.e_f(d)})"

    def e_b(self, d: int) -> str:
        r = self.r
        if d <= 0:
            return self.leaf("b")
        d -= 1
        c = r.randrange(14)
        if c < 4:
            return f"({self.e_i(d)} {r.choice(('<', '<=', '==', '!=', '>', '>='))} {self.e_i(d)})"
        if c == 4:
            return f"({self.e_f(d)} {r.choice(('<', '==', '>='))} {self.e(r.choice('fi'), d)})"
        if c == 5:
            return f"({self.e_b(d)} {r.choice(('and', 'or'))} {self.e_b(d)})"
        if c == 6:
            return f"(not {self.e_b(d)})"
        if c == 7:
            return f"({self.e_i(0)} {r.choice(('in', 'not in'))} {self.e(r.choice('LTS'), d)})"
        if c == 8:
            return f"({self.e_s(0)} {r.choice(('in', 'not in'))} {self.e_D(d)})"
        if c == 9:
            k = r.choice("LDOAT")
            return f"({self.leaf_named(k)} {r.choice(('is', 'is not'))} {self.leaf_named(k)})"
        if c == 10:
            return f"isinstance({self.e(r.choice('ifbsLO'), 0)}, {r.choice(('int', 'float', 'str', '(int, list)', 'Box', 'Sub'))})"
        if c == 11:
            return f"bool({self.e(r.choice('iLDTSs'), d)})"
        if c == 12:
            return f"{r.choice(('any', 'all'))}(q > 0 for q in {self.e_L(d)})"
        return f"({self.e_s(d)} == {self.e_s(0)})"

    def e_s(self, d: int) -> str:
        r = self.r
        if d <= 0:
            return "G_s" if r.random() < 0.1 else self.leaf("s")
        d -= 1
        c = r.randrange(10)
        if c == 0:
            return f"({self.e_s(d)} + {self.literal('s')})"
        if c == 1:
            return f"str({self.e(r.choice('ifbLT'), d)})"
        if c == 2:
            return f'f"{{{self.safe(self.e_i(0))}:>4}}|{{{self.safe(self.e(r.choice("fis"), 0))}!r}}"'
        if c == 3:
            return f"{self.e_s(d)}.{r.choice(('upper()', 'strip()', 'lower()', 'title()', 'replace(chr(97), chr(98))', 'zfill(3)'))}"
        if c == 4:
            return f"{self.e_s(d)}[{r.choice((':1', '1:', '::-1', ':-1'))}]"
        if c == 5:
            return f"'-'.join(str(q) for q in {self.e_L(d)})"
        if c == 6:
            return f"type({self.e(r.choice('ifbsLDTSAO'), 0)}).__name__"
        if c == 7:
            return f"('%s/%d' % ({self.e_s(0)}, {self.e_i(0)}))"
        if c == 8:
            return f"({self.e_s(d)} if {self.e_b(d)} else {self.e_s(0)})"
        return f"str({self.e_A(d)}.{r.choice(('dtype', 'shape'))})"

    def e_L(self, d: int) -> str:
        r = self.r
        if d <= 0:
            return "G_L" if r.random() < 0.12 else self.leaf("L")
        d -= 1
        c = r.randrange(14)
        if c == 0:
            return f"({self.e_L(d)} + {self.literal('L')})"
        if c == 1:
            return f"{self.e_L(d)}[{r.choice((':2', '1:', '::-1', '::2'))}]"
        if c == 2:
            return f"[q {r.choice('+-*')} {self.e_i(0)} for q in {self.e_L(d)}]"
        if c == 3:
            return f"[q for q in {self.e_L(d)} if q {r.choice(('>', '<', '!='))} {self.e_i(0)}]"
        if c == 4:
            return f"list(range({r.randint(0, 4)}))"
        if c == 5:
            return f"sorted({self.e(r.choice('LTS'), d)}{r.choice(('', ', reverse=True', ', key=lambda q: -q'))})"
        if c == 6:
            return f"[*{self.e_L(d)}, {self.e_i(0)}]"
        if c == 7:
            return f"list(map(lambda q: q + {self.e_i(0)}, {self.e_L(d)}))"
        if c == 8:
            return f"[p + q for p, q in zip({self.e_L(d)}, {self.e_L(d)})]"
        if c == 9:
            return f"[p * 2 + q for p, q in enumerate({self.e_L(d)})]"
        if c == 10:
            return f"list({self.e(r.choice('TL'), d)})"
        if c == 11:
            return f"list({self.e_D(d)}.values())"
        if c == 12:
            return f"{self.leaf_O()}.xs"
        return f"[p + q for p in {self.e_L(0)}[:3] for q in {self.e_L(0)}[:2]]"

    def e_D(self, d: int) -> str:
        r = self.r
        if d <= 0:
            return "G_D" if r.random() < 0.12 else self.leaf("D")
        d -= 1
        c = r.randrange(6)
        if c == 0:
            return f"{{**{self.e_D(d)}, {self.literal('s')}: {self.e_i(0)}}}"
        if c == 1:
            return f"{{str(q): q for q in {self.e_L(d)}}}"
        if c == 2:
            return f"dict({self.e_D(d)}, z={self.e_i(0)})"
        if c == 3:
            return f"({self.e_D(d)} | {self.literal('D')})"
        if c == 4:
            return f"{{p: q + 1 for p, q in {self.e_D(d)}.items()}}"
        return self.leaf("D")

    def e_T(self, d: int) -> str:
        r = self.r
        if d <= 0:
            return self.leaf("T")
        d -= 1
        c = r.randrange(5)
        if c == 0:
            return f"({self.e_i(d)}, {self.e_i(d)})"
        if c == 1:
            return f"tuple({self.e(r.choice('LT'), d)})"
        if c == 2:
            return f"({self.e_T(d)} + {self.literal('T')})"
        if c == 3:
            return f"{self.e_T(d)}[{r.choice((':1', '1:', '::-1'))}]"
        return f"(*{self.e_L(d)}, {self.e_i(0)})"

    def e_S(self, d: int) -> str:
        r = self.r
        if d <= 0:
            return self.leaf("S")
        d -= 1
        c = r.randrange(4)
        if c == 0:
            return f"set({self.e(r.choice('LT'), d)})"
        if c == 1:
            return f"({self.e_S(d)} {r.choice('|&-^')} {self.e_S(0)})"
        if c == 2:
            return f"{{q % 3 for q in {self.e_L(d)}}}"
        return f"frozenset({self.e_L(d)})" if r.random() < 0.2 else self.leaf("S")

    def e_O(self, d: int) -> str:
        r = self.r
        if d <= 0 or r.random() < 0.6:
            return self.leaf_O()
        return f"{r.choice(('Box', 'Sub', 'Box.made'))}({self.e_i(d - 1)})"

    def e_A(self, d: int) -> str:
        r = self.r
        if d <= 0:
            return "G_A" if r.random() < 0.06 and self.shape == self.g_shape else self.leaf("A")
        d -= 1
        c = r.randrange(24)
        if c < 7:
            return f"({self.e_A(d)} {r.choice('+-*+-')} {self.e(r.choice('AAif'), d if r.random() < 0.5 else 0)})"
        if c == 7:
            return f"np.{r.choice(('add', 'multiply', 'maximum', 'subtract'))}({self.e_A(d)}, {self.e(r.choice('Ai'), 0)})"
        if c == 8:
            return f"np.where({self.e_A(d)} > {r.choice('012')}, {self.e_A(0)}, {self.e(r.choice('Ai'), 0)})"
        if c == 9:
            return f"np.{r.choice(('abs', 'square', 'negative', 'ones_like', 'cos'))}({self.e_A(d)})"
        if c == 10:
            return f"{self.e_A(d)}.astype({r.choice(DTYPES)!r})"
        if c == 11:
            return f"{self.e_A(d)}.copy()"
        if c == 12:
            return f"{self.e_A(d)}[::-1]" if self.shape else f"{self.e_A(d)}.copy()"
        if c == 13:
            return f"{self.e_A(d)}.{r.choice(('T.T', 'reshape(-1).reshape(' + str(self.shape) + ')', 'view()', 'real'))}"
        if c == 14:
            return f"np.roll({self.e_A(d)}, {r.choice('12')})"
        if c == 15:
            return f"np.clip({self.e_A(d)}.real, {r.choice(('0, 2', '-1, 1'))})"
        if c == 16:
            return f"({self.e_A(d)} - {self.e_A(0)}.mean())"
        if c == 17:
            return f"({self.e_A(d)} * {self.e_A(0)}.{r.choice(('sum()', 'max()', 'min()', 'sum(axis=-1, keepdims=True)'))})" if self.shape and 0 not in self.shape \
                else f"({self.e_A(d)} * {self.e_A(0)}.sum())"
        if c == 18:
            return f"np.stack([{self.e_A(d)}, {self.e_A(0)}]).sum(axis=0)"
        if c == 19:
            return f"np.concatenate(({self.e_A(d)}, {self.e_A(0)}))[:{self.shape[0]}]" if self.shape else f"({self.e_A(d)} + 1)"
        if c == 20:
            return f"({self.e_A(d)} / {r.choice(('2', '3.0', self.e_A(0)))})"
        if c == 21:
            return f"(np.zeros_like({self.e_A(0)}) + {self.e(r.choice('if'), 0)} % 5)"
        if c == 22:
            return f"({self.e_A(d)} if {self.e_b(0)} else {self.e_A(0)})"
        return f"np.cumsum({self.e_A(d)}).reshape({self.shape})"

    def leaf_O(self) -> str:
        return self.pick("O") or "G_O"

    def leaf_named(self, kind: str) -> str:
        return self.pick(kind) or ("G_" + kind if kind in "LDAO" else "G_L")

    @staticmethod
    def safe(text: str) -> str:
        """Text that may stand inside an f-string's braces on every supported version."""
        return text if not set(text) & set("'\"{}\\:!") else "1"

    def call_helper(self, helper: tuple[str, str, str], d: int) -> str:
        name, _, shape = helper
        r = self.r
        a, b = self.e_i(d), self.e_i(0)
        if shape == "default":
            return r.choice((f"{name}({a})", f"{name}({a}, {b})", f"{name}({a}, q={b})", f"{name}(p={a})"))
        if shape == "star":
            return r.choice((f"{name}({a}, {b}, 3)", f"{name}(*{self.e_L(0)}[:3])", f"{name}({a}, *{self.e_T(0)})", f"{name}()"))
        if shape == "kw":
            return r.choice((f"{name}({a}, w={b})", f"{name}({a}, **{{'w': {b}, 'y': 2}})", f"{name}({a}, x=1, y={b})"))
        return f"{name}({self.e_L(0)}, {a})"
