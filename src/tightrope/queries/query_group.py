"""From questions to work: which questions share a pass over the table, and which noisy vectors each one needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tightrope.documents.escaping import A_PERSON, noun, printable
from tightrope.documents.wording import Protected
from tightrope.errors import InputError, PlanError, SchemaError
from tightrope.noise.worst_split import Contribution, Unit
from tightrope.queries.options import MOST_KEYS, Keys
from tightrope.queries.query import Question
from tightrope.queries.statistics import Vector, row_count
from tightrope.tables.expressions.expression import Term, facts_of
from tightrope.tables.group_keys import check_kinds
from tightrope.tables.request import Distinct, Measure, PersonBounds, Request
from tightrope.tables.schema import Schema

VALUES = ("integer", "number", "boolean")
NAMED: Mapping[str, str] = {"other": "what is neither a number nor a text"}
"""What a column holds, where the name of its kind does not say it."""
MOST_QUESTIONS = 100
"""A plan of so many takes half a minute; each further one takes longer."""
KEY_COUNT = "rows"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Questions over the same groups with the same bounds: one pass over the table, one unit of privacy."""

    served: Mapping[Question, Mapping[str, Vector]]
    """The vectors of each question, by the names that it gives them."""
    by: tuple[Term, ...]
    keys: tuple[tuple[object, ...], ...] | None
    bounds: PersonBounds
    where: Term | None
    cells: int | None
    """How many parts each group is counted in, cell by cell; None where groups have no parts."""
    key_count: Vector | None
    """Shows which keys there are, where they are discovered: charged once, and whoever asks for the rows has it."""
    tallies: tuple[Vector, ...] = ()
    """Vectors ``whole`` over all groups: what bounding and clamping cost."""
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The questions that each tally is about, by their names."""
    steps: tuple[int, ...] = ()
    """Numbers of rows by which persons are counted; its groups are these."""
    places: tuple[int, ...] = ()
    """Where each of its questions stood among all that were asked: whoever asked unpacks the answers in that order."""

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions, in their order."""
        return tuple(self.served)

    @property
    def vectors(self) -> tuple[Vector, ...]:
        """Every noisy vector once, in the order of the draws: the key count, then those of each question."""
        first = () if self.key_count is None else (self.key_count,)
        own = (vector for vectors in self.served.values() for vector in vectors.values())
        return tuple(dict.fromkeys((*first, *own, *self.tallies)))

    def answered_by(self, vector: Vector) -> tuple[str, ...]:
        """The questions that a vector enters or is about; a count of keys decides about the groups of all."""
        served = (q.asked.name for q, own in self.served.items() if vector in (self.key_count, *own.values()))
        return self.about.get(vector.name) or tuple(served)

    @property
    def request(self) -> Request:
        """What the engine is asked."""
        measures = tuple(vector.measure for vector in self.vectors)
        keys = ((),) if self.steps else self.keys
        return Request(self.by, keys, self.bounds, measures, self.where, self.steps)

    def contribution(self, cells: int = 1) -> Contribution:
        """How one person's rows fall into the groups, each of so many cells."""
        groups = 1 if not self.by else self.bounds.groups
        return Contribution(self.bounds.rows, self.bounds.rows_per_group, groups * cells)

    def shifted(self, own: Sequence[Vector]) -> Contribution:
        """How one person's rows fall into the groups of a set.

        To one that is ``whole`` a person adds once, at most the sensitivity: to one of its vectors. A choice looks at a
        whole group, whatever cells a person's rows are in.
        """
        if own[0].whole:
            return Contribution(1, 1, len(own))
        if own[0].choice is not None:
            return Contribution(self.bounds.rows, self.bounds.rows_per_group, min(self.bounds.groups, self.choosing))
        return self.contribution(1 if own[0].exclusive is None else len(own))

    @property
    def choosing(self) -> int:
        """How many groups something is chosen in: each is listed once for each of its cells."""
        return 1 if self.keys is None or self.cells is None else len(self.keys) // self.cells

    @property
    def sets(self) -> tuple[tuple[Vector, ...], ...]:
        """The vectors that share a unit: those that a row shifts together, and each exclusive set alone."""
        labels = dict.fromkeys(vector.exclusive for vector in self.vectors)
        together = [None] if None in labels else []
        order = (*together, *(label for label in labels if label is not None))
        return tuple(tuple(v for v in self.vectors if v.exclusive == label) for label in order)

    @property
    def parts(self) -> tuple[tuple[tuple[Vector, ...], ...], ...]:
        """Of each of ``sets``, the vectors by what is drawn for them: alone, as one exclusive set, as one box."""
        return tuple(map(_parts, self.sets))

    @property
    def units(self) -> tuple[Unit, ...]:
        """Units of privacy, one for each of ``sets``; an exclusive set is one spend over that many cells a group."""
        return tuple(_unit(self, own) for own in self.sets)


