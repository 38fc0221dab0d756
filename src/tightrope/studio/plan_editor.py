"""Turn the form of the page into a plan file, and compute all numbers of that plan."""

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

from tightrope.documents.escaping import A_PERSON, escape_control_chars
from tightrope.documents.numbers import UP, Guesses, percent_text, significant_text
from tightrope.documents.release import PlannedAnswer, displayed_title
from tightrope.documents.wording import DELTA_ADVICE, DELTA_NAME, likelihood_limit_text
from tightrope.errors import InputError, PlanError, SchemaError, quoted_names, suggest_nearest
from tightrope.queries.accuracy import Accuracy
from tightrope.reporting.wording.sentences import suppression_text
from tightrope.studio.plan_form import SAID, EditorState, PlanForm, PromiseForm, QuestionForm, Said, toml_text
from tightrope.tables import Column

if TYPE_CHECKING:
    from tightrope.queries.query import Query
    from tightrope.release.plan_file import PlanFile

# Choices that the page offers: kinds of questions with their fields, and the stops of its sliders.

NUMBER_KINDS = "integer", "number"
GROUPS = "text", "boolean", "integer", "date"
TYPES = "text", "integer", "number", "boolean", "date", "timestamp"
"""Types that a column of a CSV file can be declared as."""


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question: its description and its fields, except groups and weight."""

    kind: str
    words: str
    fields: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """Kinds of columns that the question applies to."""


KINDS = (
    QuestionKind("count", "The number of rows"),
    QuestionKind("mean", "The mean of a column", ("column", "bounds"), NUMBER_KINDS),
    QuestionKind("sum", "The sum of a column", ("column", "bounds"), NUMBER_KINDS),
    QuestionKind("quantile", "The median, or another quantile, of a column", ("column", "bounds", "q"), NUMBER_KINDS),
    QuestionKind("histogram", "The distribution of a column (histogram)", ("column", "bounds", "width"), NUMBER_KINDS),
    QuestionKind("standard_deviation", "The standard deviation of a column", ("column", "bounds"), NUMBER_KINDS),
)
KINDS_BY_NAME = {kind.kind: kind for kind in KINDS}
LADDERS: dict[Said, tuple[str, ...]] = {
    "attack_success": tuple(f"0.{percent}" for percent in (51, 52, 53, 54, 55, 57, 60, 63, 66, 70, 75, 80, 85, 90, 95)),
    "total_variation": (
        "0.02", "0.04", "0.06", "0.08", "0.1", "0.14", "0.2", "0.26", "0.32", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9",
    ),
    "epsilon": (
        "0.05", "0.1", "0.15", "0.2", "0.3", "0.4", "0.5", "0.7", "1", "1.4", "2", "2.5", "3", "4", "5", "7", "10",
    ),
}  # fmt: skip
"""Stops of each slider, strictest first."""
DELTAS = tuple(f"1e-{digits}" for digits in (12, 10, 9, 8, 7, 6, 5, 4))


def nearby_stops(promise: PromiseForm) -> list[PromiseForm]:
    """Return the slider's stops at the promise's δ: the promise first, then its neighbors, then a coarse-to-fine order.

    Results are computed in this order, so that the next move of the slider and any jump soon have a stricter stop
    ready.
    """
    stops = sorted({promise.value, *map(Decimal, LADDERS[promise.said])})
    here = stops.index(promise.value)
    # Every eighth stop first, then every fourth, every second, all.
    ordered = sorted(
        range(len(stops)),
        key=lambda place: (
            abs(place - here) > 1,
            next(level for level, step in enumerate((8, 4, 2, 1)) if place % step == 0),
            abs(place - here),
        ),
    )
    at = [PromiseForm(said=promise.said, value=stops[place], delta=promise.delta) for place in ordered]
    return [promise, *(one for one in at if one != promise)]


def stricter_promises(promise: PromiseForm) -> list[PromiseForm]:
    """Return the stops that keep a promise, at its δ and at smaller ones, least strict first."""
    values = sorted({promise.value, *map(Decimal, LADDERS[promise.said])}, reverse=True)
    deltas = sorted({promise.delta, *map(Decimal, DELTAS)}, reverse=True)
    all_stops = (PromiseForm(said=promise.said, value=v, delta=d) for v, d in itertools.product(values, deltas))
    return [stop for stop in all_stops if stop.is_at_least_as_strict(promise)]


def slider_stops(own: PromiseForm | None) -> dict[str, list[str]]:
    """Return the stops of every slider, including the values of the plan's own promise."""
    values: dict[str, set[Decimal]] = {said: set(map(Decimal, LADDERS[said])) for said in SAID}
    values["delta"] = set(map(Decimal, DELTAS))
    if own is not None:
        values[own.said].add(own.value)
        values["delta"].add(own.delta)
    return {name: [str(value) for value in sorted(stops)] for name, stops in values.items()}


