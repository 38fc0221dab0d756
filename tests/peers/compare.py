"""Tightrope beside its peers, case by case:  python -m tests.peers.compare [peer ...] [--json FILE]

Of each case: the safe end of ours must not be beyond the end that a peer proves (we would be unsafe); where the peer's
own safe answer is not beyond our other end (then *it* is unsafe), ours must not be looser by more than LOOSER; and it
must come within SECONDS of processor time. Prints counts by kind, and the worst.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from tests.accounting.patience import OutOfPatienceError, patience
from tests.peers.adapter import KEPT, OTHER, PEERS, SAFE, SMALLER_IS_SAFER, Case, compositions

LOOSER = 1e-6
SECONDS = 10.0
PEER_MASS = 1e-14
SHOWN = 15
HOPELESS = 60.0
"""When a slow answer is given up."""
PEER_ROUNDING = 1e-12, 1e-14
"""Relative and absolute: what a peer's own arithmetic in doubles may have added or lost."""


@dataclass(frozen=True)
class Verdict:
    """``looseness`` is our safe answer over the peer's, less one; NaN where the peer has none or is unsafe."""

    case: Case
    ours: float
    seconds: float
    fault: str
    peer_unsafe: bool = False
    looseness: float = math.nan


def judged(case: Case) -> Verdict:
    start = time.process_time()
    try:
        with patience(HOPELESS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = float(SAFE[case.ask](case))
            seconds = time.process_time() - start
            return _weighed(case, ours, seconds)
    except OutOfPatienceError:
        return Verdict(case, math.nan, HOPELESS, f"no answer in {HOPELESS:.0f} s")
    except Exception as error:
        return Verdict(case, math.nan, time.process_time() - start, f"{type(error).__name__}: {error}"[:300])


def _weighed(case: Case, ours: float, seconds: float) -> Verdict:
    """The other end is only asked for where the peer's safe answer is tighter than ours."""
    sign = -1.0 if case.ask in SMALLER_IS_SAFER else 1.0
    room = PEER_ROUNDING[0] * abs(ours) + PEER_ROUNDING[1]
    peer_unsafe, looseness = False, math.nan
    if case.safe is not None:
        looseness = (sign * (ours - case.safe) - PEER_ROUNDING[1]) / max(abs(case.safe), 1e-300)
        peer_unsafe = looseness > 0 and _shown_unsafe(case, sign, room)
    faults = []
    if case.other is not None and sign * (ours - case.other) < -room and not _mass_lost(case, room):
        faults.append(f"unsafe: {ours!r} beyond {case.other!r}")
    if looseness > LOOSER and not peer_unsafe:
        faults.append(f"looser by {looseness:.2e}: {ours!r} and not {case.safe!r}")
    if seconds > SECONDS:
        faults.append(f"slow: {seconds:.1f} s")
    return Verdict(case, ours, seconds, "; ".join(faults), peer_unsafe, math.nan if peer_unsafe else looseness)


def _mass_lost(case: Case, room: float) -> bool:
    """Lattices cut off tails of 1e-15 and transform with noise: their ε is that of a δ that is off by as much."""
    if case.ask != "epsilon" or case.other is None:
        return False
    return SAFE["epsilon"](replace(case, at=max(case.at - PEER_MASS, 0.0))) >= case.other - room


def _shown_unsafe(case: Case, sign: float, room: float) -> bool:
    safe = case.safe or 0.0
    if case.ask in KEPT:
        return not KEPT[case.ask](case, safe)
    return sign * (safe - float(OTHER[case.ask](case))) < -room


def report(verdicts: list[Verdict]) -> None:
    faults = [v for v in verdicts if v.fault]
    unsafe = [v for v in verdicts if v.peer_unsafe]
    total = sum(v.seconds for v in verdicts)
    print(f"\n{len(verdicts)} cases, {total:.0f} s, {len(faults)} at fault; in {len(unsafe)} the peer is unsafe")
    _counted("Unsafe answers of peers", Counter(f"{v.case.peer} {v.case.note.split(' ')[0]}" for v in unsafe))
    _counted("Faults", Counter(f"{v.fault.split(' ')[0]} {v.case.kind}" for v in faults))
    _listed("Unsafe answers of peers, some", unsafe[:: max(1, len(unsafe) // SHOWN)])
    _listed("Loosest", sorted(verdicts, key=lambda v: -v.looseness if v.looseness > LOOSER else 0)[:SHOWN])
    _listed("Slowest", sorted(verdicts, key=lambda v: -v.seconds)[:SHOWN])


def _counted(title: str, counts: Counter[str]) -> None:
    print(f"\n{title}:")
    for what, number in counts.most_common():
        print(f"{number:6} {what}")


def _listed(title: str, verdicts: list[Verdict]) -> None:
    print(f"\n{title}:")
    for v in verdicts:
        print(f"{v.seconds:7.2f} s {v.looseness:+9.1e} {v.ours!r} against {v.case.safe!r}  {v.case.name}  {v.fault}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", nargs="*", default=list(PEERS))
    parser.add_argument("--json", type=Path, help="where to write every verdict")
    asked = parser.parse_args()
    verdicts: list[Verdict] = []
    for _, _, cases in compositions(asked.peers):
        for case in cases:
            verdicts.append(judged(case))
            if verdicts[-1].fault:
                print(f"{verdicts[-1].seconds:7.2f} s  {case.name}: {verdicts[-1].fault}", flush=True)
    if asked.json:
        rows = [[v.case.name, v.case.kind, v.ours, v.case.safe, v.case.other, v.seconds, v.fault] for v in verdicts]
        asked.json.write_text(json.dumps(rows, indent=0), encoding="utf-8")
    report(verdicts)


if __name__ == "__main__":
    main()
