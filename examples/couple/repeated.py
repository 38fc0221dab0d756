"""Why a value may be released once: k draws for one value tell its group but for 2^(1 - k) (theory: KM, one draw)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import prod

from tightrope.transport import CouplingMechanism, line
from tightrope.transport.exact.tables import RowTables

TOTAL = 2**128
LAWS = {"always in the middle": [0.0, 1.0, 0.0], "at either end": [0.5, 0.0, 0.5]}


def main() -> None:
    """The exact total variation of the two groups' draws, by going through all of them."""
    mechanism = CouplingMechanism.fit(LAWS, line([0, 1, 2]), target=[0.5, 0.0, 0.5])
    print("draws of one value   total variation   right guesses")
    for draws in (1, 2, 3, 5, 10):
        first, second = (_joint(mechanism.tables[name], LAWS[name], draws) for name in LAWS)
        apart = sum((abs(p - q) for p, q in zip(first, second, strict=True)), Fraction(0)) / 2
        print(f"{draws:18}{float(apart):18.4f}{float((1 + apart) / 2):16.2%}")


def _joint(tables: RowTables, law: list[float], draws: int) -> list[Fraction]:
    """P(all draws) for one value that is drawn from again and again; only the ends can come out."""
    rows = [tables.row_weights(x) for x in range(3)]
    return [
        sum(
            Fraction(mass) * prod(Fraction(row.get(y, 0), TOTAL) for y in seen)
            for mass, row in zip(law, rows, strict=True)
        )
        for seen in product((0, 2), repeat=draws)
    ]


if __name__ == "__main__":
    main()