FIRST, LAST = ("document", "version", "title", "description", "origin", "publisher", "date", "contact"), ("question",)
PROMISES = "epsilon", "delta", "attack_success", "points"


def draft_plan_tables(opened: EditorState, wishes: PlanForm) -> dict[str, Any]:
    """Return the tables of the plan: the opened ones, overridden by the form.

    Raises ``PlanError`` or ``SchemaError`` for names that the schema or the plan does not have. Names are checked
    against the schema and never parsed as expressions.
    """
    own = opened.tables
    if (wishes.who.column is None) != wishes.who.each_row:
        expected = "a column that identifies a person, or that each row is a person"
        raise PlanError("privacy_unit", wishes.who.column, expected, "first choose one of them under 1")
    if wishes.who.column is None:
        person_said = {"each_row": True, "noun": wishes.who.noun}
    else:
        if wishes.who.column != own.get("privacy_unit", {}).get("column"):  # the plan's own may be an expression
            _require_column(opened, wishes.who.column)
        person_said = {
            name: getattr(wishes.who, name)
            for name in ("column", "max_rows", "max_rows_per_group", "max_groups", "noun")
        }
    if not wishes.questions:
        raise PlanError("question", None, "at least one", "add a question")
    said = {
        "title": wishes.title,
        "expected_rows": wishes.expected_rows,
        "source": _source_table(opened, wishes),
        "privacy_unit": {name: value for name, value in person_said.items() if value not in (None, A_PERSON)},
        "budget": _budget_table(own.get("budget", {}), wishes.promise, wishes.budget_fraction),
        "question": [_question_table(opened, wish) for wish in wishes.questions],
    }
    tables = {name: value for name, value in {**own, **said}.items() if value is not None}
    order = sorted(tables, key=lambda name: (name not in FIRST, name in LAST))
    return {name: tables[name] for name in order}


def _source_table(opened: EditorState, wishes: PlanForm) -> dict[str, Any]:
    source = dict(opened.tables["source"])
    if not opened.needs_column_types:
        return source
    for name, kind in wishes.types.items():
        _require_column(opened, name)
        if kind not in TYPES:
            raise PlanError("types", kind, f"one of {quoted_names(TYPES)}", suggest_nearest(kind, TYPES))
    declared = {name: kind for name, kind in wishes.types.items() if kind != "text"}
    source.pop("types", None)
    return source | ({"types": declared} if declared else {})


def _budget_table(own: Mapping[str, Any], promise: PromiseForm | None, share: Decimal | None) -> dict[str, Any]:
    kept = {name: value for name, value in own.items() if promise is None or name not in PROMISES}
    kept = {name: value for name, value in kept.items() if name != "budget_fraction"}
    part = {} if share in (None, Decimal(1)) else {"budget_fraction": share}
    if promise is None:
        return kept | part
    if promise.said == "total_variation":  # a plan file states the attacker's success instead: (1 + eta) / 2
        return {"attack_success": (1 + promise.value) / 2, "delta": promise.delta, **part, **kept}
    return {promise.said: promise.value, "delta": promise.delta, **part, **kept}


def _question_table(opened: EditorState, wish: QuestionForm) -> dict[str, Any]:
    """Return a question of the opened plan, with a new weight if one is given; or one built from the schema."""
    if wish.kept is not None:
        own = opened.tables.get("question", []) if opened.has_plan else []
        if not 0 <= wish.kept < len(own):
            expected = f"the number of one of the plan's {len(own)} questions"
            raise PlanError("kept", wish.kept, expected, "load the page again")
        return dict(own[wish.kept]) | ({} if wish.weight is None else {"weight": wish.weight})
    return question_from_form(opened, wish)


def question_from_form(opened: EditorState, wish: QuestionForm) -> dict[str, Any]:
    """Return a question with what the form says of its kind; raises ``PlanError`` or ``SchemaError``."""
    kind = KINDS_BY_NAME.get(wish.kind or "")
    if kind is None:
        raise PlanError("kind", wish.kind, f"one of {quoted_names(tuple(KINDS_BY_NAME))}")
    said: dict[str, Any] = {}
    for name in kind.fields:
        value = getattr(wish, name)
        if name == "column":
            value = _require_column(opened, value or "")
        said[name] = list(value) if isinstance(value, tuple) else value
    said |= {"by": [_require_column(opened, name) for name in wish.by], "keys": list(wish.keys), "weight": wish.weight}
    entry = {name: value for name, value in said.items() if value not in (None, [], 1.0)}
    if "q" in kind.fields and wish.q is not None:
        entry["name"] = quantile_name(wish, wish.q, entry["column"])
    return {"kind": kind.kind, **entry}


