"""Writes a JSON Schema of every typed document to docs/schemas: ``python scripts/schemas.py [FOLDER]``."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

ROOMS = "tightrope.documents", "tightrope.release"
FOLDER = Path(__file__).parents[1] / "docs" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def documents() -> dict[str, type[msgspec.Struct]]:
    """The frozen types that say what they are, by that name."""
    return dict(sorted((_name(kind), kind) for room in ROOMS for kind in _types(room)))


def schemas() -> dict[str, str]:
    """The text of each schema by the name of its file."""
    return {f"{name.replace(' ', '-')}.json": _schema(kind) for name, kind in documents().items()}


def _types(room: str) -> list[type[msgspec.Struct]]:
    """Those that the modules of a room define."""
    package = importlib.import_module(room)
    modules = [importlib.import_module(f"{room}.{found.name}") for found in pkgutil.iter_modules(package.__path__)]
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__
        if get_origin(get_type_hints(kind).get("document")) is Literal
    ]


def _name(kind: type[msgspec.Struct]) -> str:
    return str(get_args(get_type_hints(kind)["document"])[0])


def _schema(kind: type[msgspec.Struct]) -> str:
    schema: dict[str, Any] = {"$schema": DIALECT, **msgspec.json.schema(kind)}
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


def main(folder: Path = FOLDER) -> None:
    """Write all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schemas().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
