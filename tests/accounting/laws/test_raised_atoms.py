"""A law that was raised above one order of a pair says nothing of the other: δ below ε = 0 is summed, not mirrored."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.loss_pmf import LossLattice, LossPMF
from tightrope.accounting.privacy_loss import PrivacyLoss

END, RAISED = 0.01, 1e-11
HIGH = 1 / (1 + math.exp(-END))
LAW = Atoms(np.array([-END, END]), np.array([1 - HIGH - RAISED, HIGH + RAISED]), one_order=True)


def true(epsilon: float) -> float:
    """δ of what the law was before a little of its mass was raised."""
    return HIGH * -math.expm1(epsilon - END) + (1 - HIGH) * max(0.0, -math.expm1(epsilon + END))


@pytest.mark.parametrize("epsilon", [-0.02, -0.005, -1e-9, -1e-12])
def test_what_is_raised_stays_above(epsilon):
    assert PrivacyLoss.from_distribution(LAW, reverse=LAW).delta(epsilon) >= true(epsilon)


def test_what_was_asked_below_zero_lowers_nothing_above():
    loss = PrivacyLoss.from_distribution(LAW, reverse=LAW)
    loss.delta([-1e-9, -1e-12])
    assert loss.delta(0.0) >= true(0.0)
    assert loss.true_positive_rate(0.5) >= 1 - 0.5 * math.exp(-END)


def test_masses_of_a_plan_are_above_one_order():
    law = LossPMF.zero_loss(LossLattice(0.01, 10)).to_atoms()
    assert law.one_order
    assert not law.has_exact_reverse


def test_errors_of_moments_at_real_orders_are_those_of_each_order():
    """Only terms of one sign are added: the relative error does not depend on the other orders asked for."""
    law = Atoms(np.array([-1.0, 0.5, 3.0]), np.array([0.3, 0.3, 0.4]), relative_mass_error=1e-13)
    orders = np.array([0.01, 1.0, 50.0, 400.0], dtype=np.complex128)
    together = law.log_moment_error(orders, law.log_moment(orders))
    each = [law.log_moment_error(z, law.log_moment(z))[0] for z in np.split(orders, 4)]
    assert together.tolist() == each
    assert min(together) >= 1e-13
    on_a_line = 2.0 + 1j * np.linspace(0, 3, 4)
    assert np.all(law.log_moment_error(on_a_line, law.log_moment(on_a_line)) >= 1e-13)
