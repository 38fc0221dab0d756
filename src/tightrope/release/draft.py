"""What will be released, with which noise, at which errors – made from the schema, before anything is spent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from tightrope.documents.budget import Budget
from tightrope.documents.document import BudgetPart, plain
from tightrope.documents.release import PLANNED, WOULD_SAY, PlannedRelease
from tightrope.documents.wording import of_release
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.discrete.box_table import MOST_DIMENSIONS
from tightrope.noise.allocation import Allocation, allocate
from tightrope.noise.worst_split import BOX_STEPS, Choice, Unit
from tightrope.numerics.checks import whole
from tightrope.queries.accuracy import SIZES, STATEMENT, Accuracy
from tightrope.queries.query import Question
from tightrope.queries.query_group import Person, Task, bounded_notes, rows_used
from tightrope.queries.statistics import Noise, Vector
from tightrope.release.bias_check import planned_costs
from tightrope.release.consistency import Fitted, Sums, fitted, lessened
from tightrope.release.settings import (
    attack_success,
    attacker,
    guarantee_data,
    large_delta,
    large_epsilon,
    neighbours_data,
)

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.tables import PublicTable

# Sums of several columns: with noise of their own, or as one point of a box, whichever has the smaller error.

Tasks = tuple[Task, ...]
APART, TOGETHER = "each sum by itself", "sums in one box"


def arrangements(tasks: Tasks, fitted: Collection[str]) -> tuple[Tasks, ...]:
    """The tasks as they are; then, where that is another way, with boxes for all sums that may share their noise.

    ``fitted`` names questions that are made consistent with others: their noise stays independent.
    """
    boxed = tuple(_boxed(task, fitted) for task in tasks)
    return (tasks,) if boxed == tasks else (tasks, boxed)


def allocated(
    ways: Sequence[Tasks],
    budget: Budget,
    *,
    compare: bool = True,
    like: tuple[Tasks, Allocation] | None = None,
    times: int = 1,
) -> tuple[Tasks, Allocation]:
    """The way with the least error and its noise. Raises ``BudgetRefused`` where no noise keeps the budget.

    ``like`` what another budget took: its way and its families alone. ``times``: so many releases keep it together.
    """
    if like is not None:
        return like[0], allocate(units_of(like[0]), budget, compare=compare, like=like[1])
    (plain, *others), found = ways, []
    found.append((plain, allocate(units_of(plain) * times, budget, compare=compare)))
    for tasks in others if budget.delta > 0 else ():
        try:
            found.append((tasks, allocate(units_of(tasks) * times, budget, compare=False)))
        except BudgetRefused:
            continue
    tasks, best = min(found, key=lambda pair: pair[1].error)
    beside = {_called(other): one.error / best.error for other, one in found if other is not tasks}
    return tasks, replace(best, alternatives={**beside, **best.alternatives})


def units_of(tasks: Sequence[Task]) -> list[Unit]:
    """The units of privacy of all tasks, in their order."""
    return [unit for task in tasks for unit in task.units]


def _called(tasks: Tasks) -> str:
    return TOGETHER if any(vector.boxed for task in tasks for vector in task.vectors) else APART


def _boxed(task: Task, fitted: Collection[str]) -> Task:
    """The same task with its sums in one box: those of the most common relative size, if there are several."""
    bounds = task.contribution()
    ours = [
        vector
        for question, own in task.served.items()
        if question.boxes and question.asked.name not in fitted
        for vector in own.values()
    ]
    sizes = Counter(vector.spend.eighths for vector in ours)
    size, many = max(sizes.items(), key=lambda item: item[1], default=(0, 0))
    if not (many > 1 and bounds.exact and bounds.largest_part <= BOX_STEPS):
        return task
    chosen = [vector for vector in ours if vector.spend.eighths == size][:MOST_DIMENSIONS]
    served = {
        question: MappingProxyType({name: replace(v, boxed=v in chosen) for name, v in own.items()})
        for question, own in task.served.items()
    }
    return replace(task, served=MappingProxyType(served))


Found = TypeVar("Found")

AROUND, ROUNDED = ("0.25", "0.35", "0.5", "0.7", "1", "1.4", "2", "2.8", "4"), Context(prec=12)
EPSILONS = ("0.1", "0.3", "0.5", "1", "2", "3", "5", "10")


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Questions with their noise, certified against a share of a budget. It spends nothing, and cannot.

    Nothing in it depends on the data. The loss composes all noisy vectors with **parameters fixed in advance**;
    neighbours: add or remove one person.
    """

    tasks: tuple[Task, ...]
    allocation: Allocation
    budget: Budget
    share: Decimal
    person: Person
    sizes: tuple[int, ...]
    public: tuple[PublicTable, ...] = ()
    """Public tables in which something is looked up."""
    costs: Decimal = Decimal(0)
    """The part of the budget, at most, that tells what bounding and clamping cost."""
    sums: Sums = field(default_factory=Sums)
    """Which answers are about the same rows: what is released of them is made consistent, at no cost."""
    ways: tuple[Tasks, ...] = ()
    """The ways in which its noise may be arranged, where there are several: each budget takes the best."""

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of everything that the plan releases, certified from the tables that are sampled."""
        return self.allocation.loss

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions, in the order in which they were asked."""
        return tuple(_as_asked(self.tasks, [task.questions for task in self.tasks]))

    def noises(self) -> list[tuple[Noise, ...]]:
        """The noise of every vector, by task."""
        choices = iter(self.allocation.choices)
        return [_noises(task, [next(choices) for _ in task.sets]) for task in self.tasks]

    def accuracies(self) -> list[Accuracy]:
        """The errors of each question, in the order of ``questions``."""
        found = [_of(task, noises) for task, noises in zip(self.tasks, self.noises(), strict=True)]
        return lessened(self.sums, _as_asked(self.tasks, found))

    def fitted(self) -> tuple[Fitted, ...]:
        """The least squares that make answers consistent."""
        return tuple(one for one in fitted(self.sums, self.accuracies()) if one.helps)

    def table(self, budgets: Sequence[Budget] | None = None) -> list[dict[str, Any]]:
        """The same plan under other budgets (default: ε from 0.1 to 10 at this δ): what each buys. Spends nothing.

        A row a budget: ``epsilon``, ``delta``, ``attack_success`` and ``answers``: 95 % half-widths by question and,
        where it depends on it, by group size. A budget that cannot be met has ``answers`` None.
        """
        chosen = budgets or [Budget(epsilon=e, delta=self.budget.delta) for e in EPSILONS]
        return [self._row(budget) for budget in chosen]

    def _row(self, budget: Budget) -> dict[str, Any]:
        row: dict[str, Any] = {"epsilon": float(max(e for e, _ in budget.points)), "delta": float(budget.delta)}
        try:
            plan = self if budget == self.budget else self._under(budget)
        except BudgetRefused:
            return {**row, "attack_success": None, "answers": None}
        return {
            **row,
            "attack_success": attack_success(plan.loss),
            "answers": {accuracy.question.asked.name: _widths(accuracy, self.sizes) for accuracy in plan.accuracies()},
        }

    def _under(self, budget: Budget) -> Draft:
        tasks, allocation = allocated(self.ways or (self.tasks,), budget, compare=False)
        return replace(self, tasks=tasks, allocation=allocation, budget=budget)

    def frontier(self) -> list[dict[str, Any]]:
        """``table`` for ε from a quarter of the plan's to four times it, at its δ: what less and more would buy."""
        own = self.budget.epsilon or Decimal(repr(self.loss.epsilon(float(self.budget.delta))))
        epsilons = (ROUNDED.multiply(own, Decimal(factor)) for factor in AROUND)
        return self.table([Budget(epsilon=epsilon, delta=self.budget.delta) for epsilon in epsilons])

    def to_data(self) -> dict[str, Any]:
        """The document as plain data."""
        return plain(self.document())

    def document(self, title: str | None = None, budgets: Sequence[Budget] | None = None) -> PlannedRelease:
        """What will be spent and how accurate each answer will be; with what each of ``budgets`` buys."""
        data = {
            "document": "planned release",
            "version": 1,
            "title": title,
            **guarantee_data(self.loss, self.budget),
            "attacker": attacker(self.loss, self.person),
            "budget": plain(BudgetPart.of(self.budget)),
            "share": str(self.share),
            "neighbours": neighbours_data(self.person),
            "answers": [self.answer_data(accuracy) for accuracy in self.accuracies()],
            "alternatives": self.alternatives,
            "table": None if budgets is None else self.table(budgets),
            "costs": planned_costs(self.tasks, self.noises(), self.costs),
        }
        return PLANNED.data(data, PlannedRelease)

    @property
    def alternatives(self) -> list[dict[str, Any]]:
        """Families of noise, and how much more error each comes to."""
        return [{"family": name, "relative_error": error} for name, error in self.allocation.alternatives.items()]

    def answer_data(self, accuracy: Accuracy) -> dict[str, Any]:
        """One question's errors and noise, and how much of one person is in it."""
        question, why = accuracy.question, self._why()
        bounds = self.person.bounds(question)
        shown = [*accuracy.noises, *([accuracy.keys] if accuracy.keys and accuracy.keys not in accuracy.noises else [])]
        sizes = [accuracy.at(people) for people in self.sizes]
        uniform = sizes[0] if accuracy.uniform else {}
        return {
            "name": question.asked.name,
            "question": question.title_for(self.person.means),
            "kind": question.kind,
            "meaning": question.asked.said.get("means") or question.meaning_for(self.person.means),
            **{name: question.asked.said.get(name) for name in ("title", "description", "unit")},
            "over": rows_used(bounds, self.person, question.asked.by),
            "additive": question.additive,
            "by": list(question.columns),
            "keys": ("discovered" if question.asked.keys is None else "given") if question.columns else "none",
            "weight": question.asked.weight,
            "rows_per_person": bounds.rows,
            "rows_per_group": bounds.rows_per_group,
            "groups_per_person": bounds.groups,
            "noise": [noise.to_data(why) for noise in _said_once(shown)],
            "error": {
                "expected_absolute_error": uniform.get("expected_absolute_error"),
                "half_width_95": uniform.get("half_width_95"),
                "worst_error": accuracy.worst,
                "by_group_size": sizes,
                "statement": STATEMENT,
            },
            "edges": list(question.part_edges),
            "notes": [*accuracy.notes(), *bounded_notes(bounds, self.person, question.asked.by), *self._warnings()],
        }

    def _warnings(self) -> list[str]:
        """Words of warning for a large ε or δ, and what a bound on many rows costs, where there is one."""
        said = [warning for warning in (large_epsilon(self.budget), large_delta(self.budget)) if warning is not None]
        if self.allocation.spare is None:
            return said
        percent = math.ceil(1000 * self.allocation.spare) / 10
        cost = f"one person's rows can fall in too many ways to try each: that costs at most {percent:g} % of the noise"
        return [*said, cost]

    def _why(self) -> str:
        if not self.allocation.alternatives:
            return "no integer noise has a smaller error under this budget (closed form)"
        return f"least expected error of {len(self.allocation.alternatives)} kinds of noise under this budget"

    def explain(self) -> str:
        """The promise in one paragraph for everybody, and a picture of 100 guesses; every number is rounded up."""
        stated = guarantee_data(self.loss, self.budget)
        epsilon, delta, success = (stated[name] for name in ("epsilon", "delta", "attack_success"))
        return str(of_release(epsilon, delta, success, self.person.protected, WOULD_SAY))

    def __str__(self) -> str:
        from tightrope.release.plan_text import plan_text

        return plan_text(self.to_data())


