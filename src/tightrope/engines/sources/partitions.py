"""Which files a folder or a pattern stands for, and what the names of their folders say: ``year=2024/city=Oslo``.

Names below the path that was given may be values of the data: no error repeats one.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tightrope.engines.guard import guarded
from tightrope.errors import InputError, SchemaError

HIDDEN = (".", "_")
MISSING = "__HIVE_DEFAULT_PARTITION__"
UNFINISHED = "_temporary"
"""What a folder holds that Spark is still writing."""
_NAMED = re.compile(r"[^=]+=.*", re.DOTALL)
_ALIKE = "write the parts alike, each in folders called column=value, in one order"


@dataclass(frozen=True, slots=True)
class Part:
    """A file, and the names and values that its folders have; None for a missing value."""

    path: Path
    values: tuple[tuple[str, str | None], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that only the folders hold."""
        return tuple(name for name, _ in self.values)


def is_pattern(path: Path) -> bool:
    """Whether it is no path of something, but a pattern such as ``data/*.parquet``."""
    return glob.has_magic(str(path)) and not guarded("look for the source", path.exists)


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder, or one that fits the pattern."""
    there = guarded("look for the source", path.exists)
    return there or (is_pattern(path) and guarded("look for the parts", lambda: any(_matching(*_divided(path)))))


def in_folder(folder: Path) -> tuple[Part, ...]:
    """The Parquet files in a folder and in folders called ``column=value`` below it. Hidden ones are no parts.

    Raises ``InputError`` for a folder without parts or that is still being written, ``SchemaError`` where the folders
    below are called otherwise or differ in their columns.
    """
    return _agreed(folder, folder, _files(folder, lambda: folder.rglob("*.parquet")))


def fitting(pattern: Path) -> tuple[Part, ...]:
    """The Parquet files that fit a pattern; ``**`` goes through folders, and nothing hidden is found.

    Folders from the first that is a pattern on may be called ``column=value``.
    """
    if pattern.suffix.lower() != ".parquet":
        raise InputError("source", str(pattern), "a pattern for .parquet files", "say 'folder/*.parquet'")
    root, below = _divided(pattern)
    return _agreed(pattern, root, _files(root, lambda: _matching(root, below)))


def _files(root: Path, found: Callable[[], Iterator[Path]]) -> list[tuple[str, ...]]:
    """The files among what is found, by their names below a folder; the system's own errors would quote them."""
    files = guarded("look for the parts", lambda: [path for path in sorted(found()) if path.is_file()])
    return [path.relative_to(root).parts for path in files]


def _divided(pattern: Path) -> tuple[Path, Path]:
    """The folder up to which nothing is a pattern, and the pattern below it."""
    fixed = next(place for place, part in enumerate(pattern.parts) if glob.has_magic(part))
    return Path(*pattern.parts[:fixed]), Path(*pattern.parts[fixed:])


def _matching(root: Path, below: Path) -> Iterator[Path]:
    return root.glob(str(below))


def _agreed(asked: Path, root: Path, found: Sequence[tuple[str, ...]]) -> tuple[Part, ...]:
    shown = [names for names in found if not any(name.startswith(HIDDEN) for name in names)]
    if not shown or guarded("look for the parts", (root / UNFINISHED).exists):
        raise InputError("source", str(asked), "a folder of .parquet parts that were all written", "write it again")
    if not all(_NAMED.fullmatch(folder) for names in shown for folder in names[:-1]):
        raise SchemaError("source", str(asked), "a path below which each folder is called column=value", _ALIKE)
    parts = tuple(Part(root.joinpath(*names), tuple(map(_said, names[:-1]))) for names in shown)
    if any(part.names != parts[0].names for part in parts):
        raise SchemaError("source", str(asked), "parts in folders that name the same columns", _ALIKE)
    return parts


def _said(folder: str) -> tuple[str, str | None]:
    name, _, value = folder.partition("=")
    return unquote(name), None if value == MISSING else unquote(value, errors="surrogateescape")
