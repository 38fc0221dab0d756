"""log Σ w e^{zl} over many points, with full relative accuracy near 0."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_log import log1p
from tightrope.numerics.rounding import OVERFLOW

TABLE_AT_ONCE = 1 << 20
"""Cells of a (nodes × points) table held at once: 16 MiB of complex numbers."""
FEWEST_NODES = 16
"""Equidistant nodes, from so many on, are taken in rows: e^{i(y + jh)l} = e^{iyl} e^{ijhl}, a matrix product."""
LONGEST_ROW = 64
"""Nodes of a row."""
FAR_MOMENTS = 0.5
"""Where |z| times the mean size of the losses exceeds this, nothing is gained from summing e^{zl} − 1."""


def log_sum(z: Complexes, loss: Floats, log_weight: Floats) -> Complexes:
    """Log Σ w e^{zl}, Σ w = 1: near one as 1 + Σ w (e^{zl} − 1), far from it with the peak pulled out."""
    weight = np.exp(log_weight)
    steep = float(np.max(np.abs(z.real)) * np.max(np.abs(loss))) >= OVERFLOW
    even = _equidistant(z)
    if even and (steep or float(np.min(np.abs(z))) * float(weight @ np.abs(loss)) > FAR_MOMENTS):
        return _on_line(z, loss, log_weight)
    if steep:
        return _in_chunks(z, loss, lambda part: _steep(part, loss, log_weight))
    if even:
        return log1p(_excess_on_line(z, loss, weight))
    if not np.any(z.imag):
        return np.asarray(np.log1p(np.expm1(z.real[:, None] * loss) @ weight), dtype=np.complex128)
    return _in_chunks(z, loss, lambda part: log1p(_excess(part, loss) @ weight))


def by_height(z: Complexes, answer: Callable[[Complexes], Complexes]) -> Complexes:
    """``answer`` for blocks of nodes of like |Im z|, so that smooth ones stay cheap."""
    flat = np.asarray(z, dtype=np.complex128).ravel()
    result = np.empty_like(flat)
    order = np.argsort(np.abs(flat.imag), kind="stable")
    start = 0
    while start < len(order):
        reach = 1.5 * abs(flat[order[start]].imag) + 32
        block = order[start:][np.abs(flat[order[start:]].imag) <= reach]
        result[block] = answer(flat[block])
        start += len(block)
    return result.reshape(np.shape(z))


def _in_chunks(z: Complexes, loss: Floats, answer: Callable[[Complexes], Complexes]) -> Complexes:
    rows = max(1, TABLE_AT_ONCE // len(loss))
    return np.concatenate([answer(z[i : i + rows]) for i in range(0, len(z), rows)])


def _equidistant(z: Complexes) -> bool:
    """Whether the nodes lie on one line of equal Re z, one step apart, and are many."""
    if len(z) < FEWEST_NODES or not np.all(z.real == z.real[0]):
        return False
    steps = np.diff(z.imag)
    return bool(steps[0] != 0 and np.all(np.abs(steps - steps[0]) <= 1e-12 * np.abs(z.imag[-1])))


def _rows(z: Complexes, loss: Floats) -> tuple[Floats, int, int]:
    """j·h for the nodes of a row, the number of nodes in a row, and of rows that are held at once."""
    length = min(LONGEST_ROW, math.isqrt(len(z)))
    step = (z.imag[-1] - z.imag[0]) / (len(z) - 1)
    return step * np.arange(length), length, max(1, TABLE_AT_ONCE // len(loss))


def _on_line(z: Complexes, loss: Floats, log_weight: Floats) -> Complexes:
    """Log Σ w e^{zl} at equidistant nodes of equal Re z, the peak pulled out."""
    along, length, most = _rows(z, loss)
    inner = _turned(along[:, None] * loss)
    exponent = log_weight + z.real[0] * loss
    peak = float(np.max(exponent))
    tilted = np.exp(exponent - peak)
    starts = z.imag[::length]
    parts = [
        inner @ (tilted[:, None] * _turned(loss[:, None] * starts[i : i + most])) for i in range(0, len(starts), most)
    ]
    total = np.concatenate(parts, axis=1).T.ravel()[: len(z)]
    return np.asarray(np.log(np.where(total == 0, 5e-324, total)) + peak)


def _excess_on_line(z: Complexes, loss: Floats, weight: Floats) -> Complexes:
    """Σ w (e^{zl} − 1) there: e^{(z+ijh)l} − 1 = (e^{zl} − 1) + e^{zl} (e^{ijhl} − 1), no larger in sum than |zl|."""
    along, length, most = _rows(z, loss)
    inner = _excess(np.asarray(1j * along, dtype=np.complex128), loss).T
    parts = []
    for start in range(0, len(z), length * most):
        first = _excess(z[start : start + length * most : length], loss)
        parts.append((first @ weight)[:, None] + ((first + 1) * weight) @ inner)
    return np.asarray(np.concatenate(parts).ravel()[: len(z)])


def _turned(angle: Floats) -> Complexes:
    """e^{ia}, by cosine and sine: several times as fast as numpy's complex exponential."""
    result = np.empty(angle.shape, dtype=np.complex128)
    np.cos(angle, out=result.real)
    np.sin(angle, out=result.imag)
    return result


def _steep(z: Complexes, loss: Floats, log_weight: Floats) -> Complexes:
    peaks = np.max(z.real[:, None] * loss + log_weight, axis=1)
    total = np.exp(z[:, None] * loss + (log_weight - peaks[:, None])) @ np.ones(len(loss))
    return np.asarray(np.log(total) + peaks)


def _excess(z: Complexes, loss: Floats) -> Complexes:
    """e^{zl} − 1 [n, k] without cancellation: expm1(a) cos b − 2 sin²(b/2) + i e^a sin b."""
    a, half = z.real[:, None] * loss, z.imag[:, None] * (loss / 2)
    sine, growth = np.sin(half), np.expm1(a)
    result = np.empty(a.shape, dtype=np.complex128)
    result.real = growth - 2 * (1 + growth) * sine**2
    result.imag = 2 * (1 + growth) * sine * np.cos(half)
    return result
