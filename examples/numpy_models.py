"""Array functions of the kind people write: the inputs of the tests on real code, and the parts of demo.py. Plain NumPy; nothing is compiled here."""

from dataclasses import dataclass, field

import numpy as np


def erf(x):
    """Abramowitz and Stegun 7.1.26, error below 1.5e-7."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1.0 - poly * np.exp(-x * x))


def black_scholes(spot, strike, years, rate, vol):
    """Call and put prices of European options. All arguments broadcast."""
    root = vol * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * vol * vol) * years) / root
    d2 = d1 - root
    n1 = 0.5 * (1.0 + erf(d1 / 1.4142135623730951))
    n2 = 0.5 * (1.0 + erf(d2 / 1.4142135623730951))
    discounted = strike * np.exp(-rate * years)
    call = spot * n1 - discounted * n2
    return call, call - spot + discounted


def kmeans_step(points, centers):
    """One step of Lloyd's algorithm: (new centers, label of each point, squared error)."""
    distance = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
    label = distance.argmin(axis=1)
    weight = (label[:, None] == np.arange(centers.shape[0])[None, :]).astype(points.dtype)
    total = weight.sum(axis=0)[:, None]
    moved = np.where(total > 0, weight.T @ points / np.maximum(total, 1), centers)
    return moved, label, distance.min(axis=1).sum()


def heat_roll(u, k=0.1, steps=1):
    """Heat diffusion on a torus."""
    for _ in range(steps):
        u = u + k * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)
    return u


def heat_slices(u, k=0.1):
    """Heat diffusion with a fixed edge; writes into u and returns it."""
    u[1:-1, 1:-1] += k * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
    return u


def nbody_step(position, velocity, mass, dt=0.01, softening=1e-3):
    """One leapfrog step of n bodies in 3-d: (position, velocity)."""
    delta = position[None, :, :] - position[:, None, :]
    inverse = ((delta**2).sum(axis=2) + softening**2) ** -1.5
    velocity = velocity + dt * (delta * (mass[None, :, None] * inverse[:, :, None])).sum(axis=1)
    return position + dt * velocity, velocity


def attention(q, k, v, mask=None):
    """Softmax attention, last two axes (tokens, features)."""
    score = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        score = np.where(mask, score, -1e9)
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    weight = weight / weight.sum(axis=-1, keepdims=True)
    return weight @ v


def life(board):
    """One generation of Conway's game on a torus of 0 and 1."""
    near = sum(np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return ((near == 3) | ((board == 1) & (near == 2))).astype(board.dtype)


def mlp(layers, x):
    """layers: list of dicts with w and b, the last without activation."""
    for i, layer in enumerate(layers):
        x = x @ layer["w"] + layer["b"]
        if i < len(layers) - 1:
            x = np.maximum(x, 0)
    return x


@dataclass
class Momentum:
    """Gradient descent with momentum over a dict of arrays, updated in place."""

    rate: float = 0.1
    decay: float = 0.9
    steps: int = 0
    velocity: dict = field(default_factory=dict)

    def update(self, weights, gradients):
        for name, g in gradients.items():
            v = self.velocity.get(name)
            self.velocity[name] = g if v is None else self.decay * v + g
            weights[name] -= self.rate * self.velocity[name]
        self.steps += 1
        return self.steps


def inputs(seed=0, n=64):
    """name -> (function, arguments): a call of each."""
    r = np.random.default_rng(seed)
    normal = r.standard_normal
    return {
        "black_scholes": (black_scholes, (100 + 10 * normal(n), 100 + 5 * normal(n), r.uniform(0.1, 2, n), 0.02, r.uniform(0.1, 0.5, n))),
        "kmeans_step": (kmeans_step, (normal((n, 2)), normal((4, 2)))),
        "heat_roll": (heat_roll, (normal((n // 4, n // 4)),)),
        "heat_slices": (heat_slices, (normal((n // 4, n // 4)),)),
        "nbody_step": (nbody_step, (normal((n // 8, 3)), normal((n // 8, 3)), r.uniform(1, 2, n // 8))),
        "attention": (attention, (normal((2, n // 8, 8)), normal((2, n // 8, 8)), normal((2, n // 8, 8)))),
        "life": (life, ((r.random((n // 4, n // 4)) < 0.4).astype(np.int64),)),
        "mlp": (mlp, ([{"w": normal((8, 8)), "b": normal(8)} for _ in range(3)], normal((n // 8, 8)))),
    }
