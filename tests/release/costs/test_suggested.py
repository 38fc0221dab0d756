"""Ranges that are read from the data, at a price."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import tightrope as tr
from tests.tables.every_engine import ENGINES
from tightrope.errors import InputError, InsufficientBudgetError, PlanError, SchemaError
from tightrope.release import suggest
from tightrope.release.suggest import (
    ROW_COUNT_STEPS,
    bounds_question,
    covering_range,
    decimal_edges,
    rows_question,
    suggested_bounds,
    suggested_rows,
)
from tightrope.tables import ContributionBounds, Measure, Request

RANGES = int(os.environ.get("TIGHTROPE_SUGGESTED", "1"))
"""Ranges that are suggested of each table and share; in CI few."""


def session(values: np.ndarray) -> tr.Session:
    budget = tr.Budget(epsilon=2, delta=1e-8)
    return tr.Session(pa.table({"x": values}), privacy_unit=None, budget=budget)


def test_a_range_holds_nearly_all_values_and_is_charged():
    """Bounded noise never makes a full part of the axis an empty one, nor an empty one of 99 % a full one."""
    values = np.concatenate([np.full(5_000, -30.0), np.full(20_000, 40.0), np.full(5_000, 1_500.0)])
    opened = session(values)
    found = opened.suggest_bounds("x", budget_fraction="0.5")
    assert found.bounds == (-50.0, 2_000.0)
    assert opened.spent["budget_fraction"] == "0.5"
    assert "charged" in str(found)
    assert "-50.0" in str(found)
    assert found.answers.certificate["mechanisms"]
    with pytest.raises(InsufficientBudgetError):
        opened.suggest_bounds("x", budget_fraction="0.6")


def test_too_few_rows_give_no_range():
    found = session(np.array([5.0])).suggest_bounds("x", budget_fraction="0.001")
    assert found.bounds is None
    assert "too small" in found.warning


def test_outliers_are_left_outside():
    counts = [0, 5, 0, 990, 0, 5]
    assert covering_range([0, 1, 2, 5, 10, 20], counts) == (5, 10)
    assert covering_range([0, 1], [3, 4]) == (0, 1)


DRAW = np.random.default_rng(3)
SPREAD = {
    "a heap and a long tail": np.concatenate([np.full(3_000, 150.0), 10 ** DRAW.uniform(2, 8, 1_500)]),
    "lognormal": np.exp(DRAW.normal(8, 2, 5_000)),
    "nearly everywhere": 10 ** DRAW.uniform(-3, 8, 3_000),
    "Pareto": DRAW.pareto(0.6, 5_000) + 1,
    "both sides": DRAW.standard_cauchy(4_000) * 100,
}


@pytest.mark.parametrize("name", SPREAD)
def test_what_may_lie_beyond_is_said_rightly(name: str):
    """It was "about 1 %", where noise hid a third of the values: what noise hides counted as nothing."""
    values, wrong, found = SPREAD[name], 0, 0
    for share in ("0.01", "0.025", "0.1"):
        for _ in range(RANGES):
            suggested = session(values).suggest_bounds("x", budget_fraction=share)
            if suggested.bounds is not None:
                said = [float(part) / 100 for part in re.findall(r"[Aa]t most ([\d.]+)%", suggested.warning)]
                said = said or [1.0, 1.0]  # the noise was too large for a limit
                below, above = (values < suggested.bounds[0]).mean(), (values >= suggested.bounds[1]).mean()
                wrong, found = wrong + (below > said[0] or above > said[1]), found + 1
    assert found >= RANGES
    assert wrong <= max(1, found / 20)


@pytest.mark.parametrize(
    "values",
    [
        [], [None] * 9, [math.nan] * 50, [math.inf, -math.inf] * 50, [5e-324, -5e-324, -0.0, 0.0] * 25,
        [1.7976931348623157e308, -1.7976931348623157e308] * 50, [5e9, -5e9, 4.999e9] * 40, [0.001] * 99, [7.0] * 100,
    ],
)  # fmt: skip
def test_no_value_stops_a_suggestion(values, more=(math.nan, math.inf, -math.inf, 1e308, -5e-324, None)):
    """Whatever one person brings: a range, or none, is said, charged once, and made of the noisy counts alone."""
    table = pa.table({"x": pa.array([*values, *more], pa.float64()), "p": ["a"] * len(values) + ["b"] * len(more)})
    opened = tr.Session(table, privacy_unit="p", max_rows=2, budget=tr.Budget(epsilon=2, delta=1e-8))
    found = opened.suggest_bounds("x", budget_fraction="0.1")
    assert opened.spent["budget_fraction"] == "0.1"
    counts = [int(row["value"]) for row in found.answers[0].rows]
    assert len(counts) == len(decimal_edges()) + 1
    assert found.warning


def ways(rows: int) -> list[tuple[int, ...]]:
    """How a person's rows may fall into parts."""
    smaller = [(first, *rest) for first in range(1, rows + 1) for rest in ways(rows - first)] if rows else []
    return [(), *(way for way in smaller if list(way) == sorted(way))]


