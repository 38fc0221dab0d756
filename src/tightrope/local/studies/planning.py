"""Planning of studies: the best mechanism for a question, its error, and the limit of every mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from tightrope.documents.budget import Guarantee
from tightrope.errors import InputError
from tightrope.local.limits import ball_mean, frequencies, mean
from tightrope.local.limits.limit import Limit
from tightrope.local.mechanisms.bounded_mean import duchi
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.mechanisms.registry import DISTRIBUTION, MEAN, Oracle
from tightrope.local.mechanisms.response import response_with_erasure
from tightrope.local.parts.losses import LocalMechanism
from tightrope.local.vectors import BallMean
from tightrope.local.vectors import ball_mean as capped_ball_mean
from tightrope.numerics.checks import check_integer, check_positive, check_probability
from tightrope.numerics.root_finding import find_crossing

# Which mechanism answers best: compared by the exact variance of what is really sampled.

SMALLEST_ERROR = 1e-100
"""Its square and the square of its inverse are still floats."""


@dataclass(frozen=True, slots=True)
class Option:
    """One mechanism for a question: ``variance`` is one person's, ``bits`` a report's size."""

    name: str
    mechanism: Oracle | BallMean
    variance: float
    bits: int

    def expected_error(self, people: int) -> float:
        """Root mean squared error of the estimate from this many people: √(variance / people)."""
        return math.sqrt(self.variance / check_integer("people", people))

    def people_for_error(self, error: float) -> int:
        """The fewest people for which ``error`` is not exceeded; ``InputError`` unless it is in (1e−100, 1e100)."""
        if not SMALLEST_ERROR < check_positive("error", error) < 1 / SMALLEST_ERROR:
            raise InputError("error", error, "between 1e-100 and 1e100", "values lie in [0, 1] or [-1, 1]")
        return max(1, math.ceil(self.variance / error**2))


def compare(question: str, *, epsilon: float, k: int | None = None) -> list[Option]:
    """All mechanisms for "distribution" (of k categories: mean variance over all of them) or "mean" (of a number in
    [−1, 1]: worst variance), the least variance first, the smaller report first where they are equal.

    Raises ``InputError`` for other questions, a distribution without k or a mean with one, and where a mechanism does.

    >>> [option.name for option in compare("distribution", epsilon=1.0, k=1024)][:2]
    ['subset_selection', 'unary_encoding']
    >>> compare("distribution", epsilon=1.0, k=3)[0].name, compare("mean", epsilon=2.0)[0].name
    ('k_randomized_response', 'hybrid')
    """
    if question == "distribution":
        options = [_of_categories(name, make(epsilon, check_integer("k", k, 2))) for name, make in DISTRIBUTION.items()]
    elif question == "mean":
        if k is not None:
            raise InputError("k", k, "left out for a mean", "k is the number of categories of a distribution")
        options = [_of_number(name, make(epsilon)) for name, make in MEAN.items()]
    else:
        raise InputError("question", question, "'distribution' or 'mean'")
    return sorted(options, key=lambda option: (option.variance, option.bits))


def best(question: str, *, epsilon: float, k: int | None = None, most_bits: int | None = None) -> Option:
    """The first of ``compare`` whose reports have at most ``most_bits``; raises ``InputError`` where none has.

    >>> best("distribution", epsilon=1.0, k=1024, most_bits=16).name
    'hashing'
    """
    options = compare(question, epsilon=epsilon, k=k)
    fitting = [
        option for option in options if most_bits is None or option.bits <= check_integer("most_bits", most_bits)
    ]
    if not fitting:
        fewest = min(option.bits for option in options)
        raise InputError("most_bits", most_bits, f"at least {fewest}", "the smallest report needs so many")
    return fitting[0]


def _of_categories(name: str, mechanism: FrequencyOracle) -> Option:
    return Option(name, mechanism, mechanism.mean_variance, mechanism.report_bits)


def _of_number(name: str, mechanism: MeanOracle) -> Option:
    return Option(name, mechanism, mechanism.worst_variance, mechanism.report_bits)


# Mechanisms under a cap on their total variation: with the largest ε that keeps it, or silent as often as it takes.
#
# η = tanh(ε/2) is the most that an ε-LDP report can have (theory §5); most mechanisms for many categories have far
# less, so the ε that goes with a given η is their own.

SMALLER = 1 - 1e-12
EPSILON_WITHIN = 1e-9
Made = TypeVar("Made", bound=LocalMechanism)


def cap_total_variation(make: Callable[[float], Made], epsilon: float, total_variation: float) -> Made:
    """``make`` of the largest ε' ≤ ε, to 10⁻⁹ of it, whose realized total variation is at most η.

    The cap is kept in any case: the search starts from ε' = 2 artanh η, where every mechanism keeps it, and goes only
    where the mechanism that is made does. Raises what ``make`` raises.

    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> tight = cap_total_variation(lambda epsilon: k_randomized_response(epsilon, 51), 3.0, 0.2)
    >>> round(tight.epsilon, 6), tight.guarantee.total_variation <= 0.2
    (2.621039, True)
    """
    free = make(epsilon)
    if free.guarantee.total_variation <= total_variation:
        return free
    kept = 2 * math.atanh(total_variation) * SMALLER

    def variation_excess(tried: float) -> float:
        return make(tried).guarantee.total_variation - total_variation

    return make(find_crossing(variation_excess, epsilon, kept, side="passes", relative=EPSILON_WITHIN))


def options_within(question: str, epsilon: float, total_variation: float, k: int | None) -> list[Option]:
    """Every mechanism for the question that keeps both bounds; η in (0, 1)."""
    if question == "mean":
        numeric: dict[str, MeanOracle] = {
            name: cap_total_variation(make, epsilon, total_variation) for name, make in MEAN.items()
        }
        numeric["duchi"] = duchi(epsilon, total_variation=total_variation)
        return [Option(name, one, one.worst_variance, one.report_bits) for name, one in numeric.items()]
    size = check_integer("k", k, 2)
    made = {
        name: cap_total_variation(partial(_size_study, name, size), epsilon, total_variation) for name in DISTRIBUTION
    } | {"response_with_erasure": response_with_erasure(epsilon, total_variation, size)}
    return [Option(name, one, one.mean_variance, one.report_bits) for name, one in made.items()]


def of_vectors(epsilon: float, dimension: int, total_variation: float | None) -> Option:
    """``ball_mean`` in the unit ball; by its squared error, including the sampling of people: E|z − mean|² of a
    report z is the square of its length less |mean|². A cap in (0, 1) is kept by a smaller ε.

    >>> option = of_vectors(1.0, 100, None)
    >>> option.name, option.people_for_error(0.1), option.bits
    ('ball_mean', 64566, 69)
    """
    make = partial(capped_ball_mean, dimension=dimension)
    one = make(epsilon) if total_variation is None else cap_total_variation(make, epsilon, total_variation)
    return Option("ball_mean", one, one.worst_squared_error, one.report_bits)


def _size_study(name: str, k: int, epsilon: float) -> FrequencyOracle:
    return DISTRIBUTION[name](epsilon, k)


OPEN_FACTOR = 1.5
"""From this ratio of people on, what lies between the best known mechanism and a limit is reported as open."""
ON_THEIR_OWN = "people who do not see each other's reports (non-interactive limit)"
IN_TURN = "people who may see earlier reports (sequentially interactive limit)"


@dataclass(frozen=True, slots=True)
class LeastRequirement:
    """Limits of all mechanisms: ``people`` for the planned error, ``error`` with the planned people; 0: a guess."""

    people: int
    error: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A study: the mechanism, how many people it takes for an error or what error it has, and the proven limits.

    People are drawn from a population, and its shares or its mean are asked for. ``error`` is the root mean squared
    error of one share, averaged over the categories, or of the mean of numbers in [−1, 1], or the length of the error
    of a mean of vectors of length ≤ 1, for the worst population: what the mechanism adds and what drawing people adds.
    With fewer than ``least_people`` no mechanism whatsoever
    reaches it; with ``people`` none has a smaller one than ``least_error``: no mechanism in which people do not
    see each other's reports, though each may run another one (non-interactive). ``in_turn``: the same for mechanisms in
    which people may see all reports before their own (sequentially interactive). ``guess``: the error of 1/k for every
    share, or of the middle, without any reports.
    """

    question: str
    option: Option
    people: int
    error: float
    least_people: int
    least_error: float
    in_turn: LeastRequirement
    guess: float

    @property
    def guess_suffices(self) -> bool:
        """Return whether a constant guess is as accurate, without participants; both limits are 0 people then."""
        return self.guess <= self.error

    def describe_plan(self, unit: float = 1.0) -> list[str]:
        """The requirements and the limits, a line each; errors times ``unit``."""
        people = f"{self.people:,} {'person' if self.people == 1 else 'people'}"
        taken = f"{self.option.name}: {people} for an error of {self.error * unit:.4g}"
        if self.guess_suffices:
            known = "the same share for every category" if self.question == "distribution" else "the middle"
            guess = f"{known}, without any report, is off by {self.guess * unit:.4g} or less"
            return [taken, f"Nobody need be asked for that: {guess}, whatever the population."]
        return [f"{taken}; no mechanism whatsoever can do it with fewer than", *self._limit_lines()]

    def _limit_lines(self) -> list[str]:
        if self.in_turn.people == self.least_people:
            return [f"  {self._limit_text(self.least_people, IN_TURN)}."]
        alone, in_turn = (
            self._limit_text(self.least_people, ON_THEIR_OWN),
            self._limit_text(self.in_turn.people, IN_TURN),
        )
        return [f"  {alone}, or", f"  {in_turn}."]

    def _limit_text(self, least: int, who: str) -> str:
        open_factor = self.people / least
        left = f": a factor of {open_factor:.2g} is open" if open_factor >= OPEN_FACTOR else ""
        return f"{least:,} {who}{left}"

    def __str__(self) -> str:
        return "\n".join(self.describe_plan())


