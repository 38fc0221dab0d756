"""The recurrence of a triple against whole polynomials with forty digits."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from tightrope.accounting.methods.lattice_method import three_point

CASES = (
    (10, 21.384950589073696, 0.999999996142678),  # what is left of a mass's logarithm, too, counts
    (60, 7.122579686607084, 0.9999994985552322),
    (60, 1.9e-6, 0.9999999999984934),  # all mass in the middle, 10^-720 at the ends
    (40, 500.0, 0.0),  # every other mass is 0
    (41, 500.0, 1e-300),
    (100, 0.05, 0.3),
    (1, 600.5, 0.4),
)


def exact(step: float, top: float, middle: float, count: int) -> list[mp.mpf]:
    """Masses of the composed law at −k..k, up to their sum."""
    one = [top * mp.exp(-mp.mpf(step)), mp.mpf(middle), mp.mpf(top)]
    masses = [mp.mpf(1)]
    for _ in range(count):
        masses = [
            mp.fsum(one[i] * masses[n - i] for i in range(3) if 0 <= n - i < len(masses))
            for n in range(len(masses) + 2)
        ]
    return masses


@pytest.mark.parametrize(("count", "step", "middle"), CASES)
def test_every_delta_is_within_its_error(count: int, step: float, middle: float) -> None:
    top = (1 - middle) / (1 + math.exp(-step))
    law = three_point(step, (top, middle), 0.0, count)
    with mp.workdps(40):
        masses = exact(step, top, middle, count)
        for place in {-count, -count // 2, -1, 0, 1, count // 3, count // 2, count - 1}:
            at, blur = mp.mpf(place * step), abs(place * step) * mp.mpf(2) ** -51
            low, high = (delta(masses, step, at + moved) for moved in (blur, -blur))
            found = law.delta(np.array([float(at)]))
            error = float(law.relative_error(found)[0])
            assert low * (1 - error) <= found[0] + 1e-300
            assert found[0] <= high * (1 + error)


def delta(masses: list[mp.mpf], step: float, epsilon: mp.mpf) -> mp.mpf:
    """δ at ε, of the whole polynomial."""
    count = len(masses) // 2
    above = [(mass, (n - count) * mp.mpf(step)) for n, mass in enumerate(masses)]
    return mp.fsum(m * -mp.expm1(epsilon - loss) for m, loss in above if loss > epsilon) / mp.fsum(masses)


def test_many_copies_of_which_few_lose_anything() -> None:
    """δ at −5..30 steps of 300 000 copies, down to 1e-60, from the few multinomial terms that count."""
    count, step, top = 300_000, 0.1, 1e-7
    bottom = top * math.exp(-step)
    law = three_point(step, (top, 1 - top - bottom), 0.0, count)

    def mass(j: int) -> mp.mpf:
        terms = ((max(j, 0) + m, max(-j, 0) + m) for m in range(12))
        return mp.fsum(
            mp.binomial(count, up) * mp.binomial(count - up, down) * mp.mpf(top) ** up * mp.mpf(bottom) ** down
            * (1 - mp.mpf(top) - bottom) ** (count - up - down)
            for up, down in terms
        )  # fmt: skip

    with mp.workdps(40):
        masses = {j: mass(j) for j in range(-5, 60)}
        for place in (-5, 0, 1, 3, 10, 30):
            wanted = mp.fsum(
                m * -mp.expm1(mp.mpf(step) * (place + mp.mpf("0.5") - j)) for j, m in masses.items() if j > place
            )
            found = law.delta(np.array([step * (place + 0.5)]))
            assert float(abs(found[0] / wanted - 1)) <= float(law.relative_error(found)[0]) + 1e-14
