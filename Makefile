# `make demo` and `make test` do everything on a fresh machine; the rest are their parts.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Under CI=true the tests run under coverage (pyproject.toml says how), and fail below its least total.
ifeq ($(CI),true)
COVERAGE := --cov --cov-report=term
endif

.PHONY: install demo docs test lint wheel-smoke bench-smoke system clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cbabo needs Python 3.11 or newer; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	touch $(STAMP)

demo: install
	$(BIN)/cbabo demo

# Build the documentation site; every warning is an error, broken links and anchors included.
docs: install
	$(BIN)/python scripts/build_site.py

# All tests of a file run in one process, where its fixtures and caches are made once.
test: install system
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(COVERAGE)

lint: install system
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@sh scripts/lint-page.sh

# Build the wheel, and use it in a clean environment without any extra.
wheel-smoke: install
	rm -rf dist build/wheel-smoke
	$(BIN)/python -m build --no-isolation --outdir dist
	$(PYTHON) -m venv build/wheel-smoke
	build/wheel-smoke/bin/python -m pip install --quiet --constraint constraints.txt torch==2.13.0
	build/wheel-smoke/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	cd build/wheel-smoke && bin/python ../../scripts/wheel_smoke.py

bench-smoke: install
	$(BIN)/python benchmarks/install.py --smoke
	$(BIN)/python benchmarks/storage.py --smoke
	$(BIN)/python benchmarks/soak.py --smoke
	$(BIN)/python benchmarks/fuzz.py databases --count 20
	$(BIN)/python benchmarks/fuzz.py models --count 50
	$(BIN)/python benchmarks/running.py --smoke
	$(BIN)/python benchmarks/surrogates.py --smoke
	$(BIN)/python benchmarks/formulas.py --smoke
	$(BIN)/python benchmarks/speed.py run --smoke
	$(BIN)/python benchmarks/growing.py --smoke
	$(BIN)/python benchmarks/explorer.py --smoke
	$(BIN)/python benchmarks/clients.py --smoke

# What tests and linters need from the system: found, or installed where we are root on Debian; otherwise they say what is missing.
system:
	@sh scripts/system-packages.sh

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov node_modules dist build demo test-artefacts
