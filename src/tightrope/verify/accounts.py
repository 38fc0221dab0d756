"""Claims of accounts and of training accounts: brackets of ε and δ, and the success of attacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from tightrope.verify.loss_grid import Curve, compose_all
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
    return _account_claims(data, data["steps"], data["epsilon_at_delta"], data["delta_at_epsilon"])


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
    return [rate, neighbors, *_account_claims(data, [step], [data], []), unchecked]


def _account_claims(data: dict[str, Any], steps: Any, epsilons: Any, deltas: Any) -> list[Claim]:
    claims = [
        equality_claim("attack_success", data["attack_success"], (1 + data["total_variation"]) / 2),
        *_bracket_width_claims(epsilons, deltas),
    ]
    claims.append(unchecked_claim("neighbors, method, statement", "descriptions of how it was made"))
    profiles = [step_profile(step) for step in steps]
    if None in profiles:
        unknown = sorted({step["mechanism"] for step, profile in zip(steps, profiles, strict=True) if profile is None})
        return [*claims, Claim("steps", ", ".join(unknown), "not recomputed: no closed form is available", OPEN)]
    runs = [(profile, step["count"]) for profile, step in zip(profiles, steps, strict=True) if profile is not None]
    is_symmetric = all(step["poisson_rate"] is None and step["mechanism"] != "from_pair" for step in steps)
    directions = [runs] if is_symmetric else [runs, [(reversed_profile(profile), count) for profile, count in runs]]
    return claims + _refined_account_claims(data, _merge_gaussian_steps(steps, directions), epsilons, deltas)


def _merge_gaussian_steps(steps: Any, directions: list[list[tuple[Profile, int]]]) -> list[list[tuple[Profile, int]]]:
    """Replace all Gaussian steps without sampling or erasure by one step with the same profile."""
    is_gaussian = [
        step["mechanism"] == "gaussian" and all(step[name] is None for name in UNSAMPLED_FIELDS) for step in steps
    ]
    gaussians = [
        (step["count"], step["sensitivity"] or 1, step["scale"])
        for step, gaussian in zip(steps, is_gaussian, strict=True)
        if gaussian
    ]
    merged = [(composed_gaussians_profile(tuple(gaussians)), 1)] if gaussians else []
    return [
        merged + [step for step, gaussian in zip(runs, is_gaussian, strict=True) if not gaussian] for runs in directions
    ]


def _refined_account_claims(
    data: dict[str, Any], directions: list[list[tuple[Profile, int]]], epsilons: Any, deltas: Any
) -> list[Claim]:
    least = smallest_positive(*(row["delta"] for row in (*epsilons, *deltas)))
    claims: list[Claim] = []
    for exponent in ACCOUNT_GRID_EXPONENTS:
        try:
            lows, highs = (
                [
                    Curve(
                        grid,
                        compose_all(
                            grid,
                            [grid.convolve_power(profile_on_grid(grid, profile), count) for profile, count in runs],
                        ),
                    )
                    for runs in directions
                ]
                for grid in build_grids(exponent, least)
            )
        except TooMuchError as problem:
            return claims or [Claim("everything", "", str(problem), OPEN)]
        claims = [*_bound_claims(data, (lows, highs), epsilons, deltas)]
        improvable = any(
            claim.verdict == OPEN or claim.found.endswith(("times 1.01", "times 1.001")) for claim in claims
        )
        large = max(len(curve.values) for curve in highs) > MAX_CURVE_POINTS
        if is_settled(claims) or large or not improvable:
            break
    return claims


def _bound_claims(
    data: dict[str, Any], ends: tuple[list[Curve], list[Curve]], epsilons: Any, deltas: Any
) -> Iterator[Claim]:
    """Yield the claims of every bracket and attack rate, from profiles below (``ends[0]``) and above (``ends[1]``)."""

    def delta_interval(epsilon: Any) -> tuple[Any, Any]:
        low, high = (max(curve.delta(epsilon) for curve in curves) for curves in ends)
        return low, high

    for number, row in enumerate(epsilons):
        name, delta = f"epsilon_at_delta[{number}]", exact_interval(row["delta"])
        if row["upper"] is not None:
            claim = upper_bound_claim(
                name, delta, *delta_interval(exact_interval(row["upper"])), tight=False, close=ACCOUNT_TOLERANCE
            )
            yield claim._replace(name=f"{name}: delta({row['upper']})")
        if row["lower"] is not None:
            yield _lower_end(
                f"{name}.lower: delta({row['lower']})", delta, *delta_interval(exact_interval(row["lower"])), above=True
            )
    for number, row in enumerate(deltas):
        name, found = (
            f"delta_at_epsilon[{number}]: delta({row['epsilon']})",
            delta_interval(exact_interval(row["epsilon"])),
        )
        yield upper_bound_claim(name, exact_interval(row["upper"]), *found, close=ACCOUNT_TOLERANCE)
        yield _lower_end(f"delta_at_epsilon[{number}].lower", exact_interval(row["lower"]), *found, above=False)
    yield upper_bound_claim(
        "total_variation: delta(0)",
        exact_interval(data["total_variation"]),
        *delta_interval(arb(0)),
        close=ACCOUNT_TOLERANCE,
    )
    for number, row in enumerate(data["attack"]):
        rate = exact_interval(row["false_positive_rate"])
        low, high = (max(curve.power_at(rate) for curve in curves) for curves in ends)
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


def _bracket_width_claims(epsilons: Any, deltas: Any) -> Iterator[Claim]:
    """Check that each stated value is the upper end of its bracket, and the stated relative width."""
    for rows, name in ((epsilons, "epsilon"), (deltas, "delta")):
        for number, row in enumerate(rows):
            path, lower, upper = f"{name}_at[{number}]", row["lower"], row["upper"]
            yield equality_claim(f"{path}.{name}", row[name], upper)
            if name == "epsilon" and upper is None:
                yield unchecked_claim(f"{path}", "no bound is claimed")
            if lower is not None and upper is not None:
                width = 0.0 if lower == upper else (upper - lower) / upper
                yield equality_claim(f"{path}.relative_width", row["relative_width"], width)
