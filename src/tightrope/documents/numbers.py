"""Numbers for people: as many digits as the noise leaves meaning, thousands separators, and a stated direction.

Every function works on the shortest decimal that names a float, so 0.582 rounded up to a tenth of a percent
is 58.2 %, not 58.3 %. A decimal is taken as it is. Dates and instants are numbers of days.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from statistics import median
from typing import Literal

NEAREST, UP, DOWN = ROUND_HALF_EVEN, ROUND_CEILING, ROUND_FLOOR
MISSING = "–"
MAX_DECIMALS = 9

Number = float | Decimal

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_WIDE_CONTEXT = Context(prec=400)  # a float has at most 309 digits before the point


def decimals_for(half_widths: Sequence[float]) -> int:
    """Return the number of decimal places, 0 to 9, that show two digits of the median half-width.

    >>> decimals_for([15.2]), decimals_for([2.2]), decimals_for([0.021]), decimals_for([])
    (0, 1, 3, 2)
    """
    positive = [width for width in half_widths if width > 0]
    if not positive:
        return 2
    return min(max(0, 1 - math.floor(math.log10(median(positive)))), MAX_DECIMALS)


def fixed_text(value: Number | None, decimals: int, rounding: str = NEAREST) -> str:
    """Return ``value`` with that many decimal places; an en dash for None.

    >>> fixed_text(1234567.891, 1), fixed_text(-0.04, 1), fixed_text(-2.5, 0, DOWN), fixed_text(None, 2)
    ('1,234,567.9', '0.0', '−3', '–')
    """
    if value is None:
        return MISSING
    if abs(float(value)) >= 1e15:
        return significant_text(value, 3, rounding)
    return full_digits(rounded_decimal(value, decimals, rounding))


def rounded_decimal(value: Number, decimals: int, rounding: str = NEAREST) -> Decimal:
    """Return ``value`` rounded to that many decimal places, independent of the thread's decimal context."""
    return shortest_decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding, _WIDE_CONTEXT)


def shortest_decimal(value: Number) -> Decimal:
    """Return a decimal unchanged; of a float, the shortest decimal that reads back as it."""
    return value if isinstance(value, Decimal) else Decimal(repr(value))


def full_digits(exact: Decimal) -> str:
    """Return all digits of a decimal, with thousands separators.

    >>> full_digits(Decimal("-1234.50"))
    '−1,234.50'
    """
    return f"{'−' if exact < 0 else ''}{exact.copy_abs():,f}"


def significant_text(value: Number | None, digits: int = 3, rounding: str = NEAREST) -> str:
    """Return ``value`` with at most that many significant digits; with a power of ten outside 0.001 … 10¹⁵.

    >>> one = significant_text(0.999999, 3, UP)
    >>> one, significant_text(1e-8), significant_text(15.24, 2), significant_text(123456.7)
    ('1', '1 × 10⁻⁸', '15', '123,457')
    """
    return MISSING if value is None else _significant_digits(shortest_decimal(value), digits, rounding)


def terminal_text(value: Number | None, digits: int = 3, rounding: str = NEAREST) -> str:
    """Return ``significant_text`` for terminals: with powers of ten as typed in programs, such as 1e-8.

    >>> terminal_text(1e-8), terminal_text(15.24, 2), terminal_text(None)
    ('1e-8', '15', '–')
    """
    text, power, exponent = significant_text(value, digits, rounding).partition(" × 10")
    return f"{text}e{exponent.translate(_PLAIN_DIGITS)}" if power else text


def positional_text(value: Number, digits: int, rounding: str = NEAREST) -> str:
    """Return ``value`` > 0 rounded to at least that many significant digits, never with a power of ten.

    >>> positional_text(5912499.3, 3, UP), positional_text(32.836, 2, UP), positional_text(0.00000206, 2, UP)
    ('5,912,500', '33', '0.0000021')
    """
    exact = shortest_decimal(value)
    precision = max(digits, exact.adjusted() + 1)
    return full_digits(Context(prec=precision, rounding=rounding).plus(exact).normalize(_WIDE_CONTEXT))


