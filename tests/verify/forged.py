"""Documents by a clever forger: what really ran stays in its words, what is promised is smaller, and all else fits.

A forger may run the verifier, as anybody may: ``restated`` alters a release certificate, asks the verifier what follows
from it now, and writes that into every number. So no number gives a forgery away; its structure must.
"""

from __future__ import annotations

import copy
import json
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from typer.testing import CliRunner

import tightrope as tr
from tests.verify.altered import at, leaves, of_version_3
from tests.verify.test_exclusive_sets import TABLE
from tests.verify.written import coupling, ledger
from tightrope.cli.main import app
from tightrope.documents.document import to_json_text
from tightrope.local.studies.study import Findings, Study
from tightrope.verify.check import check_document
from tightrope.verify.claims import REFUTED
from tightrope.verify.ledgers import HASHED_FIELDS, canonical_text, sha256

Data = dict[str, Any]


class Forgery(NamedTuple):
    """One forged document: of which sort, what was done, and how to make it: "" where nothing would be gained."""

    sort: str
    name: str
    made: Callable[[], str]


V: dict[str, Any] = {"bounds": (0, 50)}
W: dict[str, Any] = {"bounds": (0, 7)}
BOUNDED = {"max_rows": 3, "max_rows_per_group": 2, "max_groups": 2}
QUESTIONS: dict[str, tuple[Callable[[], list[Any]], dict[str, Any]]] = {
    "count": (lambda: [tr.count()], {"max_rows": 3}),
    "shares": (lambda: [tr.proportion("v > 20", by="g"), tr.count(where="w > 3")], BOUNDED),
    "two shares": (lambda: [tr.proportion("v > 20"), tr.proportion("w > 3")], {"max_rows": 1}),
    "mean": (lambda: [tr.mean("v", by="g", **V)], {"max_rows": 2}),
    "histogram": (lambda: [tr.count(), tr.histogram("v", edges=[0, 25])], {"max_rows": 2}),
    "two divisions": (lambda: [tr.count(by="g"), tr.count(by="w")], {"max_rows": 2}),
    "other": (lambda: [tr.count(by="w"), tr.suppressed_count(by="w")], {"max_rows": 3}),
    "top": (lambda: [tr.top_k(2, by="g"), tr.mode("g"), tr.count_distinct("v")], {"max_rows": 2}),
    "quantiles": (lambda: tr.quantiles("v", [0.25, 0.75], bounds=(0, 50)), {"max_rows": 2}),
    "median": (lambda: [tr.median("v", **V)], {"max_rows": 3}),
    "median by group": (lambda: [tr.median("v", by="g", keys=["a", "b"], **V)], {"max_rows": 2}),
    "quantiles by group": (
        lambda: tr.quantiles("v", [0.25, 0.75], by="g", keys=["a", "b"], **V),
        {"max_rows": 2},
    ),
    "extremes": (lambda: [tr.minimum("v", **V), tr.maximum("v", **V)], {"max_rows": 2}),
    "ninth tenth": (lambda: [tr.quantile("v", 0.9, **V)], {"max_rows": 2}),
    "two medians": (lambda: [tr.median("v", **V), tr.median("w", **W)], {"max_rows": 1}),
    "box": (lambda: [tr.sum("v", **V), tr.sum("w", **W), tr.sum("p", bounds=(0, 100))], {"max_rows": 1}),
    "ratio": (lambda: [tr.ratio("v", "w", bounds=(0, 50), denominator_bounds=(0, 7), by="g")], {"max_rows": 2}),
    "regression": (lambda: [tr.regression("v", on="w", bounds=(0, 50), on_bounds=(0, 7))], {"max_rows": 1}),
    "deviation": (lambda: [tr.standard_deviation("v", **V)], {"max_rows": 2}),
    "costs": (lambda: [tr.sum("v", **V)], {"max_rows": 1, "bias_check": "0.05"}),
    "costs of two": (lambda: [tr.sum("v", by="g", keys=["a", "b"], **V)], {"max_rows": 2, "bias_check": "0.1"}),
    "costs of a mean": (
        lambda: [tr.mean("v", bounds=(10, 50)), tr.sum("v", **V)],
        {"max_rows": 1, "bias_check": "0.1"},
    ),
    "costs of a ratio": (
        lambda: [tr.ratio("v", "w", bounds=(-10, 50), denominator_bounds=(1, 7))],
        {"max_rows": 1, "bias_check": "0.1"},
    ),
    "costs of a deviation": (lambda: [tr.standard_deviation("v", **V)], {"max_rows": 1, "bias_check": "0.1"}),
    "pure": (lambda: [tr.count(), tr.sum("w", bounds=(0, 9))], {"max_rows": 2, "delta": 0}),
}  # fmt: skip


@cache
def result(name: str, epsilon: str = "0.6931471805599453") -> str:
    """A release with its answers, as text."""
    questions, asked = QUESTIONS[name]
    asked = {"delta": "1e-8", "bias_check": 0, **asked}
    budget, costs = tr.Budget(epsilon=epsilon, delta=asked.pop("delta")), asked.pop("bias_check")
    session = tr.Session(TABLE, privacy_unit="p", budget=budget, **asked)
    return session.plan(questions(), bias_check=costs).release().to_json()


def result_of_version_3(name: str) -> str:
    """The release, each mechanism of its certificate with its own table."""
    return json.dumps({**json.loads(result(name)), "certificate": real(name)})


def real(name: str, epsilon: str = "0.6931471805599453") -> Data:
    """Its certificate, each mechanism with its own table."""
    return of_version_3(json.loads(result(name, epsilon))["certificate"])


# Numbers


def exact(value: float) -> str:
    return str(Decimal(value))


def upper_ends(data: Data) -> dict[str, float] | None:
    """What the verifier finds for the numbers of a certificate, by the start of a line; None where words refute it."""
    found = {}
    for claim in check_document(json.dumps(data)):
        number = claim.name.startswith(("epsilon:", "epsilon is", "total_variation:", "profile", "tradeoff", "budget"))
        if claim.verdict == REFUTED and not number:
            return None
        ends = re.match(r"in \[\S+, (\S+)\]", claim.finding)
        if ends:
            found[claim.name.split(":")[0]] = float(ends[1])
    return found


