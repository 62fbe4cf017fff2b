"""Functions of another file, for test_language_warnings.py: what they do is inlined into the functions there."""
import warnings

import numpy as np


def divide(a, b):
    c = 1

    return a / b if c else a


def deep(a, b):
    return divide(a,
                  b) + np.log(
        a)


def in_place(a):
    a[0] = a[0] * 1e308 * 1e308
    a /= 0.0
    return a


def compared(a): return np.sqrt(a) < 1
def negated(a): return -np.log(a * 0)
def keyword(a): return np.divide(a, 0.0, out=np.zeros(2), where=np.array([True, False]))
def several(a): return sum(x for x in [a / 0.0, a, np.log(a)])
def mean_of_nothing(a): return np.mean(a[:0]), a[:0].mean()
def to_float(a): return float(a[0] * 1e308 * 1e308), int(a.astype("c16")[:1].astype("f8")[0])
def applied(f, a): return f(a)
def said(a): warnings.warn("as said"); return a + 1
def said_of_caller(a): warnings.warn("as said", stacklevel=2); return a / 0


def many_names(a):
    b = c = d = e = f = g = h = i = j = a
    return b / (c - d) + (e + f + g + h + i + j)


def with_handler(a):
    try:
        return a / 0.0
    except RuntimeWarning:
        return a


class Scale:
    def __init__(self, by): self.by = by
    def __call__(self, a): return a / self.by
    def __truediv__(self, a): return np.log(a - a)
    @property
    def root(self): return np.sqrt(np.array([-1.0]))
