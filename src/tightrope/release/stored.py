"""Answers as the text that a ledger keeps, and back: a value of a key is what it was, a date a date."""

from __future__ import annotations

import datetime
import json
import math
import uuid
from decimal import Decimal
from typing import Any

from tightrope.certificates.document import plain
from tightrope.certificates.release import RELEASES, Cost, ReleaseCertificate
from tightrope.release.answers import Answer, Answers
from tightrope.release.drafting.draft import Draft


def _nanoseconds(text: str) -> Any:
    import pandas

    return pandas.Timestamp(text)


READ: dict[str, Any] = {
    "nanoseconds": _nanoseconds,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "decimal": Decimal,
    "uuid": uuid.UUID,
    "float": float,
}
"""Kinds of values that JSON has no word for, and what reads them."""


def stored_text(answers: Answers) -> str:
    """The records of every answer by its name, and the certificate."""
    kept = {one.name: [{name: _written(value) for name, value in row.items()} for row in one.rows] for one in answers}
    costs = [plain(cost) for cost in answers.costs]
    said = {"answers": kept, "certificate": plain(answers.certificate_data), **({"costs": costs} if costs else {})}
    return json.dumps(said, allow_nan=False)


def restored(text: str, draft: Draft) -> Answers:
    """The answers of a draft that were kept: ``stored_text`` of them was. One plan may ask in several orders."""
    data = json.loads(text)
    kept = data["answers"] if "answers" in data else _as_gathered(draft, data["rows"])
    found = [
        Answer(
            accuracy.question,
            [{name: _read(v) for name, v in row.items()} for row in kept[accuracy.question.name]],
            draft.answer_data(accuracy),
        )
        for accuracy in draft.accuracies()
    ]
    costs = tuple(RELEASES.data(cost, Cost) for cost in data.get("costs", ()))
    return Answers(tuple(found), RELEASES.data(data["certificate"], ReleaseCertificate), costs)


def _as_gathered(draft: Draft, rows: list[Any]) -> dict[str, Any]:
    """Of ledgers before answers were kept by name: they stand task by task."""
    names = (question.name for task in draft.tasks for question in task.questions)
    return dict(zip(names, rows, strict=True))


def _written(value: Any) -> Any:
    """A value as JSON: what it has no word for is a table of its kind and its text."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if getattr(value, "nanosecond", 0):  # of pandas: an instant that a datetime cannot hold
        return {"nanoseconds": value.isoformat()}
    if isinstance(value, datetime.datetime | datetime.date):
        return {"datetime" if isinstance(value, datetime.datetime) else "date": value.isoformat()}
    if isinstance(value, Decimal | uuid.UUID):
        return {type(value).__name__.lower(): str(value)}
    return str(value)


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    return READ[kind](text)
