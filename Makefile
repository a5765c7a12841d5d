# Two commands on a fresh machine with Python and make:
#   make bench   the main job: times every benchmark, traces it, saves the run
#   make test    the tests
# Each makes its own virtual environment in .venv and uses no other.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Another environment's settings must not reach into this one.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
unexport PYTEST_ADDOPTS PYTEST_PLUGINS PYTEST_DISABLE_PLUGIN_AUTOLOAD

.DEFAULT_GOAL := help
.PHONY: help bench test lint clean

help:
	@echo "make bench   time, trace and save every benchmark (3 to 4 minutes)"
	@echo "make test    run the tests (about 10 minutes)"
	@echo "make lint    ruff and mypy"
	@echo "make clean   remove .venv, caches, traces and saved runs"

# Each stamp is written last, so that an interrupted installation is repeated; a change of
# pyproject.toml makes the environment anew.
$(VENV)/has-opbench: pyproject.toml
	@echo "opbench: making a virtual environment in $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@echo "opbench: installing opbench with numpy, numba and pytest-benchmark (about a minute)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/has-tools: $(VENV)/has-opbench
	@echo "opbench: installing what only tests and lint need (less than a minute)"
	@$(PIP) --editable '.[test,lint]'
	@touch $@

bench: $(VENV)/has-opbench
	@echo "opbench: timing and tracing every benchmark (3 to 4 minutes)"
	@$(BIN)/python -m pytest --benchmark-only tests/bench

test: $(VENV)/has-tools
	@echo "opbench: running the tests (8 to 10 minutes)"
	@$(BIN)/python -m pytest --benchmark-skip --numprocesses 2 --dist loadfile
	@echo "opbench: running the small benchmarks once each"
	@$(BIN)/python -m pytest --benchmark-disable -m "not long" tests/bench

lint: $(VENV)/has-tools
	@echo "opbench: ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "opbench: mypy"
	@$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .benchmarks .hypothesis
	rm -rf results/runs results/traces results/reports results/roof
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
