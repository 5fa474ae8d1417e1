# Targets for people; `make help` lists them. Each target first makes what it needs.

CASE ?= silu
PYTHON ?= python3
VENV ?= .venv
# TORCH, TRITON: another pair of scripts/pins.toml. SITE=1: the torch and Triton of the system's Python
TORCH ?=
TRITON ?=
SITE ?=
# `make venv SOURCE=1` also fetches the source of the wheel's tag; `make triton LIT=1` also runs Triton's lit tests
SOURCE ?=
LIT ?=
# TOOLCHAIN holds the sources and builds of LLVM and Triton; docs/building.md describes each variable. An empty LLVM or
# LLVM_PROFILE keeps the choice of the last build; the first build takes source and Debug.
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
.PHONY: help doctor venv llvm triton vscode run demo test lint lint-style lint-types lint-types-gpu test-gpu bench soak page clean

help: ## list the targets and variables
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "variables: CASE=$(CASE) PYTHON=$(PYTHON) VENV=$(VENV) TORCH=$(TORCH) TRITON=$(TRITON) SITE=$(SITE) ALL=$(ALL)"
	@echo "  SOURCE=1: make venv also fetches the source of Triton's wheel, which C++ stops show"
	@echo "variables of llvm and triton: LLVM=source|prebuilt|system LLVM_PROFILE=Debug|RelWithDebInfo|line-tables"
	@echo "  TRITON_SRC= and LLVM_SRC=folder or archive, TOOLCHAIN=$(TOOLCHAIN) JOBS= COMPILER_LAUNCHER= LIT=1"

doctor: ## what this machine lacks, and which features work with the installed torch and Triton
	@$(PYTHON) -m scripts.doctor --venv $(VENV) || [ $$? -eq 1 ]  # 1: warnings only
	@if [ -x $(VENV)/bin/tracing ]; then $(VENV)/bin/tracing doctor || [ $$? -eq 1 ]; fi  # 1: a feature is off

venv: $(STAMP) ## set up the Python environment: torch, Triton and this project
	@$(if $(filter-out 0,$(SOURCE)),$(PYTHON) -m scripts.build.wheel_source --venv $(VENV) --toolchain $(TOOLCHAIN) \
		--triton-src "$(TRITON_SRC)")

llvm: $(STAMP) ## build the libraries of LLVM and MLIR that Triton links, with debug symbols
	@$(PYTHON) -m scripts.build.llvm_build $(BUILD) --llvm "$(LLVM)" --llvm-src "$(LLVM_SRC)" --profile "$(LLVM_PROFILE)"

triton: llvm ## build Triton in Debug against that LLVM and install it
	@$(PYTHON) -m scripts.build.triton_build $(BUILD) $(if $(filter-out 0,$(LIT)),--lit)

vscode: $(STAMP) ## write VSCode's files for this machine: F5 from a Python line to a C++ pass
	@$(VENV)/bin/python -m vscode.index_symbols --venv $(VENV) --gdb "$${GDB:-gdb}"
	@$(VENV)/bin/python -m vscode.generate --venv $(VENV) --toolchain $(TOOLCHAIN)

run: $(STAMP) ## record CASE and show its launches
	@$(VENV)/bin/tracing run $(CASE) && $(VENV)/bin/tracing show latest && $(VENV)/bin/python -m scripts.next_steps $(VENV)

demo: $(STAMP) ## a tour of the commands on small cases; at its end `compare` and `bisect` find a planted fault
	@$(VENV)/bin/python -m scripts.tour

# one thread in each worker of pytest: with more than there are cores, they wait for one another
test: lint ## lint, then run every test that needs no GPU, on up to eight cores
	@OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n logical --maxprocesses 8 --dist loadfile

lint: $(STAMP)-test ## run ruff, mypy and the lint of words
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint-style lint-types lint-types-gpu

lint-style:
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/python -m scripts.lint_words

lint-types:
	@$(VENV)/bin/mypy

lint-types-gpu:
	@$(VENV)/bin/mypy --config-file tests/gpu/mypy.ini

test-gpu: $(STAMP)-test ## run the tests that need a GPU
	@$(VENV)/bin/python -m pytest tests/gpu

bench: $(STAMP)-test ## measure what recording costs, in time and memory
	@$(VENV)/bin/python -m pytest tests/benchmarks -s

soak: $(STAMP)-test ## run the long tests: planted faults, random programs, tutorials; two hours
	@$(VENV)/bin/python -m pytest -m soak -q
	@$(VENV)/bin/python -m pytest tests/soak -s -q

page: ## rebuild the page of `tracing report` after its source was changed; needs Node.js 20 and npm
	@cd tracing/report/html/page && npm ci --no-audit --no-fund && npm run build

clean: ## delete the environment and caches; ALL=1: recorded runs, sources and builds too
	@if [ -f $(VENV)/pyvenv.cfg ]; then echo "deleting $(VENV)"; rm -rf $(VENV); fi
	@rm -f debug-triton.code-workspace  # its folders are in the environment
	@rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find cases scripts tests tracing vscode -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	@$(if $(filter-out 0,$(ALL)),rm -rf runs; if [ -f $(TOOLCHAIN)/.lock ]; then rm -rf $(TOOLCHAIN); fi)
	@for kept in runs $(TOOLCHAIN) .vscode; do if [ -e $$kept ]; then echo "kept: $$kept"; fi; done
	@if [ -e .vscode ]; then echo "after make venv, make vscode points its files to the new environment"; fi

$(STAMP): $(INPUTS)
	@$(PYTHON) -m scripts.venv $(CHOICE)
	@touch $@

$(STAMP)-test: $(INPUTS)
	@$(PYTHON) -m scripts.venv $(CHOICE) --test
	@touch $(STAMP) $@
