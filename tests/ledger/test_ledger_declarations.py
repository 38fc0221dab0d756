"""Later sessions of a dataset may type other columns and have other bounds; another privacy unit is refused."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import tightrope as tr
from tests.ledger.conftest import TOTAL, claim, identity
from tests.ledger.test_former_ledger import FORMER, QUESTIONS
from tests.ledger.test_former_ledger import opened as opened_former
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.ledger import Claim, Ledger
from tightrope.ledger.chain import DECLARATION, Entry, append_entry, canonical_json
from tightrope.ledger.check import check_ledger
from tightrope.ledger.identity import Identity, SeriesClaim
from tightrope.ledger.overview import entry_history, ledger_overview
from tightrope.release.execution import release_claim
from tightrope.verify.claims import CONFIRMED, NOT_CHECKED, REFUTED
from tightrope.verify.ledgers import ledger_claims

pytestmark = pytest.mark.usefixtures("planned_once")
BUDGET = tr.Budget(epsilon=1, delta="1e-6")
ROWS = ["user,age,stay,city", *(f"{row // 2},{row % 90},{row % 9},Ulm" for row in range(600))]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text("\n".join(ROWS) + "\n")
    return tmp_path / "visits.ledger"


def session(place: Path, types: dict[str, str] | None = None, **changes: object) -> tr.Session:
    usual = {"privacy_unit": "user", "max_rows": 2, "budget": BUDGET, "ledger": place, "dataset": "visits"}
    source = changes.pop("source", place.with_name("visits.csv"))
    return tr.Session.open(source, types=types, **{**usual, **changes})  # type: ignore[arg-type]


def mean_of(place: Path, column: str, **changes: object) -> None:
    opened = session(place, {column: "integer"}, **changes)
    opened.plan([tr.mean(column, bounds=(0, 100))], budget_fraction="0.25").release()


def kinds(place: Path) -> list[str]:
    return [entry.kind for entry in Ledger(place).list_entries()]


def test_later_plans_type_other_columns_and_have_other_bounds_under_one_budget(place):
    mean_of(place, "age")
    mean_of(place, "stay")
    mean_of(place, "age", max_rows=5, max_groups=1)
    mean_of(place, "stay")
    assert session(place).spent["budget_fraction"] == "1"
    with pytest.raises(InsufficientBudgetError):
        mean_of(place, "stay", max_rows=9)
    assert kinds(place)[1:] == [
        *("charged", "answered"),
        *("declaration", "charged", "answered"),
        *("declaration", "charged", "answered"),
        *("charged", "answered"),
        "refused",
    ]
    assert check_ledger(Ledger(place)).problems == ()
    assert ledger_overview(Ledger(place).open_account("visits"))["max_rows"] == [2, 5]


def test_a_session_that_charges_nothing_writes_nothing(place):
    mean_of(place, "age")
    before = kinds(place)
    session(place, {"stay": "integer"}, max_rows=7).plan([tr.count()], budget_fraction="0.5")
    assert kinds(place) == before


def test_one_key_is_one_plan_whatever_the_bounds(place):
    session(place).plan([tr.count()], budget_fraction="0.25", key="march").release()
    with pytest.raises(InputError, match="'march' is already the name of a release of a different plan"):
        session(place, max_rows=5).plan([tr.count()], budget_fraction="0.25", key="march").release()


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ({"age": "text"}, "the column 'age' is 'text', but the ledger has 'integer'"),
        ({"stay": "number"}, "the column 'stay' is 'number', but the ledger has 'integer'"),
        ({"user": "integer"}, "'user', which identifies a person, is 'integer', but the ledger has 'text'"),
    ],
)
def test_a_contradiction_is_refused_and_says_what_differs(place, types, said):
    mean_of(place, "age")
    mean_of(place, "stay")
    with pytest.raises(InputError, match=said):
        session(place, types)


def test_a_privacy_unit_that_is_computed_from_a_column_of_another_type_is_refused(place):
    """As an integer, "7" and "07" are one person, as text two: each would be protected less."""
    unit = {"privacy_unit": "concat(user, '/', city)"}
    session(place, **unit)
    with pytest.raises(InputError, match="'user', which identifies a person, is 'integer', but the ledger has 'text'"):
        session(place, {"user": "integer"}, **unit)
    session(place, {"age": "integer"}, **unit)


def test_a_column_with_the_name_of_the_expression_does_not_replace_it(place):
    table = pyarrow.table({"user": ["a", "A"] * 50, "x": np.arange(100)})
    session(place, source=table, privacy_unit="lower(user)")
    named = table.append_column("lower(user)", pyarrow.array(map(str, range(100))))
    with pytest.raises(InputError, match=r"'lower\(user\)', which identifies a person, is 'text'"):
        session(place, source=named, privacy_unit="lower(user)")
    other = place.with_name("other.ledger")
    session(other, source=named, privacy_unit="lower(user)")
    with pytest.raises(InputError, match=r"is 'no column', but the ledger has 'text'"):
        session(other, source=table, privacy_unit="lower(user)")


@pytest.mark.parametrize(
    "unit",
    [{"privacy_unit": None, "max_rows": None}, {"privacy_unit": "city"}, {"privacy_unit": ("user", "a family")}],
)
def test_a_privacy_unit_that_protects_less_is_refused(place, unit):
    mean_of(place, "age")
    with pytest.raises(InputError, match="another dataset"):
        session(place, {"stay": "integer"}, **unit)


@pytest.mark.parametrize("changes", [{"privacy_unit": None, "max_rows": None}, {"max_rows": 1}, {}])
def test_a_plan_of_another_session_becomes_no_series(place, changes):
    opened = session(place)
    settings = {"privacy_unit": "user", "max_rows": 2, "budget": BUDGET} | changes
    plan = tr.Session(place.with_name("visits.csv"), **settings).plan([tr.count()], budget_fraction="0.25")
    with pytest.raises(InputError, match="plan: it is of a session with another table, privacy unit or bounds"):
        opened.series(plan, times=2, key="twice")
    assert session(place).spent["budget_fraction"] == "0"


def test_a_series_does_not_take_the_unit_that_another_table_computes(place):
    """In one table lower(user) is an expression, in the other a column of that name, which is what is protected."""
    table = pyarrow.table({"user": ["a", "A"] * 50, "x": np.arange(100)})
    named = table.append_column("lower(user)", pyarrow.array([str(row // 10) for row in range(100)]))
    opened = session(place, source=named, privacy_unit="lower(user)")
    computed = tr.Session(table, privacy_unit="lower(user)", max_rows=2, budget=BUDGET)
    with pytest.raises(InputError, match="plan: it is of a session with another table"):
        opened.series(computed.plan([tr.count()], budget_fraction="0.25"), times=2, key="twice")


def test_a_contradiction_recorded_after_a_session_was_opened_is_refused_at_its_charge(place):
    session(place)
    late = session(place, {"age": "number"}).plan([tr.count()], budget_fraction="0.25")
    series = session(place, {"age": "number"})
    mean_of(place, "age")
    with pytest.raises(InputError, match=r"the column 'age' is 'number', but the ledger has 'integer'.*nothing was"):
        late.release()
    with pytest.raises(InputError, match="the column 'age' is 'number'"):
        series.series(series.plan([tr.count()], budget_fraction="0.25"), times=2, key="twice")
    assert session(place).spent["budget_fraction"] == "0.25"
    assert kinds(place).count(DECLARATION) == 1


def charge_one(arguments: tuple[str, str, int]) -> str:
    """Charge a tenth with a session that types one column; for another process."""
    place, column, number = arguments
    declared = identity(columns=(("user", "integer"), (column, "integer")), max_rows=number + 1)
    account = Ledger(place).declare_dataset(declared, [TOTAL])
    try:
        account.charge_release(claim(f"release {number}"))
    except InsufficientBudgetError:
        return "refused"
    return "charged"


def test_processes_with_different_columns_share_one_budget(place):
    Ledger(place, create=True).declare_dataset(identity(), [TOTAL])
    work = [(str(place), f"column {number}", number) for number in range(12)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        outcomes = list(pool.map(charge_one, work))
    assert (outcomes.count("charged"), outcomes.count("refused")) == (10, 2)
    assert check_ledger(Ledger(place)).problems == ()
    assert kinds(place).count(DECLARATION) == 10


def test_a_reserved_series_records_its_declaration(place):
    ledger = Ledger(place, create=True)
    ledger.declare_dataset(identity(), [TOTAL])
    account = ledger.declare_dataset(identity(max_rows=7), [TOTAL])
    for key in ("a", "b"):
        account.reserve_series(SeriesClaim(key, "plan", BUDGET.scale_by("0.1"), 3, ""))
    assert kinds(place) == ["dataset", "declaration", "reserved", "reserved"]


@pytest.mark.parametrize("unit", [PrivacyUnit(None, 1, 1, 1), PrivacyUnit("city", 3, 3, 3)])
def test_check_finds_a_declaration_of_another_privacy_unit(place, unit):
    account = Ledger(place, create=True).declare_dataset(identity(), [TOTAL])
    columns = (("user", "integer"), ("city", "text"))
    forged = {"identity": Identity("visits", columns, unit).to_data()}
    account.book.write_entry(
        lambda connection: (None, append_entry(
            connection, "visits", DECLARATION, "k", account.declared.time, (forged, account.declared.state_data)
        ))
    )  # fmt: skip
    (problem,) = check_ledger(Ledger(place)).problems
    assert "entry 2 contradicts an earlier declaration" in problem and "privacy_unit" in problem


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An exported ledger with two declarations, and charges of 1/3 and of a quarter."""
    place = tmp_path_factory.mktemp("exported") / "visits.ledger"
    place.with_name("visits.csv").write_text("\n".join(ROWS) + "\n")
    session(place, {"age": "integer"}).plan([tr.count()], budget_fraction=Fraction(1, 3)).release()
    mean_of(place, "stay", max_rows=4)
    ledger = Ledger(place)
    return {
        "ledger": ledger.ledger_id,
        "entries": entry_history(ledger.list_entries()),
        "documents": ledger.book.texts_by_hash(),
    }


