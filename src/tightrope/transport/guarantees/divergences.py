"""Divergences of rational distributions, and guarantees for distributions.

1. Upper bounds on the divergences of ``numerics.divergences``, tight to a few units in the last place.
2. What follows from a guarantee (``DistributionGuarantee``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from tightrope.errors import InputError
from tightrope.numerics.checks import check_integer, check_non_negative, check_probability
from tightrope.numerics.divergences import CHI_SQUARED, HELLINGER, KL, NAMED, Divergence
from tightrope.numerics.rounding import round_outward, to_float

Probabilities = Sequence[Fraction]

TERM_MARGIN = 5e-14
"""Bound on the relative error of a term: a few dozen roundings; sums of positive terms are rounded once."""
NEAR_ONE = Fraction(1, 2)
"""If |p/q − 1| is at most this, a series is used, so that the difference from the linear part is accurate."""
SERIES_TERMS = 60
UNDERFLOW_MARGIN = 1e-300
"""Added if the distributions differ: more than the underflow of all terms together."""
SMALLEST_RATIO, LARGEST_RATIO = Fraction(1, 10**300), Fraction(10**300)
"""Ratios between these are normal doubles."""


def divergence_upper_bound(name: str, p: Probabilities, q: Probabilities, *, delta: float = 0.0) -> float:
    """Return D(p‖q), rounded up; ∞ if p is not absolutely continuous and D requires it.

    ``name``: "kl" Σ p log(p/q) · "reverse_kl" Σ q log(q/p) · "total_variation" Σ (p − q)₊ ·
    "chi_squared" Σ (p − q)²/q · "hellinger" Σ (√p − √q)² · "max" log max p/q · "approximate_max" the least ε ≥ 0 with
    Σ (p − e^ε q)₊ ≤ ``delta`` (KM Def. 5: max over sets R of log((p(R) − δ)/q(R))).
    Raises ``InputError`` for another name.

    >>> p, q = [Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]
    >>> round(divergence_upper_bound("kl", p, q), 12), round(divergence_upper_bound("max", p, q), 12)
    (0.143841036226, 0.69314718056)
    """
    if not isinstance(name, str) or (name not in EXACT_DIVERGENCES and name != APPROXIMATE_MAX):
        raise InputError("divergence", name, f"one of {[*EXACT_DIVERGENCES, APPROXIMATE_MAX]}")
    if len(p) != len(q):
        raise InputError("laws", (len(p), len(q)), "laws over the same outcomes")
    checked_delta = check_probability("delta", delta)
    if checked_delta and name != APPROXIMATE_MAX:
        raise InputError("delta", delta, f"0 for {name!r}", f"only {APPROXIMATE_MAX!r} has a delta")
    if all(a == b for a, b in zip(p, q, strict=True)):
        return 0.0
    if name == APPROXIMATE_MAX:
        return round_up(approximate_max_divergence(p, q, Fraction(checked_delta)))
    return round_up(EXACT_DIVERGENCES[name](p, q) + UNDERFLOW_MARGIN)


def round_up(value: float) -> float:
    """Return the value rounded up by a few units; 0 and ∞ are unchanged."""
    return round_outward(value, "up", error=TERM_MARGIN)


def log_ratio(p: Fraction, q: Fraction) -> float:
    """Return log(p/q) to a few units in the last place, also near 1, for any magnitudes; q > 0."""
    ratio = p / q
    if abs(ratio - 1) <= NEAR_ONE:
        return math.log1p(float(ratio - 1))
    if SMALLEST_RATIO < ratio < LARGEST_RATIO:
        return math.log(ratio)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _kl_term(p: Fraction, q: Fraction) -> float:
    """Return q φ(p/q) with φ(t) = t log t − t + 1 ≥ 0: no cancellation."""
    if not p:
        return float(q)
    excess = p / q - 1
    if abs(excess) > NEAR_ONE:
        return float(p) * log_ratio(p, q) - float(p - q)
    d = float(excess)
    return float(q) * math.fsum((-1) ** k * d**k / (k * (k - 1)) for k in range(2, SERIES_TERMS))


def _hellinger_term(p: Fraction, q: Fraction) -> float:
    """Return (√p − √q)² = a ((1 − r)/(1 + √r))² with a the larger of both and r their ratio."""
    larger, ratio = max(p, q), min(p, q) / max(p, q)
    return float(larger) * (float(1 - ratio) / (1 + math.sqrt(ratio))) ** 2


def _sum_terms(p: Probabilities, q: Probabilities, term: Callable[[Fraction, Fraction], float], f: Divergence) -> float:
    """Return the sum of the terms where q > 0, plus f'(∞) times the mass of p elsewhere."""
    inside = math.fsum(term(a, b) for a, b in zip(p, q, strict=True) if b and a != b)
    outside = sum((a for a, b in zip(p, q, strict=True) if not b), Fraction(0))
    return inside + f.disjoint_mass_term(float(outside), 0.0) if outside else inside


