"""A fixed plan for several dates: declared together, reserved together, released one by one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from tightrope.certificates.budget import Budget, at_most
from tightrope.errors import BudgetRefused, InputError, LedgerError
from tightrope.ledger.claim import SeriesClaim, date_of_series
from tightrope.ledger.recipe import Recipe
from tightrope.ledger.storage.entry import digest
from tightrope.release.claims import asked, claim_of
from tightrope.release.drafting.arranged import Tasks, allocated, units_of
from tightrope.release.drafting.moments import allocation_of, fitted, kept, limit_by_moments
from tightrope.release.plan import Plan
from tightrope.release.recorded import recorded
from tightrope.release.sealed import Sealed

if TYPE_CHECKING:
    from tightrope.ledger import Account, Limit
    from tightrope.release.answers import Answers
    from tightrope.release.drafting.draft import Draft

Answering = Callable[["Draft"], Callable[[], AbstractContextManager[Callable[[], "Answers"]]]]
How = tuple[str | None, Answering]
"""Who sees the answers, and what prepares a release of a draft."""


@final
class Series(Sealed):
    """``times`` releases of one plan that a ledger reserved: ``next()`` is the plan of the first that has no answers.

    All of them together keep the share that was planned, composed exactly, for noise that was fixed beforehand. What a
    person adds may be in the data of any number of the dates; per date the session's bounds hold.
    """

    __slots__ = ("_account", "_draft", "_how", "_key", "_times")
    _account: Account
    _draft: Draft
    _how: How
    _key: str
    _times: int

    def __init__(self, account: Account, draft: Draft, times: int, key: str, how: How) -> None:
        parts: dict[str, Any] = {"_account": account, "_draft": draft, "_how": how, "_key": key, "_times": times}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @property
    def times(self) -> int:
        """How many releases were declared."""
        return self._times

    @property
    def released(self) -> int:
        """How many were charged so far."""
        return self._account.state().series[self._key].done

    def next(self, key: str | None = None) -> Plan:
        """The plan of the next date; of one that was charged and may read once more, where there is one.

        With the ``key`` of a date (its certificate names it) the plan is that date's: released again it is free.
        Raises ``BudgetRefused`` where all are released.
        """
        if key is not None:
            return self._plan(self._known(key))
        done = self.released
        waiting = (place for place in range(1, done + 1) if self._account.may_read(self._name(place)))
        place = next(waiting, done + 1)
        if place > self._times:
            raise BudgetRefused(
                f"all {self._times} releases of the series {self._key!r} were released; declare another series, or "
                f"plan with what is left"
            )
        return self._plan(self._name(place))

    def _known(self, key: str) -> str:
        names = [self._name(place) for place in range(1, self.released + 1)]
        if key not in names:
            raise InputError("key", key, f"one of {names}", "leave it out for the next date")
        return key

    def _plan(self, key: str) -> Plan:
        audience, answering = self._how
        claim = claim_of(self._draft, key, audience)
        return Plan(self._draft, recorded(self._account, claim, self._draft, answering(self._draft), self._key))

    def _name(self, place: int) -> str:
        return date_of_series(self._key, place, self._times)


def series_of(account: Account, draft: Draft, times: int, key: str, how: How) -> Series:
    """The series of this key: found with its noise, or planned and reserved."""
    limit = limit_by_moments(account)
    said = draft if limit is None else replace(draft, budget=limit.budget.share(draft.share))
    plan = digest(f"{asked(said, how[0])} {times}")
    found = account.reserved(key)
    recipe = _planned(draft, times, limit) if found is None else Recipe.read(found[1])
    if found is not None and found[0].said["plan"] != plan:
        raise InputError("key", key, "new, or that of this very series", "the questions, the share and times are fixed")
    promised = draft.budget if limit is None else kept(limit, recipe.loss(times), draft.share)
    entry = account.reserve(SeriesClaim(key, plan, promised, times, recipe.text, how[0]))
    first = account.reserved(key)
    if first is not None and found is None:
        recipe = Recipe.read(first[1])  # of two processes that reserve at once, the noise of the first
    own = replace(draft, tasks=_arranged(draft, recipe), budget=Budget(**entry.said["kept"]))
    return Series(account, replace(own, allocation=allocation_of(recipe)), entry.said["times"], key, how)


def _arranged(draft: Draft, recipe: Recipe) -> Tasks:
    """The tasks as the noise that was reserved has them: it is kept, whatever would be chosen today."""
    found = next((tasks for tasks in _ways(draft) if tuple(units_of(tasks)) == recipe.units), None)
    if found is None:
        raise LedgerError(
            "the noise that was reserved for this series fits none of the ways in which this version arranges its "
            "questions; release the dates that are left with the version that reserved them"
        )
    return found


def _ways(draft: Draft) -> tuple[Tasks, ...]:
    return draft.ways or (draft.tasks,)


def _planned(draft: Draft, times: int, limit: Limit | None) -> Recipe:
    """The least noise for which all releases together keep the draft's budget, or its share of a limit's moments.

    Each is given that of the first.
    """
    if limit is not None:
        return fitted(tuple(units_of(draft.tasks)), limit, draft.share, times)
    tasks, together = allocated(_ways(draft), draft.budget, times=times)
    units = tuple(units_of(tasks))
    one = Recipe(units, together.choices[: len(units)], together.window, together.alternatives, together.spare)
    return one.closer(at_most(draft.budget.delta))
