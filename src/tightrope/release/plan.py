"""A plan: a draft that can be released, once, by the session that made it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn, final

from tightrope.documents.budget import Budget
from tightrope.errors import SealedError

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.documents.release import PlannedRelease
    from tightrope.noise.allocation import Allocation
    from tightrope.queries.accuracy import Accuracy
    from tightrope.queries.query import Question
    from tightrope.queries.statistics import Noise
    from tightrope.release.answers import Answers
    from tightrope.release.draft import Draft
    from tightrope.release.plan_register import Issued

# Objects of one life: what is spent through them cannot be set, copied or written down and read back.


class Sealed:
    """Nothing on it can be set or deleted; ``copy``, ``deepcopy`` and ``pickle`` refuse it with ``SealedError``.

    This stops what programs do by habit and what a library does for them. It is no wall against code that means to
    break in: whoever runs code in this process can read the table itself.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse(f"{name} cannot be set")

    def __delattr__(self, name: str) -> None:
        self._refuse(f"{name} cannot be deleted")

    def __copy__(self) -> NoReturn:
        self._refuse("it cannot be copied")

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        self._refuse("it cannot be copied")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse("it cannot be pickled, nor sent to another process")

    def __replace__(self, **_: object) -> NoReturn:
        self._refuse("it cannot be copied with changes")

    def _refuse(self, what: str) -> NoReturn:
        raise SealedError(
            f"a {type(self).__name__.lower()} is sealed: {what}, because a second one would spend its budget again; "
            f"session.plan(...) makes a plan, tr.Session(...) a session"
        )


@final
class Plan(Sealed):
    """Questions with their noise, certified against a share of the session's budget.

    Made by ``Session.plan``; ``print`` it, ``table()`` it, then ``release()`` it. Nothing in it depends on the data.
    It is sealed: it cannot be changed, copied or pickled, and what a release costs stands with the session.
    """

    __slots__ = ("__weakref__", "_draft", "_issued")
    _draft: Draft
    _issued: Issued[Answers]

    def __init__(self, draft: Draft, issued: Issued[Answers]) -> None:
        object.__setattr__(self, "_draft", draft)
        object.__setattr__(self, "_issued", issued)

    def release(self) -> Answers:
        """Charge the session, then read, draw noise and answer, once: drawing anew would tell more, and has to be paid.

        The charge comes before the first row is read, because whether reading fails can depend on the rows: a reading
        that fails costs the whole release. What can be checked without the rows is checked before, at no cost.
        Raises ``BudgetRefused`` where the session has not enough left (then nothing is drawn and nothing is spent) and
        where the plan was released before. Whatever else is raised says whether the budget was spent.
        """
        return self._issued.release()

    def rehearse(self) -> None:
        """Do what a release does before its charge: certify, compute on zeros, look for the table. Reads no row.

        Raises what a release would raise before it charges, but for what is left of the budget, which is not asked.
        """
        self._issued.rehearse()

    @property
    def answers(self) -> Answers:
        """What the release gave, again and at no cost; raises ``InputError`` before it."""
        return self._issued.answers()

    @property
    def charged(self) -> bool:
        """Whether the session was charged for it, with answers or without."""
        return self._issued.charged()

    @property
    def draft(self) -> Draft:
        """What was planned, without a way to release it."""
        return self._draft

    @property
    def budget(self) -> Budget:
        """What all answers together keep: the session's budget times the share."""
        return self._draft.budget

    @property
    def share(self) -> Decimal:
        """The share of the session's budget that a release is charged."""
        return self._draft.share

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of everything that the plan releases, certified from the tables that are sampled."""
        return self._draft.loss

    @property
    def allocation(self) -> Allocation:
        """The chosen noise, and how much more error other families come to."""
        return self._draft.allocation

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions, in the order in which they were asked."""
        return self._draft.questions

    @property
    def sizes(self) -> tuple[int, ...]:
        """Group sizes at which errors are stated."""
        return self._draft.sizes

    def noises(self) -> list[tuple[Noise, ...]]:
        """The noise of every vector, by task."""
        return self._draft.noises()

    def accuracies(self) -> list[Accuracy]:
        """The errors of each question, in the order of ``questions``."""
        return self._draft.accuracies()

    def table(self, budgets: Sequence[Budget] | None = None) -> list[dict[str, Any]]:
        """The same plan under other budgets (default: ε from 0.1 to 10 at this δ): what each buys. Spends nothing.

        A row a budget: ``epsilon``, ``delta``, ``attack_success`` and ``answers``: 95 % half-widths by question and,
        where it depends on it, by group size. A budget that cannot be met has ``answers`` None.
        """
        return self._draft.table(budgets)

    def frontier(self) -> list[dict[str, Any]]:
        """``table`` for ε from a quarter of the plan's to four times it, at its δ: what less and more would buy."""
        return self._draft.frontier()

    def to_data(self) -> dict[str, Any]:
        """``document`` as plain data."""
        return self._draft.to_data()

    def document(self, title: str | None = None, budgets: Sequence[Budget] | None = None) -> PlannedRelease:
        """What will be spent and how accurate each answer will be; with what each of ``budgets`` buys."""
        return self._draft.document(title, budgets)

    def explain(self) -> str:
        """The promise in one paragraph for everybody, and a picture of 100 guesses; every number is rounded up."""
        return self._draft.explain()

    def __str__(self) -> str:
        return str(self._draft)
