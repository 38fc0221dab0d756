"""Noisy numbers of answers about the same rows, made consistent: their errors beforehand, their records afterwards."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from tightrope.certificates.printable import printable
from tightrope.mechanisms.integer.widened import Widened
from tightrope.release.questions.accuracy import Accuracy
from tightrope.release.questions.node import Record
from tightrope.release.questions.vector import Noise
from tightrope.release.totals.related import Joined, Sums
from tightrope.release.totals.spread import Spread, spread
from tightrope.release.totals.squares import Squares, Table, blank

SIX_DIGITS = Context(prec=6, rounding=ROUND_HALF_EVEN)
MUCH_LONGER = 1.02
"""How many times as long an interval may become: where noise is nearly always nothing, mixing it makes all longer."""
IN_DOUBLES = 2.0**-50
"""Of a value, by how much its interval is wider for what doubles round."""
LONE = "it is not made to agree with totals or parts: intervals would become longer"
Key = tuple[object, ...]
FITTED_STATEMENT = (
    "Least squares on what was released made these answers consistent: each value is its noisy number moved by known "
    "multiples of the others, weighted by one over the variances. It spends nothing. Intervals are those of that sum."
)


@dataclass(frozen=True, eq=False)  # not slotted: what is computed once is kept
class Fitted:
    """Least squares for one set of answers with these noises, one an answer."""

    joined: Joined
    noises: tuple[Noise, ...]

    @cached_property
    def variances(self) -> tuple[Decimal, ...]:
        """Those of the noises in squared steps, to six digits: any weights are right, these are nearly the best."""
        every = (noise.mechanism.mean_squared_error for noise in self.noises)
        return tuple(SIX_DIGITS.create_decimal_from_float(one) for one in every)

    @cached_property
    def squares(self) -> Squares:
        """The arithmetic, on axes by their places."""
        own = tuple(map(frozenset, self.joined.own))
        return Squares(tuple(map(len, self.joined.axes)), own, tuple(map(Fraction, self.variances)))

    @cached_property
    def spreads(self) -> dict[str, Spread]:
        """The noise in every number of each answer, in steps."""
        return {name: self._spread(place) for place, name in enumerate(self.joined.answers)}

    def _spread(self, place: int) -> Spread:
        terms: Counter[tuple[Widened, Fraction]] = Counter()
        for other, weight, cells in self.squares.influences(place):
            terms[self.noises[other].mechanism, abs(weight)] += cells
        return spread(frozenset((*noise, cells) for noise, cells in terms.items()))

    @property
    def helps(self) -> bool:
        """Whether some interval becomes shorter, and none much longer."""
        if not all(self.variances):
            return False
        widths = [(fitted.half, noise.half_width() / noise.step) for fitted, noise in self._beside]
        return all(new <= MUCH_LONGER * old for new, old in widths) and any(new < old for new, old in widths)

    @property
    def _beside(self) -> list[tuple[Spread, Noise]]:
        return list(zip(self.spreads.values(), self.noises, strict=True))

    def own(self, name: str) -> FittedNoise:
        """What is left of the noise in one answer."""
        place = self.joined.answers.index(name)
        others = tuple(other for other in self.joined.answers if other != name)
        return FittedNoise(self.spreads[name], self.noises[place].step, others)

    def records(self, noisy: Mapping[str, Mapping[Key, int]]) -> dict[str, list[Record]]:
        """The records of each answer, in the order of its noisy integers, given by key."""
        tables = [self._table(place, noisy[name]) for place, name in enumerate(self.joined.answers)]
        found: dict[str, list[Record]] = {}
        for place, (name, table) in enumerate(zip(self.joined.answers, self.squares.fitted(tables), strict=True)):
            own = self.own(name)
            found[name] = [own.record(table[self._cell(place, key)], integer) for key, integer in noisy[name].items()]
        return found

    def _table(self, place: int, noisy: Mapping[Key, int]) -> Table:
        table = blank(self.squares.sizes, self.squares.own[place])
        for key, integer in noisy.items():
            table[self._cell(place, key)] = Fraction(integer)
        return table

    def _cell(self, place: int, key: Key) -> tuple[int, ...]:
        """Where a key lies: on each axis that its answer has."""
        own = self.joined.own[place]
        entries = dict(zip(own, key if self.joined.shared == "groups" else (key,), strict=False))
        return tuple(places[entries[axis]] if axis in entries else 0 for axis, places in enumerate(self._places))

    @cached_property
    def _places(self) -> tuple[dict[object, int], ...]:
        return tuple({value: at for at, value in enumerate(values)} for values in self.joined.axes)

    def data(self) -> dict[str, Any]:
        """For the certificate."""
        return {
            "answers": list(self.joined.answers),
            "shared": self.joined.shared,
            "divided_by": [list(own) for own in self.joined.own],
            "variances": [str(variance) for variance in self.variances],
            "statement": FITTED_STATEMENT,
        }


@dataclass(frozen=True, slots=True)
class FittedNoise:
    """The noise that is left in each number of one answer, in its steps, and the answers that it agrees with."""

    spread: Spread
    step: float
    others: tuple[str, ...]

    @property
    def errors(self) -> tuple[float, float]:
        """E|error| and the half-width of the 95 % interval, in natural units."""
        return self.spread.expected * self.step, self.spread.half * self.step

    @property
    def worst(self) -> float:
        """The largest error; ∞ without a bound."""
        return self.spread.worst * self.step

    @property
    def note(self) -> str:
        """What a reader must know."""
        others = " and ".join(map(printable, self.others))
        return f"least squares made it consistent with {others}: values need not be whole, 'noisy' is what was drawn"

    def record(self, fitted: Fraction, noisy: int) -> Record:
        """The fitted number as the nearest double, its interval rounded outwards, and the number as it was drawn."""
        value, half = float(fitted) * self.step, self.spread.half * self.step
        slack = abs(value) * IN_DOUBLES
        lower, upper = value - half - slack, value + half + slack
        drawn = noisy if self.step == 1 else noisy * self.step
        ends = {"lower": math.nextafter(lower, -math.inf), "upper": math.nextafter(upper, math.inf)}
        return {"value": value, **ends, "noisy": drawn}


def fitted(sums: Sums, accuracies: Sequence[Accuracy]) -> list[Fitted]:
    """Least squares for each set of answers about the same rows, whether it helps or not."""
    noises = {one.question.name: one.noises[0] for one in accuracies}
    return [Fitted(joined, tuple(noises[name] for name in joined.answers)) for joined in sums.joined]


def lessened(sums: Sums, accuracies: Sequence[Accuracy]) -> list[Accuracy]:
    """The same with what least squares leave of the noise, and with notes on answers that they leave alone."""
    every = fitted(sums, accuracies)
    helped = {name: one.own(name) for one in every if one.helps for name in one.joined.answers}
    lone = {name: (LONE,) for one in every if not one.helps for name in one.joined.answers}
    return [
        replace(one, lessened=helped.get(name), beside=(*lone.get(name, ()), *sums.apart.get(name, ())))
        for name, one in zip((one.question.name for one in accuracies), accuracies, strict=True)
    ]
