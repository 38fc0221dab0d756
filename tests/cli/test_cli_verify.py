"""``tightrope verify``: exit codes, words and JSON."""

from __future__ import annotations

import json

import pytest

from tests.verify.written import noise


@pytest.fixture
def place(tmp_path):
    def _place(text):
        (tmp_path / "document.json").write_text(text, encoding="utf-8")
        return tmp_path / "document.json"

    return _place


def test_what_is_confirmed_exits_with_nothing_wrong(run, place):
    found = run("verify", place(noise("a theorem")))
    assert found.code == 0
    first, second, *_ = found.out.splitlines()
    assert first.startswith("CONFIRMED  ")
    assert "claims recomputed" in second
    assert "refuted" not in found.out
    assert len(found.out.splitlines()) < 8 < len(run("verify", place(noise("a theorem")), "--verbose").out.splitlines())


def test_what_is_refuted_is_said(run, place):
    data = json.loads(noise("a theorem"))
    data["guarantee"]["delta"] *= 0.9
    found = run("verify", place(json.dumps(data)), "--json")
    assert found.code == 1
    assert json.loads(found.out)["verdict"] == "refuted"
    shown = run("verify", place(json.dumps(data)))
    assert shown.code == 1
    assert shown.out.startswith("REFUTED")
    assert "guarantee" in shown.out


def test_what_has_no_table_is_neither(run, place):
    data = json.loads(noise("a theorem")) | {"version": 1, "table": None}
    assert run("verify", place(json.dumps(data))).code == 4


@pytest.mark.parametrize("text", ["", "[]", '{"document": "cake"}', '{"document": "account", "version": 9}'])
def test_what_is_no_document_is_bad_input(run, place, text):
    run("verify", place(text)).refused_with("not a Tightrope document")


def test_no_file_is_bad_input(run, tmp_path):
    run("verify", tmp_path / "none.json").refused_with("no such file")
    run("verify").refused_with("FILE")


def test_the_one_file_is_printed(run):
    found = run("verify", "--standalone")
    assert found.code == 0
    compile(found.out, "check.py", "exec")
    assert "import tightrope" not in found.out
    assert "from tightrope" not in found.out
