"""Mutated documents on standard input, one a line: processor seconds and verdict of each, within a gigabyte."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

GIGABYTE = 1 << 30


def peak_memory() -> int:
    """Kilobytes this program had at most; not ``ru_maxrss``, which begins with its parent's peak."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0])


def main() -> None:
    """Print one line of JSON a document."""
    from tightrope.verify.check import DEFAULT_SECONDS, check_document
    from tightrope.verify.claims import worst_verdict

    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE, GIGABYTE))
    for line in sys.stdin:
        began = time.process_time()
        try:
            found = worst_verdict(check_document(json.loads(line), DEFAULT_SECONDS))
        except ValueError:
            found = "refused"
        print(json.dumps([time.process_time() - began, found, peak_memory()]), flush=True)


if __name__ == "__main__":
    main()
