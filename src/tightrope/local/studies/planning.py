"""Planning of studies: the best mechanism for a question, its error, and the limit of every mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from tightrope.display import Displayed, Rounded, Shown, Summary
from tightrope.documents.budget import Guarantee
from tightrope.documents.numbers import UP, significant_text, terminal_text
from tightrope.errors import InputError
from tightrope.local.limits import ball_mean, frequencies, mean
from tightrope.local.limits.limit import Limit
from tightrope.local.mechanisms.bounded_mean import duchi, hybrid, piecewise
from tightrope.local.mechanisms.local_hashing import hashing
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.mechanisms.response import k_randomized_response, response_with_erasure
from tightrope.local.mechanisms.subset import hadamard, subset_selection
from tightrope.local.mechanisms.unary import unary_encoding
from tightrope.local.parts.losses import LocalMechanism
from tightrope.local.vectors import BallMean
from tightrope.local.vectors import ball_mean as capped_ball_mean
from tightrope.numerics.checks import check_integer, check_positive, check_probability
from tightrope.numerics.root_finding import find_crossing

# The registry of the mechanisms that studies, plans and comparisons use, by the question that they answer.

Oracle = FrequencyOracle | MeanOracle
MakeFrequencies = Callable[[float, int], FrequencyOracle]
"""From ε and the number k of categories."""
MakeMean = Callable[..., MeanOracle]
"""From ε and, by keyword, ``bounds``."""

DISTRIBUTION: dict[str, MakeFrequencies] = {
    "k_randomized_response": k_randomized_response,
    "subset_selection": subset_selection,
    "unary_encoding": unary_encoding,
    "hashing": hashing,
    "hadamard": hadamard,
}
MEAN: dict[str, MakeMean] = {"duchi": duchi, "piecewise": piecewise, "hybrid": hybrid}


def register_distribution(name: str, make: MakeFrequencies) -> None:
    """Register ``make(epsilon, k)`` under ``name`` for studies, plans and comparisons of shares, in this process.

    The mechanism that it returns must be ε-LDP for every ε > 0; smaller values are used to meet a limit on the total
    variation. Register it too where the reports are read. Raises ``InputError`` if the name is in use.

    >>> register_distribution("hashing", hashing)
    Traceback (most recent call last):
    ...
    tightrope.errors.InputError: expected name to be a new name, got name='hashing'; every mechanism has one of its own
    """
    DISTRIBUTION[_check_new_name(name)] = make


def register_mean(name: str, make: MakeMean) -> None:
    """Register ``make(epsilon)`` for means of numbers in [−1, 1]; it also accepts ``bounds=(lower, upper)``.

    Otherwise as ``register_distribution``.
    """
    MEAN[_check_new_name(name)] = make


def _check_new_name(name: str) -> str:
    if name in {*DISTRIBUTION, *MEAN, "best", "response_with_erasure"}:
        raise InputError("name", name, "a new name", "every mechanism has one of its own")
    return name


# Plans and comparisons.

SMALLEST_ERROR = 1e-100
"""Its square and the square of its inverse are still floats."""


@dataclass(frozen=True, slots=True, repr=False)
class Option(Displayed):
    """One mechanism for a question: ``variance`` per person, ``bits`` per report."""

    name: str
    mechanism: Oracle | BallMean
    variance: float
    bits: int

    def text_summary(self) -> Summary:
        """Return the mechanism's variance and the size of its reports."""
        facts: list[tuple[str, Shown]] = [
            ("variance for one person", Rounded(self.variance, "up")),
            ("bits of a report", self.bits),
        ]
        return Summary(self.name, facts)

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
        options = []
        for name, make_frequencies in DISTRIBUTION.items():
            oracle = make_frequencies(epsilon, check_integer("k", k, 2))
            options.append(Option(name, oracle, oracle.mean_variance, oracle.report_bits))
    elif question == "mean":
        if k is not None:
            raise InputError.from_text("k", "leave it out for the question 'mean'; it is for 'distribution'")
        means = {name: make_mean(epsilon) for name, make_mean in MEAN.items()}
        options = [Option(name, oracle, oracle.worst_variance, oracle.report_bits) for name, oracle in means.items()]
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


