"""Pages as the real commands write them, one of each kind, made once in a run of the tests."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from typer.testing import CliRunner

from tightrope.cli.main import app

STEPS = """
[[step]]
mechanism = "gaussian"
scale = 20
count = 100
[[step]]
mechanism = "gaussian"
scale = 4
"""
LAWS = "\n".join(["point,group,mass", *(f"{name},<b>north</b>,{mass}" for name, mass in (("a", 0.2), ("b", 0.8)))])
LAWS += "\na,south,0.5\nb,south,0.5\n"
SIZES = "--examples 60000 --batch 256 --noise 1.3 --steps 3515 --delta 1e-5"
NAMED = "<b>tea</b>,coffee,water"
KINDS = {
    "account": ("account", "{folder}/steps.toml", "--delta", "1e-6", "--epsilon", "0.5"),
    "training": ("dpsgd", *SIZES.split(), "--no-compare"),
    "noise": ("noise", "--epsilon", "1", "--delta", "1e-6", "--sensitivity", "2"),
    "study": ("local", "plan", "distribution", "--categories", NAMED, "--epsilon", "1", "--people", "5000"),
    "coupling": (
        "couple", "fit", "--laws", "{folder}/laws.csv", "--value", "shop", "--group", "di\u202estrict", "--out",
        "{folder}/mechanism.json",
    ),
}  # fmt: skip


@cache
def page(kind: str) -> str:
    """The page of one kind."""
    with tempfile.TemporaryDirectory() as name:
        folder, file = Path(name), Path(name) / "page.html"
        (folder / "steps.toml").write_text(STEPS, encoding="utf-8")
        (folder / "laws.csv").write_text(LAWS, encoding="utf-8")
        words = [word.format(folder=folder) for word in KINDS[kind]]
        done = CliRunner().invoke(app, [*words, "--report", str(file)])
        assert done.exit_code == 0, done.output
        assert f"Written: {file}" in done.stdout.replace("\n", "")
        return file.read_text(encoding="utf-8")
