# On a fresh Debian 12: `make demo` shows what the project does, `make test` checks it.
# Both make their own environment in .venv; a second run finds it there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := out
SOURCES := parsl_sizer tests examples benchmarks docs/conf.py
OLDEST_PARSL := 2025.7.7

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint docs bench clean test-long test-parsl test-parsl-whole \
	test-coffea test-colmena test-taskvine test-slurm test-oldest

help:
	@echo "make demo           two kinds of tasks on this machine, whole nodes against sized"
	@echo "make test           lint, types, architecture, docs, all tests on real engines"
	@echo "make test-long      the archive written by two for a minute, killed, damaged 1000 times"
	@echo "make lint           ruff, mypy and import-linter only"
	@echo "make docs           the documentation, in $(OUT)/docs"
	@echo "make bench          the figures of docs/benchmarks.md: some hours"
	@echo "make test-parsl     Parsl's own tests, with the plain engines and with ours around them"
	@echo "make test-coffea    the tests with Coffea, and its example"
	@echo "make test-colmena   the tests with Colmena, and its example"
	@echo "make test-taskvine  the tests on TaskVine, in a Debian 13 in a folder (root)"
	@echo "make test-slurm     the tests on a Slurm that they start (root)"
	@echo "make test-oldest    the tests on the oldest Parsl that is supported"
	@echo "make clean          remove environments, $(OUT) and caches"

demo: $(VENV)/.installed
	@mkdir -p $(OUT)
	$(BIN)/python examples/demo.py --png $(OUT)/demo.png

test: lint
	$(BIN)/python -m pytest --ignore=tests/integration/slurm

test-long: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --long -rP tests/acceptance/test_archive_survives.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.installed-dev
	$(BIN)/sphinx-build -W --keep-going -q docs $(OUT)/docs
	@echo "The documentation is $(OUT)/docs/index.html."

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/papers.py
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/tarema.py
	$(BIN)/python benchmarks/asa.py
	$(BIN)/python benchmarks/decisions.py
	$(BIN)/python benchmarks/monitor_accuracy.py
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/overhead.py --memory
	$(BIN)/python benchmarks/warm_start.py
	$(BIN)/python benchmarks/archive.py
	$(BIN)/python benchmarks/makespan.py --whole 20
	$(BIN)/python benchmarks/makespan.py --engine workqueue
	$(BIN)/python benchmarks/asa_live.py

test-parsl: $(VENV)-parsl/.installed
	$(VENV)-parsl/bin/python tests/parsl_suite/run.py

test-parsl-whole: $(VENV)-parsl/.installed
	$(VENV)-parsl/bin/python tests/parsl_suite/run.py workqueue --whole

test-coffea: $(VENV)-coffea/.installed
	$(VENV)-coffea/bin/python -m pytest tests/integration/coffea

test-colmena: $(VENV)-colmena/.installed
	$(VENV)-colmena/bin/python -m pytest tests/integration/colmena
	$(VENV)-colmena/bin/python -m pytest tests/acceptance/test_examples.py -k colmena

test-taskvine: $(VENV)/.installed-dev
	.ci/taskvine .taskvine python3 -m pytest -p no:cacheprovider tests/integration/taskvine

test-slurm: $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/integration/slurm

test-oldest: $(VENV)-oldest/.installed
	$(VENV)-oldest/bin/python -m pytest tests/integration/parsl tests/integration/htex/test_features.py tests/unit/executor

clean:
	rm -rf $(VENV) $(VENV)-coffea $(VENV)-colmena $(VENV)-parsl $(VENV)-oldest .taskvine \
		$(OUT) build dist .hypothesis \
		.import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(SOURCES) -name __pycache__ -prune -exec rm -rf {} +

# The stamps: what is in them was installed after pyproject.toml was last changed.
$(VENV)/.installed: pyproject.toml .ci/packages
	PYTHON="$(PYTHON)" .ci/packages
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[plots]"
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed .ci/workqueue
	PYTHON="$(PYTHON)" .ci/packages test
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	.ci/workqueue $(VENV)
	touch $@

$(VENV)-parsl/.installed: pyproject.toml tests/parsl_suite/requirements.txt .ci/workqueue
	PYTHON="$(PYTHON)" .ci/packages test
	$(PYTHON) -m venv $(VENV)-parsl
	$(VENV)-parsl/bin/python -m pip install --quiet --editable . -r tests/parsl_suite/requirements.txt
	.ci/workqueue $(VENV)-parsl
	touch $@

$(VENV)-coffea/.installed: pyproject.toml tests/integration/coffea/requirements.txt
	PYTHON="$(PYTHON)" .ci/packages
	$(PYTHON) -m venv $(VENV)-coffea
	$(VENV)-coffea/bin/python -m pip install --quiet --editable ".[coffea]" -r tests/integration/coffea/requirements.txt
	touch $@

$(VENV)-colmena/.installed: pyproject.toml tests/integration/colmena/requirements.txt
	PYTHON="$(PYTHON)" .ci/packages
	$(PYTHON) -m venv $(VENV)-colmena
	$(VENV)-colmena/bin/python -m pip install --quiet --editable ".[colmena]" -r tests/integration/colmena/requirements.txt
	touch $@

$(VENV)-oldest/.installed: pyproject.toml
	PYTHON="$(PYTHON)" .ci/packages
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --editable ".[dev]" "parsl[monitoring]==$(OLDEST_PARSL)"
	touch $@
