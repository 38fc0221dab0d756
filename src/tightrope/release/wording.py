"""A plan as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tightrope.certificates.printable import printable


def plan_text(data: Mapping[str, Any]) -> str:
    """What each answer will cost and how accurate it will be, before anything is spent."""
    head = [
        f"Plan: epsilon {data['epsilon']:.6g} at delta {data['delta']:.3g}, "
        f"total variation {data['total_variation']:.4g}.",
        data["attacker"],
        f"{data['neighbours']['statement']} changes what is published by no more than this.",
    ]
    return "\n".join([*head, *(_answer(answer) for answer in data["answers"]), "Nothing has been spent."])


def _answer(answer: Mapping[str, Any]) -> str:
    lines = [f"\n{printable(answer['name'])}: {answer['question']}", f"  {answer['meaning']}, over {answer['over']}"]
    lines += [
        f"  {noise['statistic']}: {noise['family']}, expected error {noise['mean_absolute_error']:.4g}"
        for noise in answer["noise"]
    ]
    error = answer["error"]
    if error["half_width_95"] is not None:
        worst = "" if error["worst_error"] is None else f", never beyond ± {error['worst_error']:.4g}"
        lines.append(f"  95 % of answers within ± {error['half_width_95']:.4g}{worst}")
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
    chance = f", withheld with probability {size['suppressed']:.2g}" if withheld else ""
    return f"  with {size['rows']:,} rows: 95 % within ± {size['half_width_95']:.4g}{chance}"
