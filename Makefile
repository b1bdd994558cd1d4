PYTHON ?= python3
VENV := .venv
# An extra can be left out, for example deep where PyTorch has no wheel:
# make quick VENV=.venv-3.14 PYTHON=python3.14 EXTRAS=data,excel,dask,arviz,experiments
EXTRAS := all
TORCH := $(if $(findstring all,$(EXTRAS))$(findstring deep,$(EXTRAS)),torch)
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INPUTS := pyproject.toml constraints.txt
OLDEST := .venv-oldest
NEWEST := .venv-newest
BUILD := .venv-build
METADATA := .venv-metadata
NEIGHBOURS := .venv-neighbours
QUICK := not slow and not browser and not long
BROWSER := tests/browser
AXE := $(BROWSER)/node_modules/axe-core/axe.min.js
# The benchmark datasets, which are not part of the project; an empty value counts as not set.
export GAMMAGMM_DATA ?= $(abspath $(wildcard ../shared/data))

# Processes that tests and benchmarks start take less time with the bytecode of those before them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test quick test-oldest test-newest test-neighbours test-slow test-long test-browser browser-tools lint type bench bench-large waits growth docs pictures dist metadata check-dist track-record reproduce reproduce-small fuzz soak coverage mutants clean

install: $(VENV)/.installed

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

# The demo needs the core alone; a full environment that is already there serves as well.
$(VENV)/.core: $(INPUTS) | $(VENV)/pyvenv.cfg
	$(PIP) install --editable . --constraint constraints.txt
	touch $@

# Dependency groups need pip 25.1 or newer. PyTorch first and by its exact version: pip then takes
# the CPU build. pip spends half of its time on bytecode; compileall uses all cores and skips the
# libraries' own tests. Syntax errors in files for newer versions of Python are ignored.
$(VENV)/.installed: $(INPUTS) | $(VENV)/pyvenv.cfg
	$(PIP) install pip --upgrade --constraint constraints.txt
	$(if $(TORCH),$(PIP) install --no-compile torch --constraint constraints.txt)
	$(PIP) install --no-compile --editable '.[$(EXTRAS)]' --group dev --constraint constraints.txt
	$(BIN)/python -m compileall -qq -j 0 -x '/(tests|testing/_internal)/' $(VENV)/lib || true
	touch $(VENV)/.core $@

demo: $(VENV)/.core
	$(BIN)/gammagmm demo --report report.html --picture posterior.png --force

# At the same time: mypy uses one core, and some tests only wait.
test: install
	$(MAKE) --jobs=3 lint type quick

quick: install
	$(BIN)/python -m pytest -n auto --dist worksteal -m '$(QUICK)'

# The same tests on the oldest versions that pyproject.toml allows; constraints.txt has the newest.
test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -n auto --dist worksteal -m '$(QUICK)'

$(OLDEST)/bin/python:
	$(PYTHON) -m venv $(OLDEST)

$(OLDEST)/.installed: PIP := $(OLDEST)/bin/python -m pip --disable-pip-version-check --quiet
$(OLDEST)/.installed: pyproject.toml constraints-oldest.txt | $(OLDEST)/bin/python
	$(PIP) install pip --upgrade --constraint constraints-oldest.txt
	$(if $(TORCH),$(PIP) install torch --constraint constraints-oldest.txt)
	$(PIP) install --editable '.[$(EXTRAS)]' --group test --group docs --constraint constraints-oldest.txt
	touch $@

# And on the newest versions, pre-releases included; only PyTorch has the version of constraints.txt.
# The documentation shows the output of the versions in constraints.txt, so its tests are left out.
test-newest: $(NEWEST)/.installed
	$(NEWEST)/bin/python -m pytest -n auto --dist worksteal -m '$(QUICK)' --ignore=tests/docs

$(NEWEST)/bin/python:
	$(PYTHON) -m venv $(NEWEST)

$(NEWEST)/.installed: PIP := $(NEWEST)/bin/python -m pip --disable-pip-version-check --quiet
$(NEWEST)/.installed: pyproject.toml | $(NEWEST)/bin/python
	$(PIP) install pip --upgrade
	$(if $(TORCH),$(PIP) install torch --constraint constraints.txt)
	$(PIP) install --pre --editable '.[$(EXTRAS)]' --group test
	touch $@

