"""Writes cases/riskcal.json:  PYTHONPATH=. /tmp/peers/bin/python tests/peers/by_riskcal.py   (10 minutes)

Attacks: β(α), advantage and Bayes risk by closed form for Gaussians (exact: both ends) and from privacy loss
distributions; the noise for an advantage, and for a pair of error rates. Pessimistic means a smaller β or Bayes risk.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from riskcal import analysis
from riskcal.calibration import dpsgd

from tests.peers.recording import Job, Law, Recorder, count, gaussian, laplace, log_uniform, tried

CONVERSIONS = "tests/test_conversions.py::test_"
CALIBRATIONS = "tests/test_dpsgd.py::test_"
EXACT = 1e-13
"""Rounding of closed forms in doubles, relative."""


def closed_form(recorder: Recorder, source: str, sigma: float, alphas: list[float], priors: list[float]) -> None:
    mu = 1 / sigma
    asks = [("beta", a) for a in alphas] + [("advantage", 0.0)] + [("bayes_risk", p) for p in priors]
    values = [analysis.get_beta_from_gdp(mu, a) for a in alphas] + [analysis.get_advantage_from_gdp(mu)]
    values += [analysis.get_bayes_risk_from_gdp(mu, p) for p in priors]
    both = []
    for (ask, _), value in zip(asks, values, strict=True):
        room = EXACT * (float(value) if ask == "advantage" else 1.0)
        both.append((value + room, value - room) if ask == "advantage" else (value - room, value + room))
    recorder.add(Job(source, ((1, gaussian(sigma)),), tuple(asks)), both, "closed form")


def by_distribution(recorder: Recorder, source: str, times: int, law: Law, alphas: list[float]) -> None:
    make = pld.from_laplace_mechanism if law["law"] == "laplace" else pld.from_gaussian_mechanism
    parts = {"sampling_prob": law.get("poisson", 1.0), "value_discretization_interval": 1e-4}
    try:
        loss = make(law["scale"], **parts).self_compose(times)
    except (ValueError, MemoryError, OverflowError) as error:
        print("no answer:", times, law, str(error)[:80])
        return
    asks = (*(("beta", a) for a in alphas), ("advantage", 0.0), ("bayes_risk", 0.5), ("bayes_risk", 0.2))
    answers = [tried(partial(analysis.get_beta_from_pld, loss, alpha=a)) for a in alphas]
    answers.append(tried(partial(analysis.get_advantage_from_pld, loss)))
    answers += [tried(partial(analysis.get_bayes_risk_from_pld, loss, p)) for p in (0.5, 0.2)]
    recorder.add(Job(source, ((times, law),), asks), [(answer, None) for answer in answers], "grid 1e-4")


def _noise(recorder: Recorder, source: str, rate: float, steps: int, advantage: float) -> None:
    found = tried(
        partial(
            dpsgd.find_noise_multiplier_for_advantage,
            advantage=advantage,
            sample_rate=rate,
            num_steps=steps,
            grid_step=1e-3,
        )
    )
    law = gaussian(None, **({"poisson": rate} if rate < 1 else {}))
    recorder.add(Job(source, ((steps, law),), (("noise_for_advantage", advantage),)), [(found, None)])


def _noise_for_rates(recorder: Recorder, source: str, rate: float, steps: int, alpha: float, beta: float) -> None:
    found = tried(
        partial(
            dpsgd.find_noise_multiplier_for_err_rates,
            alpha=alpha,
            beta=beta,
            sample_rate=rate,
            num_steps=steps,
            grid_step=1e-3,
        )
    )
    law = gaussian(None, **({"poisson": rate} if rate < 1 else {}))
    recorder.add(Job(source, ((steps, law),), (("noise_for_rates", [alpha, beta]),)), [(found, None)])


def main() -> None:
    recorder = Recorder("riskcal")
    rng = np.random.default_rng(20240615)
    alphas, priors = [0.1, 0.2, 0.3, 0.5], [0.1, 0.2, 0.25, 0.3, 0.5, 0.75, 0.8, 0.9]
    closed_form(recorder, CONVERSIONS + "get_beta_matches_analytic_curve", 0.5, alphas, priors)
    for _ in range(60):
        sigma = log_uniform(rng, 0.2, 50)
        drawn = [float(f"{10 ** rng.uniform(-9, -0.01):.3g}") for _ in range(5)]
        closed_form(recorder, "seeded: closed form", sigma, drawn, [float(f"{rng.uniform(0.01, 0.99):.3g}")])
    by_distribution(recorder, CONVERSIONS + "get_beta_matches_analytic_curve", 1, gaussian(0.5), alphas)
    name = CONVERSIONS + "get_beta_symmetrized_in_the_middle"
    by_distribution(recorder, name, 5, gaussian(0.4, poisson=0.1), [0.01, 0.1, 0.2, 0.4, 0.6, 0.9])
    for i in range(60):
        law = laplace(log_uniform(rng, 0.5, 10)) if i % 3 == 0 else gaussian(log_uniform(rng, 0.6, 8))
        if i % 2:
            law["poisson"] = log_uniform(rng, 1e-3, 0.3)
        drawn = [float(f"{10 ** rng.uniform(-4, -0.1):.3g}") for _ in range(4)]
        by_distribution(recorder, "seeded: distributions", count(rng, 300), law, drawn)
    recorder.write()
    for advantage, (rate, steps) in product((0.01, 0.05, 0.1, 0.25), ((1, 1), (0.01, 100), (0.001, 10_000))):
        _noise(recorder, CALIBRATIONS + "advantage_calibration_correctness", rate, steps, advantage)
    for beta, (rate, steps) in product((0.33, 0.5, 0.7), ((0.01, 100), (0.001, 10_000))):
        _noise_for_rates(recorder, CALIBRATIONS + "err_rates_calibration_correctness", rate, steps, 0.1, beta)
    recorder.write()


if __name__ == "__main__":
    main()
