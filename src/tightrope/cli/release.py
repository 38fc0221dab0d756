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

from tightrope.cli.errors import Interrupted, discard_stdout, spends_nothing
from tightrope.cli.options import AsJson, PlanPath, command_app
from tightrope.cli.output import echo_heading, echo_lines, print_document, print_table, show_spinner, writable_folder
from tightrope.cli.output_files import existing_files, kept_anyway, refuse_existing, reserve_files
from tightrope.documents.document import plain_data, to_json_text
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.release import results_csv
from tightrope.errors import NOTHING_SPENT, InsufficientBudgetError, OutputError
from tightrope.reporting import html
from tightrope.reporting.wording import sentences
from tightrope.reporting.wording.answers import extra_columns, read_answers, rounded_row
from tightrope.reporting.wording.promise import privacy_promise
from tightrope.reporting.wording.sentences import bias_statements

if TYPE_CHECKING:
    from tightrope.cli.output_files import ReservedFiles
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
        from tightrope.release.plan_file import load_plan_file

        opened_file = load_plan_file(path)
        opened_folder = writable_folder(opened_file.folder if out is None else Path(out))
        refuse_existing(opened_folder, FILES, replace=replace)
        html({})  # a report that cannot be made must fail before anything is spent
        file, folder = opened_file, opened_folder
        if dry_run:
            _rehearse(file, path, [] if force else _in_the_way(folder))
            return
    with _interrupts_while_planning(file), show_spinner("Choosing the least noise ..."):
        plan = file.release_plan(key)
    with _interrupts_before_charge(plan, folder):
        with _explained_refusals(path):
            # The answers, paid for and on disk.

            with defer_signals(lambda: plan.charged) as patience, reserve_files(folder, FILES, replace=force) as files:
                result = _draw_and_keep(plan, file, files, patience.note_answers)
            if patience.stop is not None:
                raise Interrupted(f"stopped; {_complete_message(folder)}", patience.stop)
        with _explained_output_errors(folder):
            _print_answers(result, folder, as_json)


def _rehearse(file: PlanFile, path: str, notes: Sequence[str]) -> None:
    """Everything but the charge and the noise; no ledger is opened or made."""
    with show_spinner("Choosing the least noise ..."):
        plan = file.make_plan()
    with show_spinner("Looking for the table ..."):
        plan.dry_run()
    echo_lines(
        "The table is there, and the noise is certified. Nothing was read, charged or drawn.",
        f"Not looked at: whether enough is left (tightrope ledger show {path}). To release: tightrope release {path}",
        *notes,
    )


def _in_the_way(folder: Path) -> list[str]:
    """A rehearsal writes nothing, so that a release in its folder hinders the next one alone."""
    there = existing_files(folder, FILES)
    return [f"A release lies in {folder} already and is kept: add --out DIR, or --force."] if there else []


@contextmanager
def _interrupts_while_planning(file: PlanFile) -> Iterator[None]:
    """Handle Ctrl-C during planning: a series may already be reserved, once for all its releases."""
    try:
        yield
    except KeyboardInterrupt:
        alone = file.document.ledger.times is None
        raise Interrupted(NOTHING_SPENT if alone else NOTHING_RELEASED) from None


@contextmanager
def _interrupts_before_charge(plan: Plan, folder: Path) -> Iterator[None]:
    """Handle Ctrl-C outside deferred signals: nothing is spent before the charge; printed answers are on disk."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {_complete_message(folder)}" if plan.charged else NOTHING_SPENT) from None


def _complete_message(folder: Path) -> str:
    return f"the budget was spent, and the answers are complete in {folder}"


def released_into(path: Path, folder: Path) -> None:
    """A saved plan released to a folder that has no release: charged, drawn and written as the command does.

    For programs that wait for signals themselves: nothing here is interrupted.
    """
    from tightrope.release.plan_file import load_plan_file

    file = load_plan_file(path)
    html({})
    with reserve_files(writable_folder(folder), FILES, replace=False) as files, _explained_refusals(str(path)):
        _draw_and_keep(file.release_plan(), file, files, lambda: None)


def _draw_and_keep(plan: Plan, file: PlanFile, files: ReservedFiles, got: Callable[[], None]) -> ReleaseResult:
    """Charge, draw and keep; ``got`` is called once there are answers."""
    with show_spinner("Reading the table and drawing noise ..."):
        result = plan.release().result(file.plan_title, file.reader_information)
        got()
    with show_spinner("Writing the report ..."):
        # Answers first: with them, the rest could be made again.
        from tightrope.release.answers import results_parquet

        texts = {RESULT: to_json_text(result), CERTIFICATE: to_json_text(result.certificate)}
        with kept_anyway(files.folder, texts):
            files.store_files(texts)
            files.store_files({TABLE: results_csv(result), PARQUET: results_parquet(result)})
            files.store_files({REPORT: html(result)})
    return result


@contextmanager
def _explained_refusals(path: str) -> Iterator[None]:
    """A refusal says where the ledger is shown, and that what was paid can be had again."""
    try:
        yield
    except InsufficientBudgetError as error:
        raise InsufficientBudgetError(
            f"{error}; tightrope ledger show {path} says what was spent, and tightrope release {path} --key KEY "
            f"--out DIR writes answers again that were paid under a KEY"
        ) from None


@contextmanager
def _explained_output_errors(folder: Path) -> Iterator[None]:
    """Add the answers' location to errors of standard output."""
    try:
        yield
        sys.stdout.flush()
        return
    except OSError as error:
        why = error.strerror
    except SystemExit:  # what rich makes of a closed pipe
        why = "closed pipe"
    discard_stdout()
    raise OutputError(f"standard output failed ({why}); {_complete_message(folder)}")


