"""Turn exceptions into one line on standard error and an exit code.

2 bad input, 3 not enough budget, 130 Ctrl-C, 143 terminated (128 plus the number of the signal), 1 other errors.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import (
    INTERRUPTED,
    NOTHING_SPENT,
    InputError,
    InsufficientBudgetError,
    LedgerWarning,
    TightropeError,
)

EXIT_BAD_INPUT, EXIT_INSUFFICIENT_BUDGET, EXIT_ERROR = 2, 3, 1
MAX_WORD_LENGTH = 500
"""Characters of a word in a message: a path may be long, but not fill the screen."""
SIGNAL_EXIT_OFFSET = 128
"""The exit code after a signal is this plus the number of the signal."""


class Interrupted(BaseException):
    """A signal to stop; the message states how far the command had come.

    It is not a KeyboardInterrupt, because Typer discards the message of one.
    """

    def __init__(self, message: str, signal_number: int = signal.SIGINT) -> None:
        self.signal_number = signal_number
        super().__init__(message)


@contextmanager
def exit_on_error(*, debug: bool) -> Iterator[None]:
    """After an error, write one line that says what is wrong and what to do, and exit; no traceback.

    If the reader of standard output has closed the pipe, exit without a line. With ``debug``, errors are raised again
    with their traceback; interrupts and a closed pipe end the program as usual. Messages of other libraries may quote
    the data, so they are not shown.
    """
    show_as_usual = warnings.showwarning

    def show_warning(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        """Show a warning about a ledger on one line, like errors; others as usual."""
        if isinstance(message, LedgerWarning):
            write_stderr_line(_single_line(f"warning: {message}"))
        else:
            show_as_usual(message, *args, **kwargs)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", LedgerWarning)
            warnings.showwarning = show_warning
            yield
    except KeyboardInterrupt:
        write_stderr_line("interrupted")
        sys.exit(INTERRUPTED)
    except Interrupted as stop:
        # Callers may add the same note more than once; each clause is printed once.
        notes = "; ".join([str(stop), *getattr(stop, "__notes__", ())]).split("; ")
        write_stderr_line(_single_line("; ".join(dict.fromkeys(notes))))
        sys.exit(SIGNAL_EXIT_OFFSET + stop.signal_number)
    except BrokenPipeError:
        discard_stdout()
        sys.exit(EXIT_ERROR)
    except Exception as error:
        if debug:
            raise
        code, text = explain_error(error)
        write_stderr_line(text)
        sys.exit(code)


@contextmanager
def interrupt_without_charge() -> Iterator[None]:
    """On Ctrl-C, exit with the message that nothing was spent. Use it (or decorate) where no budget is charged."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(NOTHING_SPENT) from None


def write_stderr_line(text: str) -> None:
    """Write one line to standard error; ignore a closed pipe."""
    with suppress(OSError):
        print(f"tightrope: {text}", file=sys.stderr, flush=True)  # noqa: T201 - prints to standard error on purpose


def explain_error(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message on one line.

    >>> explain_error(InputError("epsilon", -1, "a number > 0", "a typical value is 1"))
    (2, 'expected epsilon to be a number > 0, got epsilon=-1; a typical value is 1')
    """
    format_usage_error = getattr(error, "format_message", None)
    if format_usage_error is not None:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "tightrope"
        return EXIT_BAD_INPUT, _single_line(f"{format_usage_error().rstrip('.')}; try '{command} --help'")
    exit_codes = (
        (InputError, EXIT_BAD_INPUT),
        (InsufficientBudgetError, EXIT_INSUFFICIENT_BUDGET),
        (TightropeError, EXIT_ERROR),
    )
    for kind, code in exit_codes:
        if isinstance(error, kind):
            return code, _single_line(str(error))
    note_text = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f": {error.filename}"
        return EXIT_ERROR, _single_line(f"{error.strerror}{where}{note_text}")
    fault = f"a bug in Tightrope ({type(error).__name__}); repeat the command with --debug and report what it prints"
    return EXIT_ERROR, _single_line(f"{fault}{note_text}")


def _single_line(text: str) -> str:
    """Return one line with terminal control characters escaped, and very long words cut."""
    words = (word if len(word) <= MAX_WORD_LENGTH else f"{word[:MAX_WORD_LENGTH]}..." for word in text.split())
    return escape_control_chars(" ".join(words))


def discard_stdout() -> None:
    """After the reader closed the pipe, send further output to ``os.devnull``: Python's flush at exit then succeeds."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - open until the end
