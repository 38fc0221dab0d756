"""One statement of a paper as something that is run: our number, the paper's, and the verdict from both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightrope.reporting.charts.panels import Drawing

Values = tuple[float, ...]
Computed = float | Sequence[float]
Judge = Callable[[Values, Values], str]
"""From our values and the paper's to a verdict, which begins with agrees, sharper, wrong or not."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried: ``instances`` of what is stated without numbers, ``grid`` points along an axis of a figure.

    >>> FULL.instances > COARSE.instances
    True
    """

    instances: int
    grid: int
    coarse: bool = False

    def some(self, share: float) -> int:
        """Fewer instances, for what takes long one by one; all of them outside the coarse setting."""
        return max(4, round(self.instances * share)) if self.coarse else self.instances


FULL = Effort(instances=1_000, grid=41)
COARSE = Effort(instances=40, grid=5, coarse=True)
Compute = Callable[[Effort], Computed]
Draw = Callable[[Effort], Sequence[Drawing]]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came out: our values, the paper's, and the verdict."""

    ours: Values
    printed: Values
    verdict: str

    @property
    def word(self) -> str:
        """The first word of the verdict: agrees, sharper, wrong or not."""
        return self.verdict.replace(":", " ").split()[0]


@dataclass(frozen=True, slots=True)
class Item:
    """A theorem, a figure, an example: ``statement`` says in one line what is compared.

    ``ours`` comes from public calls (``call`` names them), ``printed`` from the paper's text or from its formula,
    written down here once more and independently; ``judge`` alone decides what the two mean.
    """

    paper: str
    item: str
    statement: str
    call: str
    ours: Compute
    printed: Compute
    judge: Judge
    draw: Draw | None = None

    def compute(self, effort: Effort) -> Finding:
        """Our values and the paper's at this effort, compared now."""
        ours, printed = as_values(self.ours(effort)), as_values(self.printed(effort))
        return Finding(ours, printed, self.judge(ours, printed))


def as_values(found: Computed) -> Values:
    """One number or several, as floats.

    >>> as_values(1), as_values([0.5, 2])
    ((1.0,), (0.5, 2.0))
    """
    return (float(found),) if isinstance(found, (int, float)) else tuple(map(float, found))


def number(*values: float) -> Compute:
    """What a paper prints as a number."""
    return lambda effort: values


# How a verdict follows from two rows of numbers: nothing here knows a paper.

SMALLEST_NUMBER = 1e-300
MOST_AGREED = 15
"""More digits than these are not claimed: floats have no more."""
JUDGED_ROUNDING = 1e-9
NEXT_TO_NOTHING = 1e-14
"""A printed value below this is what rounding leaves of 0: differences to it are absolute."""


def agrees(digits: int) -> Judge:
    """All values are the same to so many digits: absolute beside 0, relative elsewhere.

    >>> agrees(3)((1.0004,), (1.0,)), agrees(4)((1.0004,), (1.0,))
    ('agrees to 3 digits', 'not reproduced: off by 0.0004 of the printed value')
    """

    def judge(ours: Values, printed: Values) -> str:
        off = apart(ours, printed)
        if not off <= 10.0**-digits:
            return f"not reproduced: off by {off:.2g} of the printed value"
        return f"agrees to {shared_digits(off)} digits"

    return judge


def within(tolerance: float) -> Judge:
    """All values differ by no more than this: half a unit in the last place that was printed, or a limit's distance.

    >>> within(0.005)((0.30011,), (0.3,))
    'agrees within 0.005: off by 0.00011'
    """

    def judge(ours: Values, printed: Values) -> str:
        off = max(abs(a - b) for a, b in _pairs(ours, printed))
        if not off <= tolerance:
            return f"not reproduced: off by {off:.3g}, more than {tolerance:g}"
        return f"agrees within {tolerance:g}: off by {off:.2g}"

    return judge


def at_most(slack: float = JUDGED_ROUNDING) -> Judge:
    """No value found exceeds what the paper allows.

    >>> at_most()((0.98,), (1.0,)), at_most()((1.2,), (1.0,))
    ('agrees: nothing above, the largest is 0.98 of the bound', 'not reproduced: 1.2 exceeds 1')
    """

    def judge(ours: Values, printed: Values) -> str:
        for a, b in _pairs(ours, printed):
            if not a <= b + slack * max(1.0, abs(b)):
                return f"not reproduced: {a:.6g} exceeds {b:.6g}"
        nearest = max((a / b for a, b in _pairs(ours, printed) if b), default=1.0)
        return f"agrees: nothing above, the largest is {nearest:.3g} of the bound"

    return judge


