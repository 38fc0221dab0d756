"""The bias check: noisy counts of rows with and without the bound, values beyond each end, and missing fields."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

from tightrope.documents.budget import Number, exact_decimal
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import DOWN, NEAREST, UP, rounded_decimal
from tightrope.documents.release import BiasPart
from tightrope.errors import InputError, PlanError
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec
from tightrope.queries.column_query import format_range_end
from tightrope.queries.query_group import PrivacyUnit, QueryGroup
from tightrope.queries.statistics import Noise, NoisyStatistic
from tightrope.tables.expressions.conditions import Case, Compare, Missing, Not
from tightrope.tables.expressions.expression import Term
from tightrope.tables.expressions.leaves import ColumnRef, to_literal
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.request import ContributionBounds, Measure
from tightrope.tables.schema import Schema

What = Literal["used", "all", "below", "above", "missing"]
MANY_TIMES = 16
"""The count of all rows uses this many times the contribution bound, because it needs a bound, too."""
MOST_OF_BUDGET = Decimal("0.5")
"""The bias check may take less than this part of the budget."""
NOISE_SIZES = tuple(sorted({factor * 2**power for power in range(3, 12) for factor in (2, 3)}))
"""Relative sizes of the tallies' noise, in eighths: they share a lattice, and larger ones would lengthen all tables."""
MORE = 4
"""Weight of the count of all rows in the split of the budget, relative to the other tallies."""
Range = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class DiagnosticCount:
    """Definition of a count over all groups together; counts of rows have no ``column``."""

    counted_rows: What
    column: Term | None
    limits: Range

    def counted_expression(self, schema: Schema) -> ExpressionTree | None:
        """Return an expression that has a value in exactly the rows to count, and is missing in the others.

        Booleans are compared as the numbers 0 and 1, as in a sum.
        """
        if self.column is None:
            return None
        own = self.column if isinstance(self.column, ExpressionTree) else ColumnRef(self.column)
        if self.counted_rows == "missing" or self.limits is None:
            return Case((Missing(own),), (to_literal(1), None))
        if own.infer_facts(schema).kind == "boolean":
            own = Case((own, Not(own)), (to_literal(1), to_literal(0), None))
        sign, end = ("<", self.limits[0]) if self.counted_rows == "below" else (">", self.limits[1])
        return Case((Compare(sign, own, to_literal(float(end))),), (to_literal(1), None))

    def moved_values_text(self) -> str:
        """Return the part of the values that a tally of a column counts, in words."""
        column = escape_control_chars(str(self.column))
        if self.counted_rows == "missing" or self.limits is None:
            return f"the fields of {column} were missing or did not fit its type"
        end = format_range_end(self.limits[0] if self.counted_rows == "below" else self.limits[1])
        return f"the values of {column} were {self.counted_rows} {end} and clamped to {end}"


def add_diagnostic_counts(tasks: Sequence[QueryGroup], part: Decimal, schema: Schema) -> tuple[QueryGroup, ...]:
    """Return the tasks with tallies that take at most this part of the budget, by the loss of a person's rows.

    A tally is one integer over all groups. A person adds to it at most the rows that remain after bounding:
    ``max_rows``, or ``MANY_TIMES`` times as many if all are counted. If that is one row, it is in only one tally
    of each column. Raises ``PlanError`` if the part is too small for the number of tallies.
    """
    if not part:
        return tuple(tasks)
    spent = sum(_relative_loss(unit) for task in tasks for unit in task.composition_groups)
    every = [
        *tasks,
        *{rows_key(found): found for found in map(without_row_bounds, bounded_query_groups(tasks))}.values(),
    ]
    # Scale the noise of the tallies to their part of the budget; the count of all rows, the noisiest, gets more of it.
    sized_tasks = _merge_diagnostics(every, schema)
    sized_spent = spent * float(part / (1 - part))
    shares = sum(_noise_share(own) for task in sized_tasks for own in task.composition_sets if own[0].over_all_groups)
    return tuple(_with_noise(task, shares / sized_spent) for task in sized_tasks)


def bounded_query_groups(tasks: Sequence[QueryGroup]) -> list[QueryGroup]:
    """Return the tasks in which bounding may leave out rows of a person."""
    return [task for task in tasks if task.bounds.person_column is not None and not task.row_count_steps]


def bias_check_fraction(costs: Number) -> Decimal:
    """Return the part of the budget for the bias check; raises ``InputError`` unless it is in [0, 0.5)."""
    part = exact_decimal("bias_check", costs)
    if not 0 <= part < MOST_OF_BUDGET:
        raise InputError("bias_check", costs, f"from 0 (no bias check) to below {MOST_OF_BUDGET}", "0.02 is usual")
    return part


