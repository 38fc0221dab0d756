"""The public names of ``tightrope.local``."""

import subprocess
import sys

import pytest

from tightrope import local

PROMISED = {
    "binary_with_erasure",
    "hadamard",
    "hashing",
    "k_randomized_response",
    "subset_selection",
    "unary_encoding",
}


def test_all_is_sorted_complete_and_documented():
    assert local.__all__ == sorted(set(local.__all__))
    assert set(local.__all__) >= PROMISED
    for name in local.__all__:
        assert getattr(local, name).__doc__, name
        assert name in dir(local)


def test_no_name_is_hidden_by_a_module():
    """A module of the same name would take its place once it is imported."""
    code = (
        "import importlib, pkgutil, tightrope.local as local\n"
        "for found in pkgutil.iter_modules(local.__path__): importlib.import_module('tightrope.local.' + found.name)\n"
        "import sys; print([n for n in local.__all__ if isinstance(getattr(local, n), type(sys))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['limits']"  # which is a module


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="hadamrd"):
        local.hadamrd  # noqa: B018


def test_importing_loads_nothing_heavy():
    code = "import sys, tightrope.local; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "pyarrow", "numba"} & set(done.stdout.split())
