"""What the page of a study is given: one frozen value a section, so that the template only places text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.report.pictures.dots import Dot, ListChart
from tightrope.report.pictures.scale import Scale, Tick, scale_of
from tightrope.report.words import study
from tightrope.report.words.attacker import attack_success
from tightrope.report.words.digits import UP, fixed, percent, significant
from tightrope.report.words.document import Json, number, part, parts, text

TICKS, DENSE_FROM, SCROLLS_FROM, MOST_LINES = 4, 25, 61, 2_000


@dataclass(frozen=True, slots=True)
class Bar:
    """How many people one way takes; ``length`` in percent of the longest."""

    name: str
    people: str
    length: float
    ours: bool


@dataclass(frozen=True, slots=True)
class EstimatesView:
    """The table of estimates, with a chart inside where they are several; ``hidden``: how many are left out."""

    lines: list[study.Written]
    chart: ListChart | None
    confidence: str
    interval: str
    hidden: int

    @property
    def dots(self) -> list[Dot | None]:
        """One for each line; None where there is no chart."""
        return self.chart.dots if self.chart else [None] * len(self.lines)

    @property
    def shaped(self) -> bool:
        """Whether consistent shares are shown."""
        return any(line.shaped for line in self.lines)

    @property
    def dense(self) -> bool:
        """Whether lines stand close together."""
        return len(self.lines) >= DENSE_FROM

    @property
    def scrolls(self) -> bool:
        """Whether the table is too long to stand in full on a screen."""
        return len(self.lines) >= SCROLLS_FROM


@dataclass(frozen=True, slots=True)
class PrivacyView:
    """What reports say about a person. ``fill``: how far the bar goes from a coin flip to certainty, in percent."""

    success: str
    fill: float
    epsilon: str
    odds: str
    total_variation: str
    repeated: list[study.Repeated]
    memoise: str
    mechanism: str
    report_bits: str
    chances: list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class StudyPage:
    """The whole page of a study."""

    title: str
    shares: bool
    asked: str
    reports: str
    estimates: EstimatesView
    effort: str
    bars: list[Bar]
    privacy: PrivacyView


def study_view(document: Json) -> StudyPage:
    """Everything the page shows of a document."""
    return StudyPage(
        title=text(document, "title"),
        shares=study.is_shares(document),
        asked=_asked(document),
        reports=_reports(document),
        estimates=_estimates(document),
        effort=study.effort_words(document),
        bars=_bars(document),
        privacy=_privacy(document),
    )


def _estimates(document: Json) -> EstimatesView:
    found, lines = study.estimates(document), study.lines(document)
    return EstimatesView(
        lines=lines[:MOST_LINES],
        chart=_chart(found[:MOST_LINES]),
        confidence=percent(number(document, "confidence")),
        interval=study.interval_words(document),
        hidden=max(0, len(lines) - MOST_LINES),
    )


def _privacy(document: Json) -> PrivacyView:
    privacy, mechanism = part(document, "privacy"), part(document, "mechanism")
    success, epsilon = attack_success(privacy), number(privacy, "epsilon")
    return PrivacyView(
        success="" if success is None else percent(success, UP),
        fill=0.0 if success is None else min(max(200 * success - 100, 0.0), 100.0),
        epsilon="" if epsilon is None else significant(epsilon, 4, UP),
        odds="" if epsilon is None else study.odds_words(epsilon),
        total_variation=significant(number(privacy, "total_variation"), 3, UP),
        repeated=study.repeated(document),
        memoise=study.MEMOISE,
        mechanism=text(mechanism, "name"),
        report_bits=study.bits_words(document),
        chances=[_chance(source) for source in parts(mechanism, "probabilities")],
    )


def _asked(document: Json) -> str:
    if study.is_shares(document):
        return "How large a share of the people gave each answer. Nobody's answer was collected."
    return "The average of one number a person. Nobody's number was collected."


def _reports(document: Json) -> str:
    """How many reports there are, and how many of them say nothing.

    >>> _reports({"reports": 1200, "answered": 800})
    '1,200 reports, 400 of them silent'
    """
    reports, answered = number(document, "reports"), number(document, "answered")
    if reports is None:
        return ""
    silent = 0.0 if answered is None else reports - answered
    return f"{fixed(reports, 0)} reports" + (f", {fixed(silent, 0)} of them silent" if silent > 0 else "")


def _chart(found: Sequence[study.Estimate]) -> ListChart | None:
    """Dots with whiskers along one axis of shares that starts at 0 or below; None for fewer than two."""
    ends = [end for one in found for end in (one.value, one.lower, one.upper) if end is not None]
    if len(found) < 2 or not ends:
        return None
    wide = scale_of([0.0, *ends])
    scale = Scale(0.0, wide.high) if min(ends) >= 0 else wide
    ticks = [Tick(tick.at, f"{tick.label} %") for tick in scale.ticks(TICKS)]
    return ListChart("grid", scale.at(0.0), ticks, [_dot(one, scale) for one in found])


def _dot(one: study.Estimate, scale: Scale) -> Dot | None:
    if one.value is None:
        return None
    lower = one.value if one.lower is None else one.lower
    upper = one.value if one.upper is None else one.upper
    return Dot(scale.at(one.value), scale.at(lower), scale.at(upper), False, False)


def _bars(document: Json) -> list[Bar]:
    """People, for the error that this study reaches: by this mechanism, by the best one known, by any."""
    effort = part(document, "effort")
    name, best = text(part(document, "mechanism"), "name"), text(effort, "best")
    rows = [(f"This study: {name}", number(effort, "people"), True)]
    if best != name:
        rows.append((f"The best known: {best}", number(effort, "best_people"), False))
    rows.append(("Any mechanism whatsoever: at least", number(effort, "least_people"), False))
    longest = max((people for _, people, _ in rows if people is not None), default=0.0)
    if longest <= 0:
        return []
    scale = Scale(0.0, longest)
    return [Bar(who, fixed(people, 0), scale.at(people), ours) for who, people, ours in rows if people is not None]


def _chance(source: Json) -> tuple[str, str, str]:
    return text(source, "meaning"), text(source, "exact"), significant(number(source, "value"), 9)
