"""The verifier as one file: its own modules one after the other, without the lines that import them from each other.

For one document, without what its kind does not need: what nothing names that is kept.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tightrope.verify.forms import FORMS, upgrade_keys

ORDER = (
    "forms",
    "claims",
    "laws",
    "tables",
    "contributions",
    "releases",
    "promises",
    "noises",
    "steps",
    "accounts",
    "couplings",
    "ledgers",
    "findings",
    "check",
)
HEAD = '''"""Verifies a Tightrope document: python check.py FILE. Needs only Python and python-flint."""

from __future__ import annotations
'''
BY_KIND, BY_STEP = ("CLAIMS_BY_KIND", "FORMS"), "PROFILE_MAKERS"
"""Tables by the kind of a document, and by the mechanism of a step."""


class CodePart(NamedTuple):
    """A statement, a method or an entry of a table: its lines, what it defines, what it names, what it is inside."""

    first: int
    last: int
    defines: frozenset[str]
    names: frozenset[str]
    inside: int | None = None


def standalone_text(document: str | None = None) -> str:
    """The text of check.py; for a ``document`` alone, as text, without what that needs not."""
    modules = [HEAD]
    for name in ORDER:
        # The module without the imports that one file does not need.
        text = Path(__file__).with_name(f"{name}.py").read_text("utf-8")
        lines = text.split("\n")
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("tightrope.", "__future__")):
                lines[node.lineno - 1 : node.end_lineno] = [""] * (_last_line(node) - node.lineno + 1)
        modules.append("\n".join(lines).strip() + "\n\n")
    whole = "\n".join(modules)
    return whole if document is None else _keep_needed_parts(whole, *_kind_and_steps(document))


def _kind_and_steps(document: str) -> tuple[str, frozenset[str]]:
    """Return a document's kind and the mechanisms of its steps; raises ``ValueError`` for other input."""
    try:
        data = json.loads(document)
    except RecursionError:
        raise ValueError("nested too deeply: not a Tightrope document") from None
    data = data.get("certificate", data) if isinstance(data, dict) and "document" not in data else data
    kind = data.get("document") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in FORMS:
        raise ValueError(f"expected a document of one of {', '.join(FORMS)}; got {kind!a}")
    data = upgrade_keys(data)
    FORMS[kind](kind, data)
    steps = data["steps"] if kind == "account" else []
    return kind, frozenset({"gaussian", *(step["mechanism"] for step in steps)})


def _keep_needed_parts(text: str, kind: str, steps: frozenset[str]) -> str:
    """Return the text without unreferenced parts, from the last statement on; no more than two empty lines together."""
    parts = list(_code_parts(ast.parse(text).body, kind, steps))
    names = {"__name__"}
    kept: set[int | None] = {None}  # what a part outside of all others is inside
    while new := {k for k, part in enumerate(parts) if k not in kept and part.defines & names and part.inside in kept}:
        kept |= new
        names.update(*(parts[k].names for k in new))
    lines: list[str] = []
    dropped = set[int]()
    for k, part in enumerate(parts):
        if k not in kept:
            dropped.update(range(part.first, part.last + 1))
    for number, line in enumerate(text.split("\n"), start=1):
        if number not in dropped and (line or lines[-2:] != ["", ""]):
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


def _code_parts(body: list[ast.stmt], kind: str, steps: frozenset[str]) -> Iterator[CodePart]:
    """All statements, methods behind their classes; words below a constant are its own."""
    count, imported = 0, set[str]()
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Expr):
            continue
        last = (
            after.end_lineno if isinstance(after, ast.Expr) and isinstance(node, ast.Assign | ast.AnnAssign) else None
        )
        entries = list(_inner_parts(node, count, kind, steps))
        defines = _defined_names(node)
        again = isinstance(node, ast.Import | ast.ImportFrom) and defines <= imported
        imported |= defines if isinstance(node, ast.Import | ast.ImportFrom) else set()
        named = _outer_names(node) if entries else _referenced_names(node)
        yield CodePart(_first_line(node), last or _last_line(node), frozenset() if again else defines, named)
        yield from entries
        count += 1 + len(entries)


def _inner_parts(node: ast.stmt, place: int, kind: str, steps: frozenset[str]) -> Iterator[CodePart]:
    """The methods of a class; the entries of a table, of which only what was asked for is named."""
    if isinstance(node, ast.ClassDef):
        for own in node.body:
            if isinstance(own, ast.FunctionDef):
                always = {node.name} if own.name.startswith("__") else {f".{own.name}"}
                yield CodePart(_first_line(own), _last_line(own), frozenset(always), _referenced_names(own), place)
    table = getattr(node, "value", None)
    name = next(iter(_defined_names(node)), "")
    if isinstance(table, ast.Dict) and (name in BY_KIND or name == BY_STEP):
        wanted = {kind, "release certificate"} if kind == "release result" else {kind}
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant):
                here = key.value in (wanted if name in BY_KIND else steps)
                yield CodePart(
                    key.lineno, _last_line(value), frozenset({name} if here else set()), _referenced_names(value), place
                )


def _outer_names(node: ast.stmt) -> frozenset[str]:
    """Return the names used by a class or a table outside its entries."""
    if isinstance(node, ast.ClassDef):
        outside = [*node.bases, *node.decorator_list, *(o for o in node.body if not isinstance(o, ast.FunctionDef))]
        return frozenset(name for one in outside for name in _referenced_names(one))
    return _referenced_names(node.annotation) if isinstance(node, ast.AnnAssign) else frozenset()


def _referenced_names(node: ast.AST) -> frozenset[str]:
    """Return names, and attributes after a dot: a method is needed if its name is used anywhere."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return frozenset(names | {f".{one.attr}" for one in ast.walk(node) if isinstance(one, ast.Attribute)})


def _defined_names(node: ast.stmt) -> frozenset[str]:
    """Return the names that a statement defines; ``if __name__`` defines its own."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return frozenset({node.name})
    if isinstance(node, ast.Import | ast.ImportFrom):
        return frozenset(alias.asname or alias.name.split(".")[0] for alias in node.names)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return frozenset(name for target in targets for name in _referenced_names(target)) or frozenset({"__name__"})


def _first_line(node: ast.stmt) -> int:
    """Its first line, decorators included."""
    decorated: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorated)])


def _last_line(node: ast.stmt | ast.expr) -> int:
    """Its last line."""
    return node.end_lineno or node.lineno
