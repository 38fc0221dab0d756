"""A steps file: what is composed, as TOML that is checked key by key."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, PlanError
from tightrope.privacy import PrivacyLoss
from tightrope.release.plan_file import Section, Typed, placed, read_toml

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
}
"""Every mechanism of ``tightrope`` that a step may name, with its parameters."""
OPTIONAL = ("sensitivity", "gamma", "k", "total_variation")
COMMON = ("mechanism", "count", "poisson_rate")
EXAMPLE = 'write one like: [[step]] mechanism = "gaussian" scale = 20 count = 100 (one line each)'


@dataclass(frozen=True, slots=True)
class Step:
    """``count`` runs of one mechanism, each on a Poisson sample where there is a rate."""

    mechanism: str
    parameters: Mapping[str, Any]
    count: int
    poisson_rate: float | None

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of all runs, with **parameters fixed in advance**."""
        make: Callable[..., Any] = getattr(importlib.import_module("tightrope"), self.mechanism)
        given = dict(self.parameters)
        once: PrivacyLoss = (make(given["points"]) if "points" in given else make(**given)).loss
        sampled = once if self.poisson_rate is None else once.poisson_sample(self.poisson_rate)
        return self.count * sampled

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "mechanism": self.mechanism, "parameters": dict(self.parameters), "count": self.count,
            "poisson_rate": self.poisson_rate,
        }  # fmt: skip


def read_steps(path: str | Path) -> tuple[Step, ...]:
    """The steps of a file; ``PlanError`` for anything that is not one."""
    top = Section.of("the steps file", read_toml(Path(path), EXAMPLE), ("step",))
    steps = top.entries.get("step")
    if not isinstance(steps, list) or not steps:
        raise PlanError("step", steps, "one [[step]] or more", "write [[step]] with double brackets")
    return tuple(_step(f"step {number}", entry) for number, entry in enumerate(steps, start=1))


def composed(steps: Sequence[Step]) -> PrivacyLoss:
    """The loss of all steps together; errors say which step they come from."""
    return reduce(add, [_loss(f"step {number}", step) for number, step in enumerate(steps, start=1)])


def _step(place: str, entry: object) -> Step:
    from tightrope.engines.schema import listed, nearest

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
    rate = own.entries.get("poisson_rate")
    return Step(name, given, own.whole("count") or 1, _plain(rate))


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
