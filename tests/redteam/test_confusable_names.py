"""What is told apart is told apart by value: texts shown alike, periods named as limits, query groups that differ."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.ledger import Ledger, Limit
from tightrope.ledger.state import State
from tightrope.release.execution import release_claim

BUDGET = tr.Budget(epsilon=1, delta="1e-6")
SPACES = "\u00a0\u2002\u2009\u202f"


def session(table: pa.Table, **others: object) -> tr.Session:
    return tr.Session(table, **{"privacy_unit": None, "budget": BUDGET, **others})


def test_columns_that_look_alike_are_not_one_exclusive_set() -> None:
    """A row adds to one tally of a column only, but to one of each column: shown alike, they were one set."""
    table = pa.table({f"price{space}EUR": [0.5, 9.0] for space in SPACES})
    plan = session(table).plan([tr.sum(name, bounds=(0, 1), name=name) for name in table.column_names], bias_check=0.49)
    (query_group,) = plan.draft.query_groups
    whole = [own for own in query_group.composition_sets if own[0].over_all_groups]
    assert len(whole) == len(SPACES)
    assert all(len(own) == 3 for own in whole)  # below, above, missing


def test_a_column_named_as_an_expression_is_another() -> None:
    table = pa.table({"x": [0.5, 9.0], "x + 1": [0.5, 9.0]})
    asked = [tr.sum("x + 1", bounds=(0, 1), name="a"), tr.sum(tr.expression("x + 1"), bounds=(0, 1), name="b")]
    (query_group,) = session(table).plan(asked, bias_check=0.1).draft.query_groups
    assert len({vector.statistic_name for vector in query_group.noisy_statistics}) == len(query_group.noisy_statistics)


def limits(*more: Limit) -> list[Limit]:
    return [Limit("total", tr.Budget(epsilon=100, delta="1e-3")), *more]


@pytest.mark.parametrize(("every", "name"), [("year", "press 2026"), ("month", "press 2026-03")])
def test_no_limit_is_called_as_a_period_of_another(tmp_path, every, name):
    table = pa.table({"x": [1.0]})
    for clash in (name, name.replace("2026", "1999")):
        with pytest.raises(InputError, match="has the name of a period of"):
            tr.Session.open(
                table, privacy_unit=None, budget=tr.Budget(epsilon=100, delta="1e-3"), ledger=tmp_path / "l.db",
                dataset="d", limits=[Limit("press", BUDGET, every=every), Limit(clash, BUDGET)],
            )  # fmt: skip
    assert Ledger(tmp_path / "l.db", create=True).dataset_names() == []
    for harmless in ("press 26", "press", "press 2026-3x", "pressing 2026"):
        assert not Limit("press", BUDGET, every=every).is_a_period(harmless)


def test_two_costs_in_one_slot_add_up() -> None:
    from fractions import Fraction

    slots = {"a": "same", "b": "same"}
    after = State().after_charge({"a": Fraction(1, 2), "b": Fraction(1, 4)}, slots)
    assert after.balance_of("same").spent == Fraction(3, 4)


def test_by_what_rows_look_up_is_part_of_the_plan() -> None:
    table = pa.table({"o": ["a"] * 100, "d": ["b"] * 100})
    public = pa.table({"k": ["a", "b"], "v": ["x", "y"]})

    def claim(own: str) -> str:
        opened = session(table, public_tables=tr.public_table(public, on={own: "k"}))
        return release_claim(opened.plan([tr.count(by="v", keys=["x", "y"])]).draft, "march", None).plan

    assert claim("o") == claim("o")
    assert claim("o") != claim("d")


def test_whole_numbers_that_no_double_holds_meet_no_key() -> None:
    public = pa.table({"k": [2.0**53, 5.0], "v": ["far", "five"]})
    table = pa.table({"k": [2**53 + 1] * 200 + [5] * 200})
    plan = session(table, public_tables=tr.public_table(public, on="k")).plan(
        [tr.count(by="v", keys=["far", "five", None])]
    )
    (answer,) = plan.release()
    found = {row["v"]: row["value"] for row in answer.rows}
    assert found["far"] < 100 < min(found["five"], found[None])


def test_a_public_row_brings_little() -> None:
    public = pa.table({"k": ["a"], "v": ["z" * 9_999]})
    tr.public_table(public, on="k")
    with pytest.raises(InputError, match="bytes of text a row"):
        session(pa.table({"k": ["b"]}), public_tables=tr.public_table(public, on="k", columns={"v": "v", "w": "v"}))


def test_a_tally_is_said_of_those_questions_only_that_use_its_rows() -> None:
    """Two rows of each person, in one group of g and in one of h; the first question drops half of them."""
    people = [f"p{i}" for i in range(4_000) for _ in range(2)]
    table = pa.table({"p": people, "g": ["a"] * 8_000, "h": ["b"] * 8_000})
    opened = tr.Session(table, privacy_unit="p", max_rows=2, budget=tr.Budget(epsilon=20, delta="1e-6"))
    one = tr.count(by="g", keys=["a"], max_rows_per_group=1, max_groups=2, name="one")
    two = tr.count(by="h", keys=["b"], max_rows_per_group=2, max_groups=1, name="two")
    found = {cost.answers: cost.share for cost in opened.plan([one, two], bias_check=0.4).release().bias}
    assert found[("one",)] == pytest.approx(0.5, abs=0.1)
    assert found[("two",)] == pytest.approx(0.0, abs=0.1)
