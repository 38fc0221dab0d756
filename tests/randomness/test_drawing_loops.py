"""Compiled loops and numpy draw the same numbers from the same words."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from tests.randomness.keyed import InsecureKeyed
from tightrope.mechanisms.discrete.gaussian_sampling import LargeGaussian
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise, widened_gaussian
from tightrope.mechanisms.laplace import discrete_laplace
from tightrope.randomness import loops
from tightrope.randomness.alias_sampler import TOTAL, WORDS_AT_ONCE, AliasSampler

DRAWS = 3 * WORDS_AT_ONCE + 17
LAWS = {
    "choice": lambda: (
        AliasSampler.from_weights([TOTAL // 3, TOTAL // 2, TOTAL - TOTAL // 3 - TOTAL // 2]).draw_outcomes
    ),
    "laplace": lambda: discrete_laplace(scale=30).sample,
    "optimum": lambda: optimal_table([(1, 1e-6)]).sample,
    "gaussian, one cell a point": lambda: LargeGaussian.from_scale(64).sample,
    "gaussian 1000": lambda: LargeGaussian.from_scale(1000.5).sample,
    "gaussian 1e9": lambda: LargeGaussian.from_scale(1e9).sample,
    "widened": lambda: widened_gaussian(scale=1e9).sample,
    "widened by one": lambda: WidenedNoise(optimal_table([(1, 1e-6)]), 1).sample,
    "widened by 2^32": lambda: WidenedNoise(optimal_table([(1, 1e-6)]), 1 << 32).sample,
}


@pytest.fixture
def numpy_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)  # as if it were not installed
    monkeypatch.setattr(loops, "LARGE", 0)
    loops._compile_loop.cache_clear()
    yield
    loops._compile_loop.cache_clear()


@pytest.fixture
def eager(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(loops, "LARGE", 0)
    loops._compile_loop.cache_clear()


def without_numba(draw, seed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(loops, "LARGE", 1 << 60)
        return draw(DRAWS, InsecureKeyed(seed))


@pytest.mark.parametrize("name", LAWS)
def test_bit_for_bit(name, eager, monkeypatch):
    draw = LAWS[name]()
    fast = draw(DRAWS, InsecureKeyed(5))
    assert loops._compile_loop.cache_info().currsize, "nothing was compiled"
    assert np.array_equal(fast, without_numba(draw, 5, monkeypatch))
    assert not np.array_equal(fast, draw(DRAWS, InsecureKeyed(6)))


@pytest.mark.parametrize("name", LAWS)
def test_everything_works_without_numba(name, numpy_only):
    draws = LAWS[name]()(DRAWS, InsecureKeyed(5))
    assert draws.shape == (DRAWS,)
    assert len(np.unique(draws)) > 2
    assert all(
        loops.compiled_loop(loop, DRAWS) is None
        for loop in (loops.choose_outcomes, loops.spread_values, loops.propose_points)
    )


def test_the_loops_themselves_are_the_definition(monkeypatch):
    """Run as plain Python, they give what the numpy twins give."""
    for name in ("choice", "gaussian 1000", "widened"):
        draw = LAWS[name]()
        with monkeypatch.context() as patch:
            patch.setattr(loops, "_compile_loop", lambda loop: loop)
            patch.setattr(loops, "LARGE", 0)
            slow = draw(3000, InsecureKeyed(9))
        assert np.array_equal(slow, draw(3000, InsecureKeyed(9)))


def test_small_draws_do_not_load_numba():
    code = (
        "import sys, tightrope as tr\n"
        "tr.discrete_laplace(scale=3).sample(100_000)\n"
        "tr.discrete_gaussian(scale=1e9).sample(100_000)\n"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_process_compiles_when_it_has_drawn_much(eager, monkeypatch):
    monkeypatch.setattr(loops, "LARGE", 10 * loops.FEW_DRAWS)
    monkeypatch.setattr(loops, "_drawn", Counter())
    assert loops.compiled_loop(loops.choose_outcomes, 9 * loops.FEW_DRAWS) is None
    assert loops.compiled_loop(loops.propose_points, 9 * loops.FEW_DRAWS) is None
    assert loops.compiled_loop(loops.choose_outcomes, loops.FEW_DRAWS) is not None
    assert loops.compiled_loop(loops.choose_outcomes, loops.FEW_DRAWS) is not None
    assert loops.compiled_loop(loops.choose_outcomes, loops.FEW_DRAWS - 1) is None
    assert loops.compiled_loop(loops.propose_points, 10 * loops.FEW_DRAWS) is not None
