"""Moves a checkout of Tightrope into rooms; run it again on any later tree.

    python move.py CHECKOUT [--ruff PATH] [--dry]

What goes where is in mapping.toml, hand edits in edits.toml (before the move) and after.toml (after it), the lines of the
``__init__`` files in rooms.toml, the contracts of import-linter in contracts.toml. A mapping takes effect only while the
file at its old place exists: a second run on a moved tree changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import fnmatch
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = (
    "privacy mechanisms design local transport engines channels release report cli certificates randomness numerics training"
).split()
TEXTS = {".md", ".toml", ".py", "", ".cfg", ".html"}
FROM = r"from[ ](?P<module>(?:tightrope|tests)(?:\.\w+)*)[ ]import[ ](?P<names>\w+(?:[ ]as[ ]\w+)?(?:,[ ]\w+(?:[ ]as[ ]\w+)?)*)"
PATH = r"(?<![\w.\-])(?P<up>(?:\.\./)*)(?P<root>src/tightrope/|tightrope/|tests/|)(?P<path>[a-z_]+(?:/[a-z_]+)*)\.py\b"
FULL = r"(?<![\w.\-/])(?P<full>(?:tightrope|tests)(?:\.\w+)+)"
SHORT = rf"(?<![\w.\-/:])(?P<short>(?:{'|'.join(FOLDERS)})(?:\.[a-z_]\w*)+)(?!\w|\()"


@dataclass
class Move:
    root: Path
    config: dict
    active: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def symbols(self) -> dict[str, str]:
        return self.config["symbols"]

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # --- which file goes where -------------------------------------------------------------------------------------------

    def files(self) -> list[str]:
        listed = git(self.root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
        return sorted(f for f in set(listed) if (self.root / f).is_file())

    def choose(self) -> None:
        """Fills ``active``: old dotted name -> new dotted name, for every module that is still at its old place."""
        present = {dotted(f) for f in self.files() if f.endswith(".py") and not f.endswith("__init__.py")} - {None}
        known = {**self.config["modules"], **self.config["tests"]}
        self.active = {old: new for old, new in known.items() if old in present and old != new}
        places = set(known.values())
        strays = sorted(m for m in present if m not in known and m not in places and m.startswith(("tightrope.", "tests.")))
        for module in strays:
            if module.startswith("tests."):
                self.place(module, self.test_room(module))
        for folder in sorted({m.rpartition(".")[0] for m in strays if m.startswith("tightrope.")}):
            self.strays(folder, [m for m in strays if m.rpartition(".")[0] == folder], present)

    def place(self, module: str, new: str) -> None:
        if new != module:
            self.active[module] = new
        self.note(f"placed by rule: {module} -> {new}" if new != module else f"stays, as no line names it: {module}")

    def strays(self, folder: str, strays: list[str], present: set[str]) -> None:
        """New modules go where the contracts allow all that they import and all that imports them, also through each other.

        Of the rooms that are left the one wins that most of their importers (three votes) and imports (one) are in.
        """
        inside = {m: self.active.get(m, m) for m in self.config["modules"] if m.rpartition(".")[0] == folder and m in present}
        if all(old == new for old, new in inside.items()):
            for module in strays:
                self.place(module, module)
            return
        uses = {m: imported(self.root / path_of(m), present) - {m} for m in [*inside, *strays]}
        users: dict[str, set[str]] = {m: {u for u, used in uses.items() if m in used} for m in uses}
        rooms = sorted({new.rpartition(".")[0] for new in inside.values()} - {folder})
        placed = dict(inside)
        for module in strays:
            below, above = through(module, uses, placed), through(module, users, placed)
            votes = Counter({room: 0 for room in rooms})
            votes.update(placed[o].rpartition(".")[0] for o in below)
            votes.update(room for o in above for room in [placed[o].rpartition(".")[0]] * 3)
            fallback = next((r for p, r in self.config["defaults"].items() if fnmatch.fnmatch(module, p)), folder)
            votes[fallback] += 0.5
            leaf = module.rpartition(".")[2]
            for room in sorted((r for r in votes if r in rooms), key=lambda r: -votes[r]):
                new = f"{room}.{leaf}"
                full = sum(other.rpartition(".")[0] == room for other in placed.values()) >= 16
                fits = all(self.allowed(new, placed[o]) for o in below) and all(self.allowed(placed[o], new) for o in above)
                if fits and not full:
                    break
            else:
                new = module
                self.note(f"NO ROOM FITS: {module}; it stays, name it in mapping.toml and in contracts.toml")
            placed[module] = new
            self.place(module, new)

    def allowed(self, user: str, used: str) -> bool:
        """Whether the contracts let one module (new name) import the other."""
        a, b = user.split("."), used.split(".")
        shared = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
        if shared is None:
            return True
        levels = self.layers.get(".".join(a[:shared]), {})
        return a[shared] not in levels or b[shared] not in levels or levels[a[shared]] < levels[b[shared]]

    @cached_property
    def layers(self) -> dict[str, dict[str, int]]:
        """By container: the line that each of its rooms and modules stands on."""
        found = load("contracts.toml")["tool"]["importlinter"]["contracts"]
        return {
            container: {name.strip(): i for i, line in enumerate(c["layers"]) for name in line.split("|")}
            for c in found
            if c["type"] == "layers"
            for container in c["containers"]
        }

    def test_room(self, module: str) -> str:
        folder, _, leaf = module.rpartition(".")
        tree = ast.parse((self.root / path_of(module)).read_text(encoding="utf-8"))
        top = folder.split(".")[1] if "." in folder else ""
        votes: Counter[str] = Counter()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"tightrope.{top}"):
                for name in [node.module, *[f"{node.module}.{a.name}" for a in node.names]]:
                    new = self.active.get(name)
                    if new and new.count(".") == 3:
                        votes[new.rpartition(".")[0]] += 1
        if not votes or not leaf.startswith("test_") or folder.count(".") != 1:
            return module
        return votes.most_common(1)[0][0].replace("tightrope.", "tests.", 1) + f".{leaf}"

    # --- names -----------------------------------------------------------------------------------------------------------

    def full(self, name: str) -> str:
        """The new spelling of a dotted name, whatever follows the module's name."""
        parts = name.split(".")
        if any(name == f or name.startswith(f + ".") for f in [*self.config["settings"]["facades"], *self.kept]):
            return name
        for end in range(len(parts), 1, -1):
            module = ".".join(parts[:end])
            if end < len(parts) and f"{module}:{parts[end]}" in self.symbols:
                target = self.symbols[f"{module}:{parts[end]}"]
                return ".".join([self.active.get(target, target), *parts[end:]])
            if module in self.active:
                return ".".join([self.active[module], *parts[end:]])
        return name

    @property
    def kept(self) -> list[str]:
        return self.config["settings"]["texts_kept"]

    def one(self, module: str, name: str) -> tuple[str, str]:
        """``from module import name`` in the new spelling: its module and its name."""
        whole = f"{module}.{name}"
        if whole in self.config["settings"]["facades"] or module in self.config["settings"]["facades"]:
            return module, name
        if f"{module}:{name}" in self.symbols:
            target = self.symbols[f"{module}:{name}"]
            return self.active.get(target, target), name
        if whole in self.active:
            new, _, leaf = self.active[whole].rpartition(".")
            return new, leaf
        return self.active.get(module, module), name

    # --- text ------------------------------------------------------------------------------------------------------------

    def text(self, text: str, *, short: bool) -> str:
        """Names and paths in prose, strings and comments, each looked at once."""
        pattern = "|".join([FROM, PATH, FULL, *([SHORT] if short else [])])
        return re.sub(pattern, self._in_text, text)

    def _in_text(self, match: re.Match[str]) -> str:
        if match["module"]:
            return self._from_in_text(match)
        if match["path"]:
            return self._path_in_text(match)
        if match["full"]:
            return self.full(match["full"])
        return self.full(f"tightrope.{match['short']}").removeprefix("tightrope.")

    def _from_in_text(self, match: re.Match[str]) -> str:
        names = [part.split(" as ") for part in match["names"].split(", ")]
        made: dict[str, list[str]] = {}
        for name, *other in names:
            module, leaf = self.one(match["module"], name)
            alias = other[0] if other else (name if leaf != name else None)
            if alias and not other:
                self.note(f"text imports a renamed module: {match[0]!r}")
            made.setdefault(module, []).append(f"{leaf} as {alias}" if alias else leaf)
        if len(made) > 1:
            self.note(f"text imports from two modules now: {match[0]!r}")
        return "; ".join(f"from {module} import {', '.join(leaves)}" for module, leaves in made.items())

    def _path_in_text(self, match: re.Match[str]) -> str:
        if match["root"] == "" and match["path"].split("/")[0] == "tests":
            return match[0]
        base = "tests." if match["root"] == "tests/" else "tightrope."
        old = base + match["path"].replace("/", ".")
        if old not in self.active:
            return self._basename(match)
        new = self.active[old].split(".", 1)[1].replace(".", "/")
        return f"{match['up']}{match['root']}{new}.py"

    def _basename(self, match: re.Match[str]) -> str:
        """``test_x.py`` alone: file names of tests are unique."""
        if match["root"] or "/" in match["path"] or not match["path"].startswith("test_"):
            return match[0]
        new = [n for o, n in self.active.items() if o.startswith("tests.") and o.rpartition(".")[2] == match["path"]]
        return f"{match['up']}{new[0].rpartition('.')[2]}.py" if new else match[0]

    # --- python ----------------------------------------------------------------------------------------------------------

    def python(self, path: str, source: str) -> str:
        return Rewriting(self, path, source).done()


