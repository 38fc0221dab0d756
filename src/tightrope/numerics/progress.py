"""Progress of long computations: loops state how far they are, and a caller may listen, for example to draw a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")


class ProgressListener:
    """Calls ``report`` with the completed fraction of the outermost loop; a loop inside is a part of one step of it."""

    def __init__(self, report: Callable[[float], None]) -> None:
        self._report, self._largest_fraction = report, 0.0
        self.levels: list[tuple[int, int]] = []
        """The completed steps, and the number of steps, of each loop, outermost first."""

    def report_progress(self) -> None:
        """Report the completed fraction, which never decreases: a loop may be followed by another one."""
        fraction, step_size = 0.0, 1.0
        for done, total in self.levels:
            step_size /= total
            fraction += done * step_size
        self._largest_fraction = max(self._largest_fraction, min(fraction, 1.0))
        self._report(self._largest_fraction)


_LISTENER: ContextVar[ProgressListener | None] = ContextVar("progress listener", default=None)


@contextmanager
def listen_to_progress(report: Callable[[float], None]) -> Iterator[None]:
    """Within this context, call ``report`` with the completed fraction whenever a loop of ``with_progress`` goes on.

    >>> fractions = []
    >>> with listen_to_progress(fractions.append):
    ...     for _ in with_progress("ab"):
    ...         for _ in with_progress("cd"):
    ...             pass
    >>> fractions
    [0.0, 0.0, 0.25, 0.5, 0.5, 0.75]
    """
    token = _LISTENER.set(ProgressListener(report))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def with_progress(items: Sequence[Item], *, before: int = 0, after: int = 0) -> Iterator[Item]:
    """Yield the items, and report how many of them are done.

    ``before`` and ``after`` are the numbers of steps of the same work outside of this loop.
    """
    listener = _LISTENER.get()
    if listener is None:
        yield from items
        return
    depth, total = len(listener.levels), before + len(items) + after
    try:
        for index, item in enumerate(items):
            listener.levels[depth:] = [(before + index, total)]
            listener.report_progress()
            yield item
    finally:
        del listener.levels[depth:]
