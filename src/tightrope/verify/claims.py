"""Claims of a document: the stated value, the recomputed one, and the verdict."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

Item = TypeVar("Item")

CONFIRMED, REFUTED, NOT_CONFIRMED, NOT_CHECKED = "confirmed", "refuted", "not confirmed", "not checked"
BOUND_TOLERANCE, LOOSE_FRACTION = 1e-6, 1e-2
"""Relative tolerance of a stated bound, and how far a bound may exceed the truth before it is called loose."""
TOLERANCE_STEPS = 1e-12, 1e-9, BOUND_TOLERANCE, 1e-5, 1e-4, 1e-3
"""Tolerances that a finding may state: the smallest that confirms the bound."""
LOOSER = "a valid bound, but looser than what follows from the tables"
SHOULD_BE = "should be"
"""Precedes the recomputed value of a refuted claim."""
CONFIRMED_TIMES, CONFIRMED_AT_PLUS = "confirmed for the stated bound times", "confirmed at epsilon +"
"""Precede the tolerance within which a claim was confirmed."""
ZERO_ROUNDING = 1e-15
"""A bound of at most this above the truth 0 differs by rounding only."""


class BrokenError(ValueError):
    """Parts of a document contradict each other."""


class WorkLimitError(ValueError):
    """The work exceeds the limit for a single document; the claim is not confirmed."""


class ProcessorClock:
    """A limit on the processor seconds for the claims of one document; ``limit`` may be infinite."""

    started_at = 0.0
    limit = math.inf

    @classmethod
    def start_counting(cls, seconds: float) -> None:
        """Start counting, with this limit."""
        cls.started_at, cls.limit = time.process_time(), seconds


def require_time_left() -> None:
    """Raise ``WorkLimitError`` if the document has used its processor seconds."""
    if time.process_time() - ProcessorClock.started_at > ProcessorClock.limit:
        raise WorkLimitError(
            f"not computed: more than {ProcessorClock.limit:g} processor seconds of work (--seconds sets this limit)"
        )


def with_time_checks(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, and check the time limit at every 256th."""
    for number, item in enumerate(items):
        if not number & 255:
            require_time_left()
        yield item


def require_affordable(work: int, limit: int, unit: str) -> None:
    """Raise ``WorkLimitError`` if the work, in this unit, exceeds the limit."""
    if work > limit:
        raise WorkLimitError(f"not computed: more than {limit} {unit}")


class Claim(NamedTuple):
    """A path in the document, its stated value, the finding in words, and the verdict."""

    name: str
    stated: str
    finding: str
    verdict: str

    @property
    def confirms_nearly(self) -> bool:
        """True if the value was shown only up to a slightly larger bound than stated."""
        return self.verdict == CONFIRMED and any(part in self.finding for part in (CONFIRMED_TIMES, CONFIRMED_AT_PLUS))


def equality_claim(name: str, stated: object, recomputed: object) -> Claim:
    """Check that a stated value equals the recomputed one."""
    if stated == recomputed:
        return Claim(name, str(stated), f"= {recomputed}", CONFIRMED)
    return Claim(name, str(stated), f"{SHOULD_BE} {recomputed}", REFUTED)


def limit_claim(name: str, stated: object, limit: object, holds: bool) -> Claim:
    """Return the claim that a stated value does not exceed a limit; the caller passes whether it holds."""
    return Claim(
        name, str(stated), f"<= {limit}" if holds else f"{SHOULD_BE} <= {limit}", CONFIRMED if holds else REFUTED
    )


def unchecked_claim(name: str, why: str) -> Claim:
    """Return a claim that cannot be confirmed by computation, with the reason ``why``."""
    return Claim(name, "", why, NOT_CHECKED)


def upper_bound_claim(
    name: str, stated: Any, lower: Any, upper: Any, *, tight: bool = True, close: float = BOUND_TOLERANCE
) -> Claim:
    """Check a stated upper bound of a value that was recomputed as an interval, ``lower`` to ``upper``.

    Below the interval it is refuted, above it confirmed; but if ``tight``, a bound that is much too large is not: the
    main numbers of a document follow from its tables, so a loose one suggests that it or the tables were changed.
    Inside the interval it is confirmed only within the relative tolerance ``close`` of the upper end.
    """
    low, high, stated_text = lower.lower(), upper.upper(), f"<= {shortest_float_text(stated)}"
    finding = (
        f"in [{shortest_float_text(low, -1)}, {shortest_float_text(high, 1)}], "
        f"{count_agreeing_digits(stated, high)} digits agree"
    )
    if stated < low:
        return Claim(name, stated_text, f"{finding}: the true value exceeds the stated bound", REFUTED)
    if stated >= high:
        if stated * (1 - LOOSE_FRACTION) <= high + ZERO_ROUNDING:
            return Claim(name, stated_text, finding, CONFIRMED)
        return Claim(name, stated_text, f"{finding}: {LOOSER}", NOT_CONFIRMED if tight else CONFIRMED)
    if stated * (1 + close) >= high:
        factor = next(part for part in (*TOLERANCE_STEPS, close) if stated * (1 + part) >= high)
        return Claim(name, stated_text, f"{finding}: {CONFIRMED_TIMES} {1 + factor}", CONFIRMED)
    return Claim(name, stated_text, f"{finding}: the stated bound could not be shown", NOT_CONFIRMED)


def needs_no_finer_grid(claims: list[Claim]) -> bool:
    """Return whether a finer grid cannot change the result: a claim is refuted or loose, and bounds only decrease."""
    return any(one.verdict == REFUTED or (one.verdict == NOT_CONFIRMED and LOOSER in one.finding) for one in claims)


def count_agreeing_digits(first: Any, second: Any) -> int:
    """Count the significant digits in which two numbers agree."""
    a, b = float(first), float(second)
    difference = abs(a - b) / max(abs(a), abs(b), 1e-300)
    return 16 if difference < 1e-16 else max(0, math.floor(-math.log10(difference)))


def shortest_float_text(value: Any, direction: int = 0) -> str:
    """Return the text of the nearest float (0), or of its neighbor above (1) or below (−1)."""
    nearest = float(value)
    return repr(math.nextafter(nearest, math.inf * direction) if direction and nearest else nearest)


def worst_verdict(claims: list[Claim]) -> str:
    """Return the worst verdict; not confirmed if no claim was checked."""
    verdicts = {claim.verdict for claim in claims}
    return (
        next(verdict for verdict in (REFUTED, NOT_CONFIRMED, CONFIRMED) if verdict in verdicts)
        if verdicts - {NOT_CHECKED}
        else NOT_CONFIRMED
    )
