"""Tables that a certificate lists once: what is verified of them, and that no other spelling or reference is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.verify.altered import of_version_3
from tests.verify.real_documents import result
from tests.verify.written import QUESTIONS, release
from tightrope.documents.release import read_certificate
from tightrope.errors import InputError
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict
from tightrope.verify.tables import TOTAL_WEIGHT, unpack_weights

Data = dict[str, Any]
NAME = "rows of a person"


def outcome(data: Data) -> str:
    """The verdict, or that it is no document."""
    try:
        return worst_verdict(check_document(json.dumps(data)))
    except ValueError:
        return "bad input"


@pytest.mark.parametrize("name", QUESTIONS)
def test_each_table_is_listed_once_and_former_certificates_have_the_same_claims(name: str) -> None:
    data = json.loads(release(name))
    bodies = [json.dumps({key: item for key, item in one.items() if key != "id"}) for one in data["tables"]]
    assert data["version"] == 4
    assert len(bodies) == len(set(bodies)) <= len(data["mechanisms"])
    assert check_document(json.dumps(data)) == check_document(json.dumps(of_version_3(data)))
    assert read_certificate(json.dumps(of_version_3(data))).tables == read_certificate(json.dumps(data)).tables


def first_weight_more(data: Data) -> None:
    weight, _, others = data["tables"][0]["half"].partition(" ")
    data["tables"][0]["half"] = f"{int(weight.partition('*')[0], 16) + 1:x} {others}"


def center_in_balance(data: Data) -> None:
    """A twentieth of the weights moved to the middle: narrower noise that adds up."""
    table = data["tables"][0]
    half = [weight * 19 // 20 for weight in unpack_weights(table["half"])]
    moved = sum(unpack_weights(table["half"])) - sum(half)
    table |= {"half": " ".join(f"{weight:x}" for weight in half), "center": f"{int(table['center'], 16) + 2 * moved:x}"}


def references_swapped(data: Data) -> None:
    """The count has the noise of the sum, and the sum that of the count, which hides less of it."""
    swapped = {1: 2, 2: 1}
    for one in data["mechanisms"]:
        one["table"] = swapped.get(one["table"], one["table"])


def all_of_one_table(data: Data) -> None:
    for one in data["mechanisms"]:
        one["table"] = 1
    del data["tables"][1:]


def numbers_of_tables(ids: list[int]) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        for one, number in zip(data["tables"], ids, strict=False):
            one["id"] = number

    return change


def of_first(key: str, value: Any) -> Callable[[Data], None]:
    return lambda data: data["tables"][0].update({key: value(data["tables"][0][key]) if callable(value) else value})


FORGED: dict[str, Callable[[Data], Any]] = {
    "a weight more": first_weight_more,
    "the middle in balance": center_in_balance,
    "swapped references": references_swapped,
    "one table for all": all_of_one_table,
    "a table that is missing": lambda data: data["tables"].pop(),
    "a table without mechanisms": lambda data: data["tables"].append(
        {**data["tables"][0], "id": len(data["tables"]) + 1}
    ),
    "no tables": lambda data: data.update(tables=[]),
    "tables without a list": lambda data: data.pop("tables"),
    "an id twice": numbers_of_tables([1, 1]),
    "ids from 0": numbers_of_tables([0, 1, 2]),
    "ids in another order": numbers_of_tables([2, 1]),
    "an id as text": lambda data: data["mechanisms"][0].update(table="1"),
    "an id that is a fraction": lambda data: data["mechanisms"][0].update(table=1.0),
    "an id of no table": lambda data: data["mechanisms"][0].update(table=77),
    "its own table": lambda data: data["mechanisms"][0].update(table=of_version_3(data)["mechanisms"][0]["table"]),
    "half of the text": of_first("half", lambda text: text[: len(text) // 2]),
    "without its last weight": of_first("half", lambda text: text.rpartition(" ")[0]),
    "without its last digit": of_first("half", lambda text: text[:-1]),
    "no weights": of_first("half", ""),
    "a space more": of_first("half", lambda text: f"{text} "),
    "two spaces": of_first("half", lambda text: text.replace(" ", "  ", 1)),
    "a line": of_first("half", lambda text: f"{text}\n"),
    "zeros before": of_first("half", lambda text: f"0{text}"),
    "capitals": of_first("half", lambda text: text.upper()),
    "a sign": of_first("half", lambda text: f"-{text}"),
    "a number of base 16": of_first("half", lambda text: f"0x{text}"),
    "a weight no time": of_first("half", lambda text: f"{text} 1*0"),
    "a weight once": of_first("half", lambda text: f"{text} 1*1"),
    "a weight minus two times": of_first("half", lambda text: f"{text} 1*-2"),
    "times in hexadecimal": of_first("half", lambda text: f"{text} 1*f"),
    "a run in two parts": of_first("half", lambda text: f"{text} 0 0"),
    "an overlong weight": of_first("half", "f" * 34),
    "overlong weights": of_first("half", " ".join(["f" * 4000] * 3)),
    "an overlong middle": of_first("center", lambda text: f"1{text:>033}".replace(" ", "0")),
    "a middle in decimals": of_first("center", lambda text: str(int(text, 16))),
    "a middle as number": of_first("center", lambda text: int(text, 16)),
    "billions of weights": of_first("half", " ".join(f"{weight:x}*9999999" for weight in range(1000))),
    "a list": of_first("half", lambda text: text.split(" ")),
    "another key": of_first("more", "1"),
    "an endless tail": of_first("tail", {"block": "", "escape_in": "0", "escape": "1"}),
    "a tail of one digit more": of_first("tail", {"block": f"{TOTAL_WEIGHT:x}0", "escape_in": "0", "escape": "0"}),
    "a later version": lambda data: data.update(version=5),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_table_is_refuted_or_refused(name: str) -> None:
    data = json.loads(release(NAME))
    assert outcome(data) == CONFIRMED
    assert len(data["tables"]) > 1
    FORGED[name](data)
    assert outcome(data) in (REFUTED, "bad input", *((NOT_CONFIRMED,) if name == "billions of weights" else ()))


@pytest.mark.parametrize("name", ["an id twice", "an overlong weight", "half of the text", "billions of weights"])
def test_a_forged_table_of_a_result_is_refuted_or_refused(name: str) -> None:
    data = json.loads(result("own bounds"))
    assert outcome(data) == CONFIRMED
    FORGED[name](data["certificate"])
    assert outcome(data) in (REFUTED, "bad input", *((NOT_CONFIRMED,) if name == "billions of weights" else ()))


READ = {
    "a weight more", "the middle in balance", "swapped references", "one table for all", "half of the text",
    "without its last weight", "without its last digit", "no weights",
}  # fmt: skip
"""Forgeries that are read as documents: only ``verify`` computes what follows from the weights."""


@pytest.mark.parametrize("name", FORGED)
def test_the_reader_refuses_every_other_spelling_or_reference(name: str) -> None:
    data = json.loads(release(NAME))
    FORGED[name](data)
    if name in READ:
        assert read_certificate(json.dumps(data)).version == 4
        return
    with pytest.raises(InputError, match="release"):
        read_certificate(json.dumps(data))


def test_a_repeated_list_of_tables_is_refused() -> None:
    text = release(NAME)
    doubled = text.replace('"tables":', '"tables": [], "tables":', 1)
    assert doubled != text
    with pytest.raises(ValueError, match="twice"):
        check_document(doubled)
    with pytest.raises(InputError, match="twice"):
        read_certificate(doubled)
