"""The one value at the heart: the privacy loss of a mechanism, or of any composition of mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self, overload

import numpy as np
from numpy.typing import ArrayLike

from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.checks import finite, whole
from tightrope.privacy import tradeoff
from tightrope.privacy.bounds import Bounds
from tightrope.privacy.composition import Composition
from tightrope.privacy.engine import Engine, choose
from tightrope.privacy.gaussian import GaussianLaw
from tightrope.privacy.law import Floats, LossLaw
from tightrope.privacy.neighbours import Neighbours
from tightrope.privacy.search import least_epsilon
from tightrope.privacy.subsampled import PoissonAdd, PoissonRemove
from tightrope.privacy.subsampled_gaussian import PoissonGaussian

MOST_RUNS = 10**12


@dataclass(frozen=True, slots=True, eq=False)
class PrivacyLoss:
    """Law of the privacy loss of a dominating pair, both directions, in nats.

    ``+`` and ``k *`` compose. Composition holds for adaptively chosen *mechanisms*, with **parameters fixed in
    advance**: a parameter chosen after seeing earlier outputs needs a filter (theory §2).

    ``neighbours`` says which change of the data is meant; adding losses of different relations raises ``InputError``.

    >>> from tightrope import gaussian
    >>> loss = 100 * gaussian(scale=20).loss
    >>> round(loss.epsilon(1e-6), 6)
    2.254085
    """

    remove: Composition
    add: Composition
    neighbours: Neighbours = Neighbours.UNSPECIFIED
    _engines: dict[str, tuple[Engine, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, law: LossLaw, *, reverse: LossLaw | None = None, neighbours: Neighbours = Neighbours.UNSPECIFIED
    ) -> Self:
        """The loss of one mechanism: ``law`` for one order of the pair, ``reverse`` (default: its own) the other."""
        other = law.reverse() if reverse is None else reverse
        return cls(Composition.of(law), Composition.of(law if other == law else other), neighbours)

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        relation = self.neighbours.with_other(other.neighbours)
        return PrivacyLoss(self.remove + other.remove, self.add + other.add, relation)

    def __radd__(self, other: object) -> PrivacyLoss:
        """``sum`` of losses starts at 0."""
        return self if other == 0 else NotImplemented

    def __mul__(self, count: int) -> PrivacyLoss:
        """``count`` independent runs with the same parameters."""
        times = whole("count", count, at_least=0, remedy="a loss can be repeated a whole number of times only")
        if not times <= MOST_RUNS:
            raise InputError("count", count, f"at most {MOST_RUNS}", "nobody runs a mechanism more often")
        return PrivacyLoss(self.remove * times, self.add * times, self.neighbours)

    __rmul__ = __mul__

    def poisson_sample(self, rate: float) -> PrivacyLoss:
        """The mechanism run on a Poisson sample: each record takes part with probability ``rate`` (theory §2).

        Neighbours: add or remove one record. Sample each step *before* composing: only a single step can be sampled
        (Gaussian releases add up to one Gaussian: sampled afterwards, they all run on one and the same sample).
        Raises ``InputError`` unless 0 < rate ≤ 1.

        >>> from tightrope import gaussian
        >>> step = gaussian(scale=1.3).loss.poisson_sample(256 / 60_000)
        >>> round((3515 * step).delta(1), 12)
        9.42261e-07
        """
        rate = finite("rate", rate)
        if not 0 < rate <= 1:
            raise InputError("rate", rate, "a sampling rate in (0, 1]", "1 means that everyone takes part")
        relation = self.neighbours.with_other(Neighbours.ADD_REMOVE)
        if rate == 1:
            return PrivacyLoss(self.remove, self.add, relation)
        remove, add = _single(self.remove), _single(self.add)
        return PrivacyLoss(Composition.of(_remove(remove, rate)), Composition.of(_add(add, rate)), relation)

    @property
    def infinite_mass(self) -> float:
        """Least δ at any ε: the probability that an output gives somebody away with certainty."""
        return max(self.remove.infinite_mass, self.add.infinite_mass)

    @property
    def engine(self) -> str:
        """Which method computes δ: 'closed form', 'recurrence', 'lattice', 'contour' or 'grid'."""
        return " and ".join(dict.fromkeys(engine.name for engine in self._both()))

    def _both(self) -> tuple[Engine, ...]:
        """The engines of the two directions; one where they are the same law. Built once."""
        if "both" not in self._engines:
            same = self.remove.laws == self.add.laws and self.remove.counts == self.add.counts
            directions = (self.remove,) if same else (self.remove, self.add)
            self._engines["both"] = tuple(choose(direction) for direction in directions)
        return self._engines["both"]

    def _interval(self, epsilon: float) -> tuple[float, float]:
        """[lower, upper] of δ(ε), the worse direction."""
        found = [engine.delta(epsilon) for engine in self._both()]
        trivial = 0.0 - math.expm1(min(epsilon, 0.0))  # 1 − e^ε: no pair has less
        low = max(math.nextafter(trivial, -1.0) if trivial else 0.0, *(low for low, _ in found))
        high = max(math.nextafter(trivial, 2.0) if trivial else 0.0, *(high for _, high in found))
        if high == 0 and epsilon < max(self.remove.largest, self.add.largest):
            high = math.ulp(0.0)  # positive, but below the smallest double
        if not low <= high:
            raise PrecisionError(f"delta at epsilon={epsilon!r} could not be enclosed: {low!r} > {high!r}")
        return min(low, 1.0), min(1.0, high)

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: Floats | list[float]) -> Floats: ...
    def delta(self, epsilon: ArrayLike) -> float | Floats:
        """Upper bound on δ(ε) = sup_A P(A) − e^ε Q(A), the worse direction; any real ε; arrays give arrays.

        The bound is the upper end of ``delta_bounds``. Raises ``InputError`` where ε is not finite.

        >>> from tightrope import laplace
        >>> round(laplace(scale=1).loss.delta(0.5), 12)
        0.221199216929
        """
        return self._each("epsilon", epsilon, lambda e: self._interval(e)[1])

    def delta_bounds(self, epsilon: ArrayLike) -> Bounds:
        """``Bounds(lower, upper)`` around δ(ε); see ``delta``."""
        lower = self._each("epsilon", epsilon, lambda e: self._interval(e)[0])
        return Bounds(lower, self._each("epsilon", epsilon, lambda e: self._interval(e)[1]))

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: Floats | list[float]) -> Floats: ...
    def epsilon(self, delta: ArrayLike) -> float | Floats:
        """Least ε ≥ 0 for which (ε, δ) is proven: an upper bound; ∞ where δ is below the mass of infinite loss.

        Raises ``InputError`` unless 0 ≤ δ < 1.

        >>> from tightrope import approx_dp
        >>> round((10 * approx_dp(0.1).loss).epsilon(1e-6), 9)
        0.999370906
        """
        return self._each("delta", delta, lambda d: self._least(d, private=True))

    def epsilon_bounds(self, delta: ArrayLike) -> Bounds:
        """``Bounds(lower, upper)`` around the least ε ≥ 0; see ``epsilon``."""
        lower = self._each("delta", delta, lambda d: self._least(d, private=False))
        return Bounds(lower, self._each("delta", delta, lambda d: self._least(d, private=True)))

    def _least(self, delta: float, *, private: bool) -> float:
        if not 0 <= delta < 1:
            raise InputError(
                "delta", delta, "a number in [0, 1)", "a typical value is well below one over the number of people"
            )
        if delta < self.infinite_mass:
            return math.inf
        end = 1 if private else 0
        top = max(self.remove.largest, self.add.largest)
        if delta <= self.infinite_mass:
            proven = self._interval(top)[1] <= delta
            return math.nextafter(top, 0.0) if not private else top if proven else math.inf
        return least_epsilon(lambda e: self._interval(e)[end], delta, private=private)

    def total_variation(self) -> float:
        """Upper bound on η = δ(0) = TV(P, Q): how much better than a coin an attacker can do.

        >>> from tightrope import gaussian
        >>> round(gaussian(scale=1).loss.total_variation(), 9)
        0.382924923
        """
        return self._interval(0.0)[1]

    def tradeoff(self, false_positive_rate: ArrayLike) -> float | Floats:
        """Lower bound on the type-II error of every attack with this type-I error (the trade-off function).

        f(t) = sup_ε 1 − δ(ε) − e^ε t for each direction, the smaller of the two (theory §1). Raises ``InputError``
        unless 0 ≤ t ≤ 1.

        >>> from tightrope import gaussian
        >>> round(gaussian(scale=1).loss.tradeoff(0.05), 6)
        0.740489
        """
        return self._each("false_positive_rate", false_positive_rate, lambda t: 1.0 - self._caught(t))

    def true_positive_rate(self, false_positive_rate: ArrayLike) -> float | Floats:
        """Upper bound on how often an attack with this false-positive rate is right about a member.

        1 − f(t) = inf_ε δ(ε) + e^ε t, to full relative accuracy however small t is; see ``tradeoff``.

        >>> from tightrope import gaussian
        >>> print(f"{gaussian(scale=1).loss.true_positive_rate(1e-12):.6e}")
        7.973580e-10
        """
        return self._each("false_positive_rate", false_positive_rate, self._caught)

    def _caught(self, rate: float) -> float:
        if not 0 <= rate <= 1:
            raise InputError("false_positive_rate", rate, "a probability in [0, 1]")
        directions = zip((self.remove, self.add), self._both(), strict=False)
        return max(tradeoff.true_positive_rate(_upper(e), rate, d.infinite_mass) for d, e in directions)

    @staticmethod
    def _each(name: str, values: ArrayLike, answer: Callable[[float], float]) -> float | Floats:
        """Scalars in, float out; arrays in, arrays out."""
        try:
            flat = np.asarray(values)
        except ValueError:
            raise InputError(name, values, "a number, or an array of numbers") from None
        if flat.ndim == 0:
            return float(answer(finite(name, flat.item() if isinstance(values, np.ndarray) else values)))
        if flat.size == 0:
            raise InputError(name, values, "a number, or an array with at least one entry")
        answers = [answer(finite(name, value)) for value in flat.ravel().tolist()]
        return np.array(answers, dtype=np.float64).reshape(flat.shape)


def _upper(engine: Engine) -> Callable[[float], float]:
    return lambda epsilon: engine.delta(epsilon)[1]


def _single(total: Composition) -> LossLaw:
    """The one law of a step; compositions cannot be sampled after the fact."""
    if total.counts != (1,):
        count = sum(total.counts)
        raise InputError("loss", count, "a single step", f"sample each of the {count} steps first, then compose them")
    return total.laws[0]


@lru_cache(maxsize=256)
def _remove(law: LossLaw, rate: float) -> LossLaw:
    return PoissonGaussian(law.mu, rate, remove=True) if isinstance(law, GaussianLaw) else PoissonRemove(law, rate)


@lru_cache(maxsize=256)
def _add(law: LossLaw, rate: float) -> LossLaw:
    return PoissonGaussian(law.mu, rate, remove=False) if isinstance(law, GaussianLaw) else PoissonAdd(law, rate)
