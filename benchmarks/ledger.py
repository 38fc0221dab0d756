"""The time of a charge on SQLite, and of checking a long history: python benchmarks/ledger.py [ENTRIES]."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lines import Line, add_json_option, exit_status, write_results

from tightrope.documents import Budget
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.ledger import Account, Claim, Identity, Ledger, Limit, chain
from tightrope.ledger.chain import CHARGED, Entry
from tightrope.ledger.check import check_ledger
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.ledger.state import state_after_entry
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SelectedNoise, SplitBounds

if TYPE_CHECKING:
    from sqlalchemy import Connection

BUDGET = Budget(epsilon=1, delta="1e-6")
FRACTION = "0.000001"
COUNT_BUDGET = Budget(epsilon="0.02", delta="1e-9")


def charge_seconds(account: Account, charges: int, name: str, noise_record: str = "") -> list[float]:
    """Return the seconds of each charge."""
    seconds, budget = [], COUNT_BUDGET if noise_record else BUDGET.scale_by(FRACTION)
    for number in range(charges):
        start = time.perf_counter()
        account.charge_release(Claim(f"{name} {number}", "plan", budget, noise_record))
        seconds.append(time.perf_counter() - start)
    return seconds


def count_noise_record() -> str:
    """Return the noise record of one count with one row per person."""
    spec, table = NoiseSpec("count", 8, True), optimal_table([(0.02, 1e-9)])
    group = CompositionGroup((spec,), SplitBounds(1, 1, 1))
    return NoiseRecord((group,), ((SelectedNoise(spec, "least noise", 1, table),),), None).to_text


def append_charges(account: Account, charges: int) -> None:
    """Append many charges in one transaction: the same entries, without waiting for the disk after each."""

    def append_entries(connection: Connection) -> tuple[Entry, Entry]:
        state, last = account.current_state(), account.declared
        entry_time, budget = account.book.next_entry_time(connection), BUDGET.scale_by(FRACTION).to_data()
        for number in range(charges):
            body = {"plan": "", "kept": budget, "recipe": "", "audience": None, "time": entry_time, "series": None}
            state = state_after_entry(state, account.limits, CHARGED, f"many {number}", body)
            contents = (body, state.to_data())
            last = chain.append_entry(connection, account.dataset_name, CHARGED, f"many {number}", entry_time, contents)
        return last, last

    account.book.write_entry(append_entries)


def main() -> int:
    """Measure, print and write the lines; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entries", type=int, nargs="?", default=100_000)
    parser.add_argument("--charges", type=int, default=200, help="measured charges on the empty ledger; else half")
    add_json_option(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "bench.ledger", create=True)
        lines = [*charge_lines(ledger, options.entries, options.charges), check_line(ledger)]
        ledger.close()
    write_results(options.json, lines)
    return exit_status(lines)


def charge_lines(ledger: Ledger, entries: int, charges: int) -> list[Line]:
    """Measure charges on an empty ledger, with a limit by moments, and after ``entries`` charges."""
    identity = Identity("bench", (("x", "integer"),), PrivacyUnit(None, 1, 1, 1))
    account = ledger.declare_dataset(identity, [Limit("total", BUDGET)])
    moments_limit = Limit("total", BUDGET, rule="moments", releases=1000)
    moments_account = ledger.declare_dataset(
        replace(identity, name="moments", unit=PrivacyUnit("x", 1, 1, 1)), [moments_limit]
    )
    empty = charge_line("empty ledger", charge_seconds(account, charges, "first"))
    by_moments = charge_line(
        "limit by moments", charge_seconds(moments_account, charges // 2, "first", count_noise_record())
    )
    append_charges(account, entries)
    full = charge_line(f"{entries} entries", charge_seconds(account, charges // 2, "later"))
    return [empty, full, by_moments]


def charge_line(name: str, seconds: Sequence[float]) -> Line:
    """Print and return the median milliseconds of charges."""
    median = 1000 * statistics.median(seconds)
    print(f"charge, {name}: median {median:.1f} ms, first {1000 * seconds[0]:.1f} ms")
    return Line("ledger", f"a charge, {name}", "wall ms, median", median)


def check_line(ledger: Ledger) -> Line:
    """Check the ledger, and print and return the CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    report = check_ledger(ledger)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"check of {report.entries} entries: {wall:.1f} s, {cpu:.1f} CPU s; problems: {list(report.problems)}")
    line = Line("ledger", f"check of {report.entries} entries", "CPU s", cpu, note="; ".join(map(str, report.problems)))
    return line.with_goal("no problem found", met=not report.problems)


if __name__ == "__main__":
    sys.exit(main())
