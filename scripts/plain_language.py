"""Count words and phrases that are hard to understand, in docstrings, comments, errors, pages and templates.

    python scripts/plain_language.py [--list]

The exit code is 1 if there are more than 1.5 in a thousand words of the package, of the benchmarks and scripts, or of
the pages and templates. ``--list`` shows where.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_RATE = 1.5
"""Phrases in a thousand words."""
PHRASES = re.compile(
    r"\b(nobody|whoever|whatever|whom|somebody|anybody|what is no(?:ne|t)?|which is|is no(?:ne)?\b|that of|those of|"
    r"so many|as many as there|beside|besides|of ours|of our own|is told|are told|is said|are said|where there is|"
    r"where it is|for who|"
    r"comes? to|on its own account|as it is said|all that|any more|knows? (?:no|nothing|neither)|"
    r"who(?:se)? (?:asks?|reads?|runs?|pays?))\b",
    re.IGNORECASE,
)
BLOCK = re.compile(r"```.*?```|\{[%#].*?[%#]\}|\{\{.*?\}\}|<[^>]*>", re.DOTALL)
"""Code in pages and templates."""
Text = tuple[Path, int, str]


def code_texts(*folders: str) -> Iterator[Text]:
    """Yield docstrings, comments and the texts of raised errors of the code in these folders."""
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield path, token.start[0], token.string
        for node in ast.walk(ast.parse(source)):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield path, node.lineno, node.value.value
            if isinstance(node, ast.Raise):
                for part in ast.walk(node):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield path, part.lineno, part.value


def page_texts() -> Iterator[Text]:
    """Yield the pages of the documentation and the templates of reports, without code."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    templates = sorted((ROOT / "src").rglob("*.j2"))
    for path in (*pages, *templates):
        if "design" not in path.parts:
            text = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), path.read_text(encoding="utf-8"))
            yield from ((path, number, line) for number, line in enumerate(text.split("\n"), start=1))


def rate(texts: Iterator[Text], *, listed: bool) -> float:
    """Return the phrases in a thousand words; print each with its position if ``listed``."""
    phrases = words = 0
    for path, line, text in texts:
        words += len(text.split())
        for match in PHRASES.finditer(text):
            phrases += 1
            if listed:
                print(f"{path.relative_to(ROOT)}:{line + text[: match.start()].count(chr(10))}: {match[0]}")
    return 1000 * phrases / max(words, 1)


def main() -> int:
    """Print all rates; return 1 if one is too large."""
    listed = "--list" in sys.argv
    texts = {
        "package": code_texts("src"),
        "benchmarks and scripts": code_texts("benchmarks", "scripts"),
        "pages and templates": page_texts(),
    }
    rates = {name: rate(part, listed=listed) for name, part in texts.items()}
    for name, value in rates.items():
        print(f"{name}: {value:.2f} phrases in a thousand words (at most {MAX_RATE})")
    return int(max(rates.values()) > MAX_RATE)


if __name__ == "__main__":
    sys.exit(main())
