"""Run by test_tracer_memory.c: what an entry says that it holds, beside what the engine's allocator gave out for it."""
import collections.abc
import gc

import failing
import framegate
import numpy as np


def one(x):
    return x + 1


def several(x, k, names):
    y = np.sin(x) * k
    for name in names:
        y = y + len(name)
    names.append(str(len(names)))
    return y[1:] @ y[:-1]


def grown(fn, make, first, last):
    """Bytes for each entry between the first and the last, and what the entries say of themselves."""
    with framegate.config.patch(cache_size=1024):
        compiled = framegate.compile(fn, dynamic=False, recompile_limit=1024)
        for i in range(first):
            compiled(*make(i))
        gc.collect()
        before = failing.living_bytes()
        for i in range(first, last):
            compiled(*make(i))
        gc.collect()
        after = failing.living_bytes()
        entries = framegate.cache_entries(compiled)
        assert len(entries) == last
        return (after - before) / (last - first), sum(e.nbytes for e in entries) / len(entries)


class Layer:
    def __init__(self, n):
        self.scale, self.names, self.inner = float(n), ["a", "b"], {"k": n}


def owns_arrays(x):
    return ((x + 1.5) * 2.5 - 3.5) / 4.5 + 5.5


def many_conditions(x, table, layers):
    y = x
    for key in table:
        y = y * table[key]
    for layer in layers:
        y = y + layer.scale + len(layer.names) + layer.inner["k"]
    return y


def relations(a, b, c):
    a += b
    b -= c
    return a * b


def inlined(x, k):
    def inner(y):
        return several(y, k, ["z"])

    return inner(x) + inner(x + 1)


def abstract(x, o):
    return x + isinstance(o, collections.abc.Sequence) + isinstance(o, (int | str, collections.abc.Mapping))


abstract(np.ones(1), [1])  # asked once
CASES = (
    (one, lambda i: (np.ones(i + 1),)),
    (several, lambda i: (np.ones(i + 2), 1.5, ["a", "bc"])),
    (owns_arrays, lambda i: (np.ones(i + 1),)),
    (many_conditions, lambda i: (np.ones(i + 1), {str(k): float(k) for k in range(60)}, [Layer(n) for n in range(20)])),
    (relations, lambda i: (np.ones(i + 1), np.ones(i + 1), np.ones(i + 1))),
    (inlined, lambda i: (np.ones(i + 2), 1.5)),
    (abstract, lambda i: (np.ones(i + 1), [1])),
    (lambda *xs: sum(xs), lambda i: tuple(np.ones(i + 1) for _ in range(50))),
    (lambda x, text: x + len(text), lambda i: (np.ones(i + 1), "t" * 50)),
    (lambda x, n: x + 1 if n == 1000 else x - 1, lambda i: (np.ones(3), 2000 + i)),
)
for fn, make in CASES:
    real, said = grown(fn, make, 16, 60)
    print(f"{fn.__name__}: {real:.0f} bytes by the allocator, nbytes {said:.0f}")
    assert abs(said - real) <= 0.1 * real, (fn.__name__, real, said)
    assert fn is not one or real <= 4096, real
