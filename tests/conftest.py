"""Hypothesis profiles: fixed seeds in CI, fresh ones elsewhere; time limits are the job's, not the example's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.chromium import chromium, window

__all__ = ["chromium", "window"]

# scikit-learn's threads spin while they wait: next to another busy process, one classifier takes thirty times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

CALM = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("local", deadline=None, max_examples=25, suppress_health_check=CALM)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, print_blob=True)
# Failures are shown as they were found: shrinking asks the slow engines hundreds of times more.
settings.register_profile("quick", settings.get_profile("ci"), max_examples=12, phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "local"))

MARKS = {"tables": "engine", "statistics": "statistics"}
"""Marks of all tests of a folder: ``pytest -m "not engine"`` leaves the databases out."""


@pytest.fixture(scope="module")
def planned_once() -> Iterator[None]:
    """Plans of the same units, budget and options take the noise that was found before."""
    from tests.planned import allocated

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tightrope.release.draft.allocate_noise", allocated)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    home = Path(__file__).parent
    for item in items:
        room = item.path.relative_to(home).parts[0] if item.path.is_relative_to(home) else ""
        if room in MARKS:
            item.add_marker(MARKS[room])
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
