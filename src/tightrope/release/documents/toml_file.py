"""TOML that is checked key by key: tables whose look-ups say where they are, and what to try.

Plan files and steps files are read through this module, so that both make the same errors the same way.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from tightrope.errors import InputError, PlanError, listed, nearest
from tightrope.numerics.checks import whole


class Typed(Decimal):
    """A decimal that prints as it is typed."""

    def __repr__(self) -> str:
        return str(self).lower()


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a TOML file: look-ups that check the type and say where they are."""

    place: str
    entries: Mapping[str, Any]

    @classmethod
    def of(cls, place: str, value: object, known: tuple[str, ...]) -> Self:
        """The table at ``place``; raises ``PlanError`` unless it is one, and for keys that are not ``known``."""
        if not isinstance(value, Mapping):
            raise PlanError(place, value, "a table of keys and values", f"it may hold {listed(known)}")
        for key in value:
            if key not in known:
                raise PlanError(f"key in {place}", key, f"one of {listed(known)}", nearest(key, known))
        return cls(place, value)

    def text(self, key: str) -> str | None:
        """The text of a key; None where it is left out."""
        value = self.entries.get(key)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise PlanError(f"{self.place} {key}", value, "a text in quotes")
        return value

    def needed(self, key: str, expected: str, remedy: str) -> str:
        """The text of a key that may not be left out."""
        value = self.text(key)
        if value is None:
            raise PlanError(f"{self.place} {key}", value, expected, remedy)
        return value

    def whole(self, key: str) -> int | None:
        """A whole number ≥ 1; None where it is left out."""
        value = self.entries.get(key)
        with placed(self.place):
            return None if value is None else whole(key, value)

    def flag(self, key: str) -> bool:
        """True, or false where it is left out."""
        value = self.entries.get(key, False)
        if not isinstance(value, bool):
            raise PlanError(f"{self.place} {key}", value, "true or false, without quotes")
        return value


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Errors from within say where in the file they come from."""
    try:
        yield
    except InputError as error:
        name = error.name if error.name.startswith(place) else f"{place} {error.name}"
        raise PlanError(name, error.value, error.expected, error.remedy) from None


def read_toml(path: Path, remedy: str) -> dict[str, Any]:
    """The tables of a TOML file, numbers with a point as exact decimals; ``PlanError`` where it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Typed)
    except OSError as error:
        raise PlanError("file", str(path), f"a file that can be read ({error.strerror})", remedy) from None
    except UnicodeDecodeError:
        raise PlanError("file", str(path), "a text file (TOML in UTF-8)", remedy) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanError("file", str(path), "valid TOML", " ".join(str(error).split())) from None
