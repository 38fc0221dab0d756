"""One thread that computes what was asked last first, and keeps what it found: a slider never waits for a plan."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")
MOST_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class Failed:
    """What went wrong, in words."""

    problem: str


class Worker(Generic[Key, Found]):
    """Computes ``compute(key)`` for keys that are wanted, in the order of the last ``want``; an error is ``told``.

    What was found is kept for as many keys as ``MOST_KEPT``, the latest used.
    """

    def __init__(self, compute: Callable[[Key], Found], told: Callable[[Exception], str]) -> None:
        self._compute, self._told = compute, told
        self._kept: OrderedDict[Key, Found | Failed] = OrderedDict()
        self._wanted: list[Key] = []
        self._ended = False
        self._news = threading.Condition()
        threading.Thread(target=self._run, name="plans", daemon=True).start()

    def end(self) -> None:
        """Let the thread end after what it computes now."""
        with self._news:
            self._ended = True
            self._news.notify_all()

    def want(self, keys: Sequence[Key]) -> None:
        """These next, in this order, and nothing that was wanted before."""
        with self._news:
            self._wanted = [key for key in keys if key not in self._kept]
            self._news.notify_all()

    def found(self, key: Key) -> Found | Failed | None:
        """What is known now."""
        with self._news:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def wait(self, key: Key, seconds: float) -> Found | Failed | None:
        """What is known within so many seconds."""
        with self._news:
            self._news.wait_for(lambda: key in self._kept, timeout=seconds)
        return self.found(key)

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._ended or bool(self._wanted))
                if self._ended:
                    return
                key = self._wanted.pop(0)
            found = self._computed(key)
            with self._news:
                self._kept[key] = found
                self._wanted = [other for other in self._wanted if other != key]
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
                self._news.notify_all()

    def _computed(self, key: Key) -> Found | Failed:
        try:
            return self._compute(key)
        except Exception as error:
            return Failed(self._told(error))
