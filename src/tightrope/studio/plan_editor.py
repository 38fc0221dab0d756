"""From what the page says to the tables of a plan file, which every number is computed from."""

from __future__ import annotations

import itertools
import threading
import tomllib
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from msgspec import to_builtins
from msgspec.structs import replace

from tightrope.documents.escaping import A_PERSON, printable
from tightrope.documents.numbers import UP, Guesses, one_in, percent, significant, times
from tightrope.errors import InputError, PlanError, SchemaError, listed, nearest
from tightrope.queries.accuracy import Accuracy
from tightrope.reporting.wording.sentences import withheld
from tightrope.studio.plan_form import SAID, Opened, Promise, Said, Wish, Wishes, toml_text
from tightrope.tables import Column

if TYPE_CHECKING:
    from tightrope.release.plan_file import PlanFile

# What the page offers to choose from: kinds of questions with their fields, and the stops of its sliders.

NUMBER_KINDS = "integer", "number"
GROUPS = "text", "boolean", "integer", "date"
TYPES = "text", "integer", "number", "boolean", "date", "timestamp"
"""What a column of a CSV file can be declared as."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question in plain words, and the fields that it takes besides groups and a weight."""

    kind: str
    words: str
    fields: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """Kinds of columns that it can be asked of."""


KINDS = (
    Kind("count", "How many rows there are"),
    Kind("mean", "The average of a column", ("column", "between"), NUMBER_KINDS),
    Kind("sum", "The sum of a column", ("column", "between"), NUMBER_KINDS),
    Kind("quantile", "The median, or another quantile, of a column", ("column", "between", "q"), NUMBER_KINDS),
    Kind("histogram", "How the values of a column are spread", ("column", "between", "width"), NUMBER_KINDS),
    Kind("standard_deviation", "How far values lie from their average", ("column", "between"), NUMBER_KINDS),
)
LADDERS: dict[Said, tuple[str, ...]] = {
    "attack_success": tuple(f"0.{percent}" for percent in (51, 52, 53, 54, 55, 57, 60, 63, 66, 70, 75, 80, 85, 90, 95)),
    "total_variation": (
        "0.02", "0.04", "0.06", "0.08", "0.1", "0.14", "0.2", "0.26", "0.32", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9",
    ),
    "epsilon": (
        "0.05", "0.1", "0.15", "0.2", "0.3", "0.4", "0.5", "0.7", "1", "1.4", "2", "2.5", "3", "4", "5", "7", "10",
    ),
}  # fmt: skip
"""The stops of each slider, the strictest first."""
DELTAS = tuple(f"1e-{digits}" for digits in (12, 10, 9, 8, 7, 6, 5, 4))


def around(promise: Promise) -> list[Promise]:
    """The stops of the slider on which a promise lies, at its δ: first it, then its neighbours, then those between.

    So the next move of a hand finds its answer, and wherever it jumps there is one that is a little stricter.
    """
    stops = sorted({promise.value, *map(Decimal, LADDERS[promise.said])})
    here = stops.index(promise.value)
    # Every eighth stop first, then every fourth, every other, all.
    ordered = sorted(
        range(len(stops)),
        key=lambda place: (
            abs(place - here) > 1,
            next(level for level, step in enumerate((8, 4, 2, 1)) if place % step == 0),
            abs(place - here),
        ),
    )
    at = [Promise(said=promise.said, value=stops[place], delta=promise.delta) for place in ordered]
    return [promise, *(one for one in at if one != promise)]


def stricter(promise: Promise) -> list[Promise]:
    """The stops that keep a promise, at its δ and at smaller ones, the least strict first."""
    values = sorted({promise.value, *map(Decimal, LADDERS[promise.said])}, reverse=True)
    deltas = sorted({promise.delta, *map(Decimal, DELTAS)}, reverse=True)
    all_stops = (Promise(said=promise.said, value=v, delta=d) for v, d in itertools.product(values, deltas))
    return [stop for stop in all_stops if stop.keeps(promise)]