def max_divergence(p: Probabilities, q: Probabilities) -> float:
    """Return log max p/q; ∞ if some q is 0 where p is positive."""
    if any(a and not b for a, b in zip(p, q, strict=True)):
        return math.inf
    return max(log_ratio(a, b) for a, b in zip(p, q, strict=True) if a)


def approximate_max_divergence(p: Probabilities, q: Probabilities, delta: Fraction) -> float:
    """Return the approximate max-divergence: optimal sets R contain the outcomes in the order of their ratio."""
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a]
    pairs.sort(key=lambda pair: (pair[1] / pair[0], pair[1]))
    largest, p_mass, q_mass = 0.0, -delta, Fraction(0)
    for a, b in pairs:
        p_mass, q_mass = p_mass + a, q_mass + b
        if p_mass > 0 and not q_mass:
            return math.inf
        if p_mass > q_mass:
            largest = max(largest, log_ratio(p_mass, q_mass) + UNDERFLOW_MARGIN)
    return largest


APPROXIMATE_MAX = "approximate_max"
EXACT_DIVERGENCES: dict[str, Callable[[Probabilities, Probabilities], float]] = {
    "kl": lambda p, q: _sum_terms(p, q, _kl_term, KL),
    "reverse_kl": lambda p, q: _sum_terms(q, p, _kl_term, KL),
    "total_variation": lambda p, q: float(sum((a - b for a, b in zip(p, q, strict=True) if a > b), Fraction(0))),
    "chi_squared": lambda p, q: _sum_terms(p, q, lambda a, b: float((a - b) ** 2 / b), CHI_SQUARED),
    "hellinger": lambda p, q: _sum_terms(p, q, _hellinger_term, HELLINGER),
    "max": max_divergence,
}

# 2. Consequences of a guarantee for distributions: composition, processing, weaker divergences (KM Props. 3–10).

Metric = Literal["W1", "Winf"]

F_DIVERGENCES = tuple(NAMED)
CHAIN_DIVERGENCES = ("total_variation", "max")
"""Divergences that add up along a chain of distributions."""
ADDITIVE_DIVERGENCES = ("kl", "reverse_kl", "total_variation", "hellinger", "max")
"""Divergences that add up over two outputs, the second map chosen by the first output (``with_same_input``)."""
WEAKER_DIVERGENCES: dict[str, tuple[str, ...]] = {
    "max": ("kl", "reverse_kl", "total_variation", "hellinger"),
    "chi_squared": ("kl", "reverse_kl", "hellinger"),
    "kl": ("reverse_kl", "hellinger"),
    "reverse_kl": ("kl", "hellinger"),
}
"""Divergences that are never larger, in both directions: KL ≤ D_∞, KL ≤ log(1 + χ²), H² ≤ KL, TV ≤ D_∞/2."""


