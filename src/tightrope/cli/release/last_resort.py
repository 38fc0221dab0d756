"""Answers that are paid for and cannot be written where they belong: somewhere else, or on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tightrope.cli.release.folder import keep_elsewhere
from tightrope.errors import OutputError

SPENT = "the budget was spent"


@contextmanager
def kept_anyway(folder: Path, texts: Mapping[str, str]) -> Iterator[None]:
    """Whatever goes wrong within leaves as ``OutputError`` that says where the texts are, by name, first one first."""
    try:
        yield
    except Exception as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise OutputError(f"{folder} could not be written ({why}); {SPENT}, and {_saved(folder, texts)}") from None


def _saved(folder: Path, texts: Mapping[str, str]) -> str:
    """Where they lie, in words."""
    there = [name for name, text in texts.items() if _holds(folder / name, text)]
    if len(there) == len(texts):
        return f"the answers are complete in {folder}: {', '.join(there)}"
    try:
        return f"the answers are in {keep_elsewhere(texts)}"
    except OSError:
        return _printed(next(iter(texts.values())))


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except OSError:
        return False


def _printed(text: str) -> str:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        return "the answers could be written nowhere: they are lost, and nobody has seen them"
    return "the answers are on standard output and nowhere else: keep them"
