"""The questions of ``tightrope init --interactive``: from the schema alone, and each may be left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tightrope.certificates.printable import A_PERSON, printable
from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.engines.schema import Schema
    from tightrope.release.documents.starter import Chosen

Ask = Callable[[str, Sequence[str], str], str]
"""Shows words, what may be chosen (anything, where that is empty) and the default; gives what was said."""
Entry = Mapping[str, str | tuple[float, float]]
NONE = ""
COLUMNS_SHOWN = 20
"""So many columns are shown to choose from; others can be typed."""
TRIES = 5


def wishes(schema: Schema, ask: Ask, person: str | None, *, each_row: bool) -> tuple[str | None, Chosen]:
    """The column of the person and what else was chosen; nothing is read but the schema."""
    from tightrope.release.documents.starter import Chosen

    if person is None and not each_row:
        column = _column(schema, ask, "Which column says whose row it is? (nothing: each row is a person)", ())
        person = column or None
    rows = 1 if person is None else _whole(ask, "At most how many rows of one person may count?")
    means = A_PERSON if person is None else _noun(ask)
    questions = (*_counts(schema, ask, person), *_means(schema, ask, person))
    return person, Chosen(rows, None if means == A_PERSON else means, questions)


def prompt(words: str, choices: Sequence[str], default: str) -> str:
    """One prompt on standard error; the answer comes from standard input. Raises ``InputError`` where there is none."""
    from rich.console import Console
    from rich.prompt import Prompt
    from rich.text import Text

    shown = f"{words} [{', '.join(map(printable, choices))}]" if choices else words
    console = Console(stderr=True, markup=False, highlight=False)
    try:
        return str(Prompt.ask(Text(shown), console=console, default=default, show_default=bool(default))).strip()
    except EOFError:
        raise InputError("interactive", None, "answers on standard input", "or leave --interactive out") from None


def _counts(schema: Schema, ask: Ask, person: str | None) -> tuple[Entry, ...]:
    kinds = ("text", "boolean", "date")
    by = _column(schema, ask, "Count rows by which column? (nothing: by none)", kinds, person)
    return ({"kind": "count", "by": by},) if by else ()


def _means(schema: Schema, ask: Ask, person: str | None) -> tuple[Entry, ...]:
    column = _column(schema, ask, "The average of which column? (nothing: of none)", ("number", "integer"), person)
    if not column:
        return ()
    low = _number(ask, f"The lowest value of {column} that is publicly known, not read off the data?")
    high = _number(ask, f"The highest value of {column} that is publicly known?")
    if not low < high:
        raise InputError("between", (low, high), "a pair (lowest, highest) with lowest < highest")
    return ({"kind": "mean", "column": column, "between": (low, high)},)


def _column(schema: Schema, ask: Ask, words: str, kinds: Sequence[str], but: str | None = None) -> str:
    """A column of one of these kinds (none: of any that is plain), or nothing."""
    usual = [column for column in schema.columns if (column.kind in kinds if kinds else column.kind != "other")]
    names = [column.name for column in usual if column.name != but]
    if not names:
        return NONE
    return _tried(ask, words, names[:COLUMNS_SHOWN], NONE, lambda said: said if said in (NONE, *names) else None)


def _noun(ask: Ask) -> str:
    """What a person is, as a plan takes it."""
    from tightrope.release.documents.sections import is_a_noun

    words = 'What is a person there? ("a" or "an" and a noun, such as: a patient)'
    return _tried(ask, words, (), A_PERSON, lambda said: said if is_a_noun(said) else None)


def _whole(ask: Ask, words: str) -> int:
    """A number of rows that a plan takes."""
    from tightrope.release.stated.people import MOST

    return int(_tried(ask, words, (), "1", lambda said: said if said.isdecimal() and 0 < int(said) <= MOST else None))


def _number(ask: Ask, words: str) -> float:
    return float(_tried(ask, words, (), NONE, lambda said: said if _is_number(said) else None))


def _is_number(said: str) -> bool:
    try:
        return abs(float(said)) < float("inf")
    except ValueError:
        return False


def _tried(ask: Ask, words: str, choices: Sequence[str], default: str, taken: Callable[[str], str | None]) -> str:
    """Asked again where the answer is none of what may be said."""
    for _ in range(TRIES):
        found = taken(ask(words, choices, default))
        if found is not None:
            return found
    raise InputError("interactive", None, f"an answer to: {words}", "or leave --interactive out and write the plan")
