# On a fresh Debian 12: `make demo` shows what the project does, `make test` checks it.
# Both make their own environment in .venv; a second run finds it there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := out
SOURCES := parsl_sizer tests examples benchmarks

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint bench clean

help:
	@echo "make demo   generate a trace, replay it through every strategy: a table and a picture"
	@echo "make test   lint, types, architecture, all tests and doctests"
	@echo "make lint   ruff, mypy and import-linter only"
	@echo "make bench  the papers' tables beside ours, and the speed of decisions"
	@echo "make clean  remove .venv, out and caches"

demo: $(VENV)/.installed
	@mkdir -p $(OUT)
	$(BIN)/parsl-sizer generate linear --tasks 2000 --seed 1 -o $(OUT)/trace.csv
	$(BIN)/parsl-sizer compare $(OUT)/trace.csv --png $(OUT)/compare.png
	@echo
	@echo "The trace is $(OUT)/trace.csv, the picture is $(OUT)/compare.png."

test: lint
	$(BIN)/python -m pytest

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/papers.py
	$(BIN)/python benchmarks/decisions.py

clean:
	rm -rf $(VENV) $(OUT) build dist .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache
	find $(SOURCES) -name __pycache__ -prune -exec rm -rf {} +

# The stamps: what is in them was installed after pyproject.toml was last changed.
$(VENV)/.installed: pyproject.toml .ci/packages
	PYTHON="$(PYTHON)" .ci/packages
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[plots]"
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@
