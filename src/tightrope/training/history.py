"""What a training run has done so far: equal steps as counts, and the loss of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.gaussian import gaussian
from tightrope.mechanisms.pairs import approx_dp
from tightrope.numerics.checks import finite, non_negative, whole

Entry = tuple[float, float, int]
"""Noise multiplier, sampling rate, number of steps."""
History = list[Entry]


def recorded(history: History, noise_multiplier: float, sample_rate: float, count: int = 1) -> History:
    """The history with so many steps more; steps like the last are counted with it. The argument stays as it is.

    Raises ``InputError`` unless the multiplier is ≥ 0 (0: no noise, no privacy) and 0 < rate ≤ 1.

    >>> recorded(recorded([], 1.0, 0.01), 1.0, 0.01)
    [(1.0, 0.01, 2)]
    """
    noise, rate, count = entry(noise_multiplier, sample_rate, count)
    if history and tuple(history[-1][:2]) == (noise, rate):
        return [*history[:-1], (noise, rate, history[-1][2] + count)]
    return [*history, (noise, rate, count)]


def entry(noise_multiplier: object, sample_rate: object, count: object) -> Entry:
    """A checked entry; raises ``InputError``."""
    noise = non_negative("noise_multiplier", noise_multiplier)
    rate = finite("sample_rate", sample_rate)
    if not 0 < rate <= 1:
        raise InputError("sample_rate", sample_rate, "a sampling rate in (0, 1]", "examples in a batch / all examples")
    return noise, rate, whole("count", count)


def composed(history: Iterable[Entry]) -> PrivacyLoss:
    """The loss of all steps: sampled Gaussians, add-remove neighbours, **parameters fixed in advance**.

    >>> round(composed([(1.3, 256 / 60_000, 3515)]).epsilon(1e-5), 9)
    0.864409917
    >>> composed([]).epsilon(1e-5)
    0.0
    """
    return reduce(add, [count * _step(noise, rate) for noise, rate, count in history], 0 * gaussian(scale=1).loss)


def _step(noise: float, rate: float) -> PrivacyLoss:
    """Without noise a step gives everybody in its batch away."""
    once = gaussian(scale=noise) if noise > 0 else approx_dp(0.0, delta=1.0)
    return once.loss.poisson_sample(rate)
