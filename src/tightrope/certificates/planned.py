"""What ``tightrope plan`` says: the promise and the errors of a release that has not been paid for."""

from __future__ import annotations

from typing import Literal

from tightrope.certificates.document import Part, Probability, Promised, Size
from tightrope.certificates.reading import Reader
from tightrope.certificates.release import Alternative, Asked, Neighbours
from tightrope.certificates.words.explained import of_release

PLANNED = Reader("planned release", "take what tightrope plan --json prints: planning anew costs nothing")

WOULD_SAY = "all that this plan would say, once released,"


class PlannedAnswer(Asked, frozen=True, kw_only=True):
    """One question, and what its noise will cost."""


class BudgetRow(Part, frozen=True, kw_only=True):
    """What another budget buys: 95 % half-widths by question and, where they depend on it, by rows in the group.

    A half-width of None has no limit.
    A budget that cannot be met has neither ``attack_success`` nor ``answers``.
    """

    epsilon: Size
    delta: Probability
    attack_success: Probability | None
    answers: dict[str, Size | dict[str, Size | None] | None] | None


class PlannedCount(Part, frozen=True, kw_only=True):
    """A count beside the answers of these names, over all groups."""

    answers: tuple[str, ...]
    statistic: str
    half_width_95: Size


class PlannedCosts(Part, frozen=True, kw_only=True):
    """The part of the budget, at most, that tells what bounding and clamping cost, and how exactly."""

    share: str
    counts: tuple[PlannedCount, ...]


class PlannedRelease(Promised, frozen=True, kw_only=True):
    """What would be spent, what it would promise, and how accurate each answer would be. Nothing has been spent."""

    document: Literal["planned release"]
    version: Literal[1]
    title: str | None
    attacker: str
    neighbours: Neighbours
    answers: tuple[PlannedAnswer, ...]
    alternatives: tuple[Alternative, ...]
    table: tuple[BudgetRow, ...] | None
    costs: PlannedCosts | None = None

    def explain(self) -> str:
        """The promise in one paragraph for everybody, and a picture of 100 guesses; every number is rounded up."""
        protected = self.neighbours.protected
        return str(of_release(self.epsilon, self.delta, self.attack_success, protected, WOULD_SAY))
