"""The families that are offered, in the order in which they are shown; further ones are registered."""

from __future__ import annotations

from tightrope.errors import InputError
from tightrope.mechanisms.families.exponential_power import ExponentialPower
from tightrope.mechanisms.families.family import Family
from tightrope.mechanisms.families.gaussian import Gaussian
from tightrope.mechanisms.families.laplace import Laplace
from tightrope.mechanisms.families.rounded_gaussian import RoundedGaussian
from tightrope.mechanisms.families.staircase import Staircase
from tightrope.mechanisms.families.truncated_laplace import TruncatedLaplace

_OFFERED: dict[str, Family] = {
    family.name: family
    for family in (
        TruncatedLaplace(),
        Laplace(),
        Staircase(),
        ExponentialPower(),
        Gaussian(),
        RoundedGaussian(),
    )
}


def offered() -> tuple[Family, ...]:
    """All families that plans, comparisons and searches go through."""
    return tuple(_OFFERED.values())


def register(family: Family) -> None:
    """Offers a further family from now on; raises ``InputError`` for what is none, and for a name that is taken."""
    if not isinstance(family, Family):
        raise InputError("family", family, "a Family", "derive it from mechanisms.families.family.Family")
    if family.name in _OFFERED:
        raise InputError("family", family.name, "a new name", f"taken are {', '.join(_OFFERED)}")
    _OFFERED[family.name] = family
