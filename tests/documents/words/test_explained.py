"""What is said of a promise is true: every number in the paragraph and the picture is computed again, and rounds up."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tightrope as tr
from tightrope.documents import numbers as chances
from tightrope.documents.numbers import Guesses
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.documents.wording import NOTHING, added_probability_text

EPSILONS, DELTAS = st.floats(0, 30), st.just(0.0) | st.floats(1e-11, 0.5)
TENTH, WORDS = mpmath.mpf("0.1"), {"million": 10**6, "billion": 10**9}


def exact(value: float) -> mpmath.mpf:
    """The shortest decimal that names the float: what a number means that somebody typed."""
    return mpmath.mpf(repr(value)) if math.isfinite(value) else mpmath.inf


def truth(epsilon: float, delta: float, eta: float) -> mpmath.mpf:
    """How often the best attacker is right, in percent, from the definition: 70 of 80 digits, so that 65 is 65."""
    with mpmath.workdps(80):
        implied = exact(delta) + (1 - exact(delta)) * mpmath.tanh(exact(epsilon) / 2)
        return mpmath.mpf(mpmath.nstr(50 * (1 + min(implied, max(exact(eta), exact(delta)))), 70))


def numbers(said: str) -> dict[str, str]:
    """The numbers of a paragraph by what they are."""
    patterns = {
        "percent": r"right at most ([\d.]+) % of the time \(random guessing: 50 %\)",
        "guesses": r"Of 100 such guesses, at most (\d+) are right on average; of 100 random guesses, 50\.",
        "times": r"at most ([\d.,]+) times as likely",
        "slack": re.escape(added_probability_text(1e-6)).replace(
            r"1\ in\ 1\ million", r"1 in ([\d,]+(?: [mb]illion)?)"
        ),
    }
    found = {name: re.search(pattern, said) for name, pattern in patterns.items()}
    return {name: match.group(1).replace(",", "") for name, match in found.items() if match}


def one_in(said: str) -> Fraction:
    digits, _, word = said.partition(" ")
    return Fraction(1, int(digits) * WORDS.get(word, 1))


@given(EPSILONS, DELTAS, st.just(1.0) | st.floats(1e-9, 1))
def test_every_number_is_the_truth_rounded_up(epsilon: float, delta: float, eta: float) -> None:
    said, picture = tr.Guarantee(epsilon, delta, eta).explain().split("\n\n", 1)
    # a total variation below δ makes δ the smaller one: what is said is said of that
    delta = min(delta, eta)
    assume(epsilon > 1e-6 or epsilon == 0)
    found, success = numbers(said), truth(epsilon, delta, eta)
    with mpmath.workdps(80):
        shown = mpmath.mpf(found["percent"])
        assert success <= shown <= min(success + TENTH, 100)
        assert int(found["guesses"]) == math.ceil(success)
        if epsilon > 0:
            assert mpmath.exp(exact(epsilon)) <= mpmath.mpf(found["times"]) <= mpmath.exp(exact(epsilon)) * 1.01 + 0.01
    assert ("slack" in found) == (delta > 0)
    if delta > 0:
        assert Fraction(Decimal(repr(delta))) <= one_in(found["slack"]) <= 2 * Fraction(Decimal(repr(delta)))
    drawn = picture.split("\n\n")[0]
    assert [drawn.count(sign) for sign in "●◆○"] == [50, math.ceil(success) - 50, 100 - math.ceil(success)]


@pytest.mark.parametrize(
    ("guarantee", "success"),
    [
        (tr.Guarantee(1.0), "73.2"),  # e/(1 + e) = 0.73105…
        (tr.Guarantee(1.0, 0.01, 0.3), "65"),  # exactly: no digit is lost to the float below 0.3
        (tr.Guarantee(0.0, 0.1), "55"),
        (tr.Guarantee(math.inf, 0.0, 0.3), "65"),
        (tr.Guarantee(0.0), "50"),
        (tr.Guarantee(math.nextafter(math.log(3), 0)), "75"),
        (tr.Guarantee(math.log(3)), "75.1"),  # this float is above ln 3, by less than a float of the result would tell
    ],
)
def test_the_success_of_an_attacker(guarantee: tr.Guarantee, success: str) -> None:
    assert numbers(guarantee.explain())["percent"] == success


def test_delta_is_added_to_a_limit_and_never_an_exception() -> None:
    added = added_probability_text(1e-6)
    assert f"{added}, and vice versa (ε = 1, δ = 1 × 10⁻⁶)" in tr.Guarantee(1, 1e-6).explain()
    assert added[:6] not in tr.Guarantee(1).explain()
    as_likely = "is at most as likely under one input as under the other"
    assert f"{as_likely}{added_probability_text(0.1)}, and" in tr.Guarantee(0, 0.1).explain()
    assert "is exactly as likely under one input as under the other (ε = 0, δ = 0)" in tr.Guarantee(0).explain()
    for guarantee in (tr.Guarantee(1, 1e-6), tr.Guarantee(0, 0.1)):
        assert not re.search("but for|except|fail|with probability", guarantee.explain())


def test_without_a_limit_on_epsilon_none_is_claimed() -> None:
    said = tr.Guarantee(math.inf, 0.2, 0.3).explain()
    assert "These numbers do not limit" in said
    assert not {"times", "slack"} & set(numbers(said))
    for nothing in (tr.Guarantee(math.inf), tr.Guarantee(1, 1)):
        assert nothing.explain() == NOTHING


@pytest.mark.parametrize("epsilon", [800.0, 10_000.0, 1e5, 1e300])
def test_the_largest_epsilon_is_not_made_smaller(epsilon: float) -> None:
    said = tr.Guarantee(epsilon).explain()
    assert "right at most 100 % of the time" in said
    if epsilon <= chances.BEYOND_WORDS:
        mantissa, power = re.search(r"at most ([\d.]+) × 10([⁰¹²³⁴⁵⁶⁷⁸⁹]+) times", said).groups()  # type: ignore[union-attr]
        exponent = int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))
        assert mpmath.mpf(f"{mantissa}e{exponent}") >= mpmath.exp(epsilon)
    else:
        assert "e to the power of 1" in said


@given(EPSILONS, DELTAS)
def test_chances_are_upper_bounds_to_many_digits(epsilon: float, delta: float) -> None:
    with mpmath.workdps(80):
        for found, true in (
            (chances.likelihood_factor(epsilon), mpmath.exp(exact(epsilon))),
            (chances.total_variation(epsilon, delta), truth(epsilon, delta, 1.0) / 50 - 1),
        ):
            digits = mpmath.mpf("1e-66")  # the truth has 70 digits, some of them lost beside 50 percent
            assert true - digits <= mpmath.mpf(str(found)) <= true * (1 + mpmath.mpf("1e-45")) + mpmath.mpf("1e-45")


@given(st.floats(0, 1))
def test_a_hundred_guesses_are_always_a_hundred(success: float) -> None:
    guesses = Guesses.from_success(success)
    assert 50 + guesses.more + guesses.wrong_count == 100
    assert guesses.right_count >= 100 * success - 1e-9
    lines = str(guesses).split("\n\n")[0].split("\n")
    assert [len(line.split()) for line in lines] == [25] * 4


def test_who_is_protected() -> None:
    assert (
        PrivacyUnit(None).unit_text
        == "“You” means one row of the table; a person with several rows has less protection."
    )
    evil = PrivacyUnit("ta\x1bil", 1_200, means="a \u202etail")
    assert evil.unit_text.startswith(
        "A �tail means all rows with the same “ta�il”, of which at most 1,200 are used in any one answer;"
    )
    assert not re.search(
        "[\x1b\u202e]",
        evil.unit_text
        + evil.guess_text
        + evil.attacker_knowledge_text
        + evil.data_owner_text
        + "".join(evil.limits_text),
    )
