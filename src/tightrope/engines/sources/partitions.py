"""Which files a folder or a pattern stands for, and what the names of their folders say: ``year=2024/city=Oslo``."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tightrope.errors import InputError, SchemaError

HIDDEN = (".", "_")
MISSING = "__HIVE_DEFAULT_PARTITION__"
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
    return glob.has_magic(str(path)) and not path.exists()


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder, or one that fits the pattern."""
    return path.exists() or (is_pattern(path) and any(_matching(path)[1]))


def in_folder(folder: Path) -> tuple[Part, ...]:
    """The Parquet files in a folder and in folders called ``column=value`` below it. Hidden ones are no parts.

    Raises ``InputError`` for a folder without parts or that is still being written, ``SchemaError`` where the folders
    below are called otherwise or differ in their columns.
    """
    files = [path for path in sorted(folder.rglob("*.parquet")) if path.is_file()]
    return _agreed(folder, folder, [path.relative_to(folder).parts for path in files])


def fitting(pattern: Path) -> tuple[Part, ...]:
    """The Parquet files that fit a pattern; ``**`` goes through folders, and nothing hidden is found.

    Folders from the first that is a pattern on may be called ``column=value``.
    """
    if pattern.suffix.lower() != ".parquet":
        raise InputError("source", str(pattern), "a pattern for .parquet files", "say 'folder/*.parquet'")
    root, found = _matching(pattern)
    return _agreed(pattern, root, [path.relative_to(root).parts for path in sorted(found) if path.is_file()])


def _matching(pattern: Path) -> tuple[Path, Iterator[Path]]:
    """The folder up to which nothing is a pattern, and all that fits below it."""
    fixed = next(place for place, part in enumerate(pattern.parts) if glob.has_magic(part))
    root = Path(*pattern.parts[:fixed])
    return root, root.glob(str(Path(*pattern.parts[fixed:])))


def _agreed(asked: Path, root: Path, found: Sequence[tuple[str, ...]]) -> tuple[Part, ...]:
    shown = [names for names in found if not any(name.startswith(HIDDEN) for name in names)]
    if not shown or (root / "_temporary").exists():
        raise InputError("source", str(asked), "a folder of .parquet parts that were all written", "write it again")
    parts = tuple(Part(root.joinpath(*names), tuple(map(_said, names[:-1]))) for names in shown)
    if any(part.names != parts[0].names for part in parts):
        raise SchemaError("source", str(asked), "parts in folders that name the same columns", _ALIKE)
    return parts


def _said(folder: str) -> tuple[str, str | None]:
    name, equals, value = folder.partition("=")
    if not (name and equals):
        raise SchemaError("source", folder, "a folder called column=value", _ALIKE)
    return unquote(name), None if value == MISSING else unquote(value, errors="surrogateescape")
