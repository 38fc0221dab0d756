"""Planning of studies: the best mechanism for a question, its error, and the limit of every mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from tightrope.documents.budget import Guarantee
from tightrope.documents.numbers import UP, significant_text, typed_text
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

# Mechanisms for a question, compared by the exact variance of what is sampled.

SMALLEST_ERROR = 1e-100
"""Its square and the square of its inverse are still floats."""


@dataclass(frozen=True, slots=True)
class Option:
    """One mechanism for a question: ``variance`` per person, ``bits`` per report."""

    name: str
    mechanism: Oracle | BallMean
    variance: float
    bits: int

    def expected_error(self, people: int) -> float:
        """Root mean squared error of the estimate from this many people: √(variance / people)."""
        return math.sqrt(self.variance / check_integer("people", people))

    def people_for_error(self, error: float) -> int:
        """Return the fewest people with at most this error; ``InputError`` unless it is in (1e−100, 1e100)."""
        if not SMALLEST_ERROR < check_positive("error", error) < 1 / SMALLEST_ERROR:
            raise InputError("error", error, "between 1e-100 and 1e100", "values lie in [0, 1] or [-1, 1]")
        return max(1, math.ceil(self.variance / error**2))


def compare(question: str, *, epsilon: float, k: int | None = None) -> list[Option]:
    """Return all mechanisms for "distribution" (of k categories: mean variance over all of them) or "mean" (of a number
    in [−1, 1]: worst variance), the least variance first; of equal variances, the smaller report first.

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
            raise InputError.from_text("k", "leave it out for the question 'mean'; it is for 'distribution'")
        options = [_of_number(name, make(epsilon)) for name, make in MEAN.items()]
    else:
        raise InputError("question", question, "'distribution' or 'mean'")
    return sorted(options, key=lambda option: (option.variance, option.bits))


def best(question: str, *, epsilon: float, k: int | None = None, most_bits: int | None = None) -> Option:
    """Return the first of ``compare`` whose reports have at most ``most_bits``; ``InputError`` if all have more.

    >>> best("distribution", epsilon=1.0, k=1024, most_bits=16).name
    'hashing'
    """
    options = compare(question, epsilon=epsilon, k=k)
    fitting = [
        option for option in options if most_bits is None or option.bits <= check_integer("most_bits", most_bits)
    ]
    if not fitting:
        fewest = min(option.bits for option in options)
        raise InputError("most_bits", most_bits, f"at least {fewest}, the size of the smallest report")
    return fitting[0]


def _of_categories(name: str, mechanism: FrequencyOracle) -> Option:
    return Option(name, mechanism, mechanism.mean_variance, mechanism.report_bits)


def _of_number(name: str, mechanism: MeanOracle) -> Option:
    return Option(name, mechanism, mechanism.worst_variance, mechanism.report_bits)


# Mechanisms under a limit on their total variation: with the largest ε that meets it, or with missing answers.
#
# η = tanh(ε/2) is the most that an ε-LDP report can have (theory §5); most mechanisms for many categories have far
# less, so the ε that belongs to a given η differs between mechanisms.

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


GAP_FACTOR = 1.5
"""A ratio of people from this on is stated as the gap between the mechanism and the lower bound."""
NON_INTERACTIVE = "if people do not see each other's reports (non-interactive)"
INTERACTIVE = "if people may see earlier reports (sequentially interactive)"
MECHANISM_TEXTS = {
    "k_randomized_response": "randomized response on k categories",
    "subset_selection": "a random subset of the categories, Ye and Barg 2018",
    "unary_encoding": "one randomized bit per category, Wang et al. 2017",
    "hashing": "local hashing, Wang et al. 2017",
    "hadamard": "Hadamard response, Acharya, Sun and Zhang 2019",
    "response_with_erasure": "randomized response that sometimes gives no answer",
    "duchi": "one randomized bit per person, Duchi, Jordan and Wainwright 2018",
    "piecewise": "piecewise mechanism, Wang et al. 2019",
    "hybrid": "hybrid of one bit and the piecewise mechanism, Wang et al. 2019",
    "ball_mean": "PrivUnit with exact sampling, Bhowmick et al. 2018",
}
"""What the mechanisms are, with their sources."""


