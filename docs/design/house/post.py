"""What no general rule rewrites, after regroup.py: texts that name half a path, package docstrings, contracts."""
import re, sys
from pathlib import Path
root = Path(sys.argv[1])

def sub(path: str, *pairs: tuple[str, str]) -> None:
    p = root / path
    t = p.read_text()
    for a, b in pairs:
        if a not in t:
            print("post: not found", path, a[:60])
        t = t.replace(a, b)
    p.write_text(t)

sub("scripts/schemas.py", ('"tightrope.documents", "tightrope.release.documents"', '"tightrope.documents", "tightrope.release"'))
sub("tests/cli/release/test_cli_release.py", ('"release.documents.plan_file.load"', '"release.plan_file.load"'), ('"release.documents.plan_file.PlanFile.release_plan"', '"release.plan_file.PlanFile.release_plan"'), ('"cli.release.folder.reserved"', '"cli.output_files.reserved"'), ('"cli.release.release._print"', '"cli.release._print"'))
for package, text in {
    "reporting/wording": "Sentences and numbers of reports, terminals and pages.",
    "reporting/pages": "The HTML pages: one module a kind of document.",
    "accounting/methods": "Methods that compute δ of a composition: closed forms, lattices, the contour integral, grids, sums.",
    "mechanisms/discrete": "Integer noise, exact: tables of weights, their privacy loss, and sampling.",
}.items():
    (root / "src/tightrope" / package / "__init__.py").write_text(f'"""{text}"""\n')

CONTRACTS = '''[tool.importlinter]
root_package = "tightrope"
include_external_packages = true

[[tool.importlinter.contracts]]
name = "data flows one way: a higher line may import a lower one, rooms on one line know nothing of each other"
type = "layers"
containers = ["tightrope"]
exhaustive = true
exhaustive_ignores = ["__main__"]
layers = [
    "cli",
    "papers | studio",
    "audit | release",
    "queries",
    "reporting | verify",
    "ledger | training",
    "noise",
    "local | transport",
    "tables | channels",
    "mechanisms",
    "documents",
    "accounting",
    "randomness",
    "numerics",
    "errors",
]

[[tool.importlinter.contracts]]
name = "verify shares no code with what it checks"
type = "forbidden"
source_modules = ["tightrope.verify"]
forbidden_modules = [
    "tightrope.cli", "tightrope.papers", "tightrope.studio", "tightrope.release", "tightrope.audit", "tightrope.queries", "tightrope.reporting",
    "tightrope.ledger", "tightrope.training", "tightrope.noise", "tightrope.local", "tightrope.transport", "tightrope.tables", "tightrope.channels",
    "tightrope.mechanisms", "tightrope.documents", "tightrope.accounting", "tightrope.randomness", "tightrope.numerics", "tightrope.errors",
    "numpy", "scipy", "msgspec",
]

[[tool.importlinter.contracts]]
name = "documents hold data and compute nothing"
type = "forbidden"
source_modules = ["tightrope.documents"]
forbidden_modules = ["tightrope.accounting", "tightrope.numerics", "tightrope.randomness"]

[[tool.importlinter.contracts]]
name = "databases only in tables"
type = "forbidden"
source_modules = [
    "tightrope.cli", "tightrope.papers", "tightrope.studio", "tightrope.release", "tightrope.audit", "tightrope.queries", "tightrope.reporting",
    "tightrope.ledger", "tightrope.training", "tightrope.noise", "tightrope.local", "tightrope.transport", "tightrope.channels",
    "tightrope.mechanisms", "tightrope.documents", "tightrope.accounting", "tightrope.randomness", "tightrope.numerics", "tightrope.errors",
]
forbidden_modules = ["ibis", "duckdb", "pyspark"]
allow_indirect_imports = true

[[tool.importlinter.contracts]]
name = "drawing and templates only in reporting"
type = "forbidden"
source_modules = [
    "tightrope.cli", "tightrope.papers", "tightrope.studio", "tightrope.release", "tightrope.audit", "tightrope.queries", "tightrope.reporting.wording",
    "tightrope.ledger", "tightrope.training", "tightrope.noise", "tightrope.local", "tightrope.transport", "tightrope.tables", "tightrope.channels",
    "tightrope.mechanisms", "tightrope.documents", "tightrope.accounting", "tightrope.randomness", "tightrope.numerics", "tightrope.errors",
]
forbidden_modules = ["matplotlib", "jinja2"]
allow_indirect_imports = true

[[tool.importlinter.contracts]]
name = "solvers of transport only in transport, and not in its costs and guarantees"
type = "forbidden"
source_modules = [
    "tightrope.cli", "tightrope.papers", "tightrope.studio", "tightrope.release", "tightrope.audit", "tightrope.queries", "tightrope.reporting",
    "tightrope.ledger", "tightrope.training", "tightrope.noise", "tightrope.local", "tightrope.tables", "tightrope.channels",
    "tightrope.mechanisms", "tightrope.documents", "tightrope.accounting", "tightrope.randomness", "tightrope.numerics", "tightrope.errors",
    "tightrope.transport.costs", "tightrope.transport.couplings", "tightrope.transport.exact", "tightrope.transport.guarantees", "tightrope.transport.on_tables",
]
forbidden_modules = ["ot", "ortools"]
allow_indirect_imports = true

[[tool.importlinter.contracts]]
name = "servers only in studio, SQLAlchemy only in ledger, classifiers only in audit"
type = "forbidden"
source_modules = [
    "tightrope.cli", "tightrope.papers", "tightrope.release", "tightrope.queries", "tightrope.reporting", "tightrope.training", "tightrope.noise",
    "tightrope.local", "tightrope.transport", "tightrope.tables", "tightrope.channels", "tightrope.mechanisms", "tightrope.documents",
    "tightrope.accounting", "tightrope.randomness", "tightrope.numerics", "tightrope.errors",
]
forbidden_modules = ["starlette", "uvicorn", "sqlalchemy", "psycopg", "sklearn"]
allow_indirect_imports = true

[[tool.importlinter.contracts]]
name = "the mathematics of local and transport reads no table"
type = "forbidden"
source_modules = [
    "tightrope.local.parts", "tightrope.local.mechanisms", "tightrope.local.limits", "tightrope.local.vectors",
    "tightrope.transport.costs", "tightrope.transport.couplings", "tightrope.transport.exact", "tightrope.transport.guarantees", "tightrope.transport.solvers",
]
forbidden_modules = ["tightrope.tables"]
'''
p = root / "pyproject.toml"
t = p.read_text()
p.write_text(t[: t.index("[tool.importlinter]")] + CONTRACTS)
sub("tests/test_public_surface.py", ('        "design",\n        "engines",\n        "local",\n        "report",\n', '        "local",\n        "noise",\n        "reporting",\n        "tables",\n'))
