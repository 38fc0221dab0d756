"""Every family of whole-number noise and every named mechanism under the likelihood ratio; planted bugs are found.

Draws are repeatable: what passes, and what is caught, is the same every time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tightrope as tr
from tests.randomness.keyed import InsecureKeyed
from tightrope.audit.findings import claimed_points
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.families import registered_families
from tightrope.noise.family_weights import NoiseRequirement

RUNS = 40_000
SHIFT = 3


def every() -> dict[str, IntegerMechanism]:
    need = NoiseRequirement(SHIFT, (SHIFT,), 1e-3)
    named = {
        "discrete Laplace": tr.discrete_laplace(scale=4, sensitivity=SHIFT),
        "discrete Gaussian": tr.discrete_gaussian(scale=4, sensitivity=SHIFT),
        "discrete staircase": tr.discrete_staircase(epsilon=1, sensitivity=SHIFT),
        "discrete truncated Laplace": tr.discrete_truncated_laplace(epsilon=1, delta=1e-3, sensitivity=SHIFT),
        "least noise": tr.least_noise(tr.Budget(epsilon=1, delta=1e-3), sensitivity=SHIFT),
    }
    return {f"family {one.name}": one.make_noise(1.3, need) for one in registered_families()} | named


MECHANISMS = every()


@dataclass(frozen=True, slots=True)
class Weak(IntegerMechanism):
    """The planted bug: 0.8 of the noise, rounded up or down by chance, under the table of all of it."""

    table: NoiseTable
    sensitivity: int

    def sample(self, size, randomness=None):
        whole = self.table.sample(size, randomness)
        up = np.random.default_rng(8).random(size)
        return np.floor(0.8 * whole + up).astype(np.int64)


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_mechanism_gives_away_more_than_its_loss(name: str) -> None:
    law = MECHANISMS[name]
    found = tr.audit.mechanism(law, runs=RUNS, claim=law.loss, randomness=InsecureKeyed(21))
    assert all(found.delta(epsilon) <= delta for epsilon, delta in claimed_points(law.loss))
    assert found.total_variation() > 0.8 * law.loss.total_variation() - 0.02  # the attack is a good one


@pytest.mark.parametrize("name", MECHANISMS)
def test_too_little_noise_is_found_in_every_mechanism(name: str) -> None:
    law = MECHANISMS[name]
    weak = Weak(law.table, law.sensitivity)
    found = tr.audit.mechanism(weak, runs=RUNS, claim=law.loss, randomness=InsecureKeyed(22))
    assert found.against(law.loss).refuted


@pytest.mark.parametrize("k", [2, 5])
def test_randomized_response(k: int) -> None:
    law = tr.randomized_response(epsilon=1, k=k)
    reports = [law.release(np.full(RUNS, own), InsecureKeyed(23 + own)) for own in (0, 1)]
    scores = [(one == 0).astype(float) - (one == 1) for one in reports]
    found = tr.audit.scores(*scores)
    assert not found.against(law.loss).refuted and found.epsilon(0.0) > 0.8
    assert found.against([(0.75, 0)]).refuted


def test_a_mechanism_without_a_table_is_refused() -> None:
    with pytest.raises(InputError):
        tr.audit.mechanism(tr.laplace(scale=1))  # type: ignore[arg-type]


def test_ratios_far_out_are_numbers() -> None:
    score = tr.audit.log_ratio(tr.discrete_truncated_laplace(epsilon=1, delta=1e-3).table, 1)
    assert np.isfinite(score(np.array([-(10**9), -5, 0, 5, 10**9]))).all()
