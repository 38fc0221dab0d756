"""The group of all tables of one ``marginals`` question, and the integers that are counted for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, PlanError
from tightrope.noise.marginals.selection import MarginalNoise, measurement_contribution
from tightrope.noise.marginals.workload import Columns, MarginalWorkload, Measurement
from tightrope.noise.worst_split import NoiseSpec, SplitBounds
from tightrope.queries.marginals.question import marginal_table, marginals
from tightrope.queries.query import Query
from tightrope.queries.query_group import QueryGroup, bounds_for_query, unit_term
from tightrope.queries.statistics import NoisyStatistic
from tightrope.tables.expressions.expression import Term
from tightrope.tables.request import GroupTotals, MarginalRequest, Measure, table_name
from tightrope.tables.schema import Schema

CELL_COUNTS, CELL_DIFFERENCES = "rows by cell of a table", "differences of rows by cell of a table"
"""The statistics of a measurement: numbers of rows, or along some columns their differences for each pair of values."""


def expand_marginals(questions: Sequence[object]) -> Sequence[Query]:
    """Return the tables of a ``marginals``, the only question of a plan. Raises ``PlanError`` for anything else."""
    first, *others = questions
    if not any(isinstance(question, marginals) for question in questions):
        raise PlanError("questions", questions, "a list of questions such as tr.count and tr.mean")
    if others or not isinstance(first, marginals):
        remedy = "plan the other questions by themselves, each plan with a budget_fraction"
        raise PlanError("questions", len(questions), "marginals alone, without other questions", remedy)
    return first.make_tables()


@dataclass(frozen=True, slots=True)
class ResolvedMarginals:
    """The tables of a question for one table of rows: terms and values of all columns, condition and bounds."""

    tables: tuple[marginal_table, ...]
    terms: tuple[Term, ...]
    column_values: tuple[tuple[object, ...], ...]
    workload: MarginalWorkload

    @classmethod
    def from_tables(cls, tables: Sequence[Query], schema: Schema, where: Term | None) -> Self:
        """Return the tables of one question, resolved. Raises ``InputError`` with the question's name."""
        chosen = tuple(table for table in tables if isinstance(table, marginal_table))
        source = chosen[0].source
        try:
            columns = [source.resolve_column(position, schema) for position in range(len(source.all_columns.by))]
            _refuse_equal_columns(source.all_columns.by, [str(term) for term, _ in columns])
            workload = source.make_workload([len(values) for _, values in columns])
            resolved = tuple(table.resolve(schema, where) for table in chosen)
        except InputError as error:
            raise type(error).from_error(error, f"{error.name} of {escape_control_chars(source.name)}") from None
        return cls(resolved, tuple(term for term, _ in columns), tuple(values for _, values in columns), workload)


def _refuse_equal_columns(names: Sequence[str], terms: Sequence[str]) -> None:
    """Raise ``PlanError`` for two columns with one value: combinations of different values would always be empty."""
    for position, term in enumerate(terms):
        if term in terms[:position]:
            both = f"{names[terms.index(term)]!r} and {names[position]!r} are both {term}"
            remedy = "leave one of them out, or give it other bounds"
            raise PlanError("columns", escape_control_chars(both), "columns with different values", remedy)