def quantile_name(wish: QuestionForm, q: float, column: str) -> str:
    """Return the name of the answer, of which q is a part: quantiles of one column differ by it."""
    what = "median" if q == 0.5 else f"{wish.kind}_{q:g}"
    return "_".join([what, column, *(["by", *wish.by] if wish.by else [])])


def _require_column(opened: EditorState, name: str) -> str:
    """Return the name if the table has the column; raises ``SchemaError`` otherwise."""
    names = tuple(column.name for column in opened.columns)
    if name not in names:
        raise SchemaError("column", name, f"one of {quoted_names(names)}", suggest_nearest(name, names))
    return name


def plain_columns(columns: tuple[Column, ...]) -> list[dict[str, str]]:
    """Return names and types of columns, the only facts about the table that are sent to the page."""
    return [{"name": column.name, "kind": column.kind} for column in columns]


# The group size at which an answer is accurate enough, from the errors that the plan itself states.

CLOSE_ENOUGH = 0.05
"""Error that counts as accurate: a fraction of the rows for counts and sums, otherwise of the declared range."""
TENTHS = 10, 12, 15, 20, 25, 30, 40, 50, 60, 80
SIZES = (*range(1, 10), *(tenths * 10**power for power in range(8) for tenths in TENTHS))
"""Candidate group sizes."""


def rows_needed(accuracy: Accuracy) -> int | None:
    """Return the smallest of ``SIZES`` at which 95 % of answers are ``CLOSE_ENOUGH``; None if no size suffices.

    Relative errors decrease with group size, so that bisection finds it; the result is checked separately.
    """
    if not _reference_size(accuracy, 1):
        return None
    # not accuracy.at: the suppression probability of such a large group is an exact fraction with too many digits
    errors = accuracy.question.expected_error
    place = bisect_left(
        SIZES,
        True,
        key=lambda rows: errors(accuracy.noises_by_name, rows)[1] <= CLOSE_ENOUGH * _reference_size(accuracy, rows),
    )
    return SIZES[place] if place < len(SIZES) else None


def close_words(accuracy: Accuracy) -> str:
    """Return ``CLOSE_ENOUGH`` in words for the question."""
    if accuracy.question.additive:
        return "5 % of the largest sum possible" if _clamped_ranges(accuracy.question) else "5 % of the group"
    return f"± {significant_text(CLOSE_ENOUGH * _reference_size(accuracy, 1), 3)}, a twentieth of the range"


def _reference_size(accuracy: Accuracy, rows: int) -> float:
    """Return the reference value for an error; 0 if the question has none."""
    question = accuracy.question
    ranges = _clamped_ranges(question)
    if not ranges:
        return rows if question.additive else 0.0
    low, high = ranges[0]
    return rows * max(abs(low), abs(high)) if question.additive else high - low


def _clamped_ranges(question: Query) -> list[tuple[float, float]]:
    """Return the ranges to which the values of a question are clamped."""
    return [ends for _, ends in question.clamped_columns if ends is not None]


def rows_words(rows: int | None) -> str:
    """Return the number of rows as text.

    >>> rows_words(20_000), rows_words(None)
    ('20,000', '–')
    """
    return significant_text(None if rows is None else float(rows))


# The page's view of a plan: the promise in words, the errors of its questions, the trade-off curve.

ALARM_RATES = tuple(float(rate) for rate in (1 - np.cos(np.pi * np.arange(13) / 12)) / 2)
"""False-positive rates at which the curve is drawn."""
Json = dict[str, Any]


