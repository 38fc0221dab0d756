"""Loads the engines' libraries on first use, and runs calls of engines so that their messages stay private.

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
    """Import a library and return it; ``MissingExtraError`` names the extra to install."""
    try:
        with _WARNINGS_SUPPRESSED:
            return importlib.import_module(library)
    except ImportError:
        raise MissingExtraError(library.partition(".")[0], extra) from None


def require_libraries(*libraries: str) -> None:
    """Raise ``MissingExtraError`` if a library is not installed; none of them is imported."""
    for library in libraries:
        installed = sys.modules[library] if library in sys.modules else importlib.util.find_spec(library)
        if installed is None:
            raise MissingExtraError(library, "release")


class LazyValue:
    """A value computed at its first use and shared by all threads from then on."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute, self._lock = compute, threading.Lock()
        self._cached: list[Any] = []

    def __call__(self) -> Any:
        """Return the value; an error of its computation is raised, and the next call computes it again."""
        with self._lock:
            if not self._cached:
                self._cached.append(self._compute())
            return self._cached[0]


def engine_call(step: str, work: Callable[[], Result]) -> Result:
    """Return ``work()``; every failure in the engine becomes an ``EngineError`` that names the step and no value.

    After Ctrl-C it raises ``KeyboardInterrupt``, also where DuckDB replaces that by its error "Query interrupted".

    The error is raised outside the handler: ``from None`` would hide the engine's exception from a traceback but keep
    it in ``__context__``, which error trackers read.
    """
    try:
        with _WARNINGS_SUPPRESSED:
            return work()
    except TightropeError:
        raise
    except Exception as error:  # every exception of an engine may quote the data
        kind, interrupted = type(error).__name__, str(error) == "Query interrupted"
    if interrupted:
        raise KeyboardInterrupt
    raise EngineError(
        f"the engine failed to {step} ({kind}); its own message may quote the data and is not shown; "
        f"try the same step on a copy of the table with the engine itself"
    )


class _WarningSuppressor:
    """A context without the warnings that ibis 12 and Spark cause with pandas 3 and DuckDB 2; other warnings pass.

    Spark's logger is disabled too, because it repeats errors, which may quote a value. Filters and loggers belong to
    the process, not to a thread: the first thread to enter changes them, the last one to leave restores them.
    """

    def __init__(self) -> None:
        self._lock, self._thread_count, self._restore = threading.Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._thread_count:
                self._restore.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", message="fetch_arrow_table", category=DeprecationWarning)
                warnings.filterwarnings("ignore", message=".*Pandas4Warning.*")
                warnings.filterwarnings("ignore", category=DeprecationWarning, module="ibis")
                unsupported = "PySpark does not yet fully support pandas"
                warnings.filterwarnings("ignore", message=unsupported, category=FutureWarning)
                # This warning may quote a value.
                warnings.filterwarnings("ignore", message="toPandas attempted Arrow", category=UserWarning)
                logger = logging.getLogger("SQLQueryContextLogger")
                self._restore.callback(setattr, logger, "disabled", logger.disabled)
                logger.disabled = True
            self._thread_count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._thread_count -= 1
            if not self._thread_count:
                self._restore.close()


_WARNINGS_SUPPRESSED = _WarningSuppressor()
