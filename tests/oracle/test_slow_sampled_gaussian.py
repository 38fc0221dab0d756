"""The slow oracle of sampled Gaussians against numbers made elsewhere, and against itself on other contours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mpmath import mp, mpf

from tests.oracle.slow_sampled_gaussian import DIGITS, ONE, TARGET, Chernoff, Line, law_of, solved

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with mp.workdps(DIGITS):
        yield


@pytest.mark.parametrize(
    ("sigma", "batch", "examples", "steps", "printed"),
    [
        ("2", 1, 10**4, 10**4, "0.01722145924"),
        ("1", 32, 3_500_000, 109_375, "0.01249018469"),
        ("8", 512, 10**6, 39_062, "0.04360868116"),
    ],
)
def test_the_check_values_of_the_theory(sigma: str, batch: int, examples: int, steps: int, printed: str) -> None:
    law = law_of(sigma, mpf(batch) / examples, steps, remove=True)
    assert mp.nstr(solved(law, mpf("1e-6")).epsilon, 10) == printed


@pytest.mark.parametrize(
    ("sigma", "epsilon", "remove", "printed"),
    [
        ("1", "1", True, "0.00261242057862692"),
        ("1", "1", False, "0.000794590173571718"),
        ("1", "3", False, "2.50187350617953e-21"),
        ("0.8", "3", True, "1.76713758683295e-5"),
        ("0.8", "8", True, "1.25803025162326e-14"),
    ],
)
def test_a_table_of_deltas(sigma: str, epsilon: str, remove: bool, printed: str) -> None:
    law, delta = law_of(sigma, mpf("0.01"), 1000, remove=remove), mpf(printed)
    c, h = Chernoff(law).contour(mpf(epsilon), delta, back=ONE)
    line = Line.of(law, c, h, shift=ONE, finer=ONE, smallest=mp.log(delta) + c * mpf(epsilon) - TARGET)
    assert abs(line.deltas(mpf(epsilon))[0] / delta - 1) < 4e-15


@pytest.mark.parametrize(("remove", "back", "shift", "finer"), [(True, "0.7", "0.6", "1"), (False, "1.1", "1", "1.5")])
def test_no_digit_depends_on_abscissa_line_or_step(remove: bool, back: str, shift: str, finer: str) -> None:
    law, delta = law_of("0.7", mpf("1e-3"), 500, remove=remove), mpf("1e-8")
    first = solved(law, delta).epsilon
    again = solved(law, delta, back=mpf(back), shift=mpf(shift), finer=mpf(finer)).epsilon
    assert abs(first - again) < mpf(10) ** -25 * first
