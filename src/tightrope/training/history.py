"""The steps of a training run, with equal consecutive steps counted together, and their composed privacy loss."""

from __future__ import annotations

from collections.abc import Iterable

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.gaussian import gaussian
from tightrope.mechanisms.pairs import approx_dp
from tightrope.numerics.checks import check_finite, check_integer, check_non_negative

Entry = tuple[float, float, int]
"""Noise multiplier, sampling rate, number of steps."""
History = list[Entry]


def record_steps(history: History, noise_multiplier: float, sample_rate: float, count: int = 1) -> History:
    """Return the history with ``count`` more steps, merged with the last entry if equal; ``history`` is not changed.

    Raises ``InputError`` unless the multiplier is ≥ 0 (0: no noise, no privacy) and 0 < rate ≤ 1.

    >>> record_steps(record_steps([], 1.0, 0.01), 1.0, 0.01)
    [(1.0, 0.01, 2)]
    """
    noise, rate, count = check_entry(noise_multiplier, sample_rate, count)
    if history and tuple(history[-1][:2]) == (noise, rate):
        return [*history[:-1], (noise, rate, history[-1][2] + count)]
    return [*history, (noise, rate, count)]


def check_entry(noise_multiplier: object, sample_rate: object, count: object) -> Entry:
    """Return the entry with checked numbers; raises ``InputError``."""
    noise = check_non_negative("noise_multiplier", noise_multiplier)
    rate = check_finite("sample_rate", sample_rate)
    if not 0 < rate <= 1:
        raise InputError("sample_rate", sample_rate, "a sampling rate in (0, 1]", "examples in a batch / all examples")
    return noise, rate, check_integer("count", count)


def compose_history(history: Iterable[Entry]) -> PrivacyLoss:
    """Return the privacy loss of all steps: Gaussians on Poisson samples, with **parameters fixed in advance**.

    Neighbors add or remove one example.

    >>> round(compose_history([(1.3, 256 / 60_000, 3515)]).epsilon(1e-5), 9)
    0.864409917
    >>> compose_history([]).epsilon(1e-5)
    0.0
    """
    loss = 0 * gaussian(scale=1).loss
    for noise, rate, count in history:
        # A step without noise reveals its whole batch.
        step = gaussian(scale=noise) if noise > 0 else approx_dp(0.0, delta=1.0)
        loss = loss + count * step.loss.poisson_sample(rate)
    return loss
