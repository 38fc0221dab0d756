"""How accurate an answer must be: the half-width of its 95 % interval, as a number or as a share of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from tightrope.certificates.budget import decimal
from tightrope.errors import InputError, PlanError

REMEDY = 'say within=50, in the units of the answer, or within="5%" of the rows of a group'


@dataclass(frozen=True, slots=True)
class Within:
    """95 % of answers within ± ``half``; ``relative``: ± that share of the rows of the group."""

    half: Decimal
    relative: bool = False

    @classmethod
    def of(cls, wanted: object) -> Self:
        """What was asked for, checked; raises ``PlanError``.

        >>> Within.of(50), Within.of("2.5 %")
        (Within(half=Decimal('50'), relative=False), Within(half=Decimal('0.025'), relative=True))
        """
        text = wanted.strip() if isinstance(wanted, str) else None
        relative = text is not None and text.endswith("%")
        try:
            number = decimal("within", text.removesuffix("%").strip() if text is not None else wanted)
        except InputError:
            raise PlanError("within", wanted, "a number above 0", REMEDY) from None
        if not number > 0:
            raise PlanError("within", wanted, "a number above 0", REMEDY)
        return cls(number.scaleb(-2) if relative else number, relative)

    def __str__(self) -> str:
        return f"{self.half.scaleb(2).normalize():f}%" if self.relative else f"{self.half.normalize():f}"

    def at(self, rows: int | None) -> float:
        """The half-width in a group of so many rows."""
        return float(self.half) * (rows or 1) if self.relative else float(self.half)
