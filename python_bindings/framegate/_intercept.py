"""framegate.intercept: compiled frames of functions that nobody wrapped."""

from __future__ import annotations

import functools
import inspect
import os
import types
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeVar

from framegate import _compile, _core, backends, config

_F = TypeVar("_F", bound=Callable[..., Any])

_core.intercept_own_files(os.path.dirname(os.path.abspath(__file__)) + os.sep)


class intercept:
    """Compile the Python functions that are called on this thread, without wrapping them: a context manager and a decorator.

    ``with framegate.intercept(): ...`` or ``@framegate.intercept()``. It is the way in that PEP 523 gives: the interpreter hands over each frame before it
    runs. An entry that fits is run instead, as at a compiled function; where there is none, one is made. Entries are shared with functions that `compile`
    made with the same options, and are kept for the next time.

    ``backend``, ``fullgraph``, ``dynamic``, ``recompile_limit``, ``options``: as of `compile`; the limit is that of a code object.
    ``filter``: a callable that is given each code object once and says whether its frames are wanted (default: all). What it raises goes to
    ``sys.unraisablehook``, and the frame runs plain. ``run_only``: entries are used and none are made.

    Left alone: the code of modules and classes, generators and coroutines (what they call is not), functions that `skip`, `disable` or a rule names,
    the import system, framegate's own code. ``FRAMEGATE_LOGS=intercept`` says what and why, once for each code object.

    Only the thread that enters is concerned, and only until it leaves; a generator or coroutine that is made inside and used outside runs plain then. A
    ``with`` in a generator or coroutine that is suspended inside it goes on being in force on the thread, like any state of a thread. A decorated generator or
    coroutine function is intercepted in its own steps only. Interceptions nest: the innermost one decides. One object may be entered many times,
    from several threads.

    While an object lives that was entered, each Python call of the process takes some nanoseconds more. Whoever enters and leaves often should keep the object:
    installing and removing the hook slows down calls that the interpreter has specialised.

    Errors: as of `compile`, and TypeError for a filter that is not callable; RuntimeError on entering in another interpreter than the one that imported
    framegate, or where other extensions have taken all room for data of code objects. With ``config.disable`` nothing is done.
    """

    def __init__(
        self,
        backend: str | backends.Backend = "eager",
        *,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        recompile_limit: int | None = None,
        options: Mapping[str, Any] | None = None,
        filter: Callable[[types.CodeType], Any] | None = None,  # noqa: A002
        run_only: bool = False,
    ) -> None:
        if filter is not None and not callable(filter):
            raise TypeError(f"filter is a callable that takes a code object, not {type(filter).__name__}")
        made = _compile.make_options(backend, fullgraph, dynamic, recompile_limit, options)
        self._hook = None if config.disable else _core.intercept_new(made, filter, recompile_limit or 0, bool(run_only))

    def __enter__(self) -> intercept:
        if self._hook is not None:
            self._hook.enter()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._hook is not None:
            self._hook.leave()

    def __call__(self, fn: _F) -> _F:
        """Decorate a function, generator function, coroutine function or asynchronous generator function. TypeError for anything else."""
        if isinstance(fn, type) or not callable(fn):
            raise TypeError(f"framegate.intercept() decorates functions, not {'classes' if isinstance(fn, type) else type(fn).__name__}")
        wrapper: Any
        if inspect.isasyncgenfunction(fn):

            @functools.wraps(fn)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                steps = fn(*args, **kwargs)
                step: Callable[..., Any] = steps.__anext__
                value: tuple[Any, ...] = ()
                while True:
                    try:
                        item = await _Awaited(self, step(*value))
                    except StopAsyncIteration:
                        return
                    try:
                        step, value = steps.asend, ((yield item),)
                    except GeneratorExit:
                        await _Awaited(self, steps.aclose())
                        raise
                    except BaseException as error:
                        step, value = steps.athrow, (error,)

        elif inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                return await _Awaited(self, fn(*args, **kwargs))

        elif inspect.isgeneratorfunction(fn):

            @functools.wraps(fn)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                return (yield from _steps(self, fn(*args, **kwargs)))

        else:

            @functools.wraps(fn)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return fn(*args, **kwargs)

        return wrapper


def _steps(within: intercept, inner: Any) -> Generator[Any, Any, Any]:
    """Drive a generator, or what __await__ gives: its steps run within the interception, what happens between them does not."""
    step: Callable[..., Any] = getattr(inner, "send", None) or (lambda _: inner.__next__())
    value: Any = None
    while True:
        try:
            with within:
                item = step(value)
        except StopIteration as done:
            return done.value
        try:
            value = yield item
            step = getattr(inner, "send", None) or (lambda _: inner.__next__())
        except GeneratorExit:
            with within:
                inner.close()
            raise
        except BaseException as error:
            if not hasattr(inner, "throw"):
                raise
            step, value = inner.throw, error


class _Awaited:
    """An awaitable whose steps run within an interception."""

    def __init__(self, within: intercept, awaitable: Any) -> None:
        self._within, self._awaitable = within, awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        return _steps(self._within, self._awaitable.__await__())
