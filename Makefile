# All set-up is done by the targets that need it. It needs Python 3.10 to 3.12, and the network once.

.DEFAULT_GOAL := help
.SUFFIXES:
.DELETE_ON_ERROR:

PY    := .venv/bin/python
# A change of the lock or of the package's description rebuilds the environment.
STAMP := .venv/.installed-$(shell cat requirements.lock pyproject.toml 2>/dev/null | cksum | cut -d' ' -f1)
DOCS_STAMP := .venv-docs/.installed-$(shell cat requirements-docs.lock 2>/dev/null | cksum | cut -d' ' -f1)
PYTEST_ARGS ?=
# Without bytecode each of the many processes of a test run compiles Dagster and PySpark again.
unexport PYTHONDONTWRITEBYTECODE
# A process leaves its Spark waiting between its calls: three of them use two cores. They share the server, or have an
# embedded Spark each. Without Spark, each process beyond the cores only imports everything once more.
PROCESSES ?= 3
# Tests create and delete files all the time. In memory, where there is space and files can be executed, that costs less.
IN_MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | \
  awk 'NR == 2 && $$4 > 2000000 && system("mount | grep /dev/shm | grep -q noexec") { print "/dev/shm" }')
# In the order of the folders the quick tests without Spark come last, so that all processes end at the same time.
PYTEST = $(if $(IN_MEMORY),TMPDIR=$${TMPDIR:-$(IN_MEMORY)}) $(PY) -m pytest -n $(PROCESSES) --dist loadgroup --no-loadscope-reorder --durations=20
# A clean checkout has no bytecode, and each process would compile all modules: one does, beside lint.
COMPILE = $(if $(CI),$(PY) -m pytest --collect-only --quiet >/dev/null;)
# The tests of what is written, and not of how it is called.
ENGINE_TESTS := $(addprefix scd_pipeline_tests/,semantics storage generative facts)

.PHONY: help
help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## Set up: Python environment from the lock file, Java, Delta's jars, Spark's class archive
	@$(PY) -m scd_pipeline setup $(if $(CI),--no-class-archive)

# Without --no-compile pip compiles 8,000 modules one after the other, most of which nothing ever imports.
$(STAMP): | .venv/.made
	@echo "installing the packages of requirements.lock into .venv (about a minute)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(PY) -m scd_pipeline setup --postgresql --no-class-archive || echo "without the driver of PostgreSQL" >&2
	@rm -f .venv/.installed-*
	@touch $@

.venv/.made:
	@python=; without_venv=; \
	for name in $(PYTHON) python3.12 python3.11 python3.10 python3 python; do \
	  if $$name -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' 2>/dev/null; then \
	    if $$name -c 'import ensurepip, venv' 2>/dev/null; then python=$$name; break; fi; \
	    without_venv="$$without_venv $$name"; \
	  fi; \
	done; \
	if [ -z "$$python" ] && [ -n "$$without_venv" ]; then \
	  echo "these cannot make environments, their modules venv and ensurepip are missing:$$without_venv; on Debian and Ubuntu install python3-venv" >&2; \
	  exit 1; \
	fi; \
	if [ -z "$$python" ]; then \
	  echo "no Python 3.10, 3.11 or 3.12 found on the PATH; install one, or name it: make setup PYTHON=/path/to/python3" >&2; \
	  exit 1; \
	fi; \
	rm -rf .venv && $$python -m venv .venv && touch $@

# Lint beside the tests, which leave the processor idle at times. What pytest prints last remains the last line, unless
# lint fails: then its output is. The set-up is done by then: a second one would write the class archive again.
define LINT_AND
$(info $(1))@lint=$$(mktemp) || exit; \
$(MAKE) --no-print-directory --old-file=setup lint >"$$lint" 2>&1 & linting=$$!; \
trap 'kill $$linting 2>/dev/null; rm -f "$$lint"' EXIT; \
$(1); tested=$$?; \
wait $$linting || { tested=1; cat "$$lint"; echo "lint failed, see above" >&2; }; \
exit $$tested
endef

.PHONY: check
check: PROCESSES = 2
check: setup ## Lint, and the tests that need neither Spark nor other programs
	$(call LINT_AND,$(PYTEST) -m "not slow and not spark and not process" $(PYTEST_ARGS))

