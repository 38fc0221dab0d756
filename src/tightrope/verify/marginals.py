"""Claims of the tables of a question ``marginals``: what one row changes, the gap, and the tables by least squares."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from tightrope.verify.claims import (
    CONFIRMED,
    REFUTED,
    BrokenError,
    Claim,
    equality_claim,
    require_affordable,
    unchecked_claim,
    with_time_checks,
)
from tightrope.verify.contributions import MARGINAL_STATISTICS

GAP_TOLERANCE = 1e-6
"""Largest difference of a stated gap from the recomputed one."""
WEIGHT_TOLERANCE = 2.0**-10
"""Relative tolerance of the weights of least squares, which are rounded to 12 binary digits."""
TABLE_TOLERANCE = 1e-12
"""Relative tolerance of a cell, which is stated as the nearest double, and of the ends of its interval."""
MAX_TABLE_WORK = 1 << 23
"""Limit on the number of cells that are added up."""
Columns = tuple[int, ...]
Measurement = dict[str, Any]


def column_subsets(columns: Sequence[int]) -> Iterator[Columns]:
    """Yield every subset of the columns."""
    for count in range(len(columns) + 1):
        yield from combinations(columns, count)


def cell_count(sizes: Sequence[int], columns: Sequence[int]) -> int:
    """Return the number of combinations of the values of these columns."""
    return math.prod(sizes[column] for column in columns)


def integer_count(part: dict[str, Any], measurement: Measurement) -> int:
    """Return the number of integers: one for each value of a column, or for each pair of values along differences."""
    sizes, pairs = part["sizes"], measurement["differences"]
    return math.prod(math.comb(sizes[column], 2 if column in pairs else 1) for column in measurement["columns"])


def measured_axes(sizes: Sequence[int], measurement: Measurement) -> list[list[tuple[int, ...]]]:
    """Return the values, or the pairs of values, along each column."""
    return [
        list(combinations(range(sizes[column]), 2 if column in measurement["differences"] else 1))
        for column in measurement["columns"]
    ]


def informed_components(measurement: Measurement) -> Iterator[Columns]:
    """Yield the sets of columns on whose interaction the integers depend: all that contain the differences."""
    for component in column_subsets(measurement["columns"]):
        if set(measurement["differences"]) <= set(component):
            yield component


def component_precisions(part: dict[str, Any]) -> dict[Columns, Fraction]:
    """Return the total weight of each component in the tables; raises ``BrokenError`` for one without a measurement."""
    sizes = part["sizes"]
    found = {component: Fraction(0) for table in part["tables"] for component in column_subsets(table["columns"])}
    for measurement in part["measurements"]:
        share = Fraction(cell_count(sizes, measurement["differences"]), cell_count(sizes, measurement["columns"]))
        for component in informed_components(measurement):
            if component in found:
                found[component] += Fraction(measurement["precision"]) * share
    if not all(found.values()):
        raise BrokenError("tables that do not follow from what was measured")
    return found


def marginal_claims(data: dict[str, Any], variance_of: Callable[[dict[str, Any]], float]) -> Iterator[Claim]:
    """Check that the rows and integers of each mechanism follow from the columns, and recompute the gap.

    ``variance_of`` returns the variance of the noise of a mechanism.
    """
    mechanisms, part = data["mechanisms"], data.get("marginals")
    has_statistics = [mechanism["statistic"] in MARGINAL_STATISTICS for mechanism in mechanisms]
    yield equality_claim(
        "marginals: all mechanisms are measured for it", has_statistics, [part is not None] * len(mechanisms)
    )
    if part is None or not all(has_statistics):
        return
    refuse_unknown_columns(part)
    numbers = [measurement["mechanism"] for measurement in part["measurements"]]
    yield equality_claim(
        "marginals: one mechanism for each measurement", sorted(numbers), [*range(1, len(mechanisms) + 1)]
    )
    if sorted(numbers) != [*range(1, len(mechanisms) + 1)]:
        return
    names = [table["answer"] for table in part["tables"]]
    yield equality_claim("marginals: tables of one name", len(names) - len(set(names)), 0)
    for index, measurement in enumerate(part["measurements"]):
        yield from _measurement_claims(f"marginals.measurements[{index}]", data, measurement)
    together = {mechanism.get("together") for mechanism in mechanisms}
    yield equality_claim("marginals: each measurement composes by itself", len(together), len(mechanisms))
    yield equality_claim("marginals: one condition", len({mechanism.get("where") for mechanism in mechanisms}), 1)
    yield from variance_claims(data, variance_of)
    yield unchecked_claim("half_width_95 of each table", "that 95 % of the errors are below it")
    yield unchecked_claim("weights of tables, statement of marginals", "what the publisher asked for, in words")


def refuse_unknown_columns(part: dict[str, Any]) -> None:
    """Raise ``BrokenError`` unless the columns of tables and measurements are listed ones, ascending."""
    count, parts = len(part["sizes"]), part["tables"] + part["measurements"]
    used = [one.get(name, []) for one in parts for name in ("columns", "differences")]
    if len(part["columns"]) != count or any(
        columns != sorted(set(columns)) or columns[-1:] > [count - 1] for columns in used
    ):
        raise BrokenError("marginals of columns that are not listed")


def variance_claims(data: dict[str, Any], variance_of: Callable[[dict[str, Any]], float]) -> Iterator[Claim]:
    """Check the weights of least squares, and the gap, against the variances of the noise."""
    mechanisms, part = data["mechanisms"], data["marginals"]
    if not all(Fraction(one["precision"]) > 0 for one in part["measurements"]):
        raise BrokenError("a weight of least squares that is 0")
    variances = [variance_of(mechanisms[measurement["mechanism"] - 1]) for measurement in part["measurements"]]
    weights = [float(Fraction(one["precision"])) * v for one, v in zip(part["measurements"], variances, strict=True)]
    even = max(weights) <= min(weights) * (1 + WEIGHT_TOLERANCE)
    yield _judged("marginals.measurements: precision", "in proportion to 1 / variance of the noise", even)
    gap = gaussian_gap(part, variances)
    verdict = CONFIRMED if abs(gap - part["gap"]) <= GAP_TOLERANCE else REFUTED
    yield Claim("marginals.gap", str(part["gap"]), f"= {gap:.6g}, within {GAP_TOLERANCE}", verdict)


def _measurement_claims(name: str, data: dict[str, Any], measurement: Measurement) -> Iterator[Claim]:
    """Check the rows, integers and tables of a measurement's mechanism."""
    part, rows = data["marginals"], data["neighbors"]["max_rows"]
    sizes, differences = part["sizes"], measurement["differences"]
    mechanism = data["mechanisms"][measurement["mechanism"] - 1]
    changes = math.prod(sizes[column] - 1 for column in differences)
    stated = {name: mechanism.get(name) for name in ("statistic", "by", "rows", "max_rows_per_group", "groups")}
    expected = {
        "statistic": MARGINAL_STATISTICS[bool(differences)],
        "by": [part["columns"][column] for column in measurement["columns"]],
        "rows": rows * changes,
        "max_rows_per_group": rows,
        "groups": integer_count(part, measurement),
    }
    is_part = set(differences) <= set(measurement["columns"])
    yield equality_claim(f"{name}: differences along its own columns", is_part, True)
    yield equality_claim(f"{name}: {rows} rows change {changes} integers each by one", stated, expected)
    counted = [int(mechanism["sensitivity_per_row"]), Decimal(mechanism["unit"]), mechanism["column"]]
    yield equality_claim(f"{name}: rows are counted", counted, [1, 1, None])
    used = [table["answer"] for table in part["tables"] if set(differences) <= set(table["columns"])]
    yield equality_claim(f"{name}: the tables that it informs", sorted(mechanism["answers"]), sorted(used))
    shared = [mechanism.get(key) for key in ("exclusive", "choice", "box")]
    yield equality_claim(f"{name}: noise of its own", shared, [None, None, None])