# Mechanisms under a limit on their total variation: with the largest ε that meets it, or with missing answers.
#
# η = tanh(ε/2) is the most that an ε-LDP report can have (theory §5); most mechanisms for many categories have far
# less, so the ε that belongs to a given η differs between mechanisms.

EPSILON_ROUNDING = 1 - 1e-12
EPSILON_TOLERANCE = 1e-9
AnyLocalMechanism = TypeVar("AnyLocalMechanism", bound=LocalMechanism)


def cap_total_variation(
    make: Callable[[float], AnyLocalMechanism], epsilon: float, total_variation: float
) -> AnyLocalMechanism:
    """Return ``make`` of the largest ε' ≤ ε, to 10⁻⁹ of it, whose realized total variation is at most η.

    The result always meets the limit: the search starts from ε' = 2 artanh η, where every mechanism meets it, and ends
    at an ε' whose mechanism was checked. Raises what ``make`` raises.

    >>> from tightrope.local.mechanisms.response import k_randomized_response
    >>> tight = cap_total_variation(lambda epsilon: k_randomized_response(epsilon, 51), 3.0, 0.2)
    >>> round(tight.epsilon, 6), tight.guarantee.total_variation <= 0.2
    (2.621039, True)
    """
    uncapped = make(epsilon)
    if uncapped.guarantee.total_variation <= total_variation:
        return uncapped
    smallest = 2 * math.atanh(total_variation) * EPSILON_ROUNDING

    def variation_excess(candidate: float) -> float:
        return make(candidate).guarantee.total_variation - total_variation

    return make(find_crossing(variation_excess, epsilon, smallest, side="passes", relative=EPSILON_TOLERANCE))


def options_within(question: str, epsilon: float, total_variation: float, k: int | None) -> list[Option]:
    """Return every mechanism for the question that meets both limits; η in (0, 1)."""
    if question == "mean":
        numeric: dict[str, MeanOracle] = {
            name: cap_total_variation(make, epsilon, total_variation) for name, make in MEAN.items()
        }
        numeric["duchi"] = duchi(epsilon, total_variation=total_variation)
        return [Option(name, oracle, oracle.worst_variance, oracle.report_bits) for name, oracle in numeric.items()]
    size = check_integer("k", k, 2)
    oracles = {
        name: cap_total_variation(partial(_make_for_categories, name, size), epsilon, total_variation)
        for name in DISTRIBUTION
    } | {"response_with_erasure": response_with_erasure(epsilon, total_variation, size)}
    return [Option(name, oracle, oracle.mean_variance, oracle.report_bits) for name, oracle in oracles.items()]


def vector_option(epsilon: float, dimension: int, total_variation: float | None) -> Option:
    """Return ``ball_mean`` in the unit ball, with its squared error including the sampling of people.

    E|z − mean|² of a report z is the square of its length less |mean|². A limit in (0, 1) on the total variation is met
    by a smaller ε.

    >>> option = vector_option(1.0, 100, None)
    >>> option.name, option.people_for_error(0.1), option.bits
    ('ball_mean', 64566, 69)
    """
    make = partial(capped_ball_mean, dimension=dimension)
    ball = make(epsilon) if total_variation is None else cap_total_variation(make, epsilon, total_variation)
    return Option("ball_mean", ball, ball.worst_squared_error, ball.report_bits)


def _make_for_categories(name: str, k: int, epsilon: float) -> FrequencyOracle:
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
    "duchi": "the Duchi-Jordan-Wainwright mechanism of 2018, one randomized bit per person",
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


