"""The peers' environments, ``.peers/NAME``, from the pinned names in ``benchmarks/peers/NAME.txt``; made once.

A peer is no dependency of ours. Whoever cannot be installed here (another Python, no network) is said to be missing,
and the rest goes on.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent
PEERS = BENCHMARKS.parent / ".peers"


def pins(name: str) -> Path:
    return BENCHMARKS / "peers" / f"{name}.txt"


def versions(name: str) -> dict[str, str]:
    """Version by name, as pinned."""
    lines = pins(name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def interpreter(name: str) -> Path:
    """Where the environment's Python is, made or not."""
    return PEERS / name / "bin" / "python"


def made(name: str, deadline: float) -> str | None:
    """Makes the environment unless it is there, until ``time.monotonic()`` is that; why that failed, or None."""
    stamp, wanted = PEERS / name / ".installed", hashlib.sha256(pins(name).read_bytes()).hexdigest()
    if interpreter(name).exists() and stamp.exists() and stamp.read_text() == wanted:
        return None
    why = "no Python"
    for python in _pythons():
        why = _made_by(python, name, deadline)
        if not why:
            stamp.write_text(wanted)
            return None
    shutil.rmtree(PEERS / name, ignore_errors=True)
    return why


def _pythons() -> Iterator[str]:
    """Ours first, then older ones that are there: some peers lag behind."""
    yield sys.executable
    found = [shutil.which(f"python3.{minor}") for minor in (13, 12, 11, 10) if minor != sys.version_info.minor]
    yield from (python for python in found if python)


def _made_by(python: str, name: str, deadline: float) -> str:
    """What went wrong, or nothing."""
    shutil.rmtree(PEERS / name, ignore_errors=True)
    PEERS.mkdir(exist_ok=True)
    install = [
        str(interpreter(name)),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--retries",
        "1",
    ]
    for command in ([python, "-m", "venv", str(PEERS / name)], [*install, "-r", str(pins(name))]):
        try:
            left = max(deadline - time.monotonic(), 0.1)
            done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
        except subprocess.TimeoutExpired:
            return "no time was left"
        except OSError as error:
            return type(error).__name__
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["failed"]
            return said[-1][:120]
    return ""