def attained(digits: int = 9) -> Judge:
    """The last value reaches the paper's, the others stay below theirs.

    >>> attained()((0.7, 1.0), (1.0, 1.0))
    'agrees: nothing above, and attained to 15 digits'
    """

    def judge(ours: Values, printed: Values) -> str:
        below = at_most()(ours, printed)
        reached = agrees(digits)(ours[-1:], printed[-1:])
        if not (below.startswith("agrees") and reached.startswith("agrees")):
            return next(text for text in (below, reached) if not text.startswith("agrees"))
        return f"agrees: nothing above, and attained {reached.removeprefix('agrees ')}"

    return judge


def sharper(ours_is: str = "lower") -> Judge:
    """Our bound, ``lower`` or ``higher`` than the paper's and so better; the same is agreement, worse is neither.

    >>> sharper()((0.5,), (1.0,)), sharper("higher")((1.0,), (1.0,))
    ('sharper by a factor of 2', 'agrees to 15 digits')
    """

    def judge(ours: Values, printed: Values) -> str:
        pairs = _pairs(ours, printed)
        gains = [gain(a, b) if ours_is == "lower" else gain(b, a) for a, b in pairs]
        if not min(gains) >= 1 - JUDGED_ROUNDING:
            return f"not reproduced: ours is {1 / max(min(gains), SMALLEST_NUMBER):.4g} times worse"
        best = max(gains)
        return f"sharper by {as_factor(best)}" if best > 1 + JUDGED_ROUNDING else agrees(9)(ours, printed)

    return judge


def wrong(because: str, digits: int = 6) -> Judge:
    """What is printed is not what comes out; where the two agree after all, nothing is wrong.

    >>> wrong("a sign is lost")((0.5,), (-0.5,))
    'wrong (the paper): a sign is lost; off by 2 of the printed value'
    """

    def judge(ours: Values, printed: Values) -> str:
        off = apart(ours, printed)
        if off <= 10.0**-digits:
            return f"agrees to {shared_digits(off)} digits"
        return f"wrong (the paper): {because}; off by {off:.2g} of the printed value"

    return judge


def exceeded(because: str) -> Judge:
    """The paper allows no more than what it prints, and more was found; where nothing is above, it is right.

    >>> exceeded("not at large delta")((1.2,), (1.0,)), exceeded("not at large delta")((0.5,), (1.0,))
    ('wrong (the paper): not at large delta; 1.2 is above 1', 'agrees: nothing above, the largest is 0.5 of the bound')
    """

    def judge(ours: Values, printed: Values) -> str:
        plain = at_most()(ours, printed)
        if plain.startswith("agrees"):
            return plain
        a, b = max(_pairs(ours, printed), key=lambda pair: pair[0] - pair[1])
        return f"wrong (the paper): {because}; {a:.4g} is above {b:.4g}"

    return judge


def apart(ours: Values, printed: Values) -> float:
    """The largest difference, relative to what is printed unless that is 0."""
    return max(_apart(a, b) for a, b in _pairs(ours, printed))


def _apart(a: float, b: float) -> float:
    if a == b:
        return 0.0
    scale = abs(b) if abs(b) > NEXT_TO_NOTHING else 1.0
    return abs(a - b) / scale if math.isfinite(a) and math.isfinite(b) else math.inf


def shared_digits(off: float) -> int:
    """How many digits a relative difference leaves."""
    return min(MOST_AGREED, math.floor(-math.log10(max(off, SMALLEST_NUMBER)) + JUDGED_ROUNDING))


def gain(small: float, large: float) -> float:
    """How many times smaller the first is; 1 where both are 0, ∞ where the second alone is not, or not finite."""
    if small == large:
        return 1.0
    return large / small if small > 0 and math.isfinite(large) else math.inf if small < large else 0.0


def as_factor(value: float) -> str:
    """Percents where little is gained, a factor elsewhere.

    >>> as_factor(1.05), as_factor(12.3)
    ('5 %', 'a factor of 12.3')
    """
    return f"{100 * (value - 1):.3g} %" if value < 1.5 else f"a factor of {value:.4g}"


def _pairs(ours: Values, printed: Values) -> list[tuple[float, float]]:
    """Value by value; one printed number stands for all."""
    wide = printed * len(ours) if len(printed) == 1 else printed
    return list(zip(ours, wide, strict=True))
