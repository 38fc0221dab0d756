"""Merge and move modules of a package, and rewrite every import, reference and mention of them.

    python regroup.py PLAN.toml ROOT [--check]

PLAN.toml has ``[merge]``: new module -> list of old modules, in the order of the file; ``[move]``: old prefix -> new prefix, for all
modules that no merge names (longest prefix wins); ``[drop]``: packages whose ``__init__`` goes; ``[rename]``: "old.module:name" = "new name".
Needs libcst. Names that collide inside a merged module are renamed, and each such renaming is printed.
"""

from __future__ import annotations

import builtins
import re
import sys
import textwrap
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst
from libcst.metadata import (
    Assignment,
    ClassScope,
    GlobalScope,
    ImportAssignment,
    MetadataWrapper,
    ParentNodeProvider,
    ScopeProvider,
)

PACKAGE = "tightrope"


def dotted(node: cst.BaseExpression | None) -> str:
    if node is None:
        return ""
    if isinstance(node, cst.Name):
        return node.value
    assert isinstance(node, cst.Attribute), node
    return f"{dotted(node.value)}.{node.attr.value}"


def expression(text: str) -> cst.BaseExpression:
    return cst.parse_expression(text)


@dataclass
class Source:
    """One file: its tree, its scopes, and what its module-level names stand for."""

    path: Path
    module: str  # old dotted name, or "" outside the package
    is_package: bool
    wrapper: MetadataWrapper
    tree: cst.Module
    scopes: dict
    parents: dict
    global_scope: GlobalScope
    definitions: set[str] = field(default_factory=set)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)  # local name -> (module, name or None for a module)

    @classmethod
    def read(cls, path: Path, module: str) -> Source:
        wrapper = MetadataWrapper(cst.parse_module(path.read_text()), unsafe_skip_copy=True)
        scopes = wrapper.resolve(ScopeProvider)
        parents = wrapper.resolve(ParentNodeProvider)
        top = next(s for s in scopes.values() if isinstance(s, GlobalScope)) if scopes else None
        return cls(path, module, path.stem == "__init__", wrapper, wrapper.module, scopes, parents, top)

    def absolute(self, node: cst.ImportFrom) -> str:
        name = dotted(node.module)
        if not node.relative:
            return name
        parts = self.module.split(".")
        up = len(node.relative) - (1 if self.is_package else 0)
        base = parts[: len(parts) - up]
        return ".".join([*base, *([name] if name else [])])


