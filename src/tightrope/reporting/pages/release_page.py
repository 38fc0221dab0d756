"""What the template is given: one frozen value a section, so that the template only places text."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from tightrope.documents.escaping import printable
from tightrope.documents.numbers import UP, percent, significant
from tightrope.reporting.charts import page_charts
from tightrope.reporting.charts.page_charts import (
    AxisChart,
    Dot,
    Dots,
    ListChart,
    Scale,
    axis_chart,
    hundred,
    list_chart,
)
from tightrope.reporting.pages.blocks import Attached, attached
from tightrope.reporting.wording import promise, sentences
from tightrope.reporting.wording.answers import Answer, Row, Shown, further, read_answers, rounded_row
from tightrope.reporting.wording.document import Json, items, number, object_at, objects_at, text, texts
from tightrope.reporting.wording.method import Method, of_release
from tightrope.reporting.wording.promise import Promise
from tightrope.reporting.wording.promise import promise as page_model_promise

# The table of one answer: keys, value, ± and interval, rounded outwards to the digits that the noise leaves.


@dataclass(frozen=True, slots=True)
class Line:
    """One group as it is written. ``first``: where a new first key begins in a table of several keys."""

    keys: tuple[str, ...]
    shown: Shown
    dot: Dot | None
    withheld: bool
    first: bool
    further: tuple[str, ...] = ()
    """What else was paid for, as text."""


def lines(answer: Answer, dots: Sequence[Dot | None] = ()) -> list[Line]:
    """One line a group, in the order of the keys, each with its dot where there is a list chart."""
    decimals, drawn = answer.decimals, dots or [None] * len(answer.rows)
    before = [None, *(row.keys[:1] for row in answer.rows)]
    every = zip(answer.rows, drawn, before, further(answer)[1], strict=False)
    return [_line(row, decimals, dot, (row.keys[:1] != previous, said)) for row, dot, previous, said in every]


def narrower_than_dots(dots: Sequence[Dot | None]) -> bool:
    """Whether most intervals hide behind their dots, which a reader should be told."""
    drawn = [dot for dot in dots if dot is not None]
    return bool(drawn) and sum(dot.upper - dot.lower < 1.5 for dot in drawn) > len(drawn) / 2


def _line(row: Row, decimals: int, dot: Dot | None, besides: tuple[bool, tuple[str, ...]]) -> Line:
    return Line(
        keys=row.labels,
        shown=rounded_row(row, decimals),
        dot=dot,
        withheld=row.value is None,
        first=besides[0],
        further=besides[1],
    )


PLACED = "LMN"
"""Letters, the marks without which many scripts have no words, and numbers: the classes of Unicode."""
MOST_LINES = 2_000  # more make the page heavy, and nobody reads them
DENSE_FROM = 25
SCROLLS_FROM = {"beside a chart": 11, "as a chart": 61}


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One answer: its words, its chart (along an axis, or inside the table) and its table."""

    name: str
    place: str
    """Its place on the page, for links: made from the name, the same in every release."""
    description: str
    heading: str
    asked: str
    by: tuple[str, ...]
    groups: int
    lines: list[Line]
    further: tuple[str, ...]
    axis: AxisChart | None
    listed: ListChart | None
    hidden_intervals: bool
    cut_whiskers: bool
    withheld: int
    statement: str
    typical_error: str
    costs: list[sentences.Cost]
    noise: list[dict[str, str]]
    notes: tuple[str, ...]

    @property
    def scrolls(self) -> bool:
        """Whether the table is too long to stand in full on a screen."""
        return len(self.lines) >= SCROLLS_FROM["beside a chart" if self.axis else "as a chart"]

    @property
    def dense(self) -> bool:
        """Whether lines stand close together."""
        return len(self.lines) >= DENSE_FROM


