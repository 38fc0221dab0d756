"""What every peer does alike: read jobs from a folder, answer each so many times, write the answers beside them.

A peer is a function from a job and its table to something that draws one answer: values by group. What it cannot do
it raises ``CannotError`` for, with the reason. It runs in the peer's own environment, which has nothing of ours.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

Job = dict[str, Any]
Draw = Callable[[], dict[str, float]]
PATIENCE = float(os.environ.get("PATIENCE", "60"))
"""Seconds for one way of a job: so many releases as fit, three at least."""


class CannotError(Exception):
    """The tool has nothing for this."""


def _as_much(_: Job) -> str | None:
    return None


def run(ways: Callable[[Job, pd.DataFrame], list[Draw]], less: Callable[[Job], str | None] = _as_much) -> None:
    """Answer all jobs of the folder on the command line in every way that the tool has: one is best.

    ``less``: in which way the tool promises less than the others do for a job.
    """
    folder = Path(sys.argv[1])
    for job in json.loads((folder / "jobs.json").read_text()):
        table = pd.read_parquet(folder / f"{job['name']}.parquet")
        began = time.process_time()
        try:
            found = [_drawn(draw, job["releases"]) for draw in ways(job, table)]
            said: Any = {"answers": found, "cpu": time.process_time() - began, "less": less(job)}
        except CannotError as error:
            said = {"cannot": str(error)}
        except Exception as error:  # whatever a peer raises is a finding
            said = {"failed": f"{type(error).__name__}: {str(error)[-300:]}"}
        (folder / f"{job['name']}.{Path(sys.argv[0]).stem}.json").write_text(json.dumps(said))
        print(job["name"], "cannot" in said or "failed" in said, flush=True)


def _drawn(draw: Draw, releases: int) -> list[dict[str, float]]:
    began, found = time.perf_counter(), []
    while len(found) < releases and (len(found) < 3 or time.perf_counter() - began < PATIENCE):
        found.append({str(key): float(value) for key, value in draw().items()})
    return found


def slope(count: float, x: float, y: float, xy: float, yy: float) -> float:
    """The line of least squares of x on y, from noisy sums."""
    return (count * xy - x * y) / (count * yy - y * y)