@dataclass
class Rewriting:
    """One Python file: spans of its text and what stands there afterwards."""

    move: Move
    path: str
    source: str

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.source)
        self.lines = self.source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.spans: list[tuple[int, int, str]] = []
        self.renamed: dict[str, str] = {}
        self.module = dotted(self.path) or ""
        self.is_package = self.path.endswith("__init__.py")

    def done(self) -> str:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                self.from_import(node)
            elif isinstance(node, ast.Import):
                self.plain_import(node)
            elif isinstance(node, ast.Assign):
                self.homes(node)
        self.uses()
        self.tokens()
        text = self.source
        for start, end, new in sorted(self.spans, reverse=True):
            text = text[:start] + new + text[end:]
        return self.lost(self.depths(text))

    def offset(self, line: int, column: int) -> int:
        """Where a node's UTF-8 column is in the text."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def replace(self, node: ast.AST, new: str) -> None:
        start, end = self.span(node)
        if self.source[start:end] != new:
            self.spans.append((start, end, new))

    def from_import(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level:
            above = self.module.split(".")[: len(self.module.split(".")) - node.level + self.is_package]
            module = ".".join([*above, *filter(None, [module])])
        else:
            module = self.sibling(module)
        if not module.startswith(("tightrope", "tests.")):
            return
        made: dict[str, list[str]] = {}
        for alias in node.names:
            new, leaf = self.move.one(module, alias.name)
            made.setdefault(new, []).append(self.bound(alias, leaf))
        if node.level or made != {node.module: [spelled(a) for a in node.names]}:
            indent = "\n" + " " * node.col_offset
            self.replace(node, indent.join(f"from {m} import {', '.join(names)}" for m, names in made.items()))

    def sibling(self, module: str) -> str:
        """Helpers of tests that are imported by their bare name get their whole one."""
        if not self.path.startswith("tests/") or "." in module or not module:
            return module
        folder = self.module.rpartition(".")[0]
        found = {o for o in self.move.config["tests"] if o.rpartition(".")[2] == module}
        here = f"{folder}.{module}"
        if here in self.move.config["tests"].values() and here not in found:
            return module
        if here in found and module.startswith("test_"):
            same = self.new_of(here).rpartition(".")[0] == self.new_of(self.module).rpartition(".")[0]
            return module if same and self.new_of(here).rpartition(".")[2] == module else here
        return here if here in found else next(iter(found), module) if len(found) == 1 else module

    def new_of(self, module: str) -> str:
        return self.move.active.get(module, module)

    def bound(self, alias: ast.alias, leaf: str) -> str:
        """The imported name; where it is another one now, its uses in the file follow, or it keeps its old name."""
        if leaf == alias.name:
            return spelled(alias)
        if alias.asname:
            return f"{leaf} as {alias.asname}" if leaf != alias.asname else leaf
        if self.is_free(alias.name, leaf):
            self.renamed[alias.name] = leaf
            return leaf
        self.move.note(f"keeps its old name: {alias.name} in {self.path}")
        return f"{leaf} as {alias.name}"

    def is_free(self, old: str, new: str) -> bool:
        """Whether the old name is bound by imports alone, and the new one means nothing here."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and (node.id == new or (node.id == old and not isinstance(node.ctx, ast.Load))):
                return False
            if isinstance(node, ast.arg) and node.arg in (old, new):
                return False
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in (old, new):
                return False
            if isinstance(node, ast.alias) and (node.asname or node.name) == new:
                return False
        return True

    def plain_import(self, node: ast.Import) -> None:
        if len(node.names) != 1:
            return
        (alias,) = node.names
        whole = self.sibling(alias.name)
        if whole != alias.name and whole.startswith("tests."):
            parent, _, leaf = self.new_of(whole).rpartition(".")
            self.replace(node, f"from {parent} import {leaf}" + (f" as {alias.asname}" if alias.asname else ""))
        elif whole in self.move.active:
            if alias.asname is None:
                self.move.note(f"bare import of a moved module: {alias.name} in {self.path}")
            self.replace(node, f"import {self.new_of(whole)}" + (f" as {alias.asname}" if alias.asname else ""))

    def homes(self, node: ast.Assign) -> None:
        """Tables of lazy exports: name -> module below this package."""
        if not (isinstance(node.targets[0], ast.Name) and node.targets[0].id == "_HOMES" and isinstance(node.value, ast.Dict)):
            return
        package = self.module
        for value in node.value.values:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                new = self.new_of(f"{package}.{value.value}")
                self.replace(value, f'"{new.removeprefix(package + ".")}"')

    def uses(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id in self.renamed:
                self.replace(node, self.renamed[node.id])

    def tokens(self) -> None:
        """Comments and strings."""
        taken = {start for start, _, _ in self.spans}
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            if token.type not in (tokenize.COMMENT, tokenize.STRING):
                continue
            start = self.starts[token.start[0] - 1] + token.start[1]
            end = self.starts[token.end[0] - 1] + token.end[1]
            if start in taken:
                continue
            is_f = token.type == tokenize.STRING and "f" in re.match(r"\w*", token.string)[0].lower()
            new = self.move.text(token.string, short=not is_f)
            if new != token.string:
                self.spans.append((start, end, new))

    def depths(self, text: str) -> str:
        """``Path(__file__).parents[n]`` in a file that is deeper now."""
        deeper = self.new_of(self.module).count(".") - self.module.count(".")
        if not deeper or self.is_package:
            return text
        if re.search(r"Path\(__file__\)\.parent\b(?!s)", text):
            self.move.note(f"look at Path(__file__).parent in {self.path}")
        return re.sub(r"(Path\(__file__\)\.parents)\[(\d+)\]", lambda m: f"{m[1]}[{int(m[2]) + deeper}]", text)

    def lost(self, text: str) -> str:
        """A module that still uses a name that moved away from it imports it."""
        away = {key.partition(":")[2]: new for key, new in self.move.symbols.items() if key.partition(":")[0] == self.module}
        if not away:
            return text
        tree = ast.parse(text)
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        bound = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, (ast.ImportFrom, ast.Import)) for a in n.names}
        bound |= {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        bound |= {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
        for name in sorted((used & set(away)) - bound):
            statement = f"from {self.new_of(away[name])} import {name}\n"
            text = re.sub(r"^from tightrope", lambda m, s=statement: s + m[0], text, count=1, flags=re.MULTILINE)
        return text


def spelled(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def dotted(path: str) -> str | None:
    """tightrope.a.b of src/tightrope/a/b.py, tests.a.b of tests/a/b.py; of a package without its __init__."""
    if not path.endswith(".py"):
        return None
    parts = Path(path).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts[1:] if parts[0] == "src" else parts)


def path_of(module: str) -> str:
    return ("src/" if module.startswith("tightrope") else "") + module.replace(".", "/") + ".py"


def imported(path: Path, known: set[str]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {n for n in [node.module, *[f"{node.module}.{a.name}" for a in node.names]] if n in known}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name in known}
    return found


def through(start: str, edges: dict[str, set[str]], placed: dict[str, str]) -> set[str]:
    """The modules with a place that are reached, directly or by way of modules without one."""
    found, seen, todo = set(), {start}, [start]
    while todo:
        for other in edges.get(todo.pop(), ()):
            if other in seen:
                continue
            seen.add(other)
            if other in placed:
                found.add(other)
            elif other in edges:
                todo.append(other)
    return found


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout


def load(name: str) -> dict:
    path = HERE / name
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def apply_edits(move: Move, edits: list[dict]) -> None:
    """Text that stands exactly once is replaced; what is done already is passed over; anything else ends the run."""
    places = {**move.config["modules"], **move.config["tests"]}
    failed = []
    for edit in edits:
        place = edit.get("path") or edit.get("create") or edit["delete"]
        path = move.root / place
        new_place = places.get(dotted(place) or "", "")
        gone = not path.exists() and (bool(new_place) and (move.root / path_of(new_place)).exists())
        if "delete" in edit:
            if path.exists():
                path.unlink()
        elif "create" in edit:
            if not (move.root / edit.get("moved", place)).exists() and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(edit["new"], encoding="utf-8")
        elif gone:
            continue
        else:
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if text.count(edit["old"]) == 1 and not (edit["new"] and edit["old"] in edit["new"] and edit["new"] in text):
                path.write_text(text.replace(edit["old"], edit["new"]), encoding="utf-8")
            elif not (edit["new"] == "" or edit["new"] in text) or text.count(edit["old"]) > 1:
                failed.append(f"{place}: {edit['old'].strip().splitlines()[0]!r} stands {text.count(edit['old'])} times")
    if failed:
        sys.exit("edits that do not fit this tree any more (mend edits.toml or after.toml):\n  " + "\n  ".join(failed))


def extract(move: Move, symbol: str, to: str, doc: str) -> None:
    """Cuts a class out of its module into one of its own, with the imports that it needs; ruff drops the others."""
    module, _, name = symbol.partition(":")
    path = move.root / path_of(module)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    tree = ast.parse(text)
    node = next((n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and n.name == name), None)
    if node is None:
        return
    target = move.root / path_of(to)
    if target.exists():
        sys.exit(f"{symbol} is still in its module, but {target} exists")
    lines = text.splitlines(keepends=True)
    start = min([node.lineno, *[d.lineno for d in node.decorator_list]]) - 1
    own = {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    own |= {n.name for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))} - {name}
    used = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & own)
    imports = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom, ast.If))]
    head = "".join("".join(lines[n.lineno - 1 : n.end_lineno]) for n in imports)
    head += "".join(f"from {module} import {other}\n" for other in used)
    target.write_text(f'"""{doc}"""\n\n{head}\n\n' + "".join(lines[start : node.end_lineno]), encoding="utf-8")
    path.write_text("".join(lines[:start]).rstrip("\n") + "\n\n\n" + "".join(lines[node.end_lineno :]).lstrip("\n"), encoding="utf-8")