class Plan:
    """Where each old module goes, and which names change."""

    def __init__(self, plan: dict, root: Path) -> None:
        self.root = root
        self.sources: dict[str, Source] = {}
        base = root / "src"
        for path in sorted((base / PACKAGE).rglob("*.py*")):
            if path.suffix not in (".py", ".pyi") or "__pycache__" in path.parts:
                continue
            parts = path.relative_to(base).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            key = module + (".pyi" if path.suffix == ".pyi" else "")
            self.sources[key] = Source.read(path, module)
        self.modules = {m for m in self.sources if not m.endswith(".pyi")}
        self.merges: dict[str, list[str]] = plan.get("merge", {})
        self.target: dict[str, str] = {}
        self.dropped = set(plan.get("drop", {}).get("packages", []))
        self.renames: dict[tuple[str, str], str] = {tuple(k.split(":")): v for k, v in plan.get("rename", {}).items()}
        for new, olds in self.merges.items():
            for old in olds:
                if old not in self.modules:
                    print("plan names an unknown module", old)
                    continue
                if old in self.target:
                    print("plan names twice", old)
                self.target[old] = new
        self.merges = {new: [o for o in olds if o in self.modules] for new, olds in self.merges.items()}
        moves = sorted(plan.get("move", {}).items(), key=lambda kv: -len(kv[0]))
        for module in self.modules:
            if module in self.target or module in self.dropped:
                continue
            for old, new in moves:
                if module == old or module.startswith(old + "."):
                    self.target[module] = new + module[len(old) :]
                    break
            else:
                self.target[module] = module
        for package in self.dropped:
            self.target.setdefault(package, "")
        groups = defaultdict(list)
        for old, new in self.target.items():
            if new:
                groups[new].append(old)
        for new, olds in groups.items():
            order = self.merges.get(new, [])
            groups[new] = [*order, *sorted(o for o in olds if o not in order)]
        self.groups = dict(groups)
        self.new_name: dict[tuple[str, str], str] = {}
        self.problems: list[str] = []

    # ---- what names stand for

    def collect(self, source: Source) -> None:
        for assignment in source.global_scope.assignments if source.global_scope else ():
            if isinstance(assignment, ImportAssignment):
                node = assignment.node
                got = self.import_target(source, node, assignment.name)
                if got:
                    source.imports[assignment.name] = got
            elif isinstance(assignment, Assignment):
                source.definitions.add(assignment.name)
        for name in list(source.imports):
            if name in source.definitions:
                source.imports.pop(name)

    def import_target(self, source: Source, node: cst.CSTNode, local: str) -> tuple[str, str | None] | None:
        if isinstance(node, cst.Import):
            for alias in node.names:
                name = dotted(alias.name)
                if alias.asname and alias.asname.name.value == local:
                    return name, None
                if not alias.asname and name.split(".")[0] == local.split(".")[0]:
                    return name, "."  # import a.b.c binds a
            return None
        assert isinstance(node, cst.ImportFrom)
        if isinstance(node.names, cst.ImportStar):
            return None
        base = source.absolute(node)
        for alias in node.names:
            bound = alias.asname.name.value if alias.asname else alias.name.value
            if bound == local:
                full = f"{base}.{alias.name.value}"
                if full in self.modules and not self.is_defined(base, alias.name.value):
                    return full, None
                return base, alias.name.value
        return None

    def is_defined(self, module: str, name: str) -> bool:
        """Whether a package's own names (not its sub-modules) hold this name."""
        if module not in self.sources:
            return False
        here = self.sources[module]
        return name in here.definitions or name in here.imports

    def entity(self, module: str, name: str | None, depth: int = 0) -> tuple:
        """What (module, name) finally stands for: ("def", module, name), ("mod", module) or ("ext", module, name)."""
        if name is None:
            return ("mod", module) if module in self.modules else ("ext", module, None)
        if name == ".":
            return ("ext", module, ".")
        if module in self.modules and depth < 20:
            here = self.sources[module]
            if name in here.definitions:
                return ("def", module, name)
            if name in here.imports:
                return self.entity(*here.imports[name], depth + 1)
            if f"{module}.{name}" in self.modules:
                return ("mod", f"{module}.{name}")
            stub = self.sources.get(module + ".pyi")
            if stub and name in stub.imports:
                return self.entity(*stub.imports[name], depth + 1)
            return ("def", module, name)
        return ("ext", module, name)

    # ---- collisions

    def settle_names(self) -> None:
        for new, olds in self.groups.items():
            taken: dict[str, tuple] = {}
            wanted: list[tuple[str, str, tuple]] = []
            for old in olds:
                source = self.sources[old]
                for name in sorted(source.definitions):
                    wanted.append((old, name, ("def", old, name)))
            for old in olds:
                for name, target in sorted(self.sources[old].imports.items()):
                    found = self.entity(*target)
                    if found[0] == "def" and self.target.get(found[1]) == new:
                        continue
                    if found[0] == "mod" and self.target.get(found[1]) == new:
                        continue
                    wanted.append((old, name, found))
            for old, name, found in wanted:
                final = self.renames.get((old, name), name)
                if found[0] == "mod":
                    found = ("mod", self.target[found[1]], found[1])
                    if (old, name) not in self.renames and name == found[2].split(".")[-1]:
                        final = found[1].split(".")[-1]
                    found = found[:2]
                if found == ("ext", "__future__", "annotations"):
                    continue
                if final in taken and taken[final] != found and name not in ("__getattr__", "__dir__", "__all__"):
                    tail = old.split(".")[-1]
                    plain = final.lstrip("_")
                    lead = "_" * (len(final) - len(plain))
                    if found[0] == "def":
                        final = f"{lead}{tail.upper() if plain.isupper() else tail}_{plain}" if not plain[:1].isupper() or plain.isupper() else f"{lead}{tail.title().replace('_', '')}{plain}"
                    elif found[0] == "mod":
                        final = f"{final}_module"
                    else:
                        final = f"{plain}_of_{found[1].split('.')[-1]}"
                    print(f"rename {old}:{name} -> {final}   (in {new}; taken by {taken.get(self.renames.get((old, name), name))})")
                    while final in taken and taken[final] != found:
                        final += "_"
                taken[final] = found
                if final != name:
                    self.new_name[old, name] = final

    def local(self, old: str, name: str) -> str:
        """The name that (old module, name) has in the new module."""
        source = self.sources.get(old)
        if source and name in source.imports and self.target.get(old):
            found = self.entity(*source.imports[name])
            if found[0] == "def" and self.target.get(found[1]) == self.target[old]:
                return self.local(found[1], found[2])
        return self.new_name.get((old, name), name)

    # ---- rewriting one file

    def rewrite(self, source: Source, here: str | None) -> tuple[cst.Module, list[tuple[str, bool]]]:
        """The tree with all names in their new form, top-level imports taken out; and those imports as lines (text, only for types)."""
        replace: dict[cst.CSTNode, cst.CSTNode] = {}
        imports: list[tuple[str, bool]] = []
        removed: set[int] = set()
        keep_imports = here is None or source.path.suffix == ".pyi" or self.groups.get(here) == [source.module]

        def free(access_scope, name: str) -> bool:
            scope = access_scope
            while scope is not None and not isinstance(scope, GlobalScope):
                if name in {a.name for a in scope.assignments} and not isinstance(scope, ClassScope):
                    return False
                if scope is scope.parent:
                    break
                scope = scope.parent
            return True

        def references(assignment):
            return list(assignment.references)

        scopes = set(source.scopes.values()) - {None}
        local_plan: dict[tuple[int, str, int], str] = {}
        for scope in scopes:
            for assignment in list(scope.assignments):
                if isinstance(assignment, ImportAssignment):
                    got = self.import_target(source, assignment.node, assignment.name)
                    if not got or got[1] == ".":
                        continue
                    module, name = got
                    found = self.entity(module, name)
                    internal_module = module if name is None else None
                    if found[0] == "mod":
                        internal_module = found[1]
                    if internal_module and internal_module in self.target:
                        new = self.target[internal_module]
                        aliased = isinstance(assignment.node, cst.Import) or assignment.name != internal_module.split(".")[-1]
                        final = self.local(source.module, assignment.name) if isinstance(scope, GlobalScope) and here else new.split(".")[-1]
                        if isinstance(assignment.node, cst.Import) or (aliased and new != here):
                            final = assignment.name
                        elif new == here:
                            final = ""
                        elif not here:
                            taken = {a.name for a in source.global_scope.assignments if a.name != assignment.name} if source.global_scope else set()
                            if final in taken or not all(free(r.scope, final) for r in references(assignment)):
                                final = assignment.name
                        for access in references(assignment):
                            node = access.node
                            top = node
                            while isinstance(top, cst.Attribute):
                                top = top.value
                            parent = source.parents.get(top)
                            if isinstance(parent, cst.Attribute) and parent.value is top:
                                attribute = self.local(internal_module, parent.attr.value)
                                if final:
                                    if final != assignment.name and not free(access.scope, final):
                                        self.problems.append(f"{source.path}: {final} is shadowed (module {internal_module})")
                                    replace[parent] = cst.Attribute(cst.Name(final), cst.Name(attribute), lpar=parent.lpar, rpar=parent.rpar)
                                else:
                                    if not free(access.scope, attribute):
                                        self.problems.append(f"{source.path}: {attribute} is shadowed where {internal_module}.{attribute} was used")
                                    replace[parent] = cst.Name(attribute, lpar=parent.lpar, rpar=parent.rpar)
                            elif final and final != assignment.name:
                                replace[top] = cst.Name(final)
                            elif not final:
                                self.problems.append(f"{source.path}: the module {internal_module} itself is used inside its new module")
                        local_plan[id(scope), assignment.name, id(assignment.node)] = final
                        continue
                    # a symbol
                    if found[0] == "def" and here and self.target.get(found[1]) == here:
                        final = self.local(found[1], found[2])
                    elif isinstance(scope, GlobalScope) and here:
                        final = self.local(source.module, assignment.name)
                    else:
                        final = assignment.name
                        # follow a renamed definition, where nothing stands in the way
                        if module in self.target and name is not None:
                            new_symbol = self.local(module, name)
                            if assignment.name == name and new_symbol != name:
                                taken = {a.name for a in source.global_scope.assignments}
                                if new_symbol not in taken and all(free(r.scope, new_symbol) for r in references(assignment)):
                                    final = new_symbol
                    local_plan[id(scope), assignment.name, id(assignment.node)] = final
                    if final != assignment.name:
                        for access in references(assignment):
                            if not free(access.scope, final):
                                self.problems.append(f"{source.path}: {final} is shadowed (was {assignment.name})")
                            node = access.node
                            top = node
                            while isinstance(top, cst.Attribute):
                                top = top.value
                            replace[top] = cst.Name(final, lpar=getattr(top, "lpar", ()), rpar=getattr(top, "rpar", ()))
                elif isinstance(assignment, Assignment) and isinstance(scope, GlobalScope) and here:
                    final = self.new_name.get((source.module, assignment.name), assignment.name)
                    if final == assignment.name:
                        continue
                    node = assignment.node
                    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
                        replace[node.name] = cst.Name(final)
                    elif isinstance(node, cst.Name):
                        replace[node] = cst.Name(final)
                    for access in references(assignment):
                        if not free(access.scope, final):
                            self.problems.append(f"{source.path}: {final} is shadowed (definition {assignment.name})")
                        top = access.node
                        while isinstance(top, cst.Attribute):
                            top = top.value
                        replace[top] = cst.Name(final, lpar=getattr(top, "lpar", ()), rpar=getattr(top, "rpar", ()))

        plan = self

        def import_lines(node: cst.ImportFrom | cst.Import, scope_key) -> list[str]:
            if isinstance(node, cst.Import):
                out = []
                for alias in node.names:
                    name = dotted(alias.name)
                    new = plan.target.get(name, name)
                    text = f"import {new}"
                    if alias.asname:
                        text += f" as {alias.asname.name.value}"
                    out.append(text)
                return out
            if isinstance(node.names, cst.ImportStar):
                return [cst.Module([]).code_for_node(node).strip()]
            base = source.absolute(node)
            out = []
            for alias in node.names:
                bound = alias.asname.name.value if alias.asname else alias.name.value
                name = alias.name.value
                final = local_plan.get((scope_key, bound, id(node)), bound)
                full = f"{base}.{name}"
                found = plan.entity(base, name)
                if full in plan.modules and not plan.is_defined(base, name):
                    if not final:
                        continue
                    new = plan.target[full]
                    package, _, tail = new.rpartition(".")
                    origin, symbol = package, tail
                else:
                    if found[0] == "def" and here and plan.target.get(found[1]) == here:
                        continue
                    origin = plan.target.get(base, base)
                    symbol = plan.local(base, name) if base in plan.modules else name
                    if base in plan.dropped and found[0] == "def":
                        origin, symbol = plan.target[found[1]], plan.local(found[1], found[2])
                    elif origin == here and found[0] == "def":
                        origin, symbol = plan.target[found[1]], plan.local(found[1], found[2])
                    elif origin == here and found[0] == "ext":
                        origin, symbol = found[1], found[2]
                if source.path.suffix == ".pyi" and origin.split(".")[0] == PACKAGE and here:
                    origin = plan.relative(origin, here)
                text = f"from {origin} import {symbol}"
                if symbol != final or (alias.asname and alias.asname.name.value == name) or source.path.suffix == ".pyi":
                    text += f" as {final}"
                out.append(text)
            return out

        class Rewrite(cst.CSTTransformer):
            def __init__(self) -> None:
                self.depth = 0

            def visit_FunctionDef(self, node):
                self.depth += 1

            def leave_FunctionDef(self, original, updated):
                self.depth -= 1
                return replace.get(original, updated)

            def visit_ClassDef(self, node):
                self.depth += 1

            def leave_ClassDef(self, original, updated):
                self.depth -= 1
                return updated

            def leave_Name(self, original, updated):
                return replace.get(original, updated)

            def leave_Attribute(self, original, updated):
                return replace.get(original, updated)

            def leave_SimpleStatementLine(self, original, updated):
                if len(original.body) == 1 and isinstance(original.body[0], (cst.Import, cst.ImportFrom)):
                    node = original.body[0]
                    in_types = False
                    parent = source.parents.get(original)
                    while parent is not None and not isinstance(parent, (cst.FunctionDef, cst.ClassDef, cst.Module)):
                        if isinstance(parent, cst.If) and "TYPE_CHECKING" in cst.Module([]).code_for_node(parent.test):
                            in_types = True
                        parent = source.parents.get(parent)
                    scope = source.scopes.get(node) or source.scopes.get(original)
                    key = id(scope) if scope else id(source.global_scope)
                    lines = import_lines(node, key)
                    top = source.parents.get(original)
                    if not keep_imports and (isinstance(top, cst.Module) or (in_types and self.depth == 0)):
                        trailing = cst.Module([]).code_for_node(original.trailing_whitespace).strip()
                        imports.extend((line + (f"  {trailing}" if trailing else ""), in_types) for line in lines)
                        return cst.RemoveFromParent()
                    before = cst.Module([]).code_for_node(node).strip()
                    if not lines:
                        return cst.RemoveFromParent()
                    if len(lines) == 1 and lines[0] == before:
                        return updated
                    if isinstance(node, cst.ImportFrom) and all(line.startswith("from ") for line in lines):
                        origins = {line.split(" import ")[0] for line in lines}
                        if len(origins) == 1:
                            names = [line.split(" import ")[1] for line in lines]
                            lines = [f"{origins.pop()} import {', '.join(names)}"]
                    statements = [cst.parse_statement(line) for line in lines]
                    statements[0] = statements[0].with_changes(leading_lines=updated.leading_lines)
                    statements[-1] = statements[-1].with_changes(trailing_whitespace=updated.trailing_whitespace)
                    return cst.FlattenSentinel(statements)
                return updated

            def leave_If(self, original, updated):
                if "TYPE_CHECKING" in cst.Module([]).code_for_node(original.test) and isinstance(updated.body, cst.IndentedBlock) and not updated.body.body and not updated.orelse:
                    return cst.RemoveFromParent()
                return updated

        tree = source.tree.visit(Rewrite())
        return tree, imports

    def relative(self, origin: str, here: str) -> str:
        """The relative form of a module, from a package's stub."""
        if origin == here:
            return "."
        if origin.startswith(here + "."):
            return "." + origin[len(here) + 1 :]
        return origin if not here.startswith(PACKAGE) else "." * (here.count(".") + 1) + origin[len(PACKAGE) + 1 :]


