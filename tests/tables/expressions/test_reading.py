"""Texts: what reads, what is refused, and that nothing in a text is ever run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
from tightrope.errors import InputError, SchemaError
from tightrope.tables.expressions.conditions import Compare
from tightrope.tables.expressions.expression import resolve_term, term_columns
from tightrope.tables.expressions.leaves import ColumnRef, to_literal
from tightrope.tables.expressions.parsing import MAX_EXPRESSION_LENGTH, parse_expression
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.schema import Column as SchemaColumn
from tightrope.tables.schema import Schema

SCHEMA = Schema((
    SchemaColumn("age", "integer"),
    SchemaColumn("income (USD)", "number"),
    SchemaColumn("a-b", "number"),
    SchemaColumn("city", "text"),
    SchemaColumn("day", "date"),
    SchemaColumn("at", "timestamp"),
    SchemaColumn("member", "boolean"),
))  # fmt: skip

HOSTILE = [
    "__import__('os').system('x')",
    "age.__class__",
    "().__class__.__bases__",
    "[x for x in y]",
    "{x: 1 for x in y}",
    "(x for x in y)",
    "lambda: 1",
    "(age := 1)",
    "f'{age}'",
    "f''",
    "age[0]",
    "age ** 2",
    "2 ** 10 ** 10",
    "age // 2",
    "age % 2",
    "age << 2",
    "age @ 2",
    "~age",
    "age & 1",
    "1 if age else 2",
    "*age",
    "age, 1",
    "[age]",
    "{1}",
    "...",
    "1j",
    "b'x'",
    "None",
    "age == None",
    "age is 1",
    "age in age",
    "age in [city]",
    "age in []",
    "max(age)",
    "max(*age)",
    "max(age, key=1)",
    "eval('1')",
    "abs(abs)(1)",
    "abs()",
    "cut(age, 1)",
    "cut(age, [2, 1])",
    "cut(age, [])",
    "clip(age, 2, 1)",
    "clip(age, age, 1)",
    "cell(age, 1, 0, 5)",
    "cell(age, 0, 1, 0)",
    "cell(age, 0, 1, 1000000)",
    "cell(age, -1e308, 1e308, 5)",
    "cell(age, 0, 5e-324, 5)",
    "cell(age, 0, age, 5)",
    "case(age)",
    "case(age > 1, 2)",
    "case(None, 1, 2)",
    "case(age > 1, None, None)",
    "column(age)",
    "'\\ud800'",
    "'a\\x00b'",
    "9" * 5_000,
    "9223372036854775808",
    "1e999",
    "0x" + "f" * 5_000,
    "(" * 5_000 + ")" * 5_000,
    "-" * 9_000 + "1",
    "not " * 2_000 + "age",
    "+".join("a" * 3_000),
    "abs(" * 100 + "age" + ")" * 100,
    "max(" * 30 + "age" + ", age)" * 30,
    "a" * (MAX_EXPRESSION_LENGTH + 1),
    "\x00",
    "age; city",
    "import os",
    "yield age",
    "await age",
    "# nothing",
    "",
    " ",
    "age >",
    "print(1)",
    "month(age) (1)",
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:20] for text in HOSTILE])
def test_what_is_not_of_the_language_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_expression(text)


@given(st.text(max_size=60))
def test_any_text_reads_or_is_refused(text: str) -> None:
    try:
        tree = parse_expression(text)
    except InputError:
        return
    assert parse_expression(str(tree)) == tree


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("age > 1 # adults\nand member", "no comments"),
        ("item# > 1", r'column\("a#b"\)'),
        ("city == 'a\nb'", "break"),
        ("city == 'a\\\nb'", "break"),
        ('city == """a\nb"""', "break"),
    ],
)
def test_nothing_of_a_text_is_left_out_or_changed(text: str, told: str) -> None:
    """Python would end the expression at a comment, and a line break in a text would have become a blank."""
    with pytest.raises(InputError, match=told):
        parse_expression(text)


def test_lines_and_signs_in_quotes_are_read_as_they_are() -> None:
    assert parse_expression("city == 'it\\'s #1'\n  and age > 1").child_nodes[0] == Compare(
        "==", ColumnRef("city"), to_literal("it's #1")
    )
    assert parse_expression("city == 'a\\nb'") == Compare("==", ColumnRef("city"), to_literal("a\nb"))


def test_refusals_teach() -> None:
    for text, tip in {
        "mnth(at)": "did you mean 'month'",
        "age & 1": "say and",
        "1 if member else 2": "case(condition, value, otherwise)",
        "age == None": "say x is None",
        "income.usd": 'column("a.b")',
        "cut(age, 3)": "cut(x, [a, b, ...])",
    }.items():
        with pytest.raises(InputError) as refused:
            parse_expression(text)
        assert tip in str(refused.value), text
    with pytest.raises(SchemaError, match="did you mean 'city'"):
        resolve_term("lower(citty)", SCHEMA)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("city + 1", "expected expression to be a number"),
        ("member + 1", r"case\(condition, 1, 0\)"),
        ("age == 'x'", "parts of one kind"),
        ("city > 1", "parts of one kind"),
        ("day > 'soon'", "a date such as '2024-12-31'"),
        ("at > '2024-13-01'", "a timestamp such as"),
        ("day > at", "parts of one kind"),
        ("age and member", "a condition"),
        ("not city", "a condition"),
        ("member == true", "say True"),
        ("member < True", "a comparison of numbers"),
        ("month(age)", "a date or timestamp for month"),
        ("hour(day)", "a timestamp for hour"),
        ("lower(age)", "a text for lower"),
        ("cut(city, ['a', 'b'])", "a number"),
        ("case(member, 1, 'x')", "parts of one kind"),
    ],
)
def test_kinds_are_checked_against_the_schema(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        resolve_term(text, SCHEMA)


def test_a_name_of_the_table_is_always_that_column() -> None:
    assert resolve_term("a-b", SCHEMA) == "a-b"
    assert resolve_term("income (USD)", SCHEMA) == "income (USD)"
    assert resolve_term('column("a-b") * 2', SCHEMA) == parse_expression("column('a-b') * 2")
    assert resolve_term(tr.column("age"), SCHEMA) == "age"


def test_names_are_taken_as_they_are_written() -> None:
    """Python's own parser makes ``fin`` of the ligature."""
    ligature = "\ufb01n"
    assert parse_expression(ligature) == ColumnRef(ligature)
    assert parse_expression(f"größe > 1 or {ligature} == 2") == parse_expression(
        f"größe > 1 or column({ligature!r}) == 2"
    )
    assert str(ColumnRef(ligature)) == f"column({ligature!r})"
    assert parse_expression("column('my col') + 1") == parse_expression('column("my col") + 1')


