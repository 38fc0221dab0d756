"""The peers' environments, ``.peers/NAME``, from the pinned versions in ``benchmarks/peers/NAME.txt``; made once.

Peers are not dependencies of Tightrope. If one cannot be installed here (another Python, no network), it is reported as
missing, and the other benchmarks run.
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


def pins_file(name: str) -> Path:
    """Return the file with the pinned versions."""
    return BENCHMARKS / "peers" / f"{name}.txt"


def pinned_versions(name: str) -> dict[str, str]:
    """Return the pinned version of each package."""
    lines = pins_file(name).read_text(encoding="utf-8").splitlines()
    return {package: version for package, _, version in (line.partition("==") for line in lines) if version}


def peer_python(name: str) -> Path:
    """Return the path of the environment's interpreter, which may not exist yet."""
    return PEERS / name / "bin" / "python"


def make_environment(name: str, deadline: float) -> str:
    """Make the environment unless it exists; return why it failed, or an empty text.

    ``deadline`` is a time of ``time.monotonic()``.
    """
    stamp, digest = PEERS / name / ".installed", hashlib.sha256(pins_file(name).read_bytes()).hexdigest()
    if peer_python(name).exists() and stamp.exists() and stamp.read_text() == digest:
        return ""
    failure = "no Python"
    for python in candidate_pythons():
        failure = install_packages(python, name, deadline)
        if not failure:
            stamp.write_text(digest)
            return ""
    shutil.rmtree(PEERS / name, ignore_errors=True)
    return failure


def candidate_pythons() -> Iterator[str]:
    """Yield this interpreter, then the other versions on the path: some peers need older ones."""
    yield sys.executable
    paths = [shutil.which(f"python3.{minor}") for minor in (13, 12, 11, 10) if minor != sys.version_info.minor]
    yield from (python for python in paths if python)


def install_packages(python: str, name: str, deadline: float) -> str:
    """Make the environment with this interpreter; return why it failed, or an empty text."""
    shutil.rmtree(PEERS / name, ignore_errors=True)
    PEERS.mkdir(exist_ok=True)
    pip = [str(peer_python(name)), "-m", "pip", "--disable-pip-version-check"]
    install = [*pip, "install", "--quiet", "--retries", "1", "-r", str(pins_file(name))]
    for command in ([python, "-m", "venv", str(PEERS / name)], install):
        try:
            seconds = max(deadline - time.monotonic(), 0.1)
            process = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return "no time was left"
        except OSError as error:
            return type(error).__name__
        if process.returncode:
            errors = [line for line in process.stderr.splitlines() if line.startswith("ERROR")] or ["failed"]
            return errors[-1][:120]
    return ""
