"""What a writer derives – sensitivities, groups, parts, the noise that answers state – is derived again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.verify.altered import of_version_3
from tests.verify.real_documents import RELEASES, certificate, result
from tests.verify.written import noise
from tightrope.mechanisms.discrete.integer_tables import staircase_table
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict
from tightrope.verify.contributions import disjoint_parts_claim, is_single_expression

Data = dict[str, Any]
FEW = ("share", "costs of one row", "what is left over", "chosen", "a truth value", "pairs")


@pytest.mark.parametrize("name", RELEASES)
def test_what_every_kind_of_question_writes_is_confirmed(name: str) -> None:
    claims = check_document(result(name))
    assert worst_verdict(claims) == CONFIRMED, [one for one in claims if one.verdict in (NOT_CONFIRMED, REFUTED)]
    assert any("answers state noise" in one.name for one in claims)


def refuted(data: Data) -> list[str]:
    """What refutes a certificate without a look at its numbers: they may be altered to fit."""
    numbers = ("epsilon", "total_variation", "profile", "tradeoff", "budget", "attack_success", "delta")
    return [
        one.name
        for one in check_document(json.dumps(data))
        if one.verdict == REFUTED and not one.name.startswith(numbers)
    ]


def half_the_sensitivity(data: Data) -> None:
    """Rows that count a half each: the noise that ran is that of a shift of one step less, or has half the factor."""
    for one in data["mechanisms"]:
        one["sensitivity_per_row"] = str(int(one["sensitivity_per_row"]) // 2)
        one["factor"] = str(-(-int(one["sensitivity_per_row"]) // one["table_steps_per_row"]))


def one_row_of_two(data: Data) -> None:
    """A count that says that each person adds once, beside a sum that has all of their rows."""
    data["mechanisms"][-1] |= {"rows": 1, "max_rows_per_group": 1, "together": 99}


def tally_of_one_row(data: Data) -> None:
    for one in data["mechanisms"]:
        if one["statistic"].startswith("rows, used"):
            one |= {"sensitivity_per_row": "1", "factor": "1"}


def left_over_of_one_row(data: Data) -> None:
    data["mechanisms"][1] |= {"sensitivity_per_row": "1", "factor": "1"}


def one_unit_of_two_divisions(data: Data) -> None:
    """The worst way for one division is not the worst for the other: they are not shifted by the same rows."""
    first, *_, last = data["mechanisms"]
    last["together"] = first["together"]
    for name in ("rows", "max_rows_per_group", "groups"):
        last[name] = first[name]


def a_set_of_cells(data: Data) -> None:
    """Cells that hold one row of a person each: rows may all fall into one."""
    for one in data["mechanisms"]:
        if one["statistic"] == "rows by cell":
            one |= {"max_rows_per_group": 1}


def fewer_groups(data: Data) -> None:
    for one in data["mechanisms"]:
        if one["exclusive"] is not None:
            one["groups"] = one["groups"] // 2


def a_range_of_half(data: Data) -> None:
    for one in data["mechanisms"]:
        if one["statistic"] == "sum":
            one["sensitivity_per_row"] = str(int(one["sensitivity_per_row"]) // 3)
            one["factor"] = str(-(-int(one["sensitivity_per_row"]) // one["table_steps_per_row"]))


FORGED: dict[str, tuple[str, Callable[[Data], None]]] = {
    "counts of half a row": ("what is left over", half_the_sensitivity),
    "no row moves it": ("whole and parts", half_the_sensitivity),
    "one row of two": ("own bounds", one_row_of_two),
    "a tally of one row": ("costs of four rows", tally_of_one_row),
    "what is left over of one row": ("what is left over", left_over_of_one_row),
    "one unit of two divisions": ("own bounds", one_unit_of_two_divisions),
    "cells of one row": ("cells", a_set_of_cells),
    "fewer groups than others count": ("shares by keys", fewer_groups),
    "a third of a range that is counted": ("costs of one row", a_range_of_half),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_contradicts_what_is_counted_is_refuted(name: str) -> None:
    document, forge = FORGED[name]
    data = copy.deepcopy(certificate(document))
    assert not refuted(data)
    forge(data)
    assert refuted(data)


def mechanism_gone(data: Data) -> None:
    del data["certificate"]["mechanisms"][0]


def wider_noise(data: Data) -> None:
    """A true certificate of noise that is twice as wide, beside answers that have the noise that ran."""
    table = json.loads(json.dumps(staircase_table(data["certificate"]["epsilon"] / 4, 1).to_data()))
    for one in data["certificate"]["mechanisms"]:
        one["table"] = table


def one_group_of_a_person(data: Data) -> None:
    for one in data["certificate"]["mechanisms"]:
        one |= {"groups": one["groups"] // 2, "rows": 1}


def fewer_rows(data: Data) -> None:
    for one in data["certificate"]["mechanisms"]:
        one |= {"rows": 1, "max_rows_per_group": 1}


RESULTS: dict[str, tuple[str, Callable[[Data], None]]] = {
    "a mechanism that is gone": ("different", mechanism_gone),
    "one of two mechanisms of an answer is gone": ("own bounds", lambda data: data["certificate"]["mechanisms"].pop()),
    "wider noise": ("share", wider_noise),
    "one group": ("shares by keys", one_group_of_a_person),
    "one row": ("share", fewer_rows),
}


@pytest.mark.parametrize("name", RESULTS)
def test_what_contradicts_the_answers_is_refuted(name: str) -> None:
    document, forge = RESULTS[name]
    data = json.loads(result(document))
    data["certificate"] = of_version_3(data["certificate"])
    forge(data)
    claims = check_document(json.dumps(data))
    numbers = ("epsilon", "total_variation", "profile", "tradeoff", "budget", "attack_success", "delta")
    assert [one for one in claims if one.verdict == REFUTED and not one.name.startswith(numbers)]


def tallies(**columns: str) -> list[Data]:
    return [{"statistic": f"rows, {kind} of v, over all groups", "column": column} for kind, column in columns.items()]


def test_parts_that_overlap_are_no_exclusive_set() -> None:
    apart = tallies(below="case(v < 0.0, 1, None)", above="case(v > 50.0, 1, None)", missing="case(v is None, 1, None)")
    assert disjoint_parts_claim(apart)[1] == CONFIRMED
    assert disjoint_parts_claim(tallies(below="case(v < 60.0, 1, None)", above="case(v > 50.0, 1, None)"))[1] == REFUTED
    assert disjoint_parts_claim(tallies(below="case(v < 0.0, 1, None)", above="case(w > 50.0, 1, None)"))[1] == REFUTED
    hidden = tallies(below="case(w < 3 or v < 0.0, 1, None)", above="case(w < 3 or v > 50.0, 1, None)")
    assert disjoint_parts_claim(hidden)[1] == NOT_CONFIRMED
    assert (
        disjoint_parts_claim(tallies(below="case(v < nan, 1, None)", above="case(v > nan, 1, None)"))[1]
        == NOT_CONFIRMED
    )
    truth = "case(v, 1, not v, 0, None)"
    ends = {"below": f"case({truth} < 0.0, 1, None)", "above": f"case({truth} > 1.0, 1, None)"}
    assert disjoint_parts_claim(tallies(**ends, missing="case(v is None, 1, None)"))[1] == CONFIRMED
    assert disjoint_parts_claim(tallies(**ends, missing="case(w is None, 1, None)"))[1] == REFUTED


@pytest.mark.parametrize(
    "term", ["a or b", "a) or (b", "a, b", "not a", "a in [1]", "'a' or 'b'", "(a", "", "a if b else c"]
)
def test_an_expression_that_joins_parts_is_no_single_one(term: str) -> None:
    assert not is_single_expression(term)


def test_a_version_without_units_counts_the_parts_of_its_labels() -> None:
    data = copy.deepcopy(certificate("share")) | {"version": 1}
    for one in data["mechanisms"]:
        del one["together"]
    assert not refuted(data)
    for one in data["mechanisms"]:
        one["groups"] = 1
    assert refuted(data)


def test_how_large_noise_is_on_average_is_what_the_writer_says() -> None:
    """E|X| of a stretched table, summed here from the weights alone."""
    for name in FEW:
        data = json.loads(result(name))
        stated = [own["mean_absolute_error"] for one in data["answers"] for own in one["noise"]]
        assert all(value > 0 for value in stated)
    data = json.loads(noise("a theorem"))
    half = [int(weight) for weight in data["table"]["half"]]
    mean = Fraction(2 * sum(x * weight for x, weight in enumerate(half, start=1)), 1 << 128)
    assert float(mean) == pytest.approx(float(Decimal(data["mean_absolute_error"])), rel=1e-12)
