"""A family of noise that is defined here alone goes the whole way: searched, planned, sampled, certified."""

from __future__ import annotations

import inspect
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.noise import families as registry
from tightrope.noise.compare import calibrate_families
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.families import LaplaceFamily, NoiseFamily
from tightrope.noise.family_weights import FloatWeights, NoiseRequirement
from tightrope.queries.query import Query
from tightrope.release.plan import Plan
from tightrope.reporting import html

VARIATION = tr.Budget(attack_success="0.6", delta="1e-7")
USUAL = tr.Budget(epsilon=1, delta=1e-6)


@dataclass(frozen=True, slots=True)
class Mesa(NoiseFamily):
    """Flat up to 2·size, then falling by 1.5 nats per sensitivity: good if only a total variation is required."""

    name: ClassVar[str] = "mesa"
    has_bound: ClassVar[bool] = True  # the noise has a largest value, so it needs a delta

    def float_weights(self, size: float, need: NoiseRequirement) -> FloatWeights:
        flat, fall = 2 * size * need.shift, 1.5 / need.shift
        x = np.arange(math.ceil(flat + 60 / fall) + 1)
        return FloatWeights(np.exp(-fall * np.maximum(x - flat, 0)))


def test_the_recipe_in_contributing_is_this_class() -> None:
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert recipe.endswith(inspect.getsource(Mesa))
    names: dict[str, Any] = {}
    exec(compile(recipe, "CONTRIBUTING.md", "exec"), names)  # noqa: S102 - our own page
    need = NoiseRequirement(3, (1,), 1e-6)
    assert names["Mesa"]().make_noise(2.0, need).mean_absolute_error == Mesa().make_noise(2.0, need).mean_absolute_error


@pytest.fixture(autouse=True)
def _mesa(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offered for one test."""
    monkeypatch.setattr(registry, "_OFFERED", dict(registry._OFFERED))
    registry.register_family(Mesa())


def errors(budget: tr.Budget, sensitivity: int) -> dict[str, float]:
    found = calibrate_families(budget, sensitivity=sensitivity)
    return {one.family_name: one.mechanism.mean_absolute_error for one in found if one.mechanism}


def planned(budget: tr.Budget, questions: list[Query]) -> Plan:
    people = pd.DataFrame({"pay": np.arange(500.0) % 100})
    return tr.Session(people, privacy_unit=None, budget=budget).plan(questions)


def test_calibration_offers_it_and_its_cost_decides() -> None:
    strict, usual = errors(VARIATION, 3), errors(USUAL, 3)
    assert strict["mesa"] < 0.9 * min(error for name, error in strict.items() if name != "mesa")
    assert usual["mesa"] > 10 * usual["discrete Laplace"]


def test_without_delta_it_is_not_possible() -> None:
    found = {one.family_name: one for one in calibrate_families(tr.Budget(epsilon=1, delta=0), sensitivity=3)}
    assert (found["mesa"].mechanism, found["mesa"].failure_reason) == (None, "needs delta > 0")


def test_composition_starts_from_it() -> None:
    found = composed_noise(VARIATION, releases=2, sensitivity=2)
    costs = {name: cost for name, cost in found.candidates.items() if isinstance(cost, float)}
    assert costs.pop(found.family) <= min(costs.values())
    assert costs.get("mesa", found.cost) < costs["discrete Gaussian"]
    assert (2 * found.table.loss(2)).total_variation() <= 0.2


def test_a_plan_takes_it_where_it_costs_least_and_the_release_is_certified() -> None:
    plan = planned(VARIATION, [tr.sum("pay", bounds=(0, 100))])
    ((noise,),) = plan.noises()
    assert noise.family == "mesa"
    assert set(plan.allocation.alternatives) >= {"mesa", "discrete Gaussian", "discrete truncated Laplace"}
    answers = plan.release()
    (ran,) = answers.certificate["mechanisms"]
    assert ran["family"] == "mesa"
    assert noise.table.loss(noise.steps_per_row).total_variation() <= 0.2
    assert plan.loss.total_variation() <= 0.2
    assert plan.loss.infinite_mass <= 1e-7
    assert "mesa" in html(json.loads(json.dumps(answers.to_data())))


def test_a_plan_leaves_it_where_another_costs_less() -> None:
    plan = planned(VARIATION, [tr.count(name=f"count {i}") for i in range(2)])
    assert "mesa" not in {noise.family for noises in plan.noises() for noise in noises}
    assert plan.allocation.alternatives["mesa"] > 1.01


@pytest.mark.parametrize("scale", [1.0, 1.3, 0.7])
def test_its_draws_are_the_table(scale: float) -> None:
    """Exact: the right law is accepted, and one that is wider or narrower is refused."""
    noise = Mesa().make_noise(2.0, NoiseRequirement(3, (1,), 1e-6))
    other = Mesa().make_noise(2.0 * scale, NoiseRequirement(3, (1,), 1e-6))
    draws = np.abs(other.sample(100_000))
    spread = math.sqrt((noise.mean_squared_error - noise.mean_absolute_error**2) / len(draws))
    assert (abs(draws.mean() - noise.mean_absolute_error) < 5 * spread) == (scale == 1.0)


@pytest.mark.parametrize("family", ["mesa", LaplaceFamily(), Mesa])
def test_what_is_no_family_and_names_that_are_taken_are_refused(family: object) -> None:
    with pytest.raises(InputError, match="family="):
        registry.register_family(family)  # type: ignore[arg-type]
