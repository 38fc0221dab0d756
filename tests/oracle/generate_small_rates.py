"""Writes reference/small_rates.json: python -m tests.oracle.generate_small_rates [first [last]]   (a minute a setting)

ε(δ) of the sixty trainings of ``small_rate_settings`` by ``slow_sampled_gaussian``, both directions, to 25 digits, each
kept only where a second contour on other grids in z and x agrees to 25; and δ of the worse direction at the double
nearest to ε. A setting whose moments fall too slowly is left out.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from mpmath import mp, mpf

from tests.oracle.slow_sampled_gaussian import DIGITS, Answer, Sampled, solved
from tests.oracle.small_rate_settings import Setting, settings

FILE = Path(__file__).parent / "reference" / "small_rates.json"
AGREED = mpf(10) ** -25


def printed(value: mpf) -> str:
    return mp.nstr(value, 25, min_fixed=0, max_fixed=0)


def agreed(law: Sampled, delta: mpf) -> Answer:
    """The answer that does not depend on the abscissa, the line of x or the steps."""
    first = solved(law, delta)
    second = solved(law, delta, back=mpf("0.8"), shift=mpf("0.7"), finer=mpf("1.25"))
    if not abs(first.epsilon - second.epsilon) <= AGREED * first.epsilon:
        raise ArithmeticError(f"{law} at {delta}: {first.epsilon} and {second.epsilon}")
    return first


def case(index: int, setting: Setting) -> dict[str, object]:
    delta, rate = mpf(setting.delta), mpf(setting.rate)
    ways = [Sampled(mpf(setting.sigma), rate, setting.steps, remove) for remove in (True, False)]
    remove, add = (agreed(law, delta) for law in ways)
    worse = max((remove, add), key=lambda answer: answer.epsilon)
    near = float(worse.epsilon)
    return {
        "index": index,
        "name": setting.name,
        "remove": printed(remove.epsilon),
        "add": printed(add.epsilon),
        "epsilon": near,
        "delta_at_epsilon": printed(worse.line.deltas(mpf(near))[0]),
    }


def main(arguments: list[str]) -> None:
    mp.dps = DIGITS
    first, last = ([int(a) for a in arguments] + [0, 59][len(arguments) :])[:2]
    kept = {c["index"]: c for c in json.loads(FILE.read_text(encoding="utf-8"))} if FILE.exists() else {}
    for index, setting in enumerate(settings()[: last + 1]):
        if index < first:
            continue
        start = time.process_time()
        try:
            kept[index] = case(index, setting)
            said = kept[index]["remove"]
        except ArithmeticError as error:
            said = f"left out: {error}"
        print(index, setting.name, said, f"{time.process_time() - start:.0f} s", flush=True)
        lines = ",\n".join(" " + json.dumps(kept[i]) for i in sorted(kept))
        FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