def diagnostic_counts_of(task: QueryGroup) -> tuple[DiagnosticCount, ...]:
    """Return the tallies of a task, in addition to its questions."""
    if not task.vectors_by_query or task.row_count_steps:
        return ()
    tallies = [] if task.bounds.person_column is None else [DiagnosticCount("used", None, None)]
    ranges = dict.fromkeys(pair for question in task.ordered_queries for pair in question.clamped_columns)
    for term, limits in ranges:
        if limits is not None:
            tallies += [DiagnosticCount("below", term, limits), DiagnosticCount("above", term, limits)]
        if task.cells_per_group is None:  # rows without a value are in no cell
            tallies.append(DiagnosticCount("missing", term, limits))
    return tuple(tallies)


def _merge_diagnostics(tasks: Sequence[QueryGroup], schema: Schema) -> list[QueryGroup]:
    """Return the tasks with each tally only in the first task that has it, with the questions of all such tasks."""
    about: dict[object, list[str]] = {}
    for task in tasks:
        for tally in diagnostic_counts_of(task):
            # The questions that the tally describes: for a tally of a column, those with that column and range.
            pair = (tally.column, tally.limits)
            about.setdefault(diagnostic_position(tally, task), []).extend(
                [
                    question.asked.name
                    for question in task.ordered_queries
                    if tally.column is None or pair in question.clamped_columns
                ]
            )
    left, found = dict(about), []
    for task in tasks:
        own = [
            (tally, left.pop(place))
            for tally in diagnostic_counts_of(task)
            if (place := diagnostic_position(tally, task)) in left
        ]
        vectors = tuple(
            _diagnostic_statistic(tally, task.bounds.max_rows, tally.counted_expression(schema)) for tally, _ in own
        )
        names = {vector.statistic_name: tuple(said) for vector, (_, said) in zip(vectors, own, strict=True)}
        found.append(
            replace(
                task,
                diagnostic_counts=(*task.diagnostic_counts, *vectors),
                queries_by_diagnostic={**task.queries_by_diagnostic, **names},
            )
        )
    return found


def diagnostic_position(tally: DiagnosticCount, task: QueryGroup) -> object:
    """Return a key that is equal for tallies of the same rows; for column values it ignores the cells."""
    if tally.column is None:
        return tally, used_rows_key(task)
    # The listed groups; without a list, every row is in a group.
    listed: object = None
    by = task.by if task.cells_per_group is None else task.by[:-1]
    if task.keys is not None and by:
        keys = task.keys if task.cells_per_group is None else tuple(dict.fromkeys(key[:-1] for key in task.keys))
        listed = by, keys
    return tally, (task.where, _row_choice_key(task), listed)


def used_rows_key(task: QueryGroup) -> object:
    """Return a key that is equal for tasks that use the same rows: the rows available and the rows sampled."""
    return rows_key(without_row_bounds(task)), _row_choice_key(task)


def _row_choice_key(task: QueryGroup) -> object:
    """Return a key for the choice of a person's rows; it includes the groups if their bounds are the tighter ones."""
    bounds = task.bounds
    by_group = bounds.max_rows_per_group < bounds.max_rows or (bool(task.by) and bounds.max_groups < bounds.max_rows)
    return bounds.max_rows, (task.by, bounds) if by_group else None


def without_row_bounds(task: QueryGroup) -> QueryGroup:
    """Return a task that counts the rows of the same groups under a bound that is ``MANY_TIMES`` times as large."""
    most = task.bounds.max_rows * MANY_TIMES
    listed = task.keys is not None and bool(task.by)
    by, keys, cells = (task.by, task.keys, task.cells_per_group) if listed else ((), ((),), None)
    bounds = ContributionBounds(task.bounds.person_column, most, most, most if listed else 1)
    vector = _diagnostic_statistic(DiagnosticCount("all", None, None), most, None)
    about = {vector.statistic_name: tuple(question.asked.name for question in task.ordered_queries)}
    return QueryGroup(
        MappingProxyType({}),
        by,
        keys,
        bounds,
        task.where,
        cells,
        None,
        diagnostic_counts=(vector,),
        queries_by_diagnostic=about,
    )


def rows_key(task: QueryGroup) -> object:
    """Return a key that is equal for tasks whose counts of all rows are over the same rows."""
    return task.by, task.keys, task.where, task.bounds


