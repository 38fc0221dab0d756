"""How long the studio's page waits for its server while somebody moves the slider.

    python benchmarks/studio.py

Opens the plans of the examples, waits for their figures, moves the slider over every stop and back, as fast as a hand
does, while the server computes ahead, and again 15 s later. Makes the tables of the examples where they are missing.
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
from pathlib import Path

from lines import Line, option, write

from tightrope.cli.studio import host_callbacks
from tightrope.studio.plan_editor import PlanEditor
from tightrope.studio.plan_form import open_editor_state
from tightrope.studio.server import SWITCH, build_server, loopback_socket

ROOT = Path(__file__).resolve().parents[1]
PLANS = "examples/census/plan.toml", "examples/wages/plan.toml"
TABLES = "examples/census/census2000.parquet", "examples/wages/wagepan.parquet"
PAUSE, TOKEN, GOAL = 0.1, "token", 200


def main() -> None:
    """A line a plan: milliseconds, at the median and at most, of every answer to a slider."""
    parser = argparse.ArgumentParser(description=__doc__)
    option(parser)
    asked_for, lines = parser.parse_args(), []
    os.chdir(ROOT)
    if not all(Path(table).exists() for table in TABLES):
        subprocess.run([sys.executable, "examples/make_data.py", "census", "wages"], check=True)
    sys.setswitchinterval(SWITCH)
    for plan in PLANS:
        desk = PlanEditor(open_editor_state(str(Path(plan)), None), host_callbacks())
        listening = loopback_socket(0)
        server = build_server(desk, TOKEN, listening)
        threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
        lines += moved(plan, listening.getsockname()[1])
        desk.stop_worker()
        server.should_exit = True
    write(asked_for.json, lines)


def moved(plan: str, port: int) -> list[Line]:
    """The slider up and down twice: while nothing is computed, and later."""
    lines = []
    start, _ = asked(port, "start", None)
    wishes = start["wishes"]
    while asked(port, "look", wishes)[0]["state"] != "exact":
        pass
    stops = start["ladders"][wishes["promise"]["said"]]
    for round_number in (1, 2):
        found = [
            asked(port, "look", {**wishes, "promise": {**wishes["promise"], "value": stop}})
            for stop in (*stops, *reversed(stops))
        ]
        took = [1000 * seconds for _, seconds in found]
        states = [answer["state"] for answer, _ in found]
        counted = ", ".join(f"{states.count(state)} {state}" for state in ("exact", "bound", "working"))
        print(
            f"{plan}, round {round_number}: median {statistics.median(took):.0f} ms, most {max(took):.0f} ms; {counted}"
        )
        job, most = f"{Path(plan).parent.name}, {'page just opened' if round_number == 1 else '15 s later'}", max(took)
        lines += [
            Line("studio", job, "answer, wall ms, median", statistics.median(took)),
            Line("studio", job, "answer, wall ms, most", most, goal=f"{GOAL}", met=most <= GOAL, note=counted),
        ]
        time.sleep(0 if round_number == 2 else 15)
    return lines


def asked(port: int, what: str, said: object) -> tuple[dict, float]:
    """The answer, and how long it took; a hand rests before the next move."""
    time.sleep(PAUSE)
    headers = {"origin": f"http://127.0.0.1:{port}", "content-type": "application/json", "x-tightrope-token": TOKEN}
    began = time.perf_counter()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", f"/api/{what}", json.dumps(said), headers)
        answer = json.loads(connection.getresponse().read())
    return answer, time.perf_counter() - began


if __name__ == "__main__":
    main()
