"""Spent and reserved fractions of each limit, as exact rationals, and the effect of each entry on them.

A block is a release, or all releases of a series: it is planned and charged at once. Its cost is the
fraction of a limit that it is charged.

These functions only compute: a charge and ``check_ledger`` call the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from tightrope.documents.budget import Budget
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.ledger.chain import CHARGED, DATASET, RESERVED
from tightrope.ledger.limits import BASIC_PREFIX, MAIN_LIMIT, MOMENTS, Limit

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.ledger.moments import Moments

MAX_DECIMAL_DIGITS = 30
"""Fractions with more decimal digits are written as ratios."""
MAX_ADVICE_LENGTH = 12
"""Number of characters of an exact fraction in advice; longer ones are rounded down."""
ADAPTIVE = {"basic": "basic composition", MOMENTS: "moments"}
"""Wording of each rule of a limit for blocks that are chosen after seeing earlier answers.

Their guarantees add up ("basic"; theory §2, F5), or log moments of their noise do ("moments"; F3)."""
TOGETHER = "exact composition"
"""Wording for releases that are declared together: their losses are composed exactly (theory §2, F1)."""
MAX_CACHED_RECORDS = 64
"""Number of noise records whose losses and fractions are cached: a charge needs them twice, a check many times."""


def fraction_text(fraction: Fraction) -> str:
    """Return a fraction as a short decimal if it has one, else as a ratio.

    >>> [fraction_text(fraction) for fraction in (Fraction(1, 8), Fraction(1, 12), Fraction(0), Fraction(1))]
    ['0.125', '1/12', '0', '1']
    """
    rest, twos, fives = fraction.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    digits = max(twos, fives)
    if rest != 1 or digits > MAX_DECIMAL_DIGITS:
        return str(fraction)
    numerals = str(abs(fraction.numerator) * 10**digits // fraction.denominator).rjust(digits + 1, "0")
    text = f"{numerals[:-digits]}.{numerals[-digits:]}" if digits else numerals
    return f"-{text}" if fraction < 0 else text


def rounded_down_text(fraction: Fraction) -> str:
    """Return a fraction as text: exactly if it is short, else rounded down to six decimals.

    >>> [rounded_down_text(x) for x in (Fraction(3, 4), Fraction(2, 3), Fraction(10**12 - 1, 3 * 10**12))]
    ['0.75', '2/3', '0.333333']
    """
    text = fraction_text(fraction)
    return text if len(text) <= MAX_ADVICE_LENGTH else fraction_text(Fraction(math.floor(fraction * 10**6), 10**6))


FractionsByLimit = Mapping[str, Fraction]
"""Fractions of limits, by the limit's name."""


@dataclass(frozen=True, slots=True)
class Balance:
    """The spent and the reserved fraction of one limit."""

    spent: Fraction = Fraction(0)
    reserved: Fraction = Fraction(0)

    @property
    def fraction_left(self) -> Fraction:
        """The fraction that is neither spent nor reserved."""
        return 1 - self.spent - self.reserved


@dataclass(frozen=True, slots=True)
class SeriesProgress:
    """A declared series of ``times`` releases, of which ``done`` have been made.

    ``costs`` are fractions by limit, for the whole series. A limit that renews is charged the cost of the whole series
    in each period in which a release is made; ``paid`` lists the slots (limit and period) that were charged.
    """

    times: int
    done: int
    costs: FractionsByLimit
    paid: tuple[str, ...] = ()

    def to_data(self) -> list[Any]:
        return [self.times, self.done, {name: str(cost) for name, cost in self.costs.items()}, list(self.paid)]

    @classmethod
    def from_data(cls, data: list[Any]) -> Self:
        times, done, costs, paid = data
        return cls(times, done, {name: Fraction(cost) for name, cost in costs.items()}, tuple(paid))


REUSE_ADVICE = "Earlier answers are stored in the ledger, and computing with them costs nothing"
SPENT_ADVICE = (
    "This budget allows no further answers from this dataset, now or later; only a dataset about other people has a "
    f"budget of its own. {REUSE_ADVICE}"
)
"""What can still be done; a larger budget for the same people would be another, weaker guarantee."""


