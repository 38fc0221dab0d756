"""From exceptions to one line on standard error and an exit code.

2 bad input, 3 budget refused, 130 Ctrl-C, 143 terminated (128 and the number of the signal), 1 anything else.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tightrope.documents.escaping import printable
from tightrope.errors import INTERRUPTED, NOTHING_SPENT, BudgetRefused, InputError, LedgerWarning, TightropeError

BAD_INPUT, REFUSED, FAILED, SIGNALLED = 2, 3, 1, 128


class Stopped(BaseException):
    """A signal asked to stop; the message says how far things had come. (Typer would swallow a KeyboardInterrupt's.)"""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        self.number = number
        super().__init__(message)


@contextmanager
def one_line(*, debug: bool) -> Iterator[None]:
    """End the program with one line that says what was expected, what came and what to try; no traceback.

    ``debug`` lets every exception pass. Messages of other libraries may quote the data, so they are not shown.
    """
    try:
        with _told_warnings():
            yield
    except KeyboardInterrupt:
        tell("interrupted")
        sys.exit(INTERRUPTED)
    except Stopped as stop:
        tell(_flat(_once(str(stop), *getattr(stop, "__notes__", ()))))
        sys.exit(SIGNALLED + stop.number)
    except BrokenPipeError:
        silence()
        sys.exit(FAILED)
    except Exception as error:
        if debug:
            raise
        code, text = explained(error)
        tell(text)
        sys.exit(code)


@contextmanager
def spends_nothing() -> Iterator[None]:
    """Within it, and in a function that it decorates, Ctrl-C costs nothing, and the message says so."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(NOTHING_SPENT) from None


def _once(*said: str) -> str:
    """What is said, and nothing of it twice: of a signal more than one place may know that it cost nothing.

    >>> _once("interrupted; nothing was spent", "nothing was spent")
    'interrupted; nothing was spent'
    """
    return "; ".join(dict.fromkeys("; ".join(said).split("; ")))


@contextmanager
def _told_warnings() -> Iterator[None]:
    """Warnings about a ledger are one line, as errors are; others are shown as ever."""
    before = warnings.showwarning

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        if isinstance(message, LedgerWarning):
            tell(_flat(f"warning: {message}"))
        else:
            before(message, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", LedgerWarning)
        warnings.showwarning = show
        yield


def tell(text: str) -> None:
    """One line on standard error, if anybody still reads it."""
    with suppress(OSError):
        print(f"tightrope: {text}", file=sys.stderr, flush=True)  # noqa: T201 - this is what the function is for


def explained(error: Exception) -> tuple[int, str]:
    """The exit code, and the words on one line.

    >>> explained(InputError("epsilon", -1, "a number > 0", "a typical value is 1"))
    (2, 'expected epsilon to be a number > 0, got epsilon=-1; a typical value is 1')
    """
    usage = getattr(error, "format_message", None)
    if usage is not None:
        return BAD_INPUT, _flat(f"{usage().rstrip('.')}; try '{_command(error)} --help'")
    for kind, code in ((InputError, BAD_INPUT), (BudgetRefused, REFUSED), (TightropeError, FAILED)):
        if isinstance(error, kind):
            return code, _flat(str(error))
    noted = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f": {error.filename}"
        return FAILED, _flat(f"{error.strerror}{where}{noted}")
    fault = f"a fault of Tightrope ({type(error).__name__}); try the same with --debug and report what it prints"
    return FAILED, _flat(f"{fault}{noted}")


def _flat(text: str) -> str:
    """One line, with nothing in it that a terminal would obey."""
    joined = " ".join(text.split())
    return printable(joined)


def _command(error: Exception) -> str:
    """The command whose usage was wrong, as typed."""
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "tightrope"


def silence() -> None:
    """Nobody can read standard output any more: what is left in it goes nowhere, also when Python closes it."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - open until the end
