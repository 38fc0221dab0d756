"""The least noise, the most steps or the largest sample that a budget allows, in a handful of evaluations.

Every point (ε_i, δ_i) of a budget is put on the scale of standard deviations, Φ⁻¹(δ(ε_i)) − Φ⁻¹(δ_i): there the loss
of noise is nearly linear in its size, from δ near one down to 10⁻³⁰⁰. The largest of these differences, the *excess*,
is negative exactly where all points hold; its root is bracketed (``parameter_search``) and closed in on
(``parameter_root``) in the logarithm of the parameter.
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

from tightrope.accounting.distributions.gaussian import GaussianLaw
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget, Number, at_most, decimal
from tightrope.errors import BudgetRefused, InputError, PrecisionError, PrecisionWarning
from tightrope.mechanisms.gaussian import gaussian
from tightrope.noise.parameter_search import LARGEST, MOST, SMALLEST, MakeLoss, Range, Search, Tried, bracket, closed
from tightrope.numerics.checks import positive, whole

# Where a search for a parameter begins: near the answer, at next to no cost.
#
# The Gaussian that just keeps a budget has K(1) = μ² (its Rényi divergence of order two). The parameter at which a
# loss has as much is found from that one moment, which costs a thousandth of a δ. It is a guess: nothing rests on it.

AT_ONE = np.ones(1, dtype=np.complex128)
ROUGHLY = 0.02
"""How near, relatively, the guess comes to the parameter with that moment."""
FAINTEST_DELTA = 1e-30
"""A smaller δ, or none at all, is taken as this."""
WEAKEST, STRONGEST = math.log(1e-12), math.log(1e3)
"""Between these the logarithm of μ is sought."""


def guessed(make_loss: MakeLoss, points: Iterable[tuple[float, float]], within: Range) -> Range:
    """The same range, with a start near the answer; as it was where the loss does not know the moment."""
    target = 2 * min(_log_mu(epsilon, max(delta, FAINTEST_DELTA)) for epsilon, delta in points)

    def exceeded(loss: PrivacyLoss) -> tuple[float, float]:
        excess = _log_moment(loss) - target
        return excess, excess

    search = Search(make_loss, exceeded, within)
    try:
        good, bad = bracket(search, None)
        if good is not None and bad is not None:
            begin = closed(search, good, bad, ROUGHLY).parameter
            return replace(search.range, begin=begin, falling=good.place > bad.place)
        # The answer is thought to be at this end: the most useful one, which keeps the budget, or the most
        # private.
        end = good or bad
        if end is None or end.parameter in (SMALLEST, LARGEST):
            return search.range
        return replace(search.range, begin=end.parameter, falling=(end.parameter == search.range.high) != end.keeps)
    except (InputError, PrecisionError):
        return within


def _log_moment(loss: PrivacyLoss) -> float:
    """Log K(1) of the worse direction; ``PrecisionError`` where it is not known, or leaves an infinite loss out."""
    with np.errstate(all="ignore"):
        known = [direction.log_moment(AT_ONE) for direction in (loss.remove, loss.add)]
    moments = [math.nan if moment is None else float(moment[0].real) for moment in known]
    if loss.infinite_mass > 0 or not all(0 < moment < math.inf for moment in moments):
        raise PrecisionError(f"K(1) of {len(loss.remove.laws)} laws is not known")
    return math.log(max(moments))


def _log_mu(epsilon: float, delta: float) -> float:
    """Log μ of the Gaussian with this δ at ε."""

    def excess(place: float) -> float:
        found = float(GaussianLaw(math.exp(place)).profile(np.array([epsilon]))[0])
        return math.log(max(found, 1e-320)) - math.log(delta)

    if not excess(WEAKEST) < 0 < excess(STRONGEST):
        return WEAKEST if excess(WEAKEST) >= 0 else STRONGEST
    return float(scipy.optimize.brentq(excess, WEAKEST, STRONGEST, xtol=1e-3))


SIZE_TOLERANCE = 1e-9
FLOOR = -760.0
"""Log δ of what is exactly zero, or asked to be."""
WIDE_ANSWER = 1e-3
"""Brackets at the answer that are wider than this part of what is allowed are warned of."""
FAINT_DELTA = 1e-290
"""What stands for an allowed δ of zero where it divides; less than this is next to nothing."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What ``calibrate`` found: the parameter, the loss there (it keeps the budget), and how many losses were made."""

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
    """The most useful parameter whose loss keeps every point of a budget: smallest scale, or largest count or rate.

    ``make_loss(parameter)`` is a ``PrivacyLoss``. ``increasing`` says whether it grows with the parameter (a number of
    steps, a sampling rate) or falls (a scale); left out, two evaluations decide. The parameter is sought between
    ``smallest`` and ``largest`` (10⁻¹² to 10¹²; whole numbers, with ``integer=True``, 1 to 10⁹), outwards from 1; an
    end of this range is the answer where it is the most useful one and keeps the budget. An end that is left out may
    be nearer: where ``make_loss`` raises ``InputError``, the range ends. So a sampling rate needs none.

    **The private side.** The loss that is returned was shown to keep every point, by its upper bound ``delta``: total
    variation and the cap on infinite loss included, the budget's decimals rounded down. A parameter that is
    ``tolerance`` (relative; one, for whole numbers) more useful was shown not to. That nothing still more useful
    keeps the budget is true where the loss is monotone in the parameter, which is assumed and not checked: a table
    that is cut off, or a bound that is loose in places, may break it by a little. What is returned is private even
    then. Usually 6 to 12 evaluations.

    Neighbours: whatever the loss speaks of. Raises ``InputError`` for nonsense, ``BudgetRefused`` where nothing in the
    range keeps the budget.

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
    question, tolerance = _Question.of(budget), positive("tolerance", tolerance, "1e-9 is usual")
    # The ends of the range; `InputError` where nothing lies between them.
    check: Callable[[str, object], float] = whole if integer else positive
    low = check("smallest", (1 if integer else SMALLEST) if smallest is None else smallest)
    high = check("largest", (MOST if integer else LARGEST) if largest is None else largest)
    if not low < high:
        raise InputError("largest", high, f"above smallest={low!r}", "nothing lies between them")
    within = guessed(make_loss, question.points, Range(low, high, (smallest is not None, largest is not None), integer))
    search = Search(make_loss, question.exceeded, within)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # of parameters that are not the answer
        good, bad = bracket(search, increasing)
        found = closed(search, good, bad, tolerance) if good is not None and bad is not None else good
        if found is None:
            raise question.refused(cast(Tried, bad))
        wide = question.wide(found.loss)
    for epsilon in wide:
        found.loss.delta(epsilon)  # known by now: once more for what it warns of
    return Calibration(found.parameter, found.loss, len(search.seen))


@dataclass(frozen=True, slots=True)
class _Question:
    """What a loss must keep: points, and the cap on infinite loss."""

    points: tuple[tuple[float, float], ...]
    cap: float

    @classmethod
    def of(cls, budget: object) -> _Question:
        """None above the budget's decimals."""
        if not isinstance(budget, Budget):
            raise InputError("budget", budget, "a Budget", "try tightrope.Budget(epsilon=1, delta=1e-6)")
        return cls(budget.rounded, at_most(budget.delta))

    def exceeded(self, loss: PrivacyLoss) -> tuple[float, float]:
        """By how much the worst point is exceeded, in standard deviations and in multiples of what is allowed.

        The cap on infinite loss is one of the points.
        """
        spent = [*loss.delta([epsilon for epsilon, _ in self.points]).tolist(), loss.infinite_mass]
        pairs = list(zip(spent, [*(most for _, most in self.points), self.cap], strict=True))
        return max(_probit_excess(*pair) for pair in pairs), max(_multiple(*pair) for pair in pairs)

    def wide(self, loss: PrivacyLoss) -> list[float]:
        """Where the bracket of δ may hide how much more would have been allowed."""
        brackets = [(epsilon, most, loss.delta_bounds(epsilon)) for epsilon, most in self.points]
        return [epsilon for epsilon, most, found in brackets if found.upper - found.lower > WIDE_ANSWER * most]

    def refused(self, best: Tried) -> BudgetRefused:
        """What is possible at the most private end of the range."""
        reached = [(f"delta({epsilon!r})", best.loss.delta(epsilon), delta) for epsilon, delta in self.points]
        asked = [*reached, ("certain failure", best.loss.infinite_mass, self.cap)]
        broken = " and ".join(f"{name} is {value:.3g}, not {most:.3g}" for name, value, most in asked if value > most)
        return BudgetRefused(
            f"no parameter in the range keeps the budget: at its most private end, {best.parameter!r}, {broken}; "
            "widen the range or raise the budget"
        )


