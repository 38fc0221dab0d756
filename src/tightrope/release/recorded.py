"""A plan whose release is charged in a ledger: paid once under its key, and never seen before it is kept there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tightrope.errors import BudgetRefused, InputError, LedgerError
from tightrope.ledger.account import FAILED_READING
from tightrope.release.claims import named
from tightrope.release.register import CHARGED_FIRST, Issued, refuse_again, refuse_fork, tell
from tightrope.release.stored import restored, stored_text

if TYPE_CHECKING:
    from tightrope.ledger import Account, Claim
    from tightrope.release.answers import Answers
    from tightrope.release.drafting.draft import Draft

WAITS, PAUSE = 120, 0.5
"""How often, and after how many seconds each, the answers of another process are looked for."""

Prepared = Callable[[], AbstractContextManager[Callable[[], "Answers"]]]


@dataclass(slots=True)
class _Life:
    """What became of a plan in this process. ``charging`` is set before the ledger is asked: a signal then waits."""

    charging: bool = False
    kept: list[Answers] = field(default_factory=list)


def recorded(
    account: Account, claim: Claim, draft: Draft, prepared: Prepared, series: str | None = None
) -> Issued[Answers]:
    """A plan that a ledger knows by its key.

    Its release charges the ledger, reads the rows, draws, keeps the answers in the ledger and only then hands them
    over. A reading that fails is charged and closes the key: whether it fails can depend on the rows. Killed after the
    charge and tried again under its key, it reads and draws once more at no cost, because the first draw was seen by
    no one; that is written down first, and a third reading is refused. Killed after the answers were kept, it finds
    them. Of two processes that try at once both hand over the answers that were kept first. Every exception says
    whether the budget was spent.
    """
    life, process = _Life(), os.getpid()

    def release() -> Answers:
        if os.getpid() != process:
            refuse_fork(process)
        if life.kept:
            refuse_again()
        try:
            life.kept.append(_stored(account, claim, draft) or _paid(account, claim, draft, prepared, life, series))
        except BudgetRefused:
            life.charging = account.charged(claim) is not None
            raise
        except BaseException as error:
            tell(error, _outcome(account, claim, life))
            raise
        return life.kept[0]

    def answers() -> Answers:
        if not life.kept:
            raise InputError("answers", None, "those of a plan that was released", "plan.release() gives them")
        return life.kept[0]

    def rehearse() -> None:
        with prepared():
            pass

    return Issued(release, answers, lambda: life.charging or bool(life.kept), rehearse)


def _stored(account: Account, claim: Claim, draft: Draft) -> Answers | None:
    """The answers that were paid and kept under the key before."""
    if account.charged(claim) is None:
        return None
    text = account.stored(claim.key)
    return None if text is None else _read(text, draft, claim)


def _read(text: str, draft: Draft, claim: Claim) -> Answers:
    """The answers that were kept; raises ``BudgetRefused`` where the ledger keeps that reading failed."""
    if text == FAILED_READING:
        raise BudgetRefused(
            f"the release under the key {claim.key!r} failed while its table was read, and its budget was spent then; "
            f"choose another key to read again, at a further cost"
        )
    return restored(text, draft)


def _paid(account: Account, claim: Claim, draft: Draft, prepared: Prepared, life: _Life, series: str | None) -> Answers:
    account.check(claim, series)
    with prepared() as work:
        life.charging = True
        entry, may_read = account.begin_reading(claim, series)
        if not may_read:
            return _of_another(account, claim, draft)
        try:
            drawn = work()
        except Exception:
            with suppress(LedgerError):  # where it cannot be kept, one more reading is left, which is counted, too
                account.answer(claim.key, FAILED_READING)
            raise
        own = replace(drawn, certificate_data=named(drawn.certificate_data, entry, account))
        text = stored_text(own)
        first = account.answer(claim.key, text)
    return own if first == text else _read(first, draft, claim)


def _of_another(account: Account, claim: Claim, draft: Draft) -> Answers:
    """The answers of another process that reads under the same key, once it keeps them.

    Raises ``BudgetRefused`` where none come: both readings that the charge paid for were killed.
    """
    for _ in range(WAITS):
        text = account.stored(claim.key)
        if text is not None:
            return _read(text, draft, claim)
        time.sleep(PAUSE)
    raise BudgetRefused(
        f"the release under the key {claim.key!r} was charged, and both readings of the table that a charge pays for "
        f"were started and have no answers; if another process is still reading, try again later; else choose another "
        f"key to read again, at a further cost"
    )


def _outcome(account: Account, claim: Claim, life: _Life) -> str:
    """In words, whether the ledger was charged: it is asked, for an interrupt may have come at any moment."""
    again = f"release it again under the key {claim.key!r}, which is charged once"
    try:
        entry = account.charged(claim)
    except InputError:
        return "nothing was spent"
    except LedgerError:
        return f"it is not known whether the budget was spent: {again}"
    life.charging = entry is not None
    if entry is None:
        return "nothing was spent"
    if life.kept:
        return "the budget was spent, and plan.answers has the answers"
    return f"the budget was spent, {_published(account, claim.key, again)}"


def _published(account: Account, key: str, again: str) -> str:
    """What became of paid answers that this process does not have."""
    try:
        text, more = account.stored(key), account.may_read(key)
    except LedgerError:
        return (
            f"and the answers that were kept under the key {key!r} are damaged: put the newest copy of the ledger "
            f"back; trying again does not help, and another key is charged again"
        )
    if text is None and more:
        return f"and nothing was published: {again}, and reads once more at no cost"
    if text is None or text == FAILED_READING:
        return f"and nothing was published: {CHARGED_FIRST}; choose another key to read again, at a further cost"
    return f"and the answers are in the ledger: {again}"
