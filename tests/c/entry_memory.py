"""Run by test_tracer_memory.c: what an entry says that it holds, beside what the engine's allocator gave out for it."""
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


for fn, make in ((one, lambda i: (np.ones(i + 1),)), (several, lambda i: (np.ones(i + 2), 1.5, ["a", "bc"]))):
    real, said = grown(fn, make, 16, 60)
    print(f"{fn.__name__}: {real:.0f} bytes by the allocator, nbytes {said:.0f}")
    assert abs(said - real) <= 0.1 * real, (fn.__name__, real, said)
    assert fn is not one or real <= 4096, real
