"""``tightrope release``: charge the budget, draw the noise, write the answers and the report, and print them then."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.errors import Stopped, silence, spends_nothing
from tightrope.cli.options import AsJson, PlanPath, command_app
from tightrope.cli.output import heading, print_document, print_table, say, working, writable
from tightrope.cli.output_files import existing, kept_anyway, refuse_existing, reserved
from tightrope.documents.document import plain, to_json_text
from tightrope.documents.escaping import printable
from tightrope.documents.release import results_csv
from tightrope.errors import NOTHING_SPENT, BudgetRefused, OutputError
from tightrope.reporting import html
from tightrope.reporting.wording import sentences
from tightrope.reporting.wording.answers import further, read_answers, rounded_row
from tightrope.reporting.wording.promise import promise
from tightrope.reporting.wording.sentences import left_out

if TYPE_CHECKING:
    from tightrope.cli.output_files import Reserved
    from tightrope.documents.release import ReleaseResult
    from tightrope.release.plan import Plan
    from tightrope.release.plan_file import PlanFile
    from tightrope.reporting.wording.answers import Answer

RELEASE_EXAMPLE = """\b
Example:
  tightrope release examples/census/plan.toml --out /tmp/census

Exit codes: 0 everything is written and printed; 1 something failed, and the message says whether the budget was spent
and where the answers lie; 2 bad input and 3 budget refused: nothing was spent; 130 and 143 stopped by Ctrl-C or
SIGTERM: before the charge nothing is spent, after it the answers are written first. The charge comes before the table
is read, because whether reading fails can depend on its rows: a reading that fails is charged.
"""
Out = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Where to write result.json, certificate.json, results.* and report.html [default: beside PLAN].",
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="Name this release; under one key it is paid once.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there; budget it brings none.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the plan, the noise and the source; read no row.")]
PRINTED_ROWS = 20
NOTHING_RELEASED = "interrupted; nothing was released, and a series that was reserved is taken up by the next run"
RESULT, CERTIFICATE, TABLE, PARQUET, REPORT = FILES = (
    "result.json",
    "certificate.json",
    "results.csv",
    "results.parquet",
    "report.html",
)


def release(
    path: PlanPath,
    out: Out = None,
    force: Force = False,
    key: Key = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Draw the noise and write private answers and a report.

    Spends the share of the plan, each time, and refuses where the ledger has too little left. A run that was stopped
    after it paid is taken up again at no cost. The files are complete on disk before anything is printed. With
    --dry-run everything is tried that does not depend on the rows: the noise is certified, the table is there and is
    what was opened. No row is read.
    """
    with spends_nothing():
        # The plan, and the folder for its release, which can be written to.
        replace = force or dry_run
        from tightrope.release.plan_file import load

        opened_file = load(path)
        opened_folder = writable(opened_file.folder if out is None else Path(out))
        refuse_existing(opened_folder, FILES, replace=replace)
        html({})  # a report that cannot be made must fail before anything is spent
        file, folder = opened_file, opened_folder
        if dry_run:
            _rehearse(file, path, [] if force else _in_the_way(folder))
            return
    with _reserving(file), working("Choosing the least noise ..."):
        plan = file.release_plan(key)
    with _stopping(plan, folder):
        with _refusals(path):
            # The answers, paid for and on disk.

            with patient(lambda: plan.charged) as patience, reserved(folder, FILES, replace=force) as files:
                result = _draw_and_keep(plan, file, files, patience.note_answers)
            if patience.stop is not None:
                raise Stopped(f"stopped; {_complete(folder)}", patience.stop)
        with _printing(folder):
            _print(result, folder, as_json)


def _rehearse(file: PlanFile, path: str, notes: Sequence[str]) -> None:
    """Everything but the charge and the noise; no ledger is opened or made."""
    with working("Choosing the least noise ..."):
        plan = file.plan()
    with working("Looking for the table ..."):
        plan.rehearse()
    say(
        "The table is there, and the noise is certified. Nothing was read, charged or drawn.",
        f"Not looked at: whether enough is left (tightrope ledger show {path}). To release: tightrope release {path}",
        *notes,
    )