@dataclass(frozen=True, slots=True)
class DistributionGuarantee:
    """(ε, D)-DistP, or with a ``metric`` ε·W-XDistP, in both directions, on pairs of distributions.

    If ``points``, the same holds between neighboring *points* (D-DP, XDP), and the pairs of distributions have
    couplings on neighboring points. By KM Thm 4 this is so if the pairs of distributions include the pairs of point
    masses.
    """

    epsilon: float
    divergence: str
    metric: Metric | None = None
    points: bool = False

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)
        if self.divergence not in (*F_DIVERGENCES, "max"):
            raise InputError("divergence", self.divergence, f"one of {[*F_DIVERGENCES, 'max']}")
        if self.metric not in (None, "W1", "Winf"):
            raise InputError("metric", self.metric, "None, 'W1' or 'Winf'")

    @classmethod
    def from_points(cls, epsilon: float, divergence: str, *, metric: bool = False) -> DistributionGuarantee:
        """Return the guarantee for distributions from D-DP between points (KM Thms 1, 2).

        D(A(x)‖A(x′)) ≤ ε, or ≤ ε·d(x, x′) with ``metric``. f-divergences are jointly convex: ε W_1. D_∞ is only
        quasi-convex: ε W_∞.

        >>> DistributionGuarantee.from_points(0.5, "kl", metric=True).metric
        'W1'
        """
        extended: Metric = "Winf" if divergence == "max" else "W1"
        return cls(epsilon, divergence, extended if metric else None, points=True)

    def with_same_input(self, other: DistributionGuarantee) -> DistributionGuarantee:
        """Return the guarantee of ⊙: ``other``, chosen by the first output, has the *same* input (KM Props. 3, 4).

        The ε's add up for KL, D_∞, total variation and squared Hellinger distance. With outputs y₀ ~ P or Q and then
        y₁ ~ P_{y₀} or Q_{y₀}: by the hybrid distribution, y₀ ~ P and y₁ ~ Q_{y₀}, TV ≤ TV(P, Q) + max TV(P_y, Q_y). And
        H² = 2 − 2B with B = Σ √(p q) B(P_y, Q_y) ≥ (1 − H²(P, Q)/2) (1 − max H²/2) ≥ 1 − (H²(P, Q) + max H²)/2.

        Requires the guarantee at points: between distributions alone it is false (theory §6, the coin). Points carry
        D_∞ to distributions by W_∞ only (``from_points``), so that W_1 becomes W_∞ there: two maps of a bit that
        return ¾ and ½ for 1 need 1 each by W_1, and 3 together.

        >>> one = DistributionGuarantee.from_points(0.5, "kl")
        >>> one.with_same_input(one).epsilon
        1.0
        """
        for part in (self, other):
            if not part.points:
                remedy = "use with_fresh_input for independent inputs; for one value, store and repeat the first output"
                raise InputError("points", part.points, "True: guarantees between points", remedy)
        total = self._add_guarantees(other)
        return total.by_worst_distance() if (self.divergence, self.metric) == ("max", "W1") else total

    def with_fresh_input(self, other: DistributionGuarantee) -> DistributionGuarantee:
        """Return the guarantee of •: ``other``, chosen by the first output, has an *independent* input (Props. 5, 6).

        The ε's add up, for the divergences of ``with_same_input``.

        With a metric the guarantee is ε₀ W(λ₀, λ₀′) + ε₁ W(λ₁, λ₁′) for the two inputs, at most the sum of ε's times
        the larger.
        """
        return replace(self._add_guarantees(other), points=False)

    def post_process(self) -> DistributionGuarantee:
        """Return the guarantee after any function of the output, randomized or not (KM Prop. 7): unchanged."""
        return self

    def pre_process(self, stability: int) -> DistributionGuarantee:
        """Return the guarantee on transformed distributions (KM Prop. 8); it is not one between points.

        With a metric, W(Tλ, Tλ′) ≤ c W(λ, λ′): cε for every divergence. Without one, Tλ and Tλ′ are at most c steps
        of the relation apart: cε for total variation and D_∞ only, since other divergences do not add up along a chain
        (Gaussians c steps apart have c² times the KL of one step), though KM state it for all.
        """
        steps = check_integer("stability", stability, at_least=0)
        if self.metric is None and self.divergence not in CHAIN_DIVERGENCES and steps > 1:
            remedy = "state the guarantee with a metric, or for one of these"
            raise InputError("divergence", self.divergence, f"one of {list(CHAIN_DIVERGENCES)} for a chain", remedy)
        return replace(self, epsilon=to_float(steps * Fraction(self.epsilon), "up"), points=False)

    def by_worst_distance(self) -> DistributionGuarantee:
        """Return the W_∞ guarantee, as W_1 ≤ W_∞ (KM Prop. 9); raises ``InputError`` without a metric."""
        if self.metric is None:
            raise InputError("metric", self.metric, "'W1' or 'Winf'")
        return replace(self, metric="Winf")

    def weaken_to(self, divergence: str) -> DistributionGuarantee:
        """Return the guarantee for a divergence that is never larger (KM Prop. 10).

        >>> DistributionGuarantee(0.5, "max", "Winf").weaken_to("kl").divergence
        'kl'
        """
        smaller = WEAKER_DIVERGENCES.get(self.divergence, ())
        if divergence not in (self.divergence, *smaller):
            raise InputError("divergence", divergence, f"never larger than {self.divergence!r}: one of {list(smaller)}")
        return replace(self, divergence=divergence)

    def _add_guarantees(self, other: DistributionGuarantee) -> DistributionGuarantee:
        """Return the guarantee with the sum of both ε's; raises ``InputError`` if they do not add up."""
        if (self.divergence, self.metric) != (other.divergence, other.metric):
            shown = (other.divergence, other.metric)
            raise InputError("other", shown, f"of {(self.divergence, self.metric)}", "weaken both to a common one")
        if self.divergence not in ADDITIVE_DIVERGENCES:
            raise InputError(
                "divergence", self.divergence, f"one of {list(ADDITIVE_DIVERGENCES)}", "it does not add up"
            )
        return replace(self, epsilon=to_float(Fraction(self.epsilon) + Fraction(other.epsilon), "up"))