def docstring_of(tree: cst.Module) -> tuple[str | None, list]:
    body = list(tree.body)
    if body and isinstance(body[0], cst.SimpleStatementLine) and isinstance(body[0].body[0], cst.Expr) and isinstance(body[0].body[0].value, (cst.SimpleString, cst.ConcatenatedString)):
        return body[0].body[0].value.evaluated_value, body[1:]
    return None, body


def comment_block(text: str, width: int = 118) -> str:
    paragraphs = re.split(r"\n\s*\n", text.strip())
    lines: list[str] = []
    for number, paragraph in enumerate(paragraphs):
        if number:
            lines.append("#")
        indented = any(line.startswith("    ") for line in paragraph.split("\n"))
        if indented or "::" in paragraph or ">>>" in paragraph:
            lines += [f"# {line}".rstrip() for line in paragraph.split("\n")]
        else:
            lines += [f"# {line}" for line in textwrap.wrap(" ".join(paragraph.split()), width - 2)]
    return "\n".join(lines)


def order(plan: Plan, new: str, olds: list[str]) -> list[str]:
    """The plan's order, but definitions before the modules that need them when they load."""
    inside = set(olds)
    needs = {o: {plan.entity(*t)[1] for t in plan.sources[o].imports.values() if plan.entity(*t)[0] in ("def", "mod")} & inside - {o} for o in olds}
    done: list[str] = []
    todo = list(olds)
    while todo:
        for one in todo:
            if needs[one] <= set(done):
                done.append(one)
                todo.remove(one)
                break
        else:
            done.append(todo.pop(0))
    return done


