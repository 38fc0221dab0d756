"""Before anybody is asked: the best mechanism for a question, what it reaches, and what no mechanism can."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tightrope.certificates.guarantee import Guarantee
from tightrope.errors import InputError
from tightrope.local.limits import ball_mean, frequencies, mean
from tightrope.local.limits.limit import Limit
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.studies.capped import of_vectors, options_within
from tightrope.local.studies.comparison import Option, compare
from tightrope.numerics.checks import positive, probability, whole

OPEN_FACTOR = 1.5
"""From this ratio of people on, what lies between the best known mechanism and a limit is said to be open."""
ON_THEIR_OWN = "people who do not see each other's reports (non-interactive limit)"
IN_TURN = "people who may see earlier reports (sequentially interactive limit)"


@dataclass(frozen=True, slots=True)
class Least:
    """What no mechanism can: ``people`` for the planned error, ``error`` with the planned people; 0 people: a guess."""

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
    share, or of the middle, without asking anybody.
    """

    question: str
    option: Option
    people: int
    error: float
    least_people: int
    least_error: float
    in_turn: Least
    guess: float

    @property
    def needless(self) -> bool:
        """Whether a guess is as good, so that nobody need be asked; both limits are 0 people then."""
        return self.guess <= self.error

    def words(self, unit: float = 1.0) -> list[str]:
        """What it takes and what no mechanism can, a line each; errors times ``unit``."""
        people = f"{self.people:,} {'person' if self.people == 1 else 'people'}"
        taken = f"{self.option.name}: {people} for an error of {self.error * unit:.4g}"
        if self.needless:
            known = "the same share for every category" if self.question == "distribution" else "the middle"
            guess = f"{known}, without any report, is off by {self.guess * unit:.4g} or less"
            return [taken, f"Nobody need be asked for that: {guess}, whatever the population."]
        return [f"{taken}; no mechanism whatsoever can do it with fewer than", *self._limits()]

    def _limits(self) -> list[str]:
        if self.in_turn.people == self.least_people:
            return [f"  {self._limit(self.least_people, IN_TURN)}."]
        alone, in_turn = self._limit(self.least_people, ON_THEIR_OWN), self._limit(self.in_turn.people, IN_TURN)
        return [f"  {alone}, or", f"  {in_turn}."]

    def _limit(self, least: int, who: str) -> str:
        open_factor = self.people / least
        left = f": a factor of {open_factor:.2g} is open" if open_factor >= OPEN_FACTOR else ""
        return f"{least:,} {who}{left}"

    def __str__(self) -> str:
        return "\n".join(self.words())


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
    whichever has less variance. Variances are exact, of what is sampled; limits as in ``local.limits``. Neighbours: one
    person's whole value. Raises ``InputError`` unless exactly one of ``people`` and ``error`` is given, and for a ``k``
    or a ``dimension`` that the question does not have.

    >>> print(plan("mean", epsilon=1.0, error=0.02))
    duchi: 11,707 people for an error of 0.02; no mechanism whatsoever can do it with fewer than
      11,489 people who may see earlier reports (sequentially interactive limit).
    """
    if (people is None) == (error is None):
        raise InputError("people", people, "either people or error", "the other one follows")
    option = chosen(question, epsilon=epsilon, k=k, dimension=dimension, total_variation=total_variation)
    asked, wanted = _sides(option, people, error)
    parts = whole("k", k, 2) if question == "distribution" else 1
    alone, in_turn = _limits(question, epsilon, k, dimension, total_variation)
    least, later = _least(alone, parts, asked, wanted), _least(in_turn, parts, asked, wanted)
    guess = math.sqrt(alone.guess / parts)
    return Plan(question, option, asked, wanted, least.people, least.error, later, guess)


def chosen(
    question: str,
    *,
    epsilon: float,
    k: int | None = None,
    dimension: int | None = None,
    total_variation: float | None = None,
) -> Option:
    """The mechanism with the least variance, that of drawing people included; see ``plan``.

    >>> chosen("distribution", epsilon=1.0, k=3).name
    'k_randomized_response'
    """
    _check_sizes(question, k, dimension)
    if total_variation is not None:
        _checked_cap(total_variation)
    if question == "vector":
        return of_vectors(positive("epsilon", epsilon), whole("dimension", dimension), total_variation)
    options = _options(question, positive("epsilon", epsilon), k, total_variation)
    return min((_drawn(one, question, k) for one in options), key=lambda one: (one.variance, one.bits))


def _check_sizes(question: str, k: int | None, dimension: int | None) -> None:
    """Each question has the one size that it needs: one that is ignored would answer another question."""
    if question not in ("distribution", "mean", "vector"):
        raise InputError("question", question, "'distribution', 'mean' or 'vector'")
    if k is not None and question != "distribution":
        raise InputError("k", k, f"left out for a {question}", "k is the number of categories of a distribution")
    if dimension is not None and question != "vector":
        raise InputError("dimension", dimension, f"left out for a {question}", "it is for the mean of vectors")


def _sides(option: Option, people: int | None, error: float | None) -> tuple[int, float]:
    """People and error, of which one is given."""
    if people is None:
        wanted = positive("error", error)
        return option.people(wanted), wanted
    asked = whole("people", people)
    return asked, option.error(asked)


def _limits(
    question: str, epsilon: float, k: int | None, dimension: int | None, total_variation: float | None
) -> tuple[Limit, Limit]:
    """For people on their own, and in turn. That of a mean is both."""
    eta = 1.0 if total_variation is None else total_variation
    privacy = Guarantee(epsilon, 0.0, min(eta, math.tanh(epsilon / 2)))
    if question == "distribution":
        size = whole("k", k, 2)
        return frequencies(privacy, k=size), frequencies(privacy, k=size, interactive=True)
    if question == "mean":
        limit: Limit = mean(privacy, between=(-1.0, 1.0))
    else:
        limit = ball_mean(privacy, dimension=whole("dimension", dimension))
    return limit, limit


def _least(limit: Limit, parts: int, asked: int, wanted: float) -> Least:
    return Least(limit.people(parts * wanted**2), math.sqrt(limit.risk(asked) / parts))


def _options(question: str, epsilon: float, k: int | None, total_variation: float | None) -> list[Option]:
    """All mechanisms that keep both promises."""
    if total_variation is None:
        return compare(question, epsilon=epsilon, k=k)
    return options_within(question, epsilon, total_variation, k)


def _checked_cap(total_variation: float) -> None:
    if not 0 < probability("total_variation", total_variation) < 1:
        raise InputError("total_variation", total_variation, "between 0 and 1, both excluded", "leave it out for none")


def _drawn(option: Option, question: str, k: int | None) -> Option:
    """With the variance of drawing the person: from a uniform population, or from one around 0.

    These are the worst: Σ r (1 − r) is concave in the rates of reports, and E V(X) + X² is largest at 0 or at an end.
    """
    mechanism = option.mechanism
    if isinstance(mechanism, MeanOracle):
        return replace(option, variance=max(mechanism.variance_at(x) + x * x for x in (-1.0, 0.0, 1.0)))
    size = whole("k", k, 2)
    return replace(option, variance=option.variance + (1 - 1 / size) / size)
