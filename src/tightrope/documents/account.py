"""Results of ``tightrope account`` and ``tightrope dpsgd``: brackets around the exact value, and attacker bounds."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, structs

from tightrope.documents import numbers
from tightrope.documents.document import Counted, Finite, Part, Positive, Probability, Size
from tightrope.documents.reader import Reader, missing_field_tip, rename_document_keys
from tightrope.documents.wording import Explanation, explain_account
from tightrope.errors import InputError, PlanError

# A steps file: what is composed. The key ``mechanism`` selects the kind of a step; then come optional keys.
#
# Numbers are only parsed here; the mechanism that is built from them validates them.


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


def upgrade_keys(data: Any) -> Any:
    """Return the data of an account with the keys of version 2."""
    if isinstance(data, dict) and data.get("version") == 1:
        return rename_document_keys(data, {(): {"neighbours": "neighbors", "engine": "method"}})
    return data


ACCOUNTS = Reader("account", "take the file as tightrope wrote it, or account again", upgrade=upgrade_keys)


class EpsilonBracket(Part, frozen=True, kw_only=True):
    """The true value lies in [lower, upper]; ``epsilon`` = upper. None: no bound.

    ``relative_width`` is (upper − lower)/upper, 0 where both ends are equal and None where only the lower is a number.
    """

    delta: Probability
    epsilon: Size | None
    lower: Size | None
    upper: Size | None
    relative_width: Probability | None


class DeltaBracket(Part, frozen=True, kw_only=True):
    """The true value lies in [lower, upper]; ``delta`` = upper."""

    epsilon: Finite
    delta: Probability
    lower: Probability
    upper: Probability
    relative_width: Probability


class Attack(Part, frozen=True, kw_only=True):
    """The best attacker's true-positive rate, at most, at a false-positive rate."""

    false_positive_rate: Probability
    true_positive_rate: Probability


class AttackerGain(Part, frozen=True, kw_only=True):
    """Upper bounds on an attacker's gain, with the neighboring relation, the method and the conditions."""

    total_variation: Probability
    attack_success: Probability
    attack: tuple[Attack, ...]
    neighbors: Literal["unspecified", "add-remove", "replace-one", "zero-out", "local"]
    method: str
    statement: str


class Account(AttackerGain, frozen=True, kw_only=True):
    """The composed privacy loss of the steps of a file."""

    document: Literal["account"]
    version: Literal[1, 2]
    steps: tuple[Step, ...]
    epsilon_at_delta: tuple[EpsilonBracket, ...]
    delta_at_epsilon: tuple[DeltaBracket, ...]

    @property
    def first_guarantee(self) -> tuple[float, float]:
        """The first proven (ε, δ); (∞, 0) if there is none."""
        pairs = [(row.epsilon, row.delta) for row in self.epsilon_at_delta if row.epsilon is not None]
        pairs += [(row.epsilon, row.delta) for row in self.delta_at_epsilon if row.epsilon >= 0]
        return pairs[0] if pairs else (math.inf, 0.0)

    @property
    def explanation_parts(self) -> Explanation:
        """The parts of the text of ``explain``."""
        return explain_account(
            *self.first_guarantee, numbers.attack_success_rate(self.total_variation), self.neighbors, self.statement
        )

    def explain(self) -> str:
        """Return the guarantee of all steps together in one plain paragraph; every number is rounded up."""
        return str(self.explanation_parts)


class ComparisonAccount(Part, frozen=True, kw_only=True):
    """The same steps accounted for in another way; ``statement`` says whether it is a bound. None: it proves none."""

    name: str
    statement: str
    epsilon: Size | None
    total_variation: Probability


class TrainingAccount(AttackerGain, frozen=True, kw_only=True, omit_defaults=True):
    """The privacy loss of a training run, in a bracket of ε at δ as in ``EpsilonBracket``.

    ``comparison`` and ``picture`` are optional.
    """

    document: Literal["training account"]
    version: Literal[1, 2]
    examples: Counted
    batch: Counted
    sampling: Literal["poisson", "subset"]
    sampling_rate: Probability
    noise_multiplier: Positive
    steps: Counted
    delta: Probability
    epsilon: Size | None
    lower: Size | None
    upper: Size | None
    relative_width: Probability | None
    comparison: tuple[ComparisonAccount, ...] = ()
    picture: str | None = None

    @property
    def first_guarantee(self) -> tuple[float, float]:
        """The proven (ε, δ); (∞, 0) without a finite ε."""
        return (math.inf, 0.0) if self.epsilon is None else (self.epsilon, self.delta)

    @property
    def explanation_parts(self) -> Explanation:
        """The parts of the text of ``explain``."""
        return explain_account(
            *self.first_guarantee, numbers.attack_success_rate(self.total_variation), self.neighbors, self.statement
        )

    def explain(self) -> str:
        """Return the guarantee of the run in one plain paragraph; every number is rounded up."""
        return str(self.explanation_parts)


def epsilon_bracket(delta: float, lower: float, upper: float) -> EpsilonBracket:
    """Return the bracket of ε at δ; an end of ∞ means no bound. The largest float, as a lower end, is ∞ rounded down.

    >>> epsilon_bracket(1e-6, 0.75, math.inf).relative_width, epsilon_bracket(1e-6, 0.75, 1.0).relative_width
    (None, 0.25)
    """
    lower = lower if lower < sys.float_info.max else math.inf
    low, high = (end if math.isfinite(end) else None for end in (lower, upper))
    width = None if math.isinf(upper) and lower < upper else _relative_width(lower, upper)
    return EpsilonBracket(delta=delta, epsilon=high, lower=low, upper=high, relative_width=width)


def delta_bracket(epsilon: float, lower: float, upper: float) -> DeltaBracket:
    """Return the bracket of δ at ε."""
    width = _relative_width(lower, upper)
    return DeltaBracket(epsilon=epsilon, delta=upper, lower=lower, upper=upper, relative_width=width)


def read_account(text: str) -> Account:
    """Return the account in a JSON text; raises ``InputError`` with the path of the problem."""
    return ACCOUNTS.parse_json(text, Account)


def read_training_account(text: str) -> TrainingAccount:
    """Return the account of a training run in a JSON text; raises ``InputError`` with the path of the problem."""
    return ACCOUNTS.parse_json(text, TrainingAccount)


def _relative_width(lower: float, upper: float) -> float:
    return 0.0 if lower == upper else (upper - lower) / upper