def on_points(data: Data, points: list[float]) -> tuple[Data, dict[str, float] | None]:
    changed = copy.deepcopy(data)
    changed["profile"] = {"epsilon": points, "delta": [1.0] * len(points)}
    return changed, upper_ends(changed)


def least_epsilon(data: Data) -> float | None:
    """The least ε that follows from the mechanisms, from above to a thousandth; None where words refute them."""
    low, high = 0.0, 4 * float(data["epsilon"])
    for _ in range(2):
        points = [low + (high - low) * k / 100 for k in range(101)]
        _, found = on_points(data, points)
        if found is None:
            return None
        fine = [k for k in range(101) if found.get(f"profile.delta[{k}]", 1.0) <= data["delta"]]
        if not fine:
            return high
        low, high = points[max(fine[0] - 1, 0)], points[fine[0]]
    return high


def restated(data: Data) -> Data:
    """The same mechanisms, with the numbers that the verifier finds for them: or halved ones, where words refute it."""
    epsilon = least_epsilon(data)
    if epsilon is None:
        return rescaled(data, 0.5)
    epsilon = math.nextafter(epsilon, math.inf)
    points = [epsilon * k / 20 for k in range(25)]
    changed, found = on_points(data, points)
    found = found or {}

    def above(name: str) -> float:
        return min(1.0, found.get(name, 1.0) * (1 + 1e-12))

    changed |= {"epsilon": epsilon, "epsilon_exact": exact(epsilon)}
    variation = above("profile.delta[0]")
    changed |= {"total_variation": variation, "total_variation_exact": exact(variation)}
    changed["attack_success"] = math.nextafter((1 + variation) / 2, 1)
    told = [claim.finding for claim in check_document(json.dumps(changed)) if claim.name == "attack_success"]
    changed["attack_success"] = float(told[0].removeprefix("= ").removeprefix("should be ")) if told else 1.0
    changed["profile"]["delta"] = [above(f"profile.delta[{k}]") for k in range(25)]
    rates = changed["tradeoff"]["false_positive_rate"]
    changed["tradeoff"]["true_positive_rate"] = [above(f"tradeoff.true_positive_rate[{k}]") for k in range(len(rates))]
    changed["budget"]["points"] = [[exact(epsilon), changed["budget"]["points"][0][1]]]
    return changed


def rescaled(data: Data, part: float) -> Data:
    """Every number of the promise times ``part``, with all that is implied by it."""
    changed = copy.deepcopy(data)
    epsilon, variation = data["epsilon"] * part, data["total_variation"] * part
    changed |= {"epsilon": epsilon, "epsilon_exact": exact(epsilon)}
    changed |= {"total_variation": variation, "total_variation_exact": exact(variation)}
    changed["attack_success"] = (1 + variation) / 2
    changed["profile"]["epsilon"] = [one * part for one in data["profile"]["epsilon"]]
    changed["profile"]["delta"] = [min(variation, one) for one in data["profile"]["delta"]]
    changed["profile"]["delta"][0] = variation
    rates = data["tradeoff"]
    pairs = zip(rates["false_positive_rate"], rates["true_positive_rate"], strict=True)
    changed["tradeoff"]["true_positive_rate"] = [false + (true - false) * part for false, true in pairs]
    changed["budget"]["points"] = [[exact(epsilon), data["budget"]["points"][0][1]]]
    return changed


NUMBERS = ("epsilon", "epsilon_exact", "delta", "delta_exact", "total_variation", "total_variation_exact")
PROMISE = (*NUMBERS, "attack_success", "budget", "budget_fraction", "profile", "tradeoff")


def promise_of(other: Data, data: Data, keys: tuple[str, ...] = PROMISE) -> Data:
    return {**copy.deepcopy(data), **{key: other[key] for key in keys}}


def numbers(name: str) -> Iterator[tuple[str, Callable[[], Data]]]:
    """The mechanisms as they ran, and a smaller promise."""
    yield "every number halved", lambda: rescaled(real(name), 0.5)
    yield "every number a twentieth smaller", lambda: rescaled(real(name), 0.95)
    yield "the promise of half the epsilon", lambda: promise_of(real(name, "0.35"), real(name))
    yield "the noise of twice the epsilon", lambda: promise_of(real(name), real(name, "1.4"))
    yield "a curve of half the epsilon", lambda: promise_of(real(name, "0.35"), real(name), ("profile", "tradeoff"))

    def certain_failure() -> Data:
        changed = real(name)
        changed["budget"]["delta"] = "1e-30"
        changed["budget"]["points"] = [[str(changed["epsilon"]), "1e-30"]]
        changed |= {"delta": 1e-30, "delta_exact": exact(1e-30)}
        return changed

    if any(one["table"]["tail"] is None for one in real(name)["mechanisms"]):
        yield "nothing fails for certain", certain_failure


# Tables


