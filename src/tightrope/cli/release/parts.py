"""A file that is not there yet: room on a disk, under no name where the system can do that, until it is complete."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tightrope.cli.output import file_mode

FILE_ROOM = 4 * 2**20
"""Bytes set aside for each file: most are smaller, so that a full disk shows before anything is spent."""
UNKNOWN = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)
"""What a file system says that cannot set room aside."""
OPEN_FILES = Path("/proc/self/fd")


@dataclass(slots=True)
class Part:
    """The file to be called ``target``: ``path`` is its hidden name, None while it has none.

    What has no name is gone with the program, however that ends.
    """

    target: Path
    handle: int
    path: Path | None

    @classmethod
    def made(cls, target: Path) -> Self:
        """An empty part with room for the file. Raises ``OSError`` where there is none."""
        unnamed = _unnamed(target.parent)
        handle, name = _named(target) if unnamed is None else (unnamed, None)
        part = cls(target, handle, name)
        try:
            _set_aside(handle)
        except OSError:
            part.drop()
            raise
        return part

    def fill(self, content: bytes) -> None:
        """Exactly this content, on disk, under a hidden name; where no name can be given, in a new file."""
        _write(self.handle, content)
        if self.path is not None:
            return
        hidden = self.target.with_name(f".{self.target.name}.{os.getpid()}.part")
        try:
            folder = os.open(self.target.parent, os.O_RDONLY)
            try:  # only with a folder's handle does Python follow the link, which is what gives the file a name
                os.link(OPEN_FILES / str(self.handle), hidden, src_dir_fd=folder, follow_symlinks=True)
            finally:
                os.close(folder)
            self.path = hidden
        except OSError:
            os.close(self.handle)
            self.handle, self.path = _named(self.target)
            _write(self.handle, content)

    def place(self) -> None:
        """To its name, in one step."""
        if self.path is not None:
            self.path.replace(self.target)

    def drop(self) -> None:
        """Let go of it; what was not placed is gone."""
        with suppress(OSError):
            os.close(self.handle)
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _unnamed(folder: Path) -> int | None:
    """A file under no name, that can be given one later; None where the system has none such."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not OPEN_FILES.is_dir():
        return None
    try:
        return os.open(folder, flag | os.O_RDWR, 0o600)
    except OSError:
        return None


def _named(target: Path) -> tuple[int, Path]:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    return handle, Path(name)


def _set_aside(handle: int) -> None:
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, 0, FILE_ROOM)
    except OSError as error:
        if error.errno not in UNKNOWN:
            raise


def _write(handle: int, content: bytes) -> None:
    """Exactly this content, on disk."""
    os.lseek(handle, 0, os.SEEK_SET)
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]
    os.ftruncate(handle, len(content))
    os.fchmod(handle, file_mode())
    os.fsync(handle)