@dataclass(frozen=True, slots=True)
class Person:
    """What a person is (``means``: a noun with its article), and how many of their rows count: the session's bounds."""

    column: str | None
    rows: int
    rows_per_group: int
    groups: int
    means: str = A_PERSON

    @property
    def human(self) -> bool:
        """Whether a person is somebody who may be addressed."""
        return self.means == A_PERSON

    @property
    def noun(self) -> str:
        """What a person is, without the article."""
        return noun(self.means)

    @property
    def protected(self) -> Protected:
        """The same for sentences."""
        return Protected(self.means, self.column or "", self.rows, self.groups, self.rows_per_group)

    def bounds(self, question: Question) -> PersonBounds:
        """The bounds of one question; one without groups has one group, and nobody is in more groups than there are."""
        if self.column is None or question.steps:
            return PersonBounds(self.column, 1, 1, 1)
        per_group = min(question.rows_in_group or self.rows_per_group, self.rows)
        if question.cell is not None:  # any way in which so many rows may fall into cells
            most = self.rows if question.asked.by else per_group
            return PersonBounds(self.column, most, most, most)
        if not question.asked.by:
            return PersonBounds(self.column, per_group, per_group, 1)
        listed = self.rows if question.asked.keys is None else len(question.asked.keys)
        groups = min(question.asked.groups_per_person or self.groups, self.rows, listed)
        return PersonBounds(self.column, min(self.rows, per_group * groups), per_group, groups)


def _unit(task: Task, own: tuple[Vector, ...]) -> Unit:
    """Together: every spend at once. Exclusive: one spend over cells, for each row enters one of them.

    A box is one spend of so many numbers.
    """
    spends = (p[0].spend.together(len(p)) if p[0].boxed else p[0].spend for p in _parts(own))
    return Unit(tuple(spends), task.shifted(own))


def _parts(own: tuple[Vector, ...]) -> tuple[tuple[Vector, ...], ...]:
    if own[0].exclusive is not None:
        return (own,)
    box = tuple(vector for vector in own if vector.boxed)
    return tuple(box if vector.boxed else (vector,) for vector in own if vector not in box[1:])


def tasks_of(
    questions: Sequence[Question], person: Person, schema: Schema, where: Term | None = None
) -> tuple[Task, ...]:
    """Questions checked against the schema and gathered by rows, groups, keys and bounds; ``where`` is for all of them.

    Raises ``SchemaError`` for a column that is missing or of the wrong type, ``PlanError`` for repeated names,
    ``InputError`` for an expression that cannot be read.
    """
    if isinstance(questions, Question) or not all(isinstance(q, Question) for q in questions) or len(questions) == 0:
        got, remedy = (
            (str(questions), "put it in brackets: [tr.count()]") if isinstance(questions, Question) else (questions, "")
        )
        raise PlanError("questions", got, "a list of questions such as tr.count and tr.mean", remedy)
    if len(questions) > MOST_QUESTIONS:
        remedy = 'by="city" asks for many groups in one question; or make several plans, each with a share'
        raise PlanError("questions", len(questions), f"at most {MOST_QUESTIONS} of them", remedy)
    names = [question.asked.name for question in questions]
    for name in names:
        if names.count(name) > 1:
            raise PlanError("name", name, "a different name for each question", "give one of them name='...'")
    gathered: dict[object, dict[int, Question]] = {}
    for place, given in enumerate(questions):
        with _named(given):
            question = given.settled(schema, where)
            _check(question, schema)
            _check_keys(question, person, schema)
            _check_different(question, person)
            _check_left_over(question)
            keys = _keys(question)
        shared = _terms(question), keys, person.bounds(question), question.asked.condition, question.cell
        gathered.setdefault(shared, {})[place] = question
    for own in gathered.values():
        _check_shown(tuple(own.values()))
    return tuple(_task(own, person) for own in gathered.values())


