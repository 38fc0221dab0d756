"""Studies in the local model: parameters shared by participants and collector, and the collector's findings."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Meta

from tightrope.documents import numbers
from tightrope.documents.document import Counted, Finite, Natural, Part, Positive, Probability, Size, Triple
from tightrope.documents.numbers import shortest_decimal
from tightrope.documents.reader import Reader, rename_document_keys
from tightrope.documents.wording import Explanation, explain_report
from tightrope.errors import InputError, PlanError

START = "write one with: tightrope local plan ... --out study.toml"


def upgrade_keys(data: Any) -> Any:
    """Return the data of a study or its findings with the keys of version 2."""
    if isinstance(data, dict) and data.get("version") == 1:
        return rename_document_keys(data, {(): {"between": "bounds"}})
    return data


STUDY = Reader("study", START, PlanError, upgrade=upgrade_keys)
FINDINGS = Reader("findings", "take what tightrope local estimate --json printed, as it is", upgrade=upgrade_keys)

Question = Literal["distribution", "mean"]


class StudyDocument(Part, frozen=True, kw_only=True):
    """A study's question and method: shares of ``categories``, or the mean of numbers within ``bounds``.

    ``mechanism`` by its name, or "best". ``docs/local.md`` describes every key.
    """

    document: Literal["study"]
    version: Literal[1, 2]
    title: str = ""
    question: Question
    categories: Annotated[tuple[str | int, ...], Meta(min_length=2)] | None = None
    bounds: tuple[Finite, Finite] | None = None
    mechanism: str = "best"
    epsilon: Positive
    total_variation: Annotated[float, Meta(gt=0, lt=1)] | None = None

    @property
    def most_total_variation(self) -> Decimal:
        """Return the largest total variation of a report under ε and ``total_variation``, rounded up."""
        implied = numbers.total_variation(self.epsilon, 0.0)
        return implied if self.total_variation is None else min(implied, shortest_decimal(self.total_variation))

    @property
    def explanation_parts(self) -> Explanation:
        """The parts of the text of ``explain``."""
        return explain_report(self.epsilon, 0.0, self.most_total_variation)

    def explain(self) -> str:
        """Return the guarantee of a report in this study, in one paragraph; every number is rounded up."""
        return str(self.explanation_parts)


class Estimate(Part, frozen=True, kw_only=True):
    """A share or a mean with its interval.

    Of a share: its ``category``, and ``people``, the share times the number of people.
    ``consistent``: the share moved so that none is below 0 and all add up to 1; None where that was not asked for.
    """

    category: str | int | None
    value: Finite
    lower: Finite
    upper: Finite
    people: Finite | None
    consistent: Size | None


class SampleSizePart(Part, frozen=True, kw_only=True):
    """The ``error`` with this many ``people``, for the worst population: root mean squared.

    No mechanism reaches this error with fewer than ``least_people`` who do not see each other's reports, or with fewer
    than ``least_people_interactive`` who may see earlier ones; 0 if a constant guess is already as accurate. The
    ``best`` known mechanism needs ``best_people``.
    """

    people: Counted
    error: Size
    least_people: Natural
    least_people_interactive: Natural
    best: str
    best_people: Counted


class RepeatedReports(Triple, frozen=True, kw_only=True):
    """The privacy loss of ``reports`` reports of one person, each randomized anew, and of a guess."""

    attack_success: Probability
    reports: Counted


class Privacy(Triple, frozen=True, kw_only=True):
    """The privacy loss of one report, and of several that are each randomized anew."""

    attack_success: Probability
    repeated: tuple[RepeatedReports, ...]


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
    """Estimates, the number of people they need, and the privacy loss of each; shares in the order of the study.

    ``answered`` of the ``reports`` say something. ``simultaneous``: all intervals hold together with the confidence.
    """

    document: Literal["findings"]
    version: Literal[1, 2]
    title: str
    question: Question
    bounds: tuple[Finite, Finite] | None
    reports: Counted
    answered: Natural
    confidence: Probability
    simultaneous: bool
    estimates: tuple[Estimate, ...]
    effort: SampleSizePart
    privacy: Privacy
    mechanism: MechanismFacts

    def __post_init__(self) -> None:
        if not (len(self.estimates) > 1 if self.estimates_proportions else len(self.estimates) == 1):
            raise InputError("estimates", len(self.estimates), "one of a mean, several of a distribution")
        for number, estimate in enumerate(self.estimates, start=1):
            if self.estimates_proportions in (estimate.category is None, estimate.people is None):
                expected = "with category and people for a share, without them for a mean"
                raise InputError(f"estimates {number}", self.question, expected)
        if not self.answered <= self.reports:
            raise InputError("answered", self.answered, f"at most {self.reports}, the reports")

    @property
    def explanation_parts(self) -> Explanation:
        """The parts of the text of ``explain``."""
        privacy = self.privacy
        return explain_report(privacy.epsilon, privacy.delta, privacy.total_variation)

    def explain(self) -> str:
        """Return the guarantee of a report, in one paragraph; every number is rounded up."""
        return str(self.explanation_parts)

    @property
    def estimates_proportions(self) -> bool:
        """Return whether proportions of categories are estimated, and not a mean."""
        return self.question == "distribution"


def read_study(text: str, *, toml: bool) -> StudyDocument:
    """Return the study in a text, TOML or JSON; raises ``PlanError`` with the key of the problem."""
    if not toml:
        return STUDY.parse_json(text, StudyDocument)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise PlanError.from_text("study", f"not valid TOML ({' '.join(str(problem).split())}); {START}") from None
    return STUDY.convert_data(data, StudyDocument)


def read_findings(text: str) -> FindingsDocument:
    """Return the findings in a JSON text; raises ``InputError`` with the path of the problem."""
    return FINDINGS.parse_json(text, FindingsDocument)
