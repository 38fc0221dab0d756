"""Every exception that Tightrope raises on purpose.

    TightropeError
    ├── InputError (also ValueError)      an argument, a plan or a table is not valid
    │   ├── PlanError                     a plan file or a question
    │   ├── SchemaError                   a table lacks a column, or the column has another type
    │   └── UnknownAnswerError (also KeyError)  a release has no answer with this name
    ├── InsufficientBudgetError           the release would exceed what was promised; nothing was spent
    ├── SingleUseError (also AttributeError, TypeError)  a plan or a session was to be changed, copied or pickled
    ├── PrecisionError                    a number could not be computed to the promised error
    ├── OutputError                       charged answers could not be written; the text says where they are
    ├── EngineError                       the database engine failed; never carries a value from the data
    ├── LedgerError                       a ledger could not be read or written, or was changed from outside
    └── MissingExtraError (also ImportError)  an optional library is not installed

and two warnings: ``PrecisionWarning`` (a bound is valid, but less tight than usual) and ``LedgerWarning``.

Messages say what was expected, what was passed (``name=value!r``) and what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

MAX_QUOTED_LENGTH = 120
"""Characters of a value that an error quotes."""


class TightropeError(Exception):
    """Root of the tree: ``except TightropeError`` catches all of them."""


class InputError(TightropeError, ValueError):
    """An argument is not valid.

    Parameters: the argument's name, the value that was passed, what was expected, and what to do.

    >>> print(InputError("epsilon", -1, "a positive number", "a typical value is 1"))
    expected epsilon to be a positive number, got epsilon=-1; a typical value is 1
    """

    is_plain_text = False
    """True if ``expected`` is the whole text (``from_text``)."""

    def __init__(self, name: str, value: object, expected: str, remedy: str = "") -> None:
        self.name, self.value, self.expected, self.remedy = name, value, expected, remedy
        # A table or a column is shown by its type: its repr would show data.
        library = type(value).__module__.partition(".")[0]
        is_table = library in _TABLES and hasattr(value, "__len__")
        shown = f"<{library}.{type(value).__name__}>" if is_table else short_repr(value)
        text = f"expected {name} to be {expected}, got {name}={shown}"
        super().__init__(f"{text}; {remedy}" if remedy else text)

    @classmethod
    def from_text(cls, name: str, text: str) -> Self:
        """Return an error whose message is ``name: text``, where "expected X to be Y" does not read well.

        ``name`` is an argument, an option or a place in a file; ``text`` says what is wrong, then what to do.

        >>> print(InputError.from_text("line 7 of scores.csv", "expected 2 numbers"))
        line 7 of scores.csv: expected 2 numbers
        """
        error = cls.__new__(cls)
        Exception.__init__(error, f"{name}: {text}")
        error.name, error.value, error.expected, error.remedy = name, None, text, ""
        error.is_plain_text = True
        return error

    @classmethod
    def from_error(cls, error: InputError, name: str, reword: Callable[[str], str] = str) -> Self:
        """Return the error about another name, such as the plan-file key of a parameter; ``reword`` changes its texts.

        >>> print(PlanError.from_error(InputError("rows", 0, "an integer > 0"), "[privacy_unit] max_rows"))
        expected [privacy_unit] max_rows to be an integer > 0, got [privacy_unit] max_rows=0
        """
        if error.is_plain_text:
            return cls.from_text(name, reword(error.expected))
        return cls(name, error.value, reword(error.expected), reword(error.remedy))


class PlanError(InputError):
    """A plan file, or a question in it, is wrong."""


class SchemaError(InputError):
    """A table lacks a column that a plan names, or the column has another type."""


class UnknownAnswerError(InputError, KeyError):
    """A release has no answer with this name."""

    def __init__(self, name: object, names: tuple[str, ...]) -> None:
        remedy = suggest_nearest(name, names)
        super().__init__("name", name, f"one of {quoted_names(names)}", remedy)

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would put the text in quotes


class InsufficientBudgetError(TightropeError):
    """A release would exceed the budget. No noise was drawn and no budget was spent."""


class SingleUseError(TightropeError, AttributeError, TypeError):
    """A plan or a session cannot be changed, copied or pickled: a second one would spend its budget again."""


class PrecisionError(TightropeError):
    """A number could not be computed to the promised accuracy; the text says what is possible."""


class PrecisionWarning(UserWarning):
    """A bound is valid, but its relative error may exceed 0.001; the text says why."""


class LedgerWarning(UserWarning):
    """A ledger works, but one of its protections is off or may be unintended; the text says which."""


class EngineError(TightropeError):
    """The database engine failed. The text names the step, never a value from the data."""


class OutputError(TightropeError):
    """Charged answers could not be written or printed as requested; the text says where they are kept instead."""


class LedgerError(TightropeError):
    """A ledger could not be read or written, or was changed from outside; the text says whether budget was spent."""


class MissingExtraError(TightropeError, ImportError):
    """An optional library is needed: ``pip install 'tightrope[release]'``."""

    def __init__(self, library: str, extra: str) -> None:
        self.library, self.extra = library, extra
        super().__init__(f"{library} is needed for this and is not installed; try: pip install 'tightrope[{extra}]'")


_TABLES = ("pandas", "polars", "pyarrow", "ibis", "pyspark", "duckdb")


def short_repr(value: object) -> str:
    """Return a value as Python writes it, cut to 120 characters.

    >>> short_repr("age >"), len(short_repr("(" * 5000))
    ("'age >'", 120)
    """
    try:
        shown = repr(value)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        return f"<{type(value).__name__} with too many digits to show>"
    return shown if len(shown) <= MAX_QUOTED_LENGTH else shown[: MAX_QUOTED_LENGTH - 3] + "..."


def quoted_names(names: tuple[str, ...], most: int = 30) -> str:
    """Return the first names in quotes, for an error text.

    >>> quoted_names(("a", "b", "c"), most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "(there is none)"


def suggest_nearest(name: object, names: tuple[str, ...]) -> str:
    """Return a question that suggests the closest name; empty if no name is close.

    >>> suggest_nearest("Rows", ("rows", "groups")), suggest_nearest("rows_each", ("rows", "groups"))
    ("did you mean 'rows'?", "did you mean 'rows'?")
    """
    import difflib

    given, folded = str(name).casefold(), {candidate.casefold(): candidate for candidate in names}
    prefixes = [candidate for candidate in folded if given.startswith(f"{candidate}_")]
    nearly_equal, similar = (difflib.get_close_matches(given, folded, n=1, cutoff=cutoff) for cutoff in (0.9, 0.6))
    suggestions = [*nearly_equal, *prefixes, *similar]
    return f"did you mean {folded[suggestions[0]]!r}?" if suggestions else ""


# The message and exit code after Ctrl-C stand here because they are needed before any other module is loaded.

NOTHING_SPENT = "interrupted; nothing was spent"
INTERRUPTED = 130
"""128 and the number of SIGINT."""
