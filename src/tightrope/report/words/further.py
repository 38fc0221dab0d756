"""What an answer says beside its value: where a line meets the axis, and which places a group can have."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.certificates.words.digits import DOWN, UP, decimals_for, fixed
from tightrope.report.words.answers import Answer, Row
from tightrope.report.words.document import number

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Names of columns, and their texts, row by row."""
INTERCEPT = ("intercept", "intercept_lower", "intercept_upper")


def further(answer: Answer) -> Table:
    """The columns that stand behind the interval; none for most kinds."""
    if any("intercept" in row.paid for row in answer.rows):
        return ("at zero", "from", "to"), _intercepts(answer.rows)
    if any("best_rank" in row.paid for row in answer.rows):
        return ("place",), [(_place(row),) for row in answer.rows]
    return (), [() for _ in answer.rows]


def _intercepts(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """The intercept and its interval, in the digits that its noise leaves."""
    found = [tuple(number(row.paid, name) for name in INTERCEPT) for row in rows]
    widths = [(upper - lower) / 2 for _, lower, upper in found if lower is not None and upper is not None]
    digits = decimals_for(widths)
    return [(fixed(at, digits), fixed(lower, digits, DOWN), fixed(upper, digits, UP)) for at, lower, upper in found]


def _place(row: Row) -> str:
    """Which places of the order a group can have.

    >>> _place(Row(("a",), 9.0, 8.0, 10.0, paid={"best_rank": 1, "worst_rank": 3}))
    '1 to 3'
    """
    best, worst = number(row.paid, "best_rank"), number(row.paid, "worst_rank")
    if best is None:
        return ""
    if worst is None:
        return f"{best:.0f} or later"
    return f"{best:.0f}" if best == worst else f"{best:.0f} to {worst:.0f}"
