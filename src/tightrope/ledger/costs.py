"""What noise costs the limits that add up its log moments, computed from its integer weights."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from tightrope.errors import InputError
from tightrope.ledger.limits import Limit
from tightrope.ledger.moments import Moments
from tightrope.ledger.recipe import Recipe
from tightrope.privacy.loss import PrivacyLoss

RECIPES_KEPT = 64
"""Different recipes whose losses and shares are kept at hand: a charge asks twice, a check many times."""


def moment_costs(limits: Iterable[Limit], recipe: str, times: int, audience: str | None) -> dict[str, str | None]:
    """By name, the share that ``times`` such releases are charged; None where no share of the limit holds them.

    Raises ``InputError`` where the noise is not said: nothing else tells its moments.
    """
    asked = [(limit.name, limit.moments) for limit in limits if limit.applies(audience)]
    return {name: _charged(moments, recipe, times) for name, moments in asked if moments is not None}


def holds(moments: Moments, recipe: str, times: int, charged: str) -> bool:
    """Whether what was charged covers the noise, computed again."""
    needed = moments.needed(_loss(recipe, times))
    return needed is not None and needed <= Fraction(charged)


def _charged(moments: Moments, recipe: str, times: int) -> str | None:
    if not recipe:
        raise InputError("recipe", recipe, "the noise as data", "a limit by moments adds up those of the noise")
    share = _share(moments, recipe, times)
    return None if share is None else str(share)


@lru_cache(maxsize=RECIPES_KEPT)
def _share(moments: Moments, recipe: str, times: int) -> Fraction | None:
    return moments.share(_loss(recipe, times))


@lru_cache(maxsize=RECIPES_KEPT)
def _loss(recipe: str, times: int) -> PrivacyLoss:
    return Recipe.read(recipe).releases(times)
