"""Limits on processor time and memory, so that a hang is a failure and a busy machine is not."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EXTRA = 4 << 30
"""Bytes that a block may ask for beyond what the process holds already."""


class OutOfPatienceError(Exception):
    """The block used more processor time than it may."""


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Inside: ``OutOfPatienceError`` after ``seconds`` of this process's time, ``MemoryError`` beyond ``EXTRA``."""

    def give_up(*_: object) -> None:
        raise OutOfPatienceError(f"more than {seconds} s of processor time")

    allowed = resource.getrlimit(resource.RLIMIT_AS)
    held = Path("/proc/self/statm")  # Linux only; elsewhere only time is limited
    if held.exists():
        size = int(held.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + EXTRA, allowed[1]))
    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, allowed)