def _probit_excess(delta: float, allowed: float) -> float:
    """Φ⁻¹(δ) − Φ⁻¹(allowed), with the sign of δ − allowed whatever the rounding; far below where both are zero."""
    if delta == 0 or delta < FAINT_DELTA <= allowed:  # what is left of nothing by rounding says nothing
        return _deviations(0) - (_deviations(allowed) if allowed else 0.0)
    if delta <= allowed:
        return min(0.0, _deviations(delta) - _deviations(allowed))
    return max(math.ulp(0.0), _deviations(delta) - _deviations(allowed))


def _multiple(delta: float, allowed: float) -> float:
    """(δ − allowed) / allowed; δ itself over ``FAINT_DELTA`` where nothing is allowed."""
    return (delta - allowed) / max(allowed, FAINT_DELTA)


def _deviations(delta: float) -> float:
    """Φ⁻¹(δ), finite everywhere."""
    log = max(math.log(delta), FLOOR) if delta > 0 else FLOOR
    return float(special.ndtri_exp(min(log, -1e-16)))


# Noisy stochastic gradient descent (DP-SGD) as data: what a training run does, and its privacy loss.
#
# Each step draws a batch, clips every example's gradient to norm C, adds up, and adds normal noise of standard
# deviation σC to every coordinate; σ is the *noise multiplier*. Which batches are drawn decides what is protected:
#
# Poisson   every example takes part with probability q = batch/examples, independently. Neighbours differ by an example
#           that is added or removed; the clipped sum moves by at most C: a sampled Gaussian of sensitivity 1.
# subset    exactly ``batch`` of the examples, without replacement. Neighbours differ by one example that is *replaced*;
#           one clipped gradient goes and another comes, so the sum moves by up to **2C**: sensitivity 2 at the same σ.


