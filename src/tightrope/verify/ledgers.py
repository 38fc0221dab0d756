"""A ledger as it was exported: every hash from the entry before, every sum from its history."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from tightrope.verify.claims import CONFIRMED, REFUTED, BrokenError, Claim, equality_claim, limit_claim, unchecked_claim

HASHED_FIELDS = ("number", "dataset", "kind", "key", "time", "body", "state", "previous")
"""Fields covered by the hash of an entry; body and state as JSON with sorted keys."""


MAX_NUMBER_LENGTH = 10_000
LEDGER_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?(/[0-9]*[1-9][0-9]*)?")
ENTRY_KINDS = "dataset", "reserved", "charged", "retried", "answered", "refused"


def ledger_claims(data: dict[str, Any]) -> list[Claim]:
    """Every claim of an exported ledger."""
    entries, documents = data["entries"], data["documents"]
    claims: list[Claim] = []
    ledger, last, keys = data["ledger"], "", set()
    previous = sha256(f"tightrope ledger {ledger}")
    for number, entry in enumerate(entries, start=1):
        place = f"entries[{number - 1}]"
        held = [canonical_text(entry[part]) if part in {"body", "state"} else entry[part] for part in HASHED_FIELDS]
        holds = (entry["number"], entry["previous"], entry["time"] >= last) == (number, previous, True)
        own = (entry["dataset"], entry["kind"], entry["key"])
        follows = f"{place} follows the one before, later and with a key of its own"
        claims.append(equality_claim(follows, holds and own not in keys, True))
        claims.append(equality_claim(f"{place}.hash", entry["hash"], sha256(canonical_text(held))))
        previous, last = entry["hash"], entry["time"]
        keys |= {own} if entry["key"] is not None else set()
    for name, text in documents.items():
        claims.append(equality_claim(f"documents.{name[:12]}", name, sha256(text)))
    named = {entry["body"].get(part) for entry in entries for part in ("recipe", "document")} - {None}
    claims.append(equality_claim("documents that entries name are there", named <= set(documents), True))
    claims += _answer_charge_claims(documents, entries)
    for dataset in dict.fromkeys(entry["dataset"] for entry in entries):
        claims += _spent_share_claims(dataset, [entry for entry in entries if entry["dataset"] == dataset])
    why = "entries missing at the end, or a rewritten ledger, can only be detected with a release's certificate"
    return [*claims, unchecked_claim("the last entry", f"{why}: tightrope ledger check")]


def sha256(text: str) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def canonical_text(data: Any) -> str:
    """Return the canonical JSON text of the data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _answer_charge_claims(documents: dict[str, str], entries: list[dict[str, Any]]) -> Iterator[Claim]:
    """Answers are of what was charged before them; their certificate says its number, its hash and what it kept."""
    charged: dict[Any, dict[str, Any]] = {}
    yield equality_claim(
        "kinds of entries that are not known", sorted({entry["kind"] for entry in entries} - set(ENTRY_KINDS)), []
    )
    for place, entry in enumerate(entries):
        own = entry["dataset"], entry["key"]
        if entry["kind"] == "charged":
            charged[own] = entry
        if entry["kind"] not in {"answered", "retried"}:
            continue
        yield equality_claim(f"entries[{place}] is of a charge before it", own in charged, True)
        try:
            answer = json.loads(documents.get(str(entry["body"].get("document"))) or "{}")
        except (ValueError, RecursionError):
            answer = {}
        said = answer.get("certificate") if isinstance(answer, dict) else None
        if own in charged and isinstance(said, dict) and isinstance(said.get("entry"), dict):
            paid, named = charged[own], said["entry"]
            found = [named.get("number"), named.get("hash")]
            yield equality_claim(
                f"entries[{place}]: its certificate names the charge", found, [paid["number"], paid["hash"]]
            )
            if paid["body"].get("series") is None:
                kept = said.get("budget") == paid["body"].get("kept")
                yield equality_claim(f"entries[{place}]: its certificate keeps what was charged", kept, True)


def _spent_share_claims(dataset: str, entries: list[dict[str, Any]]) -> Iterator[Claim]:
    """Check the share spent of the limit of a dataset with one limit; other limits are not added up again."""
    limits = entries[0]["body"].get("limits", [])
    kinds = {entry["kind"] for entry in entries[1:]}
    simple = len(limits) == 1 and limits[0].get("rule", "basic") == "basic" and limits[0]["every"] is None
    if not simple or not kinds <= {"charged", "retried", "answered", "refused"} or limits[0]["audience"] is not None:
        yield unchecked_claim(
            f"balances of {dataset!r}", "limits by moments, for audiences or periods: run tightrope ledger check"
        )
        return
    limit, spent, releases = limits[0], Fraction(0), 0
    for entry in entries:
        if entry["kind"] == "charged":
            part = _charged_factor(entry["body"]["kept"], limit)
            spent, releases = spent + part, releases + 1
            if part < 0:
                yield Claim(
                    f"entry {entry['number']}.kept", str(entry["body"]["kept"]), "not a fraction of the limit", REFUTED
                )
        state = entry["state"]
        balance = [str(parse_number(part)) for part in state["balances"].get(limit["name"], ["0", "0"])]
        found, wanted = [*balance, state["releases"]], [str(spent), "0", releases]
        yield equality_claim(f"entry {entry['number']}.state", found, wanted)
    yield limit_claim(f"spent of {dataset!r}", spent, 1, spent <= 1)
    yield Claim(f"left of {dataset!r}", str(1 - spent), f"{releases} releases", CONFIRMED)


def parse_number(text: object) -> Fraction:
    """Return a number that is written in at most 10 000 characters with an exponent of at most three digits.

    Raises ``BrokenError`` for others: 1e999999999 would take gigabytes.
    """
    if not isinstance(text, str) or len(text) > MAX_NUMBER_LENGTH or LEDGER_NUMBER.fullmatch(text) is None:
        raise BrokenError("an invalid number in a ledger, or one that is too long")
    return Fraction(text)


def _charged_factor(kept: dict[str, Any], limit: dict[str, Any]) -> Fraction:
    """Return the ratio of a release's guarantee to the limit; −1 if they are not proportional."""
    pairs = [(kept["delta"], limit["delta"])]
    pairs += [
        pair
        for own, whole in zip(kept["points"], limit["points"], strict=True)
        for pair in zip(own, whole, strict=True)
    ]
    pairs = [(parse_number(own), parse_number(whole)) for own, whole in pairs]
    factors = {own / whole for own, whole in pairs if whole}
    empty = all(own == 0 for own, whole in pairs if not whole)
    return factors.pop() if len(factors) == 1 and empty else Fraction(-1)
