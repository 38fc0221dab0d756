"""The exponential mechanism: its weights and its draws, and that the table it is charged as dominates it, exactly."""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.mechanisms.exact_noise import hockey_stick, law, probability
from tests.mechanisms.strategies import endless_tables
from tests.randomness.keyed import InsecureKeyed
from tests.randomness.scripted import Scripted
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import gaussian_table, staircase_table, truncated_geometric
from tightrope.mechanisms.discrete.integer_weights import Tail
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.exponential import HEAVIEST, ExponentialChoice, _uniform_below, has_lighter_tails
from tightrope.mechanisms.laplace import discrete_laplace
from tightrope.randomness.alias_sampler import TOTAL

SEVEN_SIGMA = 2 * stats.norm.sf(7)
SCALES = [0.3, 1, 4.7, 60, 900]
DRAWS = 20_000

scales = st.sampled_from(SCALES)


@cache
def laplace(scale):
    return discrete_laplace(scale=scale).table


@cache
def beside(scale, factor=1):
    return ExponentialChoice.from_table(laplace(scale), factor)


def smaller(root, part):
    return root - math.ceil(root * Fraction(part))


@pytest.mark.parametrize("scale", [0.2, 0.7, 3, 300])
def test_weights_fall_by_the_root_rounded_up(scale):
    choice = beside(scale)
    root = Fraction(choice.root, TOTAL)
    assert choice.weights_by_step[0] == HEAVIEST
    assert all(after == math.ceil(before * root) < before for before, after in pairwise(choice.weights_by_step))
    assert math.ceil(choice.weights_by_step[-1] * root) == choice.weights_by_step[-1]


@pytest.mark.parametrize("scale", [0.2, 0.7, 3, 300])
def test_no_step_falls_by_more_than_the_root(scale):
    choice = beside(scale)
    assert all(after * TOTAL >= before * choice.root for before, after in pairwise(choice.weights_by_step))


@pytest.mark.parametrize(("scale", "floor"), [(0.03, 1), (0.2, 1), (0.7, 1), (3, 6), (300, 600)])
def test_weights_stay_at_the_first_that_rounding_holds(scale, floor):
    """The floor is 1 where a weight is at least halved a step, else about 1/(1 − ρ) = 2 scale."""
    choice = beside(scale)
    assert choice.weights_by_step[-1] == floor
    assert floor * (TOTAL - choice.root) < TOTAL <= (floor + 1) * (TOTAL - choice.root)