def merged(plan: Plan, new: str, olds: list[str]) -> str:
    """The text of a new module."""
    docstring: str | None = None
    futures = False
    runtime: list[str] = []
    types: list[str] = []
    sections: list[str] = []
    lead = olds[0]
    if len(olds) == 1:
        return plan.rewrite(plan.sources[lead], new)[0].code
    for old in order(plan, new, olds):
        source = plan.sources[old]
        tree, imports = plan.rewrite(source, new)
        text, body = docstring_of(tree)
        for line, for_types in imports:
            if line.startswith("from __future__"):
                futures = True
            else:
                (types if for_types else runtime).append(line)
        header = cst.Module([]).with_changes(header=tree.header).code if tree.header else ""
        code = cst.Module(body=body).code.strip("\n")
        if header.strip():
            code = header.strip() + "\n" + code
        if old == lead:
            docstring = text
            sections.append(code)
        elif code.strip():
            sections.append((comment_block(text) + "\n\n" if text else "") + code)
    types = [t for t in types if t not in runtime]
    out = []
    if docstring is not None:
        raw = "r" if "\\" in docstring else ""
        out.append(f'{raw}"""{docstring}"""' if not docstring.endswith('"') else f'{raw}"""{docstring} """')
    if futures:
        out.append("from __future__ import annotations")
    if runtime:
        out.append("\n".join(dict.fromkeys(runtime)))
    if types:
        out.append("if TYPE_CHECKING:\n" + "\n".join(f"    {t}" for t in dict.fromkeys(types)))
    out += [s for s in sections if s.strip()]
    return "\n\n".join(out) + "\n"


