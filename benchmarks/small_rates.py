"""What ε(δ) of modern trainings costs and how wide its bracket is: sixty settings, millions of examples.

    python benchmarks/small_rates.py [--repeat 3] [--only 0 7 12]

The time of an answer is CPU seconds from the parameters to ε(δ), the median of several; each repetition changes σ by
1e-9 so that nothing kept from the last one helps. dp-accounting's answers are stored (``tests/peers/cases``), those of
the oracle in ``tests/oracle/reference``. Goals: median 60 ms, worst 1 s, width 1e-8, never above dp-accounting.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from lines import Line, option, write  # noqa: E402

import tightrope as tr  # noqa: E402
from tests.oracle.small_rate_settings import Setting, settings  # noqa: E402

MEDIAN_GOAL, WORST_GOAL, WIDTH_GOAL = 0.06, 1.0, 1e-8


def seconds(setting: Setting, repeat: int) -> float:
    taken = []
    for i in range(repeat):
        start = time.process_time()
        loss = setting.steps * tr.gaussian(scale=setting.sigma * (1 + i * 1e-9)).loss.poisson_sample(setting.rate)
        loss.epsilon(setting.delta)
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def stored(path: str, key: str) -> dict[int, float]:
    rows = json.loads((ROOT / path).read_text(encoding="utf-8"))
    return {row["index"]: float(row[key]) for row in rows if row[key] is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", type=int, nargs="*")
    option(parser)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    peer = stored("tests/peers/cases/small_rates.json", "upper")
    oracle = stored("tests/oracle/reference/small_rates.json", "epsilon")
    times, widths, off, above = [], [], [], 0
    print(f"{'':>3} {'rate':>8} {'steps':>9} {'sigma':>6} {'delta':>6} {'epsilon':>12} {'width':>8} {'CPU ms':>8}"
          f" {'dp-accounting':>13} {'oracle':>8}")  # fmt: skip
    tr.gaussian(scale=1).loss.poisson_sample(0.01).epsilon(1e-6)  # what is loaded on first use is nobody's cost
    for index, setting in enumerate(settings()):
        if asked.only is not None and index not in asked.only:
            continue
        taken = seconds(setting, asked.repeat)
        loss = setting.steps * tr.gaussian(scale=setting.sigma).loss.poisson_sample(setting.rate)
        lower, upper = (float(end) for end in loss.epsilon_bounds(setting.delta))
        width = (upper - lower) / upper
        times.append(taken)
        widths.append(width)
        above += index in peer and upper > peer[index]
        off += [peer[index] / upper - 1] if index in peer else []
        beside = f"{upper / peer[index] - 1:+13.1e}" if index in peer else " " * 13
        beside += f" {upper / oracle[index] - 1:+8.0e}" if index in oracle else ""
        print(f"{index:3} {setting.rate:8.2e} {setting.steps:9} {setting.sigma:6.4g} {setting.delta:6.0e} {upper:12.6g}"
              f" {width:8.1e} {1e3 * taken:8.1f} {beside}", flush=True)  # fmt: skip
    median, worst, widest = statistics.median(times), max(times), max(widths)
    print(f"\nmedian {1e3 * median:.1f} ms (goal {1e3 * MEDIAN_GOAL:.0f}), worst {worst:.2f} s (goal {WORST_GOAL:.0f})")
    print(f"widest {widest:.1e} (goal {WIDTH_GOAL:.0e}), above dp-accounting: {above} of {len(peer)}")
    reached = median <= MEDIAN_GOAL and worst <= WORST_GOAL and widest <= WIDTH_GOAL and not above
    print("All goals reached." if reached else "Not all goals are reached.")
    write(asked.json, lines(times, widths, off), [f"above dp-accounting: {above} of {len(off)}"])


def lines(times: list[float], widths: list[float], off: list[float]) -> list[Line]:
    """Over all settings; ``off``: how far the stored answers of dp-accounting lie above ours."""
    job, median, worst = f"{len(times)} trainings of millions", statistics.median(times), max(times)
    beside = {"peer": "dp_accounting, stored", "theirs": statistics.median(off)} if off else {}
    goal = {"goal": f"{WIDTH_GOAL:g}", "met": max(widths) <= WIDTH_GOAL}
    return [
        Line("small rates", job, "CPU ms, median", 1e3 * median, goal="60", met=median <= MEDIAN_GOAL),
        Line("small rates", job, "CPU ms, worst", 1e3 * worst, goal="1000", met=worst <= WORST_GOAL),
        Line("small rates", job, "relative width, widest", max(widths), **goal),
        Line("small rates", job, "relative width, median", statistics.median(widths), **beside),
    ]


if __name__ == "__main__":
    main()
