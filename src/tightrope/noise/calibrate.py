"""Calibration: the least noise, the most steps or the largest sample that a budget allows, in a few evaluations.

Every point (ε_i, δ_i) of a budget is compared by normal quantiles, Φ⁻¹(δ(ε_i)) − Φ⁻¹(δ_i): this difference is nearly
linear in the logarithm of the scale of the noise, from δ near one down to 10⁻³⁰⁰. The largest of these
differences, the *excess*, is at most 0 exactly where all points hold; its root in the logarithm of the parameter is
bracketed and approached by ``parameter_search``.

1. The start of the search (``guess_start``).
2. The search (``calibrate``).
3. Its use for noisy gradients (``DpSgd``, ``least_noise_multiplier``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import cast

import numpy as np
from scipy import special

from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.display import Displayed, Summary
from tightrope.documents.budget import Budget, Number, exact_decimal, float_at_most
from tightrope.errors import InputError, InsufficientBudgetError, PrecisionError, PrecisionWarning
from tightrope.mechanisms.gaussian import gaussian
from tightrope.noise.parameter_search import (
    LARGEST,
    MOST,
    SMALLEST,
    EvaluatedParameter,
    MakeLoss,
    ParameterRange,
    ParameterSearch,
    bracket_parameter,
    close_parameter_bracket,
)
from tightrope.numerics.checks import check_integer, check_positive
from tightrope.numerics.root_finding import find_root
from tightrope.numerics.rounding import to_float

# 1. The start of a search: near the answer, and cheap to compute.
#
# The Gaussian that just meets a budget has K(1) = μ² (its Rényi divergence of order two). The guess is the parameter
# whose loss has the same K(1); this moment takes a thousandth of the time of a δ. Correctness does not depend on it.

ORDER_ONE = np.ones(1, dtype=np.complex128)
GUESS_TOLERANCE = 0.02
"""Relative tolerance of the guess for the parameter with that moment."""
MIN_DELTA = 1e-30
"""For the guess, a smaller δ, or δ = 0, is replaced by this."""
NEGLIGIBLE_FRACTION = 1e-3
"""An infinite loss of a smaller probability, relative to δ, does not change the guess."""
MIN_LOG_MU, MAX_LOG_MU = math.log(1e-12), math.log(1e3)
"""Range of the search for log μ."""


def guess_start(make_loss: MakeLoss, points: Iterable[tuple[float, float]], within: ParameterRange) -> ParameterRange:
    """Return the range with a start near the answer; unchanged if the loss has no known moment."""
    pairs = list(points)
    target = 2 * min(_log_mu(epsilon, max(delta, MIN_DELTA)) for epsilon, delta in pairs)
    negligible = NEGLIGIBLE_FRACTION * min(delta for _, delta in pairs)

    def moment_excess(loss: PrivacyLoss) -> tuple[float, float]:
        """Return log K(1) of the worse direction, less the target; ``PrecisionError`` if it is unknown or infinite."""
        with np.errstate(all="ignore"):
            log_moments = [direction.log_moment(ORDER_ONE) for direction in (loss.remove, loss.add)]
        moments = [math.nan if moment is None else float(moment[0].real) for moment in log_moments]
        if loss.infinite_mass > negligible or not all(0 < moment < math.inf for moment in moments):
            raise PrecisionError(f"the moment K(1) of {len(loss.remove.laws)} distributions is not known")
        excess = math.log(max(moments)) - target
        return excess, excess

    search = ParameterSearch(make_loss, moment_excess, within)
    try:
        good, bad = bracket_parameter(search, None)
        if good is not None and bad is not None:
            guess = close_parameter_bracket(search, good, bad, GUESS_TOLERANCE).parameter
            return replace(
                search.parameter_range, initial_guess=guess, loss_falls=good.log_parameter > bad.log_parameter
            )
        # No sign change: the answer is probably at this end, the most useful or the most private one.
        end = good or bad
        if end is None or end.parameter in (SMALLEST, LARGEST):
            return search.parameter_range
        return replace(
            search.parameter_range,
            initial_guess=end.parameter,
            loss_falls=(end.parameter == search.parameter_range.high) != end.meets_budget,
        )
    except (InputError, PrecisionError):
        return within


def _log_mu(epsilon: float, delta: float) -> float:
    """Return log μ of the Gaussian with this δ at ε."""

    def log_delta_excess(log_mu: float) -> float:
        gaussian_delta = float(GaussianLossDistribution(math.exp(log_mu)).profile(np.array([epsilon]))[0])
        return math.log(max(gaussian_delta, 1e-320)) - math.log(delta)

    if not log_delta_excess(MIN_LOG_MU) < 0 < log_delta_excess(MAX_LOG_MU):
        return MIN_LOG_MU if log_delta_excess(MIN_LOG_MU) >= 0 else MAX_LOG_MU
    return find_root(log_delta_excess, MIN_LOG_MU, MAX_LOG_MU, within=1e-3)


# 2. The search.

SIZE_TOLERANCE = 1e-9
"""Default relative tolerance of the parameter."""
MIN_LOG_DELTA = -760.0
"""Stand-in for log δ if δ = 0, computed or allowed."""
WIDE_BRACKET = 1e-3
"""Brackets at the answer that are wider than this fraction of the allowed δ cause a warning."""
ZERO_DELTA = 1e-290
"""Stand-in for an allowed δ of zero as a divisor; smaller values are negligible."""


@dataclass(frozen=True, slots=True, repr=False)
class Calibration(Displayed):
    """The result of a calibration: the parameter, its loss, which meets the budget, and the number of evaluations."""

    parameter: float
    loss: PrivacyLoss
    evaluations: int

    def text_summary(self) -> Summary:
        """Return the parameter and the number of evaluations."""
        return Summary(f"parameter {self.parameter!r}", [("evaluations of the loss", self.evaluations)])


def calibrate(
    make_loss: MakeLoss,
    budget: Budget,
    *,
    smallest: float | None = None,
    largest: float | None = None,
    integer: bool = False,
    increasing: bool | None = None,
    tolerance: float = SIZE_TOLERANCE,
) -> Calibration:
    """Return the most useful parameter that meets every point of a budget: smallest scale, or largest count or rate.

    With ``attack_rates``, no attack has more than the stated true-positive rate at each false-positive rate.

    ``make_loss(parameter)`` returns a ``PrivacyLoss``. ``increasing`` says whether it grows with the parameter (a
    number of steps, a sampling rate) or falls (a scale); if omitted, two evaluations decide. The parameter is searched
    between ``smallest`` and ``largest`` (10⁻¹² to 10¹²; integers, with ``integer=True``, 1 to 10⁹), outwards from 1;
    an end of this range is the answer if it is the most useful one and meets the budget. If an end is omitted, the
    range also ends where ``make_loss`` raises ``InputError``, so the ends are optional for a sampling rate.

    **The private side.** The upper bound ``delta`` of the loss that is returned was shown to meet every point of the
    budget, its total variation and its bound on the probability of an infinite loss; the budget's decimals were
    rounded down first. A parameter that is
    ``tolerance`` (relative; one, for integers) more useful was shown to violate it. All still more useful ones
    violate it, too, if the loss is monotone in the parameter; this is assumed and not checked, and a truncated
    table or a bound that is loose in places may deviate slightly. The returned parameter is private even then.
    Usually 6 to 12 evaluations.

    Neighbors: as defined by the loss. Raises ``InputError`` for invalid arguments, ``InsufficientBudgetError`` if
    no parameter in the range meets the budget.

    >>> import tightrope as tr
    >>> budget = tr.Budget(epsilon=1, delta=1e-6)
    >>> found = calibrate(lambda scale: 100 * tr.gaussian(scale=scale).loss, budget)
    >>> round(found.parameter, 6), found.loss.delta(1) <= 1e-6, found.evaluations <= 12
    (42.246789, True, True)
    >>> calibrate(lambda steps: steps * tr.gaussian(scale=50).loss, budget, integer=True).parameter
    140
    >>> rate = calibrate(lambda rate: 1000 * tr.gaussian(scale=1).loss.poisson_sample(rate), budget).parameter
    >>> round(rate, 6)
    0.004871
    >>> rates = tr.Budget(attack_rates=[(0.01, 0.05)], delta=1e-6)
    >>> found = calibrate(lambda scale: 100 * tr.gaussian(scale=scale).loss, rates)
    >>> round(found.parameter, 6), round(found.loss.true_positive_rate(0.01), 9)
    (14.673638, 0.05)
    """
    if not callable(make_loss):
        raise InputError("make_loss", make_loss, "a function from a parameter to a PrivacyLoss")
    constraints, tolerance = _BudgetPoints.from_budget(budget), check_positive("tolerance", tolerance, "1e-9 is usual")
    check_end: Callable[[str, object], float] = check_integer if integer else check_positive
    low = check_end("smallest", (1 if integer else SMALLEST) if smallest is None else smallest)
    high = check_end("largest", (MOST if integer else LARGEST) if largest is None else largest)
    if not low < high:
        raise InputError("largest", high, f"above smallest={low!r}")
    parameter_range = guess_start(
        make_loss,
        budget.rounded_points,
        ParameterRange(low, high, (smallest is not None, largest is not None), integer),
    )
    search = ParameterSearch(make_loss, constraints.budget_excess, parameter_range)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # of parameters that are not the answer
        good, bad = bracket_parameter(search, increasing)
        result = close_parameter_bracket(search, good, bad, tolerance) if good is not None and bad is not None else good
        if result is None:
            raise constraints.unmet_budget_error(cast(EvaluatedParameter, bad))
        wide_epsilons = constraints.wide_bracket_epsilons(result.loss)
    for epsilon in wide_epsilons:
        result.loss.delta(epsilon)  # cached by now: called again for its PrecisionWarning
    return Calibration(result.parameter, result.loss, len(search.evaluations_by_parameter))


@dataclass(frozen=True, slots=True)
class _BudgetPoints:
    """The constraints on a loss: points, an attacker's rates, and the cap on infinite loss."""

    points: tuple[tuple[float, float], ...]
    attack_rates: tuple[tuple[float, float], ...]
    """Pairs of a false-positive rate, rounded up, and the largest true-positive rate, rounded down."""
    infinite_loss_cap: float

    @classmethod
    def from_budget(cls, budget: object) -> _BudgetPoints:
        """Return the constraints of a budget, rounded down from its decimals."""
        if not isinstance(budget, Budget):
            raise InputError("budget", budget, "a Budget", "try tightrope.Budget(epsilon=1, delta=1e-6)")
        points = budget.rounded_points
        rates = tuple((to_float(first, "up"), to_float(second, "down")) for first, second in budget.attack_rates)
        return cls(points[: len(points) - len(rates)], rates, float_at_most(budget.delta))

    def values_and_limits(self, loss: PrivacyLoss) -> list[tuple[str, float, float]]:
        """Return what is limited, its value, and the limit, of each constraint."""
        deltas = loss.delta([epsilon for epsilon, _ in self.points]).tolist() if self.points else []
        limited = [
            (f"delta({epsilon!r})", value, most) for (epsilon, most), value in zip(self.points, deltas, strict=True)
        ]
        for rate, most in self.attack_rates:
            limited.append((f"the true-positive rate at {rate!r}", loss.true_positive_rate(rate), most))
        return [*limited, ("the probability of an infinite loss", loss.infinite_mass, self.infinite_loss_cap)]

    def budget_excess(self, loss: PrivacyLoss) -> tuple[float, float]:
        """Return the excess at the worst point, in standard deviations and in multiples of the allowed δ.

        The first is Φ⁻¹(δ) − Φ⁻¹(allowed), with the sign of δ − allowed under any rounding, very negative if both are
        0. The cap on infinite loss is one of the points.
        """

        def probit_excess(delta: float, allowed: float) -> float:
            if delta == 0 or delta < ZERO_DELTA <= allowed:  # a rounding error of zero
                return _finite_probit(0) - (_finite_probit(allowed) if allowed else 0.0)
            if delta <= allowed:
                return min(0.0, _finite_probit(delta) - _finite_probit(allowed))
            return max(math.ulp(0.0), _finite_probit(delta) - _finite_probit(allowed))

        deltas_and_allowed = [(value, most) for _, value, most in self.values_and_limits(loss)]
        return (
            max(probit_excess(*pair) for pair in deltas_and_allowed),
            max((delta - allowed) / max(allowed, ZERO_DELTA) for delta, allowed in deltas_and_allowed),
        )

    def wide_bracket_epsilons(self, loss: PrivacyLoss) -> list[float]:
        """Return each ε whose bracket of δ is so wide that a more useful parameter may have been missed."""
        brackets = [(epsilon, allowed, loss.delta_bounds(epsilon)) for epsilon, allowed in self.points]
        return [
            epsilon for epsilon, allowed, bracket in brackets if bracket.upper - bracket.lower > WIDE_BRACKET * allowed
        ]

    def unmet_budget_error(self, best: EvaluatedParameter) -> InsufficientBudgetError:
        """Return an error that states the loss at the most private end of the range."""
        constraints = self.values_and_limits(best.loss)
        violations = " and ".join(
            f"{name} is {value:.3g}, not {allowed:.3g}" for name, value, allowed in constraints if value > allowed
        )
        return InsufficientBudgetError(
            f"no parameter in the range meets the budget: at its most private end, {best.parameter!r}, {violations}; "
            "use a wider range or a larger budget"
        )


