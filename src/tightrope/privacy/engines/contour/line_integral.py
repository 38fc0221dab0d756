"""The contour integral beside the saddle point: full relative accuracy at any δ, cost free of k (theory §3).

δ(ε) = δ_∞ + (1/2πi) ∫ e^{K(z) − zε} / (z(z+1)) dz over Re z = c > 0, and 1 − δ(ε) is minus the same for −1 < c < 0,
which is better far below the mean loss. Lines and steps are chosen by ``contour_line`` and kept: neighbouring ε share
the moments, which are all that costs. What aliases, what lies beyond the last node, rounding and the errors of the
moments are enclosed (``docs/proofs/contour.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL
from tightrope.privacy.engines.contour.contour_line import FIRST_BLOCK, Nodes, Plan, alias, next_block, planned
from tightrope.privacy.engines.contour.real_axis import FINENESS, RealAxis, Source

TRUNCATION = 1e-14
"""What lies beyond the last node, relative to δ."""
NODES_PAID = 1 << 18
LOST = 0.5
"""A moment whose logarithm is off by more says nothing; a bound on its modulus may."""
ENOUGH = 1e-9
"""And where that takes more nodes than we are ready to pay for."""
STEEPEST = 600.0
KEPT_LINES = 6
"""Lines whose nodes are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class LineIntegral:
    """Of a source's moments; ``PrecisionError`` where no digit is kept."""

    source: Source
    right: RealAxis
    between: RealAxis
    nodes: dict[tuple[bool, int, int], Nodes] = field(default_factory=dict)
    latest: dict[bool, Plan] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source, near: int | None = None) -> LineIntegral:
        """With nothing known yet, but perhaps an index on the right that a saddle is ``near``."""
        start = [] if near is None else [near]
        return cls(source, RealAxis(source, between=False, latest=start), RealAxis(source, between=True))

    def estimate(self, epsilon: float, saddle: int, *, between: bool = False) -> float:
        """About log of the integral, by the saddle-point formula: it only tells how fine to be."""
        axis = self._axis(between=between)
        near = axis.heights(saddle + np.array([-4, 0, 4]), epsilon)
        bend = float(near[0] - 2 * near[1] + near[2]) / (4 / FINENESS) ** 2
        c = float(axis.points(np.array([saddle]))[0])
        bent = max(bend, 1e-3) if math.isfinite(bend) else 1.0
        size = abs(c) * (1 + c) if between else c
        return min(0.0, float(near[1]) + math.log(size) - math.log(2 * math.pi * bent) / 2)

    def _axis(self, *, between: bool) -> RealAxis:
        return self.between if between else self.right

    def _plan(self, epsilon: float, saddle: int, log_value: float, *, between: bool) -> Plan:
        """The plan of the last ε, where it still serves; else a new one."""
        axis, last = self._axis(between=between), self.latest.get(between)
        if last is not None and abs(last.line - saddle) < 3 * FINENESS:
            lost = axis.heights(np.array([last.line, saddle]), epsilon)
            again = alias(axis, epsilon, saddle, (last.line, last.step))
            if lost[0] - lost[1] <= 8.0 and again <= log_value - 29.0:
                return Plan(last.line, last.step, again)
        self.latest[between] = planned(axis, epsilon, saddle, log_value)
        return self.latest[between]

    def value(self, epsilon: float, *, between: bool, aim: float = -math.inf) -> tuple[float, float]:
        """The integral over a line on one side of 0, positive, and a bound on its error.

        Where it only adds to a number of about e^{aim}, it is taken as fine as that asks for, and may keep no digit.
        """
        axis = self._axis(between=between)
        saddle = axis.saddle(epsilon)
        log_value = self.estimate(epsilon, saddle, between=between)
        if between:
            log_value = min(log_value, self.estimate(epsilon, self.right.saddle(epsilon)))
        plan = self._plan(epsilon, saddle, max(log_value, aim), between=between)
        nodes = self._nodes(plan, between=between)
        height = float(axis.cumulants(np.array([plan.line]))[0]) - nodes.c * epsilon
        if not height < STEEPEST:
            raise PrecisionError(f"the integrand is as large as e^{height:.4g} at epsilon={epsilon!r}")
        value, wobble, rest = self._sum(nodes, epsilon, height, math.exp(min(aim - height, 700.0)))
        # Losses off by the slack move δ by no more than slack · P(L > ε − slack), and Chernoff bounds that.
        moved = self.source.slack * math.exp(min(abs(nodes.c) * self.source.slack, 700.0))
        error = math.exp(min(plan.alias - height, 700.0)) + rest + wobble + moved
        if not math.isfinite(error):
            raise PrecisionError(f"no error of the integral is known at epsilon={epsilon!r}")
        if aim > -math.inf and not value > 2 * error:
            return max(value, 0.0) * math.exp(height), (error + max(-value, 0.0)) * math.exp(height)
        if not value > 2 * error:
            raise PrecisionError(
                f"no digit is kept at epsilon={epsilon!r}: {value!r} within {error!r} of e^{height:.4g}"
            )
        found = math.exp(height + math.log(value))  # e^height alone may be below double precision
        lost = 2 * math.ulp(0.0) * (found < SUBNORMAL)
        return found, found * (error / value + 4 * ROUND_OFF * (abs(height) + 4)) + lost

    def _nodes(self, plan: Plan, *, between: bool) -> Nodes:
        key = (between, plan.line, plan.step)
        if key not in self.nodes:
            while len(self.nodes) >= KEPT_LINES:
                self.nodes.pop(next(iter(self.nodes)))
            c = float(self._axis(between=between).points(np.array([plan.line]))[0])
            self.nodes[key] = Nodes(self.source, c, plan.width)
        return self.nodes[key]

    def _sum(self, nodes: Nodes, epsilon: float, height: float, aim: float) -> tuple[float, float, float]:
        """(h/2π) Σ over c + ihn: the value, its rounding, and a bound on what lies beyond the last node.

        Beyond |Im z| = T the integrand is at most decay(c, T)/|z(z+1)|, so the rest is below decay/T · (1 + h/T)/π.
        """
        step, c = nodes.width, nodes.c
        value, wobble, rest, start = 0.0, 0.0, math.inf, 0
        sign = math.copysign(1.0, c)
        while start < NODES_PAID:
            stop = start + next_block(start)
            nodes.reach(stop)
            z, cumulant, error = (part[start:stop] for part in (nodes.z, nodes.cumulant, nodes.error))
            weight = (sign * step / math.pi) / (z * (z + 1))
            weight[0] /= 2 if start == 0 else 1
            lost = error > LOST
            terms = weight * np.exp(np.where(lost, 0.0, cumulant - z * epsilon - height)) * ~lost
            value += math.fsum(terms.real)
            exponents = np.abs(cumulant) + np.abs(z) * abs(epsilon) + abs(height) + 64
            moved = np.expm1(np.where(lost, 0.0, error))
            wobble += float(np.dot(np.abs(terms), 2 * ROUND_OFF * exponents + moved))
            sizes = cumulant.real + np.where(np.isfinite(error), error, 0.0) - nodes.c * epsilon - height
            wobble += self._unknown(nodes.c, z[lost].imag, sizes[lost], np.abs(weight[lost]))
            start, reach = stop, step * stop
            rest = math.exp(self.source.log_decay(c, reach)) / reach * (1 + step / reach) / math.pi
            if rest < max(TRUNCATION * max(abs(value), aim), 1e-3 * wobble):
                return value, wobble, rest
            if stop == FIRST_BLOCK:
                self._must_die(nodes)
        if rest < ENOUGH * max(abs(value), aim):
            return value, wobble, rest
        raise PrecisionError(f"the integrand has not died after {NODES_PAID} nodes of width {step:.3g}")

    def _unknown(self, c: float, y: Floats, sizes: Floats, weight: Floats) -> float:
        """A bound on terms at c + iy whose moments are lost in their errors: logarithms of their sizes at most, and
        from the first on no more than the modulus by then.
        """
        if not len(y):
            return 0.0
        bound = np.exp(np.minimum(sizes, self.source.log_decay(c, float(y[0]))))
        return (1 + ENOUGH) * float(np.dot(np.minimum(bound, 1.0), weight))

    def _must_die(self, nodes: Nodes) -> None:
        """Within the nodes that we are ready to pay for, beside a value of about e^{height}/|c (1 + c)| or far less."""
        reach = nodes.width * NODES_PAID
        left = self.source.log_decay(nodes.c, reach) + math.log(abs(nodes.c) * (1 + nodes.c) / reach)
        if left > math.log(ENOUGH):
            raise PrecisionError(f"the integrand does not die within {NODES_PAID} nodes of width {nodes.width:.3g}")
