"""A question: a node that declares what it needs and how noisy integers become its answer. One file a kind."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tightrope.queries.options import Asked, QueryOptions
from tightrope.queries.statistics import Noise, Vector
from tightrope.tables.expressions.expression import Term
from tightrope.tables.expressions.functions import Cell
from tightrope.tables.schema import Schema

Integers = Mapping[str, int]
"""The noisy integers of one group, by the name of the vector."""
Noises = Mapping[str, Noise]
"""The noise of each vector, by its name."""
Record = dict[str, float | None]
"""``value`` (None: withheld), ``lower`` and ``upper``; ``usable``, the noisy number of values, if it was paid for."""


@dataclass(frozen=True, slots=True)
class Question(QueryOptions, ABC):
    """A question about a table. A kind is a final class that declares its fields and the facts below.

    The fields of a kind are the parameters that users pass, so its constructor is what users call: ``tr.count(...)``.
    ``__post_init__`` checks them (``check_options``) and sets the fields that follow from them (``init=False``).
    """

    asked: Asked = field(init=False, repr=False)
    """The options, checked; once the question is ``settled``, as they are for one table."""

    kind: ClassVar[str]
    """Its name in plans and answers."""
    meaning: ClassVar[str]
    """What its numbers are, as the beginning of a sentence."""
    additive: ClassVar[bool]
    """Whether values of groups add up, so that zero is a natural place to start an axis."""
    uniform: ClassVar[bool]
    """Whether the errors are the same for every group, large or small."""
    adds_up: ClassVar[bool] = False
    """Whether its value is its one noisy integer, and that of a group the sum of those of its parts: row by row."""
    counts: ClassVar[bool] = False
    """Whether its value is a number of rows, so that an error can be stated as a share of them."""
    boxes: ClassVar[bool] = False
    """Whether its one number may share its noise with others: its interval asks for the law of that number alone."""
    notes: ClassVar[tuple[str, ...]] = ()
    """Rules that a reader of its answers must know."""
    entries: ClassVar[tuple[str, ...]] = ()
    """The keys of a plan file that are its own: they are called as its fields."""
    entry_defaults: ClassVar[Mapping[str, object]] = {}
    """Values of keys that a plan file may leave out and Python may not."""

    def check_options(self, *words: str) -> Asked:
        """Check the options and keep them in ``asked``; ``words`` make the default name. Raises ``PlanError``."""
        asked = Asked.of(self, *words)
        self._set(asked=asked, name=asked.name, keys=asked.keys, weight=asked.weight)
        return asked

    def _set(self, **values: object) -> None:
        """Set fields of a question that is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def changed(self, **values: object) -> Self:
        """A copy with other values of these fields; ``dataclasses.replace`` would derive them anew from the options."""
        question = copy(self)
        question._set(**values)
        return question

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its answer that name a group: those that it groups by, unless it is one number."""
        return self.asked.by

    @property
    def left_over(self) -> bool:
        """Whether it counts, all together, the groups that the others of its task do not show."""
        return False

    @property
    def cell(self) -> Cell | None:
        """Parts of a range that its groups are counted in, cell by cell; None where groups have no parts."""
        return None

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of rows by which it counts persons; none where it counts or measures rows."""
        return ()

    @property
    def rules(self) -> tuple[str, ...]:
        """Its ``notes``, and what depends on how it is answered."""
        return self.notes

    def among(self, together: Sequence[Question]) -> Self:
        """The same question, as it is best answered beside the others of its groups."""
        del together
        return self

    @property
    def part_edges(self) -> tuple[bool | int | float | str, ...]:
        """Where the parts begin that its last key names; none where its groups are no parts of a range."""
        return ()

    def title_for(self, means: str) -> str:
        """What is asked, where a person is this."""
        del means
        return str(self)

    def meaning_for(self, means: str) -> str:
        """What its numbers are, where a person is this."""
        del means
        return self.meaning

    @property
    def ranges(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """The columns whose values it takes, and the ranges to which they are clamped, where they are."""
        return ()

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """The same question of a table with this schema: texts are read, ``where`` must be true besides.

        Raises ``InputError`` for an expression that cannot be read or is of the wrong kind.
        """
        return self.changed(asked=self.asked.settled(schema, where))

    @property
    def rows_in_group(self) -> int | None:
        """Its own bound on the rows of a person in one group; None where the session's holds."""
        return self.asked.rows_per_group

    @abstractmethod
    def __str__(self) -> str:
        """The question in words."""

    @abstractmethod
    def vectors(self) -> tuple[Vector, ...]:
        """The noisy vectors that it needs, each under a name of its own. Raises ``PlanError``: nothing is spent yet."""

    @abstractmethod
    def record(self, integers: Integers, noises: Noises) -> Record:
        """The value of a group and its 95 % interval, from noisy integers only."""

    @abstractmethod
    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """E|error| and the half-width of the 95 % interval in a group of so many rows."""

    def shown(self, records: Sequence[Record], noises: Noises) -> list[tuple[int, Record]]:
        """The groups that are answered, by their places, and their records: all, as they are, unless it chooses."""
        del noises
        return list(enumerate(records))

    def worst(self, noises: Noises) -> float:
        """The largest error in any group; ∞ without a bound."""
        del noises
        return math.inf

    def withheld(self, noises: Noises, people: int) -> float:
        """How likely the value of a group of so many rows is withheld for its own reasons, at most."""
        del noises, people
        return 0.0
