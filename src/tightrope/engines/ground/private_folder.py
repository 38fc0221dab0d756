"""A folder that only we can enter, for what does not fit in memory: gone when we leave, or when the next one comes."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

PREFIX = "tightrope-"
LOCK = "lock"


def spill(database: Path | None = None) -> Path:
    """A name for a database's own folder of spilled rows; made (0700, in ours) by whoever spills.

    Two databases that shared a folder would share file names. DuckDB opens a file twice in a process only with the same
    settings, so that a file has the same folder every time.
    """
    name = uuid.uuid4().hex if database is None else hashlib.sha256(str(database.absolute()).encode()).hexdigest()
    return _ours(os.getpid()) / name


@functools.cache
def _ours(process: int) -> Path:
    """The folder of this process (a fork makes its own), held by a lock that ends with the process, however it ends."""
    parent = Path(tempfile.gettempdir())
    for stale in _abandoned(parent):
        shutil.rmtree(stale, ignore_errors=True)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # 0700
        held = _locked(folder, create=True)
        if held is not None:
            atexit.register(_leave, folder, process)
            return folder


def _leave(folder: Path, process: int) -> None:
    """Remove the folder, in the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _abandoned(parent: Path) -> Iterator[Path]:
    """Folders of ours whose process is gone: a lock tells, where a number of a process may be in use again."""
    for folder in parent.glob(f"{PREFIX}*"):
        if _is_ours(folder):
            held = _locked(folder, create=False)
            if held is not None:
                yield folder
                os.close(held)


def _is_ours(folder: Path) -> bool:
    try:
        facts = folder.lstat()
    except OSError:
        return False
    return not folder.is_symlink() and folder.is_dir() and facts.st_uid == getattr(os, "getuid", lambda: -1)()


def _locked(folder: Path, *, create: bool) -> int | None:
    """The lock of a folder, as an open file; None where another process holds it, or where it is not there."""
    place, flags = folder / LOCK, os.O_RDWR | (os.O_CREAT if create else 0)
    try:
        file = os.open(place, flags, 0o600)
    except OSError:
        return None
    if _lock(file) and place.exists():
        return file
    os.close(file)
    return None


def _lock(file: int) -> bool:
    """Whether the lock is ours now. Where the system has no such locks, nothing is ever taken for abandoned."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
