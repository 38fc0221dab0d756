"""Output files of a release: space is reserved before the budget is spent; each file is complete or absent."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tightrope.cli.output import file_mode
from tightrope.errors import InputError, OutputError

# A file that is not there yet: room on a disk, under no name where the system can do that, until it is complete.

FILE_ROOM = 4 * 2**20
"""Bytes set aside for each file: most are smaller, so that a full disk shows before anything is spent."""
CANNOT_RESERVE = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS)
"""Error codes of file systems that cannot reserve space."""
OPEN_FILES = Path("/proc/self/fd")


@dataclass(slots=True)
class AtomicFile:
    """The file to be called ``target``: ``path`` is its hidden name, None while it has none.

    What has no name is gone with the program, however that ends.
    """

    target: Path
    handle: int
    path: Path | None

    @classmethod
    def create_part(cls, target: Path) -> Self:
        """An empty part with space for the file. Raises ``OSError`` if the disk is full."""
        handle, name = None, None
        flag = getattr(os, "O_TMPFILE", None)
        # A file under no name, that can be given one later, where the system has such.
        if flag is not None and OPEN_FILES.is_dir():
            with suppress(OSError):
                handle = os.open(target.parent, flag | os.O_RDWR, 0o600)
        if handle is None:
            handle, name = _open_named_file(target)
        part = cls(target, handle, name)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle, 0, FILE_ROOM)
        except OSError as error:
            if error.errno not in CANNOT_RESERVE:
                part.discard_file()
                raise
        return part

    def write_content(self, content: bytes) -> None:
        """Exactly this content, on disk, under a hidden name; where no name can be given, in a new file."""
        _write_to_disk(self.handle, content)
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
            self.handle, self.path = _open_named_file(self.target)
            _write_to_disk(self.handle, content)

    def discard_file(self) -> None:
        """Let go of it; what was not placed is gone."""
        with suppress(OSError):
            os.close(self.handle)
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _open_named_file(target: Path) -> tuple[int, Path]:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    return handle, Path(name)


def _write_to_disk(handle: int, content: bytes) -> None:
    """Exactly this content, on disk."""
    os.lseek(handle, 0, os.SEEK_SET)
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]
    os.ftruncate(handle, len(content))
    os.fchmod(handle, file_mode())
    os.fsync(handle)


@dataclass(frozen=True, slots=True)
class ReservedFiles:
    """A folder with room for named files, each of them under no name, or a hidden one, until it is complete."""

    folder: Path
    parts: Mapping[str, AtomicFile]

    def store_files(self, texts: Mapping[str, str | bytes]) -> None:
        """The files with these contents: all written and on disk, then each moved to its name in one step, in order."""
        for name, text in texts.items():
            self.parts[name].write_content(text.encode() if isinstance(text, str) else text)
        for name in texts:
            part = self.parts[name]
            if part.path is not None:
                part.path.replace(part.target)
        _sync_folder(self.folder)


@contextmanager
def reserve_files(folder: Path, names: Sequence[str], *, replace: bool) -> Iterator[ReservedFiles]:
    """Room for the files, for one release at a time. Parts that a killed program left behind are removed.

    Raises ``InputError`` where a file is there already (unless it may be replaced), where another release is writing,
    and if the disk is full.
    """
    with ExitStack() as stack:
        # The folder for this program alone; who has it may remove what a killed one left behind.
        handle = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            remedy = "wait for it, or choose another one with --out"
            raise InputError("out", str(folder), "a folder that no other release is writing to", remedy) from None
        except OSError:
            pass  # a file system without locks
        else:
            for part in [part for name in names for part in folder.glob(f".{name}.*.part")]:
                part.unlink(missing_ok=True)
        refuse_existing(folder, names, replace=replace)
        parts: dict[str, AtomicFile] = {}
        try:
            for name in names:
                parts[name] = AtomicFile.create_part(folder / name)
                stack.callback(parts[name].discard_file)
        except OSError as error:
            expected = f"a folder with room for {FILE_ROOM // 2**20} MiB a file ({error.strerror})"
            raise InputError("out", str(folder), expected, "nothing was spent; choose another one with --out") from None
        yield ReservedFiles(folder, parts)


def refuse_existing(folder: Path, names: Sequence[str], *, replace: bool) -> None:
    """Raise ``InputError`` if the folder already contains a release."""
    there = [name for name in names if (folder / name).exists()]
    if there and not replace:
        text = (
            f"{folder_text(folder)} already contains a release ({there[0]}); choose another folder with --out DIR, or "
            f"overwrite its files with --force, which makes a new release and charges it"
        )
        raise InputError.from_text("output folder", text)


def folder_text(folder: Path) -> str:
    """Return the name of a folder in a sentence.

    >>> folder_text(Path()), folder_text(Path("out"))
    ('the current folder', 'out')
    """
    return "the current folder" if folder == Path() else str(folder)


def keep_elsewhere(texts: Mapping[str, str]) -> Path:
    """The files in a new private folder for temporary files: the last resort for answers that are paid."""
    folder = Path(tempfile.mkdtemp(prefix="tightrope-release-"))
    for name, text in texts.items():
        (folder / name).touch(mode=0o600)
        # Exactly this content, on disk.
        path = folder / name
        content = text.encode()
        with path.open("r+b") as file:
            file.write(content)
            file.truncate()
            file.flush()
            os.fchmod(file.fileno(), file_mode())
            os.fsync(file.fileno())
    _sync_folder(folder)
    return folder


def _sync_folder(folder: Path) -> None:
    """The names in a folder, on disk; a file system that cannot do that has them when it can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Answers that are paid for and cannot be written where they belong: somewhere else, or on standard output.

SPENT = "the budget was spent"


@contextmanager
def report_unwritten_texts(folder: Path, texts: Mapping[str, str]) -> Iterator[None]:
    """Turn errors within into ``OutputError`` with the locations of the texts, by name, first one first."""
    try:
        yield
    except Exception as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise OutputError(
            f"{folder} could not be written ({why}); {SPENT}, and {_saved_locations(folder, texts)}"
        ) from None


def _saved_locations(folder: Path, texts: Mapping[str, str]) -> str:
    """The files' locations as text."""
    there: list[str] = []
    for name, text in texts.items():
        with suppress(OSError):
            if (folder / name).read_text(encoding="utf-8") == text:
                there.append(name)
    if len(there) == len(texts):
        return f"the answers are complete in {folder}: {', '.join(there)}"
    try:
        return f"the answers are in {keep_elsewhere(texts)}"
    except OSError:
        printed_text = next(iter(texts.values()))
        try:
            sys.stdout.write(printed_text)
            sys.stdout.flush()
        except OSError:
            return "the answers could be written nowhere: they are lost, and nobody has seen them"
        return "the answers are on standard output and nowhere else: keep them"
