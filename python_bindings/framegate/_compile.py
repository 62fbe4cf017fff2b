"""framegate.compile: from what the user gives to gates, and the one call back from the C part, `_call_backend`."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from framegate import _core, _rules, backends, config, exc, logs

_F = TypeVar("_F", bound=Callable[..., Any])

Gate = _core.Gate


def make_options(
    backend: str | backends.Backend = "eager",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    recompile_limit: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Check the keyword arguments of `compile` and make the options dict of a gate. The backend's name is kept beside it for messages and pickles."""
    if dynamic is not None and type(dynamic) is not bool:
        raise TypeError(f"dynamic is None or False, not {dynamic!r}")
    if dynamic:
        raise NotImplementedError("dynamic=True is not supported: sizes are guarded exactly. Leave dynamic out, or pass False")
    if type(fullgraph) is not bool:
        raise TypeError(f"fullgraph is True or False, not {fullgraph!r}")
    if recompile_limit is not None:
        if type(recompile_limit) is not int:
            raise TypeError(f"recompile_limit is an int, not {recompile_limit!r}")
        if recompile_limit < 1:
            raise ValueError(f"recompile_limit must be at least 1, not {recompile_limit}")
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"options is a dict for the backend, not {type(options).__name__}")
    found = backends.lookup(backend)
    return {
        "backend": found,
        "backend_name": backend if isinstance(backend, str) else backends.name_of(backend),
        "backend_lives": isinstance(backend, str) or backends.is_found_by_name(backend),
        "fullgraph": fullgraph,
        "dynamic": dynamic,
        "recompile_limit": recompile_limit,
        "options": dict(options) if options else None,
    }


