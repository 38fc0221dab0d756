"""The Parquet files of a folder or a pattern, and the column values in their folder names: ``year=2024/city=Oslo``.

Names below the given path may be values of the data, so errors do not repeat them.
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

HIDDEN_PREFIXES = (".", "_")
"""First characters of names that Spark and others hide; a pattern that matches such a file is rejected."""
MARKERS = ("_SUCCESS", "._SUCCESS.crc", "_metadata", "_common_metadata", ".DS_Store")
FOOTER_FILES = ("_metadata", "_common_metadata")
CHECKSUM_SUFFIX = ".crc"
"""The suffix of checksum files. They, ``MARKERS`` and empty files without the suffix .parquet are not parts."""
PARQUET_SUFFIX = ".parquet"
PARQUET_MARKS = (b"PAR1", b"PARE")
"""The first bytes of Parquet files, plain and encrypted."""
FRAME_BYTES = 12
"""Bytes of a Parquet file that are neither rows nor footer: a mark at each end, and the footer's length."""
MISSING_VALUE = "__HIVE_DEFAULT_PARTITION__"
UNFINISHED_FOLDER = "_temporary"
"""A folder of this name exists while Spark is writing."""
_COLUMN_VALUE = re.compile(r"[^=]+=.*", re.DOTALL)
_OTHER_FILES_REMEDY = (
    "move what is no part of the table elsewhere, unpack what is compressed, and follow links yourself"
)
_SAME_COLUMNS_REMEDY = "write the parts alike, each in folders called column=value, in one order"
PathNames = tuple[str, ...]
"""The names of a file's folders and of the file itself, below a path."""


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """A file, and the column names and values in its folder names; None for a missing value."""

    path: Path
    folder_values: tuple[tuple[str, str | None], ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns that the folder names give."""
        return tuple(name for name, _ in self.folder_values)


def is_pattern(path: Path) -> bool:
    """Return whether a path is a pattern such as ``data/*.parquet``; an existing path is not a pattern."""
    return glob.has_magic(str(path)) and not engine_call("look for the source", path.exists)


def path_exists(path: Path) -> bool:
    """Return whether this file or folder exists, or one that matches the pattern."""
    exists = engine_call("look for the source", path.exists)
    return exists or (
        is_pattern(path) and engine_call("look for the parts", lambda: any(_match_names(*_split_pattern(path))))
    )


def parts_in_folder(folder: Path) -> tuple[tuple[ParquetPart, ...], int]:
    """Return the parts in a folder and in folders ``column=value`` below it, and the number of writers' markers.

    Every file that is not a marker is a part, whatever its name. Raises ``InputError`` for a folder without parts, for
    one that is still being written, and for files that are not Parquet, with their number. Raises ``SchemaError`` if
    folders have other names or differ in their columns.
    """
    paths = engine_call("look for the parts", lambda: sorted(_walk_files(folder)))
    parts = engine_call("look at the parts", lambda: [path for path in paths if not _is_marker(path)])
    # A part is a regular file (reading a pipe would block), and Parquet by its name or first bytes.
    others = engine_call(
        "look at the parts",
        lambda: sum(
            not (path.is_file() and (path.suffix.lower() == PARQUET_SUFFIX or first_bytes(path) in PARQUET_MARKS))
            for path in parts
        ),
    )
    if others:
        text = (
            f"{str(folder)!r} must be a folder of Parquet files, but {others} of {len(parts)} files are something else"
        )
        raise InputError.from_text("source", f"{text}; {_OTHER_FILES_REMEDY}")
    return _build_parts(folder, folder, [path.relative_to(folder).parts for path in parts]), len(paths) - len(parts)


def first_bytes(path: Path, size: int = len(PARQUET_MARKS[0])) -> bytes:
    """Return the first bytes of a file; empty for anything else, such as a link to a folder."""
    if not engine_call("look for the file", path.is_file):
        return b""
    with engine_call("open the file", lambda: path.open("rb")) as file:
        return engine_call("read the file", lambda: file.read(size))


def _walk_files(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder except folders; links to folders are yielded, not followed."""

    def raise_error(error: OSError) -> None:
        raise error

    for root, folders, files in os.walk(folder, onerror=raise_error):
        parent = Path(root)
        yield from (parent / name for name in files)
        yield from (parent / name for name in folders if (parent / name).is_symlink())


def _is_marker(path: Path) -> bool:
    """Return whether a file is a marker, by name and content; a file that may hold rows is not one."""
    if not path.is_file():
        return False
    size = path.stat().st_size
    if path.name in FOOTER_FILES:
        return first_bytes(path) not in PARQUET_MARKS or footer_length(path) + FRAME_BYTES == size
    if path.suffix == CHECKSUM_SUFFIX and not os.path.lexists(path.parent / path.stem.removeprefix(".")):
        return False
    if path.name in MARKERS or path.suffix == CHECKSUM_SUFFIX:
        return first_bytes(path) not in PARQUET_MARKS
    return path.suffix.lower() != PARQUET_SUFFIX and size == 0


def footer_length(path: Path) -> int:
    """Return the length of a Parquet file's footer, as written at its end."""
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def parts_by_pattern(pattern: Path) -> tuple[ParquetPart, ...]:
    """Return the Parquet files that match a pattern; ``**`` matches any folders, and the suffix may be in capitals.

    Folders from the first part of the pattern with a wildcard on may be called ``column=value``. Every match is read or
    rejected: raises ``InputError`` for hidden files and folders, folders of parts, links to folders below ``**``, and
    anything that is not a regular file.
    """
    if pattern.suffix.lower() != PARQUET_SUFFIX:
        raise InputError("source", str(pattern), "a pattern for .parquet files", "say 'folder/*.parquet'")
    root, below = _split_pattern(pattern)
    matches = engine_call("look for the parts", lambda: sorted(set(_match_names(root, below))))
    files = [names for names in matches if engine_call("look for the parts", partial(_is_visible_file, root, names))]
    if len(files) < len(matches):
        others = len(matches) - len(files)
        text = f"{str(pattern)!r} must match Parquet files, but {others} of {len(matches)} matches are something else"
        raise InputError.from_text("source", f"{text}; {_OTHER_FILES_REMEDY}")
    return _build_parts(pattern, root, files)


def _is_visible_file(root: Path, names: PathNames) -> bool:
    """Return whether it is a file, not hidden and not in a hidden folder; ``_k=1`` is a partition, not hidden."""
    folders = (name.removeprefix("_") if "=" in name else name for name in names[:-1])
    return root.joinpath(*names).is_file() and not any(
        name.startswith(HIDDEN_PREFIXES) for name in (*folders, names[-1])
    )


def _split_pattern(pattern: Path) -> tuple[Path, PathNames]:
    """Return the folder above the first wildcard, and the pattern below it."""
    fixed = next(index for index, part in enumerate(pattern.parts) if glob.has_magic(part))
    return Path(*pattern.parts[:fixed]), pattern.parts[fixed:]


def _match_names(root: Path, pattern: PathNames, below: PathNames = ()) -> Iterator[PathNames]:
    """Yield the names of all matches: files, folders with contents, and links to folders that ``**`` does not follow.

    Raises ``OSError`` for a folder that cannot be listed, which ``Path.glob`` would skip silently.
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
        elif not _matches_name(entry.name, first, is_last=not rest):
            continue
        elif rest:
            yield from _match_names(root, rest, names) if entry.is_dir() else ()
        elif not entry.is_dir() or any(_walk_files(root.joinpath(*names))):
            yield names


def _matches_name(name: str, pattern: str, *, is_last: bool) -> bool:
    """Return whether a name matches a shell pattern; the suffix of the last name may be in capitals."""
    if is_last and name.lower().endswith(PARQUET_SUFFIX):
        name, pattern = (text[: -len(PARQUET_SUFFIX)] + PARQUET_SUFFIX for text in (name, pattern))
    return fnmatch.fnmatchcase(name, pattern)


def _build_parts(given_path: Path, root: Path, files: Sequence[PathNames]) -> tuple[ParquetPart, ...]:
    """Return the parts for files below ``root``; ``given_path`` is named in errors."""
    if not files or engine_call("look for the parts", (root / UNFINISHED_FOLDER).exists):
        raise InputError(
            "source", str(given_path), "a folder of .parquet parts that were all written", "write it again"
        )
    if not all(_COLUMN_VALUE.fullmatch(folder) for names in files for folder in names[:-1]):
        raise SchemaError(
            "source", str(given_path), "a path below which each folder is called column=value", _SAME_COLUMNS_REMEDY
        )
    parts = tuple(ParquetPart(root.joinpath(*names), tuple(map(parse_folder_name, names[:-1]))) for names in files)
    if any(part.column_names != parts[0].column_names for part in parts):
        raise SchemaError(
            "source", str(given_path), "parts in folders that name the same columns", _SAME_COLUMNS_REMEDY
        )
    return parts


def parse_folder_name(folder: str) -> tuple[str, str | None]:
    """Return the column and the value in a folder name ``column=value``; None for a missing value."""
    name, _, value = folder.partition("=")
    return unquote(name), None if value == MISSING_VALUE else unquote(value, errors="surrogateescape")
