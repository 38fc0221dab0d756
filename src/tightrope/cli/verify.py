"""``tightrope verify``: every claim of a document computed again, by code that shares nothing with what wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.options import AsJson, command_app
from tightrope.cli.output import print_json, say, working
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
MOST_WRAPPED_LINES = 2000
"""Lines beyond which a page is not wrapped between words."""


def verify(file: File = None, standalone: Standalone = False, seconds: Seconds = 15.0, as_json: AsJson = False) -> None:
    """Check every claim of a document from the document alone.

    In interval arithmetic and exact whole numbers: slow, and proven. A claim is confirmed where what was computed
    again lies on its safe side.
    """
    if standalone:
        typer.echo(_alone(file), nl=False)
        return
    claims = _claims(file, seconds)
    from tightrope.verify.check import CODES
    from tightrope.verify.claims import verdict

    _tell(str(file), claims, as_json)
    raise typer.Exit(CODES[verdict(claims)])


def _alone(file: Path | None) -> str:
    from tightrope.verify.standalone import standalone

    with _refusing(file):
        return standalone(None if file is None else _text(file))


def _claims(file: Path | None, seconds: float) -> list[Claim]:

    if file is None:
        raise InputError("FILE", None, "a document that tightrope wrote", WHAT_TO_GIVE)
    with _refusing(file):
        text = _text(file)
        from tightrope.verify.check import checked

        with working("Computing every claim again ..."):
            return checked(text, seconds)


def _text(file: Path) -> str:
    from tightrope.verify.check import document_text

    return document_text(file)


@contextmanager
def _refusing(file: Path | None) -> Iterator[None]:
    """In our words: what is missing, no file, or no document."""
    try:
        yield
    except ImportError:
        raise MissingExtraError("python-flint", "verify") from None
    except OSError as problem:
        raise InputError("FILE", str(file), f"a file that can be read ({problem.strerror})", WHAT_TO_GIVE) from None
    except ValueError as problem:
        raise InputError("FILE", str(file), "a document of Tightrope", f"{problem}; {WHAT_TO_GIVE}") from None


def _tell(name: str, claims: list[Claim], as_json: bool) -> None:
    from tightrope.verify.check import verdict_text
    from tightrope.verify.claims import verdict

    if not as_json:
        lines = verdict_text(claims).split("\n")
        if len(lines) > MOST_WRAPPED_LINES:
            typer.echo("\n".join(lines))
        else:
            say(*lines)
        return
    data: list[dict[str, Any]] = [one._asdict() for one in claims]
    print_json({"document": "verification", "version": 1, "file": name, "verdict": verdict(claims), "claims": data})


app = command_app(verify, example=VERIFY_EXAMPLE)