def forged_ledger(exported: dict[str, Any], change: Callable[[list[dict[str, Any]]], None]) -> dict[str, Any]:
    """Change entries, and write the hash chain again, as its owner could."""
    forged = copy.deepcopy(exported)
    change(forged["entries"])
    previous = forged["entries"][0]["previous"]
    for entry in forged["entries"]:
        entry["previous"] = previous
        body, state = (canonical_json(entry[name]) for name in ("body", "state"))
        fields = [entry[name] for name in ("number", "dataset", "kind", "key", "time")]
        previous = entry["hash"] = Entry(*fields, body, state, previous, "").expected_hash
    return forged


def entry_of_kind(entries: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["kind"] == kind)


def test_an_exported_ledger_with_declarations_and_fractions_is_verified(exported):
    verdicts = {one.name: one.verdict for one in ledger_claims(exported)}
    assert set(verdicts.values()) == {CONFIRMED, NOT_CHECKED}
    assert verdicts["left of 'visits'"] == verdicts["privacy units declared for 'visits'"] == CONFIRMED
    assert {one.verdict for one in ledger_claims(forged_ledger(exported, lambda _: None))} == {CONFIRMED, NOT_CHECKED}


def smaller_fraction(entries: list[dict[str, Any]]) -> None:
    """A third is charged as a quarter, in the entry and in every sum after it."""
    entry_of_kind(entries, "charged")["body"]["fraction"] = "1/4"
    for entry in entries[1:]:
        for balance in entry["state"]["balances"].values():
            balance[0] = str(Fraction(balance[0]) - Fraction(1, 12))


