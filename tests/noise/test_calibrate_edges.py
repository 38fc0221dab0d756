"""Calibration where it used to crash or stray: whole numbers, rates, laws that end, saturated and broken losses."""

from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.errors import InputError, InsufficientBudgetError, PrecisionError, PrecisionWarning

USUAL = tr.Budget(epsilon=1, delta="1e-6")
STEP = tr.gaussian(scale=1.0).loss.poisson_sample(0.01)


def at_most(steps_or_rate, make, budget, **settings):
    """The answer keeps the budget, and is not the end of what was tried by accident."""
    found = tr.calibrate(make, budget, **settings)
    assert all(found.loss.delta(float(epsilon)) <= float(delta) for epsilon, delta in budget.points)
    assert found.parameter == pytest.approx(steps_or_rate, rel=1e-8)
    return found


@pytest.mark.parametrize(
    ("epsilon", "delta", "steps"),
    [("1", "1e-6", 120), ("3", "1e-5", 2666), ("8", "1e-8", 9583)],
)
def test_steps_of_training(epsilon, delta, steps):
    """120: two steps of the search used to round to one number, and the secant through them was NaN."""
    budget = tr.Budget(epsilon=epsilon, delta=delta)
    found = at_most(steps, lambda count: count * STEP, budget, integer=True)
    assert ((steps + 1) * STEP).delta(float(epsilon)) > float(delta)
    assert found.evaluations <= 10


@settings(deadline=None)
@given(
    scale=st.floats(0.5, 300), epsilon=st.floats(0.05, 8), delta=st.floats(1e-30, 0.1),
    smallest=st.one_of(st.none(), st.integers(1, 50)), largest=st.one_of(st.none(), st.integers(51, 10**7)),
)  # fmt: skip
def test_the_most_of_anything_counted(scale, epsilon, delta, smallest, largest):
    step, budget = tr.gaussian(scale=scale).loss, tr.Budget(epsilon=epsilon, delta=delta)
    try:
        found = tr.calibrate(lambda n: n * step, budget, smallest=smallest, largest=largest, integer=True)
    except InsufficientBudgetError:
        assert ((smallest or 1) * step).delta(epsilon) > delta * (1 - 1e-9)
        return
    assert isinstance(found.parameter, int)
    assert found.loss.delta(epsilon) <= delta
    if found.parameter < (largest or 10**9):
        assert ((found.parameter + 1) * step).delta(epsilon) > delta * (1 - 1e-9)


@pytest.mark.parametrize("increasing", [None, True])
@pytest.mark.parametrize(("scale", "count", "rate"), [(1.0, 1000, 0.0048709914843), (4.0, 50, 0.1240060271)])
def test_a_rate_needs_no_range(scale, count, rate, increasing):
    def loss(rate):
        return count * tr.gaussian(scale=scale).loss.poisson_sample(rate)

    found = at_most(rate, loss, USUAL, increasing=increasing)
    assert tr.calibrate(loss, USUAL, largest=1).parameter == pytest.approx(found.parameter, rel=2e-9)
    assert found.evaluations <= 12


@pytest.mark.parametrize(
    ("make", "end"),
    [
        (tr.gaussian(scale=100).loss.poisson_sample, 1.0),
        (lambda size: tr.gaussian(scale=100).loss.subset_sample(size, 777), 777),
        (lambda delta: tr.truncated_laplace(epsilon=0.5, delta=delta).loss, 0.5),
    ],
)
def test_where_make_loss_refuses_the_range_ends(make, end):
    """All of it is allowed; the end itself is found, although nobody said where it is."""
    loose = tr.Budget(epsilon=1, delta="0.6")
    assert tr.calibrate(make, loose, integer=isinstance(end, int)).parameter == end


def test_a_range_that_does_not_hold_the_usual_start():
    def loss(scale):
        if not 1e-9 <= scale <= 1e-7:
            raise InputError("scale", scale, "between 1e-9 and 1e-7")
        return tr.gaussian(scale=scale * 1e9).loss

    assert at_most(4.2246788918e-9, loss, USUAL).evaluations <= 12


def test_a_range_that_was_stated_is_not_shortened():
    def loss(rate):
        return tr.gaussian(scale=100).loss.poisson_sample(rate)

    with pytest.raises(InputError, match=r"rate=2.*everyone takes part"):
        tr.calibrate(loss, USUAL, largest=2)
    with pytest.raises(InputError, match=r"rate=(9|10)"):
        tr.calibrate(loss, USUAL, smallest=5, largest=20)


def test_what_is_refused_everywhere_is_told_once():
    with pytest.raises(InputError, match=r"scale=-1\.0"):
        tr.calibrate(lambda scale: tr.gaussian(scale=-scale).loss, USUAL)
    with pytest.raises(InputError, match="scale=-256"):
        tr.calibrate(lambda count: tr.gaussian(scale=-count).loss, USUAL, integer=True)


def test_other_errors_of_make_loss_are_not_swallowed():
    def loss(scale):
        return {}[scale]

    with pytest.raises(KeyError):
        tr.calibrate(loss, USUAL)


@pytest.mark.parametrize("hole", [(0.0, 3.0), (6.0, math.inf)])
def test_laws_far_from_the_answer_need_not_be_computable(hole):
    """4.22 is the answer; a strange law on one side of it is walked around."""

    def loss(scale):
        if hole[0] < scale < hole[1]:
            raise PrecisionError("too far")
        return tr.gaussian(scale=scale).loss

    at_most(4.2246788918, loss, USUAL)


def test_steps_at_small_rates():
    """32 of 3.5 million, one epoch, to (0.1, 1e-6): dp-accounting says 0.756, its grid being coarse."""

    def loss(scale):
        return 109_375 * tr.gaussian(scale=scale).loss.poisson_sample(32 / 3.5e6)

    found = at_most(0.574538597, loss, tr.Budget(epsilon="0.1", delta="1e-6"))
    assert found.evaluations <= 8


def test_a_loss_that_jumps():
    """Nothing to interpolate: all of it on either side is one value."""

    def loss(scale):
        return tr.approx_dp(3.0 if scale < math.pi else 0.5).loss

    assert at_most(math.pi, loss, USUAL).parameter >= math.pi


@pytest.mark.parametrize("tolerance", [1e-300, 1e-17, 1e-15])
def test_a_tolerance_below_rounding(tolerance):
    found = tr.calibrate(lambda scale: tr.gaussian(scale=scale).loss, USUAL, tolerance=tolerance)
    assert found.parameter == pytest.approx(4.224678889, rel=1e-9)
    assert found.evaluations <= 25


def test_the_answer_alone_is_warned_of():
    """Far from the answer brackets are wide and nobody cares; at the answer they cost utility."""
    wide = tr.from_profile(tr.gaussian(scale=1).loss.delta, relative_error=0.01).loss
    with pytest.warns(PrecisionWarning, match="only known to lie in"):
        tr.calibrate(lambda share: 2 * wide.erase(share), tr.Budget(epsilon=1, delta="0.01"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tr.calibrate(
            lambda steps: steps * tr.approx_dp(0.05).loss, tr.Budget(epsilon="0.1", delta="1e-5"), integer=True
        )
