"""Choices of a quantile's cell and of a width around it: distances against their definition, coverage in whole numbers.

Not named for its module: tests/queries/quantiles/test_quantile.py has that name, and modules of tests have no folders.
"""

from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tightrope.mechanisms.discrete.integer_tables import geometric_table
from tightrope.mechanisms.exponential import (
    MOST_EXCESS,
    PARTS,
    ExponentialChoice,
    QuantileChoice,
    cell_distances,
    half_widths,
    quantile_in_millionths,
    width_distances,
)

MANY_CELLS = [1, 2, 3, 5, 20, 100, 4000]
LAWS = [(0.3, 10), (0.5, 2_000_000), (3.0, 1_000_001), (8.0, 250_000), (40.0, 50_000)]
"""Sizes of noise, and factors: about a row's 2·10⁶ parts in as many steps as have a use."""

shares = st.sampled_from([500_000, 900_000, 100_000, 1, 999_999]) | st.integers(1, 999_999)
cells_of_few = st.lists(st.integers(0, 3) | st.sampled_from([0, 0, 50, 10**4]), min_size=1, max_size=40)
laws = st.sampled_from(LAWS)


@cache
def law_of(scale, factor):
    return ExponentialChoice.from_table(geometric_table(scale), factor)


def excess_by_hand(below, counts):
    """E_0, …, E_c in Python's numbers."""
    n = sum(counts)
    return [PARTS * sum(counts[:k]) - below * n for k in range(len(counts) + 1)]


def cell_distances_by_hand(excess):
    return [max(0, left, -right) for left, right in pairwise(excess)]


def reached_by_hand(excess, center, width, unbound):
    """G of one width: how far E is below 0 to the left and above 0 to the right."""
    left, right, cells = center - width, center + width + 1, len(excess) - 1
    return min(unbound if left <= 0 else -excess[left], unbound if right >= cells else excess[right])


def width_distances_by_hand(excess, center, target):
    unbound = max(target, *map(abs, excess)) + target
    reached = [reached_by_hand(excess, center, width, unbound) for width in half_widths(len(excess) - 1)]
    return [max(0, before - target, target - now) for before, now in pairwise([-unbound, *reached])]


def quantile_cell(below, counts):
    """The cell of the least value that a share ``below`` / 10⁶ of all rows does not exceed, from the rows in order."""
    rows = [cell for cell, count in enumerate(counts) for _ in range(count)]
    return next(cell for i, cell in enumerate(rows, 1) if PARTS * i >= below * len(rows))


def left_out(counts, center, cell):
    """The places of the widths that do not reach the cell."""
    return [i for i, width in enumerate(half_widths(len(counts))) if abs(cell - center) > width]


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        (0.5, 500_000),
        (0.9, 900_000),
        (0.000001, 1),
        (1e-6, 1),
        (0.1, 100_000),
        (0.25, 250_000),
        (0.999999, 999_999),
        (0.3, 300_000),
        (1 / 3, None),
        (0.1234567, None),
        (1e-7, None),
        (0.1 + 0.2, None),
    ],
)
def test_shares_are_taken_as_they_are_written(q, expected):
    assert quantile_in_millionths(q) == expected


@given(st.integers(0, PARTS))
def test_every_millionth_is_read_as_itself(parts):
    assert quantile_in_millionths(parts / PARTS) == parts


@pytest.mark.parametrize("cells", MANY_CELLS)
def test_widths_rise_from_0_to_all_cells(cells):
    widths = half_widths(cells)
    assert widths[0] == 0
    assert widths[-1] == cells
    assert all(before < after for before, after in pairwise(widths))


@given(st.integers(1, 10**6))
def test_widths_grow_by_about_the_root_of_two(cells):
    widths = half_widths(cells)
    assert widths[-1] == cells
    assert len(widths) <= 2 * cells.bit_length() + 2
    assert all(before < after <= max(before + 1, 1.5 * before) for before, after in pairwise(widths))


