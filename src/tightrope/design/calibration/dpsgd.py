"""Noisy stochastic gradient descent (DP-SGD) as data: what a training run does, and its privacy loss.

Each step draws a batch, clips every example's gradient to norm C, adds up, and adds normal noise of standard deviation
σC to every coordinate; σ is the *noise multiplier*. Which batches are drawn decides what is protected:

Poisson   every example takes part with probability q = batch/examples, independently. Neighbours differ by an example
          that is added or removed; the clipped sum moves by at most C: a sampled Gaussian of sensitivity 1.
subset    exactly ``batch`` of the examples, without replacement. Neighbours differ by one example that is *replaced*;
          one clipped gradient goes and another comes, so the sum moves by up to **2C**: sensitivity 2 at the same σ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from tightrope.certificates.budget import Budget, Number, decimal
from tightrope.design.calibration.calibrate import calibrate
from tightrope.errors import InputError
from tightrope.mechanisms.continuous.gaussian import gaussian
from tightrope.numerics.checks import positive, whole
from tightrope.privacy.loss import PrivacyLoss


class Sampling(StrEnum):
    """How batches are drawn."""

    POISSON = "poisson"
    SUBSET = "subset"


@dataclass(frozen=True, slots=True)
class DpSgd:
    """A training run: ``steps`` batches of ``batch`` (on average, for Poisson) out of ``examples`` examples.

    ``noise`` is the noise multiplier σ: standard deviation of the noise over the clipping norm. Raises ``InputError``
    unless all are positive, whole where they count, and the batch is no larger than the data.

    >>> run = DpSgd(examples=60_000, batch=256, noise=1.3, steps=3515)
    >>> round(run.loss.epsilon(1e-5), 9), run.loss.neighbours.value
    (0.864409917, 'add-remove')
    """

    examples: int
    batch: int
    noise: float
    steps: int
    sampling: Sampling = Sampling.POISSON

    def __post_init__(self) -> None:
        whole("examples", self.examples)
        whole("steps", self.steps)
        positive("noise", self.noise, "1 is usual")
        if not whole("batch", self.batch) <= self.examples:
            raise InputError("batch", self.batch, f"at most the {self.examples} examples")
        object.__setattr__(self, "sampling", sampling_named(self.sampling))

    @property
    def rate(self) -> float:
        """The share of the examples in a batch."""
        return self.batch / self.examples

    @property
    def step(self) -> PrivacyLoss:
        """The loss of one step; its neighbours are add-remove for Poisson batches, replace-one for subsets."""
        if self.sampling is Sampling.POISSON:
            return gaussian(scale=self.noise).loss.poisson_sample(self.rate)
        return gaussian(scale=self.noise, sensitivity=2).loss.subset_sample(self.batch, self.examples)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of all steps, with parameters fixed in advance; every model on the way may be published."""
        return self.steps * self.step


def least_noise_multiplier(
    budget: Budget, *, examples: int, batch: int, steps: int, sampling: Sampling = Sampling.POISSON
) -> DpSgd:
    """The run with the least noise multiplier whose loss keeps every point of the budget; see ``calibrate``.

    Raises ``InputError`` for nonsense, ``BudgetRefused`` where no multiplier up to 10⁶ keeps the budget.

    >>> run = least_noise_multiplier(Budget(epsilon=1, delta=1e-5), examples=60_000, batch=256, steps=3515)
    >>> round(run.noise, 6), run.loss.delta(1) <= 1e-5
    (1.184998, True)
    """

    def run(noise: float) -> DpSgd:
        return DpSgd(examples, batch, noise, steps, sampling)

    return run(calibrate(lambda noise: run(noise).loss, budget, increasing=False).parameter)


def steps_in(epochs: Number, *, examples: int, batch: int) -> int:
    """The whole batches in so many passes over the data: ⌊epochs · examples / batch⌋, of exact decimals, at least 1.

    Training loops round differently (some drop the last batch of each pass, some add one): count their steps.

    >>> steps_in(15, examples=60_000, batch=256)
    3515
    """
    passes = decimal("epochs", epochs)
    if not 0 < passes <= 10**9:
        raise InputError("epochs", epochs, "a number above 0, at most 10^9")
    return max(1, math.floor(passes * whole("examples", examples) / whole("batch", batch)))


def sampling_named(name: object) -> Sampling:
    """The way of sampling of that name; raises ``InputError`` for any other."""
    try:
        return Sampling(name)  # type: ignore[arg-type]
    except ValueError:
        known = " or ".join(repr(way.value) for way in Sampling)
        raise InputError("sampling", name, known, "poisson: add-remove neighbours; subset: replace-one") from None