def gaussian_gap(part: dict[str, Any], variances: Sequence[float]) -> float:
    """Return the gap of Gaussian noise with these variances: of the root of the weighted variance over its least value.

    The weighted variance of the cells, times the sum of what a row changes over the variances, is at least
    (Σ_B √b_B)², where b_B = dim_B² Σ w / n² over the tables with all columns of B.
    """
    sizes, precisions = part["sizes"], component_precisions(part)
    noise = dict.fromkeys(precisions, 0.0)
    for measurement, variance in zip(part["measurements"], variances, strict=True):
        share = cell_count(sizes, measurement["differences"]) / cell_count(sizes, measurement["columns"])
        for component in informed_components(measurement):
            if component in noise:
                noise[component] += float(Fraction(measurement["precision"])) ** 2 * share * variance
    dimensions = {component: math.prod(sizes[column] - 1 for column in component) for component in precisions}
    weighted, costs = 0.0, dict.fromkeys(precisions, 0.0)
    for table in part["tables"]:
        per_cell = float(Fraction(table["weight"])) / cell_count(sizes, table["columns"]) ** 2
        for component in column_subsets(table["columns"]):
            costs[component] += dimensions[component] ** 2 * per_cell
            ratio = noise[component] / float(precisions[component]) ** 2
            weighted += per_cell * dimensions[component] * ratio
    used = math.fsum(
        math.prod(sizes[column] - 1 for column in measurement["differences"]) / variance
        for measurement, variance in zip(part["measurements"], variances, strict=True)
    )
    least = math.fsum(math.sqrt(cost) for cost in costs.values()) ** 2
    return max(0.0, math.sqrt(weighted * used / least) - 1) if least > 0 else math.inf


