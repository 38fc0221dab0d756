"""The wheel holds what ``src`` holds and nothing else, and the sdist makes the same one."""

from __future__ import annotations

import runpy
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = runpy.run_path(str(ROOT / "scripts" / "package_files.py"))


def build(kind: str, source: Path, place: Path) -> Path:
    """What hatchling makes of a folder: no network, no environment of its own."""
    code = f"import hatchling.build, sys; print(hatchling.build.build_{kind}(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(place)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)
    return place / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_file_of_the_source_and_no_other(wheel: Path) -> None:
    held = FILES["of_wheel"](wheel)
    assert held == FILES["of_source"]()
    assert {name.partition("/")[0] for name in held} == {"tightrope"}
    assert {"tightrope/py.typed", "tightrope/__init__.pyi", "tightrope/reporting/templates/report.css"} <= set(held)
    assert FILES["about"](wheel) == FILES["ABOUT"]


def test_the_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", ROOT, tmp_path)) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert build("wheel", unpacked, tmp_path).read_bytes() == wheel.read_bytes()
