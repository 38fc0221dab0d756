"""The question ``marginals``, and the query of each of its tables.

Every table counts the same rows: those with a listed value in every column of the question. A row with another value
in one of the columns is left out of all tables alike, so that each row that counts is in one cell of every table. Least
squares needs this: a row in one table that is missing in another would bias both.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeVar, final

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import InputError, PlanError
from tightrope.noise.marginals.workload import Columns, MarginalWorkload
from tightrope.queries.count import NOT_CLAMPED_NOTE
from tightrope.queries.intervals import OUTSIDE
from tightrope.queries.options import MOST_KEYS, CheckedOptions, Given, QueryOptions, listed_keys
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.statistics import NoisyStatistic
from tightrope.tables.expressions.arithmetic import Clip
from tightrope.tables.expressions.expression import Term, resolve_term, term_facts
from tightrope.tables.expressions.leaves import ColumnRef, to_literal
from tightrope.tables.group_keys import check_key_kinds
from tightrope.tables.schema import Schema

MAX_TABLES, MAX_CELLS = 2_000, 200_000
"""Maximum number of tables of a question, and of the cells of all of them."""
MAX_TABLE_WEIGHT = 1_000_000
"""Weights of tables are below this."""
MAX_BOUNDED_VALUES = 10_000
"""Maximum number of integers between the bounds of a column."""
FRAME_TYPES = ("Series", "DataFrame", "LazyFrame")
"""Classes of data: their values would disclose which values the data have."""
ItemT = TypeVar("ItemT")
KEYS_ADVICE = 'list them from public knowledge: keys={"sex": ["F", "M"]}, or bounds={"age": (0, 99)} for integers'


@final
@dataclass(frozen=True)  # not slotted: for cached properties
class marginals:
    """All tables of counts of some ``columns``: the total, one table for each column, for each pair, and so on.

    The tables are consistent: each adds up to every table of fewer columns. Together they have the least noise of all
    linear mechanisms with Gaussian noise, or less (``docs/proofs/marginals.md``).

    - ``columns``: columns or expressions, also ``{name: expression}``. ``orders``: how many columns a table has.
    - ``of``: the columns of each table, in place of ``orders``: ``[["sex", "age"], ["state"]]``.
    - ``keys``: the values of each column, as ``{"sex": ["F", "M"]}``; ``bounds``: the ends of a range of integers,
      ``{"age": (0, 99)}``, to which values are clamped. Values that follow from the schema need neither: booleans,
      ``month(...)``, ``cut(...)``, ``case(...)``. Rows with another value in one column are left out of all tables.
    - ``weight``: ``"cells"`` gives every cell of every table the same weight, ``"tables"`` every table. ``weights``:
      a number for each table instead; a table with a larger one is more accurate.
    - ``where``, ``margin_of_error`` (of every table), ``title``, ``description``, ``unit``: as in ``count``. ``name``:
      the tables are named after it, ``marginals_by_sex_age``; the total, ``marginals``.

    Of the bounds on a person, ``max_rows`` alone counts. A plan with ``marginals`` has no other questions. Raises
    ``PlanError`` for an invalid parameter.

    >>> tables = marginals(["sex", "age"], keys={"sex": ["F", "M"], "age": range(3)}).make_tables()
    >>> [table.asked.name for table in tables]
    ['marginals', 'marginals_by_sex', 'marginals_by_age', 'marginals_by_sex_age']
    """

    columns: Given | Mapping[str, Given] | Sequence[Given | Mapping[str, Given]] | None = None
    orders: Sequence[int] = field(default=(0, 1, 2), kw_only=True)
    of: Sequence[Sequence[str]] | None = field(default=None, kw_only=True)
    keys: Mapping[str, object] | None = field(default=None, kw_only=True)
    bounds: Mapping[str, Sequence[int]] | None = field(default=None, kw_only=True)
    weight: Literal["cells", "tables"] = field(default="cells", kw_only=True)
    weights: Sequence[float] | None = field(default=None, kw_only=True)
    where: Given | None = field(default=None, kw_only=True)
    margin_of_error: float | str | None = field(default=None, kw_only=True)
    name: str = field(default="marginals", kw_only=True)
    title: str | None = field(default=None, kw_only=True)
    description: str | None = field(default=None, kw_only=True)
    unit: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise PlanError("name", self.name, "a non-empty text")
        if self.weight not in ("cells", "tables"):
            raise PlanError("weight", self.weight, '"cells" or "tables"', "or say weights=[1, 4], one for each table")
        self._check_weights(len(self.table_columns))
        self._check_known_columns("keys", self.keys)
        self._check_known_columns("bounds", self.bounds)
        for column in set(self.keys or ()) & set(self.bounds or ()):
            raise PlanError("bounds", column, "left out for a column with keys")
        for column in self.all_columns.by:
            self._given_values(column)
        self._check_table_names()

    def _check_table_names(self) -> None:
        """Raise ``PlanError`` for two tables of one name: answers are stored by their names."""
        repeated = _first_repeated(table.asked.name for table in self.make_tables())
        if repeated is not None:
            remedy = "name an expression otherwise: columns=[{'new_name': ...}]"
            raise PlanError("columns", repeated, "columns whose names give each table a name of its own", remedy)

    def _check_weights(self, table_count: int) -> None:
        if self.weights is None:
            return
        if self.weight != "cells":
            raise PlanError("weight", self.weight, "left out where weights are given", "weights=[...] replaces it")
        remedy = "tables are in the order of `of`, or by their number of columns: weights=[1, 4]"
        if not isinstance(self.weights, (list, tuple)):
            expected = f"a list with a number for each of the {table_count} tables"
            raise PlanError("weights", type(self.weights).__name__, expected, remedy)
        if len(self.weights) != table_count:
            expected = f"a number for each of the {table_count} tables"
            raise PlanError("weights", f"{len(self.weights)} weights", expected, remedy)
        for weight in self.weights:
            is_number = isinstance(weight, Real) and not isinstance(weight, bool)
            if not (is_number and 0 < weight < MAX_TABLE_WEIGHT):
                given = weight if is_number else type(weight).__name__
                raise PlanError("weights", given, f"numbers above 0 and below {MAX_TABLE_WEIGHT:,}", remedy)

    def _check_known_columns(self, parameter: str, given: object) -> None:
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise PlanError(parameter, type(given).__name__, "values by column", KEYS_ADVICE)
        for column in given:
            if column not in self.all_columns.by:
                raise PlanError(parameter, column, f"one of the columns {list(self.all_columns.by)}")

    @cached_property
    def all_columns(self) -> CheckedOptions:
        """The columns of all tables, checked, with the condition; raises ``PlanError``."""
        given: Any = self.columns
        if given is None:
            lists = self.of if isinstance(self.of, (list, tuple)) else []
            named = [name for names in lists if isinstance(names, (list, tuple)) for name in names]
            given = list(dict.fromkeys(name for name in named if isinstance(name, str)))
        checked = CheckedOptions.from_options(QueryOptions(where=self.where, by=given), self.name)
        if not checked.by:
            if self.of is not None:
                raise PlanError("of", self.of, "a list of lists of columns", 'say of=[["sex", "age"], ["state"]]')
            remedy = 'say columns=["sex", "age"], or of=[["sex", "age"], ["state"]]'
            raise PlanError("columns", self.columns, "one column or expression at least", remedy)
        return checked

    @cached_property
    def table_columns(self) -> tuple[Columns, ...]:
        """The columns of each table, by position."""
        tables = self._tables_by_order() if self.of is None else self._listed_tables(self.of)
        if not 1 <= len(tables) <= MAX_TABLES:
            raise PlanError("of", len(tables), f"from 1 to {MAX_TABLES:,} tables")
        repeated = _first_repeated(tables)
        if repeated is not None:
            names = [self.all_columns.by[column] for column in repeated]
            raise PlanError("of", names, "each table once", "a larger number in `weights` makes it more accurate")
        return tuple(tables)

    def _listed_tables(self, listed: Sequence[Sequence[str]]) -> list[Columns]:
        names = self.all_columns.by
        are_lists = isinstance(listed, (list, tuple)) and all(isinstance(one, (list, tuple)) for one in listed)
        columns = list(itertools.chain.from_iterable(listed)) if are_lists else [None]
        if not all(isinstance(column, str) for column in columns):
            raise PlanError("of", listed, "a list of lists of columns", 'say of=[["sex", "age"], ["state"]]')
        for column in columns:
            if column not in names:
                raise PlanError("of", column, f"one of the columns {list(names)}")
        if any(len(set(table)) < len(table) for table in listed):
            raise PlanError("of", listed, "different columns in each table")
        return [tuple(sorted(map(names.index, table))) for table in listed]

    def _tables_by_order(self) -> list[Columns]:
        count = len(self.all_columns.by)
        orders = list(self.orders) if isinstance(self.orders, (list, tuple, range)) else []
        if orders == [0, 1, 2]:  # by default, of one column only the total and its table
            orders = [order for order in orders if order <= count]
        if not orders or not all(type(order) is int and 0 <= order <= count for order in orders):
            expected = f"numbers of columns, each from 0 to {count}"
            raise PlanError("orders", self.orders, expected, "orders=(0, 1): the total, and a table of each column")
        orders = sorted(set(orders))
        if sum(math.comb(count, order) for order in orders) > MAX_TABLES:
            raise PlanError("orders", self.orders, f"such that there are at most {MAX_TABLES:,} tables", "list some")
        return [table for order in orders for table in itertools.combinations(range(count), order)]

    def _given_values(self, column: str) -> tuple[object, ...] | None:
        """Return the values of a column that are listed, or between its bounds; raises ``PlanError``."""
        if self.bounds is not None and column in self.bounds:
            return self._bounded_values(column, self.bounds[column])
        keys = self.keys or {}
        if column not in keys:
            return None
        option, given = f"keys of {escape_control_chars(column)}", keys[column]
        length = len(given) if isinstance(given, Sized) and not isinstance(given, (str, bytes, Mapping)) else 0
        if not length or type(given).__name__ in FRAME_TYPES:
            described = None if given is None else type(given).__name__
            raise PlanError(
                option, described, "a list of its values", f"{KEYS_ADVICE}; values read from the data disclose data"
            )
        try:
            listed = listed_keys(given, (column,)) or ()
        except PlanError as error:
            raise PlanError.from_error(error, option) from None
        return tuple(value for (value,) in listed)

    def _bounded_values(self, column: str, pair: Sequence[int]) -> tuple[int, ...]:
        option = f"bounds of {escape_control_chars(column)}"
        is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
        are_integers = is_pair and all(isinstance(end, Integral) and not isinstance(end, bool) for end in pair)
        lower, upper = map(int, pair) if are_integers else (0, 0)
        if not 0 < upper - lower < MAX_BOUNDED_VALUES:
            given = pair if is_pair else type(pair).__name__
            expected = f"two integers, at most {MAX_BOUNDED_VALUES:,} apart, the smaller one first"
            remedy = (
                'say bounds={"age": (0, 99)}; cut other numbers: {"income": "cut(income, [0, 20000])"} needs no bounds'
            )
            raise PlanError(option, given, expected, remedy)
        if not -(1 << 63) <= lower <= upper < 1 << 63:
            raise PlanError(
                option, pair, "integers of 64 bits, as the column has", "use a range that its values can have"
            )
        return tuple(range(lower, upper + 1))

    def make_tables(self) -> tuple[marginal_table, ...]:
        """Return the query of each table."""
        return tuple(marginal_table.from_columns(self, columns) for columns in self.table_columns)

    def resolve_column(self, position: int, schema: Schema) -> tuple[Term, tuple[object, ...]]:
        """Return the term of a column, clamped to its bounds, and its values.

        Raises ``PlanError`` if the values are not known, ``SchemaError`` for a missing column or values of another
        kind.
        """
        name, values = self.all_columns.by[position], self._given_values(self.all_columns.by[position])
        term = resolve_term(self.all_columns.terms[position], schema)
        if isinstance(term, str):
            schema.find_column(term).refuse_other_kind("columns", "be a column of a table of counts")
        if self.bounds is not None and name in self.bounds and values is not None:
            if term_facts(term, schema).kind != "integer":
                kind = term_facts(term, schema).kind
                raise PlanError(f"bounds of {escape_control_chars(name)}", kind, "of a column of integers", KEYS_ADVICE)
            column = ColumnRef(term) if isinstance(term, str) else term
            term = Clip(column, to_literal(values[0]), to_literal(values[-1]))
        elif values is None:
            values = term_facts(term, schema).possible_keys
            if values is None:
                raise PlanError("keys", name, "given, as the values of this column are unknown", KEYS_ADVICE)
        if len(values) < 2:
            raise PlanError("keys", name, "a column with two values at least", "leave it out, or use it in where")
        check_key_kinds(tuple((value,) for value in values), (term,), schema)
        return term, values

    def make_workload(self, sizes: Sequence[int]) -> MarginalWorkload:
        """Return the tables and their weights, for columns with this many values each."""
        weights = self.weight if self.weights is None else [float(weight) for weight in self.weights]
        cells = sum(math.prod(sizes[column] for column in columns) for columns in self.table_columns)
        if cells > MAX_CELLS:
            remedy = "ask for tables of fewer columns, or cut columns with many values"
            raise PlanError("orders", f"{cells:,} cells", f"at most {MAX_CELLS:,} cells in all tables", remedy)
        try:
            return MarginalWorkload.from_marginals(sizes, self.table_columns, weights=weights)
        except InputError as error:
            raise PlanError.from_error(error, "orders") from None


@final
@dataclass(frozen=True, slots=True)
class marginal_table(Query):
    """One table of a ``marginals`` question: the number of rows in each combination of the values of its columns.

    Its values are computed from the noisy integers of all tables together (``release.marginals``).
    """

    source: marginals = field(compare=False, repr=False)
    positions: Columns = ()

    kind = "marginals"
    meaning = "The number of rows"
    additive = True
    uniform = True
    counts = True
    is_marginal = True
    notes: ClassVar[tuple[str, ...]] = (
        "All tables count the same rows: those with a listed value in every column of the question.",
        "Least squares makes the tables add up to each other, so that a number can be a fraction.",
        NOT_CLAMPED_NOTE,
    )

    @classmethod
    def from_columns(cls, source: marginals, positions: Columns) -> Self:
        """Return the table on these columns, by position."""
        names = [source.all_columns.by[position] for position in positions]
        return cls(
            source=source,
            positions=positions,
            where=source.where,
            by=names,
            margin_of_error=source.margin_of_error,
            name="_".join([source.name, *(["by", *names] if names else [])]),
            title=f"{source.title}, by {', '.join(names)}" if source.title and names else source.title,
            description=source.description,
            unit=source.unit,
        )

    def __post_init__(self) -> None:
        options = self.check_options(self.source.name)
        terms = tuple(self.source.all_columns.terms[position] for position in self.positions)
        self._set_fields(asked=replace(options, terms=terms))

    def __str__(self) -> str:
        return f"number of rows{self.asked.groups_text}"

    @property
    def clamping_effect(self) -> str:
        """The effect of clamping on the first and last cells of columns with bounds; empty without such a column."""
        bounds = self.source.bounds or {}
        ends = [
            f"Values of {escape_control_chars(name)} below {low} count as {low}, and those above {high} as {high}, "
            "so these cells can be larger."
            for name, (low, high) in bounds.items()
            if name in self.asked.by
        ]
        return " ".join(ends)

    def resolve(self, schema: Schema, where: Term | None = None) -> Self:
        """Return the query for this schema, with the values of its columns as keys."""
        columns = [self.source.resolve_column(position, schema) for position in self.positions]
        keys = tuple(itertools.product(*(values for _, values in columns))) if columns else None
        if keys is not None and len(keys) > MOST_KEYS:
            raise PlanError("columns", f"{len(keys):,} cells", f"a table of at most {MOST_KEYS:,} cells")
        asked = replace(self.asked.resolve(schema, where), keys=keys, keys_from_expressions=False)
        return self.with_fields(asked=replace(asked, terms=tuple(term for term, _ in columns)))

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return nothing: the integers that are counted for all tables together are those of their group."""
        return ()

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Raise ``TypeError``: a cell is computed from the integers of all tables."""
        raise TypeError(self.kind)

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Raise ``TypeError``: the error of a cell is that of least squares for all tables."""
        raise TypeError(self.kind)


def _first_repeated(items: Iterable[ItemT]) -> ItemT | None:
    return next((item for item, count in Counter(items).items() if count > 1), None)
