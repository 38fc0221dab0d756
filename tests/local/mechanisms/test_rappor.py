"""Basic RAPPOR and memory: what repeated reports cost."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.local.mechanisms.channel_definitions import profile, response_rows, unary_rows
from tests.randomness.keyed import InsecureKeyed
from tightrope import local
from tightrope.errors import InputError
from tightrope.local.studies.repeated import Memoized


@given(st.floats(0.05, 10), st.floats(0.05, 0.95))
def test_one_report_spends_what_was_asked(epsilon, part):
    m = local.rappor(epsilon, 5, once=epsilon * part)
    assert m.loss.delta(epsilon) == 0
    assert m.loss_once.delta(epsilon * part) == 0
    assert m.loss_once.epsilon(1e-12) >= epsilon * part * 0.99 - 1e-3
    assert m.loss == m.loss or m.loss.total_variation() == m.permanent.loss.total_variation()


def test_rows_of_one_report_by_enumeration():
    m = local.rappor(2.0, 3, once=1.0)
    rows = unary_rows(m)
    change = (
        m.true_support_probability * (1 - m.false_support_probability),
        m.false_support_probability * (1 - m.true_support_probability),
    )
    assert profile(rows[0], rows[1], 1) == change[0] - change[1]
    assert m.loss_once.total_variation() == pytest.approx(float(change[0] - change[1]), rel=1e-12)
    reports = m.perturb(np.full(300_000, 1), InsecureKeyed(3)).ravel().astype(np.int64)
    counts = np.bincount(reports, minlength=8)
    expected = np.array([float(rows[1][y]) for y in range(8)]) * 300_000
    assert np.sum((counts - expected) ** 2 / expected) < 35


def test_permanent_rows_are_kept_and_reports_differ():
    m = local.rappor(3.0, 100)
    kept = m.permanent_rows(np.full(200, 7), InsecureKeyed(1))
    before = kept.copy()
    reports = [m.report_rows(kept, InsecureKeyed(seed)) for seed in range(60)]
    assert np.array_equal(before, kept)
    assert not np.array_equal(reports[0], reports[1])
    from tightrope.local.parts.kernels import count_bits_by_column

    rates = sum(count_bits_by_column(r[:1], 100) for r in reports) / 60
    bits = count_bits_by_column(kept[:1], 100)
    flip = float(m.flip.one_probability)
    assert np.all(np.abs(rates - np.where(bits, 1 - flip, flip)) < 5 * math.sqrt(0.25 / 60))


def test_estimates_are_unbiased():
    m, values = local.rappor(4.0, 20), np.repeat(np.arange(20), np.arange(20) * 40)
    truth = np.bincount(values, minlength=20) / len(values)
    found = [m.estimate(m.perturb(values, InsecureKeyed(seed))) for seed in range(40)]
    mean = np.mean([s.value for s in found], axis=0)
    error = np.sqrt([m.estimate_variance(f, len(values)) / 40 for f in truth])
    assert np.all(np.abs(mean - truth) < 4.5 * error)


@pytest.mark.parametrize("once", [0, -1, 2.0, 3.0, math.inf, math.nan, 1e-30])
def test_arguments(once):
    with pytest.raises(InputError, match=r"once|epsilon"):
        local.rappor(2.0, 10, once=once)


def test_rows_are_checked():
    with pytest.raises(InputError, match="rows"):
        local.rappor(2.0, 10).report_rows(np.zeros((3, 2), dtype=np.uint64))


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (local.k_randomized_response(1.0, 1000), (3, 4)),
        (local.unary_encoding(1.0, 70), (3, 4)),
        (local.hybrid(1.0), (0.1, 0.2)),
    ],
)
def test_memory_repeats_itself(mechanism, values):
    person, other = Memoized(mechanism), Memoized(mechanism)
    first = [person.report(v) for v in values]
    for _ in range(5):
        assert all(np.array_equal(a, person.report(v)) for a, v in zip(first, values, strict=True))
    assert len(person.memory) == 2
    assert any(not np.array_equal(Memoized(mechanism).report(values[0]), first[0]) for _ in range(50))
    first[0][...] = 0
    again = person.report(values[0]).copy()
    assert np.array_equal(again, person.report(values[0]))
    assert not other.memory
    assert "memory" not in repr(person)


def test_what_memory_spends():
    mechanism = local.k_randomized_response(1.0, 10)
    person = Memoized(mechanism)
    assert person.loss_so_far.delta(0.0) == 0
    for value in (1, 1, 2, 1):
        person.report(value)
    assert person.loss_so_far.delta(0.5) == (2 * mechanism.loss).delta(0.5)
    assert person.loss(3).delta(3.0) <= 1e-14
    with pytest.raises(InputError, match="distinct"):
        person.loss(0)
    with pytest.raises(InputError, match="values"):
        person.report(10)
    assert 10 not in person.memory


def test_reports_of_one_person_add_up():
    total = local.k_randomized_response(1.0, 10).loss + 2 * local.hybrid(0.5).loss + local.hashing(1.0, 100).loss
    assert total.neighbors.value == "local"
    assert total.delta(3.0) <= 1e-12
    assert 0 < total.delta(1.5) < 1
    with pytest.raises(InputError, match="neighbors"):
        total + local.duchi(1.0).loss.poisson_sample(0.1)
    assert Fraction(1, 3) < total.total_variation() < 1


def repeated(m, history):
    """Law of the memoized reports of randomized response for a history of values, exactly."""
    rows, law = response_rows(m), {(): Fraction(1)}
    for place, value in enumerate(history):
        before = history[:place].index(value) if value in history[:place] else None
        law = {
            (*said, y): p * (rows[value][y] if before is None else int(said[before] == y))
            for said, p in law.items()
            for y in range(m.k)
        }
    return law


@pytest.mark.parametrize(
    ("first", "second"),
    [((0, 0, 0), (1, 1, 1)), ((0, 1, 0), (1, 2, 1)), ((0, 1, 1), (2, 0, 0)), ((0, 1, 2), (1, 2, 0))],
)
def test_memory_promises_for_histories_that_change_at_the_same_times(first, second):
    m = local.k_randomized_response(1.0, 3)
    promised = Memoized(m).loss(len(set(first)))
    for level in (0.0, 0.4, 1.0, 1.7):
        truth = float(profile(repeated(m, first), repeated(m, second), Fraction(math.exp(level))))
        assert truth <= promised.delta(level) + 1e-14


def test_memory_does_not_hide_when_a_value_changed():
    """One value against two: the reports differ with a probability that no ε takes away, and the text says so."""
    m = local.k_randomized_response(1.0, 3)
    shown = profile(repeated(m, (0, 1)), repeated(m, (0, 0)), Fraction(10**30))
    assert float(shown) > 0.4 > Memoized(m).loss(2).delta(1.9)
    assert "not when they change" in Memoized.__doc__
    assert "not covered" in Memoized.loss.__doc__


def test_permanent_rows_do_not_hide_a_change_either():
    """Two reports of one row have a bit in common more often than those of two rows: in many bits, more than 2ε."""
    m = local.rappor(1.0, 2000, once=0.9)
    flip, q = m.flip.one_probability, m.permanent.false_support_probability
    both_of_one_row = q * (1 - flip) ** 2 + (1 - q) * flip**2
    lost_in_other_bits = (m.k - 2) * math.log(both_of_one_row / m.false_support_probability**2)
    assert lost_in_other_bits > 2 * m.guarantee.epsilon
    assert "not hidden" in local.rappor.__doc__


@pytest.mark.parametrize("value", [[0.5], np.array(0.5), "0.5", None, {1}])
def test_memory_takes_numbers_and_shows_none(value):
    with pytest.raises(InputError, match="type of value") as said:
        Memoized(local.duchi(1.0)).report(value)
    assert "0.5" not in str(said.value)
