"""Check a document: recompute every claim from the document alone, and return the verdict."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flint

from tightrope.verify.accounts import account_claims, training_claims
from tightrope.verify.claims import (
    CONFIRMED,
    NOT_CHECKED,
    NOT_CONFIRMED,
    REFUTED,
    BrokenError,
    Claim,
    ProcessorClock,
    WorkLimitError,
    unchecked_claim,
    worst_verdict,
)
from tightrope.verify.couplings import coupling_claims
from tightrope.verify.findings import answer_noise_claims, answers_claims, findings_claims
from tightrope.verify.forms import parse_document
from tightrope.verify.ledgers import ledger_claims
from tightrope.verify.noises import noise_claims
from tightrope.verify.promises import release_claims
from tightrope.verify.tables import with_own_tables

PRECISION = 400
"""Binary digits of the interval arithmetic."""
EXIT_CODES = {CONFIRMED: 0, REFUTED: 1, NOT_CONFIRMED: 4}
"""Exit codes; 2 for input that is not a Tightrope document."""
DEFAULT_SECONDS = 15.0
"""Limit on the processor seconds for one document on a command line, unless another one is given."""
MAX_DOCUMENT_BYTES = 1 << 26
"""Largest size of a document."""


def result_claims(data: dict[str, Any]) -> list[Claim]:
    """Return every claim of a release result: those of its certificate, and of its answers."""
    unchecked = "texts and answers; only sums of answers and the size of the noise are checked"
    return [
        *release_claims(data["certificate"]),
        *answer_noise_claims(data),
        *answers_claims(data),
        unchecked_claim("title, answers, costs, about", unchecked),
    ]


CLAIMS_BY_KIND: dict[str, Callable[[dict[str, Any]], list[Claim]]] = {
    "release certificate": lambda data: release_claims(with_own_tables(data)),
    "noise certificate": noise_claims,
    "account": account_claims,
    "coupling": coupling_claims,
    "ledger": ledger_claims,
    "findings": findings_claims,
    "training account": training_claims,
    "release result": lambda data: result_claims({**data, "certificate": with_own_tables(data["certificate"])}),
}


def check_document(text: str, seconds: float = math.inf) -> list[Claim]:
    """Check every claim of a document; raises ``ValueError`` for input that is not a Tightrope document.

    Claims that would exceed ``seconds`` of processor time are not confirmed. With the default of the command line, any
    file is checked within a minute and a gigabyte of memory (docs/verify.md).
    """
    kind, data, other_names = parse_document(text)
    flint.ctx.prec = PRECISION
    ProcessorClock.start_counting(seconds)
    try:
        claims = [*CLAIMS_BY_KIND[kind](data)]
    except BrokenError as broken:
        return [Claim(kind, "", str(broken), REFUTED)]
    except WorkLimitError as problem:
        return [Claim(kind, "", str(problem), NOT_CONFIRMED)]
    except MemoryError:
        return [Claim(kind, "", "not computed: more memory needed than is available", NOT_CONFIRMED)]
    except (KeyError, TypeError, ArithmeticError, AttributeError, IndexError) as problem:
        raise ValueError(f"expected a {kind} as it was written: {type(problem).__name__} {problem}") from problem
    if other_names is not None:
        why = "outside the certificate; only the certificate is recomputed"
        claims.append(unchecked_claim(", ".join(other_names), why))
    return claims


def document_text(path: Path) -> str:
    """Return the text of a file; raises ``ValueError`` if it is larger than a document can be."""
    with path.open("rb") as file:
        content = file.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"more than {MAX_DOCUMENT_BYTES:,} bytes: not a Tightrope document")
    return content.decode("utf-8")


def verdict_text(claims: list[Claim]) -> str:
    """Return one line per claim, and the verdict. Control characters of the document are escaped."""
    lines = []
    for claim in claims:
        line = "  ".join((f"{claim.verdict:13}", claim.name, claim.stated, claim.finding))
        lines.append("".join(char if char.isprintable() else ascii(char)[1:-1] for char in line))
    verdicts = CONFIRMED, REFUTED, NOT_CONFIRMED, NOT_CHECKED
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in verdicts}
    within_tolerance = sum(claim.confirms_nearly for claim in claims)
    parts = [f"{count} {verdict}" for verdict, count in counts.items() if count or verdict == CONFIRMED]
    if within_tolerance:
        parts[0] += f" ({within_tolerance} of them with a small tolerance, stated on their lines)"
    verdict = f"{worst_verdict(claims).upper()}: of {len(claims)} lines {', '.join(parts)}."
    return "\n".join([*lines, verdict])


def main() -> None:
    """Run ``python check.py FILE [SECONDS]``: exit 0 confirmed, 1 refuted, 4 neither, 2 not a Tightrope document."""
    try:
        seconds = float(sys.argv[2]) if len(sys.argv) > 2 else DEFAULT_SECONDS
        claims = check_document(document_text(Path(sys.argv[1])), seconds)
    except (ValueError, OSError, IndexError) as problem:
        sys.stderr.write(f"check: {problem}\n")
        sys.exit(2)
    sys.stdout.write(verdict_text(claims) + "\n")
    sys.exit(EXIT_CODES[worst_verdict(claims)])


if __name__ == "__main__":
    main()
