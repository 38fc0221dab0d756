"""Signals that ask to stop: at once while nothing is spent; afterwards when the paid answers are on disk."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from tightrope.cli.failures import Stopped
from tightrope.cli.signals import NOTHING_SPENT

STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
WAITS = b"tightrope: the budget is spent; stopping when the answers are written (Ctrl-C again gives them up)\n"


class Patience:
    """What has been asked for: ``stop`` is the first signal after the charge; ``answered``: there are answers."""

    def __init__(self, charged: Callable[[], bool]) -> None:
        self._charged = charged
        self.stop: int | None = None
        self.answered = False

    def got(self) -> None:
        """There are answers now."""
        self.answered = True

    def handle(self, number: int, _: FrameType | None) -> None:
        """The handler: raises ``Stopped`` before the charge, and for a second Ctrl-C before there are answers."""
        if not self._charged():
            raise Stopped(NOTHING_SPENT, number)
        if self.stop is not None and number == signal.SIGINT and not self.answered:
            raise Stopped("interrupted", number)
        self.stop = self.stop or number
        with suppress(OSError):
            os.write(2, WAITS)


@contextmanager
def patient(charged: Callable[[], bool]) -> Iterator[Patience]:
    """Within it, signals to stop wait from the moment when ``charged()`` until its end."""
    patience = Patience(charged)
    before = {number: signal.signal(number, patience.handle) for number in STOPS}
    try:
        yield patience
    except KeyboardInterrupt as stop:  # DuckDB's own, whatever the handler raised
        said = str(stop) or ("interrupted" if charged() else NOTHING_SPENT)
        raise Stopped(said, patience.stop or signal.SIGINT) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
