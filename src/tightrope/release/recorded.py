"""A plan whose release is charged in a ledger: paid once under its key, and never seen before it is kept there."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tightrope.errors import BudgetRefused, InputError, LedgerError
from tightrope.release.claims import named
from tightrope.release.register import Issued, refuse_again, refuse_fork, tell
from tightrope.release.stored import restored, stored_text

if TYPE_CHECKING:
    from tightrope.ledger import Account, Claim
    from tightrope.release.answers import Answers
    from tightrope.release.drafting.draft import Draft

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

    Its release counts the rows, charges the ledger, draws, keeps the answers in the ledger and only then hands them
    over. Killed after the charge and tried again under its key, it draws anew at no cost, for nobody saw the first
    draw; killed after the answers were kept, it finds them. Of two processes that try at once both hand over the
    answers that were kept first. Every exception says whether the budget was spent.
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
            life.charging = False
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
    return None if text is None else restored(text, draft)


def _paid(account: Account, claim: Claim, draft: Draft, prepared: Prepared, life: _Life, series: str | None) -> Answers:
    account.check(claim, series)
    with prepared() as work:
        life.charging = True
        entry = account.charge(claim, series)
        drawn = work()
        own = replace(drawn, certificate_data=named(drawn.certificate_data, entry, account))
        text = stored_text(own)
        first = account.answer(claim.key, text)
    return own if first == text else restored(first, draft)


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
        text = account.stored(key)
    except LedgerError:
        return (
            f"and the answers that were kept under the key {key!r} are damaged: put the newest copy of the ledger "
            f"back; trying again does not help, and another key is charged again"
        )
    return f"and nothing was published: {again}" if text is None else f"and the answers are in the ledger: {again}"
