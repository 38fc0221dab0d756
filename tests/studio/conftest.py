"""A small table, a desk on it, and a browser's way of asking its page, without a browser."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tightrope.cli.studio import host_callbacks
from tightrope.studio.plan_editor import PlanEditor
from tightrope.studio.plan_form import open_editor_state
from tightrope.studio.server import build_server, loopback_socket, studio_link

WISHES: dict[str, Any] = {
    "title": "Visits",
    "who": {"column": "user", "max_rows": 2},
    "promise": {"said": "epsilon", "value": "1", "delta": "1e-6"},
    "questions": [
        {"kind": "count", "by": ["city"]},
        {"kind": "mean", "column": "age", "bounds": [0, 100], "weight": 2},
    ],
}


def table(folder: Path, cities: list[str], people: int = 400) -> Path:
    place = folder / "visits.parquet"
    rows = [{"user": n % people, "city": cities[n % len(cities)], "age": 20.0 + n % 7} for n in range(2 * people)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), place)
    return place


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


class Page:
    """A page's real server, what it asks, and what it is answered."""

    def __init__(self, desk: PlanEditor) -> None:
        self.desk, self.token = desk, "a-token-of-many-letters"
        listening = loopback_socket(0)
        self.port, self.link = listening.getsockname()[1], studio_link(self.token, listening)
        self.server = build_server(desk, self.token, listening)
        self.thread = threading.Thread(target=lambda: self.server.run(sockets=[listening]), daemon=True)
        self.thread.start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.desk.stop_worker()
        self.server.should_exit = True
        self.thread.join(60)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        again: tuple[str, str] | None = None,
        **headers: str | None,
    ) -> Answer:
        """One request; headers are said with underscores, and None leaves one out; ``again`` is sent after all."""
        usual = {"origin": self.origin, "content_type": "application/json", "x_tightrope_token": self.token}
        said = {name.replace("_", "-"): value for name, value in {**usual, **headers}.items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host="host" in said)
            for name, value in {**said, "content-length": str(len(body or b""))}.items():
                connection.putheader(name, value.encode())
            if again is not None:
                connection.putheader(*again)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode())

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.request("GET", path, **headers)

    def ask(self, what: str, said: object = None, **headers: str | None) -> Answer:
        return self.request("POST", f"/api/{what}", json.dumps(said).encode(), **headers)

    def exact(self, wishes: object) -> dict[str, Any]:
        """The figures, once they are there."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            found = self.ask("look", wishes).json()
            if found["state"] in ("exact", "problem"):
                return dict(found)
        raise AssertionError("no figures came")


@pytest.fixture
def pages(planned_once: None) -> Iterator[Callable[..., Page]]:
    """Makes pages on a table or a plan, and ends them."""
    made: list[Page] = []

    def page(given: Path, out: Path | None = None, ahead: int = 0) -> Page:
        made.append(
            Page(
                PlanEditor(
                    open_editor_state(str(given), None if out is None else str(out)), host_callbacks(), ahead=ahead
                )
            )
        )
        return made[-1]

    yield page
    for one in made:
        one.close()


@pytest.fixture
def page(pages: Callable[..., Page], tmp_path: Path) -> Page:
    return pages(table(tmp_path, ["Oslo", "Rome"]), tmp_path / "plan.toml")