def _diagnostic_statistic(tally: DiagnosticCount, rows: int, counted: ExpressionTree | None) -> NoisyStatistic:
    """Return the count of a tally.

    If a person has one row, it is in one tally of each column, and the tallies of a column share the noise of one.
    """
    column = "" if tally.column is None else f" of {escape_control_chars(str(tally.column))}"
    spend = NoiseSpec(f"rows, {tally.counted_rows}{column}, over all groups", NOISE_SIZES[-1], True)
    alone = tally.column is None or rows > 1
    label = diagnostic_name(tally) if alone else f"values {_column_and_end(tally)}"
    return NoisyStatistic(
        Measure(diagnostic_name(tally), counted, None), spend, rows, disjoint_set=label, over_all_groups=True
    )


def diagnostic_name(tally: DiagnosticCount) -> str:
    """Return the name of the tally's vector."""
    return tally.counted_rows if tally.column is None else f"{tally.counted_rows} {_column_and_end(tally)}"


def _column_and_end(tally: DiagnosticCount) -> str:
    """Return a unique digest of the column and its ends: different columns may have the same displayed text."""
    return hashlib.sha256(repr((tally.column, tally.limits)).encode()).hexdigest()[:32]


def _relative_loss(unit: CompositionGroup) -> float:
    """Return the privacy loss of one person's rows in the unit, relative to other units."""
    return sum(unit.split_bounds.most_rows / spend.noise_size for spend in unit.noise_specs)


def _noise_share(own: Sequence[NoisyStatistic]) -> int:
    return MORE if own[0].statistic_name == diagnostic_name(DiagnosticCount("all", None, None)) else 1


def _with_noise(task: QueryGroup, size: float) -> QueryGroup:
    """Return the task with the next larger relative noise size for each tally, in eighths."""
    tallies = []
    for vector in task.diagnostic_counts:
        wanted = 8 * size / _noise_share((vector,))
        eighths = next((size for size in NOISE_SIZES if size >= wanted), None)
        if eighths is None:
            times = math.ceil(10 * wanted / NOISE_SIZES[-1]) / 10
            text = f"too small for this many questions; use {times:g} times as much, or ask fewer questions"
            raise PlanError.from_text("bias_check", text)
        tallies.append(replace(vector, noise_spec=replace(vector.noise_spec, eighths=eighths)))
    return replace(task, diagnostic_counts=tuple(tallies))


# The bias of bounding and clamping, estimated from noisy counts: shares with intervals, and sentences.

OUTSIDE = 0.025
"""Each of two counts is outside its interval with at most this probability."""
TELLS = 0.5
"""A share with a wider interval than this is not reported."""
STANDS_OUT = 3
"""A count is significant if the upper end of its interval is at most this many times the lower end."""
LEAST, NONE, ALL = 0.001, "0 %", "100 %"
"""Smaller shares are not distinguished from 0, so intervals that reach below ``LEAST`` are cut off there."""
KINDS: Mapping[What, Literal["left out", "below", "above", "missing"]] = {
    "used": "left out", "all": "left out", "below": "below", "above": "above", "missing": "missing",
}  # fmt: skip
Counts = Mapping[NoisyStatistic, int]
"""Noisy counts over all groups."""


@dataclass(frozen=True, slots=True)
class NoisyCount:
    """A noisy count with the ends of its interval."""

    value: int
    lower: int
    upper: int


def diagnostics(
    tasks: Sequence[QueryGroup], noises: Sequence[Sequence[Noise]], counts: Sequence[Counts], person: PrivacyUnit
) -> tuple[BiasPart, ...]:
    """Return one statement per task and tally: the share of rows left out, of values moved, or of missing fields."""
    pairs = []
    for task, task_noises, found in zip(tasks, noises, counts, strict=True):
        drawn = [(noise, found[noise.vector]) for noise in task_noises if noise.vector in found]
        own = {
            noise.vector.statistic_name: NoisyCount(value, *noise.confidence_interval(value, OUTSIDE))
            for noise, value in drawn
        }
        if own:
            pairs.append((task, own))
    totals = {rows_key(task): own["all"] for task, own in pairs if "all" in own}
    used = {used_rows_key(task): (task, own["used"]) for task, own in pairs if "used" in own}
    rows = {place: (count, totals[rows_key(without_row_bounds(task))]) for place, (task, count) in used.items()}
    asked = ((task, own) for task, own in pairs if "all" not in own)
    return tuple(cost for task, own in asked for cost in _query_group_costs(task, own, rows, person))


Rows = Mapping[object, tuple[NoisyCount, NoisyCount]]
"""The number of rows used and the number of all rows, by the key of ``used_rows_key``."""


