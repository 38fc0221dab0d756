"""Studies: the question and the mechanism that participants and collector agree on, and the results.

A study is agreed on before the first report. Its findings are estimates, their accuracy and sample size, and the
privacy loss of each person.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from tightrope.display import Displayed, Rounded, Shown, Summary
from tightrope.documents.budget import attack_success_of
from tightrope.documents.document import plain_data
from tightrope.documents.escaping import toml_value
from tightrope.documents.study import (
    START,
    Chance,
    Estimate,
    FindingsDocument,
    MechanismFacts,
    Privacy,
    RepeatedReports,
    SampleSizePart,
    StudyDocument,
    read_study,
)
from tightrope.errors import InputError, PlanError, quoted_names, suggest_nearest
from tightrope.local.mechanisms.bounded_mean import duchi
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.response import response_with_erasure
from tightrope.local.parts.estimates import BiasedEstimates, Shares, Tally, on_simplex
from tightrope.local.parts.losses import checked_epsilon
from tightrope.local.parts.values import check_bounds
from tightrope.local.studies.planning import DISTRIBUTION, MEAN, Oracle, cap_total_variation, choose_mechanism, plan
from tightrope.numerics.checks import check_inner_probability
from tightrope.tables.labels import Labels, Name

if TYPE_CHECKING:
    from tightrope.documents import Guarantee
    from tightrope.documents.study import Question

BEST = "best"
ERASURE = "response_with_erasure"
ONE_BIT = "duchi"


def mechanism_choices(question: object) -> tuple[str, ...]:
    """Return the names of the mechanisms for a question; ``InputError`` for another question."""
    if question == "distribution":
        return (BEST, *DISTRIBUTION, ERASURE)
    if question == "mean":
        return (BEST, *MEAN)
    raise InputError("question", question, "'distribution' or 'mean'")


@dataclass(frozen=True, slots=True, repr=False)
class Study(Displayed):
    """A question and a mechanism: shares of ``categories``, or the mean of numbers in ``bounds``.

    ``choice`` names a mechanism; "best" is the one with the least exact variance (``local.plan``). ``epsilon`` and,
    if given, ``total_variation`` limit what one report reveals. The total variation is met by silent
    reports in ``response_with_erasure`` and ``duchi``, by a smaller ε in the others. Raises ``InputError`` for invalid
    fields.

    >>> study = Study("distribution", 1.0, categories=("tea", "coffee", "water"))
    >>> study.with_mechanism_name.choice, study.guarantee.epsilon <= 1.0
    ('k_randomized_response', True)
    """

    question: Question
    epsilon: float
    categories: tuple[Name, ...] = ()
    bounds: tuple[float, float] | None = None
    choice: str = BEST
    total_variation: float | None = None
    title: str = ""

    def __post_init__(self) -> None:
        mechanism_choices(self.question)
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        if self.total_variation is not None:
            eta = check_inner_probability("total_variation", self.total_variation, "leave it out for no such limit")
            object.__setattr__(self, "total_variation", eta)
        self._check_question_fields()
        self._check_choice()

    def _check_question_fields(self) -> None:
        if self.question == "distribution":
            _check_absent("bounds", self.bounds, "the bounds of a mean")
            remedy = "list every possible answer once, for example ['yes', 'no']"
            if not isinstance(self.categories, (list, tuple)) or len(self.categories) < 2:
                raise InputError("categories", self.categories, "a list of two names or more", remedy)
            try:
                names = Labels.from_names(self.categories).names
            except InputError as error:
                raise InputError("categories", error.value, error.expected, remedy) from None
            if not all(map(_is_storable, names)):
                raise InputError("categories", len(names), "text in Unicode, or whole numbers of 64 bits", remedy)
            object.__setattr__(self, "categories", names)
        else:
            _check_absent("categories", self.categories or None, "the answers to a question for shares")
            object.__setattr__(self, "bounds", check_bounds(self.bounds))

    def _check_choice(self) -> None:
        known = mechanism_choices(self.question)
        if not isinstance(self.choice, str) or self.choice not in known:
            raise InputError(
                "mechanism", self.choice, f"one of {quoted_names(known)}", suggest_nearest(self.choice, known)
            )
        if self.choice == ERASURE and self.total_variation is None:
            text = f"is needed for the mechanism '{ERASURE}': the largest total variation of one report, such as 0.2"
            raise InputError.from_text("total_variation", text)

    def text_summary(self) -> Summary:
        """Return the question, its categories or bounds, and the limits on what a report reveals."""
        facts: list[tuple[str, Shown]] = [("question", self.question)]
        if self.categories:
            facts.append((f"{len(self.categories):,} categories", ", ".join(map(str, self.categories))))
        if self.bounds is not None:
            facts.append(("bounds", f"{self.bounds[0]:g} to {self.bounds[1]:g}"))
        facts += [("epsilon of a report", Rounded(self.epsilon, "up")), ("mechanism", self.choice)]
        if self.total_variation is not None:
            facts.append(("total variation of a report", Rounded(self.total_variation, "up")))
        return Summary(self.title, facts)

    @property
    def k(self) -> int | None:
        """The number of categories; None for a mean."""
        return len(self.categories) or None

    @property
    def error_unit(self) -> float:
        """Half the width of the bounds, the unit of the errors of a planned mean; 1 for shares."""
        return 1.0 if self.bounds is None else (self.bounds[1] - self.bounds[0]) / 2

    @property
    def with_mechanism_name(self) -> Study:
        """The study with the name of the best mechanism; share this one: a later version may have a better one."""
        if self.choice != BEST:
            return self
        eta = self.total_variation
        option = choose_mechanism(self.question, epsilon=self.epsilon, k=self.k, total_variation=eta)
        return replace(self, choice=option.name)

    @property
    def mechanism(self) -> Oracle:
        """The mechanism of the participants and of the collector."""
        return _build_mechanism(self.with_mechanism_name)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one report: the realized (ε, 0, η), rounded up."""
        return self.mechanism.guarantee


