"""Run by test_tracer_memory.c: one allocation between a miss and the answer of the call fails, then the next, and so on.

Each time the call must either raise MemoryError or answer as plain Python does; what it did to its arguments is a beginning of what plain Python
does; afterwards the same gate answers right; and when all is dropped, no block is left over.
"""
import gc
from typing import Any, Callable

import failing
import framegate
import numpy as np

SOURCE = '''
import numpy as np

def expression(log, x):
    y = np.sin(x) * 2 + x.sum()
    return y[1:] @ y[:-1]

def loop_with_breaks(log, x):
    for i in range(2):
        x = x + i
        log.append(print(end=''))
        x = x * 2
    return x

def effects(log, x):
    log.append(1)
    x.total = x.total + 1
    log.append(x.total)
    x.name = f"<{x.total}>"
    log.extend([x.name, 3])
    return {"n": len(log), "t": (x.total, x.name)}

def closure(log, x):
    n = 3
    def add(y, *more, k=2):
        nonlocal n
        n += y
        return n * k + len(more)
    log.append(add(x))
    log.append(add(x, 1, 2, k=4))
    return n, add(1)

def generators(log, x):
    log.append(sum(v * v for v in x if v))
    return [v + 1 for v in x], {v: -v for v in x}, sorted(x, key=lambda v: -v), max(map(abs, x))

def handlers(log, x):
    try:
        log.append(x["a"])
        try:
            return x["missing"]
        except KeyError as error:
            log.append(error.args)
            raise ValueError("no") from None
        finally:
            log.append("finally")
    except ValueError as error:
        return str(error)
'''


class Thing:
    def __init__(self) -> None:
        self.total = 4

    def state(self) -> Any:
        return dict(self.__dict__)


ARGUMENTS: dict[str, Callable[[], Any]] = {
    "expression": lambda: np.arange(4.0),
    "loop_with_breaks": lambda: np.arange(3.0),
    "effects": Thing,
    "closure": lambda: 5,
    "generators": lambda: [3, -1, 2],
    "handlers": lambda: {"a": 1},
}
CASES: dict[str, Any] = {}
exec(compile(SOURCE, "memory_cases", "exec"), CASES)

# What a gate that has an entry already is called with next: a miss among entries, a second compilation.
OTHERS: dict[str, Callable[[], Any]] = {
    "expression": lambda: np.arange(4, dtype=np.float32),
    "loop_with_breaks": lambda: 7,
    "generators": lambda: (3, -1, 2),
}


def fresh(name: str) -> Callable:
    """The function, with a code object that the engine has never seen."""
    function = CASES[name]
    return type(function)(function.__code__.replace(), function.__globals__, name)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def run(function: Callable, make: Callable[[], Any]) -> tuple:
    log: list = []
    answer = function(log, make())
    return answer, log


def is_lack_of_memory(error: BaseException) -> bool:
    """NumPy forgets to set MemoryError in a few places; then the interpreter raises SystemError, in plain Python too."""
    if isinstance(error, framegate.exc.BackendCompilerFailed):
        error = error.__cause__
    return isinstance(error, MemoryError) or (isinstance(error, SystemError) and "without" in str(error))


def attempt(name: str, make: Callable[[], Any], options: dict, n: int, everything: bool, want: tuple) -> bool:
    """One try with the nth allocation failing; whether it was reached."""
    gate = framegate.compile(fresh(name), **options)
    if make is not ARGUMENTS[name]:
        gate([], ARGUMENTS[name]())
    argument, log, answer = make(), [], None
    failing.at(n, everything)
    try:
        answer = gate(log, argument)
    except BaseException as error:
        reached, raised = failing.off(), True
        if not is_lack_of_memory(error):
            raise
    else:
        reached, raised = failing.off(), False
    what = (name, options, n, everything)
    if raised:
        assert reached, what
        rest = iter(want[1])
        assert all(any(same(item, other) for other in rest) for item in log), (what, log)
    else:
        assert same((answer, log), want), (what, answer, log)
    for _ in range(2):
        got = run(gate, make)
        assert same(got, want), (what, got)
    return reached


def explained(name: str, n: int) -> bool:
    """The same for a report."""
    function, log, argument = fresh(name), [], ARGUMENTS[name]()
    failing.at(n, False)
    try:
        text = str(framegate.explain(function)(log, argument))
    except BaseException as error:
        reached = failing.off()
        if not is_lack_of_memory(error):
            raise
        return reached
    reached = failing.off()
    assert text
    return reached


def settle() -> int:
    framegate.reset()
    gc.collect()
    return failing.living()


def check(what: Any, everything: bool, attempt_nth: Callable[[int], bool]) -> None:
    """Let the first allocation fail, then the second, up to the last; then nothing may be left over."""
    attempt_nth(0)
    before = settle()
    n = 1
    while attempt_nth(n):
        n += 1
    left = settle() - before
    assert n > 20, (what, everything, n)
    # Blocks of the engine: descriptions, programs, entries, sites, gates; an entry that nobody frees keeps all of these.
    # Where its own allocations fail the interpreter leaks, rarely: list(x), for example, keeps x.
    assert left <= (12 if everything else 0), (what, everything, left)


def main() -> None:
    for name in ARGUMENTS:
        for options in ({}, {"backend": lambda graph, examples: graph}):
            for make in filter(None, (ARGUMENTS[name], OTHERS.get(name))):
                want = run(CASES[name], make)
                for everything in (True, False):
                    check((name, options, make), everything, lambda n: attempt(name, make, options, n, everything, want))
    for name in ("expression", "loop_with_breaks"):
        # Only the engine's own: making an iterator of a dict crashes the interpreter when its second allocation fails.
        check(("explain", name), False, lambda n: explained(name, n))


main()
