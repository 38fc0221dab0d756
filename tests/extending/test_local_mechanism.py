"""A mechanism for categories in one file: declared and registered here, it goes the whole way of a study.

It is Warner's oldest idea for k answers: a person tells the truth with some chance, else any answer at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from tests.randomness.keyed import InsecureKeyed
from tightrope import local, reporting
from tightrope.channels import SymmetricChannel
from tightrope.errors import InputError
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.parts.values import check_categories
from tightrope.local.studies import planning
from tightrope.local.studies.study import Findings, Study, load_study, study_text
from tightrope.randomness.bits import Source
from tightrope.randomness.integers import uniform_below

WORD = 1 << 64
PEOPLE = 200_000
DRINKS = ("tea", "coffee", "water", "nothing")


@dataclass(frozen=True, slots=True)
class Warner(FrequencyOracle):
    """The truth on ``truths`` words of 2⁶⁴, else one of all k answers, each as likely."""

    epsilon: float
    k: int
    truths: int

    @property
    def true_support_probability(self) -> Fraction:
        return Fraction(self.truths, WORD) + self.false_support_probability

    @property
    def false_support_probability(self) -> Fraction:
        return Fraction(WORD - self.truths, WORD * self.k)

    @property
    def report_change_probabilities(self) -> tuple[Fraction, Fraction]:
        return self.true_support_probability, self.false_support_probability

    @property
    def channel(self) -> SymmetricChannel:
        return SymmetricChannel(
            self.k, float(self.true_support_probability), float(self.false_support_probability), 0.0
        )

    @property
    def report_bits(self) -> int:
        return (self.k - 1).bit_length()

    @property
    def possible_report_count(self) -> int:
        return self.k

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        truth = check_categories("values", values, self.k)
        honest = uniform_below(1 << 32, len(truth), randomness) < self.truths >> 32
        return np.where(honest, truth, uniform_below(self.k, len(truth), randomness)).astype(np.uint8)

    def count_reports(self, reports: ArrayLike) -> NDArray[np.int64]:
        return np.bincount(check_categories("reports", reports, self.k), minlength=self.k)


def warner(epsilon: float, k: int) -> Warner:
    """(1 − t)/k against t + (1 − t)/k: t = (e^ε − 1)/(e^ε − 1 + k), rounded down to a multiple of 2⁻³²."""
    odds = math.expm1(epsilon) * (1 - 1e-12)
    return Warner(epsilon, k, math.floor(odds / (odds + k) * (1 << 32)) << 32)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    local.register_distribution("warner", warner)
    yield
    del planning.DISTRIBUTION["warner"]


@pytest.fixture
def study() -> Study:
    return Study("distribution", 1.0, categories=DRINKS, choice="warner")


def test_plans_and_comparisons_know_it() -> None:
    options = {option.name: option for option in local.compare("distribution", epsilon=1.0, k=4)}
    assert isinstance(options["warner"].mechanism, Warner)
    assert options["warner"].variance == pytest.approx(options["k_randomized_response"].variance, rel=1e-6)
    planned = local.plan("distribution", epsilon=1.0, k=4, people=PEOPLE, total_variation=0.2)
    assert planned.option.mechanism.guarantee.total_variation <= 0.2


def test_a_study_goes_the_whole_way(study: Study, tmp_path: Any) -> None:
    place = tmp_path / "study.toml"
    place.write_text(study_text(study), encoding="utf-8")
    assert load_study(place) == study
    assert study.guarantee.epsilon <= 1.0 < study.guarantee.epsilon * 1.001
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    values = np.repeat(np.arange(4), (shares * PEOPLE).astype(int))
    reports = study.mechanism.perturb(values, InsecureKeyed(3))
    found = Findings.from_counts(study, study.mechanism.tally_reports(reports), simultaneous=True, consistent=True)
    assert np.all((found.shares.lower <= shares) & (shares <= found.shares.upper))
    assert np.all(found.shares.upper - found.shares.lower < 0.03)
    page = reporting.study_html(found.to_document())
    assert "warner" in page
    assert all(drink in page for drink in DRINKS)


def test_a_study_on_a_table(study: Study, tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    answers = pandas.DataFrame({"drink": [DRINKS[i % 4] for i in range(4000)]})
    place = tmp_path / "reports.parquet"
    written = local.perturb_table(study.mechanism, answers, "drink", place, categories=DRINKS)
    assert written == 4000
    assert local.tally_table(study.mechanism, str(place)).people == 4000


def likelihood_ratio(mechanism: Warner, seed: int) -> float:
    """Deviations by which log P(report | 0) − log P(report | 1) of the reports seen exceeds the declared ε."""
    first, second = (
        np.bincount(mechanism.perturb(np.full(PEOPLE, value), InsecureKeyed(seed + value)), minlength=mechanism.k)
        for value in (0, 1)
    )
    ratio, deviation = math.log(first[0] / second[0]), math.sqrt(1 / first[0] + 1 / second[0])
    return (ratio - mechanism.guarantee.epsilon) / deviation


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_reports_are_as_likely_as_declared(epsilon: float) -> None:
    mechanism = warner(epsilon, 4)
    assert abs(likelihood_ratio(mechanism, 10)) < 4.5
    assert mechanism.channel.epsilon <= mechanism.guarantee.epsilon * (1 + 1e-9)


def test_the_audit_sees_a_mechanism_that_says_more_than_it_declares() -> None:
    class Talkative(Warner):
        def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
            return replace(warner(1.1, 4)).perturb(values, randomness)

    declared = warner(1.0, 4)
    assert likelihood_ratio(Talkative(declared.epsilon, declared.k, declared.truths), 10) > 4.5


def test_a_name_belongs_to_one_mechanism() -> None:
    for taken in ("warner", "hashing", "duchi", "best"):
        with pytest.raises(InputError, match="a new name"):
            local.register_distribution(taken, warner)
