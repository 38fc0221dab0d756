"""``tightrope release``: charge the budget, sample the noise, write the answers and the report, then print them."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.errors import EXIT_INSUFFICIENT_BUDGET, Interrupted, discard_stdout, interrupt_without_charge
from tightrope.cli.options import AsJson, PlanPath, command_app
from tightrope.cli.output import echo_heading, echo_lines, print_document, print_table, show_progress, writable_folder
from tightrope.cli.output_files import (
    folder_text,
    refuse_existing,
    report_unwritten_texts,
    reserve_files,
)
from tightrope.documents.document import to_json_text
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import UP, terminal_text
from tightrope.documents.release import results_csv
from tightrope.errors import NOTHING_SPENT, InputError, InsufficientBudgetError, OutputError
from tightrope.reporting import html
from tightrope.reporting.wording import sentences
from tightrope.reporting.wording.answers import Answer, extra_columns, printed_answer_row, shown_answers
from tightrope.reporting.wording.partial_release import PartialRelease
from tightrope.reporting.wording.promise import privacy_promise
from tightrope.reporting.wording.sentences import bias_statements

if TYPE_CHECKING:
    from tightrope.cli.output_files import ReservedFiles
    from tightrope.documents.release import ReleaseCertificate, ReleaseResult
    from tightrope.release.plan import Plan
    from tightrope.release.plan_file import PlanFile

RELEASE_EXAMPLE = """\b
Example:
  tightrope release examples/census/plan.toml --out /tmp/census

