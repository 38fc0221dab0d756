"""Plans: drafts that the session that made them can release once."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, final

from tightrope.documents.budget import Budget
from tightrope.errors import SingleUseError

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.documents.release import PlannedRelease
    from tightrope.noise.allocation import NoiseAllocation
    from tightrope.queries.accuracy import Accuracy
    from tightrope.queries.query import Query
    from tightrope.queries.statistics import Noise
    from tightrope.release.answers import Answers
    from tightrope.release.draft import NoisePlan
    from tightrope.release.plan_register import ReleaseHandle


class SingleUseObject:
    """An immutable object; ``copy``, ``deepcopy`` and ``pickle`` raise ``SingleUseError``.

    This prevents accidental copies by programs and libraries. It does not protect against malicious code: code in
    this process can read the table itself.
    """

    __slots__ = ()

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
            f"plan with session.plan(...), or a new session with tr.Session(...)"
        )


@final
class Plan(SingleUseObject):
    """Questions with their noise, certified against a fraction of the session's budget.

    Made by ``Session.plan``; ``print`` it, view its ``table()``, then ``release()`` it. It is independent of the data.
    It cannot be changed, copied or pickled; the session keeps the record of its charge.
    """

    __slots__ = ("__weakref__", "_draft", "_release_handle")
    _draft: NoisePlan
    _release_handle: ReleaseHandle[Answers]

    def __init__(self, draft: NoisePlan, release_handle: ReleaseHandle[Answers]) -> None:
        object.__setattr__(self, "_draft", draft)
        object.__setattr__(self, "_release_handle", release_handle)

    def release(self) -> Answers:
        """Charge the session, then read the rows, draw noise and return the answers; possible once per plan.

        The charge comes before the first row is read, because whether reading fails can depend on the rows: a failed
        reading costs the whole release. Checks that do not need the rows come before the charge, at no cost.
        Raises ``InsufficientBudgetError`` if the session has too little budget left (then no budget is spent), or if
        the plan was released before. All other exceptions state whether the budget was spent.
        """
        return self._release_handle.release()

    def dry_run(self) -> None:
        """Run the checks that a release makes before its charge: certify, compute on zeros, find the table.

        Does not read rows or check the remaining budget; otherwise raises the same errors as a release before its
        charge.
        """
        self._release_handle.dry_run()

    @property
    def answers(self) -> Answers:
        """The answers of the release, at no further cost; raises ``InputError`` before the release."""
        return self._release_handle.get_answers()

    @property
    def charged(self) -> bool:
        """Return whether the session was charged for the plan, with or without answers."""
        return self._release_handle.was_charged()

    @property
    def draft(self) -> NoisePlan:
        """The planned questions and noise, which cannot be released by themselves."""
        return self._draft

    @property
    def budget(self) -> Budget:
        """The budget that all answers together meet: the session's budget times ``budget_fraction``."""
        return self._draft.budget

    @property
    def budget_fraction(self) -> Decimal:
        """The fraction of the session's budget that a release is charged."""
        return self._draft.share

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of everything that the plan releases, certified from the tables that are sampled."""
        return self._draft.loss

    @property
    def allocation(self) -> NoiseAllocation:
        """The chosen noise, and the relative error of other families."""
        return self._draft.allocation

    @property
    def questions(self) -> tuple[Query, ...]:
        """The questions, in the order in which they were asked."""
        return self._draft.questions

    @property
    def sizes(self) -> tuple[int, ...]:
        """Group sizes at which errors are stated."""
        return self._draft.sizes

    def noises(self) -> list[tuple[Noise, ...]]:
        """Return the noise of every vector, by task."""
        return self._draft.noises()

    def accuracies(self) -> list[Accuracy]:
        """Return the errors of each question, in the order of ``questions``."""
        return self._draft.accuracies()

    def table(self, budgets: Sequence[Budget] | None = None) -> list[dict[str, Any]]:
        """Return the plan's accuracy under other budgets (default: ε from 0.1 to 10 at this δ), without spending.

        One row per budget: ``epsilon``, ``delta``, ``attack_success`` and ``answers``: 95 % half-widths by question
        and, where they depend on it, by group size. Budgets that cannot be met have ``answers`` None.
        """
        return self._draft.table(budgets)

    def frontier(self) -> list[dict[str, Any]]:
        """Return ``table`` for ε from a quarter of the plan's to four times it, at its δ."""
        return self._draft.frontier()

    def to_data(self) -> dict[str, Any]:
        """Return ``document`` as plain data."""
        return self._draft.to_data()

    def document(self, title: str | None = None, budgets: Sequence[Budget] | None = None) -> PlannedRelease:
        """Return the planned spending and the accuracy of each answer, also under each of ``budgets``."""
        return self._draft.document(title, budgets)

    def explain(self) -> str:
        """Return the guarantee in one plain paragraph, with a picture of 100 guesses; all numbers are rounded up."""
        return self._draft.explain()

    def __str__(self) -> str:
        return str(self._draft)

    def __repr__(self) -> str:
        count = len(self.questions)
        return f"<Plan: {count} question{'s' if count > 1 else ''}; {self.budget}>"
