"""Results of a study: estimates, their effort, and the privacy loss of each person."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from tightrope.documents.study import (
    Chance,
    Estimate,
    FindingsDocument,
    MechanismFacts,
    Privacy,
    RepeatedReports,
    SampleSizePart,
)
from tightrope.errors import InputError
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.parts.estimates import BiasedEstimates, Shares, Tally, on_simplex
from tightrope.local.studies.planning import plan
from tightrope.local.studies.study import Study

DELTA = 1e-6
"""The δ at which the ε of several reports is stated."""
REPEATED = (1, 10, 100)
"""Numbers of fresh reports of one person."""


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """Estimates from ``tally``: ``shares`` of the categories, or the mean alone; ``consistent`` ones are biased."""

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
        """Estimates from the counts of all reports, with intervals; see ``FrequencyOracle.estimate_tally``.

        The interval of a mean is exact for one bit a person, normal else. ``consistent`` adds shares ≥ 0 that add up to
        1, which are biased. Raises ``InputError`` for too few reports, and for these options on a mean.

        >>> study = Study("distribution", 1.0, categories=("yes", "no"))
        >>> found = Findings.from_counts(study, study.mechanism.tally_reports([0] * 700 + [1] * 300))
        >>> found.shares.value.round(3).tolist()
        [0.933, 0.067]
        """
        mechanism = study.mechanism
        if isinstance(mechanism, MeanOracle):
            _refuse_for_a_mean(simultaneous=simultaneous, consistent=consistent)
            return cls(study, tally, mechanism.estimate_tally(tally, confidence=confidence))
        shares = mechanism.estimate_tally(tally, confidence=confidence, simultaneous=simultaneous)
        return cls(study, tally, shares, on_simplex(shares) if consistent else None)

    def to_document(self) -> FindingsDocument:
        """All of it as a document: for JSON (``documents.document.to_json_text``) and for ``reporting.study_html``."""
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
        """One a category, in the order of the study; one without a category for a mean."""
        ends = (self.shares.value, self.shares.lower, self.shares.upper)
        columns = np.array([np.atleast_1d(end) for end in ends]).T.tolist()
        names = self.study.categories or (None,)
        shaped = [None] * len(names) if self.consistent is None else self.consistent.value.tolist()
        for name, (value, lower, upper), consistent in zip(names, columns, shaped, strict=True):
            people = None if name is None else value * self.tally.people
            yield Estimate(category=name, value=value, lower=lower, upper=upper, people=people, consistent=consistent)


def _refuse_for_a_mean(**options: bool) -> None:
    for name, value in options.items():
        if value:
            raise InputError(name, value, "left out", "a mean is one number: it is for shares of several categories")


def expected_accuracy(study: Study, people: int) -> SampleSizePart:
    """The error with this many people, for the worst population, and the people that others need (``local.plan``).

    ``error``: root mean squared, of a share or of the mean in its own units. No mechanism whatsoever with the study's ε
    and total variation, in which people do not see each other's reports, reaches it with fewer than ``least_people``,
    none in which they may see earlier ones with fewer than ``least_people_interactive``; the best one that is known
    takes ``best_people``.
    """
    error = math.sqrt(_worst_variance(study) / people)
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


def _worst_variance(study: Study) -> float:
    """Of one person, drawn from the population for which it is largest, in units of the plan."""
    mechanism = study.mechanism
    if isinstance(mechanism, MeanOracle):
        middle = (mechanism.lower + mechanism.upper) / 2
        ends = (mechanism.lower, middle, mechanism.upper)
        return max(mechanism.variance_at(x) + (x - middle) ** 2 for x in ends) / study.error_unit**2
    return mechanism.mean_variance + (1 - 1 / mechanism.k) / mechanism.k


def privacy_facts(study: Study) -> Privacy:
    """The privacy loss of one report, and of several *fresh* ones of the same person (exact composition)."""
    one = study.guarantee
    return Privacy(
        epsilon=one.epsilon,
        delta=one.delta,
        total_variation=one.total_variation,
        attack_success=one.attack_success,
        repeated=tuple(_repeated_loss(study, count) for count in REPEATED),
    )


def _repeated_loss(study: Study, count: int) -> RepeatedReports:
    loss = count * study.mechanism.loss
    eta = loss.total_variation()
    return RepeatedReports(
        reports=count,
        epsilon=loss.epsilon(DELTA),
        delta=DELTA,
        total_variation=eta,
        attack_success=(1 + eta) / 2,
    )


def mechanism_facts(study: Study) -> MechanismFacts:
    """The mechanism by name, with the probabilities that are sampled as exact fractions."""
    mechanism = study.mechanism
    return MechanismFacts(
        name=study.with_mechanism_name.choice,
        report_bits=mechanism.report_bits,
        probabilities=tuple(
            _probability_entry(meaning, exact) for meaning, exact in _support_probabilities(study).items()
        ),
    )


def _support_probabilities(study: Study) -> Mapping[str, Fraction]:
    mechanism = study.mechanism
    up, down = mechanism.change_probabilities
    changed = {
        "for two different answers, a report that supports only the first, given the first": up,
        "the same report, given the second": down,
    }
    if isinstance(mechanism, MeanOracle):
        return changed
    return {
        "a report supports the true category": mechanism.true_support_probability,
        "a report supports a given other category": mechanism.false_support_probability,
        "a report is not empty": mechanism.answer_probability,
        **changed,
    }


def _probability_entry(meaning: str, exact: Fraction) -> Chance:
    return Chance(meaning=meaning, exact=f"{exact.numerator}/{exact.denominator}", value=float(exact))
