"""Environments outside of the checkout, in which packages are installed with pip and programs are run."""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

LEAKS = "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_CONSTRAINT"
"""Variables by which the checkout, or another environment, would get into a clean one."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment in a folder of its own, and the folder that its commands run in."""

    folder: Path
    desk: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def pip(self, *words: str) -> None:
        """Install; what pip says is shown where it fails."""
        done = self.run(self.python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *words)
        if done.returncode:
            raise SystemExit(f"pip install {' '.join(words)} failed:\n{done.stderr}")

    def run(self, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command in the folder, with the environment's own commands first on the PATH."""
        clean = {name: value for name, value in os.environ.items() if name not in LEAKS}
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        settings = clean | {"PATH": path, "PYTHONNOUSERSITE": "1", "OPENBLAS_NUM_THREADS": "1"} | variables
        return subprocess.run(
            [*map(str, words)], cwd=self.desk, env=settings, capture_output=True, text=True, check=False
        )

    def versions(self, names: Sequence[str]) -> str:
        """What is installed of these, in one line."""
        frozen = self.run(self.python, "-m", "pip", "freeze").stdout.splitlines()
        found = dict(line.lower().split("==") for line in frozen if "==" in line)
        return ", ".join(f"{name} {found[name]}" for name in names if name in found)


def made(python: str, place: Path, name: str) -> Environment:
    """An empty environment of that interpreter."""
    desk = place / f"{name}-desk"
    desk.mkdir()
    subprocess.run([python, "-m", "venv", str(place / name)], check=True)
    return Environment(place / name, desk)


def lowest(project: Path, extras: Sequence[str]) -> list[str]:
    """The lowest version that ``pyproject.toml`` allows of every requirement, as constraints for pip."""
    declared = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    texts = [*declared["dependencies"], *(text for extra in extras for text in _flat(declared, extra))]
    return [f"{needed.name}=={_bound(needed)}" for needed in map(Requirement, dict.fromkeys(texts))]


def _flat(declared: dict[str, dict[str, list[str]]], extra: str) -> list[str]:
    """What an extra brings, those that it names included."""
    found: list[str] = []
    for text in declared["optional-dependencies"][extra]:
        own = Requirement(text)
        found += [one for name in own.extras for one in _flat(declared, name)] if own.name == "tightrope" else [text]
    return found


def _bound(needed: Requirement) -> str:
    bounds = [part.version for part in needed.specifier if part.operator in {">=", "=="}]
    if len(bounds) != 1:
        raise SystemExit(f"{needed} says no lowest version")
    return bounds[0]
