"""Worker processes of the benchmarks: each measures one tool on one job and prints its result as a line of JSON.

Only the standard library is used, because workers in the peers' environments import this module, too.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEFAULT_PEERS = Path("/tmp/peers/bin/python")
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""The environment of every tool: threads that wait for each other would count as CPU seconds."""


@dataclass(frozen=True)
class WorkerResult:
    """What a worker measured; ``failure`` is empty unless the worker failed."""

    values: dict[str, Any] = field(default_factory=dict)
    failure: str = ""

    @property
    def is_unsupported(self) -> bool:
        """Whether the tool has no such function."""
        return self.failure.startswith("NotImplementedError")

    def number(self, name: str) -> float:
        """Return a measured number, or NaN if the worker failed."""
        return math.nan if self.failure else float(self.values[name])


def run_worker(command: Sequence[str], timeout: float | None = None) -> WorkerResult:
    """Run a command and return the JSON of its last line; ``timeout`` is in seconds."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=ONE_THREAD)
    except subprocess.TimeoutExpired:
        return WorkerResult(failure=f"no answer within {timeout:g} s")
    if process.returncode:
        return WorkerResult(failure=last_line(process.stderr) or f"ended with code {process.returncode}")
    return WorkerResult(dict(json.loads(last_line(process.stdout, length=None))))


def last_line(text: str, length: int | None = 150) -> str:
    """Return the beginning of the last line that is not empty."""
    return (text.strip().splitlines() or [""])[-1][:length]


def failure_notes(results: Mapping[str, WorkerResult]) -> str:
    """Return the failures by tool, in one line, except for functions that a tool does not have."""
    return "; ".join(
        f"{tool}: {result.failure}" for tool, result in results.items() if result.failure and not result.is_unsupported
    )


def peers_python(option: str | None) -> str:
    """Return the interpreter that has the peers: the option, else the default one if it exists, else ours."""
    return option or (str(DEFAULT_PEERS) if DEFAULT_PEERS.exists() else sys.executable)


def is_installed(python: str, module: str) -> bool:
    """Return whether the interpreter finds the module."""
    check = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", check], check=False).returncode == 0


def installed_peers(python: str, modules: Mapping[str, str], install_command: str) -> dict[str, str]:
    """Return the interpreter of each installed peer; print how to install the others.

    ``modules`` has the module to import by the name of the tool.
    """
    installed = {tool: python for tool, module in modules.items() if is_installed(python, module)}
    for tool in modules:
        if tool not in installed:
            print(f"{tool} is not installed and is skipped; to install it: {install_command}")
    return installed
