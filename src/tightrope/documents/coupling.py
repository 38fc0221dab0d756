"""The document of ``couple fit``: all weights of a coupling mechanism. Integers are hexadecimal text."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal, Self

from msgspec import Meta

from tightrope.documents.document import Counted, Finite, Natural, Part, Positive, Probability, Size, Triple
from tightrope.documents.reader import Reader
from tightrope.documents.wording import Explanation, explain_coupling
from tightrope.errors import InputError

AGAIN = "write the file again with: tightrope couple fit"
SECRECY = {
    "table": "as secret as the table: it holds the laws of its groups as they are",
    "public": "as public as the laws that it was given",
    "private": "no more secret than what was spent on it allows",
}
DISTRIBUTIONS_BY_KIND = {
    "table": "exactly those of the groups in the table",
    "public": "the public ones that were given",
    "private": "those that were learned",
}
"""The distributions that a coupling was fitted to, in words, by the kind of their origin."""
WEIGHT_TOTAL = 1 << 128
COUPLINGS = Reader("coupling", AGAIN, secret=True)

Text = Annotated[str, Meta(min_length=1)]
Names = Annotated[tuple[str | int, ...], Meta(min_length=1)]
Hexadecimal = Annotated[str, Meta(pattern="^[0-9a-f]{1,8192}$")]
"""An integer ≥ 0; Python would need quadratic time to read decimal text of thousands of digits."""
Masses = Annotated[tuple[Hexadecimal, ...], Meta(min_length=1)]
Places = Annotated[tuple[Natural, ...], Meta(min_length=1)]


class AxisPart(Part, frozen=True, kw_only=True):
    """A column's range in equal cells."""

    column: Text
    lower: Finite
    upper: Finite
    cells: Counted


class CategoriesPart(Part, frozen=True, kw_only=True, tag_field="kind", tag="categories"):
    """Points that are the names in a column; ``metric`` is the distance over them."""

    column: Text
    names: Names
    metric: Text


class CellsPart(Part, frozen=True, kw_only=True, tag_field="kind", tag="cells"):
    """Points that are cells of a line or of a map; ``metric`` is the distance over them."""

    axes: Annotated[tuple[AxisPart, ...], Meta(min_length=1)]
    metric: Text


class GroupColumn(Part, frozen=True, kw_only=True):
    """The column that names the group of each value, and its groups."""

    column: Text
    names: Names


class RowTable(Part, frozen=True, kw_only=True):
    """The law of one draw: ``weights`` of 2¹²⁸ for each of the points ``outcomes``."""

    outcomes: Places
    weights: Masses

    def __post_init__(self) -> None:
        if not len(self.outcomes) == len(self.weights) == len(set(self.outcomes)):
            raise InputError("outcomes", len(self.outcomes), f"{len(self.weights)} different ones", AGAIN)


class GroupPart(Part, frozen=True, kw_only=True):
    """A group: its law over the points, what it loses, and for each point the number of the table to draw from."""

    law: Masses
    loss: Finite
    tables: Annotated[tuple[RowTable, ...], Meta(min_length=1)]
    rows: Places

    def __post_init__(self) -> None:
        if not max(self.rows) < len(self.tables):
            raise InputError("rows", max(self.rows), f"numbers of the {len(self.tables)} tables", AGAIN)

    def distance_to(self, target: list[int]) -> Fraction:
        """Return ½ Σ_y |P(y) − μ(y)|, where P is the output distribution of the group and μ the target."""
        tables = [[(y, int(weight, 16)) for y, weight in zip(t.outcomes, t.weights, strict=True)] for t in self.tables]
        law, output = [int(mass, 16) for mass in self.law], [0] * len(target)
        last_point = max(y for table in tables for y, _ in table)
        if not (len(law) == len(self.rows) == len(target) > last_point and min(sum(law), sum(target)) > 0):
            raise InputError("groups", len(law), f"laws over the {len(target)} points of the target", AGAIN)
        for mass, row in zip(law, self.rows, strict=True):
            for y, weight in tables[row]:
                output[y] += mass * weight
        output_total, target_total = sum(law) * WEIGHT_TOTAL, sum(target)
        difference = sum(
            abs(output_mass * target_total - mass * output_total)
            for output_mass, mass in zip(output, target, strict=True)
        )
        return Fraction(difference, 2 * output_total * target_total)


class Learning(Part, frozen=True, kw_only=True):
    """Privately learned laws: ε spent, the column ``person`` that identifies people, and the loss of one draw.

    ``left`` holds (ε, δ, η) of which each is true, all of them together with the ``confidence``.
    """

    epsilon: Positive
    person: Text
    confidence: Annotated[float, Meta(gt=0, lt=1)]
    left: Annotated[tuple[Triple, ...], Meta(min_length=1)]


