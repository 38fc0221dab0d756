"""Brackets of a falling function that fall themselves: every answer agrees with all that were given before.

Two brackets of one profile at neighbouring ε may differ by their roundings, and then an upper end can rise by some
units in the last place. The truth falls, so an end may be lowered to that of a smaller ε, or raised to that of a larger
one, and stay on its side. What was once answered at an ε is answered again.
"""

from __future__ import annotations

from threading import Lock

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Monotone:
    """Answers so far, by ascending ε: many are asked for and settled at once."""

    __slots__ = ("_ends", "_epsilons", "_lock")

    def __init__(self) -> None:
        self._epsilons: Floats = np.empty(0)
        self._ends: Floats = np.empty((0, 2))
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Monotone], tuple[()]]:
        """A copy in another process knows nothing yet."""
        return Monotone, ()

    def __deepcopy__(self, memo: object) -> Monotone:
        """Nor does one in this process."""
        del memo
        return Monotone()

    def unknown(self, epsilons: Floats) -> Floats:
        """Those at which nothing was answered yet, each once, ascending."""
        with self._lock:
            asked = np.unique(epsilons)
            return asked[~self._knows(asked)]

    def at(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Both ends at ε at which all was answered."""
        with self._lock:
            found = self._ends[np.searchsorted(self._epsilons, epsilons)]
        return found[:, 0], found[:, 1]

    def settle(self, epsilons: Floats, low: Floats, high: Floats) -> None:
        """Keep brackets at ascending ε, each between those of its neighbours; one that is known stays as it is.

        >>> falling = Monotone()
        >>> falling.settle(np.array([1.0, 2.0]), np.array([0.1, 0.05]), np.array([0.2, 0.21]))
        >>> falling.settle(np.array([1.0, 1.5]), np.array([0.0, 0.12]), np.array([1.0, 0.19]))
        >>> falling.at(np.array([1.0, 1.5, 2.0]))
        (array([0.1 , 0.1 , 0.05]), array([0.2, 0.2, 0.2]))
        """
        with self._lock:
            new = ~self._knows(epsilons)
            at, ends = epsilons[new], np.column_stack((low, high))[new]
            places = np.searchsorted(self._epsilons, at)
            ends = self._between(places, ends)
            falling = np.maximum.accumulate(ends[::-1, 0])[::-1], np.minimum.accumulate(ends[:, 1])
            self._epsilons = np.insert(self._epsilons, places, at)
            self._ends = np.insert(self._ends, places, np.column_stack(falling), axis=0)

    def _knows(self, epsilons: Floats) -> NDArray[np.bool_]:
        places = np.searchsorted(self._epsilons, epsilons)
        inside = places < len(self._epsilons)
        inside[inside] = self._epsilons[places[inside]] == epsilons[inside]
        return inside

    def _between(self, places: NDArray[np.intp], ends: Floats) -> Floats:
        """No higher than what is known at the next smaller ε, no lower than at the next larger one."""
        known = np.vstack(([np.inf, np.inf], self._ends, [-np.inf, -np.inf]))
        held: Floats = np.minimum(np.maximum(ends, known[places + 1]), known[places])
        return held
