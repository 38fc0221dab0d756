"""The functions of the language, by name: what they take, and the node that they make. Text and Python share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tightrope.engines.expressions.arithmetic import Absolute, Clip, Extreme
from tightrope.engines.expressions.cells import Cell
from tightrope.engines.expressions.choices import UNITS, Calendar, Case, cut
from tightrope.engines.expressions.leaves import Column, Value
from tightrope.engines.expressions.local_time import Local
from tightrope.engines.expressions.texts import Lower, Prefix
from tightrope.engines.expressions.tree import Tree
from tightrope.errors import InputError

Listed = tuple[Value, ...]
Argument = Tree | Listed | None
"""A part, a list of literals, or the word None."""


@dataclass(frozen=True, slots=True)
class Function:
    """``usage`` shows how it is written; ``makes`` takes arguments of the right number and kind."""

    usage: str
    makes: Callable[..., Tree]
    least: int = 1
    most: int | None = 1
    lists: bool = False
    """Whether its last argument is a list of literals."""

    def __call__(self, *arguments: Argument) -> Tree:
        """The node; raises ``InputError`` that shows the usage."""
        many = self.least <= len(arguments) and (self.most is None or len(arguments) <= self.most)
        plain = arguments[:-1] if self.lists else arguments
        fits = all(isinstance(part, Tree) for part in plain) or self.makes is _case
        if not many or not fits or (self.lists and not isinstance(arguments[-1], tuple)):
            raise InputError("expression", f"{len(arguments)} arguments", self.usage)
        return self.makes(*arguments)


def _case(*arguments: Tree | None) -> Case:
    tests, values = arguments[:-1:2], arguments[1:-1:2]
    if len(arguments) % 2 == 0 or not all(isinstance(test, Tree) for test in tests):
        raise InputError("case", f"{len(arguments)} arguments", FUNCTIONS["case"].usage)
    return Case(tuple(test for test in tests if test is not None), (*values, arguments[-1]))


def _named(name: Tree) -> Column:
    if not (isinstance(name, Value) and isinstance(name.value, str)):
        raise InputError("column", str(name), FUNCTIONS["column"].usage)
    return Column(name.value)


def _clip(part: Tree, lower: Tree, upper: Tree) -> Clip:
    if not (isinstance(lower, Value) and isinstance(upper, Value)):
        raise InputError("clip", f"{lower}, {upper}", FUNCTIONS["clip"].usage)
    return Clip(part, lower, upper)


def _cell(part: Tree, lower: Tree, upper: Tree, cells: Tree) -> Cell:
    if not all(isinstance(own, Value) for own in (lower, upper, cells)):
        raise InputError("cell", f"{lower}, {upper}, {cells}", FUNCTIONS["cell"].usage)
    return Cell(part, *(own for own in (lower, upper, cells) if isinstance(own, Value)))


def _local(part: Tree, zone: Tree) -> Local:
    if not isinstance(zone, Value):
        raise InputError("local", str(zone), FUNCTIONS["local"].usage)
    return Local(part, zone)


def _prefix(part: Tree, letters: Tree) -> Prefix:
    if not isinstance(letters, Value):
        raise InputError("prefix", str(letters), FUNCTIONS["prefix"].usage)
    return Prefix(part, letters)


def _extreme(largest: bool, *parts: Tree) -> Extreme:
    return Extreme(largest, parts)


def _cut(part: Tree, edges: Sequence[Value]) -> Tree:
    return cut(part, edges)


FUNCTIONS: dict[str, Function] = {
    "abs": Function("abs(x)", Absolute),
    "min": Function("min(x, y, ...)", partial(_extreme, False), 2, None),
    "max": Function("max(x, y, ...)", partial(_extreme, True), 2, None),
    "clip": Function("clip(x, lowest, highest) with two numbers", _clip, 3, 3),
    "cut": Function("cut(x, [a, b, ...]) with rising numbers or days", _cut, 2, 2, lists=True),
    "cell": Function("cell(x, lowest, highest, parts) with two numbers and how many parts", _cell, 4, 4),
    "case": Function("case(condition, value, ..., otherwise)", _case, 3, None),
    "lower": Function("lower(text)", Lower),
    "prefix": Function("prefix(text, letters) with a whole number", _prefix, 2, 2),
    "local": Function("local(instant, 'Europe/Berlin')", _local, 2, 2),
    "column": Function('column("a name")', _named),
    **{unit: Function(f"{unit}(day or instant)", partial(Calendar, unit)) for unit in UNITS},
}
