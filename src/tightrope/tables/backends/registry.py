"""The engines that differ from what ibis does by itself; the only place that asks for a back end's name."""

from __future__ import annotations

from typing import Any

from tightrope.errors import InputError
from tightrope.tables.backends.backend import Backend
from tightrope.tables.backends.duckdb import DUCKDB
from tightrope.tables.backends.postgres import POSTGRES
from tightrope.tables.backends.spark import SPARK

BACKENDS: dict[str, Backend] = {backend.name: backend for backend in (DUCKDB, POSTGRES, SPARK)}
"""By ibis' name; ``register_backend`` adds to it."""


def register_backend(backend: Backend) -> None:
    """Let an engine be used; raises ``InputError`` where another one has the name."""
    if BACKENDS.setdefault(backend.name, backend) is not backend:
        raise InputError("name", backend.name, "a name that no other engine has", "it is what ibis calls the engine")


def backend_for(backend: Any) -> Backend:
    """Return the declared facts of an ibis back end; the defaults of ibis if it is not declared."""
    return BACKENDS.get(backend.name) or Backend(backend.name)
