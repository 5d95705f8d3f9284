# All commands for developers. `make help` lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
CORE   := tests/test_rule.py tests/test_interaction.py tests/test_modes.py tests/test_schedules.py \
          tests/test_systems.py tests/beliefs tests/finite tests/laws

.DEFAULT_GOAL := help
.PHONY: help setup check browser fast test slow mutants same-columns bench growth bench-test docs figures reproduce reproduce-full lock clean

help:  ## list all commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | awk -F'|' '{ printf "%-22s %s\n", $$1, $$2 }'

setup: $(STAMP)  ## create .venv with every extra, pinned by hash

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 15) else "bayescontrol needs Python 3.11 to 3.14, this is %d.%d: call make with PYTHON=python3.12" % v)'
	@echo "Setting up $(VENV): one to three minutes, once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

check: setup  ## formatting, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

browser:  ## install Chromium for the tests of the live page, if possible
	@if command -v chromium || command -v chromium-browser || command -v google-chrome; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "Installing Chromium for the tests of the page"; \
	  (apt-get update -qq && apt-get install -y -qq chromium) > /dev/null 2>&1 \
	  || echo "Chromium could not be installed: the tests of the page are skipped"; \
	else echo "Chromium is missing: the tests of the page are skipped. Install it to run them"; fi

fast: setup  ## the tests of the core (rule, beliefs, finite modes, laws): less than a minute
	$(BIN)/python -m pytest -m "not slow" -n auto --dist worksteal $(CORE)

test: check docs browser  ## all checks and tests except the slow ones
	$(BIN)/python -m pytest -m "not slow" -n auto --dist worksteal

slow: setup  ## the slow tests: minutes to an hour
	$(BIN)/python -m pytest -m slow -n auto --dist worksteal

mutants: setup  ## plant bugs in a copy of the sources and report those that no test finds; slow
	$(BIN)/python -m tests.mutants

same-columns: setup  ## compare the arrays of all experiments with commit BASE, byte for byte
	$(BIN)/python -m benchmarks.same_columns $(BASE)

bench: setup  ## speed, as ratios within one run; with BASE also against that commit
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.steps $(if $(BASE),--base $(BASE))

growth: setup  ## how time and memory grow; fails if a cost grows faster than stated
	$(BIN)/python -m benchmarks.growth

bench-test: setup  ## the tests of the agents, studies and contests in benchmarks/, also the slow ones
	$(BIN)/python -m pytest benchmarks/tests -n auto --dist worksteal

docs: setup  ## build the documentation, warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

figures: setup  ## make the figures of the documentation again, if they are out of date
	$(BIN)/python docs/figures.py

reproduce: setup  ## run all experiments whose code has changed, at most five minutes; results in report/
	$(BIN)/bayescontrol reproduce --out report

reproduce-full: setup  ## the same at full size, in report-full/; continues an interrupted run
	$(BIN)/bayescontrol reproduce --full --out report-full

lock: setup  ## refresh the pinned requirements
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --fork-strategy fewest --generate-hashes --no-header --python-version 3.11 --all-extras --group dev pyproject.toml -o requirements/dev.txt

clean:  ## remove the files that the other commands created
	rm -rf $(VENV) .peers docs/_build docs/_notebooks docs/reference/api report report-full .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
