"""The guarantee of a release certificate, compared with the composition of its mechanisms."""

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
    OPEN,
    REFUTED,
    BrokenError,
    Claim,
    TooMuchError,
    equality_claim,
    is_settled,
    unchecked_claim,
    upper_bound_claim,
)
from tightrope.verify.contributions import contribution_claims
from tightrope.verify.laws import Curve, Grid, GridDistribution
from tightrope.verify.releases import Composition, choice_claims, chosen_answer_claims

GRID_EXPONENTS = (6, 8, 10, 12)
"""Grids of 2^−n nats, one after the other, until everything is confirmed as it stands or something is refuted; where
losses are smaller than one nat, of the same parts of them."""
MAX_HALVINGS = 64
"""Halvings of a nat beyond which no loss is looked at more closely."""
MAX_ENUMERATED, MAX_COMPOSITIONS = 2500, 40_000
"""Compositions that the ways of one person's rows take: up to the first, the writer tries each and is tight."""
EPSILON_TOLERANCE = 1e-11
"""Tolerance of ε: a bound is also accepted if it is shown at ε plus this."""
VARIANCE_TOLERANCE = 1e-5
"""A variance is stated to six digits."""
Ends = tuple[Curve, Curve]
"""The profile from below and from above."""


def exact_interval(value: object) -> Any:
    """A number of the document as an interval: floats are exact, text is an exact decimal."""
    fraction = Fraction(value) if isinstance(value, (int, float)) else Fraction(Decimal(str(value)))
    return arb(fraction.numerator) / fraction.denominator


def refine_claims(
    law: Callable[[Grid], GridDistribution],
    scales: tuple[float, float],
    judged: Callable[[Ends], list[Claim]],
    spacing: Fraction | None = None,
) -> list[Claim]:
    """Claims about a law, on finer and finer grids while one is open, or shown up to a factor alone.

    ``scales`` are the largest ε that matters, which says what is fine, and the smallest δ.

    A grid divides the ``spacing`` of the losses, where they have one: no loss is between its points then.
    """
    claims: list[Claim] = []
    for step in GRID_EXPONENTS:
        grids = build_grids(step + count_halvings(scales[0]), scales[1], spacing)
        try:
            low, high = (Curve(grid, law(grid)) for grid in grids)
        except TooMuchError as problem:
            return claims or [Claim("everything", "", str(problem), OPEN)]
        claims = judged((low, high))
        if is_settled(claims) or not any(claim.verdict == OPEN or CONFIRMED_TIMES in claim.found for claim in claims):
            break
    return claims


def count_halvings(epsilon: float) -> int:
    """Count how often a nat is halved to reach about this ε; 0 for larger values or 0."""
    return min(MAX_HALVINGS, max(0, -math.frexp(epsilon)[1])) if epsilon > 0 else 0


def build_grids(step: int, least: float, spacing: Fraction | None = None) -> tuple[Grid, Grid]:
    """Grids of about 2^−step nats, one that rounds down and one that rounds up."""
    bits = 160 + math.ceil(-math.log2(least))
    width = Fraction(1, 1 << step) if spacing is None else spacing / math.ceil(spacing * (1 << step))
    faint = int(Fraction(least) * (1 << bits) / 10**12)
    return Grid(width, bits, faint=faint, up=False), Grid(width, bits, faint=faint)


def smallest_positive(*deltas: float) -> float:
    """The smallest that is above 0, within reason."""
    return max(1e-280, min([1e-12, *(float(delta) for delta in deltas if float(delta) > 0)]))


