"""Gives constants of one meaning one home and the others names of their own; run it after move.py.

    python constants.py CHECKOUT [--ruff PATH]

What becomes what is in constants.toml. Uses follow: in the module itself, in imports by name, behind an imported module
(``module.NAME``), in monkeypatch.setattr(module, "NAME", ...), in dotted strings, in ``NAME`` within docstrings. A second
run changes nothing. At the end it says which names still stand in more than two modules.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass
class File:
    """One Python file, its imports, and spans of new text."""

    path: Path
    module: str
    source: str
    spans: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.source)
        self.lines = self.source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def replace(self, node: ast.AST, new: str) -> None:
        self.spans.append((self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset), new))

    def write(self) -> bool:
        text = self.source
        for start, end, new in sorted(set(self.spans), reverse=True):
            text = text[:start] + new + text[end:]
        if text != self.source:
            self.path.write_text(text, encoding="utf-8")
        return text != self.source

    def definition(self, name: str) -> tuple[ast.Assign, ast.Expr | None] | None:
        """``NAME = value`` at the top of the module, and the string below it."""
        for node, after in zip(self.tree.body, [*self.tree.body[1:], None], strict=True):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and getattr(node.targets[0], "id", None) == name:
                text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
                return node, after if text else None
        return None

    def names_of_modules(self, known: set[str]) -> dict[str, str]:
        """Local name -> module, for imports of whole modules."""
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if f"{node.module}.{alias.name}" in known:
                        found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Import):
                found.update({a.asname: a.name for a in node.names if a.asname and a.name in known})
        return found


def files(root: Path) -> list[File]:
    found = []
    for folder in ("src", "tests", "benchmarks", "examples"):
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            module = ".".join(parts[1:] if parts[0] == "src" else parts)
            found.append(File(path, module, path.read_text(encoding="utf-8")))
    return found


def rename(root: Path, renames: dict[str, dict[str, str]], notes: list[str]) -> set[Path]:
    all_files = files(root)
    known = {f.module for f in all_files}
    by_module = {f.module: f for f in all_files}
    table: dict[tuple[str, str], str] = {}
    for old, places in renames.items():
        for place, new in places.items():
            file = by_module.get(f"tightrope.{place}")
            if file is None or file.definition(old) is None:
                if file is None or file.definition(new) is None:
                    notes.append(f"gone: {place}.{old}")
                continue
            taken = {n.id for n in ast.walk(file.tree) if isinstance(n, ast.Name)} | {
                a.asname or a.name for n in ast.walk(file.tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names
            }
            if new in taken:
                notes.append(f"taken: {new} in {place}, {old} stays")
                continue
            table[file.module, old] = new
    leaves = {(m.rpartition(".")[2], old): new for (m, old), new in table.items()}
    for file in all_files:
        follow(file, table, leaves, known)
    return {f.path for f in all_files if f.write()}


def follow(file: File, table: dict[tuple[str, str], str], leaves: dict[tuple[str, str], str], known: set[str]) -> None:
    own = {old: new for (module, old), new in table.items() if module == file.module}
    here = dict(own)
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            made = [(table.get((node.module, a.name), a.name), a) for a in node.names]
            if any(new != a.name for new, a in made):
                here.update({a.name: new for new, a in made if not a.asname and new != a.name})
                names = ", ".join(f"{new} as {a.asname}" if a.asname else new for new, a in made)
                file.replace(node, f"from {node.module} import {names}")
    modules = file.names_of_modules(known)
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Name) and node.id in here:
            file.replace(node, here[node.id])
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            new = table.get((modules[node.value.id], node.attr))
            if new:
                end = file.offset(node.end_lineno, node.end_col_offset)
                file.spans.append((end - len(node.attr), end, new))
        elif isinstance(node, ast.Call) and "setattr" in ast.unparse(node.func) and len(node.args) > 1:
            target, name = node.args[0], node.args[1]
            if isinstance(target, ast.Name) and target.id in modules and isinstance(name, ast.Constant):
                new = table.get((modules[target.id], name.value))
                if new:
                    file.replace(name, f'"{new}"')
    taken = {start for start, _, _ in file.spans}
    for token in tokenize.generate_tokens(io.StringIO(file.source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            start = file.starts[token.start[0] - 1] + token.start[1]
            new = said(token.string, own, table, leaves)
            if new != token.string and start not in taken:
                file.spans.append((start, file.starts[token.end[0] - 1] + token.end[1], new))


def said(text: str, own: dict[str, str], table: dict[tuple[str, str], str], leaves: dict[tuple[str, str], str]) -> str:
    text = re.sub(r"``([A-Z_]+)``", lambda m: f"``{own.get(m[1], m[1])}``", text)
    text = re.sub(r"``(\w+)\.([A-Z_]+)``", lambda m: f"``{m[1]}.{leaves.get((m[1], m[2]), m[2])}``", text)
    return re.sub(
        r"\b(tightrope(?:\.\w+)+)\.([A-Z_]+)\b", lambda m: f"{m[1]}.{table.get((m[1], m[2]), m[2])}", text
    )


def house(root: Path, homes: dict[str, dict[str, str]], heads: dict[str, str], notes: list[str]) -> set[Path]:
    """Each name is defined at home alone, and imported from there."""
    everywhere = files(root)
    wanted = {
        name: home
        for name, home in homes.items()
        if any(f.definition(name) for f in everywhere if f.module.startswith("tightrope."))
    }
    make_homes(root, wanted, heads)
    homes = wanted
    all_files = files(root)
    moved: dict[tuple[str, str], str] = {}
    for name, home in homes.items():
        where, value = f"tightrope.{home['module']}", ast.dump(ast.parse(home["value"], mode="eval").body)
        for file in all_files:
            found = file.definition(name) if file.module.startswith("tightrope.") and file.module != where else None
            if found is None:
                continue
            if ast.dump(found[0].value) != value:
                notes.append(f"another value: {file.module}.{name} = {ast.unparse(found[0].value)}")
                continue
            moved[file.module, name] = where
            last = found[1] or found[0]
            start = file.offset(found[0].lineno, 0)
            file.spans.append((start, file.starts[last.end_lineno], ""))
    for file in all_files:
        redirect(file, moved)
    return {f.path for f in all_files if f.write()}


def make_homes(root: Path, homes: dict[str, dict[str, str]], heads: dict[str, str]) -> None:
    for name, home in homes.items():
        path = root / "src/tightrope" / (home["module"].replace(".", "/") + ".py")
        types = "import numpy as np\nfrom numpy.typing import NDArray\n\n" if "NDArray" in home["value"] else ""
        if not path.exists():
            path.write_text(f'"""{heads[home["module"]]}"""\n\nfrom __future__ import annotations\n\n{types}', encoding="utf-8")
        file = File(path, home["module"], path.read_text(encoding="utf-8"))
        if file.definition(name):
            continue
        text = f"{name} = {home['value']}\n" + (f'"""{home["doc"]}"""\n' if home.get("doc") else "")
        at = next(
            (n for n in file.tree.body if not isinstance(n, (ast.Import, ast.ImportFrom, ast.If, ast.Expr, ast.Assign))), None
        )
        start = file.offset(min([at.lineno, *[d.lineno for d in getattr(at, "decorator_list", [])]]), 0) if at else len(file.source)
        path.write_text(file.source[:start] + text + file.source[start:], encoding="utf-8")


def redirect(file: File, moved: dict[tuple[str, str], str]) -> None:
    lost = [(where, name) for (module, name), where in moved.items() if module == file.module]
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            made: dict[str, list[str]] = defaultdict(list)
            for a in node.names:
                made[moved.get((node.module, a.name), node.module)].append(f"{a.name} as {a.asname}" if a.asname else a.name)
            if set(made) != {node.module}:
                indent = "\n" + " " * node.col_offset
                file.replace(node, indent.join(f"from {m} import {', '.join(names)}" for m, names in made.items()))
    if lost:
        first = next((n for n in file.tree.body if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("tightrope")), None)
        last = [n for n in file.tree.body if isinstance(n, (ast.Import, ast.ImportFrom))][-1]
        at = file.offset(first.lineno, 0) if first else file.starts[last.end_lineno]
        file.spans.append((at, at, "".join(f"from {where} import {name}\n" for where, name in lost)))


def repeated(root: Path) -> list[str]:
    places: dict[str, list[str]] = defaultdict(list)
    for file in files(root):
        for node in file.tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                if node.targets[0].id.isupper() and file.module.startswith("tightrope"):
                    places[node.targets[0].id].append(file.module.removeprefix("tightrope."))
    return [f"{len(v)} x {k}: {', '.join(v)}" for k, v in sorted(places.items()) if len(v) > 2]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("checkout", type=Path)
    asked.add_argument("--ruff", default=".venv/bin/ruff")
    given = asked.parse_args()
    root = given.checkout.resolve()
    config = tomllib.loads((HERE / "constants.toml").read_text(encoding="utf-8"))
    notes: list[str] = []
    changed = rename(root, config["renames"], notes)
    changed |= house(root, config["homes"], config["heads"], notes)
    new = {root / "src/tightrope" / (h["module"].replace(".", "/") + ".py") for h in config["homes"].values()}
    listed = sorted(str(p) for p in changed | new)
    subprocess.run([given.ruff, "check", "--quiet", "--select", "I,F401", "--fix", *listed], cwd=root, check=False)
    subprocess.run([given.ruff, "format", "--quiet", *listed], cwd=root, check=True)
    print(f"{len(changed)} files changed")
    print(*notes, *repeated(root), sep="\n")


if __name__ == "__main__":
    main()
