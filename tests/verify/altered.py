"""Single fields of a document, altered: which sort of field it is, and what stands there now."""

from __future__ import annotations

import copy
import json
import os
import random
import re
from collections.abc import Iterator
from typing import Any

from msgspec import convert

from tightrope.documents.document import plain_data
from tightrope.documents.release import NumberedTable
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CHECKED, Claim, worst_verdict

MUTATIONS = int(os.environ.get("TIGHTROPE_MUTATIONS", "30"))
"""How many fields are altered a document; 200 for all."""
Place = tuple[str | int, ...]


def of_version_3(certificate: dict[str, Any]) -> dict[str, Any]:
    """The certificate as version 3 wrote it: each mechanism has its own table, of decimal numbers."""
    changed = copy.deepcopy(certificate)
    tables = {one["id"]: plain_data(convert(one, NumberedTable).unpacked()) for one in changed.pop("tables")}
    for one in changed["mechanisms"]:
        one["table"] = json.loads(json.dumps(tables[one["table"]]))
    return changed | {"version": 3}


def leaves(data: Any, place: Place = ()) -> Iterator[Place]:
    """The places of everything that is no table and no list."""
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in parts:
        yield from leaves(value, (*place, key))
    if not isinstance(data, dict | list):
        yield place


def field(place: Place) -> str:
    """A place without its numbers."""
    return ".".join(step for step in place if isinstance(step, str))


def at(data: Any, place: Place) -> Any:
    for step in place:
        data = data[step]
    return data


def altered(text: str, seed: int) -> Iterator[tuple[Place, Any, Any, str]]:
    """Place, old, new, and the document so altered: fields in turn, so that long tables do not crowd out the rest."""
    draw, data = random.Random(seed), json.loads(text)
    fields: dict[str, list[Place]] = {}
    for place in leaves(data):
        fields.setdefault(field(place), []).append(place)
    for number in range(MUTATIONS):
        name = list(fields)[(number + draw.randrange(len(fields))) % len(fields)]
        place, changed = draw.choice(fields[name]), copy.deepcopy(data)
        old = at(data, place)
        new = another(old, draw)
        at(changed, place[:-1])[place[-1]] = new
        yield place, old, new, json.dumps(changed)


def another(old: Any, draw: random.Random) -> Any:
    """Something else of the same type: a digit, a part of a number, a letter."""
    if isinstance(old, bool) or old is None:
        return "x" if old is None else not old
    if isinstance(old, int):
        return max(0, old + draw.choice([-1, 1, 2, 10]))
    if isinstance(old, float):
        factor = draw.choice([0.5, 0.9, 0.99, 0.999, 1.001, 1.1, 2.0])
        return old * factor if old else 0.25
    digits = [found.start() for found in re.finditer(r"\d", old)]
    if digits and re.fullmatch(r"[-\d.E/]+|[0-9a-f* ]+", old):
        spot = draw.choice(digits)
        return old[:spot] + str((int(old[spot]) + draw.randrange(1, 10)) % 10) + old[spot + 1 :]
    return old + "x"


UPWARDS = (
    "profile.epsilon",
    "profile.delta",
    "tradeoff.true_positive_rate",
    "attack.true_positive_rate",
    "realised",
    "upper",
    "guarantee.total_variation",
)
DOWNWARDS = ("tradeoff.false_positive_rate", "attack.false_positive_rate", "lower")


def weaker(place: Place, old: Any, new: Any) -> bool:
    """Whether a claim, so altered, follows from what it was: true, if the old one was."""
    name = field(place)
    return (name.endswith(UPWARDS) and new >= old) or (name.endswith(DOWNWARDS) and new <= old)


def said(claims: list[Claim], place: Place) -> bool:
    """Whether the verifier says of a field that it did not check it."""
    names = {name for claim in claims if claim.verdict == NOT_CHECKED for name in claim.name.split(", ")}
    return any(field(place) == name or field(place).startswith(f"{name}.") for name in names)


def not_caught(place: Place, old: Any, new: Any, text: str) -> bool:
    """Whether the verifier confirms an altered document, without saying that it did not look there."""
    try:
        claims = check_document(text)
    except ValueError:
        return False
    return worst_verdict(claims) == CONFIRMED and new != old and not said(claims, place) and not weaker(place, old, new)