Exit codes: 0 everything is written and printed; 1 an error: the message says whether the budget was charged and where
the answers are; 2 bad input (nothing was charged); 3 not enough budget left (nothing was charged); 130 and 143 stopped
by Ctrl-C or SIGTERM (before the charge, nothing is charged; after it, the answers are written first). The budget is
charged before the table is read. A failed read is not refunded, because a failure can itself depend on the data.
"""
Out = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Folder for result.json, certificate.json, results.csv, results.parquet and report.html "
        "[default: the folder of PLAN].",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", metavar="KEY", help="Name of this release; repeating it returns the same answers without a new charge."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output files; a new release is charged.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check the plan, the noise, the source and the ledger; read no row.")
]
PRINTED_ROWS = 20
NOTHING_RELEASED = "interrupted; nothing was released; a series that was reserved is continued by the next run"
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
    """Release the answers: charge the budget, sample the noise, write results and a report.

    Each run charges the ledger with the fraction of the budget that the plan uses (by default, all of it), and is
    refused if too little is left. A run interrupted after the charge is resumed by the next one without a second
    charge. The files are complete on disk before anything is printed. --dry-run checks the plan, the
    noise and that the table exists with the expected columns, and states whether the ledger would accept the release.
    It reads no rows and charges nothing.
    """
    with interrupt_without_charge():
        # The plan, and the folder for its release, which must be writable.
        replace = force or dry_run
        from tightrope.release.plan_file import load_plan_file

        opened_file = load_plan_file(path)
        opened_folder = writable_folder(opened_file.folder if out is None else Path(out))
        try:
            refuse_existing(opened_folder, FILES, replace=replace)
        except InputError:
            _refuse_if_spent(opened_file, path, opened_folder, key)
            raise
        html(PartialRelease())  # a report that cannot be made must fail before the charge
        file, folder = opened_file, opened_folder
        if dry_run:
            _run_dry(file, path, folder, key, force=force)
            return
        entries_before = file.last_ledger_entry()
    try:
        with show_progress("Choosing the noise ..."):
            plan = file.release_plan(key)
    except KeyboardInterrupt:  # a series may already be reserved, once for all its releases
        alone = file.document.ledger.times is None
        raise Interrupted(NOTHING_SPENT if alone else NOTHING_RELEASED) from None
    try:
        with _explained_refusals(path):
            # The answers, charged and on disk.
            with defer_signals(lambda: plan.charged) as patience, reserve_files(folder, FILES, replace=force) as files:
                result = _draw_and_keep(plan, file, files, patience.note_answers)
            if patience.stop is not None:
                raise Interrupted(f"stopped; {_complete_message(folder)}", patience.stop)
        try:
            _print_answers(result, folder, entries_before, as_json=as_json)
            sys.stdout.flush()
            return
        except OSError as error:
            why = error.strerror
        except SystemExit:  # rich raises it for a closed pipe
            why = "closed pipe"
        discard_stdout()
        raise OutputError(f"standard output failed ({why}); {_complete_message(folder)}")
    except KeyboardInterrupt:  # outside of deferred signals: before the charge, or with the answers on disk
        raise Interrupted(f"interrupted; {_complete_message(folder)}" if plan.charged else NOTHING_SPENT) from None


def _refuse_if_spent(file: PlanFile, path: str, folder: Path, key: str | None) -> None:
    """Raise ``InputError`` for a folder with a release if ``--force`` would not help: no budget is left."""
    from tightrope.ledger.limits import MAIN_LIMIT

    account = file.find_account()
    if account is None or key is not None or file.document.ledger.times is not None or account.unanswered_charges:
        return
    if account.current_state().balance_of(MAIN_LIMIT).fraction_left == 0:
        text = (
            f"{folder_text(folder)} already contains a release, and another one would be refused, also with --force: "
            f"the whole privacy budget of this dataset is spent. To list releases and their keys: tightrope ledger "
            f"history {path}. To write the answers of one again: tightrope release {path} --key KEY --out DIR"
        )
        raise InputError.from_text("output folder", text)


def _run_dry(file: PlanFile, path: str, folder: Path, key: str | None, *, force: bool) -> None:
    """Run all steps before the charge, and print what the ledger would do; creates no ledger. Exits 3 if refused."""
    from tightrope.release.plan_file import forecast_release

    # A dry run writes no files, so files of an earlier release are only mentioned.
    there = not force and any((folder / name).exists() for name in FILES)
    in_the_way = f"There is already a release in {folder_text(folder)}: use --out DIR, or --force."
    with show_progress("Choosing the noise ..."):
        plan = file.make_plan()
    with show_progress("Looking for the table ..."):
        plan.dry_run()
    forecast = forecast_release(file, plan, key)
    ledger = forecast.sentences or ["The ledger does not contain this dataset yet: the first release declares it."]
    echo_lines(
        "The table exists, and the privacy guarantee was recomputed from the noise and holds. No row was read, and "
        "nothing was charged.",
        *map(escape_control_chars, ledger),
        *([] if forecast.would_refuse else [f"To release: tightrope release {path}"]),
        *([in_the_way] if there else []),
    )
    if forecast.would_refuse:
        raise typer.Exit(EXIT_INSUFFICIENT_BUDGET)


def _complete_message(folder: Path) -> str:
    return f"the budget was spent, and the answers are complete in {folder_text(folder)}"


def release_saved_plan(path: Path, folder: Path) -> None:
    """Release a saved plan to a folder without a release, as the command does.

    For programs that handle signals themselves.
    """
    from tightrope.release.plan_file import load_plan_file

    file = load_plan_file(path)
    html(PartialRelease())
    with reserve_files(writable_folder(folder), FILES, replace=False) as files, _explained_refusals(str(path)):
        _draw_and_keep(file.release_plan(), file, files, lambda: None)


def _draw_and_keep(plan: Plan, file: PlanFile, files: ReservedFiles, got: Callable[[], None]) -> ReleaseResult:
    """Charge, sample and write; ``got`` is called once there are answers."""
    with show_progress("Reading the table and sampling noise ..."):
        result = plan.release().result(file.document.title, file.reader_information)
        got()
    with show_progress("Writing the report ..."):
        # Answers first: the rest could be made again from them.
        from tightrope.release.answers import results_parquet

        texts = {RESULT: to_json_text(result), CERTIFICATE: to_json_text(result.certificate)}
        with report_unwritten_texts(files.folder, texts):
            files.store_files(texts)
            files.store_files({TABLE: results_csv(result), PARQUET: results_parquet(result)})
            files.store_files({REPORT: html(result)})
    return result


@contextmanager
def _explained_refusals(path: str) -> Iterator[None]:
    """Add to a refusal how to write earlier answers again."""
    try:
        yield
    except InsufficientBudgetError as error:
        raise InsufficientBudgetError(
            f"{error}. To list releases and their keys: tightrope ledger history {path}. "
            f"To write the answers of one again: tightrope release {path} --key KEY --out DIR"
        ) from None


def _print_answer(result: ReleaseResult, answer: Answer, folder: Path) -> None:
    """Print the first groups of an answer as a table, with the sentences on what it is about."""
    echo_heading(sentences.answer_heading(answer))
    left_out = sentences.left_out_text(result, answer.name)
    echo_lines(*filter(None, (left_out, sentences.question_sentence(answer), answer.clamping)))
    if not answer.rows:
        echo_lines(sentences.NOTHING_SHOWN)
        return
    names, besides = extra_columns(answer)
    texts = [(row.key_labels, printed_answer_row(answer, row)) for row in answer.rows[:PRINTED_ROWS]]
    rows = [
        [*labels, text.value, text.plus_minus_text, *extra]
        for (labels, text), extra in zip(texts, besides, strict=False)
    ]
    print_table([*answer.by, "value", "95 % interval", *names], rows, left=len(answer.by))
    missing_groups = sentences.missing_groups_text(answer)
    echo_lines(*([missing_groups] if missing_groups else []))
    if len(answer.rows) > PRINTED_ROWS:
        echo_lines(f"... and {len(answer.rows) - PRINTED_ROWS} more in {folder / REPORT}")


def _print_answers(result: ReleaseResult, folder: Path, entries_before: int, *, as_json: bool) -> None:
    if as_json:
        print_document(result)
    else:
        # Answers first, then the guarantee, then the files and the ledger.
        echo_lines(*([escape_control_chars(result.title)] if result.title else []))
        for answer in shown_answers(result):
            _print_answer(result, answer, folder)
        # The bias from limiting rows and clamping values, if the plan estimates it.
        found = bias_statements(result)
        if found:
            echo_heading(sentences.bias_heading(result))
            echo_lines(*(f"{statement} ({answers})" for statement, answers in found))
        words = privacy_promise(result.certificate)
        echo_heading("Privacy guarantee")
        echo_lines(*([str(words.attack)] if words.attack else []))
        echo_lines(
            f"epsilon {words.epsilon}: {words.epsilon_meaning}",
            f"delta {terminal_text(result.certificate.delta, 2, UP)}: {words.delta_meaning}",
        )
        neighbors = f"Neighboring tables: {words.protected[:1].lower()}{words.protected[1:]}."
        echo_lines(*([neighbors] if words.protected else []), *words.facts)
        echo_lines(*_smaller_limits_line(result))
        echo_lines(f"\nWritten: {', '.join(FILES)} in {folder_text(folder)}")
        echo_lines(*ledger_summary(result.certificate, entries_before))


def _smaller_limits_line(result: ReleaseResult) -> list[str]:
    """Return a line on the answers with a smaller limit on a person's rows or groups than the plan as a whole."""
    neighbors = result.certificate.neighbors
    names = [
        escape_control_chars(answer.name)
        for answer in result.answers
        if answer.max_rows < neighbors.max_rows
        or (answer.by and answer.max_groups < neighbors.max_groups)  # an answer without groups counts as one group
        or (answer.by and answer.max_rows_per_group < neighbors.max_rows_per_group)
    ]
    return [f"answers with smaller limits, which their titles state: {', '.join(names)}"] if names else []


