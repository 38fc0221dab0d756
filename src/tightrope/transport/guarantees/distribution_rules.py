"""What follows from a guarantee about laws: composition, processing, weaker divergences (KM Props. 3–10)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from tightrope.errors import InputError
from tightrope.numerics.checks import non_negative, whole
from tightrope.numerics.divergences import NAMED
from tightrope.numerics.rounding import to_float

Metric = Literal["W1", "Winf"]

F_DIVERGENCES = tuple(NAMED)
TRIANGLE = ("total_variation", "max")
"""Divergences that add up along a chain of laws."""
ADDITIVE = ("kl", "reverse_kl", "total_variation", "hellinger", "max")
"""Divergences that add up over two outputs, the second map chosen by the first output (``with_same_input``)."""
BELOW: dict[str, tuple[str, ...]] = {
    "max": ("kl", "reverse_kl", "total_variation", "hellinger"),
    "chi_squared": ("kl", "reverse_kl", "hellinger"),
    "kl": ("reverse_kl", "hellinger"),
    "reverse_kl": ("kl", "hellinger"),
}
"""Divergences that are never larger, taken both ways: KL ≤ D_∞, KL ≤ log(1 + χ²), H² ≤ KL, TV ≤ D_∞/2."""


@dataclass(frozen=True, slots=True)
class DistributionGuarantee:
    """(ε, D)-DistP, or with a ``metric`` ε·W-XDistP, both ways, on pairs of laws.

    ``points``: the same holds between neighbouring *points* (D-DP, XDP), of which the laws' pairs are couplings. By
    KM Thm 4 that is so where the pairs of laws include the pairs of point masses.
    """

    epsilon: float
    divergence: str
    metric: Metric | None = None
    points: bool = False

    def __post_init__(self) -> None:
        non_negative("epsilon", self.epsilon)
        if self.divergence not in (*F_DIVERGENCES, "max"):
            raise InputError("divergence", self.divergence, f"one of {[*F_DIVERGENCES, 'max']}")
        if self.metric not in (None, "W1", "Winf"):
            raise InputError("metric", self.metric, "None, 'W1' or 'Winf'")

    @classmethod
    def from_points(cls, epsilon: float, divergence: str, *, metric: bool = False) -> DistributionGuarantee:
        """From D-DP between points to laws (KM Thms 1, 2): D(A(x)‖A(x′)) ≤ ε, or ≤ ε·d(x, x′) where ``metric``.

        f-divergences are jointly convex: ε W_1. D_∞ is only quasi-convex: ε W_∞.

        >>> DistributionGuarantee.from_points(0.5, "kl", metric=True).metric
        'W1'
        """
        extended: Metric = "Winf" if divergence == "max" else "W1"
        return cls(epsilon, divergence, extended if metric else None, points=True)

    def with_same_input(self, other: DistributionGuarantee) -> DistributionGuarantee:
        """⊙: ``other``, chosen by the first output, on the *same* input (KM Props. 3, 4): ε's add up, for KL.

        And for D_∞, total variation and squared Hellinger distance. With outputs y₀ ~ P or Q and then y₁ ~ P_{y₀} or
        Q_{y₀}: by the hybrid law, y₀ ~ P and y₁ ~ Q_{y₀}, TV ≤ TV(P, Q) + max TV(P_y, Q_y). And H² = 2 − 2B with
        B = Σ √(p q) B(P_y, Q_y) ≥ (1 − H²(P, Q)/2) (1 − max H²/2) ≥ 1 − (H²(P, Q) + max H²)/2.

        It needs the guarantee at points: between laws alone it is false (theory §6, the coin).
        Points carry D_∞ to laws by W_∞ only (``from_points``), so that W_1 becomes W_∞ there: two maps of a bit that
        answer ¾ and ½ for 1 need 1 each by W_1, and 3 together.

        >>> one = DistributionGuarantee.from_points(0.5, "kl")
        >>> one.with_same_input(one).epsilon
        1.0
        """
        for part in (self, other):
            if not part.points:
                remedy = "use with_fresh_input for independent inputs; a value released twice must be remembered"
                raise InputError("points", part.points, "True: guarantees between points", remedy)
        added = self._added(other)
        return added.by_worst_distance() if (self.divergence, self.metric) == ("max", "W1") else added

    def with_fresh_input(self, other: DistributionGuarantee) -> DistributionGuarantee:
        """•: ``other``, chosen by the first output, on an *independent* input (KM Props. 5, 6): ε's add up, for KL
        and the others of ``with_same_input``.

        With a metric it is ε₀ W(λ₀, λ₀′) + ε₁ W(λ₁, λ₁′) for the two inputs, at most the sum of ε's times the larger.
        """
        return replace(self._added(other), points=False)

    def post_process(self) -> DistributionGuarantee:
        """Any function of the output, randomised or not (KM Prop. 7): nothing changes."""
        return self

    def pre_process(self, stability: int) -> DistributionGuarantee:
        """On transformed laws (KM Prop. 8); the points are then others.

        With a metric, W(Tλ, Tλ′) ≤ c W(λ, λ′): cε for every divergence. Without one, Tλ and Tλ′ are at most c steps
        of the relation apart: cε for total variation and D_∞ only, since the others do not add up along a chain
        (Gaussians c steps apart have c² times the KL of one step), though KM state it for all.
        """
        steps = whole("stability", stability, at_least=0)
        if self.metric is None and self.divergence not in TRIANGLE and steps > 1:
            remedy = "state the guarantee with a metric, or for one of these"
            raise InputError("divergence", self.divergence, f"one of {list(TRIANGLE)} for a chain", remedy)
        return replace(self, epsilon=to_float(steps * Fraction(self.epsilon), "up"), points=False)

    def by_worst_distance(self) -> DistributionGuarantee:
        """W_1 ≤ W_∞: W_1-XDistP is W_∞-XDistP (KM Prop. 9); raises ``InputError`` without a metric."""
        if self.metric is None:
            raise InputError("metric", self.metric, "'W1' or 'Winf'")
        return replace(self, metric="Winf")

    def weakened(self, divergence: str) -> DistributionGuarantee:
        """For a divergence that is never larger (KM Prop. 10).

        >>> DistributionGuarantee(0.5, "max", "Winf").weakened("kl").divergence
        'kl'
        """
        smaller = BELOW.get(self.divergence, ())
        if divergence not in (self.divergence, *smaller):
            raise InputError("divergence", divergence, f"never larger than {self.divergence!r}: one of {list(smaller)}")
        return replace(self, divergence=divergence)

    def _added(self, other: DistributionGuarantee) -> DistributionGuarantee:
        if (self.divergence, self.metric) != (other.divergence, other.metric):
            shown = (other.divergence, other.metric)
            raise InputError("other", shown, f"of {(self.divergence, self.metric)}", "weaken both to a common one")
        if self.divergence not in ADDITIVE:
            raise InputError("divergence", self.divergence, f"one of {list(ADDITIVE)}", "it does not add up")
        return replace(self, epsilon=to_float(Fraction(self.epsilon) + Fraction(other.epsilon), "up"))
