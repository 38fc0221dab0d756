"""Plans: drafts that can be released once, charged to the account of the session that made them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, final

from tightrope.display import Displayed, Summary
from tightrope.documents.budget import Budget
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.release.accounts import ReleaseAccount, SingleUseObject, annotate_error, refuse_second_release

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.display import Figure
    from tightrope.documents.release import PlannedRelease
    from tightrope.noise.allocation import NoiseAllocation
    from tightrope.queries.accuracy import Accuracy
    from tightrope.queries.query import Query
    from tightrope.queries.statistics import Noise
    from tightrope.release.answers import Answers
    from tightrope.release.build_answers import TableRelease
    from tightrope.release.draft import NoisePlan


@final
class Plan(Displayed, SingleUseObject):
    """Questions with their noise, certified against a fraction of the session's budget.

    Made by ``Session.plan``; ``print`` it, view its ``table()``, then ``release()`` it. It is independent of the data.
    It cannot be changed, copied or pickled; the session keeps the record of its charge.
    """

    __slots__ = ("__weakref__", "_account", "_answers", "_draft", "_table_release")
    _account: ReleaseAccount
    _answers: list[Answers]
    """The answers, once they are released: at most one."""
    _draft: NoisePlan
    _table_release: TableRelease

    def __init__(self, draft: NoisePlan, account: ReleaseAccount, table_release: TableRelease) -> None:
        self._set_parts(_draft=draft, _account=account, _table_release=table_release, _answers=[])

    def release(self) -> Answers:
        """Charge the session, then read the rows, draw noise and return the answers; possible once per plan.

        The charge comes before the first row is read, because whether reading fails can depend on the rows: a failed
        reading costs the whole release. Checks that do not need the rows come before the charge, at no cost.
        Raises ``InsufficientBudgetError`` if the session has too little budget left (then no budget is spent), or if
        the plan was released before. All other exceptions, including interrupts, state whether the budget was spent.
        """
        account, answers, table_release = self._account, self._answers, self._table_release
        account.refuse_fork()
        if answers:
            refuse_second_release()
        try:
            earlier_answers = account.find_answers()
            if earlier_answers is not None:
                answers.append(earlier_answers)
                return earlier_answers
            account.check_charge()
            builder = table_release.prepare_answers()
            answers.append(account.charge_and_read(lambda: table_release.read_and_draw(builder)))
            return answers[0]
        except BaseException as error:
            outcome = account.outcome_text(has_answers=bool(answers))
            if not isinstance(error, InsufficientBudgetError):  # which states this itself
                annotate_error(error, outcome)
            raise

    def dry_run(self) -> None:
        """Run the checks that a release makes before its charge: certify, compute on zeros, find the table.

        Does not read rows or check the remaining budget; otherwise raises the same errors as a release before its
        charge.
        """
        self._table_release.prepare_answers()

    @property
    def answers(self) -> Answers:
        """The answers of the release, at no further cost; raises ``InputError`` before the release."""
        if not self._answers:
            raise InputError.from_text("answers", "release the plan first (plan.release())")
        return self._answers[0]

    @property
    def charged(self) -> bool:
        """Return whether the session was charged for the plan, with or without answers."""
        return self._account.was_charged() or bool(self._answers)

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
        """Return the noise of every vector, by query group."""
        return list(self._draft.noises_by_query_group)

    def accuracies(self) -> list[Accuracy]:
        """Return the errors of each question, in the order of ``questions``."""
        return list(self._draft.query_accuracies)

    def table(self, budgets: Sequence[Budget] | None = None) -> list[dict[str, Any]]:
        """Return the plan's accuracy under other budgets (default: ε from 0.1 to 10 at this δ), without spending.

        One row per budget: ``epsilon``, ``delta``, ``attack_success`` and ``answers``: 95 % half-widths by question
        and, where they depend on it, by group size. Budgets that cannot be met have ``answers`` None.
        """
        return self._draft.accuracy_table(budgets)

    def frontier(self) -> list[dict[str, Any]]:
        """Return ``table`` for ε from a quarter of the plan's to four times it, at its δ."""
        return self._draft.accuracy_frontier()

    def to_data(self) -> dict[str, Any]:
        """Return ``document`` as plain data."""
        return self._draft.to_data()

    def document(self, title: str | None = None, budgets: Sequence[Budget] | None = None) -> PlannedRelease:
        """Return the planned spending and the accuracy of each answer, also under each of ``budgets``."""
        return self._draft.plan_document(title, budgets)

    def explain(self) -> str:
        """Return the guarantee in one plain paragraph, with a picture of 100 guesses; all numbers are rounded up."""
        return self._draft.explain_guarantee()

    def __str__(self) -> str:
        return str(self._draft)

    def text_summary(self) -> Summary:
        """Return the 95 % margin of error of each question, for some numbers of rows in a group."""
        return self._draft.text_summary()

    def plot(self) -> Figure:
        """Draw the 95 % margins of error over ε (``frontier``), a line for each answer, as a matplotlib figure.

        Planning for these budgets takes as long as planning. Raises ``MissingExtraError`` without matplotlib.
        """
        from tightrope.reporting import plots

        return plots.plan_frontier(self.frontier())
