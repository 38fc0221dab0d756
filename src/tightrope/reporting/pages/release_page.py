"""Template data of a release page: one frozen value a section, so that the template only places text."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from tightrope.documents.escaping import A_PERSON, escape_control_chars
from tightrope.documents.numbers import MISSING, UP, significant_text
from tightrope.documents.privacy_unit import unit_count_text
from tightrope.documents.release import PublisherPart, ReleasedMechanism, ReleaseResult
from tightrope.errors import InputError
from tightrope.reporting.charts import page_charts
from tightrope.reporting.charts.page_charts import (
    AxisChart,
    Dot,
    GuessDots,
    HeatMap,
    ListChart,
    Scale,
    TableMargin,
    axis_chart,
    guess_dots,
    heat_map,
    list_chart,
    table_margin,
)
from tightrope.reporting.pages.blocks import EmbeddedFile, embedded_files, template_environment
from tightrope.reporting.wording import promise, sentences
from tightrope.reporting.wording.answers import Answer, RoundedValues, extra_columns, printed_answer_row, shown_answers
from tightrope.reporting.wording.method import MethodAppendix, release_method
from tightrope.reporting.wording.partial_release import PartialMechanism, PartialRelease, read_release
from tightrope.reporting.wording.promise import Certificate, PrivacyPromise, privacy_promise

# The table of one answer: keys, value, ± and interval, rounded outwards to the digits that the noise leaves.


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One group as printed. ``first``: true if a new first key begins in a table of several keys."""

    keys: tuple[str, ...]
    rounded_values: RoundedValues
    dot: Dot | None
    is_suppressed: bool
    first: bool
    extra_cells: tuple[str, ...] = ()
    """The answer's additional published values, as text."""


def answer_lines(answer: Answer, dots: Sequence[Dot | None] = ()) -> list[AnswerLine]:
    """Return one line for each group, in the order of the keys, each with its dot if there is a list chart."""
    drawn = dots or [None] * len(answer.rows)
    before = [None, *(row.keys[:1] for row in answer.rows)]
    every = zip(answer.rows, drawn, before, extra_columns(answer)[1], strict=False)
    return [
        AnswerLine(
            keys=row.key_labels,
            rounded_values=printed_answer_row(answer, row),
            dot=dot,
            is_suppressed=row.value is None,
            first=row.keys[:1] != previous,
            extra_cells=said,
        )
        for row, dot, previous, said in every
    ]


PLACED = "LMN"
"""Unicode classes of letters, of combining marks (needed in many scripts) and of numbers."""
MOST_LINES = 800
"""Number of table lines on a page, over all answers: more make it too large to mail, and too long to read."""
FEWEST_LINES = 100
"""Every answer has up to this many lines, however many others there are."""
MOST_OPEN_TABLES = 8
"""With more tables of one question than this, each is shown when the reader opens it."""
DENSE_FROM = 25
SCROLLS_FROM = {"beside a chart": 11, "as a chart": 61}


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One answer: its words, its chart (along an axis, or inside the table) and its table."""

    name: str
    anchor: str
    """Its anchor on the page, for links: derived from the name, the same in every release."""
    description: str
    heading: str
    left_out: str
    """The estimated share of rows left out, in a sentence; empty if unknown."""
    question_text: str
    clamping: str
    """How clamped values change the answer; empty if none is clamped."""
    caption_unit: str
    """The unit of the values after a comma; empty without a unit."""
    by: tuple[str, ...]
    groups: int
    lines: list[AnswerLine]
    extra_columns: tuple[str, ...]
    axis: AxisChart | None
    inline_chart: ListChart | None
    heat_map: HeatMap | None
    hidden_intervals: bool
    cut_whiskers: bool
    suppressed_count: int
    missing_groups: str
    statement: str
    typical_error: str
    error_label: str
    error_rows: list[sentences.ErrorRow]
    noise: list[dict[str, str]]
    notes: tuple[str, ...]
    margin: TableMargin | None = None
    """The margin of error next to those of the other tables, if it is one of several tables of one question."""
    is_collapsed: bool = False
    """True if the reader opens the table first, because there are many."""

    @property
    def is_scrollable(self) -> bool:
        """Return whether the table is too long to fit on a screen."""
        return len(self.lines) >= SCROLLS_FROM["beside a chart" if self.axis else "as a chart"]

    @property
    def is_dense(self) -> bool:
        """Return whether lines stand close together."""
        return len(self.lines) >= DENSE_FROM


@dataclass(frozen=True, slots=True)
class PrivacyView:
    """The section on how the privacy guarantee was computed."""

    tradeoff: page_charts.Curve | None
    profile: page_charts.Curve | None
    attack_rates: list[dict[str, str]]
    alternatives: list[dict[str, str | float]]
    mechanisms: list[dict[str, str]]
    exact: list[tuple[str, str]]
    has_discovered_groups: bool
    argument: str
    versions: list[tuple[str, str]]
    ledger: str


@dataclass(frozen=True, slots=True)
class ReleasePage:
    """The whole page."""

    title: str
    promise: PrivacyPromise
    guess_dots: list[GuessDots]
    """The picture of 100 guesses; empty if the attacker's gain is not stated."""
    answers: list[AnswerView]
    bias_statements: list[tuple[str, str]]
    bias_heading: str
    privacy: PrivacyView
    about: list[tuple[str, str]]
    embedded_files: list[EmbeddedFile]
    method: MethodAppendix | None
    """The appendix; None if no mechanism is listed."""

    @property
    def embeds_certificate(self) -> bool:
        """Return whether the certificate is inside the page."""
        return any(file.name == "certificate.json" for file in self.embedded_files)


