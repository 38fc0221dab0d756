"""From a document to the verdict: every claim computed again from the document alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flint

from tightrope.verify.accounts import account_claims, training_claims
from tightrope.verify.claims import CONFIRMED, OPEN, REFUTED, BrokenError, Claim, verdict
from tightrope.verify.couplings import coupling_claims
from tightrope.verify.findings import findings_claims
from tightrope.verify.ledgers import ledger_claims
from tightrope.verify.noises import noise_claims
from tightrope.verify.promises import release_claims

PRECISION = 400
"""Binary digits of the intervals."""
CODES = {CONFIRMED: 0, REFUTED: 1, OPEN: 4}
"""Exit codes; 2 for what is no document of ours."""
VERSIONS = {"release certificate": (1, 2), "noise certificate": (1, 2)}
"""Versions that are known, where there is more than the first."""
KINDS: dict[str, Callable[[dict[str, Any]], list[Claim]]] = {
    "release certificate": release_claims,
    "noise certificate": noise_claims,
    "account": account_claims,
    "coupling": coupling_claims,
    "ledger": ledger_claims,
    "findings": findings_claims,
    "training account": training_claims,
    "release result": lambda data: release_claims(data["certificate"]),
}


def checked(text: str) -> list[Claim]:
    """Every claim of a document; raises ``ValueError`` for what is none of ours."""
    data = json.loads(text, parse_constant=_refused, object_pairs_hook=_once)
    if isinstance(data, dict) and "document" not in data and isinstance(data.get("certificate"), dict):
        data = data["certificate"]  # what tightrope noise --json prints around one
    kind = data.get("document") if isinstance(data, dict) else None
    if kind not in KINDS:
        raise ValueError(f"expected a document of one of {', '.join(KINDS)}; got {kind!r}")
    if data.get("version") not in VERSIONS.get(kind, (1,)):
        raise ValueError(f"expected a {kind} of a version in {VERSIONS.get(kind, (1,))}, got {data.get('version')!r}")
    flint.ctx.prec = PRECISION
    try:
        return KINDS[kind](data)
    except BrokenError as broken:
        return [Claim(kind, "", str(broken), REFUTED)]
    except (KeyError, TypeError, ArithmeticError, AttributeError, IndexError) as problem:
        raise ValueError(f"expected a {kind} as it was written: {type(problem).__name__} {problem}") from problem


def told(claims: list[Claim]) -> str:
    """One line a claim, and the verdict."""
    lines = [f"{one.verdict:13}  {one.name}  {one.stated}  {one.found}" for one in claims]
    count = sum(one.verdict == CONFIRMED for one in claims)
    return "\n".join([*lines, f"{verdict(claims).upper()}: {count} claims confirmed, each on the side of the people."])


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key that stands twice in one table")
    return dict(pairs)


def main() -> None:
    """``python check.py FILE``: exit 0 confirmed, 1 refuted, 4 neither, 2 no document of ours."""
    try:
        claims = checked(Path(sys.argv[1]).read_text(encoding="utf-8"))
    except (ValueError, OSError, IndexError) as problem:
        sys.stderr.write(f"check: {problem}\n")
        sys.exit(2)
    sys.stdout.write(told(claims) + "\n")
    sys.exit(CODES[verdict(claims)])


if __name__ == "__main__":
    main()