@dataclass(frozen=True, slots=True)
class LeastRequirement:
    """Lower bounds for all mechanisms: ``people`` for the planned error, ``error`` with the planned people.

    Both are 0 if a constant guess is as accurate.
    """

    people: int
    error: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A study: the mechanism, the number of people, the error, and lower bounds for every mechanism.

    People are sampled from a population whose proportions or mean are estimated. ``error`` is the root mean squared
    error of one proportion, averaged over the categories, or of the mean of numbers in [−1, 1], or the length of the
    error of a mean of vectors of length ≤ 1, for the worst population. It includes the randomization of the reports and
    the sampling of people. Every mechanism needs at least ``least_people`` for this error, and has at least the error
    ``least_error`` with ``people``, if people do not see each other's reports; each person may run another mechanism
    (non-interactive). ``in_turn`` has the same bounds if people may see all earlier reports (sequentially interactive).
    ``guess`` is the error of 1/k for every proportion, or of the middle, without any reports.
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
        """Return the mechanism with the number of people, and the lower bounds, one per line; errors times ``unit``."""
        people = f"{self.people:,} {'person' if self.people == 1 else 'people'}"
        source = MECHANISM_TEXTS.get(self.option.name)
        mechanism = self.option.name if source is None else f"{self.option.name} ({source})"
        error = f"root mean square error of at most {typed_text(self.error * unit, 4, UP)}"
        lines = [f"{mechanism}:", f"  {people} for a {error}"]
        if self.guess_suffices:
            guess = "the same proportion for every category" if self.question == "distribution" else "the middle"
            accuracy = f"has an error of at most {typed_text(self.guess * unit, 4, UP)} for every population"
            return [*lines, f"No participants are needed: a constant guess, {guess}, {accuracy}."]
        return [*lines, "Lower bounds for every mechanism with this privacy:", *self._limit_lines()]

    def _limit_lines(self) -> list[str]:
        if self.in_turn.people == self.least_people:
            return [self._limit_text(self.least_people, INTERACTIVE)]
        return [
            self._limit_text(self.least_people, NON_INTERACTIVE),
            self._limit_text(self.in_turn.people, INTERACTIVE),
        ]

    def _limit_text(self, least: int, condition: str) -> str:
        factor = self.people / least
        gap = f"; gap: factor {significant_text(factor, 2, UP)}" if factor >= GAP_FACTOR else ""
        people = f"{least:,} {'person' if least == 1 else 'people'}"
        return f"  {people} {condition}{gap}"

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
    """Return the study with the least variance for the given ``people`` or ``error``; the other one is computed.

    ``question`` is "distribution" (proportions of ``k`` categories), "mean" (of numbers in [−1, 1]) or "vector" (the
    mean of vectors of ``dimension`` coordinates and length ≤ 1, by ``ball_mean``; their radius scales the error). A
    ``total_variation`` is met by missing answers (response with erasure, ``duchi``) or by the largest ε that meets it,
    whichever has less variance. Variances are exact, of what is sampled; lower bounds as in ``local.limits``.
    Neighbors: one person's whole value. Raises ``InputError`` unless exactly one of ``people`` and ``error`` is given,
    and for a ``k`` or a ``dimension`` that the question does not have.

    >>> print(plan("mean", epsilon=1.0, error=0.02))
    duchi (one randomized bit per person, Duchi, Jordan and Wainwright 2018):
      11,707 people for a root mean square error of at most 0.02
    Lower bounds for every mechanism with this privacy:
      11,489 people if people may see earlier reports (sequentially interactive)
    """
    option = choose_mechanism(question, epsilon=epsilon, k=k, dimension=dimension, total_variation=total_variation)
    if (people is None) == (error is None):
        given = "neither is given" if people is None else "both are given"
        raise InputError.from_text("people, error", f"{given}; give exactly one, the other one is computed")
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
    """Return the mechanism with the least variance, including the sampling of people; see ``plan``.

    >>> choose_mechanism("distribution", epsilon=1.0, k=3).name
    'k_randomized_response'
    """
    # Sizes of other questions are refused instead of ignored.
    if question not in ("distribution", "mean", "vector"):
        raise InputError("question", question, "'distribution', 'mean' or 'vector'")
    if k is not None and question != "distribution":
        raise InputError.from_text("k", f"leave it out for the question '{question}'; it is for 'distribution'")
    if dimension is not None and question != "vector":
        raise InputError.from_text("dimension", f"leave it out for the question '{question}'; it is for 'vector'")
    if k is None and question == "distribution":
        raise InputError.from_text("k", "is missing: the number of categories, for example 16")
    if dimension is None and question == "vector":
        raise InputError.from_text("dimension", "is missing: the number of coordinates, for example 100")
    if total_variation is not None:
        _checked_cap(total_variation)
    if question == "vector":
        return of_vectors(check_positive("epsilon", epsilon), check_integer("dimension", dimension), total_variation)
    # All mechanisms that meet both limits.
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
