"""A study in which nobody is trusted: what people and collector share, and what the collector found."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta

from tightrope.documents import numbers
from tightrope.documents.document import Counted, Finite, Natural, Part, Positive, Probability, Size, Triple
from tightrope.documents.numbers import named
from tightrope.documents.reader import Reader
from tightrope.documents.wording import Explained, of_report
from tightrope.errors import InputError, PlanError

START = "write one with: tightrope local plan ... --out study.toml"
STUDY = Reader("study", START, PlanError)
FINDINGS = Reader("findings", "take what tightrope local estimate --json printed, as it is")

Question = Literal["distribution", "mean"]


class StudyDocument(Part, frozen=True, kw_only=True):
    """What is asked and how: shares of ``categories``, or the mean of numbers ``between`` two bounds.

    ``mechanism`` by its name, or "best". ``docs/local.md`` describes every key.
    """

    document: Literal["study"]
    version: Literal[1]
    title: str = ""
    question: Question
    categories: Annotated[tuple[str | int, ...], Meta(min_length=2)] | None = None
    between: tuple[Finite, Finite] | None = None
    mechanism: str = "best"
    epsilon: Positive
    total_variation: Annotated[float, Meta(gt=0, lt=1)] | None = None

    @property
    def most_total_variation(self) -> Decimal:
        """What ε and the cap leave of the total variation of a report, rounded up."""
        implied = numbers.total_variation(self.epsilon, 0.0)
        return implied if self.total_variation is None else min(implied, named(self.total_variation))

    @property
    def explained(self) -> Explained:
        """``explain`` in its parts."""
        return of_report(self.epsilon, 0.0, self.most_total_variation)

    def explain(self) -> str:
        """What a report in this study promises whoever makes it, in one paragraph; every number is rounded up."""
        return str(self.explained)


class Estimate(Part, frozen=True, kw_only=True):
    """A share or a mean with its interval. Of a share: its ``category``, and how many of the ``people`` it would be.

    ``consistent``: the share moved so that none is below 0 and all add up to 1; None where that was not asked for.
    """

    category: str | int | None
    value: Finite
    lower: Finite
    upper: Finite
    people: Finite | None
    consistent: Size | None


class Effort(Part, frozen=True, kw_only=True):
    """The ``error`` that so many ``people`` give, for the worst population: root mean squared.

    ``least_people``: fewer do not reach it, by whatever mechanism, if they do not see each other's reports; if they may
    see earlier ones, fewer than ``least_people_interactive``; 0 where a guess is as good, so that nobody need be asked.
    The ``best`` known takes ``best_people``.
    """

    people: Counted
    error: Size
    least_people: Natural
    least_people_interactive: Natural
    best: str
    best_people: Counted


class Repeated(Triple, frozen=True, kw_only=True):
    """What so many fresh ``reports`` of one person say, and how often a guess between two answers is right, at most."""

    attack_success: Probability
    reports: Counted


class Privacy(Triple, frozen=True, kw_only=True):
    """What one report says about a person, and what several fresh ones do."""

    attack_success: Probability
    repeated: tuple[Repeated, ...]


class Chance(Part, frozen=True, kw_only=True):
    """A probability that is sampled, exactly as a fraction."""

    meaning: str
    exact: Annotated[str, Meta(pattern="^[0-9]{1,4300}/[0-9]{1,4300}$")]
    value: Probability


class MechanismFacts(Part, frozen=True, kw_only=True):
    """A mechanism by name, the size of its reports, and what it does."""

    name: str
    report_bits: Counted
    probabilities: tuple[Chance, ...]


class FindingsDocument(Part, frozen=True, kw_only=True):
    """Estimates, what they took, and what they tell about each person; shares in the order of the study.

    ``answered`` of the ``reports`` say something. ``simultaneous``: all intervals hold together with the confidence.
    """

    document: Literal["findings"]
    version: Literal[1]
    title: str
    question: Question
    between: tuple[Finite, Finite] | None
    reports: Counted
    answered: Natural
    confidence: Probability
    simultaneous: bool
    estimates: tuple[Estimate, ...]
    effort: Effort
    privacy: Privacy
    mechanism: MechanismFacts

    def __post_init__(self) -> None:
        if not (len(self.estimates) > 1 if self.shares else len(self.estimates) == 1):
            raise InputError("estimates", len(self.estimates), "one of a mean, several of a distribution")
        for place, one in enumerate(self.estimates, start=1):
            if self.shares in (one.category is None, one.people is None):
                raise InputError(f"estimates {place}", self.question, "with category and people, but for a mean")
        if not self.answered <= self.reports:
            raise InputError("answered", self.answered, f"at most {self.reports}, the reports")

    @property
    def explained(self) -> Explained:
        """``explain`` in its parts."""
        told = self.privacy
        return of_report(told.epsilon, told.delta, told.total_variation)

    def explain(self) -> str:
        """What a report promised whoever made it, in one paragraph; every number is rounded up."""
        return str(self.explained)

    @property
    def shares(self) -> bool:
        """Whether shares of categories were asked for, and not a mean."""
        return self.question == "distribution"


def read_study(text: str, *, toml: bool) -> StudyDocument:
    """The study in a text, TOML or JSON; raises ``PlanError`` that names the key of what is wrong."""
    if not toml:
        return STUDY.json(text, StudyDocument)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise PlanError("study", f"{len(text)} characters", "valid TOML", " ".join(str(problem).split())) from None
    return STUDY.data(data, StudyDocument)


def read_findings(text: str) -> FindingsDocument:
    """The findings in a JSON text; raises ``InputError`` that names the place of what is wrong."""
    return FINDINGS.json(text, FindingsDocument)
