"""framegate.Graph to torch.fx.GraphModule. Imports torch; only imported when a backend wants FX.

The nodes are made without `torch.fx.Graph.create_node`, three quarters of whose time goes into checks that a captured graph passes by construction.
That uses private parts of torch.fx, so the first use builds a small graph both ways and compares; any difference or error switches to `create_node`
for good. The GraphModule generates its Python code at its first call, which never comes when a compiler only reads the graph.
"""

from __future__ import annotations

import linecache
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.fx._lazy_graph_module import _LazyGraphModule

from framegate import _core

_FgNode = _core.Node

# Constants that torch.fx prints as they are. Everything else becomes an attribute of the root module, read by a get_attr node.
_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)

# torch's tensors have no `@=` of their own, and FX prints the operator as one: what gets the result must not be the operand afterwards.
_NOT_IN_PLACE = {operator.imatmul: operator.matmul}

_MakeNode = Callable[[torch.fx.Graph, str, str, Any, tuple[Any, ...], dict[str, Any]], torch.fx.Node]


def _make_node_public(graph: torch.fx.Graph, name: str, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.fx.Node:
    return graph.create_node(op, target, args, kwargs, name=name)


def _make_node_direct(graph: Any, name: str, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.fx.Node:
    namespace = graph._graph_namespace
    name = namespace.create_name(name, None)
    node = torch.fx.Node(graph, name, op, target, args, kwargs)
    namespace.associate_name_with_obj(name, node)
    graph._insert(node)
    graph._find_nodes_lookup_table.insert(node)
    graph._len += 1
    return node


def _sample(make: _MakeNode) -> tuple[str, int, list[str]]:
    graph = torch.fx.Graph()
    x = make(graph, "x", "placeholder", "x", (), {})
    a = make(graph, "add", "call_function", operator.add, (x, 1), {})
    b = make(graph, "add_1", "call_method", "sum", (a,), {"dim": (0, [1])})
    make(graph, "output", "output", "output", ((a, b),), {})
    graph.lint()
    found = [n.name for n in graph.find_nodes(op="call_function", target=operator.add)]
    later = graph.call_function(operator.add, (x, 1))
    return str(graph), len(graph.nodes), [*found, later.name, *(n.name for n in a.users)]


_make_node: _MakeNode | None = None


def _node_maker() -> _MakeNode:
    global _make_node
    if _make_node is None:
        try:
            same = _sample(_make_node_direct) == _sample(_make_node_public)
        except Exception:
            same = False
        _make_node = _make_node_direct if same else _make_node_public
    return _make_node


def _reads_back(value: complex) -> bool:
    """False where Python does not read what it prints: ``(-0-1j)`` is a difference, which has no negative zero, and ``nanj`` a name."""
    return all(math.isfinite(part) and (part != 0 or math.copysign(1, part) > 0) for part in (value.real, value.imag))


class _Converter:
    def __init__(self, source: Any) -> None:
        self.make = _node_maker()
        self.source = source
        self.graph = torch.fx.Graph()
        self.root: dict[str, Any] = {}
        self.constants: dict[int, torch.fx.Node] = {}
        self.made: list[torch.fx.Node] = []
        self.traces: dict[tuple[int, int], str] = {}
        self.names: dict[str, int] = {}

    def constant(self, value: Any) -> torch.fx.Node:
        node = self.constants.get(id(value))
        if node is None:
            name = f"_constant_{len(self.root)}"
            self.root[name] = value
            node = self.make(self.graph, name, "get_attr", name, (), {})
            self.constants[id(value)] = node
        return node

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind is _FgNode:
            return self.made[value.index]
        if kind in _PLAIN:
            return value if kind is not complex or _reads_back(value) else self.constant(value)
        if kind is tuple:
            return tuple([self.value(v) for v in value])
        if kind is list:
            return [self.value(v) for v in value]
        if kind is dict and all(type(k) in _PLAIN for k in value):
            return {k: self.value(v) for k, v in value.items()}
        if kind is slice:
            return slice(self.value(value.start), self.value(value.stop), self.value(value.step))
        if isinstance(value, tuple) and hasattr(value, "_make"):
            return kind._make([self.value(v) for v in value])
        return self.constant(value)

    def convert(self) -> torch.fx.Graph:
        make, graph, made = self.make, self.graph, self.made
        for node in self.source.nodes:
            op, target = node.op, node.target
            args = tuple([self.value(a) for a in node.args])
            kwargs = {k: self.value(v) for k, v in node.kwargs.items()}
            if op == "placeholder":
                target = node.name
            elif op == "get_attr":  # an attribute of a value; FX's own get_attr reads the root module
                op, target, args = "call_function", getattr, (args[0], target)
            elif target is operator.pow and repr(args[0]).startswith("-"):  # FX would print `-2 ** x`, which is -(2 ** x)
                op, target, args = "call_method", "__rpow__", (args[1], args[0])
            elif target in _NOT_IN_PLACE and op == "call_function":
                target = _NOT_IN_PLACE[target]
            fx_node = make(graph, node.name, op, target, args, kwargs)
            self.names[fx_node.name] = node.index
            if node.code is not None:
                fx_node.meta["stack_trace"] = self.trace(node)
            made.append(fx_node)
        return graph

    def trace(self, node: Any) -> str:
        key = (id(node.code), node.line)
        text = self.traces.get(key)
        if text is None:
            text = self.traces[key] = node.stack_trace
        return text


def to_fx(source: Any) -> torch.fx.GraphModule:
    """The graph as a torch.fx.GraphModule (see Graph.to_fx). RuntimeError if the graph has no output node."""
    nodes = source.nodes
    if not nodes or nodes[-1].op != "output":
        raise RuntimeError(f"the graph {source.name!r} has no output node yet")
    converter = _Converter(source)
    graph = converter.convert()
    module = _LazyGraphModule(converter.root, graph, class_name="GraphModule")
    module.meta["framegate_graph_name"] = source.name
    module.meta["framegate_nodes"] = converter.names
    return module


def failed_node(exception: BaseException) -> int:
    """The index of the graph's node whose line of generated code raised; -1 if the code of none of our modules is in the traceback."""
    entry = exception.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        owner = entry.tb_frame.f_locals.get("self") if code.co_filename.startswith("<eval_with_key>") else None
        if isinstance(owner, torch.fx.GraphModule) and "framegate_nodes" in owner.meta:
            line = linecache.getline(code.co_filename, entry.tb_lineno, entry.tb_frame.f_globals)
            name = line.strip().partition("=")[0].partition(":")[0].strip()
            return owner.meta["framegate_nodes"].get(name, -1)
        entry = entry.tb_next
    return -1


def is_tensor(value: Any) -> bool:
    """True for a torch tensor, subclasses included."""
    return isinstance(value, torch.Tensor)


def writes(module: torch.fx.GraphModule) -> tuple[bool, bool]:
    """(some operation may write an operand, some operation has an ``out=``), judged by names; what is unclear counts as a write."""
    written = resized = False
    for node in module.graph.nodes:
        name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        if node.op not in ("call_function", "call_method"):
            continue
        resized |= "out" in node.kwargs
        written |= name in _WRITING or (name.endswith("_") and not name.endswith("__")) or "out" in node.kwargs or node.kwargs.get("inplace") is True
        if getattr(node.target, "__module__", None) == "torch.nn.functional":
            written |= any(arg is True for arg in node.args)
    return written, resized


def makes_leaves(module: torch.fx.GraphModule) -> bool:
    """True if some operation is told that the gradient of its result is wanted, or may be."""
    return any(node.op in ("call_function", "call_method") and node.kwargs.get("requires_grad", False) is not False for node in module.graph.nodes)


_WRITING = frozenset("iadd iand ifloordiv ilshift imatmul imul imod ior ipow irshift isub itruediv ixor setitem".split())


def fails_without_data(module: torch.fx.GraphModule, example_inputs: list[Any]) -> bool:
    """True if the graph raises when it is run with tensors that have no data, forwards and backwards, or when its writes are made functional, as
    torch's compilers do first; or if it changes the size of an input."""
    from torch._subclasses import fake_tensor

    mode = fake_tensor.FakeTensorMode(allow_non_fake_inputs=True)
    run = torch.fx.Interpreter(module).run
    was = fake_tensor.log.disabled
    fake_tensor.log.disabled = True
    try:
        with mode, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.func.functionalize(run)(*_without_data(mode, example_inputs))
            fakes = _without_data(mode, example_inputs)
            results = [r for r in run(*fakes) if isinstance(r, torch.Tensor) and r.requires_grad and r.grad_fn is not None]
            wanted = [f for f in fakes if isinstance(f, torch.Tensor) and f.requires_grad]
            if results and wanted:
                torch.autograd.grad(results, wanted, [torch.ones_like(r) for r in results], allow_unused=True)
    except Exception:
        return True
    finally:
        fake_tensor.log.disabled = was
    return any(isinstance(value, torch.Tensor) and value.shape != fake.shape for value, fake in zip(example_inputs, fakes, strict=True))


def _without_data(mode: Any, values: list[Any]) -> list[Any]:
    return [mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value for value in values]


def direct_call(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """The cheapest callable with the meaning of what a backend returned.

    A lazily made module is given its code now, and its ``forward`` is called instead of ``Module.__call__``, unless it has hooks.
    """
    owner = compiled if isinstance(compiled, torch.fx.GraphModule) else getattr(compiled, "__self__", None)
    if isinstance(owner, _LazyGraphModule) and (owner is compiled or getattr(compiled, "__name__", "") == "_lazy_forward"):
        owner.real_recompile()
        if owner is not compiled:
            return owner.forward
    if isinstance(compiled, torch.fx.GraphModule) and "forward" not in compiled.__dict__ and not _has_hooks(compiled):
        return compiled.forward
    return compiled


def under_same_settings(compiled: Callable[..., Any], graph: Any, example_inputs: list[Any]) -> Callable[..., Any]:
    """``compiled`` where torch's settings are those of now, else the graph's own replay: a compiler has built in which algorithms are allowed, and keeps
    other tensors for the backward pass than plain torch, which hooks for saved tensors would see."""
    deterministic, warn_only = torch._C._get_deterministic_algorithms, torch._C._get_deterministic_algorithms_warn_only
    hooks = torch._C._autograd._top_saved_tensors_default_hooks
    differentiates = torch.is_grad_enabled() and any(getattr(value, "requires_grad", False) for value in example_inputs)
    made_under = deterministic() and (1 + warn_only())

    def call(*inputs: Any) -> Any:
        if (deterministic() and (1 + warn_only())) != made_under or (differentiates and hooks(False) is not None):
            return graph(*inputs)
        return compiled(*inputs)

    return call


def _has_hooks(module: torch.nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks)
