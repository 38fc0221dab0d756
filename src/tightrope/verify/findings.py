"""Findings of a study, and consistent answers by least squares, checked as far as their numbers allow."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, starmap
from typing import Any, NamedTuple

from tightrope.verify.claims import (
    CONFIRMED,
    OPEN,
    REFUTED,
    BrokenError,
    Claim,
    equality_claim,
    limit_claim,
    require_affordable,
    unchecked_claim,
)
from tightrope.verify.contributions import BIAS_COUNT, CELL_STATISTICS, covers_all_groups, exclusive_set_sizes
from tightrope.verify.releases import noise_of_mechanism

SUM_TOLERANCE = 1e-12
"""Relative differences between sums that are rounding."""
MAX_FITTED_CELLS = 1 << 22
NOISE_TOLERANCE = 1e-6
"""Relative differences between errors of a table that are rounding."""


def findings_claims(data: dict[str, Any]) -> list[Claim]:
    """Numbers that are written twice; that more reports tell more. What one report tells is not in the document."""
    privacy, claims = data["privacy"], []
    for name, part in (("privacy", privacy), *((f"repeated {one['reports']}", one) for one in privacy["repeated"])):
        right = part["attack_success"]
        # Whether the attacker's success is (1 + η)/2, but for rounding.
        claims.append(
            limit_claim(
                f"{name}.attack_success",
                (1 + part["total_variation"]) / 2,
                right,
                bool(abs(part["attack_success"] - (1 + part["total_variation"]) / 2) <= 1e-12),
            )
        )
    for number, chance in enumerate(data["mechanism"]["probabilities"]):
        claims.append(
            equality_claim(f"probabilities[{number}].value", chance["value"], float(Fraction(chance["exact"])))
        )
    claims.append(limit_claim("answered", data["answered"], data["reports"], data["answered"] <= data["reports"]))
    why = "the privacy loss of a report follows from the mechanism's whole table, which findings do not contain"
    claims.append(Claim("privacy.epsilon", repr(privacy["epsilon"]), why, OPEN))
    return [*claims, unchecked_claim("estimates, effort, confidence, title", "the results: not a privacy claim")]


class AnswerNumbers(NamedTuple):
    """One answer: what divides its rows, and by group the number as it was drawn and as it was answered."""

    axes: tuple[int, ...]
    drawn: dict[tuple[str, ...], float]
    fitted: dict[tuple[str, ...], float]
    variance: float

    @classmethod
    def from_answer(cls, answer: dict[str, Any], part: dict[str, Any], place: int) -> AnswerNumbers:
        """Return the numbers of the answer at a place of a consistent set; raises ``BrokenError`` for one cut short."""
        axes, drawn, fitted = tuple(part["divided_by"][place]), {}, {}
        for row in answer["rows"]:
            key = [row[name] for name in answer["by"]]
            cell = tuple(map(json.dumps, key if part["shared"] == "groups" else [key] if key else []))
            if len(cell) != len(axes) or cell in drawn or not _width_matches(answer, row):
                raise BrokenError("an answer whose groups or intervals differ from what it states")
            drawn[cell], fitted[cell] = float(row["noisy"]), float(row["value"])
        if len(drawn) != math.prod(len({cell[axis] for cell in drawn}) for axis in range(len(axes))):
            raise BrokenError("an answer that lacks a group, so that its parts cannot add up to a total")
        return cls(axes, drawn, fitted, float(part["variances"][place]))

    @property
    def total_magnitude(self) -> float:
        """Return the sum of the magnitudes."""
        return math.fsum(map(abs, (*self.drawn.values(), *self.fitted.values())))

    def axis_values(self, axis: int) -> Iterator[str]:
        """All values of one of its axes; none of another."""
        return (cell[self.axes.index(axis)] for cell in self.drawn if axis in self.axes)

    def sums_by_axes(self, axes: Sequence[int]) -> dict[tuple[str, ...], float]:
        """Its answered numbers by these of its axes."""
        found: dict[tuple[str, ...], list[float]] = {}
        for cell, value in self.fitted.items():
            named = dict(zip(self.axes, cell, strict=True))
            found.setdefault(tuple(named[axis] for axis in axes), []).append(value)
        return {cell: math.fsum(values) for cell, values in found.items()}

    def agrees_with(self, other: AnswerNumbers) -> bool:
        """Return whether both have equal sums over the axes that only one of them has."""
        shared = [axis for axis in self.axes if axis in other.axes]
        first, second = self.sums_by_axes(shared), other.sums_by_axes(shared)
        most = SUM_TOLERANCE * (self.total_magnitude + other.total_magnitude)
        return set(first) == set(second) and not any(abs(first[cell] - second[cell]) > most for cell in first)


def answers_claims(data: dict[str, Any]) -> Iterator[Claim]:
    """That values lie in their intervals; of each set of answers that least squares made consistent: that they are, and
    are nearest to what was drawn.
    """
    answers = {one["name"]: one for one in data["answers"]}
    if len(answers) < len(data["answers"]):
        raise BrokenError("two answers with the same name")
    consistent = data["certificate"].get("consistent", [])
    fitted = {name for part in consistent for name in part["answers"]}
    outside = [
        name
        for name, one in answers.items()  # a suppressed answer has no value
        if not all(row.get("value") is None or row["lower"] <= row["value"] <= row["upper"] for row in one["rows"])
    ]
    yield equality_claim("answers: values outside of their intervals", outside, [])
    moved = [name for name, one in answers.items() if any("noisy" in row for row in one["rows"]) != (name in fitted)]
    yield equality_claim("answers: moved, and not by what the certificate says", moved, [])
    for part in consistent:
        named = ", ".join(map(ascii, part["answers"]))
        numbers = [AnswerNumbers.from_answer(answers[name], part, k) for k, name in enumerate(part["answers"])]
        _check_same_groups(answers, part, numbers)
        agree = all(starmap(AnswerNumbers.agrees_with, combinations(numbers, 2)))
        yield _verdict_claim(f"answers {named}", "parts add up to totals", agree)
        yield _verdict_claim(f"answers {named}", "nearest to what was drawn", _is_least_squares(numbers))


def served_claims(data: dict[str, Any]) -> Iterator[Claim]:
    """Check that answers and mechanisms agree: the same names, bounds on a person's rows, groups and noise.

    A certificate alone does not reveal an omitted mechanism or a table of wider noise: answers
    state the size of their noise.
    """
    answers, mechanisms = {one["name"]: one for one in data["answers"]}, data["certificate"]["mechanisms"]
    served = {name for one in mechanisms for name in one["answers"]}
    yield equality_claim("answers: those that mechanisms serve", sorted(served ^ set(answers)), [])
    if served != set(answers):
        return
    parts, known = exclusive_set_sizes(mechanisms), dict[str, float]()
    errors: dict[str, list[tuple[str, float]]] = {name: [] for name in answers}
    for place, one in enumerate(mechanisms):
        if BIAS_COUNT.fullmatch(one["statistic"]) is not None:
            continue  # a count for bias is not an answer
        text = json.dumps([one["table"], one.get("box"), one["factor"], one["unit"]], sort_keys=True)
        if text not in known:
            known[text] = mean_absolute_error(one)
        own = one["statistic"], known[text]
        said = [
            noise for name in one["answers"] for noise in answers[name]["noise"] if _noise_matches_statistic(noise, own)
        ]
        yield equality_claim(f"mechanisms[{place}]: answers state noise of {own[1]:.6g} on average", bool(said), True)
        for name in one["answers"]:
            errors[name].append(own)
            if not covers_all_groups(one):
                yield _bounds_of(
                    f"mechanisms[{place}]: rows and groups of a person", one, answers[name], parts[id(one)]
                )
    for number, (name, own_errors) in enumerate(errors.items()):
        other = [
            noise["statistic"]
            for noise in answers[name]["noise"]
            if not any(_noise_matches_statistic(noise, own) for own in own_errors)
        ]
        yield equality_claim(f"answers[{number}].noise: of no mechanism", other, [])


def _noise_matches_statistic(noise: dict[str, Any], own: tuple[str, float]) -> bool:
    """Return whether stated noise belongs to a statistic and has the same mean absolute error."""
    statistic, error = own
    return bool(
        noise["statistic"] == statistic and abs(noise["mean_absolute_error"] - error) <= NOISE_TOLERANCE * error
    )


def _bounds_of(name: str, one: dict[str, Any], answer: dict[str, Any], parts: int) -> Claim:
    """Check a person's rows and groups: equal to its answer's, with no fewer groups; for a choice those listed."""
    rows, per_group, groups = answer["max_rows"], answer["max_rows_per_group"], answer["max_groups"]
    chosen, cells = one.get("choice") is not None, one["statistic"] in CELL_STATISTICS
    if (answer["keys"] == "given" and not cells) or chosen:
        groups = min(groups, len(answer["rows"]))
    return equality_claim(
        name, (one["rows"], one["max_rows_per_group"], one["groups"]), (rows, per_group, groups * parts)
    )


def mean_absolute_error(one: dict[str, Any]) -> float:
    """E|X| of X = factor · Y + U − U' in natural units: where Y is not 0, |X| is factor · |Y| on average.

    Where Y is 0 it is E|U − U'| = (factor² − 1) / (3 factor), U and U' below factor.
    """
    noise, factor = noise_of_mechanism(one), int(one["factor"])
    apart = float(Fraction(factor * factor - 1, 3 * factor)) if factor else 0.0
    return (factor * noise.mean_absolute + noise.at_zero * apart) * float(Decimal(one["unit"]))


def _verdict_claim(name: str, words: str, holds: bool) -> Claim:
    return Claim(name, words, "computed again from the noisy numbers", CONFIRMED if holds else REFUTED)


def _check_same_groups(
    answers: dict[str, dict[str, Any]], part: dict[str, Any], numbers: Sequence[AnswerNumbers]
) -> None:
    """Raise ``BrokenError`` if key columns of two names divide the rows in the same way, or one name in two ways."""
    named: dict[int, str] = {}
    for answered, own in zip(part["answers"], part["divided_by"], strict=True):
        answer = answers[answered]
        columns = answer["by"] if part["shared"] == "groups" else [json.dumps(answer["by"])] * len(own)
        if any(named.setdefault(axis, name) != name for axis, name in zip(own, columns, strict=True)):
            raise BrokenError("two column names for the same groups of the same rows")
    for axis in dict.fromkeys(axis for one in numbers for axis in one.axes):
        if len({frozenset(one.axis_values(axis)) for one in numbers if axis in one.axes}) > 1:
            raise BrokenError("answers about the same rows with different groups")


def _width_matches(answer: dict[str, Any], row: dict[str, Any]) -> bool:
    """Return whether an interval has the width that the answer states for all of them."""
    half, size = answer["error"]["half_width_95"], abs(row["value"])
    ends = (row["value"] - row["lower"], row["upper"] - row["value"])
    return all(abs(end - half) <= SUM_TOLERANCE * (half + size) for end in ends)


def _is_least_squares(numbers: Sequence[AnswerNumbers]) -> bool:
    """Return whether Σ (drawn − answered) / variance is 0 at every position of the grid of all axes.

    With agreement that is least squares: no table of rows on the grid has sums that are nearer to what was drawn. A sum
    of functions of few axes each is 0 everywhere if it is where all other axes are at their first values.
    """
    require_affordable(len(numbers) * sum(len(one.drawn) for one in numbers), MAX_FITTED_CELLS, "places of a grid")
    moved = [{cell: (drawn - one.fitted[cell]) / one.variance for cell, drawn in one.drawn.items()} for one in numbers]
    most = SUM_TOLERANCE * math.fsum(one.total_magnitude / one.variance for one in numbers)
    first = {axis: value for one in numbers for axis, value in zip(one.axes, next(iter(one.drawn)), strict=True)}
    for one in numbers:
        for cell in one.drawn:
            at = {**first, **dict(zip(one.axes, cell, strict=True))}
            here = (own[tuple(at[axis] for axis in by.axes)] for own, by in zip(moved, numbers, strict=True))
            if abs(math.fsum(here)) > most:
                return False
    return True
