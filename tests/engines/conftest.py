"""Every engine runs the same suite: a fixture turns an Arrow table into a source of that engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from tests.engines.every_engine import ENGINES
from tightrope.engines import Table

TYPES = "test_collect_rules.py::test_every_type_of"
NEVER_ON_SPARK = {
    f"{TYPES}_key_is_discovered_given_and_bounded[spark-nanoseconds]": "Spark has no nanoseconds",
    f"{TYPES}_person_is_bounded[spark-nanoseconds]": "Spark has no nanoseconds",
    f"{TYPES}_key_is_discovered_given_and_bounded[spark-decimal]": "ibis cannot send decimals to Spark as given keys",
    f"{TYPES}_key_is_discovered_given_and_bounded[spark-zoned]": "ibis does not tell Spark's kinds of timestamp apart",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What an engine cannot do is expected to fail, and said why."""
    for item in items:
        for name, reason in NEVER_ON_SPARK.items():
            if item.nodeid.endswith(name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(params=sorted(ENGINES))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[pyarrow.Table], Table]:
    """Turns an Arrow table into a Table of each engine."""
    return lambda arrow: ENGINES[request.param](arrow, tmp_path)
