"""The leak in diffprivlib's doubles is found by an audit that is told nothing of it; its whole numbers show nothing.

TIGHTROPE_PEER_DIFFPRIVLIB=/path/to/python: an environment that has it.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

import tightrope as tr
from tests.randomness.keyed import InsecureKeyed

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_the_last_bits_of_diffprivlib_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 000 runs of either answer; a fifth of one answer's are on a grid that the other's never leave."""
    pytest.importorskip("sklearn")
    python = os.environ.get("TIGHTROPE_PEER_DIFFPRIVLIB")
    if python is None:
        pytest.skip("TIGHTROPE_PEER_DIFFPRIVLIB names no Python that has diffprivlib")
    monkeypatch.syspath_prepend(str(BENCHMARKS))  # as for a script, whose folder is looked into
    mechanisms = runpy.run_path(str(BENCHMARKS / "audits.py"))["sample_peer"]("diffprivlib", python, 4_000)
    refuted = {}
    for name, sampled in mechanisms.items():
        bits = [tr.audit.float_columns(sample) for sample in (sampled.for_one, sampled.for_zero)]
        found = tr.audit.samples(*bits, confidence=1 - 1e-10, randomness=InsecureKeyed(1))
        refuted[name] = found.delta(sampled.claim[0]) > sampled.claim[1]
    assert refuted == {
        "Laplace": True,
        "GaussianAnalytic": True,
        "Staircase": True,
        "Snapping": False,
        "Geometric": False,
    }