@st.composite
def neighbors(draw):
    """Counts of the rows in each cell, those with a person's rows, and the number of these."""
    counts = draw(cells_of_few)
    rows = draw(st.lists(st.integers(0, len(counts) - 1), min_size=1, max_size=30))
    together = np.bincount(rows, minlength=len(counts))
    return np.array(counts), np.array(counts) + together, len(rows)


def moved(first, second):
    return int(np.max(np.abs(first - second)))


@given(shares, neighbors())
@settings(deadline=None, max_examples=100)
def test_a_row_moves_distances_of_cells_by_the_sensitivity_at_most(below, found):
    without, beside, rows = found
    choice = QuantileChoice(below)
    first, second = (cell_distances(choice.excess_at_edges(counts)) for counts in (without, beside))
    assert moved(first, second) <= rows * choice.distance_sensitivity


@given(shares, neighbors(), st.data())
@settings(deadline=None, max_examples=150)
def test_a_row_moves_distances_of_widths_by_the_sensitivity_at_most(below, found, data):
    without, beside, rows = found
    choice = QuantileChoice(below)
    center = data.draw(st.integers(0, len(without) - 1))
    target = data.draw(st.integers(0, 10**8) | st.sampled_from([0, 1, PARTS, 10**12]))
    first, second = (width_distances(choice.excess_at_edges(counts), center, target) for counts in (without, beside))
    assert moved(first, second) <= rows * choice.distance_sensitivity


@pytest.mark.parametrize("below", [500_000, 900_000, 100_000, 1, 999_999])
def test_the_sensitivity_is_reached(below):
    """By a row beyond the quantile or before it, in the distance of a cell and of a width."""
    choice, counts = QuantileChoice(below), np.full(9, 40)
    by_cell, by_width = [], []
    for cell in (0, 8):
        more = counts + (np.arange(9) == cell)
        first, second = choice.excess_at_edges(counts), choice.excess_at_edges(more)
        by_cell.append(moved(cell_distances(first), cell_distances(second)))
        by_width += [moved(*(width_distances(e, k, 10**7) for e in (first, second))) for k in range(9)]
    assert max(by_cell) == max(by_width) == choice.distance_sensitivity


@given(shares, cells_of_few.filter(any))
@settings(deadline=None, max_examples=100)
def test_only_the_quantiles_cell_has_the_excess_0_within(below, counts):
    excess = excess_by_hand(below, counts)
    within = [k for k, (left, right) in enumerate(pairwise(excess)) if left < 0 <= right]
    assert within == [quantile_cell(below, counts)]


@given(shares, cells_of_few.filter(any))
def test_the_quantiles_cell_has_distance_0(below, counts):
    assert cell_distances(QuantileChoice(below).excess_at_edges(np.array(counts)))[quantile_cell(below, counts)] == 0


@given(shares, cells_of_few.filter(any))
def test_a_cell_has_distance_0_only_beside_the_quantiles(below, counts):
    """Where E_k = 0 at an edge, the cells from there to the next row are as near."""
    distances = cell_distances(QuantileChoice(below).excess_at_edges(np.array(counts)))
    cell = quantile_cell(below, counts)
    assert all(sum(counts[cell + 1 : k]) == 0 for k in range(cell + 1, len(counts)) if distances[k] == 0)
    assert (distances[:cell] > 0).all()


@given(shares, cells_of_few)
def test_distances_are_their_definition(below, counts):
    excess = QuantileChoice(below).excess_at_edges(np.array(counts))
    assert excess.tolist() == excess_by_hand(below, counts)
    assert cell_distances(excess).tolist() == cell_distances_by_hand(excess_by_hand(below, counts))


@given(shares, cells_of_few, st.integers(0, 10**8))
def test_distances_of_widths_are_their_definition(below, counts, target):
    excess = QuantileChoice(below).excess_at_edges(np.array(counts))
    for center in range(len(counts)):
        expected = width_distances_by_hand(excess_by_hand(below, counts), center, target)
        assert width_distances(excess, center, target).tolist() == expected