@given(st.lists(st.integers(0, 10**6), min_size=1), st.integers(1, 40), st.sampled_from([np.int64, np.object_]))
def test_a_distance_has_the_weight_of_its_place(distances, factor, dtype):
    choice = beside(4.7, factor)
    last = len(choice.weights_by_step) - 1
    expected = [choice.weights_by_step[min(2 * d // factor, last)] for d in distances]
    assert choice.candidate_weights(np.array(distances, dtype=dtype)) == expected


def test_distances_beyond_any_integer_type_have_the_last_weight():
    choice = beside(4.7, 3)
    assert choice.candidate_weights(np.array([0, 10**40, 2**63], dtype=np.object_)) == [
        HEAVIEST,
        choice.weights_by_step[-1],
        choice.weights_by_step[-1],
    ]


def test_ends_add_up_weights():
    choice = beside(1.0)
    w = choice.weights_by_step
    assert choice.cumulative_weights(np.array([0, 2, 0])) == [w[0], w[0] + w[4], 2 * w[0] + w[4]]


@pytest.mark.parametrize("scale", [0.03, 0.2, 0.5, 0.9, 1, 1.7, 2, 7.3, 20, 64.1, 250.5, 1000, 3333.3, 8000])
def test_discrete_laplace_is_light_enough_for_its_root_and_for_none_below(scale):
    table, choice = laplace(scale), beside(scale)
    assert has_lighter_tails(table, choice.root)
    assert not has_lighter_tails(table, smaller(choice.root, 1e-6))
    if scale >= 0.2:  # below, 53 bits of the root are too few
        assert not has_lighter_tails(table, smaller(choice.root, 1e-12))


@pytest.mark.parametrize("scale", [0.2, 1.7, 64.1, 3333.3])
def test_the_root_is_close_to_that_of_the_law(scale):
    assert math.isclose(beside(scale).root / TOTAL, math.exp(-0.5 / scale), rel_tol=1e-12)


def slower(table, part):
    """The same noise with a tail that falls more slowly in each turn: so much of its first cell moves on."""
    first, *others = table.tail.block
    on = int(first * part)
    tail = Tail((first - on, *others), table.tail.escape_in, table.tail.escape + on)
    return NoiseTable(table.center, table.half, tail)


@cache
def flatter():
    return slower(laplace(0.5), 0.5)


@cache
def peaked(scale):
    """Discrete Laplace noise of which half the mass away from 0 is brought there: lighter everywhere."""
    table = laplace(scale)
    half, into = tuple(w // 2 for w in table.half), table.tail.escape_in // 2
    return NoiseTable(TOTAL - 2 * (sum(half) + into), half, Tail(table.tail.block, into, table.tail.escape))


OTHERS = {
    "discrete Gaussian": gaussian_table(4.0),
    "truncated Laplace": truncated_geometric(scale=3, largest=40),
    "truncated Laplace, longer than its weights": truncated_geometric(scale=0.5, largest=1000),
    "staircase of three": staircase_table(1.0, 3, 2),
    "staircase of many": staircase_table(0.2, 10, 5),
    "wide top": NoiseTable.from_probabilities([1, 1], tail_ratio=math.exp(-1)),
    "flat, then Laplace": NoiseTable.from_probabilities([4, 3, 3, 1], tail_ratio=0.25),
    "nothing but 0": NoiseTable(TOTAL, ()),
}


@pytest.mark.parametrize("table", OTHERS.values(), ids=OTHERS)
def test_other_noise_is_refused(table):
    with pytest.raises(InputError, match="table"):
        ExponentialChoice.from_table(table, 1)


def test_a_heavier_tail_needs_a_larger_root():
    root, larger = beside(0.5).root, ExponentialChoice.from_table(flatter(), 1).root
    assert has_lighter_tails(laplace(0.5), root)
    assert not has_lighter_tails(flatter(), root)
    assert larger > root
    assert has_lighter_tails(flatter(), larger)


@pytest.mark.parametrize("scale", SCALES)
def test_a_peak_at_0_is_lighter_still(scale):
    assert has_lighter_tails(peaked(scale), beside(scale).root)


def test_a_tail_that_falls_more_slowly_is_heavier_in_the_end():
    """Its first turn is far below the law."""
    root = beside(0.5).root
    assert has_lighter_tails(peaked(0.5), root)
    assert not has_lighter_tails(slower(peaked(0.5), 1e-6), root)


@pytest.mark.parametrize("cell", range(len(laplace(1.0).half)))
def test_a_little_more_in_any_cell_is_too_heavy(cell):
    table, more = laplace(1.0), list(laplace(1.0).half)
    moved = more[cell] >> 20
    more[cell] += moved
    assert not has_lighter_tails(NoiseTable(table.center - 2 * moved, tuple(more), table.tail), beside(1.0).root)


@pytest.mark.parametrize("table", [OTHERS["discrete Gaussian"], OTHERS["truncated Laplace"]], ids=repr)
def test_without_a_tail_no_root_will_do(table):
    assert not has_lighter_tails(table, TOTAL - 1)


@pytest.mark.parametrize("root", [TOTAL, TOTAL + 1, 2 * TOTAL])
def test_a_root_that_does_not_fall_will_not_do(root):
    assert not has_lighter_tails(laplace(1.0), root)


@given(endless_tables, st.floats(0.01, 0.999999))
def test_lighter_is_what_it_says(table, near):
    """By survival in fractions, over three turns of the tail; a little below the root is refused in whole numbers."""
    root = int(near * TOTAL)
    r = Fraction(root, TOTAL) ** 2
    cells = range(len(table.half) + 3 * len(table.tail.block))
    within = all(table.survival_probability(x) <= r ** (x + 1) / (1 + r) for x in cells)
    falls = Fraction(table.tail.escape, TOTAL) <= r ** len(table.tail.block)
    assert has_lighter_tails(table, root) == (within and falls)


@cache
def events(table, shift):
    """(Q(A), P(A)) of the events A = "at most x" for 0 ≤ x < shift, where P has the table's noise, Q moves it."""
    inner = ((table.survival_probability(shift - x - 1), 1 - table.survival_probability(x)) for x in range(shift))
    return (Fraction(0), Fraction(0)), *inner, (Fraction(1), Fraction(1))


@cache
def slopes(table, shift):
    """Where the largest P(A) − γ Q(A) bends."""
    return {(after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(events(table, shift))}


def noise_delta(table, shift, gamma):
    """At most δ of the table's noise at ε = log γ: what the best of some tests has, in fractions."""
    return max(p - gamma * q for q, p in events(table, shift))


def choice_delta(p, q, gamma):
    """Σ (P_i − γ Q_i)₊ of two choices with these weights."""
    a, b = sum(p), sum(q)
    return sum(max(Fraction(0), Fraction(one, a) - gamma * Fraction(other, b)) for one, other in zip(p, q, strict=True))


def bends(p, q):
    a, b = sum(p), sum(q)
    return {Fraction(one * b, other * a) for one, other in zip(p, q, strict=True)}


def exceeds(choice, table, shift, first, second):
    """Whether a choice tells two vectors of distances apart better than the table's noise tells the shift."""
    weights = [choice.candidate_weights(np.array(distances, dtype=np.object_)) for distances in (first, second)]
    return any(
        choice_delta(p, q, gamma) > noise_delta(table, shift, gamma)
        for p, q in (weights, reversed(weights))
        for gamma in bends(p, q) | slopes(table, shift)
    )


@st.composite
def neighbors(draw):
    """A factor, the shift that is charged, and distances that differ by Δ at most."""
    factor, most = draw(st.integers(1, 12)), draw(st.integers(1, 30))
    first = draw(st.lists(st.integers(0, 20 * factor) | st.integers(0, 10**6), min_size=2, max_size=8))
    move = st.sampled_from([-most, most]) | st.integers(-most, most)
    moves = draw(st.lists(move, min_size=len(first), max_size=len(first)))
    return factor, -(-2 * most // factor), first, [max(0, d + m) for d, m in zip(first, moves, strict=True)]


def halves(most, base, candidates=6):
    """All alike, then some nearer and the others farther."""
    for nearer in range(candidates + 1):
        yield [base] * candidates, [base - most] * nearer + [base + most] * (candidates - nearer)


def rare(most, far):
    """One that is seldom chosen comes nearer, all others move away."""
    return [0, 0, far], [most, most, far - most]


def structured(scale, most, factor):
    for base in range(most, most + factor):
        yield from halves(most, base)
    for far in (most, 10 * most, math.ceil(25 * scale) * factor + most, 10**9):
        yield rare(most, far)


SHIFTED = [(1, 1), (2, 1), (3, 4), (7, 5), (10, 20), (4, 1)]
"""Δ and factors: shifts 2, 4, 2, 3, 1 and 8."""


@pytest.mark.parametrize(("scale", "shift"), [(0.3, 1), (1, 3), (1, 4), (4.7, 9)])
def test_the_tests_have_all_of_the_noises_divergence(scale, shift):
    """So the check is no stricter than the truth, and what it is made of agrees with the sum over all outcomes."""
    table, reach = laplace(scale), math.ceil(60 * scale) + shift
    masses = law(table, reach)
    for gamma in slopes(table, shift) | {Fraction(1), Fraction(1, 3), Fraction(3)}:
        whole = hockey_stick(masses, shift, gamma)
        assert (
            abs(whole - noise_delta(table, shift, gamma))
            <= (1 + gamma) * table.survival_probability(reach - shift - 1) * 2
        )
    assert probability(table, 1) == table.survival_probability(0) - table.survival_probability(1)


@given(scales, neighbors())
@settings(deadline=None, max_examples=150)
def test_noise_dominates_a_choice(scale, found):
    factor, shift, first, second = found
    assert not exceeds(beside(scale, factor), laplace(scale), shift, first, second)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("most", "factor"), SHIFTED)
def test_noise_dominates_a_choice_where_all_move_as_far_as_they_may(scale, most, factor):
    choice, table, shift = beside(scale, factor), laplace(scale), -(-2 * most // factor)
    assert not any(exceeds(choice, table, shift, *pair) for pair in structured(scale, most, factor))


@given(scales, neighbors())
def test_noise_with_a_peak_at_0_dominates_a_choice(scale, found):
    factor, shift, first, second = found
    table = peaked(scale)
    assert not exceeds(ExponentialChoice.from_table(table, factor), table, shift, first, second)


@given(neighbors())
def test_noise_with_a_slower_tail_dominates_the_choice_beside_it(found):
    factor, shift, first, second = found
    assert not exceeds(ExponentialChoice.from_table(flatter(), factor), flatter(), shift, first, second)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("most", "factor"), [(10, 10), (7, 10), (10, 20), (30, 4)])
def test_distances_taken_twice_are_caught_by_halves(scale, most, factor):
    faulty, table, shift = ExponentialChoice(beside(scale).root, factor // 2), laplace(scale), -(-2 * most // factor)
    assert any(exceeds(faulty, table, shift, *pair) for base in range(most, 41) for pair in halves(most, base))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("most", "factor"), [(10, 10), (10, 20), (30, 4)])
def test_distances_taken_twice_are_caught_by_one_rare_candidate(scale, most, factor):
    faulty, table, shift = ExponentialChoice(beside(scale).root, factor // 2), laplace(scale), -(-2 * most // factor)
    assert exceeds(faulty, table, shift, *rare(most, math.ceil(25 * scale) * factor + most))


@pytest.mark.parametrize("scale", SCALES)
def test_a_root_that_is_a_millionth_too_small_is_caught(scale):
    faulty = ExponentialChoice(smaller(beside(scale).root, 1e-6), 1)
    assert exceeds(faulty, laplace(scale), 4, *rare(2, math.ceil(25 * scale)))


@pytest.mark.parametrize("scale", SCALES)
def test_one_step_of_the_shift_too_few_is_caught(scale):
    assert exceeds(beside(scale), laplace(scale), 3, *rare(2, math.ceil(25 * scale)))


def counted(choice, distances, source):
    found = Counter(choice.choose_candidate(distances, source) for _ in range(DRAWS))
    return [found[place] for place in range(len(distances))]


def chance(observed, weights):
    """p-value of the counts, where outcomes are in proportion to the weights."""
    whole = sum(weights)
    return stats.chisquare(observed, [float(Fraction(w, whole)) * sum(observed) for w in weights]).pvalue


@pytest.mark.parametrize("dtype", [np.int64, np.object_])
@pytest.mark.parametrize("distances", [[0, 1, 2, 3, 9], [5, 0, 5, 30], [0, 0, 0], [7, 8]], ids=str)
def test_draws_are_in_proportion_to_the_weights(distances, dtype):
    choice = beside(4.7, 3)
    weights = choice.candidate_weights(np.array(distances))
    observed = counted(choice, np.array(distances, dtype=dtype), InsecureKeyed(1))
    assert sum(observed) == DRAWS
    assert chance(observed, weights) > SEVEN_SIGMA


def test_draws_that_are_in_another_proportion_are_caught():
    distances = np.array([0, 1, 2, 3, 9])
    observed = counted(beside(4.7, 3), distances, InsecureKeyed(2))
    assert chance(observed, beside(4.7 * 1.5, 3).candidate_weights(distances)) < SEVEN_SIGMA
    assert chance(observed, beside(4.7 / 1.3, 3).candidate_weights(distances)) < SEVEN_SIGMA


@pytest.mark.parametrize("scale", [0.3, 4.7])
def test_candidates_beyond_the_last_weight_are_alike(scale):
    distances = np.array([10**9, 10**40, 10**12], dtype=np.object_)
    assert chance(counted(beside(scale), distances, InsecureKeyed(3)), [1, 1, 1]) > SEVEN_SIGMA


def test_without_a_source_the_operating_systems_is_used():
    observed = counted(beside(4.7), np.array([0, 3]), None)
    assert chance(observed, beside(4.7).candidate_weights(np.array([0, 3]))) > SEVEN_SIGMA


@pytest.mark.parametrize("parts", [3, 5, 6, 7, 12])
@pytest.mark.parametrize("width", [1, 2**40, 2**64, 2**100, 3**90])
def test_numbers_below_a_bound_are_uniform(parts, width):
    source = InsecureKeyed(4)
    found = [_uniform_below(parts * width, source) for _ in range(4000)]
    assert max(found) < parts * width
    observed = Counter(number // width for number in found)
    assert chance([observed[part] for part in range(parts)], [1] * parts) > SEVEN_SIGMA
    if width > 1:
        low = sum(number % width < width // 2 for number in found)
        assert stats.binomtest(low, 4000, (width // 2) / width).pvalue > SEVEN_SIGMA


@pytest.mark.parametrize("bound", [1, 2, 3, 2**64 - 1, 2**64, 2**64 + 1, 2**101])
def test_fewer_than_every_second_number_is_refused(bound):
    source = InsecureKeyed(5)
    for _ in range(1000):
        _uniform_below(bound, source)
    tries = source.drawn / -(-bound.bit_length() // 64)
    assert 1000 <= tries <= 2000 + 7 * math.sqrt(2000)


def words_of(number, bound):
    """The words from which this number is drawn, the lowest first."""
    bits = bound.bit_length()
    lifted = number << -bits % 64
    return [(lifted >> 64 * k) % 2**64 for k in range(-(-bits // 64))]


@pytest.mark.parametrize("bound", [1, 3, 5, 2**63, 2**64 - 1, 2**64, 2**64 + 5, 2**100 + 3, 2**128 - 1, 3**200])
def test_every_number_below_the_bound_can_be_drawn_and_none_beyond(bound):
    beyond = min(bound, 2 ** bound.bit_length() - 1)
    for number in {0, bound // 2, bound // 3, bound - 1}:
        assert _uniform_below(bound, Scripted([words_of(number, bound)])) == number
        if beyond >= bound:
            refused = [words_of(bound, bound), words_of(2 ** bound.bit_length() - 1, bound)]
            assert _uniform_below(bound, Scripted([*refused, words_of(number, bound)])) == number


def test_bits_below_those_that_are_needed_change_nothing():
    low, high = words_of(2**100, 2**100 + 3)
    assert _uniform_below(2**100 + 3, Scripted([[low | 1, high]])) == 2**100


@pytest.mark.parametrize("dtype", [np.int64, np.object_])
def test_a_candidate_is_chosen_from_its_first_number_to_its_last(dtype):
    choice = beside(1.0, 2)
    distances = np.array([4, 0, 10**9, 1], dtype=dtype)
    ends = choice.cumulative_weights(distances)
    for place, (start, end) in enumerate(pairwise([0, *ends])):
        for number in (start, (start + end) // 2, end - 1):
            assert choice.choose_candidate(distances, Scripted([words_of(number, ends[-1])])) == place


def test_the_number_after_the_last_candidate_is_drawn_again():
    choice, distances = beside(1.0), np.array([0, 3])
    whole = choice.cumulative_weights(distances)[-1]
    source = Scripted([words_of(whole, whole), words_of(whole - 1, whole)])
    assert choice.choose_candidate(distances, source) == 1
    assert source.answers == []


@given(scales, st.integers(1, 10**7), st.integers(1, 10**6), st.sampled_from([0.05, 0.5, 1e-3, 1e-9, 1.0]))
def test_the_reach_is_the_least_distance_at_which_candidates_weigh_so_little(scale, candidates, factor, outside):
    choice = ExponentialChoice(beside(scale).root, factor)
    choice.__dict__["weights_by_step"] = beside(scale).weights_by_step  # the same for each factor
    reach = choice.distance_bound(candidates, outside)
    most = Fraction(outside) * HEAVIEST
    assert candidates * choice.candidate_weights(np.array([reach]))[0] <= most
    assert reach == 0 or candidates * choice.candidate_weights(np.array([reach - 1]))[0] > most


def test_candidates_of_the_last_weight_are_the_most_that_can_be():
    choice = beside(0.3)
    assert choice.weights_by_step[-1] == 1
    assert choice.distance_bound(int(0.05 * HEAVIEST), 0.05) == math.ceil((len(choice.weights_by_step) - 1) / 2)
    with pytest.raises(InputError, match="candidates"):
        choice.distance_bound(int(0.05 * HEAVIEST) + 1, 0.05)


@pytest.mark.parametrize(("scale", "candidates"), [(1, 2**98), (60, 2**95), (0.3, 2**101)])
def test_too_many_candidates_are_refused(scale, candidates):
    with pytest.raises(InputError, match="candidates"):
        beside(scale).distance_bound(candidates, 0.05)


def shares(choice, distances):
    weights = choice.candidate_weights(np.array(distances))
    return np.array([float(Fraction(w, sum(weights))) for w in weights])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("factor", [2, 10])
def test_the_law_in_floats_is_exact_where_no_distance_is_floored(scale, factor):
    """At multiples of half the factor, and while weights are above 2⁴⁰, so that their rounding says nothing."""
    steps = np.array([0, 1, 2, 5, 11, 24]) * max(1, int(scale))
    distances = steps * (factor // 2)
    assert beside(scale, factor).candidate_weights(distances)[-1] > 2**40
    assert np.allclose(
        beside(scale, factor).selection_probabilities(distances), shares(beside(scale, factor), distances), rtol=1e-9
    )


@given(scales, st.integers(1, 40), st.lists(st.integers(0, 200), min_size=1, max_size=12))
def test_the_law_in_floats_is_within_a_step_where_distances_are_floored(scale, factor, distances):
    """A floored distance weighs up to 1/ρ too much, one alone or all others: shares differ by that factor at most."""
    choice = beside(scale, factor)
    near = [d for d in distances if 2 * d / factor < 60 * scale] or [0]
    step = TOTAL / choice.root * (1 + 1e-9)
    ratios = choice.selection_probabilities(np.array(near)) / shares(choice, near)
    assert ratios.max() <= step
    assert ratios.min() >= 1 / step


def test_the_law_in_floats_of_fine_steps_is_close():
    """At scale 60 a step is less than a hundredth part."""
    choice, distances = beside(60, 7), np.arange(0, 900, 11)
    assert np.allclose(choice.selection_probabilities(distances), shares(choice, distances), rtol=0.01)


def test_the_law_in_floats_takes_parts_and_any_distance():
    found = beside(1.0).selection_probabilities(np.array([1e9 + 0.5, 1e9 + 1.0, 1e30]))
    assert np.allclose(found, np.array([1, math.exp(-0.5), 0]) / (1 + math.exp(-0.5)), rtol=1e-6)
