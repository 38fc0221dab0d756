"""Mutated documents on standard input, one a line: processor seconds and verdict of each, within a gigabyte."""

from __future__ import annotations

import json
import resource
import sys
import time

GIGABYTE = 1 << 30


def main() -> None:
    """Print one line of JSON a document."""
    from tightrope.verify.check import SECONDS, checked
    from tightrope.verify.claims import verdict

    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE))
    for line in sys.stdin:
        began = time.process_time()
        try:
            found = verdict(checked(json.loads(line), SECONDS))
        except ValueError:
            found = "refused"
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps([time.process_time() - began, found, peak]), flush=True)


if __name__ == "__main__":
    main()
