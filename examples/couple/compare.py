"""Coupling, utility-optimal metric map and planar Laplace on places of Europe: what each costs, what each hides."""

from __future__ import annotations

from pathlib import Path

from tightrope.tables import open_source
from tightrope.tables.labels import Axis
from tightrope.transport import compare_on_grid
from tightrope.transport.on_tables.saved import laws_from_counts
from tightrope.transport.on_tables.supports import Cells, Population, count_points

PLACES = Path(__file__).with_name("places.parquet")
EUROPE = Cells((Axis("latitude", 36, 60, 4), Axis("longitude", -10, 32, 7)))
EPSILONS = (0.5, 1.0, 2.0)


def main() -> None:
    """A table: expected distance in cells of 6 degrees, epsilon per cell, and what tells villages, towns and cities."""
    known = laws_from_counts(count_points(open_source(PLACES), EUROPE, Population(group="size")))
    laws = {str(name): law for name, law in known.laws.items()}
    print("mechanism        epsilon   moves by   groups: total variation   groups: epsilon")
    for epsilon in EPSILONS:
        for row in compare_on_grid(laws, EUROPE.grid_shape, epsilon):
            asked = "none" if row.name == "coupling" else f"{epsilon:g}"
            apart = (row.group_total_variation, row.group_epsilon)
            if row.name != "coupling" or epsilon == EPSILONS[0]:
                print(f"{row.name:15}{asked:>9}{row.loss:>11.3f}{apart[0]:>26.2g}{apart[1]:>18.2g}")


if __name__ == "__main__":
    main()
