"""One statement of a paper as an executable check: our number, the paper's, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightrope.reporting.charts.panels import Drawing

Values = tuple[float, ...]
Computed = float | Sequence[float]
Judge = Callable[[Values, Values], str]
"""Maps our values and the paper's to a verdict, which begins with agrees, sharper, wrong or not."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Computational effort: ``instances`` of statements without numbers, ``grid`` points along an axis of a figure.

    >>> FULL.instances > COARSE.instances
    True
    """

    instances: int
    grid: int
    coarse: bool = False

    def reduced_instances(self, share: float) -> int:
        """Return fewer instances, for slow ones; all of them outside the coarse setting."""
        return max(4, round(self.instances * share)) if self.coarse else self.instances


FULL = Effort(instances=1_000, grid=41)
COARSE = Effort(instances=40, grid=5, coarse=True)
Compute = Callable[[Effort], Computed]
Draw = Callable[[Effort], Sequence[Drawing]]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of an item: our values, the paper's, and the verdict."""

    ours: Values
    printed: Values
    verdict: str

    @property
    def verdict_word(self) -> str:
        """The first word of the verdict: agrees, sharper, wrong or not."""
        return self.verdict.replace(":", " ").split()[0]


@dataclass(frozen=True, slots=True)
class Item:
    """A theorem, a figure or an example: ``statement`` describes the comparison in one line.

    ``ours`` comes from public calls (``call`` names them), ``printed`` from the paper's text or from its formula,
    implemented here independently; only ``judge`` compares the two.
    """

    paper: str
    item: str
    statement: str
    call: str
    ours: Compute
    printed: Compute
    judge: Judge
    draw: Draw | None = None

    def compute_finding(self, effort: Effort) -> Finding:
        """Return our values and the paper's at this effort, compared."""
        ours, printed = as_values(self.ours(effort)), as_values(self.printed(effort))
        return Finding(ours, printed, self.judge(ours, printed))


def as_values(found: Computed) -> Values:
    """One number or several, as floats.

    >>> as_values(1), as_values([0.5, 2])
    ((1.0,), (0.5, 2.0))
    """
    return (float(found),) if isinstance(found, (int, float)) else tuple(map(float, found))


def printed_number(*values: float) -> Compute:
    """Return a computation of numbers that a paper prints."""
    return lambda effort: values


# How a verdict follows from two rows of numbers: nothing here knows a paper.

SMALLEST_NUMBER = 1e-300
MOST_AGREED = 15
"""Maximal number of digits of agreement: the precision of floats."""
JUDGED_ROUNDING = 1e-9
NEXT_TO_NOTHING = 1e-14
"""Smaller printed values are treated as 0 up to rounding: differences to them are absolute."""


def agrees_to_digits(digits: int) -> Judge:
    """Judge whether all values agree to ``digits`` digits: absolute for values near 0, relative otherwise.

    >>> agrees_to_digits(3)((1.0004,), (1.0,)), agrees_to_digits(4)((1.0004,), (1.0,))
    ('agrees to 3 digits', 'not reproduced: off by 0.0004 of the printed value')
    """

    def judge_agreement(ours: Values, printed: Values) -> str:
        off = largest_difference(ours, printed)
        if not off <= 10.0**-digits:
            return f"not reproduced: off by {off:.2g} of the printed value"
        return f"agrees to {shared_digits(off)} digits"

    return judge_agreement


def agrees_within(tolerance: float) -> Judge:
    """Judge that values differ by at most this: half a unit in the last printed place, or a limit's distance.

    >>> agrees_within(0.005)((0.30011,), (0.3,))
    'agrees within 0.005: off by 0.00011'
    """

    def judge_tolerance(ours: Values, printed: Values) -> str:
        off = max(abs(a - b) for a, b in _value_pairs(ours, printed))
        if not off <= tolerance:
            return f"not reproduced: off by {off:.3g}, more than {tolerance:g}"
        return f"agrees within {tolerance:g}: off by {off:.2g}"

    return judge_tolerance


def bound_holds(slack: float = JUDGED_ROUNDING) -> Judge:
    """Judge that all values are within the paper's bound.

    >>> bound_holds()((0.98,), (1.0,)), bound_holds()((1.2,), (1.0,))
    ('agrees: nothing above, the largest is 0.98 of the bound', 'not reproduced: 1.2 exceeds 1')
    """

    def judge_upper_bound(ours: Values, printed: Values) -> str:
        for a, b in _value_pairs(ours, printed):
            if not a <= b + slack * max(1.0, abs(b)):
                return f"not reproduced: {a:.6g} exceeds {b:.6g}"
        nearest = max((a / b for a, b in _value_pairs(ours, printed) if b), default=1.0)
        return f"agrees: nothing above, the largest is {nearest:.3g} of the bound"

    return judge_upper_bound


