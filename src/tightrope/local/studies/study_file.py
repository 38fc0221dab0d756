"""A study in a file, TOML or JSON: inert data of a stated version, checked key by key.

``docs/local.md`` describes every key.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, PlanError, listed, nearest
from tightrope.local.studies.study import BEST, Study

VERSION = 1
KEYS = ("version", "title", "question", "categories", "between", "mechanism", "epsilon", "total_variation")
START = "write one with: tightrope local plan ... --out study.toml"
HEAD = """\
# A study for Tightrope: the people who are asked and the collector share this file.
#   tightrope local perturb FILE DATA --column ANSWER --out reports.parquet   what each person does on their own
#   tightrope local estimate FILE reports.parquet                             what the collector makes of the reports
"""


def load_study(path: str | Path) -> Study:
    """The study in a ``.toml`` or ``.json`` file.

    Raises ``PlanError`` that names the key for anything that is none: unknown or missing keys, another version,
    repeated categories, an ε that is 0, infinite or no number.
    """
    place = Path(path)
    return study_of(_parsed(place, _read(place)))


def study_of(data: Mapping[str, Any]) -> Study:
    """The study that the keys of a file describe; raises ``PlanError`` like ``load_study``.

    >>> study_of({"version": 1, "question": "mean", "between": [0, 50], "epsilon": 1}).settled.choice
    'duchi'
    """
    _check_keys(data)
    try:
        return Study(
            question=data["question"],
            epsilon=data["epsilon"],
            categories=_tuple(data.get("categories", ())),
            between=_tuple(data.get("between")),
            choice=data.get("mechanism", BEST),
            total_variation=data.get("total_variation"),
            title=_title(data.get("title", "")),
        )
    except InputError as error:
        raise PlanError(f"study {error.name}", error.value, error.expected, error.remedy) from None


def study_text(study: Study) -> str:
    """The study as the text of a TOML file, its mechanism by name; ``load_study`` reads it back.

    >>> study_text(Study("mean", 1.0, between=(0.0, 50.0))).splitlines()[-4:]
    ['question = "mean"', 'between = [0.0, 50.0]', 'mechanism = "duchi"', 'epsilon = 1.0']
    """
    settled = study.settled
    entries = {
        "version": VERSION,
        "title": settled.title or None,
        "question": settled.question,
        "categories": list(settled.categories) or None,
        "between": settled.between and list(settled.between),
        "mechanism": settled.choice,
        "epsilon": settled.epsilon,
        "total_variation": settled.total_variation,
    }
    return HEAD + "".join(f"{key} = {_toml(value)}\n" for key, value in entries.items() if value is not None)


def _toml(value: object) -> str:
    """Text, numbers and lists of them: in TOML as in JSON, but for one character that it wants escaped."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PlanError("study", str(path), f"a file that can be read ({error.strerror})", START) from None
    except UnicodeDecodeError:
        raise PlanError("study", str(path), "a text file (TOML or JSON in UTF-8)", START) from None


def _parsed(path: Path, text: str) -> Mapping[str, Any]:
    is_json = path.suffix == ".json"
    try:
        data = json.loads(text, object_pairs_hook=_once) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        expected = f"valid {'JSON' if is_json else 'TOML'}"
        raise PlanError("study", str(path), expected, " ".join(str(error).split())) from None
    if not isinstance(data, dict):
        raise PlanError("study", type(data).__name__, "an object of keys and values", f"it may hold {listed(KEYS)}")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The keys of a JSON object, none twice: two readers could take a different one of two."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _check_keys(data: Mapping[str, Any]) -> None:
    for key in data:
        if key not in KEYS:
            raise PlanError("key in the study", key, f"one of {listed(KEYS)}", nearest(key, KEYS))
    version = data.get("version")
    if isinstance(version, bool) or version != VERSION:
        raise PlanError("study version", version, str(VERSION), "a later one needs a later Tightrope")
    for key in ("question", "epsilon"):
        if key not in data:
            raise PlanError(f"study {key}", None, "given", START)


def _tuple(value: Any) -> Any:
    """Lists as tuples; other things are left to be refused where they are used."""
    return tuple(value) if isinstance(value, list) else value


def _title(value: object) -> str:
    if not isinstance(value, str):
        raise InputError("title", value, "a text in quotes")
    return value
