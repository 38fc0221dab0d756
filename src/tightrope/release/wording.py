"""A plan as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from tightrope.certificates.printable import printable


def plan_text(data: Mapping[str, Any]) -> str:
    """What each answer will cost and how accurate it will be, before anything is spent."""
    head = [
        f"Plan: epsilon {rounded_up(data['epsilon'], 3)} at delta {data['delta']:.3g}, "
        f"total variation {data['total_variation']:.4g}.",
        data["attacker"],
        f"{data['neighbours']['statement']} changes what is published by no more than this.",
    ]
    return "\n".join([*head, *(_answer(answer) for answer in data["answers"]), "Nothing has been spent."])


def _answer(answer: Mapping[str, Any]) -> str:
    lines = [f"\n{printable(answer['name'])}: {answer['question']}", f"  {answer['meaning']}, over {answer['over']}"]
    lines += [
        f"  {noise['statistic']}: {noise['family']}, expected error {rounded_up(noise['mean_absolute_error'], 2)}"
        for noise in answer["noise"]
    ]
    error = answer["error"]
    if error["half_width_95"] is not None:
        worst = "" if error["worst_error"] is None else f", never more than ± {rounded_up(error['worst_error'], 3)}"
        lines.append(f"  95 % of answers within ± {rounded_up(error['half_width_95'], 3)}{worst}")
    lines += [
        _size(size, withheld=answer["keys"] == "discovered")
        for size in answer["error"]["by_group_size"]
        if _tells(answer)
    ]
    return "\n".join([*lines, *(f"  {note}" for note in answer["notes"])])


def _tells(answer: Mapping[str, Any]) -> bool:
    """Errors by size are worth a line where they differ, or where small groups are withheld."""
    return bool(answer["error"]["half_width_95"] is None or answer["keys"] == "discovered")


def _size(size: Mapping[str, Any], *, withheld: bool) -> str:
    chance = f", withheld: {_chance(size['suppressed'])}" if size["suppressed"] > 0 or withheld else ""
    if size["half_width_95"] is None:
        return f"  with {size['rows']:,} rows: any error{chance}"
    return f"  with {size['rows']:,} rows: 95 % within ± {rounded_up(size['half_width_95'], 2)}{chance}"


def _chance(share: float) -> str:
    """How often, rounded up: never only where it is never.

    >>> _chance(0.0), _chance(0.0015172), _chance(1e-9), _chance(0.99999)
    ('never', '0.152 %', '0.0001 %', '100 %')
    """
    return "never" if share <= 0 else f"{rounded_up(100 * max(share, 1e-6), 3)} %"


def rounded_up(value: float, digits: int) -> str:
    """At least so many digits, rounded up, with thousands separators and without powers of ten.

    >>> rounded_up(5912499.3, 3), rounded_up(32.836, 2), rounded_up(0.00206, 2)
    ('5,912,500', '33', '0.0021')
    """
    exact = Decimal(repr(value))
    kept = Context(prec=max(digits, exact.adjusted() + 1), rounding=ROUND_CEILING).plus(exact)
    return f"{kept.normalize(Context(prec=400)):,f}"
