"""From exceptions to one line on standard error and an exit code: 2 bad input, 3 budget refused, 1 anything else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tightrope.errors import BudgetRefused, InputError, TightropeError

BAD_INPUT, REFUSED, FAILED, INTERRUPTED = 2, 3, 1, 130


@contextmanager
def one_line(*, debug: bool) -> Iterator[None]:
    """End the program with one line that says what was expected, what came and what to try; no traceback.

    ``debug`` lets every exception pass. Messages of other libraries may quote the data, so they are not shown.
    """
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _silence()
    except Exception as error:
        if debug:
            raise
        code, text = explained(error)
        print(f"tightrope: {text}", file=sys.stderr)  # noqa: T201 - this is what the function is for
        sys.exit(code)


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
    if isinstance(error, OSError) and error.strerror:
        return FAILED, _flat(f"{error.strerror}: {error.filename}")
    return FAILED, f"a fault of Tightrope ({type(error).__name__}); try the same with --debug and report what it prints"


def _flat(text: str) -> str:
    """One line, with nothing in it that a terminal would obey."""
    joined = " ".join(text.split())
    return "".join(letter if letter.isprintable() else "�" for letter in joined)


def _command(error: Exception) -> str:
    """The command whose usage was wrong, as typed."""
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "tightrope"


def _silence() -> None:
    """Whoever read the output has stopped: end without a word, also when Python closes standard output."""
    sys.stdout = None
    sys.exit(FAILED)
