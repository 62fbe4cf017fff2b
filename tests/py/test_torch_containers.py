"""Containers of modules and parameters: slices, iteration, membership, the generators of nn.Module; tensors and modules as members of sets and keys of dicts."""

from __future__ import annotations

import gc
import weakref

import pytest
from support_engine import cap, counted, entries, needs_engine

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.torch


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])
        self.seq = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
        self.params = nn.ParameterList([nn.Parameter(torch.randn(3)) for _ in range(3)])
        self.by_name = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.ReLU()})
        self.norm = nn.BatchNorm1d(3)


@pytest.fixture
def net():
    torch.manual_seed(1)
    return Net()


def through(modules, x):
    for module in modules:
        x = module(x)
    return x


def first_two(net, x):
    return through(net.layers[:2], x)


def all_but_the_last(net, x):
    return through(net.layers[:-1], x) + net.layers[-1](x)


def backwards(net, x):
    return through(net.layers[::-1], x) + through(reversed(net.layers), x)


def slice_of_slice(net, x):
    part = net.layers[1:]
    return through(part[:2], x), len(part), len(part[5:]), part[0] is net.layers[1], part[-1] is net.layers[3]


def numbered(net, x):
    for i, (layer, other) in enumerate(zip(net.layers[1:], net.seq)):
        x = layer(x) + i * other(x)
    return x


def calls_a_slice(net, x):
    return net.seq[:2](x) + net.seq[1:](x)


def membership(net, x):
    return net.layers[2] in net.layers, net.norm in net.layers, net.layers[0] in net.layers[1:], "a" in net.by_name, net.seq[1] in net.seq, x + 1


def total(net, x):
    for p in net.parameters():
        x = x + p.sum()
    return x


def names(net, x):
    return [n for n, _ in net.named_parameters()], [n for n, _ in net.named_buffers()], [n for n, _ in net.named_modules()], x * 2


def kinds(net, x):
    return [type(m).__name__ for m in net.modules()], [type(m).__name__ for m in net.children()], [n for n, _ in net.named_children()], x * 2


def first_dtype(net, x):
    return x.to(next(net.parameters()).dtype), next(net.buffers()).shape


def collected(net, x):
    return list(net.parameters()), dict(net.named_parameters(prefix="p")), [m for m in net.modules() if isinstance(m, nn.Linear)]


FUNCTIONS = [first_two, all_but_the_last, backwards, slice_of_slice, numbered, calls_a_slice, membership, total, names, kinds, first_dtype, collected]


def same(a, b):
    if isinstance(a, nn.Parameter | nn.Module):
        return a is b
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b) and a.requires_grad == b.requires_grad
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and same(list(a.values()), list(b.values()))
    return a == b


@pytest.mark.parametrize("fn", FUNCTIONS)
def test_as_plain_torch_while_the_modules_change(fn, net):
    compiled = cap(fn)

    def check():
        for k in range(3):
            x = torch.full((2, 3), float(k))
            assert same(fn(net, x), compiled(net, x))

    check()
    with torch.no_grad():
        next(net.parameters()).mul_(2)
    check()
    net.layers[2] = nn.Linear(3, 3)
    check()
    net.layers.append(nn.Linear(3, 3))
    net.seq.append(nn.Tanh())
    check()
    net.layers[1].weight = net.layers[0].weight
    check()
    net.layers[1] = net.layers[0]
    net.extra = nn.Parameter(torch.ones(3))
    check()
    net.norm.register_buffer("more", torch.ones(2))
    check()
    net.layers[0].register_forward_hook(lambda m, args, out: out * 3)
    check()


@needs_engine
@pytest.mark.parametrize("fn", FUNCTIONS)
def test_no_break_and_one_entry(fn, net):
    import framegate

    assert framegate.explain(fn)(net, torch.ones(2, 3)).break_reasons == []
    compiled = cap(fn)
    for k in range(4):
        compiled(net, torch.full((2, 3), float(k)))
    assert entries(compiled) == 1
    net.layers[1].weight = net.layers[0].weight
    compiled(net, torch.ones(2, 3))
    compiled(net, torch.ones(2, 3))
    assert entries(compiled) == (1 if fn in (membership,) else entries(compiled)) <= 2


@needs_engine
def test_one_graph_for_a_loop_over_a_slice(net):
    compiled, counter = counted(first_two)
    for k in range(3):
        compiled(net, torch.full((2, 3), float(k)))
    assert counter.frame_count == 1


def test_a_slice_that_is_used_as_a_whole_is_a_module_of_its_own(net):
    def fn(net, out):
        part = net.layers[1:3]
        out.append(part)
        net.layers.append(nn.Identity())
        return part, net.seq[:2]

    compiled = cap(fn)
    for k in range(3):
        out = []
        part, seq = compiled(net, out)
        assert out[0] is part and type(part) is nn.ModuleList and type(seq) is nn.Sequential and len(net.layers) == 5 + k
        assert list(part._modules) == ["0", "1"] and part[0] is net.layers[1] and list(seq._modules) == ["0", "1"] and seq[0] is net.seq[0]
        assert part.training and part is not compiled(net, [])[0]
        del net.layers[-1]