def ladders(own: Promise | None) -> dict[str, list[str]]:
    """Every slider's stops, with those of a plan's own promise among them."""
    values: dict[str, set[Decimal]] = {said: set(map(Decimal, LADDERS[said])) for said in SAID}
    values["delta"] = set(map(Decimal, DELTAS))
    if own is not None:
        values[own.said].add(own.value)
        values["delta"].add(own.delta)
    return {name: [str(value) for value in sorted(stops)] for name, stops in values.items()}


FIRST, LAST = ("document", "version", "title", "description", "origin", "publisher", "date", "contact"), ("question",)
PROMISES = "epsilon", "delta", "attack_success", "points"


def drafted(opened: Opened, wishes: Wishes) -> dict[str, Any]:
    """The tables of the plan: those that were opened, with what the page says in place of theirs.

    Raises ``PlanError`` or ``SchemaError`` for what the schema or the plan does not have: the page chooses from names
    that are there, and nothing that it says is read as an expression.
    """
    own = opened.tables
    if (wishes.who.column is None) != wishes.who.each_row:
        expected = "a column that says whose row it is, or that each row is a person"
        raise PlanError("person", wishes.who.column, expected, "choose one of them under 1: all else follows from it")
    if wishes.who.column is None:
        person_said = {"each_row": True, "means": wishes.who.means}
    else:
        _column(opened, wishes.who.column)
        person_said = {
            name: getattr(wishes.who, name) for name in ("column", "rows", "rows_per_group", "groups", "means")
        }
    if not wishes.questions:
        raise PlanError("question", None, "given, once or more", "add a question")
    said = {
        "title": wishes.title,
        "expected_rows": wishes.expected_rows,
        "source": _source(opened, wishes),
        "person": {name: value for name, value in person_said.items() if value not in (None, A_PERSON)},
        "budget": _budget(own.get("budget", {}), wishes.promise, wishes.share),
        "question": [
            _reweighted_question(opened, wish) if wish.kept is not None else _chosen(opened, wish)
            for wish in wishes.questions
        ],
    }
    tables = {name: value for name, value in {**own, **said}.items() if value is not None}
    order = sorted(tables, key=lambda name: (name not in FIRST, name in LAST))
    return {name: tables[name] for name in order}


def _source(opened: Opened, wishes: Wishes) -> dict[str, Any]:
    source = dict(opened.tables["source"])
    if not opened.typeless:
        return source
    for name, kind in wishes.types.items():
        _column(opened, name)
        if kind not in TYPES:
            raise PlanError("types", kind, f"one of {listed(TYPES)}", nearest(kind, TYPES))
    declared = {name: kind for name, kind in wishes.types.items() if kind != "text"}
    source.pop("types", None)
    return source | ({"types": declared} if declared else {})


def _budget(own: Mapping[str, Any], promise: Promise | None, share: Decimal | None) -> dict[str, Any]:
    kept = {name: value for name, value in own.items() if promise is None or name not in PROMISES}
    kept = {name: value for name, value in kept.items() if name != "share"}
    part = {} if share in (None, Decimal(1)) else {"share": share}
    if promise is None:
        return kept | part
    if promise.said == "total_variation":  # a plan file says the same as the success of a guess: (1 + eta) / 2
        return {"attack_success": (1 + promise.value) / 2, "delta": promise.delta, **part, **kept}
    return {promise.said: promise.value, "delta": promise.delta, **part, **kept}


def _reweighted_question(opened: Opened, wish: Wish) -> dict[str, Any]:
    """A question of the plan that was opened, with another weight where one is said."""
    own = opened.tables.get("question", []) if opened.given else []
    if wish.kept is None or not 0 <= wish.kept < len(own):
        expected = f"the number of one of the plan's {len(own)} questions"
        raise PlanError("kept", wish.kept, expected, "load the page again")
    return dict(own[wish.kept]) | ({} if wish.weight is None else {"weight": wish.weight})


