"""The least noise of every family at one budget."""

from __future__ import annotations

import pytest

from tightrope.documents import Budget
from tightrope.errors import InsufficientBudgetError
from tightrope.mechanisms.laplace import discrete_laplace
from tightrope.noise.compare import calibrate_families, find_least_noise, meets_privacy_points

BUDGETS = [
    (Budget(epsilon=1, delta="1e-6"), 1),
    (Budget(epsilon="0.2", delta="1e-9"), 3),
    (Budget(epsilon=1, delta="1e-6", points=[(0, "0.1")]), 2),
    (Budget(epsilon=4, delta="0.05"), 5),
    (Budget(epsilon=1, delta=0), 2),
]


@pytest.mark.parametrize(("budget", "sensitivity"), BUDGETS)
def test_every_family_keeps_every_point(budget, sensitivity):
    found = [family for family in calibrate_families(budget, sensitivity=sensitivity) if family.mechanism]
    assert len(found) >= 2
    for family in found:
        for epsilon, delta in budget.points:
            lower = family.mechanism.loss.delta_bounds(float(epsilon)).lower
            assert lower <= float(delta), (family.family_name, epsilon)


def test_the_size_is_the_least():
    """Power: noise a millionth smaller than this would not be found, noise a thousandth smaller breaks the budget."""
    points = [(1.0, 1e-6)]
    found = find_least_noise(lambda size: discrete_laplace(scale=size, sensitivity=3), points, 3.0)
    assert meets_privacy_points(found, points)
    assert not meets_privacy_points(discrete_laplace(scale=found.scale * 0.999, sensitivity=3), points)


def test_where_no_size_will_do():
    with pytest.raises(InsufficientBudgetError, match="no size"):
        find_least_noise(lambda size: discrete_laplace(scale=2.0), [(0.1, 1e-6)], 1.0)