@dataclass(frozen=True, eq=False)  # not slotted: for cached properties
class MarginalGroup(QueryGroup):
    """The tables of one question: one pass over the rows, each measurement composed as a mechanism of its own.

    ``by`` are the columns of all tables. A vector holds the integers of one measurement, in row-major order.
    """

    is_marginal: ClassVar[bool] = True
    measurements: tuple[Measurement, ...] = ()
    column_values: tuple[tuple[object, ...], ...] = ()
    selected_noise: MarginalNoise | None = None
    """The noise with which the measurements were chosen."""

    @classmethod
    def from_noise(
        cls,
        resolved: ResolvedMarginals,
        privacy_unit: PrivacyUnit,
        schema: Schema,
        noise: MarginalNoise,
    ) -> Self:
        """Return the group that counts the integers of these measurements, with noise of these relative sizes."""
        first = resolved.tables[0]
        bounds = bounds_for_query(privacy_unit, first)
        vectors = [
            _measurement_vector(number, measurement, selected.noise_spec.eighths)
            for number, (measurement, (selected,)) in enumerate(
                zip(noise.measurements, noise.allocation.selections, strict=True)
            )
        ]
        vectors_by_query: dict[Query, Mapping[str, NoisyStatistic]] = {
            table: MappingProxyType(
                {
                    vector.statistic_name: vector
                    for vector, measurement in zip(vectors, noise.measurements, strict=True)
                    if set(measurement.differences) <= set(table.positions)
                }
            )
            for table in resolved.tables
        }
        return cls(
            MappingProxyType(vectors_by_query),
            resolved.terms,
            None,
            replace(bounds, person_column=unit_term(privacy_unit, schema)),
            first.asked.row_condition,
            None,
            None,
            query_positions=tuple(range(len(resolved.tables))),
            measurements=noise.measurements,
            column_values=resolved.column_values,
            selected_noise=noise,
        )

    @property
    def measured_text(self) -> str:
        """The columns of each measurement, and those along which it counts differences."""
        return repr([(measurement.columns, measurement.differences) for measurement in self.measurements])

    @property
    def workload(self) -> MarginalWorkload:
        """The tables, with the number of values of each column."""
        return self.measurements[0].workload

    @cached_property
    def measurement_by_vector(self) -> dict[NoisyStatistic, Measurement]:
        """The measurement of each vector, in order."""
        names = {_measurement_name(number): measurement for number, measurement in enumerate(self.measurements)}
        vectors = {vector.statistic_name: vector for vector in self.noisy_statistics}
        return {vectors[name]: measurement for name, measurement in names.items()}

    @cached_property
    def composition_sets(self) -> tuple[tuple[NoisyStatistic, ...], ...]:
        """Each vector by itself: the rows of a person may be split among its integers in a way of its own."""
        return tuple((vector,) for vector in self.noisy_statistics)

    def set_contribution(self, vector_set: Sequence[NoisyStatistic]) -> SplitBounds:
        """Return the contribution of one person to the integers of a measurement."""
        return measurement_contribution(self.measurement_by_vector[vector_set[0]], self.bounds.max_rows)

    def grouping_terms(self, vector: NoisyStatistic) -> tuple[Term, ...]:
        """Return the columns of a measurement."""
        return tuple(self.by[column] for column in self.measurement_by_vector[vector].columns)

    @cached_property
    def table_request(self) -> MarginalRequest:
        """The request to the table backend: tables that no other contains, whose sums are all others."""
        return MarginalRequest(
            self.by,
            None,
            self.bounds,
            (Measure("rows", None, None),),
            self.where,
            column_values=self.column_values,
            tables=largest_tables([measurement.columns for measurement in self.measurements]),
        )

    def measured_integers(self, totals: GroupTotals) -> dict[NoisyStatistic, tuple[int, ...]]:
        """Return the exact integers of each measurement, from the cells of the requested tables."""
        sizes, integers = self.workload.sizes, {}
        tables = {
            columns: np.array(totals.values[table_name(columns)], dtype=np.int64).reshape([sizes[i] for i in columns])
            for columns in self.table_request.tables
        }
        for vector, measurement in self.measurement_by_vector.items():
            larger = next(columns for columns in tables if set(measurement.columns) <= set(columns))
            others = tuple(axis for axis, column in enumerate(larger) if column not in measurement.columns)
            counted = measurement.count_integers(tables[larger].sum(axis=others))
            integers[vector] = tuple(np.ravel(counted).tolist())
        return integers


def _measurement_name(number: int) -> str:
    return f"measurement {number}"


def _measurement_vector(number: int, measurement: Measurement, eighths: int) -> NoisyStatistic:
    """Return the vector of a measurement, with noise of this relative size."""
    statistic = CELL_DIFFERENCES if measurement.differences else CELL_COUNTS
    return NoisyStatistic(Measure(_measurement_name(number), None, None), NoiseSpec(statistic, eighths, True), 1)


def largest_tables(tables: Sequence[Columns]) -> tuple[Columns, ...]:
    """Return the tables whose columns are not all in another one.

    >>> largest_tables([(0,), (0, 1), (2,), ()])
    ((0, 1), (2,))
    """
    kept: list[Columns] = []
    for columns in sorted(set(tables), key=len, reverse=True):
        if not any(set(columns) <= set(larger) for larger in kept):
            kept.append(columns)
    return tuple(kept)
