"""Every case of the peers' own suites, and of their answers to seeded ones: never unsafe, never looser, never slow.

``python -m tests.peers.compare`` prints what this only judges.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.peers.adapter import CASES, PEERS, Case, compositions
from tests.peers.compare import judged

ALL = list(compositions())
WHOLE = os.environ.get("TIGHTROPE_PEERS") == "all"
"""Every composition, and none over ten seconds: an hour or two. Else one in two hundred, however slow it is."""
TRIED = ALL if WHOLE else ALL[7::200]
MOST_BYTES = 1_500_000


@pytest.mark.slow
@pytest.mark.parametrize("cases", [pytest.param(cases, id=f"{peer}-{number}") for peer, number, cases in TRIED])
def test_never_unsafe_looser_or_slow(cases: list[Case]) -> None:
    found = [verdict for verdict in map(judged, cases) if verdict.fault]
    faults = [f"{v.case.name}: {v.fault}" for v in found if WHOLE or not v.fault.startswith("slow")]
    assert not faults, "\n".join(faults)


def test_the_suite_is_whole() -> None:
    """Several thousand cases, of every peer; small enough to live beside the code."""
    counted = {peer: sum(len(cases) for of, _, cases in ALL if of == peer) for peer in PEERS}
    assert sum(counted.values()) > 3000
    assert min(counted.values()) > 100
    assert sum(Path(file).stat().st_size for file in CASES.iterdir()) < MOST_BYTES


def test_a_planted_fault_is_caught() -> None:
    """A peer that proves more than is true makes us unsafe, one that is safe and tighter makes us loose."""
    _, _, cases = next(entry for entry in ALL if entry[0] == "riskcal")
    case = next(case for case in cases if case.ask == "advantage")
    assert not judged(case).fault
    told = {
        "peer": case.peer,
        "source": case.source,
        "note": case.note,
        "steps": case.steps,
        "ask": case.ask,
        "at": case.at,
    }
    value = case.safe or 0.0
    assert judged(Case(**told, safe=value, other=value * (1 + 1e-9))).fault.startswith("unsafe")
    assert judged(Case(**told, safe=value * (1 - 1e-9), other=None)).peer_unsafe
