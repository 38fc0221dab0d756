"""Draws of the large discrete Gaussian: floats decide only what exact arithmetic confirms."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.randomness.keyed import InsecureKeyed
from tests.randomness.scripted import Scripted
from tightrope.errors import InputError
from tightrope.mechanisms.discrete import gaussian_sampling
from tightrope.mechanisms.discrete.gaussian_sampling import Envelope, GaussianSampler

SCALES = [64.0, 1000.25, 1e9]


@pytest.fixture
def counted(monkeypatch):
    """How often the exact path was taken."""
    calls = []
    true = gaussian_sampling.bernoulli_from_bits
    monkeypatch.setattr(gaussian_sampling, "bernoulli_from_bits", lambda *args: calls.append(args) or true(*args))
    return calls


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("doubt", [1.0, 1e-2])
def test_exact_arithmetic_decides_what_floats_decide(scale, doubt, counted):
    """With every decision (or each within 1 %) moved to the exact path, the same words give the same draws."""
    plain = GaussianSampler(Envelope(scale)).draw_samples(4000, InsecureKeyed(1))
    assert len(counted) == 0
    careful = GaussianSampler(Envelope(scale), doubt=doubt).draw_samples(4000, InsecureKeyed(1))
    assert len(counted) >= (4000 if doubt == 1.0 else 20)
    assert np.array_equal(plain, careful)


def test_exact_decisions_alone_have_the_law(counted):
    scale = 64.0
    draws = GaussianSampler(Envelope(scale), doubt=1.0).draw_samples(20_000, InsecureKeyed(2))
    assert len(counted) >= 20_000
    edges = np.array([-np.inf, *np.arange(-160, 161, 8), np.inf]) - 0.5
    counts = np.histogram(draws, edges)[0]
    assert stats.chisquare(counts, 20_000 * np.diff(stats.norm.cdf(edges / scale))).pvalue > 1e-3
    wrong = 20_000 * np.diff(stats.norm.cdf(edges / (1.05 * scale)))
    assert stats.chisquare(counts, wrong).pvalue < 1e-6


@pytest.mark.parametrize("scale", [64.0, 1e6])
def test_the_tail_has_the_law_of_the_tail(scale):
    sampler = GaussianSampler(Envelope(scale))
    start = sampler.envelope.tail_start
    source = InsecureKeyed(3)
    found = [sampler._draw_tail_point(source) for _ in range(4000)]
    kept = np.array([x for x in found if x is not None])
    assert 0.3 < len(kept) / 4000 < 0.9
    assert np.abs(kept).min() >= start
    assert abs((kept > 0).sum() - len(kept) / 2) < 3 * math.sqrt(len(kept))
    edges = start + scale * np.array([0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6])
    beyond = stats.norm.sf([*((np.ceil(edges) - 0.5) / scale), np.inf])
    expected = len(kept) * (beyond[:-1] - beyond[1:]) / beyond[0]
    counts = np.histogram(np.abs(kept), [*(np.ceil(edges) - 0.5), np.inf])[0]
    assert stats.chisquare(counts, expected).pvalue > 1e-3
    wrong = len(kept) * (counts * 0 + 1) / len(counts)
    assert stats.chisquare(counts, wrong).pvalue < 1e-9


def word_of(sampler, place, sign=0, level=0):
    """The second word: sign, place in the cell, number for the test."""
    return sign + (place << 1) + (level << (1 + sampler.envelope.cell_bits))


def cell_word(sampler, cell):
    """A first word that draws this cell: just below the edge of its column."""
    columns = sampler.envelope.cell_sampler.columns
    begins = cell << (64 - columns.bits)
    edge = int(columns.edges.high[cell])
    assert edge != begins or int(columns.other[cell]) == cell
    return edge - 1 if edge != begins else begins + 1


def test_minus_zero_is_refused():
    sampler = GaussianSampler(Envelope(1000.0))
    cells, zero, minus = [cell_word(sampler, 0)], [word_of(sampler, 0)], [word_of(sampler, 0, sign=1)]
    assert sampler.draw_samples(1, Scripted([cells, zero])).tolist() == [0]
    one = [word_of(sampler, 1, sign=1)]
    assert sampler.draw_samples(1, Scripted([cells, minus, cells, one])).tolist() == [-1]


def test_refused_places_are_drawn_again_in_place():
    sampler = GaussianSampler(Envelope(1000.0))
    bits = 63 - sampler.envelope.cell_bits
    cell = cell_word(sampler, 900)
    never, ever = word_of(sampler, 7, level=(1 << bits) - 1), word_of(sampler, 5)
    x = 900 << sampler.envelope.cell_bits
    source = Scripted([[cell] * 3, [ever, never, ever], [cell], [never], [cell], [word_of(sampler, 6)]])
    assert sampler.draw_samples(3, source).tolist() == [x + 5, x + 6, x + 5]


def test_a_number_on_the_edge_of_the_probability_is_decided_exactly(counted):
    """Level 2^k e^{−t} rounded down agrees with the probability in all bits of the word: another word must decide."""
    sampler = GaussianSampler(Envelope(1e9))
    envelope, cell, place = sampler.envelope, 500, 12_345
    x = (cell << envelope.cell_bits) + place
    low, high = envelope.acceptance_bounds(x, 60)
    bits = 63 - envelope.cell_bits
    level = int(low * (1 << bits))
    assert level == int(high * (1 << bits))
    next_word = int((low * (1 << bits) - level) * 2**64)
    words = [[cell_word(sampler, cell)], [word_of(sampler, place, level=level)]]
    assert sampler.draw_samples(1, Scripted([*words, [next_word - 1]])).tolist() == [x]
    again = [[cell_word(sampler, cell)], [word_of(sampler, 0)]]
    assert sampler.draw_samples(1, Scripted([*words, [next_word + 1], *again])).tolist() == [cell << envelope.cell_bits]
    assert len(counted) == 2


def test_the_tail_by_hand():
    sampler = GaussianSampler(Envelope(1000.0))
    envelope = sampler.envelope
    tail = [cell_word(sampler, envelope.cell_count)]
    place, long = 1 << (64 - envelope.tail_bits), 1 << envelope.tail_bits  # below() keeps the highest bits
    script = [tail, [0], [3 << 62], [5 * place], [2**63], [0]]
    assert sampler.draw_samples(1, Scripted(script)).tolist() == [envelope.tail_start + long * 2 + 5]
    negative = [tail, [0], [0], [5 * place], [0], [0]]
    assert sampler.draw_samples(1, Scripted(negative)).tolist() == [-(envelope.tail_start + 5)]
    far = [tail, [0], [2**64 - 1], [2**63], [0], [2**63], [2**64 - 1], [tail[0]], [0], [0], [0], [0], [0]]
    assert sampler.draw_samples(1, Scripted(far)).tolist() == [
        -envelope.tail_start
    ]  # 65 heads: refused by its number, drawn again


@pytest.mark.parametrize("doubt", [0.0, 2.0**-41, -1.0, 1.5, math.nan])
def test_nonsense_doubts(doubt):
    with pytest.raises(InputError, match="doubt"):
        GaussianSampler(Envelope(1000.0), doubt)
