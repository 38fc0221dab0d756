"""The command: one link, until Ctrl-C; what is wrong is one line before anything is served."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from tests.studio.conftest import table
from tightrope.cli.main import app

SAID = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import tightrope.cli.main as m; m.main()"
)


def test_it_prints_one_link_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SAID, "studio", str(table(tmp_path, ["Oslo"])), "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        lines = iter(running.stdout.readline, "}\n")
        link = urlsplit(json.loads("".join(lines) + "}")["link"])
        assert link.hostname == "127.0.0.1"
        assert len(link.fragment) >= 40
        assert answered(link.port or 0, link.fragment) == 200
        assert answered(link.port or 0, "") == 403
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
        assert running.stderr is not None
        assert running.stderr.read() == ""
    assert not list(tmp_path.glob("*.toml"))


def answered(port: int, token: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"origin": f"http://127.0.0.1:{port}", "content-type": "application/json", "x-tightrope-token": token}
    with contextlib.closing(connection):
        connection.request("POST", "/api/start", "null", headers)
        return connection.getresponse().status


def test_a_plan_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    given = str(table(tmp_path, ["Oslo"]))
    (tmp_path / "plan.toml").write_text("mine", encoding="utf-8")
    done = CliRunner().invoke(app, ["studio", given, "--out", str(tmp_path / "plan.toml")])
    assert done.exit_code == 2
    assert "already exists" in done.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [(["--table", "x"], "with a plan"), (["--out", "/elsewhere.toml"], "relative to it"), ([], "does not exist")],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, more: list[str], said: str) -> None:
    source = table(tmp_path, ["Oslo"]).name if more else "gone.parquet"
    text = f'[source]\npath = "{source}"\n[privacy_unit]\neach_row = true\n[budget]\nepsilon = 1\ndelta = 1e-6\n'
    (tmp_path / "given.toml").write_text(f'{text}[[question]]\nkind = "count"\n', encoding="utf-8")
    done = CliRunner().invoke(app, ["studio", str(tmp_path / "given.toml"), *more])
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_has_an_example() -> None:
    shown = CliRunner().invoke(app, ["studio", "--help"]).stdout
    assert "tightrope studio examples/census/plan.toml" in shown


def test_without_its_libraries_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from tightrope.errors import MissingExtraError\n"
        "from tightrope.studio.server import loopback_socket, build_server\n"
        "try: build_server(None, '', loopback_socket(0))\n"
        "except MissingExtraError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'tightrope[studio]'" in said