def mentions(plan: Plan):
    """A function that rewrites dotted names and paths in text."""
    table: dict[str, str] = {}
    for old, new in plan.target.items():
        if new and old != new:
            table[old] = new
    packages = sorted({m.rsplit(".", 1)[0] for m in plan.modules if m.count(".") >= 1}, key=len, reverse=True)
    paths: dict[str, str] = {}
    for old, new in table.items():
        paths[old.replace(".", "/") + ".py"] = new.replace(".", "/") + ".py"
    names = sorted(table, key=len, reverse=True)
    if not names:
        return lambda text: text
    pattern = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, names)) + r")(?![\w])(\.([A-Za-z_]\w*))?")
    path_pattern = re.compile(r"(" + "|".join(re.escape(p) for p in sorted(paths, key=len, reverse=True)) + r")")

    def one(match: re.Match[str]) -> str:
        old, attribute = match[1], match[3]
        new = table[old]
        if attribute:
            return f"{new}.{plan.local(old, attribute)}"
        return new

    rooms = {old.split(".")[1]: new.split(".")[1] for old, new in table.items() if old.count(".") == 1 and new.count(".") == 1}
    short = re.compile(r"\btr\.(" + "|".join(rooms) + r")\b") if rooms else None

    def whole(text: str) -> str:
        text = path_pattern.sub(lambda m: paths[m[1]], pattern.sub(one, text))
        return short.sub(lambda m: f"tr.{rooms[m[1]]}", text) if short else text

    return whole