@dataclass(frozen=True, slots=True)
class PrivacyView:
    """How the privacy was computed."""

    tradeoff: page_charts.Curve | None
    profile: page_charts.Curve | None
    catches: list[dict[str, str]]
    alternatives: list[dict[str, str | float]]
    mechanisms: list[dict[str, str]]
    exact: list[tuple[str, str]]
    argument: str
    versions: list[tuple[str, str]]
    ledger: str


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page."""

    title: str
    promise: Promise
    hundred: list[Dots]
    """The picture of 100 guesses; empty where it is not stated what an attacker gains."""
    answers: list[AnswerView]
    left_out: list[tuple[str, str]]
    privacy: PrivacyView
    about: list[tuple[str, str]]
    attached: list[Attached]
    method: Method | None
    """The appendix; None where no mechanism is listed."""


def page_view(document: Json) -> Page:
    """Everything the page shows of a document."""
    certificate = object_at(document, "certificate")
    read = read_answers(document)
    answers = [answer_view(answer, place) for answer, place in zip(read, places([a.name for a in read]), strict=True)]
    left_out, privacy = sentences.left_out(document), privacy_view(certificate)
    said = page_model_promise(certificate)
    guesses = hundred(said.guesses) if said.guesses else []
    about_said = object_at(document, "about")
    title, about, files = (
        printable(text(document, "title")),
        [(words, printable(text(about_said, name))) for name, words in ABOUT.items() if text(about_said, name)],
        attached(document),
    )
    method = of_release(said.person.noun) if privacy.mechanisms else None
    return Page(title, said, guesses, answers, left_out, privacy, about, files, method)


ABOUT = {"description": "", "origin": "Source", "publisher": "Published by", "date": "Date", "contact": "Contact"}
"""What the publisher says, and the words before it."""


def places(names: Sequence[str]) -> list[str]:
    """The place of each answer on the page; one that repeats a name, as no release does, gets a number.

    >>> places(["count_by_city", "n", "n"])
    ['count-by-city', 'n', 'n--2']
    """
    before = (names[:own].count(name) for own, name in enumerate(names))
    return [place_of(name) + (f"--{own + 1}" if own else "") for name, own in zip(names, before, strict=True)]


def place_of(name: str) -> str:
    """A place that follows from the name alone: its small letters and digits, of any script, with "-" for each "_".

    A name that this changes otherwise has a digest behind "--", which no other place has: two names never meet.

    >>> place_of("count_by_city"), place_of("région"), place_of("Mean of x!")
    ('count-by-city', 'région', 'mean-of-x--48f1d0b7')
    """
    kept = (letter if unicodedata.category(letter)[0] in PLACED else "-" for letter in name.casefold())
    plain = re.sub("-+", "-", "".join(kept)).strip("-")
    if plain and plain.replace("-", "_") == name:
        return plain
    return f"{plain or 'answer'}--{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"


def answer_view(answer: Answer, place: str) -> AnswerView:
    """One answer as it is shown, at this place of the page."""
    groups, answer = len(answer.rows), replace(answer, rows=answer.rows[:MOST_LINES])
    axis = axis_chart(answer)
    listed = None if axis else list_chart(answer, f"grid-{place}")
    dots = [placed.dot for placed in axis.dots] if axis else listed.dots if listed else []
    return AnswerView(
        name=answer.name,
        place=f"answer-{place}",
        description=printable(answer.description),
        heading=sentences.heading(answer),
        asked=sentences.question_sentence(answer),
        by=tuple(map(printable, answer.by)),
        groups=groups,
        lines=lines(answer, listed.dots if listed else ()),
        further=further(answer)[0],
        axis=axis,
        listed=listed,
        hidden_intervals=narrower_than_dots(dots),
        cut_whiskers=any(dot is not None and (dot.cut_lower or dot.cut_upper) for dot in dots),
        withheld=answer.withheld,
        statement=text(answer.error, "statement"),
        typical_error=sentences.typical_error(answer.error),
        costs=sentences.costs(answer),
        noise=sentences.noise_lines(answer),
        notes=answer.notes,
    )


def privacy_view(certificate: Json) -> PrivacyView:
    """The section on how the privacy was computed."""
    computed, versions = object_at(certificate, "computed"), object_at(certificate, "versions")
    return PrivacyView(
        tradeoff=page_charts.tradeoff(certificate),
        profile=page_charts.privacy_profile(certificate),
        catches=[catch_line(catch) for catch in promise.catches(certificate)],
        alternatives=_alternatives(certificate),
        mechanisms=[_mechanism(source) for source in objects_at(certificate, "mechanisms")],
        exact=_exact(certificate),
        argument=text(computed, "argument"),
        versions=[(str(name), text(versions, name)) for name in sorted(versions, key=str) if text(versions, name)],
        ledger=text(certificate, "ledger"),
    )


def catch_line(catch: promise.Catch) -> dict[str, str]:
    """A line of the table of attacks."""
    return {
        "false": percent(catch.false_positive_rate),
        "true": percent(catch.true_positive_rate, UP),
        "times": significant(catch.times_chance, 2, UP),
    }


def _alternatives(certificate: Json) -> list[dict[str, str | float]]:
    """Families from the best to the worst, with the length of their bars in percent."""
    found = [(text(item, "family"), number(item, "relative_error")) for item in objects_at(certificate, "alternatives")]
    known = sorted((error, family) for family, error in found if family and error is not None and error > 0)
    if not known:
        return []
    scale = Scale(0.0, known[-1][0])
    return [
        {"family": family, "length": scale.at(error), "error": sentences.more_error(error)} for error, family in known
    ]


def _mechanism(source: Json) -> dict[str, str]:
    return {
        "answers": ", ".join(texts(source, "answers")),
        "statistic": _statistic(source),
        "family": text(source, "family"),
        "unit": text(source, "unit"),
        "sensitivity": _moved(text(source, "sensitivity_per_row"), text(source, "unit")),
        "rows": text(source, "rows"),
    }


OF_COLUMNS = {"usable rows": "rows with a value"}
"""Statistics that read otherwise before the name of a column."""


def _statistic(source: Json) -> str:
    """What was counted or added up, and over which groups; a statistic that names its columns is told them no more.

    >>> _statistic({"statistic": "sum", "column": "age", "by": ["city", "year"]})
    'sum of age by city, year'
    >>> _statistic({"statistic": "sum of squares of age", "column": "age"})
    'sum of squares of age'
    """
    statistic, column, by = text(source, "statistic"), text(source, "column"), ", ".join(texts(source, "by"))
    named = statistic if " of " in statistic or not column else f"{OF_COLUMNS.get(statistic, statistic)} of {column}"
    return named + (f" by {by}" if by else "")


def _moved(steps: str, unit: str) -> str:
    """How far one row moves the statistic, in natural units and exactly.

    >>> _moved("500000000", "1E-7"), _moved("1", "1"), _moved("", "?")
    ('50', '1', '')
    """
    try:
        exact = Decimal(steps) * Decimal(unit)
    except InvalidOperation:
        return ""
    return f"{exact.normalize():f}" if exact.is_finite() and abs(exact.adjusted()) < 40 else str(exact)


def _promised(budget: Json) -> str:
    """Every point of the budget.

    >>> _promised({"points": [["1", "1E-8"], ["0", "0.1"]]})
    'δ(1) ≤ 1E-8 and δ(0) ≤ 0.1'
    """
    pairs = [point for point in items(budget, "points") if isinstance(point, list | tuple) and len(point) == 2]
    return " and ".join(f"δ({epsilon}) ≤ {delta}" for epsilon, delta in pairs)


def _exact(certificate: Json) -> list[tuple[str, str]]:
    """The numbers of the guarantee as the certificate writes them."""
    budget = object_at(certificate, "budget")
    named = [
        ("ε, exact", text(certificate, "epsilon_exact")),
        ("δ, exact", text(certificate, "delta_exact")),
        ("Total variation", significant(number(certificate, "total_variation"), 4, UP)),
        ("Budget", _promised(budget)),
        ("Certain failure at most", text(budget, "delta")),
        ("Neighbours", text(object_at(certificate, "neighbours"), "relation")),
        ("Engine", text(object_at(certificate, "computed"), "engine")),
    ]
    return [(name, value) for name, value in named if value and value != "–"]