def test_columns_that_are_read_are_known() -> None:
    tree = parse_expression("case(a > 1, b, c + b) in [1] or month(d) == 2")
    assert term_columns("x", tree, None) == ("x", "a", "b", "c", "d")


def test_literals_of_different_kinds_are_different() -> None:
    assert len({to_literal(1), to_literal(1.0), to_literal(True)}) == 3
    assert parse_expression("x == 1") != parse_expression("x == True")


a, b, c = tr.column("a"), tr.column("b"), tr.column("c")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (a + 1 > b * 2 - c, "a + 1 > b * 2 - c"),
        (1 - a / (b + 2), "1 - a / (b + 2)"),
        (2 * (3 + a) / 4, "2 * (3 + a) / 4"),
        (-a, "-a"),
        (1 / a - (b - c), "1 / a - (b - c)"),
        ((a > 1) & (b < 2) & ~(c == 3), "a > 1 and b < 2 and not c == 3"),
        (((a > 1) | (b < 2)) & (c >= 1), "(a > 1 or b < 2) and c >= 1"),
        (a.is_in([1, 2]) | ~b.is_in(["x"]), "a in [1, 2] or b not in ['x']"),
        (a.is_missing() & ~b.is_missing(), "a is None and b is not None"),
        (abs(a).min(b).max(3).clip(0, 1.5), "clip(max(min(abs(a), b), 3), 0, 1.5)"),
        (a.cut([1, 2.5]), "cut(a, [1.0, 2.5])"),
        (a.lower() != "x", "lower(a) != 'x'"),
        (a.year() + a.month() + a.day() + a.weekday() + a.hour(), "year(a) + month(a) + day(a) + weekday(a) + hour(a)"),
        (a.days() - b.days(), "days(a) - days(b)"),
        (tr.case(a > 1, "x", b, None, "y"), "case(a > 1, 'x', b, None, 'y')"),
        (tr.expression("a > 1"), "a > 1"),
    ],
)
def test_python_and_text_give_the_same_tree(written: tr.Expression, text: str) -> None:
    assert written.tree == parse_expression(text)
    assert parse_expression(str(written)) == written.tree


def test_an_expression_has_no_truth() -> None:
    with pytest.raises(InputError, match="&"):
        0 < a < 5  # noqa: B015
    with pytest.raises(InputError, match="is_missing"):
        a == None  # noqa: B015, E711
    with pytest.raises(TypeError):
        hash(a)


def test_trees_are_bounded_however_they_are_made() -> None:
    deep = tr.column("a")
    with pytest.raises(InputError, match="levels"):
        for _ in range(100):
            deep = deep + 1
    wide = tr.column("a")
    with pytest.raises(InputError, match="terms"):
        for _ in range(20):
            wide = wide.max(wide)
    with pytest.raises(InputError, match="edges"):
        tr.column("a").cut(list(range(5_000)))


def test_a_tree_is_frozen() -> None:
    tree: ExpressionTree = parse_expression("a > 1")
    with pytest.raises(AttributeError):
        tree.comparison = "<"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text", ["(" * 4_000, "a #" + "b" * 4_000, "f" * 4_000 + "(a)", "a." + "b" * 4_000, "1" * 4_500]
)
def test_an_error_quotes_the_beginning_of_a_long_expression(text: str) -> None:
    with pytest.raises(InputError, match="expression: ") as caught:
        parse_expression(text)
    assert len(str(caught.value)) < 600
