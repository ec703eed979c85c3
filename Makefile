# Every target sets up the environment it needs; it is installed again only when pyproject.toml or constraints.txt change.
PYTHON ?= python3
VENV   := .venv
LIGHT  := .venvs/light
BIN    := $(VENV)/bin
TRLS   := $(patsubst tests/matrix/trl-%.txt,%,$(sort $(wildcard tests/matrix/trl-*.txt)))
MATRIX := $(TRLS:%=.venvs/trl-%/.installed)
LISTS  := $(patsubst tests/frameworks/%.txt,%,$(sort $(wildcard tests/frameworks/*.txt)))
LOGGERS := tinker torchtune
PIP    := -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Temporary files of the tests are kept in memory, if 4 GB of it are free: they are flushed thousands of times, which takes a disk
# milliseconds each.
MEMORY := $(shell [ "$$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null && echo PYTEST_DEBUG_TEMPROOT=/dev/shm)

# Bytecode is kept: without it, each of the many processes that the tests start would compile rldk again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test interpreters lint matrix frameworks chromium bench bench-detection calibrate corpus soak docs site clean

help:
	@echo "make demo    set up, train a healthy and a broken run, watch and judge both"
	@echo "make test    lint, types, layers, all tests, and the smoke tests in an environment without extras"
	@echo "make interpreters   the smoke tests on every supported Python of this machine"
	@echo "make lint    ruff, mypy and the layer contract"
	@echo "make matrix  the TRL callbacks in real training, on every supported TRL"
	@echo "make frameworks   real loggers of verl, OpenRLHF, torchtune and others with rldk attached, and a Ray worker"
	@echo "make bench   speed and memory compared with other tools"
	@echo "make bench-detection   accuracy of the judge on the recorded corpus, compared with other tools"
	@echo "make calibrate   what every clause finds on the corpus, with its margin, and which clauses no run needs"
	@echo "make corpus  record the missing runs of the corpus (hours in all; it can be stopped and restarted)"
	@echo "make soak    an hour of faults, kills, full disks and hostile files around monitored trainings (MINUTES=60)"
	@echo "make docs    regenerate the generated pages"
	@echo "make site    the documentation as a site, in out/site"

$(VENV)/.installed: pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python $(PIP) torch
	@$(BIN)/python $(PIP) --editable '.[dev]'
	@touch $@

# What `pip install rldk` alone gives, plus a test runner. Installed as a user would, not editable.
$(LIGHT)/.installed: pyproject.toml constraints.txt
	@echo "setting up $(LIGHT) (once)"
	@$(PYTHON) -m venv $(LIGHT)
	@$(LIGHT)/bin/python $(PIP) '.[test]'
	@touch $@

# One environment per TRL on top of .venv: seconds and megabytes, since torch is shared.
.venvs/trl-%/.installed: tests/matrix/trl-%.txt tests/matrix/environment.py | $(VENV)/.installed
	@echo "setting up .venvs/trl-$* (once)"
	@$(BIN)/python tests/matrix/environment.py .venvs/trl-$* $<
	@touch $@

# One environment per framework, made the same way; `make test` has the small ones.
$(LISTS:%=.venvs/%/.installed): .venvs/%/.installed: tests/frameworks/%.txt tests/matrix/environment.py | $(VENV)/.installed
	@echo "setting up .venvs/$* (once)"
	@$(BIN)/python tests/matrix/environment.py .venvs/$* $<
	@touch $@

# A real S3 server: botocore needs other versions than the rest.
.venvs/moto/.installed: tests/storage/moto.txt
	@echo "setting up .venvs/moto (once)"
	@$(PYTHON) -m venv .venvs/moto
	@.venvs/moto/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

# Ray on top of .venv.
.venvs/ray/.installed: tests/fleet/ray.txt tests/matrix/environment.py | $(VENV)/.installed
	@echo "setting up .venvs/ray (once)"
	@$(BIN)/python tests/matrix/environment.py .venvs/ray $<
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/python examples/first_look.py

lint: $(VENV)/.installed
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo | tail -n 3
	@$(BIN)/python docs/generate.py --check

matrix: $(VENV)/.installed $(MATRIX)
	@RLDK_MATRIX=all $(BIN)/pytest --numprocesses 2 --dist loadfile tests/integrations/test_trl_versions.py tests/integrations/test_trl_files.py

frameworks: $(VENV)/.installed $(LISTS:%=.venvs/%/.installed)
	@RLDK_FRAMEWORKS="$(LISTS)" $(BIN)/pytest tests/integrations/test_frameworks.py

# The browser for the tests of report and dashboard: Debian's, installed once, if permitted.
chromium:
	@command -v chromium >/dev/null || { echo "installing Debian's chromium (once)" \
	  && { apt-get install --yes --quiet --quiet --no-install-recommends chromium >/dev/null 2>&1 \
	  || { apt-get update --quiet --quiet >/dev/null && apt-get install --yes --quiet --quiet --no-install-recommends chromium >/dev/null; }; }; } \
	  || echo "chromium cannot be installed (that takes root and apt-get): the tests in a browser will be skipped"

# tests/conftest.py has the order: slow folders first.
test: lint chromium $(LIGHT)/.installed $(MATRIX) $(LOGGERS:%=.venvs/%/.installed) .venvs/moto/.installed .venvs/ray/.installed
	@$(MEMORY) RLDK_MATRIX=all RLDK_FRAMEWORKS="$(LOGGERS)" $(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
	@$(LIGHT)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall .
	@$(LIGHT)/bin/pytest -m "not full" @tests/smoke.txt

# The smoke tests on every supported Python of this machine; those it does not have are listed.
interpreters:
	@$(PYTHON) tests/interpreters.py

bench: $(VENV)/.installed chromium
	@$(BIN)/python benchmarks/run.py
	@$(BIN)/python benchmarks/speed/engine.py
	@$(BIN)/python benchmarks/hostile/run.py
	@$(BIN)/python benchmarks/detection/simulated.py
	@$(BIN)/python benchmarks/detection/real.py
	@$(BIN)/python benchmarks/detection/seeds.py
	@$(BIN)/python benchmarks/detection/forecast.py
	@$(BIN)/python benchmarks/real_runs_read.py
	@$(BIN)/python benchmarks/training/beside_trl.py
	@$(BIN)/python benchmarks/trl/overhead.py
	@$(BIN)/python benchmarks/trl/faults.py
	@$(BIN)/python benchmarks/dashboard/page.py
	@$(BIN)/python benchmarks/dashboard/runs.py

# The plain table, a page of plots with every miss, and the figures as JSON.
bench-detection: $(VENV)/.installed
	@$(BIN)/python benchmarks/detection/score_corpus.py --page out/detection.html --json out/detection.json

# Over the tune split only.
calibrate: $(VENV)/.installed
	@$(BIN)/python benchmarks/detection/calibrate.py --json out/calibration.json

corpus: $(VENV)/.installed $(MATRIX)
	@$(BIN)/python benchmarks/corpus/record.py

MINUTES ?= 60
soak: $(VENV)/.installed
	@$(BIN)/python benchmarks/soak/run.py --minutes $(MINUTES) --results out/soak.json

docs: $(VENV)/.installed
	@$(BIN)/python docs/generate.py

# Warnings, such as a link to nothing, are errors; with --quiet they would not be counted.
site: $(VENV)/.installed
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "out/site/index.html"

clean:
	rm -rf $(VENV) .venvs build out *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
