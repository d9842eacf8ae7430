# make demo: the main job on bundled data.  make studio: the same in a browser.  make test: everything that must hold, in
# minutes.  make bench: measured ratios.
# make spark: the tests on a cluster of this machine.  make nation: a census of 330 million records, start to end.
# make nightly: the same and what takes hours: 1,000 examples per law, 20,000 draws per test of fairness, the papers in
# full, the browser, an installation without a network, the fuzzer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Without bytecode on disk every process compiles what it imports, and the tests start many.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo studio test nightly bench nation spark lint types imports unit browser docs pages comparison pins hashes bill wheelhouse airgap fuzz clean

demo: $(READY)
	@$(BIN)/quadrille demo --out demo

# The whole path in a browser, on a bundled file.
studio: $(READY)
	@$(BIN)/quadrille studio open dataset:cps8d

# The checks of the code run beside the tests: they use one core, and the tests have pauses.
test: $(READY) browser
	@$(MAKE) --no-print-directory --jobs 2 lint imports types unit

nightly: $(READY) browser
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder --hypothesis-profile=nightly -m 'not spark'
	@$(MAKE) --no-print-directory spark TESTS=spark
	@$(MAKE) --no-print-directory fuzz

bench: $(READY)
	@$(BIN)/python -m bench

# 330 million records: 0.8 GB are made and released four times, in the folder that NATION_DIR names; about ten minutes.
nation: $(READY)
	@$(BIN)/python -m bench.nation 330000000

# Plans, scores and releases on Spark, in an environment of its own (0.5 GB) with the Java of Debian: a few minutes.
SPARK := .venv-spark
TESTS ?= spark and not nightly
spark: $(SPARK)/.ready
	@$(SPARK)/bin/pytest -m '$(TESTS)' tests/spark tests/unit/test_plan_file.py

$(SPARK)/.ready: $(READY) pyproject.toml constraints.txt
	@command -v java >/dev/null || { \
	  sudo=$$(test $$(id -u) = 0 || command -v sudo); \
	  command -v apt-get >/dev/null && $$sudo apt-get update -qq >/dev/null && \
	  $$sudo apt-get install -y -qq default-jre-headless >/dev/null; \
	} || { echo "Spark needs Java: apt-get install default-jre-headless"; exit 1; }
	@test -x $(SPARK)/bin/python || $(PYTHON) -m venv $(SPARK)
	@$(BIN)/uv pip install --quiet --python $(SPARK)/bin/python --constraint constraints.txt --build-constraint constraints.txt \
	  --editable '.[spark]' hypothesis pytest sybil
	@touch $(SPARK)/.ready

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY)
	@$(BIN)/basedpyright --level error

imports: $(READY)
	@$(BIN)/lint-imports

unit: $(READY) browser
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

# The report is tested in a real browser where there is one, or where one can be installed.
browser:
	@command -v chromium >/dev/null || { \
	  sudo=$$(test $$(id -u) = 0 || command -v sudo); \
	  command -v apt-get >/dev/null && { test $$(id -u) = 0 || test -n "$$sudo"; } && \
	  $$sudo apt-get update -qq >/dev/null 2>&1 && $$sudo apt-get install -y -qq chromium >/dev/null 2>&1; \
	} || echo "No chromium: the browser tests are skipped. Install it with: apt-get install chromium"

# Set up once; again when the project's needs change.
$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is older."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "Cannot make a virtual environment: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --build-constraint constraints.txt --editable '.[dev,docs]'
	@touch $(READY)

# The documentation site, in site/. Needs no network, neither here nor where it is read; a warning is an error, which is
# why mkdocs is not told to be quiet: then it would count none.
docs: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Built site/. Open site/index.html in a browser."

# The pages that are made from the code: options, parameters, the map of the code.
pages: $(READY)
	@$(BIN)/python tools/command_line_page.py
	@$(BIN)/python tools/parameter_tables.py
	@$(BIN)/python tools/architecture.py

# Swapping and other methods on two files: the tables and the chart of docs/against-other-methods.md, in minutes.
comparison: $(READY)
	@$(BIN)/python -m bench.compare_methods

# Write the pins anew: the newest versions that fit pyproject.toml.
pins: $(READY)
	@$(BIN)/uv pip compile pyproject.toml --quiet --all-extras --no-header --no-annotate --upgrade --output-file constraints.txt
	@$(MAKE) --no-print-directory hashes

# The hashes of what users are delivered, for every system: a wheelhouse takes no other wheels.
hashes: $(READY)
	@$(BIN)/uv pip compile pyproject.toml --quiet --universal --extra excel --extra pandas --extra report --extra scale --extra stat \
	  --extra studio \
	  --constraint constraints.txt --generate-hashes --no-header --no-annotate --upgrade --output-file hashes.txt

# What the program is delivered with: names, versions and licences, as CycloneDX JSON.
BILL ?= dist/bill-of-materials.json
bill: $(READY)
	@$(BIN)/python tools/bill_of_materials.py $(BILL)

# A folder from which pip installs on a machine with no network. Needs a package index once, here.
WHEELHOUSE ?= dist/wheelhouse
wheelhouse: $(READY)
	@$(BIN)/python tools/wheelhouse.py $(WHEELHOUSE)

# Builds a wheelhouse, installs it with the network unreachable and runs the demo there: about two minutes.
airgap: $(READY)
	@$(BIN)/pytest -m airgap -rs tests/unit/test_wheelhouse.py

# Hostile input for every reader, parser and command, for a night: a million inputs, which take about ten hours, and
# twelve hours at most; the next run goes on where this one stopped. Coverage guides the parsers' inputs where atheris can be
# installed.
FUZZ ?= --minutes 720 --inputs 1000000
fuzz: $(READY)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python 'atheris>=3' 2>/dev/null || true
	@$(BIN)/python -m fuzz $(FUZZ)

clean:
	rm -rf $(VENV) $(SPARK) demo site .fuzz .pytest_cache .ruff_cache .hypothesis .import_linter_cache