def ledger_summary(certificate: ReleaseCertificate, entries_before: int) -> list[str]:
    """Describe the charge in the ledger, and the budget left; ``entries_before`` this run, the ledger had."""
    from tightrope.ledger.state import fraction_text

    entry = certificate.entry
    if entry is None:
        return [f"{certificate.ledger}: another release spends the budget again."]
    took, left = fraction_text(Fraction(entry.budget_fraction)), fraction_text(Fraction(entry.left))
    key = escape_control_chars(entry.key)
    recorded = f"recorded as entry {entry.number} (key {key}) of ledger {entry.ledger}"
    if entry.of:
        done, times = entry.position, entry.of
        after = f"{times - done} of {times} remain, reserved at no further cost"
        last = f"it was the last of {times}; more releases need another series, or a fraction of the budget left"
        return [
            f"This is release {done} of {times}; {recorded}.",
            f"All {times} were charged when the series was declared; {after if done < times else last}. "
            f"{left} of the whole budget is left for other releases.",
        ]
    if entry.number <= entries_before:
        spent = "These answers were charged before; nothing was charged now."
    elif (took, left) == ("1", "0"):
        spent = "This release used this dataset's whole privacy budget. Another release will be refused."
    else:
        again = "Another release will be refused." if left == "0" else "Another release is charged again."
        spent = f"This release used {took} of this dataset's privacy budget; {left} is left. {again}"
    limits = ", ".join(limit.limit_text for limit in entry.limits)
    place = f"release {entry.position} of the dataset {escape_control_chars(entry.dataset)!r}"
    return [spent, f"It is {place}, {recorded}{f'; budget left: {escape_control_chars(limits)}' if limits else ''}."]


# Signals to stop: handled at once before the charge; after it, when the answers are on disk.

STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
WAITS = b"tightrope: the budget is spent; stopping when the answers are written (Ctrl-C again discards them)\n"


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
