"""The largest groups by noisy counts, with their possible ranks; modes; the rows in suppressed groups.

Class attributes such as ``additive`` and ``comparable`` are described in ``tightrope.queries.query.Query``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self, final

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import PlanError
from tightrope.noise.worst_split import NoiseSpec, nearest_eighths
from tightrope.numerics.checks import check_integer
from tightrope.queries.column_query import column_term
from tightrope.queries.comparisons import LinearEstimate, NoiseWeight
from tightrope.queries.count import NOT_CLAMPED_NOTE, ROW_COUNT, NoisyCountQuery
from tightrope.queries.intervals import OUTSIDE
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.statistics import NoisyStatistic
from tightrope.tables.expressions.expression import Term
from tightrope.tables.request import Measure
from tightrope.tables.schema import Schema

ASSUMED_GROUPS = 1_000
"""Number of groups that is assumed for errors in plans if groups are discovered."""


@dataclass(frozen=True, slots=True)
class LargestCountQuery(NoisyCountQuery, ABC):
    """A kind of query that shows the groups with the largest noisy counts, with their possible ranks."""

    additive = True
    counts = True

    @property
    @abstractmethod
    def compared_groups(self) -> int:
        """The number of groups that are compared, for errors in plans."""

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the expected absolute error, and the half-width that holds for all compared groups simultaneously."""
        del people
        return noises[ROW_COUNT].mean_absolute, noises[ROW_COUNT].half_width(1 - OUTSIDE / self.compared_groups)


def _largest_groups(records: Sequence[Record], noises: Noises, k: int) -> list[tuple[int, Record]]:
    """Return the k largest groups, with simultaneous intervals for all groups and the possible ranks of each.

    The noise of each group is independent of that of the others, also given which groups are suppressed.
    """
    values = [int(record["value"] or 0) for record in records]
    interval_by_value = {
        value: noises[ROW_COUNT].confidence_interval(value, OUTSIDE / len(values)) for value in set(values)
    }
    lowers, uppers = (sorted(interval_by_value[value][end] for value in values) for end in (0, 1))
    # A suppressed group has a noisy count of at most the threshold, and noise of at least minus the threshold.
    max_suppressed_rows = 2 * (noises[ROW_COUNT].key_threshold or 0)
    chosen = sorted(range(len(values)), key=lambda index: -values[index])[:k]
    shown: list[tuple[int, Record]] = []
    for index in chosen:
        lower, upper = interval_by_value[values[index]]
        # The smallest and the largest rank that are possible if all counts are in their intervals: at best only groups
        # whose intervals lie above this one have more rows, at worst all whose intervals reach above its lower end.
        best_rank = 1 + len(lowers) - bisect_right(lowers, upper)
        worst_rank = None if max_suppressed_rows > max(lower, 0) else len(uppers) - bisect_left(uppers, lower)
        ranks = {"best_rank": best_rank, "worst_rank": worst_rank}
        shown.append((index, {"value": values[index], "lower": lower, "upper": upper, **ranks}))
    return shown


@final
@dataclass(frozen=True, slots=True)
class top_k(LargestCountQuery):
    """The ``k`` largest groups of ``by``, by their number of rows, largest first.

    Uses only the noisy counts of all groups, charged as in ``count``. Each row has the ``value``, an interval that
    holds for all groups simultaneously, and ``best_rank`` and ``worst_rank``, the possible ranks of the group. Groups
    with equal noisy counts are in arbitrary order. All other keywords are as in ``count``. Raises ``PlanError`` for an
    invalid parameter.

    >>> str(top_k(10, by="city"))
    'the 10 largest groups by city'
    """

    k: int
    """The number of groups that are shown."""

    kind = "top_k"
    meaning = "The number of rows in the largest groups"
    notes = (
        "Groups are ordered by noisy count. The intervals hold for all groups at once 95 % of the time, so they also "
        "hold for the groups selected; they are wider than those of a count.",
        "best_rank and worst_rank, in result.json and in .to_pandas(), are the ranks that a group can have, given "
        "these intervals: if worst_rank is at most k, the group is among the k largest. An empty rank means that "
        "suppressed groups may be larger.",
    )
    entries = ("k",)

    def __str__(self) -> str:
        return f"the {self.k:,} largest groups{self.asked.groups_text}"

    def __post_init__(self) -> None:
        options = self.check_options(self.kind)
        if not options.by:
            raise PlanError("by", options.by, "a column", "say which groups are compared: by='city'")
        self._set_fields(k=check_integer("k", self.k))

    @property
    def largest_groups(self) -> int | None:
        """The number of groups that are shown."""
        return self.k

    def select_shown_groups(
        self, records: Sequence[Record], noises: Noises, keys: Sequence[tuple[object, ...]]
    ) -> list[tuple[int, Record]]:
        """Return the largest groups, with simultaneous intervals for all groups and the possible ranks of each."""
        del keys
        return _largest_groups(records, noises, self.k)

    @property
    def compared_groups(self) -> int:
        """The number of groups, all of which are compared."""
        return ASSUMED_GROUPS if self.asked.keys is None else len(self.asked.keys)


