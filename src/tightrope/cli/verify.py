"""``tightrope verify``: every claim of a document computed again, by code that shares nothing with what wrote it."""

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
from tightrope.documents.numbers import UP, significant_text
from tightrope.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from tightrope.verify.claims import Claim

VERIFY_EXAMPLE = """\b
Example, a release checked by whoever reads it:
  tightrope verify out/certificate.json
  tightrope verify --standalone > check.py    the same as one file that needs
  python check.py out/certificate.json        python-flint and nothing of ours
  tightrope verify out/certificate.json --standalone    without what others need

Exit codes: 0 every claim is confirmed; 1 one is refuted; 4 one can be neither
confirmed nor refuted; 2 bad input.
"""
WHAT_TO_GIVE = "give the certificate.json of a release, or what noise, account, dpsgd --json or ledger export printed"
File = Annotated[Path | None, typer.Argument(metavar="FILE", help="A document that tightrope wrote, as JSON.")]
Standalone = Annotated[
    bool,
    typer.Option("--standalone", help="Print the verifier as one file of Python (for FILE: what it needs), and stop."),
]
Seconds = Annotated[
    float,
    typer.Option(
        min=0, metavar="S", help="Processor seconds for the claims of a document; what takes longer is left open."
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="List every claim with what was computed again.")]
MOST_WRAPPED_LINES = 2000
"""Lines beyond which a page is not wrapped between words."""
GROUPS = {
    r"mechanisms\[(\d+)\]": ("mechanism", "mechanisms"),
    r"profile\.delta\[(\d+)\]": ("point of delta", "points of delta"),
    r"tradeoff\.true_positive_rate\[(\d+)\]": ("of the trade-off curve", "of the trade-off curve"),
    r"steps\[(\d+)\]": ("step", "steps"),
    r"entries\[(\d+)\]": ("entry", "entries"),
}
"""What claims are about, by the beginning of their names: counted in the summary."""
HEADLINE = ("epsilon", "delta", "total_variation")


def verify(
    file: File = None,
    standalone: Standalone = False,
    seconds: Seconds = 15.0,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Check every claim of a document from the document alone.

    In interval arithmetic and exact whole numbers: slow, and proven. A claim is confirmed where what was computed
    again lies on its safe side.
    """
    if standalone:
        typer.echo(_standalone_page(file), nl=False)
        return
    text, claims = _check_claims(file, seconds)
    from tightrope.verify.check import CODES
    from tightrope.verify.claims import worst_verdict

    if as_json:
        data: list[dict[str, Any]] = [one._asdict() for one in claims]
        document = {"document": "verification", "version": 1, "file": str(file), "verdict": worst_verdict(claims)}
        print_json({**document, "claims": data})
    else:
        _show(summary_lines(str(file), text, claims), claims if verbose else [])
    raise typer.Exit(CODES[worst_verdict(claims)])


def _standalone_page(file: Path | None) -> str:
    from tightrope.verify.standalone import standalone_text

    with _explained_input_errors(file):
        return standalone_text(None if file is None else _read_document_text(file))


def _check_claims(file: Path | None, seconds: float) -> tuple[str, list[Claim]]:
    if file is None:
        raise InputError("FILE", None, "a document that tightrope wrote", WHAT_TO_GIVE)
    with _explained_input_errors(file):
        text = _read_document_text(file)
        from tightrope.verify.check import check_document

        with show_spinner("Computing every claim again ..."):
            return text, check_document(text, seconds)


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
        raise InputError("FILE", str(file), f"a file that can be read ({problem.strerror})", WHAT_TO_GIVE) from None
    except ValueError as problem:
        raise InputError("FILE", str(file), "a document of Tightrope", f"{problem}; {WHAT_TO_GIVE}") from None


def summary_lines(name: str, text: str, claims: list[Claim]) -> list[str]:
    """Return the verdict on a document, what was recomputed, and every claim that is not confirmed, as lines."""
    from tightrope.verify.claims import CONFIRMED, OPEN, REFUTED, UNCHECKED, worst_verdict

    data = json.loads(text)
    data = data.get("certificate", data) if isinstance(data, dict) else {}
    numbers = [f"{key.replace('_', ' ')} {_number(data[key])}" for key in HEADLINE if _is_number(data.get(key))]
    said = f": {', '.join(numbers)}" if numbers else ""
    by_verdict = {
        word: [one for one in claims if one.verdict == word] for word in (CONFIRMED, REFUTED, OPEN, UNCHECKED)
    }
    recomputed = len(claims) - len(by_verdict[UNCHECKED])
    about = ", ".join(_counts(claims))
    lines = [
        f"{worst_verdict(claims).upper()}  {name}{said}",
        f"  {recomputed} claims recomputed{f' ({about})' if about else ''}",
    ]
    nearly = sum(claim.confirms_nearly for claim in claims)
    if nearly:
        lines.append(f"  {nearly} of them confirmed for a little more than is stated (--verbose says how much)")
    for word in (REFUTED, OPEN):
        if by_verdict[word]:
            lines.append(f"  {len(by_verdict[word])} {word}:")
            lines += [f"    {'  '.join((one.name, one.stated, one.found))}" for one in by_verdict[word]]
    if by_verdict[UNCHECKED]:
        others = "text, and facts that only the publisher has (--verbose lists each)"
        lines.append(f"  {len(by_verdict[UNCHECKED])} not checked: {others}")
    return lines


def _counts(claims: list[Claim]) -> Iterator[str]:
    """Return how many parts of each group the claims are about."""
    for pattern, (one, several) in GROUPS.items():
        found = {match[1] for claim in claims if (match := re.match(pattern, claim.name))}
        if found:
            yield f"{len(found)} {one if len(found) == 1 else several}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: float) -> str:
    """Return a number for reading, rounded up to three digits."""
    return significant_text(value, 3, UP)


def _show(summary: list[str], claims: list[Claim]) -> None:
    from tightrope.verify.check import verdict_text

    lines = [*(verdict_text(claims).split("\n")[:-1] if claims else []), *map(escape_control_chars, summary)]
    if len(lines) > MOST_WRAPPED_LINES:
        typer.echo("\n".join(lines))
    else:
        echo_lines(*lines)


app = command_app(verify, example=VERIFY_EXAMPLE)
