"""What the documentation site makes by itself: the page of changes, from the fragments; links that leave docs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds changelog.md: every fragment, the newest first, one level down."""
    fragments = sorted((ROOT / "changelog").glob("0*.md"), reverse=True)
    parts = [re.sub(r"^#", "##", path.read_text(encoding="utf-8"), flags=re.MULTILINE) for path in fragments]
    files.append(File.generated(config, "changelog.md", content="# Changes\n\n" + "\n\n".join(parts)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A link to a file of the checkout that is no page is shown as its path."""
    depth = page.file.src_uri.count("/")
    outside = "../" * (depth + 1)

    def shown(match: re.Match[str]) -> str:
        text, target = match.groups()
        return f"{text} (`{target.removeprefix(outside)}`)" if target.startswith(outside) else match.group(0)

    return OUTSIDE.sub(shown, markdown)
