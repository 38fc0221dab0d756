"""Claims of the findings of a study, and of answers: their noise, intervals, and consistency by least squares."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, starmap
from typing import Any, NamedTuple

from tightrope.verify.claims import (
    CONFIRMED,
    NOT_CONFIRMED,
    REFUTED,
    BrokenError,
    Claim,
    equality_claim,
    limit_claim,
    require_affordable,
    unchecked_claim,
)
from tightrope.verify.contributions import (
    BIAS_COUNT,
    CELL_STATISTICS,
    MARGINAL_STATISTICS,
    covers_all_groups,
    exclusive_set_sizes,
)
from tightrope.verify.marginals import marginal_table_claims
from tightrope.verify.releases import noise_of_mechanism

SUM_TOLERANCE = 1e-12
"""Relative tolerance of sums of answers."""
MAX_FITTED_CELLS = 1 << 22
"""Limit on the work of checking least squares."""
NOISE_TOLERANCE = 1e-6
"""Relative tolerance of the mean absolute error of a table."""


def findings_claims(data: dict[str, Any]) -> list[Claim]:
    """Return the claims of findings: numbers that are stated twice. The loss of one report is not recomputed."""
    privacy, claims = data["privacy"], []
    for name, part in (
        ("privacy", privacy),
        *((f"repeated {repetition['reports']}", repetition) for repetition in privacy["repeated"]),
    ):
        stated = part["attack_success"]
        claims.append(
            limit_claim(
                f"{name}.attack_success",
                (1 + part["total_variation"]) / 2,
                stated,
                bool(abs(part["attack_success"] - (1 + part["total_variation"]) / 2) <= 1e-12),
            )
        )
    for number, probability in enumerate(data["mechanism"]["probabilities"]):
        claims.append(
            equality_claim(
                f"probabilities[{number}].value", probability["value"], float(Fraction(probability["exact"]))
            )
        )
    claims.append(limit_claim("answered", data["answered"], data["reports"], data["answered"] <= data["reports"]))
    why = "the privacy loss of a report follows from the mechanism's whole table, which findings do not contain"
    claims.append(Claim("privacy.epsilon", repr(privacy["epsilon"]), why, NOT_CONFIRMED))
    return [*claims, unchecked_claim("estimates, effort, confidence, title", "the results: not a privacy claim")]


ANSWER_CLAIMS_BY_PART: dict[str, Callable[[dict[str, Any]], Iterator[Claim]]] = {
    "marginals": marginal_table_claims,
}
"""Claims of the answers to which a part of the certificate applies."""


class AnswerNumbers(NamedTuple):
    """One answer: the axes that divide its rows, and by cell the noisy number and the fitted one that was answered."""

    axes: tuple[int, ...]
    drawn: dict[tuple[str, ...], float]
    fitted: dict[tuple[str, ...], float]
    variance: float

    @classmethod
    def from_answer(cls, answer: dict[str, Any], fit: dict[str, Any], index: int) -> AnswerNumbers:
        """Return the numbers of the answer at an index of a consistent set; ``BrokenError`` if a group is missing."""
        axes, drawn, fitted = tuple(fit["divided_by"][index]), {}, {}
        for row in answer["rows"]:
            key = [row[name] for name in answer["by"]]
            cell = tuple(map(json.dumps, key if fit["shared"] == "groups" else [key] if key else []))
            if len(cell) != len(axes) or cell in drawn or not _width_matches(answer, row):
                raise BrokenError("an answer whose groups or intervals differ from what it states")
            drawn[cell], fitted[cell] = float(row["noisy"]), float(row["value"])
        if len(drawn) != math.prod(len({cell[axis] for cell in drawn}) for axis in range(len(axes))):
            raise BrokenError("an answer that lacks a group, so that its parts cannot add up to a total")
        return cls(axes, drawn, fitted, float(fit["variances"][index]))

    @property
    def total_magnitude(self) -> float:
        """Return the sum of the absolute values of all numbers."""
        return math.fsum(map(abs, (*self.drawn.values(), *self.fitted.values())))

    def axis_values(self, axis: int) -> Iterator[str]:
        """Return the values of an axis in all cells; empty if it is not an axis of the answer."""
        return (cell[self.axes.index(axis)] for cell in self.drawn if axis in self.axes)

    def sums_by_axes(self, axes: Sequence[int]) -> dict[tuple[str, ...], float]:
        """Return the fitted numbers, summed to these axes."""
        values_by_cell: dict[tuple[str, ...], list[float]] = {}
        for cell, value in self.fitted.items():
            value_by_axis = dict(zip(self.axes, cell, strict=True))
            values_by_cell.setdefault(tuple(value_by_axis[axis] for axis in axes), []).append(value)
        return {cell: math.fsum(values) for cell, values in values_by_cell.items()}

    def agrees_with(self, other: AnswerNumbers) -> bool:
        """Return whether both have equal sums over the axes that only one of them has."""
        shared = [axis for axis in self.axes if axis in other.axes]
        first, second = self.sums_by_axes(shared), other.sums_by_axes(shared)
        tolerance = SUM_TOLERANCE * (self.total_magnitude + other.total_magnitude)
        return set(first) == set(second) and not any(abs(first[cell] - second[cell]) > tolerance for cell in first)


class ConsistentNumbers(NamedTuple):
    """The numbers of the answers that one least-squares fit made consistent."""

    by_answer: list[AnswerNumbers]

    @classmethod
    def from_answers(cls, answers: dict[str, dict[str, Any]], fit: dict[str, Any]) -> ConsistentNumbers:
        """Return the numbers of a fit's answers; ``BrokenError`` unless an axis has one name and the same groups.

        Key columns of two names must not divide the rows in the same way, nor one name in two ways.
        """
        numbers = [AnswerNumbers.from_answer(answers[name], fit, index) for index, name in enumerate(fit["answers"])]
        column_by_axis: dict[int, str] = {}
        for name, axes in zip(fit["answers"], fit["divided_by"], strict=True):
            by = answers[name]["by"]
            columns = by if fit["shared"] == "groups" else [json.dumps(by)] * len(axes)
            if any(
                column_by_axis.setdefault(axis, column) != column for axis, column in zip(axes, columns, strict=True)
            ):
                raise BrokenError("two column names for the same groups of the same rows")
        for axis in column_by_axis:
            groups = {frozenset(answer.axis_values(axis)) for answer in numbers if axis in answer.axes}
            if len(groups) > 1:
                raise BrokenError("answers about the same rows with different groups")
        return cls(numbers)

    def is_least_squares(self) -> bool:
        """Return whether Σ (drawn − answered) / variance is 0 at every position of the grid of all axes.

        With agreement that is least squares: no table of rows on the grid has sums that are nearer to what was drawn. A
        sum of functions of few axes each is 0 everywhere if it is where all other axes are at their first values.
        """
        numbers = self.by_answer
        require_affordable(
            len(numbers) * sum(len(answer.drawn) for answer in numbers), MAX_FITTED_CELLS, "places of a grid"
        )
        residuals = [
            {cell: (drawn - answer.fitted[cell]) / answer.variance for cell, drawn in answer.drawn.items()}
            for answer in numbers
        ]
        tolerance = SUM_TOLERANCE * math.fsum(answer.total_magnitude / answer.variance for answer in numbers)
        first_values = {
            axis: value for answer in numbers for axis, value in zip(answer.axes, next(iter(answer.drawn)), strict=True)
        }
        for answer in numbers:
            for cell in answer.drawn:
                values = {**first_values, **dict(zip(answer.axes, cell, strict=True))}
                residuals_here = (
                    residual[tuple(values[axis] for axis in other.axes)]
                    for residual, other in zip(residuals, numbers, strict=True)
                )
                if abs(math.fsum(residuals_here)) > tolerance:
                    return False
        return True


def answers_claims(data: dict[str, Any]) -> Iterator[Claim]:
    """Check that values lie in their intervals, and that each consistent set adds up and is the least-squares fit."""
    answers = {answer["name"]: answer for answer in data["answers"]}
    if len(answers) < len(data["answers"]):
        raise BrokenError("two answers with the same name")
    consistent = data["certificate"].get("consistent", [])
    fitted = {name for fit in consistent for name in fit["answers"]}
    tables = {table["answer"] for table in data["certificate"].get("marginals", {"tables": []})["tables"]}
    outside = [
        name
        for name, answer in answers.items()  # a suppressed answer has no value
        if not all(row.get("value") is None or row["lower"] <= row["value"] <= row["upper"] for row in answer["rows"])
    ]
    yield equality_claim("answers: values outside of their intervals", outside, [])
    misreported = [
        name
        for name, answer in answers.items()
        if any("noisy" in row for row in answer["rows"]) != (name in fitted) and name not in tables
    ]
    yield equality_claim("answers: moved, and not by what the certificate says", misreported, [])
    for part, part_claims in ANSWER_CLAIMS_BY_PART.items():
        if part in data["certificate"]:
            yield from part_claims(data)
    for fit in consistent:
        names = ", ".join(map(ascii, fit["answers"]))
        numbers = ConsistentNumbers.from_answers(answers, fit)
        agree = all(starmap(AnswerNumbers.agrees_with, combinations(numbers.by_answer, 2)))
        yield _verdict_claim(f"answers {names}", "parts add up to totals", agree)
        yield _verdict_claim(f"answers {names}", "nearest to what was drawn", numbers.is_least_squares())


def answer_noise_claims(data: dict[str, Any]) -> Iterator[Claim]:
    """Check that answers and mechanisms agree: the same names, bounds on a person's rows, groups and noise.

    A certificate alone does not reveal an omitted mechanism or a table of wider noise: answers
    state the size of their noise.
    """
    answers, mechanisms = {answer["name"]: answer for answer in data["answers"]}, data["certificate"]["mechanisms"]
    names = {name for mechanism in mechanisms for name in mechanism["answers"]}
    yield equality_claim("answers: those that mechanisms serve", sorted(names ^ set(answers)), [])
    if names != set(answers):
        return
    set_sizes, error_by_table = exclusive_set_sizes(mechanisms), dict[str, float]()
    errors: dict[str, list[tuple[str, float]]] = {name: [] for name in answers}
    for index, mechanism in enumerate(mechanisms):
        if BIAS_COUNT.fullmatch(mechanism["statistic"]) is not None:
            continue  # a count for bias is not an answer
        fields = [mechanism["table"], mechanism.get("box"), mechanism["factor"], mechanism["unit"]]
        table = json.dumps(fields, sort_keys=True)
        if table not in error_by_table:
            error_by_table[table] = mean_absolute_error(mechanism)
        computed = mechanism["statistic"], error_by_table[table]
        matches = any(
            _noise_matches_statistic(noise, computed)
            for name in mechanism["answers"]
            for noise in answers[name]["noise"]
        )
        yield equality_claim(f"mechanisms[{index}]: answers state noise of {computed[1]:.6g} on average", matches, True)
        for name in mechanism["answers"]:
            errors[name].append(computed)
            if not covers_all_groups(mechanism) and mechanism["statistic"] not in MARGINAL_STATISTICS:
                claim_name, size = f"mechanisms[{index}]: rows and groups of a person", set_sizes[id(mechanism)]
                yield _person_bounds_claim(claim_name, mechanism, answers[name], size)
    for number, (name, computed_errors) in enumerate(errors.items()):
        unmatched = [
            noise["statistic"]
            for noise in answers[name]["noise"]
            if not any(_noise_matches_statistic(noise, computed) for computed in computed_errors)
        ]
        yield equality_claim(f"answers[{number}].noise: of no mechanism", unmatched, [])


def _noise_matches_statistic(noise: dict[str, Any], computed: tuple[str, float]) -> bool:
    """Return whether stated noise belongs to a statistic and has the same mean absolute error."""
    statistic, error = computed
    return bool(
        noise["statistic"] == statistic and abs(noise["mean_absolute_error"] - error) <= NOISE_TOLERANCE * error
    )


def _person_bounds_claim(name: str, mechanism: dict[str, Any], answer: dict[str, Any], set_size: int) -> Claim:
    """Check that the bounds on a person's rows and groups of a mechanism are those of its answer."""
    max_rows, per_group, max_groups = answer["max_rows"], answer["max_rows_per_group"], answer["max_groups"]
    is_choice, counts_cells = mechanism.get("choice") is not None, mechanism["statistic"] in CELL_STATISTICS
    if (answer["keys"] == "given" and not counts_cells) or is_choice:
        max_groups = min(max_groups, len(answer["rows"]))
    return equality_claim(
        name,
        (mechanism["rows"], mechanism["max_rows_per_group"], mechanism["groups"]),
        (max_rows, per_group, max_groups * set_size),
    )


def mean_absolute_error(mechanism: dict[str, Any]) -> float:
    """Return E|X| of X = factor · Y + U − U' in natural units: for Y ≠ 0, |X| is factor · |Y| on average.

    For Y = 0 it is E|U − U'| = (factor² − 1) / (3 factor), U and U' uniform on 0..factor − 1.
    """
    noise, factor = noise_of_mechanism(mechanism), int(mechanism["factor"])
    error_at_zero = float(Fraction(factor * factor - 1, 3 * factor)) if factor else 0.0
    return (factor * noise.mean_absolute + noise.probability_at_zero * error_at_zero) * float(
        Decimal(mechanism["unit"])
    )


def _verdict_claim(name: str, words: str, holds: bool) -> Claim:
    return Claim(name, words, "computed again from the noisy numbers", CONFIRMED if holds else REFUTED)


def _width_matches(answer: dict[str, Any], row: dict[str, Any]) -> bool:
    """Return whether an interval has the width that the answer states for all of them."""
    half_width, size = answer["error"]["half_width_95"], abs(row["value"])
    ends = (row["value"] - row["lower"], row["upper"] - row["value"])
    return all(abs(end - half_width) <= SUM_TOLERANCE * (half_width + size) for end in ends)