def release_claims(data: dict[str, Any]) -> list[Claim]:
    """Every claim of a release certificate."""
    try:
        composition = Composition(data["mechanisms"])
    except BrokenError as broken:
        return [Claim("mechanisms", "", str(broken), REFUTED)]
    claims = [
        *_spelled_twice_claims(data),
        *contribution_claims(data["mechanisms"], data["neighbors"]),
        *_parameter_claims(data, composition),
    ]
    if not all(noise.is_unimodal for noise in composition.noises.values()):
        return claims  # refuted: what follows holds for tables that fall from the middle
    ways = max(unit.composition_count for unit in composition.units)
    if ways > MAX_COMPOSITIONS:
        return [
            *claims,
            Claim("epsilon", str(data["epsilon"]), f"not computed: {ways} ways to distribute one person's rows", OPEN),
        ]
    deltas = [data["delta"], *data["profile"]["delta"]]
    largest = composition.largest_loss() if 0 in deltas else None
    if Decimal(data["delta_exact"]) == 0:
        # No loss is infinite then, and the largest of all is at most ε.
        if largest is None:
            claims.append(
                Claim("epsilon", str(data["epsilon"]), "an output that gives somebody away: infinite", REFUTED)
            )
        else:
            stated = exact_interval(data["epsilon_exact"])
            claims.append(upper_bound_claim("epsilon: the largest loss", stated, largest, largest))

    def promise_claims(ends: Ends) -> list[Claim]:
        return [*_promised_claims(data, ends, largest, tight=ways <= MAX_ENUMERATED)]

    scales = data["epsilon"] or max(data["profile"]["epsilon"]), smallest_positive(*deltas)
    return [
        *claims,
        *refine_claims(composition.loss_on_grid, scales, promise_claims, composition.loss_spacing),
        *_unchecked_name_claims(data),
    ]


def _spelled_twice_claims(data: dict[str, Any]) -> Iterator[Claim]:
    """Numbers that are written twice; whether it says which mechanisms share rows."""
    said = {one.get("together") is not None for one in data["mechanisms"]}
    yield equality_claim("mechanisms.together is given", said, {data["version"] > 1})
    for name in ("epsilon", "total_variation"):
        yield equality_claim(f"{name}_exact", Decimal(data[f"{name}_exact"]), Decimal(data[name]))
    yield equality_claim("delta", data["delta"], float(Decimal(data["delta_exact"])))
    yield equality_claim("delta_exact", Decimal(data["delta_exact"]), Decimal(data["budget"]["delta"]))
    success = min(1.0, math.nextafter((1 + data["total_variation"]) / 2, 2.0))
    yield equality_claim("attack_success", data["attack_success"], success)
    if data["profile"]["epsilon"][0] == 0:
        yield equality_claim("profile.delta[0]", data["profile"]["delta"][0], data["total_variation"])