def _query_group_costs(
    task: QueryGroup, own: Mapping[str, NoisyCount], rows: Rows, person: PrivacyUnit
) -> Iterator[BiasPart]:
    found = None if task.bounds.person_column is None else rows.get(used_rows_key(task))
    if found is not None and "used" in own:
        shares = _estimate_share(*found)
        left_out = None if shares is None else (1 - shares[0], 1 - shares[2], 1 - shares[1])
        most, noun = task.bounds.max_rows, person.unit_noun
        what = (
            f"the rows were not used, because at most {most:,} per {noun} are; rows beyond {most * MANY_TIMES:,} per "
            f"{noun}, and rows whose {noun} is missing, are not counted here"
        )
        yield _bias_cost(task, DiagnosticCount("used", None, None), left_out, what)
    for tally in diagnostic_counts_of(task):
        if tally.column is not None and diagnostic_name(tally) in own:
            count = own[diagnostic_name(tally)]
            share = None if found is None else _estimate_share(count, found[0])
            hidden = found is not None and share is None
            yield _bias_cost(task, tally, share, tally.moved_values_text(), None if hidden else count)


Shares = tuple[float, float, float]
"""The quotient of a count and a larger one, with its lower and upper end."""


def _estimate_share(part: NoisyCount, whole: NoisyCount) -> Shares | None:
    """Return the share of a part with its interval; None if the whole is not significantly above the noise.

    An interval is never narrower than the noise: one that lies beyond 0 or 1 reaches as far inwards.
    """
    if whole.lower < 1 or whole.upper > STANDS_OUT * whole.lower:
        return None
    noise = (part.upper - part.lower) / 2 / whole.lower
    lower, upper = min(part.lower / whole.upper, 1 - noise), max(part.upper / whole.lower, noise)
    value, lower, upper = (min(max(end, 0.0), 1.0) for end in (part.value / whole.value, lower, upper))
    return value, lower, upper


def _bias_cost(
    task: QueryGroup, tally: DiagnosticCount, shares: Shares | None, what: str, found: NoisyCount | None = None
) -> BiasPart:
    value, lower, upper = (None, None, None) if shares is None else shares
    if shares is not None and shares[2] - shares[1] > TELLS:
        shares, found = None, None
    return BiasPart(
        answers=task.queries_by_diagnostic[diagnostic_name(tally)],
        kind=KINDS[tally.counted_rows],
        column=None if tally.column is None else str(tally.column),
        share=value,
        lower=lower,
        upper=upper,
        statement=_interval_statement(shares, what, found),
    )


def _interval_statement(shares: Shares | None, what: str, found: NoisyCount | None) -> str:
    """Return the interval in words, ends of shares rounded outwards.

    An end that was cut off is left out, because it would read as certain.

    >>> _interval_statement((0.03, 0.024, 0.036), "it", None), _interval_statement((0.0, 0.0, 0.0), "it", None)
    ('about 3.0 % of it (2.4 % to 3.6 %)', 'at most 0.1 % of it')
    >>> _interval_statement((1.0, 0.97, 1.0), "it", None)
    'at least 97 % of it'
    """
    if shares is not None:
        low, high = _percent_text(min(shares[1], 1 - LEAST), DOWN), _percent_text(max(shares[2], LEAST), UP)
        if low == NONE:
            return f"at most {high} of {what}"
        if high == ALL:
            return f"at least {low} of {what}"
        return f"about {_percent_text(shares[0])} of {what} ({low} to {high})"
    if found is None:
        return f"the noise is too large to say how many of {what}"
    if found.lower <= 0:
        noise = (found.upper - found.lower + 1) // 2
        return f"at most {max(found.upper, noise, 1):,} of {what}"
    return f"about {found.value:,} of {what} ({found.lower:,} to {found.upper:,})"


def _percent_text(share: float, rounding: str = NEAREST) -> str:
    """Return a share as a percentage, with one decimal below 10 %.

    >>> _percent_text(0.8912), _percent_text(0.0312), _percent_text(0.0), _percent_text(0.0312, UP)
    ('89 %', '3.1 %', '0 %', '3.2 %')
    """
    places = 0 if share >= 0.1 else 1
    percent = f"{rounded_decimal(share, places + 2, rounding):.{places}%}".replace("%", " %")
    return NONE if percent == "0.0 %" else percent


# The planned bias check, before anything is spent.


def planned_costs(
    tasks: Sequence[QueryGroup], noises: Sequence[Sequence[Noise]], part: Decimal
) -> dict[str, Any] | None:
    """Return the part of the budget and the half-width of every tally; None without tallies."""
    pairs = zip(tasks, noises, strict=True)
    found = [(task, noise) for task, own in pairs for noise in own if noise.vector in task.diagnostic_counts]
    if not found:
        return None
    counts = [
        {
            "answers": task.answered_by(noise.vector),
            "statistic": noise.vector.noise_spec.statistic,
            "half_width_95": noise.half_width(),
        }
        for task, noise in found
    ]
    return {"budget_fraction": str(part), "counts": counts}
