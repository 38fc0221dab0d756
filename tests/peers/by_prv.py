"""Writes cases/prv_accountant.json:  PYTHONPATH=. /tmp/peers/bin/python tests/peers/by_prv.py   (15 minutes)

The parameters of prv_accountant's own tests and compositions from a seed; both ends are the package's own bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from prv_accountant import PRVAccountant
from prv_accountant import privacy_random_variables as prv

from tests.peers import random_jobs as draw
from tests.peers.recording import Job, Law, Recorder, Step, gaussian, laplace, patience, private

SECONDS = 20
EPSILON_ERROR, RELATIVE_DELTA_ERROR = 0.01, 1e-3
OF = "tests/test_"
MAKERS: dict[str, Callable[[Law], Any]] = {
    "gaussian": lambda law: (
        prv.PoissonSubsampledGaussianMechanism(
            sampling_probability=law["poisson"], noise_multiplier=law["scale"] / law.get("sensitivity", 1)
        )
        if "poisson" in law
        else prv.GaussianMechanism(noise_multiplier=law["scale"] / law.get("sensitivity", 1))
    ),
    "laplace": lambda law: prv.LaplaceMechanism(mu=law.get("sensitivity", 1) / law["scale"]),
    "approx_dp": lambda law: prv.ApproximateDPMechanism(epsilon=law["epsilon"], delta=law["delta"]),
}


def answered(job: Job, epsilon_error: float) -> list[tuple[float | None, float | None]]:
    counts = [times for times, _ in job.steps]
    smallest = min([at for ask, at in job.asks if ask == "epsilon"] + [1e-6])
    accountant = PRVAccountant(
        prvs=[MAKERS[law["law"]](law) for _, law in job.steps],
        max_self_compositions=counts,
        eps_error=epsilon_error,
        delta_error=smallest * RELATIVE_DELTA_ERROR,
    )
    found: list[tuple[float | None, float | None]] = []
    for ask, at in job.asks:
        if ask == "epsilon":
            low, _, high = accountant.compute_epsilon(delta=at, num_self_compositions=counts)
            found.append((high, max(low, 0.0)))
        else:
            low, _, high = accountant.compute_delta(epsilon=at, num_self_compositions=counts)
            found.append((high, max(low, 0.0)))
    return found


def _own() -> Iterator[tuple[Job, float]]:
    name = "accountant.py::TestPRVAccountant::test_gaussian_mechanism_analytic_homogeneous"
    for times in (9_999, 10_000):
        asks = tuple(("delta", e) for e in (0.1, 1.0, 10.0))
        yield Job(OF + name, ((times, gaussian(100.0)),), asks), 0.01
    name = "accountant.py::TestPRVAccountant::test_gaussian_mechanism_analytic_heterogeneous"
    for error in (1.0, 0.1, 0.01):
        yield Job(OF + name, ((50, gaussian(10.0)), (50, gaussian(5.0))), (("delta", 4.0),)), error
    name = "accountant.py::TestPRVAccountant::test_throw_error_small_delta"
    yield Job(OF + name, ((1000, gaussian(4.0, poisson=0.00038)),), (("epsilon", 1e-8),)), 0.01
    name = "accountant.py::TestPRVAccountant::test_invariance_max_compositions"
    yield Job(OF + name, ((4900, gaussian(0.9, poisson=256 / 100_000)),), (("epsilon", 1e-5),)), 0.1
    name = "dpsgd.py::TestFindNoiseMultiplier::test_robustness"
    steps = int(50 * 50_000 / 256)
    for sigma in (0.6, 0.7, 0.8, 1.0, 1.5):
        yield Job(OF + name, ((steps, gaussian(sigma, poisson=256 / 50_000)),), (("epsilon", 1e-5),)), 0.1
        law = gaussian(sigma, poisson=2e-3)
        yield Job(OF + "dpsgd.py::TestFindNoiseMultiplier::test_inverse", ((10_000, law),), (("epsilon", 1e-7),)), 0.1
    mixed = ((100, gaussian(0.8, poisson=5e-3)), (200, gaussian(8.0)), (100, laplace(10.0)))
    yield Job(OF + "readme.py::test_1", mixed, (("epsilon", 1e-6), ("delta", 3.0))), 0.1
    name = "privacy_random_variables/test_approximate_dp.py::TestApproximateDP::test_advanced_composition"
    for times in (10_000, 100_000):
        for delta in (1e-7, 1e-8):
            asks = tuple(("epsilon", times * delta + more) for more in (1e-5, 1e-6))
            yield Job("tests/test_" + name, ((times, private(0.01, delta)),), asks), 0.1
            name_zero = name.replace("test_advanced_composition", "test_zero_delta")
            yield Job("tests/test_" + name_zero, ((times, private(0.0, delta)),), (("delta", 0.0),)), 0.1
    name = "privacy_random_variables/test_laplace.py::TestLaplaceMechanism::test_advanced_composition"
    for times in (10_000, 100_000):
        yield Job("tests/test_" + name, ((times, laplace(100.0)),), (("epsilon", 1e-5), ("epsilon", 1e-6))), 0.1


GROUPS: list[tuple[str, int, Callable[[np.random.Generator], tuple[Step, ...]]]] = [
    ("gaussian", 8, draw.alone(draw.a_gaussian)),
    ("laplace", 12, draw.alone(draw.of_size(draw.a_laplace, 0.5, 30))),
    ("claims", 10, draw.alone(draw.a_claim)),
    ("sampled gaussian", 40, draw.alone(draw.sampled(draw.of_size(draw.a_gaussian, 0.5, 8), 20_000, 1e-4))),
    ("mixed", 15, draw.mixed([draw.a_gaussian, draw.a_laplace, draw.a_claim])),
    (
        "mixed sampled",
        20,
        draw.mixed([draw.sampled(draw.of_size(draw.a_gaussian, 0.5, 8), 1000), draw.a_gaussian, draw.a_laplace]),
    ),
]


def _drawn() -> Iterator[tuple[Job, float]]:
    rng = np.random.default_rng(20240613)
    for group, number, make in GROUPS:
        for _ in range(number):
            steps = make(rng)
            claimed = 1 - math.prod((1 - law.get("delta", 0)) ** times for times, law in steps)
            deltas = [float(f"{claimed + d:.6g}") for d in rng.choice([1e-3, 1e-5, 1e-6, 1e-8], 2, replace=False)]
            ask = float(f"{rng.uniform(0.1, 3):.3g}")
            asks = (*(("epsilon", d) for d in deltas if d < 1), ("delta", ask))
            yield Job(f"seeded: {group}", steps, asks), EPSILON_ERROR


def main() -> None:
    recorder = Recorder("prv_accountant")
    for jobs in (_own(), _drawn()):
        for job, error in jobs:
            try:
                with patience(SECONDS):
                    answers = answered(job, error)
            except Exception as failure:
                print("no answer:", job.source, job.steps, type(failure).__name__, str(failure)[:80], flush=True)
                continue
            recorder.add(job, answers, f"epsilon error {error}")
        recorder.write()


if __name__ == "__main__":
    main()
