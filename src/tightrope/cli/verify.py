"""``tightrope verify``: recompute every claim of a document with code independent of the code that wrote it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.options import AsJson, command_app
from tightrope.cli.output import echo_lines, print_json, show_spinner
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import UP, terminal_text
from tightrope.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from tightrope.verify.claims import Claim

VERIFY_EXAMPLE = """\b
Example, for someone who received a release:
  tightrope verify out/certificate.json
  tightrope verify --standalone > check.py    the verifier as one file that
  python check.py out/certificate.json        needs only python-flint
  tightrope verify out/certificate.json --standalone    only the parts for this file

Exit codes: 0 every claim that can be checked without the data is confirmed;
1 a claim is refuted (or another error); 2 bad input; 4 no claim is refuted, but one could not be confirmed.
"""
WHAT_TO_GIVE = "pass the certificate.json of a release, or the output of noise, account, dpsgd --json or ledger export"
File = Annotated[Path | None, typer.Argument(metavar="FILE", help="A document that tightrope wrote, as JSON.")]
Standalone = Annotated[
    bool,
    typer.Option("--standalone", help="Print the verifier as one Python file (with FILE: only the parts it needs)."),
]
Seconds = Annotated[
    float,
    typer.Option(
        min=0, metavar="S", help="Limit on processor seconds; claims that take longer are reported as not confirmed."
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="List every claim with its recomputed value.")]
MOST_WRAPPED_LINES = 2000
"""Lines beyond which a page is not wrapped between words."""
GROUPS = {
    r"mechanisms\[(\d+)\]": ("mechanism", "mechanisms"),
    r"profile\.delta\[(\d+)\]": ("point of the privacy profile", "points of the privacy profile"),
    r"tradeoff\.true_positive_rate\[(\d+)\]": ("point of the trade-off curve", "points of the trade-off curve"),
    r"steps\[(\d+)\]": ("step", "steps"),
    r"entries\[(\d+)\]": ("entry", "entries"),
}
"""Parts of a document, by the beginning of the names of their claims: counted in the summary."""
HEADLINE = ("epsilon", "delta", "total_variation")


def verify(
    file: File = None,
    standalone: Standalone = False,
    seconds: Seconds = 15.0,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Verify a certificate, or another document, without access to the data.

    Recomputes every number from the tables of noise probabilities in the document, in interval and exact integer
    arithmetic. An upper bound is confirmed if the recomputed value does not exceed it.
    """
    if standalone:
        from tightrope.verify.standalone import standalone_text

        with _explained_input_errors(file):
            page = standalone_text(None if file is None else _read_document_text(file))
        typer.echo(page, nl=False)
        return
    if file is None:
        raise InputError.from_text("FILE", f"no document is given; {WHAT_TO_GIVE}")
    with _explained_input_errors(file):
        text = _read_document_text(file)
        from tightrope.verify.check import EXIT_CODES, check_document, verdict_text

        with show_spinner("Recomputing every claim ..."):
            claims = check_document(text, seconds)
    from tightrope.verify.claims import worst_verdict

    if as_json:
        data: list[dict[str, Any]] = [one._asdict() for one in claims]
        document = {"document": "verification", "version": 1, "file": str(file), "verdict": worst_verdict(claims)}
        print_json({**document, "claims": data})
    else:
        summary = [escape_control_chars(line) for line in summary_lines(str(file), text, claims)]
        lines = [*(verdict_text(claims).split("\n")[:-1] if verbose and claims else []), *summary]
        if len(lines) > MOST_WRAPPED_LINES:
            typer.echo("\n".join(lines))
        else:
            echo_lines(*lines)
    raise typer.Exit(EXIT_CODES[worst_verdict(claims)])


def _read_document_text(file: Path) -> str:
    from tightrope.verify.check import document_text

    return document_text(file)


@contextmanager
def _explained_input_errors(file: Path | None) -> Iterator[None]:
    """Turn errors about a missing file or an invalid document into ``InputError``."""
    try:
        yield
    except ImportError:
        raise MissingExtraError("python-flint", "verify") from None
    except OSError as problem:
        why = (problem.strerror or type(problem).__name__).lower()
        raise InputError.from_text(str(file), f"{why}; {WHAT_TO_GIVE}") from None
    except ValueError as problem:
        why = "not valid JSON" if isinstance(problem, json.JSONDecodeError) else str(problem)
        raise InputError.from_text(str(file), f"not a Tightrope document ({why}); {WHAT_TO_GIVE}") from None


def summary_lines(name: str, text: str, claims: list[Claim]) -> list[str]:
    """Return the verdict on a document, what was recomputed, and every claim that is not confirmed, as lines."""
    from tightrope.verify.claims import CONFIRMED, NOT_CHECKED, NOT_CONFIRMED, REFUTED, worst_verdict

    by_verdict = {
        word: [one for one in claims if one.verdict == word]
        for word in (CONFIRMED, REFUTED, NOT_CONFIRMED, NOT_CHECKED)
    }
    recomputed = len(claims) - len(by_verdict[NOT_CHECKED])
    about = ", ".join(_group_counts(claims))
    lines = [
        f"{worst_verdict(claims).upper()}  {name}{_headline_numbers(text)}",
        f"  {recomputed} claims recomputed{f', for {about}' if about else ''}",
    ]
    nearly = sum(claim.confirms_nearly for claim in claims)
    if nearly:
        lines.append(f"  {nearly} of them confirmed with a small tolerance (--verbose shows it)")
    for word in (REFUTED, NOT_CONFIRMED):
        if by_verdict[word]:
            lines.append(f"  {len(by_verdict[word])} {word}:")
            lines += [f"    {'  '.join((one.name, one.stated, one.finding))}" for one in by_verdict[word]]
    if by_verdict[NOT_CHECKED]:
        others = "descriptions, and facts that only the publisher knows (--verbose lists each)"
        lines.append(f"  {len(by_verdict[NOT_CHECKED])} not checked: {others}")
    return lines


def _group_counts(claims: list[Claim]) -> Iterator[str]:
    """Return how many parts of each group the claims are about."""
    for pattern, (one, several) in GROUPS.items():
        found = {match[1] for claim in claims if (match := re.match(pattern, claim.name))}
        if found:
            yield f"{len(found)} {one if len(found) == 1 else several}"


def _headline_numbers(text: str) -> str:
    """Return the guarantee that a document states, rounded up to three digits, for the first line."""
    data = json.loads(text)
    data = data.get("certificate", data) if isinstance(data, dict) else {}
    numbers: list[str] = []
    for key in HEADLINE:
        value = data.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers.append(f"{key.replace('_', ' ')} {terminal_text(value, 3, UP)}")
    return f": {', '.join(numbers)}" if numbers else ""


app = command_app(verify, example=VERIFY_EXAMPLE)
