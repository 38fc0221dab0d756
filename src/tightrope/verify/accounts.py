"""Accounts of steps, and of training runs: brackets of ε and δ, and what an attacker gains."""

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
from tightrope.verify.laws import Curve, compose_all
from tightrope.verify.promises import exact_interval, grids_of, least_of
from tightrope.verify.steps import Profile, composed_gaussians_profile, law_of, profile_of, reversed_profile

ACCOUNT_STEPS = (6, 8, 10, 12)
MOST_POINTS = 1 << 18
"""Grid points of a law beyond which no finer grid is tried."""
NEAR = 1e-2
"""Long compositions are confirmed up to this relative error of δ, which the finding states."""
PLAIN = {"poisson_rate": None, "subset": None, "erase": None}


def account_claims(data: dict[str, Any]) -> list[Claim]:
    """Every claim of an account."""
    return _account_claims(data, data["steps"], data["epsilon_at_delta"], data["delta_at_epsilon"])


def training_claims(data: dict[str, Any]) -> list[Claim]:
    """Every claim of an account of a training run: Gaussian steps on samples."""
    step = {**PLAIN, "mechanism": "gaussian", "scale": data["noise_multiplier"], "count": data["steps"]}
    if data["sampling"] == "poisson":
        step |= {"sensitivity": 1, "poisson_rate": data["sampling_rate"]}
    else:
        step |= {"sensitivity": 2, "subset": [data["batch"], data["examples"]]}
    rate = equality_claim("sampling_rate", data["sampling_rate"], data["batch"] / data["examples"])
    other = unchecked_claim("comparison, picture", "results of other methods, and a file name")
    whose = equality_claim(
        "neighbors", data["neighbors"], "add-remove" if data["sampling"] == "poisson" else "replace-one"
    )
    return [rate, whose, *_account_claims(data, [step], [data], []), other]


def _account_claims(data: dict[str, Any], steps: Any, epsilons: Any, deltas: Any) -> list[Claim]:
    claims = [
        equality_claim("attack_success", data["attack_success"], (1 + data["total_variation"]) / 2),
        *_bracket_width_claims(epsilons, deltas),
    ]
    claims.append(unchecked_claim("neighbors, method, statement", "descriptions of how it was made"))
    profiles = [profile_of(step) for step in steps]
    if None in profiles:
        unknown = sorted({step["mechanism"] for step, one in zip(steps, profiles, strict=True) if one is None})
        return [*claims, Claim("steps", ", ".join(unknown), "not recomputed: no closed form is available", OPEN)]
    known = [(one, step["count"]) for one, step in zip(profiles, steps, strict=True) if one is not None]
    plain = all(step["poisson_rate"] is None and step["mechanism"] != "from_pair" for step in steps)
    ways = [known] if plain else [known, [(reversed_profile(one), count) for one, count in known]]
    return claims + _refined_account_claims(data, _merge_gaussian_steps(steps, ways), epsilons, deltas)


def _merge_gaussian_steps(steps: Any, ways: list[list[tuple[Profile, int]]]) -> list[list[tuple[Profile, int]]]:
    """Gaussian steps that are neither sampled nor erased are one."""
    alike = [step["mechanism"] == "gaussian" and all(step[name] is None for name in PLAIN) for step in steps]
    own = [(s["count"], s["sensitivity"] or 1, s["scale"]) for s, one in zip(steps, alike, strict=True) if one]
    together = [(composed_gaussians_profile(tuple(own)), 1)] if own else []
    return [together + [step for step, one in zip(way, alike, strict=True) if not one] for way in ways]


