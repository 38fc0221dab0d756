"""What is said of accounts, noise, studies and couplings is true: numbers computed again, rounded up, and not far."""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tightrope as tr
from tightrope.documents.account import Attack, TrainingAccount, epsilon_bracket
from tightrope.documents.coupling import Learning, Origin
from tightrope.documents.document import Triple
from tightrope.documents.numbers import Guesses
from tightrope.documents.study import StudyDocument
from tightrope.documents.wording import NOTHING, added_probability_text, explain_coupling
from tightrope.tables.labels import Labels
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.on_tables.saved import SavedCoupling
from tightrope.transport.on_tables.supports import Categories

SHARES = st.floats(0, 1)


def training(eta: float, epsilon: float = math.inf, neighbors: str = "add-remove") -> TrainingAccount:
    shared = {
        "document": "training account", "version": 1, "examples": 9, "batch": 3, "sampling": "poisson",
        "sampling_rate": 1 / 3, "noise_multiplier": 1.0, "steps": 2, "total_variation": eta,
        "attack_success": (1 + eta) / 2, "attack": (Attack(false_positive_rate=0.1, true_positive_rate=0.5),),
        "neighbors": neighbors, "method": "e", "statement": "Fixed\u202e in advance.",
    }  # fmt: skip
    bracket = epsilon_bracket(1e-5, 0.0, epsilon)
    ends = {name: getattr(bracket, name) for name in bracket.__struct_fields__}
    return TrainingAccount(**shared, **ends)  # type: ignore[arg-type]


def shown(said: str) -> Fraction:
    found = re.search(r"right at most ([\d.]+) % of the time", said)
    assert found
    return Fraction(found[1]) / 100


@given(SHARES)
def test_a_guess_is_right_half_of_the_time_and_half_of_eta(eta: float) -> None:
    said = training(eta).explain()
    if eta == 1:
        assert said == NOTHING
        return
    truth = (1 + Fraction(repr(eta))) / 2
    assert truth <= shown(said) <= max(truth + Fraction(1, 1000), Fraction(1))
    guesses = re.search(r"at most (\d+) are right on average", said)
    assert guesses and int(guesses[1]) == max(50, math.ceil(100 * truth))
    assert said.count("◆") == min(50, max(0, math.ceil(100 * truth) - 50)) + ("◆ " in said)


def test_the_picture_rounds_up_in_every_context() -> None:
    with localcontext() as context:
        context.prec = 1
        assert Guesses.from_success(Decimal("0.531")) == Guesses(4)


@pytest.mark.parametrize(
    ("neighbors", "words"),
    [
        ("add-remove", "the data with one row or the data without it"),
        ("replace-one", "with another row in its place"),
        ("local", "which of two answers of one person"),
        ("unspecified", "such as the data with you"),
    ],
)
def test_what_is_guessed_is_what_is_protected(neighbors: str, words: str) -> None:
    said = training(0.2, 1.0, neighbors).explain()
    assert words in said
    assert f"at most 2.72 times as likely under one input as under the other{added_probability_text(1e-5)}" in said
    assert "Fixed� in advance." in said


def test_without_a_bound_on_epsilon_none_is_claimed() -> None:
    assert "These numbers do not limit" in training(0.2).explain()


@pytest.mark.parametrize("sensitivity", [1, 3])
def test_noise_says_its_errors_and_the_limit(sensitivity: int) -> None:
    certificate = tr.least_noise(tr.Budget(epsilon=1, delta=1e-6), sensitivity=sensitivity).certificate
    said = certificate.explain()
    assert certificate.to_document().explain() == said
    moved, worst, least = map(float, re.findall(r"(?:by|by at most|less than) ([\d.]+)(?= on average|\.)", said)[-3:])
    assert certificate.mean_absolute_error <= moved <= certificate.mean_absolute_error * 1.01
    assert certificate.worst_error <= worst
    assert certificate.lower * 0.99 <= least <= certificate.lower
    assert f"differ by at most {sensitivity}," in said
    assert shown(said) >= Fraction(certificate.guarantee.attack_success)


@given(st.floats(0.01, 20), st.none() | st.floats(0.01, 0.99))
def test_a_report_promises_the_smaller_of_both_bounds(epsilon: float, cap: float | None) -> None:
    study = StudyDocument(
        document="study", version=1, question="mean", bounds=(0.0, 1.0), epsilon=epsilon, total_variation=cap
    )
    eta = min(math.tanh(epsilon / 2), 1 if cap is None else cap)
    assert (1 + eta) / 2 - 1e-12 <= shown(study.explain()) <= (1 + eta) / 2 + 1e-3
    assert "each answer is randomized by the person who gives it" in study.explain()


def saved(origin: Origin) -> SavedCoupling:
    support = Categories("shop", Labels.from_names(["a", "b", "c"]))
    laws = {"north": [0.2, 0.3, 0.5], "south": [0.5, 0.4, 0.1]}
    return SavedCoupling(CouplingMechanism.fit(laws, support.transport_cost()), support, "district", "discrete", origin)


def test_a_coupling_is_a_coin_but_for_rounding_that_is_computed_again() -> None:
    found = saved(Origin.from_kind("public", "barycenter"))
    document, mechanism = found.to_document(), found.mechanism
    apart = [
        sum(abs(share - mechanism.target[y]) for y, share in enumerate(mechanism.exact_output_distribution(group))) / 2
        for group in mechanism.groups
    ]
    assert document.largest_target_distance == max(apart) > 0
    said, _, picture = document.explain().partition("\n\n")
    found_rounding = re.search(
        r"is right 50 % of the time, as in random guessing, up to one guess in 10(\S+), because", said
    )
    assert found_rounding
    exponent = int(found_rounding[1].translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))
    assert document.largest_target_distance <= Fraction(1, 10**exponent) < 10 * document.largest_target_distance
    assert picture.count("●") == picture.count("○") == 51 and "◆" not in picture


def test_learned_laws_promise_the_smallest_total_variation_with_its_confidence() -> None:
    left = tuple(Triple(epsilon=0.1, delta=0.0, total_variation=eta) for eta in (0.3, 0.12))
    learning = Learning(epsilon=1.0, person="each row", confidence=0.95, left=left)
    said = saved(Origin.from_kind("private", "barycenter", learning)).to_document().explain()
    assert shown(said) == Fraction(56, 100)
    assert "with 95 % confidence" in said


@pytest.mark.parametrize("delta", [1e-9, 0.1, 0.25, 0.5])
def test_a_partial_coupling_states_what_delta_allows(delta: float) -> None:
    support = Categories("shop", Labels.from_names(["a", "b", "c"]))
    laws = {"north": [0.2, 0.3, 0.5], "south": [0.5, 0.4, 0.1]}
    mechanism = CouplingMechanism.fit(laws, support.transport_cost(), delta=delta)
    document = SavedCoupling(
        mechanism, support, "district", "discrete", Origin.from_kind("public", "barycenter")
    ).to_document()
    said = document.explain()
    success = (1 + Fraction(repr(delta))) / 2
    assert success <= shown(said) <= success + Fraction(1, 1000)
    assert "the same distribution in every group" not in said
    # A private one states at least δ, whatever was recorded for its distributions.
    learned = str(explain_coupling(Fraction(0), (0.0,), 0.95, "these", delta=delta))
    assert shown(learned) >= success


def test_exact_laws_lose_nothing_to_rounding() -> None:
    said = str(explain_coupling(Fraction(0), (), 0.0, "these"))
    assert said.startswith(
        "An attacker who sees one output value and guesses which of two groups it came from is right 50 %"
    )
    assert "rounding" not in said
