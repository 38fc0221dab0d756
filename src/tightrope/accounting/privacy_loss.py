"""The privacy loss of a mechanism, or of any composition of mechanisms: the central class of the package."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from tightrope.accounting import tradeoff
from tightrope.accounting.bounds import Bounds, TrueValueOf
from tightrope.accounting.curves import Curves, MonotoneBrackets, evaluate_each, evaluate_each_pair
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.method import Method, least_epsilon, round_root_to_side, solve_from_guess
from tightrope.accounting.methods.select import adds_envelopes, choose_method
from tightrope.accounting.neighbors import Neighbors
from tightrope.display import Displayed, Rounded, Shown, Summary, reporting_package
from tightrope.errors import InputError, PrecisionError, PrecisionWarning, TightropeError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, check_number, check_positive
from tightrope.numerics.checks import check_probability as probability_in_unit
from tightrope.numerics.rounding import SUBNORMAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightrope.accounting.summaries import GaussianLimit
    from tightrope.display import Figure

MAX_RUNS = 10**12
MAX_RECORDS = 10**18
MAX_ALLOCATED_STEPS = 10**6
WIDE = 1e-3
"""Bounds on δ with a wider relative gap cause a warning, unless the rounding of ε explains the gap:"""
ROUNDED_EPSILON = 1e-12
"""near the largest loss δ falls to 0, and the gap need not be smaller than the effect of this relative error of ε."""


SHOWN_DELTAS = (1e-5, 1e-6, 1e-8)
"""Values of δ for which ε is shown in a notebook."""
PLOTTED_DELTA, SMALLEST_PLOT, LARGEST_PLOT, PLOTTED_POINTS = 1e-9, 1e-6, 100.0, 41
"""δ(ε) is drawn to the ε of this δ, between these limits; curves have this many points."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrivacyLoss(Displayed, Curves):
    """Distribution of the privacy loss of a dominating pair, in both directions, in nats.

    ``+`` and ``k *`` compose. Composition holds for adaptively chosen *mechanisms*, with **parameters fixed in
    advance**: a parameter chosen after seeing earlier outputs needs a filter (``tightrope.accounting.filters``).

    ``neighbors`` says which change of the data is meant; adding losses of different relations raises ``InputError``.

    >>> from tightrope import gaussian
    >>> loss = 100 * gaussian(scale=20).loss
    >>> round(loss.epsilon(1e-6), 6)
    2.254085
    """

    remove: Composition
    add: Composition
    neighbors: Neighbors = Neighbors.UNSPECIFIED
    _engines: dict[str, tuple[Method, ...]] = field(default_factory=dict, repr=False)
    _answers: MonotoneBrackets = field(default_factory=MonotoneBrackets, repr=False)
    _releases: int = field(default=1, repr=False)
    """Number of releases composed, even if their distributions were merged into one."""
    _stated_for: TrueValueOf = field(default=TrueValueOf.PAIRS, repr=False)
    _group_size: int = field(default=1, repr=False)
    """Number of records that are added or removed together."""

    @classmethod
    def from_distribution(
        cls,
        law: LossDistribution,
        *,
        reverse: LossDistribution | None = None,
        neighbors: Neighbors = Neighbors.UNSPECIFIED,
        true_value_of: TrueValueOf = TrueValueOf.PAIRS,
    ) -> Self:
        """Loss of one mechanism: ``law`` for one order of the pair, ``reverse`` (default: ``law``) for the other.

        ``true_value_of`` says which mechanisms have this loss, and not less.
        """
        other = law.reverse_distribution() if reverse is None else reverse
        return cls(
            Composition.from_distribution(law),
            Composition.from_distribution(law if other == law else other),
            neighbors,
            _stated_for=true_value_of,
        )

    def text_summary(self) -> Summary:
        """Return the number of releases and the distributions, without a computation."""
        kinds = {type(law).__name__.removesuffix("LossDistribution") for law in self.remove.laws}
        facts: list[tuple[str, Shown]] = [
            ("releases", self._releases),
            ("distributions of one release", ", ".join(sorted(kinds)) or "no loss"),
            ("neighbors", self.neighbors.value),
        ]
        return Summary("loss.epsilon(delta), loss.delta(epsilon), loss.plot()", facts)

    def notebook_summary(self) -> Summary:
        """Return also ε at a few δ and the total variation, rounded up; "not computed" where that fails."""
        about = self.text_summary()
        rows = [(f"{delta:g}", self._shown_bound(partial(self.epsilon, delta))) for delta in SHOWN_DELTAS]
        facts = [*about.facts, ("total variation", self._shown_bound(self.total_variation))]
        return Summary("", facts, ("delta", "epsilon, at most"), rows)

    def _shown_bound(self, compute: Callable[[], float]) -> Shown:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)
            try:
                return Rounded(compute(), "up")
            except TightropeError:
                return "not computed"

    def plot(self, *, largest_epsilon: float | None = None) -> Figure:
        """Draw the trade-off curve of the best attacker next to δ(ε), both upper bounds, as a matplotlib figure.

        ``largest_epsilon`` is the end of the second curve, by default the ε at δ = 10⁻⁹, at most 100. Raises
        ``InputError`` unless it is positive, and ``MissingExtraError`` without matplotlib.
        """
        if largest_epsilon is None:
            shown = self._shown_bound(partial(self.epsilon, PLOTTED_DELTA))
            end = shown.value if isinstance(shown, Rounded) else math.inf
            largest_epsilon = min(max(end, SMALLEST_PLOT), LARGEST_PLOT)
        epsilons = np.linspace(0.0, check_positive("largest_epsilon", largest_epsilon), PLOTTED_POINTS)
        rates = (1 - np.cos(np.linspace(0.0, np.pi, PLOTTED_POINTS))) / 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)
            profile = list(zip(epsilons.tolist(), self.delta(epsilons).tolist(), strict=True))
            tradeoff = list(zip(rates.tolist(), self.true_positive_rate(rates).tolist(), strict=True))
        figure: Figure = reporting_package().plots.loss_curves(tradeoff, profile)
        return figure

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        relation = self.neighbors.with_other(other.neighbors)
        count = self._releases + other._releases
        stated = self._stated_for.with_other(other._stated_for)
        size = self._group_size
        if other._group_size != size:
            size = self.neighbors.common_group_size(size, other.neighbors, other._group_size)
        parts = (self.remove + other.remove, self.add + other.add)
        return PrivacyLoss(*parts, relation, _releases=count, _stated_for=stated, _group_size=size)

    def __radd__(self, other: object) -> PrivacyLoss:
        """``sum`` of losses starts at 0."""
        return self if other == 0 else NotImplemented

    def __mul__(self, count: int) -> PrivacyLoss:
        """``count`` independent runs with the same parameters."""
        times = check_integer("count", count, at_least=0, remedy="a loss can be repeated a whole number of times only")
        if not times <= MAX_RUNS:
            raise InputError("count", count, f"at most {MAX_RUNS}", "larger counts are not supported")
        count = times * self._releases
        parts = (self.remove * times, self.add * times)
        stated, size = self._stated_for, self._group_size
        return PrivacyLoss(*parts, self.neighbors, _releases=count, _stated_for=stated, _group_size=size)

    __rmul__ = __mul__

    def poisson_sample(self, rate: float, *, neighbors: Neighbors | str = Neighbors.ADD_REMOVE) -> PrivacyLoss:
        """The mechanism run on a Poisson sample: each record is included with probability ``rate`` (theory §2, §3.2).

        Neighbors: add or remove one record, unless ``neighbors`` is "zero-out" (its contribution becomes zero: the same
        loss) or "replace-one" (another record takes its place; only for Gaussian mechanisms). In all three cases the
        sensitivity refers to adding or removing a record (for a clipped sum: the clipping norm).

        Sample each step *before* composing: ``k * loss.poisson_sample(rate)`` draws a new sample for every step. If all
        steps use the same sample, they are one mechanism and must be stated as one (k Gaussian releases are one of
        ``scale / sqrt(k)``). At rate 0 the sample is always empty, and the loss is 0. Raises ``InputError`` unless
        0 ≤ rate ≤ 1, for a composition, for a loss stated for other neighbors, and for "replace-one" with other
        mechanisms or with a group.

        >>> from tightrope import gaussian
        >>> step = gaussian(scale=1.3).loss.poisson_sample(256 / 60_000)
        >>> round((3515 * step).delta(1), 12)
        9.42261e-07
        >>> step = gaussian(scale=1.3).loss.poisson_sample(256 / 60_000, neighbors="replace-one")
        >>> round((3515 * step).delta(1), 12)
        0.001293462367
        """
        checked = probability_in_unit("rate", rate, "1 means that everyone takes part, 0 that nobody does")
        relation = self._sampled_relation(neighbors)
        from tightrope.accounting import sampling

        sampling.require_single_release(self.remove, self._releases, "sample")
        sample = sampling.replace_one_sampled if relation is Neighbors.REPLACE_ONE else sampling.sample_poisson
        return self._with_directions(sample(self.remove, self.add, checked), relation)

    def truncated_poisson_sample(self, rate: float, m: int, n: int) -> PrivacyLoss:
        """A Gaussian mechanism run on a Poisson sample of n records, of which m at random are kept if it is larger.

        Neighbors: replace one record (or set its contribution to zero, which loses no more); n is public. The
        sensitivity is that of adding a record. The bound holds even if the size of the sample is published (theory
        §3.2). Sample each step before composing, as for ``poisson_sample``. Raises ``InputError`` unless 0 < rate < 1
        and 1 ≤ m ≤ n, and as ``poisson_sample`` does for replaced records.

        >>> from tightrope import gaussian
        >>> step = gaussian(scale=1).loss.truncated_poisson_sample(0.01, 160, 10_000)
        >>> round((1000 * step).delta(3), 12)
        3.879764e-06
        """
        checked = probability_in_unit("rate", rate)
        if not 0 < checked < 1:
            raise InputError("rate", rate, "between 0 and 1", "for batches of fixed size use subset_sample")
        size, population = check_integer("m", m), check_integer("n", n)
        if not size <= population <= MAX_RECORDS:
            raise InputError("m and n", (m, n), f"such that m <= n <= {MAX_RECORDS:g}")
        relation = self._sampled_relation(Neighbors.REPLACE_ONE)
        from tightrope.accounting import sampling

        sampling.require_single_release(self.remove, self._releases, "sample")
        directions = sampling.truncated_poisson_sampled(self.remove, self.add, checked, (size, population))
        return replace(self._with_directions(directions, relation), _stated_for=TrueValueOf.PAIRS)

    def _sampled_relation(self, neighbors: Neighbors | str) -> Neighbors:
        """Return the relation of a Poisson sample of this loss."""
        self.neighbors.for_sample("poisson_sample", Neighbors.ADD_REMOVE)
        sampled = (Neighbors.ADD_REMOVE, Neighbors.ZERO_OUT, Neighbors.REPLACE_ONE)
        if neighbors not in sampled:
            raise InputError("neighbors", neighbors, f"one of {', '.join(sampled)}")
        relation = Neighbors(neighbors)
        if relation is Neighbors.REPLACE_ONE and self._group_size > 1:
            remedy = "the replacement of several records of a Poisson sample has no statement"
            raise InputError("neighbors", relation.value, "add-remove or zero-out for a group", remedy)
        return relation

    def random_allocation(self, steps: int) -> PrivacyLoss:
        """One epoch in which each record is in exactly one of ``steps`` steps, chosen at random and independently.

        This is the loss of one step, a Gaussian one, and the result that of all steps together; epochs compose by ``+``
        and ``k *``. Neighbors: add or remove one record; of a loss of a group, whole groups are in one step. The
        batches have random sizes: a shuffled loader with a fixed batch size is not covered
        (``docs/proofs/allocation.md``). Raises ``InputError`` unless 1 ≤ steps ≤ 10⁶, for a composition, for a loss
        that is not Gaussian, and for one stated for other neighbors.

        >>> from tightrope import gaussian
        >>> round(gaussian(scale=1).loss.random_allocation(100).delta(0.5), 13)
        4.40890803e-05
        """
        count = check_integer("steps", steps)
        if not 1 <= count <= MAX_ALLOCATED_STEPS:
            raise InputError("steps", steps, f"between 1 and {MAX_ALLOCATED_STEPS}")
        relation = self.neighbors.for_sample("random_allocation", Neighbors.ADD_REMOVE)
        from tightrope.accounting import sampling

        sampling.require_single_release(self.remove, self._releases, "allocate")
        allocated = sampling.allocate_gaussian(self.remove, self.add, count)
        return self._with_directions(allocated, relation)

    def subset_sample(self, m: int, n: int) -> PrivacyLoss:
        """The mechanism run on m of n records, drawn without replacement (GI Prop. 1, theory §2).

        δ_p(ε) = p δ(log(1 + (e^ε − 1)/p)) for ε ≥ 0 with p = m/n. Neighbors: replace one record, n is public; the
        sensitivity of the mechanism must also refer to replacement (for a clipped sum: twice the clipping norm). Sample
        each step before composing, as for ``poisson_sample``. With m = 0 the loss is 0. Raises ``InputError`` unless
        0 ≤ m ≤ n and n ≥ 1, for a composition, for a pair whose two orders differ, and for a loss stated for other
        neighbors.

        >>> from tightrope import approx_dp
        >>> loss = approx_dp(1, delta=1e-5).loss.subset_sample(10, 1000)
        >>> round(loss.epsilon(2e-7), 9), round(loss.total_variation(), 12)
        (0.017036498, 0.004621225361)
        """
        size, population = check_integer("m", m, at_least=0), check_integer("n", n)
        if not size <= population <= MAX_RECORDS:
            remedy = "a subset is no larger than the whole, and nobody holds more records"
            raise InputError("m and n", (m, n), f"such that m <= n <= {MAX_RECORDS:g}", remedy)
        relation = self.neighbors.for_sample("subset_sample", Neighbors.REPLACE_ONE)
        from tightrope.accounting import sampling

        sampling.require_single_release(self.remove, self._releases, "sample")
        sampled = sampling.sample_subset(self.remove, self.add, size / population)
        return self._with_directions(sampled, relation)

    def erase(self, probability: float) -> PrivacyLoss:
        """The mechanism whose output is suppressed with this probability, independently of the data (GI Prop. 2).

        δ_e(ε) = (1 − p) δ(ε) + p (1 − e^ε)₊. Erase each step before composing. Raises ``InputError`` unless 0 ≤ p ≤ 1,
        and for a composition.

        >>> from tightrope import laplace
        >>> round(laplace(scale=1).loss.erase(0.5).total_variation() / laplace(scale=1).loss.total_variation(), 12)
        0.5
        """
        checked = probability_in_unit("probability", probability)
        from tightrope.accounting import sampling

        sampling.require_single_release(self.remove, self._releases, "erase")
        erased = sampling.erase_directions(self.remove, self.add, checked)
        return self._with_directions(erased, self.neighbors)

    def group(self, size: int) -> PrivacyLoss:
        """The loss for a group of up to ``size`` records, such as all examples of one user, added or removed together.

        Under Poisson sampling each of them is included independently, so Binomial(size, rate) of them shift the output
        (theory §3.2). Sample first: ``loss.poisson_sample(rate).group(size)``; the other order samples whole groups. A
        composition may be grouped as a whole. Only for Gaussian mechanisms, plain or Poisson-sampled; raises
        ``InputError`` for others, for a loss that is already one of a group, and unless size ≥ 1.

        >>> from tightrope import gaussian
        >>> step = gaussian(scale=4).loss.poisson_sample(0.01)
        >>> round((1000 * step.group(4)).epsilon(1e-6), 6)
        1.416328
        """
        checked = check_integer("size", size)
        if self._group_size > 1:
            remedy = "call group once, with the number of all records"
            raise InputError("loss", f"a loss of a group of {self._group_size}", "one of single records", remedy)
        from tightrope.accounting import sampling

        grouped = sampling.group_directions(self.remove, self.add, checked) if checked > 1 else (self.remove, self.add)
        return replace(self._with_directions(grouped, self.neighbors), _group_size=checked, _releases=self._releases)

    @property
    def group_size(self) -> int:
        """Number of records that change together; see ``group``."""
        return self._group_size

    def _with_directions(self, directions: tuple[Composition, Composition], neighbors: Neighbors) -> PrivacyLoss:
        """Return the loss of one step with these directions, stated for the same mechanisms and group."""
        return PrivacyLoss(*directions, neighbors, _stated_for=self._stated_for, _group_size=self._group_size)

    @property
    def infinite_mass(self) -> float:
        """Smallest δ at any ε: the probability of an output that only one of two neighboring datasets can give."""
        return max(self.remove.infinite_mass, self.add.infinite_mass)

    @property
    def statement(self) -> str:
        """Condition under which this loss is valid: parameters fixed in advance. Filters cover adaptive parameters."""
        return "mechanisms may be chosen adaptively; parameters must have been fixed in advance"

    @property
    def true_value_of(self) -> str:
        """The mechanisms that have the true value between the bounds: lower bounds are for these alone.

        Upper bounds (lower ones of type-II errors and Bayes risks) are for every mechanism that was stated.

        >>> from tightrope import approx_dp, gaussian
        >>> gaussian(scale=1).loss.true_value_of
        'these mechanisms, on data that differ by the full sensitivity'
        >>> (10 * approx_dp(0.1).loss).delta_bounds(0.5).true_value_of
        'the worst mechanisms with these guarantees, such as randomized response; others may lose less'
        """
        is_loose = any(adds_envelopes(*both) for both in self._direction_methods())
        return (TrueValueOf.PAIRS if is_loose else self._stated_for).value

    @property
    def method(self) -> str:
        """Method that computes δ: 'closed form', 'recurrence', 'lattice', 'enumeration', 'contour', 'exact sum', 'grid'
        or 'dynamic program' (see ``tightrope.accounting.methods.select``).
        """
        return " and ".join(dict.fromkeys(engine.name for engine in self._method_pair()))

    def _method_pair(self) -> tuple[Method, ...]:
        """Return the methods of the two directions, built once; a single one if both have the same distribution."""
        if "both" not in self._engines:
            self._engines["both"] = tuple(choose_method(direction) for direction in self._distinct_directions)
        return self._engines["both"]

    def _direction_methods(self) -> list[tuple[Composition, Method]]:
        return list(zip((self.remove, self.add), self._method_pair(), strict=False))

    def _delta_brackets(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return bounds on δ(ε), the worse direction, shape [n] each; both are nonincreasing in ε."""
        new = self._answers.missing_epsilons(epsilons)
        if len(new):
            self._answers.insert_brackets(new, *self._computed_brackets(new))
        return self._answers.brackets_at(epsilons)

    def _computed_brackets(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return the bounds that the methods compute, without the stored ones."""
        trivial = 0.0 - np.expm1(np.minimum(epsilons, 0.0))  # 1 − e^ε: no pair has less
        low = np.nextafter(trivial, -1.0) * (trivial > 0)
        high = np.nextafter(trivial, 2.0) * (trivial > 0)
        for method in self._method_pair():
            # If a bound is already available, a direction with a ceiling at or below it cannot be the worse one.
            lower_bounds = zip(epsilons.tolist(), low.tolist(), strict=True)
            relevant = np.array(
                [at == 0 or method.quick_delta_upper_bound(epsilon) > at for epsilon, at in lower_bounds]
            )
            if np.any(relevant):
                lows, highs = method.delta_bounds_at(epsilons[relevant])
                low[relevant], high[relevant] = np.maximum(low[relevant], lows), np.maximum(high[relevant], highs)
        underflow = (high == 0) & (epsilons < max(self.remove.largest_loss, self.add.largest_loss))
        high = np.where(underflow, math.ulp(0.0), high)  # positive, but below the smallest double
        if not np.all(low <= high):
            at = float(epsilons[np.argmin(low <= high)])
            raise PrecisionError(f"delta at epsilon={at!r} could not be enclosed: its bounds contradict each other")
        return np.minimum(low, 1.0), np.minimum(high, 1.0)

    def _delta_interval(self, epsilon: float) -> tuple[float, float]:
        low, high = self._delta_brackets(np.array([epsilon]))
        return float(low[0]), float(high[0])

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: Floats | list[float]) -> Floats: ...
    def delta(self, epsilon: ArrayLike) -> float | Floats:
        """Upper bound on δ(ε) = sup_A P(A) − e^ε Q(A), the worse direction; any real ε; arrays give arrays.

        The bound is the upper end of ``delta_bounds``; at ε = ∞ it is the infinite mass, at −∞ it is 1. Raises
        ``InputError`` if ε is not a number.

        >>> from tightrope import laplace
        >>> round(laplace(scale=1).loss.delta(0.5), 12)
        0.221199216929
        """
        return evaluate_each("epsilon", epsilon, lambda e: self._brackets_with_limits(e)[1], check=check_number)

    def delta_bounds(self, epsilon: ArrayLike) -> Bounds:
        """``Bounds(lower, upper)`` around δ(ε); see ``delta``."""
        ends = evaluate_each_pair("epsilon", epsilon, self._brackets_with_limits, check=check_number)
        return Bounds(*ends, self.true_value_of)

    def _brackets_with_limits(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return bounds on δ, including its limits at ±∞: the infinite mass, and 1."""
        inner = np.isfinite(epsilons)
        low, high = (np.where(epsilons > 0, end, 1.0) for end in self._infinite_ends)
        if np.any(inner):
            low[inner], high[inner] = self._checked_brackets(epsilons[inner])
        return low, high

    @property
    def _infinite_ends(self) -> tuple[float, float]:
        """Bounds on the infinite mass, the worse direction."""
        (first, second), (third, fourth) = self.remove.infinite_bounds, self.add.infinite_bounds
        return max(first, third), max(second, fourth)

    def _checked_brackets(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return the bounds for callers; warns if one is wide, and explains why."""
        low, high = self._delta_brackets(epsilons)
        wide = (high - low > WIDE * high) & (high > SUBNORMAL)
        if np.any(wide):
            before, _ = self._delta_brackets(epsilons[wide] - ROUNDED_EPSILON * np.maximum(1.0, np.abs(epsilons[wide])))
            wide[wide] = high[wide] * (1 - WIDE) > before
        if np.any(wide):
            worst = int(np.argmax(np.where(wide, (high - low) / np.maximum(high, SUBNORMAL), 0.0)))
            self._warn_imprecision(float(epsilons[worst]), float(low[worst]), float(high[worst]))
        return low, high

    def _warn_imprecision(self, epsilon: float, low: float, high: float) -> None:
        reasons = "; ".join(
            dict.fromkeys(reason for method in self._method_pair() if (reason := method.precision_limit(epsilon)))
        )
        text = f"delta at epsilon={epsilon!r} is only known to lie in [{low!r}, {high!r}], by the method {self.method}"
        warnings.warn(PrecisionWarning(f"{text}: {reasons}" if reasons else text), stacklevel=7)

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: Floats | list[float]) -> Floats: ...
    def epsilon(self, delta: ArrayLike) -> float | Floats:
        """Smallest ε ≥ 0 for which (ε, δ) is proven: an upper bound; ∞ if δ is below the mass of infinite loss.

        0 at δ = 1. Raises ``InputError`` unless 0 ≤ δ ≤ 1.

        >>> from tightrope import approx_dp
        >>> round((10 * approx_dp(0.1).loss).epsilon(1e-6), 9)
        0.999370906
        """
        return evaluate_each("delta", delta, lambda d: self._all_least(d, upper_bound=True))

    def epsilon_bounds(self, delta: ArrayLike) -> Bounds:
        """``Bounds(lower, upper)`` around the smallest ε ≥ 0; see ``epsilon``."""
        lower = evaluate_each("delta", delta, lambda d: self._all_least(d, upper_bound=False))
        upper = evaluate_each("delta", delta, lambda d: self._all_least(d, upper_bound=True))
        return Bounds(lower, upper, self.true_value_of)

    def _all_least(self, deltas: Floats, *, upper_bound: bool) -> Floats:
        return np.array([self._epsilon_on_side(delta, upper_bound=upper_bound) for delta in deltas.tolist()])

    def _epsilon_on_side(self, delta: float, *, upper_bound: bool) -> float:
        if not 0 <= delta <= 1:
            raise InputError(
                "delta", delta, "a number in [0, 1]", "a typical value is much smaller than 1/(number of people)"
            )
        if delta == 1:
            return 0.0
        infinite_low, infinite_high = self._infinite_ends
        if delta < infinite_low:
            return math.inf
        if delta <= infinite_high:
            return max(_largest_epsilon(*both, delta, upper_bound=upper_bound) for both in self._direction_methods())
        end = 1 if upper_bound else 0
        root = solve_from_guess(self._method_pair(), delta, upper_bound=upper_bound)
        if root is None:
            guesses = [
                guess.epsilon
                for method in self._method_pair()
                if (guess := method.approximate_epsilon_at(delta)) is not None
            ]
            start = max(guesses, default=1.0)
            epsilon = least_epsilon(lambda e: self._delta_interval(e)[end], delta, upper_bound=upper_bound, start=start)
        else:
            epsilon = round_root_to_side(lambda e: self._delta_interval(e)[end], delta, root, upper_bound=upper_bound)
        if upper_bound:  # a search by factors near 1 ends within a few roundings; no finite loss is beyond the largest
            epsilon = min(
                epsilon,
                max(
                    _epsilon_without_delta(total.largest_loss, total.rounding_error_bound, upper_bound=True)
                    for total, _ in self._direction_methods()
                ),
            )
        if math.isfinite(epsilon):
            self._checked_brackets(np.array([epsilon]))
        return epsilon if upper_bound else min(epsilon, sys.float_info.max)  # finite, though doubles end there

    @overload
    def rdp(self, alpha: float) -> float: ...
    @overload
    def rdp(self, alpha: Floats | list[float]) -> Floats: ...
    def rdp(self, alpha: ArrayLike) -> float | Floats:
        """Upper bound on the Rényi divergence of order α > 1 in nats, the larger of both orders of the pair.

        It is that of the dominating pair: a mechanism has no more. ∞ if a loss can be infinite, or if it is unknown. At
        α = ∞ it is the largest loss. Raises ``InputError`` unless α > 1.

        >>> from tightrope import gaussian
        >>> round((10 * gaussian(scale=2).loss).rdp(8), 12)
        10.0
        """
        return evaluate_each_pair("alpha", alpha, self._renyi_brackets, check=_check_order)[1]

    def rdp_bounds(self, alpha: ArrayLike) -> Bounds:
        """``Bounds(lower, upper)`` around the Rényi divergence of order α; see ``rdp``."""
        return Bounds(*evaluate_each_pair("alpha", alpha, self._renyi_brackets, check=_check_order), self.true_value_of)

    def _renyi_brackets(self, alphas: Floats) -> tuple[Floats, Floats]:
        from tightrope.accounting.summaries import renyi_bounds

        pairs = [[renyi_bounds(total, alpha) for total in self._distinct_directions] for alpha in alphas.tolist()]
        low, high = np.max(np.array(pairs), axis=1).T
        return low, high

    def zcdp(self) -> float:
        """Upper bound on the smallest ρ with ``rdp(α) <= ρ α`` for every α > 1; ∞ if there is none.

        A sampled Gaussian has the ρ of the Gaussian without sampling, however small the rate: large orders see only
        losses of records that were sampled.

        >>> from tightrope import gaussian, laplace
        >>> round((10 * gaussian(scale=2).loss).zcdp(), 12), round(laplace(scale=1).loss.zcdp(), 9)
        (1.25, 0.367879441)
        """
        return float(self.zcdp_bounds().upper)

    def zcdp_bounds(self) -> Bounds:
        """``Bounds(lower, upper)`` around the smallest ρ; see ``zcdp``."""
        from tightrope.accounting.summaries import zcdp_bounds

        ends = [zcdp_bounds(total) for total in self._distinct_directions]
        return Bounds(max(low for low, _ in ends), max(high for _, high in ends), self.true_value_of)

    @property
    def _distinct_directions(self) -> tuple[Composition, ...]:
        """Both directions; a single one if both have the same distribution."""
        same = self.remove.laws == self.add.laws and self.remove.counts == self.add.counts
        return (self.remove,) if same else (self.remove, self.add)

    def gaussian_limit(self) -> GaussianLimit:
        """The Gaussian that this composition approaches, and bounds on the trade-off curve around it (GI Thm 3).

        The Gaussian itself is not a guarantee, but its ``tradeoff_bounds`` are. Uses the direction with the larger μ.
        Raises ``InputError`` for a loss that can be infinite, or that is always 0.

        >>> from tightrope import approx_dp
        >>> round((10_000 * approx_dp(0.01).loss).gaussian_limit().mu, 4)
        1.0
        """
        from tightrope.accounting.summaries import GaussianLimit

        return GaussianLimit.from_loss(*self._distinct_directions)

    def _true_positive_bounds(self, rate: float) -> tuple[float, float]:
        bounds = [
            tradeoff.true_positive_rate(m.delta_to_precision, rate, total.infinite_bounds, m.quick_delta_upper_bound)
            for total, m in self._direction_methods()
        ]
        return max(low for low, _ in bounds), max(high for _, high in bounds)


