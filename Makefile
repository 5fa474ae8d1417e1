# What a person types; `make help` lists it. A target does what it needs first.

CASE ?= silu
PYTHON ?= python3
VENV ?= .venv
# Versions other than the default pair of scripts/pins.toml, and the system's instead of any (SITE=1)
TORCH ?=
TRITON ?=
SITE ?=
# `make venv SOURCE=1`: the source of the wheel's tag, too. `make triton LIT=1`: Triton's own tests, too
SOURCE ?=
LIT ?=
# Where sources and builds of LLVM and Triton lie, and where they come from: see `make help`. LLVM and
# LLVM_PROFILE: as the last time where they are empty, at first source and Debug.
TOOLCHAIN ?= toolchain
TRITON_SRC ?=
LLVM_SRC ?=
LLVM ?=
LLVM_PROFILE ?=
COMPILER_LAUNCHER ?=
JOBS ?= 0
# `make clean ALL=1` deletes recorded runs, sources and builds too
ALL ?=

# One stamp for each choice of versions: venv.py deletes the others whenever it changes the environment.
STAMP = $(VENV)/.stamp-torch$(TORCH)-triton$(TRITON)-site$(SITE)
CHOICE = --venv $(VENV) --torch "$(TORCH)" --triton "$(TRITON)" $(if $(filter-out 0,$(SITE)),--site)
BUILD = --venv $(VENV) --torch "$(TORCH)" --triton "$(TRITON)" --toolchain $(TOOLCHAIN) \
	--triton-src "$(TRITON_SRC)" --launcher "$(COMPILER_LAUNCHER)" --jobs $(JOBS)
INPUTS = scripts/pins.toml scripts/venv.py pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help doctor venv llvm triton vscode run test lint test-gpu bench soak clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "variables: CASE=$(CASE) PYTHON=$(PYTHON) VENV=$(VENV) TORCH=$(TORCH) TRITON=$(TRITON) SITE=$(SITE) ALL=$(ALL)"
	@echo "of llvm and triton: LLVM=source|prebuilt|system LLVM_PROFILE=Debug|RelWithDebInfo|line-tables"
	@echo "  TRITON_SRC= and LLVM_SRC=folder or archive, TOOLCHAIN=$(TOOLCHAIN) JOBS= COMPILER_LAUNCHER= LIT=1"

doctor: ## what this machine lacks, and which features work with the installed torch and Triton
	@$(PYTHON) scripts/doctor.py --venv $(VENV) || [ $$? -eq 1 ]  # 1: warnings only
	@if [ -x $(VENV)/bin/tracing ]; then $(VENV)/bin/tracing doctor || [ $$? -eq 1 ]; fi  # 1: a feature is off

venv: $(STAMP) ## the Python environment: torch, Triton and this project
	@$(if $(filter-out 0,$(SOURCE)),$(PYTHON) scripts/wheel_source.py --venv $(VENV) --toolchain $(TOOLCHAIN))

llvm: $(STAMP) ## LLVM and MLIR with debug symbols, as much as Triton links
	@$(PYTHON) scripts/llvm_build.py $(BUILD) --llvm "$(LLVM)" --llvm-src "$(LLVM_SRC)" --profile "$(LLVM_PROFILE)"

triton: llvm ## Triton in Debug against that LLVM, into the environment
	@$(PYTHON) scripts/triton_build.py $(BUILD) $(if $(filter-out 0,$(LIT)),--lit)

vscode: $(STAMP) ## VSCode's files for this machine: F5 from a Python line to a C++ pass
	@$(VENV)/bin/python vscode/generate.py --venv $(VENV) --toolchain $(TOOLCHAIN)

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

soak: $(STAMP)-test ## planted differences and pass faults, random programs, tutorials: some two hours
	@$(VENV)/bin/python -m pytest tests/soak -s -q

clean: ## delete the environment and caches; ALL=1: recorded runs, sources and builds too
	@if [ -f $(VENV)/pyvenv.cfg ]; then rm -rf $(VENV); fi
	@rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find cases scripts tests tracing -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	@$(if $(filter-out 0,$(ALL)),rm -rf runs; if [ -f $(TOOLCHAIN)/.lock ]; then rm -rf $(TOOLCHAIN); fi)

$(STAMP): $(INPUTS)
	@$(PYTHON) scripts/venv.py $(CHOICE)
	@touch $@

$(STAMP)-test: $(INPUTS)
	@$(PYTHON) scripts/venv.py $(CHOICE) --test
	@touch $(STAMP) $@