def _as_asked(tasks: Sequence[Task], found: Sequence[Sequence[Found]]) -> list[Found]:
    """One for each question, found task by task, in the order of the questions."""
    by_task = (zip(task.places, own, strict=True) for task, own in zip(tasks, found, strict=True))
    placed = dict(chain.from_iterable(by_task))
    return [placed[place] for place in sorted(placed)]


def _noises(task: Task, choices: Sequence[tuple[Choice, ...]]) -> tuple[Noise, ...]:
    """The noise of a task's vectors; those of an exclusive set, and of a box, have one choice between them."""
    found: dict[Vector, Choice] = {}
    for parts, chosen in zip(task.parts, choices, strict=True):
        found |= {vector: choice for own, choice in zip(parts, chosen, strict=True) for vector in own}
    kept = ((vector, found[vector]) for vector in task.vectors)
    return tuple(Noise(v, _family(v, c), c.table, c.shift, discovers=v == task.key_count) for v, c in kept)


def _family(vector: Vector, choice: Choice) -> str:
    """What runs: where a cell is chosen, the noise is what it is charged as."""
    if vector.choice is not None:
        return "exponential mechanism"
    return f"{choice.family} in a box of {choice.spend.dimension}" if vector.boxed else choice.family


def _of(task: Task, noises: tuple[Noise, ...]) -> list[Accuracy]:
    """The noise of each question's own vectors, and that of the key count where its groups are discovered by it."""
    found = {noise.vector: noise for noise in noises}
    keys = None if task.key_count is None else found[task.key_count]
    return [
        Accuracy(question, {name: found[vector] for name, vector in own.items()}, None if question.left_over else keys)
        for question, own in task.served.items()
    ]


def _widths(accuracy: Accuracy, sizes: Sequence[int]) -> Any:
    widths = {str(people): accuracy.at(people)["half_width_95"] for people in sizes}
    return widths[str(sizes[0])] if accuracy.uniform else widths


def group_sizes(expected_rows: int | None) -> tuple[int, ...]:
    """Group sizes to state errors at."""
    return SIZES if expected_rows is None else (whole("expected_rows", expected_rows),)


def _said_once(noises: Sequence[Noise]) -> list[Noise]:
    """Vectors of one exclusive label are alike and get the noise of one: so one of them is named."""
    labels = [noise.vector.exclusive for noise in noises]
    return [noise for place, noise in enumerate(noises) if labels[place] is None or labels[place] not in labels[:place]]
