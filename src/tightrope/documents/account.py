"""What ``tightrope account`` and ``tightrope dpsgd`` find: brackets that hold the truth, and what an attacker gains."""

from __future__ import annotations

import math
import sys
from typing import Literal

from tightrope.documents import numbers
from tightrope.documents.document import Counted, Finite, Part, Positive, Probability, Size
from tightrope.documents.reader import Reader
from tightrope.documents.steps import Step
from tightrope.documents.wording import Explained, of_account

ACCOUNTS = Reader("account", "take the file as tightrope wrote it, or account again")


class EpsilonBracket(Part, frozen=True, kw_only=True):
    """The truth lies in [lower, upper]; ``epsilon`` = upper is safe to state. None: no bound.

    ``relative_width`` is (upper − lower)/upper, 0 where both ends are equal and None where only the lower is a number.
    """

    delta: Probability
    epsilon: Size | None
    lower: Size | None
    upper: Size | None
    relative_width: Probability | None


class DeltaBracket(Part, frozen=True, kw_only=True):
    """The truth lies in [lower, upper]; ``delta`` = upper is safe to state."""

    epsilon: Finite
    delta: Probability
    lower: Probability
    upper: Probability
    relative_width: Probability


class Attack(Part, frozen=True, kw_only=True):
    """What the best attacker finds, at most, at a share of false alarms."""

    false_positive_rate: Probability
    true_positive_rate: Probability


class Gained(Part, frozen=True, kw_only=True):
    """What an attacker gains at most, between which neighbours, by which engine and under which conditions."""

    total_variation: Probability
    attack_success: Probability
    attack: tuple[Attack, ...]
    neighbours: Literal["unspecified", "add-remove", "replace-one", "local"]
    engine: str
    statement: str


class Account(Gained, frozen=True, kw_only=True):
    """What the steps of a file add up to."""

    document: Literal["account"]
    version: Literal[1]
    steps: tuple[Step, ...]
    epsilon_at_delta: tuple[EpsilonBracket, ...]
    delta_at_epsilon: tuple[DeltaBracket, ...]

    @property
    def first_guarantee(self) -> tuple[float, float]:
        """The first (ε, δ) that is proven; (∞, 0) where none is."""
        found = [(row.epsilon, row.delta) for row in self.epsilon_at_delta if row.epsilon is not None]
        found += [(row.epsilon, row.delta) for row in self.delta_at_epsilon if row.epsilon >= 0]
        return found[0] if found else (math.inf, 0.0)

    @property
    def explained(self) -> Explained:
        """``explain`` in its parts."""
        return of_account(*self.first_guarantee, numbers.success(self.total_variation), self.neighbours, self.statement)

    def explain(self) -> str:
        """What all steps together promise, in one paragraph for everybody; every number is rounded up."""
        return str(self.explained)


class Way(Part, frozen=True, kw_only=True):
    """The same steps accounted for in another way; ``statement`` says whether it is a bound. None: it proves none."""

    name: str
    statement: str
    epsilon: Size | None
    total_variation: Probability


class TrainingAccount(Gained, frozen=True, kw_only=True, omit_defaults=True):
    """What a training run costs, in a bracket of ε at δ as ``EpsilonBracket`` says.

    ``comparison`` and ``picture`` are left out where nobody asked for them.
    """

    document: Literal["training account"]
    version: Literal[1]
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
    comparison: tuple[Way, ...] = ()
    picture: str | None = None

    @property
    def first_guarantee(self) -> tuple[float, float]:
        """(ε, δ) as proven; (∞, 0) where no ε is."""
        return (math.inf, 0.0) if self.epsilon is None else (self.epsilon, self.delta)

    @property
    def explained(self) -> Explained:
        """``explain`` in its parts."""
        return of_account(*self.first_guarantee, numbers.success(self.total_variation), self.neighbours, self.statement)

    def explain(self) -> str:
        """What the run promises, in one paragraph for everybody; every number is rounded up."""
        return str(self.explained)


def epsilon_bracket(delta: float, lower: float, upper: float) -> EpsilonBracket:
    """The bracket of ε at δ; ∞ for no bound. A lower end that is the largest float is ∞, rounded down.

    >>> epsilon_bracket(1e-6, 0.75, math.inf).relative_width, epsilon_bracket(1e-6, 0.75, 1.0).relative_width
    (None, 0.25)
    """
    lower = lower if lower < sys.float_info.max else math.inf
    low, high = (end if math.isfinite(end) else None for end in (lower, upper))
    width = None if math.isinf(upper) and lower < upper else _relative_width(lower, upper)
    return EpsilonBracket(delta=delta, epsilon=high, lower=low, upper=high, relative_width=width)


def delta_bracket(epsilon: float, lower: float, upper: float) -> DeltaBracket:
    """The bracket of δ at ε."""
    width = _relative_width(lower, upper)
    return DeltaBracket(epsilon=epsilon, delta=upper, lower=lower, upper=upper, relative_width=width)


def read_account(text: str) -> Account:
    """The account in a JSON text; raises ``InputError`` that names the place of what is wrong."""
    return ACCOUNTS.json(text, Account)


def read_training_account(text: str) -> TrainingAccount:
    """The account of a training run in a JSON text; raises ``InputError`` that names the place of what is wrong."""
    return ACCOUNTS.json(text, TrainingAccount)


def _relative_width(lower: float, upper: float) -> float:
    return 0.0 if lower == upper else (upper - lower) / upper