@overload
def compile(  # noqa: A001
    fn: _F,
    *,
    backend: str | backends.Backend = "eager",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    recompile_limit: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> _F: ...
@overload
def compile(  # noqa: A001
    fn: None = None,
    *,
    backend: str | backends.Backend = "eager",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    recompile_limit: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[[_F], _F]: ...
def compile(  # noqa: A001
    fn: Any = None,
    *,
    backend: str | backends.Backend = "eager",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    recompile_limit: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Compile a callable: each call runs a specialised version whose guards accept it, made at the first call that needs it.

    The keyword arguments and their meaning are those of ``torch.compile``.

    ``fn``: a function, lambda, method or partial gives a callable of the same kind with the same attributes; a ``torch.nn.Module`` gives a module that shares
    its ``__dict__`` (parameters, buffers, hooks, training mode); any other callable object gives a gate over its ``__call__``. Generator and
    coroutine functions run plain, what they call may be compiled. Without ``fn``: a decorator.

    ``backend``: a name (see `framegate.backends`) or a callable of (graph, example_inputs).
    ``fullgraph``: raise `Unsupported` where a graph would break. ``dynamic``: None or False.
    ``recompile_limit``: compiles that one gate may start (default ``config.recompile_limit``, 16); beyond it existing versions are used and other calls run
    plain, or raise `RecompileLimitExceeded` under ``fullgraph``. ``options``: handed to the backend as its keyword ``options``.

    With ``config.disable`` (environment: FRAMEGATE_DISABLE=1) ``fn`` is given back as it is.
    Errors: TypeError for what cannot be compiled (a class, a non-callable) or a bad argument, ValueError for an unknown backend or a limit below 1,
    NotImplementedError for ``dynamic=True``. A failing backend raises `BackendCompilerFailed` at the call that compiles.
    """
    made = make_options(backend, fullgraph, dynamic, recompile_limit, options)
    if fn is None:
        return functools.partial(compile_with, options=made)
    return compile_with(fn, made)


def compile_with(fn: Any, options: dict[str, Any]) -> Any:
    """`compile` with a dict that `make_options` made."""
    if isinstance(fn, type):
        raise TypeError(
            f"framegate.compile takes a function or an object, not the class {fn.__qualname__}: compile its methods, or an instance of it"
        )
    if isinstance(fn, staticmethod):
        return staticmethod(compile_with(fn.__func__, options))
    if isinstance(fn, classmethod):
        return classmethod(compile_with(fn.__func__, options))
    if not callable(fn):
        raise TypeError(f"framegate.compile takes a callable, not {type(fn).__name__}")
    if config.disable or _runs_plain(fn):
        return fn
    return _compile_kind(fn, options)


def _runs_plain(fn: Any) -> bool:
    try:
        return _rules.RULES.get(fn) in ("disable", "skip")
    except TypeError:
        return False


def _compile_kind(fn: Any, options: dict[str, Any]) -> Any:
    if isinstance(fn, types.FunctionType):
        return _gate(fn, options)
    if isinstance(fn, Gate):
        return _gate(fn.__wrapped__, options)
    if isinstance(fn, types.MethodType):
        inner = fn.__func__
        return types.MethodType(compile_with(inner, options), fn.__self__)
    if type(fn) is functools.partial:
        made = functools.partial(compile_with(fn.func, options), *fn.args, **fn.keywords)
        made.__dict__.update(fn.__dict__)
        return made
    from framegate import _modules

    if _modules.is_compiled(fn):
        return _modules.compile_module(_modules.original_of(fn), options)
    if _modules.shares_dict(fn):
        return _modules.compile_module(fn, options)
    call = inspect.getattr_static(type(fn), "__call__")
    if isinstance(call, types.FunctionType):
        return types.MethodType(_gate(call, options), fn)
    return _gate(_python_caller(fn), options)


def _gate(fn: Any, options: dict[str, Any]) -> Any:
    if config.verify:
        from framegate import _verify

        return _verify.verified(_core.gate_new(fn, options))
    return _core.gate_new(fn, options)


def _python_caller(fn: Any) -> types.FunctionType:
    """A Python function that calls ``fn``, something written in C: gates stand for Python functions."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return functools.update_wrapper(call, fn)  # type: ignore[return-value]


def gate_of(fn: Any, what: str) -> Any:
    """The gate behind a compiled callable. TypeError, naming the function ``what`` that was asked, if there is none."""
    found = find_gate(fn)
    if found is None:
        raise TypeError(f"framegate.{what} takes something that framegate.compile made, not {getattr(fn, '__qualname__', type(fn).__qualname__)!r}")
    return found


def find_gate(fn: Any) -> Any:
    """The gate behind a compiled callable, or None."""
    for _ in range(16):
        if isinstance(fn, Gate):
            return fn
        if isinstance(fn, (types.MethodType, staticmethod, classmethod)):
            fn = fn.__func__
        elif type(fn) is functools.partial:
            fn = fn.func
        else:
            modules = sys.modules.get("framegate._modules")
            if modules is not None and modules.is_compiled(fn):
                fn = modules.gate_of(fn)
            elif isinstance(fn, types.FunctionType) and "_framegate_gate" in fn.__dict__:
                fn = fn.__dict__["_framegate_gate"]
            else:
                return None
    return None


def leading_args(fn: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a compiled callable puts in front of the caller's arguments on the way to its gate: self of a method, a partial's arguments."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    while not isinstance(fn, Gate):
        if isinstance(fn, types.MethodType):
            args, fn = (fn.__self__, *args), fn.__func__
        elif type(fn) is functools.partial:
            args, kwargs, fn = (*fn.args, *args), {**fn.keywords, **kwargs}, fn.func
        elif isinstance(fn, types.FunctionType):
            fn = fn.__dict__["_framegate_gate"]
        else:
            from framegate import _modules

            args, fn = (_modules.original_of(fn), *args), _modules.gate_of(fn)
    return args, kwargs


# --- the call back from C -----------------------------------------------------------------------------------------------------------------


def _tensor_test() -> Callable[[Any], bool] | None:
    """isinstance(x, torch.Tensor) if this process has torch, without importing it."""
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    return None if tensor is None else lambda value: isinstance(value, tensor)


def _any_leaf(value: Any, test: Callable[[Any], bool]) -> bool:
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(_any_leaf(v, test) for v in value)
    if isinstance(value, dict):
        return any(_any_leaf(v, test) for v in value.values())
    if isinstance(value, slice):
        return any(_any_leaf(v, test) for v in (value.start, value.stop, value.step))
    return test(value)


def _is_torch_graph(graph: Any, example_inputs: list[Any]) -> bool:
    test = _tensor_test()
    if test is None:
        return False
    if any(test(value) for value in example_inputs):
        return True
    if any(_any_leaf(node.args, test) or _any_leaf(node.kwargs, test) for node in graph.nodes):
        return True
    # Nothing but torch functions that create (torch.zeros) makes tensors without having one.
    return any((getattr(node.target, "__module__", None) or "").partition(".")[0] == "torch" or _is_torch_builtin(node.target) for node in graph.nodes)


def _is_torch_builtin(target: Any) -> bool:
    if isinstance(target, str) or getattr(target, "__module__", None) is not None:
        return False
    owner = getattr(target, "__self__", None)
    return (getattr(owner, "__module__", None) or "").partition(".")[0] == "torch"


def _output_count(graph: Any) -> int:
    """How many values the graph returns in its tuple or list; -1: it returns one value as it is."""
    structure = graph.nodes[-1].args[0]
    return len(structure) if type(structure) in (tuple, list) else -1


def _is_torchs(backend: Any, name: str) -> bool:
    """True for a backend of torch's own, which understands nothing but FX graphs of torch operations."""
    module = getattr(backend, "__module__", None) or type(backend).__module__
    return name.startswith("torch:") or str(module).split(".")[0] == "torch"


def _call_backend(graph: Any, example_inputs: list[Any], options: dict[str, Any] | None) -> Callable[..., Any]:
    """Compile one graph with the backend of ``options``. Called by the tracer.

    ``graph`` becomes an FX module where an input or constant is a torch tensor; without any, torch's own backends are not asked. What the backend returns is
    wrapped so that the number of outputs is checked. A graph that torch's backends fail on because of its own operations is replayed.
    BackendCompilerFailed if the backend raises an Exception, or returns something that is not callable.
    """
    options = options or {}
    backend = options.get("backend") or backends.eager
    if backend is backends.eager:
        return graph
    name = options.get("backend_name") or backends.name_of(backend)
    where = f"while it compiled {graph.name!r} ({graph.op_count} operations, {graph.placeholder_count} inputs)"
    subject = graph
    torch_graph = _is_torch_graph(graph, example_inputs)
    if torch_graph and not getattr(backend, "framegate_graph", False):
        subject = graph.to_fx()
    elif not torch_graph and _is_torchs(backend, name):
        return graph  # nothing of torch's in it: replayed
    checked = torch_graph and subject is not graph and _is_torchs(backend, name)
    if checked and (_makes_leaves(subject) or (_writes_where_it_may_fail(subject, example_inputs) and _fails_by_itself(graph, example_inputs))):
        logs.replayed(graph.name, name, None)
        return graph
    keywords = {"options": options["options"]} if options.get("options") else {}
    try:
        with _Ambient(torch_graph):
            if keywords and name.removeprefix("torch:") == "inductor":
                compiled = _inductor_with(options["options"])(subject, example_inputs)
            else:
                compiled = backend(subject, example_inputs, **keywords)
    except exc.FramegateError:
        raise
    except Exception as error:
        if checked and _fails_by_itself(graph, example_inputs):
            logs.replayed(graph.name, name, error)
            return graph
        raise exc.BackendCompilerFailed(name, error, where) from error
    if not callable(compiled):
        raise exc.BackendCompilerFailed(name, None, f"returned {type(compiled).__name__} {where}; a backend returns a callable")
    if torch_graph:
        from framegate import _fx

        compiled = _fx.direct_call(compiled)
        if checked and getattr(compiled, "__self__", None) is not subject:
            compiled = _fx.under_same_settings(compiled, graph, example_inputs)
    if compiled is graph:
        return graph
    return _core.checked_call(compiled, _output_count(graph), f"what backend {name!r} made of graph {graph.name!r}")


def _fails_by_itself(graph: Any, example_inputs: list[Any]) -> bool:
    """True if it is an operation of the graph that torch cannot run without data, or with these inputs at all, and not the backend that failed.

    Plain Python then says what is to happen: the operations are replayed, and raise, if they do, what they raise there.
    """
    from framegate import _fx

    with _Ambient(True):
        return _fx.fails_without_data(graph.to_fx(), example_inputs)


def _writes_where_it_may_fail(module: Any, example_inputs: list[Any]) -> bool:
    """Compilers write by replacing, which skips two things: autograd's rules about writing what needs a gradient, and that ``out=`` may be resized."""
    from framegate import _fx

    written, resized = _fx.writes(module)
    return resized or (written and any(getattr(value, "requires_grad", False) for value in example_inputs))


def _makes_leaves(module: Any) -> bool:
    """Some operation makes a tensor whose gradient is wanted: compilers only know those that came in, and what they give has no history from there on."""
    from framegate import _fx

    return _fx.makes_leaves(module)


def _inductor_with(options: dict[str, Any]) -> Callable[..., Any]:
    from torch._inductor.compile_fx import compile_fx

    return functools.partial(compile_fx, config_patches=options)


class _Ambient:
    """Process state that a compiler uses up or changes and the user's program must not notice: random generators, torch's grad mode."""

    def __init__(self, torch_graph: bool) -> None:
        self._torch = sys.modules.get("torch") if torch_graph else None

    def __enter__(self) -> None:
        self._random = self._state("random", "getstate")
        self._numpy = self._state("numpy.random", "get_state")
        if self._torch is not None:
            self._torch_random = self._torch.random.get_rng_state()
            self._grad = self._torch.is_grad_enabled()

    @staticmethod
    def _state(module: str, getter: str) -> Any:
        found = sys.modules.get(module)
        return None if found is None else getattr(found, getter)()

    def __exit__(self, *exc_info: object) -> None:
        if self._random is not None:
            sys.modules["random"].setstate(self._random)
        if self._numpy is not None:
            sys.modules["numpy.random"].set_state(self._numpy)
        if self._torch is not None:
            self._torch.random.set_rng_state(self._torch_random)
            if self._torch.is_grad_enabled() != self._grad:
                self._torch.set_grad_enabled(self._grad)


# --- pickling -----------------------------------------------------------------------------------------------------------------------------


def _portable(options: dict[str, Any]) -> dict[str, Any]:
    """Options as arguments of make_options: a backend that was given by name is named again."""
    keys = ("fullgraph", "dynamic", "recompile_limit", "options")
    made = {key: options[key] for key in keys if options.get(key) not in (None, False)}
    name = options.get("backend_name", "eager")
    try:
        by_name = backends.lookup(name) is options["backend"]
    except ValueError:
        by_name = False
    return {"backend": name if by_name else options["backend"], **made}


def _rebuild(fn: Any, options: dict[str, Any]) -> Any:
    """Compile anew on load."""
    return compile(fn, **options)


def _reduce_gate(gate: Any) -> Any:
    """For a gate that is not found by its name: the function, which must be picklable, and the options."""
    return _rebuild, (gate.__wrapped__, _portable(_core.gate_options(gate)))
