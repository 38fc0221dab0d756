"""What the page is answered: the numbers of a plan at once, exact or a stricter promise's, and the plan as a file."""

from __future__ import annotations

import threading
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from tightrope.errors import InputError
from tightrope.studio.plan_draft import GROUPS, KINDS, TYPES, around, drafted, figures, ladders, plain_columns, stricter
from tightrope.studio.plan_form import Opened, Promise, Wishes, toml_text

# One thread that computes what was asked last first, and keeps what it found: a slider never waits for a plan.

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


Json = dict[str, Any]
LONGEST_WAIT = 0.05
"""Seconds for which an answer waits for the exact numbers before it gives those of a stricter promise."""
AHEAD = 20
WRITTEN = "# Made with: tightrope studio. All settings: docs/plan-file.md\n\n"


@dataclass(frozen=True, slots=True)
class Lent:
    """What the command line lends the page: whole files on disk, its own release, an error in words without values.

    ``release`` charges the ledger of a saved plan and writes answers and report to a folder, as ``tightrope release``.
    """

    write: Callable[[Path, str], None]
    release: Callable[[Path, Path], None]
    told: Callable[[Exception], str]


@dataclass(frozen=True, slots=True)
class Place:
    """A plan as the worker knows it: all that it says but the promise, and the promise; ``wishes`` say both."""

    rest: str
    promise: Promise | None
    wishes: Wishes = field(compare=False, hash=False, repr=False)

    def at(self, promise: Promise) -> Place:
        """The same under another promise."""
        return Place(self.rest, promise, self.wishes)


class Desk:
    """One opened plan or table, and the plans that were computed for it. Reads the schema only; spends nothing.

    ``ahead``: so many stops of the slider are computed before anybody moves it there.
    """

    def __init__(self, opened: Opened, lent: Lent, *, ahead: int = AHEAD) -> None:
        self.opened, self.lent = opened, lent
        self._ahead = ahead
        self._plans: Worker[Place, Json] = Worker(self._figures, lent.told)
        self._own: str | None = None
        self._writing = threading.Lock()

    def start(self) -> Json:
        """What the page needs to be drawn: names and types of columns, what can be chosen, what is said at first."""
        wishes = self.opened.wishes
        return {
            "title": wishes.title,
            "columns": plain_columns(self.opened.columns),
            "typeless": self.opened.typeless,
            "types": list(TYPES),
            "groups": list(GROUPS),
            "kinds": [to_builtins(kind) for kind in KINDS],
            "ladders": ladders(wishes.promise),
            "asked": list(self.opened.asked),
            "wishes": to_builtins(wishes),
            "out": str(self.opened.out),
        }

    def look(self, wishes: Wishes) -> Json:
        """The figures of a plan, from what is computed already or within ``AT_ONCE``.

        ``state``: "exact"; "bound" where they are those of the stricter promise ``at``, whose noise would do as well;
        "working" where nothing is known yet; "problem", in words, where the plan cannot be made.
        """
        try:
            text, place = self.text(wishes), self._place(wishes)
        except InputError as error:  # somebody is still writing it
            return {"state": "problem", "problem": self.lent.told(error)}
        stops = around(wishes.promise)[1:] if wishes.promise is not None else []
        self._plans.want([place, *map(place.at, stops[: self._ahead])])
        found = self._plans.wait(place, LONGEST_WAIT)
        if isinstance(found, Failed):
            return {"state": "problem", "problem": found.problem}
        if found is not None:
            return {"state": "exact", "figures": found, "plan": text}
        return {"plan": text, **self._bound(place)}

    def end(self) -> None:
        """Nothing more is computed."""
        self._plans.end()

    def save(self, wishes: Wishes) -> Path:
        """The plan as a file that nothing else wrote; raises ``InputError`` where somebody else's is there."""
        with self.kept(self.text(wishes)) as path:
            return path

    @contextmanager
    def kept(self, text: str) -> Iterator[Path]:
        """A plan's text as the file, which nobody else writes meanwhile; it is read before anything is written."""
        self.opened.file(_tables(text))
        out = self.opened.out
        with self._writing:
            if out.exists() and out.read_text(encoding="utf-8") != self._own:
                raise InputError("out", str(out), "a file that this page wrote", "it was edited: try --out")
            self.lent.write(out, WRITTEN + text)
            self._own = WRITTEN + text
            yield out

    def text(self, wishes: Wishes) -> str:
        """The plan file: what is computed and what is saved is this very text."""
        return toml_text(drafted(self.opened, wishes))

    def _place(self, wishes: Wishes) -> Place:
        return Place(self.text(replace(wishes, promise=None)), wishes.promise, wishes)

    def _figures(self, place: Place) -> Json:
        return figures(self.opened.file(_tables(self.text(replace(place.wishes, promise=place.promise)))))

    def _bound(self, place: Place) -> Json:
        for stop in stricter(place.promise) if place.promise is not None else ():
            found = self._plans.found(place.at(stop))
            if isinstance(found, dict):
                return {
                    "state": "bound",
                    "figures": found,
                    "at": {"said": stop.said, "value": str(stop.value), "delta": str(stop.delta)},
                }
        return {"state": "working"}


def _tables(text: str) -> Json:
    return tomllib.loads(text, parse_float=Decimal)
