"""In a notebook, DuckDB refuses every setting of its progress bar if ipywidgets is missing."""

from __future__ import annotations

import subprocess
import sys

NOTEBOOK = """
import sys, types
shell = types.SimpleNamespace(config={"IPKernelApp": {}})
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell, __name__="IPython")
sys.modules["ipywidgets"] = None
import duckdb
try:
    duckdb.connect().execute("SET enable_progress_bar = false")
    print("this DuckDB accepts the setting")
except duckdb.InvalidInputException:
    print("refused")
import tightrope as tr
import pyarrow as pa
session = tr.Session(pa.table({"person": [1, 2]}), privacy_unit="person", max_rows=1,
                     budget=tr.Budget(epsilon=50, delta=1e-6))
print(session.plan([tr.count()]).release()[0].value)
"""


def test_a_release_in_a_notebook_without_widgets_is_answered() -> None:
    """Otherwise it would fail after its charge."""
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, value = done.stdout.split("\n")[:2]
    assert first == "refused"  # the imitation of a notebook is one for DuckDB
    assert abs(int(value) - 2) <= 3
