"""Sixty trainings as they are run: many examples, small batches; drawn once from a fixed seed, log-uniformly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

SEED = 20240611
COUNT = 60
EXAMPLES, BATCH, SIGMA, EPOCHS = (1e5, 1e9), (8.0, 1e5), (0.4, 8.0), (0.1, 100.0)
LEAST_EXPONENT, LAST_EXPONENT = 5, 12


@dataclass(frozen=True, slots=True)
class Setting:
    """``steps`` Gaussian releases of noise ``sigma``, each on a Poisson sample of ``rate`` = batch / examples."""

    examples: int
    batch: int
    sigma: float
    epochs: float
    delta: float

    @property
    def rate(self) -> float:
        return self.batch / self.examples

    @property
    def steps(self) -> int:
        return max(1, round(self.epochs * self.examples / self.batch))

    @property
    def name(self) -> str:
        return f"n={self.examples}-batch={self.batch}-sigma={self.sigma:g}-epochs={self.epochs:g}-delta={self.delta:g}"


def settings() -> list[Setting]:
    """The sixty; σ and epochs with four figures, so that they can be printed and read back."""
    rng = np.random.default_rng(SEED)
    return [_drawn(rng) for _ in range(COUNT)]


def _drawn(rng: np.random.Generator) -> Setting:
    examples, batch = (round(_log_uniform(rng, *ends)) for ends in (EXAMPLES, BATCH))
    sigma, epochs = (float(f"{_log_uniform(rng, *ends):.4g}") for ends in (SIGMA, EPOCHS))
    exponent = int(rng.integers(LEAST_EXPONENT, LAST_EXPONENT + 1))
    return Setting(examples, batch, sigma, epochs, float(f"1e-{exponent}"))


def _log_uniform(rng: np.random.Generator, least: float, most: float) -> float:
    return math.exp(rng.uniform(math.log(least), math.log(most)))
