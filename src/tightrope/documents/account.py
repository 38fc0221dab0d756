"""Results of ``tightrope account`` and ``tightrope dpsgd``: brackets around the exact value, and attacker bounds."""

from __future__ import annotations

import math
import sys
from typing import Any, Literal

from tightrope.documents import numbers
from tightrope.documents.document import Counted, Finite, Part, Positive, Probability, Size
from tightrope.documents.reader import Reader, rename_document_keys
from tightrope.documents.steps import Step
from tightrope.documents.wording import Explanation, explain_account


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