@given(shares, cells_of_few, st.integers(1, 10**8))
def test_wider_intervals_reach_farther(below, counts, target):
    excess = excess_by_hand(below, counts)
    unbound = max(target, *map(abs, excess)) + target
    for center in range(len(counts)):
        reached = [reached_by_hand(excess, center, width, unbound) for width in half_widths(len(counts))]
        assert all(before <= after for before, after in pairwise(reached))
        assert reached[-1] == unbound > target


@given(shares, cells_of_few.filter(any), st.integers(1, 10**8))
def test_widths_that_leave_the_quantile_out_are_at_the_target_or_beyond(below, counts, target):
    excess, cell = QuantileChoice(below).excess_at_edges(np.array(counts)), quantile_cell(below, counts)
    for center in range(len(counts)):
        distances = width_distances(excess, center, target)
        assert (distances[left_out(counts, center, cell)] >= target).all()
        assert distances.min() == 0


def outside(choice, law, counts, cell):
    """The largest chance, over all centers, that the interval leaves the cell out: exactly, by the weights."""
    excess, target = choice.excess_at_edges(np.array(counts)), choice.target_excess(law, len(counts))
    for center in range(len(counts)):
        weights = law.candidate_weights(width_distances(excess, center, target))
        yield Fraction(sum(weights[i] for i in left_out(counts, center, cell)), sum(weights))


@given(laws, shares, cells_of_few.filter(any))
@settings(deadline=None, max_examples=100)
def test_the_quantile_is_left_out_5_percent_of_the_time_at_most(law, below, counts):
    found = outside(QuantileChoice(below), law_of(*law), counts, quantile_cell(below, counts))
    assert max(found) <= Fraction(1, 20)


HEAPS = {
    "one row": [0] * 150 + [1] + [0] * 49,
    "all in the first": [10**5] + [0] * 199,
    "all in the last": [0] * 199 + [10**5],
    "two heaps": [0] * 30 + [10**4] + [0] * 140 + [10**4] + [0] * 28,
    "a heap among few": [1] * 90 + [500] + [1] * 109,
    "even": [7] * 200,
    "one cell": [3],
}


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("below", [1, 100_000, 500_000, 999_999])
@pytest.mark.parametrize("counts", HEAPS.values(), ids=HEAPS)
def test_the_quantile_of_heaps_is_left_out_5_percent_of_the_time_at_most(law, below, counts):
    found = outside(QuantileChoice(below), law_of(*law), counts, quantile_cell(below, counts))
    assert max(found) <= Fraction(1, 20)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("cells", [1, 2, 7, 200])
