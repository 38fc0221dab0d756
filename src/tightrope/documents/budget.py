"""Privacy budgets: exact decimals, and a list of points that must all hold."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, Inexact, InvalidOperation, Overflow, Underflow
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from tightrope.display import Displayed, Summary
from tightrope.documents.wording import DELTA_SIZE_ADVICE, explain_numbers
from tightrope.errors import InputError

Number = int | float | str | Decimal
BudgetFraction = Number | Fraction
Point = tuple[Decimal, Decimal]
Tradeoff = Callable[[float], float]
Names = tuple[str, ...]
MAX_DIGITS = 1_000
MAX_CHARACTERS, MAX_INTEGER = 4_300, 10 ** (MAX_DIGITS + 1)
EXACT = Context(
    prec=10 * MAX_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[Inexact, InvalidOperation, Overflow, Underflow]
)
"""Decimal context for budgets: every operation is exact, whatever precision the thread's context has."""
EXPECTED_ARGUMENTS = "an epsilon, a total_variation, an attack_success, attack_rates, a rho, points or a tradeoff"
BUDGET_ARGUMENTS = ("epsilon", "attack_success", "attack_rates", "rho", "total_variation", "points", "delta")
MAX_EPSILON = 10_000
MAX_RHO, RATIO_TERMS, LARGE_DEVIATION = 1_000, 60, 8.0
"""Largest ρ, terms of the continued fraction of Mills' ratio, and the deviation from which on it is used."""
RHO_MARGIN = 1e-9
"""Relative margin by which the ε of a ρ is rounded down before its digits are."""
MOST_PARTS, TYPED_DIGITS, FLOAT_DIGITS, RATIO_ERROR = 1_000, 12, 17, Fraction(1, 1 << 52)
"""A decimal of 13 to 17 digits, as floats have, stands for a ratio p/q with q up to ``MOST_PARTS`` that is as near."""
ROUND_DOWN_TWENTY_DIGITS = Context(prec=20, rounding=ROUND_FLOOR)
RATIO = re.compile(r"([0-9]{1,100})/([0-9]{1,100})")
EXPONENTIALS, SIX_DIGITS = Context(prec=60, rounding=ROUND_FLOOR), Context(prec=6)
SIX_DIGITS_DOWN = Context(prec=6, rounding=ROUND_FLOOR)
SMALLEST_RATE, ABOVE_ONE = Decimal("1e-100"), EXPONENTIALS.add(Decimal(1), Decimal("1e-50"))
STATE_POINTS = "state points of it: Budget(points=[(epsilon, delta), ...])"


