"""What `tightrope audit` says of releases whose answers `test_distinguisher` draws: nothing, but for planted bugs.

The likelihood ratio of all that a release shows, of two tables that differ by a hostile person, goes through the public
audit, which takes it for any score. Confidences are such that luck refutes once in 1e12 times.
"""

from __future__ import annotations

import numpy as np
import pytest

import tightrope as tr
from tests.redteam.test_distinguisher import PERSONS, counted, drafted, drafted_for_half_the_rows, losses, too_little
from tightrope.audit import Finding
from tightrope.audit.findings import claimed_points
from tightrope.release import build_answers
from tightrope.release.draft import NoisePlan
from tightrope.tables import bounding

pytestmark = pytest.mark.slow
CONFIDENCE = 1 - 1e-12


def audited(draft: NoisePlan, person: str, times: int) -> Finding:
    drawn = losses(draft, counted(draft, PERSONS[person]), times)
    first, second = (np.nan_to_num(side, posinf=np.inf, neginf=-np.inf) for side in drawn)
    return tr.audit.scores(first, -second, confidence=CONFIDENCE)


@pytest.mark.parametrize(
    "kind, person",
    [
        ("count", "one group"),
        ("mean", "two groups"),
        ("discovered", "a group of their own"),
        ("marginals", "one group"),
        ("marginals", "two groups"),
    ],
)
def test_a_release_is_not_refuted(kind: str, person: str) -> None:
    draft = drafted(kind, "wide")
    found = audited(draft, person, 10_000)
    assert all(found.delta(epsilon) <= delta for epsilon, delta in claimed_points(draft.loss))
    assert not found.against(draft.budget).refuted


def test_too_little_noise_in_a_release_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By 0.03 in δ, whose standard deviation is below 0.004: luck hides it less than once in 1e12 times."""
    monkeypatch.setattr(build_answers, "_add_noise", too_little)
    draft = drafted("count", "wide")
    assert audited(draft, "one group", 60_000).against(draft.loss).refuted


def test_a_release_without_bounding_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounding, "persons_over_bound", lambda narrow, _: narrow.table.filter(False).select("person"))
    draft = drafted("count", "wide")
    found = audited(draft, "one group", 2_000)
    assert found.against(draft.loss).refuted and found.against(draft.budget).refuted


def test_marginals_for_half_the_rows_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    draft = drafted_for_half_the_rows(monkeypatch)
    assert audited(draft, "one group", 20_000).against(draft.loss).refuted
