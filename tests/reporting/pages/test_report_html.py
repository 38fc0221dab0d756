"""The page: complete, escaped, self-contained, the same every time, and patient with what is missing."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reporting import released
from tightrope import reporting
from tightrope.documents.release import AnswerDocument, ReleaseCertificate
from tightrope.documents.wording import added_probability_text
from tightrope.errors import InputError, MissingExtraError
from tightrope.reporting.pages.release_page import answer_view, mechanism_statistic_text
from tightrope.reporting.wording.answers import shown_answer
from tightrope.reporting.wording.partial_release import PartialAnswer, PartialMechanism, read_stated_part

VOID = {"meta", "link", "br", "img", "hr", "input"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


class Checker(HTMLParser):
    """Fails on tags that do not match; collects names, ids and references."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        named = dict(attrs)
        self.ids += [named["id"] or ""] if "id" in named else []
        self.references += [named[key] or "" for key in ("href", "src") if key in named]
        self.references += [f"#{name}" for name in (named.get("aria-labelledby") or "").split()]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert not checker.open
    assert len(checker.ids) == len(set(checker.ids))
    inside = [name for name in checker.references if not name.startswith("data:")]
    assert all(reference[1:] in checker.ids for reference in inside)
    return checker


def words(page: str) -> str:
    body = page.partition("<body>")[2].partition("<script>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_the_whole_sample_is_well_formed_and_self_contained() -> None:
    page = reporting.html(released.everything())
    assert {"header", "main", "nav", "footer", "table", "caption", "svg"} <= set(checked(page).seen)
    assert not {"link", "img", "iframe"} & set(checked(page).seen)
    assert checked(page).seen.count("script") == 1
    assert not re.search(r"https?:|url\(|@import|NaN|nan%|inf%|None", re.sub('"data:[^"]*"', "", page))


def test_the_typical_page_is_small_and_always_the_same() -> None:
    page = reporting.html(released.typical())
    assert len(page.encode()) < 500_000
    assert len(re.sub('"data:[^"]*"', "", page).encode()) < 100_000
    assert reporting.html(released.typical()) == page


def test_the_promise_in_plain_words() -> None:
    said = words(reporting.html(released.typical()))
    percent = math.ceil(released.certificate()["attack_success"] * 1000) / 10
    assert f"right at most {percent:.1f} % of the time" in said
    limit = f"at most 2.72 times as likely with your data as without{added_probability_text(1e-8)},"
    assert limit in said
    assert released.certificate()["neighbors"]["statement"][1:] in said


def test_answers_with_their_intervals() -> None:
    said = words(reporting.html(released.everything()))
    (total,), states = released.answer("people")["rows"], released.answer("states")["rows"]
    half = total["upper"] - total["value"]
    assert f"{total['value']:,} ± {half} 95 % interval: {total['lower']:,} to {total['upper']:,}" in said
    texas = next(row for row in states if row["state"] == "Texas")
    shown = (texas["value"], texas["upper"] - texas["value"], texas["lower"], texas["upper"])
    assert "Texas " + " ".join(f"{number:,}" for number in shown) in said
    assert any(row["state"] is None for row in states)
    withheld = sum(row["value"] is None for row in released.answer("income")["rows"])
    assert 0 < withheld == len(re.findall(r"suppressed – 2\.0 10\.0", said))
    assert released.answer("states")["notes"][0] in said
    assert "2100 groups" in said


def test_an_interval_that_leaves_the_axis_ends_in_an_arrow() -> None:
    rows = [released.row(2000 + i, 2600 if i == 4 else 10, k=i) for i in range(8)]
    assert "An arrow head marks" in words(reporting.html({"answers": [released.rows_by("k", rows)]}))


def test_chart_and_table_of_one_answer_say_the_same_interval() -> None:
    """Both outwards: 0.264 to 0.316 would be narrower than what was computed."""
    ends = {"value": 0.29, "lower": 0.2636999, "upper": 0.3161228}
    document = released.rows_by("k", [released.row(0, 1, k=i) | ends for i in range(8)])
    view = answer_view(shown_answer(read_stated_part(document, PartialAnswer)), "a")
    assert view.axis is not None
    assert view.axis.dots[3].title == "3: 0.290 (0.263 to 0.317)"
    assert [(line.rounded_values.lower, line.rounded_values.upper) for line in view.lines] == [("0.263", "0.317")] * 8


@pytest.mark.parametrize(
    ("statistic", "column", "said"),
    [
        ("sum", "age", "sum of age by city"),
        ("usable values", "age", "number of non-missing values of age by city"),
        ("sum of age", "age", "sum of age by city"),
        ("sum of products of age and x", "age and x", "sum of products of age and x by city"),
        ("usable rows", "age and x", "number of rows with a value of age and x by city"),
        ("rows, below of age, over all groups", "case(age < 0.0, 1, None)", "number of values of age below the range"),
        ("count", None, "number of rows by city"),
    ],
)
def test_the_table_of_mechanisms_names_a_column_once(statistic: str, column: str | None, said: str) -> None:
    by = () if "over all" in statistic else ("city",)
    mechanism = PartialMechanism(statistic=statistic, column=column, by=by)
    assert mechanism_statistic_text(mechanism, set()) == said


def test_untrusted_text_is_escaped_everywhere() -> None:
    evil = "<script>alert(1)</script>\"'>"
    document = _poisoned(released.everything(), evil)
    page = reporting.html(document)
    assert page.count("<script") == 1 and page.count("&lt;script&gt;") > 100
    checked(page)


def _poisoned(value: Any, evil: str) -> Any:
    """Every text replaced, and every column renamed, by the evil one."""
    if isinstance(value, dict):
        kept = {key if key != "state" else evil: _poisoned(inner, evil) for key, inner in value.items()}
        return kept | {"by": [evil]} if value.get("by") == ["state"] else kept
    if isinstance(value, list):
        return [_poisoned(inner, evil) for inner in value]
    return evil if isinstance(value, str) else value


@pytest.mark.parametrize("key", ReleaseCertificate.__struct_fields__)
@pytest.mark.parametrize("worth", ["missing", None, [], {}, "?", float("nan"), float("inf")])
def test_any_field_of_the_certificate_may_fail(key: str, worth: Any) -> None:
    document = released.typical()
    document["certificate"].pop(key, None) if worth == "missing" else document["certificate"].update({key: worth})
    assert not re.search(r"\bnan\b|\binf\b", words(reporting.html(document)))


@pytest.mark.parametrize("key", AnswerDocument.__struct_fields__)
@pytest.mark.parametrize("worth", ["missing", None, [], {}, "?", float("nan"), [None], [{}], [[1]]])
def test_any_field_of_an_answer_may_fail(key: str, worth: Any) -> None:
    for name in ("income", "sectors", "people"):
        broken = released.answer(name)
        broken.pop(key) if worth == "missing" else broken.update({key: worth})
        checked(reporting.html({"answers": [broken]}))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.fixed_dictionaries({"k": JSON, "value": st.floats() | st.none(), "lower": JSON, "upper": JSON})))
