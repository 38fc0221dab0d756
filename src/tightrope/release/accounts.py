"""Accounts to which a release is charged: the interface, and the budget of a session in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, final

from tightrope.documents.budget import fraction_text
from tightrope.errors import InputError, InsufficientBudgetError, SingleUseError, TightropeError

if TYPE_CHECKING:
    from tightrope.release.answers import Answers

CHARGED_FIRST = "a release is charged before it reads, because whether reading fails can depend on the rows"
"""The explanation in error messages about failures that were charged."""


class SingleUseObject:
    """An immutable object; ``copy``, ``deepcopy`` and ``pickle`` raise ``SingleUseError``.

    This prevents accidental copies by programs and libraries. It does not protect against malicious code: code in
    this process can read the table itself.
    """

    __slots__ = ()

    def _set_parts(self, **parts: object) -> None:
        """Set attributes, for the methods of the class itself: at construction, or the record of what happened."""
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse_change(f"{name} cannot be set")

    def __delattr__(self, name: str) -> None:
        self._refuse_change(f"{name} cannot be deleted")

    def __copy__(self) -> NoReturn:
        self._refuse_change("it cannot be copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self._refuse_change("it cannot be copied")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse_change("it cannot be pickled, nor sent to another process")

    def __replace__(self, **_: object) -> NoReturn:
        self._refuse_change("it cannot be copied with changes")

    def _refuse_change(self, reason: str) -> NoReturn:
        raise SingleUseError(
            f"{reason}: a copied or changed {type(self).__name__.lower()} could spend its budget twice; make a new "
            f"plan of the same session, with session.plan(...)"
        )


class ReleaseAccount(Protocol):
    """The account to which one release is charged, once. ``Plan.release`` calls its methods in this order."""

    def refuse_fork(self) -> None:
        """Raise ``InsufficientBudgetError`` in a forked copy of the process that may release."""

    def find_answers(self) -> Answers | None:
        """Return the answers of an earlier release that was charged under the same key; None without them."""

    def check_charge(self) -> None:
        """Raise ``InsufficientBudgetError`` if the release cannot be charged now."""

    def charge_and_read(self, read_and_draw: Callable[[], Answers]) -> Answers:
        """Charge the release, then read the rows; return the answers that are valid under this charge."""

    def was_charged(self) -> bool:
        """Return whether the release was charged; reads memory only, so that a signal handler may call it."""

    def outcome_text(self, *, has_answers: bool) -> str:
        """Return a clause for error messages on whether the budget was spent, and what remains to be done."""


class ChargeAttempt(NamedTuple):
    """An attempt to charge a plan, identified by its account, this fraction of the budget."""

    plan: object
    share: Fraction


@final
class SessionCharges(SingleUseObject):
    """The charges of one session, in memory; releases are possible only in the process that opened it.

    An attempt is appended to a list, and the order of the list determines which attempts were charged. This needs no
    lock, which an interrupt could leave closed; check and charge are one step, and charges are never undone. Shares are
    exact, independent of the decimal context.
    """

    __slots__ = ("_attempts", "process")
    _attempts: list[ChargeAttempt]
    process: int

    def __init__(self) -> None:
        self._set_parts(_attempts=[], process=os.getpid())

    def charged_attempts(self, further: tuple[ChargeAttempt, ...] = ()) -> dict[object, ChargeAttempt]:
        """Return the attempts that were charged, by plan; with ``further`` attempts, what would be charged then.

        In their order, one attempt is charged for each plan, while the budget suffices.
        """
        charged: dict[object, ChargeAttempt] = {}
        spent_share = Fraction(0)
        for attempt in tuple(self._attempts) + further:
            if attempt.plan not in charged and spent_share + attempt.share <= 1:
                charged[attempt.plan] = attempt
                spent_share += attempt.share
        return charged

    def check_attempt(self, attempt: ChargeAttempt) -> None:
        """Raise ``InsufficientBudgetError`` unless the attempt would be charged now."""
        _confirm_charge(attempt, self.charged_attempts((attempt,)))

    def charge_attempt(self, attempt: ChargeAttempt) -> None:
        """Charge the attempt; raises ``InsufficientBudgetError`` if it is not charged."""
        self._attempts.append(attempt)
        _confirm_charge(attempt, self.charged_attempts())

    def total_charged(self) -> Fraction:
        """Return the fraction of the budget that was charged."""
        return _sum_shares(self.charged_attempts().values())


@final
class InMemoryAccount(SingleUseObject):
    """The account of one plan of a session without a ledger, which is charged this share of the session's budget.

    The share is fixed here and cannot be changed through the plan. A second release is refused: new noise would have
    to be charged again, and the first answers are in ``plan.answers``.
    """

    __slots__ = ("_attempt_share", "_charges")
    _attempt_share: Fraction
    _charges: SessionCharges

    def __init__(self, charges: SessionCharges, share: Fraction) -> None:
        self._set_parts(_charges=charges, _attempt_share=share)

    def refuse_fork(self) -> None:
        """Raise ``InsufficientBudgetError`` in a forked copy of the session's process."""
        refuse_forked_process(self._charges.process)

    def find_answers(self) -> None:
        """Return None: answers without a ledger are kept by their plan alone."""

    def check_charge(self) -> None:
        """Raise ``InsufficientBudgetError`` if the release cannot be charged now."""
        self._charges.check_attempt(ChargeAttempt(self, self._attempt_share))

    def charge_and_read(self, read_and_draw: Callable[[], Answers]) -> Answers:
        """Charge the session, then read the rows and draw noise."""
        self._charges.charge_attempt(ChargeAttempt(self, self._attempt_share))
        return read_and_draw()

    def was_charged(self) -> bool:
        """Return whether the session was charged for the plan."""
        return self in self._charges.charged_attempts()

    def outcome_text(self, *, has_answers: bool) -> str:
        """Return a clause on whether the session was charged."""
        if not self.was_charged():
            return "nothing was spent"
        spent = f"a fraction of {fraction_text(self._attempt_share)} of the budget was spent"
        if has_answers:
            return f"{spent}, and plan.answers has the answers"
        advice = "to ask again, which is charged again, call session.plan(...) again"
        return f"{spent}, and nothing was published: {CHARGED_FIRST}; {advice}"