@dataclass(frozen=True, slots=True)
class State:
    """All balances of a dataset by slot (a limit or its period), its series by key, and the number of its releases."""

    balances: Mapping[str, Balance] = field(default_factory=dict)
    series: Mapping[str, SeriesProgress] = field(default_factory=dict)
    releases: int = 0

    def balance_of(self, slot: str) -> Balance:
        """Return the balance of a slot; nothing is spent of an unused one."""
        return self.balances.get(slot, Balance())

    def after_charge(self, costs: FractionsByLimit, slots: Mapping[str, str]) -> State:
        """Return the state after a charge; raises ``InsufficientBudgetError`` if a limit has not enough left."""
        self._require_enough_left(costs, slots)
        moves = [(slots[name], cost, Fraction(0)) for name, cost in costs.items()]
        return State(self._with_balances_moved(moves), self.series, self.releases + 1)

    def after_reservation(self, key: str, times: int, costs: FractionsByLimit, slots: Mapping[str, str]) -> State:
        """Return the state after declaring a series: charged to limits that renew, reserved in the others."""
        self._require_enough_left(costs, slots)
        renews = {name: slots[name] != name for name in costs}
        moves = [(slots[n], *((c, Fraction(0)) if renews[n] else (Fraction(0), c))) for n, c in costs.items()]
        running = SeriesProgress(times, 0, dict(costs), tuple(sorted(slots[name] for name in costs if renews[name])))
        return State(self._with_balances_moved(moves), {**self.series, key: running}, self.releases)

    def after_series_release(self, key: str, slots: Mapping[str, str]) -> State:
        """Return the state after the next release of a series: its part is spent and no longer reserved."""
        running = self.series[key]
        if running.done >= running.times:
            raise InsufficientBudgetError(
                f"all {running.times} releases of the series {key!r} are done; nothing was spent; declare another "
                f"series, or plan with the remaining budget"
            )
        new = {n: c for n, c in running.costs.items() if slots[n] != n and slots[n] not in running.paid}
        self._require_enough_left(new, slots, f"the series {key!r} is charged in full again in a new period; ")
        release_costs = {n: c / running.times for n, c in running.costs.items() if slots[n] == n}
        moves = [*((slots[n], c, Fraction(0)) for n, c in new.items()), *((n, c, -c) for n, c in release_costs.items())]
        paid = tuple(sorted({*running.paid, *(slots[name] for name in new)}))
        after = replace(running, done=running.done + 1, paid=paid)
        return State(self._with_balances_moved(moves), {**self.series, key: after}, self.releases + 1)

    def _with_balances_moved(self, moves: Iterable[tuple[str, Fraction, Fraction]]) -> dict[str, Balance]:
        """Return all balances after adding to the spent and reserved fractions of each slot."""
        balances = dict(self.balances)
        for slot, spent, reserved in moves:
            before = balances.get(slot, Balance())
            balances[slot] = Balance(before.spent + spent, before.reserved + reserved)
        return balances

    def _require_enough_left(self, costs: FractionsByLimit, slots: Mapping[str, str], why: str = "") -> None:
        """Raise ``InsufficientBudgetError`` if a cost exceeds what is left of its slot; ``why`` begins the message."""
        for name, cost in costs.items():
            if name.startswith(BASIC_PREFIX):
                continue
            left = self.balance_of(slots[name]).fraction_left
            if cost > left:
                budget = "privacy budget" if name == MAIN_LIMIT else f"limit {slots[name]!r}"
                needed = "the whole" if cost == 1 else f"a fraction of {fraction_text(cost)} of the"
                advice = SPENT_ADVICE
                if name != MAIN_LIMIT:
                    advice = f"This limit allows no further answers. {REUSE_ADVICE}"
                if slots[name] != name:
                    advice = f"This limit renews after {slots[name]!r}. {REUSE_ADVICE}"
                if left > 0:
                    advice = f"Plan with {rounded_down_text(left / cost)} of this fraction or less"
                raise InsufficientBudgetError(
                    f"{why}this release needs {needed} {budget} and {fraction_text(left)} is left. "
                    f"This attempt was not charged. {advice}"
                )

    def to_data(self) -> dict[str, Any]:
        """Return the state as data for JSON."""
        balances = {slot: [str(b.spent), str(b.reserved)] for slot, b in self.balances.items()}
        series = {key: running.to_data() for key, running in self.series.items()}
        return {"balances": balances, "series": series, "releases": self.releases}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the state from the data of ``to_data``."""
        balances = {slot: Balance(Fraction(s), Fraction(r)) for slot, (s, r) in data["balances"].items()}
        series = {key: SeriesProgress.from_data(running) for key, running in data["series"].items()}
        return cls(balances, series, data["releases"])


def left_by_addition(state: State, slot: str) -> str:
    """Return what would be left of a limit by moments if the guarantees had been added up instead."""
    left = state.balance_of(BASIC_PREFIX + slot).fraction_left
    return fraction_text(left) if left >= 0 else "nothing"


def costs_of(
    limits: Sequence[Limit],
    guarantee: Budget,
    audience: str | None,
    costs_by_moments: Mapping[str, Fraction | None],
    fraction: Fraction | None = None,
) -> dict[str, Fraction]:
    """Return the cost of a block as a fraction of each limit: from its guarantee, or, for a limit by moments, as given.

    ``costs_by_moments``: the fractions of the limits by moments, by name; None if the limit cannot cover the block. For
    these limits, the cost under basic composition is added under ``BASIC_PREFIX`` + name: only for comparison, it is
    not enforced. ``fraction``: the fraction of the whole budget from which the decimals of the guarantee were rounded
    down, such as 1/3; it is charged exactly, so that three thirds are the whole, and never less than the guarantee
    needs. Raises ``InsufficientBudgetError`` if a limit cannot cover the block.
    """
    costs: dict[str, Fraction] = {}
    whole = [limit.budget for limit in limits if limit.name == MAIN_LIMIT and limit.moments is None]
    for limit in (limit for limit in limits if limit.applies_to(audience)):
        basic = limit.required_fraction(guarantee)
        if fraction is not None and basic is not None:
            shares = map(limit.required_fraction, whole)
            basic = max([basic, *(fraction * share for share in shares if share is not None)])
        if limit.moments is None:
            costs[limit.name] = _cost_or_refuse(limit, basic, guarantee)
        else:
            costs[limit.name] = _cost_or_refuse(limit, costs_by_moments.get(limit.name), guarantee)
            costs[BASIC_PREFIX + limit.name] = Fraction(1) if basic is None else basic
    return costs


def _cost_or_refuse(limit: Limit, cost: Fraction | None, guarantee: Budget) -> Fraction:
    if cost is not None:
        return cost
    if limit.moments is None:
        remedy = (
            f"no fraction of it covers {guarantee}; nothing was spent; plan with a budget that has the same "
            "(epsilon, delta) points, or points with smaller numbers"
        )
    else:
        remedy = "its log moments do not cover this noise; nothing was spent; plan with a fraction of the whole budget"
    raise InsufficientBudgetError(f"the limit {limit.name!r} is {limit.budget}, and {remedy}")


def state_after_entry(
    state: State, limits: Sequence[Limit], kind: str, key: str | None, body: Mapping[str, Any]
) -> State:
    """Return the state after an entry with this body.

    Raises ``InsufficientBudgetError`` if a limit has not enough left.
    """
    if kind == DATASET:
        return State()
    if kind not in (CHARGED, RESERVED):
        return state
    slots = {limit.name: limit.slot_at(body["time"]) for limit in limits}
    slots |= {BASIC_PREFIX + name: BASIC_PREFIX + slot for name, slot in slots.items()}
    if body.get("series") is not None:
        if body["series"] not in state.series:
            raise InsufficientBudgetError(f"the series {body['series']!r} is not reserved; nothing was spent")
        return state.after_series_release(body["series"], slots)
    costs = _costs_from_body(limits, body)
    if kind == CHARGED:
        return state.after_charge(costs, slots)
    return state.after_reservation(str(key), body["times"], costs, slots)


def fraction_of_charge(state: State, limits: Sequence[Limit], body: Mapping[str, Any]) -> Fraction:
    """Return the fraction of the whole budget that a release took; for one of a series, its part of the series."""
    if body["series"] is not None:
        running = state.series[body["series"]]
        return running.costs[MAIN_LIMIT] / running.times
    return _costs_from_body(limits, body)[MAIN_LIMIT]


def _costs_from_body(limits: Sequence[Limit], body: Mapping[str, Any]) -> FractionsByLimit:
    """Return the cost of a block for each limit; for limits by moments, the charge that the entry states."""
    costs_by_moments = tuple(body.get("costs", {}).items())
    guarantee = (body["kept"]["delta"], tuple(map(tuple, body["kept"]["points"])), body.get("fraction"))
    return _costs_by_limit(tuple(limits), guarantee, body["audience"], costs_by_moments)


@lru_cache(maxsize=256)
def _costs_by_limit(
    limits: tuple[Limit, ...],
    guarantee: tuple[Any, ...],
    audience: str | None,
    costs_by_moments: tuple[tuple[str, str | None], ...],
) -> FractionsByLimit:
    delta, points, ratio = guarantee
    charged = {name: None if cost is None else Fraction(cost) for name, cost in costs_by_moments}
    fraction = None if ratio is None else Fraction(ratio)
    return costs_of(limits, Budget(delta=delta, points=points), audience, charged, fraction)


def moment_costs(limits: Iterable[Limit], noise_record: str, times: int, audience: str | None) -> dict[str, str | None]:
    """Return the charge of ``times`` such releases for each limit by moments, as fractions; None if it is too small.

    Raises ``InputError`` without a noise record, which is needed to compute the moments.
    """
    fractions: dict[str, str | None] = {}
    for limit in limits:
        if limit.moments is None or not limit.applies_to(audience):
            continue
        if not noise_record:
            text = "missing, but a limit by moments adds up log moments of the noise"
            raise InputError.from_text("noise_record", text)
        fraction = _charged_fraction(limit.moments, noise_record, times)
        fractions[limit.name] = None if fraction is None else str(fraction)
    return fractions


def charge_covers_noise(moments: Moments, noise_record: str, times: int, charged: str) -> bool:
    """Return whether the charge covers the moments of the noise record, computed again."""
    needed = moments.required_fraction(_loss_from_record(noise_record, times))
    return needed is not None and needed <= Fraction(charged)


@lru_cache(maxsize=MAX_CACHED_RECORDS)
def _charged_fraction(moments: Moments, noise_record: str, times: int) -> Fraction | None:
    return moments.charged_fraction(_loss_from_record(noise_record, times))


@lru_cache(maxsize=MAX_CACHED_RECORDS)
def _loss_from_record(noise_record: str, times: int) -> PrivacyLoss:
    from tightrope.ledger.noise_record import NoiseRecord  # loads the accounting, which basic limits do not need

    return NoiseRecord.from_text(noise_record).loss_of_separate_releases(times)
