"""What a charge costs on SQLite, and how long a long history takes to check: python benchmarks/ledger.py [ENTRIES]."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tightrope.certificates import Budget
from tightrope.ledger import Account, Claim, Identity, Ledger, Limit
from tightrope.ledger.check import check
from tightrope.ledger.rules import after
from tightrope.ledger.storage import chain
from tightrope.ledger.storage.entry import CHARGED, Entry

BUDGET = Budget(epsilon=1, delta="1e-6")
SHARE = "0.000001"


def charged(account: Account, count: int, name: str) -> list[float]:
    """Seconds of each charge."""
    found = []
    for number in range(count):
        start = time.perf_counter()
        account.charge(Claim(f"{name} {number}", "plan", BUDGET.share(SHARE)))
        found.append(time.perf_counter() - start)
    return found


def filled(account: Account, count: int) -> None:
    """Many charges in one transaction: what they would be, without their waits for the disk."""

    def work(connection: object) -> tuple[Entry, Entry]:
        state, last = account.state(), account.declared
        for number in range(count):
            time_, kept = account.declared.time, BUDGET.share(SHARE).to_data()
            said = {"plan": "", "kept": kept, "recipe": "", "audience": None, "time": time_, "series": None}
            state = after(state, account.limits, CHARGED, f"many {number}", said)
            body = (said, state.to_data())
            last = chain.append(connection, account.name, CHARGED, f"many {number}", account.book.now(connection), body)
        return last, last

    account.book.write(work)


def main() -> None:
    entries = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "bench.ledger", create=True)
        identity = Identity("bench", (("x", "integer"),), None, "a person", 1, 1, 1)
        account = ledger.declare(identity, [Limit("total", BUDGET)])
        print(f"charge, empty ledger: median {1000 * statistics.median(charged(account, 200, 'first')):.1f} ms")
        filled(account, entries)
        print(f"charge, {entries} entries: median {1000 * statistics.median(charged(account, 100, 'later')):.1f} ms")
        start, processor = time.perf_counter(), time.process_time()
        report = check(ledger)
        spent = f"{time.perf_counter() - start:.1f} s, {time.process_time() - processor:.1f} s of the processor"
        print(f"check of {report.entries} entries: {spent}; problems: {len(report.problems)}")
        ledger.close()


if __name__ == "__main__":
    main()
