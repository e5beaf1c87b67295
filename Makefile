# make ask Q="…"   from nothing to an answer: environment, packages, sample knowledge base, question
# make test        all checks, the ones CI runs
# make setup       the environment in .venv with every extra
# make benchmark   fixed retrieval against CRAG on the sample questions: no key, a minute or two
# make studio      the graphs in LangGraph Studio's local server
#
# The sample documents have a knowledge base of their own; KB=.crag/kb asks yours.
KB ?= .crag/sample
PYTHON ?= python3
PIP_QUIET = -qq --disable-pip-version-check
BIN = .venv/bin
Q ?= What is corrective RAG?
# Through the environment as typed: neither make nor the shell may read what is in a question.
ask: export CRAG_QUESTION = $(value Q)

.PHONY: ask setup test benchmark studio constraints clean

ask: .venv/.base
	@report=$$($(BIN)/python -m crag.ingest data/kb --kb .crag/sample) || { echo "$$report" >&2; exit 1; }; \
	  echo "$$report" | tail -n 1 >&2
	@$(BIN)/python -m crag.run --kb "$(KB)" $(ARGS) -- "$$CRAG_QUESTION"

setup: .venv/.all

test: .venv/.all
	@BIN=$(BIN) ./checks.sh

benchmark: .venv/.all
	@$(BIN)/python -m crag.eval.benchmark $(ARGS)

studio: .venv/.all
	@CRAG_KB="$(KB)" LANGGRAPH_CLI_NO_ANALYTICS=1 $(BIN)/langgraph dev --no-browser

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "crag needs Python 3.11 or newer; this is $$($(PYTHON) --version). Name another: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@echo "Creating the environment in .venv …" >&2
	@$(PYTHON) -m venv .venv

.venv/.base: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing packages, a minute or two the first time …" >&2
	@$(BIN)/python -m pip install $(PIP_QUIET) -c constraints.txt -e .
# From the folder above, a checkout called crag would be taken for the package; on the path, the package wins.
	@$(BIN)/python -c 'import os, sysconfig as s; open(s.get_path("purelib") + "/crag-checkout.pth", "w").write(os.getcwd())'
	@touch $@

.venv/.all: .venv/.base
	@echo "Installing the extras for tests, evaluation and Studio …" >&2
	@$(BIN)/python -m pip install $(PIP_QUIET) -c constraints.txt -e '.[dev,eval,studio]'
	@touch $@

# Pinned versions without any address; needs uv.
constraints:
	uv pip compile --universal --python-version 3.11 --all-extras --no-emit-index-url --no-header --no-annotate \
	  pyproject.toml -o constraints.txt

clean:
	rm -rf .venv .crag build dist *.egg-info