def _refined_account_claims(
    data: dict[str, Any], ways: list[list[tuple[Profile, int]]], epsilons: Any, deltas: Any
) -> list[Claim]:
    least = least_of(*(row["delta"] for row in (*epsilons, *deltas)))
    claims: list[Claim] = []
    for step in ACCOUNT_STEPS:
        try:
            lows, highs = (
                [
                    Curve(
                        grid, compose_all(grid, [grid.convolve_power(law_of(grid, one), count) for one, count in way])
                    )
                    for way in ways
                ]
                for grid in grids_of(step, least)
            )
        except TooMuchError as problem:
            return claims or [Claim("everything", "", str(problem), OPEN)]
        claims = [*_bound_claims(data, (lows, highs), epsilons, deltas)]
        finer = any(claim.verdict == OPEN or claim.found.endswith(("times 1.01", "times 1.001")) for claim in claims)
        large = max(len(curve.values) for curve in highs) > MOST_POINTS
        if is_settled(claims) or large or not finer:
            break
    return claims


def _bound_claims(
    data: dict[str, Any], ends: tuple[list[Curve], list[Curve]], epsilons: Any, deltas: Any
) -> Iterator[Claim]:
    """Upper ends are safe to state, lower ends say how tight they are."""

    def delta_interval(epsilon: Any) -> tuple[Any, Any]:
        low, high = (max(curve.delta(epsilon) for curve in curves) for curves in ends)
        return low, high

    for number, row in enumerate(epsilons):
        name, at = f"epsilon_at_delta[{number}]", exact_interval(row["delta"])
        if row["upper"] is not None:
            claim = upper_bound_claim(name, at, *delta_interval(exact_interval(row["upper"])), tight=False, close=NEAR)
            yield claim._replace(name=f"{name}: delta({row['upper']})")
        if row["lower"] is not None:
            yield _lower_end(
                f"{name}.lower: delta({row['lower']})", at, *delta_interval(exact_interval(row["lower"])), above=True
            )
    for number, row in enumerate(deltas):
        name, found = (
            f"delta_at_epsilon[{number}]: delta({row['epsilon']})",
            delta_interval(exact_interval(row["epsilon"])),
        )
        yield upper_bound_claim(name, exact_interval(row["upper"]), *found, close=NEAR)
        yield _lower_end(f"delta_at_epsilon[{number}].lower", exact_interval(row["lower"]), *found, above=False)
    yield upper_bound_claim(
        "total_variation: delta(0)", exact_interval(data["total_variation"]), *delta_interval(arb(0)), close=NEAR
    )
    for number, row in enumerate(data["attack"]):
        share = exact_interval(row["false_positive_rate"])
        low, high = (max(curve.power_at(share) for curve in curves) for curves in ends)
        yield upper_bound_claim(f"attack[{number}]", exact_interval(row["true_positive_rate"]), low, high, close=NEAR)


def _lower_end(name: str, stated: Any, low: Any, high: Any, *, above: bool) -> Claim:
    """A lower end: δ(ε) ≥ δ there (``above``: of ε), or the truth is at least what is stated."""
    found = f"in [{shortest_float_text(low, -1)}, {shortest_float_text(high, 1)}]"
    if high < stated * (1 - (1e-9 if above else 0)):
        return Claim(name, shortest_float_text(stated), f"{found}: the true value is below the stated bound", REFUTED)
    if low >= stated:
        return Claim(name, shortest_float_text(stated), found, CONFIRMED)
    return unchecked_claim(name, f"{found}: a lower bound (not a privacy claim) that the grid does not reach")


def _bracket_width_claims(epsilons: Any, deltas: Any) -> Iterator[Claim]:
    """Check the stated width against the bracket, whose upper end is the stated value."""
    for rows, name in ((epsilons, "epsilon"), (deltas, "delta")):
        for number, row in enumerate(rows):
            place, lower, upper = f"{name}_at[{number}]", row["lower"], row["upper"]
            yield equality_claim(f"{place}.{name}", row[name], upper)
            if name == "epsilon" and upper is None:
                yield unchecked_claim(f"{place}", "no bound is claimed")
            if lower is not None and upper is not None:
                width = 0.0 if lower == upper else (upper - lower) / upper
                yield equality_claim(f"{place}.relative_width", row["relative_width"], width)
