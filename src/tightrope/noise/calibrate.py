"""The least noise, the most steps or the largest sample that a budget allows, in a handful of evaluations.

Every point (ε_i, δ_i) of a budget is put on the scale of standard deviations, Φ⁻¹(δ(ε_i)) − Φ⁻¹(δ_i): there the loss
of noise is nearly linear in its size, from δ near one down to 10⁻³⁰⁰. The largest of these differences, the *excess*,
is negative exactly where all points hold; its root is bracketed and approached
(``parameter_search``) in the logarithm of the parameter.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import cast

import numpy as np
import scipy
from scipy import special

from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget, Number, at_most, exact_decimal
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
    bracket_root,
    close_bracket,
)
from tightrope.numerics.checks import check_integer, check_positive

# Where a search for a parameter begins: near the answer, at next to no cost.
#
# The Gaussian that just meets a budget has K(1) = μ² (its Rényi divergence of order two). The parameter at which a
# loss has as much is found from that one moment, which costs a thousandth of a δ. It is a guess: nothing rests on it.

AT_ONE = np.ones(1, dtype=np.complex128)
ROUGHLY = 0.02
"""Relative tolerance of the guess for the parameter with that moment."""
FAINTEST_DELTA = 1e-30
"""A smaller δ, or δ = 0, is replaced by this."""
WEAKEST, STRONGEST = math.log(1e-12), math.log(1e3)
"""Range of the search for log μ."""


def guess_start(make_loss: MakeLoss, points: Iterable[tuple[float, float]], within: ParameterRange) -> ParameterRange:
    """Return the same range with a start near the answer; unchanged if the loss has no known moment."""
    target = 2 * min(_log_mu(epsilon, max(delta, FAINTEST_DELTA)) for epsilon, delta in points)

    def moment_excess(loss: PrivacyLoss) -> tuple[float, float]:
        excess = _log_moment(loss) - target
        return excess, excess

    search = ParameterSearch(make_loss, moment_excess, within)
    try:
        good, bad = bracket_root(search, None)
        if good is not None and bad is not None:
            begin = close_bracket(search, good, bad, ROUGHLY).parameter
            return replace(
                search.parameter_range, initial_guess=begin, loss_falls=good.log_parameter > bad.log_parameter
            )
        # The answer is thought to be at this end: the most useful one, which meets the budget, or the most
        # private.
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


def _log_moment(loss: PrivacyLoss) -> float:
    """Return log K(1) of the worse direction; ``PrecisionError`` if it is unknown or omits an infinite loss."""
    with np.errstate(all="ignore"):
        known = [direction.log_moment(AT_ONE) for direction in (loss.remove, loss.add)]
    moments = [math.nan if moment is None else float(moment[0].real) for moment in known]
    if loss.infinite_mass > 0 or not all(0 < moment < math.inf for moment in moments):
        raise PrecisionError(f"K(1) of {len(loss.remove.laws)} laws is not known")
    return math.log(max(moments))


def _log_mu(epsilon: float, delta: float) -> float:
    """Log μ of the Gaussian with this δ at ε."""

    def log_delta_excess(place: float) -> float:
        found = float(GaussianLossDistribution(math.exp(place)).profile(np.array([epsilon]))[0])
        return math.log(max(found, 1e-320)) - math.log(delta)

    if not log_delta_excess(WEAKEST) < 0 < log_delta_excess(STRONGEST):
        return WEAKEST if log_delta_excess(WEAKEST) >= 0 else STRONGEST
    return float(scipy.optimize.brentq(log_delta_excess, WEAKEST, STRONGEST, xtol=1e-3))


SIZE_TOLERANCE = 1e-9
FLOOR = -760.0
"""Stand-in for log δ if δ = 0, computed or allowed."""
WIDE_ANSWER = 1e-3
"""Brackets at the answer that are wider than this fraction of the allowed δ cause a warning."""
FAINT_DELTA = 1e-290
"""Stand-in for an allowed δ of zero as a divisor; smaller values are negligible."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The result of ``calibrate``, with the parameter, its loss (it meets the budget), and the number of
    evaluations.
    """

    parameter: float
    loss: PrivacyLoss = field(repr=False)
    evaluations: int


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

    ``make_loss(parameter)`` is a ``PrivacyLoss``. ``increasing`` says whether it grows with the parameter (a number of
    steps, a sampling rate) or falls (a scale); left out, two evaluations decide. The parameter is sought between
    ``smallest`` and ``largest`` (10⁻¹² to 10¹²; integers, with ``integer=True``, 1 to 10⁹), outwards from 1; an
    end of this range is the answer if it is the most useful one and meets the budget. If an end is omitted, the range
    also ends where ``make_loss`` raises ``InputError``, so the ends are optional for a sampling rate.

    **The private side.** The loss that is returned was shown to meet every point, by its upper bound ``delta``: total
    variation and the cap on infinite loss included, the budget's decimals rounded down. A parameter that is
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
    """
    if not callable(make_loss):
        raise InputError("make_loss", make_loss, "a function from a parameter to a PrivacyLoss")
    question, tolerance = _BudgetPoints.from_budget(budget), check_positive("tolerance", tolerance, "1e-9 is usual")
    # The ends of the range; `InputError` where nothing lies between them.
    check: Callable[[str, object], float] = check_integer if integer else check_positive
    low = check("smallest", (1 if integer else SMALLEST) if smallest is None else smallest)
    high = check("largest", (MOST if integer else LARGEST) if largest is None else largest)
    if not low < high:
        raise InputError("largest", high, f"above smallest={low!r}", "nothing lies between them")
    within = guess_start(
        make_loss, question.points, ParameterRange(low, high, (smallest is not None, largest is not None), integer)
    )
    search = ParameterSearch(make_loss, question.budget_excess, within)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # of parameters that are not the answer
        good, bad = bracket_root(search, increasing)
        found = close_bracket(search, good, bad, tolerance) if good is not None and bad is not None else good
        if found is None:
            raise question.build_refusal(cast(EvaluatedParameter, bad))
        wide = question.wide_bracket_epsilons(found.loss)
    for epsilon in wide:
        found.loss.delta(epsilon)  # known by now: once more for what it warns of
    return Calibration(found.parameter, found.loss, len(search.evaluations_by_parameter))


