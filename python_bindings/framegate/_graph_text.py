"""The text forms of a graph: Python code, annotated code, Graphviz, JSON. The Graph type (in C) calls these functions."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from framegate import _core, _names

Node = _core.Node

_INDENT = "    "


def _format(value: Any) -> str:
    """A constant or argument structure as Python source, or a description in angle brackets where it has none."""
    if isinstance(value, Node):
        return value.name
    kind = type(value)
    if kind is tuple:
        inner = ", ".join(map(_format, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{kind.__qualname__}({', '.join(f'{k}={_format(v)}' for k, v in zip(value._fields, value, strict=True))})"
    if kind is list:
        return f"[{', '.join(map(_format, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k!r}: {_format(v)}' for k, v in value.items())}}}"
    if kind is slice:
        return f"slice({_format(value.start)}, {_format(value.stop)}, {_format(value.step)})"
    if kind in (set, frozenset) and value:
        inner = f"{{{', '.join(map(_format, value))}}}"
        return inner if kind is set else f"frozenset({inner})"
    if kind is float and not math.isfinite(value):
        return f"float({str(value)!r})"
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, type):
        return f"<{kind.__name__} {value.dtype}{list(value.shape)}>"
    if callable(value):
        return _names.display(value)
    text = repr(value)
    return text if len(text) <= 200 and "\n" not in text else f"<{kind.__qualname__}>"


def _call(node: Any) -> str:
    arguments = [_format(a) for a in node.args] + [f"{k}={_format(v)}" for k, v in node.kwargs.items()]
    if node.op == "call_function":
        return f"{_names.display(node.target)}({', '.join(arguments)})"
    if node.op == "get_attr":
        return f"{arguments[0]}.{node.target}"
    return f"{arguments[0]}.{node.target}({', '.join(arguments[1:])})"


def _statement(node: Any) -> str:
    if node.op == "output":
        return f"return {_format(node.args[0])}"
    return f"{node.name} = {_call(node)}"


def _header(graph: Any, nodes: list[Any]) -> str:
    name = graph.name if graph.name.isidentifier() else "graph"
    return f"def {name}({', '.join(n.name for n in nodes if n.op == 'placeholder')}):"


def code(graph: Any) -> str:
    """The graph as the source of a function."""
    nodes = graph.nodes
    body = [_statement(n) for n in nodes if n.op != "placeholder"] or ["pass"]
    return "\n".join([_header(graph, nodes), *(_INDENT + line for line in body)]) + "\n"


def readable(graph: Any) -> str:
    """`code` with a comment above each run of operations that came from one line of the user's code."""
    nodes = graph.nodes
    lines = [_header(graph, nodes)]
    last: Any = None
    for node in nodes:
        if node.op == "placeholder":
            continue
        trace = node.stack_trace
        if trace is not None and node.op != "output" and trace != last:
            where, _, text = trace.strip().partition("\n")
            lines.append(f"{_INDENT}# {where}" + (f", code: {text.strip()}" if text.strip() else ""))
            last = trace
        lines.append(_INDENT + _statement(node))
    return "\n".join(lines if len(lines) > 1 else [*lines, _INDENT + "pass"]) + "\n"


