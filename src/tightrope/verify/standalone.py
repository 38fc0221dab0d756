"""The verifier as one file: its modules one after the other, without their imports of each other.

For a single document, parts that the check of its kind does not reference are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tightrope.verify.forms import parse_document

ORDER = (
    "forms",
    "claims",
    "loss_grid",
    "tables",
    "contributions",
    "releases",
    "marginals",
    "promises",
    "noises",
    "accounts",
    "couplings",
    "ledgers",
    "findings",
    "check",
)
HEAD = '''"""Verifies a Tightrope document: python check.py FILE. Needs only Python and python-flint."""

from __future__ import annotations
'''
BY_KIND = "CLAIMS_BY_KIND", "FORMS", "FORMER_KEYS"
BY_PART = (
    "PROFILE_MAKERS",
    "CLAIMS_BY_FIELD",
    "CLAIMS_BY_PART",
    "ANSWER_CLAIMS_BY_PART",
    "CLAIMS_BY_OUTPUT_PART",
    "JOINT_NOISE",
    "BOUNDS_BY_PART",
)
"""Tables by the kind of a document, and by the mechanism of a step, a rare field or a part of a certificate."""


DOCSTRING_OF_NOTHING = re.compile(r'^"""(?:[^"]|"(?!""))*"""\n(?:#[^\n]*\n|\s*\n)*(?=""")', re.MULTILINE)
"""The docstring of a module of which no statement is kept: another docstring follows."""


class CodePart(NamedTuple):
    """A statement, method or table entry: its lines, the names it defines and uses, and the index of its container."""

    first: int
    last: int
    defines: frozenset[str]
    names: frozenset[str]
    inside: int | None = None


class NeededParts(NamedTuple):
    """The parts of the verifier that check a document of one kind, with the mechanisms of its steps and rare fields."""

    kind: str
    parts: frozenset[str]

    def keep_in(self, text: str) -> str:
        """Return the text without parts that the last statement does not reach; at most two empty lines in a row."""
        parts = list(self._code_parts(ast.parse(text).body))
        names = {"__name__"}
        kept: set[int | None] = {None}  # None is the container of top-level parts
        while added := {
            index
            for index, part in enumerate(parts)
            if index not in kept and part.defines & names and part.inside in kept
        }:
            kept |= added
            names.update(*(parts[index].names for index in added))
        lines: list[str] = []
        dropped = set[int]()
        for index, part in enumerate(parts):
            if index not in kept:
                dropped.update(range(part.first, part.last + 1))
        for number, line in enumerate(text.split("\n"), start=1):
            if number not in dropped and (line or lines[-2:] != ["", ""]):
                lines.append(line)
        return DOCSTRING_OF_NOTHING.sub("", "\n".join(lines)).rstrip() + "\n"

    def _code_parts(self, body: list[ast.stmt]) -> Iterator[CodePart]:
        """Yield all statements, each followed by its methods or entries; the docstring of a constant belongs to it."""
        count, imported = 0, set[str]()
        for node, following in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.Expr):
                continue
            docstring_end = (
                following.end_lineno
                if isinstance(following, ast.Expr) and isinstance(node, ast.Assign | ast.AnnAssign)
                else None
            )
            entries = list(self._inner_parts(node, count))
            defines = _defined_names(node)
            if isinstance(node, ast.Import | ast.ImportFrom):
                defines, imported = defines - imported, imported | defines  # only an import of new names is needed
            names = _outer_names(node) if entries else _referenced_names(node)
            yield CodePart(_first_line(node), docstring_end or _last_line(node), defines, names)
            yield from entries
            count += 1 + len(entries)

    def _inner_parts(self, node: ast.stmt, index: int) -> Iterator[CodePart]:
        """Yield the methods of a class, or the entries of a table; only those for the kind and the steps are needed."""
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    defines = {node.name} if method.name.startswith("__") else {f".{method.name}"}
                    yield CodePart(
                        _first_line(method), _last_line(method), frozenset(defines), _referenced_names(method), index
                    )
        table = getattr(node, "value", None)
        name = next(iter(_defined_names(node)), "")
        if isinstance(table, ast.Dict) and name in (*BY_KIND, *BY_PART):
            kinds = {self.kind, "release certificate"} if self.kind == "release result" else {self.kind}
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant):
                    is_needed = key.value in (kinds if name in BY_KIND else self.parts)
                    yield CodePart(
                        key.lineno,
                        _last_line(value),
                        frozenset({name} if is_needed else set()),
                        _referenced_names(value),
                        index,
                    )


def standalone_text(document: str | None = None) -> str:
    """Return the text of check.py; for the text of a ``document``, only the parts that its check needs."""
    modules = [HEAD]
    for name in ORDER:
        # Replace imports from other modules of the verifier by empty lines.
        text = Path(__file__).with_name(f"{name}.py").read_text("utf-8")
        lines = text.split("\n")
        for node in ast.parse(text).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("tightrope.", "__future__")):
                lines[node.lineno - 1 : node.end_lineno] = [""] * (_last_line(node) - node.lineno + 1)
        modules.append("\n".join(lines).strip() + "\n\n")
    whole = "\n".join(modules)
    if document is None:
        return whole
    kind, data, _ = parse_document(document)
    steps = data["steps"] if kind == "account" else []
    certificate = data.get("certificate", data)
    mechanisms = certificate.get("mechanisms", ())
    rare_fields = {field for field in ("disjoint", "box") if any(one.get(field) is not None for one in mechanisms)}
    rare_fields |= {"marginals", "common_part"} & set(certificate)
    if kind == "noise certificate":
        rare_fields |= set(data["argument"]["numbers"])
    parts = frozenset({"gaussian", *(step["mechanism"] for step in steps), *rare_fields})
    return NeededParts(kind, parts).keep_in(whole)


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
    """Return the names that a statement defines; for ``if __name__``, that name, which is always needed."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return frozenset({node.name})
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return frozenset({"__name__"})  # changes how annotations are read
    if isinstance(node, ast.Import | ast.ImportFrom):
        return frozenset(alias.asname or alias.name.split(".")[0] for alias in node.names)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return frozenset(name for target in targets for name in _referenced_names(target)) or frozenset({"__name__"})


def _first_line(node: ast.stmt) -> int:
    """Return the number of its first line, decorators included."""
    decorated: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorated)])


def _last_line(node: ast.stmt | ast.expr) -> int:
    """Return the number of its last line."""
    return node.end_lineno or node.lineno
