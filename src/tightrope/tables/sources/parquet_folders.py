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
from tightrope.tables.engine_calls import engine_call

HIDDEN = (".", "_")
"""First characters of hidden names, for Spark and others: patterns that match one are refused."""
MARKERS = ("_SUCCESS", "._SUCCESS.crc", "_metadata", "_common_metadata", ".DS_Store")
FOOTERS = ("_metadata", "_common_metadata")
CHECKSUM = ".crc"
"""Files that writers leave next to the parts, by name; and any empty file that is not called .parquet."""
ENDING = ".parquet"
MARKS = (b"PAR1", b"PARE")
"""The first bytes of Parquet files, plain and encrypted."""
AROUND = 12
"""The bytes of a Parquet file that are neither rows nor footer: a mark at each end, and the footer's length."""
MISSING = "__HIVE_DEFAULT_PARTITION__"
UNFINISHED = "_temporary"
"""The name in a folder that Spark is still writing."""
_NAMED = re.compile(r"[^=]+=.*", re.DOTALL)
_REMEDY = "move what is no part of the table elsewhere, unpack what is compressed, and follow links yourself"
_ALIKE = "write the parts alike, each in folders called column=value, in one order"
Names = tuple[str, ...]
"""The names of a file and its folders, below a path."""


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """A file, and the names and values that its folders have; None for a missing value."""

    path: Path
    folder_values: tuple[tuple[str, str | None], ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that the folders name."""
        return tuple(name for name, _ in self.folder_values)


def is_pattern(path: Path) -> bool:
    """Return whether it is a pattern, not an existing path, such as ``data/*.parquet``."""
    return glob.has_magic(str(path)) and not engine_call("look for the source", path.exists)


def path_exists(path: Path) -> bool:
    """Return whether such a file or folder exists, or one that matches the pattern."""
    there = engine_call("look for the source", path.exists)
    return there or (
        is_pattern(path) and engine_call("look for the parts", lambda: any(_match_names(*_split_pattern(path))))
    )


def parts_in_folder(folder: Path) -> tuple[tuple[ParquetPart, ...], int]:
    """The files in a folder and in folders called ``column=value`` below it, and how many are but writers' markers.

    Every other file is a part, under any name, hidden or not. Raises ``InputError`` for a folder without parts,
    one that is still being written, and files that are not Parquet, with their number; ``SchemaError`` where the
    folders below are called otherwise or differ in their columns.
    """
    paths = engine_call("look for the parts", lambda: sorted(_walk_files(folder)))
    parts = engine_call("look at the parts", lambda: [path for path in paths if not _is_marker(path)])
    # A part is a file, and Parquet by its name or first bytes. Reading a pipe would block.
    others = engine_call(
        "look at the parts",
        lambda: sum(
            not (path.is_file() and (path.suffix.lower() == ENDING or first_bytes(path) in MARKS)) for path in parts
        ),
    )
    if others:
        expected = f"a folder of Parquet files, but {others} of {len(parts)} files in it are something else"
        raise InputError("source", str(folder), expected, _REMEDY)
    return _build_parts(folder, folder, [path.relative_to(folder).parts for path in parts]), len(paths) - len(parts)


def first_bytes(path: Path) -> bytes:
    """Return the first bytes of a file; empty for anything else, such as a link to a folder."""
    if not engine_call("look for the parts", path.is_file):
        return b""
    with engine_call("open the Parquet file", lambda: path.open("rb")) as file:
        return engine_call("read the Parquet file", lambda: file.read(len(MARKS[0])))


def _walk_files(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder except folders; links to folders are yielded, not followed."""

    def raise_error(error: OSError) -> None:
        raise error

    for root, folders, files in os.walk(folder, onerror=raise_error):
        place = Path(root)
        yield from (place / name for name in files)
        yield from (place / name for name in folders if (place / name).is_symlink())


def _is_marker(path: Path) -> bool:
    """The name is not enough: files that may hold rows, and checksums without their file, do not count."""
    if not path.is_file():
        return False
    size = path.stat().st_size
    if path.name in FOOTERS:
        return first_bytes(path) not in MARKS or footer_length(path) + AROUND == size
    if path.suffix == CHECKSUM and not os.path.lexists(path.parent / path.stem.removeprefix(".")):
        return False
    known = path.name in MARKERS or path.suffix == CHECKSUM
    return first_bytes(path) not in MARKS if known else path.suffix.lower() != ENDING and size == 0


def footer_length(path: Path) -> int:
    """Return the length of a Parquet file's footer, as written at its end."""
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def parts_by_pattern(pattern: Path) -> tuple[ParquetPart, ...]:
    """The Parquet files that fit a pattern; ``**`` goes through folders, and the ending may be in capitals.

    Folders from the first that is a pattern on may be called ``column=value``. What fits is read or refused: raises
    ``InputError`` for hidden files and folders, folders of parts, links to folders below ``**``, and non-files.
    """
    if pattern.suffix.lower() != ENDING:
        raise InputError("source", str(pattern), "a pattern for .parquet files", "say 'folder/*.parquet'")
    root, below = _split_pattern(pattern)
    found = engine_call("look for the parts", lambda: sorted(set(_match_names(root, below))))
    fit = [names for names in found if engine_call("look for the parts", partial(_is_visible_file, root, names))]
    if len(fit) < len(found):
        expected = (
            f"a pattern for Parquet files, but {len(found) - len(fit)} of {len(found)} that fit are something else"
        )
        raise InputError("source", str(pattern), expected, _REMEDY)
    return _build_parts(pattern, root, fit)


def _is_visible_file(root: Path, names: Names) -> bool:
    """Return whether it is a file without hidden folders above it; a folder ``_k=1`` is a partition."""
    folders = (name.removeprefix("_") if "=" in name else name for name in names[:-1])
    return root.joinpath(*names).is_file() and not any(name.startswith(HIDDEN) for name in (*folders, names[-1]))


def _split_pattern(pattern: Path) -> tuple[Path, Names]:
    """The folder up to which nothing is a pattern, and the pattern below it."""
    fixed = next(place for place, part in enumerate(pattern.parts) if glob.has_magic(part))
    return Path(*pattern.parts[:fixed]), pattern.parts[fixed:]


def _match_names(root: Path, pattern: Names, below: Names = ()) -> Iterator[Names]:
    """Yield the names of matches, of contents of folders that match as files, and of links that ``**`` skips.

    A folder that may not be listed raises: ``Path.glob`` leaves it out.
    """
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        yield from _match_names(root, rest, below)
    with os.scandir(root.joinpath(*below)) as listed:
        entries = sorted(listed, key=lambda entry: entry.name)
    for entry in entries:
        names = (*below, entry.name)
        if first == "**":
            if entry.is_dir(follow_symlinks=False):
                yield from _match_names(root, pattern, names)
            elif entry.is_dir():
                yield names
        elif not _matches_name(entry.name, first, ending=not rest):
            continue
        elif rest:
            yield from _match_names(root, rest, names) if entry.is_dir() else ()
        elif not entry.is_dir() or any(_walk_files(root.joinpath(*names))):
            yield names


def _matches_name(name: str, pattern: str, *, ending: bool) -> bool:
    """As a shell has it, but for the capitals of a file's ending."""
    if ending and name.lower().endswith(ENDING):
        name, pattern = (text[: -len(ENDING)] + ENDING for text in (name, pattern))
    return fnmatch.fnmatchcase(name, pattern)


def _build_parts(asked: Path, root: Path, found: Sequence[Names]) -> tuple[ParquetPart, ...]:
    if not found or engine_call("look for the parts", (root / UNFINISHED).exists):
        raise InputError("source", str(asked), "a folder of .parquet parts that were all written", "write it again")
    if not all(_NAMED.fullmatch(folder) for names in found for folder in names[:-1]):
        raise SchemaError("source", str(asked), "a path below which each folder is called column=value", _ALIKE)
    parts = tuple(ParquetPart(root.joinpath(*names), tuple(map(parse_folder_name, names[:-1]))) for names in found)
    if any(part.column_names != parts[0].column_names for part in parts):
        raise SchemaError("source", str(asked), "parts in folders that name the same columns", _ALIKE)
    return parts


def parse_folder_name(folder: str) -> tuple[str, str | None]:
    """The column and the value that a folder's name says."""
    name, _, value = folder.partition("=")
    return unquote(name), None if value == MISSING else unquote(value, errors="surrogateescape")
