"""Writes reference/own.json: python -m tests.oracle.generate_references [group ...]   (minutes, one core)

Working precision is 50 digits, 60 + 3k for the sums that cancel; every value is printed to 25, and values by contour
are kept only where two lines of integration agree to 20. Continuous integration only compares.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

from tests.oracle import reference_cases as cases
from tests.oracle import slow_composition as slow
from tests.oracle.definitions import LINES, Step, number

FILE = Path(__file__).parent / "reference" / "own.json"
DIGITS = 25
Steps = list[tuple[int, Step]]
Answer = Callable[[Steps, mpf, bool], mpf]


def by_finite(steps: Steps, epsilon: mpf, remove: bool) -> mpf:
    return slow.finite(steps, epsilon, remove=remove)


def by_lattice(steps: Steps, epsilon: mpf, remove: bool) -> mpf:
    return slow.lattice(steps, epsilon, remove=remove)


def by_binomial(steps: Steps, epsilon: mpf, remove: bool) -> mpf:
    del remove
    ((count, step),) = steps
    return slow.binomial(number(step["epsilon"]), count, epsilon)


def by_pole(steps: Steps, epsilon: mpf, remove: bool) -> mpf:
    del remove
    with mp.workdps(60 + 3 * sum(count for count, _ in steps)):
        return slow.pole(steps, epsilon)


def by_line(steps: Steps, epsilon: mpf, remove: bool) -> mpf:
    ((_, step),) = steps
    return slow.one_line(step, epsilon, remove=remove)


def by_gaussian(steps: Steps, epsilon: mpf, remove: bool) -> mpf:
    del remove
    return slow.gaussian(mp.sqrt(mp.fsum(count * _mu(step) ** 2 for count, step in steps)), epsilon)


def _mu(step: Step) -> mpf:
    return number(step.get("sensitivity", 1)) / number(step["scale"])


def by_two_lines(steps: Steps, epsilon: mpf, remove: bool) -> mpf:
    """Erased or subset-sampled steps are the second: only their profile is needed."""
    first, second = [step for count, step in steps for _ in range(count)]
    with mp.workdps(34):
        return slow.two_lines(first, second, epsilon, remove=remove, kinks=[mpf(0), *_kinks(second, remove)])


def _kinks(step: Step, remove: bool) -> list[mpf]:
    """Where the profile is not analytic: the losses where the outputs end, and those of an absent record."""
    base = {key: step[key] for key in step if key not in {"erase", "poisson", "subset"}}
    rate = number(step.get("poisson", 1))
    if "subset" in step:
        rate = mpf(step["subset"][0]) / step["subset"][1]
    ratios = [] if base["law"] == "gaussian" else [mp.exp(_mu(base)), mp.exp(-_mu(base))]
    mixed = [1 - rate + rate * ratio for ratio in [mpf(0), *ratios] if 1 - rate + rate * ratio > 0]
    losses = [mp.log(ratio) if remove else -mp.log(ratio) for ratio in mixed]
    return losses + [-loss for loss in losses if "subset" in step]


def by_finite_and_gaussian(steps: Steps, epsilon: mpf, remove: bool) -> mpf:
    rest = [(count, step) for count, step in steps if step["law"] != "gaussian"]
    variance = mp.fsum(count * _mu(step) ** 2 for count, step in steps if step["law"] == "gaussian")
    return slow.finite_with_gaussian(rest, mp.sqrt(variance), epsilon, remove=remove)


def by_contour(steps: Steps, epsilon: mpf, remove: bool) -> mpf:
    with mp.workdps(32):
        plain = [(c, s) for c, s in steps if s["law"] == "gaussian" and "poisson" not in s]
        mu = mp.sqrt(mp.fsum(count * _mu(step) ** 2 for count, step in plain))
        parts = [(count, slow.measure(step, remove=remove)) for count, step in steps if (count, step) not in plain]
        for finer in (1, 2, 4):
            value, other = (slow.smooth(parts, mu, epsilon, abscissa=i, finer=finer) for i in (0, 1))
            if abs(value - other) <= mpf(10) ** -20 * value:
                return value
        raise ArithmeticError(f"{steps}, {epsilon}: {value} and {other} disagree")


METHODS: dict[str, Answer] = {
    "finite": by_finite,
    "lattice": by_lattice,
    "binomial": by_binomial,
    "pole": by_pole,
    "line": by_line,
    "gaussian": by_gaussian,
    "two lines": by_two_lines,
    "finite and gaussian": by_finite_and_gaussian,
    "contour": by_contour,
}


def printed(value: mpf) -> str:
    return mp.nstr(value, DIGITS, min_fixed=0, max_fixed=0)


def answered(method: str, steps: Steps, epsilon: float, direction: str) -> mpf:
    """The δ of one direction, or the worse one."""
    ways = {"remove": [True], "add": [False], "worse": [True, False], "same": [True]}[direction]
    return max(METHODS[method](steps, number(epsilon), way) for way in ways)


def deltas(group: str) -> Iterator[dict[str, Any]]:
    for method, steps, epsilons, directions in cases.GROUPS[group]:
        for epsilon in epsilons:
            for direction in directions:
                value = answered(method, steps, epsilon, direction)
                yield {"steps": steps, "epsilon": epsilon, "direction": direction, "delta": printed(value)}


def epsilons() -> Iterator[dict[str, Any]]:
    """Gaussians at δ = 1e−15 … 1e−300, and the acceptance values of the issue, each from a guess of a few digits."""
    for method, steps, direction, targets in cases.EPSILONS:
        for delta, guess in targets:
            with mp.workdps(80 if method == "gaussian" else mp.dps):
                found = _root(method, steps, direction, number(delta), mpf(guess))
            yield {"steps": steps, "direction": direction, "delta": delta, "epsilon": printed(found)}


def _root(method: str, steps: Steps, direction: str, delta: mpf, guess: mpf) -> mpf:
    """The secant on log δ."""

    def excess(epsilon: mpf) -> mpf:
        return mp.log(METHODS[method](steps, epsilon, direction != "add") / delta)

    return mp.findroot(excess, (guess, guess * (1 + mpf(10) ** -6)), solver="secant", tol=mpf(10) ** -48, maxsteps=40)


def check_definitions() -> None:
    """The methods against each other, where two apply."""
    with mp.workdps(60):
        step: Step = {"law": "laplace", "scale": 1, "sensitivity": 0.7}
        for remove in (True, False):
            assert abs(by_pole([(1, step)], mpf("0.2"), remove) - by_line([(1, step)], mpf("0.2"), remove)) < 1e-40
            two = [(2, step)]
            assert abs(by_pole(two, mpf("0.2"), remove) - by_two_lines(two, mpf("0.2"), remove)) < 1e-28
        triple: Step = {"law": "approx_dp", "epsilon": 0.3, "delta": 0.01, "total_variation": 0.05}
        for other in (by_finite, by_lattice):
            assert abs(by_pole([(4, triple)], mpf("0.2"), True) - other([(4, triple)], mpf("0.2"), True)) < 1e-40
        assert set(LINES) == {"gaussian", "laplace", "truncated_laplace"}


def main() -> None:
    mp.dps = 50
    check_definitions()
    chosen = sys.argv[1:] or [*cases.GROUPS, "epsilons"]
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for group in chosen:
        started = time.process_time()
        known[group] = list(epsilons() if group == "epsilons" else deltas(group))
        print(f"{group}: {len(known[group])} values, {time.process_time() - started:.1f} s")
    lines = (f"{json.dumps(group)}: [\n" + ",\n".join(map(json.dumps, known[group])) + "\n]" for group in sorted(known))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