def rewrite(move: Move) -> dict[str, str]:
    """New text of every file that changes, by its old path."""
    changed = {}
    for name in move.files():
        path = move.root / name
        if path.suffix not in TEXTS or name.startswith("changelog/") or "/reference/" in name or name == "constraints.txt":
            continue
        if not path.suffix and path.name not in {"Makefile", "run"}:
            continue
        text = path.read_text(encoding="utf-8")
        new = move.python(name, text) if path.suffix == ".py" else move.text(text, short=path.suffix == ".md")
        if new != text:
            changed[name] = new
    return changed


def make_moves(move: Move, changed: dict[str, str]) -> list[str]:
    touched = []
    for old, new in sorted(move.active.items()):
        source, target = path_of(old), path_of(new)
        (move.root / target).parent.mkdir(parents=True, exist_ok=True)
        git(move.root, "add", source)
        git(move.root, "mv", source, target)
        touched.append(target)
        if source in changed:
            changed[target] = changed.pop(source)
    for name, text in changed.items():
        (move.root / name).write_text(text, encoding="utf-8")
        touched.append(name)
    return touched


def furnish(move: Move) -> None:
    """The ``__init__`` of every room: one line that says what it holds and what it must not know."""
    rooms = load("rooms.toml")
    packages = {Path(f).parent for f in move.files() if f.startswith("src/tightrope/") and f.endswith(".py")}
    for folder in sorted(packages):
        name = ".".join(folder.parts[1:])
        path = move.root / folder / "__init__.py"
        line = rooms["lines"].get(name)
        if line is None:
            move.note(f"a room without a line in rooms.toml: {name}")
            continue
        body = rooms.get("bodies", {}).get(name, "")
        if not path.exists():
            path.write_text(f'"""{line}"""\n{body}', encoding="utf-8")
            continue
        text = path.read_text(encoding="utf-8")
        first = text.split("\n", 1)[0]
        closed = '"""' if first.count('"""') == 2 else ""
        path.write_text(f'"""{line}{closed}\n' + text.split("\n", 1)[1], encoding="utf-8")


