"""Detection of files that changed since they were opened, by inode, size, modification time, and both ends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.errors import InputError
from tightrope.tables.engine_calls import engine_call

if TYPE_CHECKING:
    import pyarrow as pa

HASHED_END_BYTES = 1 << 16
"""Bytes at each end that are hashed; of a Parquet file, at least the footer."""
PARQUET_MARK = b"PAR1"


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The state of a file; two stamps of an unchanged file are equal."""

    device: int
    inode: int
    size: int
    nanoseconds: int
    ends: bytes

    @classmethod
    def from_path(cls, path: Path) -> FileStamp:
        """Return the stamp of a file; raises ``EngineError`` if it cannot be read."""
        return engine_call("read the file's state", lambda: cls._read_stamp(path))

    @classmethod
    def _read_stamp(cls, path: Path) -> FileStamp:
        status = path.stat()
        with path.open("rb") as file:
            head = file.read(HASHED_END_BYTES)
            # A Parquet file ends with the length of its footer and a mark; all of the footer is hashed.
            file.seek(max(0, status.st_size - 8))
            length, mark = file.read(4), file.read(4)
            tail = (
                max(HASHED_END_BYTES, int.from_bytes(length, "little") + 8)
                if mark == PARQUET_MARK
                else HASHED_END_BYTES
            )
            file.seek(max(0, status.st_size - tail))
            ends = hashlib.blake2b(head + file.read(), digest_size=16).digest()
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, ends)


def numbered_parts(*indices: int, of: int) -> str:
    """Return how errors name files below a path: by number in the order of paths, because names may hold values.

    >>> numbered_parts(6, of=12), numbered_parts(0, 6, of=12), numbered_parts(0, of=1)
    ('part 7 of 12', 'parts 1 and 7 of 12', 'it')
    """
    numbers = " and ".join(str(index + 1) for index in indices)
    return f"{'part' if len(indices) == 1 else 'parts'} {numbers} of {of}" if of > 1 else "it"


@dataclass(frozen=True, slots=True)
class StampedFiles:
    """Files with their stamps from when they were opened, and the path that the user gave."""

    given_path: Path
    paths: tuple[Path, ...]
    stamps: tuple[FileStamp, ...]

    @classmethod
    def from_paths(cls, given_path: Path, *parts: Path) -> StampedFiles:
        """Stamp the parts of a path, or the file itself; raises ``EngineError`` if one cannot be read."""
        paths = parts or (given_path,)
        return cls(given_path, paths, tuple(map(FileStamp.from_path, paths)))

    def check_unchanged(self) -> None:
        """Raise ``InputError`` if a file has changed, ``EngineError`` if one can no longer be read."""
        for index, (path, stamp) in enumerate(zip(self.paths, self.stamps, strict=True)):
            if not engine_call("look for the file", path.is_file) or FileStamp.from_path(path) != stamp:
                which = numbered_parts(index, of=len(self.paths))
                text = f"{str(self.given_path)!r} was opened, but {which} has changed since; open it again"
                raise InputError.from_text("source", text)

    def checked_batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, and check that the files are unchanged before the first and after the last one."""
        self.check_unchanged()
        yield from batches
        self.check_unchanged()