def _largest_epsilon(total: Composition, method: Method, delta: float, *, upper_bound: bool) -> float:
    """Return the smallest ε of one direction if δ may be at most its infinite mass: its largest loss, if it has one."""
    infinite_low, infinite_high = total.infinite_bounds
    if delta > infinite_high or (not upper_bound and infinite_low < infinite_high):
        end = 1 if upper_bound else 0
        return least_epsilon(lambda e: method.delta(e)[end], delta, upper_bound=upper_bound)
    if not upper_bound or infinite_high == 0:
        return _epsilon_without_delta(total.largest_loss, total.rounding_error_bound, upper_bound=upper_bound)
    ends = (
        max(0.0, total.largest_loss),
        max(0.0, _epsilon_without_delta(total.largest_loss, total.rounding_error_bound, upper_bound=True)),
    )
    return next((e for e in ends if math.isfinite(e) and method.delta(e)[1] <= delta), math.inf)


def _epsilon_without_delta(largest: float, rounding: float, *, upper_bound: bool) -> float:
    """Return the smallest ε at δ = 0: the largest loss, rounded to the requested side; 0 for an empty composition."""
    if largest == rounding == 0:
        return 0.0
    if upper_bound:
        return math.nextafter(largest + rounding, math.inf)
    return max(0.0, math.nextafter(largest - rounding, 0.0))


def _check_order(name: str, value: object) -> float:
    order = check_number(name, value)
    if not order > 1:
        raise InputError(name, value, "an order above 1", "the Rényi divergence of order 1 is the limit from above")
    return order
