"""Adversaries who choose parameters after seeing outputs, enumerated: what they reach is what filters must bound."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

import tightrope as tr
from tightrope.accounting.filters import (
    BasicFilter,
    EnvelopeFilter,
    Filter,
    GaussianFilter,
    MenuFilter,
    MomentFilter,
    Odometer,
    TokenFilter,
)

Floats = NDArray[np.float64]
Leaves = tuple[Floats, Floats]
"""Probabilities of every transcript of one adaptive policy, under P and under Q."""


@dataclass(frozen=True)
class Option:
    """A mechanism: its output law under P and under Q."""

    p: Floats
    q: Floats

    @classmethod
    def of(cls, p: Sequence[float], q: Sequence[float]) -> Option:
        return cls(np.array(p), np.array(q))

    @property
    def loss(self) -> tr.PrivacyLoss:
        return tr.from_pair(self.p, self.q).loss


def triple(epsilon: float, eta: float) -> Option:
    """The dominating pair of (ε, 0, η), written out (GI eqs. 43-44)."""
    top = eta / (1 - math.exp(-epsilon))
    p = [top, 1 - top - top * math.exp(-epsilon), top * math.exp(-epsilon)]
    kept = [mass for mass in p if mass > 1e-12]
    return Option.of(kept, kept[::-1])


STRONG, WEAK = triple(1, 0.02), triple(0.2, math.tanh(0.1))
EPSILONS = (-0.5, 0.0, 0.3, 0.7, 1.2, 2.0)


def policies(
    menu: Sequence[Option], allowed: Callable[[tuple[int, ...]], list[int]], path: tuple[int, ...] = ()
) -> Iterator[Leaves]:
    """Every adaptive policy: stop, or an allowed option and a policy for each of its outputs."""
    yield np.ones(1), np.ones(1)
    for choice in allowed(path):
        option, after = menu[choice], list(policies(menu, allowed, (*path, choice)))
        for plan in itertools.product(after, repeat=len(option.p)):
            p = np.concatenate([mass * leaves[0] for mass, leaves in zip(option.p, plan, strict=True)])
            q = np.concatenate([mass * leaves[1] for mass, leaves in zip(option.q, plan, strict=True)])
            yield p, q


def up_to(steps: int, options: int) -> Callable[[tuple[int, ...]], list[int]]:
    return lambda path: list(range(options)) if len(path) < steps else []


def hockey_stick(p: Floats, q: Floats, epsilon: float) -> float:
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)))


def reached(found: Sequence[Leaves], epsilon: float) -> float:
    """The best policy, in the worse direction."""
    return max(max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) for p, q in found)


def never_stopping(steps: int) -> list[Leaves]:
    """All policies of exactly ``steps`` choices between STRONG and WEAK."""
    if steps == 0:
        return [(np.ones(1), np.ones(1))]
    after, found = never_stopping(steps - 1), []
    for option in (STRONG, WEAK):
        for plan in itertools.product(after, repeat=len(option.p)):
            p = np.concatenate([mass * leaves[0] for mass, leaves in zip(option.p, plan, strict=True)])
            q = np.concatenate([mass * leaves[1] for mass, leaves in zip(option.q, plan, strict=True)])
            found.append((p, q))
    return found


class TestCounterexample:
    """Theory §2: between (1, 0, .02) and (.2, 0, tanh .1), 3 steps, ε = 1.2."""

    menu = (tr.approx_dp(1, total_variation=0.02).loss, tr.approx_dp(0.2, total_variation=math.tanh(0.1)).loss)

    def test_the_best_fixed_choice_is_beaten_by_an_adaptive_one(self) -> None:
        fixed = max((j * self.menu[0] + (3 - j) * self.menu[1]).delta(1.2) for j in range(4))
        adaptive = reached(never_stopping(3), 1.2)
        assert fixed == pytest.approx(0.001734, abs=5e-7)
        assert adaptive == pytest.approx(0.002465, abs=5e-7)

    @pytest.mark.parametrize("step", [None, 0.2, 0.05])
    def test_the_menu_filter_is_above_the_truth_and_tight(self, step: float | None) -> None:
        truth = reached(never_stopping(3), 1.2)
        bound = MenuFilter(self.menu, steps=3, step=step).delta(1.2)
        assert truth <= bound <= truth * (1 + 1e-8)

    def test_off_the_lattice_the_menu_filter_is_still_above(self) -> None:
        truth = reached(never_stopping(3), 1.2)
        bounds = [MenuFilter(self.menu, steps=3, step=step).delta(1.2) for step in (0.3, 0.07, 0.011)]
        assert all(truth < bound for bound in bounds)
        assert bounds[-1] < truth * 1.01

    def test_the_envelope_is_valid_and_no_tighter(self) -> None:
        menu, envelope = MenuFilter(self.menu, steps=3), EnvelopeFilter(self.menu, steps=3)
        assert all(menu.delta(e) <= envelope.delta(e) * (1 + 1e-8) for e in EPSILONS)

    def test_the_menu_filter_is_tight_at_every_epsilon(self) -> None:
        found, menu = never_stopping(3), MenuFilter(self.menu, steps=3)
        for epsilon in (-1.0, *EPSILONS, 2.6):
            truth = reached(found, epsilon)
            assert truth * (1 - 1e-14) <= menu.delta(epsilon) <= truth * (1 + 1e-8) + 1e-12


SKEWED = Option.of([0.7, 0.3], [0.45, 0.55])
LEAKY = Option.of([0.04, 0.96], [0.0, 1.0])
MILD = Option.of([0.55, 0.45], [0.5, 0.5])
FAIR = Option.of([0.6, 0.4], [0.4, 0.6])

FILTERS: dict[str, tuple[tuple[Option, ...], Callable[[Sequence[tr.PrivacyLoss]], Filter[object]]]] = {
    "tokens": ((SKEWED, LEAKY), lambda menu: TokenFilter([menu[0], menu[1], menu[0]])),
    "menu": ((SKEWED, MILD), lambda menu: MenuFilter(menu, steps=3)),
    "leaky menu": ((SKEWED, LEAKY), lambda menu: MenuFilter(menu, steps=3)),
    "coarse menu": ((SKEWED, LEAKY), lambda menu: MenuFilter(menu, steps=3, step=0.1)),
    "envelope": ((SKEWED, LEAKY), lambda menu: EnvelopeFilter(menu, steps=3)),
    "moments": ((SKEWED, MILD), lambda menu: MomentFilter(order=1.5, budget=0.55)),
    "leaky moments": ((SKEWED, LEAKY), lambda menu: MomentFilter(order=3, budget=1.4, infinite_mass=0.05)),
    "gaussian": ((FAIR, MILD), lambda menu: GaussianFilter(mu=0.75)),
    "basic": ((FAIR, LEAKY), lambda menu: BasicFilter(epsilon=0.9, delta=0.09)),
}


@pytest.mark.parametrize("name", FILTERS)
def test_no_adversary_gets_beyond_the_guarantee(name: str) -> None:
    """All policies of up to three steps that the filter lets through, stopping included, both directions."""
    options, make = FILTERS[name]
    losses = [option.loss for option in options]
    deepest = 0

    def allowed(path: tuple[int, ...]) -> list[int]:
        nonlocal deepest
        deepest = max(deepest, len(path))
        current = make(losses)
        for choice in path:
            current.charge(losses[choice])
        return [i for i, loss in enumerate(losses) if len(path) < 3 and current.admits(loss)]

    found, guarantee = list(policies(options, allowed)), make(losses)
    assert deepest >= 2
    assert len(found) > 5
    for epsilon in EPSILONS:
        assert reached(found, epsilon) <= guarantee.delta(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("options", [(SKEWED, MILD), (SKEWED, LEAKY), (FAIR, LEAKY)])
def test_some_adversary_reaches_the_menu_bound(options: tuple[Option, ...]) -> None:
    found = list(policies(options, up_to(3, len(options))))
    bound = MenuFilter([option.loss for option in options], steps=3)
    for epsilon in EPSILONS:
        assert reached(found, epsilon) >= bound.delta(epsilon) * (1 - 5e-4) - 1e-7


def readings(odometer: Callable[[], Odometer], losses: Sequence[tr.PrivacyLoss]) -> Callable[[tuple[int, ...]], float]:
    """The reading after a path of choices; None of it depends on outputs."""
    known: dict[tuple[int, ...], float] = {}

    def reading(path: tuple[int, ...]) -> float:
        counts = tuple(sorted(path))
        if counts not in known:
            current = odometer()
            for choice in counts:
                current.charge(losses[choice])
            known[counts] = current.reading
        return known[counts]

    return reading


ODOMETERS = [((FAIR, SKEWED), 0.0), ((FAIR, LEAKY), 0.12)]


@pytest.mark.parametrize(("options", "leak"), ODOMETERS)
@pytest.mark.parametrize("reverse", [False, True])
def test_transcripts_obey_the_odometer(options: tuple[Option, ...], leak: float, reverse: bool) -> None:
    """sup over policies, stopping times and sets A of P(A) − ∫_A e^u dQ, by dynamic programming."""
    losses, delta = [option.loss for option in options], 0.2
    reading = readings(lambda: Odometer(delta=delta, infinite_mass=leak, orders=(0.5, 1, 2, 4)), losses)

    def best(path: tuple[int, ...], p: float, q: float) -> float:
        here = max(0.0, p - math.exp(reading(path)) * q)
        if len(path) == 5 or (path.count(1) > 2 and leak):
            return here
        return max(here, *(sum(outputs(path, choice, p, q)) for choice in choices(path)))

    def choices(path: tuple[int, ...]) -> range:
        return range(1 if leak and path.count(1) == 3 else 2)

    def outputs(path: tuple[int, ...], choice: int, p: float, q: float) -> Iterator[float]:
        first, second = (options[choice].q, options[choice].p) if reverse else (options[choice].p, options[choice].q)
        return (best((*path, choice), p * a, q * b) for a, b in zip(first, second, strict=True))

    assert 0 <= best((), 1.0, 1.0) <= delta


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_the_realized_loss_stays_below_the_reading_at_all_times(reverse: bool, share: float) -> None:
    """P(loss > reading at some time) ≤ δ for the worst adaptive policy; readings × 0.4 are caught."""
    options, delta = (FAIR, SKEWED), 0.3
    losses = [option.loss for option in options]
    reading = readings(lambda: Odometer(delta=delta, orders=(0.5, 1, 2)), losses)

    def failing(path: tuple[int, ...], loss: float) -> float:
        if loss > share * reading(path) + 1e-12:
            return 1.0
        return max((expected(path, loss, option, i) for i, option in enumerate(options)), default=0.0) * (len(path) < 7)

    def expected(path: tuple[int, ...], loss: float, option: Option, choice: int) -> float:
        if len(path) == 7:
            return 0.0
        p, q = (option.q, option.p) if reverse else (option.p, option.q)
        return sum(float(a) * failing((*path, choice), loss + math.log(a / b)) for a, b in zip(p, q, strict=True))

    assert (failing((), 0.0) <= delta) == (share == 1.0)
