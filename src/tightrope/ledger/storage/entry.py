"""An entry of the chain: what happened, what was spent after it, and the hash that holds it to the one before."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
DATASET, RESERVED, CHARGED, RETRIED, ANSWERED, REFUSED = KINDS = (
    "dataset",
    "reserved",
    "charged",
    "retried",
    "answered",
    "refused",
)


@dataclass(frozen=True)  # not slotted: body and state are parsed once, when they are asked for
class Entry:
    """The ``number``-th entry of a ledger. ``body`` and ``state`` are canonical JSON; ``key`` is None for a refusal."""

    number: int
    dataset: str
    kind: str
    key: str | None
    time: str
    body: str
    state: str
    previous: str
    hash: str

    @cached_property
    def said(self) -> dict[str, Any]:
        """The body as data."""
        found: dict[str, Any] = json.loads(self.body)
        return found

    @cached_property
    def after(self) -> dict[str, Any]:
        """The dataset's state after the entry, as data."""
        found: dict[str, Any] = json.loads(self.state)
        return found

    @property
    def expected_hash(self) -> str:
        """The hash that the entry must have."""
        held = [self.number, self.dataset, self.kind, self.key, self.time, self.body, self.state, self.previous]
        return hashlib.sha256(_CANONICAL.encode(held).encode()).hexdigest()

    @property
    def whole(self) -> bool:
        """Whether it is what was written."""
        return self.hash == self.expected_hash


def beginning(ledger: str) -> str:
    """What the first entry of a ledger holds on to.

    >>> beginning("a") == beginning("b")
    False
    """
    return hashlib.sha256(f"tightrope ledger {ledger}".encode()).hexdigest()


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(data: Any) -> str:
    """The one JSON text of the data: sorted keys, no spaces, ASCII."""
    return _CANONICAL.encode(data)