def bound_attained(digits: int = 9) -> Judge:
    """Judge that the last value attains the paper's, and the others stay below theirs.

    >>> bound_attained()((0.7, 1.0), (1.0, 1.0))
    'agrees: nothing above, and attained to 15 digits'
    """

    def judge_attainment(ours: Values, printed: Values) -> str:
        below = bound_holds()(ours, printed)
        reached = agrees_to_digits(digits)(ours[-1:], printed[-1:])
        if not (below.startswith("agrees") and reached.startswith("agrees")):
            return next(text for text in (below, reached) if not text.startswith("agrees"))
        return f"agrees: nothing above, and attained {reached.removeprefix('agrees ')}"

    return judge_attainment


def sharper_bound(ours_is: str = "lower") -> Judge:
    """Judge that our bound is better, ``lower`` or ``higher`` than the paper's; equal values agree, worse ones fail.

    >>> sharper_bound()((0.5,), (1.0,)), sharper_bound("higher")((1.0,), (1.0,))
    ('sharper by a factor of 2', 'agrees to 15 digits')
    """

    def judge_sharpness(ours: Values, printed: Values) -> str:
        pairs = _value_pairs(ours, printed)
        gains = [gain_factor(a, b) if ours_is == "lower" else gain_factor(b, a) for a, b in pairs]
        if not min(gains) >= 1 - JUDGED_ROUNDING:
            return f"not reproduced: ours is {1 / max(min(gains), SMALLEST_NUMBER):.4g} times worse"
        best = max(gains)
        return f"sharper by {as_factor(best)}" if best > 1 + JUDGED_ROUNDING else agrees_to_digits(9)(ours, printed)

    return judge_sharpness


def paper_is_wrong(because: str, digits: int = 6) -> Judge:
    """Judge that the printed value differs from the computed one; if they agree, so does the verdict.

    >>> paper_is_wrong("a sign is lost")((0.5,), (-0.5,))
    'wrong (the paper): a sign is lost; off by 2 of the printed value'
    """

    def judge_error(ours: Values, printed: Values) -> str:
        off = largest_difference(ours, printed)
        if off <= 10.0**-digits:
            return f"agrees to {shared_digits(off)} digits"
        return f"wrong (the paper): {because}; off by {off:.2g} of the printed value"

    return judge_error


def bound_exceeded(because: str) -> Judge:
    """Judge that a value above the paper's bound was found; otherwise the verdict is agreement.

    >>> bound_exceeded("not at large delta")((1.2,), (1.0,)), bound_exceeded("not at large delta")((0.5,), (1.0,))
    ('wrong (the paper): not at large delta; 1.2 is above 1', 'agrees: nothing above, the largest is 0.5 of the bound')
    """

    def judge_excess(ours: Values, printed: Values) -> str:
        plain = bound_holds()(ours, printed)
        if plain.startswith("agrees"):
            return plain
        a, b = max(_value_pairs(ours, printed), key=lambda pair: pair[0] - pair[1])
        return f"wrong (the paper): {because}; {a:.4g} is above {b:.4g}"

    return judge_excess


def largest_difference(ours: Values, printed: Values) -> float:
    """Return the largest difference, relative to the printed value unless that is 0."""
    differences = []
    for a, b in _value_pairs(ours, printed):
        if a == b:
            differences.append(0.0)
        elif math.isfinite(a) and math.isfinite(b):
            differences.append(abs(a - b) / (abs(b) if abs(b) > NEXT_TO_NOTHING else 1.0))
        else:
            differences.append(math.inf)
    return max(differences)


def shared_digits(off: float) -> int:
    """Return the number of digits that a relative difference leaves."""
    return min(MOST_AGREED, math.floor(-math.log10(max(off, SMALLEST_NUMBER)) + JUDGED_ROUNDING))


def gain_factor(small: float, large: float) -> float:
    """Return ``large / small``; 1 if both are equal, ∞ if only the first is 0 or only the second infinite."""
    if small == large:
        return 1.0
    return large / small if small > 0 and math.isfinite(large) else math.inf if small < large else 0.0


def as_factor(value: float) -> str:
    """Format a gain: small ones in percent, others as a factor.

    >>> as_factor(1.05), as_factor(12.3)
    ('5 %', 'a factor of 12.3')
    """
    return f"{100 * (value - 1):.3g} %" if value < 1.5 else f"a factor of {value:.4g}"


def _value_pairs(ours: Values, printed: Values) -> list[tuple[float, float]]:
    """Value by value; one printed number stands for all."""
    wide = printed * len(ours) if len(printed) == 1 else printed
    return list(zip(ours, wide, strict=True))