def left_out_fraction(entries: list[dict[str, Any]]) -> None:
    del entry_of_kind(entries, "charged")["body"]["fraction"]


def smaller_sum(entries: list[dict[str, Any]]) -> None:
    entries[-1]["state"]["balances"]["total"][0] = "1/3"


def other_unit(entries: list[dict[str, Any]]) -> None:
    entry_of_kind(entries, "declaration")["body"]["identity"]["person"] = "city"


def each_row(entries: list[dict[str, Any]]) -> None:
    entry_of_kind(entries, "declaration")["body"]["identity"]["person"] = None


def other_type_of_unit(entries: list[dict[str, Any]]) -> None:
    columns = entry_of_kind(entries, "declaration")["body"]["identity"]["columns"]
    columns[:] = [[name, "integer" if name == "user" else kind] for name, kind in columns]


def other_dataset(entries: list[dict[str, Any]]) -> None:
    entry_of_kind(entries, "declaration")["body"]["identity"]["name"] = "others"


def undeclared(entries: list[dict[str, Any]]) -> None:
    entries[0]["kind"] = "refused"
    entry_of_kind(entries, "declaration")["kind"] = "refused"


@pytest.mark.parametrize(
    "change",
    [
        smaller_fraction,
        left_out_fraction,
        smaller_sum,
        other_unit,
        each_row,
        other_type_of_unit,
        other_dataset,
        undeclared,
    ],
)
def test_a_forged_ledger_is_refuted_although_its_chain_is_right(exported, change):
    verdicts = {one.name: one.verdict for one in ledger_claims(forged_ledger(exported, change))}
    assert REFUTED in verdicts.values()
    assert all(verdict == CONFIRMED for name, verdict in verdicts.items() if name.endswith(".hash"))


def test_a_ledger_of_version_0_1_takes_other_columns_and_bounds(tmp_path):
    for file in FORMER.iterdir():
        shutil.copy(file, tmp_path)
    place = tmp_path / "old.ledger"
    former = opened_former(place)
    entries = Ledger(place).list_entries()
    usual = {"ledger": place, "dataset": "people", "budget": tr.Budget(epsilon=4, delta="1e-5")}
    yearly = [tr.ledger.Limit("yearly", tr.Budget(epsilon=2, delta="1e-5"), every="year")]
    columns = {"who": np.arange(400) // 2, "city": ["a", "b"] * 200, "age": np.arange(400.0), "x": np.arange(400)}
    later = tr.Session.open(pyarrow.table(columns), privacy_unit="who", max_rows=5, limits=yearly, **usual)
    assert later._account is not None
    next_year = Ledger(place, clock=lambda: "2099-01-01T00:00:00.000+00:00")
    account = next_year.declare_dataset(later._account.declaration, later._account.limits)
    account.charge_release(Claim("later", "plan", later.budget.scale_by("0.25")))
    assert later.spent["budget_fraction"] == "0.75"
    again = Ledger(place)
    assert [entry.kind for entry in again.list_entries()[len(entries) :]] == [DECLARATION, "charged"]
    assert again.list_entries()[: len(entries)] == entries and check_ledger(again).problems == ()
    account = again.open_account("people")
    same = former.plan(QUESTIONS, budget_fraction="0.25", key="march")
    assert account.find_charge(release_claim(same.draft, "march", None)) is not None
    with pytest.raises(InputError, match="the column 'age' is 'text', but the ledger has 'number'"):
        tr.Session.open(
            pyarrow.table({"who": [1], "age": ["a"]}), privacy_unit="who", max_rows=3, limits=yearly, **usual
        )
