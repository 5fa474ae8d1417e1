# What a person types; `make help` lists it. A target does what it needs first.

CASE ?= silu
PYTHON ?= python3
VENV ?= .venv
# Versions other than the default pair of scripts/pins.toml, and the system's instead of any (SITE=1)
TORCH ?=
TRITON ?=
SITE ?=
# `make clean ALL=1` deletes recorded runs too
ALL ?=

# One stamp for each choice of versions: venv.py deletes the others whenever it changes the environment.
STAMP = $(VENV)/.stamp-torch$(TORCH)-triton$(TRITON)-site$(SITE)
CHOICE = --venv $(VENV) --torch "$(TORCH)" --triton "$(TRITON)" $(if $(filter-out 0,$(SITE)),--site)
INPUTS = scripts/pins.toml scripts/venv.py pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help doctor venv run test lint test-gpu bench clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "variables: CASE=$(CASE) PYTHON=$(PYTHON) VENV=$(VENV) TORCH=$(TORCH) TRITON=$(TRITON) SITE=$(SITE) ALL=$(ALL)"

doctor: ## what this machine lacks, and the command that supplies it
	@$(PYTHON) scripts/doctor.py --venv $(VENV) || [ $$? -eq 1 ]  # 1: warnings only

venv: $(STAMP) ## the Python environment: torch, Triton and this project

run: $(STAMP) ## record CASE and show what ran
	@$(VENV)/bin/tracing run $(CASE) --show

test: lint ## lint, then every test that needs no GPU
	@$(VENV)/bin/python -m pytest

lint: $(STAMP)-test ## ruff and mypy
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

test-gpu: $(STAMP)-test ## the tests that need a GPU
	@$(VENV)/bin/python -m pytest tests/gpu

bench: $(STAMP)-test ## what recording costs, in time and memory
	@$(VENV)/bin/python -m pytest tests/benchmarks -s

clean: ## delete the environment and caches; ALL=1: recorded runs too
	@if [ -f $(VENV)/pyvenv.cfg ]; then rm -rf $(VENV); fi
	@rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find cases scripts tests tracing -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	@$(if $(filter-out 0,$(ALL)),rm -rf runs)

$(STAMP): $(INPUTS)
	@$(PYTHON) scripts/venv.py $(CHOICE)
	@touch $@

$(STAMP)-test: $(INPUTS)
	@$(PYTHON) scripts/venv.py $(CHOICE) --test
	@touch $(STAMP) $@