def plan_figures(file: PlanFile) -> Json:
    """Return all numbers of a plan, as ``tightrope plan`` does: reads only the schema and spends no budget."""
    draft = file.make_plan().draft
    document = draft.plan_document()
    success = document.attack_success
    # The attacker's true-positive rate at each false-positive rate, at most.
    found = draft.loss.true_positive_rate(np.array(ALARM_RATES[1:-1]))
    between = [[rate, float(caught)] for rate, caught in zip(ALARM_RATES[1:-1], found, strict=True)]
    return {
        "attacker": document.attacker,
        "protected": document.neighbors.statement,
        "attack_success": success,
        "success": percent_text(success, UP),
        "total_variation": percent_text(document.total_variation, UP),
        "epsilon": significant_text(document.epsilon, 3, UP),
        "limit": likelihood_limit_text(
            document.epsilon, document.delta, ("set of answers", "with a person's data", "without")
        ),
        "guesses": Guesses.from_success(success).right_count,
        "budget_fraction": str(document.budget_fraction),
        "answers": [
            _answer_figures(answer, accuracy)
            for answer, accuracy in zip(document.answers, draft.query_accuracies, strict=True)
        ],
        "curve": [[0.0, float(draft.loss.true_positive_rate(0.0))], *between, [1.0, 1.0]],
        "max_rows": draft.privacy_unit.max_rows if draft.privacy_unit.column is not None else 1,
    }


def _answer_figures(answer: PlannedAnswer, accuracy: Accuracy) -> Json:
    error, rows = answer.error, rows_needed(accuracy)
    return {
        "name": escape_control_chars(answer.name),
        "question": escape_control_chars(displayed_title(answer)),
        "meaning": answer.meaning,
        "groups": answer.keys,
        "half_width": error.half_width_95,
        "within": significant_text(error.half_width_95, 3, UP),
        "sizes": [
            {
                "rows": significant_text(float(size.rows)),
                "within": significant_text(size.half_width_95, 3, UP),
                "suppressed": suppression_text(size.suppressed),
            }
            for size in error.by_group_size
        ],
        "uniform": error.half_width_95 is not None,
        "needed": rows_words(rows),
        "close": close_words(accuracy),
        "noise": "; ".join(sorted({noise.family for noise in answer.noise})),
        "notes": list(answer.notes),
    }


# Responses to the page: the exact numbers of a plan or of a stricter promise, and the plan file.

# One thread computes the latest request first and caches results, so that moving a slider never blocks.

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")
MOST_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class FailedResult:
    """An error message in place of a result."""

    problem: str


class BackgroundWorker(Generic[Key, Found]):
    """Compute ``compute(key)`` in the order of the last request; errors become messages.

    The ``MOST_KEPT`` most recently used results are cached.
    """

    def __init__(self, compute: Callable[[Key], Found], told: Callable[[Exception], str]) -> None:
        self._compute, self._told = compute, told
        self._kept: OrderedDict[Key, Found | FailedResult] = OrderedDict()
        self._wanted: list[Key] = []
        self._ended = False
        self._news = threading.Condition()
        threading.Thread(target=self._run_loop, name="plans", daemon=True).start()

    def stop_thread(self) -> None:
        """Stop the thread after its current computation."""
        with self._news:
            self._ended = True
            self._news.notify_all()

    def request_keys(self, keys: Sequence[Key]) -> None:
        """Replace the queue by these keys, in this order."""
        with self._news:
            self._wanted = [key for key in keys if key not in self._kept]
            self._news.notify_all()

    def finished_result(self, key: Key) -> Found | FailedResult | None:
        """Return the cached result, or None."""
        with self._news:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def wait_for_result(self, key: Key, seconds: float) -> Found | FailedResult | None:
        """Return the result, waiting at most ``seconds`` for it; None on timeout."""
        with self._news:
            self._news.wait_for(lambda: key in self._kept, timeout=seconds)
        return self.finished_result(key)

    def _run_loop(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._ended or bool(self._wanted))
                if self._ended:
                    return
                key = self._wanted.pop(0)
            found = self._compute_result(key)
            with self._news:
                self._kept[key] = found
                self._wanted = [other for other in self._wanted if other != key]
                while len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)
                self._news.notify_all()

    def _compute_result(self, key: Key) -> Found | FailedResult:
        try:
            return self._compute(key)
        except Exception as error:
            return FailedResult(self._told(error))


PlanEditorJson = dict[str, Any]
LONGEST_WAIT = 0.05
"""Seconds to wait for exact numbers before falling back to the numbers of a stricter promise."""
AHEAD = 20
WRITTEN = "# Made with: tightrope studio. All settings: docs/plan-file.md\n\n"


@dataclass(frozen=True, slots=True)
class HostCallbacks:
    """Callbacks of the command line: write a file atomically, run a release, describe an error without data values.

    ``run_release`` charges the ledger of a saved plan and writes answers and report to a folder, as ``tightrope
    release``.
    """

    write_file: Callable[[Path, str], None]
    run_release: Callable[[Path, Path], None]
    describe_error: Callable[[Exception], str]


