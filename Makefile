# `make demo` and `make test` do everything on a fresh machine; the rest are their parts.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test lint bench-smoke system clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cbabo needs Python 3.11 or newer; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	touch $(STAMP)

demo: install
	$(BIN)/cbabo demo

test: install system
	$(BIN)/python -m pytest -n 2 --dist loadgroup

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-smoke: install
	$(BIN)/python benchmarks/storage.py --smoke
	$(BIN)/python benchmarks/running.py --smoke
	$(BIN)/python benchmarks/surrogates.py --smoke
	$(BIN)/python benchmarks/speed.py run --smoke
	$(BIN)/python benchmarks/explorer.py --smoke

# What the tests need from the system: found, or installed where we are root on Debian; otherwise tests say what is missing.
system:
	@sh scripts/system-packages.sh

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build demo test-artefacts
