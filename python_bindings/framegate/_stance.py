"""Process-wide stances, and the wrappers `disable`, `run` and `skip`."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, TypeVar

from framegate import _compile, _core, _rules

_F = TypeVar("_F", bound=Callable[..., Any])

STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")


class set_stance:
    """Say for the whole process what compiled functions may do: ``set_stance("force_eager")``, or ``with set_stance("force_eager"): ...``.

    ``"default"``: hit or compile. ``"force_eager"``: everything runs plain. ``"eager_on_recompile"``: a call that no entry of an already compiled function fits
    runs plain. ``"fail_on_recompile"``: such a call raises `FailOnRecompile`.

    The call takes effect at once; as a context manager it gives the earlier stance back on leaving; as a decorator (the stance then holds only inside the
    function). The names are those of ``torch.compiler.set_stance``. ValueError for an unknown stance.
    """

    def __init__(self, stance: str = "default") -> None:
        if stance not in STANCES:
            raise ValueError(f"there is no stance {stance!r}; the stances are {', '.join(STANCES)}")
        self._stance = stance
        self._before: list[str] = [_core.get_stance()]
        _core.set_stance(stance)

    def __enter__(self) -> None:
        if not self._before:
            self._before.append(_core.get_stance())
            _core.set_stance(self._stance)

    def __exit__(self, *exc_info: object) -> None:
        _core.set_stance(self._before.pop())

    def __call__(self, fn: _F) -> _F:
        _core.set_stance(self._before.pop())
        stance = self._stance

        @functools.wraps(fn)
        def with_stance(*args: Any, **kwargs: Any) -> Any:
            with set_stance(stance):
                return fn(*args, **kwargs)

        return with_stance  # type: ignore[return-value]


def disable(fn: Any = None, *, recursive: bool = True) -> Any:
    """Never compile ``fn``: inside compiled code a call of it is a graph break and runs as plain Python. A decorator with or without arguments.

    With ``recursive`` everything that runs on the thread until the call returns is plain too, compiled functions that it reaches included; without it only this
    frame runs plain (`skip`). A generator or coroutine function is given back as it is: its own frame runs plain, and between its steps others run.
    Takes functions, methods, gates (their function is meant), partials, modules and other callable objects, and classes (their own methods are
    disabled, in place). Returns a callable of the same meaning. TypeError for anything else. As ``torch.compiler.disable``.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive)
    if not recursive:
        return skip(fn)
    if isinstance(fn, type):
        for name, value in list(vars(fn).items()):
            if isinstance(value, types.FunctionType):
                setattr(fn, name, disable(value))
        return fn
    if not callable(fn):
        raise TypeError(f"framegate.disable takes a callable, not {type(fn).__name__}")
    if isinstance(fn, types.MethodType):
        return types.MethodType(disable(fn.__func__), fn.__self__)
    inner = _inner(fn)
    if inspect.isgeneratorfunction(inner) or inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner):
        _rules._set(inner, "disable", "disable")  # its calls run plain anyway; a wrapper would change what `inspect` says
        return inner

    call_plain = _core.call_plain

    def disabled(*args: Any, **kwargs: Any) -> Any:
        return call_plain(inner, *args, **kwargs)

    if isinstance(inner, types.FunctionType):
        functools.update_wrapper(disabled, inner)
    else:
        functools.update_wrapper(disabled, inner, updated=())
    _rules.RULES[disabled] = "disable"
    return disabled


def skip(fn: Any) -> Any:
    """Do not compile the frame of ``fn``; what it calls may be compiled. Returns ``fn`` (of a gate, its function). TypeError for a non-callable."""
    if not callable(fn):
        raise TypeError(f"framegate.skip takes a callable, not {type(fn).__name__}")
    inner = _inner(fn)
    _rules._set(inner, "skip", "skip")
    return inner


def _inner(fn: Any) -> Any:
    """What was compiled: the function of a gate, the original of a compiled module."""
    if isinstance(fn, _core.Gate):
        return fn.__wrapped__
    from framegate import _modules

    return _modules.original_of(fn) if _modules.is_compiled(fn) else fn


def run(fn: Any) -> Any:
    """A callable that uses the entries ``fn`` has and makes no new ones: a call that none fits runs plain.

    ``fn`` is something `compile` made; the entries are shared with it. Anything else is given back as it is: it has no entries. As ``torch._dynamo.run``.
    """
    if not callable(fn):
        raise TypeError(f"framegate.run takes a callable, not {type(fn).__name__}")
    if isinstance(fn, types.MethodType):
        return types.MethodType(run(fn.__func__), fn.__self__)
    if type(fn) is functools.partial:
        return functools.partial(run(fn.func), *fn.args, **fn.keywords)
    if isinstance(fn, _core.Gate):
        # A gate of the same code and options looks at the same entries; its run state is its own.
        twin = _core.gate_new(fn.__wrapped__, _core.gate_options(fn))
        _core.set_run_state(twin, "run_only")
        return twin
    from framegate import _modules

    if _modules.is_compiled(fn):
        twin = _modules.compile_module(_modules.original_of(fn), fn._framegate_options)
        _core.set_run_state(_compile.find_gate(twin), "run_only")
        return twin
    return fn
