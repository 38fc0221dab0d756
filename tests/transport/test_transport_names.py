"""The names of ``tightrope.transport`` are what they say, whatever was imported before."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from tightrope import transport


def test_no_module_hides_a_name_of_the_surface() -> None:
    """Importing a submodule binds it in the package: one of the same name as a function would take its place."""
    modules = {found.name for found in pkgutil.iter_modules(transport.__path__)}
    assert not modules & set(transport.__all__)
    for name in modules:
        importlib.import_module(f"tightrope.transport.{name}")
    assert not [name for name in transport.__all__ if isinstance(getattr(transport, name), ModuleType)]
