"""From exceptions to one line on standard error and an exit code.

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

BAD_INPUT, REFUSED, FAILED, SIGNALLED = 2, 3, 1, 128


class Interrupted(BaseException):
    """A signal to stop; the message states how far the command had come. (Typer drops that of a KeyboardInterrupt.)"""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        self.number = number
        super().__init__(message)


@contextmanager
def one_line(*, debug: bool) -> Iterator[None]:
    """End the program after an error with one line that says what is wrong and what to do, without a traceback.

    ``debug`` lets every exception pass. Messages of other libraries may quote the data, so they are not shown.
    """
    try:
        with _told_warnings():
            yield
    except KeyboardInterrupt:
        write_stderr_line("interrupted")
        sys.exit(INTERRUPTED)
    except Interrupted as stop:
        # Several callers may add the same note to a signal: each is printed once.
        notes = "; ".join([str(stop), *getattr(stop, "__notes__", ())]).split("; ")
        write_stderr_line(_single_line("; ".join(dict.fromkeys(notes))))
        sys.exit(SIGNALLED + stop.number)
    except BrokenPipeError:
        discard_stdout()
        sys.exit(FAILED)
    except Exception as error:
        if debug:
            raise
        code, text = explain_error(error)
        write_stderr_line(text)
        sys.exit(code)


@contextmanager
def spends_nothing() -> Iterator[None]:
    """Within it, and in a function that it decorates, Ctrl-C spends no budget, and the message says so."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(NOTHING_SPENT) from None


@contextmanager
def _told_warnings() -> Iterator[None]:
    """Show warnings about a ledger on one line, like errors; others as usual."""
    before = warnings.showwarning

    def show_warning(message: Warning | str, *place: Any, **more: Any) -> None:
        if isinstance(message, LedgerWarning):
            write_stderr_line(_single_line(f"warning: {message}"))
        else:
            before(message, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", LedgerWarning)
        warnings.showwarning = show_warning
        yield


def write_stderr_line(text: str) -> None:
    """Write one line to standard error; ignore a closed pipe."""
    with suppress(OSError):
        print(f"tightrope: {text}", file=sys.stderr, flush=True)  # noqa: T201 - this is what the function is for


def explain_error(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message on one line.

    >>> explain_error(InputError("epsilon", -1, "a number > 0", "a typical value is 1"))
    (2, 'expected epsilon to be a number > 0, got epsilon=-1; a typical value is 1')
    """
    usage = getattr(error, "format_message", None)
    if usage is not None:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "tightrope"
        return BAD_INPUT, _single_line(f"{usage().rstrip('.')}; try '{command} --help'")
    for kind, code in ((InputError, BAD_INPUT), (InsufficientBudgetError, REFUSED), (TightropeError, FAILED)):
        if isinstance(error, kind):
            return code, _single_line(str(error))
    noted = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f": {error.filename}"
        return FAILED, _single_line(f"{error.strerror}{where}{noted}")
    fault = f"a bug in Tightrope ({type(error).__name__}); repeat the command with --debug and report what it prints"
    return FAILED, _single_line(f"{fault}{noted}")


def _single_line(text: str) -> str:
    """Return one line with terminal control characters escaped."""
    joined = " ".join(text.split())
    return escape_control_chars(joined)


def discard_stdout() -> None:
    """Discard the rest of standard output after its reader closed it, also when Python closes it."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - open until the end
