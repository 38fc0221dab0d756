"""The time until the studio's server answers while the slider moves.

    python benchmarks/studio.py

Opens the plans of the examples, waits for their figures, moves the slider over all stops and back, as fast as by hand,
while the server computes ahead, and again after a pause. Makes the tables of the examples if they are missing.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lines import Line, add_json_option, exit_status, write_results

from tightrope.cli.studio import host_callbacks
from tightrope.studio.plan_editor import PlanEditor
from tightrope.studio.plan_form import open_editor_state
from tightrope.studio.server import SWITCH, build_server, loopback_socket

ROOT = Path(__file__).resolve().parents[1]
PLANS = ("census", "wages")
TABLES = "examples/census/census2000.parquet", "examples/wages/wagepan.parquet"
TOKEN, GOAL_MILLISECONDS, DEADLINE = "token", 200, 120
MOVE_PAUSE, ROUND_PAUSE = 0.1, 15
"""Seconds between two moves of the slider, and between the two rounds."""


def main() -> int:
    """Measure the plans; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PLANS, default=PLANS)
    parser.add_argument("--stops", type=int, help="the number of stops; by default all")
    parser.add_argument("--pause", type=float, default=ROUND_PAUSE, help="seconds between the two rounds")
    add_json_option(parser)
    options = parser.parse_args()
    json_file = options.json and options.json.absolute()
    os.chdir(ROOT)
    if not all(Path(table).exists() for table in TABLES):
        subprocess.run([sys.executable, "examples/make_data.py", *PLANS], check=True)
    sys.setswitchinterval(SWITCH)
    lines: list[Line] = []
    for plan in options.only:
        with running_server(Path("examples") / plan / "plan.toml") as port:
            lines += slider_lines(plan, port, options.stops, options.pause)
    write_results(json_file, lines)
    return exit_status(lines)


@contextlib.contextmanager
def running_server(plan: Path) -> Iterator[int]:
    """Serve a plan's page in a thread; yield the port."""
    editor = PlanEditor(open_editor_state(str(plan), None), host_callbacks())
    listening = loopback_socket(0)
    server = build_server(editor, TOKEN, listening)
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        editor.stop_worker()
        server.should_exit = True


def slider_lines(plan: str, port: int, stop_count: int | None, pause: float) -> list[Line]:
    """Move the slider up and down twice: right after the page was opened, and after a pause."""
    start, _ = send_request(port, "start", None)
    form = start["wishes"]
    deadline = time.monotonic() + DEADLINE
    while send_request(port, "look", form)[0]["state"] != "exact":
        if time.monotonic() > deadline:
            raise SystemExit(f"{plan}: the figures were not computed within {DEADLINE} s")
    stops = start["ladders"][form["promise"]["said"]][:stop_count]
    lines = []
    for name in ("page just opened", "15 s later"):
        forms = [{**form, "promise": {**form["promise"], "value": stop}} for stop in (*stops, *reversed(stops))]
        answers = [send_request(port, "look", changed) for changed in forms]
        milliseconds = [1000 * seconds for _, seconds in answers]
        states = [answer["state"] for answer, _ in answers]
        counts = ", ".join(f"{states.count(state)} {state}" for state in ("exact", "bound", "working"))
        median, slowest, job = statistics.median(milliseconds), max(milliseconds), f"{plan}, {name}"
        print(f"{job}: median {median:.0f} ms, at most {slowest:.0f} ms; {counts}")
        slowest_line = Line("studio", job, "answer, wall ms, most", slowest, note=counts)
        lines += [
            Line("studio", job, "answer, wall ms, median", median),
            slowest_line.with_goal(f"{GOAL_MILLISECONDS}", met=slowest <= GOAL_MILLISECONDS),
        ]
        time.sleep(pause if name == "page just opened" else 0)
    return lines


def send_request(port: int, path: str, body: object) -> tuple[dict[str, Any], float]:
    """Return the answer and its seconds, after the pause between two moves. Raises ``RuntimeError`` for an error."""
    time.sleep(MOVE_PAUSE)
    headers = {"origin": f"http://127.0.0.1:{port}", "content-type": "application/json", "x-tightrope-token": TOKEN}
    start = time.perf_counter()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", f"/api/{path}", json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
    if response.status != http.client.OK:
        raise RuntimeError(f"/api/{path}: status {response.status}: {text.decode(errors='replace')[:200]}")
    return dict(json.loads(text)), time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