# aeon, nonconform, MLflow, MCP, Modin, Spark and Ray; some need older versions than those in
# constraints.txt.
# nonconform needs Python 3.12: the first interpreter that starts is taken.
NEIGHBOURS_PYTHON ?= $(firstword $(foreach each,python3.13 python3.12 $(PYTHON),$(shell $(each) -c 'import ensurepip' 2> /dev/null && echo $(each))))

test-neighbours: $(NEIGHBOURS)/.installed
	$(NEIGHBOURS)/bin/python -m pytest tests/neighbours

$(NEIGHBOURS)/bin/python:
	$(NEIGHBOURS_PYTHON) -m venv $(NEIGHBOURS)

$(NEIGHBOURS)/.installed: PIP := $(NEIGHBOURS)/bin/python -m pip --disable-pip-version-check --quiet
$(NEIGHBOURS)/.installed: pyproject.toml constraints-neighbours.txt | $(NEIGHBOURS)/bin/python
	$(PIP) install pip --upgrade --constraint constraints-neighbours.txt
	$(PIP) install --no-compile --editable . --group neighbours --constraint constraints-neighbours.txt
	touch $@

test-slow: install
	$(BIN)/python -m pytest -m slow

# What takes longest: Dask clusters, processes that are killed, networks, the wheel in an environment
# of its own.
test-long: install
	$(BIN)/python -m pytest -n auto --dist worksteal -m long tests

# The report and the site in headless Chromium, with axe-core from npm.
test-browser: browser-tools install $(AXE)
	$(BIN)/python -m pytest -m browser $(BROWSER)

browser-tools:
	@for tool in chromium chromedriver npm; do command -v $$tool > /dev/null || { \
	  echo "$$tool is missing. On Debian: apt-get install chromium chromium-driver npm" >&2; \
	  exit 1; }; done

$(AXE): $(BROWSER)/package.json $(BROWSER)/package-lock.json
	npm ci --prefix $(BROWSER) --no-audit --no-fund
	touch $@

# The hooks of pre-commit call the same tools.
lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/numpydoc lint src/gammagmm/*.py src/gammagmm/*/*.py
	$(BIN)/codespell
	$(BIN)/sp-repo-review --show err .
	$(BIN)/validate-pyproject pyproject.toml
	$(BIN)/zizmor --offline --quiet --persona pedantic .github
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

type: install
	$(BIN)/mypy

# About ten minutes on two cores. Both write benchmarks/README.md and the figures of docs/guides/large-data.md.
bench: install
	$(BIN)/python benchmarks/mixture.py
	$(BIN)/python benchmarks/command.py
	$(BIN)/python benchmarks/detectors.py
	$(BIN)/python benchmarks/frames.py
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python benchmarks/install_size.py
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/label_page.py
	$(BIN)/python benchmarks/cost.py
	$(BIN)/python benchmarks/page.py

# Fits that users wait for beside an earlier commit, and how far the answers move; half an hour on two quiet cores.
waits: install
	$(BIN)/python benchmarks/waits.py
	$(BIN)/python benchmarks/answers.py
	$(BIN)/python benchmarks/page.py

# Continues where it was interrupted.
growth: install
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/page.py

# About half an hour; continues after the last part that was measured with the same code.
bench-large: install
	$(BIN)/python benchmarks/mixture.py --large
	$(BIN)/python benchmarks/command.py --large
	$(BIN)/python benchmarks/detectors.py --large
	$(BIN)/python benchmarks/scale.py --large
	$(BIN)/python benchmarks/heavy_starts.py
	$(BIN)/python benchmarks/page.py

# From docs/ into site/; needs no network, warnings are errors.
docs: install
	$(BIN)/zensical build --clean --strict

# The pictures of the README and the documentation, in docs/images; those of the report and of the
# labelling page need Chromium.
pictures: install
	$(BIN)/gammagmm demo --picture docs/images/posterior.png --force
	$(BIN)/python docs/images/steps.py
	$(BIN)/python docs/images/plots.py
	$(BIN)/python docs/images/report_pictures.py
	$(BIN)/python docs/images/labelling_pictures.py

