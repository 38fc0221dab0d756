"""What a terminal and a notebook show of each kind of object: short, escaped, with bounds rounded to their side."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

import tightrope as tr
from tightrope.display import Rounded, Summary
from tightrope.local.studies.study import Findings
from tightrope.reporting import html_table, summary_html, summary_text

HOSTILE = '<script>alert("x")</script>\x1b[2J\u202e'
BUDGET = tr.Budget(epsilon=1, delta=1e-6)


def plan() -> Any:
    people = [number % 400 for number in range(1000)]
    frame = pd.DataFrame({"person": people, "city": [HOSTILE if p % 2 else "Oslo" for p in people], "age": people})
    session = tr.Session(frame, privacy_unit="person", max_rows=3, budget=BUDGET)
    return session.plan([tr.count(by="city", title=HOSTILE), tr.mean("age", bounds=(0, 400))])


def findings() -> Findings:
    study = tr.local.Study("distribution", 2.0, categories=("yes", HOSTILE))
    return Findings.from_counts(study, study.mechanism.tally_reports([0] * 700 + [1] * 300))


MAKERS: dict[str, Callable[[], Any]] = {
    "budget": lambda: BUDGET,
    "loss": lambda: 1000 * tr.gaussian(scale=20).loss,
    "noise": lambda: tr.least_noise(BUDGET, sensitivity=3),
    "certificate of noise": lambda: tr.least_noise(BUDGET, sensitivity=3).certificate,
    "document of noise": tr.least_noise(BUDGET, sensitivity=300).certificate.to_document,
    "limits": lambda: tr.noise_limits(BUDGET),
    "calibration": lambda: tr.calibrate(lambda scale: tr.gaussian(scale=scale).loss, BUDGET),
    "plan": plan,
    "draft": lambda: plan().draft,
    "allocation": lambda: plan().allocation,
    "answers": lambda: plan().release(),
    "answer": lambda: plan().release()[0],
    "certificate of a release": lambda: plan().release().certificate,
    "document of a release": lambda: plan().release().result(),
    "study": lambda: findings().study,
    "plan of a study": lambda: tr.local.plan("mean", epsilon=1.0, error=0.02),
    "option": lambda: tr.local.best("distribution", epsilon=1.0, k=1024),
    "shares": lambda: findings().shares,
    "findings": findings,
    "coupling": lambda: tr.transport.coupling([0.2, 0.8], [0.5, 0.5], [[0, 1], [1, 0]]),
    "coupling mechanism": lambda: tr.transport.CouplingMechanism.fit({HOSTILE: [0.2, 0.8]}, [[0, 1], [1, 0]]),
}


class Tags(HTMLParser):
    """The tags of a page, and whether each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.open = set[str](), list[str]()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        del attrs
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", MAKERS)
def test_every_kind_of_object_is_short_and_escaped(name: str) -> None:
    shown = MAKERS[name]()
    text, page = repr(shown), shown._repr_html_()
    assert len(text.splitlines()) <= 12
    assert len(text) <= 1500
    assert len(page) <= 5000
    assert "object at 0x" not in text
    for written in (text, page):
        assert not {"\x1b", "\u202e"} & set(written)
    tags = Tags()
    tags.feed(page)
    assert tags.seen <= {"table", "caption", "tr", "th", "td", "p"}
    assert not tags.open
    assert max(map(len, re.findall(r"[0-9]+", text + page))) <= 60  # no weights out of 2^128 in a row


def test_bounds_are_rounded_to_their_side() -> None:
    numbers = [("up", Rounded(1.00001, "up")), ("down", Rounded(1.99999, "down")), ("nearest", Rounded(1.99999))]
    lines = summary_text("Bounds", Summary("", numbers)).splitlines()
    assert [line.split(": ")[1].rstrip(">") for line in lines[1:]] == ["1.001", "1.999", "2"]
    loss = tr.gaussian(scale=20).loss
    shown = [row[1] for row in loss.notebook_summary().rows]
    assert [number.value for number in shown] == [loss.epsilon(delta) for delta in (1e-5, 1e-6, 1e-8)]
    assert {number.direction for number in shown} == {"up"}


def test_long_tables_are_cut_and_say_how_many_rows_are_left_out() -> None:
    rows = [[str(number)] for number in range(1000)]
    text, page = summary_text("Rows", Summary("", (), ["n"], rows)), html_table("", ["n"], rows)
    assert len(text.splitlines()) == 11
    assert "and 992 more" in text
    assert page.count("<tr>") == 61
    assert "and 940 more" in page


def test_a_certificate_stays_a_dictionary() -> None:
    answers = plan().release()
    assert answers.certificate == dict(answers.certificate)
    assert answers.certificate["epsilon"] <= 1
    assert answers.certificate["tables"]


def test_the_values_of_a_plan_are_not_read() -> None:
    """Only the schema: a plan shows neither keys nor values."""
    assert "Oslo" not in repr(plan()) + plan()._repr_html_()


def test_facts_and_rows_are_two_tables() -> None:
    both = Summary("a < b", [("x", 1)], ["y"], [[None]])
    page = summary_html("Kind", both)
    assert page.count("<table>") == 2
    assert "<caption>Kind: a &lt; b</caption>" in page
    assert "<td>–</td>" in page
