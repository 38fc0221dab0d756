"""Least squares for the tables of a ``marginals`` question: their planned errors, answers, and certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from tightrope.documents.budget import Budget
from tightrope.documents.release import MarginalsPart, MarginalTablePart, MeasurementPart
from tightrope.mechanisms.discrete.box_table import BoxTable
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.allocation import NoiseAllocation, allocate_noise
from tightrope.noise.families import TruncatedLaplaceFamily
from tightrope.noise.marginals.reconstruction import NoiseTerm, Reconstruction, expected_error, half_width
from tightrope.noise.marginals.selection import MarginalNoise, allocate_marginal_noise, variance_lower_bound
from tightrope.noise.marginals.workload import Columns, MarginalWorkload
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SplitBounds
from tightrope.queries.accuracy import Accuracy
from tightrope.queries.marginals.group import MarginalGroup
from tightrope.queries.marginals.question import marginal_table
from tightrope.queries.query import Query
from tightrope.queries.query_group import QueryGroup
from tightrope.queries.statistics import Noise, NoisyStatistic

DOUBLE_ROUNDING = 2.0**-50
"""Relative widening of an interval for the rounding of doubles."""
STATEMENT = (
    "Weighted least squares on the noisy integers of all measurements gives all tables, so that they add up to each "
    "other; this uses no privacy budget. With Gaussian noise of the same variances, the root of the weighted mean "
    "variance of the cells would exceed that of every linear mechanism by at most the gap."
)
READER_NOTE = (
    "Adjusted to add up with all other tables, so it can be a fraction; 'noisy' is the raw noisy number, for tables "
    "whose cells were counted themselves."
)


@lru_cache(maxsize=32)
def select_measurements(workload: MarginalWorkload, budget: Budget, max_rows: int) -> MarginalNoise:
    """Return the measurements, with the relative sizes of their noise, that have the least noise for a budget."""
    return allocate_marginal_noise(workload, budget, max_rows=max_rows)


def allocate_tables(query_groups: Sequence[QueryGroup], budget: Budget) -> NoiseAllocation:
    """Return the noise of a plan's tables: that with which its measurements were chosen, if for the same budget.

    For another budget, it is the least noise of the same family; but truncated Laplace noise, whose range depends on δ,
    is compared with other families again. Raises ``InsufficientBudgetError``.
    """
    (group,) = query_groups
    if not isinstance(group, MarginalGroup) or group.selected_noise is None:
        raise TypeError(type(group))
    noise, groups = group.selected_noise, group.composition_groups
    if budget != noise.budget:
        is_truncated = any(isinstance(family, TruncatedLaplaceFamily) for family in noise.allocation.families)
        return allocate_noise(groups, budget, compare=False, like=None if is_truncated else noise.allocation)
    # Vectors are listed in the order of the tables that use them, measurements in that of the choice.
    numbers = {vector: number for number, vector in enumerate(group.measurement_by_vector)}
    order = [numbers[vector] for (vector,) in group.composition_sets]
    chosen = [noise.allocation.selections[number][0] for number in order]
    return replace(
        noise.allocation,
        selections=tuple(
            (replace(selected, noise_spec=one.noise_specs[0]),) for selected, one in zip(chosen, groups, strict=True)
        ),
        families=tuple(noise.allocation.families[number] for number in order) if noise.allocation.families else (),
    )


def alone_group(max_rows: int, cells: int) -> CompositionGroup:
    """Return the composition group of the counts of one table, if nothing else were released.

    Tables with more than one cell have the same one: rows of a person may fall into as many groups as there are rows.
    """
    groups = 1 if cells == 1 else max_rows
    return CompositionGroup((NoiseSpec("count", 8, whole_rows=True),), SplitBounds(max_rows, max_rows, groups))


@dataclass(frozen=True, slots=True)
class CellError:
    """The error of each cell of a table, which has one law for all cells; the ``RemainingNoise`` of an answer.

    ``half_width``: |error| exceeds it with probability at most 5 %. ``expected_absolute``: E|error|.
    """

    half_width: float
    expected_absolute: float
    worst_error: float
    reader_note: str = READER_NOTE

    @property
    def expected_error(self) -> tuple[float, float]:
        """E|error| and the half-width of the 95 % interval."""
        return self.expected_absolute, self.half_width


@dataclass(frozen=True, eq=False)  # not slotted: for cached properties
class MarginalFit:
    """Least squares for all tables of a question, with the noise of a plan: ``noises`` in the order of the vectors."""

    group: MarginalGroup
    noises: tuple[Noise, ...]

    @classmethod
    def from_group(cls, group: QueryGroup, noises: tuple[Noise, ...]) -> Self:
        """Return the least squares of a plan's only query group, which is that of a ``marginals`` question."""
        if not isinstance(group, MarginalGroup):
            raise TypeError(type(group))
        return cls(group, noises)

    @cached_property
    def noise_tables(self) -> tuple[NoiseTable, ...]:
        """The table of the noise of each measurement's integers."""
        by_vector = {noise.vector: noise.table for noise in self.noises}
        tables = [by_vector[vector] for vector in self.group.measurement_by_vector]
        return tuple(table for table in tables if not isinstance(table, BoxTable))

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        """The exact variance of the noise of each measurement's integers."""
        return tuple(table.exact_mean_squared for table in self.noise_tables)

    @cached_property
    def reconstruction(self) -> Reconstruction:
        """Least squares with weights that are nearly optimal."""
        return Reconstruction.from_variances(self.group.workload, self.group.measurements, self.variances)

    @cached_property
    def errors(self) -> dict[Columns, CellError]:
        """The error of the cells of each table."""
        return {columns: self._cell_error(columns) for columns in self.group.workload.marginals}

    def _cell_error(self, columns: Columns) -> CellError:
        terms = self.reconstruction.noise_terms(columns)
        worst = math.fsum(self._worst_term(term) for term in terms)
        width = half_width(terms, self.noise_tables)
        return CellError(min(width, worst), expected_error(terms, self.noise_tables), worst)

    def _worst_term(self, term: NoiseTerm) -> float:
        return term.multiplicity * abs(float(term.coefficient)) * self.noise_tables[term.position].largest_magnitude

    def with_remaining_noise(self, accuracy: Accuracy) -> Accuracy:
        """Return the accuracy of a table with the noise that remains after least squares."""
        if not isinstance(accuracy.question, marginal_table):
            raise TypeError(accuracy.question.kind)
        return replace(accuracy, remaining_noise=self.errors[accuracy.question.positions])

    def answer_rows(self, noisy: Mapping[NoisyStatistic, Sequence[int]]) -> dict[Query, list[dict[str, Any]]]:
        """Return the records of each table from the noisy integers of all measurements, computed in fractions."""
        measurements = self.group.measurement_by_vector
        integers = [
            np.array(noisy[vector], dtype=object).reshape(measurement.shape)
            for vector, measurement in measurements.items()
        ]
        counted = {
            measurement.columns: noisy[vector]
            for vector, measurement in measurements.items()
            if not measurement.differences
        }
        tables = self.reconstruction.fit_tables(integers, exact=True)
        rows_by_table: dict[Query, list[dict[str, Any]]] = {}
        for table in self.group.ordered_queries:
            if not isinstance(table, marginal_table):
                raise TypeError(table.kind)
            keys, width = table.asked.keys or ((),), self.errors[table.positions].half_width
            records = [_cell_record(cell, width) for cell in tables[table.positions].flat]
            for record, integer in zip(records, counted.get(table.positions, ()), strict=False):
                record["noisy"] = integer
            rows_by_table[table] = [
                {**dict(zip(table.key_columns, key, strict=True)), **record}
                for key, record in zip(keys, records, strict=True)
            ]
        return rows_by_table

    def measured_integers(self, noisy: Mapping[NoisyStatistic, Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        """Return the noisy integers of each measurement, in the order of the certificate."""
        return tuple(tuple(noisy[vector]) for vector in self.group.measurement_by_vector)

    @property
    def gaussian_gap(self) -> float:
        """Return by how much the weighted root mean square deviation may exceed that of any linear mechanism.

        It is that of Gaussian noise with the variances of the noise of the plan.
        """
        workload, measurements = self.group.workload, self.group.measurements
        variance = math.fsum(
            float(weight * self.reconstruction.cell_variance(columns, self.variances))
            for columns, weight in zip(workload.marginals, workload.weights, strict=True)
        )
        used = math.fsum(m.counts_per_row / float(v) for m, v in zip(measurements, self.variances, strict=True))
        return max(0.0, math.sqrt(variance * used / variance_lower_bound(workload)) - 1)

    def certificate_part(self) -> MarginalsPart:
        """Return the entry for the certificate."""
        group, workload = self.group, self.group.workload
        tables = [table for table in group.ordered_queries if isinstance(table, marginal_table)]
        numbers = {noise.vector: number for number, noise in enumerate(self.noises, start=1)}
        return MarginalsPart(
            columns=tuple(map(str, group.by)),
            sizes=workload.sizes,
            tables=tuple(
                MarginalTablePart(
                    answer=table.asked.name,
                    columns=table.positions,
                    weight=_fraction_text(workload.weights[workload.marginals.index(table.positions)]),
                    half_width_95=self.errors[table.positions].half_width,
                )
                for table in tables
            ),
            measurements=tuple(
                MeasurementPart(
                    mechanism=numbers[vector],
                    columns=measurement.columns,
                    differences=measurement.differences,
                    precision=_fraction_text(precision),
                )
                for (vector, measurement), precision in zip(
                    group.measurement_by_vector.items(), self.reconstruction.precisions, strict=True
                )
            ),
            gap=self.gaussian_gap,
            statement=STATEMENT,
        )


def _fraction_text(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _cell_record(cell: Fraction, width: float) -> dict[str, Any]:
    """Return the nearest double of a cell, and its interval rounded outwards."""
    value = float(cell)
    rounding = abs(value) * DOUBLE_ROUNDING
    return {
        "value": value,
        "lower": math.nextafter(value - width - rounding, -math.inf),
        "upper": math.nextafter(value + width + rounding, math.inf),
    }
