"""What a release hands over: a table an answer, and one certificate."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError
from tightrope.release.questions.node import Question

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One question's records (keys, ``value``, ``lower``, ``upper``: a 95 % interval) and its error statement."""

    question: Question
    rows: list[dict[str, Any]]
    about: dict[str, Any]

    @property
    def name(self) -> str:
        """The question's name."""
        return self.question.name

    @property
    def frame(self) -> pd.DataFrame:
        """The records as a pandas data frame, in the order of the keys."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=[*self.question.by, "value", "lower", "upper"])

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON: dates as text, no NaN, no infinity."""
        rows = [{name: plain(value) for name, value in row.items()} for row in self.rows]
        return {**self.about, "rows": rows}


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """All answers of a plan, by position or by name, and the certificate that holds for all of them together."""

    answers: tuple[Answer, ...]
    certificate_data: dict[str, Any]

    def __len__(self) -> int:
        return len(self.answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    def __getitem__(self, which: int | str) -> Answer:
        if isinstance(which, int):
            return self.answers[which]
        names = [answer.name for answer in self.answers]
        if which not in names:
            raise InputError("name", which, f"one of {names}")
        return self.answers[names.index(which)]

    @property
    def certificate(self) -> dict[str, Any]:
        """The certificate as plain data."""
        return self.certificate_data

    def to_data(self) -> dict[str, Any]:
        """The object that ``tightrope release --json`` prints."""
        return {"answers": [answer.to_data() for answer in self.answers], "certificate": self.certificate_data}

    def to_json(self) -> str:
        """``to_data`` as JSON; never NaN."""
        return json.dumps(self.to_data(), allow_nan=False, ensure_ascii=False)


def plain(value: object) -> Any:
    """A key or a value as JSON can hold it."""
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