@contextmanager
def _named(question: Question) -> Iterator[None]:
    """Errors say which question they are of."""
    try:
        yield
    except InputError as error:
        said = f"{error.name} of {printable(question.asked.name)}"
        raise type(error)(said, error.value, error.expected, error.remedy) from None


def _check(question: Question, schema: Schema) -> None:
    for term in _terms(question):
        if facts_of(term, schema).kind == "other":
            remedy = "lists, structs and objects of several kinds cannot be keys: make one text of them first"
            raise SchemaError("by", str(term), "a column of plain values", remedy)
    for vector in question.vectors():
        _check_measured(question, vector.measure, schema)


def _check_measured(question: Question, measure: Measure, schema: Schema) -> None:
    """Numbers to be added up; to be told apart, anything that can be compared."""
    for term in measure.columns:
        kind = facts_of(term, schema).kind
        if isinstance(measure, Distinct) and kind == "other":
            raise SchemaError("column", str(term), "a column of plain values", "make one text of them first")
        if not isinstance(measure, Distinct) and kind not in VALUES:
            expected = f"a column of numbers, not of {NAMED.get(kind, kind)}"
            # What to do with a column that holds no numbers: of a share, nearly always a comparison was meant.
            column = str(term)
            if question.kind != "share":
                how_else = "cast it, or declare its type"
            else:
                written = column if column.isidentifier() else f'column("{printable(column)}")'
                how_else = f"say what counts as true, as in {written} == 'yes'"
            raise SchemaError("column", str(term), expected, how_else)


def _check_keys(question: Question, person: Person, schema: Schema) -> None:
    """Listed keys are of their columns' kinds; found ones are never those of one person, for none would be shown."""
    if question.steps:
        return
    if question.asked.keys is not None:
        check_kinds(question.asked.keys, question.asked.terms, schema)
    elif person.column is not None and person.column in _terms(question):
        remedy = "a group of one person is never large enough to be shown; group by something that many have in common"
        raise PlanError("by", person.column, "not the column of the person where groups are discovered", remedy)


def _check_different(question: Question, person: Person) -> None:
    """Persons are counted as such: with the noise of one row in a group, where values have that of all rows."""
    different = [vector.measure for vector in question.vectors() if isinstance(vector.measure, Distinct)]
    if person.column is not None and any(one.column == person.column for one in different):
        remedy = "leave it out: then persons are counted, each once in a group, with less noise"
        raise PlanError("column", person.column, "not the column of the person", remedy)


def _check_left_over(question: Question) -> None:
    """Groups that are listed, or follow from the question, are all shown: nothing is left over."""
    if question.left_over and question.asked.keys is not None:
        remedy = "count the rest by a condition, such as where=\"not (city in ('Oslo', 'Rome'))\""
        raise PlanError("by", question.asked.by, "groups that are discovered; here all are listed, and shown", remedy)


def _check_shown(together: Sequence[Question]) -> None:
    """What is left over is so beside something."""
    if all(question.left_over for question in together):
        remedy = "ask tr.count too, with the same by, where, rows_per_group and groups_per_person"
        raise PlanError("questions", together[0].asked.name, "a question whose groups are shown, beside it", remedy)


def _task(asked: Mapping[int, Question], person: Person) -> Task:
    questions, places = tuple(asked.values()), tuple(asked)
    first = questions[0]
    keys = _keys(first)
    count = _key_count(questions) if keys is None else None
    questions = tuple(question.among(questions) for question in questions)
    bounds, where = person.bounds(first), first.asked.condition
    served = {question: _served(question, number, count, bounds.rows) for number, question in enumerate(questions)}
    cells = None if first.cell is None else first.cell.parts_of
    found = Task(MappingProxyType(served), _terms(first), keys, bounds, where, cells, count)
    return replace(found, steps=first.steps, places=places)


