"""The registry of engines whose behavior differs from ibis' defaults, by their names in ibis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tightrope.errors import InputError
from tightrope.tables.backends.backend import Backend
from tightrope.tables.backends.duckdb import DUCKDB
from tightrope.tables.backends.postgres import POSTGRES
from tightrope.tables.backends.spark import SPARK

if TYPE_CHECKING:
    from ibis.backends import BaseBackend

BACKENDS: dict[str, Backend] = {backend.name: backend for backend in (DUCKDB, POSTGRES, SPARK)}
"""The engines by their names in ibis; ``register_backend`` adds to it."""


def register_backend(backend: Backend) -> None:
    """Register an engine; raises ``InputError`` if another one has this name."""
    if BACKENDS.setdefault(backend.name, backend) is not backend:
        raise InputError("name", backend.name, "a name that no other engine has", "it is what ibis calls the engine")


def backend_for(backend: BaseBackend) -> Backend:
    """Return the ``Backend`` of an ibis back end; one with ibis' defaults if the engine is not registered."""
    return BACKENDS.get(backend.name) or Backend(backend.name)