@dataclass(frozen=True, slots=True)
class PlanKey:
    """Cache key of a plan: all of it except the promise, and the promise; ``wishes`` contain both."""

    tables_text: str
    promise: PromiseForm | None
    wishes: PlanForm = field(compare=False, hash=False, repr=False)

    def with_promise(self, promise: PromiseForm) -> PlanKey:
        """Return the key of the same plan under another promise."""
        return PlanKey(self.tables_text, promise, self.wishes)


class PlanEditor:
    """One opened plan or table, and the plans computed for it. Reads only the schema; spends no budget.

    ``ahead``: number of slider stops to compute in advance.
    """

    def __init__(self, opened: EditorState, lent: HostCallbacks, *, ahead: int = AHEAD) -> None:
        self.opened, self.lent = opened, lent
        self._ahead = ahead
        self._plans: BackgroundWorker[PlanKey, PlanEditorJson] = BackgroundWorker(
            self._compute_figures, lent.describe_error
        )
        self._own: str | None = None
        self._writing = threading.Lock()

    def initial_state(self) -> PlanEditorJson:
        """Return the page's initial state: names and types of columns, choices, and the initial form."""
        wishes = self.opened.initial_form
        return {
            "title": wishes.title,
            "columns": plain_columns(self.opened.columns),
            "typeless": self.opened.needs_column_types,
            "types": list(TYPES),
            "groups": list(GROUPS),
            "kinds": [to_builtins(kind) for kind in KINDS],
            "ladders": slider_stops(wishes.promise),
            "delta": {"name": DELTA_NAME, "advice": DELTA_ADVICE},
            "asked": list(self.opened.question_texts),
            "wishes": to_builtins(wishes),
            "out": str(self.opened.output_path),
        }

    def look_up_figures(self, wishes: PlanForm) -> PlanEditorJson:
        """Return the figures of a plan, from the cache or within ``LONGEST_WAIT``.

        ``state``: "exact"; "bound" if they belong to the stricter promise ``with_promise``, whose noise would be
        enough; "working" while neither is computed; "problem", with a message, if the plan is invalid.
        """
        try:
            text, place = self.plan_text(wishes), self._plan_key(wishes)
        except InputError as error:  # the form is incomplete
            return {"state": "problem", "problem": self.lent.describe_error(error)}
        stops = nearby_stops(wishes.promise)[1:] if wishes.promise is not None else []
        self._plans.request_keys([place, *map(place.with_promise, stops[: self._ahead])])
        found = self._plans.wait_for_result(place, LONGEST_WAIT)
        if isinstance(found, FailedResult):
            return {"state": "problem", "problem": found.problem}
        if found is not None:
            return {"state": "exact", "figures": found, "plan": text}
        return {"plan": text, **self._stricter_figures(place)}

    def stop_worker(self) -> None:
        """Stop the background thread."""
        self._plans.stop_thread()

    def save_plan(self, wishes: PlanForm) -> Path:
        """Save the plan and return its path; raises ``InputError`` if the file was changed by another program."""
        with self.plan_on_disk(self.plan_text(wishes)) as path:
            return path

    @contextmanager
    def plan_on_disk(self, text: str) -> Iterator[Path]:
        """Write the plan and lock it while the path is in use; the text is validated before it is written."""
        self.opened.to_plan_file(_parse_tables(text))
        out = self.opened.output_path
        with self._writing:
            if out.exists() and out.read_text(encoding="utf-8") != self._own:
                raise InputError("out", str(out), "a file that this page wrote", "it was edited: try --out")
            self.lent.write_file(out, WRITTEN + text)
            self._own = WRITTEN + text
            yield out

    def plan_text(self, wishes: PlanForm) -> str:
        """Return the text of the plan file, used both for computing and for saving."""
        return toml_text(draft_plan_tables(self.opened, wishes))

    def _plan_key(self, wishes: PlanForm) -> PlanKey:
        return PlanKey(self.plan_text(replace(wishes, promise=None)), wishes.promise, wishes)

    def _compute_figures(self, place: PlanKey) -> PlanEditorJson:
        return plan_figures(
            self.opened.to_plan_file(_parse_tables(self.plan_text(replace(place.wishes, promise=place.promise))))
        )

    def _stricter_figures(self, place: PlanKey) -> PlanEditorJson:
        for stop in stricter_promises(place.promise) if place.promise is not None else ():
            found = self._plans.finished_result(place.with_promise(stop))
            if isinstance(found, dict):
                return {
                    "state": "bound",
                    "figures": found,
                    "at": {"said": stop.said, "value": str(stop.value), "delta": str(stop.delta)},
                }
        return {"state": "working"}


def _parse_tables(text: str) -> PlanEditorJson:
    return tomllib.loads(text, parse_float=Decimal)
