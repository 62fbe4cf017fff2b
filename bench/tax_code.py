"""Plain Python code whose instructions count_tax counts, and what is done to the process before.

Modes: "without" never imports framegate; "imported" does; "in_use" compiles functions, calls them, keeps their entries alive and runs the
code from inside one of them, behind a graph break. The code must execute the same number of instructions in all three.
"""

from __future__ import annotations

import contextlib
import gc
import sys


def calls(n):
    def identity(x):
        return x

    for _ in range(n):
        identity(identity(identity(identity(1))))


class Account:
    rate = 2

    def __init__(self, total):
        self.total = total

    def add(self, amount, *, fee=1):
        self.total += amount * self.rate - fee
        return self

    @property
    def double(self):
        return self.total * 2


def objects(n):
    for i in range(n):
        account = Account(i & 7).add(3).add(4, fee=2)
        account.note = account.double


def containers(n):
    for i in range(n):
        table = {"a": i & 7, "b": (1, 2)}
        items = [x + 1 for x in (1, 2, 3) if x != 2]
        items.extend(table["b"])
        table.update(c=len(items), d=sorted(items, key=lambda v: -v)[0])
        "".join(f"{k}={v};" for k, v in table.items())


def generators(n):
    def numbers():
        received = yield 0
        while received is not None:
            received = yield received + 1

    for _ in range(n):
        source = numbers()
        next(source)
        source.send(1)
        source.send(2)
        source.close()


def exceptions(n):
    for i in range(n):
        with contextlib.suppress(KeyError):
            try:
                {}[i & 7]
            finally:
                pass


def gated(n):
    """Functions that other modes compile, called as what they are."""
    for _ in range(n):
        whole(1)
        broken(1, abs)


def whole(x):
    return x + 1


def broken(x, callback):
    y = x + 1
    callback(y)
    return y * 2


WORKLOADS = {f.__name__: f for f in (calls, objects, containers, generators, exceptions, gated)}


def prepare(mode):
    """Give a function(workload, n) that runs the workload in that mode. The collector never starts: what it does depends on the size of the heap."""
    import numpy as np

    gc.set_threshold(1 << 30)  # gc.disable would leave a comparison that depends on how many objects there are
    x = np.ones(4)
    if mode == "without":

        def around(workload, n):
            workload(n)

        assert "framegate" not in sys.modules
        return around
    import framegate

    if mode == "imported":

        def around(workload, n):
            workload(n)

        return around
    compiled, host = framegate.compile(whole), framegate.compile(broken)
    for size in range(1, 5):
        compiled(np.ones(size))

    def around(workload, n):
        compiled(x)
        host(x, framegate.disable(lambda y: workload(n)))

    around(calls, 1)
    before = framegate.stats()
    around(calls, 1)
    after = framegate.stats()
    assert after["hits"] > before["hits"] and after["compiles"] == before["compiles"], "the compiled functions are not in use"
    return around