@final
@dataclass(frozen=True, slots=True)
class mode(LargestCountQuery):
    """The most frequent value of a column, and how many rows have it; with ``by``, one for each group.

    Each value is counted with noise, charged as in ``count``, and the value with the largest noisy count is shown.
    ``value`` is that count, with an interval that holds for all values of the group simultaneously, and ``worst_rank``
    is the last rank that the value can have, given these intervals: at 1, it is the most frequent one. ``keys`` lists
    the values: of ``column``, or of the columns of ``by`` and then ``column``. If left out, they are discovered. All
    other keywords are as in ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> mode("dest", by="carrier").name, str(mode("dest", by="carrier"))
    ('mode_dest_by_carrier', 'most frequent value of dest by carrier')
    """

    column: Given = field(compare=False)
    """The column's name, or an expression."""
    term: Term = field(init=False, repr=False)
    """The column, checked."""

    kind = "mode"
    meaning = "The number of rows with the most frequent value"
    notes = (
        "The value with the largest noisy count is shown. Its interval holds for all values at once 95 % of the time, "
        "so it also holds for the one selected.",
        "best_rank and worst_rank, in result.json and in .to_pandas(), are the ranks that the value can have, given "
        "these intervals: if worst_rank is 1, it is the most frequent one. An empty rank means that suppressed values "
        "may be more frequent.",
    )
    entries = ("column",)

    def __str__(self) -> str:
        # The counted column is the last one in ``by``.
        other_groups = self.asked.without_groups(self.asked.by[-1:])
        return f"most frequent value of {escape_control_chars(str(self.term))}{other_groups.groups_text}"

    def __post_init__(self) -> None:
        term = column_term("column", self.column)
        by = list(self.by) if isinstance(self.by, (list, tuple)) else [self.by]
        is_named = self.name is not None
        self._set_fields(by=(*by, self.column), term=term)
        options = self.check_options(self.kind)
        if not is_named:  # the column comes first in the name
            name = "_".join((self.kind, str(term), *(["by", *options.by[:-1]] if by else [])))
            self._set_fields(asked=replace(options, name=name), name=name)

    def resolve(self, schema: Schema, where: Term | None = None) -> Self:
        """Return the query for this schema, with its column or expression parsed."""
        options = self.asked.resolve(schema, where)
        return self.with_fields(asked=options, term=options.terms[-1])

    def select_shown_groups(
        self, records: Sequence[Record], noises: Noises, keys: Sequence[tuple[object, ...]]
    ) -> list[tuple[int, Record]]:
        """Return the largest count of each group of the other columns, with the ranks that it can have there."""
        indexes_by_group: dict[tuple[object, ...], list[int]] = {}
        for index, key in enumerate(keys):
            indexes_by_group.setdefault(key[:-1], []).append(index)
        shown = []
        for indexes in indexes_by_group.values():
            ((chosen, record),) = _largest_groups([records[index] for index in indexes], noises, 1)
            shown.append((indexes[chosen], record))
        return shown

    @property
    def compared_groups(self) -> int:
        """The number of values, which are compared in each group of the other columns."""
        return ASSUMED_GROUPS if self.asked.keys is None else len({key[-1] for key in self.asked.keys})


LEFT_OVER = "left over"
"""Name of the statistic: the number of rows in all suppressed groups."""


@final
@dataclass(frozen=True, slots=True)
class suppressed_count(Query):
    """The total number of rows in the groups of ``by`` that are suppressed because they are small.

    Use it with a query of the same groups, conditions and bounds that shows some groups: together they include all
    rows that are used. Groups are discovered: ``keys`` is not allowed. The noise is that of a total over all groups
    (sensitivity ``max_rows``). Which groups are suppressed depends on noise that is drawn first; for every outcome, a
    person adds at most ``max_rows`` to the sum (adaptive composition). All other keywords are as in ``count``. Raises
    ``PlanError`` for an invalid parameter.

    >>> str(suppressed_count(by="city"))
    'number of rows in groups that are not shown by city'
    """

    kind = "suppressed_count"
    meaning = "The number of rows in all suppressed groups"
    counts_suppressed_groups = True
    comparable = True
    has_linear_estimate = True
    is_one_noisy_integer = True
    additive = True
    uniform = True
    counts = True
    notes = (
        NOT_CLAMPED_NOTE,
        "The choice of the suppressed groups depends only on other noise, which is sampled first.",
    )

    def __str__(self) -> str:
        return f"number of rows in groups that are not shown{self.asked.groups_text}"

    def __post_init__(self) -> None:
        options = self.check_options(self.kind)
        if not options.by:
            raise PlanError("by", options.by, "a column", "say which groups: by='city', as in the other question")

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return one noisy integer: the number of rows in all suppressed groups."""
        noise_spec = NoiseSpec(
            "rows in groups that are not shown", nearest_eighths(self.asked.relative_noise_size), True
        )
        return (
            NoisyStatistic(Measure(LEFT_OVER, None, None), noise_spec, 1, disjoint_set=LEFT_OVER, over_all_groups=True),
        )

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return the noisy integer; its noise is independent of the set of groups that are shown."""
        lower, upper = noises[LEFT_OVER].confidence_interval(integers[LEFT_OVER], outside)
        return {"value": integers[LEFT_OVER], "lower": lower, "upper": upper}

    def linear_estimate(self, integers: Integers, noises: Noises) -> LinearEstimate:
        """Return the noisy integer."""
        return LinearEstimate(integers[LEFT_OVER], (NoiseWeight(noises[LEFT_OVER], 1),), possible=(0, math.inf))

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors of the noise."""
        del people
        return noises[LEFT_OVER].mean_absolute, noises[LEFT_OVER].half_width()

    def worst_error(self, noises: Noises) -> float:
        """Return the largest error of the noise."""
        return noises[LEFT_OVER].worst_error