.PHONY: test
test: setup ## Lint, all tests except the slow ones, and a shard of these (PYTEST_ARGS=... is passed to pytest)
	$(call LINT_AND,$(COMPILE) $(PYTEST) -m "not slow or in_shard" $(PYTEST_ARGS))

.PHONY: test-all
test-all: lint ## Lint, then all tests over Spark Connect, and the engine's embedded without replaceUsing
	$(PYTEST) $(PYTEST_ARGS)
	SCD_TEST_SPARK=embedded SCD_TEST_WRITES=merge $(PYTEST) $(ENGINE_TESTS) $(PYTEST_ARGS)

.PHONY: soak
soak: setup ## Compare 1,680 random scenarios on Spark with the oracle, in parts: run it until it reports that all are done
	$(PY) -m scd_pipeline_tests.generative.soak $(ARGS)

.PHONY: mutants
mutants: setup ## Mutation tests: random scenarios, or a test, must detect each mutant; in parts as above
	$(PY) -m scd_pipeline_tests.generative.mutants $(ARGS)

.PHONY: bench
bench: setup ## Measure loads against other ways to load; no run begins after two hours, run it again to go on
	$(PY) -m benchmarks full $(ARGS)

.PHONY: bench-quick
bench-quick: setup ## Measure a few small loads in about three minutes; fails unless all rows are equal
	$(PY) -m benchmarks quick $(ARGS)

.PHONY: compare
compare: setup ## Install dlt and dbt, and compare their rows with those in docs/coming-from/compared.md
	$(PY) -m scd_pipeline_tests.semantics.compared.measure

.PHONY: lint
lint: setup ## Check style, types, import layers and words
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-cache
	$(PY) -m scd_pipeline_tests.words

.PHONY: demo
demo: setup ## Load a small warehouse and show its history
	$(PY) examples/congress/demo.py

.PHONY: demo-casino
demo-casino: setup ## Load a casino's faulty deliveries, and compare the answers with the correct ones
	$(PY) -m examples.casino.demo $(ARGS)

.PHONY: demo-federal
demo-federal: setup ## The same for federal grants
	$(PY) -m examples.federal.demo $(ARGS)

.PHONY: demo-doctors
demo-doctors: setup ## Read a timed table at several times
	$(PY) -m examples.doctors.demo

.PHONY: demo-elevata
demo-elevata: setup ## Keep the history of a base that gains, loses, renames and widens columns
	$(PY) -m examples.elevata.demo

.PHONY: demo-lake
demo-lake: setup ## Land raw pages of a bucket, and keep their history
	$(PY) -m examples.lake.demo

.PHONY: dev
dev: setup ## Serve Dagster's web interface, with a Spark Connect server
	.venv/bin/scd dev

.PHONY: dist
dist: setup ## Build the wheel into dist/
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

.PHONY: docs
docs: setup $(DOCS_STAMP) ## Generate pages and references from code, and build the documentation site into site/
	$(PY) -m scd_pipeline_tests.semantics.page
	$(PY) -m scd_pipeline_tests.semantics.requirements.page
	$(PY) -m scd_pipeline_tests.semantics.compared.page
	$(PY) -m scd_pipeline.declaration.schema > docs/reference/declaration.schema.json
	$(PY) -m scd_pipeline_tests.docs.commands
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs --quiet build --strict
	@echo "open site/index.html"

# An environment of its own: nothing else needs these packages.
$(DOCS_STAMP): | $(STAMP)
	@echo "installing the packages of requirements-docs.lock into .venv-docs"
	@rm -rf .venv-docs && $(PY) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-docs.lock
	@touch $@

.PHONY: lock
lock: ## Write requirements.lock and requirements-docs.lock from their .in files (needs uv)
	for name in requirements requirements-docs; do \
	  uv pip compile --quiet --strip-extras --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
	    --custom-compile-command "make lock" $$name.in -o $$name.lock || exit 1; \
	done

.PHONY: clean
clean: ## Stop the servers of the tests and of commands, remove the environment and all build results (downloads stay)
	@if [ -x $(PY) ]; then $(PY) -m scd_pipeline_tests.servers stop || true; $(PY) -m scd_pipeline server stop || true; fi
	rm -rf .venv .venv-docs site build dist ./*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .tmp_dagster_home_*
	find scd_pipeline scd_pipeline_tests -name __pycache__ -type d -prune -exec rm -rf {} +
