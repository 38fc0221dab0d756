"""Nonsense arguments raise an error that teaches, and shows nobody's value."""

import math

import numpy as np
import pytest

from tests.local.mechanisms.channel_definitions import MAKERS
from tightrope import local
from tightrope.errors import InputError


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan, "1", None, True, 1e-300])
def test_epsilon(name, epsilon):
    with pytest.raises(InputError, match="epsilon"):
        MAKERS[name](epsilon, 4)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("k", [1, 0, -3, 2.0, "4", None, True, 1 << 40])
def test_k(name, k):
    with pytest.raises(InputError, match=r"k="):
        MAKERS[name](1.0, k)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([0, 4], "outside 0..3=1"),
        ([-1, -1, 0], "outside 0..3=2"),
        ([0.0, 1.0], "type of values='float64'"),
        ([math.nan], "type of values"),
        (["a"], "type of values"),
        ([None], "type of values"),
        (3, "shape of values"),
        ([[0, 1]], "shape of values"),
        ([[0], [1, 2]], "unequal"),
        (np.array([2**63], dtype=np.uint64), "outside"),
    ],
)
def test_values(name, values, match):
    with pytest.raises(InputError, match=match):
        MAKERS[name](1.0, 4).perturb(values)


@pytest.mark.parametrize("name", MAKERS)
def test_an_error_shows_no_value_of_a_person(name):
    with pytest.raises(InputError) as caught:
        MAKERS[name](1.0, 4).perturb([1, 777, 2])
    assert "777" not in str(caught.value)


@pytest.mark.parametrize("name", MAKERS)
def test_many_kinds_of_whole_numbers(name):
    m = MAKERS[name](1.0, 4)
    for values in ([0, 3], (0, 3), np.array([0, 3], dtype=np.int8), np.array([0, 3], dtype=np.uint64), [True, False]):
        assert len(m.perturb(values)) == 2
    frozen = np.array([1, 2, 3])
    frozen.flags.writeable = False
    assert len(m.perturb(frozen)) == 3


@pytest.mark.parametrize("name", MAKERS)
def test_nobody(name):
    m = MAKERS[name](1.0, 4)
    reports = m.perturb([])
    assert len(reports) == 0
    assert m.tally_reports(reports).people == 0
    with pytest.raises(InputError, match="1 report or more"):
        m.estimate(reports)


@pytest.mark.parametrize("confidence", [0, 1, -1, 1.5, math.nan, "0.95"])
def test_confidence(confidence):
    m = local.k_randomized_response(1.0, 4)
    with pytest.raises(InputError, match="confidence"):
        m.estimate(m.perturb([1]), confidence=confidence)


@pytest.mark.parametrize("eta", [0, -0.1, 1.1, math.nan, 1e-30, "1"])
def test_total_variation(eta):
    with pytest.raises(InputError, match="total_variation"):
        local.binary_with_erasure(1.0, eta)


@pytest.mark.parametrize("hashes", [1, 6, 257, 3.0, True])
def test_hashes(hashes):
    with pytest.raises(InputError, match="hashes"):
        local.hashing(1.0, 10, hashes=hashes)


@pytest.mark.parametrize("size", [0, 10, -1, 2.0, True])
def test_sizes_of_subsets(size):
    with pytest.raises(InputError, match="size"):
        local.subset_selection(1.0, 10, size=size)


def test_reports_that_nobody_can_have_made():
    with pytest.raises(InputError, match=r"reports outside 0\.\.3"):
        local.k_randomized_response(1.0, 4).estimate([4])
    with pytest.raises(InputError, match="reports outside"):
        local.hashing(1.0, 4).estimate([1 << 30])
    rows = np.array([[1 << 60]], dtype=np.uint64)
    for name in ("optimized unary", "subsets"):
        with pytest.raises(InputError, match="highest bit"):
            MAKERS[name](1.0, 4).estimate(rows)
        with pytest.raises(InputError, match="packed bits"):
            MAKERS[name](1.0, 4).estimate(rows.astype(np.int64))
    with pytest.raises(InputError, match="size of a reported set"):
        local.subset_selection(1.0, 10, size=3).estimate(np.array([[0b1111]], dtype=np.uint64))


def test_tallies_of_other_domains_do_not_add_up():
    one, two = local.k_randomized_response(1.0, 4), local.k_randomized_response(1.0, 5)
    with pytest.raises(InputError, match="tally"):
        one.tally_reports([0]) + two.tally_reports([0])
    with pytest.raises(InputError, match="tally"):
        one.estimate_tally(two.tally_reports([0]))
    with pytest.raises(TypeError):
        one.tally_reports([0]) + 1


def test_what_would_fill_the_memory_is_refused():
    with pytest.raises(InputError, match="hashes"):
        local.hashing(1.0, 1 << 22, hashes=64)
    with pytest.raises(InputError, match="k"):
        local.k_randomized_response(1.0, 1 << 31).tally_reports([1])


@pytest.mark.parametrize(
    ("people", "answered", "counts"),
    [
        (10, 10, [-1, 5]),
        (10, 10, [11, 0]),
        (10, 5, [6, 0]),
        (10, 11, [1, 1]),
        (-1, 0, [0]),
        (10.0, 10, [1]),
        (10, 10, [math.nan, 1.0]),
        (10, 10, [[1, 2]]),
        (10, 10, ["a"]),
    ],
)
def test_tallies_that_nobody_can_have_counted(people, answered, counts):
    with pytest.raises(InputError, match=r"people|answered|count"):
        local.Tally(people, answered, counts)


def test_tallies_take_lists():
    m = local.k_randomized_response(1.0, 3)
    assert m.estimate_tally(local.Tally(10, 10, [5, 3, 2])).value.shape == (3,)


@pytest.mark.parametrize("share", [-0.1, 1.1, math.nan, "0.5"])
def test_a_variance_is_of_a_share(share):
    with pytest.raises(InputError, match="share"):
        local.k_randomized_response(1.0, 3).estimate_variance(share, 10)


def test_masked_values_are_not_reported():
    """The number under a mask is still in the array."""
    masked = np.ma.array([1, 2, 0], mask=[False, True, False])
    with pytest.raises(InputError, match="masked values") as said:
        local.k_randomized_response(1.0, 3).perturb(masked)
    assert said.value.value == 1
    with pytest.raises(InputError, match="masked values"):
        local.duchi(1.0).perturb(masked.astype(float) / 2)
    assert len(local.k_randomized_response(1.0, 3).perturb(masked.compressed())) == 2