def to_dot(graph: Any) -> str:
    """The graph in Graphviz's language, one box for each node."""

    def quote(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    lines = [f"digraph {quote(graph.name)} {{", "    node [shape=box, fontname=monospace];"]
    for node in graph.nodes:
        label = node.name if node.op == "placeholder" else _statement(node)
        shape = ", style=rounded" if node.op in ("placeholder", "output") else ""
        lines.append(f"    n{node.index} [label={quote(label)}{shape}];")
        lines += [f"    n{source.index} -> n{node.index};" for source in node.all_input_nodes]
    return "\n".join([*lines, "}"]) + "\n"


# --- JSON: plain JSON for None, bool, int, str; {"$": kind, …} for everything else -------------------------------------------------------

_FORMAT = 1


def _by_name(value: Any) -> str:
    found = _names.find(value)
    if found is None:
        raise ValueError(f"{value!r} has no name under which it can be imported, so this graph has no JSON form")
    return ":".join(found)


def _encode(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if isinstance(value, Node):
        return {"$": "node", "index": value.index}
    if kind is float:
        return {"$": "float", "value": value.hex() if math.isfinite(value) else repr(value)}
    if kind is complex:
        return {"$": "complex", "parts": [_encode(value.real), _encode(value.imag)]}
    if kind is bytes:
        return {"$": "bytes", "value": base64.b64encode(value).decode()}
    if value is Ellipsis:
        return {"$": "ellipsis"}
    if kind in (tuple, list, set, frozenset):
        return {"$": kind.__name__, "items": [_encode(v) for v in value]}
    if kind is dict:
        return {"$": "dict", "items": [[_encode(k), _encode(v)] for k, v in value.items()]}
    if kind is slice:
        return {"$": "slice", "items": [_encode(value.start), _encode(value.stop), _encode(value.step)]}
    if isinstance(value, tuple):
        made = {"items": [_encode(v) for v in value]}
        return {"$": "namedtuple" if hasattr(value, "_make") else "tuple_type", "type": _by_name(kind), **made}
    return _encode_library(value)


def _encode_library(value: Any) -> Any:
    """Constants of array libraries: dtypes, devices, NumPy scalars. Arrays and tensors have no JSON form: they belong to a data format."""
    module, _, name = f"{type(value).__module__}.{type(value).__name__}".rpartition(".")
    if module == "torch" and name in ("dtype", "layout", "memory_format"):
        return {"$": "object", "name": str(value).replace("torch.", "torch:", 1)}
    if module == "torch" and name == "device":
        return {"$": "torch.device", "value": str(value)}
    if module.partition(".")[0] == "numpy":
        import numpy as np

        if isinstance(value, np.dtype) and not value.hasobject and value.names is None:
            return {"$": "numpy.dtype", "value": value.str}
        if isinstance(value, np.generic) and not value.dtype.hasobject and value.dtype.names is None:
            return {"$": "numpy.scalar", "dtype": value.dtype.str, "value": base64.b64encode(value.tobytes()).decode()}
    return {"$": "object", "name": _by_name(value)}


def to_json(graph: Any) -> str:
    """See Graph.to_json."""
    nodes = []
    for node in graph.nodes:
        row: dict[str, Any] = {"op": node.op, "name": node.name}
        if node.op == "call_function":
            row["target"] = _by_name(node.target)
        elif node.op != "output":
            row["target"] = node.target
        if node.args:
            row["args"] = [_encode(a) for a in node.args]
        if node.kwargs:
            row["kwargs"] = {k: _encode(v) for k, v in node.kwargs.items()}
        if node.code is not None:
            row["origin"] = [node.code.co_filename, node.line]
        nodes.append(row)
    return json.dumps({"framegate_graph": _FORMAT, "name": graph.name, "nodes": nodes}, indent=1)


def _decode(value: Any, nodes: list[Any]) -> Any:
    if not isinstance(value, dict):
        if isinstance(value, (list, float)):
            raise ValueError(f"a bare {type(value).__name__} cannot stand for a value")
        return value
    kind = value["$"]
    if kind == "node":
        index = value["index"]
        if type(index) is not int or not 0 <= index < len(nodes):
            raise ValueError(f"node {index!r} does not come before its use")
        return nodes[index]
    if kind == "float":
        text = value["value"]
        return float(text) if text in ("nan", "inf", "-inf") else float.fromhex(text)
    if kind == "complex":
        return complex(*(_decode(v, nodes) for v in value["parts"]))
    if kind == "bytes":
        return base64.b64decode(value["value"], validate=True)
    if kind == "ellipsis":
        return Ellipsis
    if kind == "dict":
        return {_decode(k, nodes): _decode(v, nodes) for k, v in value["items"]}
    if kind in _SEQUENCES:
        return _SEQUENCES[kind]([_decode(v, nodes) for v in value["items"]])
    if kind in ("namedtuple", "tuple_type"):
        made: Any = _names.resolve(value["type"])
        if not isinstance(made, type) or tuple not in made.__mro__:
            raise ValueError(f"{value['type']!r} is not a tuple type")
        items = [_decode(v, nodes) for v in value["items"]]
        construct: Any = made
        return construct._make(items) if kind == "namedtuple" else construct(items)
    if kind == "object":
        return _names.resolve(value["name"])
    if kind == "torch.device":
        import torch

        return torch.device(value["value"])
    if kind in ("numpy.dtype", "numpy.scalar"):
        import numpy as np

        if kind == "numpy.dtype":
            return np.dtype(value["value"])
        return np.frombuffer(base64.b64decode(value["value"], validate=True), dtype=np.dtype(value["dtype"]))[0]
    raise ValueError(f"unknown kind of value {kind!r}")


_SEQUENCES: dict[str, Any] = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset, "slice": lambda items: slice(*items)}


def _add(graph: Any, row: dict[str, Any], nodes: list[Any]) -> Any:
    op = row["op"]
    args = tuple(_decode(a, nodes) for a in row.get("args", []))
    kwargs = {k: _decode(v, nodes) for k, v in row.get("kwargs", {}).items()}
    if op == "placeholder":
        return graph.placeholder(row["name"])
    if op == "call_function":
        return graph.call_function(_names.resolve(row["target"]), args, kwargs)
    if op == "call_method":
        return graph.call_method(row["target"], args, kwargs)
    if op == "get_attr":
        (value,) = args
        return graph.get_attr(value, row["target"])
    if op == "output":
        (value,) = args
        return graph.output(value)
    raise ValueError(f"unknown operation {op!r}")


def from_json(text: str) -> Any:
    """See Graph.from_json. The origins of the nodes are for readers of the text; they are not restored."""
    try:
        data = json.loads(text)
        if data["framegate_graph"] != _FORMAT:
            raise ValueError(f"format {data['framegate_graph']!r} is not known here, only {_FORMAT}")
        graph = _core.Graph(data["name"])
        nodes: list[Any] = []
        for row in data["nodes"]:
            nodes.append(_add(graph, row, nodes))
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError, RuntimeError, ValueError) as error:
        raise ValueError(f"this is not the JSON form of a framegate graph: {type(error).__name__}: {error}") from error
    return graph