class Sampling(StrEnum):
    """How batches are drawn."""

    POISSON = "poisson"
    SUBSET = "subset"


@dataclass(frozen=True, slots=True)
class DpSgd:
    """A training run: ``steps`` batches of ``batch`` (on average, for Poisson) out of ``examples`` examples.

    ``noise`` is the noise multiplier σ: standard deviation of the noise over the clipping norm. Raises ``InputError``
    unless all are positive, whole where they count, and the batch is no larger than the data.

    >>> run = DpSgd(examples=60_000, batch=256, noise=1.3, steps=3515)
    >>> round(run.loss.epsilon(1e-5), 9), run.loss.neighbours.value
    (0.864409917, 'add-remove')
    """

    examples: int
    batch: int
    noise: float
    steps: int
    sampling: Sampling = Sampling.POISSON

    def __post_init__(self) -> None:
        whole("examples", self.examples)
        whole("steps", self.steps)
        positive("noise", self.noise, "1 is usual")
        if not whole("batch", self.batch) <= self.examples:
            raise InputError("batch", self.batch, f"at most the {self.examples} examples")
        object.__setattr__(self, "sampling", sampling_named(self.sampling))

    @property
    def rate(self) -> float:
        """The share of the examples in a batch."""
        return self.batch / self.examples

    @property
    def step(self) -> PrivacyLoss:
        """The loss of one step; its neighbours are add-remove for Poisson batches, replace-one for subsets."""
        if self.sampling is Sampling.POISSON:
            return gaussian(scale=self.noise).loss.poisson_sample(self.rate)
        return gaussian(scale=self.noise, sensitivity=2).loss.subset_sample(self.batch, self.examples)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of all steps, with parameters fixed in advance; every model on the way may be published."""
        return self.steps * self.step


def least_noise_multiplier(
    budget: Budget, *, examples: int, batch: int, steps: int, sampling: Sampling = Sampling.POISSON
) -> DpSgd:
    """The run with the least noise multiplier whose loss keeps every point of the budget; see ``calibrate``.

    Raises ``InputError`` for nonsense, ``BudgetRefused`` where no multiplier up to 10⁶ keeps the budget.

    >>> run = least_noise_multiplier(Budget(epsilon=1, delta=1e-5), examples=60_000, batch=256, steps=3515)
    >>> round(run.noise, 6), run.loss.delta(1) <= 1e-5
    (1.184998, True)
    """

    def run(noise: float) -> DpSgd:
        return DpSgd(examples, batch, noise, steps, sampling)

    return run(calibrate(lambda noise: run(noise).loss, budget, increasing=False).parameter)


def steps_in(epochs: Number, *, examples: int, batch: int) -> int:
    """The whole batches in so many passes over the data: ⌊epochs · examples / batch⌋, of exact decimals, at least 1.

    Training loops round differently (some drop the last batch of each pass, some add one): count their steps.

    >>> steps_in(15, examples=60_000, batch=256)
    3515
    """
    passes = decimal("epochs", epochs)
    if not 0 < passes <= 10**9:
        raise InputError("epochs", epochs, "a number above 0, at most 10^9")
    return max(1, math.floor(passes * whole("examples", examples) / whole("batch", batch)))


def sampling_named(name: object) -> Sampling:
    """The way of sampling of that name; raises ``InputError`` for any other."""
    try:
        return Sampling(name)  # type: ignore[arg-type]
    except ValueError:
        known = " or ".join(repr(way.value) for way in Sampling)
        raise InputError("sampling", name, known, "poisson: add-remove neighbours; subset: replace-one") from None
