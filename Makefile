# Needs python3 (>= 3.11) and make, nothing else. The first call makes .venv; later calls are fast.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
SPARK := .venv/.spark
PIP := -m pip --quiet --disable-pip-version-check

# One thread a process: pytest runs as many processes as there are cores, and threads that wait for each other only spin.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

# The interpreter in which packages are tried: make try-newest TRY=python3.13
TRY ?= $(PYTHON)

# What make coverage runs
COVERED ?= @tests/fast.txt

.PHONY: demo test fast coverage check bench fuzz docs package try-package try-oldest try-newest clean constraints

demo: $(READY)  ## private statistics of two real tables, with a report.html next to each plan
	@test -f examples/census/census2000.parquet -a -f examples/wages/wagepan.parquet || $(BIN)/python examples/make_data.py census wages
	@test -f examples/census/report.html || $(BIN)/tightrope release --force examples/census/plan.toml
	@test -f examples/wages/report.html || $(BIN)/tightrope release --force examples/wages/plan.toml
	@$(BIN)/tightrope ledger show examples/census/plan.toml
	@$(BIN)/tightrope ledger show examples/wages/plan.toml

test: $(SPARK)  ## every test, in two processes; the Spark tests need Java 17 and are skipped without it
	@$(BIN)/python -m pytest -n 2 --dist worksteal

fast: $(READY)  ## some tests of every package and every library, in one process
	@$(BIN)/python -m pytest @tests/fast.txt

coverage: $(READY)  ## the lines of src that the fast suite does not run (COVERED=tests for the whole suite)
	@$(BIN)/python -m pytest $(COVERED) --cov=tightrope --cov-report=term:skip-covered

check: $(READY)  ## lint, format, types, architecture, doctests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/codespell
	@$(BIN)/python scripts/plain_language.py
	@$(BIN)/python -m pytest --doctest-modules src/tightrope --ignore=src/tightrope/training/opacus.py

bench: $(READY)  ## every benchmark, compared with other tools, in less than 45 minutes on two idle cores; writes docs/benchmarks.md (BENCH=--small, --full)
	@$(BIN)/python benchmarks/all.py $(BENCH)

fuzz: $(READY)  ## 20000 random compositions: all methods agree, all bounds hold, no crash
	@TIGHTROPE_FUZZ=20000 $(BIN)/python -m pytest tests/accounting/engines/test_engines_agree.py -n 2

docs: $(READY)  ## the documentation site, in site/; broken links and references are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html, $$(find site -name '*.html' | wc -l) pages"

package: $(READY)  ## wheel and sdist, in dist/
	@rm -rf dist && $(BIN)/python -m build --outdir dist . > /dev/null && ls dist

try-package: $(READY)  ## wheel and sdist, installed without the checkout: minimal, as a command on the PATH, with all extras
	@$(BIN)/python scripts/try_package.py packages $(TRY)

try-oldest: $(READY)  ## the fast suite against the wheel, with the lowest versions that pyproject.toml allows
	@$(BIN)/python scripts/try_package.py oldest $(TRY)

try-newest: $(READY)  ## the same with the newest versions that pip finds today
	@$(BIN)/python scripts/try_package.py newest $(TRY)

constraints:  ## resolve the dependencies in pyproject.toml and pin them
	@rm -rf .venv-constraints && $(PYTHON) -m venv .venv-constraints
	@.venv-constraints/bin/python $(PIP) install -e '.[dev,spark]'
	@grep '^#' constraints.txt > constraints.new
	@.venv-constraints/bin/python -m pip freeze --exclude-editable | grep -v '[@/]' >> constraints.new
	@mv constraints.new constraints.txt && rm -rf .venv-constraints

clean:  ## remove everything that make and the tools wrote
	@rm -rf .venv .venv-constraints .peers site dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
	@rm -f examples/*/*.parquet examples/*/report.html examples/*/certificate.json examples/*/result.json examples/*/results.csv examples/*/tightrope.ledger* examples/local/education.* examples/local/experience.*
	@find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "Tightrope needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing). Try: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Making the environment in .venv (once; a minute or two) ..."
	@$(PYTHON) -m venv .venv || { echo "$(PYTHON) cannot make environments. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python $(PIP) install -e '.[dev]' -c constraints.txt
	@touch $@

$(SPARK): $(READY)
	@echo "Adding Spark to .venv (once; only for the tests) ..."
	@$(BIN)/python $(PIP) install -e '.[spark]' -c constraints.txt
	@touch $@
