"""Claims of a document: the stated value, the finding, and the verdict in words."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

Item = TypeVar("Item")

CONFIRMED, REFUTED, OPEN, UNCHECKED = "confirmed", "refuted", "not confirmed", "not checked"
CLOSE, LOOSE = 1e-6, 1e-2
FINE = 1e-12, 1e-9, CLOSE, 1e-5, 1e-4, 1e-3
LOOSER = "a valid bound, but looser than what follows from the tables"
SHOULD_BE = "should be"
"""Before the recomputed value where the stated one is refuted."""
TIMES, AT_MORE = "confirmed for the stated bound times", "confirmed at epsilon +"
"""A bound is confirmed up to the first part of itself; further above the truth than the second, none is ours."""


FAINT = 1e-15
"""Less than this above a truth of 0 is rounding."""


class BrokenError(ValueError):
    """Parts of a document that exclude each other."""


class TooMuchError(ValueError):
    """The work exceeds the limit for a single document; the claim is left open."""


class ProcessorClock:
    """A limit on the processor seconds for the claims of one document; ``limit`` may be infinite."""

    began = 0.0
    limit = math.inf

    @classmethod
    def start_counting(cls, seconds: float) -> None:
        """Count from now."""
        cls.began, cls.limit = time.process_time(), seconds


def in_time() -> None:
    """Raise ``TooMuchError`` if the document has used its processor seconds."""
    if time.process_time() - ProcessorClock.began > ProcessorClock.limit:
        raise TooMuchError(
            f"not computed: more than {ProcessorClock.limit:g} processor seconds of work (--seconds sets this limit)"
        )


def check_time(items: Iterable[Item]) -> Iterator[Item]:
    """The items; every 256th looks at the clock, so that no long loop outlasts the document's processor seconds."""
    for number, item in enumerate(items):
        if not number & 255:
            in_time()
        yield item


def require_affordable(work: int, most: int, words: str) -> None:
    """Raise ``TooMuchError`` for more than ``most``."""
    if work > most:
        raise TooMuchError(f"not computed: more than {most} {words}")


class Claim(NamedTuple):
    """A place in the document, what stands there, what was found, and whether that confirms it."""

    name: str
    stated: str
    found: str
    verdict: str

    @property
    def confirms_nearly(self) -> bool:
        """True if the value was shown only up to a slightly larger bound than stated."""
        return self.verdict == CONFIRMED and any(words in self.found for words in (TIMES, AT_MORE))


def equality_claim(name: str, stated: object, wanted: object) -> Claim:
    """Check that a stated value equals the recomputed one."""
    if stated == wanted:
        return Claim(name, str(stated), f"= {wanted}", CONFIRMED)
    return Claim(name, str(stated), f"{SHOULD_BE} {wanted}", REFUTED)


def at_most(name: str, stated: object, limit: object, holds: bool) -> Claim:
    """Something that must not exceed a limit."""
    return Claim(
        name, str(stated), f"<= {limit}" if holds else f"{SHOULD_BE} <= {limit}", CONFIRMED if holds else REFUTED
    )


def unchecked_claim(name: str, why: str) -> Claim:
    """Return a claim that cannot be confirmed by computation, with the reason ``why``."""
    return Claim(name, "", why, UNCHECKED)


def upper_bound_claim(
    name: str, stated: Any, lower: Any, upper: Any, *, tight: bool = True, close: float = CLOSE
) -> Claim:
    """Check a stated upper bound: refuted below the exact value, open if the computed bound is above it.

    A valid bound is confirmed, and the finding states how much looser it is than the computed one. ``tight``: one
    of a document's main numbers, which follow from its tables: if it is loose, it or the tables may have
    been altered, and it is left open.
    """
    low, high, said = lower.lower(), upper.upper(), f"<= {shortest_float_text(stated)}"
    found = (
        f"in [{shortest_float_text(low, -1)}, {shortest_float_text(high, 1)}], "
        f"{count_agreeing_digits(stated, high)} digits agree"
    )
    if stated < low:
        return Claim(name, said, f"{found}: the true value exceeds the stated bound", REFUTED)
    if stated >= high:
        if stated * (1 - LOOSE) <= high + FAINT:
            return Claim(name, said, found, CONFIRMED)
        return Claim(name, said, f"{found}: {LOOSER}", OPEN if tight else CONFIRMED)
    if stated * (1 + close) >= high:
        factor = next(part for part in (*FINE, close) if stated * (1 + part) >= high)
        return Claim(name, said, f"{found}: {TIMES} {1 + factor}", CONFIRMED)
    return Claim(name, said, f"{found}: the stated bound could not be shown", OPEN)


def is_settled(claims: list[Claim]) -> bool:
    """Return whether a finer grid cannot confirm all claims: upper bounds only decrease."""
    return any(one.verdict == REFUTED or (one.verdict == OPEN and LOOSER in one.found) for one in claims)


def count_agreeing_digits(one: Any, other: Any) -> int:
    """Count the significant digits in which two numbers agree."""
    first, second = float(one), float(other)
    apart = abs(first - second) / max(abs(first), abs(second), 1e-300)
    return 16 if apart < 1e-16 else max(0, math.floor(-math.log10(apart)))


def shortest_float_text(value: Any, direction: int = 0) -> str:
    """Return the shortest float above (1), below (−1) or nearest to (0) the value."""
    nearest = float(value)
    return repr(math.nextafter(nearest, math.inf * direction) if direction and nearest else nearest)


def worst_verdict(claims: list[Claim]) -> str:
    """The verdict on all of them: the worst."""
    found = {claim.verdict for claim in claims}
    return next(one for one in (REFUTED, OPEN, CONFIRMED) if one in found) if found - {UNCHECKED} else OPEN
