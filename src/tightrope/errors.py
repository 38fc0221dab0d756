"""Every exception that Tightrope raises on purpose.

    TightropeError
    ├── InputError (also ValueError)      an argument, a plan or a table is not what was asked for
    │   ├── PlanError                     a plan file or a question
    │   ├── SchemaError                   a table lacks a column, or the column has another type
    │   └── UnknownAnswerError (also KeyError)  a release has no answer with this name
    ├── InsufficientBudgetError           the release would exceed what was promised; nothing was spent
    ├── SingleUseError (also AttributeError, TypeError)  a plan or a session was to be changed, copied or pickled
    ├── PrecisionError                    a number could not be computed to the promised error
    ├── OutputError                       paid answers are kept elsewhere than asked; the text says where
    ├── EngineError                       the database engine failed; never carries a value from the data
    ├── LedgerError                   a ledger could not be read or written, or is not what it was
    └── MissingExtraError (also ImportError)  an optional library is not installed

and one warning, ``PrecisionWarning`` (a ``UserWarning``): a bound is safe, but further off than usual.

Messages say what was expected, what came (``name=value!r``) and what to try.
"""

from __future__ import annotations


class TightropeError(Exception):
    """Root of the tree: ``except TightropeError`` catches all of them."""


class InputError(TightropeError, ValueError):
    """An argument is not what was asked for.

    Parameters: the argument's name, the value that came, what was expected, and what to try.

    >>> print(InputError("epsilon", -1, "a positive number", "a typical value is 1"))
    expected epsilon to be a positive number, got epsilon=-1; a typical value is 1
    """

    def __init__(self, name: str, value: object, expected: str, remedy: str = "") -> None:
        self.name, self.value, self.expected, self.remedy = name, value, expected, remedy
        # What a column or a table is called, for it would show its data; nothing for other values.
        library = type(value).__module__.partition(".")[0]
        shown = (
            f"<{library}.{type(value).__name__}>" if library in _TABLES and hasattr(value, "__len__") else ""
        ) or repr(value)
        shown = shown if len(shown) <= 120 else shown[:117] + "..."
        text = f"expected {name} to be {expected}, got {name}={shown}"
        super().__init__(f"{text}; {remedy}" if remedy else text)


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
    """A release would exceed the budget. Nothing was drawn and nothing was spent."""


class SingleUseError(TightropeError, AttributeError, TypeError):
    """A plan or a session was to be changed, copied or pickled: a second one would spend its budget again."""


class PrecisionError(TightropeError):
    """A number could not be computed to the promised error; the text says what is possible."""


class PrecisionWarning(UserWarning):
    """A bound is safe to state, but may be further from the truth than one part in a thousand; the text says why."""


class LedgerWarning(UserWarning):
    """A ledger works, but something about it that protects people does not, or may not be meant; the text says what."""


class EngineError(TightropeError):
    """The database engine failed. The text names the step, never a value from the data."""


class OutputError(TightropeError):
    """Paid answers could not be written or printed as asked; the text says where they are kept instead."""


class LedgerError(TightropeError):
    """A ledger could not be read or written, or is not what it was; the text says whether anything was spent."""


class MissingExtraError(TightropeError, ImportError):
    """An optional library is needed: ``pip install 'tightrope[release]'``."""

    def __init__(self, library: str, extra: str) -> None:
        self.library, self.extra = library, extra
        super().__init__(f"{library} is needed for this and is not installed; try: pip install 'tightrope[{extra}]'")


_TABLES = ("pandas", "polars", "pyarrow", "ibis", "pyspark", "duckdb")


def quoted_names(names: tuple[str, ...], most: int = 30) -> str:
    """The first names for an error text, in quotes.

    >>> quoted_names(("a", "b", "c"), most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "(there is none)"


def suggest_nearest(name: object, names: tuple[str, ...]) -> str:
    """A question that suggests the closest name, or nothing when none is close.

    >>> suggest_nearest("Rows", ("rows", "groups")), suggest_nearest("rows_each", ("rows", "groups"))
    ("did you mean 'rows'?", "did you mean 'rows'?")
    """
    import difflib

    given, folded = str(name).casefold(), {candidate.casefold(): candidate for candidate in names}
    begun = [candidate for candidate in folded if given.startswith(f"{candidate}_")]  # it says more than it should
    almost, close = (difflib.get_close_matches(given, folded, n=1, cutoff=cutoff) for cutoff in (0.9, 0.6))
    found = [*almost, *begun, *close]
    return f"did you mean {folded[found[0]]!r}?" if found else ""


# What Ctrl-C ends with: known before anything else is loaded.

NOTHING_SPENT = "interrupted; nothing was spent"
INTERRUPTED = 130
"""128 and the number of SIGINT."""
