"""Detection of files that changed since they were opened: by place on disk, size, time, and both ends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightrope.errors import InputError
from tightrope.tables.engine_calls import engine_call

END = 1 << 16
"""Bytes of each end that are looked at; a Parquet file's footer, wherever it begins, is covered too."""
PARQUET = b"PAR1"


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Facts of one file; equal for two readings of an unchanged file."""

    device: int
    inode: int
    size: int
    nanoseconds: int
    ends: bytes

    @classmethod
    def from_path(cls, path: Path) -> FileStamp:
        """Raises ``EngineError`` where the file cannot be read."""
        return engine_call("look at the file", lambda: cls._read_stamp(path))

    @classmethod
    def _read_stamp(cls, path: Path) -> FileStamp:
        facts = path.stat()
        with path.open("rb") as file:
            head = file.read(END)
            # The last bytes that count: all of a Parquet file's footer, whose length precedes its last mark.
            file.seek(max(0, facts.st_size - 8))
            length, mark = file.read(4), file.read(4)
            tail = max(END, int.from_bytes(length, "little") + 8) if mark == PARQUET else END
            file.seek(max(0, facts.st_size - tail))
            ends = hashlib.blake2b(head + file.read(), digest_size=16).digest()
        return cls(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, ends)


def numbered_parts(*places: int, of: int) -> str:
    """Return the names of files below a path for errors, by the order of their paths: real names may hold values.

    >>> numbered_parts(6, of=12), numbered_parts(0, 6, of=12), numbered_parts(0, of=1)
    ('part 7 of 12', 'parts 1 and 7 of 12', 'it')
    """
    said = " and ".join(str(place + 1) for place in places)
    return f"{'part' if len(places) == 1 else 'parts'} {said} of {of}" if of > 1 else "it"


@dataclass(frozen=True, slots=True)
class StampedFiles:
    """Files as they were when they were opened, and the path given for them."""

    given_path: Path
    paths: tuple[Path, ...]
    stamps: tuple[FileStamp, ...]

    @classmethod
    def from_paths(cls, asked: Path, *parts: Path) -> StampedFiles:
        """As they are, the parts or the one file itself; raises ``EngineError`` where one cannot be read."""
        paths = parts or (asked,)
        return cls(asked, paths, tuple(map(FileStamp.from_path, paths)))

    def check_unchanged(self) -> None:
        """Raise ``InputError`` where one has changed, and ``EngineError`` where one may no longer be looked at."""
        for place, (path, stamp) in enumerate(zip(self.paths, self.stamps, strict=True)):
            if not engine_call("look for the file", path.is_file) or FileStamp.from_path(path) != stamp:
                which = numbered_parts(place, of=len(self.paths))
                expected = f"the file that was opened, but {which} has changed since"
                raise InputError("source", str(self.given_path), expected, "open it again")

    def checked_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches, if the files are what they were before the first and after the last."""
        self.check_unchanged()
        yield from batches
        self.check_unchanged()