def moves_of(path: str) -> dict[str, str]:
    return tomllib.loads(Path(path).read_text()).get("move", {})


def main() -> None:
    plan_file, root = Path(sys.argv[1]), Path(sys.argv[2])
    check = "--check" in sys.argv
    plan = Plan(tomllib.loads(plan_file.read_text()), root)
    for source in plan.sources.values():
        plan.collect(source)
    for source in plan.sources.values():  # again: packages are known now
        source.definitions.clear(), source.imports.clear()
        plan.collect(source)
    plan.settle_names()
    base = root / "src"
    texts: dict[Path, str] = {}
    uses: dict[str, set[str]] = defaultdict(set)
    new_modules = set(plan.groups)
    rewrite_text = mentions(plan)
    for new, olds in sorted(plan.groups.items()):
        package = any(m.startswith(new + ".") for m in new_modules)
        path = base / (new.replace(".", "/") + ("/__init__.py" if package else ".py"))
        texts[path] = rewrite_text(merged(plan, new, olds))
    for key, source in plan.sources.items():
        if key.endswith(".pyi"):
            new = plan.target[source.module]
            tree, _ = plan.rewrite(source, new)
            texts[base / new.replace(".", "/") / "__init__.pyi"] = tree.code
    # packages need an __init__
    folders = {p.parent for p in texts}
    for folder in list(folders):
        if not any(t.parent == folder and t.name == "__init__.py" for t in texts):
            texts[folder / "__init__.py"] = f'"""{folder.name}."""\n'
            print("new package without a docstring:", folder)
    others: dict[Path, str] = {}
    for top in ("tests", "benchmarks", "scripts", "examples", "docs"):
        for path in (root / top).rglob("*.py"):
            if "house" in path.parts:
                continue
            text = path.read_text()
            if PACKAGE not in text:
                continue
            source = Source.read(path, "")
            plan.collect(source) if source.global_scope else None
            tree, _ = plan.rewrite(source, None)
            others[path] = rewrite_text(tree.code)
    for top in (root, root / "docs", root / "tests", root / "examples", root / "benchmarks"):
        walk = top.glob("*") if top == root else top.rglob("*")
        for path in walk:
            if path.suffix in (".md", ".txt", ".yml", ".toml") and path.is_file() and "papers" not in path.parts and "changelog" not in path.parts:
                text = path.read_text()
                changed = rewrite_text(text)
                if changed != text:
                    others[path] = changed
    for problem in plan.problems:
        print("PROBLEM", problem)
    print(len(plan.modules), "->", len([p for p in texts if p.suffix == ".py" and p.name != "__init__.py"]), "modules")
    if check:
        return
    for source in plan.sources.values():
        source.path.unlink()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path, text in others.items():
        if path.read_text() != text:
            path.write_text(text)
    for old, new in sorted(moves_of(sys.argv[1]).items(), key=lambda kv: -len(kv[0])):
        folder, there = base / old.replace(".", "/"), base / new.replace(".", "/")
        if old == new or not folder.exists():
            continue
        for path in list(folder.rglob("*")):
            if path.is_file() and path.suffix not in (".py", ".pyi", ".pyc"):
                goal = there / path.relative_to(folder)
                goal.parent.mkdir(parents=True, exist_ok=True)
                path.rename(goal)
    for folder in sorted((p for p in (base / PACKAGE).rglob("*") if p.is_dir()), reverse=True):
        if folder.name == "__pycache__":
            continue
        left = [p for p in folder.iterdir() if p.name != "__pycache__"]
        if not left:
            import shutil

            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
