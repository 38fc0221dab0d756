"""What the documentation site makes by itself: the page of changes; links that leave docs/."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
NAMES = re.compile(r"^\{names of ([\w.]+)(?: in ([\w, ]+))?\}$", re.MULTILINE)
PARAMETERS = "\n    options:\n      members: false\n      show_bases: false"
"""A question is a class that users call: its page shows the parameters, and not how the question is answered."""
OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds CHANGELOG.md as a page of the site."""
    content = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, "changelog.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Insert the names that a page refers to; a link to a file outside of the site is shown as its path."""
    depth = page.file.src_uri.count("/")
    outside = "../" * (depth + 1)

    def shown(match: re.Match[str]) -> str:
        text, target = match.groups()
        return f"{text} (`{target.removeprefix(outside)}`)" if target.startswith(outside) else match.group(0)

    return OUTSIDE.sub(shown, NAMES.sub(lambda asked: _documented(asked[1], asked[2]), markdown))


def _documented(package: str, rooms: str | None) -> str:
    """A heading for each public name of a package, of some of its rooms only; where it lives is read from the stub."""
    stub = ROOT / "src" / package.replace(".", "/") / "__init__.pyi"
    lines = ast.parse(stub.read_text(encoding="utf-8")).body
    imports = [line for line in lines if isinstance(line, ast.ImportFrom) and line.module is not None]
    wanted = [line for line in imports if rooms is None or str(line.module).partition(".")[0] in rooms.split(", ")]
    names = [(line.module, line.names[0].name) for line in wanted]
    asked = {name for room, name in names if room == "release" and name.islower()}
    return "\n\n".join(f"::: {package}.{room}.{name}{PARAMETERS if name in asked else ''}" for room, name in names)