def exact_loss(chances: np.ndarray, way: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, float]:
    """Losses and their masses where parts of an axis move by so many rows each, rounded down; and the mass of ∞."""
    losses, masses, infinite = np.zeros(1), np.ones(1), 0.0
    for rows in way:
        there = np.concatenate([np.zeros(rows), chances])[: len(chances)]
        both = there > 0
        every = np.add.outer(losses, np.log(chances[both] / there[both])).ravel()
        losses, place = np.unique(np.floor(every * 1e9 - 1e-3) / 1e9, return_inverse=True)
        masses = np.bincount(place, weights=np.multiply.outer(masses, chances[both]).ravel())
        infinite = 1 - (1 - infinite) * (1 - float(chances[~both].sum()))
    return losses, masses, infinite


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("kind", ["bounds", "rows"])
def test_what_is_charged_is_what_the_exact_law_gives_away(rows: int, kind: str):
    """From the probabilities of the integers that run, for every way in which a person's rows fall into parts."""
    table = pa.table({"p": ["a", "b"], "x": [1.0, 2.0]})
    for epsilon, delta in ((1, 1e-6), (8, 1e-10), (1, 0)):
        opened = tr.Session(table, privacy_unit="p", max_rows=rows, budget=tr.Budget(epsilon=epsilon, delta=delta))
        question = bounds_question("x", None, opened.schema) if kind == "bounds" else rows_question(None)
        plan = opened.plan([question], budget_fraction="0.5")
        ((noise,),) = plan.noises()
        beyond = noise.noise_tails.tail_probability(np.arange(2_000.0))
        half = np.concatenate([[1 - 2 * beyond[0]], beyond[:-1] - beyond[1:]])
        half = half[half > 1e-25]
        chances, reached = np.concatenate([half[:0:-1], half]), 0.0
        for way in ways(rows if kind == "bounds" else 1)[1:]:
            losses, masses, infinite = exact_loss(chances, way)
            for part in (0, 0.1, 0.3, 0.5, 0.7, 1.0):
                least = part * epsilon / 2
                above = losses > least
                exact = infinite + float(masses[above] @ -np.expm1(least - losses[above]))
                certified = plan.draft.loss.delta(least)
                assert exact <= certified * (1 + 1e-6) + 1e-12
                reached = max(reached, exact / certified) if certified > 0 else reached
        assert reached > 0.999


def visits(each: dict[int, int]) -> pa.Table:
    """So many persons (values) with so many rows (keys)."""
    persons = [(rows, number) for rows, many in each.items() for number in range(many)]
    return pa.table({"nr": [f"{rows} {number}" for rows, number in persons for _ in range(rows)]})


def by_person(each: dict[int, int], bound: int = 1) -> tr.Session:
    budget = tr.Budget(epsilon=2, delta=1e-8)
    return tr.Session(visits(each), privacy_unit="nr", max_rows=bound, budget=budget)


def test_a_bound_on_rows_is_suggested_and_charged():
    """700, 250 and 50 persons: bounded noise cannot move the nine tenths elsewhere."""
    opened = by_person({1: 700, 6: 250, 90: 50})
    found = opened.suggest_max_rows(budget_fraction="0.5")
    assert found.max_rows == 6
    assert opened.spent["budget_fraction"] == "0.5"
    assert "charged" in str(found)
    noise = found.answers.certificate["mechanisms"][0]
    assert (noise["rows"], noise["groups"], noise["sensitivity_per_row"]) == (1, 1, "1")
    by_rows = {row["rows"]: row["value"] for row in found.answers[0].rows}
    assert abs(by_rows[5] - 250) < 100
    assert by_person({1: 3}).suggest_max_rows(budget_fraction="0.001").max_rows is None
    with pytest.raises(PlanError, match="each person has one row"):
        session(np.array([1.0])).suggest_max_rows(budget_fraction="0.1")


