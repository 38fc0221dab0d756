"""The location of a ledger: a file on a local disk, or a database by its URL."""

from __future__ import annotations

import os
import re
import threading
import warnings
from contextlib import suppress
from pathlib import Path

from tightrope.documents.reader import redact_secret
from tightrope.errors import InputError, LedgerError, LedgerWarning

MOUNTS = Path("/proc/self/mounts")
REMOTE = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "davfs", "ncpfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs",
    "fuse.gcsfuse", "fuse.davfs2", "fuse.glusterfs",
)  # fmt: skip
"""File systems of other machines: their locks have lost updates, and SQLite's shared memory does not span machines."""
SIDE_FILE_SUFFIXES = (".head", "-wal", "-shm", "-journal")
"""Reserved endings of the files next to a ledger."""
MAX_HEAD_FILE_SIZE = 200
"""Bytes; a longer file is not a head file."""
POSTGRES = ("postgresql", "postgres")


def is_url(place: str | os.PathLike[str]) -> bool:
    """Return whether the place is the URL of a database server."""
    return isinstance(place, str) and "://" in place


def checked_url(url: str, name: str = "ledger") -> str:
    """Return the URL with the driver; ``InputError`` about ``name`` for another database or a password in the URL.

    The error repeats only the scheme.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in (*POSTGRES, "postgresql+psycopg"):
        expected = "a file, or a URL postgresql://..."
        raise InputError(name, redact_secret(url), expected, "SQLite: give the path of the file")
    from tightrope.tables.backends.postgres import check_url  # loads numpy, which a ledger in a file does not need

    check_url(f"postgresql://{rest}", name)
    return f"postgresql+psycopg://{rest}"


def checked_file(place: str | os.PathLike[str], mounts: str | None = None) -> Path:
    """Return the path; ``InputError`` for a folder, a file in a missing folder, or a disk of another machine.

    The file is never opened here: closing it would drop the locks of SQLite on it in this process.
    """
    path = Path(place).resolve()  # files next to a link would differ from files next to its target
    if os.path.isfile(path):  # noqa: PTH113 - returns False without permission
        refuse_hard_links(path)
    if os.path.isdir(path):  # noqa: PTH112
        text = f"{place} must be a file, not a folder, such as {str(path / 'tightrope.ledger')!r}"
        raise InputError.from_text("ledger", text)
    if not os.path.isdir(path.parent):  # noqa: PTH112
        raise InputError.from_text("ledger", f"the folder of {place} does not exist")
    if path.name.endswith(SIDE_FILE_SUFFIXES):
        suffixes = " or ".join(SIDE_FILE_SUFFIXES)
        text = f"{place} must not end with {suffixes}, which are files next to a ledger; try visits.ledger"
        raise InputError.from_text("ledger", text)
    mount_table = mounts or ""
    if mounts is None:
        with suppress(OSError):
            mount_table = MOUNTS.read_text(encoding="utf-8", errors="replace")
    fields = (line.split() for line in mount_table.splitlines())
    if path in {_mount_point(parts[1]) for parts in fields if len(parts) >= 3}:
        text = f"{place} is mounted by itself, without its folder, where SQLite keeps the log; mount the folder instead"
        raise InputError.from_text("ledger", text)
    kind = _file_system(path.parent.resolve(), mount_table)
    if kind in REMOTE:
        text = (
            f"{place} is on a network file system ({kind}); use a disk of this machine, or PostgreSQL: postgresql://..."
        )
        raise InputError.from_text("ledger", text)
    return path


def refuse_hard_links(path: Path) -> None:
    """Raise ``InputError`` if the file has a second hard link."""
    if path.stat().st_nlink == 1:
        return
    # The temporary name from its creation does not count, and is removed here: its creator may be about to remove it,
    # or was killed before it could.
    files, temporary_names = list[Path](), list[Path]()
    with suppress(OSError):
        files = list(path.parent.iterdir())
    for part in files:
        with suppress(FileNotFoundError):  # its creator has removed it
            if re.fullmatch(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part", part.name) and part.samefile(path):
                temporary_names.append(part)
    for part in temporary_names:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    if path.stat().st_nlink - sum(part.exists() for part in temporary_names) > 1:
        text = f"{path} has another name (a hard link), under which charges would be lost; remove the other name"
        raise InputError.from_text("ledger", text)


def _mount_point(written: str) -> Path:
    r"""Return a mount point from /proc/self/mounts, where space, tab, newline and backslash are three octal digits.

    >>> str(_mount_point("/a\\040b"))
    '/a b'
    """
    return Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), written))


def _file_system(folder: Path, mounts: str) -> str:
    r"""Return the type of the file system of a folder, by the longest mount point above it.

    >>> _file_system(Path("/data/x"), "a / ext4 rw 0 0\nb /data nfs4 rw 0 0\n")
    'nfs4'
    """
    kind, longest = "", -1
    for fields in (line.split() for line in mounts.splitlines()):
        if len(fields) < 3:
            continue
        point = _mount_point(fields[1])
        if (point == folder or point in folder.parents) and len(point.parts) >= longest:
            kind, longest = fields[2], len(point.parts)
    return kind


class HeadFile:
    """A small file next to a ledger that records its last entry, so that a restored older copy is detected.

    It is written after every entry; a crash may leave it a few entries behind. A ledger without the recorded entry is
    an older copy. Deliberate changes of both files are not detected; the certificates also name their entries.
    """

    def __init__(self, ledger: Path) -> None:
        self._ledger, self.path = ledger, ledger.with_name(f"{ledger.name}.head")

    def last_seen_entry(self) -> tuple[int, str] | None:
        """Return the number and the hash of the last recorded entry; None if the file is missing or malformed.

        Raises ``LedgerError`` for a head file that exists and cannot be read.
        """
        try:
            if self.path.is_file() and self.path.stat().st_size > MAX_HEAD_FILE_SIZE:
                raise LedgerError(f"{self.path} is not the head file of {self._ledger.name}; move it")
            number, _, entry_hash = self.path.read_text(encoding="ascii").strip().partition(" ")
            return int(number), entry_hash
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise LedgerError(
                f"{self.path} cannot be read ({error.strerror}), so an older copy of the ledger could not be detected; "
                f"let this user read and write it, or remove it if the ledger is the newest copy"
            ) from None

    def write_head(self, number: int, entry_hash: str) -> None:
        """Record the last entry; if that fails, the old record stays and a ``LedgerWarning`` is emitted."""
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}-{threading.get_ident()}.part")
        try:
            part.unlink(missing_ok=True)
            with part.open("x", encoding="ascii") as file:  # never through an existing link
                file.write(f"{number} {entry_hash}\n")
            part.replace(self.path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            self._warn_not_written(str(error.strerror))

    def _warn_not_written(self, why: str) -> None:
        warnings.warn(
            LedgerWarning(
                f"{self.path} cannot be written ({why}): the charge is in the ledger, but an older copy in its place "
                f"would not be detected; let this user write to the folder and to this file"
            ),
            stacklevel=2,
        )

    def require_existing_ledger(self) -> None:
        """Raise ``LedgerError`` if the ledger was removed or truncated to zero bytes."""
        seen = self.last_seen_entry()  # read first: while a ledger is created, it has no head file yet
        try:
            size = self._ledger.stat().st_size  # one call: the file may appear between two
        except OSError:
            if seen is None:
                return
            what = f"is missing, but {self.path.name} records its entries"
        else:
            if size > 0:
                return
            what = "is empty: it was truncated"
        raise LedgerError(
            f"the ledger {self._ledger} {what}; put the newest copy back, with its -wal file if there is one"
        )
