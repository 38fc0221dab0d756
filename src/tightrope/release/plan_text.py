"""A plan as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from tightrope.documents.escaping import printable

MANY = 10_000
"""The largest group for which errors are stated: a count that is off by more tells little of smaller tables."""
NOT_COUNTED = "What bounding and clamping cost is not counted: costs = 0.02 would take 2 % of this to tell it."


def plan_text(data: Mapping[str, Any]) -> str:
    """What each answer will cost and how accurate it will be, before anything is spent."""
    head = [
        f"Plan: epsilon {rounded_up(data['epsilon'], 3)} at delta {data['delta']:.3g}, "
        f"total variation {data['total_variation']:.4g}.",
        data["attacker"],
        f"{data['neighbours']['statement']} changes what is published by no more than this.",
    ]
    shared = shared_notes(data["answers"])
    answers = (_answer(answer, shared) for answer in data["answers"])
    notes = [f"\nAll answers: {'; '.join(shared)}"] if shared else []
    return "\n".join([*head, *answers, *notes, *costs_lines(data["costs"]), "Nothing has been spent."])


def costs_lines(costs: Mapping[str, Any] | None) -> list[str]:
    """What it will be known of bounding and clamping, and how to know it."""
    if costs is None:
        return [NOT_COUNTED]
    percent = 100 * Decimal(costs["share"])
    head = f"At most {percent.normalize():f} % of this tells what bounding and clamping cost:"
    counts = (
        f"{c['statistic'].partition(', over')[0]}: ± {rounded_up(c['half_width_95'], 2)}" for c in costs["counts"]
    )
    rough = any(count["half_width_95"] > MANY for count in costs["counts"])
    advice = [f"A table of about {MANY:,} rows is told nothing by that: costs = 0 keeps the budget for the answers."]
    return [head, *(f"  {line}" for line in dict.fromkeys(counts)), *(advice if rough else [])]


def shared_notes(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is noted of every one of several answers: it is said once, under all of them."""
    first = answers[0]["notes"] if len(answers) > 1 else ()
    return [note for note in first if all(note in answer["notes"] for answer in answers)]


def _answer(answer: Mapping[str, Any], shared: Sequence[str]) -> str:
    lines = [f"\n{printable(answer['name'])}: {answer['question']}", f"  {answer['meaning']}, over {answer['over']}"]
    lines += [
        f"  {noise['statistic']}: {noise['family']}, expected error {rounded_up(noise['mean_absolute_error'], 2)}"
        for noise in answer["noise"]
    ]
    error = answer["error"]
    if error["half_width_95"] is not None:
        worst = "" if error["worst_error"] is None else f", never more than ± {rounded_up(error['worst_error'], 3)}"
        lines.append(f"  95 % of answers within ± {rounded_up(error['half_width_95'], 3)}{worst}")
    # Errors by size are worth a line where they differ, or where small groups are withheld.
    lines += [
        _size(size, withheld=answer["keys"] == "discovered")
        for size in answer["error"]["by_group_size"]
        if bool(answer["error"]["half_width_95"] is None or answer["keys"] == "discovered")
    ]
    return "\n".join([*lines, *(f"  {note}" for note in answer["notes"] if note not in shared)])


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
