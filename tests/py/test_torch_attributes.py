"""How attributes of modules are found: a class's own __getattr__, subclasses of the module type, classes that are changed later; the thread's state."""

import types

import pytest
from support_engine import cap, check_same, check_twins, counted, needs_engine, observe

torch = pytest.importorskip("torch")
nn = torch.nn

pytestmark = pytest.mark.torch


class Renaming(nn.Module):
    """Its __getattr__ comes before what the module's dicts hold."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self._parameters["weight"] = nn.Parameter(torch.ones(3))
        self.table = {"scale": 2.0}

    def __getattr__(self, name):
        if name == "weight":
            return 7
        if name in ("scale", "shift"):
            try:
                return self.table[name]
            except KeyError:
                raise AttributeError(name) from None
        return super().__getattr__(name)

    def forward(self, x):
        return self.layer(x) * self.weight * self.scale, getattr(self, "shift", 50), hasattr(self, "scale"), hasattr(self, "other")


class Wrapping(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        return super().__getattr__(name) if name == "inner" else getattr(self.inner, name)

    def forward(self, x):
        return self.inner(x) + self.bias * self.out_features


def test_a_modules_own_getattr_is_asked():
    torch.manual_seed(0)
    first, second = Renaming(), Wrapping(nn.Linear(3, 3))
    def make():
        import copy
        a, b = copy.deepcopy(first), copy.deepcopy(second)
        return (lambda x: (a(x), b(x))), (a, b)
    x = torch.ones(2, 3)
    check_twins(make, [(x,), (x,), lambda s: s[0].table.update(scale=3.0, shift=1), (x,), lambda s: s[0].table.pop("scale"), (x,), (x,)])


class Computing(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("no"):
            raise AttributeError(name)
        return len(name)

    @property
    def five(self):
        return 5


class Answering:
    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name.startswith("k"):
            self.asked.append(name)
            return len(name)
        raise AttributeError(f"no {name}")


def test_getattr_of_modules_and_objects_is_called_where_nothing_is_found():
    def make():
        module, o = Computing("computing"), Answering()
        module.here = 4
        def f(x):
            try:
                o.zz
            except AttributeError as error:
                x = x + len(str(error))
            return x * module.here + module.xyz + module.five, getattr(module, "q", None), hasattr(module, "no"), o.kk, getattr(o, "nn", 3), hasattr(o, "kkk")
        return f, (module, o)
    check_twins(make, [(1.0,), (2.0,), lambda s: setattr(s[0], "xyz", 9), (1.0,), lambda s: setattr(s[1], "kk", 8), (1.0,),
                       lambda s: s[0].__dict__.update(__getattr__=lambda name: "own"), (1.0,), (1.0,)])


def test_a_module_with_a_getattr_in_its_dict():
    def make():
        module = Computing("computing")
        module.__dict__["__getattr__"] = lambda name: name.upper()
        return (lambda x: (x, module.five, module.abc)), module
    check_twins(make, [(1,), (1,), lambda m: m.__dict__.pop("__getattr__"), (1,), (1,)])


def test_special_methods_that_a_module_class_gets_later():
    torch.manual_seed(0)
    def make():
        class Base(nn.Linear):
            pass
        m = Base(3, 3)
        with torch.no_grad():
            m.weight.fill_(0.5)
            m.bias.fill_(0.25)
        def f(x):
            m.count = 3
            return m(x), m.weight, m.count
        return f, [m]
    def call(s): type(s[0]).__call__ = lambda self, x: x * 100
    def attr(s): type(s[0]).__getattr__ = lambda self, name: 5.0 if name == "weight" else nn.Module.__getattr__(self, name)
    def setter(s): type(s[0]).__setattr__ = lambda self, name, value: nn.Module.__setattr__(self, name, value + 1 if name == "count" else value)
    for change in (call, attr, setter):
        check_twins(make, [(torch.ones(2, 3),), (torch.ones(2, 3),), change, (torch.ones(2, 3),), (torch.ones(2, 3),)])


@needs_engine
@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_a_loop_over_a_recurrent_cell_is_one_graph(cell):
    torch.manual_seed(0)
    c = cell(4, 5)
    def f(x):
        state = None
        for row in x.unbind(0):
            state = c(row, state)
        return state
    compiled, counter = counted(f)
    for x in (torch.randn(3, 2, 4), torch.randn(3, 2, 4), torch.randn(2, 1, 4)):
        check_same(observe(f, (x,)), observe(compiled, (x,)), cell.__name__)
    assert counter.frame_count == 2


def test_questions_about_the_threads_state():
    def f(x):
        return x * 2, torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled(), x.is_nested
    compiled = cap(f)
    x = torch.ones(2)
    for around in (torch.enable_grad, torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", dtype=torch.bfloat16), torch.enable_grad):
        for _ in range(2):
            with around():
                assert repr(f(x)) == repr(compiled(x))
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(f(x)) == repr(compiled(x))
    finally:
        torch.set_default_dtype(torch.float32)


@needs_engine
@pytest.mark.parametrize("backend", ["eager", "torch:eager", "aot_eager"])
def test_hooks_for_saved_tensors_see_what_the_program_saves(backend):
    import framegate

    def run(fn, hooked):
        seen = []
        x = torch.arange(1.0, 4.0, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(tuple(t.shape)) or t * 2, lambda t: t) if hooked else torch.enable_grad():
            y = fn(x)
        y.sum().backward()
        return seen, x.grad.tolist()
    def inside(x):
        y = x * 2
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 3, lambda t: t):
            z = y.sin() * y
        return z.view(-1)[: x.shape[0]]
    def f(x):
        y = x.sin() * x
        return y.reshape(y.shape[0], 1) * 2
    for fn in (f, inside):
        compiled = framegate.compile(fn, backend=backend)
        for hooked in (False, True, True, False):
            want, got = run(fn, hooked), run(compiled, hooked)
            assert got[0] == want[0] and got[1] == pytest.approx(want[1])


@needs_engine
def test_code_of_torchs_compilers_is_used_under_the_settings_it_was_made_under():
    import framegate

    made = []
    def backend(module, examples):
        made.append(torch.are_deterministic_algorithms_enabled())
        return lambda *inputs: [t + 0 for t in module.forward(*inputs)]
    backend.__module__ = "torch.somewhere"
    f = lambda x: (x.cumsum(0), x + torch.ones(3))
    compiled = framegate.compile(f, backend=backend)
    x = torch.arange(3.0)
    try:
        for setting in (False, True, True, False):
            torch.use_deterministic_algorithms(setting)
            assert repr(compiled(x)) == repr(f(x))
    finally:
        torch.use_deterministic_algorithms(False)
    assert made == [False, True]
