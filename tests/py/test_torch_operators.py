"""Operators between tensors and numbers, in place and not: the value, which object it is, and what is left in the operands, with every kind of backend."""

import operator

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

import framegate  # noqa: E402

SYMBOLS = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "<<"]
NUMBERS = ["2", "-2", "1.5", "-1.5", "-0.0", "True", "2j", "-1j", "n"]


def as_module(graph, inputs): return graph.forward


BACKENDS = {"eager": "eager", "module": as_module, "compiler": "torch:aot_eager"}


def outcome(f, tensor, *more):
    tensor = tensor.clone()
    try:
        result = f(tensor, *more)
    except Exception as e:
        result = type(e).__name__, str(e)
    return repr((result, tensor))


def made(source):
    names = {"torch": torch, "operator": operator}
    exec(source, names)
    return names["f"]


@pytest.mark.parametrize("backend", ["eager", "module"])
@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_number_and_a_tensor(symbol, backend):
    """Literals too, whose sign binds less than a power does."""
    lines = [line for k in NUMBERS for line in (f"z = t {symbol} {k}", f"z = ({k}) {symbol} t", f"z = t; z {symbol}= {k}", f"z = {k}; z {symbol}= t")]
    for line in lines:
        f = made(f"def f(t, n):\n    {line}\n    return z, z.shape, z.dtype, z is t")
        g = framegate.compile(f, backend=BACKENDS[backend])
        for tensor in (torch.tensor([1.5, -2.0]), torch.tensor([[1], [3]])):
            for n in (3.5, -4):
                assert outcome(g, tensor, n) == outcome(f, tensor, n), (line, tensor, n)


def new_value(t): c = t; t @= t; return c is t, c, t + 1
def twice(t): a = t * 1; c = a; a @= t; a @= t; return c * 1, a
def then_written(t): c = t; d = t + 1; t @= d; d @= t; t += d; return c is t, c, t, d
def shape_of_it(t): r = t[:1]; c = r; r @= t[:, :1]; return r.shape, c.shape, r, c
def called(t): b = operator.imatmul(t, t); c = operator.imatmul(b, t); return t + 1, b + 1, c, operator.imatmul(t, c)
def does_not_fit(t):
    c = t
    try: t @= torch.ones(3, 3)
    except RuntimeError as e: return str(e), c is t
def number_on_the_right(t):
    try: t @= 3
    except TypeError as e: return str(e)
def number_on_the_left(t):
    x = 3
    try: x @= t
    except TypeError as e: return str(e)
def shape_of_a_number(t): x = t.shape[0]; y = x; x -= t; return x.shape, x, y * t
def minus_to_a_power(t): return (-2) ** t, (-2.5) ** t, -(2 ** t), operator.pow(-3, t), (-1j) ** t
def in_an_argument(t, x=2): x *= t; x += 1; return x, t


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [new_value, twice, then_written, shape_of_it, called, does_not_fit, number_on_the_right, number_on_the_left,
                               shape_of_a_number, minus_to_a_power, in_an_argument], ids=lambda f: f.__name__)
def test_what_has_no_in_place_form_makes_a_new_value(f, backend):
    g = framegate.compile(f, backend=BACKENDS[backend])
    for tensor in (torch.tensor([[0.5, 2.0], [1.0, -1.0]]), torch.eye(2), torch.full((2, 2), 3.0)):
        assert outcome(g, tensor) == outcome(f, tensor) == outcome(g, tensor)


@pytest.mark.parametrize("backend", ["eager", "module"])
def test_complex_numbers_that_python_does_not_read_as_it_prints_them(backend):
    def f(t): return t * -1j, t ** -1j, t + complex("nan+infj"), [t * complex(-0.0, 2), t * complex(2, -0.0)], torch.full((1,), complex("-infj"))
    g = framegate.compile(f, backend=BACKENDS[backend])
    for tensor in (torch.tensor([0.5, -2.0]), torch.tensor([[1], [3]])):
        assert outcome(g, tensor) == outcome(f, tensor)


def test_a_graph_says_in_place_only_where_an_operand_changes():
    names = []
    def record(graph, inputs):
        names.extend(getattr(n.target, "__name__", "") for n in graph.graph.nodes if n.op == "call_function")
        return graph.forward
    def f(t, u): x = 2; x += t; u @= u; t += 1; return x, u
    g = framegate.compile(f, backend=record, fullgraph=True)
    g(torch.ones(2, 2), torch.ones(2, 2))
    assert names == ["add", "matmul", "iadd"]


LEGACY = [torch.FloatTensor, torch.DoubleTensor, torch.LongTensor, torch.BoolTensor, torch.cuda.FloatTensor, torch.sparse.FloatTensor]


@pytest.mark.parametrize("cls", LEGACY, ids=lambda c: f"{c.__module__}.{c.__name__}")
def test_the_types_by_dtype_ask_the_tensor(cls):
    """Their class is written in C, with an __instancecheck__ of its own."""
    def known(t): return isinstance(t, cls), isinstance(t + 0, cls), isinstance(t, (int, cls)), isinstance([t], cls), isinstance(3, (str, cls))
    def given(t, cls): return isinstance(t, cls), isinstance(t * 1, (cls, int)), issubclass(type(t), cls)
    tensors = [torch.ones(2), torch.ones(2).double(), torch.ones(2).long(), torch.nn.Parameter(torch.ones(2)), torch.ones(2) > 0]
    for f, more in ((known, ()), (given, (cls,))):
        g = framegate.compile(f)
        for tensor in tensors * 2:
            assert g(tensor, *more) == f(tensor, *more)
