"""What a wheel of Tightrope must hold, and what it does: the files of ``src``, and no others."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ABOUT = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
"""Files that the standard puts into ``.dist-info``, next to the package."""


def of_source(source: Path = ROOT / "src") -> dict[str, str]:
    """Every file below ``src`` but compiled ones, and the hash of what is in it."""
    files = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source).as_posix(): _hash(path.read_bytes()) for path in files}


def of_wheel(wheel: Path) -> dict[str, str]:
    """Every file of a wheel's package, and the hash of what is in it."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: _hash(opened.read(name)) for name in opened.namelist() if ".dist-info/" not in name}


def about(wheel: Path) -> set[str]:
    """Return the names of the files in ``.dist-info``, next to the package."""
    with zipfile.ZipFile(wheel) as opened:
        return {name.partition(".dist-info/")[2] for name in opened.namelist() if ".dist-info/" in name}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