def _terms(question: Question) -> tuple[Term, ...]:
    """What a settled question groups by; last the cells of its groups."""
    return question.asked.terms if question.cell is None else (*question.asked.terms, question.cell)


def _keys(question: Question) -> Keys | None:
    """The keys that are counted: each group, or each cell of each group in order."""
    keys = question.asked.keys if question.asked.by else ((),)
    if keys is None or question.cell is None:
        return keys
    if (size := len(keys) * question.cell.parts_of) > MOST_KEYS:
        expected = f"at most {MOST_KEYS // question.cell.parts_of:,} groups"
        raise PlanError("keys", f"{size // question.cell.parts_of:,} groups", expected, "ask for fewer at once")
    return tuple((*key, cell) for key in keys for cell in range(question.cell.parts_of))


def _key_count(questions: Sequence[Question]) -> Vector:
    """The count that shows which keys there are: as exact as the most important question about rows wants it."""
    wanted = [vector.spend.eighths for q in questions for vector in q.vectors() if vector.counts_rows]
    plain = row_count(KEY_COUNT, 1.0)
    return replace(plain, spend=replace(plain.spend, eighths=min(wanted, default=plain.spend.eighths), bounded=True))


def _over_all(vector: Vector, rows: int) -> Vector:
    return replace(vector, sensitivity=vector.sensitivity * rows) if vector.whole else vector


def _apart(vector: Vector, number: int) -> Vector:
    return vector.named(f"{number} {vector.name}") if vector.block is None else vector


def _served(question: Question, number: int, key_count: Vector | None, rows: int) -> Mapping[str, Vector]:
    """The vectors of a question under names that no other has; a count of rows is the key count, where there is one.

    Counts of cells serve every question that asks for the same ones. To what is counted over all groups a person adds
    all of their ``rows``.
    """
    return MappingProxyType({
        vector.name: key_count if key_count and vector.counts_rows else _apart(_over_all(vector, rows), number)
        for vector in question.vectors()
    })  # fmt: skip


# How much of one person is in an answer, in words: a count of bounded rows is not a count of all rows.


def rows_used(bounds: PersonBounds, person: Person, by: tuple[str, ...]) -> str:
    """The rows that an answer is made of.

    >>> rows_used(PersonBounds("tail", 12, 12, 1), Person("tail", 12, 12, 12, "an aircraft"), ())
    'rows, at most 12 of one aircraft'
    >>> rows_used(PersonBounds("id", 4, 2, 3), Person("id", 4, 2, 3), ("city",))
    'rows, at most 4 of one person, 2 of them in one group, in at most 3 groups'
    >>> rows_used(PersonBounds(None, 1, 1, 1), Person(None, 1, 1, 1), ())
    'rows, each of them one person'
    """
    if bounds.person is None:
        return f"rows, each of them one {person.noun}"
    said = [f"rows, at most {bounds.rows:,} of one {person.noun}"]
    if by and bounds.rows_per_group < bounds.rows:
        said.append(f"{bounds.rows_per_group:,} of them in one group")
    if by and bounds.groups < bounds.rows:
        said.append(f"in at most {bounds.groups:,} group{'s' if bounds.groups > 1 else ''}")
    return ", ".join(said)


def bounded_notes(bounds: PersonBounds, person: Person, by: tuple[str, ...]) -> list[str]:
    """What is left out: rows beyond the bound and of nobody; and where a bound on groups is one on the whole table."""
    if bounds.person is None:
        return []
    left_out = f"where one {person.noun} has more rows, the others are left out"
    nobody = f"rows whose {printable(bounds.person)} is NULL, or a float but no whole number below 2^53, are left out"
    said = [f"{left_out}: this speaks of the rows that count, not of the whole table", nobody]
    if not by and bounds.rows < person.rows:
        said.append(f"without groups, the whole table is one group: rows_per_group = {bounds.rows} bounds it")
    return said
