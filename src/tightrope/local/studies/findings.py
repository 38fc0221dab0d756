"""Results of a study: estimates, their accuracy and sample size, and the privacy loss of each person."""

from __future__ import annotations

import math
from collections.abc import Iterator
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

REPEATED_DELTA = 1e-6
"""The δ at which the ε of several reports is stated."""
REPORT_COUNTS = (1, 10, 100)
"""Numbers of independent reports of one person for which the loss is stated."""


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
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
                attack_success=(1 + eta) / 2,
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
    up, down = mechanism.change_probabilities
    probabilities["for two different answers, a report that supports only the first, given the first"] = up
    probabilities["the same report, given the second"] = down
    chances = [
        Chance(meaning=meaning, exact=f"{exact.numerator}/{exact.denominator}", value=float(exact))
        for meaning, exact in probabilities.items()
    ]
    return MechanismFacts(
        name=study.with_mechanism_name.choice, report_bits=mechanism.report_bits, probabilities=tuple(chances)
    )