@pytest.mark.parametrize("engine", ["arrow", "duckdb", "spark", "postgres"])
def test_persons_are_counted_by_their_rows_on_every_engine(tmp_path: Path, engine: str):
    """With and without one person: one place moves by one, whatever rows they have."""
    table = pa.concat_tables([visits({1: 5, 2: 3, 9: 2}), pa.table({"nr": pa.array([None] * 4, pa.string())})])
    request = Request(
        (), ((),), ContributionBounds("nr", 1, 1, 1), (Measure("persons", None, None),), None, (1, 2, 3, 9)
    )
    found = ENGINES[engine](table, tmp_path).collect_totals(request)
    assert found.keys == ((1,), (2,), (3,), (9,))
    assert found.values == {"persons": (5, 3, 0, 2)}
    one_more = pa.concat_tables([table, pa.table({"nr": ["new"] * 500})])
    assert ENGINES[engine](one_more, tmp_path).collect_totals(request).values == {"persons": (5, 3, 0, 3)}


def test_steps_that_are_none_are_refused():
    one = (Measure("persons", None, None),)
    for steps, bounds in (((2, 3), ContributionBounds("nr", 1, 1, 1)), ((1, 1), ContributionBounds("nr", 1, 1, 1)),
                          ((1, 2), ContributionBounds("nr", 2, 2, 1)),
                          ((1, 2), ContributionBounds(None, 1, 1, 1))):  # fmt: skip
        with pytest.raises(InputError, match="steps"):
            Request((), ((),), bounds, one, None, steps)


