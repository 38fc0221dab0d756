"""The common part of all peers: read jobs from a folder, answer each many times, write the answers to the same folder.

A peer is a function that takes a job and its table and returns functions, one for each of its methods, that draw one
answer: values by group. It raises ``CannotError`` with the reason for a job that it does not support. It runs in the
peer's own environment, which does not have Tightrope.
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
"""Seconds for one method on one job: as many releases as this time allows, at least three."""


class CannotError(Exception):
    """Raised for jobs that the tool does not support."""


def same_promise(_: Job) -> str | None:
    """Return None: the tool's promise is as strong as the others'."""
    return None


def answer_jobs(
    make_methods: Callable[[Job, pd.DataFrame], list[Draw]], describe_caveat: Callable[[Job], str | None] = same_promise
) -> None:
    """Answer all jobs of the folder on the command line with all methods of the tool; the best one counts.

    ``describe_caveat`` says how the tool's promise is weaker than the others', or returns None.
    """
    folder = Path(sys.argv[1])
    for job in json.loads((folder / "jobs.json").read_text()):
        table = pd.read_parquet(folder / f"{job['name']}.parquet")
        start = time.process_time()
        try:
            answers = [draw_answers(draw, job["releases"]) for draw in make_methods(job, table)]
            seconds = time.process_time() - start
            document: dict[str, Any] = {"answers": answers, "cpu": seconds, "less": describe_caveat(job)}
        except CannotError as error:
            document = {"cannot": str(error)}
        except Exception as error:  # errors of a peer are results
            document = {"failed": f"{type(error).__name__}: {str(error)[-300:]}"}
        (folder / f"{job['name']}.{Path(sys.argv[0]).stem}.json").write_text(json.dumps(document))
        print(job["name"], "answered" if "answers" in document else "no answer", flush=True)


def draw_answers(draw: Draw, releases: int) -> list[dict[str, float]]:
    """Return up to this many answers."""
    start = time.perf_counter()
    answers: list[dict[str, float]] = []
    while len(answers) < releases and (len(answers) < 3 or time.perf_counter() - start < PATIENCE):
        answers.append({str(key): float(value) for key, value in draw().items()})
    return answers


def regression_slope(count: float, x: float, y: float, xy: float, yy: float) -> float:
    """Return the slope of the least-squares line of x on y, from noisy sums."""
    return (count * xy - x * y) / (count * yy - y * y)
