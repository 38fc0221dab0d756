"""The best adaptive analyst under a limit by moments: real plans and their charges, searched backwards for every state.

The analyst chooses each plan after seeing all earlier answers, may reserve series and stop them anywhere, and knows
both neighbors. What they reach is a value iteration over the loss so far and what is left of the limit, with laws made
here from the integer tables of the noise, split by split; losses are rounded down, so that there is an analyst who
reaches as much. ``TIGHTROPE_LEDGER_ATTACKS=40`` tries more limits than CI does.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, reduce

import mpmath
import numpy as np
import pytest
from msgspec import convert
from scipy.signal import fftconvolve

from tests.ledger.conftest import identity
from tightrope.documents.budget import Budget
from tightrope.documents.document import PackedTable
from tightrope.errors import InsufficientBudgetError
from tightrope.ledger import Claim, Limit
from tightrope.ledger.account import Ledger
from tightrope.ledger.check import check_ledger
from tightrope.ledger.identity import SeriesClaim
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.ledger.state import moment_costs
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SplitBounds
from tightrope.release.draft_search import noise_of_equal_releases

ATTACKS = int(os.environ.get("TIGHTROPE_LEDGER_ATTACKS", "1"))
CELLS = 3_000
"""Cells of the loss, up to the ε of the limit."""
Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True)
class Law:
    """Masses under P of losses ``(first + i) cells``, rounded down, and of infinite loss."""

    first: int
    masses: Floats
    infinite: float

    def beside(self, other: Law) -> Law:
        masses = np.maximum(fftconvolve(self.masses, other.masses), 0.0)
        return Law(self.first + other.first, masses, 1 - (1 - self.infinite) * (1 - other.infinite))


@cache
def chances(text: str) -> Floats:
    """P(Y = 0), P(Y = 1), … of a table."""
    table = NoiseTable.from_packed(convert(json.loads(text), PackedTable))
    points, survival = [], [Fraction(table.survival_probability(0))]
    while survival[-1] > 1e-25 and len(survival) < 20_000:
        survival.append(Fraction(table.survival_probability(len(survival))))
    points = [1 - 2 * survival[0], *(a - b for a, b in itertools.pairwise(survival))]
    return np.array([float(p) for p in points])


@cache
def moved(text: str, steps: int, cell: float) -> Law:
    """The loss of a number that a person moves by so many steps of its table."""
    half = chances(text)
    p = np.concatenate([half[:0:-1], half])
    q = np.concatenate([np.zeros(steps), p])[: len(p)]
    both = q > 0
    losses = np.floor(np.log(p[both] / q[both]) / cell + 1e-9).astype(np.int64)
    masses = np.bincount(losses - losses.min(), weights=p[both])
    return Law(int(losses.min()), masses, max(0.0, 1 - float(p[both].sum())))


def splits(rows: int, in_group: int, groups: int) -> Iterator[tuple[int, ...]]:
    """All ways in which a person's rows fall into groups, largest first."""

    def below(left: int, most: int, places: int) -> Iterator[tuple[int, ...]]:
        yield ()
        for first in range(1, min(left, most) + 1) if places else ():
            for rest in below(left - first, first, places - 1):
                yield (first, *rest)

    yield from (split for split in below(rows, in_group, groups) if split)


def laws(recipe: str, cell: float) -> list[Law]:
    """The loss of a release, for every split of a person's rows in every unit."""
    ways, record = [], json.loads(recipe)
    tables = [json.dumps(table) for table in record["tables"]]
    for unit in record["units"]:
        own = []
        for split in splits(*unit["rows"]):
            noises = [(tables[one["table"] - 1], one["shift"] * rows) for one in unit["noise"] for rows in split]
            own.append(reduce(Law.beside, (moved(text, steps, cell) for text, steps in noises)))
        ways.append(own)
    return [reduce(Law.beside, chosen) for chosen in itertools.product(*ways)]


@dataclass(frozen=True)
class Offer:
    """A plan that may be made: what it is charged, and how many dates it has."""

    cost: Fraction
    recipe: str
    dates: int = 1


