"""What a plan's ledger says before a release: what is left, and whether it would be refused. Writes nothing."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from tightrope.errors import InputError, LedgerError

if TYPE_CHECKING:
    from tightrope.ledger import Account
    from tightrope.release.documents.plan_file import PlanFile
    from tightrope.release.plan import Plan


def standing(file: PlanFile, plan: Plan) -> list[str]:
    """Sentences; none where nobody has declared the dataset yet."""
    try:
        account = file.account()
        if account is None:
            return []
        file.recorded()  # the dataset is there: nothing is declared, and what differs is refused
        return [*_left(account), *_verdict(file, plan, account)]
    except (InputError, LedgerError) as error:
        return [f"A release would be refused: {error}."]


def _left(account: Account) -> list[str]:
    """What is left of every limit, in its latest period."""
    from tightrope.ledger.overview import limits

    said = [f"{limit['left']} of {limit['slot']!r}" for limit in limits(account)]
    return [f"The ledger has left: {', '.join(said)}."]


def _verdict(file: PlanFile, plan: Plan, account: Account) -> list[str]:
    """Whether a release passes now; of a series, how far it is."""
    from tightrope.release.claims import claim_of

    section = file.document.ledger
    if section.times is not None:
        running = account.state().series.get(section.series)
        done = 0 if running is None else running.done
        if running is None or done < section.times:
            return [f"Of the series {section.series!r} {done} of {section.times} are released."]
        return [f"A release would be refused: all {done} of the series {section.series!r} are released."]
    claim = claim_of(plan.draft, secrets.token_hex(8), section.audience)
    if account.unanswered(claim.plan) is not None:
        return ["A release of this very plan was paid and never answered: the next one takes it up, at no cost."]
    refusal = account.refusal(claim)
    return [] if refusal is None else [f"A release would be refused: {refusal}."]
