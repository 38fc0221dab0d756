"""The certificate: inert data with which anybody can check the claim, and nothing that depends on the data."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from tightrope.release.plan import guarantee_data, neighbours_data
from tightrope.release.questions.vector import Noise

if TYPE_CHECKING:
    from tightrope.release.plan import Plan

FORMAT = 1
EPSILONS = 25
FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
ARGUMENT = (
    "Each mechanism's privacy loss is computed from the integer weights below, which are the ones that are sampled. "
    "For every answer the whole profile is maximised over all ways in which one person's rows may fall into groups; "
    "the maxima are composed on a lattice on which every rounding raises the loss. Parameters were fixed before "
    "anything was released."
)


def certificate_of(plan: Plan) -> dict[str, Any]:
    """Guarantee, every mechanism with its table, neighbours, bounds, how each number was computed, versions."""
    return {
        "format": FORMAT,
        **guarantee_data(plan.loss, plan.budget),
        "budget": plan.budget.to_data(),
        "share": str(plan.share),
        "neighbours": neighbours_data(plan.person),
        "mechanisms": [
            _mechanism(task.by, noise, task.unit.contribution)
            for task, noises in zip(plan.tasks, plan.noises(), strict=True)
            for noise in noises
        ],
        **_curves(plan),
        "alternatives": plan.to_data()["alternatives"],
        "computed": {"engine": plan.loss.engine, "argument": ARGUMENT, "rounding": "upper bounds throughout"},
        "versions": {name: metadata.version(name) for name in ("tightrope", "numpy", "scipy")},
        "ledger": "not recorded in a ledger",
    }


def _mechanism(by: tuple[str, ...], noise: Noise, contribution: Any) -> dict[str, Any]:
    """One noisy vector: value · unit + noise, noise = factor · Y + U − U', Y from the table, U, U' below factor."""
    law = noise.mechanism
    return {
        "statistic": noise.vector.spend.statistic,
        "column": noise.vector.measure.column,
        "by": list(by),
        "family": noise.family,
        "unit": str(noise.vector.measure.fixed_point.step) if noise.vector.measure.fixed_point else "1",
        "sensitivity_per_row": str(noise.vector.sensitivity),
        "table_steps_per_row": noise.shift,
        "rows": contribution.rows,
        "rows_per_group": contribution.rows_per_group,
        "groups": contribution.groups,
        "factor": str(law.factor),
        "table": noise.table.to_data(),
    }


def _curves(plan: Plan) -> dict[str, Any]:
    """The profile and the attacker's best rates, all upper bounds."""
    top = max(float(epsilon) for epsilon, _ in plan.budget.points) or plan.loss.epsilon(float(plan.budget.delta))
    epsilons = [top * 1.25 * i / (EPSILONS - 1) for i in range(EPSILONS)]
    return {
        "profile": {"epsilon": epsilons, "delta": plan.loss.delta(epsilons).tolist()},
        "tradeoff": {
            "false_positive_rate": list(FALSE_POSITIVE_RATES),
            "true_positive_rate": plan.loss.true_positive_rate(list(FALSE_POSITIVE_RATES)).tolist(),
        },
    }
