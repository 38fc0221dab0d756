"""Writes cases/dp_accounting.json:  PYTHONPATH=. /tmp/peers/bin/python tests/peers/by_dp_accounting.py   (20 minutes)

The parameters of dp_accounting's own tests (``source`` names the test) and compositions from a seed, each answered by
privacy loss distributions on a lattice that is as fine as POINTS allow: upper from the pessimistic one by connected
dots, lower from the optimistic one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
from dp_accounting.pld import accountant, common
from dp_accounting.pld import privacy_loss_distribution as pld

from tests.peers import random_jobs as draw
from tests.peers.recording import (
    Answer,
    Job,
    Law,
    OutOfPatienceError,
    Recorder,
    Step,
    discrete,
    gaussian,
    laplace,
    pair,
    patience,
    private,
    response,
    tried,
)

POINTS = 1e5
FINEST, COARSEST = 1e-7, 1e-3
SECONDS = 20
Loss = pld.PrivacyLossDistribution


def _additive(make: Callable[..., Loss], size: Callable[[Law], dict[str, Any]]) -> Callable[[Law, float, bool], Loss]:
    def built(law: Law, grid: float, pessimistic: bool) -> Loss:
        return make(
            **size(law),
            sensitivity=law.get("sensitivity", 1),
            sampling_prob=law.get("poisson", 1.0),
            value_discretization_interval=grid,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )

    return built


def _pair(law: Law, grid: float, pessimistic: bool) -> Loss:
    lower, upper = ({i: math.log(m) for i, m in enumerate(law[side]) if m > 0} for side in ("q", "p"))
    return pld.from_two_probability_mass_functions(
        lower, upper, pessimistic_estimate=pessimistic, value_discretization_interval=grid, symmetric=False
    )


MAKERS: dict[str, Callable[[Law, float, bool], Loss]] = {
    "gaussian": _additive(pld.from_gaussian_mechanism, lambda law: {"standard_deviation": law["scale"]}),
    "laplace": _additive(pld.from_laplace_mechanism, lambda law: {"parameter": law["scale"]}),
    "discrete_laplace": _additive(pld.from_discrete_laplace_mechanism, lambda law: {"parameter": 1 / law["scale"]}),
    "discrete_gaussian": _additive(pld.from_discrete_gaussian_mechanism, lambda law: {"sigma": law["scale"]}),
    "response": lambda law, grid, pessimistic: pld.from_randomized_response(
        law["noise"], law["buckets"], pessimistic_estimate=pessimistic, value_discretization_interval=grid
    ),
    "approx_dp": lambda law, grid, _: pld.from_privacy_parameters(
        common.DifferentialPrivacyParameters(law["epsilon"], law["delta"]), value_discretization_interval=grid
    ),
    "pair": _pair,
}


def composed(steps: tuple[Step, ...], grid: float, *, pessimistic: bool) -> Loss:
    parts = [MAKERS[law["law"]](law, grid, pessimistic).self_compose(times) for times, law in steps]
    return reduce(lambda a, b: a.compose(b), parts)


def _nodes(loss: Loss) -> int:
    pmfs = [loss._pmf_remove, loss._pmf_add]
    return max(len(p._probs) if hasattr(p, "_probs") else _extent(p._loss_probs) for p in pmfs)


def _extent(masses: dict[int, float]) -> int:
    return max(masses) - min(masses) + 1 if masses else 1


def finest(steps: tuple[Step, ...]) -> float:
    """The lattice on which the whole, and each part, has about POINTS nodes."""
    coarse = COARSEST
    parts = [MAKERS[law["law"]](law, coarse, True) for _, law in steps]
    most = max(_nodes(composed(steps, coarse, pessimistic=True)), *(_nodes(part) for part in parts), 1)
    return float(f"{min(max(coarse * most / POINTS, FINEST), COARSEST):.2g}")


def answered(job: Job) -> tuple[list[Answer], float]:
    """A claimed (ε, δ) is rounded up on the lattice: nothing with it has a lower end."""
    grid = finest(job.steps)
    above = composed(job.steps, grid, pessimistic=True)
    upper = [_answer(above, ask, at) for ask, at in job.asks]
    if any(law["law"] == "approx_dp" for _, law in job.steps):
        return [(value, None) for value in upper], grid
    below = composed(job.steps, grid, pessimistic=False)
    return [(value, _answer(below, ask, at)) for value, (ask, at) in zip(upper, job.asks, strict=True)], grid


def _answer(loss: Loss, ask: str, at: float) -> float:
    if ask == "epsilon":
        return float(loss.get_epsilon_for_delta(at))
    return float(loss.get_delta_for_epsilon(at))


PLD = "pld/privacy_loss_distribution_test.py::"
SOME = (("epsilon", 1e-3), ("epsilon", 1e-6), ("delta", 0.0), ("delta", 0.3))
BEYOND = (*SOME, ("epsilon", 1e-10), ("delta", 1.0), ("delta", -0.3))


def _pairs() -> Iterator[Job]:
    """Test name, laws of the first and second output, counts."""
    at = (*SOME, ("delta", math.log(1.1)), ("delta", math.log(0.9)), ("delta", 0.5), ("delta", -0.5), ("delta", -0.2))
    three = pair([0.5, 0.2, 0.0, 0.3], [0.2, 0.2, 0.6, 0.0])
    two = pair([0.0, 0.7, 0.3], [0.4, 0.6, 0.0])
    for name, laws in {
        "test_from_two_probability_mass_functions": [
            pair([0.2, 0.8], [0.8, 0.2]),
            pair([0.1, 0.8, 0.0, 0.1], [0.8, 0.1, 0.1, 0.0]),
            pair([0.8, 0.2], [0.5, 0.5]),
            pair([0.7, 0.2, 0.0, 0.1], [0.4, 0.4, 0.2, 0.0]),
        ],
        "test_hockey_stick_basic": [pair([0.6, 0.4], [0.5, 0.5])],
        "test_hockey_stick_unequal_support": [pair([0.5, 0.4, 0.0, 0.1], [0.2, 0.2, 0.6, 0.0])],
    }.items():
        for law in laws:
            yield from (Job(PLD + name, ((times, law),), at) for times in (1, 2, 5))
    yield Job(PLD + "test_composition", ((1, three), (1, two)), at)
    yield Job(PLD + "test_composition_asymmetric_with_symmetric", ((1, two), (1, three)), at)
    yield Job(PLD + "test_self_composition", ((3, three),), at)


def _noise() -> Iterator[Job]:
    """Scales, sensitivities and rates of the tests of additive noise; each alone and composed."""

    def jobs(test: str, laws: list[Law], counts: tuple[int, ...] = (1, 10, 100)) -> Iterator[Job]:
        for law in laws:
            yield from (Job(PLD + test, ((times, law),), BEYOND) for times in counts)

    yield from jobs(
        "test_laplace_varying_parameter_and_sensitivity",
        [laplace(b, s) for b, s in ((1, 1), (3, 3), (1, 2), (2, 4))]
        + [laplace(b, s, poisson=q) for b, s, q in ((1, 1, 0.8), (3, 3, 0.5), (1, 2, 0.7), (2, 4, 0.3))],
    )
    yield from jobs(
        "test_gaussian_varying_standard_deviation_and_sensitivity_connect_dots",
        [gaussian(b, s) for b, s in ((1, 1), (5, 5), (1, 2), (3, 6))]
        + [gaussian(b, s, poisson=q) for b, s, q in ((1, 1, 0.8), (5, 5, 0.6), (1, 2, 0.4), (3, 6, 0.2))],
    )
    yield from jobs("test_subsampled_gaussian_does_not_overflow", [gaussian(0.02, poisson=0.1)], (1,))
    yield from jobs("test_gaussian_gdp", [gaussian(1.0, mu) for mu in (0.5, 1.0, 2.0, 4.0)], (1,))
    yield from jobs(
        "test_discrete_laplace_varying_parameter_and_sensitivity",
        [discrete("laplace", 1 / a, s) for a, s in ((1, 1), (1, 2), (0.8, 2), (0.8, 3))]
        + [
            discrete("laplace", 1 / a, s, poisson=q)
            for a, s, q in ((1, 1, 0.8), (1, 2, 0.5), (0.8, 2, 0.3), (0.8, 3, 0.2))
        ],
    )
    yield from jobs(
        "test_discrete_gaussian_varying_sigma_and_sensitivity",
        [discrete("gaussian", b, s) for b, s in ((1, 1), (1, 2), (3, 1))]
        + [discrete("gaussian", b, s, poisson=q) for b, s, q in ((1, 1, 0.6), (1, 2, 0.3), (3, 1, 0.1))],
    )
    yield from jobs(
        "test_mixture_gaussian_varying_standard_deviation_and_sensitivity",
        [gaussian(1, 1), gaussian(1, 2), gaussian(1, poisson=0.8), gaussian(5, 5, poisson=0.6)],
        (3, 30),
    )
    yield from jobs("test_randomized_response_pessimistic", [response(0.5, 2), response(0.2, 4)])
    yield from jobs("test_randomized_response_mu", [response(p, 2) for p in (0.5, 0.9, 0.99)])


def _attacks() -> Iterator[tuple[Job, list[float]]]:
    """True-positive rates that the tests print, each to 1e-3 relative."""
    rates = [10.0**-n for n in range(3, 11)]
    printed = [0.01830, 0.003274, 0.0005475, 8.7218e-5, 1.3385e-5, 1.99405e-6, 2.8993e-7, 4.1303e-8]
    yield _attack(PLD + "test_gaussian_tpr_at_extreme_fpr", gaussian(1), rates), printed
    rates = [10.0**-n for n in range(4, 11)]
    name = PLD + "test_randomized_response_tpr_at_extreme_fprs"
    yield _attack(name, response(0.5, 2), rates), [3 * rate for rate in rates]
    name = PLD + "test_randomized_response_tpr"
    yield _attack(name, response(0.5, 2), [0.125, 0.25]), [0.375, 0.75]
    yield _attack(name, response(0.5, 4), [0.0625, 0.125, 0.375, 0.75]), [0.3125, 0.625, 0.875, 0.95]
    of = "pld/pld_privacy_accountant_test.py::"
    yield Job(of + "test_epsilon_basic", ((1, private(1)), (1, private(2))), (("tpr", 0.1),)), [0.8286]
    claims = ((1, private(1, 0.1)), (1, private(2, 0.2)))
    yield Job(of + "test_epsilon_delta_basic", claims, (("tpr", 0.1),)), [0.91938]
    yield Job(of + "test_gaussian_basic", ((3, gaussian(math.sqrt(3))),), (("tpr", 0.1),)), [0.38914]


def _attack(name: str, law: Law, rates: list[float]) -> Job:
    return Job(name, ((1, law),), tuple(("tpr", rate) for rate in rates))


def _events() -> Iterator[Job]:
    """pld_privacy_accountant_test.py: compositions of events."""
    of = "pld/pld_privacy_accountant_test.py::"
    yield Job(of + "test_randomized_response", ((1, response(4 / (3 + math.e), 4)),), (("delta", 1.0), *SOME))
    yield Job(of + "test_epsilon_basic", ((1, private(1)), (1, private(2))), (("delta", 3.0), *SOME))
    claims = ((1, private(1, 0.1)), (1, private(2, 0.2)))
    yield Job(of + "test_epsilon_delta_basic", claims, (("delta", 3.0), ("epsilon", 0.29)))
    yield Job(of + "test_permute_and_flip_matches_laplace", ((1, laplace(1)),), (("epsilon", 1e-5), *SOME))
    asks = (("delta", 1.0), ("epsilon", 0.126936), *SOME)
    yield Job(of + "test_gaussian_basic", ((3, gaussian(math.sqrt(3))),), asks)
    asks = (("delta", 1.0), ("epsilon", 0.15594), *SOME)
    yield Job(of + "test_poisson_subsampled_gaussian", ((3, gaussian(0.5, poisson=0.2)),), asks)
    asks = (("delta", 4.0), ("delta", 3.9), ("epsilon", 1e-14), *SOME)
    yield Job(of + "test_laplace_basic", ((3, laplace(1)), (2, laplace(2))), asks)
    asks = (("delta", 2.46964), ("epsilon", 1e-12), *SOME)
    yield Job(of + "test_poisson_subsampled_laplace", ((3, laplace(0.5, poisson=0.2)),), asks)
    both = ((3, discrete("laplace", 1)), (2, discrete("laplace", 2)))
    yield Job(of + "test_discrete_laplace_basic", both, (("delta", 3.9), ("epsilon", 1e-12), *SOME))
    both = ((1, gaussian(1, poisson=0.1)), (1, gaussian(2)))
    yield Job(of + "test_supports_gaussian", both, SOME)


GROUPS: list[tuple[str, int, Callable[[np.random.Generator], tuple[Step, ...]]]] = [
    ("gaussian", 24, draw.alone(draw.a_gaussian)),
    ("laplace", 30, draw.alone(draw.a_laplace)),
    ("discrete laplace", 24, draw.alone(draw.a_discrete_laplace)),
    ("discrete gaussian", 24, draw.alone(draw.a_discrete_gaussian)),
    ("response", 24, draw.alone(draw.a_response)),
    ("claims", 18, draw.alone(draw.a_claim)),
    ("pairs", 18, draw.alone(draw.a_pair)),
    ("sampled gaussian", 42, draw.alone(draw.sampled(draw.of_size(draw.a_gaussian, 0.4, 8), 5000))),
    ("sampled laplace", 24, draw.alone(draw.sampled(draw.of_size(draw.a_laplace, 0.3, 8), 500))),
    ("sampled discrete laplace", 18, draw.alone(draw.sampled(draw.of_size(draw.a_discrete_laplace, 0.4, 8), 300))),
    ("sampled discrete gaussian", 18, draw.alone(draw.sampled(draw.of_size(draw.a_discrete_gaussian, 0.5, 8), 300))),
    ("mixed noise", 24, draw.mixed([draw.a_gaussian, draw.a_laplace, draw.a_discrete_gaussian, draw.a_claim])),
    (
        "mixed lattices",
        18,
        draw.mixed([draw.a_response, draw.a_discrete_laplace, draw.a_discrete_gaussian, draw.a_claim, draw.a_pair]),
    ),
    (
        "mixed sampled",
        18,
        draw.mixed([draw.sampled(draw.of_size(draw.a_gaussian, 0.4, 8), 500), draw.a_gaussian, draw.a_laplace]),
    ),
    (
        "mixed sampled laws",
        20,
        draw.mixed(
            [
                draw.sampled(draw.of_size(draw.a_gaussian, 0.4, 8), 100),
                draw.sampled(draw.of_size(draw.a_laplace, 0.4, 8), 100),
                draw.sampled(draw.of_size(draw.a_discrete_laplace, 0.4, 8), 100),
            ],
            3,
        ),
    ),
]


def _drawn() -> Iterator[Job]:
    rng = np.random.default_rng(20240612)
    for group, number, make in GROUPS:
        for _ in range(number):
            steps = make(rng)
            yield Job(f"seeded: {group}", steps, _questions(steps, rng))


def _questions(steps: tuple[Step, ...], rng: np.random.Generator) -> tuple[tuple[str, Any], ...]:
    """Two δ, the total variation, and δ at three ε near the rough ε(δ)."""
    deltas = rng.choice(draw.DELTAS, size=2, replace=False).tolist()
    rough = composed(steps, 0.01, pessimistic=True)
    sizes = [rough.get_epsilon_for_delta(delta) for delta in (1e-2, *deltas)]
    near = [float(f"{e * rng.uniform(0.6, 0.98):.4g}") for e in sizes if math.isfinite(e) and e > 0.01]
    above = tuple(("delta", e) for e in dict.fromkeys(near))
    return (*(("epsilon", delta) for delta in deltas), ("delta", 0.0), *above)


def _calibrations(recorder: Recorder) -> None:
    """accountant_test.py: the least noise for a budget."""
    find = {
        "laplace": accountant.get_smallest_laplace_noise,
        "gaussian": accountant.get_smallest_gaussian_noise,
        "subsampled_gaussian": accountant.get_smallest_subsampled_gaussian_noise,
    }
    for name, times, sensitivity, rate, epsilon, delta in (
        ("laplace", 20, 1, 1, 1, 1e-4),
        ("laplace", 20, 0.5, 1, 1, 1e-4),
        ("laplace", 500, 1, 1, 1, 1e-4),
        ("laplace", 10, 21, 1, 3, 0),
        ("gaussian", 1, 1, 1, 1, 0.78760074),
        ("gaussian", 25, 6, 1, 1, 0.78760074),
        ("subsampled_gaussian", 1, 1, 0.01, 1, 1e-5),
        ("subsampled_gaussian", 25, 6, 0.001, 1, 1e-5),
    ):
        more = {"sampling_prob": rate} if rate < 1 else {}
        budget = common.DifferentialPrivacyParameters(epsilon, delta)
        found = tried(partial(find[name], budget, times, sensitivity=sensitivity, **more))
        noise = laplace if name == "laplace" else gaussian
        law = noise(None, sensitivity, **({"poisson": rate} if rate < 1 else {}))
        test = f"pld/accountant_test.py::test_get_smallest_{name}_noise"
        recorder.add(Job(test, ((times, law),), (("noise", [epsilon, delta]),)), [(found, None)])


def main() -> None:
    recorder = Recorder("dp_accounting")
    _calibrations(recorder)
    for job, printed in _attacks():
        recorder.add(job, [(1.001 * value, 0.999 * value) for value in printed], "printed, to 1e-3")
    for make in (_pairs, _noise, _events, _drawn):
        for job in make():
            try:
                with patience(SECONDS):
                    answers, grid = answered(job)
            except (OutOfPatienceError, MemoryError, ValueError, OverflowError, FloatingPointError) as error:
                print("no answer:", job.source, job.steps, type(error).__name__, str(error)[:80], flush=True)
                continue
            recorder.add(job, answers, f"grid {grid}")
        recorder.write()


if __name__ == "__main__":
    main()