def compact_text(value: Number | None) -> str:
    """Return ``value`` ≥ 0 with two digits, rounded up, in at most seven characters; an en dash for None.

    >>> compact_text(15.24), compact_text(999_999), compact_text(1_234_567), compact_text(0.000206), compact_text(0)
    ('16', '999,999', '1.3e+6', '2.1e-4', '0')
    """
    if value is None or not value or 1e-3 <= value < 1e6:
        return significant_text(value, 2, UP)
    exact = shortest_decimal(value).normalize(_WIDE_CONTEXT)
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), UP, _WIDE_CONTEXT):.1e}"


def shortest_text(value: float) -> str:
    """Return the digits of a number as it is typed; a float that is an integer below 10¹⁵ without a decimal point.

    >>> shortest_text(12.0), shortest_text(-0.5), shortest_text(7), shortest_text(1e16)
    ('12', '-0.5', '7', '1e+16')
    """
    is_integer = isinstance(value, float) and value.is_integer() and abs(value) < _MAX_PLAIN_FLOAT
    return str(int(value)) if is_integer else str(value)


_MAX_PLAIN_FLOAT = 1e15
"""Integers from here on are shown with a power of ten if they are floats."""


def percent_text(fraction: Number | None, rounding: str = NEAREST) -> str:
    """Return a fraction as a percentage with one decimal place, more if it would read 0 or 100.

    >>> rounded_up = [percent_text(share, UP) for share in (0.6562, 0.582, 0.00002, 0.99995)]
    >>> rounded_up[0], percent_text(0.5), *rounded_up[1:]
    ('65.7 %', '50 %', '58.2 %', '0.002 %', '99.995 %')
    """
    if fraction is None:
        return MISSING
    exact = shortest_decimal(fraction).scaleb(2, _WIDE_CONTEXT)
    nearest_end = min(exact.copy_abs(), _WIDE_CONTEXT.subtract(Decimal(100), exact).copy_abs())
    if nearest_end and nearest_end < Decimal("1e-6"):
        if exact < 1:
            return f"{_significant_digits(exact, 3, rounding)} %"
        return "99.999999 %" if rounding == DOWN and exact < 100 else "100 %"
    decimals = 1 if not nearest_end or nearest_end >= Decimal("0.1") else 1 - nearest_end.adjusted()
    shown = fixed_text(exact, decimals, rounding)
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown} %"


def one_in_text(probability: Number) -> str:
    """Return a probability as a chance in words, rounded up.

    >>> one_in_text(1e-8), one_in_text(0.003), one_in_text(1e-30)
    ('1 in 100 million', '1 in 333', '1 in 10³⁰')
    """
    if probability <= 0:
        return "never"
    count = math.floor(1 / Fraction(shortest_decimal(probability)))
    for unit, word in ((10**9, "billion"), (10**6, "million")):
        if count >= unit and count < unit * 1000:
            return f"1 in {count // unit} {word}"
    if count < 10**6:
        return f"1 in {count:,}"
    return f"1 in {power_of_ten(len(str(count)) - 1)}"


def power_of_ten(exponent: int) -> str:
    """Return a power of ten in superscript digits.

    >>> power_of_ten(-6), power_of_ten(0)
    ('10⁻⁶', '1')
    """
    return f"10{str(exponent).translate(_SUPERSCRIPT)}" if exponent else "1"


def _significant_digits(exact: Decimal, digits: int, rounding: str) -> str:
    if not exact:
        return "0"
    precision = max(digits, exact.adjusted() + 1 if exact.adjusted() < 15 else digits)
    rounded = Context(prec=precision, rounding=rounding).plus(exact).normalize(_WIDE_CONTEXT)
    exponent = rounded.adjusted()
    if -3 <= exponent < 15:
        return full_digits(rounded)
    mantissa = rounded.copy_abs().scaleb(-exponent, _WIDE_CONTEXT).normalize(_WIDE_CONTEXT)
    return f"{'−' if rounded < 0 else ''}{mantissa:f} × {power_of_ten(exponent)}"


