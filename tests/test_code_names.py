"""A name of code in backticks, on a page or in a docstring, is one that the code still has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src/tightrope").rglob("*.py"))
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
SKIPPED_PAGES = ("changelog.md", "moving.md")
"""Former names, and names of other libraries."""
DOTTED = re.compile(r"(?<![\w/.\-\"'…])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(
    r"\.(py|pyi|md|toml|json|csv|parquet|html|j2|css|js|svg|png|txt|yml|conf|log|gz|crc|ledger|account|example|head)$"
)
FOREIGN = frozenset(
    [
        "dataclasses",
        "decimal",
        "datetime",
        "duckdb",
        "ibis",
        "itertools",
        "json",
        "math",
        "np",
        "numpy",
        "os",
        "pandas",
        "pathlib",
        "pyarrow",
        "scipy",
        "spark",
        "sys",
        "Path",
        "con",
        "a",
        "DataFrame",
        "pg_catalog",
    ]
)
"""Libraries, and a user's own objects."""
VARIABLES = frozenset(
    [
        "answers",
        "ball",
        "certificate",
        "filter",
        "found",
        "item",
        "ledger",
        "limits",
        "loss",
        "mechanism",
        "name",
        "noise",
        "odometer",
        "other",
        "p",
        "permanent",
        "person",
        "plan",
        "power",
        "schema",
        "self",
        "session",
        "source",
        "spark",
        "table",
        "labels",
    ]
)
"""Variables of the examples: what follows has to be an attribute of some class."""


def walk(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    """Every name that a module or class defines or imports, with the names around it."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield f"{prefix}.{node.name}"
        elif isinstance(node, ast.ClassDef):
            yield f"{prefix}.{node.name}"
            yield from walk(node.body, f"{prefix}.{node.name}")
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield f"{prefix}.{node.target.id}"
        elif isinstance(node, ast.Assign):
            yield from (f"{prefix}.{target.id}" for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (f"{prefix}.{name.asname or name.name}" for name in node.names)
        elif isinstance(node, ast.If):
            yield from walk(node.body + node.orelse, prefix)


@cache
def code_names() -> tuple[frozenset[str], frozenset[str]]:
    """All dotted names of the code with every tail of them, and all single names."""
    tails, single = set(), set()
    for path in [*SOURCES, *(ROOT / "src/tightrope").rglob("*.pyi")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for name in [module, *walk(tree.body, module)]:
            parts = name.split(".")
            tails |= {".".join(parts[start:]) for start in range(len(parts))}
        single |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        single |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        single |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return frozenset(tails), frozenset(single | {part for name in tails for part in name.split(".")})


def is_known(name: str) -> bool:
    """Whether the code has the name: in full, or as an attribute of a class, a module or an example's variable."""
    tails, single = code_names()
    parts = name.removeprefix("tr.").split(".")
    if ".".join(parts) in tails or parts[0] in FOREIGN:
        return True
    owners = [".".join(parts[:end]) for end in range(2, len(parts))]
    owned = any(owner in tails for owner in owners) or parts[0] in VARIABLES or parts[0][:1].isupper()
    return owned and set(parts) <= single | VARIABLES


def unknown_names(text: str) -> list[str]:
    """The dotted names in backticks that are no names of the code, by line."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        names = [name for quoted in re.findall(r"`+([^`]+)`+", line) for name in DOTTED.findall(quoted)]
        found += [f"{number}: {name}" for name in names if not FILE.search(name) and not is_known(name)]
    return found


@pytest.mark.parametrize("path", [*PAGES, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_names_of_code_exist(path: Path) -> None:
    if path.name not in SKIPPED_PAGES:
        assert not unknown_names(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["noise.no_such_noise", "Session.no_such_method", "answers.no_such_field"])
def test_a_stale_name_is_found(name: str) -> None:
    assert unknown_names(f"first\n`{name}(1)`") == [f"2: {name}"]


CALLED = re.compile(
    r"(?<![\w/.\-\"'@])(?:tr|tightrope|[a-z_]+)(?:\.[a-z_]\w*)+(?=\()|"
    r"\b(?:tr|tightrope)(?:\.[A-Za-z_]\w*)+|(?<![\w/.\-@])[a-z_]+(?:\.[a-z_]\w*){2,}"
)
"""Calls of dotted names, and names of the package, in a text."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_of_code_in_texts_exist(path: Path) -> None:
    """Errors and help name functions that exist: in full, or as a method of an object that the user has."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    names = {name for text in texts if " " in text for name in CALLED.findall(text.split(">>>")[0])}
    assert not [name for name in sorted(names) if not FILE.search(name) and not is_known(name)]


def fields_of(node: ast.ClassDef) -> set[str]:
    """The names of a class: fields, methods, attributes that it sets, and parameters."""
    inside = list(ast.walk(node))
    attributes = {part.attr for part in inside if isinstance(part, ast.Attribute)}
    parameters = {part.arg for part in inside if isinstance(part, ast.arg)}
    return attributes | parameters | {name.split(".")[-1] for name in walk(node.body, node.name)}


def explained_names(node: ast.ClassDef) -> list[str]:
    """What the docstring explains as "``name``: ..."."""
    return re.findall(r"``([a-z_]+)``: ", (ast.get_docstring(node) or "").split(">>>")[0])


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_docstring_explains_fields_that_the_class_has(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert not [
        f"{node.name}: {name}"
        for node in classes
        for name in explained_names(node)
        if name not in fields_of(node) | code_names()[1] & inherited(node)
    ]


def inherited(node: ast.ClassDef) -> frozenset[str]:
    """Names that may come from a base class: any, if there is one."""
    return code_names()[1] if node.bases else frozenset()


SINGLE = re.compile(r"``([A-Z][A-Z_0-9]{3,}|_?[a-z]\w*_\w+)``")
"""Constants, and functions, parameters or fields of two words, in docstrings and comments."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_single_names_in_docstrings_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert {name for name in SINGLE.findall(text) if name not in words_of_code()} <= {
        "make_private",  # of Opacus
        "make_private_with_epsilon",
    }


def test_single_names_in_the_guides_for_contributors_exist() -> None:
    """A subclass that defines a method by a former name would never be called, without an error."""
    for page in (ROOT / "CONTRIBUTING.md", ROOT / "docs/design/architecture.md", ROOT / "docs/design/accountant.md"):
        names = set(
            re.findall(r"`(_?[a-z]\w*_\w+|[A-Z][A-Z_0-9]{3,})(?:\([^`]*\))?`", page.read_text(encoding="utf-8"))
        )
        assert names and not names - words_of_code(), page.name


@cache
def words_of_code() -> frozenset[str]:
    """Every word of the package and of the tests that does not stand in backticks."""
    files = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]
    return frozenset(
        word for file in files for word in re.findall(r"\w+", re.sub(r"``.*?``", "", file.read_text(encoding="utf-8")))
    )


def test_references_to_the_theory_name_its_sections() -> None:
    """ "theory §4.1" in a docstring is a section of docs/theory.md."""
    page = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^#{2,3} (\d(?:\.\d)?)", page, re.MULTILINE))
    cited = {number for path in SOURCES for number in re.findall(r"theory §(\d(?:\.\d)?)", path.read_text("utf-8"))}
    assert {"1", "4.1"} <= cited <= sections
