"""Drafts: the planned answers with their noise and errors, made from the schema before anything is spent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from tightrope.display import Displayed, Rounded, Shown, Summary
from tightrope.documents.budget import Budget, charged_fraction
from tightrope.documents.document import BudgetPart, plain_data
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.documents.release import PLANNED, PLANNED_OUTPUT, PlannedRelease
from tightrope.documents.wording import explain_release, title_with_bound
from tightrope.errors import InsufficientBudgetError
from tightrope.mechanisms.discrete.box_table import MOST_DIMENSIONS
from tightrope.noise.allocation import NoiseAllocation, allocate_noise
from tightrope.noise.worst_split import (
    BOX_STEPS,
    CompositionGroup,
    SelectedNoise,
    SplitBounds,
    by_alternative,
    repeat_groups,
)
from tightrope.numerics.progress import with_progress
from tightrope.queries.accuracy import Accuracy, interval_statement
from tightrope.queries.comparisons import comparison
from tightrope.queries.count import count_distinct
from tightrope.queries.query import Query
from tightrope.queries.query_group import (
    QueryGroup,
    bounded_notes,
    bounds_for_query,
    listed_group_count,
    person_value_notes,
    persons_used,
    rows_used,
)
from tightrope.queries.statistics import Noise, NoisyStatistic, with_choices
from tightrope.release.bias_check import planned_bias_check
from tightrope.release.consistency import ConsistencyPlan, ConsistentFit, with_remaining_noise
from tightrope.release.settings import (
    attack_success_of_loss,
    attacker_wording,
    guarantee_data,
    large_delta_warning,
    large_epsilon_warning,
    neighbors_data,
)
from tightrope.reporting.wording.sentences import PROBABLY
from tightrope.tables.expressions.conditions import Cut
from tightrope.tables.expressions.expression import term_facts
from tightrope.tables.request import ContributionBounds

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.release.marginals import MarginalFit
    from tightrope.release.planner import Planner
    from tightrope.tables import PublicTable

QueryGroups = tuple[QueryGroup, ...]
"""The query groups of a plan: the table is read once for each."""
SEPARATE_SUMS, JOINT_SUMS = "each sum by itself", "sums in one box"
MAX_NAMES = 4
"""Most answers that a note names."""


def list_arrangements(query_groups: QueryGroups, fitted: Collection[str]) -> tuple[QueryGroups, ...]:
    """Return the possible arrangements of the noise: as it is, and with one box for the sums that may share noise.

    The second one is left out if no sums may. In a box, the noise of several sums is drawn as one point, which can
    have the smaller error. ``fitted`` names questions that are made consistent with others: their noise stays
    independent.
    """
    boxed = tuple(_with_joint_noise(query_group, fitted) for query_group in query_groups)
    return (query_groups,) if boxed == query_groups else (query_groups, boxed)


def allocate_best_arrangement(
    arrangements: Sequence[QueryGroups],
    budget: Budget,
    *,
    compare: bool = True,
    like: tuple[QueryGroups, NoiseAllocation] | None = None,
    times: int = 1,
) -> tuple[QueryGroups, NoiseAllocation]:
    """Return the way to group the questions that has the smallest error, and its noise.

    Raises ``InsufficientBudgetError``.

    ``arrangements``: at least one. ``like``: the result for another budget; only its arrangement and its noise
    families are used. ``times``: the number of releases that share the budget.
    """
    if like is not None:
        return like[0], allocate_noise(composition_groups_of(like[0]), budget, compare=compare, like=like[1])
    if times == 1 and arrangements[0][0].is_marginal:
        from tightrope.release.marginals import allocate_tables

        return arrangements[0], allocate_tables(arrangements[0], budget)
    results: list[tuple[QueryGroups, NoiseAllocation]] = []
    for query_groups in with_progress(arrangements):
        groups, is_first = composition_groups_of(query_groups), not results
        groups = groups if times == 1 else repeat_groups([(groups, times)])
        try:
            results.append((query_groups, allocate_noise(groups, budget, compare=compare and is_first)))
        except InsufficientBudgetError:
            if is_first:
                raise
    query_groups, best = min(results, key=lambda pair: pair[1].total_error)
    alternatives = {}
    for other_groups, allocation in results:
        if other_groups is not query_groups:
            is_joint = any(
                vector.joint_noise for query_group in other_groups for vector in query_group.noisy_statistics
            )
            alternatives[JOINT_SUMS if is_joint else SEPARATE_SUMS] = allocation.total_error / best.total_error
    return query_groups, replace(best, alternatives={**alternatives, **best.alternatives})


def composition_groups_of(query_groups: Sequence[QueryGroup]) -> list[CompositionGroup]:
    """Return the composition groups of all query groups, in order."""
    return [group for query_group in query_groups for group in query_group.composition_groups]


def _with_joint_noise(query_group: QueryGroup, fitted: Collection[str]) -> QueryGroup:
    """Return the query group with joint box noise for its sums of the most common size, if there are several."""
    bounds = query_group.group_contribution()
    joinable_vectors = [
        vector
        for question, vectors in query_group.vectors_by_query.items()
        if question.boxes and question.asked.name not in fitted
        for vector in vectors.values()
    ]
    sizes = Counter(vector.noise_spec.eighths for vector in joinable_vectors)
    common_size, vector_count = max(sizes.items(), key=lambda item: item[1], default=(0, 0))
    if not (vector_count > 1 and bounds.composes_every_split and bounds.largest_part <= BOX_STEPS):
        return query_group
    chosen = [vector for vector in joinable_vectors if vector.noise_spec.eighths == common_size][:MOST_DIMENSIONS]
    vectors_by_query = {
        question: MappingProxyType({name: replace(v, joint_noise=v in chosen) for name, v in vectors.items()})
        for question, vectors in query_group.vectors_by_query.items()
    }
    return replace(query_group, vectors_by_query=MappingProxyType(vectors_by_query))


Item = TypeVar("Item")

FRONTIER_FACTORS, TWELVE_DIGITS = ("0.25", "0.35", "0.5", "0.7", "1", "1.4", "2", "2.8", "4"), Context(prec=12)
"""The values of ε in ``accuracy_frontier``, as multiples of the plan's, and the rounding of these products."""
TABLE_EPSILONS = ("0.1", "0.3", "0.5", "1", "2", "5", "10")
"""The values of ε in ``accuracy_table``."""