class Origin(Part, frozen=True, kw_only=True):
    """The stated source of the laws: the one part of the file that cannot be recomputed.

    ``kind``: "table" (its own shares), "public" (laws that were given) or "private" (learned: see ``learning``).
    ``secrecy``: who may see the file. ``target`` is the name of the requested target.
    """

    kind: Literal["table", "public", "private"]
    secrecy: str
    target: Text
    learning: Learning | None

    @classmethod
    def from_kind(
        cls, kind: Literal["table", "public", "private"], target: str, learning: Learning | None = None
    ) -> Self:
        """Return the origin with the secrecy of its kind; ``InputError`` unless exactly private ones are learned.

        >>> Origin.from_kind("table", "uniform").secrecy[:23]
        'as secret as the table:'
        """
        return cls(kind=kind, secrecy=SECRECY.get(kind, ""), target=target, learning=learning)

    def __post_init__(self) -> None:
        if self.kind not in SECRECY or (self.learning is None) != (self.kind != "private"):
            raise InputError("kind", self.kind, f"one of {list(SECRECY)}, learned exactly if private", AGAIN)
        if self.secrecy != SECRECY[self.kind]:
            raise InputError("secrecy", self.secrecy, repr(SECRECY[self.kind]), AGAIN)


class CommonPart(Part, frozen=True, kw_only=True):
    """A partial coupling: the output distributions and the target share a mass of at least 1 − ``delta``.

    ``potentials`` v (per group and point) prove that any such mechanism – if ``fixed_target``, any whose common part is
    below the target – moves values by a mean distance Σ_s w_s loss_s ≥ ``lower``; the ``weights`` w of the groups add
    up to 1.
    """

    delta: Annotated[float, Meta(gt=0, lt=1)]
    weights: Annotated[tuple[Probability, ...], Meta(min_length=1)]
    potentials: Annotated[tuple[tuple[Size, ...], ...], Meta(min_length=1)]
    lower: Size
    fixed_target: bool


class CouplingDocument(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A mechanism, what its points and groups are called in a table, and where its laws came from.

    ``common_part`` is missing if all output distributions are the target. ``stray`` is the share of mass that the fit
    moved, as numerator and denominator; ``target`` holds masses that are in proportion to the target's law.
    """

    document: Literal["coupling"]
    version: Literal[1]
    support: CategoriesPart | CellsPart
    group: GroupColumn
    objective: Literal["expected", "worst"]
    target: Masses
    stray: tuple[Hexadecimal, Hexadecimal]
    groups: tuple[GroupPart, ...]
    origin: Origin
    common_part: CommonPart | None = None

    def __post_init__(self) -> None:
        if len(self.groups) != len(self.group.names):
            raise InputError("groups", len(self.groups), f"one for each of {len(self.group.names)} names", AGAIN)
        if self.common_part is None:
            return
        weights, potentials = self.common_part.weights, self.common_part.potentials
        sizes = [len(weights), len(potentials), *map(len, potentials)]
        expected_sizes = [len(self.groups), len(self.groups), *(len(self.target) for _ in self.groups)]
        if sizes != expected_sizes or self.objective != "expected":
            expected = f"{expected_sizes}: weights of the groups, and potentials of their points; for the mean distance"
            raise InputError("common_part", sizes, expected, AGAIN)
        learned = () if self.origin.learning is None else self.origin.learning.left
        if not all(bound.total_variation >= self.common_part.delta for bound in learned):
            expected = f"at least the delta {self.common_part.delta} of the common part"
            raise InputError("left", min(bound.total_variation for bound in learned), expected, AGAIN)

    @property
    def largest_target_distance(self) -> Fraction:
        """Return the largest distance between a group's written law and the target, in total variation, exactly.

        Computed from laws and weights that were checked (``transport.SavedCoupling`` does).
        """
        masses = [int(mass, 16) for mass in self.target]
        return max((group.distance_to(masses) for group in self.groups), default=Fraction(0))

    @property
    def explanation_parts(self) -> Explanation:
        """The parts of the text of ``explain``."""
        learning, distributions = self.origin.learning, DISTRIBUTIONS_BY_KIND[self.origin.kind]
        left = () if learning is None else tuple(guarantee.total_variation for guarantee in learning.left)
        return explain_coupling(
            self.largest_target_distance,
            left,
            0.0 if learning is None else learning.confidence,
            distributions,
            delta=0.0 if self.common_part is None else self.common_part.delta,
        )

    def explain(self) -> str:
        """Return what a written value reveals about its group, in one paragraph; every number is rounded up."""
        return str(self.explanation_parts)


def read_coupling(text: str) -> CouplingDocument:
    """Return the coupling in a JSON text; raises ``InputError`` with the path of the problem.

    ``transport.SavedCoupling`` checks its weights.
    """
    return COUPLINGS.parse_json(text, CouplingDocument)
