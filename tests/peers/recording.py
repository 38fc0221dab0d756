"""What the recorders of all peers share: questions, and the file of answers. Runs in the peers' environment.

A job is a composition and what is asked about it. ``steps`` are (count, law), a law a dict: its name under "law", its
parameters, and "poisson": rate or "subset": [m, n] if it runs on a sample. A scale of None is what is to be found.
"""

from __future__ import annotations

import json
import math
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CASES = Path(__file__).parent / "cases"
BYTES = 5 << 30
Law = dict[str, Any]
Step = tuple[int, Law]
Answer = tuple[float | None, float | None]
"""Upper (pessimistic) and lower (optimistic); None where the peer has none, or failed."""


class OutOfPatienceError(Exception):
    """An answer took longer than a recording has time for."""


@dataclass(frozen=True)
class Job:
    """``asks``: ("epsilon", δ), ("delta", ε), ("tpr", false-positive rate), ("beta", α), ("noise", (ε, δ)) …"""

    source: str
    steps: tuple[Step, ...]
    asks: tuple[tuple[str, Any], ...]


@dataclass
class Recorder:
    """Writes one file of jobs with the answers of one peer."""

    peer: str
    lines: list[str] = field(default_factory=list)
    answers: int = 0

    def add(self, job: Job, answers: list[Answer], note: str = "") -> None:
        asked = [
            [ask, at, _number(upper), _number(lower)]
            for (ask, at), (upper, lower) in zip(job.asks, answers, strict=True)
            if _number(upper) is not None or _number(lower) is not None
        ]
        if asked:
            entry = {"source": job.source, "steps": job.steps, "asked": asked} | ({"note": note} if note else {})
            self.lines.append(json.dumps(entry, separators=(",", ":")))
            self.answers += len(asked)

    def write(self) -> None:
        text = "[\n" + ",\n".join(self.lines) + "\n]\n"
        (CASES / f"{self.peer}.json").write_text(text, encoding="utf-8")
        print(f"{self.peer}: {len(self.lines)} compositions, {self.answers} answers, {len(text)} bytes")


def _number(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """``OutOfPatienceError`` after so much processor time; no more memory than BYTES."""

    def give_up(*_: object) -> None:
        raise OutOfPatienceError

    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def tried(answer: Callable[[], float], seconds: float = 60.0) -> float | None:
    """The answer, or None where the peer fails, for whatever reason."""
    try:
        with patience(seconds):
            return float(answer())
    except Exception as error:
        print(f"  no answer: {type(error).__name__}: {str(error)[:100]}")
        return None


def log_uniform(rng: np.random.Generator, least: float, most: float) -> float:
    """With three figures, so that it can be printed and read back."""
    return float(f"{math.exp(rng.uniform(math.log(least), math.log(most))):.3g}")


def count(rng: np.random.Generator, most: int) -> int:
    return max(1, round(log_uniform(rng, 1.0, most)))


def _noise(law: str, scale: float | None, sensitivity: float, more: dict[str, Any]) -> Law:
    return {"law": law, "scale": scale} | ({"sensitivity": sensitivity} if sensitivity != 1 else {}) | more


def gaussian(scale: float | None, sensitivity: float = 1.0, **more: Any) -> Law:
    return _noise("gaussian", scale, sensitivity, more)


def laplace(scale: float | None, sensitivity: float = 1.0, **more: Any) -> Law:
    return _noise("laplace", scale, sensitivity, more)


def discrete(law: str, scale: float | None, sensitivity: int = 1, **more: Any) -> Law:
    return _noise(f"discrete_{law}", scale, sensitivity, more)


def response(noise: float, buckets: int) -> Law:
    """The truth with probability 1 − noise + noise/buckets."""
    return {"law": "response", "noise": noise, "buckets": buckets}


def private(epsilon: float, delta: float = 0.0) -> Law:
    return {"law": "approx_dp", "epsilon": epsilon, "delta": delta}


def pair(p: list[float], q: list[float]) -> Law:
    return {"law": "pair", "p": p, "q": q}