class Analyst:
    """The best of all analysts who use these plans: the value of each state, for every loss so far."""

    def __init__(self, offers: Sequence[Offer], epsilon: float) -> None:
        self.offers, self.epsilon, self.cell = offers, epsilon, epsilon / CELLS
        self.losses = np.arange(-2 * CELLS, 4 * CELLS + 1)
        with np.errstate(over="ignore"):
            self.stop = np.maximum(0.0, -np.expm1(epsilon - self.losses * self.cell))
        self.laws = [laws(offer.recipe, self.cell) for offer in offers]
        self.known: dict[tuple[Fraction, tuple[int, ...]], Floats] = {}

    def value(self, left: Fraction, waiting: tuple[int, ...]) -> Floats:
        """Of the state in which so much of the limit is left, and so many dates of each series."""
        if (left, waiting) not in self.known:
            best = self.stop
            for place, offer in enumerate(self.offers):
                after = None
                if waiting[place]:
                    after = self.value(left, tuple(n - (i == place) for i, n in enumerate(waiting)))
                elif offer.cost <= left:
                    more = tuple(n + (offer.dates - 1) * (i == place) for i, n in enumerate(waiting))
                    after = self.value(left - offer.cost, more)
                for law in self.laws[place] if after is not None else ():
                    best = np.maximum(best, self.before(law, after))
            self.known[left, waiting] = best
        return self.known[left, waiting]

    def before(self, law: Law, after: Floats) -> Floats:
        """E V(l + L): beyond the last loss V is at least what it is there, below the first at least 0."""
        low, high = max(0, -law.first), max(0, law.first + len(law.masses))
        padded = np.concatenate([np.zeros(low), after, np.full(high, after[-1])])
        found = fftconvolve(padded, law.masses[::-1], mode="valid")
        start = low + law.first
        return np.minimum(1.0, found[start : start + len(after)] + law.infinite)

    @property
    def reached(self) -> float:
        whole = self.value(Fraction(1), (0,) * len(self.offers))
        return float(whole[2 * CELLS])


COUNT, MEAN = NoiseSpec("count", 8, True), NoiseSpec("sum", 8, False)
UNITS = (
    (CompositionGroup((COUNT,), SplitBounds(1, 1, 1)),),
    (CompositionGroup((MEAN, COUNT), SplitBounds(1, 1, 1)),),
    (CompositionGroup((COUNT,), SplitBounds(3, 2, 2)),),
    (CompositionGroup((COUNT,), SplitBounds(1, 1, 1)), CompositionGroup((MEAN,), SplitBounds(2, 2, 1))),
    (CompositionGroup((NoiseSpec("count", 8, True, needs_bound=True),), SplitBounds(2, 1, 2)),),
)


def offered(limit: Limit, draw: random.Random, scale: str = "1") -> list[Offer]:
    """A large plan, a middle one, a small one and a series, of random questions."""
    found = []
    for share in ("0.5", draw.choice(["0.2", "0.25", "0.3"]), draw.choice(["0.05", "0.08"])):
        recipe = noise_of_equal_releases(draw.choice(UNITS), limit, Decimal(share) * Decimal(scale)).to_text
        found.append(Offer(charged(limit, recipe, 1), recipe))
    times = draw.choice([2, 4])
    recipe = noise_of_equal_releases(draw.choice(UNITS), limit, Decimal("0.4") * Decimal(scale), times).to_text
    return [*found, Offer(charged(limit, recipe, times), recipe, times)]


def charged(limit: Limit, recipe: str, times: int) -> Fraction:
    ((share),) = moment_costs([limit], recipe, times, None).values()
    assert share is not None
    return Fraction(share)


