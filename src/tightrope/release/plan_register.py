"""The budget of a session: charges for its plans, and the handles with which plans are released."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from typing import Generic, NamedTuple, NoReturn, TypeVar

from tightrope.documents.budget import fraction_text
from tightrope.errors import InputError, InsufficientBudgetError, TightropeError

Result = TypeVar("Result")
CHARGED_FIRST = "a release is charged before it reads, because whether reading fails can depend on the rows"
"""The explanation in error messages about failures that were charged."""


class ChargeAttempt(NamedTuple):
    """An attempt to charge a plan this fraction of the budget."""

    plan: object
    share: Fraction


class InMemoryAccount(NamedTuple):
    """The budget of a session: functions that check or charge a plan's share, and that return what was charged.

    The charges are stored in the closures of these functions only, so they cannot be set from outside.
    """

    check_charge: Callable[[object, Fraction], None]
    charge_share: Callable[[object, Fraction], None]
    was_charged: Callable[[object], bool]
    total_charged: Callable[[], Fraction]


class ReleaseHandle(NamedTuple, Generic[Result]):
    """The functions of a plan: release it once, return its answers, return whether it was charged.

    ``dry_run`` runs the checks of a release without charging or drawing noise.
    """

    release: Callable[[], Result]
    get_answers: Callable[[], Result]
    was_charged: Callable[[], bool]
    dry_run: Callable[[], None]


def open_account() -> InMemoryAccount:
    """Return an unspent budget, bound to the calling process.

    A plan is identified by an object that only ``issue_plan`` holds. An attempt is appended to a list, and the order of
    the list determines which attempts were charged. This needs no lock, which an interrupt could leave closed; check
    and charge are one step, and charges are never undone. Shares are exact, independent of the decimal context.
    """
    attempts: list[ChargeAttempt] = []
    process = os.getpid()

    def check_charge(plan: object, share: Fraction) -> None:
        if os.getpid() != process:
            refuse_fork(process)
        _confirm_charge(ChargeAttempt(plan, share), attempts, final=False)

    def charge_share(plan: object, share: Fraction) -> None:
        if os.getpid() != process:
            refuse_fork(process)
        attempt = ChargeAttempt(plan, share)
        attempts.append(attempt)
        _confirm_charge(attempt, attempts, final=True)

    def was_charged(plan: object) -> bool:
        return plan in _charged_attempts(attempts)

    def total_charged() -> Fraction:
        return _sum_shares(_charged_attempts(attempts).values())

    return InMemoryAccount(check_charge, charge_share, was_charged, total_charged)


def _charged_attempts(attempts: Sequence[ChargeAttempt]) -> dict[object, ChargeAttempt]:
    """Return the attempts that were charged, by plan: in their order, one for each plan, while the budget suffices."""
    charged: dict[object, ChargeAttempt] = {}
    spent_share = Fraction(0)
    for attempt in tuple(attempts):
        if attempt.plan not in charged and spent_share + attempt.share <= 1:
            charged[attempt.plan] = attempt
            spent_share += attempt.share
    return charged


def _confirm_charge(attempt: ChargeAttempt, attempts: Sequence[ChargeAttempt], *, final: bool) -> None:
    """Raise ``InsufficientBudgetError`` unless the attempt was charged (``final``) or would be (not ``final``)."""
    charged = _charged_attempts(attempts if final else [*attempts, attempt])
    if charged.get(attempt.plan) is attempt:
        return
    if attempt.plan in charged:
        refuse_second_release()
    remaining = 1 - _sum_shares(charged.values())
    left = fraction_text(remaining)
    advice = (
        f"plan with budget_fraction={repr(left) if '/' in left else left} or less"
        if remaining > 0
        else "earlier answers can be used again at no cost; a new session with a new budget adds to the privacy loss"
    )
    needed = "the whole" if attempt.share == 1 else f"a fraction of {fraction_text(attempt.share)} of the"
    raise InsufficientBudgetError(
        f"this release needs {needed} budget and {left} is left; this attempt was not charged; {advice}"
    )


def _sum_shares(charged: Iterable[ChargeAttempt]) -> Fraction:
    return sum((attempt.share for attempt in charged), Fraction(0))


def issue_plan(
    charges: InMemoryAccount, share: Fraction, prepared: Callable[[], AbstractContextManager[Callable[[], Result]]]
) -> ReleaseHandle[Result]:
    """Return a plan's release handle; its release charges ``share`` once, after ``prepared`` and before it reads.

    The share is fixed here and cannot be changed through the plan. A second release is refused: new noise would have
    to be charged again, and the first answers are in ``get_answers``. Every exception, including interrupts, states
    whether the budget was spent.
    """
    plan_token = object()
    stored_answers: list[Result] = []

    def release() -> Result:
        try:
            charges.check_charge(plan_token, share)
            with prepared() as read_and_draw:
                charges.charge_share(plan_token, share)
                stored_answers.append(read_and_draw())
            return stored_answers[0]
        except InsufficientBudgetError:
            raise
        except BaseException as error:
            outcome = f"a fraction of {fraction_text(share)} of the budget was spent"
            if not charges.was_charged(plan_token):
                outcome = "nothing was spent"
            elif stored_answers:
                outcome = f"{outcome}, and plan.answers has the answers"
            else:
                advice = "to ask again, which is charged again, call session.plan(...) again"
                outcome = f"{outcome}, and nothing was published: {CHARGED_FIRST}; {advice}"
            annotate_error(error, outcome)
            raise

    def get_answers() -> Result:
        if not stored_answers:
            raise InputError.from_text("answers", "release the plan first (plan.release())")
        return stored_answers[0]

    def dry_run() -> None:
        with prepared():
            pass

    return ReleaseHandle(release, get_answers, lambda: charges.was_charged(plan_token), dry_run)


def refuse_fork(process: int) -> NoReturn:
    """Refuse a release in a forked copy of a session's process."""
    raise InsufficientBudgetError(
        f"this session was opened in process {process}, and a forked copy of it cannot release, because it would spend "
        f"the budget twice; release in the process that opened it; nothing was spent here"
    )


def refuse_key(key: str | None) -> None:
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
