"""The verifier as one file: its own modules one after the other, without the lines that import them from each other.

For one document, without what its kind does not need: what nothing names that is kept.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tightrope.verify.forms import FORMS

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
HEAD = '''"""Checks a document of Tightrope: python check.py FILE. Needs Python and python-flint alone."""

from __future__ import annotations
'''
BY_KIND, BY_STEP = ("KINDS", "FORMS"), "MAKERS"
"""Tables by the kind of a document, and by the mechanism of a step."""


class Part(NamedTuple):
    """A statement, a method or an entry of a table: its lines, what it defines, what it names, what it is inside."""

    first: int
    last: int
    defines: frozenset[str]
    names: frozenset[str]
    inside: int | None = None


def standalone(document: str | None = None) -> str:
    """The text of check.py; for a ``document`` alone, as text, without what that needs not."""
    whole = "\n".join([HEAD, *(_alone(Path(__file__).with_name(f"{name}.py").read_text("utf-8")) for name in ORDER)])
    return whole if document is None else _needed(whole, *_kind_and_steps(document))


def _alone(text: str) -> str:
    """A module's text without the imports that one file does not need."""
    lines = text.split("\n")
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("tightrope.", "__future__")):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(lines).strip() + "\n\n"


def _kind_and_steps(document: str) -> tuple[str, frozenset[str]]:
    """The kind of a document, and the mechanisms of its steps; raises ``ValueError`` for what is none of ours."""
    try:
        data = json.loads(document)
    except RecursionError:
        raise ValueError("tables within tables within tables: no document of ours") from None
    data = data.get("certificate", data) if isinstance(data, dict) and "document" not in data else data
    kind = data.get("document") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in FORMS:
        raise ValueError(f"expected a document of one of {', '.join(FORMS)}; got {kind!a}")
    FORMS[kind](kind, data)
    steps = data["steps"] if kind == "account" else []
    return kind, frozenset({"gaussian", *(step["mechanism"] for step in steps)})


def _needed(text: str, kind: str, steps: frozenset[str]) -> str:
    """Without the parts that nothing names, from the last statement on."""
    parts = list(_code_parts(ast.parse(text).body, kind, steps))
    names, kept = {"__name__"}, set[int]()
    while True:
        new = {
            k
            for k, part in enumerate(parts)
            if k not in kept and part.defines & names and (part.inside is None or part.inside in kept)
        }
        if not new:
            break
        kept |= new
        names |= {name for k in new for name in parts[k].names}
    return _without(text, [part for k, part in enumerate(parts) if k not in kept])


def _without(text: str, gone: list[Part]) -> str:
    """The lines that are left; no more than two empty ones together."""
    lines: list[str] = []
    dropped = {line for part in gone for line in range(part.first, part.last + 1)}
    for number, line in enumerate(text.split("\n"), start=1):
        if number not in dropped and (line or lines[-2:] != ["", ""]):
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


def _code_parts(body: list[ast.stmt], kind: str, steps: frozenset[str]) -> Iterator[Part]:
    """All statements, methods behind their classes; words below a constant are its own."""
    count, imported = 0, set[str]()
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Expr):
            continue
        last = (
            after.end_lineno if isinstance(after, ast.Expr) and isinstance(node, ast.Assign | ast.AnnAssign) else None
        )
        entries = list(_entries(node, count, kind, steps))
        defines = _defined(node)
        again = isinstance(node, ast.Import | ast.ImportFrom) and defines <= imported
        imported |= defines if isinstance(node, ast.Import | ast.ImportFrom) else set()
        named = _shell(node) if entries else _named(node)
        yield Part(_first(node), last or _last(node), frozenset() if again else defines, named)
        yield from entries
        count += 1 + len(entries)


def _entries(node: ast.stmt, place: int, kind: str, steps: frozenset[str]) -> Iterator[Part]:
    """The methods of a class; the entries of a table, of which only what was asked for is named."""
    if isinstance(node, ast.ClassDef):
        for own in node.body:
            if isinstance(own, ast.FunctionDef):
                always = {node.name} if own.name.startswith("__") else {f".{own.name}"}
                yield Part(_first(own), _last(own), frozenset(always), _named(own), place)
    table = getattr(node, "value", None)
    name = next(iter(_defined(node)), "")
    if isinstance(table, ast.Dict) and (name in BY_KIND or name == BY_STEP):
        wanted = {kind, "release certificate"} if kind == "release result" else {kind}
        for key, value in zip(table.keys, table.values, strict=True):
            if isinstance(key, ast.Constant):
                here = key.value in (wanted if name in BY_KIND else steps)
                yield Part(key.lineno, _last(value), frozenset({name} if here else set()), _named(value), place)


def _shell(node: ast.stmt) -> frozenset[str]:
    """What a class or a table names outside of its entries."""
    if isinstance(node, ast.ClassDef):
        outside = [*node.bases, *node.decorator_list, *(o for o in node.body if not isinstance(o, ast.FunctionDef))]
        return frozenset(name for one in outside for name in _named(one))
    return _named(node.annotation) if isinstance(node, ast.AnnAssign) else frozenset()


def _named(node: ast.AST) -> frozenset[str]:
    """Names, and attributes behind a dot: a method is needed where anything asks for one of its name."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return frozenset(names | {f".{one.attr}" for one in ast.walk(node) if isinstance(one, ast.Attribute)})


def _defined(node: ast.stmt) -> frozenset[str]:
    """What a statement defines; ``if __name__`` its own name."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return frozenset({node.name})
    if isinstance(node, ast.Import | ast.ImportFrom):
        return frozenset(alias.asname or alias.name.split(".")[0] for alias in node.names)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return frozenset(name for target in targets for name in _named(target)) or frozenset({"__name__"})


def _first(node: ast.stmt) -> int:
    """Its first line, decorators included."""
    decorated: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorated)])


def _last(node: ast.stmt | ast.expr) -> int:
    """Its last line."""
    return node.end_lineno or node.lineno