def test_any_rows_give_a_page_without_nan(rows: list[dict[str, Any]]) -> None:
    page = reporting.html({"answers": [released.rows_by("k", rows)]})
    assert not re.search(r'"(-?nan|-?inf)', page)
    checked(page)


def test_extreme_numbers_fit_on_an_axis() -> None:
    values = [1e300, -1e300, 5e-324, 0.0, 1e16, 1e16 + 2]
    rows = [
        released.row(value, half, k=i) for i, (value, half) in enumerate(zip(values, reversed(values), strict=True))
    ]
    for chosen in (rows, rows[2:4] * 3, rows[4:] * 3):
        named = [{**row, "k": i} for i, row in enumerate(chosen)]
        assert "nan" not in reporting.html({"answers": [released.rows_by("k", named)]})


def test_the_longest_tables_are_cut_and_say_so() -> None:
    page = reporting.html({"answers": [released.answer("areas")]})
    assert "The first 800 of 2100 groups" in words(page)


def test_only_a_mapping_is_a_document() -> None:
    with pytest.raises(InputError, match="document"):
        reporting.html([])  # type: ignore[arg-type]


def test_importing_loads_neither_jinja_nor_matplotlib() -> None:
    code = "import sys, tightrope.reporting; print([m for m in ('jinja2', 'matplotlib', 'numpy') if m in sys.modules])"
    path = {"PYTHONPATH": ":".join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_without_jinja_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"jinja2.*tightrope\[release\]"):
        reporting.html({})