def test_without_rows_any_cell_is_left_out_5_percent_of_the_time_at_most(law, cells):
    choice, empty = QuantileChoice(300_000), [0] * cells
    assert all(
        max(outside(choice, law_of(*law), empty, cell)) <= Fraction(1, 20) for cell in {0, cells // 2, cells - 1}
    )


def test_a_target_that_is_half_as_far_is_caught():
    """One row in the last cell, seen from the first: all widths but the last leave it out."""
    law, counts = law_of(8.0, 250_000), [0] * 199 + [1]
    choice, widths = QuantileChoice(500_000), half_widths(200)
    target = choice.target_excess(law, 200) // 2
    weights = law.candidate_weights(width_distances(choice.excess_at_edges(np.array(counts)), 0, target))
    assert left_out(counts, 0, 199) == list(range(len(widths) - 1))
    assert Fraction(sum(weights[i] for i in left_out(counts, 0, 199)), sum(weights)) > Fraction(1, 20)


def test_4000_cells_keep_the_promise():
    counts, law = np.bincount(np.arange(3001) % 977 + 1500, minlength=4000), law_of(3.0, 1_000_001)
    choice, cell = QuantileChoice(900_000), quantile_cell(900_000, counts.tolist())
    excess, target = choice.excess_at_edges(counts), choice.target_excess(law, 4000)
    for center in (0, 1500, cell - 1, cell, cell + 2, 3999):
        weights = law.candidate_weights(width_distances(excess, center, target))
        assert 20 * sum(weights[i] for i in left_out(counts, center, cell)) <= sum(weights)


def sure():
    """A tenth of a row away weighs 2⁻¹⁰⁰ of what is at hand."""
    return law_of(0.3, 10)


@given(cells_of_few, st.sampled_from([100_000, 500_000, 900_000]))
def test_with_hardly_any_noise_the_quantiles_cell_is_chosen(counts, below):
    assume(below * sum(counts) % PARTS)  # else E_k may be 0, where the next cells are as near
    assert QuantileChoice(below).choose_index(np.array(counts), sure(), 0) == quantile_cell(below, counts)


@given(cells_of_few, st.data())
def test_with_hardly_any_noise_the_least_width_that_holds_the_quantile_is_chosen(counts, data):
    assume(sum(counts) % 2)  # no E_k is 0
    named = data.draw(st.integers(0, len(counts) - 1))
    away = abs(quantile_cell(500_000, counts) - named)
    least = next(width for width in half_widths(len(counts)) if width >= away)
    assert QuantileChoice(500_000, around="value").choose_index(np.array(counts), sure(), named) == least


@pytest.mark.parametrize("named", [0, 3, 50, 99])
def test_a_width_is_chosen_around_the_cell_that_is_named(named):
    counts = np.full(100, 11)
    counts[70] += 1
    chosen = QuantileChoice(500_000, around="value").choose_index(counts, law_of(3.0, 1_000_001), named)
    assert isinstance(chosen, int)
    assert chosen in half_widths(100)


HUGE = {
    "10^13": [10**13, 3, 0, 10**13 + 1, 5],
    "10^40": [0, 10**40, 7, 10**40 - 3, 0, 1],
    "just within": [MOST_EXCESS // PARTS - 1, 0, 1],
    "just beyond": [MOST_EXCESS // PARTS, 0, 1],
    "only beyond together": [MOST_EXCESS // PARTS - 1] * 4,
}


@pytest.mark.parametrize("counts", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("below", [1, 500_000, 900_000, 999_999])
def test_huge_counts_are_exact(counts, below):
    choice, by_hand = QuantileChoice(below), excess_by_hand(below, counts)
    for dtype in [np.object_] if max(counts) >= 2**63 else [np.int64, np.object_]:
        excess = choice.excess_at_edges(np.array(counts, dtype=dtype))
        assert excess.tolist() == by_hand
        assert cell_distances(excess).tolist() == cell_distances_by_hand(by_hand)
        for center in range(len(counts)):
            for target in (1, 10**9, 10**15):
                expected = width_distances_by_hand(by_hand, center, target)
                assert width_distances(excess, center, target).tolist() == expected


@pytest.mark.parametrize("counts", HUGE.values(), ids=HUGE)
def test_huge_counts_are_weighed_as_any(counts):
    law, by_hand = law_of(8.0, 250_000), excess_by_hand(900_000, counts)
    last = len(law.weights_by_step) - 1
    expected = [law.weights_by_step[min(2 * d // law.factor, last)] for d in cell_distances_by_hand(by_hand)]
    assert law.candidate_weights(cell_distances(QuantileChoice(900_000).excess_at_edges(np.array(counts)))) == expected


def test_of_huge_counts_the_quantiles_cell_is_chosen():
    counts = np.array([0, 10**40, 7, 10**40 + 30, 0, 1], dtype=np.object_)
    assert QuantileChoice(500_000).choose_index(counts, sure(), 0) == 3
    assert QuantileChoice(500_000, around="value").choose_index(counts, sure(), 1) == 2


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.uint64])
def test_counts_of_any_type_of_whole_numbers_are_the_same(dtype):
    counts = [200, 0, 250, 3]
    assert QuantileChoice(250_000).excess_at_edges(np.array(counts, dtype=dtype)).tolist() == excess_by_hand(
        250_000, counts
    )
