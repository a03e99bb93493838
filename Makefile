# Needs python3 (3.11 or newer, with venv) and make; everything else is installed into .venv on first use.
PYTHON ?= python3
BIN := .venv/bin
TORCH_TESTS = $(shell find tests -name 'test_*_torch.py')
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n logical --maxprocesses 8

.PHONY: help install wheel demo test test-torch slow fuzz check docs bench benchmarks lint-js
SECONDS ?= 120
INSTANCES ?= ../shared/instances
.DEFAULT_GOAL := help
.NOTPARALLEL: # pip installs one set after the other

help: ## say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1 	/'
	@echo "PYTHON=python3.12 make test  with another interpreter (3.11 or newer)"

install: .venv/.base ## install the command and all it needs into .venv: .venv/bin/arenaplan
	@echo "installed: .venv/bin/arenaplan; or 'source .venv/bin/activate', and then arenaplan"

wheel: .venv/.base ## build a wheel into dist/ that carries machine code, and compiles nothing at its first use (minutes)
	$(BIN)/python -m tools.build_wheel

demo: .venv/.base ## plan and run ResNet-50, show what that saves, write it to out/ as a page and a trace
	$(BIN)/python tools/demo.py

test: .venv/.test ## run the tests (minutes)
	$(PYTEST) -m "not slow"

test-torch: .venv/.test-torch ## install PyTorch, and run the tests that compare with it
	$(PYTEST) -m "not slow" $(TORCH_TESTS)

lint-js: ## check the viewer's JavaScript: rules and types (npm ci --prefix tests/browser first)
	tests/browser/node_modules/.bin/eslint --max-warnings 0 -c tests/browser/eslint.config.mjs engine/viewer/js
	tests/browser/node_modules/.bin/tsc -p tests/browser/tsconfig.json

slow: .venv/.test ## run the tests that take longer
	$(PYTEST) -m slow

fuzz: .venv/.test ## try random inputs of all kinds for SECONDS=120; prints what repeats a failure
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --seconds $(SECONDS) -o out/fuzz.json

check: .venv/.test .venv/.check ## format, lint, types, directions of imports, links and references of the documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory docs

docs: .venv/.check ## build the documentation as a site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -f docs/site/mkdocs.yml
	@echo "out/site/index.html has the documentation; it needs no server and no network"

bench: .venv/.test ## time networks against onnxruntime, planning, and planning for new lengths, into out/
	mkdir -p out
	$(BIN)/python -m tools.bench_run -o out/bench_run.json
	$(BIN)/python -m tools.bench_overhead -o out/bench_overhead.json
	$(BIN)/python tools/bench_plan.py -o out/bench_plan.json
	$(BIN)/python -m tools.bench_graphs -o out/bench_graphs.json
	$(BIN)/python -m tools.bench_stages -o out/bench_stages.json

benchmarks: .venv/.test ## measure docs/benchmarks.md and docs/performance.md anew (an hour; INSTANCES=folder)
	$(BIN)/python -m tools.write_benchmarks $(INSTANCES)

# What is installed is added to what there is: a stamp for what the command needs, and one for each extra of pyproject.toml.
.venv/.base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "arenaplan needs Python 3.11 or newer; '$(PYTHON)' is `$(PYTHON) --version 2>&1 | head -n 1`." \
	    "Name another one: PYTHON=python3.12 make $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[parallel]'
	@touch $@

.venv/.test .venv/.test-torch .venv/.check: .venv/.%: .venv/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	@touch $@