def a_limit(draw: random.Random, every: str | None = None) -> Limit:
    epsilon, delta = draw.choice(["0.2", "1", "3"]), draw.choice(["0.01", "0.001", "1e-6"])
    name = "total" if every is None else "yearly"
    budget = Budget(epsilon=epsilon, delta=delta)
    return Limit(name, budget, every=every, rule="moments", releases=draw.choice([1, 4, 30]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(ATTACKS))
def test_no_analyst_who_chooses_plans_by_answers_passes_the_promise(seed: int) -> None:
    draw = random.Random(seed)
    limit = a_limit(draw)
    ((epsilon, delta),) = limit.budget.checked_points
    analyst = Analyst(offered(limit, draw), float(epsilon))
    reached = analyst.reached
    print(f"seed {seed}: {limit.rule_text}: {len(analyst.known)} states, {reached / float(delta):.3f} of delta")
    assert 0 < reached <= float(delta)


def test_an_analyst_who_is_charged_too_little_passes_it() -> None:
    """The search sees it where charges are a third of what they should be."""
    limit = Limit("total", Budget(epsilon="1", delta="0.001"), rule="moments", releases=4)
    recipe = noise_of_equal_releases(UNITS[0], limit, Decimal("0.25")).to_text
    cheap = Offer(charged(limit, recipe, 1) / 3, recipe)
    assert Analyst([cheap], 1.0).reached > 0.001


@cache
def exact_share(limit: Limit, recipe: str, times: int) -> mpmath.mpf:
    """The share of the dominating law, in fifty digits, with the largest losses infinite where that takes least."""
    moments = limit.moments
    assert moments is not None
    ((law, count),) = zip(
        (found := NoiseRecord.from_text(recipe).loss_of_separate_releases(times).remove).laws, found.counts, strict=True
    )
    losses, masses = (np.asarray(getattr(law, name), dtype=np.float64) for name in ("losses", "masses"))
    with mpmath.workdps(50):
        z, nats, cap = (mpmath.mpf(str(x)) for x in (moments.order, moments.budget, moments.infinite_mass))
        terms = [
            mpmath.mpf(float(p)) * mpmath.exp(z * mpmath.mpf(float(x))) for x, p in zip(losses, masses, strict=True)
        ]
        finite = list(itertools.accumulate(terms))
        beyond = list(
            itertools.accumulate([mpmath.mpf(float(law.infinite_mass)), *map(mpmath.mpf, map(float, masses[:0:-1]))])
        )[::-1]
        return min(
            max(count * max(mpmath.log(moment), 0) / nats, (1 - (1 - lost) ** count) / cap)
            for moment, lost in zip(finite, beyond, strict=True)
            if moment > 0
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(ATTACKS))
def test_the_last_admitted_and_the_first_refused_lie_on_the_private_side(seed, tmp_path) -> None:
    """Random plans, series and dates under a total and a yearly limit by moments, over three years, until nothing fits.

    Sums are kept here in fifty digits, from the dominating laws; what is refused would have passed what was left.
    """
    draw = random.Random(1_000 + seed)
    total, yearly = a_limit(draw), a_limit(draw, "year")
    day = ["2026-12-31T23:59:59.999+00:00"]
    ledger = Ledger(tmp_path / "ledger", create=True, clock=lambda: day[0])
    account = ledger.declare_dataset(identity(), [total, yearly])
    offers = offered(total, draw, "0.2")
    spent: dict[str, mpmath.mpf] = {}
    admitted, refused, series = 0, 0, []

    def add(slot: str, share: mpmath.mpf) -> None:
        spent[slot] = spent.get(slot, mpmath.mpf(0)) + share

    for number in range(45):
        if number in (15, 30):
            day[0] = f"{2027 + number // 30}-01-01T00:00:00.000+00:00"
        slots = {total.name: "total", yearly.name: f"yearly {day[0][:4]}"}
        offer, state = draw.choice(offers), account.current_state()
        running = draw.choice(series) if series and draw.random() < 0.4 else None
        try:
            if running is not None:
                own, key, paid = running
                account.charge_release(Claim(f"{number}", "plan", KEPT, own.recipe), key)
                if slots["yearly"] not in paid:
                    paid.add(slots["yearly"])
                    add(slots["yearly"], exact_share(yearly, own.recipe, own.dates))
            elif offer.dates > 1:
                account.reserve_series(SeriesClaim(f"s{number}", "plan", KEPT, offer.dates, offer.recipe))
                series.append((offer, f"s{number}", {slots["yearly"]}))
                for limit in (total, yearly):
                    add(slots[limit.name], exact_share(limit, offer.recipe, offer.dates))
            else:
                account.charge_release(Claim(f"{number}", "plan", KEPT, offer.recipe))
                for limit in (total, yearly):
                    add(slots[limit.name], exact_share(limit, offer.recipe, 1))
            admitted += 1
        except InsufficientBudgetError as refusal:
            refused += 1
            own = running[0] if running is not None else offer
            costs = moment_costs([total, yearly], own.recipe, own.dates, None)
            lacking = [
                name
                for name, share in costs.items()
                if share is None or Fraction(share) > state.balance_of(slots[name]).fraction_left
            ]
            assert lacking or "are done" in str(refusal)
        after = account.current_state()
        for slot, share in spent.items():
            charged_share = 1 - after.balance_of(slot).fraction_left
            assert share <= mpmath.mpf(charged_share.numerator) / charged_share.denominator <= 1
    print(f"seed {seed}: {admitted} admitted, {refused} refused, {len(series)} series")
    assert admitted and refused
    assert check_ledger(ledger).problems == ()
    ledger.close()


KEPT = Budget(epsilon="700", delta="0.5")
"""Nothing is claimed of a release alone: the moments count."""
