"""Where a release writes: room is made before the budget is spent, and each file is whole on disk or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tightrope.cli.output import file_mode
from tightrope.cli.release.parts import FILE_ROOM, Part
from tightrope.errors import InputError


@dataclass(frozen=True, slots=True)
class Reserved:
    """A folder with room for named files, each of them under no name, or a hidden one, until it is complete."""

    folder: Path
    parts: Mapping[str, Part]

    def keep(self, texts: Mapping[str, str | bytes]) -> None:
        """The files with these contents: all written and on disk, then each moved to its name in one step, in order."""
        for name, text in texts.items():
            self.parts[name].fill(text.encode() if isinstance(text, str) else text)
        for name in texts:
            self.parts[name].place()
        _sync(self.folder)


@contextmanager
def reserved(folder: Path, names: Sequence[str], *, replace: bool) -> Iterator[Reserved]:
    """Room for the files, for one release at a time. Parts that a killed program left behind are removed.

    Raises ``InputError`` where a file is there already (unless it may be replaced), where another release is writing,
    and where there is no room.
    """
    with ExitStack() as stack:
        stack.enter_context(_locked(folder, names))
        refuse_existing(folder, names, replace=replace)
        parts: dict[str, Part] = {}
        try:
            for name in names:
                parts[name] = Part.made(folder / name)
                stack.callback(parts[name].drop)
        except OSError as error:
            raise _no_room(folder, error) from None
        yield Reserved(folder, parts)


def existing(folder: Path, names: Sequence[str]) -> list[str]:
    """Which of these files are there: of a release that lies in the folder."""
    return [name for name in names if (folder / name).exists()]


def refuse_existing(folder: Path, names: Sequence[str], *, replace: bool) -> None:
    """``InputError`` where a release lies in the folder already: it was paid for."""
    there = existing(folder, names)
    if there and not replace:
        expected = f"a folder without {there[0]}"
        raise InputError("out", str(folder), expected, "a release is kept: choose --out, or --force to replace it")


def keep_elsewhere(texts: Mapping[str, str]) -> Path:
    """The files in a new private folder for temporary files: the last resort for answers that are paid."""
    folder = Path(tempfile.mkdtemp(prefix="tightrope-release-"))
    for name, text in texts.items():
        (folder / name).touch(mode=0o600)
        _fill(folder / name, text.encode())
    _sync(folder)
    return folder


def _fill(path: Path, content: bytes) -> None:
    """Exactly this content, on disk."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()
        file.flush()
        os.fchmod(file.fileno(), file_mode())
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """The names in a folder, on disk; a file system that cannot do that has them when it can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _no_room(folder: Path, error: OSError) -> InputError:
    expected = f"a folder with room for {FILE_ROOM // 2**20} MiB a file ({error.strerror})"
    return InputError("out", str(folder), expected, "nothing was spent; choose another one with --out")


@contextmanager
def _locked(folder: Path, names: Sequence[str]) -> Iterator[None]:
    """The folder for this program alone; who has it may remove what a killed one left behind."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if _lock(handle, folder):
            for part in [part for name in names for part in folder.glob(f".{name}.*.part")]:
                part.unlink(missing_ok=True)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> bool:
    """Whether the folder is ours alone; a file system without locks does not say."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        remedy = "wait for it, or choose another one with --out"
        raise InputError("out", str(folder), "a folder that no other release is writing to", remedy) from None
    except OSError:
        return False
    return True
