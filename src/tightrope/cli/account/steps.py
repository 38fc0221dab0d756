"""A steps file: what is composed, as TOML that is checked key by key."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, PlanError, listed, nearest
from tightrope.privacy import PrivacyLoss
from tightrope.release.documents.toml_file import Section, Typed, placed, read_toml

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "gaussian": ("scale", "sensitivity"),
    "laplace": ("scale", "sensitivity"),
    "staircase": ("epsilon", "sensitivity", "gamma"),
    "truncated_laplace": ("epsilon", "delta", "sensitivity"),
    "discrete_gaussian": ("scale", "sensitivity"),
    "discrete_laplace": ("scale", "sensitivity"),
    "discrete_staircase": ("epsilon", "sensitivity", "gamma"),
    "discrete_truncated_laplace": ("epsilon", "delta", "sensitivity"),
    "randomized_response": ("epsilon", "k"),
    "approx_dp": ("epsilon", "delta", "total_variation"),
    "from_points": ("points",),
    "from_pair": ("p", "q"),
}
"""Every mechanism of ``tightrope`` that a step may name, with its parameters."""
OPTIONAL = ("sensitivity", "gamma", "k", "total_variation")
COMMON = ("mechanism", "count", "poisson_rate", "subset", "erase")
STEPS_EXAMPLE = 'write one like: [[step]] mechanism = "gaussian" scale = 20 count = 100 (one line each)'


@dataclass(frozen=True, slots=True)
class Step:
    """``count`` runs of one mechanism, each on a sample of the records and then erased, where that is asked."""

    mechanism: str
    parameters: Mapping[str, Any]
    count: int
    poisson_rate: float | None
    subset: tuple[Any, Any] | None
    erase: float | None

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of all runs, with **parameters fixed in advance**."""
        make: Callable[..., Any] = getattr(importlib.import_module("tightrope"), self.mechanism)
        once: PrivacyLoss = make(**self.parameters).loss
        if self.poisson_rate is not None:
            once = once.poisson_sample(self.poisson_rate)
        if self.subset is not None:
            once = once.subset_sample(*self.subset)
        return self.count * (once if self.erase is None else once.erase(self.erase))

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "mechanism": self.mechanism, "parameters": dict(self.parameters), "count": self.count,
            "poisson_rate": self.poisson_rate, "subset": None if self.subset is None else list(self.subset),
            "erase": self.erase,
        }  # fmt: skip


def read_steps(path: str | Path) -> tuple[Step, ...]:
    """The steps of a file; ``PlanError`` for anything that is not one."""
    top = Section.of("the steps file", read_toml(Path(path), STEPS_EXAMPLE), ("step",))
    steps = top.entries.get("step")
    if not isinstance(steps, list) or not steps:
        raise PlanError("step", steps, "one [[step]] or more", "write [[step]] with double brackets")
    return tuple(_step(f"step {number}", entry) for number, entry in enumerate(steps, start=1))


def composed(steps: Sequence[Step]) -> PrivacyLoss:
    """The loss of all steps together; errors say which step they come from."""
    return reduce(add, [_loss(f"step {number}", step) for number, step in enumerate(steps, start=1)])


def _step(place: str, entry: object) -> Step:

    every = tuple(dict.fromkeys(name for names in PARAMETERS.values() for name in names))
    own = Section.of(place, entry, (*COMMON, *every))
    known = tuple(PARAMETERS)
    name = own.needed("mechanism", f"one of {listed(known)}", 'say mechanism = "gaussian"')
    if name not in PARAMETERS:
        raise PlanError(f"{place} mechanism", name, f"one of {listed(known)}", nearest(name, known))
    Section.of(f"{place}, {name},", entry, (*COMMON, *PARAMETERS[name]))
    given = {key: _plain(value) for key, value in own.entries.items() if key not in COMMON}
    for needed in PARAMETERS[name]:
        if needed not in given and needed not in (*OPTIONAL, *(("delta",) if name == "approx_dp" else ())):
            raise PlanError(f"{place} {needed}", None, f"a number: {name} needs it", f"say {needed} = ...")
    rate, erase = (_plain(own.entries.get(key)) for key in ("poisson_rate", "erase"))
    return Step(name, given, own.whole("count") or 1, rate, _subset(own), erase)


def _subset(step: Section) -> tuple[Any, Any] | None:
    """How many records of how many; ``PrivacyLoss.subset_sample`` checks the numbers."""
    pair = _plain(step.entries.get("subset"))
    if pair is None:
        return None
    if not isinstance(pair, list) or len(pair) != 2:
        raise PlanError(f"{step.place} subset", pair, "two whole numbers", "say subset = [256, 60000]: 256 of 60000")
    if "poisson_rate" in step.entries:
        raise PlanError(f"{step.place} subset", pair, "the only way to sample", "leave out subset or poisson_rate")
    return pair[0], pair[1]


def _loss(place: str, step: Step) -> PrivacyLoss:
    with placed(place):
        try:
            return step.loss
        except TypeError:
            raise InputError("parameters", dict(step.parameters), "numbers") from None


def _plain(value: Any) -> Any:
    """Decimals as floats."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Typed) else value
