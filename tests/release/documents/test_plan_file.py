"""Plans in files: what they become, and that every mistake is one line that teaches."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from tightrope.documents.document import to_json_text
from tightrope.documents.plan_ledger import PLAN_FILE
from tightrope.errors import InputError, PlanError
from tightrope.queries.count import count
from tightrope.queries.mean import mean
from tightrope.queries.quantile import median
from tightrope.release.plan_file import PlanDocument, load_plan_file, read_plan_document
from tightrope.release.plan_sections import PrivacyUnitSection, SourceSection

HEAD = '[source]\npath = "data.parquet"\n'
PERSON = '[privacy_unit]\ncolumn = "nr"\nmax_rows = 8\n'
BUDGET = "[budget]\nepsilon = 1\ndelta = 1e-8\n"
COUNT = '[[question]]\nkind = "count"\n'
MEAN = '[[question]]\nkind = "mean"\ncolumn = "x"\nbounds = [0, 5]\n'
QUANTILE = MEAN.replace("mean", "quantile")
MEDIAN = MEAN.replace("mean", "median")


@pytest.fixture
def plan(tmp_path: Path):
    pyarrow.parquet.write_table(pyarrow.table({"nr": [1, 2], "x": [0.5, 1.5], "k": [0, 1]}), tmp_path / "data.parquet")

    def write(text: str) -> Path:
        path = tmp_path / "plan.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_everything(plan):
    text = f"""
    title = "A title"
    expected_rows = 500
    {HEAD}
    {PERSON}
    max_rows_per_group = 1
    max_groups = 4
    {BUDGET}
    attack_success = 0.6
    budget_fraction = 0.5
    {COUNT}
    by = ["k", "nr"]
    keys = [[0, 1], [1, 2]]
    max_rows_per_group = 2
    max_groups = 3
    {MEAN}
    by = "k"
    keys = [0, 1]
    weight = 2.5
    name = "x_by_k"
    """
    file = load_plan_file(plan(text))
    document = file.document
    assert (file.document.title, document.expected_rows, document.budget.budget_fraction) == (
        "A title",
        500,
        Decimal("0.5"),
    )
    assert file.source_location == file.folder / "data.parquet"
    assert document.source == SourceSection(path="data.parquet")
    assert document.privacy_unit == PrivacyUnitSection(column="nr", max_rows=8, max_rows_per_group=1, max_groups=4)
    assert document.budget.to_budget().points == ((Decimal(1), Decimal("1e-8")), (Decimal(0), Decimal("0.2")))
    assert document.make_queries() == (
        count(by=["k", "nr"], keys=[(0, 1), (1, 2)], max_rows_per_group=2, max_groups=3),
        mean("x", bounds=(0, 5), by="k", keys=[0, 1], weight=2.5, name="x_by_k"),
    )
    assert file.open_session().schema.column_names == ("nr", "x", "k")


def test_the_plan_of_a_file_keeps_the_budget(plan):
    chosen = load_plan_file(
        plan("expected_rows = 50\n" + HEAD + PERSON + BUDGET + "budget_fraction = 0.5\n" + COUNT)
    ).make_plan()
    assert chosen.loss.epsilon(5e-9) <= 0.5
    assert chosen.sizes == (50,)


def test_budgets_are_exact_decimals(plan):
    text = HEAD + PERSON + "[budget]\nepsilon = 0.1\ndelta = 1e-8\npoints = [[0.3, 0.1]]\n" + COUNT
    assert load_plan_file(plan(text)).document.budget.to_budget().points == (
        (Decimal("0.3"), Decimal("0.1")), (Decimal("0.1"), Decimal("1e-8")),
    )  # fmt: skip


def test_each_row(plan):
    person = load_plan_file(plan(HEAD + "[privacy_unit]\neach_row = true\n" + BUDGET + COUNT)).document.privacy_unit
    assert (person.column, person.each_row) == (None, True)


def test_keys_of_every_kind(plan):
    text = HEAD + PERSON + BUDGET + COUNT
    several = load_plan_file(
        plan(text + 'by = ["k", "x"]\nkeys = { k = [0, 1], x = [0.5, "a"] }')
    ).document.make_queries()[0]
    assert several.keys == ((0, 0.5), (0, "a"), (1, 0.5), (1, "a"))
    days = load_plan_file(plan(text + 'by = "k"\nkeys = [2024-12-31, true, "a", 2]')).document.make_queries()[0]
    assert days.keys == ((datetime.date(2024, 12, 31),), (True,), ("a",), (2,))[: len(days.keys)]


def test_a_median_is_the_quantile_of_half(plan):
    text = HEAD + PERSON + BUDGET + MEDIAN
    assert (
        read_plan_document(plan(text)).make_queries()
        == read_plan_document(plan(text.replace("median", "quantile"))).make_queries()
    )
    assert read_plan_document(plan(text)).make_queries() == (median("x", bounds=(0, 5)),)


def test_the_least_numbers_are_taken_as_typed(plan):
    for delta in ("0.0", "-0.0", "5e-324", "0e-400"):
        assert read_plan_document(plan(HEAD + PERSON + BUDGET.replace("1e-8", delta) + COUNT)).budget.delta == Decimal(
            delta
        )


def test_csv_and_duckdb_settings(plan, tmp_path):
    (tmp_path / "a.csv").write_text("id,x\n1,2\n", encoding="utf-8")
    text = '[source]\npath = "a.csv"\n[source.types]\nx = "number"\n[privacy_unit]\neach_row = true\n' + BUDGET + COUNT
    assert load_plan_file(plan(text)).open_session().schema.find_column("x").kind == "number"
    (tmp_path / "a.duckdb").write_bytes(b"")
    file = load_plan_file(plan(text.replace('a.csv"\n[source.types]\nx = "number"', 'a.duckdb"\ntable = "t"')))
    assert file.document.source.table == "t"


def test_an_absolute_path(plan, tmp_path):
    text = (HEAD + PERSON + BUDGET + COUNT).replace("data.parquet", str(tmp_path / "data.parquet"))
    assert load_plan_file(plan(text)).source_location == tmp_path / "data.parquet"


NONSENSE = [
    ("", "[source] path"),
    ("[source\n", "line 1"),
    (HEAD + "pth = 1\n", "did you mean 'path'?"),
    ("titel = 'a'\n" + HEAD + PERSON + BUDGET + COUNT, "the plan: unknown key 'titel'; did you mean 'title'?"),
    (HEAD + PERSON + BUDGET + "[[questions]]\nkind = 'count'", "did you mean 'question'?"),
    (HEAD + PERSON + BUDGET + "[question]\nkind = 'count'", "double brackets"),
    (HEAD + PERSON + BUDGET, "question: missing; write [[question]]"),
    (HEAD + PERSON + BUDGET + "[[question]]\n", "question 1 kind: missing; kinds: 'count'"),
    (HEAD + PERSON + BUDGET + COUNT + "[[question]]\nkind = 'avg'", "question 2 kind: 'avg' is not available"),
    (HEAD + PERSON + BUDGET + COUNT + "[[question]]\nkind = 'meen'", "did you mean 'mean'?"),
    (HEAD + PERSON + BUDGET + COUNT + MEAN.replace("bounds", "boundz"), "question 2 ... did you mean 'bounds'?"),
    (HEAD + PERSON + BUDGET + COUNT + "column = 'x'", "question 1 (count): unknown key 'column'"),
    (HEAD + PERSON + BUDGET + "[[question]]\nkind = 'mean'\nbounds = [0, 1]", "question 1 column"),
    (
        HEAD + PERSON + BUDGET + "[[question]]\nkind = 'mean'\ncolumn = 'x'",
        "question 1 bounds: missing ... public knowledge",
    ),
    (HEAD + PERSON + BUDGET + MEAN.replace("[0, 5]", "[5, 0]"), "question 1 bounds"),
    (HEAD + PERSON + BUDGET + MEAN.replace("[0, 5]", "[0, inf]"), "question 1 bounds"),
    (HEAD + PERSON + BUDGET + MEAN.replace("[0, 5]", "[nan, 5]"), "question 1 bounds"),
    (HEAD + PERSON + BUDGET + MEAN.replace("[0, 5]", "5"), "question 1 bounds=5"),
    (HEAD + PERSON + BUDGET + MEAN.replace("[0, 5]", "['0', 5]"), "question 1 bounds"),
    (HEAD + PERSON + BUDGET + COUNT + "by = 5", "question 1 by=5"),
    (HEAD + PERSON + BUDGET + COUNT + "by = [5]", "question 1 by=[5]"),
    (HEAD + PERSON + BUDGET + COUNT + "by = ''", "question 1 by"),
    (HEAD + PERSON + BUDGET + COUNT + "keys = [0]", "question 1 keys"),
    (HEAD + PERSON + BUDGET + COUNT + "by = 'k'\nkeys = 5", "question 1 keys='int'"),
    (HEAD + PERSON + BUDGET + COUNT + "by = 'k'\nkeys = []", "question 1 keys='list of 0'"),
    (HEAD + PERSON + BUDGET + COUNT + "by = 'k'\nkeys = [[[1]]]", "question 1 keys='list of 1'"),
    (HEAD + PERSON + BUDGET + COUNT + "by = 'k'\nkeys = [{ a = 1 }]", "question 1 keys"),
    (HEAD + PERSON + BUDGET + COUNT + "by = 'k'\nkeys = { x = [1] }", "question 1 keys"),
    (HEAD + PERSON + BUDGET + COUNT + "by = 'k'\nkeys = { k = [[1]] }", "question 1 keys"),
    (HEAD + PERSON + BUDGET + COUNT + "weight = 0", "question 1 weight=0"),
    (HEAD + PERSON + BUDGET + COUNT + "weight = 'a'", "question 1 weight='a'"),
    (HEAD + PERSON + BUDGET + COUNT + "weight = 100", "question 1 weight=100"),
    (HEAD + PERSON + BUDGET + COUNT + "name = 5", "question 1 name=5"),
    (HEAD + PERSON + BUDGET + COUNT + "max_rows_per_group = 0", "question 1 max_rows_per_group=0"),
    (HEAD + PERSON + BUDGET + COUNT + "max_groups = 1.5", "question 1 max_groups=1.5"),
    (HEAD + BUDGET + COUNT, "[privacy_unit] column: missing; ... identifies the person of each row"),
    (HEAD + "[privacy_unit]\neach_row = false\n" + BUDGET + COUNT, "[privacy_unit]"),
    (HEAD + "[privacy_unit]\neach_row = 'yes'\n" + BUDGET + COUNT, "[privacy_unit] each_row='yes'"),
    (HEAD + "[privacy_unit]\ncolumn = 'nr'\neach_row = true\n" + BUDGET + COUNT, "[privacy_unit]"),
    (HEAD + "[privacy_unit]\neach_row = true\nmax_rows = 3\n" + BUDGET + COUNT, "[privacy_unit]"),
    (HEAD + "[privacy_unit]\ncolumn = 'nr'\n" + BUDGET + COUNT, "[privacy_unit] max_rows"),
    (HEAD + "[privacy_unit]\ncolumn = 'nr'\nmax_rows = 0\n" + BUDGET + COUNT, "[privacy_unit] max_rows=0"),
    (HEAD + "[privacy_unit]\ncolumn = 'nr'\nmax_rows = '8'\n" + BUDGET + COUNT, "[privacy_unit] max_rows='8'"),
    (HEAD + "[privacy_unit]\ncolumn = 8\nmax_rows = 1\n" + BUDGET + COUNT, "[privacy_unit] column=8"),
    (HEAD + PERSON + COUNT, "[budget] delta"),
    (HEAD + PERSON + "[budget]\nepsilon = 1\n" + COUNT, "[budget] delta ... number of people"),
    (HEAD + PERSON + "[budget]\ndelta = 1e-8\n" + COUNT, "[budget]"),
    (HEAD + PERSON + BUDGET.replace("1\n", "-1.5\n", 1) + COUNT, "[budget] epsilon=-1.5"),
    (HEAD + PERSON + BUDGET.replace("1\n", "nan\n", 1) + COUNT, "[budget] epsilon=nan"),
    (HEAD + PERSON + BUDGET.replace("1\n", "true\n", 1) + COUNT, "[budget] epsilon=True"),
    (HEAD + PERSON + BUDGET.replace("epsilon", "epsilonn") + COUNT, "[budget] ... did you mean 'epsilon'?"),
    (HEAD + PERSON + BUDGET + "budget_fraction = 2\n" + COUNT, "[budget] budget_fraction=2"),
    (HEAD + PERSON + BUDGET + "budget_fraction = 'all'\n" + COUNT, "[budget] budget_fraction='all'"),
    (HEAD + PERSON + BUDGET + "points = 3\n" + COUNT, "[budget] points=3"),
    (HEAD + PERSON + BUDGET + "points = [[1]]\n" + COUNT, "[budget] points 1=[1]"),
    (
        HEAD + PERSON + BUDGET + "budget_fraction = 'half'\n" + COUNT,
        "[budget] budget_fraction to be a number ... budget_fraction='half'",
    ),
    (HEAD + PERSON + BUDGET.replace("1\n", "'lots'\n", 1) + COUNT, "[budget] epsilon to be a number ... 'lots'"),
    (HEAD + PERSON + BUDGET + "points = [[1, 'few']]\n" + COUNT, "[budget] points 1 2 to be a number ... 'few'"),
    (HEAD + PERSON + BUDGET.replace("1e-8", "1e-400") + COUNT, "nearer to 0 ... '1e-400'"),
    (HEAD + PERSON + BUDGET.replace("1e-8", "-1_0.0e-400") + COUNT, "nearer to 0 ... '-1_0.0e-400'"),
    (HEAD + PERSON + BUDGET.replace("1e-8", "'1e-400'") + COUNT, "[budget] delta ... nearer to 0"),
    (HEAD + PERSON + BUDGET + MEAN.replace("[0, 5]", "[1e-400, 5]"), "nearer to 0 ... '1e-400'"),
    (
        HEAD + PERSON + BUDGET + QUANTILE + "q = [0.1, 0.5]",
        "question 1 q ... q=[0.1, 0.5] ... one [[question]] for each",
    ),
    (HEAD + PERSON + BUDGET + MEDIAN + "q = 0.9", 'question 1 (median): a median has no q; ... kind = "quantile"'),
    (HEAD + PERSON + BUDGET + MEDIAN + "wight = 2", "question 1 (median) ... did you mean 'weight'?"),
    (HEAD + PERSON + BUDGET + COUNT.replace("count", "medain"), "did you mean 'median'?"),
    (HEAD + PERSON + BUDGET + COUNT.replace("count", "max"), "'max' is not available; did you mean 'maximum'?"),
    ("budget = 1\n" + HEAD + PERSON + COUNT, "a table of keys and values ... [budget]=1"),
    ("title = 3\n" + HEAD + PERSON + BUDGET + COUNT, "title=3"),
    ("expected_rows = 0\n" + HEAD + PERSON + BUDGET + COUNT, "expected_rows=0"),
    (HEAD.replace("data", "dta") + PERSON + BUDGET + COUNT, "dta.parquet ... relative to the plan"),
    (HEAD.replace('"data.parquet"', "3") + PERSON + BUDGET + COUNT, "[source] path=3"),
    (HEAD + "[source.types]\nx = 3\n" + PERSON + BUDGET + COUNT, "[source.types] x=3"),
    (HEAD + "types = 3\n" + PERSON + BUDGET + COUNT, "[source.types]=3"),
    ("a = " + "[" * 5_000, "valid TOML"),
    ("version = 1\n" + HEAD + PERSON + BUDGET + COUNT, "version to be 2 ... version=1"),
    ("document = 'steps'\n" + HEAD + PERSON + BUDGET + COUNT, "document to be 'plan'"),
    ("title = ''\n" + HEAD + PERSON + BUDGET + COUNT, "title='' ... in quotes"),
    ("question = [3]\n" + HEAD + PERSON + BUDGET, "question 1 to be a table ... question 1=3"),
    (
        HEAD + PERSON.replace("8", "8.5") + BUDGET + COUNT,
        "[privacy_unit] max_rows to be an integer ... max_rows=8.5",
    ),
    (HEAD + "[source.types]\na = 'text'\nx = true\n" + PERSON + BUDGET + COUNT, "[source.types] x=True ... number"),
]


@pytest.mark.parametrize(("text", "said"), NONSENSE)
def test_nonsense_is_one_line_that_says_where(plan, text, said):
    with pytest.raises(PlanError) as caught:
        load_plan_file(plan(text))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("expected ") or ": " in message
    assert "None" not in message
    assert re.search(".*".join(map(re.escape, said.split(" ... "))), message), message
    assert "Decimal" not in message


def test_what_needs_the_table_is_found_by_its_schema(plan):
    text = HEAD + PERSON.replace('"nr"', '"nrr"') + BUDGET + COUNT
    with pytest.raises(InputError, match="did you mean 'nr'"):
        load_plan_file(plan(text)).open_session()
    with pytest.raises(InputError, match="'y'"):
        load_plan_file(plan(HEAD + PERSON + BUDGET + MEAN.replace('"x"', '"y"'))).make_plan()


def test_files_that_are_no_plan(tmp_path):
    for path in (tmp_path / "nowhere.toml", tmp_path):
        with pytest.raises(PlanError, match="tightrope init"):
            load_plan_file(path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="UTF-8"):
        load_plan_file(tmp_path / "binary.toml")


def test_the_examples_are_plans():
    """Their data is written by make demo; everything else in them is checked here."""
    paths = sorted(Path(__file__).parents[3].glob("examples/*/plan.toml"))
    assert len(paths) >= 2
    for path in paths:
        document = read_plan_document(path)
        assert document.make_queries()
        assert document.budget.to_budget().epsilon >= 1
        assert PLAN_FILE.parse_json(to_json_text(document), PlanDocument) == document


def test_the_documented_plan_loads(plan, tmp_path):
    """docs/plan-file.md cannot drift from what is accepted."""
    page = (Path(__file__).parents[3] / "docs" / "plan-file.md").read_text(encoding="utf-8")
    whole = re.search(r"```toml\n(title.*?)```", page, re.DOTALL).group(1)
    file = load_plan_file(plan(whole.replace("visits.parquet", "data.parquet")))
    questions = file.document.make_queries()
    assert [question.name for question in questions] == ["count_by_city", "income"]
    assert len(questions[1].keys) == 4
    for key in (
        "expected_rows",
        *("attack_success", "points", "budget_fraction"),
        *("each_row", "max_rows_per_group"),
        "table",
    ):
        assert f"`{key}`" in page
