"""The JSON Schemas in docs/schemas are those of the types."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "schemas.py"))
SCHEMAS = SCRIPT["schemas"]()


VERSIONS = {
    "release-certificate.json": [1, 2, 3, 4],
    "release-result.json": [1, 2],
    "noise-certificate.json": [1, 2],
    "account.json": [1, 2],
    "training-account.json": [1, 2],
    "study.json": [1, 2],
    "findings.json": [1, 2],
    "plan.json": [2],
    "planned-release.json": [2],
}


def test_every_document_has_one_and_nothing_else_lies_there() -> None:
    assert {path.name for path in (ROOT / "docs/schemas").iterdir()} == set(SCHEMAS)
    assert {"release-certificate.json", "account.json", "training-account.json", "plan.json"} <= set(SCHEMAS)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_it_is_what_the_type_says(name: str) -> None:
    text = (ROOT / "docs/schemas" / name).read_text(encoding="utf-8")
    assert text == SCHEMAS[name], "write them anew: python scripts/schemas.py"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_it_knows_all_keys_of_every_table_and_which_document_it_is(name: str) -> None:
    schema = json.loads(SCHEMAS[name])
    top = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    assert f"{top['properties']['document']['enum'][0].replace(' ', '-')}.json" == name
    assert top["properties"]["version"]["enum"] == VERSIONS.get(name, [1])
    assert all(table["additionalProperties"] is False for table in schema["$defs"].values())
