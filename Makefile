# On a fresh Debian 12: `make demo` shows what the project does, `make test` checks it.
# Both make their own environment in .venv; a second run finds it there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := out
SOURCES := parsl_sizer tests examples benchmarks docs/conf.py
OLDEST_PARSL := 2025.7.7
OTHER_PYTHONS ?= python3.10 python3.12 python3.13

# Tests on engines wait most of the time, so there are more processes than cores.
PROCESSES ?= 4
IN_PARALLEL := --numprocesses $(PROCESSES) --no-loadscope-reorder

# These need parsl[monitoring], with which every process of Parsl takes half as long again to start.
MONITORING := tests/integration/parsl/test_monitoring.py tests/integration/several/test_monitoring.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all lint tests differential golden golden-update coverage docs bench clean \
	environments test-long test-parsl test-parsl-whole test-coffea test-coffea-whole \
	test-colmena test-colmena-whole test-taskvine test-taskvine-whole \
	test-slurm test-slurm-whole test-oldest test-pythons

help:
	@echo "make demo           two kinds of tasks on this machine, whole nodes against sized"
	@echo "make test           lint, types, architecture, docs, all tests on real engines: minutes"
	@echo "make test-all       all that make test does, and what takes longer (root):"
	@echo "                      archives written by two for a minute, and damaged 1,000 times"
	@echo "                      Parsl's own tests, on Work Queue all of them"
	@echo "                      Coffea, Colmena, TaskVine, a Slurm that the tests start"
	@echo "                      the oldest Parsl, and $(OTHER_PYTHONS) where installed"
	@echo "make lint           ruff, mypy and import-linter only"
	@echo "make differential   programs that do the same with plain Parsl and with ours, or better"
	@echo "make golden         compare what all commands print with what is recorded"
	@echo "make golden-update  record what all commands print"
	@echo "make coverage       all tests, and the lines of the package that they run"
	@echo "make docs           the documentation, in $(OUT)/docs"
	@echo "make bench          the figures of docs/benchmarks.md: some hours"
	@echo "make clean          remove environments, $(OUT) and caches"
	@echo
	@echo "Parts of make test-all; all but the last three have a longer form, such as test-parsl-whole:"
	@echo "make test-parsl     Parsl's own tests, with the plain engines and with ours around them"
	@echo "make test-coffea    tests with Coffea, and its example"
	@echo "make test-colmena   tests with Colmena; the longer form runs its examples"
	@echo "make test-taskvine  tests on TaskVine, in a Debian 13 in a folder (root)"
	@echo "make test-slurm     tests on a Slurm that they start (root)"
	@echo "make test-oldest    tests on the oldest Parsl that is supported"
	@echo "make test-pythons   tests on other versions of Python, where installed"
	@echo "make test-long      the tests of the archive and of placement that take minutes"

demo: $(VENV)/.installed
	@mkdir -p $(OUT)
	$(BIN)/python examples/demo.py --png $(OUT)/demo.png

test: $(VENV)/.installed-dev
	.ci/steps --name "make test" --within 540 lint="$(MAKE) lint" tests="$(MAKE) tests"

test-all: environments
	.ci/steps --name "make test-all" --within 3600 test="$(MAKE) test" long="$(MAKE) test-long" \
		slurm="$(MAKE) test-slurm-whole" parsl="$(MAKE) test-parsl-whole" \
		coffea="$(MAKE) test-coffea-whole" colmena="$(MAKE) test-colmena-whole" \
		taskvine="$(MAKE) test-taskvine-whole" oldest="$(MAKE) test-oldest" \
		pythons="$(MAKE) test-pythons"

tests: $(VENV)/.installed-dev
	$(BIN)/python -m compileall -q parsl_sizer # every process of an engine imports it
	$(BIN)/python -m pytest $(IN_PARALLEL) --ignore=tests/integration/slurm

differential: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(IN_PARALLEL) tests/differential

golden: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(IN_PARALLEL) tests/golden

golden-update: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(IN_PARALLEL) tests/golden --update-golden

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(IN_PARALLEL) --ignore=tests/integration/slurm \
		--cov=parsl_sizer --cov-report=term --cov-report=html:$(OUT)/coverage

test-long: $(VENV)/.installed-dev
	$(BIN)/python -m pytest --long -rP tests/acceptance/test_archive_survives.py \
		tests/integration/several/test_tarema.py

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
	$(BIN)/python benchmarks/overhead.py --nap 0.1
	$(BIN)/python benchmarks/overhead.py --memory
	$(BIN)/python benchmarks/shapes.py
	$(BIN)/python benchmarks/warm_start.py
	$(BIN)/python benchmarks/archive.py
	$(BIN)/python benchmarks/makespan.py --whole 20
	$(BIN)/python benchmarks/makespan.py --engine workqueue
	$(BIN)/python benchmarks/asa_live.py

