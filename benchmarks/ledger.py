"""What a charge costs on SQLite, and how long a long history takes to check: python benchmarks/ledger.py [ENTRIES]."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from lines import Line, option, write

from tightrope.documents import Budget
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.ledger import Account, Claim, Identity, Ledger, Limit, chain
from tightrope.ledger.chain import CHARGED, Entry
from tightrope.ledger.check import check_ledger
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.ledger.state import state_after_entry
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SelectedNoise, SplitBounds

BUDGET = Budget(epsilon=1, delta="1e-6")
SHARE = "0.000001"
NOISY = Budget(epsilon="0.02", delta="1e-9")


def charged(account: Account, count: int, name: str, recipe: str = "") -> list[float]:
    """Seconds of each charge."""
    found, kept = [], NOISY if recipe else BUDGET.scale_by(SHARE)
    for number in range(count):
        start = time.perf_counter()
        account.charge_release(Claim(f"{name} {number}", "plan", kept, recipe))
        found.append(time.perf_counter() - start)
    return found


def noise() -> str:
    """That of one count of one row a person."""
    spend, table = NoiseSpec("count", 8, True), optimal_table([(0.02, 1e-9)])
    unit = CompositionGroup((spend,), SplitBounds(1, 1, 1))
    return NoiseRecord((unit,), ((SelectedNoise(spend, "least noise", 1, table),),), None).to_text


def filled(account: Account, count: int) -> None:
    """Many charges in one transaction: what they would be, without their waits for the disk."""

    def work(connection: object) -> tuple[Entry, Entry]:
        state, last = account.current_state(), account.declared
        time_, kept = account.book.next_entry_time(connection), BUDGET.scale_by(SHARE).to_data()
        for number in range(count):
            said = {"plan": "", "kept": kept, "recipe": "", "audience": None, "time": time_, "series": None}
            state = state_after_entry(state, account.limits, CHARGED, f"many {number}", said)
            body = (said, state.to_data())
            last = chain.append_entry(connection, account.dataset_name, CHARGED, f"many {number}", time_, body)
        return last, last

    account.book.write_entry(work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entries", type=int, nargs="?", default=100_000)
    option(parser)
    asked = parser.parse_args()
    write(asked.json, measured(asked.entries))


def measured(entries: int) -> list[Line]:
    """Prints what it finds on the way."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "bench.ledger", create=True)
        identity = Identity("bench", (("x", "integer"),), PrivacyUnit(None, 1, 1, 1))
        account = ledger.declare_dataset(identity, [Limit("total", BUDGET)])
        empty = 1000 * statistics.median(charged(account, 200, "first"))
        print(f"charge, empty ledger: median {empty:.1f} ms")
        moments = [Limit("total", BUDGET, rule="moments", releases=1000)]
        other = ledger.declare_dataset(replace(identity, name="moments", unit=PrivacyUnit("x", 1, 1, 1)), moments)
        by_moments = charged(other, 100, "first", noise())
        moment = 1000 * statistics.median(by_moments)
        print(f"charge by moments: median {moment:.1f} ms, first {1000 * by_moments[0]:.0f}")
        filled(account, entries)
        full = 1000 * statistics.median(charged(account, 100, "later"))
        print(f"charge, {entries} entries: median {full:.1f} ms")
        start, processor = time.perf_counter(), time.process_time()
        report = check_ledger(ledger)
        wall, cpu = time.perf_counter() - start, time.process_time() - processor
        spent = f"{wall:.1f} s, {cpu:.1f} s of the processor"
        print(f"check of {report.entries} entries: {spent}; problems: {list(report.problems)}")
        ledger.close()
    charges = {"empty ledger": empty, f"{entries} entries": full, "limit by moments": moment}
    lines = [Line("ledger", f"a charge, {name}", "wall ms, median", spent) for name, spent in charges.items()]
    sound = {"goal": "no problem found", "met": not report.problems}
    return [*lines, Line("ledger", f"check of {report.entries} entries", "CPU s", cpu, **sound)]


if __name__ == "__main__":
    main()