def component_table(
    part: dict[str, Any], measurement: Measurement, integers: Sequence[int], component: Columns
) -> dict[Columns, Fraction]:
    """Return the part of noisy integers along a component: by its values, and 0 on average along each of its columns.

    Integers are summed over other columns. A pair of values counts for its first one, and against its second one.
    """
    sizes, columns = part["sizes"], measurement["columns"]
    kept = [position for position, column in enumerate(columns) if column in component]
    sums = dict.fromkeys(product(*(range(sizes[column]) for column in component)), Fraction(0))
    for values, integer in zip(with_time_checks(product(*measured_axes(sizes, measurement))), integers, strict=True):
        for chosen in product(*(range(len(values[position])) for position in kept)):
            cell = tuple(values[position][which] for position, which in zip(kept, chosen, strict=True))
            sums[cell] += -integer if sum(chosen) % 2 else integer
    for axis, column in enumerate(component):
        if column in measurement["differences"]:
            continue
        totals: dict[Columns, Fraction] = {}
        for cell, value in sums.items():
            line = (*cell[:axis], *cell[axis + 1 :])
            totals[line] = totals.get(line, Fraction(0)) + value
        sums = {cell: value - totals[(*cell[:axis], *cell[axis + 1 :])] / sizes[column] for cell, value in sums.items()}
    return sums


def fitted_tables(part: dict[str, Any], measured: Sequence[Sequence[int]]) -> list[list[Fraction]]:
    """Return the cells of every table by least squares, in row-major order, from the noisy integers."""
    sizes, precisions = part["sizes"], component_precisions(part)
    work = sum(
        len(integers) * 4 ** len(one["columns"]) for one, integers in zip(part["measurements"], measured, strict=True)
    )
    work += sum(cell_count(sizes, table["columns"]) << len(table["columns"]) for table in part["tables"])
    require_affordable(work, MAX_TABLE_WORK, "cells of tables")
    estimates: dict[Columns, dict[Columns, Fraction]] = {component: {} for component in precisions}
    for measurement, integers in zip(part["measurements"], measured, strict=True):
        share = Fraction(measurement["precision"]) / cell_count(sizes, measurement["columns"])
        for component in set(informed_components(measurement)) & set(estimates):
            weight, estimate = share / precisions[component], estimates[component]
            for cell, value in component_table(part, measurement, integers, component).items():
                estimate[cell] = estimate.get(cell, Fraction(0)) + weight * value
    return [_sum_components(sizes, estimates, table["columns"]) for table in part["tables"]]


def _sum_components(
    sizes: Sequence[int], estimates: dict[Columns, dict[Columns, Fraction]], columns: Sequence[int]
) -> list[Fraction]:
    """Return the cells of one table: each component is spread evenly over the cells that share its values."""
    parts = [
        (
            [columns.index(column) for column in component],
            estimates[component],
            Fraction(cell_count(sizes, component), cell_count(sizes, columns)),
        )
        for component in column_subsets(columns)
    ]
    return [
        sum((estimate[tuple(values[i] for i in axes)] * share for axes, estimate, share in parts), Fraction(0))
        for values in with_time_checks(product(*(range(sizes[column]) for column in columns)))
    ]


