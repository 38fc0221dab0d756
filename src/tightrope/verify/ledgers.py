"""Claims of an exported ledger: the hash chain, and the balance after every entry."""

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
ENTRY_KINDS = "dataset", "declaration", "reserved", "charged", "retried", "answered", "refused"


def ledger_claims(data: dict[str, Any]) -> list[Claim]:
    """Return every claim of an exported ledger."""
    entries, documents = data["entries"], data["documents"]
    claims: list[Claim] = []
    ledger, last_time, keys = data["ledger"], "", set()
    previous = sha256(f"tightrope ledger {ledger}")
    for number, entry in enumerate(entries, start=1):
        path = f"entries[{number - 1}]"
        hashed = [
            canonical_text(entry[field]) if field in {"body", "state"} else entry[field] for field in HASHED_FIELDS
        ]
        is_next = (entry["number"], entry["previous"], entry["time"] >= last_time) == (number, previous, True)
        key = (entry["dataset"], entry["kind"], entry["key"])
        name = f"{path} follows the one before, later and with a key of its own"
        claims.append(equality_claim(name, is_next and key not in keys, True))
        claims.append(equality_claim(f"{path}.hash", entry["hash"], sha256(canonical_text(hashed))))
        previous, last_time = entry["hash"], entry["time"]
        keys |= {key} if entry["key"] is not None else set()
    for name, text in documents.items():
        claims.append(equality_claim(f"documents.{name[:12]}", name, sha256(text)))
    document_names = {entry["body"].get(field) for entry in entries for field in ("recipe", "document")} - {None}
    claims.append(equality_claim("documents that entries name are there", document_names <= set(documents), True))
    claims += _answer_charge_claims(documents, entries)
    for dataset in dict.fromkeys(entry["dataset"] for entry in entries):
        dataset_entries = [entry for entry in entries if entry["dataset"] == dataset]
        claims.append(_privacy_unit_claim(dataset, dataset_entries))
        claims += _balance_claims(dataset, dataset_entries)
    why = "entries missing at the end, or a rewritten ledger, can only be detected with a release's certificate"
    return [*claims, unchecked_claim("the last entry", f"{why}: tightrope ledger check")]


def sha256(text: str) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def canonical_text(data: Any) -> str:
    """Return the canonical JSON text of the data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _answer_charge_claims(documents: dict[str, str], entries: list[dict[str, Any]]) -> Iterator[Claim]:
    """Check that answers follow a charge with their key, and that their certificate names its entry and its budget."""
    charged: dict[Any, dict[str, Any]] = {}
    yield equality_claim(
        "kinds of entries that are not known", sorted({entry["kind"] for entry in entries} - set(ENTRY_KINDS)), []
    )
    for index, entry in enumerate(entries):
        key = entry["dataset"], entry["key"]
        if entry["kind"] == "charged":
            charged[key] = entry
        if entry["kind"] not in {"answered", "retried"}:
            continue
        yield equality_claim(f"entries[{index}] is of a charge before it", key in charged, True)
        try:
            answers = json.loads(documents.get(str(entry["body"].get("document"))) or "{}")
        except (ValueError, RecursionError):
            answers = {}
        certificate = answers.get("certificate") if isinstance(answers, dict) else None
        if key in charged and isinstance(certificate, dict) and isinstance(certificate.get("entry"), dict):
            charge, stated_entry = charged[key], certificate["entry"]
            stated = [stated_entry.get("number"), stated_entry.get("hash")]
            yield equality_claim(
                f"entries[{index}]: its certificate names the charge", stated, [charge["number"], charge["hash"]]
            )
            if charge["body"].get("series") is None:
                same_budget = certificate.get("budget") == charge["body"].get("kept")
                yield equality_claim(f"entries[{index}]: its certificate keeps what was charged", same_budget, True)


def _privacy_unit_claim(dataset: str, entries: list[dict[str, Any]]) -> Claim:
    """Check that all declarations of a dataset have its name and one privacy unit, computed from the same columns."""
    identities = [entry["body"]["identity"] for entry in entries if entry["kind"] in {"dataset", "declaration"}]
    units = []
    for identity in identities:
        kinds = {str(name): str(kind) for name, kind in identity["columns"]}
        read = [identity["person"], *identity.get("unit_columns", ())] if identity["person"] is not None else []
        units.append([identity["name"], identity["person"], identity["means"], [[one, kinds.get(one)] for one in read]])
    expected = [[dataset, *units[0][1:]]] * len(units) if units else "a declaration"
    return equality_claim(f"privacy units declared for {dataset!r}", units, expected)


def _balance_claims(dataset: str, entries: list[dict[str, Any]]) -> Iterator[Claim]:
    """Check the balance of a dataset with a single basic limit; others are not recomputed."""
    limits = entries[0]["body"].get("limits", [])
    kinds = {entry["kind"] for entry in entries[1:]}
    is_basic = len(limits) == 1 and limits[0].get("rule", "basic") == "basic" and limits[0]["every"] is None
    if (
        not is_basic
        or not kinds <= {"declaration", "charged", "retried", "answered", "refused"}
        or limits[0]["audience"] is not None
    ):
        yield unchecked_claim(
            f"balances of {dataset!r}", "limits by moments, for audiences or periods: run tightrope ledger check"
        )
        return
    limit, spent, releases = limits[0], Fraction(0), 0
    for entry in entries:
        if entry["kind"] == "charged":
            fraction = _charged_fraction(entry["body"]["kept"], limit)
            if fraction >= 0 and "fraction" in entry["body"]:  # the decimals of the guarantee were rounded down from it
                fraction = max(fraction, parse_number(entry["body"]["fraction"]))
            spent, releases = spent + fraction, releases + 1
            if fraction < 0:
                yield Claim(
                    f"entry {entry['number']}.kept", str(entry["body"]["kept"]), "not a fraction of the limit", REFUTED
                )
        state = entry["state"]
        balance = [str(parse_number(fraction)) for fraction in state["balances"].get(limit["name"], ["0", "0"])]
        stated, recomputed = [*balance, state["releases"]], [str(spent), "0", releases]
        yield equality_claim(f"entry {entry['number']}.state", stated, recomputed)
    yield limit_claim(f"spent of {dataset!r}", spent, 1, spent <= 1)
    yield Claim(f"left of {dataset!r}", str(1 - spent), f"{releases} releases", CONFIRMED)


def parse_number(text: object) -> Fraction:
    """Return a number of at most 10 000 characters with an exponent of at most three digits.

    Raises ``BrokenError`` for others: 1e999999999 would take gigabytes.
    """
    if not isinstance(text, str) or len(text) > MAX_NUMBER_LENGTH or LEDGER_NUMBER.fullmatch(text) is None:
        raise BrokenError("an invalid number in a ledger, or one that is too long")
    return Fraction(text)


def _charged_fraction(kept: dict[str, Any], limit: dict[str, Any]) -> Fraction:
    """Return the ratio of a release's guarantee to the limit; −1 if they are not proportional."""
    pairs = [(kept["delta"], limit["delta"])]
    pairs += [
        pair
        for charged, available in zip(kept["points"], limit["points"], strict=True)
        for pair in zip(charged, available, strict=True)
    ]
    pairs = [(parse_number(charged), parse_number(available)) for charged, available in pairs]
    factors = {charged / available for charged, available in pairs if available}
    zeros_match = all(charged == 0 for charged, available in pairs if not available)
    return factors.pop() if len(factors) == 1 and zeros_match else Fraction(-1)