def _chosen(opened: Opened, wish: Wish) -> dict[str, Any]:
    kind = next((kind for kind in KINDS if kind.kind == wish.kind), None)
    if kind is None:
        raise PlanError("kind", wish.kind, f"one of {listed(tuple(kind.kind for kind in KINDS))}")
    said = {name: _field(opened, wish, name) for name in kind.fields}
    said |= {"by": [_column(opened, name) for name in wish.by], "keys": list(wish.keys), "weight": wish.weight}
    entry = {name: value for name, value in said.items() if value not in (None, [], 1.0)}
    # Quantiles of one column differ by their q: the name says which.
    if kind.kind != "quantile" or wish.q is None:
        named = {}
    else:
        what = "median" if wish.q == 0.5 else f"quantile_{wish.q:g}"
        named = {"name": "_".join([what, wish.column or "", *(["by", *wish.by] if wish.by else [])])}
    return {"kind": kind.kind, **entry, **named}


def _field(opened: Opened, wish: Wish, name: str) -> Any:
    given = getattr(wish, name)
    if name == "column":
        return _column(opened, given or "")
    return list(given) if isinstance(given, tuple) else given


def _column(opened: Opened, name: str) -> str:
    """The name of a column that is there; how the table's own schema says it is not."""
    names = tuple(column.name for column in opened.columns)
    if name not in names:
        raise SchemaError("column", name, f"one of {listed(names)}", nearest(name, names))
    return name


def plain_columns(columns: tuple[Column, ...]) -> list[dict[str, str]]:
    """Names and types: all that the page is told of a table."""
    return [{"name": column.name, "kind": column.kind} for column in columns]


# How large a group must be for an answer to mean something, by the errors that the plan itself states.

CLOSE_ENOUGH = 0.05
"""What is close enough: of the rows for a count or a sum, of the declared range for anything else."""
TENTHS = 10, 12, 15, 20, 25, 30, 40, 50, 60, 80
SIZES = (*range(1, 10), *(tenths * 10**power for power in range(8) for tenths in TENTHS))
"""Sizes that are tried."""


def rows_needed(accuracy: Accuracy) -> int | None:
    """The least of ``SIZES`` at which 95 % of answers are ``CLOSE_ENOUGH``; None where none is, or nothing is stated.

    Errors relative to a group fall as it grows, so that a bisection finds it; the answer itself is always checked.
    """
    if not _reach(accuracy, 1):
        return None
    place = bisect_left(SIZES, True, key=lambda rows: _close(accuracy, rows))
    return SIZES[place] if place < len(SIZES) else None


def close_words(accuracy: Accuracy) -> str:
    """What ``CLOSE_ENOUGH`` means for the question."""
    if accuracy.question.counts or accuracy.question.kind == "histogram":
        return "5 % of the group"
    if accuracy.question.kind == "sum":
        return "5 % of the largest sum possible"
    return f"± {significant(CLOSE_ENOUGH * _reach(accuracy, 1), 3)}, a twentieth of the range"


def _close(accuracy: Accuracy, rows: int) -> bool:
    # not accuracy.at: how often so large a group is withheld is an exact fraction of a great many digits
    _, half = accuracy.question.errors(accuracy.named, rows)
    return half <= CLOSE_ENOUGH * _reach(accuracy, rows)


def _reach(accuracy: Accuracy, rows: int) -> float:
    """What an error is compared with; 0 where there is nothing to compare with."""
    question = accuracy.question
    if question.counts or question.kind == "histogram":
        return rows
    ranges = [ends for _, ends in question.ranges if ends is not None]
    if not ranges:
        return 0.0
    low, high = ranges[0]
    return rows * max(abs(low), abs(high)) if question.kind == "sum" else high - low


def rows_words(rows: int | None) -> str:
    """The number for people.

    >>> rows_words(20_000), rows_words(None)
    ('20,000', '–')
    """
    return significant(None if rows is None else float(rows))


# What the page shows of a plan: the promise in words, the errors of its questions, the trade-off curve.

ALARM_RATES = tuple(float(rate) for rate in (1 - np.cos(np.pi * np.arange(13) / 12)) / 2)
"""Rates of false alarms at which the curve is drawn."""
Json = dict[str, Any]


