"""What tells that a file is not the one that was opened: its place on the disk, size, time, and its two ends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightrope.errors import InputError
from tightrope.tables.engine_calls import guarded

END = 1 << 16
"""Bytes of each end that are looked at; a Parquet file's footer, wherever it begins, is covered too."""
PARQUET = b"PAR1"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Facts of one file; equal for two looks at one file that nobody touched between them."""

    device: int
    node: int
    size: int
    nanoseconds: int
    ends: bytes

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Raises ``EngineError`` where the file cannot be read."""
        return guarded("look at the file", lambda: cls._of(path))

    @classmethod
    def _of(cls, path: Path) -> Stamp:
        facts = path.stat()
        with path.open("rb") as file:
            head = file.read(END)
            file.seek(max(0, facts.st_size - _tail(file, facts.st_size)))
            ends = hashlib.blake2b(head + file.read(), digest_size=16).digest()
        return cls(facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, ends)


def _tail(file: Any, size: int) -> int:
    """How many bytes of the end count: all of a Parquet file's footer, whose length stands before its last mark."""
    file.seek(max(0, size - 8))
    length, mark = file.read(4), file.read(4)
    return max(END, int.from_bytes(length, "little") + 8) if mark == PARQUET else END


def numbered(*places: int, of: int) -> str:
    """What files below a given path are called in errors, in the order of their paths: their names may hold values.

    >>> numbered(6, of=12), numbered(0, 6, of=12), numbered(0, of=1)
    ('part 7 of 12', 'parts 1 and 7 of 12', 'it')
    """
    said = " and ".join(str(place + 1) for place in places)
    return f"{'part' if len(places) == 1 else 'parts'} {said} of {of}" if of > 1 else "it"


@dataclass(frozen=True, slots=True)
class Stamped:
    """Files as they were when they were opened, and the path that somebody gave for them."""

    asked: Path
    paths: tuple[Path, ...]
    stamps: tuple[Stamp, ...]

    @classmethod
    def now(cls, asked: Path, *parts: Path) -> Stamped:
        """As they are, the parts or the one file itself; raises ``EngineError`` where one cannot be read."""
        paths = parts or (asked,)
        return cls(asked, paths, tuple(map(Stamp.of, paths)))

    def check(self) -> None:
        """Raise ``InputError`` where one has changed, and ``EngineError`` where one may no longer be looked at."""
        for place, (path, stamp) in enumerate(zip(self.paths, self.stamps, strict=True)):
            if not guarded("look for the file", path.is_file) or Stamp.of(path) != stamp:
                which = numbered(place, of=len(self.paths))
                expected = f"the file that was opened, but {which} has changed since"
                raise InputError("source", str(self.asked), expected, "open it again")

    def unchanged(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches, if the files are what they were before the first and after the last."""
        self.check()
        yield from batches
        self.check()