@dataclass(frozen=True, slots=True)
class _BudgetPoints:
    """The constraints on a loss: points, and the cap on infinite loss."""

    points: tuple[tuple[float, float], ...]
    infinite_loss_cap: float

    @classmethod
    def from_budget(cls, budget: object) -> _BudgetPoints:
        """Return the constraints of a budget, rounded down from its decimals."""
        if not isinstance(budget, Budget):
            raise InputError("budget", budget, "a Budget", "try tightrope.Budget(epsilon=1, delta=1e-6)")
        return cls(budget.rounded_points, at_most(budget.delta))

    def budget_excess(self, loss: PrivacyLoss) -> tuple[float, float]:
        """Return the excess at the worst point, in standard deviations and in multiples of the allowed δ.

        The cap on infinite loss is one of the points.
        """
        spent = [*loss.delta([epsilon for epsilon, _ in self.points]).tolist(), loss.infinite_mass]
        pairs = list(zip(spent, [*(most for _, most in self.points), self.infinite_loss_cap], strict=True))
        return (
            max(_probit_excess(*pair) for pair in pairs),
            max((delta - allowed) / max(allowed, FAINT_DELTA) for delta, allowed in pairs),
        )

    def wide_bracket_epsilons(self, loss: PrivacyLoss) -> list[float]:
        """Return each ε whose bracket of δ is so wide that a more useful parameter may have been missed."""
        brackets = [(epsilon, most, loss.delta_bounds(epsilon)) for epsilon, most in self.points]
        return [epsilon for epsilon, most, found in brackets if found.upper - found.lower > WIDE_ANSWER * most]

    def build_refusal(self, best: EvaluatedParameter) -> InsufficientBudgetError:
        """Return an error that states the loss at the most private end of the range."""
        reached = [(f"delta({epsilon!r})", best.loss.delta(epsilon), delta) for epsilon, delta in self.points]
        asked = [*reached, ("certain failure", best.loss.infinite_mass, self.infinite_loss_cap)]
        broken = " and ".join(f"{name} is {value:.3g}, not {most:.3g}" for name, value, most in asked if value > most)
        return InsufficientBudgetError(
            f"no parameter in the range keeps the budget: at its most private end, {best.parameter!r}, {broken}; "
            "widen the range or raise the budget"
        )


def _probit_excess(delta: float, allowed: float) -> float:
    """Return Φ⁻¹(δ) − Φ⁻¹(allowed), with the sign of δ − allowed under any rounding; very negative if both are 0."""
    if delta == 0 or delta < FAINT_DELTA <= allowed:  # a rounding error of zero
        return _finite_probit(0) - (_finite_probit(allowed) if allowed else 0.0)
    if delta <= allowed:
        return min(0.0, _finite_probit(delta) - _finite_probit(allowed))
    return max(math.ulp(0.0), _finite_probit(delta) - _finite_probit(allowed))


def _finite_probit(delta: float) -> float:
    """Φ⁻¹(δ), finite everywhere."""
    log = max(math.log(delta), FLOOR) if delta > 0 else FLOOR
    return float(special.ndtri_exp(min(log, -1e-16)))


# Noisy stochastic gradient descent (DP-SGD) as data: what a training run does, and its privacy loss.
#
# Each step draws a batch, clips every example's gradient to norm C, adds up, and adds normal noise of standard
# deviation σC to every coordinate; σ is the *noise multiplier*. Which batches are drawn decides what is protected:
#
# Poisson   every example takes part with probability q = batch/examples, independently. Neighbors differ by an example
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
        known = " or ".join(repr(way.value) for way in Sampling)
        raise InputError("sampling", name, known, "poisson: add-remove neighbors; subset: replace-one") from None