@dataclass(frozen=True, slots=True, repr=False)
class Plan(Displayed):
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

    def text_summary(self) -> Summary:
        """Return the mechanism, the people, the error, and the lower bounds for every mechanism."""
        facts: list[tuple[str, Shown]] = [
            ("mechanism", self.option.name),
            ("people", self.people),
            ("root mean square error, at most", Rounded(self.error, "up")),
            ("people that every mechanism needs", self.least_people),
            ("the same if people may see earlier reports", self.in_turn.people),
            ("bits of a report", self.option.bits),
        ]
        return Summary(f"a study of the question {self.question!r}", facts)

    def describe_plan(self, unit: float = 1.0) -> list[str]:
        """Return the mechanism with the number of people, and the lower bounds, one per line; errors times ``unit``."""
        people = f"{self.people:,} {'person' if self.people == 1 else 'people'}"
        source = MECHANISM_TEXTS.get(self.option.name)
        mechanism = self.option.name if source is None else f"{self.option.name} ({source})"
        error = terminal_text(self.error * unit, 4, UP)
        lines = [f"{mechanism}:", f"  with {people}, the root mean square error is at most {error}"]
        if self.guess_suffices:
            guess = "the same proportion for every category" if self.question == "distribution" else "the middle"
            accuracy = f"has an error of at most {terminal_text(self.guess * unit, 4, UP)} for every population"
            return [*lines, f"No participants are needed: a constant guess, {guess}, {accuracy}."]
        return [*lines, "Lower bounds that hold for every mechanism with this guarantee:", *self._limit_lines()]

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
    duchi (the Duchi-Jordan-Wainwright mechanism of 2018, one randomized bit per person):
      with 11,707 people, the root mean square error is at most 0.02
    Lower bounds that hold for every mechanism with this guarantee:
      11,489 people if people may see earlier reports (sequentially interactive)
    """
    option = choose_mechanism(question, epsilon=epsilon, k=k, dimension=dimension, total_variation=total_variation)
    if (people is None) == (error is None):
        given = "neither is given" if people is None else "both are given"
        raise InputError.from_text("people, error", f"{given}; give exactly one; the other is computed")
    if people is None:
        planned_error = check_positive("error", error)
        planned_people = option.people_for_error(planned_error)
    else:
        planned_people = check_integer("people", people)
        planned_error = option.expected_error(planned_people)
    parts = check_integer("k", k, 2) if question == "distribution" else 1
    limit, interactive_limit = _people_limits(question, epsilon, k, dimension, total_variation)
    least = _least_requirement(limit, parts, planned_people, planned_error)
    in_turn = _least_requirement(interactive_limit, parts, planned_people, planned_error)
    guess = math.sqrt(limit.guess_risk / parts)
    return Plan(question, option, planned_people, planned_error, least.people, least.error, in_turn, guess)


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
    for name, size, sized_question, meaning in (
        ("k", k, "distribution", "the number of categories, for example 16"),
        ("dimension", dimension, "vector", "the number of coordinates, for example 100"),
    ):
        if size is not None and question != sized_question:
            text = f"leave it out for the question '{question}'; it is for '{sized_question}'"
            raise InputError.from_text(name, text)
        if size is None and question == sized_question:
            raise InputError.from_text(name, f"is missing: {meaning}")
    if total_variation is not None and not 0 < check_probability("total_variation", total_variation) < 1:
        raise InputError("total_variation", total_variation, "between 0 and 1, both excluded", "leave it out for none")
    if question == "vector":
        return vector_option(check_positive("epsilon", epsilon), check_integer("dimension", dimension), total_variation)
    # All mechanisms that meet both limits.
    options_epsilon = check_positive("epsilon", epsilon)
    if total_variation is None:
        options = compare(question, epsilon=options_epsilon, k=k)
    else:
        options = options_within(question, options_epsilon, total_variation, k)
    with_sampling = (_add_sampling_variance(option, k) for option in options)
    return min(with_sampling, key=lambda option: (option.variance, option.bits))


def _people_limits(
    question: str, epsilon: float, k: int | None, dimension: int | None, total_variation: float | None
) -> tuple[Limit, Limit]:
    """Return the limits without and with interaction; for means they are equal."""
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


def _least_requirement(limit: Limit, parts: int, people: int, error: float) -> LeastRequirement:
    return LeastRequirement(limit.people(parts * error**2), math.sqrt(limit.risk(people) / parts))


def _add_sampling_variance(option: Option, k: int | None) -> Option:
    """Return the option with the variance of sampling the person too, for the worst population.

    This is the uniform one for categories, since Σ r (1 − r) is concave in the rates of reports. For numbers, V(x) + x²
    is largest at 0 or at an end.
    """
    mechanism = option.mechanism
    if isinstance(mechanism, MeanOracle):
        return replace(option, variance=max(mechanism.variance_at(x) + x * x for x in (-1.0, 0.0, 1.0)))
    size = check_integer("k", k, 2)
    return replace(option, variance=option.variance + (1 - 1 / size) / size)
