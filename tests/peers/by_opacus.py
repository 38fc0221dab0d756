"""Writes cases/opacus.json:  PYTHONPATH=. /tmp/peers/bin/python tests/peers/by_opacus.py   (10 minutes)

Opacus' three accountants over the parameters of its own tests and from a seed. "rdp" is an upper bound, "prv" an upper
bound with an error of 0.01, "gdp" an approximation that is known to be unsafe. Numbers that the tests print are kept
with the test's own tolerance.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier

from tests.peers.recording import Job, Recorder, Step, count, gaussian, log_uniform, tried

VALUES = "opacus/tests/prv_accountant.py::PRVAccountantTest::test_values"
TEST = "opacus/tests/accountants_test.py::AccountingTest::test_"
KINDS = ("rdp", "prv", "gdp")


def epsilon(kind: str, steps: tuple[Step, ...], delta: float) -> float | None:
    accountant = create_accountant(kind)
    accountant.history = [(law["scale"], law.get("poisson", 1.0), times) for times, law in steps]
    return tried(lambda: accountant.get_epsilon(delta=delta), 30)


def record(recorder: Recorder, source: str, steps: tuple[Step, ...], deltas: tuple[float, ...]) -> None:
    asks = tuple(("epsilon", delta) for delta in deltas)
    for kind in KINDS:
        if kind == "gdp" and len(steps) > 1:
            continue
        recorder.add(Job(source, steps, asks), [(epsilon(kind, steps, delta), None) for delta in deltas], kind)


def _own(recorder: Recorder) -> None:
    for sigma, rate, steps in product((0.8, 1.5, 2.0, 3.0), (0.001, 0.05, 0.2), (100, 1000, 20_000, 50_000)):
        if rate < 0.2 or steps == 100:
            record(recorder, VALUES, ((steps, gaussian(sigma, poisson=rate)),), (1e-6,))
    for name in ("rdp_accountant", "gdp_accountant", "prv_accountant"):
        record(recorder, TEST + name, ((2250, gaussian(1.5, poisson=0.04)),), (1e-5,))
    for kind, length in product(("rdp", "prv", "gdp"), ({"epochs": 90}, {"steps": 2000})):
        found = tried(
            lambda kind=kind, length=length: get_noise_multiplier(
                target_epsilon=8, target_delta=1e-5, sample_rate=0.04, accountant=kind, **length
            ),
            60,
        )
        steps = length.get("steps", 2250)
        job = Job(f"{TEST}get_noise_multiplier_{kind}", ((steps, gaussian(None, poisson=0.04)),), ())
        recorder.add(Job(job.source, job.steps, (("noise", [8, 1e-5]),)), [(found, None)], kind)


def _drawn(recorder: Recorder) -> None:
    rng = np.random.default_rng(20240614)
    for _ in range(90):
        law = gaussian(log_uniform(rng, 0.5, 8), poisson=log_uniform(rng, 1e-4, 0.3))
        deltas = (float(rng.choice([1e-4, 1e-5, 1e-6, 1e-8])),)
        record(recorder, "seeded: sampled gaussian", ((count(rng, 30_000), law),), deltas)
    for _ in range(30):
        laws = [gaussian(log_uniform(rng, 0.7, 6), poisson=log_uniform(rng, 1e-3, 0.1)) for _ in range(3)]
        record(recorder, "seeded: schedule", tuple((count(rng, 2000), law) for law in laws), (1e-5,))
    for _ in range(20):
        rate = float(rng.choice([1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1]))
        target, delta = log_uniform(rng, 1, 10), float(rng.choice([1e-4, 1e-5, 1e-6]))
        epochs = int(rng.integers(10, 101))
        found = tried(
            lambda rate=rate, target=target, delta=delta, epochs=epochs: get_noise_multiplier(
                target_epsilon=target, target_delta=delta, sample_rate=rate, epochs=epochs
            ),
            60,
        )
        steps = ((int(epochs / rate), gaussian(None, poisson=rate)),)
        job = Job(TEST + "get_noise_multiplier_overshoot", steps, (("noise", [target, delta]),))
        recorder.add(job, [(found, None)], "rdp")


def main() -> None:
    recorder = Recorder("opacus")
    _own(recorder)
    recorder.write()
    _drawn(recorder)
    recorder.write()


if __name__ == "__main__":
    main()
