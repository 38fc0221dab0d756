"""Random single steps with what is true of them: each case comes from its number alone."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mpmath import mp, mpf

import tightrope as tr
from tests.mechanisms.exact_noise import probability
from tests.oracle import exact_curves as curves
from tests.oracle.exact_curves import Curve

DIGITS = 60
Draw = random.Random


@dataclass(frozen=True)
class Case:
    """A loss of the library, the truth, and how it was made."""

    loss: tr.PrivacyLoss
    truth: Curve
    told: str
    largest: float
    """The base's largest loss, or a typical one."""


def spread(draw: Draw, low: float, high: float) -> float:
    """Log-uniform; one time in four a round number."""
    value = math.exp(draw.uniform(math.log(low), math.log(high)))
    return float(f"{value:.1g}") if draw.random() < 0.25 else value


def laplace(draw: Draw) -> Case:
    scale, shift = spread(draw, 2e-2, 1e6), draw.choice([1.0, 1.0, spread(draw, 1e-12, 10)])
    scale = max(scale, shift / 600)
    loss = tr.laplace(scale=scale, sensitivity=shift).loss
    return Case(loss, curves.laplace(mpf(shift) / mpf(scale), mpf(0)), f"laplace {scale!r} {shift!r}", shift / scale)


def truncated(draw: Draw) -> Case:
    epsilon, delta = spread(draw, 1e-9, 50), spread(draw, 1e-15, 0.5)
    loss = tr.truncated_laplace(epsilon=epsilon, delta=delta).loss
    return Case(loss, curves.laplace(mpf(epsilon), mpf(delta)), f"truncated_laplace {epsilon!r} {delta!r}", epsilon)


def ranged(draw: Draw) -> Case:
    epsilon = spread(draw, 1e-9, 100)
    return Case(
        tr.bounded_range(epsilon=epsilon).loss,
        curves.bounded_range(mpf(epsilon)),
        f"bounded_range {epsilon!r}",
        epsilon,
    )


def gaussian(draw: Draw) -> Case:
    scale, shift = spread(draw, 0.05, 1e6), draw.choice([1.0, 1.0, spread(draw, 1e-12, 1)])
    loss = tr.gaussian(scale=scale, sensitivity=shift).loss
    mu = shift / scale
    return Case(loss, curves.gaussian(mpf(shift) / mpf(scale)), f"gaussian {scale!r} {shift!r}", mu * (6 + mu / 2))


def triple(draw: Draw) -> Case:
    epsilon, delta = spread(draw, 1e-6, 50), draw.choice([0.0, 0.0, spread(draw, 1e-12, 0.3)])
    most = curves.widest(mpf(epsilon), mpf(delta))
    eta = draw.choice([None, delta + float(most - delta) * draw.random()])
    loss = tr.approx_dp(epsilon, delta=delta, total_variation=eta).loss
    truth = curves.triple(mpf(epsilon), mpf(delta), None if eta is None or mpf(eta) >= most else mpf(eta))
    return Case(loss, truth, f"approx_dp {epsilon!r} {delta!r} {eta!r}", epsilon)


def pair(draw: Draw) -> Case:
    """Masses that are multiples of 2⁻⁴⁰, and their mirror: a symmetric pair, exactly."""
    weights = [draw.randint(1, 1 << draw.randint(1, 38)) for _ in range(draw.randint(2, 6))]
    weights[0] += (1 << 40) - sum(weights)
    shares = [Fraction(w, 1 << 40) for w in weights]
    loss = tr.from_pair([float(s) for s in shares], [float(s) for s in reversed(shares)]).loss
    loss = tr.PrivacyLoss(loss.remove, loss.remove)
    ratios = [abs(math.log(a / b)) for a, b in zip(shares, reversed(shares), strict=True)]
    return Case(
        loss, curves.of_fractions(list(zip(shares, reversed(shares), strict=True))), f"pair {weights}", max(ratios)
    )


def response(draw: Draw) -> Case:
    epsilon, k = spread(draw, 1e-6, 30), draw.choice([2, 3, 10, 1000])
    law = tr.randomized_response(epsilon=epsilon, k=k)
    keep, other = Fraction(law.keep, 1 << 128), Fraction(law.other, 1 << 128)
    outcomes = [(keep, other), (other, keep)] + [((k - 2) * other, (k - 2) * other)] * (k > 2)
    return Case(_plain(law.loss), curves.of_fractions(outcomes), f"randomized_response {epsilon!r} {k}", epsilon)


def integers(draw: Draw) -> Case:
    """Tables of whole numbers, as they are; of an endless tail, each class of equal ratios in one sum."""
    name = draw.choice(["discrete_laplace", "discrete_staircase", "discrete_gaussian", "discrete_truncated_laplace"])
    shift = draw.randint(1, 3)
    given: dict[str, float] = {
        "discrete_laplace": {"scale": spread(draw, 0.1, 20)},
        "discrete_staircase": {"epsilon": spread(draw, 0.05, 8)},
        "discrete_gaussian": {"scale": spread(draw, 0.3, 8)},
        "discrete_truncated_laplace": {"epsilon": spread(draw, 0.05, 5), "delta": spread(draw, 1e-9, 0.1)},
    }[name]
    law = getattr(tr, name)(**given, sensitivity=shift)
    truth = curves.of_fractions(shifted(law.table, shift))
    return Case(_plain(law.loss), truth, f"{name} {given} {shift}", float(law.loss.remove.largest_loss))


def _plain(loss: tr.PrivacyLoss) -> tr.PrivacyLoss:
    """Of no particular neighbors."""
    return tr.PrivacyLoss(loss.remove, loss.add)


def shifted(table: object, shift: int) -> list[tuple[Fraction, Fraction]]:
    """(X + shift, X); beyond the table each cell of one period of the tail stands for all periods."""
    reach = len(table.half)  # type: ignore[attr-defined]
    near = [(probability(table, x - shift), probability(table, x)) for x in range(-reach - shift, reach + shift + 1)]
    tail = table.tail  # type: ignore[attr-defined]
    if tail is None:
        return near
    whole = 1 / (1 - Fraction(tail.escape, 1 << 128))
    first = reach + shift + 1
    right = [
        (whole * probability(table, x - shift), whole * probability(table, x))
        for x in range(first, first + len(tail.block))
    ]
    lost = [(p, q) for q, p in right]
    return [*lost, *near[0:], *right]


KINDS: tuple[Callable[[Draw], Case], ...] = (
    laplace, truncated, ranged, gaussian, triple, pair, response, integers,
)  # fmt: skip


def drawn(draw: Draw) -> Case:
    """One of the kinds; laws of large tables come rarely, they are slow to make."""
    return draw.choices(KINDS, weights=(4, 4, 4, 4, 3, 2, 1, 0.5))[0](draw)


def epsilons(draw: Draw, largest: float) -> list[float]:
    """Zero, tiny, negative, somewhere, and next to the largest loss."""
    near = largest * (1 - draw.choice([-1, 1]) * 10.0 ** -draw.uniform(1, 16))
    inside = largest * draw.random()
    small = spread(draw, 1e-300, 1e-3)
    return [0.0, draw.choice([-1, 1]) * small, -inside, inside, near, -near, spread(draw, 1e-9, 50)]


def relative_width(lower: float, upper: float) -> float:
    return (upper - lower) / upper if upper else 0.0


def within(lower: float, truth: mpf, upper: float) -> bool:
    """Doubles below the least one count as it."""
    return mpf(lower) <= truth <= mpf(upper)


__all__ = ["DIGITS", "Case", "drawn", "epsilons", "mp", "relative_width", "spread", "within"]
