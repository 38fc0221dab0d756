"""Draws the rooms of a checkout into docs/design/architecture.md, from the first lines of their ``__init__``.

    python draw.py CHECKOUT

Run it after move.py (and whenever a room changes): the section "## Rooms" is replaced, or put before "## Left for later".
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

BEFORE = {"privacy": 37, "design": 39, "local": 52, "transport": 57}
"""Modules on one floor before there were rooms."""
ORDER = "numerics randomness certificates privacy mechanisms channels design engines transport local training release report cli".split()
HEAD = """## Rooms

At most 16 modules a room, no circle of modules, no two rooms side by side that import each other: import-linter holds layers
in each folder below, exhaustively. Before there were rooms, `privacy` (37 modules), `design` (39), `local` (52) and
`transport` (57) had one floor each; `privacy/filters` was the only room. The number behind a room says how many modules it has.
Where the tree differs from a first sketch: sampled laws have a room of their own, so that `laws` stays below 16; tables of
whole numbers are a room below the mechanisms that are named; the doors to POT and OR-tools are apart from the solvers, so
that one contract can hold them; proofs lie below solvers and know none.

"""


def drawn(root: Path) -> str:
    package = root / "src/tightrope"
    lines = []
    for folder in ORDER:
        rooms = sorted(p.parent for p in (package / folder).glob("*/__init__.py"))
        lines.append(line(package / folder, f"{folder}/", was=BEFORE.get(folder)))
        lines += [line(room, f"  {room.name}/") for room in rooms]
    return HEAD + "```\n" + "\n".join(lines) + "\n```\n"


def line(folder: Path, name: str, *, was: int | None = None) -> str:
    text = (ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or "").split("\n")[0]
    count = sum(p.name != "__init__.py" for p in folder.glob("*.py"))
    number = f"{was} → {count}" if was else str(count)
    return f"{name:<16} {number:>7}  {text.rstrip('.')}"


def main() -> None:
    root = Path(sys.argv[1])
    path = root / "docs/design/architecture.md"
    text = re.sub(r"^## Rooms\n.*?(?=^## )", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    before, mark, after = text.partition("## Left for later")
    path.write_text(before + drawn(root) + "\n" + mark + after, encoding="utf-8")
    print(len(path.read_text(encoding="utf-8").splitlines()), "lines in", path)


if __name__ == "__main__":
    main()
