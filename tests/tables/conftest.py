"""Every engine runs the same suite: a fixture turns an Arrow table into a source of that engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from tests.tables.every_engine import ENGINES
from tightrope.tables import Table


@pytest.fixture(params=sorted(ENGINES))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[pyarrow.Table], Table]:
    """Turns an Arrow table into a Table of each engine."""
    return lambda arrow: ENGINES[request.param](arrow, tmp_path)