def _check_absent(name: str, value: object, what: str) -> None:
    if value is not None:
        raise InputError.from_text(name, f"leave it out here; it is for {what}")


def _is_storable(name: Name) -> bool:
    """Return whether a table can hold the name: half a surrogate pair is not a character."""
    if isinstance(name, int):
        return -(1 << 63) <= name < 1 << 63
    return not any("\ud800" <= character <= "\udfff" for character in name)


@lru_cache(maxsize=64)
def _build_mechanism(study: Study) -> Oracle:
    """Return the mechanism of a study whose choice is not "best"."""
    eta = study.total_variation
    if study.choice == ERASURE and eta is not None:
        return response_with_erasure(study.epsilon, eta, len(study.categories))
    if study.choice == ONE_BIT and study.bounds is not None:
        return duchi(study.epsilon, bounds=study.bounds, total_variation=eta)

    def make_mechanism(epsilon: float) -> Oracle:
        if study.bounds is not None:
            return MEAN[study.choice](epsilon, bounds=study.bounds)
        return DISTRIBUTION[study.choice](epsilon, len(study.categories))

    if eta is None:
        return make_mechanism(study.epsilon)
    return cap_total_variation(make_mechanism, study.epsilon, eta)


STUDY_HEAD = """\
# A study for Tightrope: the participants and the collector share this file.
#   tightrope local perturb FILE DATA --column ANSWER --out reports.parquet   run by each participant
#   tightrope local estimate FILE reports.parquet                             run by the collector
"""


def load_study(path: str | Path) -> Study:
    """Return the study in a ``.toml`` or ``.json`` file; ``docs/local.md`` describes every key.

    Raises ``PlanError`` that names the key for an invalid study: unknown or missing keys, another version,
    repeated categories, an ε that is 0, infinite or no number.
    """
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise PlanError.from_text(str(source), f"the study cannot be read ({error.strerror}); {START}") from None
    except UnicodeDecodeError:
        expected = "expected a study, a text file (TOML or JSON in UTF-8)"
        raise PlanError.from_text(str(source), f"{expected}; {START}") from None
    try:
        return study_from_document(read_study(text, toml=source.suffix != ".json"))
    except PlanError as error:
        if error.name != str(source):
            raise PlanError.from_text(str(source), str(error)) from None
        raise