def _confirm_charge(attempt: ChargeAttempt, charged: dict[object, ChargeAttempt]) -> None:
    """Raise ``InsufficientBudgetError`` unless the attempt is among those charged."""
    if charged.get(attempt.plan) is attempt:
        return
    if attempt.plan in charged:
        refuse_second_release()
    remaining = 1 - _sum_shares(charged.values())
    left = fraction_text(remaining)
    advice = (
        f"Plan with budget_fraction={repr(left) if '/' in left else left} or less"
        if remaining > 0
        else "This budget allows no further answers from this table. Earlier answers can be used in any computation "
        "at no cost. A new session about the same people would add to their privacy loss"
    )
    needed = "the whole" if attempt.share == 1 else f"a fraction of {fraction_text(attempt.share)} of the"
    raise InsufficientBudgetError(
        f"this release needs {needed} budget and {left} is left. This attempt was not charged. {advice}"
    )


def _sum_shares(charged: Iterable[ChargeAttempt]) -> Fraction:
    return sum((attempt.share for attempt in charged), Fraction(0))


def refuse_forked_process(process: int) -> None:
    """Raise ``InsufficientBudgetError`` if the calling process is not ``process`` but a forked copy of it."""
    if os.getpid() != process:
        raise InsufficientBudgetError(
            f"this session was opened in process {process}, and a forked copy of it cannot release, because it would "
            f"spend the budget twice; release in the process that opened it; nothing was spent here"
        )


def refuse_release_key(key: str | None) -> None:
    """Refuse a key without a ledger."""
    if key is not None:
        text = "only possible with a ledger; open the session with tr.Session.open(..., ledger=..., dataset=...)"
        raise InputError.from_text("key", text)


def refuse_second_release() -> NoReturn:
    """Refuse a second release of one plan."""
    raise InsufficientBudgetError(
        "this plan was already released; its answers are in plan.answers; for a new release, which is charged again, "
        "call session.plan(...) again"
    )


def annotate_error(error: BaseException, outcome: str) -> None:
    """Add text to the message of Tightrope's exceptions and of Ctrl-C, and as a note to other exceptions."""
    if isinstance(error, TightropeError | KeyboardInterrupt):
        error.args = (f"{str(error) or 'interrupted'}; {outcome}",)
    else:
        error.add_note(outcome)
