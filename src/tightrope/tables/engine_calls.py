"""The only interface to the engines' libraries: loads them, and keeps their messages private.

Engine messages quote values ("Could not convert string 'Anna Schmidt' to INT64"), so every call runs in
``engine_call``.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypeVar

from tightrope.errors import EngineError, MissingExtraError, TightropeError

Result = TypeVar("Result")


def load_library(library: str, extra: str = "release") -> Any:
    """The library, imported now and not before; ``MissingExtraError`` names the extra to install."""
    try:
        with _QUIET:
            return importlib.import_module(library)
    except ImportError:
        raise MissingExtraError(library.partition(".")[0], extra) from None


def require_libraries(*libraries: str) -> None:
    """``MissingExtraError`` where one is not installed: said at once, though it is loaded when it is used."""
    for library in libraries:
        there = sys.modules[library] if library in sys.modules else importlib.util.find_spec(library)
        if there is None:
            raise MissingExtraError(library, "release")


class LazyValue:
    """A value computed at its first use and shared by all threads from then on."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._turn = make, threading.Lock()
        self._made: list[Any] = []

    def __call__(self) -> Any:
        """The thing; an error of the making passes, and the next call tries again."""
        with self._turn:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


def engine_call(step: str, work: Callable[[], Result]) -> Result:
    """Return ``work()``; every failure in the engine becomes an ``EngineError`` that names the step and no value.

    Ctrl-C stays ``KeyboardInterrupt``: DuckDB stops at a signal, loses what its handler raised, and says this instead.

    The error is raised outside the handler: ``from None`` hides the engine's exception from a traceback but keeps
    it in ``__context__``, where error trackers look.
    """
    try:
        with _QUIET:
            return work()
    except TightropeError:
        raise
    except Exception as error:  # every exception of an engine may quote the data
        kind, stopped = type(error).__name__, str(error) == "Query interrupted"
    if stopped:
        raise KeyboardInterrupt
    raise EngineError(
        f"the engine failed to {step} ({kind}); its own message may quote the data and is not shown; "
        f"try the same step on a copy of the table with the engine itself"
    )


class _WarningSuppressor:
    """Without the warnings that ibis 12 and Spark cause by themselves with pandas 3 and DuckDB 2; all others pass.

    Nor with the messages of Spark's logger, which repeats its errors and may quote a value. Filters and loggers are
    the process's, not a thread's: the first who enters silences, the last who leaves restores.
    """

    def __init__(self) -> None:
        self._turn, self._inside, self._restore = threading.Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._turn:
            if not self._inside:
                self._restore.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", message="fetch_arrow_table", category=DeprecationWarning)
                warnings.filterwarnings("ignore", message=".*Pandas4Warning.*")
                warnings.filterwarnings("ignore", category=DeprecationWarning, module="ibis")
                unsupported = "PySpark does not yet fully support pandas"
                warnings.filterwarnings("ignore", message=unsupported, category=FutureWarning)
                # This one may quote a value.
                warnings.filterwarnings("ignore", message="toPandas attempted Arrow", category=UserWarning)
                logger = logging.getLogger("SQLQueryContextLogger")
                self._restore.callback(setattr, logger, "disabled", logger.disabled)
                logger.disabled = True
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._inside -= 1
            if not self._inside:
                self._restore.close()


_QUIET = _WarningSuppressor()
