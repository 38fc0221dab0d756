"""Losses to draw from: every family, alone and composed, cheap enough to ask hundreds of times."""

from __future__ import annotations

from hypothesis import strategies as st

import tightrope as tr

EPSILONS = st.floats(-6, 12, allow_nan=False).map(lambda e: round(e, 6))
POSITIVE = st.floats(0.01, 4).map(lambda e: round(e, 6))
SMALL = st.sampled_from([0.0, 1e-12, 1e-6, 1e-3, 0.1])
COUNTS = st.integers(1, 40)


@st.composite
def triples(draw: st.DrawFn) -> tr.PrivacyLoss:
    """(ε, δ, η) with η anywhere, clipped or not."""
    eta = draw(st.none() | st.floats(0.001, 1))
    return tr.approx_dp(draw(POSITIVE), delta=draw(SMALL), total_variation=eta).loss


@st.composite
def point_lists(draw: st.DrawFn) -> list[tuple[float, float]]:
    """Falling δ at rising ε."""
    epsilons = sorted(draw(st.lists(st.floats(0.05, 4), min_size=1, max_size=4, unique=True)))
    deltas = sorted(draw(st.lists(st.floats(1e-9, 0.4), min_size=len(epsilons), max_size=len(epsilons))), reverse=True)
    return list(zip(epsilons, deltas, strict=True))


@st.composite
def laws(draw: st.DrawFn, outcomes: int) -> list[float]:
    """A distribution over ``outcomes``; one outcome in five is impossible."""
    weights = draw(st.lists(st.integers(0, 1000) | st.integers(1, 1000), min_size=outcomes, max_size=outcomes))
    weights[0] += 1
    total = sum(weights)
    return [weight / total for weight in weights]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    outcomes = draw(st.integers(2, 6))
    return draw(laws(outcomes)), draw(laws(outcomes))


GAUSSIANS = st.floats(0.3, 30).map(lambda s: tr.gaussian(scale=s).loss)
LAPLACES = st.floats(0.3, 30).map(lambda s: tr.laplace(scale=s).loss)
TRUNCATED = st.builds(lambda e, d: tr.truncated_laplace(epsilon=e, delta=d).loss, POSITIVE, st.floats(1e-9, 0.4))
STAIRCASES = st.builds(lambda e, g: tr.staircase(epsilon=e, gamma=g).loss, POSITIVE, st.none() | st.floats(0, 1))
LISTS = point_lists().map(lambda points: tr.from_points(points).loss)
FINITE = pairs().map(lambda both: tr.from_pair(*both).loss)
SAMPLED = st.builds(
    lambda s, q, k: k * tr.gaussian(scale=s).loss.poisson_sample(q),
    st.floats(0.7, 3),
    st.sampled_from([0.001, 0.01, 0.2]),
    st.sampled_from([200, 1000]),
)

SINGLE = st.one_of(triples(), GAUSSIANS, LAPLACES, TRUNCATED, STAIRCASES, LISTS, FINITE)
"""One step, each with a formula or atoms."""
SMOOTH = st.builds(lambda g, other, k: g + k * other, GAUSSIANS, st.one_of(LAPLACES, STAIRCASES), st.integers(1, 5))
"""A Gaussian beside a few others: the contour, where the Gaussian is wide enough."""
COMPOSED = st.one_of(st.builds(lambda k, loss: k * loss, COUNTS, triples()), GAUSSIANS, SMOOTH, SAMPLED)
ANY = st.one_of(SINGLE, COMPOSED)