def plan(
    question: str,
    *,
    epsilon: float,
    people: int | None = None,
    error: float | None = None,
    k: int | None = None,
    dimension: int | None = None,
    total_variation: float | None = None,
) -> Plan:
    """The study with the least variance: give ``people`` or ``error``, the other one follows.

    ``question`` is "distribution" (shares of ``k`` categories), "mean" (of numbers in [−1, 1]) or "vector" (the mean of
    vectors of ``dimension`` coordinates and length ≤ 1, by ``ball_mean``; their radius scales the error). A
    ``total_variation`` is kept by silence (response with erasure, ``duchi``) or by the largest ε that keeps it,
    whichever has less variance. Variances are exact, of what is sampled; limits as in ``local.limits``. Neighbors: one
    person's whole value. Raises ``InputError`` unless exactly one of ``people`` and ``error`` is given, and for a ``k``
    or a ``dimension`` that the question does not have.

    >>> print(plan("mean", epsilon=1.0, error=0.02))
    duchi: 11,707 people for an error of 0.02; no mechanism whatsoever can do it with fewer than
      11,489 people who may see earlier reports (sequentially interactive limit).
    """
    if (people is None) == (error is None):
        raise InputError("people", people, "either people or error", "the other one follows")
    option = choose_mechanism(question, epsilon=epsilon, k=k, dimension=dimension, total_variation=total_variation)
    # People and error, of which one is given.
    if people is None:
        sides_wanted = check_positive("error", error)
        sides = option.people_for_error(sides_wanted), sides_wanted
    else:
        sides_asked = check_integer("people", people)
        sides = sides_asked, option.expected_error(sides_asked)
    asked, wanted = sides
    parts = check_integer("k", k, 2) if question == "distribution" else 1
    alone, in_turn = _people_limits(question, epsilon, k, dimension, total_variation)
    least, later = _least_people(alone, parts, asked, wanted), _least_people(in_turn, parts, asked, wanted)
    guess = math.sqrt(alone.guess_risk / parts)
    return Plan(question, option, asked, wanted, least.people, least.error, later, guess)