def test_a_column_without_an_axis_is_refused_in_words_about_it():
    opened = tr.Session(pa.table({"dest": ["a", "b"]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    with pytest.raises(SchemaError, match="'dest' must be numeric, but it is text"):
        opened.suggest_bounds("dest", budget_fraction=0.1)
    assert opened.spent["budget_fraction"] == "0"


TABLES = {
    "heavy tail": {rows: max(1, round(1_500 / rows**1.5)) for rows in (*range(1, 40), *range(40, 1_000, 12))},
    "all one row": {1: 3_000},
    "geometric": {rows: round(1_200 * 0.75 ** (rows - 1)) for rows in range(1, 25)},
    "two-point": {1: 2_600, 700: 400},
    "few persons": {1: 30, 3: 10, 20: 5},
}
TRIES = int(os.environ.get("TIGHTROPE_SUGGESTIONS", "40"))


@pytest.mark.parametrize("each", TABLES.values(), ids=TABLES)
def test_what_is_said_of_a_suggested_bound_is_true(each: dict[int, int]) -> None:
    """At least as often as stated, with the noise that runs: the truth is known, so that only the noise is drawn.

    What was said before ("about 100 %") was wrong in ten of ten tries where many small steps were taken for empty ones.
    """
    persons = sum(each.values())
    steps = [sum(many for rows, many in each.items() if low <= rows < high)
             for low, high in pairwise((*ROW_COUNT_STEPS, 1 << 60))]  # fmt: skip
    one = by_person({1: 1})
    for share in ("0.01", "0.05", "0.3", "1"):
        ((noise,),) = one.plan([rows_question(None)], budget_fraction=share).noises()
        drawn = np.array(noise.noise_mechanism.sample(TRIES * len(steps))).reshape(TRIES, -1).astype(np.int64)
        false = 0
        for counts in (np.array(steps) + drawn).tolist():
            found = suggested_rows(answers_of(counts), noise)
            if found.max_rows is not None:
                true = sum(many for rows, many in each.items() if rows <= found.max_rows) / persons
                assert found.at_least is not None
                assert found.at_least >= 0.5
                assert f"at least {round(100 * found.at_least)} %" in found.warning
                false += true < found.at_least
        assert false <= binom.ppf(1 - 1e-6, TRIES, 0.05)
    assert suggested_rows(answers_of(steps), noise).max_rows is not None or persons < 100


def wrong_sizes(each: dict[int, int], share: str, largest_rows: int | None, error: float = 1.0) -> int:
    """How many of ``TRIES`` draws give a false limit on people, rows or the rows left out; ``error`` scales limits."""
    persons, rows = sum(each.values()), sum(number * many for number, many in each.items())
    steps = [sum(many for number, many in each.items() if low <= number < high)
             for low, high in pairwise((*ROW_COUNT_STEPS, 1 << 60))]  # fmt: skip
    ((noise,),) = by_person({1: 1}).plan([rows_question(None)], budget_fraction=share).noises()
    drawn = np.array(noise.noise_mechanism.sample(TRIES * len(steps))).reshape(TRIES, -1).astype(np.int64)
    wrong = 0
    exact_quantile = suggest.NoiseSumBounds.weighted_quantile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suggest.NoiseSumBounds, "weighted_quantile", lambda *given: error * exact_quantile(*given))
        for counts in (np.array(steps) + drawn).tolist():
            found = suggested_rows(answers_of(counts), noise, largest_rows)
            size = found.size
            true = size.persons[0] <= persons <= size.persons[1]
            true &= size.rows[0] <= rows <= (math.inf if size.rows[1] is None else size.rows[1])
            if found.max_rows is not None:
                assert size.left_out is not None
                used = sum(min(number, found.max_rows) * many for number, many in each.items())
                least, most = size.left_out
                true &= least - 1e-12 <= 1 - used / rows <= (1.0 if most is None else most) + 1e-12
            wrong += not true
    return wrong


@pytest.mark.parametrize("each", TABLES.values(), ids=TABLES)
def test_what_is_said_of_the_size_of_a_table_is_true(each: dict[int, int]) -> None:
    """People, rows and the share that is left out, all at once, with and without a declared maximum."""
    for share in ("0.01", "0.05", "0.3"):
        for largest_rows in (None, max(each), 2 * max(each)):
            assert wrong_sizes(each, share, largest_rows) <= binom.ppf(1 - 1e-6, TRIES, 0.05)


def test_limits_that_are_too_narrow_are_noticed() -> None:
    """The check above has power: with a tenth of the allowance for noise it fails."""
    wrong = wrong_sizes(TABLES["geometric"], "0.05", None, error=0.1)
    assert wrong > binom.ppf(1 - 1e-6, TRIES, 0.05)


def test_a_default_bound_of_one_would_leave_most_rows_out_and_the_size_says_so() -> None:
    opened = by_person({1: 200, 10: 900, 12: 40})
    found = opened.suggest_max_rows(budget_fraction="0.5", largest_rows=12)
    assert found.max_rows == 12
    assert found.size.left_out == (0.0, 0.0)
    assert found.size.rows[1] is not None
    assert found.size.rows[0] <= 200 + 9_000 + 480 <= found.size.rows[1]
    assert "every row is used" in str(found)
    unlimited = by_person({1: 200, 10: 900, 12: 40}).suggest_max_rows(budget_fraction="0.5")
    assert unlimited.size.rows[1] is None
    assert "no upper limit on rows" in str(unlimited)
    few = suggest.table_size([0] * len(ROW_COUNT_STEPS), found_noise(), 1, None)
    assert (few.rows[0], few.left_out) == (0, (0.0, None))


def found_noise() -> Any:
    """The noise of one suggestion."""
    ((noise,),) = by_person({1: 1}).plan([rows_question(None)], budget_fraction="0.5").noises()
    return noise


LAWS = {
    "heavy tail": lambda size: np.random.default_rng(1).pareto(0.8, size) + 1,
    "one value": lambda size: np.full(size, 3.0),
    "both sides": lambda size: np.random.default_rng(2).standard_t(1.5, size) * 10,
    "two ends": lambda size: np.where(np.arange(size) % 20 == 0, 9e5, 1.0),
    "few rows": lambda size: np.arange(size % 97, dtype=float),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_what_is_said_of_a_suggested_range_is_true(law: Callable[[int], np.ndarray]) -> None:
    """The same for ranges: at most so much lies beyond each end."""
    values = law(4_000)
    question = bounds_question("x", None, session(values).schema)
    ends = np.array([-np.inf, *decimal_edges(), np.inf])
    steps = np.histogram(values, ends)[0]
    for share in ("0.01", "0.05", "0.5", "1"):
        ((noise,),) = session(values).plan([question], budget_fraction=share).noises()
        drawn = np.array(noise.noise_mechanism.sample(TRIES * len(steps))).reshape(TRIES, -1).astype(np.int64)
        false = 0
        for counts in (steps + drawn).tolist():
            found = suggested_bounds(question, answers_of(counts), noise)
            if found.bounds is not None:
                low, high = found.bounds
                assert found.beyond is not None
                false += np.mean(values < low) > found.beyond[0] or np.mean(values >= high) > found.beyond[1]
        assert false <= binom.ppf(1 - 1e-6, TRIES, 0.05)


def answers_of(counts: list[int]) -> Any:
    """Answers that hold these noisy counts."""
    return [SimpleNamespace(rows=[{"value": count} for count in counts])]