def contracts(move: Move) -> None:
    path = move.root / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    start = text.index("[tool.importlinter]")
    rest = re.search(r"^\[(?!\[?tool\.importlinter)", text[start + 1 :], re.MULTILINE)
    end = start + 1 + rest.start() if rest else len(text)
    path.write_text(text[:start] + (HERE / "contracts.toml").read_text(encoding="utf-8") + text[end:], encoding="utf-8")


def tidy(move: Move, ruff: str) -> None:
    files = [f for f in ("src", "tests", "benchmarks", "examples") if (move.root / f).exists()]
    subprocess.run([ruff, "check", "--quiet", "--select", "I,F401", "--fix", *files], cwd=move.root, check=False)
    subprocess.run([ruff, "format", "--quiet", *files], cwd=move.root, check=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("checkout", type=Path)
    asked.add_argument("--ruff", default=".venv/bin/ruff")
    asked.add_argument("--dry", action="store_true", help="say what would move, and change nothing")
    asked.add_argument("--edits-only", action="store_true", help="hand edits and the imports that follow; nothing moves")
    given = asked.parse_args()
    move = Move(given.checkout.resolve(), load("mapping.toml"))
    if given.dry:
        move.choose()
        print(f"{len(move.active)} files would move")
        print(*move.notes, sep="\n")
        return
    apply_edits(move, load("edits.toml").get("edit", []))
    for one in move.config["extract"]:
        extract(move, **one)
    if given.edits_only:
        make_moves(move, rewrite(move))
        tidy(move, given.ruff)
        git(move.root, "add", "--all")
        return
    move.choose()
    touched = make_moves(move, rewrite(move))
    furnish(move)
    contracts(move)
    tidy(move, given.ruff)
    apply_edits(move, load("after.toml").get("edit", []))
    tidy(move, given.ruff)
    git(move.root, "add", "--all")
    print(f"{len(move.active)} files moved, {len(touched)} touched")
    print(*move.notes, sep="\n")


if __name__ == "__main__":
    main()
