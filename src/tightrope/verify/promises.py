"""Claims of a release certificate: its guarantee, compared with the composition of its mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from flint import arb

from tightrope.verify.claims import (
    CONFIRMED,
    CONFIRMED_AT_PLUS,
    CONFIRMED_TIMES,
    NOT_CONFIRMED,
    REFUTED,
    BrokenError,
    Claim,
    WorkLimitError,
    equality_claim,
    needs_no_finer_grid,
    unchecked_claim,
    upper_bound_claim,
)
from tightrope.verify.contributions import MARGINAL_STATISTICS, contribution_claims
from tightrope.verify.loss_grid import Curve, Grid, GridDistribution
from tightrope.verify.marginals import marginal_claims
from tightrope.verify.releases import Composition, choice_claims, chosen_answer_claims

GRID_EXPONENTS = (6, 8, 10, 12)
"""n of the grid steps 2^−n nats, tried in turn until all claims are confirmed exactly or one is refuted; for losses
below one nat, the step is 2^−n of the loss."""
MAX_HALVINGS = 64
"""Maximum number of halvings of a nat for smaller losses."""
MAX_ENUMERATED, MAX_COMPOSITIONS = 2500, 40_000
"""Numbers of compositions over the splits of one person's rows.

Up to the first, the writer enumerates all splits and its ε is tight; beyond the second, nothing is computed.
"""
EPSILON_TOLERANCE = 1e-11
"""Tolerance of ε: a bound is also accepted if it is proven at ε plus this."""
VARIANCE_TOLERANCE = 1e-5
"""Relative tolerance of a variance, which is stated to six digits."""
CLAIMS_BY_PART: dict[str, Callable[..., Iterator[Claim]]] = {
    "marginals": marginal_claims,
}
"""Claims of parts that a certificate may have; those of measurements are due if the statistic is of that part."""
Ends = tuple[Curve, Curve]
"""A lower and an upper bound on a profile."""


def exact_interval(value: object) -> Any:
    """Return a number of the document as an interval: floats are exact, text is an exact decimal."""
    fraction = Fraction(value) if isinstance(value, (int, float)) else Fraction(Decimal(str(value)))
    return arb(fraction.numerator) / fraction.denominator


def refine_claims(
    loss_on_grid: Callable[[Grid], GridDistribution],
    scales: tuple[float, float],
    judge: Callable[[Ends], list[Claim]],
    spacing: Fraction | None = None,
) -> list[Claim]:
    """Return the claims of ``judge`` from a profile, on finer grids while one is not confirmed or needs a tolerance.

    ``loss_on_grid`` returns the loss distribution on a grid. ``scales`` are the largest relevant ε, which determines
    the grid steps, and the smallest δ. ``spacing`` is a common divisor of all losses, if they have one: the grid steps
    divide it, so that every loss is a grid point.
    """
    claims: list[Claim] = []
    for exponent in GRID_EXPONENTS:
        grids = build_grids(exponent + count_halvings(scales[0]), scales[1], spacing)
        try:
            low, high = (Curve(grid, loss_on_grid(grid)) for grid in grids)
        except WorkLimitError as problem:
            return claims or [Claim("everything", "", str(problem), NOT_CONFIRMED)]
        claims = judge((low, high))
        is_vague = any(one.verdict == NOT_CONFIRMED or CONFIRMED_TIMES in one.finding for one in claims)
        if needs_no_finer_grid(claims) or not is_vague:
            break
    return claims


def count_halvings(epsilon: float) -> int:
    """Return how often a nat is halved to reach about this ε; 0 for larger values or 0."""
    return min(MAX_HALVINGS, max(0, -math.frexp(epsilon)[1])) if epsilon > 0 else 0


def build_grids(exponent: int, smallest_delta: float, spacing: Fraction | None = None) -> tuple[Grid, Grid]:
    """Return two grids of about 2^−exponent nats: one rounds down, the other up."""
    bits = 160 + math.ceil(-math.log2(smallest_delta))
    width = Fraction(1, 1 << exponent) if spacing is None else spacing / math.ceil(spacing * (1 << exponent))
    faint = int(Fraction(smallest_delta) * (1 << bits) / 10**12)
    return Grid(width, bits, faint=faint, up=False), Grid(width, bits, faint=faint)


def smallest_positive(*deltas: float) -> float:
    """Return the smallest stated δ above 0, but between 1e-280 and 1e-12: how precise the grid must be."""
    return max(1e-280, min([1e-12, *(float(delta) for delta in deltas if float(delta) > 0)]))


def release_claims(data: dict[str, Any]) -> list[Claim]:
    """Return every claim of a release certificate."""
    try:
        composition = Composition(data["mechanisms"])
    except BrokenError as broken:
        return [Claim("mechanisms", "", str(broken), REFUTED)]
    with_groups = {mechanism.get("together") is not None for mechanism in data["mechanisms"]}
    total_variation = data["total_variation"]
    success = min(1.0, math.nextafter((1 + total_variation) / 2, 2.0))
    # Where the text of the double nearest to the exact δ is above that δ, the next smaller double may stand for it.
    nearest = float(data["delta_exact"])
    smaller = math.nextafter(nearest, 0.0)
    may_be_smaller = data["delta"] == smaller and Decimal(repr(nearest)) > Decimal(data["delta_exact"])
    claims = [
        equality_claim("mechanisms.together is given", with_groups, {data["version"] > 1}),
        # Numbers that the certificate states twice.
        equality_claim("epsilon_exact", Decimal(data["epsilon_exact"]), Decimal(data["epsilon"])),
        equality_claim("total_variation_exact", Decimal(data["total_variation_exact"]), Decimal(total_variation)),
        equality_claim("delta", data["delta"], smaller if may_be_smaller else nearest),
        equality_claim("delta_exact", Decimal(data["delta_exact"]), Decimal(data["budget"]["delta"])),
        equality_claim("attack_success", data["attack_success"], success),
    ]
    if data["profile"]["epsilon"][0] == 0:
        claims.append(equality_claim("profile.delta[0]", data["profile"]["delta"][0], total_variation))
    claims += [
        *contribution_claims(data["mechanisms"], data["neighbors"]),
        *_parameter_claims(data, composition),
    ]
    if not all(noise.is_unimodal for noise in composition.noises.values()):
        return claims  # already refuted: the composition requires unimodal tables
    composition_count = max(group.composition_count for group in composition.groups)
    if composition_count > MAX_COMPOSITIONS:
        return [
            *claims,
            Claim(
                "epsilon",
                str(data["epsilon"]),
                f"not computed: {composition_count} ways to distribute one person's rows",
                NOT_CONFIRMED,
            ),
        ]
    deltas = [data["delta"], *data["profile"]["delta"]]
    largest = composition.largest_loss() if 0 in deltas else None
    if Decimal(data["delta_exact"]) == 0:
        # For δ = 0, no loss is infinite, and the largest one is at most ε.
        if largest is None:
            claims.append(
                Claim("epsilon", str(data["epsilon"]), "an output that gives somebody away: infinite", REFUTED)
            )
        else:
            stated = exact_interval(data["epsilon_exact"])
            claims.append(upper_bound_claim("epsilon: the largest loss", stated, largest, largest))

    def promise_claims(ends: Ends) -> list[Claim]:
        return [*_guarantee_claims(data, ends, largest, tight=composition_count <= MAX_ENUMERATED)]

    scales = data["epsilon"] or max(data["profile"]["epsilon"]), smallest_positive(*deltas)
    return [
        *claims,
        *refine_claims(composition.loss_on_grid, scales, promise_claims, composition.loss_spacing),
        *_unchecked_claims(data),
    ]


def _parameter_claims(data: dict[str, Any], composition: Composition) -> Iterator[Claim]:
    """Check the stated parameters of each mechanism, the neighboring relation of its rows, and consistent answers."""
    neighbors = data["neighbors"]
    if neighbors["privacy_unit"] is None:
        bounds = tuple(neighbors[name] for name in ("max_rows", "max_rows_per_group", "max_groups"))
        yield equality_claim("neighbors", bounds, (1, 1, 1))
    for index, mechanism in enumerate(data["mechanisms"]):
        name, steps = f"mechanisms[{index}]", mechanism["table_steps_per_row"]
        yield equality_claim(
            f"{name}.factor", int(mechanism["factor"]), -(-int(mechanism["sensitivity_per_row"]) // steps)
        )
        yield equality_claim(f"{name}.table is unimodal", composition.noises[id(mechanism)].is_unimodal, True)
        yield from choice_claims(name, mechanism, composition.noises[id(mechanism)])
    yield from chosen_answer_claims(data["mechanisms"])
    has_marginals = any(mechanism["statistic"] in MARGINAL_STATISTICS for mechanism in data["mechanisms"])
    for part, part_claims in CLAIMS_BY_PART.items():
        if part in data or has_marginals:
            yield from part_claims(data, lambda mechanism: composition.noises[id(mechanism)].mean_squared)
    # Answers that were made consistent have the weights of the noise that ran.
    for index, fit in enumerate(data.get("consistent", [])):
        for number, (name, stated) in enumerate(zip(fit["answers"], fit["variances"], strict=True)):
            # Mechanisms of exclusive sets count the bias from bounding, not the answer.
            sources = [
                mechanism
                for mechanism in data["mechanisms"]
                if name in mechanism["answers"] and mechanism.get("exclusive") is None
            ]
            if len(sources) != 1:
                raise BrokenError("an answer that was made consistent and has not one noise")
            factor_squared, noise = int(sources[0]["factor"]) ** 2, composition.noises[id(sources[0])]
            variance = factor_squared * noise.mean_squared + (factor_squared - 1) / 6
            agrees = abs(float(stated) - variance) <= VARIANCE_TOLERANCE * variance
            found = f"= {variance:.6g}"
            yield Claim(f"consistent[{index}].variances[{number}]", stated, found, CONFIRMED if agrees else REFUTED)


def _guarantee_claims(data: dict[str, Any], ends: Ends, largest: Any, *, tight: bool) -> Iterator[Claim]:
    """Check the guarantee, the profile, the attacker's rates and the budget, against both bounds on the profile.

    δ is 0 from the ``largest`` loss on, if that is not None. ``tight`` also checks that ε is not larger than needed.
    """
    low, high = ends

    def delta_claim(name: str, at: object, stated: object, *, tight: bool = False) -> Claim:
        epsilon = exact_interval(at)
        if largest is not None and epsilon + EPSILON_TOLERANCE >= largest:
            claim = upper_bound_claim(name, exact_interval(stated), arb(0), arb(0), tight=tight)
            return (
                claim
                if epsilon >= largest
                else claim._replace(finding=f"{claim.finding}: {CONFIRMED_AT_PLUS} {EPSILON_TOLERANCE}")
            )
        claim = upper_bound_claim(name, exact_interval(stated), low.delta(epsilon), high.delta(epsilon), tight=tight)
        if claim.verdict != NOT_CONFIRMED:
            return claim
        shifted_claim = upper_bound_claim(
            name, exact_interval(stated), low.delta(epsilon), high.delta(epsilon + EPSILON_TOLERANCE), tight=tight
        )
        return (
            shifted_claim._replace(finding=f"{shifted_claim.finding}: {CONFIRMED_AT_PLUS} {EPSILON_TOLERANCE}")
            if shifted_claim.verdict != NOT_CONFIRMED
            else claim
        )

    delta = data["delta_exact"]
    yield delta_claim(f"epsilon: delta({data['epsilon']:.17g})", data["epsilon_exact"], delta)
    if tight:
        # A larger ε than needed is valid, but does not follow from the tables: it or they may have been altered.
        smaller_epsilon = exact_interval(data["epsilon_exact"]) * (1 - 0.01) - exact_interval(1e-9)
        is_loose = smaller_epsilon > 0 and high.delta(smaller_epsilon).upper() < exact_interval(delta)
        name = f"epsilon is no larger than needed: {data['epsilon']:.17g}"
        yield Claim(name, str(data["epsilon"]), "<= 1.01 of the least", NOT_CONFIRMED if is_loose else CONFIRMED)
    yield delta_claim("total_variation: delta(0)", 0, data["total_variation_exact"], tight=tight)
    for number, (epsilon, allowed) in enumerate(data["budget"]["points"]):
        yield delta_claim(f"budget.points[{number}]: delta({epsilon})", epsilon, allowed)
    for number, (at, stated) in enumerate(zip(data["profile"]["epsilon"], data["profile"]["delta"], strict=True)):
        yield delta_claim(f"profile.delta[{number}]: delta({at:.17g})", at, stated)
    tradeoff = data["tradeoff"]
    rates = zip(tradeoff["false_positive_rate"], tradeoff["true_positive_rate"], strict=True)
    for number, (false_positive_rate, stated) in enumerate(rates):
        rate = exact_interval(false_positive_rate)
        name = f"tradeoff.true_positive_rate[{number}]: at {false_positive_rate}"
        yield upper_bound_claim(name, exact_interval(stated), low.power_at(rate), high.power_at(rate), tight=False)


def _unchecked_claims(data: dict[str, Any]) -> Iterator[Claim]:
    """Yield an unchecked claim for each statement that cannot be recomputed."""
    if data["version"] == 1:
        why = "version 1 does not state which mechanisms the same rows shift: each is composed by itself (upper bound)"
        yield unchecked_claim("mechanisms.together", why)
    parts = "answers", "statistic", "column", "by", "where", "unit", "family", "table.steps", "choice"
    descriptions = [*(f"mechanisms.{name}" for name in parts), "tables.steps"]
    yield unchecked_claim(", ".join(descriptions), "descriptions of the mechanisms")
    bounds = ("rows", "max_rows_per_group", "groups", "together", "exclusive", "sensitivity_per_row")
    why = "row limits are the publisher's statement; the results above assume that they are true"
    yield unchecked_claim(", ".join(f"mechanisms.{name}" for name in bounds), why)
    yield unchecked_claim(
        "neighbors",
        "description of the privacy unit; where its contribution bounds differ, those of the mechanisms are used",
    )
    yield unchecked_claim(
        "budget.points, budget_fraction", "the requested budget: the guarantee meets it, but does not determine it"
    )
    if data.get("consistent"):
        sums = "consistent.shared, consistent.divided_by, consistent.statement"
        yield unchecked_claim(
            sums, "that these answers count the same rows follows from the questions, which the certificate lacks"
        )
    yield unchecked_claim("alternatives", "errors of other noise families: not a privacy claim")
    yield unchecked_claim("computed, versions, public_tables", "descriptions of how it was made")
    yield unchecked_claim("ledger, entry", "to check that it was charged, run: tightrope ledger check")