def table_ends(table: Data) -> None:
    """Cut off where a fiftieth of it is left: what was there is in the middle."""
    half = [int(one) for one in table["half"]][: max(3, len(table["half"]) // 8)]
    table |= {"half": [str(one) for one in half], "tail": None, "centre": str(2**128 - 2 * sum(half))}


def table_with_a_hole(table: Data) -> None:
    half = [int(one) for one in table["half"]]
    table["centre"] = str(int(table["centre"]) + 2 * half[1])
    table["half"][1] = "0"


def table_of_a_comb(table: Data) -> None:
    """Odd places give half of their weight to the even ones before: every step tells more."""
    half = [int(one) for one in table["half"]]
    for place in range(1, len(half) - 1, 2):
        half[place - 1], half[place] = half[place - 1] + half[place] // 2, half[place] - half[place] // 2
    table["half"] = [str(one) for one in half]


def table_with_a_peak(table: Data) -> None:
    half = [int(one) * 3 // 4 for one in table["half"]]
    moved = 2 * (sum(int(one) for one in table["half"]) - sum(half))
    table |= {"half": [str(one) for one in half], "centre": str(int(table["centre"]) + moved)}


def table_too_heavy(table: Data) -> None:
    """All weights doubled but the sum: a curve of laws that are no laws."""
    table["half"] = [str(2 * int(one)) for one in table["half"]]


def table_whose_tail_falls(table: Data) -> None:
    """A tail whose turns fall by a square of what they did."""
    tail = table["tail"]
    tail["escape"] = str(int(tail["escape"]) ** 2 >> 128)


def table_whose_tail_turns(table: Data) -> None:
    tail = table["tail"]
    tail["block"] = tail["block"][::-1]


TABLES: dict[str, Callable[[Data], None]] = {
    "that ends": table_ends,
    "with a hole": table_with_a_hole,
    "of a comb": table_of_a_comb,
    "with a peak": table_with_a_peak,
    "that is too heavy": table_too_heavy,
    "whose tail falls": table_whose_tail_falls,
    "whose tail turns": table_whose_tail_turns,
}


def tables(name: str) -> Iterator[tuple[str, Callable[[], Data]]]:
    """Noise that tells more, under the old promise."""
    for what, spoil in TABLES.items():

        def made(spoil: Callable[[Data], None] = spoil) -> Data:
            changed = real(name)
            for one in changed["mechanisms"]:
                if one["table"]["tail"] is not None or "tail" not in spoil.__name__.replace("table_", ""):
                    spoil(one["table"])
            return changed

        endless = any(one["table"]["tail"] is not None for one in real(name)["mechanisms"])
        if endless or not what.startswith("whose tail"):
            yield f"a table {what}", made


# Structure: the noise as it ran, in words that let it look like less


def every(change: Callable[[Data], Any], picked: Callable[[Data], bool] = lambda one: True) -> Callable[[Data], None]:
    def changed(data: Data) -> None:
        for one in data["mechanisms"]:
            if picked(one):
                change(one)

    return changed


def counts(one: Data) -> bool:
    return bool(one["unit"] == "1" and one["sensitivity_per_row"] == "1")


def counted_in_halves(data: Data) -> None:
    """A count in halves whose rows move it by one half: by half of what they do."""
    for one in data["mechanisms"]:
        if counts(one):
            one |= {"unit": "0.5"}


def counted_in_twos(data: Data) -> None:
    for one in data["mechanisms"]:
        if counts(one):
            one |= {"unit": "2"}


def one_label(data: Data) -> None:
    """All mechanisms under one label, with so many groups, and whatever the first has."""
    first = data["mechanisms"][0]
    for one in data["mechanisms"]:
        kept = (
            "together",
            "rows",
            "max_rows_per_group",
            "by",
            "where",
            "unit",
            "sensitivity_per_row",
            "factor",
            "table",
        )
        one |= {key: copy.deepcopy(first[key]) for key in (*kept, "table_steps_per_row", "family", "choice", "box")}
        one |= {"exclusive": "one of them", "groups": len(data["mechanisms"])}


def one_label_each(data: Data) -> None:
    """Neighboring mechanisms in pairs, that each row enters one of."""
    for place, one in enumerate(data["mechanisms"]):
        first = data["mechanisms"][place // 2 * 2]
        kept = (
            "together",
            "rows",
            "max_rows_per_group",
            "by",
            "where",
            "unit",
            "sensitivity_per_row",
            "factor",
            "table",
        )
        one |= {key: copy.deepcopy(first[key]) for key in (*kept, "table_steps_per_row")}
        one |= {"exclusive": f"pair {place // 2}", "groups": 2}


def ones_and_zeros_of_three(data: Data) -> None:
    """All as the ones and zeros of one column, of which there are two."""
    one_label(data)
    every(lambda one: one.update(statistic="ones or zeros", column="v > 20"))(data)


def ends_that_overlap(data: Data) -> None:
    """Below one place and above a lower one: most rows are in both."""
    one_label(data)
    columns = ["case(v < 40.0, 1, None)", "case(v > 10.0, 1, None)", "case(v is None, 1, None)"]
    for place, one in enumerate(data["mechanisms"]):
        side = ("below", "above", "missing")[place % 3]
        one |= {"column": columns[place % 3], "statistic": f"rows, {side} of v, over all groups"}


def ends_of_two_columns(data: Data) -> None:
    one_label(data)
    for place, one in enumerate(data["mechanisms"]):
        side = ("below", "above")[place % 2]
        column = f"case(v {'<' if side == 'below' else '>'} 0.0, 1, None)"
        one |= {"column": column.replace("v", "vw"[place % 2]), "statistic": f"rows, {side} of v, over all groups"}


def ends_twice(data: Data) -> None:
    one_label(data)
    every(lambda one: one.update(column="case(v < 0.0, 1, None)", statistic="rows, below of v, over all groups"))(data)


def one_unit(data: Data) -> None:
    """All mechanisms shifted by the same rows, of the first one's bounds."""
    first = data["mechanisms"][0]
    every(lambda one: one.update({key: first[key] for key in ("together", "rows", "max_rows_per_group", "groups")}))(
        data
    )


def one_unit_in_words(data: Data) -> None:
    one_unit(data)
    every(lambda one: one.update({key: data["mechanisms"][0][key] for key in ("by", "where")}))(data)


def a_unit_split(data: Data) -> None:
    """A number ``together`` for each mechanism, and of all but the first one row."""
    for place, one in enumerate(data["mechanisms"]):
        one["together"] = place + 1
        if place:
            one |= {"rows": 1, "max_rows_per_group": 1, "groups": 1}


def a_row_less(data: Data) -> None:
    """The last mechanism of every unit counts one row less."""
    every(lambda one: one.update(rows=max(1, one["rows"] - 1)))({"mechanisms": data["mechanisms"][-1:]})


def one_row(data: Data) -> None:
    """Quantiles by group have no bounds of their own: all rows of a person count, however they fall into cells."""
    every(lambda one: one.update(rows=1, max_rows_per_group=1, groups=1))(data)


def one_group_of_one_row(data: Data) -> None:
    """One row in one group, while a group may hold as many as before."""
    every(lambda one: one.update(rows=1, groups=1))(data)


def one_row_of_more(data: Data) -> None:
    """A person has one row, where mechanisms count more of them."""
    data["neighbors"] |= {"max_rows": 1, "max_rows_per_group": 1, "max_groups": 1}


def more_rows_than_counted(data: Data) -> None:
    """A person has ten times as many rows as the mechanisms count."""
    for key in ("max_rows", "max_rows_per_group", "max_groups"):
        data["neighbors"][key] *= 10


def half_the_steps(data: Data) -> None:
    every(lambda one: one.update(table_steps_per_row=-(-one["table_steps_per_row"] // 2)))(data)


def half_the_factor(data: Data) -> None:
    every(lambda one: one.update(factor=str(max(1, int(one["factor"]) // 2))))(data)


def over_all_groups(data: Data) -> None:
    """A number over all groups, moved by one row of a person who has several; its noise is of as many steps."""
    every(lambda one: one.update(sensitivity_per_row="1", factor="1"), summed)(data)


def summed(one: Data) -> bool:
    return "over all groups" in one["statistic"] or "not shown" in one["statistic"]


def version_of_labels(data: Data) -> None:
    """Version 1, that says of no mechanism which rows shift it, with one label for all."""
    one_label(data)
    data["version"] = 1
    every(lambda one: one.update(together=None))(data)


def version_of_units(data: Data) -> None:
    one_unit(data)
    data["version"] = 1


def box_of_fewer(data: Data) -> None:
    every(lambda one: one.update(box=1, exclusive=None))(data)


def box_of_all(data: Data) -> None:
    """Noise that was drawn one by one, as a point of a box; the tables are the first one's."""
    first = data["mechanisms"][0]
    for one in data["mechanisms"]:
        one |= {"box": len(data["mechanisms"]), "table": first["table"], "together": first["together"]}


def box_of_two_widths(data: Data) -> None:
    for place, one in enumerate(data["mechanisms"]):
        one |= {"table_steps_per_row": one["table_steps_per_row"] if place else 1}


def box_in_parts(data: Data) -> None:
    """Each of a box by itself: one is all that is drawn."""
    for place, one in enumerate(data["mechanisms"]):
        one |= {"box": 1, "together": place + 1}


def box_that_excludes(data: Data) -> None:
    every(lambda one: one.update(exclusive="one side", groups=len(data["mechanisms"])))(data)


def choices(data: Data) -> list[Data]:
    return [one for one in data["mechanisms"] if one["choice"] is not None]


def a_root_of_half_the_noise(data: Data) -> None:
    for one in choices(data):
        one["choice"]["root"] = str(int(one["choice"]["root"]) ** 2 >> 128)


def another_share_of_rows(data: Data) -> None:
    """Nine tenths are below it: a row moves the distance by 0.9, not by one half."""
    for one in choices(data):
        one["choice"]["below"] = str(round(0.9 / float(one["unit"])))


def another_target(data: Data) -> None:
    for one in choices(data):
        if one["choice"]["target"]:
            one["choice"]["target"] = str(int(one["choice"]["target"]) // 4)


def one_choice_for_all(data: Data) -> None:
    data["mechanisms"] = data["mechanisms"][:1]


def the_same_choice_twice(data: Data) -> None:
    every(lambda one: one["choice"].update(target=None), lambda one: one["choice"] is not None)(data)


def a_choice_under_a_label(data: Data) -> None:
    every(lambda one: one.update(exclusive="chosen", groups=2), lambda one: one["choice"] is not None)(data)


def a_choice_that_moves_less(data: Data) -> None:
    for one in choices(data):
        whole = int(one["sensitivity_per_row"]) // 2
        one |= {"sensitivity_per_row": str(whole), "factor": str(-(-whole // one["table_steps_per_row"]))}


def products_that_move_less(data: Data) -> None:
    """Noise a hundredth as wide on products and squares than their factors allow."""
    for one in data["mechanisms"]:
        if one["statistic"].startswith(POWERS):
            whole = int(one["sensitivity_per_row"]) // 100
            one |= {"sensitivity_per_row": str(whole), "factor": str(-(-whole // one["table_steps_per_row"]))}


def sums_of_half_the_range(data: Data) -> None:
    """Noise half as wide on sums, beside counts of what lies beyond ends that are as far apart as before."""
    for one in data["mechanisms"]:
        if one["statistic"] == "sum" or one["statistic"].startswith("sum of "):
            whole = int(one["sensitivity_per_row"]) // 2
            one |= {"sensitivity_per_row": str(whole), "factor": str(-(-whole // one["table_steps_per_row"]))}


def parts_without_a_label(data: Data) -> None:
    every(lambda one: one.update(exclusive=None, groups=1), lambda one: one["exclusive"] is not None)(data)


def parts_in_one_group(data: Data) -> None:
    every(lambda one: one.update(groups=1), lambda one: one["exclusive"] is not None)(data)


def many_parts(data: Data) -> None:
    """A set of one part, twice: another label each."""
    for place, one in enumerate(data["mechanisms"]):
        if one["exclusive"] is not None:
            one |= {"exclusive": f"part {place}", "groups": max(1, one["groups"] // 2)}


MECHANISMS = 2
"""The ones and the zeros of one column: no more mechanisms exclude each other so."""
POWERS = "sum of products of ", "sum of squares of "
Alteration = Callable[[Data], None]
SEVERAL: tuple[Alteration, ...] = (
    one_label,
    one_label_each,
    ends_that_overlap,
    ends_of_two_columns,
    ends_twice,
    one_unit,
    version_of_labels,
    version_of_units,
    box_of_all,
    a_row_less,
)
BOXED: tuple[Alteration, ...] = (box_of_fewer, box_in_parts, box_that_excludes, box_of_two_widths)
CHOSEN: tuple[Alteration, ...] = (
    a_root_of_half_the_noise,
    another_share_of_rows,
    another_target,
    one_choice_for_all,
    the_same_choice_twice,
    a_choice_under_a_label,
    a_choice_that_moves_less,
)


def altering(data: Data) -> Iterator[Alteration]:
    """The alterations that make a forgery of this certificate."""
    ran, rows = data["mechanisms"], data["neighbors"]["max_rows"]
    wanted: list[tuple[bool, tuple[Alteration, ...]]] = [
        (True, (half_the_factor,)),
        (any(one["table_steps_per_row"] > 1 for one in ran), (half_the_steps,)),
        (rows > 1, (one_row_of_more, one_group_of_one_row)),
        (any(counts(one) for one in ran), (counted_in_halves, counted_in_twos)),
        (rows > 1 and any(summed(one) for one in ran), (over_all_groups,)),
        (len(ran) > 1, SEVERAL),
        (len(ran) > MECHANISMS, (ones_and_zeros_of_three,)),
        (len(ran) > 1 and rows > 1 and len({one["together"] for one in ran}) == 1, (a_unit_split,)),
        (any(one["box"] for one in ran), BOXED),
        (bool(choices(data)), CHOSEN),
        (any("cell(" in one["by"][-1] for one in ran if len(one["by"]) > 1), (one_row,)),
        (any(one["exclusive"] for one in ran), (parts_without_a_label, parts_in_one_group, many_parts)),
        (any(one["statistic"].startswith("rows, below") for one in ran), (sums_of_half_the_range,)),
        (any(one["statistic"].startswith(POWERS) for one in ran), (products_that_move_less,)),
    ]
    for fits, alterations in wanted:
        yield from alterations if fits else ()


CHANGES_THE_NOISE = (
    "half_the_factor",
    "half_the_steps",
    "over_all_groups",
    "products_that_move_less",
    "sums_of_half_the_range",
)
"""The promise stays, and what ran is noise half as wide: any verdict but confirmed will do, whatever is stated."""


def structures(name: str) -> Iterator[tuple[str, Callable[[], Data | None]]]:
    """Each with the numbers that follow from it; None where nothing is altered, or no number becomes smaller."""
    for alter in altering(real(name)):

        def made(alter: Alteration = alter) -> Data | None:
            before, changed = real(name), real(name)
            alter(changed)
            if changed == before:
                return None
            after = restated(changed)
            less = min(after[key] / before[key] for key in ("epsilon", "total_variation"))
            return after if less < 0.95 or alter.__name__ in CHANGES_THE_NOISE else None

        yield alter.__name__.replace("_", " "), made


def written_or_none(made: Callable[[], Data | None]) -> Callable[[], str]:
    def text() -> str:
        data = made()
        return "" if data is None else json.dumps(data)

    return text


# Noise certificates

NOISES: dict[str, dict[str, Any]] = {
    "a theorem": {},
    "sensitivity 3": {"sensitivity": 3},
    "small epsilon": {"budget": tr.Budget(epsilon="0.2", delta="1e-4"), "sensitivity": 2},
    "large epsilon": {"budget": tr.Budget(epsilon=5, delta="1e-8"), "sensitivity": 4},
    "squared": {"cost": "squared", "sensitivity": 2},
    "any shape": {"sensitivity": 2, "shape": "any"},
    "endless": {"budget": tr.Budget(epsilon=1, delta=0), "sensitivity": 2},
    "four releases": {"releases": 4, "sensitivity": 2},
    "bounded variation": {"budget": tr.Budget(epsilon=1, delta="1e-6", total_variation="0.3"), "sensitivity": 2},
}


@cache
def noise_text(name: str, **other: Any) -> str:
    asked = {"budget": tr.Budget(epsilon=1, delta="1e-6"), **NOISES[name], **other}
    return to_json_text(tr.least_noise(asked.pop("budget"), **asked).certificate.to_document())


def noise(name: str, **other: Any) -> Data:
    data: Data = json.loads(noise_text(name, **other))
    return data


ERRORS = ("lower", "upper", "gap", "mean_absolute_error", "mean_squared_error", "worst_error", "shape_lower")


def gap_of(data: Data) -> None:
    data["gap"] = data["upper"] / data["lower"] - 1 if data["lower"] else None


def guarantee_halved(data: Data) -> None:
    data["guarantee"]["epsilon"] /= 2
    data["realised"] = [[one[0] / 2, one[1], one[2]] for one in data["realised"]]


def delta_halved(data: Data) -> None:
    data["guarantee"]["delta"] /= 2
    data["realised"] = [[one[0], one[1] / 2, one[2] / 2] for one in data["realised"]]


def variation_halved(data: Data) -> None:
    data["guarantee"]["total_variation"] /= 2


def nothing_realized(data: Data) -> None:
    """The one promise that is left is what no point of the curve says."""
    data["realised"] = []
    data["guarantee"] |= {"epsilon": data["guarantee"]["epsilon"] / 2}


def lower_doubled(data: Data) -> None:
    data |= {"lower": data["lower"] * 2, "upper": data["upper"] * 2}
    gap_of(data)


def lower_is_upper(data: Data) -> None:
    """As if nothing was left to be found: the bound is as high as what was found."""
    data["lower"] = data["upper"] if data["upper"] > data["lower"] * (1 + 1e-6) else data["upper"] * 1.01
    data["upper"] = max(data["upper"], data["lower"])
    gap_of(data)


def errors_halved(data: Data) -> None:
    for key in ERRORS:
        if data[key] is not None and key != "gap":
            data[key] /= 2


def sensitivity_doubled(data: Data) -> None:
    data["sensitivity"] *= 2


def sensitivity_of_a_step_and_a_half(data: Data) -> None:
    data["sensitivity"] += 0.5


def releases_doubled(data: Data) -> None:
    data["releases"] *= 2


def releases_many(data: Data) -> None:
    data["releases"] = 1000


def table_of_more(data: Data) -> None:
    """The table of noise for twice the epsilon, with its own errors, under the old promise."""
    budget = tr.Budget(epsilon=data["guarantee"]["epsilon"] * 2, delta=data["guarantee"]["delta"])
    found = tr.least_noise(budget, sensitivity=int(data["sensitivity"]), cost=data["cost"]).certificate
    other = json.loads(to_json_text(found.to_document()))
    data |= {key: other[key] for key in (*ERRORS, "argument", "table")}


def multipliers(data: Data) -> list[Data]:
    found: list[Data] = data["argument"]["numbers"].get("multipliers", [])
    return found


def raised(data: Data, factor: float = 2.0) -> None:
    """The bound, as high as what was altered would make it; what was found costs no less."""
    data["lower"] *= factor
    data["upper"] = max(data["upper"], data["lower"])
    gap_of(data)


def values_above_the_cap(data: Data) -> None:
    for one in multipliers(data):
        one["values"] = [2 * value for value in one["values"]]
    raised(data)


def caps_of_nothing(data: Data) -> None:
    for one in multipliers(data):
        one["cap"] = 0.0
    raised(data, 1.001)


def values_below_nothing(data: Data) -> None:
    for one in multipliers(data):
        one["values"] = [-value for value in one["values"]]
    raised(data)


def costs_doubled(data: Data) -> None:
    """Twice the cost of every error, twice every multiplier: a proof, of another cost."""
    numbers = data["argument"]["numbers"]
    numbers["costs"] = [2 * one for one in numbers["costs"]]
    for one in multipliers(data):
        one |= {"cap": 2 * one["cap"], "left": 2 * one["left"], "values": [2 * value for value in one["values"]]}
    raised(data, 1.999999)


def costs_doubled_and_paid(data: Data) -> None:
    costs_doubled(data)
    data["upper"] = data["lower"] * (1 + 1e-6)
    gap_of(data)


def shifts_beyond(data: Data) -> None:
    """A promise for shifts that nobody makes proves a higher bound."""
    for one in multipliers(data):
        one["shift"] += int(data["sensitivity"])
    raised(data)


def epsilon_in_proof_halved(data: Data) -> None:
    for one in multipliers(data):
        one["epsilon"] /= 2
    raised(data)


def delta_in_proof_halved(data: Data) -> None:
    for one in multipliers(data):
        one["delta"] /= 2
    raised(data, 1.01)


def proof_and_promise_halved(data: Data) -> None:
    """Another promise in the proof, and in what was realized."""
    epsilon_in_proof_halved(data)
    guarantee_halved(data)


def start_moved(data: Data) -> None:
    for one in multipliers(data):
        one["start"] += 1
    raised(data, 1.01)


def left_behind(data: Data) -> None:
    for one in multipliers(data):
        one["left"] = one["cap"]
    raised(data, 1.01)


def a_theorem_instead(data: Data) -> None:
    data["argument"] |= {"kind": "theorem", "numbers": {}}
    raised(data)


def a_single_release(data: Data) -> None:
    data["argument"] |= {"kind": "single release"}
    raised(data)


def nothing_in_the_proof(data: Data) -> None:
    data["argument"]["numbers"] = {**data["argument"]["numbers"], "multipliers": []}
    raised(data)


def another_cost(data: Data) -> None:
    """Squared instead of absolute, or the other way round, with the bound of what was proven."""
    data["cost"] = "squared" if data["cost"] == "absolute" else "absolute"
    data["upper"] = data["mean_squared_error" if data["cost"] == "squared" else "mean_absolute_error"]
    data["lower"] = data["upper"] / (1 + 1e-7)
    gap_of(data)


def noise_table(change: Callable[[Data], None]) -> Callable[[Data], None]:
    def changed(data: Data) -> None:
        change(data["table"])

    changed.__name__ = change.__name__
    return changed


def no_table(data: Data) -> None:
    data |= {"version": 1, "table": None}
    guarantee_halved(data)


NOISE_CHANGES: tuple[Callable[[Data], None], ...] = (
    guarantee_halved,
    delta_halved,
    variation_halved,
    nothing_realized,
    lower_doubled,
    lower_is_upper,
    errors_halved,
    sensitivity_doubled,
    sensitivity_of_a_step_and_a_half,
    releases_doubled,
    releases_many,
    table_of_more,
    a_theorem_instead,
    a_single_release,
    another_cost,
    no_table,
    noise_table(table_ends),
    noise_table(table_with_a_hole),
    noise_table(table_with_a_peak),
    noise_table(table_of_a_comb),
)
PROOF_CHANGES: tuple[Callable[[Data], None], ...] = (
    values_above_the_cap,
    caps_of_nothing,
    values_below_nothing,
    costs_doubled,
    costs_doubled_and_paid,
    shifts_beyond,
    epsilon_in_proof_halved,
    delta_in_proof_halved,
    proof_and_promise_halved,
    start_moved,
    left_behind,
    nothing_in_the_proof,
)


BOUND_OF_ONE = (lower_doubled, lower_is_upper, a_theorem_instead, a_single_release, another_cost)
"""Altered lower bounds: for several releases they are said not to be checked."""


def noise_changes(name: str) -> Iterator[tuple[str, Callable[[], Data | None]]]:
    data = noise(name)
    endless = data["guarantee"]["delta"] == 0
    for alter in (*NOISE_CHANGES, *(PROOF_CHANGES if multipliers(data) else ())):
        if endless and alter in (delta_halved, delta_in_proof_halved):
            continue
        if data["releases"] > 1 and alter in BOUND_OF_ONE:
            continue

        def made(alter: Callable[[Data], None] = alter) -> Data | None:
            changed = noise(name)
            alter(changed)
            return None if changed == noise(name) else changed

        yield alter.__name__.replace("_", " "), made


# Accounts: steps as they were, with what an account of fewer, or of quieter ones, says of them

GAUSSIAN = '[[step]]\nmechanism = "gaussian"\nscale = {}\ncount = {}\n'
LAPLACE = '[[step]]\nmechanism = "laplace"\nscale = {}\ncount = {}\n'
SAMPLED = '[[step]]\nmechanism = "gaussian"\nscale = {}\npoisson_rate = {}\ncount = {}\n'
PURE = '[[step]]\nmechanism = "approx_dp"\nepsilon = {}\ndelta = {}\n'
ERASED = '[[step]]\nmechanism = "discrete_laplace"\nscale = {}\nsensitivity = {}\nerase = {}\n'
ONE = GAUSSIAN.format(4, 1)
ERASING = ERASED.format(4, 2, 0.25) + ONE
ACCOUNTS: dict[str, tuple[str, str]] = {
    "half as many Gaussian steps": (GAUSSIAN.format(2, 4), GAUSSIAN.format(2, 2)),
    "Gaussian steps of twice the scale": (GAUSSIAN.format(2, 4), GAUSSIAN.format(4, 4)),
    "one step of many": (GAUSSIAN.format(2, 16), GAUSSIAN.format(2, 1)),
    "Laplace left out": (GAUSSIAN.format(2, 3) + LAPLACE.format(4, 1), GAUSSIAN.format(2, 3)),
    "Laplace of twice the scale": (ONE + LAPLACE.format(2, 2), ONE + LAPLACE.format(4, 2)),
    "half the rate": (SAMPLED.format(1, 0.1, 4), SAMPLED.format(1, 0.05, 4)),
    "half as many sampled steps": (SAMPLED.format(1, 0.1, 4), SAMPLED.format(1, 0.1, 2)),
    "half the epsilon of a step": (PURE.format(0.5, 1e-7) + ONE, PURE.format(0.25, 1e-7) + ONE),
    "no delta of a step": (PURE.format(0.5, 1e-3) + ONE, PURE.format(0.5, 1e-7) + ONE),
    "half the sensitivity": (ERASING, ERASED.format(4, 1, 0.25) + ONE),
    "erased more often": (ERASING, ERASED.format(4, 2, 0.75) + ONE),
}


@cache
def account(steps: str) -> str:
    """What ``tightrope account --json`` prints of steps."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.toml"
        path.write_text(steps, encoding="utf-8")
        asked = ["account", str(path), "--delta", "1e-3", "--epsilon", "0.5", "--json"]
        return CliRunner().invoke(app, asked).stdout


@cache
def training(noise: float, steps: int, batch: int) -> str:
    asked = f"dpsgd --examples 1000 --batch {batch} --delta 1e-3 --noise {noise} --steps {steps} --no-compare --json"
    return CliRunner().invoke(app, asked.split()).stdout


ACCOUNTED = "total_variation", "attack_success", "attack", "delta_at_epsilon", "epsilon_at_delta"
TOLD = "epsilon", "lower", "upper", "relative_width"
TRAININGS = {"half the batch": (1.5, 4, 50), "twice the noise": (3.0, 4, 100), "half of the steps": (1.5, 2, 100)}


def account_changes() -> Iterator[tuple[str, Callable[[], Data | None]]]:
    for what, (ran, told) in ACCOUNTS.items():
        for keys in (
            ACCOUNTED,
            ("delta_at_epsilon", "epsilon_at_delta"),
            ("total_variation", "attack_success", "attack"),
        ):

            def made(ran: str = ran, told: str = told, keys: tuple[str, ...] = keys) -> Data:
                other = json.loads(account(told))
                return {**json.loads(account(ran)), **{key: other[key] for key in keys}}

            yield f"{what}: {len(keys)} of {len(ACCOUNTED)}", made
    for what, told_of in TRAININGS.items():

        def trained(told_of: tuple[float, int, int] = told_of) -> Data:
            data, other = json.loads(training(1.5, 4, 100)), json.loads(training(*told_of))
            return {**data, **{key: other[key] for key in (*ACCOUNTED, *TOLD) if key in data}}

        def rate_too(told_of: tuple[float, int, int] = told_of) -> Data:
            """The sampling rate of the other one, too: beside the batch and the examples of this one."""
            data, other = json.loads(training(1.5, 4, 100)), json.loads(training(*told_of))
            kept = {key: data[key] for key in ("examples", "batch", "noise_multiplier", "steps") if key in data}
            return {**other, **kept}

        yield f"training, {what}", trained
        yield f"training, all but its setting, {what}", rate_too


# Ledgers, written anew from a place on: every hash fits


def written_anew(data: Data) -> Data:
    previous = data["entries"][0]["previous"]
    for place, entry in enumerate(data["entries"]):
        entry |= {"number": place + 1, "previous": previous}
        held = [canonical_text(entry[part]) if part in {"body", "state"} else entry[part] for part in HASHED_FIELDS]
        entry["hash"] = previous = sha256(canonical_text(held))
    return data


def spent_half(data: Data) -> None:
    for entry in data["entries"]:
        balance = entry["state"]["balances"].get("total")
        if balance:
            balance[0] = {"1/4": "1/8", "1/2": "1/4"}[balance[0]]


def charged(data: Data) -> list[Data]:
    return [entry for entry in data["entries"] if entry["kind"] == "charged"]


def nothing_kept(data: Data) -> None:
    for entry in charged(data):
        entry["body"]["kept"]["points"] = []


def kept_half(data: Data) -> None:
    """Half of what was charged, in every sum; the answers beside it still say what they took."""
    spent_half(data)
    for entry in charged(data):
        entry["body"]["kept"] = {"delta": "1.25E-7", "points": [["0.125", "1.25E-7"]]}


def kept_half_alone(data: Data) -> None:
    for entry in charged(data):
        entry["body"]["kept"] = {"delta": "1.25E-7", "points": [["0.125", "1.25E-7"]]}


def charged_once(data: Data) -> None:
    """The second charge is gone, its answers are not."""
    data["entries"].remove(charged(data)[1])
    last = data["entries"][-1]
    last["state"] |= {"balances": {"total": ["1/4", "0"]}, "releases": 1}


def one_release(data: Data) -> None:
    for entry in data["entries"]:
        entry["state"]["releases"] = min(1, entry["state"]["releases"])


def charged_twice_under_a_key(data: Data) -> None:
    first, second = charged(data)
    second["key"] = first["key"]
    spent = ["1/4", "0"]
    for entry in data["entries"][3:]:
        entry["state"] |= {"balances": {"total": spent}, "releases": 1}


def limit_doubled(data: Data) -> None:
    """A limit of twice the epsilon: but the sums are of the old one."""
    data["entries"][0]["body"]["limits"][0]["points"] = [["0.25", "0.000001"]]


def for_somebody_else(data: Data) -> None:
    """Charged for an audience whose limit there is not: the sums stay at nothing."""
    for entry in charged(data):
        entry["body"]["audience"] = "friends"
    for entry in data["entries"]:
        if entry["state"]["balances"]:
            entry["state"]["balances"]["total"] = ["0", "0"]


def another_kind(data: Data) -> None:
    for entry in charged(data):
        entry["kind"] = "note"
    for entry in data["entries"]:
        entry["state"] |= {"balances": {}, "releases": 0}


def balance_of_another_name(data: Data) -> None:
    for entry in data["entries"]:
        balances = entry["state"]["balances"]
        if balances:
            entry["state"]["balances"] = {"t\u043etal": balances["total"], "total": ["0", "0"]}


def negative_charge(data: Data) -> None:
    charged(data)[1]["body"]["kept"] = {"delta": "-2.5E-7", "points": [["-0.25", "-2.5E-7"]]}
    for entry in data["entries"][3:]:
        entry["state"] |= {"balances": {"total": ["0", "0"]}}


def a_later_dataset(data: Data) -> None:
    """The dataset registered again between two charges: its sums begin anew."""
    again = copy.deepcopy(data["entries"][0])
    again["time"] = data["entries"][2]["time"]
    data["entries"].insert(3, again)
    for entry in data["entries"][4:]:
        entry["state"] |= {"balances": {"total": ["1/4", "0"]}, "releases": 1}


LEDGER_CHANGES: tuple[Callable[[Data], None], ...] = (
    spent_half, nothing_kept, kept_half, kept_half_alone, charged_once, one_release, charged_twice_under_a_key,
    limit_doubled, for_somebody_else, another_kind, balance_of_another_name, negative_charge, a_later_dataset,
)  # fmt: skip

# Couplings


def groups_of_one_name(data: Data) -> None:
    data["group"]["names"] = [data["group"]["names"][0]] * len(data["groups"])


def fewer_names(data: Data) -> None:
    data["group"]["names"] = data["group"]["names"][:-1]


def fewer_cells_in_support(data: Data) -> None:
    data["support"]["axes"][0]["cells"] //= 2


def two_axes(data: Data) -> None:
    data["support"]["axes"] *= 2


def all_as_they_are(data: Data) -> None:
    """Every group writes what it has: whoever reads it learns the group."""
    for group in data["groups"]:
        group["tables"] = [{"outcomes": [k], "weights": [f"{2**128:x}"]} for k in range(len(data["target"]))]
        group["rows"] = list(range(len(data["target"])))


def rows_of_others(data: Data) -> None:
    for group in data["groups"]:
        group["rows"] = group["rows"][::-1]


def one_table_for_all(data: Data) -> None:
    for group in data["groups"]:
        group["rows"] = [0] * len(group["rows"])


def points_that_tell(data: Data) -> None:
    """A point that no row of a group has is written as itself; and then it has one."""
    for group in data["groups"]:
        group["law"][0] = "0"
        group["tables"].append({"outcomes": [0], "weights": [f"{2**128:x}"]})
        group["rows"][0] = len(group["tables"]) - 1


def tables_twice_as_heavy(data: Data) -> None:
    for group in data["groups"]:
        for table in group["tables"]:
            table["weights"] = [f"{2 * int(weight, 16):x}" for weight in table["weights"]]


def target_of_one_group(data: Data) -> None:
    data["target"] = data["groups"][-1]["law"]


COUPLING_CHANGES: tuple[Callable[[Data], None], ...] = (
    groups_of_one_name, fewer_names, fewer_cells_in_support, two_axes, all_as_they_are, rows_of_others,
    one_table_for_all, points_that_tell, tables_twice_as_heavy, target_of_one_group,
)  # fmt: skip

# Answers beside a certificate


def no_mechanism_for_an_answer(data: Data) -> None:
    """The first answer is served by nothing that was charged."""
    gone = data["certificate"]["mechanisms"][0]["answers"][0]
    ran = data["certificate"]["mechanisms"]
    data["certificate"]["mechanisms"] = [one for one in ran if gone not in one["answers"]]
    data["certificate"]["consistent"] = []
    data["certificate"] = restated(data["certificate"])


def promise_beside_halved(data: Data) -> None:
    data["certificate"] = rescaled(data["certificate"], 0.5)


def answers_of_another_name(data: Data) -> None:
    for one in data["certificate"]["mechanisms"]:
        one["answers"] = ["nothing"]


def other_variances(data: Data) -> None:
    """Answers that were made consistent, of half the noise: their intervals may be as short."""
    for one in data["certificate"]["consistent"]:
        one["variances"] = [str(Decimal(value) / 2) for value in one["variances"]]


def an_answer_moved(data: Data) -> None:
    """The first number of the first answer, a hundred higher: what else it must agree with stays."""
    rows = data["answers"][0]["rows"]
    for key in ("value", "lower", "upper"):
        rows[0][key] += 100


RESULT_CHANGES: tuple[Callable[[Data], None], ...] = (
    no_mechanism_for_an_answer, promise_beside_halved, answers_of_another_name, other_variances,
)  # fmt: skip


def changed_by(
    source: Callable[[], str], changes: tuple[Callable[[Data], None], ...], done: Callable[[Data], Data] = dict
) -> Iterator[tuple[str, Callable[[], Data | None]]]:
    for alter in changes:

        def made(alter: Callable[[Data], None] = alter) -> Data | None:
            data, before = json.loads(source()), json.loads(source())
            alter(data)
            return None if data == before else done(data)

        yield alter.__name__.replace("_", " "), made


def findings_text() -> str:
    study = Study("distribution", 1.0, categories=("yes", "no"))
    return to_json_text(Findings.from_counts(study, study.mechanism.tally_reports([0] * 700 + [1] * 300)).to_document())


def halved_findings() -> Iterator[tuple[str, Callable[[], Data | None]]]:
    """Every number that is called after a promise, halved in turn."""
    found = json.loads(findings_text())
    for place in leaves(found):
        name = next((step for step in reversed(place) if isinstance(step, str)), "")
        old = at(found, place)
        if isinstance(old, float) and name in (
            "epsilon",
            "delta",
            "total_variation",
            "attack_success",
            "lower",
            "upper",
        ):

            def made(place: Any = place) -> Data:
                data = json.loads(findings_text())
                at(data, place[:-1])[place[-1]] /= 2
                return dict(data)

            yield f"half of {'.'.join(map(str, place))}", made


def forgeries(
    questions: Iterable[str] = tuple(QUESTIONS), noises: Iterable[str] = tuple(NOISES), others: bool = True
) -> Iterator[Forgery]:
    """All of them, or those of some real documents, in an order that stays."""
    for name in questions:
        for sort, source in (("numbers", numbers), ("tables", tables), ("structure", structures)):
            for what, made in source(name):
                yield Forgery(sort, f"{name}: {what}", written_or_none(made))
    for name in noises:
        for what, made in noise_changes(name):
            yield Forgery("noise", f"{name}: {what}", written_or_none(made))
    for what, made in changed_by(coupling, COUPLING_CHANGES):
        yield Forgery("coupling", what, written_or_none(made))
    for sort, found in others_by_sort().items() if others else ():
        for what, made in found:
            yield Forgery(sort, what, written_or_none(made))


def others_by_sort() -> dict[str, Iterator[tuple[str, Callable[[], Data | None]]]]:
    return {
        "account": account_changes(),
        "ledger": changed_by(ledger, LEDGER_CHANGES, written_anew),
        "findings": halved_findings(),
        "answers": (
            (f"{name}: {what}", made)
            for name in ("two shares", "histogram", "two divisions", "top")
            for what, made in changed_by(
                partial(result_of_version_3, name),
                (*RESULT_CHANGES, *((an_answer_moved,) if name == "histogram" else ())),
            )
        ),
    }


def sample() -> list[Forgery]:
    """Some forty that are cheap to make and to verify."""
    found = list(
        forgeries(("shares", "histogram", "median by group"), ("sensitivity 3", "small epsilon"), others=False)
    )
    return found[::3]
