"""Random sampled steps against mpmath: δ, total variation and rates of true positives, never unsafe and never crashing.

``TIGHTROPE_STEPS=10000`` runs as many cases; each comes from its number alone.
"""

from __future__ import annotations

import math
import os
import random
import warnings
from collections.abc import Iterator

import pytest
from mpmath import mp, mpf

import tightrope as tr
from tests.oracle import exact_curves as curves
from tests.oracle.step_cases import DIGITS, Case, drawn, epsilons, gaussian, laplace, ranged, spread, triple, truncated
from tightrope.errors import PrecisionWarning

STEPS = int(os.environ.get("TIGHTROPE_STEPS", "600"))
RATES = max(200, STEPS // 5)
BLOCKS = 10
POPULATIONS = [2, 3, 10, 1000, 50_000, 10**9, 10**15]


def outside(bounds: tr.Bounds, truth: mpf, what: str) -> Iterator[str]:
    """Why a bracket is wrong: it does not hold the truth, or is no bracket."""
    if not 0 <= bounds.lower <= bounds.upper <= 1:
        yield f"{what}: {bounds}"
    own = mpf(10) ** (5 - mp.dps)  # what is below mpmath's own digits has any sign
    if not mpf(bounds.lower) - own <= truth <= mpf(bounds.upper) + own:
        yield f"{what}: {bounds} does not hold {mp.nstr(truth, 25)}"


def subset_violations(number: int) -> list[str]:
    draw = random.Random(number)
    with mp.workdps(DIGITS):
        case: Case = drawn(draw)
        population = draw.choice(POPULATIONS)
        size = draw.choice([1, population - 1, draw.randint(1, population)])
        truth = curves.subset(case.truth, mpf(size) / population)
        loss = case.loss.subset_sample(size, population)
        found = list(outside(loss.total_variation_bounds(), truth.delta(0.0), "total variation"))
        for epsilon in epsilons(draw, case.largest):
            found += outside(loss.delta_bounds(epsilon), truth.delta(epsilon), f"delta({epsilon!r})")
    return [f"{number}: {case.told} subset {size} of {population}: {one}" for one in found]


def rate_violations(number: int) -> list[str]:
    draw = random.Random(-1 - number)
    with mp.workdps(400):
        case = draw.choice([gaussian, laplace, truncated, ranged, triple])(draw)
        rates = [spread(draw, 1e-300, 1.0) for _ in range(3)] + [draw.random()]
        return [
            f"{number}: {case.told} at {rate!r}: {one}"
            for rate in rates
            for one in outside(
                case.loss.true_positive_rate_bounds(rate), case.truth.caught(mpf(rate)), "true positive rate"
            )
        ]


@pytest.mark.parametrize("block", range(BLOCKS))
def test_subsets_hold_the_truth(block: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # beside a largest loss nothing is narrow
        wrong = [one for number in range(block, STEPS, BLOCKS) for one in subset_violations(number)]
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("block", range(BLOCKS))
def test_rates_of_true_positives_hold_the_truth(block: int) -> None:
    wrong = [one for number in range(block, RATES, BLOCKS) for one in rate_violations(number)]
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong[:20])


def test_what_was_once_unsafe() -> None:
    with mp.workdps(DIGITS):
        truth = curves.subset(curves.laplace(mpf(1) / 3, mpf(0)), mpf(1) / 50_000).delta(0.0)
        bounds = tr.laplace(scale=3).loss.subset_sample(1, 50_000).total_variation_bounds()
        assert mpf(bounds.lower) <= truth <= mpf(bounds.upper)
        loss, rate = tr.gaussian(scale=59.83762167680619).loss, 1.7002211443099458e-12
        caught = curves.gaussian(1 / mpf(59.83762167680619)).caught(mpf(rate))
        assert caught <= mpf(loss.true_positive_rate(rate)) <= caught * (1 + mpf(10) ** -12)


def test_a_planted_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power: ends that are 1e-14 too low are found among forty cases."""
    honest = tr.PrivacyLoss.delta_bounds

    def low(self: tr.PrivacyLoss, epsilon: float) -> tr.Bounds:
        found = honest(self, epsilon)
        return tr.Bounds(found.lower * (1 - 1e-14), math.nextafter(found.upper * (1 - 1e-14), 0.0))

    monkeypatch.setattr(tr.PrivacyLoss, "delta_bounds", low)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        assert any(subset_violations(number) for number in range(40))