def _parameter_claims(data: dict[str, Any], composition: Composition) -> Iterator[Claim]:
    """Check the stated parameters of each mechanism, the neighboring relation of its rows, and consistent answers."""
    whose = data["neighbors"]
    if whose["privacy_unit"] is None:
        bounds = tuple(whose[name] for name in ("max_rows", "max_rows_per_group", "max_groups"))
        yield equality_claim("neighbors", bounds, (1, 1, 1))
    for place, one in enumerate(data["mechanisms"]):
        name, steps = f"mechanisms[{place}]", one["table_steps_per_row"]
        yield equality_claim(f"{name}.factor", int(one["factor"]), -(-int(one["sensitivity_per_row"]) // steps))
        yield equality_claim(f"{name}.table is unimodal", composition.noises[id(one)].is_unimodal, True)
        yield from choice_claims(name, one, composition.noises[id(one)])
    yield from chosen_answer_claims(data["mechanisms"])
    # Answers that were made consistent have the weights of the noise that ran.
    for place, part in enumerate(data.get("consistent", [])):
        for number, (name, stated) in enumerate(zip(part["answers"], part["variances"], strict=True)):
            # What bounding costs is counted under labels.
            ran = [one for one in data["mechanisms"] if name in one["answers"] and one.get("exclusive") is None]
            if len(ran) != 1:
                raise BrokenError("an answer that was made consistent and has not one noise")
            square, noise = int(ran[0]["factor"]) ** 2, composition.noises[id(ran[0])]
            variance = square * noise.mean_squared + (square - 1) / 6
            same = abs(float(stated) - variance) <= VARIANCE_TOLERANCE * variance
            found = f"= {variance:.6g}"
            yield Claim(f"consistent[{place}].variances[{number}]", stated, found, CONFIRMED if same else REFUTED)


def _promised_claims(data: dict[str, Any], ends: Ends, largest: Any, *, tight: bool) -> Iterator[Claim]:
    """The guarantee, the profile and the attacker's rates, against both ends; and the budget that was to be kept.

    From the ``largest`` loss on (if not None), δ is 0.
    """
    low, high = ends

    def delta_claim(name: str, at: object, stated: object, *, tight: bool = False) -> Claim:
        epsilon = exact_interval(at)
        if largest is not None and epsilon + EPSILON_TOLERANCE >= largest:
            claim = upper_bound_claim(name, exact_interval(stated), arb(0), arb(0), tight=tight)
            return (
                claim
                if epsilon >= largest
                else claim._replace(found=f"{claim.found}: {CONFIRMED_AT_PLUS} {EPSILON_TOLERANCE}")
            )
        claim = upper_bound_claim(name, exact_interval(stated), low.delta(epsilon), high.delta(epsilon), tight=tight)
        if claim.verdict != OPEN:
            return claim
        beside = upper_bound_claim(
            name, exact_interval(stated), low.delta(epsilon), high.delta(epsilon + EPSILON_TOLERANCE), tight=tight
        )
        return (
            beside._replace(found=f"{beside.found}: {CONFIRMED_AT_PLUS} {EPSILON_TOLERANCE}")
            if beside.verdict != OPEN
            else claim
        )

    delta = data["delta_exact"]
    yield delta_claim(f"epsilon: delta({data['epsilon']:.17g})", data["epsilon_exact"], delta)
    if tight:
        # An ε that is larger than needed is true, but follows from no table here: it, or they, may have been altered.
        smaller = exact_interval(data["epsilon_exact"]) * (1 - 0.01) - exact_interval(1e-9)
        shown = smaller > 0 and high.delta(smaller).upper() < exact_interval(delta)
        needed = f"epsilon is no larger than needed: {data['epsilon']:.17g}"
        yield Claim(needed, str(data["epsilon"]), "<= 1.01 of the least", OPEN if shown else CONFIRMED)
    yield delta_claim("total_variation: delta(0)", 0, data["total_variation_exact"], tight=tight)
    for number, (epsilon, allowed) in enumerate(data["budget"]["points"]):
        yield delta_claim(f"budget.points[{number}]: delta({epsilon})", epsilon, allowed)
    for number, (at, stated) in enumerate(zip(data["profile"]["epsilon"], data["profile"]["delta"], strict=True)):
        yield delta_claim(f"profile.delta[{number}]: delta({at:.17g})", at, stated)
    tradeoff = data["tradeoff"]
    rates = zip(tradeoff["false_positive_rate"], tradeoff["true_positive_rate"], strict=True)
    for number, (alarms, stated) in enumerate(rates):
        share = exact_interval(alarms)
        name = f"tradeoff.true_positive_rate[{number}]: at {alarms}"
        yield upper_bound_claim(name, exact_interval(stated), low.power_at(share), high.power_at(share), tight=False)


def _unchecked_name_claims(data: dict[str, Any]) -> Iterator[Claim]:
    """List the statements that cannot be confirmed by computation."""
    if data["version"] == 1:
        why = "version 1 does not state which mechanisms the same rows shift: each is composed by itself (upper bound)"
        yield unchecked_claim("mechanisms.together", why)
    parts = "answers", "statistic", "column", "by", "where", "unit", "family", "table.steps", "choice"
    yield unchecked_claim(", ".join(f"mechanisms.{name}" for name in parts), "descriptions of the mechanisms")
    bounds = ("rows", "max_rows_per_group", "groups", "together", "exclusive", "sensitivity_per_row")
    why = "row limits are the publisher's statement; the results above assume that they are true"
    yield unchecked_claim(", ".join(f"mechanisms.{name}" for name in bounds), why)
    yield unchecked_claim(
        "neighbors", "description of the privacy unit; where its limits differ, those of the mechanisms are used"
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
