"""Compositions drawn from a fixed seed: every law a peer knows, alone, sampled, and beside others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.peers.recording import Law, Step, count, discrete, gaussian, laplace, log_uniform, pair, private, response

Rng = np.random.Generator
Draw = Callable[[Rng], Step]
DELTAS = (1e-2, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)


def a_gaussian(rng: Rng) -> Step:
    return count(rng, 1000), gaussian(log_uniform(rng, 0.3, 30))


def a_laplace(rng: Rng) -> Step:
    return count(rng, 500), laplace(log_uniform(rng, 0.3, 30))


def a_discrete_laplace(rng: Rng) -> Step:
    return count(rng, 200), discrete("laplace", log_uniform(rng, 0.4, 30), int(rng.integers(1, 4)))


def a_discrete_gaussian(rng: Rng) -> Step:
    return count(rng, 200), discrete("gaussian", log_uniform(rng, 0.5, 30), int(rng.integers(1, 4)))


def a_response(rng: Rng) -> Step:
    return count(rng, 300), response(log_uniform(rng, 0.05, 0.98), int(rng.integers(2, 20)))


def a_claim(rng: Rng) -> Step:
    return count(rng, 300), private(log_uniform(rng, 0.01, 2), float(rng.choice([0.0, 1e-8, 1e-6, 1e-3])))


def a_pair(rng: Rng) -> Step:
    """Masses are multiples of 1/256: exact doubles."""
    size = int(rng.integers(2, 6))
    p, q = (rng.multinomial(256, rng.dirichlet(np.full(size, 1.5))) / 256 for _ in range(2))
    return count(rng, 20), pair(p.tolist(), q.tolist())


def sampled(draw: Draw, most: int, least_rate: float = 1e-3) -> Draw:
    def a_sampled(rng: Rng) -> Step:
        _, law = draw(rng)
        return count(rng, most), law | {"poisson": log_uniform(rng, least_rate, 0.5)}

    return a_sampled


def of_size(draw: Draw, least: float, most: float) -> Draw:
    """Another range of scales."""

    def a_sized(rng: Rng) -> Step:
        times, law = draw(rng)
        return times, law | {"scale": log_uniform(rng, least, most)}

    return a_sized


def mixed(draws: list[Draw], most_laws: int = 5) -> Callable[[Rng], tuple[Step, ...]]:
    """Up to ``most_laws`` steps, counts cut to 50."""

    def a_mixture(rng: Rng) -> tuple[Step, ...]:
        chosen = rng.choice(len(draws), size=int(rng.integers(2, most_laws + 1)))
        return tuple((min(times, 50), law) for times, law in (draws[i](rng) for i in chosen))

    return a_mixture


def alone(draw: Draw) -> Callable[[Rng], tuple[Step, ...]]:
    return lambda rng: (draw(rng),)


def parts(law: Law) -> str:
    """What a law is called in a report."""
    return f"{law['law']}{'-poisson' if 'poisson' in law else ''}{'-subset' if 'subset' in law else ''}"
