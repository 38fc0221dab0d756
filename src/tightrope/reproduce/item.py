"""One statement of a paper as something that is run: our number, the paper's, and the verdict from both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightrope.report.pictures.panels import Drawing

Values = tuple[float, ...]
Computed = float | Sequence[float]
Judge = Callable[[Values, Values], str]
"""From our values and the paper's to a verdict, which begins with agrees, sharper, wrong or not."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried: ``instances`` of what is stated without numbers, ``grid`` points along an axis of a figure.

    >>> FULL.instances > COARSE.instances
    True
    """

    instances: int
    grid: int
    coarse: bool = False

    def some(self, share: float) -> int:
        """Fewer instances, for what takes long one by one; all of them outside the coarse setting."""
        return max(4, round(self.instances * share)) if self.coarse else self.instances


FULL = Effort(instances=1_000, grid=41)
COARSE = Effort(instances=40, grid=5, coarse=True)
Compute = Callable[[Effort], Computed]
Draw = Callable[[Effort], Sequence[Drawing]]


@dataclass(frozen=True, slots=True)
class Finding:
    """What came out: our values, the paper's, and the verdict."""

    ours: Values
    printed: Values
    verdict: str

    @property
    def word(self) -> str:
        """The first word of the verdict: agrees, sharper, wrong or not."""
        return self.verdict.replace(":", " ").split()[0]


@dataclass(frozen=True, slots=True)
class Item:
    """A theorem, a figure, an example: ``statement`` says in one line what is compared.

    ``ours`` comes from public calls (``call`` names them), ``printed`` from the paper's text or from its formula,
    written down here once more and independently; ``judge`` alone decides what the two mean.
    """

    paper: str
    item: str
    statement: str
    call: str
    ours: Compute
    printed: Compute
    judge: Judge
    draw: Draw | None = None

    def compute(self, effort: Effort) -> Finding:
        """Our values and the paper's at this effort, compared now."""
        ours, printed = as_values(self.ours(effort)), as_values(self.printed(effort))
        return Finding(ours, printed, self.judge(ours, printed))


def as_values(found: Computed) -> Values:
    """One number or several, as floats.

    >>> as_values(1), as_values([0.5, 2])
    ((1.0,), (0.5, 2.0))
    """
    return (float(found),) if isinstance(found, (int, float)) else tuple(map(float, found))


def number(*values: float) -> Compute:
    """What a paper prints as a number."""
    return lambda effort: values
