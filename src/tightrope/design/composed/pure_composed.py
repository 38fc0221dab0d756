"""Least noise of several releases where some δ_i = 0: every loss is bounded, and the noise never ends.

k releases keep (ε, 0) exactly if no loss of any of them exceeds ε/k: each is (ε/k, 0)-private by itself. For that the
staircase is best (geometric noise at sensitivity 1, theory §4.1), unless a further point asks for more.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.design.composed.composed_question import Question
from tightrope.design.composed.lattice_table import keeps
from tightrope.design.program.noise_cost import Cost
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.families.laplace import Laplace
from tightrope.mechanisms.families.staircase import Staircase, first_widths
from tightrope.mechanisms.tables.integer_tables import staircase_table
from tightrope.mechanisms.tables.table import NoiseTable

HALVINGS = 60
PURE_WITHIN = 1e-9
MOST_STAIRS = 32
UNLIKELY = 1e-40
"""Costs of what is rarer than this are left out; costs grow at most like x⁴."""


def pure_noise(question: Question) -> tuple[str, NoiseTable]:
    """The name and the table of the cheapest staircase that keeps all points."""
    tables = [_of_width(question, high) for high in first_widths(question.shift, MOST_STAIRS)]
    name = Laplace.name if question.shift < Staircase.smallest_shift else Staircase.name
    return name, min(tables, key=lambda table: expected_cost(table, question.cost))


def _of_width(question: Question, high: int) -> NoiseTable:
    """The steepest staircase with this first width: no steeper than ε/k, and less where another point binds."""
    top = min(epsilon for epsilon, delta in question.points if delta == 0) / question.releases

    def at(epsilon: float) -> NoiseTable:
        return staircase_table(epsilon, question.shift, high)

    if keeps(at(top), question):
        return at(top)
    good, bad = top / 2, top
    for _ in range(HALVINGS):
        if keeps(at(good), question):
            break
        good, bad = good / 2, good
    else:
        raise BudgetRefused(f"no endless noise keeps {list(question.points)} after {question.releases} releases")
    while bad > good * (1 + PURE_WITHIN):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if keeps(at(middle), question) else (good, middle)
    return at(good)


def expected_cost(table: NoiseTable, cost: Cost) -> float:
    """E φ(|X|) from the integer weights: exact for |x| and x², else summed as far as it matters."""
    if cost.power == 1:
        return table.mean_absolute
    if cost.power == 2:
        return table.mean_squared
    last = int(table.worst) if table.tail is None else _last(table, cost)
    above = np.array([float(table.survival(x)) for x in range(last)])
    values = cost.at(np.arange(last + 1, dtype=np.float64))
    return float(values[0] + 2 * np.dot(np.diff(values), above))


def _last(table: NoiseTable, cost: Cost) -> int:
    """Where an endless law is no more likely than ``UNLIKELY``."""
    cost.check_growth(1.0 + table.mean_absolute)
    last = len(table.half) + 1
    while table.survival(last) > UNLIKELY:
        last *= 2
    return last