@dataclass(frozen=True, eq=False, repr=False)  # not slotted: for cached properties
class NoisePlan(Displayed):
    """Questions with their noise, certified against a fraction of a budget; a draft cannot spend budget.

    It is independent of the data. The loss composes all noisy vectors with **parameters fixed in advance**;
    neighbors: add or remove one person.
    """

    query_groups: tuple[QueryGroup, ...]
    allocation: NoiseAllocation
    budget: Budget
    share: Decimal
    privacy_unit: PrivacyUnit
    sizes: tuple[int, ...]
    public: tuple[PublicTable, ...] = ()
    """The public tables that the questions use."""
    costs: Decimal = Decimal(0)
    """The maximum fraction of the plan's budget for measuring the bias of bounding and clamping."""
    sums: ConsistencyPlan = field(default_factory=ConsistencyPlan)
    """Answers about the same rows; their released values are made consistent, at no cost."""
    possible_arrangements: tuple[QueryGroups, ...] = ()
    """The possible arrangements of the noise, if there are several; the best one is chosen for each budget."""
    planner: Planner | None = None
    """The planner that made the draft, which also plans for other budgets; None for a draft made by hand."""
    planning_rule: int = 1
    """The number of the rule for relative noise sizes (``release.planner``), which a ledger records."""
    plan_by_previous_rule: Callable[[], NoisePlan] | None = None
    """Returns the draft by the rule with the next lower number; None if it is equal to this draft."""

    comparisons: tuple[comparison, ...] = ()
    """Differences and ratios of the answers, computed from what is released."""

    def drafts_by_rule(self) -> Iterator[NoisePlan]:
        """Yield the draft and those by the rules before that differ, newest first; each is planned when it is due."""
        draft = self
        yield draft
        while draft.plan_by_previous_rule is not None:
            draft = draft.plan_by_previous_rule()
            yield draft

    @property
    def charge(self) -> Fraction:
        """The fraction of the session's budget that a release is charged: ``share``, or the ratio it stands for."""
        return charged_fraction(self.share)

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of everything that the plan releases, certified from the tables that are sampled."""
        return self.allocation.loss

    @property
    def questions(self) -> tuple[Query, ...]:
        """The questions, in the order in which they were asked."""
        return tuple(
            _in_query_order(self.query_groups, [query_group.ordered_queries for query_group in self.query_groups])
        )

    @cached_property
    def noises_by_query_group(self) -> tuple[tuple[Noise, ...], ...]:
        """The noise of every vector, by query group."""
        selections, noises_by_query_group = iter(self.allocation.selections), []
        for query_group in self.query_groups:
            # Vectors of a disjoint set or of a box share one selected noise.
            selected_by_vector: dict[NoisyStatistic, SelectedNoise] = {}
            for draws in query_group.joint_draws_by_set:
                for vectors, selected in zip(draws, next(selections), strict=True):
                    selected_by_vector |= dict.fromkeys(vectors, selected)
            noises = []
            for vector in query_group.noisy_statistics:
                selected = selected_by_vector[vector]
                family = selected.family_name
                if vector.choice is not None:
                    family = "exponential mechanism"
                elif vector.joint_noise:
                    family = f"{family} in a box of {selected.noise_spec.dimension}"
                discovers_keys = vector == query_group.key_count
                noises.append(Noise(vector, family, selected.table, selected.steps_per_row, discovers=discovers_keys))
            has_choices = any(noise.vector.choice is not None for noise in noises)
            noises_by_query_group.append(
                with_choices(noises, query_group.cells_per_group) if has_choices else tuple(noises)
            )
        return tuple(noises_by_query_group)

    @cached_property
    def excluded_answers(self) -> dict[Query, list[str]]:
        """The names of the answers whose conditions exclude that of a question, and which are charged as one with it.

        Questions without such answers are left out.
        """
        if all(query_group.alternative is None for query_group in self.query_groups):
            return {}
        sets = by_alternative(
            [
                CompositionGroup((), SplitBounds(1, 1, 1), alternative=query_group.alternative)
                for query_group in self.query_groups
            ],
            [query_group.ordered_queries for query_group in self.query_groups],
        )
        excluded: dict[Query, list[str]] = {}
        for members in sets:
            for member in members:
                own = [query for queries in member for query in queries]
                names = [query.asked.name for queries in chain(*members) for query in queries if query not in own]
                excluded |= dict.fromkeys(own, names) if names else {}
        return excluded

    @cached_property
    def _independent_accuracies(self) -> list[Accuracy]:
        """The errors of each question by itself, before answers are made consistent."""
        accuracies_by_query_group = []
        for query_group, noises in zip(self.query_groups, self.noises_by_query_group, strict=True):
            by_vector = {noise.vector: noise for noise in noises}
            key_count_noise = None if query_group.key_count is None else by_vector[query_group.key_count]
            group_accuracies = []
            for question, vectors in query_group.vectors_by_query.items():
                noises_by_name = {name: by_vector[vector] for name, vector in vectors.items()}
                keys = None if question.counts_suppressed_groups else key_count_noise
                group_accuracies.append(Accuracy(question.resolve_noise(noises_by_name), noises_by_name, keys))
            accuracies_by_query_group.append(group_accuracies)
        return _in_query_order(self.query_groups, accuracies_by_query_group)

    @cached_property
    def _possible_fits(self) -> list[ConsistentFit]:
        """The least-squares fit for each set of answers, including fits that do not shorten intervals."""
        noises = {accuracy.question.asked.name: accuracy.own_noises[0] for accuracy in self._independent_accuracies}
        return [ConsistentFit(joined, tuple(noises[name] for name in joined.answers)) for joined in self.sums.joined]

    @cached_property
    def query_accuracies(self) -> tuple[Accuracy, ...]:
        """The errors of each question, in the order of ``questions``."""
        if self.query_groups[0].is_marginal:
            return tuple(map(self.marginal_fit.with_remaining_noise, self._independent_accuracies))
        return tuple(with_remaining_noise(self.sums, self._independent_accuracies, self._possible_fits))

    @cached_property
    def marginal_fit(self) -> MarginalFit:
        """The least squares of the tables of a ``marginals`` question, the only query group of its plan."""
        from tightrope.release.marginals import MarginalFit

        ((group,), (noises,)) = self.query_groups, self.noises_by_query_group
        return MarginalFit.from_group(group, noises)

    @cached_property
    def consistent_fits(self) -> tuple[ConsistentFit, ...]:
        """The least-squares fits that make answers consistent."""
        return tuple(fit for fit in self._possible_fits if fit.shortens_intervals)

    def accuracy_table(self, budgets: Sequence[Budget] | None = None) -> list[dict[str, Any]]:
        """Return the plan's accuracy under other budgets (default: ε from 0.1 to 10 at this δ), without spending.

        One row per budget: ``epsilon``, ``delta``, ``attack_success`` and ``answers``: 95 % half-widths by question
        and, where they depend on it, by group size. Budgets that cannot be met have ``answers`` None.
        """
        chosen = budgets or [Budget(epsilon=e, delta=self.budget.delta) for e in TABLE_EPSILONS]
        return [self._budget_row(budget) for budget in with_progress(chosen)]

    def _budget_row(self, budget: Budget) -> dict[str, Any]:
        row: dict[str, Any] = {"epsilon": float(max(e for e, _ in budget.points)), "delta": float(budget.delta)}
        try:
            plan = self if budget == self.budget else self._with_budget(budget)
        except InsufficientBudgetError:
            return {**row, "attack_success": None, "answers": None}
        success, answers = attack_success_of_loss(plan.loss), {}
        for accuracy in plan.query_accuracies:
            widths = {str(people): accuracy.errors_at_size(people)["half_width_95"] for people in self.sizes}
            name = accuracy.question.asked.name
            answers[name] = widths[str(self.sizes[0])] if accuracy.question.uniform else widths
        return {**row, "attack_success": success, "answers": answers}

    def _with_budget(self, budget: Budget) -> NoisePlan:
        arrangements = self.possible_arrangements or (self.query_groups,)
        if self.planner is not None and self.planning_rule > 1:  # relative sizes depend on the budget
            arrangements, _ = self.planner.arrange_questions(budget)
        query_groups, allocation = allocate_best_arrangement(arrangements, budget, compare=False)
        return replace(self, query_groups=query_groups, allocation=allocation, budget=budget)

    def accuracy_frontier(self) -> list[dict[str, Any]]:
        """Return ``accuracy_table`` for ε from a quarter of the plan's to four times it, at its δ."""
        plan_epsilon = self.budget.epsilon or Decimal(repr(self.loss.epsilon(float(self.budget.delta))))
        epsilons = (TWELVE_DIGITS.multiply(plan_epsilon, Decimal(factor)) for factor in FRONTIER_FACTORS)
        return self.accuracy_table([Budget(epsilon=epsilon, delta=self.budget.delta) for epsilon in epsilons])

    def to_data(self) -> dict[str, Any]:
        """Return the document as plain data."""
        return plain_data(self.plan_document())

    def plan_document(self, title: str | None = None, budgets: Sequence[Budget] | None = None) -> PlannedRelease:
        """Return the planned spending and the accuracy of each answer, also under each of ``budgets``."""
        data = {
            "document": "planned release",
            "version": 2,
            "title": title,
            **guarantee_data(self.loss, self.budget),
            "attacker": attacker_wording(self.loss, self.privacy_unit),
            "budget": plain_data(BudgetPart.from_budget(self.budget)),
            "budget_fraction": str(self.share),
            "neighbors": neighbors_data(self.privacy_unit),
            "answers": [
                {**self.answer_data(accuracy), "alone": alone}
                for accuracy, alone in zip(self.query_accuracies, self._errors_alone, strict=True)
            ],
            "alternatives": self.noise_alternatives,
            "table": None if budgets is None else self.accuracy_table(budgets),
            "bias_check": planned_bias_check(self.query_groups, self.noises_by_query_group, self.costs),
            "planning_rule": self.planning_rule,
        }
        return PLANNED.convert_data(data, PlannedRelease)

    @cached_property
    def _errors_alone(self) -> list[dict[str, Any] | None]:
        """What each question would have alone, in the order of ``questions``; None if that is not known."""
        if self.planner is None:
            return [None] * len(self.questions)
        return self.planner.compare_with_alone(self)

    @property
    def noise_alternatives(self) -> list[dict[str, Any]]:
        """The other noise families, with their error relative to the chosen noise."""
        return [{"family": name, "relative_error": error} for name, error in self.allocation.alternatives.items()]

    def answer_data(self, accuracy: Accuracy) -> dict[str, Any]:
        """Return one question's errors, noise and contribution bounds."""
        question = accuracy.question
        bounds = bounds_for_query(self.privacy_unit, question)
        title, meaning, over, bound_notes = self._reader_texts(question, bounds)
        of_persons, label = question.asked.per_person is not None, self._answer_label(question)
        leaves_out = label != title_with_bound(question.asked.reader_texts.get("title") or title, "")
        sizes = [accuracy.errors_at_size(people) for people in self.sizes]
        uniform = sizes[0] if accuracy.question.uniform else {}
        return {
            "name": question.asked.name,
            "question": title,
            "kind": question.kind,
            "meaning": question.asked.reader_texts.get("means") or meaning,
            **{name: question.asked.reader_texts.get(name) for name in ("title", "description", "unit")},
            "over": over,
            "label": label,
            "additive": question.additive,
            "by": list(question.key_columns),
            "keys": ("discovered" if question.asked.keys is None else "given") if question.key_columns else "none",
            "weight": question.asked.weight,
            "max_rows": bounds.max_rows,
            "max_rows_per_group": bounds.max_rows_per_group,
            "max_groups": bounds.max_groups,
            "noise": [
                noise.to_data(self._noise_choice_reason(bounded=noise == accuracy.key_count_noise))
                for noise in accuracy.stated_noises
            ],
            "error": {
                "expected_absolute_error": uniform.get("expected_absolute_error"),
                "half_width_95": uniform.get("half_width_95"),
                "worst_error": accuracy.worst_error,
                "by_group_size": sizes,
                "statement": interval_statement([question], leaves_out=leaves_out),
            },
            "edges": list(question.asked.part_edges),
            "bands": {
                name: [edge.value for edge in term.edges]
                for name, term in zip(question.key_columns, question.asked.terms, strict=False)
                if isinstance(term, Cut) and not question.asked.part_edges
            },
            "k": question.largest_groups,
            "clamping": accuracy.clamping_text(has_bias_check=self.costs > 0 and not of_persons),
            "notes": [
                *accuracy.reader_notes(),
                *bound_notes,
                *(self._exclusion_notes(question) if question in self.excluded_answers else []),
                *self._warning_texts(),
            ],
        }

    def _reader_texts(self, question: Query, bounds: ContributionBounds) -> tuple[str, str, str, Sequence[str]]:
        """Return the title, the meaning of a value, what is counted, and the notes on a person's contribution."""
        if question.asked.per_person is not None:
            title, meaning = question.title_of_persons(self.privacy_unit.means)
            return (
                title,
                meaning,
                persons_used(bounds, self.privacy_unit),
                person_value_notes(bounds, self.privacy_unit),
            )
        title, meaning = question.title_and_meaning(self.privacy_unit.means)
        by, leaves_out = question.asked.by, bool(self._used_rows_text(question, bounds))
        term = self.query_groups[0].bounds.person_column
        kind = None if term is None or self.planner is None else term_facts(term, self.planner.table.schema).kind
        notes = bounded_notes(bounds, self.privacy_unit, by, kind, leaves_out=leaves_out)
        return title, meaning, rows_used(bounds, self.privacy_unit, by), notes

    def _exclusion_notes(self, question: Query) -> list[str]:
        """Return a note on the answers that are charged as one with a question."""
        names = [escape_control_chars(repr(name)) for name in self.excluded_answers[question]]
        shown = (
            f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} others"
            if len(names) > MAX_NAMES
            else ", ".join(names)
        )
        return [f"No row counts both here and in {shown}: together they cost as much of the budget as one of them."]

    def _answer_label(self, question: Query) -> str:
        """Return the title for readers; if rows of a person can be left out, it says how many are used."""
        bounds = bounds_for_query(self.privacy_unit, question)
        if question.asked.per_person is not None:
            title = question.asked.reader_texts.get("title") or question.title_of_persons(self.privacy_unit.means)[0]
            groups = listed_group_count(question)
            is_in_all_groups = groups is not None and bounds.max_groups >= groups
            return title_with_bound(title, "" if is_in_all_groups else persons_used(bounds, self.privacy_unit))
        title = question.asked.reader_texts.get("title") or question.title_and_meaning(self.privacy_unit.means)[0]
        return title_with_bound(title, self._used_rows_text(question, bounds))

    def _used_rows_text(self, question: Query, bounds: ContributionBounds) -> str:
        """Return how many rows of a person a question uses; empty if it leaves none out that could change it."""
        keys, counts_units = question.asked.keys, isinstance(question, count_distinct) and question.term is None
        # A query of the number of rows per person, or one with a group for each listed key, leaves none out.
        is_in_all_groups = not question.asked.by or (keys is not None and bounds.max_groups >= len(keys))
        unit = PrivacyUnit(
            "" if question.row_count_steps else str(bounds.person_column or ""),
            bounds.max_rows,
            bounds.max_rows_per_group if question.asked.by else None,
            None if is_in_all_groups else bounds.max_groups,
            self.privacy_unit.means,
        )
        return unit.used_rows_text(counts_units=counts_units)

    def _warning_texts(self) -> list[str]:
        """Return warnings about a large ε or δ, and about extra noise from a simpler bound."""
        warnings = [
            warning
            for warning in (large_epsilon_warning(self.budget), large_delta_warning(self.budget))
            if warning is not None
        ]
        if self.allocation.avoidable_noise is None:
            return warnings
        percent = math.ceil(1000 * self.allocation.avoidable_noise) / 10
        return [*warnings, f"For speed a simpler bound was used; at most {percent:g} % of the noise is due to it."]

    def _noise_choice_reason(self, *, bounded: bool) -> str:
        if not self.allocation.alternatives:
            return "no integer noise has a smaller error under this budget (closed form)"
        if bounded:
            return "bounded noise, which discovered groups need"
        return f"smallest expected error of {len(self.allocation.alternatives)} noise families under this budget"

    def text_summary(self) -> Summary:
        """Return the 95 % margin of error of each question, for some numbers of rows in a group."""
        rows: list[tuple[Shown, ...]] = []
        for accuracy in self.query_accuracies:
            margins: list[Shown] = []
            for error in map(accuracy.errors_at_size, self.sizes):
                width = "unbounded" if error["half_width_95"] is None else Rounded(error["half_width_95"], "up")
                margins.append(width if error["suppressed"] <= PROBABLY else "probably suppressed")
            rows.append((accuracy.question.asked.name, *margins))
        columns = ("95 % margin of error", *(f"with {people:,} rows" for people in self.sizes))
        count = len(self.questions)
        title = f"{count} question{'s' if count > 1 else ''}; {self.budget}"
        return Summary(title, (), columns, rows)

    def explain_guarantee(self) -> str:
        """Return the guarantee in one plain paragraph, with a picture of 100 guesses; all numbers are rounded up."""
        guarantee = guarantee_data(self.loss, self.budget)
        epsilon, delta, success = (guarantee[name] for name in ("epsilon", "delta", "attack_success"))
        return str(explain_release(epsilon, delta, success, self.privacy_unit, PLANNED_OUTPUT))

    def __str__(self) -> str:
        from tightrope.release.plan_text import plan_text

        return plan_text(self.plan_document())


def _in_query_order(query_groups: Sequence[QueryGroup], results_by_query_group: Sequence[Sequence[Item]]) -> list[Item]:
    """Return results that are grouped by query group as one list in the order of the questions."""
    pairs_by_query_group = (
        zip(query_group.query_positions, results, strict=True)
        for query_group, results in zip(query_groups, results_by_query_group, strict=True)
    )
    result_by_position = dict(chain.from_iterable(pairs_by_query_group))
    return [result_by_position[position] for position in sorted(result_by_position)]
