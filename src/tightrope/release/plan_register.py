"""What a session has spent: every plan that it issued, what that costs, and whether it was charged."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Generic, NamedTuple, NoReturn, TypeVar

from tightrope.documents.budget import EXACT
from tightrope.errors import BudgetRefused, InputError, TightropeError

Result = TypeVar("Result")
CHARGED_FIRST = "a release is charged before it reads, because whether reading fails can depend on the rows"
"""Why a failure costs: said wherever one does."""


class Attempt(NamedTuple):
    """Somebody asked to charge a plan this share."""

    plan: object
    share: Decimal


class Charges(NamedTuple):
    """One budget: ``charge`` a plan its share, or ``check`` that this would do; whether it ``has`` been; the ``total``.

    The charges themselves live in these functions alone: there is nothing to set.
    """

    check: Callable[[object, Decimal], None]
    charge: Callable[[object, Decimal], None]
    has: Callable[[object], bool]
    total: Callable[[], Decimal]


class Issued(NamedTuple, Generic[Result]):
    """What can be done with an issued plan: ``release`` it, once; ask whether it was charged; have its ``answers``.

    ``rehearse`` does all of a release but charging and drawing.
    """

    release: Callable[[], Result]
    answers: Callable[[], Result]
    charged: Callable[[], bool]
    rehearse: Callable[[], None]


def open_charges() -> Charges:
    """An unspent budget, in the process that calls this.

    A plan is known by an object that only ``issue`` holds. Asking appends to a list, and the order of the list alone
    decides which attempts were charged. So there is no lock that an interrupt could leave closed, no moment between
    a check and a charge, and nothing is ever taken back. Shares are exact: no decimal context can round them.
    """
    attempts: list[Attempt] = []
    process = os.getpid()

    def check(plan: object, share: Decimal) -> None:
        if os.getpid() != process:
            refuse_fork(process)
        _settle(Attempt(plan, share), attempts, final=False)

    def charge(plan: object, share: Decimal) -> None:
        if os.getpid() != process:
            refuse_fork(process)
        attempt = Attempt(plan, share)
        attempts.append(attempt)
        _settle(attempt, attempts, final=True)

    def has(plan: object) -> bool:
        return plan in _charged(attempts)

    def total() -> Decimal:
        return _sum(_charged(attempts).values())

    return Charges(check, charge, has, total)


def _charged(attempts: Sequence[Attempt]) -> dict[object, Attempt]:
    """Who was charged: in the order of the attempts, each plan once, while there is room."""
    charged: dict[object, Attempt] = {}
    gone = Fraction(0)
    for attempt in tuple(attempts):
        if attempt.plan not in charged and gone + Fraction(attempt.share) <= 1:
            charged[attempt.plan] = attempt
            gone += Fraction(attempt.share)
    return charged


def _settle(attempt: Attempt, attempts: Sequence[Attempt], *, final: bool) -> None:
    """Raise ``BudgetRefused`` unless the attempt was charged or, if it is not ``final``, would be."""
    charged = _charged(attempts if final else [*attempts, attempt])
    if charged.get(attempt.plan) is attempt:
        return
    if attempt.plan in charged:
        refuse_again()
    _refuse_share(attempt.share, EXACT.subtract(Decimal(1), _sum(charged.values())))


def _sum(charged: Iterable[Attempt]) -> Decimal:
    return reduce(EXACT.add, (attempt.share for attempt in charged), Decimal(0))


def issue(
    charges: Charges, share: Decimal, prepared: Callable[[], AbstractContextManager[Callable[[], Result]]]
) -> Issued[Result]:
    """A plan that ``charges`` knows: its release charges ``share``, once, when all is ``prepared`` and before it reads.

    The share is recorded here; nothing that is done to a plan changes it. A second release is refused: what noise
    drawn anew would tell costs anew, and what was drawn is in ``answers``. Every exception, interrupts as well, leaves
    with words that say whether the budget was spent.
    """
    plan = object()
    kept: list[Result] = []

    def release() -> Result:
        try:
            charges.check(plan, share)
            with prepared() as work:
                charges.charge(plan, share)
                kept.append(work())
            return kept[0]
        except BudgetRefused:
            raise
        except BaseException as error:
            tell(error, _outcome(share, charged=charges.has(plan), kept=kept))
            raise

    def answers() -> Result:
        if not kept:
            raise InputError("answers", None, "those of a plan that was released", "plan.release() gives them")
        return kept[0]

    def rehearse() -> None:
        with prepared():
            pass

    return Issued(release, answers, lambda: charges.has(plan), rehearse)


def refuse_fork(process: int) -> NoReturn:
    """Refuse what a forked copy of a session asks."""
    raise BudgetRefused(
        f"this session was opened in process {process}, and a forked copy would spend its budget again; "
        f"release in the process that opened it; nothing was spent here"
    )


def refuse_key(key: str | None) -> None:
    """Refuse a name under which nothing would be kept."""
    if key is not None:
        remedy = "open the session with tr.Session.open(..., ledger=..., dataset=...)"
        raise InputError("key", key, "left out where there is no ledger", remedy)


def refuse_again() -> NoReturn:
    """Refuse a second release of one plan."""
    raise BudgetRefused(
        "this plan was released before, and its share of the budget was spent then, once; plan.answers has what it "
        "gave; to draw anew, at a further cost, make the plan again with session.plan(...)"
    )


def _refuse_share(share: Decimal, left: Decimal) -> NoReturn:
    less = f"plan with share={left} or less, or open" if left > 0 else "the answers that were paid for are free: open"
    raise BudgetRefused(
        f"this release needs a share of {share} of the budget and {left} is left; {less} a session with a larger "
        f"budget; nothing was spent"
    )


def _outcome(share: Decimal, *, charged: bool, kept: Collection[object]) -> str:
    if not charged:
        return "nothing was spent"
    if kept:
        return f"a share of {share} of the budget was spent, and plan.answers has the answers"
    return (
        f"a share of {share} of the budget was spent, and nothing was published: {CHARGED_FIRST}; to ask again, at a "
        f"further cost, make the plan again"
    )


def tell(error: BaseException, said: str) -> None:
    """Add to the message of our own exceptions and of Ctrl-C; a note to others, whose arguments mean something."""
    if isinstance(error, TightropeError | KeyboardInterrupt):
        error.args = (f"{str(error) or 'interrupted'}; {said}",)
    else:
        error.add_note(said)