def _finite_probit(delta: float) -> float:
    """Return Φ⁻¹(δ), finite for every δ in [0, 1]."""
    log = max(math.log(delta), MIN_LOG_DELTA) if delta > 0 else MIN_LOG_DELTA
    return float(special.ndtri_exp(min(log, -1e-16)))


# 3. Stochastic gradient descent with noisy gradients (DP-SGD): a training run and its privacy loss.
#
# Each step draws a batch, clips every example's gradient to norm C, adds up, and adds normal noise of standard
# deviation σC to every coordinate; σ is the *noise multiplier*. The sampling scheme determines the neighbors:
#
# poisson   every example takes part with probability q = batch/examples, independently. Neighbors differ by an example
#           that is added or removed; the clipped sum moves by at most C: a sampled Gaussian of sensitivity 1.
# subset    exactly ``batch`` of the examples, without replacement. Neighbors differ by one example that is *replaced*;
#           one clipped gradient goes and another comes, so the sum moves by up to **2C**: sensitivity 2 at the same σ.


class Sampling(StrEnum):
    """The sampling method of batches."""

    POISSON = "poisson"
    SUBSET = "subset"


@dataclass(frozen=True, slots=True)
class DpSgd:
    """A training run: ``steps`` batches of ``batch`` (on average, for Poisson) out of ``examples`` examples.

    ``noise`` is the noise multiplier σ: standard deviation of the noise over the clipping norm. Raises ``InputError``
    unless all are positive, counts are integers, and the batch is at most as large as the data.

    >>> run = DpSgd(examples=60_000, batch=256, noise=1.3, steps=3515)
    >>> round(run.loss.epsilon(1e-5), 9), run.loss.neighbors.value
    (0.864409917, 'add-remove')
    """

    examples: int
    batch: int
    noise: float
    steps: int
    sampling: Sampling = Sampling.POISSON

    def __post_init__(self) -> None:
        check_integer("examples", self.examples)
        check_integer("steps", self.steps)
        check_positive("noise", self.noise, "1 is usual")
        if not check_integer("batch", self.batch) <= self.examples:
            raise InputError("batch", self.batch, f"at most the {self.examples} examples")
        object.__setattr__(self, "sampling", sampling_from_name(self.sampling))

    @property
    def sampling_rate(self) -> float:
        """The fraction of the examples in a batch."""
        return self.batch / self.examples

    @property
    def step_loss(self) -> PrivacyLoss:
        """The loss of one step; its neighbors are add-remove for Poisson batches, replace-one for subsets."""
        if self.sampling is Sampling.POISSON:
            return gaussian(scale=self.noise).loss.poisson_sample(self.sampling_rate)
        return gaussian(scale=self.noise, sensitivity=2).loss.subset_sample(self.batch, self.examples)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of all steps, with parameters fixed in advance; every intermediate model may be published."""
        return self.steps * self.step_loss


def least_noise_multiplier(
    budget: Budget, *, examples: int, batch: int, steps: int, sampling: Sampling = Sampling.POISSON
) -> DpSgd:
    """Return the run with the least noise multiplier whose loss meets every point of the budget; see ``calibrate``.

    Raises ``InputError`` for invalid arguments, ``InsufficientBudgetError`` if all multipliers up to 10⁶
    violate the budget.

    >>> run = least_noise_multiplier(Budget(epsilon=1, delta=1e-5), examples=60_000, batch=256, steps=3515)
    >>> round(run.noise, 6), run.loss.delta(1) <= 1e-5
    (1.184998, True)
    """

    def run_with_noise(noise: float) -> DpSgd:
        return DpSgd(examples, batch, noise, steps, sampling)

    return run_with_noise(calibrate(lambda noise: run_with_noise(noise).loss, budget, increasing=False).parameter)


def steps_in_epochs(epochs: Number, *, examples: int, batch: int) -> int:
    """Return the number of whole batches in ``epochs``: ⌊epochs · examples / batch⌋, of exact decimals, at least 1.

    Training loops round differently (some drop the last batch of each pass, some add one): count their steps.

    >>> steps_in_epochs(15, examples=60_000, batch=256)
    3515
    """
    passes = exact_decimal("epochs", epochs)
    if not 0 < passes <= 10**9:
        raise InputError("epochs", epochs, "a number above 0, at most 10^9")
    return max(1, math.floor(passes * check_integer("examples", examples) / check_integer("batch", batch)))


def sampling_from_name(name: object) -> Sampling:
    """Return the sampling method of that name; raises ``InputError`` for any other."""
    try:
        return Sampling(name)  # type: ignore[arg-type]
    except ValueError:
        known = " or ".join(repr(sampling.value) for sampling in Sampling)
        raise InputError("sampling", name, known, "poisson: add-remove neighbors; subset: replace-one") from None
