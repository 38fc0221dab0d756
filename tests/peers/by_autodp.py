"""Writes cases/autodp.json:  PYTHONPATH=. /tmp/peers/bin/python tests/peers/by_autodp.py   (10 minutes)

autodp over the grids of its own tests and from a seed: closed forms ("exact": both ends), Rényi bounds ("rdp": upper),
characteristic functions ("phi": an approximation), sampling with Poisson rates and without replacement (replace-one).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from autodp import mechanism_zoo as zoo
from autodp.transformer_zoo import AmplificationBySampling, ComposeAFA, Composition

from tests.peers.recording import Job, Law, Recorder, Step, count, gaussian, laplace, log_uniform, response, tried

CALIBRATOR = "test/unit_test_calibrator.py::test_"
SAMPLING = "test/unit_test_sampling_pld.py::Test_approxDP2fDP_Conversion"
EXACT = 1e-9
"""The tolerance of autodp's own root finding."""
MAKERS: dict[str, Callable[[Law], Any]] = {
    "gaussian": lambda law: zoo.GaussianMechanism(law["scale"]),
    "laplace": lambda law: zoo.LaplaceMechanism(law["scale"]),
    "response": lambda law: zoo.RandresponseMechanism(1 - law["noise"] / 2),
    "discrete_gaussian": lambda law: zoo.DiscreteGaussianMechanism(law["scale"]),
}


def exact_gaussian(recorder: Recorder, source: str, sigma: float, deltas: list[float], times: int = 1) -> None:
    """Composed Gaussians are one Gaussian."""
    law = zoo.ExactGaussianMechanism(sigma / math.sqrt(times))
    found = [tried(partial(law.get_approxDP, delta)) for delta in deltas]
    both = [(e * (1 + EXACT), e * (1 - EXACT)) if e is not None else (None, None) for e in found]
    asks = tuple(("epsilon", delta) for delta in deltas)
    recorder.add(Job(source, ((times, gaussian(sigma)),), asks), both, "exact")


def by_moments(recorder: Recorder, source: str, steps: tuple[Step, ...], deltas: list[float]) -> None:
    whole = Composition()([_sampled(law) for _, law in steps], [times for times, _ in steps])
    found = [tried(partial(whole.get_approxDP, delta), 30) for delta in deltas]
    asks = tuple(("epsilon", delta) for delta in deltas)
    recorder.add(Job(source, steps, asks), [(e, None) for e in found], "rdp")


def _sampled(law: Law) -> Any:
    made = MAKERS[law["law"]](law)
    if "poisson" in law:
        return AmplificationBySampling()(made, law["poisson"], improved_bound_flag=law["law"] == "gaussian")
    if "subset" in law:
        made.neighboring = "replace_one"
        m, n = law["subset"]
        return AmplificationBySampling(PoissonSampling=False)(made, m / n, improved_bound_flag=True)
    return made


def by_characteristic(recorder: Recorder, source: str, times: int, law: Law, deltas: list[float]) -> None:
    if law["law"] == "laplace":
        part = zoo.LaplaceMechanism(law["scale"], phi_off=False, RDP_off=True)
    elif law["law"] == "response":
        part = zoo.RandresponseMechanism(1 - law["noise"] / 2, phi_off=False, RDP_off=True)
    else:
        part = zoo.GaussianMechanism(law["scale"], phi_off=False, RDP_off=True, approxDP_off=True)
    whole = ComposeAFA()([part], [times])
    found = [tried(partial(whole.get_approxDP, delta), 30) for delta in deltas]
    asks = tuple(("epsilon", delta) for delta in deltas)
    recorder.add(Job(source, ((times, law),), asks), [(e, None) for e in found], "phi")


def main() -> None:
    recorder = Recorder("autodp")
    rng = np.random.default_rng(20240616)
    deltas = [1e-3, 1e-4, 1e-5, 1e-6]
    sizes = list(dict.fromkeys(int(1.6**i) for i in range(10)))
    for sigma in sizes:
        exact_gaussian(recorder, CALIBRATOR + "single_para", float(sigma), deltas)
        for times in (10, 100, 1000):
            exact_gaussian(recorder, CALIBRATOR + "multi_para", float(sigma), deltas, times)
            by_moments(recorder, CALIBRATOR + "multi_para", ((times, gaussian(float(sigma))),), deltas)
    recorder.write()
    for times in (1, 10, 100):
        for rate in (0.01, 0.001):
            by_moments(recorder, SAMPLING, ((times, gaussian(1.0, poisson=rate)),), deltas)
    for _ in range(40):
        some = rng.choice(deltas, 2, replace=False).tolist()
        law = gaussian(log_uniform(rng, 0.7, 8), poisson=log_uniform(rng, 1e-4, 0.2))
        by_moments(recorder, "seeded: sampled gaussian", ((count(rng, 10_000), law),), some)
    for _ in range(40):
        some = rng.choice(deltas, 2, replace=False).tolist()
        n = int(log_uniform(rng, 1e3, 1e6))
        law = gaussian(log_uniform(rng, 1, 10)) if rng.random() < 0.5 else laplace(log_uniform(rng, 1, 10))
        law["subset"] = [max(1, round(n * log_uniform(rng, 1e-3, 0.2))), n]
        by_moments(recorder, "seeded: without replacement", ((count(rng, 1000), law),), some)
    recorder.write()
    for _ in range(30):
        some = rng.choice(deltas, 2, replace=False).tolist()
        law = laplace(log_uniform(rng, 0.5, 20))
        times = count(rng, 300)
        by_moments(recorder, "seeded: laplace", ((times, law),), some)
        by_characteristic(recorder, "seeded: laplace", times, law, some)
        law = response(log_uniform(rng, 0.1, 0.95), 2)
        by_moments(recorder, "seeded: response", ((times, law),), some)
        by_characteristic(recorder, "seeded: response", times, law, some)
        law = {"law": "discrete_gaussian", "scale": log_uniform(rng, 1, 20)}
        by_moments(recorder, "seeded: discrete gaussian", ((times, law),), some)
    for _ in range(30):
        laws = [gaussian(log_uniform(rng, 1, 20)), laplace(log_uniform(rng, 1, 20)), response(0.5, 2)]
        chosen = tuple((count(rng, 50), laws[i]) for i in rng.permutation(3)[: rng.integers(2, 4)])
        by_moments(recorder, "seeded: mixed", chosen, [1e-5])
    recorder.write()


if __name__ == "__main__":
    main()