def study_from_document(document: StudyDocument) -> Study:
    """Return the study that a document describes; raises ``PlanError`` like ``load_study``."""
    try:
        return Study(
            question=document.question,
            epsilon=document.epsilon,
            categories=document.categories or (),
            bounds=document.bounds,
            choice=document.mechanism,
            total_variation=document.total_variation,
            title=document.title,
        )
    except InputError as error:
        raise PlanError.from_error(error, f"study {error.name}") from None


def study_document(study: Study) -> StudyDocument:
    """Return the study as a document, with the name of its mechanism."""
    study = study.with_mechanism_name
    return StudyDocument(
        document="study",
        version=2,
        title=study.title,
        question=study.question,
        categories=study.categories or None,
        bounds=study.bounds,
        mechanism=study.choice,
        epsilon=study.epsilon,
        total_variation=study.total_variation,
    )


def study_text(study: Study) -> str:
    """Return ``study_document`` as the text of a TOML file; ``load_study`` reads it.

    >>> study_text(Study("mean", 1.0, bounds=(0.0, 50.0))).splitlines()[-4:]
    ['question = "mean"', 'bounds = [0.0, 50.0]', 'mechanism = "duchi"', 'epsilon = 1.0']
    """
    entries = plain_data(study_document(study)).items()
    return STUDY_HEAD + "".join(f"{key} = {toml_value(value)}\n" for key, value in entries if value not in (None, ""))


# Findings.

