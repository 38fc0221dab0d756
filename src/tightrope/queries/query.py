"""The base class of queries, which declare noisy statistics and compute an answer from them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self, final

from tightrope.documents.escaping import A_PERSON, unit_noun
from tightrope.errors import PlanError
from tightrope.queries.intervals import OUTSIDE
from tightrope.queries.options import CheckedOptions, QueryOptions
from tightrope.queries.statistics import Noise, NoisyStatistic
from tightrope.tables.expressions.expression import Term
from tightrope.tables.expressions.rounding import Cell
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    from tightrope.queries.comparisons import LinearEstimate

Integers = Mapping[str, int]
"""The noisy integers of one group, by the names of the vectors."""
Noises = Mapping[str, Noise]
"""The noise of each vector, by the vector's name."""
Record = dict[str, float | None]
"""``value`` (None: suppressed), ``lower`` and ``upper``; ``usable``, the noisy number of values, if it was charged."""


@dataclass(frozen=True, slots=True)
class Query(QueryOptions, ABC):
    """A query about a table. Each kind of query is a final class that declares its fields and the attributes below.

    The fields of a kind are the parameters that users pass to its constructor: ``tr.count(...)``.
    ``__post_init__`` checks them (``check_options``) and sets the fields derived from them (``init=False``).

    A kind defines ``__str__``, ``noisy_statistics``, ``estimate`` and ``expected_error``. It may override
    ``default_title``, ``title_and_meaning``, ``all_notes``, ``clamped_columns``, ``clamping_effect``, ``number_terms``,
    ``resolve``, ``worst_error``, ``suppression_probability``; if answers depend on other queries or groups, also
    ``cell_expression``, ``specialize`` or ``select_shown_groups``.
    """

    asked: CheckedOptions = field(init=False, repr=False)
    """The options, checked; after ``resolve``, resolved for one table."""

    kind: ClassVar[str]
    """The name of the kind in plans and answers."""
    meaning: ClassVar[str]
    """The meaning of the numbers, as the beginning of a sentence."""
    additive: ClassVar[bool]
    """True if values of groups add up, so that an axis naturally starts at zero."""
    uniform: ClassVar[bool]
    """True if the errors are the same for every group, large or small."""
    adds_up: ClassVar[bool] = False
    """True if the value is one noisy integer, and the value of a group is the sum over its subgroups."""
    counts: ClassVar[bool] = False
    """True if the value is a number of rows, so that an error can be stated as a fraction of it."""
    boxes: ClassVar[bool] = False
    """True if the number may share its noise with others: its interval uses only the number's marginal distribution."""
    has_linear_estimate: ClassVar[bool] = False
    """True if the noise of a value is known as a linear form (``linear_estimate``)."""
    is_one_noisy_integer: ClassVar[bool] = False
    """True if the value is a multiple of one noisy integer, whose noise is the only one."""
    comparable: ClassVar[bool] = False
    """True if ``estimate`` has intervals for every ``outside``, so that values can be compared."""
    is_marginal: ClassVar[bool] = False
    """True for a table of ``marginals``, planned with all its tables: ``max_rows`` alone bounds a person's rows."""
    counts_suppressed_groups: ClassVar[bool] = False
    """True if the query counts the rows in suppressed groups of the other queries of its ``QueryGroup``, in total."""
    row_count_steps: ClassVar[tuple[int, ...]] = ()
    """The numbers of rows by which people are counted; empty for queries about rows."""
    person_values: ClassVar[tuple[str, ...]] = ()
    """The values of ``per_person`` that the kind takes: then it is a statistic of persons."""
    notes: ClassVar[tuple[str, ...]] = ()
    """Notes that readers need to interpret the answers."""
    remedy_for_texts: ClassVar[str] = "say number({column}), or declare its type"
    """The remedy in the error for a ``{column}`` that has no numbers."""
    remedy_for_times: ClassVar[str] = "days({column}) is its number of days since 1970-01-01"
    """The remedy for a ``{column}`` of dates or timestamps."""
    entries: ClassVar[tuple[str, ...]] = ()
    """The plan file keys of this kind of query, named like its fields."""
    entry_defaults: ClassVar[Mapping[str, object]] = {}
    """Defaults of keys that are optional in a plan file but required in Python."""

    @final
    def check_options(self, *words: str) -> CheckedOptions:
        """Check the options and store them in ``asked``; ``words`` form the default name. Raises ``PlanError``."""
        if self.per_person is not None and self.per_person not in self.person_values:
            forms = " or ".join(f'"{form}"' for form in self.person_values)
            expected = f"{forms}, for {self.kind}" if forms else f"left out: a {self.kind} is of rows"
            remedy = 'means, quantiles and histograms can be of persons, and a proportion with "any"'
            raise PlanError("per_person", self.per_person, expected, remedy)
        asked = CheckedOptions.from_options(self, *words)
        self._set_fields(asked=asked, name=asked.name, keys=asked.keys, weight=asked.weight)
        return asked

    def _set_fields(self, **values: object) -> None:
        """Set fields of a query under construction."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @final
    def with_fields(self, **values: object) -> Self:
        """Return a copy with new values of these fields; ``dataclasses.replace`` would recompute derived fields."""
        question = copy(self)
        question._set_fields(**values)
        return question

    @property
    @final
    def key_columns(self) -> tuple[str, ...]:
        """The key columns of the answer: the group-by columns, unless the answer is one number."""
        return () if self.counts_suppressed_groups else self.asked.by

    @property
    def cell_expression(self) -> Cell | None:
        """The cells of a range in which each group is counted; None if groups are not divided into cells."""
        return None

    @property
    def largest_groups(self) -> int | None:
        """The number of groups that are shown, those with the largest values; None: all groups."""
        return None

    @property
    def range_without_rows(self) -> tuple[float, float] | None:
        """The interval of a suppressed value, for a query that has a value even without rows; None for others."""
        return None

    @property
    def rows_without_value(self) -> int:
        """The largest number of rows for which the value means nothing; after ``resolve_noise``."""
        return 0

    def resolve_noise(self, noises: Noises) -> Self:
        """Return the query with what follows from its noise, for texts and for ``rows_without_value``."""
        del noises
        return self

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The ``notes``, and further notes on the method."""
        return self.notes

    def specialize(self, together: Sequence[Query]) -> Self:
        """Return the query in the best form for a plan with ``together``, all queries of its ``QueryGroup``."""
        del together
        return self

    @property
    def default_title(self) -> str:
        """The query in words, as titles state it."""
        return str(self)

    def share_statistics(self, together: Sequence[Query]) -> Self:
        """Return the query in a form that uses statistics of ``together``, all queries of its ``QueryGroup``."""
        del together
        return self

    def error_scale(self, vectors: Mapping[str, NoisyStatistic]) -> float:
        """Return a number in proportion to the error, at the relative noise sizes of these vectors of the query.

        By default the error is in proportion to the noise of the first vector.
        """
        vector = next(iter(vectors.values()))
        return vector.noise_spec.noise_size * vector.sensitivity * vector.step_size

    def title_and_meaning(self, means: str) -> tuple[str, str]:
        """Return the title of the query, and the meaning of its numbers; ``means`` describes the privacy unit."""
        del means
        return self.default_title, self.meaning

    @final
    def title_of_persons(self, means: str) -> tuple[str, str]:
        """Return ``title_and_meaning`` of a statistic of persons, with the privacy unit's noun."""
        title, meaning = self.title_and_meaning(means)
        noun, persons = unit_noun(means), "of persons" if means == A_PERSON else f"of persons (each {means})"
        title = title.replace(" per person", f" per {noun}", 1).replace("of persons", persons, 1)
        return title, meaning.replace("number of rows", "number of persons")

    @property
    def clamped_columns(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """The columns whose values are used, and the ranges to which they are clamped, if any."""
        return ()

    @property
    def number_terms(self) -> tuple[Term, ...]:
        """The columns that must contain numbers or truth values, also before ``resolve``."""
        return ()

    def resolve(self, schema: Schema, where: Term | None = None) -> Self:
        """Return the query for a table with this schema, with texts parsed; ``where`` is a further condition.

        Raises ``InputError`` for an expression that cannot be parsed or is of the wrong kind.
        """
        return self.with_fields(asked=self.asked.resolve(schema, where))

    @property
    def clamping_effect(self) -> str:
        """A sentence on how values that are moved to an end of their range change the answer; empty without ranges."""
        return ""

    @abstractmethod
    def __str__(self) -> str:
        """Return the query in words. Digests in ledgers contain it, so that it stays the same in all versions."""

    @abstractmethod
    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the noisy vectors of the query, with different names. Raises ``PlanError``, before budget is spent."""

    @abstractmethod
    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return the value of a group and its interval, from noisy integers only.

        The interval misses the value without noise with probability at most ``outside``.
        """

    def linear_estimate(self, integers: Integers, noises: Noises) -> LinearEstimate | None:
        """Return the value of a group with its noise as a linear form; None if it is suppressed.

        Kinds that define it set ``has_linear_estimate``: the joint noise of several values is then known.
        """
        del integers, noises
        return None

    @abstractmethod
    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return E|error| and the half-width of the 95 % interval in a group with ``people`` rows."""

    def select_shown_groups(
        self, records: Sequence[Record], noises: Noises, keys: Sequence[tuple[object, ...]]
    ) -> list[tuple[int, Record]]:
        """Return the indices and records of the groups that are shown; by default all, unchanged."""
        del noises, keys
        return list(enumerate(records))

    def worst_error(self, noises: Noises) -> float:
        """Return the largest error in any group; ∞ if unbounded."""
        del noises
        return math.inf

    def suppression_probability(self, noises: Noises, people: int) -> float:
        """Return a bound on P(the value is suppressed) with ``people`` rows, apart from the threshold for groups."""
        del noises, people
        return 0.0
