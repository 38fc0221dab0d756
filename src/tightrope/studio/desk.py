"""What the page is answered: the numbers of a plan at once, exact or a stricter promise's, and the plan as a file."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from tightrope.errors import InputError
from tightrope.studio.draft import drafted, plain_columns
from tightrope.studio.figures import figures
from tightrope.studio.offers import GROUPS, KINDS, TYPES, around, ladders, stricter
from tightrope.studio.opened import Opened
from tightrope.studio.toml_text import toml_text
from tightrope.studio.wishes import Promise, Wishes
from tightrope.studio.worker import Failed, Worker

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
                return {"state": "bound", "figures": found, "at": _said(stop)}
        return {"state": "working"}


def _tables(text: str) -> Json:
    return tomllib.loads(text, parse_float=Decimal)


def _said(promise: Promise) -> Json:
    return {"said": promise.said, "value": str(promise.value), "delta": str(promise.delta)}
