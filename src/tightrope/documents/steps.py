"""A steps file: what is composed. The key ``mechanism`` selects the kind of a step; then come optional keys.

Numbers are only parsed here; the mechanism that is built from them validates them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, structs

from tightrope.documents.document import Counted, Part
from tightrope.documents.reader import Reader, missing_field_tip
from tightrope.errors import InputError, PlanError

STEPS_FILE = Reader(
    "the steps file",
    "see an example of a steps file with: tightrope account --help",
    PlanError,
    by_hand=True,
)
Number = int | float
Numbers = tuple[Number, ...]


class Run(Part, frozen=True, kw_only=True, tag_field="mechanism"):
    """``count`` runs of one mechanism, each optionally on a sample of the records and without output by chance."""

    count: Counted = 1
    poisson_rate: Number | None = None
    subset: Annotated[tuple[Number, Number], missing_field_tip("say subset = [256, 60000]: 256 of 60000")] | None = None
    erase: Number | None = None

    def __post_init__(self) -> None:
        if self.subset is not None and self.poisson_rate is not None:
            raise InputError.from_text("subset", "cannot be combined with poisson_rate; keep one of them")

    @property
    def mechanism_name(self) -> str:
        """The name of the function in ``tightrope`` that builds the mechanism."""
        return str(self.__struct_config__.tag)

    @property
    def maker_arguments(self) -> dict[str, Any]:
        """The arguments of that function that the step states."""
        given = structs.asdict(self)
        return {name: given[name] for name in given if name not in Run.__struct_fields__ and given[name] is not None}


class Scaled(Run, frozen=True, kw_only=True):
    """Noise that is known by its scale."""

    scale: Annotated[Number, missing_field_tip("say scale = 20")]
    sensitivity: Number | None = None


class Gaussian(Scaled, frozen=True, kw_only=True, tag="gaussian"):
    """Normal noise."""


class Laplace(Scaled, frozen=True, kw_only=True, tag="laplace"):
    """Laplace noise."""


class DiscreteGaussian(Scaled, frozen=True, kw_only=True, tag="discrete_gaussian"):
    """Normal noise on whole numbers."""


class DiscreteLaplace(Scaled, frozen=True, kw_only=True, tag="discrete_laplace"):
    """Laplace noise on whole numbers."""


class Promised(Run, frozen=True, kw_only=True):
    """A mechanism that is known by its ε in nats."""

    epsilon: Annotated[Number, missing_field_tip("say epsilon = 0.1")]


class Stairs(Promised, frozen=True, kw_only=True):
    """Noise whose density falls in steps."""

    sensitivity: Number | None = None
    gamma: Number | None = None


class Staircase(Stairs, frozen=True, kw_only=True, tag="staircase"):
    """Staircase noise."""


class DiscreteStaircase(Stairs, frozen=True, kw_only=True, tag="discrete_staircase"):
    """Staircase noise on whole numbers."""


class Truncated(Promised, frozen=True, kw_only=True):
    """Laplace noise with a largest value."""

    delta: Annotated[Number, missing_field_tip("say delta = 1e-6")]
    sensitivity: Number | None = None


class TruncatedLaplace(Truncated, frozen=True, kw_only=True, tag="truncated_laplace"):
    """Truncated Laplace noise."""


class DiscreteTruncatedLaplace(Truncated, frozen=True, kw_only=True, tag="discrete_truncated_laplace"):
    """Truncated Laplace noise on whole numbers."""


class RandomizedResponse(Promised, frozen=True, kw_only=True, tag="randomized_response"):
    """The true one of ``k`` values, or any."""

    k: Number | None = None


class ApproxDp(Promised, frozen=True, kw_only=True, tag="approx_dp"):
    """Anything with this guarantee."""

    delta: Number | None = None
    total_variation: Number | None = None


class FromPoints(Run, frozen=True, kw_only=True, tag="from_points"):
    """Anything with these guarantees."""

    points: Annotated[
        tuple[tuple[Number, Number], ...],
        Meta(min_length=1),
        missing_field_tip("say points = [[1, 1e-6], [0.5, 1e-3]]"),
    ]


class FromPair(Run, frozen=True, kw_only=True, tag="from_pair"):
    """Any two laws of finitely many outcomes; ``p`` with the record."""

    p: Annotated[Numbers, missing_field_tip("say p = [0.6, 0.4]")]
    q: Annotated[Numbers, missing_field_tip("say q = [0.4, 0.6]")]


Step = (
    Gaussian | Laplace | DiscreteGaussian | DiscreteLaplace | Staircase | DiscreteStaircase | TruncatedLaplace
    | DiscreteTruncatedLaplace | RandomizedResponse | ApproxDp | FromPoints | FromPair
)  # fmt: skip


class StepsDocument(Part, frozen=True, kw_only=True):
    """The content of a steps file."""

    document: Literal["steps"] = "steps"
    version: Literal[1] = 1
    step: Annotated[
        tuple[Step, ...], Meta(min_length=1), missing_field_tip("write [[step]] with double brackets, once or more")
    ]


def read_steps(path: str | Path) -> StepsDocument:
    """Return the content of a steps file; raises ``PlanError`` for other input."""
    return STEPS_FILE.convert_data(STEPS_FILE.parse_toml(Path(path)), StepsDocument)
