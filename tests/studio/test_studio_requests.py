"""Who gets in: this machine's own page with its token, and nobody else; and what it says before anything is spent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.studio.conftest import WISHES, Page, table
from tightrope.errors import InputError
from tightrope.studio.server import loopback_socket

ASKED = "start", "look", "save", "price", "release"
WRONG: dict[str, dict[str, str | None]] = {
    "no token": {"x_tightrope_token": None},
    "another token": {"x_tightrope_token": "x" * 43},
    "a token that is no ASCII": {"x_tightrope_token": "é"},
    "no origin": {"origin": None},
    "another site": {"origin": "http://evil.example"},
    "another port of this machine": {"origin": "http://127.0.0.1:1"},
    "this machine by name": {"origin": "http://localhost:PORT"},
    "a page from a file": {"origin": "null"},
    "a name pointed here": {"host": "evil.example:PORT"},
    "another port": {"host": "127.0.0.1:1"},
    "a form": {"content_type": "text/plain"},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_whoever_is_not_the_page_is_refused(page: Page, wrong: dict[str, str | None], tmp_path: Path) -> None:
    headers = {name: value and value.replace("PORT", str(page.port)) for name, value in wrong.items()}
    for what in ASKED:
        assert page.ask(what, WISHES, **headers).status == 403
    assert not (tmp_path / "plan.toml").exists()


@pytest.mark.parametrize("name", ["x-tightrope-token", "host", "origin", "content-type", "content-length"])
def test_a_header_that_is_there_twice_is_refused(page: Page, name: str) -> None:
    """Also where the first, the second or both are right: no reader is left to choose one of two."""
    right = {
        "x-tightrope-token": page.token, "host": f"127.0.0.1:{page.port}", "origin": page.origin,
        "content-type": "application/json", "content-length": "4",
    }  # fmt: skip
    same = () if name == "content-length" else (right[name],)  # HTTP reads two equal lengths as one
    for second in (*same, "5" if name == "content-length" else "x" * 43):
        with contextlib.suppress(ConnectionResetError):  # the parser of HTTP closes before the body is read
            assert page.request("POST", "/api/start", b"null", again=(name, second)).status in (400, 403)
    assert page.request("POST", "/api/start", b"null").status == 200


def test_a_name_that_was_pointed_here_sees_nothing(page: Page) -> None:
    for path in ("/", "/studio.js", "/report/x"):
        assert page.get(path, host=f"evil.example:{page.port}").status == 403


def test_nothing_is_asked_in_another_way(page: Page) -> None:
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert page.request(method, "/api/start").status == 403


def test_every_answer_is_sealed(page: Page) -> None:
    for path in ("/", "/studio.js", "/studio.css", "/nothing", "/report/guess", "/../serve.py", "/%2e%2e/serve.py"):
        answer = page.get(path)
        assert answer.status == (200 if path in ("/", "/studio.js", "/studio.css") else 404)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert not {"access-control-allow-origin", "set-cookie", "server"} & answer.headers.keys()


def test_the_static_page_names_no_other_host(page: Page) -> None:
    for path in ("/", "/studio.css", "/studio.js", "/ask.js", "/show.js", "/parts.js"):
        text = page.get(path).text
        assert "//" not in text.replace("http://www.w3.org/2000/svg", "").replace("// ", "")
        for unsafe in ("innerHTML", "eval(", "style=", "onclick=", "<script>"):
            assert unsafe not in text, (path, unsafe)


def test_only_this_machine_is_listened_to() -> None:
    with loopback_socket(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        with pytest.raises(InputError, match="port"):
            loopback_socket(listening.getsockname()[1])


def test_a_request_of_any_length_is_not_read(page: Page) -> None:
    assert page.request("POST", "/api/look", b"x" * 70_000).status == 413


NOT_WISHES = {
    "no JSON": b"{",
    "a key that is unknown": b'{"who": {}, "sql": "select 1"}',
    "a condition": b'{"who": {}, "questions": [{"kind": "count", "where": "age > 5"}]}',
    "NaN": b'{"who": {}, "expected_rows": NaN}',
    "many questions": b'{"who": {}, "questions": [' + b",".join([b"{}"] * 201) + b"]}",
}


@pytest.mark.parametrize("said", NOT_WISHES.values(), ids=NOT_WISHES)
def test_what_the_page_cannot_say_is_refused(page: Page, said: bytes) -> None:
    answer = page.request("POST", "/api/look", said)
    assert answer.status == 400
    assert set(answer.json()) == {"problem"}


NO_NAMES = {
    "column": {"kind": "mean", "column": "age + 1", "bounds": [0, 1]},
    "by": {"kind": "count", "by": ["year(age)"]},
    "kind": {"kind": "regression"},
    "kept": {"kept": 0},
}


@pytest.mark.parametrize("question", NO_NAMES.values(), ids=NO_NAMES)
def test_names_are_names_and_never_expressions(page: Page, question: dict[str, Any]) -> None:
    wishes = {**WISHES, "questions": [question]}
    assert "expected" in page.ask("look", wishes).json()["problem"]
    assert page.ask("save", wishes).status == 400


def test_a_person_is_a_column_that_is_there(page: Page) -> None:
    assert "column" in page.ask("look", {**WISHES, "who": {"column": "user; drop", "max_rows": 1}}).json()["problem"]


def test_a_fault_of_ours_shows_no_value(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("could not convert 'Ludmila'")

    monkeypatch.setattr(page.desk, "initial_state", broken)
    answer = page.ask("start")
    assert answer.status == 400
    assert "Ludmila" not in answer.text
    assert "RuntimeError" in answer.text


def test_before_a_release_the_page_is_told_nothing_of_the_data(pages: Callable[..., Page], tmp_path: Path) -> None:
    """Two tables with the same columns and nothing else in common: every answer is the same, letter for letter."""
    seen = []
    for cities, people in ((["Oslo", "Rome"], 400), (["Ludmila"], 3)):
        place = table(tmp_path, cities, people)
        (tmp_path / "plan.toml").unlink(missing_ok=True)
        page = pages(place, tmp_path / "plan.toml")
        exact = page.exact(WISHES)
        price = page.ask("price", WISHES).json()
        assert price.pop("ticket")
        seen.append([page.ask("start").json(), exact, page.ask("save", WISHES).json(), price])
    assert seen[0] == seen[1]
    assert seen[0][0]["columns"] == [
        {"name": "user", "kind": "integer"},
        {"name": "city", "kind": "text"},
        {"name": "age", "kind": "number"},
    ]