REPEATED_DELTA = 1e-6
"""The δ at which the ε of several reports is stated."""
REPORT_COUNTS = (1, 10, 100)
"""Numbers of independent reports of one person for which the loss is stated."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Findings(Displayed):
    """Estimates from ``tally``: ``shares`` of the categories, or the mean; ``consistent`` ones are biased."""

    study: Study
    tally: Tally
    shares: Shares
    consistent: BiasedEstimates | None = None

    @classmethod
    def from_counts(
        cls,
        study: Study,
        tally: Tally,
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
        consistent: bool = False,
    ) -> Self:
        """Return the estimates from the counts of all reports, with intervals; see ``FrequencyOracle.estimate_tally``.

        The interval of a mean is exact for one bit a person, otherwise normal. ``consistent`` adds shares ≥ 0 that add
        up to 1, which are biased. Raises ``InputError`` for too few reports, and for these options on a mean.

        >>> study = Study("distribution", 1.0, categories=("yes", "no"))
        >>> found = Findings.from_counts(study, study.mechanism.tally_reports([0] * 700 + [1] * 300))
        >>> found.shares.value.round(3).tolist()
        [0.933, 0.067]
        """
        mechanism = study.mechanism
        if isinstance(mechanism, MeanOracle):
            for name, value in (("simultaneous", simultaneous), ("consistent", consistent)):
                if value:
                    remedy = "a mean is one number: it is for shares of several categories"
                    raise InputError(name, value, "left out", remedy)
            return cls(study, tally, mechanism.estimate_tally(tally, confidence=confidence))
        shares = mechanism.estimate_tally(tally, confidence=confidence, simultaneous=simultaneous)
        return cls(study, tally, shares, on_simplex(shares) if consistent else None)

    def text_summary(self) -> Summary:
        """Return the estimates by category, with their intervals."""
        rows: list[tuple[Shown, ...]] = []
        for found in self._category_estimates():
            name = "mean" if found.category is None else str(found.category)
            ends = (Rounded(found.value), Rounded(found.lower, "down"), Rounded(found.upper, "up"))
            rows.append((name, *ends))
        facts: list[tuple[str, Shown]] = [
            ("reports", self.tally.people),
            ("confidence", f"{100 * self.shares.confidence:g} %"),
        ]
        return Summary(self.study.title, facts, ("category", "value", "lower", "upper"), rows)

    def to_document(self) -> FindingsDocument:
        """Return all results as a document: for ``documents.document.to_json_text`` and ``reporting.study_html``."""
        return FindingsDocument(
            document="findings",
            version=2,
            title=self.study.title,
            question=self.study.question,
            bounds=self.study.bounds,
            reports=self.tally.people,
            answered=self.tally.answered,
            confidence=self.shares.confidence,
            simultaneous=self.shares.simultaneous,
            estimates=tuple(self._category_estimates()),
            effort=expected_accuracy(self.study, self.tally.people),
            privacy=privacy_facts(self.study),
            mechanism=mechanism_facts(self.study),
        )

    def _category_estimates(self) -> Iterator[Estimate]:
        """Yield one estimate per category, in the order of the study; for a mean one without a category."""
        ends = (self.shares.value, self.shares.lower, self.shares.upper)
        columns = np.array([np.atleast_1d(end) for end in ends]).T.tolist()
        names = self.study.categories or (None,)
        biased = [None] * len(names) if self.consistent is None else self.consistent.value.tolist()
        for name, (value, lower, upper), consistent in zip(names, columns, biased, strict=True):
            people = None if name is None else value * self.tally.people
            yield Estimate(category=name, value=value, lower=lower, upper=upper, people=people, consistent=consistent)


def expected_accuracy(study: Study, people: int) -> SampleSizePart:
    """Return the error with this many people, and the people that other mechanisms need for it (``local.plan``).

    ``error``: root mean squared, for the worst population, of a share or of the mean in its own units. Every mechanism
    with the study's ε and total variation needs at least ``least_people`` for it if people do not see each other's
    reports, and ``least_people_interactive`` if they may see earlier ones; the best known one needs ``best_people``.
    """
    mechanism = study.mechanism
    # The variance for one person from the worst population, including the sampling of people, in units of the plan.
    if isinstance(mechanism, MeanOracle):
        middle = (mechanism.lower + mechanism.upper) / 2
        ends = (mechanism.lower, middle, mechanism.upper)
        variance = max(mechanism.variance_at(x) + (x - middle) ** 2 for x in ends) / study.error_unit**2
    else:
        variance = mechanism.mean_variance + (1 - 1 / mechanism.k) / mechanism.k
    error = math.sqrt(variance / people)
    eta = study.total_variation
    planned = plan(study.question, epsilon=study.epsilon, error=error, k=study.k, total_variation=eta)
    return SampleSizePart(
        people=people,
        error=error * study.error_unit,
        least_people=planned.least_people,
        least_people_interactive=planned.in_turn.people,
        best=planned.option.name,
        best_people=min(planned.people, people),
    )


def privacy_facts(study: Study) -> Privacy:
    """Return the privacy loss of one report, and of several independent ones of a person (exact composition)."""
    guarantee = study.guarantee
    repeated = []
    for count in REPORT_COUNTS:
        loss = count * study.mechanism.loss
        eta = loss.total_variation()
        repeated.append(
            RepeatedReports(
                reports=count,
                epsilon=loss.epsilon(REPEATED_DELTA),
                delta=REPEATED_DELTA,
                total_variation=eta,
                attack_success=attack_success_of(eta),
            )
        )
    return Privacy(
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        total_variation=guarantee.total_variation,
        attack_success=guarantee.attack_success,
        repeated=tuple(repeated),
    )


def mechanism_facts(study: Study) -> MechanismFacts:
    """Return the name of the mechanism and the probabilities that are sampled, as exact fractions."""
    mechanism = study.mechanism
    probabilities: dict[str, Fraction] = {}
    if not isinstance(mechanism, MeanOracle):
        probabilities["a report supports the true category"] = mechanism.true_support_probability
        probabilities["a report supports a given other category"] = mechanism.false_support_probability
        probabilities["a report is not empty"] = mechanism.answer_probability
    up, down = mechanism.report_change_probabilities
    probabilities["for two different answers, a report that supports only the first, given the first"] = up
    probabilities["the same report, given the second"] = down
    chances = [
        Chance(meaning=meaning, exact=f"{exact.numerator}/{exact.denominator}", value=float(exact))
        for meaning, exact in probabilities.items()
    ]
    return MechanismFacts(
        name=study.with_mechanism_name.choice, report_bits=mechanism.report_bits, probabilities=tuple(chances)
    )
