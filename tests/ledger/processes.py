"""Other processes for the tests of a ledger: forked, so that a test has many of them in a second."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType

WATCHED = ("/tightrope/ledger/", "/sqlalchemy/engine/", "/sqlalchemy/pool/")


def started(work: Callable[[int], object]) -> tuple[int, int]:
    """A child that works with a pipe to us: its process, and our end."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return child, ours
    os.close(ours)
    code = 1
    try:
        work(theirs)
        code = 0
    except BaseException:
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(code)


def ended(child: int, ours: int) -> tuple[int, str]:
    """How it ended (−9: killed), and all that it said."""
    with os.fdopen(ours, "rb") as file:
        said = file.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def together(works: Sequence[Callable[[int], object]]) -> list[str]:
    """What they say who all work at once; each must end well."""
    children = [started(work) for work in works]
    outcomes = [ended(*child) for child in children]
    assert [code for code, _ in outcomes] == [0] * len(works)
    return [said for _, said in outcomes]


class Struck:
    """Counts calls and returns in the ledger's code, and kills this process at one of them; point 0 only counts."""

    def __init__(self, point: int) -> None:
        self.point, self.seen = point, 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event in ("call", "return") and any(part in frame.f_code.co_filename for part in WATCHED):
            self.seen += 1
            if self.seen == self.point:
                os.kill(os.getpid(), signal.SIGKILL)
