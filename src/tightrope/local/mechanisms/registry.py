"""Registry of the mechanisms that studies, plans and comparisons use, by the question that they answer."""

from __future__ import annotations

from collections.abc import Callable

from tightrope.errors import InputError
from tightrope.local.mechanisms.bounded_mean import duchi, hybrid, piecewise
from tightrope.local.mechanisms.local_hashing import hashing
from tightrope.local.mechanisms.means import MeanOracle
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.mechanisms.response import k_randomized_response
from tightrope.local.mechanisms.subset import hadamard, subset_selection
from tightrope.local.mechanisms.unary import unary_encoding

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