def test_a_slice_that_is_changed(net):
    def fn(net, x):
        part = net.layers[:2]
        part.append(net.norm)
        part[0] = nn.Identity() if x is None else net.seq[1]
        return part, part.training, len(part)

    compiled = cap(fn)
    for _ in range(3):
        part, training, n = compiled(net, torch.ones(2, 3))
        assert len(part) == n == 3 and training and part[2] is net.norm and part[0] is net.seq[1] and part[1] is net.layers[1]
    assert len(net.layers) == 4


def test_a_hook_of_registration_is_called_for_a_slice(net):
    from torch.nn.modules.module import register_module_module_registration_hook

    compiled, seen = cap(first_two), []
    compiled(net, torch.ones(2, 3))
    handle = register_module_module_registration_hook(lambda module, name, sub: seen.append(name))
    try:
        compiled(net, torch.ones(2, 3))
        assert seen == ["0", "1"]
    finally:
        handle.remove()
    compiled(net, torch.ones(2, 3))
    assert seen == ["0", "1"]


def test_a_subclass_decides_about_its_slices(net):
    class Odd(nn.ModuleList):
        def __getitem__(self, index):
            return [super(Odd, self).__getitem__(0)] if isinstance(index, slice) else super().__getitem__(index)

    net.layers = Odd(list(net.layers))
    compiled, x = cap(first_two), torch.ones(2, 3)
    for _ in range(2):
        assert same(compiled(net, x), first_two(net, x)) and same(compiled(net, x), net.layers[0](x))


# --- members and keys by identity


def unique(a, b, c):
    seen, order = set(), []
    for v in (a, b, c):
        if v in seen:
            continue
        seen.add(v)
        order.append(v)
    return order, len(seen)


def counts(a, b, c):
    times = {}
    for v in (a, b, c):
        times[v] = times.get(v, 0) + 1
    popped = times.pop(b)
    return popped, a in times, len(times), list(times.values()), list(times)


def goes(a, b, c):
    seen = {a, b}
    seen.discard(b)
    names = {a: "a", c: "c"}
    del names[c]
    return a in seen, b in seen, c in seen, a in names, c in names, names.get(b), names.setdefault(c, "new"), seen, names


class Plain:
    pass


MADE = {"tensor": lambda: torch.ones(2), "parameter": lambda: nn.Parameter(torch.ones(2)), "module": nn.ReLU, "instance": Plain, "function": lambda: (lambda: 1)}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("fn", [unique, counts, goes])
def test_by_identity_whoever_is_the_same(fn, kind):
    compiled = cap(fn)
    a, b, c = (MADE[kind]() for _ in range(3))

    def ids(value):
        if isinstance(value, list | tuple):
            return type(value), [ids(v) for v in value]
        if isinstance(value, set):
            return set, sorted(map(id, value))
        if isinstance(value, dict):
            return dict, [(id(k), v) for k, v in value.items()]
        return value if isinstance(value, int | str | bool | None) else id(value)

    for _ in range(2):
        for args in ((a, b, c), (a, b, a), (a, a, c), (b, a, a), (a, a, a), (c, b, a)):
            assert ids(fn(*args)) == ids(compiled(*args))


@needs_engine
@pytest.mark.parametrize("kind", MADE)
def test_keys_by_identity_are_captured_and_not_kept(kind):
    import framegate

    things = [MADE[kind]() for _ in range(3)]
    for fn in (unique, counts, goes):
        assert framegate.explain(fn)(*things).break_reasons == []
        compiled = cap(fn)
        compiled(*things)
        compiled(*[MADE[kind]() for _ in range(3)])
        assert entries(compiled) == (2 if kind == "function" else 1) or kind == "function"
    dead = weakref.ref(things[0])
    del things
    gc.collect()
    assert dead() is None


def test_a_missing_key_and_what_decides_for_itself():
    def missing(a, b):
        names = {a: 1}
        try:
            return names[b]
        except KeyError as error:
            return "missing", error.args[0] is b

    class Equal(Plain):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    for make in (*MADE.values(), Equal):
        compiled = cap(missing)
        a, b = make(), make()
        for args in ((a, a), (a, b), (b, a), (b, b)):
            assert compiled(*args) == missing(*args)
    compiled = cap(unique)
    assert compiled(Plain(), Plain(), Plain())[1] == 3
    Plain.__eq__, Plain.__hash__ = (lambda self, other: True), (lambda self: 1)
    try:
        assert compiled(Plain(), Plain(), Plain())[1] == 1
    finally:
        del Plain.__eq__, Plain.__hash__
    assert compiled(Plain(), Plain(), Plain())[1] == 3


def test_results_of_operations_are_told_apart_at_run_time():
    def fn(x):
        y = x.contiguous()
        return len({x, y}), y in {x}, x in {y}

    compiled = cap(fn)
    for x in (torch.ones(2, 3), torch.ones(3, 2).t(), torch.ones(2, 3)):
        assert compiled(x) == fn(x)


def test_many_modules_and_parameters():
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(150)])

    def fn(model):
        return sum(p.numel() for p in model.parameters() if p.requires_grad), len(list(model.modules()))

    compiled = cap(fn)
    assert compiled(model) == fn(model) == (900, 151)
    model[3].weight = model[4].weight
    model[100] = model[7]
    assert compiled(model) == fn(model) != (900, 151)
