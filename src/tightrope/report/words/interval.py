"""A value, its ± and its interval as one reader sees them: in the digits that are shown, they agree."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context

from tightrope.certificates.words.digits import DOWN, MISSING, UP, fixed, plain, rounded
from tightrope.report.words.answers import Row

WITHHELD = "withheld"
LARGEST = 1e15
"""From here on numbers are shown by their leading digits, and ± is the longer side."""
EVEN = 0.02
"""Sides that differ by no more than this share of the longer one are shown as one."""
_WIDE = Context(prec=400)


@dataclass(frozen=True, slots=True)
class Shown:
    """The texts of one group. ``off`` is "12" for value ± 12, and "+5 −3" where the sides differ."""

    value: str
    off: str
    lower: str
    upper: str

    @property
    def within(self) -> str:
        """How far off the value may be, as it stands behind it."""
        alone = self.off in ("", MISSING) or self.off.startswith("+")
        return self.off if alone else f"± {self.off}"


def shown(row: Row, decimals: int) -> Shown:
    """The value rounded, the ends rounded outwards; sides that are nearly even become the longer one.

    >>> shown(Row((), 3.1416, 3.0967, 3.1865), 3)
    Shown(value='3.142', off='0.046', lower='3.096', upper='3.188')
    >>> shown(Row((), 0.2, 0.0, 0.5), 1).off
    '+0.3 −0.2'
    """
    lower, upper = fixed(row.lower, decimals, DOWN), fixed(row.upper, decimals, UP)
    if row.value is None:
        return Shown(WITHHELD, MISSING, lower, upper)
    value = fixed(row.value, decimals)
    if row.lower is None or row.upper is None:
        return Shown(value, MISSING, lower, upper)
    if max(map(abs, (row.value, row.lower, row.upper))) >= LARGEST:
        return Shown(value, fixed(row.half_width, decimals, UP), lower, upper)
    middle = rounded(row.value, decimals)
    below = _WIDE.subtract(middle, rounded(row.lower, decimals, DOWN))
    above = _WIDE.subtract(rounded(row.upper, decimals, UP), middle)
    if below != above and not _even(row.value - row.lower, row.upper - row.value):
        return Shown(value, f"+{plain(above)} −{plain(below)}", lower, upper)
    side = max(below, above)
    return Shown(value, plain(side), plain(_WIDE.subtract(middle, side)), plain(_WIDE.add(middle, side)))


def _even(below: float, above: float) -> bool:
    return abs(above - below) <= EVEN * max(above, below)
