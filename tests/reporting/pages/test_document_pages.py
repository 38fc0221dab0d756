"""Pages of accounts, training, noise, studies and couplings: whole, escaped, and what they state is what they hold."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import pytest
from msgspec import structs

from tests.reporting import documents
from tests.reporting.pages.test_report_html import checked, words
from tightrope import reporting
from tightrope.documents.account import ComparisonAccount, read_account, read_training_account
from tightrope.documents.coupling import read_coupling
from tightrope.documents.noise import NOISES, NoiseDocument
from tightrope.documents.study import read_study
from tightrope.documents.wording import Explanation
from tightrope.errors import InputError
from tightrope.verify.check import check_document as verified
from tightrope.verify.claims import CONFIRMED, worst_verdict

READ: dict[str, Any] = {
    "account": read_account,
    "training": read_training_account,
    "noise": lambda text: NOISES.parse_json(text, NoiseDocument),
    "study": lambda text: read_study(text, toml=False),
    "coupling": read_coupling,
}
PLACES = {
    "account": ["steps", "bounds", "attacker"],
    "training": ["run", "attacker"],
    "noise": ["promise", "errors", "laws", "attacker"],
    "study": ["study", "effort", "attacker"],
    "coupling": ["secrecy", "groups"],
}


def held(page: str) -> dict[str, str]:
    """What stands inside a page, by the names of the files."""
    found = re.findall(r'<a href="data:[^,"]*,([^"]*)" download="([^"]*)">', page)
    return {name: unquote(text) for text, name in found}


def inside(kind: str) -> Any:
    """The document inside the page of a kind, read by its reader."""
    return READ[kind](next(iter(held(documents.page(kind)).values())))


@pytest.mark.parametrize("kind", documents.KINDS)
def test_whole_with_stable_places(kind: str) -> None:
    page = documents.page(kind)
    found = checked(page)
    places = [place for place in found.ids if not re.search(r"-\d+$", place)]
    assert places == ["files", *PLACES[kind], "check", "limits", "method"]
    assert {"header", "main", "footer", "table", "caption", "svg"} <= set(found.seen)
    assert found.seen.count("script") == 1 and not {"link", "img", "iframe"} & set(found.seen)
    assert not re.search(r"https?:|url\(|@import|NaN|nan%|None", re.sub('"data:[^"]*"', "", page))


@pytest.mark.parametrize("kind", documents.KINDS)
def test_its_promise_stands_first_and_is_that_of_its_document(kind: str) -> None:
    explained: Explanation = inside(kind).explanation_parts
    said = words(documents.page(kind))
    assert explained.attack is not None and explained.guesses is not None
    assert said.index(str(explained.attack)) < said.index(" ".join(explained.sentences)) < said.index("How to check it")
    assert str(explained).startswith(f"{explained.attack} {explained.sentences[0]}")
    assert all(f"{text} " in said for _, text, _ in explained.guesses.legend_entries)


@pytest.mark.parametrize("kind", documents.KINDS)
def test_the_same_document_gives_the_same_page_without_what_else_was_known(kind: str) -> None:
    page = reporting.document_html(inside(kind))
    assert page == reporting.document_html(inside(kind))
    assert set(checked(page).ids) - {"effort"} <= set(checked(documents.page(kind)).ids)


@pytest.mark.parametrize("kind", documents.KINDS)
def test_formulas_name_their_sources_in_order(kind: str) -> None:
    appendix = documents.page(kind).partition('<h2 id="method">')[2]
    named = [int(number) for number in re.findall(r'<a href="#source-(\d+)">\[\1\]</a>', appendix)]
    listed = [int(number) for number in re.findall(r'<li id="source-(\d+)">', appendix)]
    assert list(dict.fromkeys(named)) == listed == list(range(1, len(listed) + 1))
    formulas = re.findall(r'<p class="formula">(.*?)</p>', appendix)
    assert len(formulas) == appendix.count("<dt>") and all(formulas)


def test_names_are_escaped_and_cleaned() -> None:
    study, coupling = documents.page("study"), documents.page("coupling")
    assert "<b>" not in study + coupling
    assert "&lt;b&gt;tea&lt;/b&gt;" in study and "&lt;b&gt;north&lt;/b&gt;" in coupling
    assert "\u202e" not in coupling and "di�strict" in coupling


@pytest.mark.parametrize("kind", ["noise", "coupling"])
def test_what_is_inside_is_confirmed(kind: str) -> None:
    assert worst_verdict(verified(next(iter(held(documents.page(kind)).values())))) == CONFIRMED


@pytest.mark.parametrize("kind", ["account", "training", "noise"])
def test_every_point_of_the_curve_is_a_bound_at_least_as_high_as_the_document_allows(kind: str) -> None:
    document, text = inside(kind), held(documents.page(kind))["curve.csv"]
    points = [tuple(map(float, line.split(","))) for line in text.split()[1:]]
    own = document.guarantee if kind == "noise" else document
    assert points[0] == (0.0, pytest.approx(own.total_variation, rel=1e-9))
    deltas = [delta for _, delta in points]
    assert deltas == sorted(deltas, reverse=True) and len(points) == 25


def test_the_profile_marks_what_is_stated() -> None:
    page = documents.page("account")
    _, profile = re.findall(r'<div class="plot square">(.*?)</div>', page, re.DOTALL)
    assert profile.count('class="dot"') == 1
    assert "the stated guarantee marked" in profile


def test_other_ways_of_accounting_stand_beside_it() -> None:
    way = ComparisonAccount(name="<b>RDP</b>", statement="a bound", epsilon=None, total_variation=0.25)
    page = reporting.document_html(structs.replace(inside("training"), comparison=(way,)))
    assert "ways" in checked(page).ids
    assert "&lt;b&gt;RDP&lt;/b&gt; a bound ∞ 0.25" in words(page)


def test_a_file_of_the_groups_own_laws_is_not_for_everybody() -> None:
    public = inside("coupling")
    secret = READ["coupling"](
        held(documents.page("coupling"))["mechanism.json"]
        .replace('"kind":"public"', '"kind":"table"')
        .replace(public.origin.secrecy, "as secret as the table: it holds the laws of its groups as they are")
    )
    assert "It may be shared." in reporting.document_html(public)
    page = reporting.document_html(secret)
    assert "It may be shared." not in page and "as secret as the table" in page


def test_only_a_document_has_a_page() -> None:
    with pytest.raises(InputError, match="document"):
        reporting.document_html({"document": "account"})  # type: ignore[arg-type]
