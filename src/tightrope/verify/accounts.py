"""Claims of accounts and of training accounts: brackets of ε and δ, and the success of attacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from flint import arb

from tightrope.verify.claims import (
    CONFIRMED,
    OPEN,
    REFUTED,
    Claim,
    TooMuchError,
    equality_claim,
    is_settled,
    shortest_float_text,
    unchecked_claim,
    upper_bound_claim,
)
from tightrope.verify.loss_grid import Curve, Grid, compose_all
from tightrope.verify.promises import build_grids, exact_interval, smallest_positive
from tightrope.verify.steps import Profile, composed_gaussians_profile, profile_on_grid, reversed_profile, step_profile

ACCOUNT_GRID_EXPONENTS = (6, 8, 10, 12)
MAX_CURVE_POINTS = 1 << 18
"""No finer grid is tried after a distribution with more grid points than this."""
ACCOUNT_TOLERANCE = 1e-2
"""Relative tolerance of δ for long compositions; the finding states it."""
UNSAMPLED_FIELDS = {"poisson_rate": None, "subset": None, "erase": None}


def account_claims(data: dict[str, Any]) -> list[Claim]:
    """Return every claim of an account."""
    return StatedAccount(data, data["steps"], data["epsilon_at_delta"], data["delta_at_epsilon"]).all_claims()


def training_claims(data: dict[str, Any]) -> list[Claim]:
    """Return every claim of the account of a training run: Gaussian steps on samples."""
    step = {**UNSAMPLED_FIELDS, "mechanism": "gaussian", "scale": data["noise_multiplier"], "count": data["steps"]}
    if data["sampling"] == "poisson":
        step |= {"sensitivity": 1, "poisson_rate": data["sampling_rate"]}
    else:
        step |= {"sensitivity": 2, "subset": [data["batch"], data["examples"]]}
    rate = equality_claim("sampling_rate", data["sampling_rate"], data["batch"] / data["examples"])
    unchecked = unchecked_claim("comparison, picture", "results of other methods, and a file name")
    neighbors = equality_claim(
        "neighbors", data["neighbors"], "add-remove" if data["sampling"] == "poisson" else "replace-one"
    )
    return [rate, neighbors, *StatedAccount(data, [step], [data], []).all_claims(), unchecked]


class StatedAccount(NamedTuple):
    """The numbers of an account: its document, its steps, and the rows of ε at stated δ and of δ at stated ε."""

    data: dict[str, Any]
    steps: Any
    epsilons: Any
    deltas: Any

    def all_claims(self) -> list[Claim]:
        """Return every claim: the stated widths first, then the bounds, recomputed from the profiles of the steps."""
        data = self.data
        claims = [
            equality_claim("attack_success", data["attack_success"], (1 + data["total_variation"]) / 2),
            *self._bracket_width_claims(),
            unchecked_claim("neighbors, method, statement", "descriptions of how it was made"),
        ]
        # All Gaussian steps without sampling or erasure are one step with the same profile, and symmetric.
        gaussians: list[tuple[int, float | int, float | int]] = []
        runs: list[tuple[Profile, int]] = []
        unknown = set[str]()
        for step in self.steps:
            profile = step_profile(step)
            if profile is None:
                unknown.add(step["mechanism"])
            elif step["mechanism"] == "gaussian" and {**step, **UNSAMPLED_FIELDS} == step:
                gaussians.append((step["count"], step["sensitivity"] or 1, step["scale"]))
            else:
                runs.append((profile, step["count"]))
        if unknown:
            why = "not recomputed: no closed form is available"
            return [*claims, Claim("steps", ", ".join(sorted(unknown)), why, OPEN)]
        merged = [(composed_gaussians_profile(tuple(gaussians)), 1)] if gaussians else []
        is_symmetric = all(step["poisson_rate"] is None and step["mechanism"] != "from_pair" for step in self.steps)
        directions = [merged + runs]
        if not is_symmetric:
            directions.append(merged + [(reversed_profile(profile), count) for profile, count in runs])
        return claims + self._refined_claims(directions)

    def _bracket_width_claims(self) -> Iterator[Claim]:
        """Check that each stated value is the upper end of its bracket, and the stated relative width."""
        for rows, name in ((self.epsilons, "epsilon"), (self.deltas, "delta")):
            for number, row in enumerate(rows):
                path, lower, upper = f"{name}_at[{number}]", row["lower"], row["upper"]
                yield equality_claim(f"{path}.{name}", row[name], upper)
                if name == "epsilon" and upper is None:
                    yield unchecked_claim(f"{path}", "no bound is claimed")
                if lower is not None and upper is not None:
                    width = 0.0 if lower == upper else (upper - lower) / upper
                    yield equality_claim(f"{path}.relative_width", row["relative_width"], width)

    def _refined_claims(self, directions: list[list[tuple[Profile, int]]]) -> list[Claim]:
        """Return the claims of every bound, on finer grids while one is open or needs a tolerance."""
        least = smallest_positive(*(row["delta"] for row in (*self.epsilons, *self.deltas)))

        def composed_curve(grid: Grid, runs: list[tuple[Profile, int]]) -> Curve:
            powers = [grid.convolve_power(profile_on_grid(grid, profile), count) for profile, count in runs]
            return Curve(grid, compose_all(grid, powers))

        claims: list[Claim] = []
        for exponent in ACCOUNT_GRID_EXPONENTS:
            try:
                lows, highs = (
                    [composed_curve(grid, runs) for runs in directions] for grid in build_grids(exponent, least)
                )
            except TooMuchError as problem:
                return claims or [Claim("everything", "", str(problem), OPEN)]
            claims = [*self._bound_claims(lows, highs)]
            improvable = any(
                claim.verdict == OPEN or claim.found.endswith(("times 1.01", "times 1.001")) for claim in claims
            )
            large = max(len(curve.values) for curve in highs) > MAX_CURVE_POINTS
            if is_settled(claims) or large or not improvable:
                break
        return claims

    def _bound_claims(self, lows: list[Curve], highs: list[Curve]) -> Iterator[Claim]:
        """Yield the claims of every bracket and attack rate, from profiles below (``lows``) and above (``highs``)."""

        def delta_interval(epsilon: Any) -> tuple[Any, Any]:
            low, high = (max(curve.delta(epsilon) for curve in curves) for curves in (lows, highs))
            return low, high

        for number, row in enumerate(self.epsilons):
            name, delta = f"epsilon_at_delta[{number}]", exact_interval(row["delta"])
            if row["upper"] is not None:
                claim = upper_bound_claim(
                    name, delta, *delta_interval(exact_interval(row["upper"])), tight=False, close=ACCOUNT_TOLERANCE
                )
                yield claim._replace(name=f"{name}: delta({row['upper']})")
            if row["lower"] is not None:
                found = delta_interval(exact_interval(row["lower"]))
                yield _lower_end(f"{name}.lower: delta({row['lower']})", delta, *found, above=True)
        for number, row in enumerate(self.deltas):
            name = f"delta_at_epsilon[{number}]: delta({row['epsilon']})"
            found = delta_interval(exact_interval(row["epsilon"]))
            yield upper_bound_claim(name, exact_interval(row["upper"]), *found, close=ACCOUNT_TOLERANCE)
            yield _lower_end(f"delta_at_epsilon[{number}].lower", exact_interval(row["lower"]), *found, above=False)
        stated, found = exact_interval(self.data["total_variation"]), delta_interval(arb(0))
        yield upper_bound_claim("total_variation: delta(0)", stated, *found, close=ACCOUNT_TOLERANCE)
        for number, row in enumerate(self.data["attack"]):
            rate = exact_interval(row["false_positive_rate"])
            low, high = (max(curve.power_at(rate) for curve in curves) for curves in (lows, highs))
            yield upper_bound_claim(
                f"attack[{number}]", exact_interval(row["true_positive_rate"]), low, high, close=ACCOUNT_TOLERANCE
            )


def _lower_end(name: str, stated: Any, low: Any, high: Any, *, above: bool) -> Claim:
    """Check the lower end of a bracket of ε (``above``: δ(ε) ≥ δ at that ε) or of δ."""
    found = f"in [{shortest_float_text(low, -1)}, {shortest_float_text(high, 1)}]"
    if high < stated * (1 - (1e-9 if above else 0)):
        return Claim(name, shortest_float_text(stated), f"{found}: the true value is below the stated bound", REFUTED)
    if low >= stated:
        return Claim(name, shortest_float_text(stated), found, CONFIRMED)
    return unchecked_claim(name, f"{found}: a lower bound (not a privacy claim) that the grid does not reach")