environments: $(VENV)/.installed-dev $(VENV)-parsl/.installed $(VENV)-coffea/.installed \
	$(VENV)-colmena/.installed $(VENV)-oldest/.installed .taskvine/.project

test-parsl: $(VENV)-parsl/.installed
	$(VENV)-parsl/bin/python tests/parsl_suite/run.py
	$(VENV)-parsl/bin/python -m pytest $(MONITORING)

test-parsl-whole: $(VENV)-parsl/.installed
	$(VENV)-parsl/bin/python tests/parsl_suite/run.py --whole
	$(VENV)-parsl/bin/python -m pytest $(MONITORING)

test-coffea: $(VENV)-coffea/.installed
	$(VENV)-coffea/bin/python -m pytest $(IN_PARALLEL) --deselect tests/integration/coffea/test_runs.py \
		tests/integration/coffea

test-coffea-whole: $(VENV)-coffea/.installed
	$(VENV)-coffea/bin/python -m pytest $(IN_PARALLEL) tests/integration/coffea

test-colmena: $(VENV)-colmena/.installed
	$(VENV)-colmena/bin/python -m pytest $(IN_PARALLEL) --ignore tests/integration/colmena/test_page.py \
		-k "not untagged" tests/integration/colmena

test-colmena-whole: $(VENV)-colmena/.installed
	$(VENV)-colmena/bin/python -m pytest $(IN_PARALLEL) tests/integration/colmena \
		"tests/acceptance/test_examples.py::test_an_example_runs_and_prints_what_it_shows[colmena_steering]"

test-taskvine: .taskvine/.project
	.ci/taskvine .taskvine python3 -m pytest -p no:cacheprovider tests/integration/taskvine/test_sized.py

test-taskvine-whole: .taskvine/.project
	.ci/taskvine .taskvine python3 -m pytest -p no:cacheprovider tests/integration/taskvine

test-slurm: $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/integration/slurm/test_blocks.py

test-slurm-whole: $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/integration/slurm

test-oldest: $(VENV)-oldest/.installed
	$(VENV)-oldest/bin/python -m pytest $(IN_PARALLEL) tests/integration/parsl \
		tests/integration/htex/test_features.py tests/unit/executor

test-pythons: .ci/packages
	for python in $(OTHER_PYTHONS); do \
		if $$python -c "import venv" 2> /dev/null; \
		then $(MAKE) tests PYTHON=$$python VENV=.venv-$$python || exit 1; \
		else echo "$$python is not installed, so nothing is tested with it."; fi; \
	done

clean:
	rm -rf $(VENV) $(VENV)-coffea $(VENV)-colmena $(VENV)-parsl $(VENV)-oldest $(VENV)-python* .taskvine \
		$(OUT) build dist .hypothesis \
		.import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(SOURCES) -name __pycache__ -prune -exec rm -rf {} +

# The stamps: what is in them was installed after pyproject.toml was last changed. All wait for
# .installed-dev, which installs the system packages: two apt-get at a time would fail.
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

$(VENV)-parsl/.installed: pyproject.toml tests/parsl_suite/requirements.txt .ci/workqueue | $(VENV)/.installed-dev
	PYTHON="$(PYTHON)" .ci/packages test
	$(PYTHON) -m venv $(VENV)-parsl
	$(VENV)-parsl/bin/python -m pip install --quiet --editable . -r tests/parsl_suite/requirements.txt
	.ci/workqueue $(VENV)-parsl
	touch $@

$(VENV)-coffea/.installed: pyproject.toml tests/integration/coffea/requirements.txt | $(VENV)/.installed-dev
	PYTHON="$(PYTHON)" .ci/packages
	$(PYTHON) -m venv $(VENV)-coffea
	$(VENV)-coffea/bin/python -m pip install --quiet --editable ".[coffea]" -r tests/integration/coffea/requirements.txt
	touch $@

$(VENV)-colmena/.installed: pyproject.toml tests/integration/colmena/requirements.txt | $(VENV)/.installed-dev
	PYTHON="$(PYTHON)" .ci/packages
	$(PYTHON) -m venv $(VENV)-colmena
	$(VENV)-colmena/bin/python -m pip install --quiet --editable ".[colmena]" -r tests/integration/colmena/requirements.txt
	touch $@

$(VENV)-oldest/.installed: pyproject.toml | $(VENV)/.installed-dev
	PYTHON="$(PYTHON)" .ci/packages
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --editable ".[dev]" "parsl[monitoring]==$(OLDEST_PARSL)"
	touch $@

.taskvine/.project: pyproject.toml .ci/taskvine | $(VENV)/.installed-dev
	.ci/taskvine .taskvine
	touch $@
