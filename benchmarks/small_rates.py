"""The time for ε(δ) of modern trainings, and the width of its bracket: sixty settings with millions of examples.

    python benchmarks/small_rates.py [--repeat 3] [--only 0 7 12]

The time of an answer is CPU seconds from the parameters to ε(δ), the median of several; each repetition changes σ by
1e-9 so that cached results cannot help. The answers of dp-accounting are stored (``tests/peers/cases``), and reference
values in ``tests/oracle/reference``. Goals: median 60 ms, worst 1 s, width 1e-8, never above dp-accounting.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from lines import Line, add_json_option, exit_status, write_results  # noqa: E402

import tightrope as tr  # noqa: E402
from tests.oracle.small_rate_settings import Setting, settings  # noqa: E402

MEDIAN_GOAL, WORST_GOAL, WIDTH_GOAL = 0.06, 1.0, 1e-8


@dataclass(frozen=True)
class Measured:
    """CPU seconds, the upper bound on ε, and the relative width of its bracket, of one setting.

    ``peer_excess`` says how far the stored answer of dp-accounting lies above the bound, if there is one.
    """

    seconds: float
    upper: float
    width: float
    peer_excess: float | None


def median_seconds(setting: Setting, repeat: int) -> float:
    """Return the median CPU seconds of ε(δ)."""
    seconds = []
    for i in range(repeat):
        start = time.process_time()
        loss = setting.steps * tr.gaussian(scale=setting.sigma * (1 + i * 1e-9)).loss.poisson_sample(setting.rate)
        loss.epsilon(setting.delta)
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def measure_setting(setting: Setting, repeat: int, peer_answer: float | None) -> Measured:
    """Return time and bracket of one setting."""
    seconds = median_seconds(setting, repeat)
    loss = setting.steps * tr.gaussian(scale=setting.sigma).loss.poisson_sample(setting.rate)
    bounds = loss.epsilon_bounds(setting.delta)
    lower, upper = float(bounds.lower), float(bounds.upper)
    return Measured(seconds, upper, (upper - lower) / upper, peer_answer / upper - 1 if peer_answer else None)


def stored_answers(path: str, key: str) -> dict[int, float]:
    """Return the stored answers by the index of their setting."""
    rows = json.loads((ROOT / path).read_text(encoding="utf-8"))
    return {row["index"]: float(row[key]) for row in rows if row[key] is not None}


def main() -> int:
    """Print a row for each setting; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", type=int, nargs="*")
    add_json_option(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    peer = stored_answers("tests/peers/cases/small_rates.json", "upper")
    oracle = stored_answers("tests/oracle/reference/small_rates.json", "epsilon")
    print(f"{'':>3} {'rate':>8} {'steps':>9} {'sigma':>6} {'delta':>6} {'epsilon':>12} {'width':>8} {'CPU ms':>8}"
          f" {'dp-accounting':>13} {'oracle':>8}")  # fmt: skip
    tr.gaussian(scale=1).loss.poisson_sample(0.01).epsilon(1e-6)  # so that loading is not in the first time
    results: list[Measured] = []
    for index, setting in enumerate(settings()):
        if options.only is None or index in options.only:
            result = measure_setting(setting, options.repeat, peer.get(index))
            results.append(result)
            print(setting_text(index, setting, result, oracle.get(index)), flush=True)
    excess = [result.peer_excess for result in results if result.peer_excess is not None]
    above = sum(value < 0 for value in excess)
    lines = summary_lines(results, excess)
    print(f"\nabove dp-accounting: {above} of {len(excess)}")
    for line in lines:
        print(f"{line.measured}: {line.ours:.3g}" + (f" (goal {line.goal})" if line.goal else ""))
    reached = not above and all(line.goal_met is not False for line in lines)
    print("All goals reached." if reached else "Not all goals are reached.")
    write_results(options.json, lines, [f"above dp-accounting: {above} of {len(excess)}"])
    return exit_status(lines)


def setting_text(index: int, setting: Setting, result: Measured, oracle: float | None) -> str:
    """Return the printed row of a setting."""
    head = f"{index:3} {setting.rate:8.2e} {setting.steps:9} {setting.sigma:6.4g} {setting.delta:6.0e}"
    peer = "" if result.peer_excess is None else f"{1 / (1 + result.peer_excess) - 1:+.1e}"
    reference = "" if oracle is None else f"{result.upper / oracle - 1:+8.0e}"
    return f"{head} {result.upper:12.6g} {result.width:8.1e} {1e3 * result.seconds:8.1f} {peer:>13} {reference}"


def summary_lines(results: Sequence[Measured], excess: Sequence[float]) -> list[Line]:
    """Return the lines over all settings; ``excess`` says how far dp-accounting's answers lie above ours."""
    job = f"{len(results)} trainings of millions"
    times, widths = [result.seconds for result in results], [result.width for result in results]
    median, worst, widest = statistics.median(times), max(times), max(widths)
    width = Line("small rates", job, "relative width, median", statistics.median(widths))
    return [
        Line("small rates", job, "CPU ms, median", 1e3 * median).with_goal("60", met=median <= MEDIAN_GOAL),
        Line("small rates", job, "CPU ms, worst", 1e3 * worst).with_goal("1000", met=worst <= WORST_GOAL),
        Line("small rates", job, "relative width, widest", widest).with_goal("1e-08", met=widest <= WIDTH_GOAL),
        width.with_peer("dp_accounting, stored" if excess else "", statistics.median(excess or [0.0])),
    ]


if __name__ == "__main__":
    sys.exit(main())
