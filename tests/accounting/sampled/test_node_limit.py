"""The error for too many quadrature nodes states the number of nodes that were needed."""

from __future__ import annotations

import math
import re

import pytest

from tightrope.accounting.distributions import subsampled_gaussian_nodes, subset
from tightrope.accounting.distributions.subsampled_gaussian_nodes import (
    MomentIntegrand,
    build_quadrature,
    quadrature_beyond_cut,
    quadrature_up_to_cut,
)
from tightrope.errors import PrecisionError


@pytest.mark.parametrize(
    ("build", "cut"), [(build_quadrature, math.inf), (quadrature_up_to_cut, 2.0), (quadrature_beyond_cut, 2.0)]
)
def test_stated_count_is_the_number_of_nodes(build, cut, monkeypatch) -> None:
    integrand = MomentIntegrand(1.0, 0.1, 3.0, 1, cut)
    node_count = len(build(integrand, None).loss)
    monkeypatch.setattr(subsampled_gaussian_nodes, "MAX_NODES", 10)
    with pytest.raises(PrecisionError, match="quadrature nodes, more than 10") as caught:
        build(integrand, None)
    assert float(re.search(r"needs (\S+) quadrature", str(caught.value))[1]) == pytest.approx(node_count, rel=0.1)


def test_stated_count_of_a_subset_quadrature(monkeypatch) -> None:
    integrand = MomentIntegrand(1.0, 0.1, 3.0, 1)
    shape = (1.0, 0.05, 0.0)
    node_count = len(subset._integration_curve(integrand, shape, 15.0, ends_there=False).loss)
    monkeypatch.setattr(subset, "MAX_NODES", 10)
    with pytest.raises(PrecisionError) as caught:
        subset._integration_curve(integrand, shape, 15.0, ends_there=False)
    assert float(re.search(r"needs (\S+) quadrature", str(caught.value))[1]) == pytest.approx(node_count, rel=0.1)
