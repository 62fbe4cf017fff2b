"""Rows beside torch.compile, in the same process. The constant backend ignores the graph: what is left of a call is the front end's own cost."""

from __future__ import annotations

import time

import framegate
import torch
import torch._dynamo
from measure import Row, interleave, interleave_once
from rows_numpy import must_hit

torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = 256
torch._dynamo.config.accumulated_recompile_limit = 4096
torch._dynamo.config.automatic_dynamic_shapes = False


def constant_backend(graph_module, example_inputs):
    outputs = next(node for node in graph_module.graph.nodes if node.op == "output").args[0]
    result = tuple(torch.zeros(1) for _ in outputs)
    return lambda *inputs: result


def forward_backend(graph_module, example_inputs):
    return graph_module.forward


def torch_call() -> Row:
    x = torch.ones(8)
    ours = framegate.compile(lambda x: x + 1, backend=constant_backend)
    theirs = torch.compile(lambda x: x + 1, backend=constant_backend)
    must_hit(ours, [(x,)], "torch_call")
    theirs(x)
    return interleave("one tensor, constant backend", {"framegate": (ours, (x,)), "torch.compile": (theirs, (x,))})


class Stack(torch.nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(n)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def module_100() -> Row:
    model = Stack(100)
    x = torch.ones(2, 4)
    ours = framegate.compile(model, backend=constant_backend)
    theirs = torch.compile(Stack(100), backend=constant_backend)
    must_hit(ours, [(x,)], "module_100")
    theirs(x)
    return interleave("module of 100 Linears, constant backend", {"framegate": (ours, (x,)), "torch.compile": (theirs, (x,))})


def entries_loop(compiled, n: int):
    tensors = [torch.ones(i + 1) for i in range(n)] * (64 // n)
    for t in tensors:
        compiled(t)

    def loop():
        for t in tensors:
            compiled(t)

    return loop


def own_function():
    def h(x):
        return x + 1

    # A code object of its own: entries of torch.compile are kept by code object.
    h.__code__ = h.__code__.replace(co_name="h")
    return h


def rounds_of_entries(name: str, loop, function, with_peer: bool) -> Row:
    """64 entries beside one. The peer, which sweeps the caches in each of its rounds, has a row of its own, or 64 entries would be measured cold."""

    def ours():
        return framegate.compile(function(), backend=constant_backend, recompile_limit=256)

    contenders = {"framegate": (loop(ours(), 64), ())}
    if not with_peer:
        contenders["framegate, 1 entry"] = (loop(ours(), 1), ())
        return interleave(name, contenders, per_call=64)
    for label, n in (("torch.compile", 64), ("torch.compile, 1 entry", 1)):
        contenders[label] = (loop(torch.compile(function(), backend=constant_backend, dynamic=False), n), ())
    return interleave(name + ", beside the peer", contenders, per_call=64)


def entries_torch(with_peer: bool = False) -> Row:
    many = framegate.compile(own_function(), backend=constant_backend, recompile_limit=256)
    must_hit(many, [(torch.ones(i + 1),) for i in range(64)], "64 entries")
    return rounds_of_entries("one call, round robin over 64 entries that differ in a size", entries_loop, own_function, with_peer)


class Settings:
    def __init__(self, a: int) -> None:
        self.a = a


FACTORS = tuple(float(i + 1) for i in range(9))
NAMED = {str(i): float(i) for i in range(9)}


def mixed(x, y, z, k, name, values, settings, table):
    r = x + 1
    r = r * FACTORS[k] * NAMED[name] + len(values)
    return r * FACTORS[settings.a] * FACTORS[table["v"]] + y.sum() + z.sum()


def mixed_arguments(i: int) -> list:
    """Call i differs from the first in place i % 8, by value i // 8."""
    place, value = i % 8, i // 8
    args = [torch.ones(2), torch.ones(2), torch.ones(2), 0, "0", [], Settings(0), {"v": 0}]
    changed = [torch.ones(value + 3)] * 3 + [value, str(value), [0] * value, Settings(value), {"v": value}]
    args[place] = changed[place]
    if place > 2 and value == 0:
        args[0] = torch.ones(20 + place)  # value 0 is the default: make the call another one all the same
    if place == 0:
        args[1] = args[2] = torch.ones(1)
    return args


def copy_of_mixed():
    import types

    return types.FunctionType(mixed.__code__.replace(co_name="mixed"), globals(), "mixed")


def mixed_loop(compiled, n: int):
    calls = [mixed_arguments(i) for i in range(n)] * (64 // n)
    for args in calls:
        compiled(*args)

    def loop():
        for args in calls:
            compiled(*args)

    return loop


def entries_mixed(with_peer: bool = False) -> Row:
    many = framegate.compile(copy_of_mixed(), backend=constant_backend, recompile_limit=256)
    must_hit(many, [tuple(mixed_arguments(i)) for i in range(64)], "64 mixed entries")
    return rounds_of_entries(
        "one call, round robin over 64 entries that differ in eight places", mixed_loop, copy_of_mixed, with_peer
    )


def operations(n: int):
    """A function of n torch operations, fresh, so that nothing is compiled yet."""
    lines = "".join(f"    x = x * 1.5 + {i}\n" for i in range(n // 2))
    namespace: dict = {}
    exec(compile(f"def f(x):\n{lines}    return x\n", f"<{n} operations>", "exec"), namespace)
    return namespace["f"]


def python_loop(x):
    total = 0
    seen = []
    for i in range(1000):
        total += i * 2
        seen.append(total)
        if total % 3 == 0:
            total -= 1
    return x + len(seen) + total


def first_call(name: str, function) -> Row:
    x = torch.ones(8)

    def timed(make, reset):
        def run() -> float:
            reset()
            start = time.perf_counter()
            make(function)(x)
            return (time.perf_counter() - start) * 1e3

        return run

    contenders = {
        "framegate": timed(framegate.compile, framegate.reset),
        "framegate, FX": timed(lambda f: framegate.compile(f, backend=forward_backend), framegate.reset),
        "torch.compile": timed(lambda f: torch.compile(f, backend=forward_backend), torch._dynamo.reset),
    }
    return interleave_once(name, contenders)


def guard_check() -> Row:
    """The public check of one entry's guards beside the peer's root check, one tensor."""
    from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list as peer_entries

    x = torch.ones(8)

    def g(x):
        return x + 1

    torch.compile(g, backend=constant_backend)(x)
    root = peer_entries(g.__code__)[0].guard_manager.root
    ours = framegate.compile(lambda x: x + 1, backend=constant_backend)
    ours(x)
    guards = framegate.cache_entries(ours)[0].guards
    assert guards.check(x) and root.check({"x": x})
    return interleave(
        "guards of one entry, one tensor", {"framegate": (guards.check, (x,)), "torch.compile": (root.check, ({"x": x},))}
    )


ROWS = {
    "torch_call": torch_call,
    "module_100": module_100,
    "entries_torch": entries_torch,
    "entries_torch_peer": lambda: entries_torch(with_peer=True),
    "entries_mixed": entries_mixed,
    "entries_mixed_peer": lambda: entries_mixed(with_peer=True),
    "first_100": lambda: first_call("first call: 100 torch operations", operations(100)),
    "first_1000": lambda: first_call("first call: 1000 torch operations", operations(1000)),
    "first_loop": lambda: first_call("first call: a Python loop of 1000 iterations, one tensor", python_loop),
    "guard_check": guard_check,
}