# Source archive and wheel, into dist/, in an environment with nothing else. A tag on GitHub must name
# the version.
dist: $(BUILD)/.installed
	$(BUILD)/bin/python -m hatchling build --clean
	@test "$$GITHUB_REF_TYPE" != tag || test "dist/gammagmm-$${GITHUB_REF_NAME#v}.tar.gz" = dist/*.tar.gz || { \
	  echo "The tag $$GITHUB_REF_NAME does not name the version in pyproject.toml." >&2; exit 1; }

$(BUILD)/.installed: $(INPUTS)
	$(PYTHON) -m venv $(BUILD)
	$(BUILD)/bin/python -m pip --quiet install hatchling hatch-fancy-pypi-readme --constraint constraints.txt
	touch $@

# CITATION.cff and the conda recipe, by the tools that read them.
metadata: $(METADATA)/.installed
	$(METADATA)/bin/cffconvert --validate
	$(METADATA)/bin/python -c 'from rattler_build import Stage0Recipe as R; \
	  (v,) = R.from_file("recipe/recipe.yaml").render(); print(v.recipe.package, v.recipe.requirements.run)'

# What users get: the metadata and the README as PyPI takes them, and the wheel and the sdist in new
# environments. build/readme.html is the README as PyPI shows it.
check-dist: dist metadata install
	$(METADATA)/bin/validate-pyproject pyproject.toml
	$(METADATA)/bin/twine check --strict dist/*
	$(METADATA)/bin/check-wheel-contents dist/*.whl
	$(BIN)/python -m pytest -m slow tests/contracts/test_wheel.py
	mkdir -p build
	PYTHONPATH=$$(echo dist/*.whl) $(METADATA)/bin/python -m readme_renderer --package gammagmm -o build/readme.html

$(METADATA)/.installed: pyproject.toml
	$(PYTHON) -m venv $(METADATA)
	$(METADATA)/bin/python -m pip --quiet install 'pip>=25.1'
	$(METADATA)/bin/python -m pip --quiet install --group metadata
	touch $@

# Default fits on labelled and on made tables, about two hours on two cores; continues where it was stopped. Then the
# package's track record and docs/explanations/meaning.md.
track-record: install
	$(BIN)/python -m experiments.run --only record sceptic clean groups labels learning finding
	$(BIN)/python -m experiments.reliability
	$(BIN)/python -m experiments.track_record
	$(BIN)/python -m experiments.probabilities
	$(BIN)/python -m experiments.label_prior
	$(BIN)/python -m experiments.any_look
	$(BIN)/python -m experiments.label_error
	$(BIN)/python -m experiments.stopping

# Hours; continues where it was stopped. Then the tables, the figures and docs/explanations/reproduction*.md.
reproduce: install
	$(BIN)/python -m experiments.run
	$(BIN)/python -m experiments.publish

# Four small datasets, every question; minutes.
reproduce-small: export GAMMAGMM_RESULTS = experiments/small
reproduce-small: install
	$(BIN)/python -m experiments.run --small
	$(BIN)/python -m experiments.publish --small

# Mutated files through every reader for an hour; goes on where it was stopped.
fuzz: install
	$(BIN)/python -m stress.readers --minutes 60 --workers 1

# Hours; goes on where it was stopped. Figures in stress/results.
soak: install
	$(BIN)/python -m stress.kills --kills 50
	$(BIN)/python -m stress.interrupts --times 20 --results stress/results/interrupts.json
	$(BIN)/python -m stress.soak
	$(BIN)/python -m stress.pipeline

# Lines and branches that the tests run, with figures in stress/results; ten minutes on two cores.
coverage: install
	$(BIN)/python -m stress.covered

# Small changes of the mathematics that the tests should notice: 1200 random ones of about 2,900, one
# at a time, then the survivors with more tests. An hour; goes on where it was stopped. Figures and
# survivors in stress/results.
mutants: install
	test -f build/coverage/data || $(BIN)/python -m stress.covered
	$(BIN)/python -m stress.mutants --sample 1200 --workers 2
	$(BIN)/python -m stress.mutants --sample 1200 --workers 2 --again --seconds 120

clean:
	rm -rf build dist site .cache posterior.png report.html .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)*/*' -prune -exec rm -rf {} +