def _print_answers(result: ReleaseResult, folder: Path, as_json: bool) -> None:

    if as_json:
        print_document(result)
    else:
        # Answers first, then what is promised, then where everything is.
        document = plain_data(result)

        echo_lines(*([escape_control_chars(result.title)] if result.title else []))
        for answer in read_answers(document):
            _show_answer(answer, folder / REPORT)
        # What bounding and clamping cost, where the plan paid for knowing it.
        found = bias_statements(document)
        if found:
            echo_heading("What was left out")
            echo_lines(*(f"{statement} ({answers})" for statement, answers in found))
        certificate = document["certificate"]

        words = privacy_promise(certificate)
        echo_heading("The promise")
        echo_lines(*([str(words.attack)] if words.attack else []))
        echo_lines(f"epsilon {words.epsilon}: {words.epsilon_meaning}", f"delta {words.delta}: {words.delta_meaning}")
        echo_lines(*([f"{words.protected}."] if words.protected else []), *words.facts)
        echo_lines(f"\nWritten: {', '.join(FILES)} in {folder}")
        echo_lines(*_ledger_summary(document["certificate"]))


def _ledger_summary(certificate: Mapping[str, Any]) -> list[str]:
    """Describe the ledger that was charged, and the budget left."""
    from tightrope.ledger.state import share_text

    entry = certificate.get("entry")
    if entry is None:
        return [f"{certificate['ledger']}: releasing again spends the budget again."]
    took, left = (share_text(Fraction(entry[part])) for part in ("budget_fraction", "left"))
    if entry["of"]:
        # A series was paid whole: the rest of the budget is printed apart from the releases that are still to
        # come.

        done, times = entry["position"], entry["of"]
        after = f"{times - done} of {times} remain, reserved: the next one takes nothing more of the whole budget"
        last = f"it was the last of {times}; another one needs another series, or a share of what is left"
        return [
            f"This is release {done} of {times}; recorded as entry {entry['number']} of ledger {entry['ledger']}.",
            f"Its key is {escape_control_chars(entry['key'])}. All {times} were paid when the series was declared; "
            f"{after if done < times else last}. Beside the series {left} of the whole budget is left.",
        ]
    if (took, left) == ("1", "0"):
        spent = "This release used this dataset's whole privacy budget."
    else:
        spent = f"This release used {took} of this dataset's privacy budget; {left} is left."
    return [f"{spent} Releasing again is charged again.", f"It is {certificate['ledger']}, with key {entry['key']}."]


def _show_answer(answer: Answer, report: Path) -> None:

    echo_heading(sentences.answer_heading(answer))
    echo_lines(sentences.question_sentence(answer))
    if not answer.rows:
        echo_lines(sentences.NOTHING_SHOWN)
        return
    names, besides = extra_columns(answer)
    texts = [(row.key_labels, rounded_row(row, answer.decimal_places)) for row in answer.rows[:PRINTED_ROWS]]
    rows = [
        [*labels, text.value, text.plus_minus_text, *said] for (labels, text), said in zip(texts, besides, strict=False)
    ]
    print_table([*answer.by, "value", "95 % within", *names], rows, left=len(answer.by))
    if len(answer.rows) > PRINTED_ROWS:
        echo_lines(f"... and {len(answer.rows) - PRINTED_ROWS} more in {report}")


# Signals that ask to stop: at once while nothing is spent; afterwards when the paid answers are on disk.

STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
WAITS = b"tightrope: the budget is spent; stopping when the answers are written (Ctrl-C again gives them up)\n"


class DeferredSignals:
    """Defers signals from the charge of the budget until there are answers.

    ``stop`` is the first signal after the charge; ``answered``: there are answers.
    """

    def __init__(self, charged: Callable[[], bool]) -> None:
        self._charged = charged
        self.stop: int | None = None
        self.answered = False

    def note_answers(self) -> None:
        """There are answers now."""
        self.answered = True

    def handle_signal(self, number: int, _: FrameType | None) -> None:
        """The handler: raises ``Interrupted`` before the charge, and for a second Ctrl-C before there are answers."""
        if not self._charged():
            raise Interrupted(NOTHING_SPENT, number)
        if self.stop is not None and number == signal.SIGINT and not self.answered:
            raise Interrupted("interrupted", number)
        self.stop = self.stop or number
        with suppress(OSError):
            os.write(2, WAITS)


@contextmanager
def defer_signals(charged: Callable[[], bool]) -> Iterator[DeferredSignals]:
    """Within it, signals to stop wait from the moment when ``charged()`` until its end."""
    patience = DeferredSignals(charged)
    before = {number: signal.signal(number, patience.handle_signal) for number in STOPS}
    try:
        yield patience
    except KeyboardInterrupt as stop:  # DuckDB's own exception replaces the handler's
        said = str(stop) or ("interrupted" if charged() else NOTHING_SPENT)
        raise Interrupted(said, patience.stop or signal.SIGINT) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


app = command_app(release, example=RELEASE_EXAMPLE)