@dataclass(frozen=True, slots=True, repr=False)
class Budget(Displayed):
    """A privacy budget: an ε, a total variation, a list of (ε, δ) points, or all of them; or a trade-off function.

    ``delta`` is required (or follows from ``points``): it also caps the probability of an output that gives a person
    away with certainty. ``total_variation`` η is the point (0, η); ``attack_success=0.55`` says the same of an attacker
    who guesses whether you are in the data, at even odds: right at most 55 % of the time, so η at most 0.10. Only one
    of the two may be given. ``attack_rates=[(0.01, 0.05)]``: every attacker with a false-positive rate of 1 % has a
    true-positive rate of at most 5 %. Each pair becomes the point (ε, δ) that implies it and that a Gaussian mechanism
    with these rates just meets; ``calibrate`` tests the rates themselves. Numbers are exact decimals (0.1 is one
    tenth), ε in nats.

    ``rho`` is ρ of zero-concentrated privacy, as the point (ε, δ) that Gaussian noise of exactly this ρ meets, with ε
    rounded down to six digits: Gaussian noise within the budget is ρ-zCDP. Other noise within it meets (ε, δ), but not
    always ρ. What ρ-zCDP alone implies at δ is a larger ε: ``from_zcdp(rho).loss.epsilon(delta)``. δ must be positive.

    ``tradeoff`` is a symmetric trade-off function instead of everything else: the least type-II error of an attacker at
    a type-I error in [0, 1]. It has no points, so such a promise is neither shared nor written down.

    Raises ``InputError`` where nothing is asked, two things exclude each other, or a number is out of range.

    >>> Budget(epsilon=1, delta=1e-8).points
    ((Decimal('1'), Decimal('1E-8')),)
    >>> Budget(attack_success=0.55, delta="1e-8").points
    ((Decimal('0'), Decimal('0.10')),)
    >>> [(float(e), round(float(d), 6)) for e, d in Budget(attack_rates=[(0.01, 0.05)], delta="1e-8").points]
    [(1.35318, 0.011303)]
    >>> Budget(rho=0.1, delta="1e-6").points
    ((Decimal('1.99452'), Decimal('0.000001')),)
    """

    points: tuple[Point, ...]
    delta: Decimal
    tradeoff: Tradeoff | None
    attack_rates: tuple[Point, ...]
    """Pairs of a false-positive rate and the largest true-positive rate; the last points are those that imply them."""
    asked: tuple[str, ...] = field(compare=False, repr=False)
    """Parameters that the user gave; the first is the one that a refusal suggests to raise."""

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        total_variation: Number | None = None,
        attack_success: Number | None = None,
        attack_rates: Sequence[tuple[Number, Number]] | None = None,
        rho: Number | None = None,
        points: Sequence[tuple[Number, Number]] | None = None,
        tradeoff: Tradeoff | None = None,
    ) -> None:
        if tradeoff is not None:
            if not callable(tradeoff):
                raise InputError("tradeoff", tradeoff, "a function on [0, 1]", "say lambda t: max(0, 1 - 0.3 - t)")
            others = (epsilon, delta, total_variation, attack_success, attack_rates, rho, points)
            if any(other is not None for other in others):
                raise InputError("tradeoff", tradeoff, "the only promise", "it says everything: leave the others out")
            self._set_fields((), Decimal(0), tradeoff, ("tradeoff",), ())
            return
        given = (epsilon, attack_success, attack_rates, rho, total_variation, points, delta)
        asked = tuple(name for name, value in zip(BUDGET_ARGUMENTS, given, strict=True) if value is not None)
        if not asked:
            raise InputError("budget", None, EXPECTED_ARGUMENTS, "try Budget(epsilon=1, delta=1e-8)")
        all_points = _checked_points(points)
        if epsilon is not None and not 0 < exact_decimal("epsilon", epsilon) <= MAX_EPSILON:
            raise InputError("epsilon", epsilon, f"greater than 0 and at most {MAX_EPSILON:,}", "a typical value is 1")
        cap = _checked_delta(delta, all_points)
        if epsilon is not None:
            all_points.append((exact_decimal("epsilon", epsilon), cap))
        if rho is not None:
            all_points.append(_point_of_rho(rho, cap))
        all_points += points_at_zero(total_variation, attack_success)
        rates = () if attack_rates is None else _checked_rates(attack_rates)
        all_points += [_point_of_rates(*pair) for pair in rates]
        if not all_points:
            raise InputError("budget", None, EXPECTED_ARGUMENTS, "try Budget(epsilon=1, delta=1e-8)")
        self._set_fields(tuple(all_points), cap, None, asked, rates)

    def _set_fields(
        self,
        points: tuple[Point, ...],
        delta: Decimal,
        tradeoff: Tradeoff | None,
        asked: Names,
        attack_rates: tuple[Point, ...],
    ) -> None:
        values = {
            "points": points, "delta": delta, "tradeoff": tradeoff, "asked": asked, "attack_rates": attack_rates,
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def scale_by(self, fraction: BudgetFraction) -> Budget:
        """Return the budget with every ε and δ multiplied by ``fraction``: fractions that add up to 1 spend the whole.

        A fraction that is not a decimal, such as 1/3, is rounded down: see ``decimal_fraction``. Raises ``InputError``
        for a fraction outside (0, 1], and for a trade-off function.

        >>> Budget(epsilon=1, delta=1e-8).scale_by("0.25").points
        ((Decimal('0.25'), Decimal('2.5E-9')),)
        """
        exact_fraction, whole_points = decimal_fraction(fraction), self.checked_points
        if exact_fraction == 1:
            return copy(self)  # a session keeps its own budget, even if the given one is changed
        points = [
            (exact_decimal_product(epsilon, exact_fraction), exact_decimal_product(delta, exact_fraction))
            for epsilon, delta in whole_points
        ]
        scaled = Budget(points=points, delta=exact_decimal_product(self.delta, exact_fraction))
        scaled._set_fields(scaled.points, scaled.delta, None, self.asked, ())
        return scaled

    @property
    def checked_points(self) -> tuple[Point, ...]:
        """The points; raises ``InputError`` for a trade-off function, which has none."""
        if self.tradeoff is not None:
            raise InputError("tradeoff", self.tradeoff, "a promise of points (epsilon, delta) for this", STATE_POINTS)
        return self.points

    @property
    def rounded_points(self) -> tuple[tuple[float, float], ...]:
        """The points as floats, rounded down: a guarantee that meets these meets the budget's points.

        >>> Budget(epsilon=0.1, delta=0).rounded_points
        ((0.09999999999999999, 0.0),)
        """
        return tuple((float_at_most(epsilon), float_at_most(delta)) for epsilon, delta in self.checked_points)

    @property
    def total_variation(self) -> Decimal | None:
        """The smallest δ requested at ε = 0; None if there is none."""
        return min((delta for epsilon, delta in self.points if epsilon == 0), default=None)

    @property
    def epsilon(self) -> Decimal | None:
        """The ε requested at ``delta``; None if there is none."""
        return next((e for e, d in self.points if d == self.delta and e > 0), None)

    def to_data(self) -> dict[str, Any]:
        """Return plain data with decimals as strings; raises ``InputError`` for a trade-off function."""
        return {
            "delta": str(self.delta),
            "points": [[str(epsilon), str(delta)] for epsilon, delta in self.checked_points],
        }

    def text_summary(self) -> Summary:
        """Return the budget as it is promised."""
        return Summary(str(self))

    def notebook_summary(self) -> Summary:
        """Return the budget with each of its points."""
        points = [(f"epsilon {epsilon}", f"delta {delta}") for epsilon, delta in self.points]
        return Summary(str(self), points)

    def __str__(self) -> str:
        if self.tradeoff is not None:
            return "a trade-off function"
        stated = self.points[: len(self.points) - len(self.attack_rates)]
        parts = [f"epsilon {e} at delta {d}" if e else f"total variation {d}" for e, d in stated]
        parts += [f"true-positive rate {t} at false-positive rate {f}" for f, t in self.attack_rates]
        delta_is_implied = any(delta <= self.delta for _, delta in self.points)
        all_parts = parts if delta_is_implied else [*parts, f"probability of infinite loss at most {self.delta}"]
        return " and ".join(all_parts).replace("E-", "e-").replace("E+", "e+")


def exact_decimal(name: str, value: object) -> Decimal:
    """Return the decimal that the user typed: of a float, its shortest text."""
    check_typed_number(name, value)
    try:
        exact = Decimal(repr(float(value)) if isinstance(value, float) else str(value))
    except InvalidOperation:
        raise InputError(name, value, "a number") from None
    if not exact.is_finite():
        raise InputError(name, value, "a finite number")
    if len(exact.as_tuple().digits) > MAX_DIGITS or not -MAX_DIGITS <= exact.adjusted() <= MAX_DIGITS:
        raise InputError(name, value, f"a number of at most {MAX_DIGITS} digits", "fewer digits say the same")
    return exact


def check_typed_number(name: str, value: object) -> None:
    """Raise ``InputError`` for what is no number, a longer one than is read, and a text with other digits than 0 to 9.

    >>> check_typed_number("epsilon", "0.5")
    """
    if isinstance(value, bool) or not isinstance(value, (numbers.Integral, float, str, Decimal)):
        raise InputError(name, value, "a number")
    if (isinstance(value, str) and len(value) > MAX_CHARACTERS) or (
        isinstance(value, int) and abs(value) > MAX_INTEGER
    ):
        raise InputError(name, "a longer one", f"a number of at most {MAX_DIGITS} digits", "fewer digits say the same")
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        expected = "a number in the digits 0 to 9, without underscores"
        raise InputError(name, value, expected, "1_0 would be ten" if "_" in value else "")


def decimal_fraction(value: BudgetFraction) -> Decimal:
    """Return the decimal by which a budget is multiplied for a fraction of it: at most ``charged_fraction``.

    It is exact for a decimal, and else rounded down to 20 digits. A ``Fraction``, or a text such as "1/3", is a ratio,
    and so is a number of 13 to 17 digits that is nearly one with a denominator up to 1,000: the float 1/11, whose
    shortest text is above it, and 0.1 + 0.2. Other decimals are exact.
    Raises ``InputError`` for a fraction outside (0, 1].

    >>> decimal_fraction("0.25"), decimal_fraction(1 / 11), decimal_fraction(0.1 + 0.2)
    (Decimal('0.25'), Decimal('0.090909090909090909090'), Decimal('0.3'))
    """
    match = RATIO.fullmatch(value) if isinstance(value, str) else None
    if match and int(match[2]):
        value = Fraction(int(match[1]), int(match[2]))
    exact = _round_down(value) if isinstance(value, Fraction) else exact_decimal("budget_fraction", value)
    ratio = _nearby_ratio(exact)
    if ratio is not None and ratio < exact:
        exact = _round_down(ratio)
    if not 0 < exact <= 1:
        raise InputError("budget_fraction", value, "a fraction of the budget in (0, 1]", "0.5 spends half")
    return exact


def charged_fraction(exact: Decimal) -> Fraction:
    """Return the fraction that is charged for a ``decimal_fraction``: the ratio that it stands for, or the decimal.

    >>> charged_fraction(decimal_fraction(1 / 7)), charged_fraction(Decimal("0.25"))
    (Fraction(1, 7), Fraction(1, 4))
    """
    ratio = _nearby_ratio(exact)
    return Fraction(exact) if ratio is None or ratio < exact else ratio


def fraction_text(fraction: Fraction) -> str:
    """Return a fraction as its exact decimal if it has one, else as a ratio.

    >>> fraction_text(Fraction(1, 8)), fraction_text(Fraction(2, 3))
    ('0.125', '2/3')
    """
    try:
        return str(EXACT.divide(Decimal(fraction.numerator), Decimal(fraction.denominator)))
    except Inexact:
        return str(fraction)


def _nearby_ratio(exact: Decimal) -> Fraction | None:
    """Return the ratio p/q, q ≤ ``MOST_PARTS``, that a decimal with the digits of a float stands for, or that was
    rounded down to it; None for other decimals.
    """
    digits = len(exact.as_tuple().digits)
    if digits <= TYPED_DIGITS:
        return None
    ratio = Fraction(exact).limit_denominator(MOST_PARTS)
    is_float = digits <= FLOAT_DIGITS and abs(ratio - Fraction(exact)) <= RATIO_ERROR
    return ratio if ratio > 0 and (is_float or exact == _round_down(ratio)) else None


def _round_down(fraction: Fraction) -> Decimal:
    return ROUND_DOWN_TWENTY_DIGITS.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def exact_decimal_product(first: Decimal, second: Decimal) -> Decimal:
    """Return the exact product, independent of the thread's decimal context.

    >>> exact_decimal_product(Decimal("0.1"), Decimal("0.3"))
    Decimal('0.03')
    """
    return EXACT.multiply(first, second)


def float_at_most(exact: Decimal) -> float:
    """Return the largest float that is not above the decimal."""
    nearest = float(exact)
    return nearest if Fraction(nearest) <= Fraction(exact) else math.nextafter(nearest, 0.0)


def printed_float_at_most(exact: Decimal) -> float:
    """Return the largest float that is not above the decimal and whose shortest text is not above it either.

    >>> printed_float_at_most(Decimal("3.3333333333333333333e-9"))
    3.333333333333333e-09
    """
    number = float_at_most(exact)
    while Decimal(repr(number)) > exact:
        number = math.nextafter(number, 0.0)
    return number


def _checked_points(points: Sequence[tuple[Number, Number]] | None) -> list[Point]:
    if points is not None and not (isinstance(points, (list, tuple)) and len(points) > 0):
        raise InputError("points", points, "a list of at least one pair (epsilon, delta)")
    checked = []
    for pair in points or ():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError("points", pair, "pairs (epsilon, delta)")
        epsilon = exact_decimal("points", pair[0])
        if not 0 <= epsilon <= MAX_EPSILON:
            raise InputError("points", pair[0], f"pairs whose epsilon is a number in [0, {MAX_EPSILON}]")
        checked.append((epsilon, _checked_between("points", pair[1], "0", "1")))
    return checked


def _checked_rates(pairs: Sequence[tuple[Number, Number]]) -> tuple[Point, ...]:
    if not (isinstance(pairs, (list, tuple)) and len(pairs) > 0):
        raise InputError("attack_rates", pairs, "a list of at least one pair (false_positive_rate, true_positive_rate)")
    checked = []
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError("attack_rates", pair, "pairs (false_positive_rate, true_positive_rate)")
        false_positive, true_positive = (exact_decimal("attack_rates", rate) for rate in pair)
        if not SMALLEST_RATE <= false_positive < true_positive < 1:
            expected = "two rates between 0 and 1, the true-positive rate above the false-positive rate"
            raise InputError("attack_rates", pair, expected, "a guess that ignores the data has both rates equal")
        checked.append((false_positive, true_positive))
    return tuple(checked)


def _point_of_rates(false_positive: Decimal, true_positive: Decimal) -> Point:
    """Return (ε, δ) with δ ≤ β − e^ε α, which implies a true-positive rate of at most β at the false-positive rate α.

    P(A) ≤ δ + e^ε Q(A) for every test A. ε is the one at which the Gaussian with these rates has δ = β − e^ε α: with
    μ = Φ⁻¹(β) − Φ⁻¹(α), ε = −μ Φ⁻¹(α) − μ²/2. If that is negative, the rates 1 − β and 1 − α say the same of the
    other order of the pair.
    """
    first, second = false_positive, true_positive
    if first + second > 1:
        first, second = EXACT.subtract(Decimal(1), second), EXACT.subtract(Decimal(1), first)
    low, high = _normal_quantile(first), _normal_quantile(second)
    mu = high - low
    epsilon = SIX_DIGITS.create_decimal_from_float(max(0.0, -mu * low - mu * mu / 2))
    growth = EXPONENTIALS.multiply(EXPONENTIALS.exp(epsilon), ABOVE_ONE)
    delta = ROUND_DOWN_TWENTY_DIGITS.plus(EXPONENTIALS.subtract(second, EXPONENTIALS.multiply(growth, first)))
    if not delta > 0:  # nearly equal rates: ε = 0 is the only useful point
        return Decimal(0), EXACT.subtract(second, first)
    return epsilon, delta


def _normal_quantile(probability: Decimal) -> float:
    """Return Φ⁻¹(p), for p near 1 from the complement."""
    if probability > Decimal("0.5"):
        return -NormalDist().inv_cdf(float(EXACT.subtract(Decimal(1), probability)))
    return NormalDist().inv_cdf(float(probability))


def _point_of_rho(value: Number, delta: Decimal) -> Point:
    """Return the point (ε, δ) of the Gaussian mechanism with ρ = μ²/2; (0, its η) if that is smaller than δ."""
    rho = exact_decimal("rho", value)
    if not 0 < rho <= MAX_RHO:
        raise InputError("rho", value, f"greater than 0 and at most {MAX_RHO:,}", "a typical value is 0.1")
    if not float(delta) > 0:
        raise InputError("delta", str(delta), "greater than 0 with rho", "rho implies an epsilon at every delta > 0")
    mu, target = math.sqrt(2 * float(rho)), float(delta)
    if not _gaussian_delta(0.0, mu) > target:
        return Decimal(0), SIX_DIGITS_DOWN.create_decimal_from_float(_gaussian_delta(0.0, mu) * (1 - RHO_MARGIN))
    low, high = 0.0, mu
    while _gaussian_delta(high, mu) > target:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_delta(middle, mu) > target else (low, middle)
    return SIX_DIGITS_DOWN.create_decimal_from_float(low * (1 - RHO_MARGIN)), delta


def _gaussian_delta(epsilon: float, mu: float) -> float:
    """Return δ = Φ(−a) − φ(a) m(a + μ) of a Gaussian, a = ε/μ − μ/2, with Mills' ratio m = (1 − Φ)/φ."""
    first = epsilon / mu - mu / 2
    density = math.exp(-first * first / 2) / math.sqrt(2 * math.pi)
    if first < LARGE_DEVIATION:
        return math.erfc(first / math.sqrt(2)) / 2 - density * _mills_ratio(first + mu)
    return density * (_mills_ratio(first) - _mills_ratio(first + mu))


def _mills_ratio(deviation: float) -> float:
    """Return (1 − Φ)/φ, by its continued fraction if the deviation is large."""
    if deviation < LARGE_DEVIATION:
        density = math.exp(-deviation * deviation / 2) / math.sqrt(2 * math.pi)
        return math.erfc(deviation / math.sqrt(2)) / 2 / density
    ratio = deviation
    for term in range(RATIO_TERMS, 0, -1):
        ratio = deviation + term / ratio
    return 1 / ratio


def _checked_delta(value: object, points: list[Point]) -> Decimal:
    if value is None and points:
        return min(delta for _, delta in points)
    if value is None:
        raise InputError.from_text("delta", f"missing; {DELTA_SIZE_ADVICE}")
    exact = exact_decimal("delta", value)
    if not 0 <= exact < 1:
        raise InputError("delta", value, "a number in [0, 1)", DELTA_SIZE_ADVICE)
    return exact


def points_at_zero(total_variation: Number | None, attack_success: Number | None) -> list[Point]:
    """Return the point (0, η) that a total variation η asks for, or an attack success (1 + η)/2; none without either.

    >>> points_at_zero(None, "0.65")
    [(Decimal('0'), Decimal('0.30'))]
    """
    if total_variation is not None and attack_success is not None:
        remedy = "they say the same: attack_success = (1 + total_variation)/2"
        raise InputError("attack_success", attack_success, "left out if total_variation is given", remedy)
    if total_variation is not None:
        return [(Decimal(0), _checked_between("total_variation", total_variation, "0", "1"))]
    if attack_success is None:
        return []
    success = _checked_between("attack_success", attack_success, "0.5", "1")
    return [(Decimal(0), EXACT.subtract(exact_decimal_product(Decimal(2), success), Decimal(1)))]


def _checked_between(name: str, value: object, low: str, high: str) -> Decimal:
    exact = exact_decimal(name, value)
    if not Decimal(low) <= exact < Decimal(high):
        raise InputError(name, value, f"a number in [{low}, {high})")
    return exact


def attack_success_of(total_variation: float, *, is_bound: bool = False) -> float:
    """Return (1 + η)/2, the largest success rate of an attacker with an even prior, as the nearest double.

    ``is_bound``: η is an upper bound to which nothing was added for rounding, so that the result is one double larger.

    >>> attack_success_of(0.3), attack_success_of(0.3, is_bound=True), attack_success_of(1.0, is_bound=True)
    (0.65, 0.6500000000000001, 1.0)
    """
    success = (1 + total_variation) / 2
    return min(1.0, math.nextafter(success, 2.0)) if is_bound else success


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(ε, δ)-privacy with total variation η (GI; theory §1).

    Admissible: δ ≤ η ≤ δ + (1−δ) tanh(ε/2). A larger η is redundant and is clipped to that bound; a smaller one
    than δ makes δ := η, because δ never exceeds η. η defaults to the bound. ε is in nats. Raises ``InputError``
    unless ε ≥ 0 (∞ is allowed: no bound at that δ) and δ, η are probabilities.

    >>> Guarantee(1.0, 1e-6).total_variation < 0.463
    True
    >>> Guarantee(1.0, 0.01, 0.3).attack_success
    0.65
    """

    epsilon: float
    delta: float = 0.0
    total_variation: float = 1.0

    def __post_init__(self) -> None:
        if not _is_number(self.epsilon) or not self.epsilon >= 0:
            raise InputError("epsilon", self.epsilon, "a number >= 0", "a typical value is 1")
        for name in ("delta", "total_variation"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value <= 1:
                raise InputError(name, value, "a probability in [0, 1]")
        object.__setattr__(self, "delta", min(self.delta, self.total_variation))
        object.__setattr__(self, "total_variation", min(self.total_variation, self.largest_total_variation))

    @property
    def largest_total_variation(self) -> float:
        """δ + (1−δ) tanh(ε/2), the total variation that (ε, δ) alone implies."""
        return min(1.0, self.delta + (1 - self.delta) * math.tanh(self.epsilon / 2))

    @property
    def attack_success(self) -> float:
        """Return the largest success rate of an attacker with an even prior: (1 + η)/2."""
        return attack_success_of(self.total_variation)

    def explain(self) -> str:
        """Return the guarantee in one plain paragraph, and a picture of 100 guesses; every number is rounded up.

        >>> print(Guarantee(1.0, 1e-6).explain())  # doctest: +ELLIPSIS
        An attacker who sees the output and guesses ... is right at most 73.2 % of the time (random guessing: 50 %). ...
        """
        from tightrope.documents import numbers

        stated = self.total_variation < self.largest_total_variation
        eta = self.total_variation if stated else numbers.total_variation(self.epsilon, self.delta)
        return str(explain_numbers(self.epsilon, self.delta, numbers.attack_success_rate(eta)))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