def figures(file: PlanFile) -> Json:
    """All numbers of a plan, computed as ``tightrope plan`` does: reads the schema only, and spends nothing."""
    draft = file.plan().draft
    data = draft.to_data()
    epsilon, eta, success = data["epsilon"], data["total_variation"], data["attack_success"]
    # How many people an attacker recognises at most, at each rate of false alarms.
    found = draft.loss.true_positive_rate(np.array(ALARM_RATES[1:-1]))
    between = [[rate, float(caught)] for rate, caught in zip(ALARM_RATES[1:-1], found, strict=True)]
    return {
        "attacker": data["attacker"],
        "protected": str(data["neighbours"].get("statement", "")),
        "attack_success": success,
        "success": percent(success, UP),
        "total_variation": percent(eta, UP),
        "epsilon": significant(epsilon, 3, UP),
        "likelier": times(epsilon),
        "guesses": Guesses.of(success).right,
        "delta": significant(data["delta"], 2, UP),
        "slack": one_in(data["delta"]) if data["delta"] > 0 else "never",
        "share": data["share"],
        "answers": [
            _answer(answer, accuracy) for answer, accuracy in zip(data["answers"], draft.accuracies(), strict=True)
        ],
        "curve": [[0.0, float(draft.loss.true_positive_rate(0.0))], *between, [1.0, 1.0]],
        "rows_per_person": draft.person.rows if draft.person.column is not None else 1,
    }


def _answer(answer: Json, accuracy: Accuracy) -> Json:
    error, rows = answer["error"], rows_needed(accuracy)
    return {
        "name": printable(answer["name"]),
        "question": answer["question"],
        "meaning": answer["meaning"],
        "groups": answer["keys"],
        "half_width": error["half_width_95"],
        "within": significant(error["half_width_95"], 3, UP),
        "sizes": [
            {
                "rows": significant(float(size["rows"])),
                "within": significant(size["half_width_95"], 3, UP),
                "withheld": withheld(size["suppressed"]),
            }
            for size in error["by_group_size"]
        ],
        "uniform": error["half_width_95"] is not None,
        "needed": rows_words(rows),
        "close": close_words(accuracy),
        "noise": "; ".join(sorted({noise["family"] for noise in answer["noise"]})),
        "notes": list(answer["notes"]),
    }


# What the page is answered: the numbers of a plan at once, exact or a stricter promise's, and the plan as a file.

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

    def finished_result(self, key: Key) -> Found | Failed | None:
        """What is known now."""
        with self._news:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def wait(self, key: Key, seconds: float) -> Found | Failed | None:
        """What is known within so many seconds."""
        with self._news:
            self._news.wait_for(lambda: key in self._kept, timeout=seconds)
        return self.finished_result(key)

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


PlanEditorJson = dict[str, Any]
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
        self._plans: Worker[Place, PlanEditorJson] = Worker(self._figures, lent.told)
        self._own: str | None = None
        self._writing = threading.Lock()

    def start(self) -> PlanEditorJson:
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
            "asked": list(self.opened.question_words),
            "wishes": to_builtins(wishes),
            "out": str(self.opened.out),
        }

    def look(self, wishes: Wishes) -> PlanEditorJson:
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
        with self.plan_on_disk(self.text(wishes)) as path:
            return path

    @contextmanager
    def plan_on_disk(self, text: str) -> Iterator[Path]:
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

    def _figures(self, place: Place) -> PlanEditorJson:
        return figures(self.opened.file(_tables(self.text(replace(place.wishes, promise=place.promise)))))

    def _bound(self, place: Place) -> PlanEditorJson:
        for stop in stricter(place.promise) if place.promise is not None else ():
            found = self._plans.finished_result(place.at(stop))
            if isinstance(found, dict):
                return {
                    "state": "bound",
                    "figures": found,
                    "at": {"said": stop.said, "value": str(stop.value), "delta": str(stop.delta)},
                }
        return {"state": "working"}


def _tables(text: str) -> PlanEditorJson:
    return tomllib.loads(text, parse_float=Decimal)
