"""Which files a folder or a pattern stands for, and what the names of their folders say: ``year=2024/city=Oslo``.

Names below the path that was given may be values of the data: no error repeats one.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from tightrope.engines.guard import guarded
from tightrope.errors import InputError, SchemaError

HIDDEN = (".", "_")
"""What a pattern does not find, as in a shell."""
MARKERS = ("_SUCCESS", "._SUCCESS.crc", "_metadata", "_common_metadata", ".DS_Store")
CHECKSUM = ".crc"
"""Files that writers leave beside the parts, by name; and any empty file that is not called .parquet."""
ENDING = ".parquet"
MARKS = (b"PAR1", b"PARE")
"""What Parquet begins with, plain and encrypted."""
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
        """The columns that the folders name."""
        return tuple(name for name, _ in self.values)


def is_pattern(path: Path) -> bool:
    """Whether it is no path of something, but a pattern such as ``data/*.parquet``."""
    return glob.has_magic(str(path)) and not guarded("look for the source", path.exists)


def is_there(path: Path) -> bool:
    """Whether there is such a file or folder, or one that fits the pattern."""
    there = guarded("look for the source", path.exists)
    return there or (is_pattern(path) and guarded("look for the parts", lambda: any(_matching(*_divided(path)))))


def in_folder(folder: Path) -> tuple[tuple[Part, ...], int]:
    """The files in a folder and in folders called ``column=value`` below it, and how many are but writers' markers.

    Every other file is a part, whatever it is called, hidden or not. Raises ``InputError`` for a folder without parts,
    one that is still being written, and files that are not Parquet, with their number; ``SchemaError`` where the
    folders below are called otherwise or differ in their columns.
    """
    paths = guarded("look for the parts", lambda: sorted(_below(folder)))
    parts = [path for path in paths if not guarded("look at the parts", partial(_is_marker, path))]
    others = sum(path.suffix.lower() != ENDING and beginning(path) not in MARKS for path in parts)
    if others:
        expected = f"a folder of Parquet files, but {others} of {len(parts)} files in it are something else"
        remedy = "move what is no part of the table elsewhere, unpack what is compressed, and follow links yourself"
        raise InputError("source", str(folder), expected, remedy)
    return _agreed(folder, folder, [path.relative_to(folder).parts for path in parts]), len(paths) - len(parts)


def beginning(path: Path) -> bytes:
    """The first letters of a file; none of what is no file, such as a link to a folder."""
    if not guarded("look for the parts", path.is_file):
        return b""
    with guarded("open the Parquet file", lambda: path.open("rb")) as file:
        return guarded("read the Parquet file", lambda: file.read(len(MARKS[0])))


def _below(folder: Path) -> Iterator[Path]:
    """All that is in a folder and below it and is no folder; a link to one is not followed, and is something else."""

    def stop(error: OSError) -> None:
        raise error

    for root, folders, files in os.walk(folder, onerror=stop):
        place = Path(root)
        yield from (place / name for name in files)
        yield from (place / name for name in folders if (place / name).is_symlink())


def _is_marker(path: Path) -> bool:
    if path.name in MARKERS or path.suffix == CHECKSUM:
        return True
    return path.suffix.lower() != ENDING and path.is_file() and path.stat().st_size == 0


def fitting(pattern: Path) -> tuple[Part, ...]:
    """The Parquet files that fit a pattern; ``**`` goes through folders, and nothing hidden is found.

    Folders from the first that is a pattern on may be called ``column=value``.
    """
    if pattern.suffix.lower() != ENDING:
        raise InputError("source", str(pattern), "a pattern for .parquet files", "say 'folder/*.parquet'")
    root, below = _divided(pattern)
    found = _files(root, lambda: _matching(root, below))
    return _agreed(pattern, root, [names for names in found if not any(name.startswith(HIDDEN) for name in names)])


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
    if not found or guarded("look for the parts", (root / UNFINISHED).exists):
        raise InputError("source", str(asked), "a folder of .parquet parts that were all written", "write it again")
    if not all(_NAMED.fullmatch(folder) for names in found for folder in names[:-1]):
        raise SchemaError("source", str(asked), "a path below which each folder is called column=value", _ALIKE)
    parts = tuple(Part(root.joinpath(*names), tuple(map(_said, names[:-1]))) for names in found)
    if any(part.names != parts[0].names for part in parts):
        raise SchemaError("source", str(asked), "parts in folders that name the same columns", _ALIKE)
    return parts


def _said(folder: str) -> tuple[str, str | None]:
    name, _, value = folder.partition("=")
    return unquote(name), None if value == MISSING else unquote(value, errors="surrogateescape")
