"""A peer's case asked of Tightrope: the composition, the safe answer, and the other end where it is needed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tightrope as tr

CASES = Path(__file__).parent / "cases"
PEERS = ("dp_accounting", "prv_accountant", "opacus", "riskcal", "autodp")
Steps = list[tuple[int, dict[str, Any]]]
RATE_ERROR = 1e-9
"""How far apart the two scales are between which error rates are shown to hold and to fail, relative."""


@dataclass(frozen=True)
class Case:
    """One question to one peer, and its answers: ``safe`` claims to be, ``other`` claims the opposite."""

    peer: str
    source: str
    note: str
    steps: Steps
    ask: str
    at: Any
    safe: float | None
    other: float | None

    @property
    def name(self) -> str:
        laws = " + ".join(f"{times}x{described(law)}" for times, law in self.steps[:3])
        more = " + …" if len(self.steps) > 3 else ""
        return f"{self.peer} [{self.note}] {self.source}: {laws}{more} {self.ask}({self.at})"

    @property
    def kind(self) -> str:
        """What cases are counted by."""
        laws = sorted(
            {f"{law['law']}{' poisson' * ('poisson' in law)}{' subset' * ('subset' in law)}" for _, law in self.steps}
        )
        return f"{self.ask}: {' + '.join(laws)}"


def described(law: dict[str, Any]) -> str:
    return f"{law['law']}({', '.join(f'{key}={value}' for key, value in law.items() if key != 'law')})"


def compositions(peers: Sequence[str] = PEERS) -> Iterator[tuple[str, int, list[Case]]]:
    """(Peer, number, cases) of everything asked about one composition."""
    for peer in peers:
        entries = json.loads((CASES / f"{peer}.json").read_text(encoding="utf-8"))
        for number, entry in enumerate(entries):
            common = peer, entry["source"], entry.get("note", ""), entry["steps"]
            yield peer, number, [Case(*common, *asked) for asked in entry["asked"]]


MAKERS: dict[str, Callable[..., Any]] = {
    "gaussian": tr.gaussian,
    "laplace": tr.laplace,
    "discrete_laplace": tr.discrete_laplace,
    "discrete_gaussian": tr.discrete_gaussian,
    "response": lambda noise, buckets: tr.randomized_response(
        epsilon=math.log1p((1 - noise) * buckets / noise), k=buckets
    ),
    "approx_dp": lambda epsilon, delta: tr.approx_dp(epsilon, delta=delta),
    "pair": tr.from_pair,
}


def composed(steps: Steps, scale: float | None = None) -> tr.PrivacyLoss:
    """``scale`` stands where a case leaves it open."""
    return sum(times * _one(dict(law), scale) for times, law in steps)  # type: ignore[return-value]


def _one(law: dict[str, Any], scale: float | None) -> tr.PrivacyLoss:
    name, rate, subset = law.pop("law"), law.pop("poisson", None), law.pop("subset", None)
    if law.get("scale", 0) is None:
        law["scale"] = scale
    loss = MAKERS[name](**law).loss
    if rate is not None:
        loss = loss.poisson_sample(rate)
    return loss.subset_sample(*subset) if subset is not None else loss


def _noise(case: Case, **budget: Any) -> float:
    """The least scale that was shown to keep the budget."""
    return tr.calibrate(lambda scale: composed(case.steps, scale), tr.Budget(**budget)).parameter


def _noise_for_rates(case: Case) -> float:
    """The least scale whose trade-off curve passes above (α, β): there is no budget for that, so it is halved to."""
    alpha, beta = case.at
    low, high = 1e-2, 1e4
    while high > low * (1 + RATE_ERROR):
        middle = math.sqrt(low * high)
        kept = composed(case.steps, middle).tradeoff(alpha) >= beta
        low, high = (low, middle) if kept else (middle, high)
    return high


SAFE: dict[str, Callable[[Case], float]] = {
    "epsilon": lambda case: composed(case.steps).epsilon(case.at),
    "delta": lambda case: composed(case.steps).delta(case.at),
    "advantage": lambda case: composed(case.steps).total_variation(),
    "tpr": lambda case: composed(case.steps).true_positive_rate(case.at),
    "beta": lambda case: composed(case.steps).tradeoff(case.at),
    "bayes_risk": lambda case: composed(case.steps).bayes_risk(case.at),
    "noise": lambda case: _noise(case, epsilon=case.at[0], delta=case.at[1]),
    "noise_for_advantage": lambda case: _noise(case, attack_success=(1 + case.at) / 2, delta=case.at / 2),
    "noise_for_rates": _noise_for_rates,
}
"""What a user is told."""
OTHER: dict[str, Callable[[Case], Any]] = {
    "epsilon": lambda case: composed(case.steps).epsilon_bounds(case.at).lower,
    "delta": lambda case: composed(case.steps).delta_bounds(case.at).lower,
    "advantage": lambda case: composed(case.steps).total_variation_bounds().lower,
    "tpr": lambda case: composed(case.steps).true_positive_rate_bounds(case.at).lower,
    "beta": lambda case: composed(case.steps).tradeoff_bounds(case.at).upper,
    "bayes_risk": lambda case: composed(case.steps).bayes_risk_bounds(case.at).upper,
}
"""What is proven to be no exaggeration."""
SMALLER_IS_SAFER = {"beta", "bayes_risk"}
KEPT: dict[str, Callable[[Case, float], bool]] = {
    "noise": lambda case, scale: composed(case.steps, scale).delta_bounds(case.at[0]).lower <= case.at[1],
    "noise_for_advantage": lambda case, scale: composed(case.steps, scale).total_variation_bounds().lower <= case.at,
    "noise_for_rates": lambda case, scale: composed(case.steps, scale).tradeoff_bounds(case.at[0]).upper >= case.at[1],
}
"""Whether a peer's scale may keep what was asked: False where it was shown not to."""