def html(document: ReleaseResult | PartialRelease | Mapping[str, object]) -> str:
    """Return the report of a release as one self-contained HTML page.

    ``document`` is the result of a release, or the JSON object that ``tightrope release --json`` prints: there any
    field may be missing or null, unknown ones are ignored, and every text in it is escaped. The same
    document gives the same bytes. Raises InputError where ``document`` is neither, MissingExtraError without jinja2.

    >>> "right at most 65 % of the time" in html({"certificate": {"total_variation": 0.3}})
    True
    """
    if not isinstance(document, ReleaseResult | PartialRelease | Mapping):
        remedy = "pass json.loads() of what `tightrope release --json` prints"
        raise InputError("document", document, "a mapping", remedy)
    return template_environment().get_template("report.html.j2").render(page=page_view(read_release(document)))


def _publisher_facts(about: PublisherPart) -> list[tuple[str, str]]:
    """Return what the publisher says about the release, with labels; without what is not stated."""
    facts = (
        ("", about.description),
        ("Source", about.origin),
        ("Published by", about.publisher),
        ("Date", about.date),
        ("Contact", about.contact),
    )
    return [(label, escape_control_chars(text.strip())) for label, text in facts if text and text.strip()]


def page_view(document: ReleaseResult | PartialRelease) -> ReleasePage:
    """Return the contents of the page of a release."""
    read, promised = shown_answers(document), privacy_promise(document.certificate)
    most_lines = max(FEWEST_LINES, MOST_LINES // max(1, sum(len(answer.rows) > FEWEST_LINES for answer in read)))
    margins = table_margins(read) if read and read[0].kind == "marginals" else {}
    answers = [
        replace(
            answer_view(answer, place, most_lines, unit_label=promised.person.means),
            left_out=sentences.left_out_text(document, answer.name),
            margin=margins.get(answer.name),
            is_collapsed=len(margins) > MOST_OPEN_TABLES and bool(answer.by),
        )
        for answer, place in zip(read, answer_anchors([a.name for a in read]), strict=True)
    ]
    # The statement on intervals is the same for most answers: show it once, and then briefly.
    first_with = {answer.statement: answer.anchor for answer in reversed(answers)}
    answers = [
        answer
        if first_with[answer.statement] == answer.anchor or not answer.statement
        else replace(answer, statement=sentences.SAME_STATEMENT)
        for answer in answers
    ]
    left_out = sentences.bias_statements(document)
    privacy = privacy_view(document)
    return ReleasePage(
        title=escape_control_chars((document.title or "").strip()),
        promise=promised,
        guess_dots=guess_dots(promised.guesses) if promised.guesses else [],
        answers=answers,
        bias_statements=left_out,
        bias_heading=sentences.bias_heading(document),
        privacy=privacy,
        about=_publisher_facts(document.about or PublisherPart()),
        embedded_files=embedded_files(document),
        method=release_method(promised.person) if privacy.mechanisms else None,
    )


def table_margins(answers: Sequence[Answer]) -> dict[str, TableMargin]:
    """Return the margins of error of the tables of one question, by name; empty if there are not several."""
    tables = [answer for answer in answers if answer.kind == "marginals"]
    if len(tables) < 2:
        return {}
    largest = max(answer.error.half_width_95 or 0.0 for answer in tables)
    return {answer.name: table_margin(answer, largest) for answer in tables}


def answer_anchors(names: Sequence[str]) -> list[str]:
    """Return the anchor of each answer on the page; a repeated name, absent from valid releases, gets a number.

    >>> answer_anchors(["count_by_city", "n", "n"])
    ['count-by-city', 'n', 'n--2']
    """
    before = (names[:own].count(name) for own, name in enumerate(names))
    return [anchor_from_name(name) + (f"--{own + 1}" if own else "") for name, own in zip(names, before, strict=True)]


def anchor_from_name(name: str) -> str:
    """Return an anchor made from the name: its small letters and digits, of any script, with "-" for each "_".

    A name with other changes gets a unique digest after "--", so that different names have different anchors.

    >>> anchor_from_name("count_by_city"), anchor_from_name("région"), anchor_from_name("Mean of x!")
    ('count-by-city', 'région', 'mean-of-x--48f1d0b7')
    """
    kept = (letter if unicodedata.category(letter)[0] in PLACED else "-" for letter in name.casefold())
    plain = re.sub("-+", "-", "".join(kept)).strip("-")
    if plain and plain.replace("-", "_") == name:
        return plain
    return f"{plain or 'answer'}--{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"


def answer_view(answer: Answer, place: str, most_lines: int = MOST_LINES, *, unit_label: str = A_PERSON) -> AnswerView:
    """Return one answer as displayed, with this anchor and at most this many lines.

    ``unit_label`` is the noun of the privacy unit with its article.
    """
    heat = heat_map(answer) if answer.kind == "marginals" else None
    groups, answer = len(answer.rows), replace(answer, rows=answer.rows[:most_lines])
    axis = axis_chart(answer)
    listed = None if axis else list_chart(answer, f"grid-{place}")
    dots = [placed.dot for placed in axis.dots] if axis else listed.dots if listed else []
    drawn = [dot for dot in dots if dot is not None]
    return AnswerView(
        name=answer.name,
        anchor=f"answer-{place}",
        description=escape_control_chars(answer.description),
        heading=sentences.answer_heading(answer),
        left_out="",
        question_text=sentences.question_sentence(answer),
        clamping=answer.clamping,
        caption_unit=f", in {escape_control_chars(answer.unit)}" if answer.unit else "",
        by=tuple(map(escape_control_chars, answer.by)),
        groups=groups,
        lines=answer_lines(answer, listed.dots if listed else ()),
        extra_columns=extra_columns(answer)[0],
        axis=axis,
        inline_chart=listed,
        heat_map=heat,
        hidden_intervals=bool(drawn) and sum(dot.upper - dot.lower < 1.5 for dot in drawn) > len(drawn) / 2,
        cut_whiskers=any(dot is not None and (dot.cut_lower or dot.cut_upper) for dot in dots),
        suppressed_count=sum(row.value is None for row in answer.rows),
        statement=answer.error.statement,
        missing_groups=sentences.missing_groups_text(answer),
        typical_error=sentences.typical_error(answer),
        error_label=sentences.expected_error_label(answer).capitalize(),
        error_rows=sentences.error_rows(answer),
        noise=sentences.noise_lines(answer, unit_label),
        notes=answer.notes,
    )


def privacy_view(document: ReleaseResult | PartialRelease) -> PrivacyView:
    """Return the section on how the privacy guarantee was computed."""
    certificate = document.certificate
    # Families from the best to the worst, with the length of their bars in percent.
    known = sorted(
        (other.relative_error, other.family)
        for other in certificate.alternatives
        if other.family and other.relative_error is not None and other.relative_error > 0
    )
    alternatives: list[dict[str, str | float]] = []
    if known:
        scale = Scale(0.0, known[-1][0])
        alternatives = [
            {
                "family": sentences.family_text(family),
                "length": scale.to_percent(error),
                "error": sentences.more_error(error),
            }
            for error, family in known
        ]
    special_names = _special_statistic_names(document)
    mechanisms = [
        {
            "answers": ", ".join(mechanism.answers),
            "statistic": mechanism_statistic_text(mechanism, special_names),
            "family": sentences.family_text(mechanism.family),
            "unit": str(mechanism.unit),
            "sensitivity": sensitivity_text(mechanism.sensitivity_per_row, mechanism.unit),
            "rows": str(mechanism.rows),
        }
        for mechanism in certificate.mechanisms
    ]
    return PrivacyView(
        tradeoff=page_charts.tradeoff_chart(certificate),
        profile=page_charts.privacy_profile_chart(certificate),
        attack_rates=[attack_rate_line(catch) for catch in promise.attack_rates(certificate)],
        alternatives=alternatives,
        mechanisms=mechanisms,
        exact=_exact_guarantee_numbers(certificate),
        has_discovered_groups=any(answer.keys == "discovered" for answer in document.answers),
        argument=certificate.computed.argument,
        versions=[(name, version) for name, version in sorted(certificate.versions.items()) if version],
        ledger=certificate.ledger,
    )


def attack_rate_line(catch: promise.AttackRate) -> dict[str, str]:
    """Return a line of the table of attacks."""
    return {
        "false": promise.attack_rate_text(catch.false_positive_rate),
        "true": promise.attack_rate_text(catch.true_positive_rate),
        "times": significant_text(catch.true_positive_rate / catch.false_positive_rate, 3, UP),
    }


COLUMN_STATISTICS = {
    "usable rows": "number of rows with a value of {}",
    "usable values": "number of non-missing values of {}",
    "ones or zeros": "number of rows with true, and with false, in {}",
}
"""Statistics of a column with their own wording; the others end in "of" and the column."""


def _special_statistic_names(document: ReleaseResult | PartialRelease) -> dict[str, dict[str, str]]:
    """Return the displayed names of statistics by answer, where they depend on the kind of the answer."""
    statistics_by_answer: dict[str, set[str]] = {}
    for mechanism in document.certificate.mechanisms:
        for name in mechanism.answers:
            statistics_by_answer.setdefault(name, set()).add(mechanism.statistic)
    unit_count = unit_count_text(document.certificate.neighbors.noun or A_PERSON)
    return {
        **{answer.name: {"count": unit_count} for answer in document.answers if answer.kind == "count_distinct"},
        **{
            name: {"sum": sentences.CENTERED_SUM}
            for name, statistics in statistics_by_answer.items()
            if statistics >= sentences.MEAN_STATISTICS
        },
    }


def mechanism_statistic_text(
    mechanism: ReleasedMechanism | PartialMechanism, special_names: Mapping[str, Mapping[str, str]]
) -> str:
    """Return the statistic with its column and groups; a statistic whose name includes its column is left as it is.

    ``special_names``: displayed names of statistics, by answer; used if all answers of the mechanism have the same.

    >>> mechanism_statistic_text(PartialMechanism(statistic="sum", column="age", by=("city", "year")), {})
    'sum of age by city, year'
    >>> mechanism_statistic_text(PartialMechanism(statistic="sum of squares of age", column="age"), {})
    'sum of squares of age'
    """
    statistic, column, by = mechanism.statistic, mechanism.column, ", ".join(mechanism.by)
    usual_name = sentences.statistic_text(statistic)
    names = {special_names.get(answer, {}).get(statistic, usual_name) for answer in mechanism.answers}
    named = names.pop() if len(names) == 1 else usual_name
    if " of " not in statistic and column:
        named = COLUMN_STATISTICS.get(statistic, f"{named} of {{}}").format(column)
    return named + (f" by {by}" if by else "")


def sensitivity_text(steps: str, unit: Decimal | str) -> str:
    """Return how much one row changes the statistic, exactly and in natural units.

    >>> sensitivity_text("500000000", Decimal("1E-7")), sensitivity_text("1", "1"), sensitivity_text("", "?")
    ('50', '1', '')
    """
    try:
        exact = Decimal(steps) * Decimal(unit)
    except InvalidOperation:
        return ""
    if not exact.is_finite():
        return ""
    return f"{exact.normalize():f}" if abs(exact.adjusted()) < 40 else str(exact)


def _typed_number(number: Decimal | str) -> str:
    """Return a number as it is typed: "1e-8" for "1E-8"."""
    return str(number).replace("E", "e")


def _exact_guarantee_numbers(certificate: Certificate) -> list[tuple[str, str]]:
    """Return the numbers of the guarantee exactly as in the certificate."""
    points = (
        f"δ ≤ {_typed_number(delta)} at ε = {_typed_number(epsilon)}" for epsilon, delta in certificate.budget.points
    )
    named = [
        ("ε, upper bound with all digits", str(certificate.epsilon_exact)),
        ("δ, with all digits", _typed_number(certificate.delta_exact)),
        ("Total variation", significant_text(certificate.total_variation, 4, UP)),
        ("Requested guarantee", " and ".join(points)),
        ("Probability of unbounded loss, at most", _typed_number(certificate.budget.delta)),
        ("Relation of neighboring tables", certificate.neighbors.relation),
        ("δ(ε) of the total loss evaluated by", certificate.computed.method),
    ]
    return [(name, value) for name, value in named if value not in ("", MISSING, "NaN", "Infinity")]
