"""Samples for an audit: a CSV file, or a function of the user's."""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError

if TYPE_CHECKING:
    from tightrope.numerics.arrays import Floats

TWO_SAMPLES, CANARIES = "input", "included"
HEADER = "a header with a column 'input' (1 or 0), or 'included' (1 or 0) and 'score', and columns of numbers"


@dataclass(frozen=True)
class Table:
    """Rows of numbers, and of each what it is: from input 1 or 0, or a canary that was in (1) or out (0)."""

    kind: str
    rows: Floats
    ones: Floats

    def of(self, which: int) -> Floats:
        """The rows of one input."""
        found: Floats = self.rows[self.ones == which]
        return found


def read(path: Path) -> Table:
    """The table of a CSV file; ``InputError`` names a line, never what stands there."""
    import numpy as np

    header, *lines = _lines(path)
    kind = next((name for name in (TWO_SAMPLES, CANARIES) if name in header), "")
    if not kind or len(header) < 2:
        raise InputError("header", "line 1", HEADER, "write a first line such as input,score")
    numbers = np.array([_numbers(line, number, len(header)) for number, line in enumerate(lines, 2)], dtype=np.float64)
    if not len(numbers):
        raise InputError("scores", str(path), "a file with at least one row below its header")
    place = header.index(kind)
    return Table(kind, np.delete(numbers, place, axis=1), _ones(kind, numbers[:, place]))


def _ones(kind: str, column: Floats) -> Floats:
    wrong = [number for number, value in enumerate(column, 2) if value not in (0, 1)]
    if wrong:
        raise InputError("scores", f"line {wrong[0]}", f"a table whose column '{kind}' holds 1 or 0")
    return column


def _lines(path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            found = [line for line in csv.reader(file) if line]
    except OSError as error:
        raise InputError("scores", str(path), f"a file that can be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError("scores", str(path), "a CSV file in UTF-8") from None
    if not found:
        raise InputError("scores", str(path), HEADER)
    return [[cell.strip() for cell in found[0]], *found[1:]]


def _numbers(line: Sequence[str], number: int, columns: int) -> list[float]:
    if len(line) == columns:
        try:
            return [float(cell) for cell in line]
        except ValueError:
            pass
    raise InputError("scores", f"line {number}", f"a table with {columns} numbers in every line")


def drawn(name: str, runs: int) -> Table:
    """What module:function gives for so many runs on input 1 and on input 0: one number a run, or a row of them."""
    import numpy as np

    function = _found(name)
    one, other = (_sample(name, function, which, runs) for which in (1, 0))
    if one.shape[1] != other.shape[1]:
        raise InputError("python", name, "a function that returns as many numbers a run on both inputs")
    return Table(TWO_SAMPLES, np.concatenate([one, other]), np.repeat([1.0, 0.0], [len(one), len(other)]))


def _sample(name: str, function: Callable[[int, int], Any], which: int, runs: int) -> Floats:
    import numpy as np

    expected = "a function(input, runs) that returns one number a run, or a row of them"
    try:
        sample = np.asarray(function(which, runs), dtype=np.float64)
    except Exception as error:
        remedy = f"it raised {type(error).__name__}: see where with --debug"
        raise InputError("python", name, expected, remedy) from error
    rows = sample[:, None] if sample.ndim == 1 else sample
    if rows.ndim != 2 or not len(rows):
        raise InputError("python", name, expected, f"it returned an array of {sample.ndim} axes")
    return rows


def _found(name: str) -> Callable[[int, int], Any]:
    """The function, imported as Python imports it, the working directory first."""
    module, _, function = name.partition(":")
    expected = "module:function, as Python imports it from here"
    if not (module and function.isidentifier()):
        raise InputError("python", name, expected, "mechanism.py with a function noisy is mechanism:noisy")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), function, None)
    except ImportError as error:
        raise InputError("python", name, expected, f"importing {error.name or module} failed") from error
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise InputError("python", name, expected, f"{module} has no function of that name")
    called: Callable[[int, int], Any] = found
    return called
