"""Write what ``tightrope reproduce --coarse`` finds into docs/papers.md and the file that the tests compare it with.

Run it after an item was added or a verdict changed, and look at what changed (``git diff tests/papers docs``).
"""

from __future__ import annotations

import json
from pathlib import Path

from tightrope.papers.item import COARSE, page_in_markdown, run_items, select_items, verdict_words

ROOT = Path(__file__).parents[1]
PAGE, VERDICTS = ROOT / "docs" / "papers.md", ROOT / "tests" / "papers" / "verdicts.json"


def main() -> None:
    """Both files."""
    found = verdict_words(run_items(select_items(), COARSE))
    VERDICTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page_in_markdown(select_items(), found), encoding="utf-8")


if __name__ == "__main__":
    main()
