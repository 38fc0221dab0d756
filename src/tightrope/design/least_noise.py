"""The least noise that keeps a promise, with a proof that nothing costs less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from tightrope.certificates.budget import STATE_POINTS, Budget, Tradeoff
from tightrope.certificates.noise import NoiseCertificate
from tightrope.design.composed.composed_bound import ComposedBound, ComposedProof
from tightrope.design.composed.composed_noise import composed_noise
from tightrope.design.program.noise_certificate import Bound, Certified, LeastProof, Proof
from tightrope.design.program.noise_cost import Cost
from tightrope.design.program.noise_request import Promise, Shape, shape_of
from tightrope.design.program.noise_search import least_table
from tightrope.errors import InputError
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.tables.integer_optimum import optimal_table
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.checks import Real, whole


@dataclass(frozen=True, eq=False)  # not slotted: the certificate is kept
class LeastNoise(IntegerMechanism, Certified):
    """Integer noise, sampled and certified from one table. ``certificate`` is made when it is first asked for."""

    table: NoiseTable
    sensitivity: int
    proof: Proof = field(repr=False)

    @cached_property
    def certificate(self) -> NoiseCertificate:  # type: ignore[override]
        """Bounds on the least cost, the realised guarantee, and why the bound holds."""
        return self.proof.certificate(self.table)


def least_noise(
    budget: Budget,
    *,
    sensitivity: Real = 1,
    cost: str | Callable[[float], float] = "absolute",
    integer: bool = True,
    shape: Shape = "unimodal",
    releases: int = 1,
) -> Certified:
    """The noise with the least expected cost E φ(|X|) that keeps every point of a budget, or its trade-off function.

    ``cost`` is "absolute", "squared" or a non-decreasing function of |x|. A cap on certain failure that no point of the
    budget implies is kept at ε = 16. A trade-off function is for one integer release of sensitivity 1.

    - Integer noise of sensitivity 1 (theory §4.1): a closed form, best for every cost at once; ``shape`` says nothing.
    - Sensitivity above 1: linear programs (theory §4.2). ``shape="unimodal"``, the default, asks for weights that do
      not rise with |x|; one shift binds, and ``certificate.unimodal_price`` says what it costs: parts in a thousand
      or less, some percent beside a total variation or a large δ. ``"any"`` is
      the optimum. Usually milliseconds, seconds for thousands of cells; Ctrl-C works.
    - ``integer=False``: for real-valued answers; a loss, errors and a certificate, no sampler.
    - ``releases`` > 1: each of that many answers gets this noise, and all of them together keep the promise. The
      certificate's gap is honest and not small: some percent at two, a factor of two at hundreds of releases.

    **Direction.** The certificate's ``upper`` and guarantee are computed from the integers that are sampled, at every
    shift up to the sensitivity, rounded to the safe side; its ``lower`` holds for every noise and trusts no solver.
    Neighbours: whatever the sensitivity speaks of. Raises ``InputError`` for nonsense and for what no noise keeps.

    >>> budget = Budget(epsilon=1, delta=1e-6)
    >>> noise = least_noise(budget)
    >>> round(noise.mean_absolute_error, 12), noise.certificate.gap < 1e-11
    (0.850902115757, True)
    >>> noise = least_noise(budget, sensitivity=3, shape="any")
    >>> round(noise.mean_absolute_error, 6), noise.certificate.gap < 1e-6
    (2.860785, True)
    """
    asked, chosen = Cost.of(cost), shape_of(shape)
    count = whole("releases", releases)
    if isinstance(budget, Budget) and budget.tradeoff is not None:
        return _for_tradeoff(budget.tradeoff, asked, sensitivity, integer, count)
    promise = Promise.of(budget)
    if not integer:
        return _real(promise, sensitivity, asked, chosen, count)
    width = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first, or say integer=False")
    bound = Bound(promise, width, asked)
    if count > 1:
        return _composed(budget, bound, cost, count)
    if width == 1:
        return LeastNoise(optimal_table(promise.points), 1, LeastProof(bound, chosen))
    found = least_table(promise, width, bound.costs, chosen)
    return LeastNoise(found.table, width, LeastProof(bound, chosen, found.multipliers))


def composed_limit(
    budget: Budget, *, releases: int, sensitivity: int = 1, cost: str | Callable[[float], float] = "squared"
) -> float:
    """What noise for each of several releases costs at least, whatever its law; rounded down (``composed_bound``).

    >>> 102.8 < composed_limit(Budget(epsilon=1, delta=1e-6), releases=10) < 158.6  # that much is reached
    True
    """
    bound = Bound(Promise.of(budget), whole("sensitivity", sensitivity), Cost.of(cost))
    return ComposedBound(bound, whole("releases", releases)).value


def _for_tradeoff(tradeoff: Tradeoff, cost: Cost, sensitivity: Real, integer: bool, releases: int) -> Certified:
    from tightrope.design.program.tradeoff_noise import TradeoffProof, tradeoff_table

    if not (integer and sensitivity == 1 and releases == 1):
        raise InputError("tradeoff", tradeoff, "asked for one integer release of sensitivity 1", STATE_POINTS)
    return LeastNoise(tradeoff_table(tradeoff), 1, TradeoffProof(tradeoff, cost))


def _composed(budget: Budget, bound: Bound, cost: str | Callable[[float], float], releases: int) -> Certified:
    found = composed_noise(budget, releases=releases, sensitivity=bound.sensitivity, cost=cost)
    return LeastNoise(found.table, bound.sensitivity, ComposedProof(ComposedBound(bound, releases)))


def _real(promise: Promise, sensitivity: Real, cost: Cost, shape: Shape, releases: int) -> Certified:
    from tightrope.design.real_noise import least_real_noise

    if not releases == 1:
        raise InputError("releases", releases, "1 for real-valued noise", "round to fixed point: integer=True")
    return least_real_noise(promise, sensitivity, cost, shape)
