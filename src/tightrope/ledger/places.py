"""The location of a ledger: a file on a local disk, or a database by its URL."""

from __future__ import annotations

import os
import re
import secrets
import threading
import warnings
from contextlib import suppress
from pathlib import Path

from tightrope.documents.reader import redact_secret
from tightrope.errors import InputError, LedgerError, LedgerWarning
from tightrope.tables.backends import postgres

MOUNTS = Path("/proc/self/mounts")
REMOTE = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "davfs", "ncpfs", "fuse.sshfs", "fuse.rclone", "fuse.s3fs",
    "fuse.gcsfuse", "fuse.davfs2", "fuse.glusterfs",
)  # fmt: skip
"""File systems of other machines: their locks have lost updates, and SQLite's shared memory does not span machines."""
BESIDE = (".head", "-wal", "-shm", "-journal")
"""Reserved endings of the files next to a ledger."""
LONGEST_WORD = 200
"""Letters of a witness."""
POSTGRES = ("postgresql", "postgres")


def is_url(place: str | os.PathLike[str]) -> bool:
    """Return whether the place is the URL of a database server."""
    return isinstance(place, str) and "://" in place


def checked_url(url: str, name: str = "ledger") -> str:
    """The URL with the driver that is used; ``InputError`` of ``name`` for another database and for a password in it.

    The error repeats no more than the scheme.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in (*POSTGRES, "postgresql+psycopg"):
        expected = "a file, or a URL postgresql://..."
        raise InputError(name, redact_secret(url), expected, "SQLite: give the path of the file")
    postgres.check_url(f"postgresql://{rest}", name)
    return f"postgresql+psycopg://{rest}"


def checked_file(place: str | os.PathLike[str], mounts: str | None = None) -> Path:
    """The file; ``InputError`` for a folder, a folder that is not there, and a disk of another machine.

    The file is never opened here: closing it would drop the locks that SQLite holds on it in this process.
    """
    path = Path(place).resolve()  # files next to a link would differ from files next to its target
    if os.path.isfile(path):  # noqa: PTH113 - says no where it may not look
        refuse_other_names(path)
    if os.path.isdir(path):  # noqa: PTH112
        text = f"{place} must be a file, not a folder, such as {str(path / 'tightrope.ledger')!r}"
        raise InputError.from_text("ledger", text)
    if not os.path.isdir(path.parent):  # noqa: PTH112
        raise InputError.from_text("ledger", f"the folder of {place} does not exist")
    if path.name.endswith(BESIDE):
        text = f"{place} must not end with {' or '.join(BESIDE)}, which are files next to a ledger; try visits.ledger"
        raise InputError.from_text("ledger", text)
    mounted = mounts or ""
    if mounts is None:
        with suppress(OSError):
            mounted = MOUNTS.read_text(encoding="utf-8", errors="replace")
    fields = (line.split() for line in mounted.splitlines())
    if path in {_mount_point(parts[1]) for parts in fields if len(parts) >= 3}:
        text = f"{place} is mounted by itself, without its folder, where SQLite keeps the log; mount the folder instead"
        raise InputError.from_text("ledger", text)
    kind = _file_system(path.parent.resolve(), mounted)
    if kind in REMOTE:
        text = (
            f"{place} is on a network file system ({kind}); use a disk of this machine, or PostgreSQL: postgresql://..."
        )
        raise InputError.from_text("ledger", text)
    return path


def refuse_other_names(path: Path) -> None:
    """``InputError`` for a file with hard links."""
    if path.stat().st_nlink == 1:
        return
    # The name under which the file was made does not count: it is unused, and removed here.
    # Its creator may be about to remove it, or was killed before it could.
    folder, ours = list[Path](), list[Path]()
    with suppress(OSError):
        folder = list(path.parent.iterdir())
    for part in folder:
        with suppress(FileNotFoundError):  # its creator was quicker
            if re.fullmatch(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.part", part.name) and part.samefile(path):
                ours.append(part)
    for part in ours:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    if path.stat().st_nlink - sum(part.exists() for part in ours) > 1:
        text = f"{path} has another name (a hard link), under which charges would be lost; remove the other name"
        raise InputError.from_text("ledger", text)


def part_name(path: Path) -> str:
    """Return the temporary name under which a ledger is created; its creator removes it afterwards."""
    return f".{path.name}.{secrets.token_hex(4)}.part"


def _mount_point(written: str) -> Path:
    r"""A mount point as the system writes it, with a space, tab, newline and backslash as three octal digits.

    >>> str(_mount_point("/a\\040b"))
    '/a b'
    """
    return Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), written))


def _file_system(folder: Path, mounts: str) -> str:
    r"""The kind of the file system that a folder is on, by the longest mount point above it.

    >>> _file_system(Path("/data/x"), "a / ext4 rw 0 0\nb /data nfs4 rw 0 0\n")
    'nfs4'
    """
    found, longest = "", -1
    for fields in (line.split() for line in mounts.splitlines()):
        if len(fields) < 3:
            continue
        point = _mount_point(fields[1])
        if (point == folder or point in folder.parents) and len(point.parts) >= longest:
            found, longest = fields[2], len(point.parts)
    return found


class HeadFile:
    """A small file next to a ledger that records its last entry: a restored older copy ends before it.

    It is written after every entry; a crash may leave it a few entries behind. A ledger that is behind it is an
    older copy. It does not detect deliberate changes; the certificates also name their entries.
    """

    def __init__(self, ledger: Path) -> None:
        self._ledger, self.path = ledger, ledger.with_name(f"{ledger.name}.head")

    def last_seen_entry(self) -> tuple[int, str] | None:
        """Return the number and the hash of the last recorded entry; None if the file is missing or malformed.

        Raises ``LedgerError`` for a head file that exists and cannot be read.
        """
        try:
            if self.path.is_file() and self.path.stat().st_size > LONGEST_WORD:
                raise LedgerError(f"{self.path} is not the head file of {self._ledger.name}; move it")
            number, _, found = self.path.read_text(encoding="ascii").strip().partition(" ")
            return int(number), found
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise LedgerError(
                f"{self.path} cannot be read ({error.strerror}), so an older copy of the ledger could not be detected; "
                f"let this user read and write it, or remove it if the ledger is the newest copy"
            ) from None

    def write_head(self, number: int, found: str) -> None:
        """Say how far the ledger has come; on a full disk the older word stays, and a ``LedgerWarning`` says so."""
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}-{threading.get_ident()}.part")
        try:
            part.unlink(missing_ok=True)
            with part.open("x", encoding="ascii") as file:  # never through an existing link
                file.write(f"{number} {found}\n")
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
        seen = self.last_seen_entry()  # first: a ledger that is being made has no witness before it is there
        try:
            size = self._ledger.stat().st_size  # one look: it may appear between two
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
