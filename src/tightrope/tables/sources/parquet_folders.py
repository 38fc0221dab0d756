"""Which files a folder or a pattern stands for, and what the names of their folders say: ``year=2024/city=Oslo``.

Names below the path that was given may be values of the data: no error repeats one.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from tightrope.errors import InputError, SchemaError
from tightrope.tables.engine_calls import guarded

HIDDEN = (".", "_")
"""What is hidden begins so, for Spark and others: a pattern that finds it is refused."""
MARKERS = ("_SUCCESS", "._SUCCESS.crc", "_metadata", "_common_metadata", ".DS_Store")
FOOTERS = ("_metadata", "_common_metadata")
CHECKSUM = ".crc"
"""Files that writers leave beside the parts, by name; and any empty file that is not called .parquet."""
ENDING = ".parquet"
MARKS = (b"PAR1", b"PARE")
"""What Parquet begins with, plain and encrypted."""
AROUND = 12
"""The bytes of a Parquet file that are neither rows nor footer: a mark at each end, and the footer's length."""
MISSING = "__HIVE_DEFAULT_PARTITION__"
UNFINISHED = "_temporary"
"""What a folder holds that Spark is still writing."""
_NAMED = re.compile(r"[^=]+=.*", re.DOTALL)
_REMEDY = "move what is no part of the table elsewhere, unpack what is compressed, and follow links yourself"
_ALIKE = "write the parts alike, each in folders called column=value, in one order"
Names = tuple[str, ...]
"""What a file and its folders are called, below a path."""


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
    others = sum(not guarded("look at the parts", partial(_is_part, path)) for path in parts)
    if others:
        expected = f"a folder of Parquet files, but {others} of {len(parts)} files in it are something else"
        raise InputError("source", str(folder), expected, _REMEDY)
    return _agreed(folder, folder, [path.relative_to(folder).parts for path in parts]), len(paths) - len(parts)


def _is_part(path: Path) -> bool:
    """Whether it is a file, and Parquet by its name or its first letters. A pipe would be waited for for ever."""
    return path.is_file() and (path.suffix.lower() == ENDING or beginning(path) in MARKS)


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
    """A name alone is no proof: what may hold rows is none, nor is a checksum whose file is not there."""
    if not path.is_file():
        return False
    size = path.stat().st_size
    if path.name in FOOTERS:
        return beginning(path) not in MARKS or footer(path) + AROUND == size
    if path.suffix == CHECKSUM and not os.path.lexists(path.parent / path.stem.removeprefix(".")):
        return False
    known = path.name in MARKERS or path.suffix == CHECKSUM
    return beginning(path) not in MARKS if known else path.suffix.lower() != ENDING and size == 0


def footer(path: Path) -> int:
    """How long the footer of a Parquet file is, as it says at its end."""
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def fitting(pattern: Path) -> tuple[Part, ...]:
    """The Parquet files that fit a pattern; ``**`` goes through folders, and the ending may be in capitals.

    Folders from the first that is a pattern on may be called ``column=value``. What fits is read or refused: raises
    ``InputError`` for hidden files and folders, folders of parts, links to folders below ``**``, and what is no file.
    """
    if pattern.suffix.lower() != ENDING:
        raise InputError("source", str(pattern), "a pattern for .parquet files", "say 'folder/*.parquet'")
    root, below = _divided(pattern)
    found = guarded("look for the parts", lambda: sorted(set(_matching(root, below))))
    fit = [names for names in found if guarded("look for the parts", partial(_fits_plainly, root, names))]
    if len(fit) < len(found):
        expected = (
            f"a pattern for Parquet files, but {len(found) - len(fit)} of {len(found)} that fit are something else"
        )
        raise InputError("source", str(pattern), expected, _REMEDY)
    return _agreed(pattern, root, fit)


def _fits_plainly(root: Path, names: Names) -> bool:
    """Whether it is a file, and nothing on the way to it is hidden; a folder ``_k=1`` is a partition."""
    folders = (name.removeprefix("_") if "=" in name else name for name in names[:-1])
    return root.joinpath(*names).is_file() and not any(name.startswith(HIDDEN) for name in (*folders, names[-1]))


def _divided(pattern: Path) -> tuple[Path, Names]:
    """The folder up to which nothing is a pattern, and the pattern below it."""
    fixed = next(place for place, part in enumerate(pattern.parts) if glob.has_magic(part))
    return Path(*pattern.parts[:fixed]), pattern.parts[fixed:]


def _matching(root: Path, pattern: Names, below: Names = ()) -> Iterator[Names]:
    """What fits, by its names; what a folder holds that fits in place of a file; and links that ``**`` leaves out.

    A folder that may not be listed raises: ``Path.glob`` leaves it out.
    """
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        yield from _matching(root, rest, below)
    with os.scandir(root.joinpath(*below)) as listed:
        entries = sorted(listed, key=lambda entry: entry.name)
    for entry in entries:
        names = (*below, entry.name)
        if first == "**":
            if entry.is_dir(follow_symlinks=False):
                yield from _matching(root, pattern, names)
            elif entry.is_dir():
                yield names
        elif not _fits(entry.name, first, ending=not rest):
            continue
        elif rest:
            yield from _matching(root, rest, names) if entry.is_dir() else ()
        elif not entry.is_dir() or any(_below(root.joinpath(*names))):
            yield names


def _fits(name: str, pattern: str, *, ending: bool) -> bool:
    """As a shell has it, but for the capitals of a file's ending."""
    if ending and name.lower().endswith(ENDING):
        name, pattern = (text[: -len(ENDING)] + ENDING for text in (name, pattern))
    return fnmatch.fnmatchcase(name, pattern)


def _agreed(asked: Path, root: Path, found: Sequence[Names]) -> tuple[Part, ...]:
    if not found or guarded("look for the parts", (root / UNFINISHED).exists):
        raise InputError("source", str(asked), "a folder of .parquet parts that were all written", "write it again")
    if not all(_NAMED.fullmatch(folder) for names in found for folder in names[:-1]):
        raise SchemaError("source", str(asked), "a path below which each folder is called column=value", _ALIKE)
    parts = tuple(Part(root.joinpath(*names), tuple(map(folder_value, names[:-1]))) for names in found)
    if any(part.names != parts[0].names for part in parts):
        raise SchemaError("source", str(asked), "parts in folders that name the same columns", _ALIKE)
    return parts


def folder_value(folder: str) -> tuple[str, str | None]:
    """The column and the value that a folder's name says."""
    name, _, value = folder.partition("=")
    return unquote(name), None if value == MISSING else unquote(value, errors="surrogateescape")
