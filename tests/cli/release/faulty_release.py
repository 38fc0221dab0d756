"""Runs ``tightrope release`` in forked children, each with one fault at one point: ``python faulty_release.py PLAN``.

Reads lines "FAULT POINT OUT" and answers each with a line of JSON. A point is the number of a call or return in the
code that plans, charges, draws, writes and prints; point 0 only counts them.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from types import FrameType

LOADED = (
    "tightrope.cli.main", "tightrope.cli.output_files", "tightrope.cli.release",
    "tightrope.release.plan_file", "tightrope.reporting", "jinja2",
    "ibis", "duckdb", "ibis.backends.duckdb", "rich.console", "rich.table", "pandas", "scipy.optimize", "scipy.special",
    "tightrope.reporting.wording.promise", "pyarrow", "sqlalchemy.dialects.sqlite.pysqlite", "tightrope.ledger",
    "tightrope.release.session",
)  # fmt: skip
WATCHED = (
    "/tightrope/release/",
    "/tightrope/queries/",
    "/tightrope/cli/release.py",
    "/tightrope/ledger/",
    "/tightrope/cli/output",
    "/documents/document",
    "/pages/",
)
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}


class Watch:
    """Counts calls and returns, and strikes at one of them."""

    def __init__(self, fault: str, point: int, reader: int, status: int) -> None:
        self.fault, self.point, self.reader, self.status = fault, point, reader, status
        self.seen = self.charged = 0
        self.watched: dict[str, bool] = {}
        """By file: this runs at every call of every library."""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        counts = self.watched.get(code.co_filename)
        if counts is None:
            counts = self.watched[code.co_filename] = any(part in code.co_filename for part in WATCHED)
        if not counts:
            return
        self.seen += 1
        if event == "call" and code.co_name == "begin_reading" and code.co_filename.endswith("account.py"):
            self.charged = self.seen
            os.write(self.status, b"charged\n")
        if self.seen == self.point:
            os.write(self.status, b"struck\n")
            self.strike()

    def strike(self) -> None:
        if self.fault in SIGNALS:
            os.kill(os.getpid(), SIGNALS[self.fault])
        elif self.fault == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        elif self.fault == "pipe":
            os.close(self.reader)


def child(plan: str, fault: str, point: int, out: str, fds: tuple[int, ...]) -> None:
    reader, writer, errors, status = fds
    os.dup2(writer, 1)
    os.dup2(errors, 2)
    os.close(writer)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if fault == "pipe":
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    else:
        os.close(reader)
    from tightrope.cli.main import app

    watch = Watch(fault, point, reader, status)
    sys.setprofile(watch)
    code = 1
    try:
        app(["release", plan, "--out", out])
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.setprofile(None)
        os.write(status, f"seen {watch.seen} {watch.charged}\n".encode())
        sys.stdout.close()
        os._exit(code)


def run(plan: str, fault: str, point: int, out: str) -> dict[str, object]:
    reader, writer = os.pipe()
    (said, errors), (marked, marks) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        child(plan, fault, point, out, (reader, writer, errors, marks))
    for end in (writer, errors, marks):
        os.close(end)
    if fault == "pipe":
        os.close(reader)
    printed = "" if fault == "pipe" else drained(reader)
    told, marked_lines = drained(said), drained(marked).split("\n")
    _, ended = os.waitpid(pid, 0)
    return {"code": os.waitstatus_to_exitcode(ended), "out": printed, "err": told, "marks": marked_lines}


def drained(reader: int) -> str:
    """All that is written until the other end is closed."""
    with os.fdopen(reader, "rb") as file:
        return file.read().decode()


def main() -> None:
    for name in LOADED:
        importlib.import_module(name)
    importlib.import_module("tightrope.reporting.pages.release_page").html({})  # compiles the templates, once for all
    for line in sys.stdin:
        fault, point, out = line.split()
        print(json.dumps(run(sys.argv[1], fault, int(point), out)), flush=True)


if __name__ == "__main__":
    main()