# Upper bounds on what (ε, δ) allows an attacker, as decimals.

_UP_CONTEXT = Context(prec=60, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DOWN_CONTEXT = Context(prec=60, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)
_EXP_ERROR_FACTOR = _UP_CONTEXT.add(1, Decimal("1e-50"))
"""Covers the rounding of ``exp`` in decimals, which rounds to the nearest."""
BEYOND_WORDS = 10_000
"""Beyond this ε, e^ε is shown as infinite."""


def likelihood_factor(epsilon: Number) -> Decimal:
    """Return e^ε, rounded up; infinite beyond ``BEYOND_WORDS``.

    >>> e_below = Decimal("2.718281828459045235360287471352662")
    >>> likelihood_factor(0.0), likelihood_factor(1.0) > e_below, likelihood_factor(1e9)
    (Decimal('1'), True, Decimal('Infinity'))
    """
    if epsilon > BEYOND_WORDS:
        return Decimal("inf")
    return (
        _UP_CONTEXT.multiply(_UP_CONTEXT.exp(shortest_decimal(epsilon)), _EXP_ERROR_FACTOR) if epsilon else Decimal(1)
    )


def total_variation(epsilon: Number, delta: Number) -> Decimal:
    """Return δ + (1−δ) tanh(ε/2), rounded up: the total variation that (ε, δ) alone allows (GI; theory §1).

    >>> total_variation(0.0, 0.25), total_variation(float("inf"), 0.0) == 1
    (Decimal('0.25'), True)
    """
    if not epsilon:
        return shortest_decimal(delta)
    one_minus_tanh = _DOWN_CONTEXT.divide(2, _UP_CONTEXT.add(likelihood_factor(epsilon), 1))
    return _UP_CONTEXT.subtract(
        1, _DOWN_CONTEXT.multiply(one_minus_tanh, _DOWN_CONTEXT.subtract(1, shortest_decimal(delta)))
    )


def attack_success_rate(total_variation: Number) -> Decimal:
    """Return (1 + η)/2, rounded up: the largest success rate of a guess with even odds.

    >>> attack_success_rate(0.3)
    Decimal('0.65')
    """
    return _UP_CONTEXT.divide(_UP_CONTEXT.add(1, shortest_decimal(total_variation)), 2)


def times_text(epsilon: Number) -> str:
    """Return e^ε in words, rounded up.

    >>> times_text(1.0), times_text(0.0), times_text(800.0), times_text(1e5)
    ('2.72', '1', '2.73 × 10³⁴⁷', 'e to the power of 100,000')
    """
    factor = likelihood_factor(epsilon)
    return (
        significant_text(factor, 3, UP)
        if factor.is_finite()
        else f"e to the power of {significant_text(epsilon, 3, UP)}"
    )


# The picture of 100 guesses: correct by random guessing, correct because of what is published, and wrong.

GUESS_COUNT, RANDOM_CORRECT_COUNT, GUESSES_PER_LINE = 100, 50, 25


@dataclass(frozen=True, slots=True)
class Guesses:
    """Of 100 guesses with even odds, on average: 50 correct at random, at most ``more`` in addition, the rest wrong."""

    more: int

    @classmethod
    def from_success(cls, success: Number) -> Guesses:
        """Return the picture for an attacker's success rate; integer counts, rounded up in any decimal context.

        >>> Guesses.from_success(0.731), Guesses.from_success(0.5), Guesses.from_success(1.0)
        (Guesses(more=24), Guesses(more=0), Guesses(more=50))
        """
        return cls(
            min(
                max(math.ceil(Fraction(shortest_decimal(success)) * GUESS_COUNT) - RANDOM_CORRECT_COUNT, 0),
                GUESS_COUNT - RANDOM_CORRECT_COUNT,
            )
        )

    @property
    def right_count(self) -> int:
        """Return the number of right guesses, at most."""
        return RANDOM_CORRECT_COUNT + self.more

    @property
    def wrong_count(self) -> int:
        """Return the number of wrong guesses, at least."""
        return GUESS_COUNT - self.right_count

    @property
    def legend_entries(self) -> tuple[tuple[str, str, int], ...]:
        """The kinds of guesses that occur: sign, text and number of each."""
        kinds = (
            ("●", f"{RANDOM_CORRECT_COUNT} correct by random guessing", RANDOM_CORRECT_COUNT),
            ("◆", f"up to {self.more} more correct because of what is published", self.more),
            ("○", f"at least {self.wrong_count} wrong", self.wrong_count),
        )
        return tuple(kind for kind in kinds if kind[2])

    @property
    def picture_text(self) -> str:
        """The picture in a sentence.

        >>> Guesses(24).picture_text
        'Of 100 such guesses, at most 74 are right on average; of 100 random guesses, 50.'
        """
        return (
            f"Of {GUESS_COUNT} such guesses, at most {self.right_count} are right on average; of {GUESS_COUNT} random "
            f"guesses, {RANDOM_CORRECT_COUNT}."
        )

    def __str__(self) -> str:
        signs = "".join(sign * count for sign, _, count in self.legend_entries)
        lines = [" ".join(signs[start : start + GUESSES_PER_LINE]) for start in range(0, GUESS_COUNT, GUESSES_PER_LINE)]
        return "\n".join([*lines, "", *(f"{sign} {text}" for sign, text, _ in self.legend_entries)])


# Dates and instants as days since 1970-01-01. Answers about dates are numbers in documents, like all others, with a
# unit string of the CF conventions (netCDF): pages, terminals and data frames show them as dates.

EPOCH = datetime.datetime(1970, 1, 1)
DATE_UNIT = "days since 1970-01-01"
INSTANT_UNIT = "days since 1970-01-01 00:00 UTC"
TIME_UNITS = (DATE_UNIT, INSTANT_UNIT)
"""The units of numbers that are shown as dates or as instants."""
SECONDS_OF_DAY = 86_400
FIRST_DAY, LAST_DAY = ((day - EPOCH.date()).days for day in (datetime.date.min, datetime.date.max))

Rounding = Literal["nearest", "down", "up"]
"""Values are rounded to the nearest; the ends of intervals outwards, "down" and "up"."""
ROUND_BY_DIRECTION: dict[Rounding, Callable[[float], int]] = {"nearest": round, "down": math.floor, "up": math.ceil}


def days_since_epoch(time: datetime.date) -> float:
    """Return the days from 1970-01-01 to a date or an instant; an instant without a time zone is taken as UTC.

    >>> days_since_epoch(datetime.date(2024, 1, 1)), days_since_epoch(datetime.datetime(1970, 1, 2, 12))
    (19723.0, 1.5)
    """
    if not isinstance(time, datetime.datetime):
        return float((time - EPOCH.date()).days)
    offset = time.utcoffset() or datetime.timedelta()
    microseconds = (time.replace(tzinfo=None) - offset - EPOCH) // datetime.timedelta(microseconds=1)
    return microseconds / (SECONDS_OF_DAY * 1_000_000)


def time_from_days(days: float, unit: str, rounding: Rounding = "nearest") -> datetime.date:
    """Return the date of a number of days, or with ``INSTANT_UNIT`` the instant to the second, in UTC.

    >>> time_from_days(19723.4, DATE_UNIT, "up").isoformat(), time_from_days(1.5, INSTANT_UNIT).isoformat()
    ('2024-01-02', '1970-01-02T12:00:00')
    """
    round_number = ROUND_BY_DIRECTION[rounding]
    bounded = min(max(days, FIRST_DAY), LAST_DAY)
    if unit == DATE_UNIT:
        return EPOCH.date() + datetime.timedelta(days=round_number(bounded))
    return EPOCH + datetime.timedelta(seconds=round_number(bounded * SECONDS_OF_DAY))


def time_text(days: float, unit: str, rounding: Rounding = "nearest") -> str:
    """Return the date, or the instant to the second, of a number of days as text.

    >>> time_text(19723.75, INSTANT_UNIT)
    '2024-01-01 18:00:00'
    """
    return time_from_days(days, unit, rounding).isoformat().replace("T", " ")
