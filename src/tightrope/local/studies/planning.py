"""Before anybody is asked: the best mechanism for a question, what it reaches, and what no mechanism can."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tightrope.certificates.guarantee import Guarantee
from tightrope.errors import InputError
from tightrope.local.limits import ball_mean, frequencies, mean
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.studies.capped import of_vectors, options_within
from tightrope.local.studies.comparison import Option, compare
from tightrope.numerics.checks import positive, probability, whole

SCOPE = "(The limit is for people who do not see each other's reports.)"
"""Non-interactive mechanisms: what ``least_people`` and ``least_error`` speak of."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A study: the mechanism, how many people it takes for an error or what error it has, and the proven limits.

    People are drawn from a population, and its shares or its mean are asked for. ``error`` is the root mean squared
    error of one share, averaged over the categories, or of the mean of numbers in [−1, 1], or the length of the error
    of a mean of vectors of length ≤ 1, for the worst population: what the mechanism adds and what drawing people adds.
    With fewer than ``least_people`` no mechanism whatsoever
    reaches it; with ``people`` none has a smaller one than ``least_error``: no mechanism in which people do not
    see each other's reports, though each may run another one (non-interactive).
    """

    question: str
    option: Option
    people: int
    error: float
    least_people: int
    least_error: float

    def __str__(self) -> str:
        return (
            f"{self.option.name}: {self.people:,} people for an error of {self.error:.4g}; "
            f"no mechanism whatsoever can do it with fewer than {self.least_people:,}\n{SCOPE}"
        )


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
    whichever has less variance. Variances are exact, of what is sampled; limits as in ``local.limits`` (non-interactive
    mechanisms). Neighbours: one person's whole value. Raises ``InputError`` unless exactly one of ``people`` and
    ``error`` is given, and for a ``k`` or a ``dimension`` that the question does not have.

    >>> print(plan("mean", epsilon=1.0, error=0.02))
    duchi: 11,707 people for an error of 0.02; no mechanism whatsoever can do it with fewer than 11,033
    (The limit is for people who do not see each other's reports.)
    """
    if (people is None) == (error is None):
        raise InputError("people", people, "either people or error", "the other one follows")
    _check_sizes(question, k, dimension)
    if question == "vector":
        return _vectors(epsilon, whole("dimension", dimension), people, error, total_variation)
    options = _options(question, positive("epsilon", epsilon), k, total_variation)
    option = min((_drawn(one, question, k) for one in options), key=lambda one: (one.variance, one.bits))
    asked, wanted = _sides(option, people, error)
    eta = 1.0 if total_variation is None else total_variation
    privacy = Guarantee(epsilon, 0.0, min(eta, math.tanh(epsilon / 2)))
    limit = mean(privacy, between=(-1.0, 1.0)) if question == "mean" else frequencies(privacy, k=whole("k", k, 2))
    parts = 1 if question == "mean" else whole("k", k, 2)
    least = math.sqrt(limit.risk(asked) / parts)
    return Plan(question, option, asked, wanted, limit.people(parts * wanted**2), least)


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


def _vectors(
    epsilon: float, dimension: int, people: int | None, error: float | None, total_variation: float | None
) -> Plan:
    """The plan for vectors in the unit ball."""
    eta = 1.0 if total_variation is None else _checked_cap(total_variation)
    option = of_vectors(positive("epsilon", epsilon), dimension, total_variation)
    asked, wanted = _sides(option, people, error)
    limit = ball_mean(Guarantee(epsilon, 0.0, min(eta, math.tanh(epsilon / 2))), dimension=dimension)
    return Plan("vector", option, asked, wanted, limit.people(wanted**2), math.sqrt(limit.risk(asked)))


def _options(question: str, epsilon: float, k: int | None, total_variation: float | None) -> list[Option]:
    """All mechanisms that keep both promises."""
    if total_variation is None:
        return compare(question, epsilon=epsilon, k=k)
    return options_within(question, epsilon, _checked_cap(total_variation), k)


def _checked_cap(total_variation: float) -> float:
    eta = probability("total_variation", total_variation)
    if not 0 < eta < 1:
        raise InputError("total_variation", total_variation, "between 0 and 1, both excluded", "leave it out for none")
    return eta


def _drawn(option: Option, question: str, k: int | None) -> Option:
    """With the variance of drawing the person: from a uniform population, or from one around 0.

    These are the worst: Σ r (1 − r) is concave in the rates of reports, and E V(X) + X² is largest at 0 or at an end.
    """
    mechanism = option.mechanism
    if isinstance(mechanism, MeanOracle):
        return replace(option, variance=max(mechanism.variance_at(x) + x * x for x in (-1.0, 0.0, 1.0)))
    size = whole("k", k, 2)
    return replace(option, variance=option.variance + (1 - 1 / size) / size)