def marginal_table_claims(data: dict[str, Any]) -> Iterator[Claim]:
    """Check the tables of a result: their groups, their cells computed again from the noisy integers, and intervals."""
    part, measured = data["certificate"]["marginals"], data.get("measured", [])
    counts = [integer_count(part, measurement) for measurement in part["measurements"]]
    yield equality_claim("measured: integers of each measurement", list(map(len, measured)), counts)
    answers = {answer["name"]: answer for answer in data["answers"]}
    names = [table["answer"] for table in part["tables"]]
    yield equality_claim("marginals.tables: answers", sorted(answers), sorted(names))
    if list(map(len, measured)) != counts or set(answers) != set(names):
        return
    direct = {
        tuple(one["columns"]): integers
        for one, integers in zip(part["measurements"], measured, strict=True)
        if not one["differences"]
    }
    rows = data["certificate"]["neighbors"]["max_rows"]
    values, names_by_column = values_by_column(part["tables"], answers), names_of_columns(part["tables"], answers)
    distinct = {name for names in names_by_column.values() for name in names}
    is_named_alike = len(distinct) == len(names_by_column) == sum(map(len, names_by_column.values()))
    yield _judged("marginals.tables: names of columns", "the same in every table, and different", is_named_alike)
    for table, cells in zip(part["tables"], fitted_tables(part, measured), strict=True):
        answer, columns = answers[table["answer"]], table["columns"]
        name = f"answer {answer['name']!a}"
        expected = list(product(*(values[column] for column in columns)))
        counts_agree = [len(answer["by"]), len(expected)] == [len(columns), len(cells)]
        is_complete = counts_agree and row_keys(answer) == expected
        yield _judged(f"{name}: all combinations of the values of its columns", "in order", is_complete)
        bounds = [answer["max_rows"], answer["max_rows_per_group"], answer["max_groups"]]
        yield equality_claim(f"{name}: rows of a person", bounds, [rows] * 3)
        drawn = [row["noisy"] for row in answer["rows"] if "noisy" in row]
        yield equality_claim(f"{name}: noisy numbers", drawn, direct.get(tuple(columns), []))
        if is_complete:
            yield from _cell_claims(name, answer, table["half_width_95"], cells)


def row_keys(answer: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the key of each row of an answer, its values as JSON."""
    return [tuple(json.dumps(row.get(column)) for column in answer["by"]) for row in answer["rows"]]


def names_of_columns(tables: Sequence[dict[str, Any]], answers: dict[str, dict[str, Any]]) -> dict[int, set[str]]:
    """Return the names that the answers give to each column."""
    names: dict[int, set[str]] = {}
    for table in tables:
        for column, name in zip(table["columns"], answers[table["answer"]]["by"], strict=False):
            names.setdefault(column, set()).add(name)
    return names


def values_by_column(tables: Sequence[dict[str, Any]], answers: dict[str, dict[str, Any]]) -> dict[int, list[str]]:
    """Return the values of each column, in the order of the first table that has it."""
    values: dict[int, list[str]] = {}
    for table in tables:
        keys = row_keys(answers[table["answer"]])
        for position, column in enumerate(table["columns"]):
            values.setdefault(column, list(dict.fromkeys(key[position] for key in keys if len(key) > position)))
    return values


def _cell_claims(name: str, answer: dict[str, Any], half_width: float, cells: Sequence[Fraction]) -> Iterator[Claim]:
    """Check the values of an answer against its cells, and the half-width of its intervals."""
    yield equality_claim(f"{name}: half-width", answer["error"]["half_width_95"], half_width)
    are_fitted = are_intervals = True
    for row, cell in zip(answer["rows"], cells, strict=True):
        value, tolerance = row["value"], TABLE_TOLERANCE * (half_width + abs(float(cell)))
        are_fitted &= abs(value - float(cell)) <= tolerance
        ends = (value - row["lower"], row["upper"] - value)
        are_intervals &= all(abs(end - half_width) <= tolerance for end in ends)
    yield _judged(f"{name}: least squares", "computed again from the noisy integers", are_fitted)
    yield _judged(f"{name}: intervals", "the value and its half-width", are_intervals)


def _judged(name: str, words: str, holds: bool) -> Claim:
    return Claim(name, words, "holds" if holds else "does not hold", CONFIRMED if holds else REFUTED)