def _in_the_way(folder: Path) -> list[str]:
    """A rehearsal writes nothing, so that a release in its folder hinders the next one alone."""
    there = existing(folder, FILES)
    return [f"A release lies in {folder} already and is kept: add --out DIR, or --force."] if there else []


@contextmanager
def _reserving(file: PlanFile) -> Iterator[None]:
    """Ctrl-C while it is planned: a series may be reserved by then, which is done once."""
    try:
        yield
    except KeyboardInterrupt:
        alone = file.document.ledger.times is None
        raise Stopped(NOTHING_SPENT if alone else NOTHING_RELEASED) from None


@contextmanager
def _stopping(plan: Plan, folder: Path) -> Iterator[None]:
    """Ctrl-C that nobody waited for: before the charge nothing is spent, and what is printed is on disk already."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(f"interrupted; {_complete(folder)}" if plan.charged else NOTHING_SPENT) from None


def _complete(folder: Path) -> str:
    return f"the budget was spent, and the answers are complete in {folder}"


def released_into(path: Path, folder: Path) -> None:
    """A saved plan released to a folder that has no release: charged, drawn and written as the command does.

    For programs that wait for signals themselves: nothing here is interrupted.
    """
    from tightrope.release.plan_file import load

    file = load(path)
    html({})
    with reserved(writable(folder), FILES, replace=False) as files, _refusals(str(path)):
        _draw_and_keep(file.release_plan(), file, files, lambda: None)


def _draw_and_keep(plan: Plan, file: PlanFile, files: Reserved, got: Callable[[], None]) -> ReleaseResult:
    """Charge, draw and keep; ``got`` is called once there are answers."""
    with working("Reading the table and drawing noise ..."):
        result = plan.release().result(file.title, file.about)
        got()
    with working("Writing the report ..."):
        # Answers first: with them, the rest could be made again.
        from tightrope.release.answers import results_parquet

        texts = {RESULT: to_json_text(result), CERTIFICATE: to_json_text(result.certificate)}
        with kept_anyway(files.folder, texts):
            files.keep(texts)
            files.keep({TABLE: results_csv(result), PARQUET: results_parquet(result)})
            files.keep({REPORT: html(result)})
    return result


@contextmanager
def _refusals(path: str) -> Iterator[None]:
    """A refusal says where the ledger is shown, and that what was paid can be had again."""
    try:
        yield
    except BudgetRefused as error:
        raise BudgetRefused(
            f"{error}; tightrope ledger show {path} says what was spent, and tightrope release {path} --key KEY "
            f"--out DIR writes answers again that were paid under a KEY"
        ) from None


@contextmanager
def _printing(folder: Path) -> Iterator[None]:
    """What goes wrong with standard output is told together with where the answers are."""
    try:
        yield
        sys.stdout.flush()
        return
    except OSError as error:
        why = error.strerror
    except SystemExit:  # what rich makes of a closed pipe
        why = "closed pipe"
    silence()
    raise OutputError(f"standard output failed ({why}); {_complete(folder)}")


def _print(result: ReleaseResult, folder: Path, as_json: bool) -> None:

    if as_json:
        print_document(result)
    else:
        # Answers first, then what is promised, then where everything is.
        document = plain(result)

        say(*([printable(result.title)] if result.title else []))
        for answer in read_answers(document):
            _show_answer(answer, folder / REPORT)
        # What bounding and clamping cost, where the plan paid for knowing it.
        found = left_out(document)
        if found:
            heading("What was left out")
            say(*(f"{statement} ({answers})" for statement, answers in found))
        certificate = document["certificate"]

        words = promise(certificate)
        heading("The promise")
        say(*([str(words.attack)] if words.attack else []))
        say(f"epsilon {words.epsilon}: {words.epsilon_meaning}", f"delta {words.delta}: {words.delta_meaning}")
        say(*([f"{words.protected}."] if words.protected else []), *words.facts)
        say(f"\nWritten: {', '.join(FILES)} in {folder}")
        say(*_recorded(document["certificate"]))


def _recorded(certificate: Mapping[str, Any]) -> list[str]:
    """Where it was charged, and what is left."""
    from tightrope.ledger.state import share_text

    entry = certificate.get("entry")
    if entry is None:
        return [f"{certificate['ledger']}: releasing again spends the budget again."]
    took, left = (share_text(Fraction(entry[part])) for part in ("share", "left"))
    if entry["of"]:
        # A series was paid whole: what is left of the budget is said apart from the releases that are still to
        # come.

        done, times = entry["position"], entry["of"]
        after = f"{times - done} of {times} remain, reserved: the next one takes nothing more of the whole budget"
        last = f"it was the last of {times}; another one needs another series, or a share of what is left"
        return [
            f"This is release {done} of {times}; recorded as entry {entry['number']} of ledger {entry['ledger']}.",
            f"Its key is {printable(entry['key'])}. All {times} were paid when the series was declared; "
            f"{after if done < times else last}. Beside the series {left} of the whole budget is left.",
        ]
    return [
        f"This is {certificate['ledger']}.",
        f"Its key is {entry['key']}. Of the whole budget it took {took}; {left} is left. Releasing again is charged "
        f"again.",
    ]


def _show_answer(answer: Answer, report: Path) -> None:

    heading(sentences.heading(answer))
    say(sentences.question_sentence(answer))
    if not answer.rows:
        say(sentences.NOTHING_SHOWN)
        return
    names, besides = further(answer)
    texts = [(row.labels, rounded_row(row, answer.decimals)) for row in answer.rows[:PRINTED_ROWS]]
    rows = [[*labels, text.value, text.within, *said] for (labels, text), said in zip(texts, besides, strict=False)]
    print_table([*answer.by, "value", "95 % within", *names], rows, left=len(answer.by))
    if len(answer.rows) > PRINTED_ROWS:
        say(f"... and {len(answer.rows) - PRINTED_ROWS} more in {report}")


# Signals that ask to stop: at once while nothing is spent; afterwards when the paid answers are on disk.

STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
WAITS = b"tightrope: the budget is spent; stopping when the answers are written (Ctrl-C again gives them up)\n"


class Patience:
    """What has been asked for: ``stop`` is the first signal after the charge; ``answered``: there are answers."""

    def __init__(self, charged: Callable[[], bool]) -> None:
        self._charged = charged
        self.stop: int | None = None
        self.answered = False

    def note_answers(self) -> None:
        """There are answers now."""
        self.answered = True

    def handle(self, number: int, _: FrameType | None) -> None:
        """The handler: raises ``Stopped`` before the charge, and for a second Ctrl-C before there are answers."""
        if not self._charged():
            raise Stopped(NOTHING_SPENT, number)
        if self.stop is not None and number == signal.SIGINT and not self.answered:
            raise Stopped("interrupted", number)
        self.stop = self.stop or number
        with suppress(OSError):
            os.write(2, WAITS)


@contextmanager
def patient(charged: Callable[[], bool]) -> Iterator[Patience]:
    """Within it, signals to stop wait from the moment when ``charged()`` until its end."""
    patience = Patience(charged)
    before = {number: signal.signal(number, patience.handle) for number in STOPS}
    try:
        yield patience
    except KeyboardInterrupt as stop:  # DuckDB's own, whatever the handler raised
        said = str(stop) or ("interrupted" if charged() else NOTHING_SPENT)
        raise Stopped(said, patience.stop or signal.SIGINT) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


app = command_app(release, example=RELEASE_EXAMPLE)
