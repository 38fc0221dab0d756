"""The verifier as one file: its own modules one after the other, without the lines that import them from each other."""

from __future__ import annotations

import ast
from pathlib import Path

ORDER = (
    "shapes",
    "forms",
    "claims",
    "laws",
    "tables",
    "releases",
    "promises",
    "noises",
    "pairs",
    "steps",
    "accounts",
    "couplings",
    "ledgers",
    "findings",
    "check",
)
HEAD = '''"""Checks a document of Tightrope: python check.py FILE. Needs Python and python-flint alone."""

from __future__ import annotations
'''


def standalone() -> str:
    """The text of check.py."""
    return "\n".join([HEAD, *(_alone(Path(__file__).with_name(f"{name}.py").read_text("utf-8")) for name in ORDER)])


def _alone(text: str) -> str:
    """A module's text without the imports that one file does not need."""
    lines = text.split("\n")
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("tightrope.", "__future__")):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(lines).strip() + "\n\n"
