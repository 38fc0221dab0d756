"""What is checked of a document: a claim, what was found, and the verdict in words."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

Item = TypeVar("Item")

CONFIRMED, REFUTED, OPEN, UNCHECKED = "confirmed", "refuted", "not confirmed", "not checked"
CLOSE, LOOSE = 1e-6, 1e-2
FINE = 1e-12, 1e-9, CLOSE, 1e-5, 1e-4, 1e-3
LOOSER = "true, and looser than what follows from the tables"
TIMES, AT_MORE = "confirmed for the stated bound times", "confirmed at epsilon +"
"""A bound is confirmed up to the first part of itself; further above the truth than the second, none is ours."""


FAINT = 1e-15
"""Less than this above a truth of 0 is rounding."""


class BrokenError(ValueError):
    """Parts of a document that exclude each other."""


class TooMuchError(ValueError):
    """More work than somebody who was handed a file should have to wait for: what it is for is left open."""


class Clock:
    """Processor seconds that the claims of one document may take; without a limit where ``limit`` is infinite."""

    began = 0.0
    limit = math.inf

    @classmethod
    def start(cls, seconds: float) -> None:
        """Count from now."""
        cls.began, cls.limit = time.process_time(), seconds


def in_time() -> None:
    """Raise ``TooMuchError`` where the document has taken its processor seconds."""
    if time.process_time() - Clock.began > Clock.limit:
        raise TooMuchError(
            f"more than {Clock.limit:g} processor seconds of work, so that it was not computed: --seconds allows more"
        )


def timed(items: Iterable[Item]) -> Iterator[Item]:
    """The items; every 256th looks at the clock, so that no long loop outlasts the document's processor seconds."""
    for number, item in enumerate(items):
        if not number & 255:
            in_time()
        yield item


def affordable(work: int, most: int, words: str) -> None:
    """Raise ``TooMuchError`` for more than ``most``."""
    if work > most:
        raise TooMuchError(f"{words}: more than {most}, so that it was not computed")


class Claim(NamedTuple):
    """A place in the document, what stands there, what was found, and whether that confirms it."""

    name: str
    stated: str
    found: str
    verdict: str

    @property
    def nearly(self) -> bool:
        """Whether what was shown is a little more than what is stated."""
        return self.verdict == CONFIRMED and any(words in self.found for words in (TIMES, AT_MORE))


def fact(name: str, stated: object, wanted: object) -> Claim:
    """Two things that must be the same."""
    return Claim(name, str(stated), f"= {wanted}", CONFIRMED if stated == wanted else REFUTED)


def at_most(name: str, stated: object, limit: object, holds: bool) -> Claim:
    """Something that must not exceed a limit."""
    return Claim(name, str(stated), f"<= {limit}", CONFIRMED if holds else REFUTED)


def unchecked(name: str, why: str) -> Claim:
    """What no computation can confirm; ``why`` says so."""
    return Claim(name, "", why, UNCHECKED)


def bounded(name: str, stated: Any, lower: Any, upper: Any, *, tight: bool = True, close: float = CLOSE) -> Claim:
    """An upper bound that is stated: refuted below the truth, open where what was found is above it.

    What is true is confirmed in its direction, and it is said how much looser it is than what was found. ``tight``: one
    of the numbers that a document is known by, which follow from its tables: where it is loose, it, or they, may have
    been altered, and it is left open.
    """
    low, high, said = lower.lower(), upper.upper(), f"<= {digits(stated)}"
    found = f"in [{digits(low, -1)}, {digits(high, 1)}], {agreeing(stated, high)} digits agree"
    if stated < low:
        return Claim(name, said, f"{found}: the truth is above what is stated", REFUTED)
    if stated >= high:
        if stated * (1 - LOOSE) <= high + FAINT:
            return Claim(name, said, found, CONFIRMED)
        return Claim(name, said, f"{found}: {LOOSER}", OPEN if tight else CONFIRMED)
    if stated * (1 + close) >= high:
        factor = next(part for part in (*FINE, close) if stated * (1 + part) >= high)
        return Claim(name, said, f"{found}: {TIMES} {1 + factor}", CONFIRMED)
    return Claim(name, said, f"{found}: the stated bound could not be shown", OPEN)


def is_settled(claims: list[Claim]) -> bool:
    """Whether no finer grid makes all of them confirmed: what was found from above only falls."""
    return any(one.verdict == REFUTED or (one.verdict == OPEN and LOOSER in one.found) for one in claims)


def agreeing(one: Any, other: Any) -> int:
    """To how many significant digits two numbers are the same."""
    first, second = float(one), float(other)
    apart = abs(first - second) / max(abs(first), abs(second), 1e-300)
    return 16 if apart < 1e-16 else max(0, math.floor(-math.log10(apart)))


def digits(value: Any, direction: int = 0) -> str:
    """The shortest float beside it: above it (1), below it (−1), or the nearest (0)."""
    nearest = float(value)
    return repr(math.nextafter(nearest, math.inf * direction) if direction and nearest else nearest)


def verdict(claims: list[Claim]) -> str:
    """The verdict on all of them: the worst."""
    found = {claim.verdict for claim in claims}
    return next(one for one in (REFUTED, OPEN, CONFIRMED) if one in found) if found - {UNCHECKED} else OPEN
