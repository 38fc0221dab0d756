"""A coupling: whatever group somebody is from, the law of what is written for them is the target's, exactly counted."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from tightrope.verify.claims import BrokenError, Claim, at_most, fact, unchecked

DRAWN = 1 << 128
OFF = Fraction(1, 1 << 100)
"""How far a written probability may be from the target's: weights of 2¹²⁸ are rounded."""


def coupling_claims(data: dict[str, Any]) -> list[Claim]:
    """Every claim of a coupling, in whole numbers."""
    target = shares(data["target"])
    claims = [fact("groups", len(data["groups"]), len(data["group"]["names"]))]
    for number, group in enumerate(data["groups"]):
        claims += _group(f"groups[{number}]", group, target)
    claims.append(unchecked("groups.loss, stray, objective", "how far values move: no claim of privacy"))
    claims.append(unchecked("support, group.column, group.names", "names, and the distance over them"))
    return [*claims, unchecked("origin", "where the laws came from: nobody can recompute it")]


def shares(masses: list[str]) -> list[Fraction]:
    """A law in proportion to masses in hexadecimal."""
    whole = [int(mass, 16) for mass in masses]
    return [Fraction(mass, sum(whole)) for mass in whole]


def _group(name: str, group: dict[str, Any], target: list[Fraction]) -> Iterator[Claim]:
    law, tables = shares(group["law"]), [_table(table) for table in group["tables"]]
    yield fact(f"{name}.law", len(law), len(target))
    yield fact(f"{name}.rows", len(group["rows"]), len(target))
    sums = {sum(table.values()) for table in tables}
    yield fact(f"{name}.tables add up to 2^128", sums, {DRAWN})
    yield fact(f"{name}.tables are above 0", all(min(table.values()) > 0 for table in tables), True)
    written = [Fraction(0)] * len(target)
    for mass, row in zip(law, group["rows"], strict=True):
        for outcome, weight in tables[row].items() if mass else ():
            written[outcome] += mass * Fraction(weight, DRAWN)
    off = max(abs(a - b) for a, b in zip(written, target, strict=True))
    yield at_most(f"{name}: its law of what is written is the target", float(off), float(OFF), off <= OFF)
    empty = [tables[row] for mass, row in zip(law, group["rows"], strict=True) if not mass]
    gap = max((abs(Fraction(t.get(k, 0), DRAWN) - w) for t in empty for k, w in enumerate(target)), default=Fraction(0))
    yield at_most(f"{name}: points that nobody has tell nothing", float(gap), float(OFF), gap <= OFF)


def _table(table: dict[str, Any]) -> dict[int, int]:
    if len(set(table["outcomes"])) != len(table["outcomes"]):
        raise BrokenError("a point that stands twice in one table")
    return dict(zip(table["outcomes"], (int(weight, 16) for weight in table["weights"]), strict=True))