def choose_mechanism(
    question: str,
    *,
    epsilon: float,
    k: int | None = None,
    dimension: int | None = None,
    total_variation: float | None = None,
) -> Option:
    """The mechanism with the least variance, including the sampling of people; see ``plan``.

    >>> choose_mechanism("distribution", epsilon=1.0, k=3).name
    'k_randomized_response'
    """
    # Each question has the one size that it needs: one that is ignored would answer another question.
    if question not in ("distribution", "mean", "vector"):
        raise InputError("question", question, "'distribution', 'mean' or 'vector'")
    if k is not None and question != "distribution":
        raise InputError("k", k, f"left out for a {question}", "k is the number of categories of a distribution")
    if dimension is not None and question != "vector":
        raise InputError("dimension", dimension, f"left out for a {question}", "it is for the mean of vectors")
    if total_variation is not None:
        _checked_cap(total_variation)
    if question == "vector":
        return of_vectors(check_positive("epsilon", epsilon), check_integer("dimension", dimension), total_variation)
    # All mechanisms that keep both promises.
    options_epsilon = check_positive("epsilon", epsilon)
    if total_variation is None:
        options = compare(question, epsilon=options_epsilon, k=k)
    else:
        options = options_within(question, options_epsilon, total_variation, k)
    return min((_with_sampling_variance(one, question, k) for one in options), key=lambda one: (one.variance, one.bits))


def _people_limits(
    question: str, epsilon: float, k: int | None, dimension: int | None, total_variation: float | None
) -> tuple[Limit, Limit]:
    """The limits without and with interaction; for a mean they are equal."""
    eta = 1.0 if total_variation is None else total_variation
    privacy = Guarantee(epsilon, 0.0, min(eta, math.tanh(epsilon / 2)))
    if question == "distribution":
        size = check_integer("k", k, 2)
        return frequencies(privacy, k=size), frequencies(privacy, k=size, interactive=True)
    if question == "mean":
        limit: Limit = mean(privacy, bounds=(-1.0, 1.0))
    else:
        limit = ball_mean(privacy, dimension=check_integer("dimension", dimension))
    return limit, limit


def _least_people(limit: Limit, parts: int, asked: int, wanted: float) -> LeastRequirement:
    return LeastRequirement(limit.people(parts * wanted**2), math.sqrt(limit.risk(asked) / parts))


def _checked_cap(total_variation: float) -> None:
    if not 0 < check_probability("total_variation", total_variation) < 1:
        raise InputError("total_variation", total_variation, "between 0 and 1, both excluded", "leave it out for none")


def _with_sampling_variance(option: Option, question: str, k: int | None) -> Option:
    """With the variance of drawing the person: from a uniform population, or from one around 0.

    These are the worst: Σ r (1 − r) is concave in the rates of reports, and E V(X) + X² is largest at 0 or at an end.
    """
    mechanism = option.mechanism
    if isinstance(mechanism, MeanOracle):
        return replace(option, variance=max(mechanism.variance_at(x) + x * x for x in (-1.0, 0.0, 1.0)))
    size = check_integer("k", k, 2)
    return replace(option, variance=option.variance + (1 - 1 / size) / size)
