"""Any mutated document of up to 5 MB is verified or refused within 20 processor seconds and a gigabyte."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tightrope as tr
from tests.verify.test_exclusive_sets import released
from tightrope.documents.document import to_json_text
from tightrope.verify.check import check_document
from tightrope.verify.claims import worst_verdict

MUTATIONS = int(os.environ.get("TIGHTROPE_MUTATED", "30"))
"""Documents; 500 take some twenty minutes of one core."""
LARGEST = 5_000_000
PROGRAM = Path(__file__).with_name("mutations.py")


def command(*words: str) -> dict[str, Any]:
    """What a command of ours prints as JSON."""
    code = "import tightrope.cli.main as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code, *words, "--json"], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    noise = tr.least_noise(tr.Budget(epsilon=1, delta=1e-6), sensitivity=3).certificate
    return [
        released([tr.proportion("v > 20"), tr.mean("v", bounds=(0, 50), by="g")], max_rows=2),
        released([tr.median("v", bounds=(0, 50)), tr.sum("w", bounds=(0, 7))], max_rows=3),
        json.loads(to_json_text(noise.to_document())),
        command("dpsgd", "--examples", "1000", "--batch", "100", "--steps", "3", "--noise", "2", "--delta", "1e-5"),
    ]


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a document but the document itself."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield (*path, key)
        if not (isinstance(data, list) and len(data) > 50 and int(key) > 3):
            yield from places(value, (*path, key))


def mutated(chance: random.Random, document: dict[str, Any]) -> str:
    """One to three changes: longer lists, other sizes, other kinds, what is missing."""
    changed = copy.deepcopy(document)
    for _ in range(chance.randint(1, 3)):
        *path, key = chance.choice(list(places(changed)))
        inside = changed
        for step in path:
            inside = inside[step]
        value = inside[key]
        match value:
            case list() if value:
                inside[key] = (value * chance.choice([2, 10, 1000, 100_000]))[: chance.choice([10**3, 10**4, 10**6])]
            case bool() | None:
                inside[key] = chance.choice([0, 1, "x", [], None])
            case int() | float():
                factors = [0, -1, 0.5, 2, 1e-9, 1e9, 2.0**40, 1e-300, 1e300]
                inside[key] = type(value)(min(max(value * chance.choice(factors), -1e300), 1e300))
            case str():
                texts = [value * 2, "9" * 4000, "1e-300", "0", value + "0", "", "\u202e", "1" + "0" * 30]
                inside[key] = chance.choice(texts)
            case dict():
                inside[key] = {**value, **{chance.choice(["x", *value]): chance.choice([None, 1, []])}}
    text = json.dumps(changed)
    return text if len(text) <= LARGEST else json.dumps(document)


@pytest.mark.slow
def test_no_mutated_document_takes_long(documents: list[dict[str, Any]]) -> None:
    chance = random.Random(28)
    texts = [json.dumps(one) for one in documents]
    texts += [mutated(chance, documents[i % len(documents)]) for i in range(MUTATIONS)]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([sys.executable, str(PROGRAM)], input=lines, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(texts), done.stderr[-2000:]
    slow = [
        (seconds, verdict, text[:300]) for (seconds, verdict, _), text in zip(found, texts, strict=True) if seconds > 20
    ]
    assert not slow
    assert max(peak for *_, peak in found) < 1 << 20  # kilobytes
    assert [verdict for _, verdict, _ in found[: len(documents) - 1]] == ["confirmed"] * (len(documents) - 1)


def test_a_document_of_many_points_is_refused_at_once(documents: list[dict[str, Any]]) -> None:
    """100 000 points of a profile took two minutes, nearly all of them to print one text."""
    long = copy.deepcopy(documents[0])
    long["profile"] = {"epsilon": [0.5] * 100_000, "delta": [0.1] * 100_000}
    done = subprocess.run(
        [sys.executable, str(PROGRAM)],
        input=json.dumps(json.dumps(long)) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, verdict, _ = json.loads(done.stdout)
    assert verdict == "refused" and seconds < 5


def test_long_loops_keep_the_time_limit(documents: list[dict[str, Any]]) -> None:
    """A table of 900 000 weights under 200 000 shifts; without a look at the clock it takes half a minute."""
    wide = copy.deepcopy(documents[2])
    half = 900_000
    wide["table"] |= {"centre": str((1 << 128) - 2 * half), "half": ["1"] * half, "tail": None}
    wide |= {"sensitivity": 200_000, "releases": 2}
    began = time.process_time()
    claims = check_document(json.dumps(wide), 0.5)
    assert worst_verdict(claims) in ("refuted", "not confirmed")
    assert any("more than 0.5 processor seconds" in claim.finding for claim in claims)
    assert time.process_time() - began < 15
