# Everything runs in .venv, which is made on first use and brought up to date when pyproject.toml changes.

PYTHON ?= python3
ARGS ?=
# Test processes, each with one small Spark session: planning and committing keep a core busy, tasks hardly any.
WORKERS ?= 2

QUICK := not slow and not clients and not cluster

# The line of Spark (catalog/jvm/spark_lines.py), and which of its versions: the oldest Spark and Delta, or the newest.
LINE ?= 4.2
EDGE ?= oldest
VENV := .venv$(if $(filter-out 4.2-oldest,$(LINE)-$(EDGE)),-$(LINE)-$(EDGE))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
SHIM := jars-build/build_shim.py
INSTALLED := $(VENV)/.installed
PAGES := $(wildcard *.md bench/*.md docs/*.md docs/*/*.md)

# The same whatever the locale and the Spark of the caller.
export LC_ALL := C.UTF-8
export PYTHONUTF8 := 1
export SPARK_LOCAL_IP := 127.0.0.1
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
unexport SPARK_HOME PYSPARK_DRIVER_PYTHON PYTHONHOME

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Every target with a help text, and those that others need.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST))) java environment shim test-shim scalafmt-check

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target text; do \
	    printf '%-18s %s\n' "$$target" "$$text"; done

demo: java $(INSTALLED) ## run the example on a year of flights
	@$(BIN)/python examples/flights_demo.py $(ARGS)

# Tests that need no session fail first. Without a match for -k, pytest ends with 5, which is no failure here.
test: java $(INSTALLED) test-shim ## run the quick tests (ARGS="-k name" chooses)
	@$(MAKE) test-unit
	@$(BIN)/python -m pytest -q -m "spark and $(QUICK)" -n $(WORKERS) --dist loadfile $(ARGS) || [ $$? -eq 5 ]

test-unit: java $(INSTALLED) ## run the tests that need no Spark
	@$(BIN)/python -m pytest -q -m "not spark and $(QUICK)" -n $(WORKERS) $(ARGS) || [ $$? -eq 5 ]

test-smoke: java $(INSTALLED) test-shim ## run the main jobs once, on a line of Spark (LINE=4.0 EDGE=newest)
	@$(BIN)/python -m pytest -q tests/lines/test_smoke.py $(ARGS)

LINES := 4.0 4.1 4.2
test-lines: ## run the smoke suite on the oldest and the newest versions of every line, and the quick tests on the oldest
	@for edge in oldest newest; do for line in $(LINES); do \
	    echo "== Spark $$line, $$edge"; $(MAKE) test-smoke LINE=$$line EDGE=$$edge || exit 1; done; done
	@echo "== tables of other lines"; $(BIN)/python -m pytest -q tests/lines/test_tables_of_other_lines.py
	@for line in $(LINES); do echo "== Spark $$line"; $(MAKE) test LINE=$$line || exit 1; done

test-compatibility: java $(INSTALLED) test-shim ## other Pythons, Javas, oldest and newest dependencies (SHARD=py3.11-java17-oldest)
	@$(PIP) install 'uv>=0.8,<1'
	@$(BIN)/python tests/lines/compatibility.py $(if $(SHARD),--shard $(SHARD)) $(ARGS)

test-slow: SHARD ?= 1/1
test-slow: java $(INSTALLED) test-shim ## run the slow tests, or a part of them (SHARD=1/3)
	@$(BIN)/python -m pytest -q -m "slow and not clients and not cluster" -n $(WORKERS) --dist loadfile --shard $(SHARD) $(ARGS) || [ $$? -eq 5 ]

test-all: java $(INSTALLED) test-shim ## run all tests
	@$(BIN)/python -m pytest -q $(ARGS)

test-clients: java $(INSTALLED) ## run real JDBC and Connect clients on a real server, and its security tests
	@$(BIN)/python -m pytest -q -m clients tests/clients $(ARGS)

test-cluster: java $(INSTALLED) ## run the main job on a standalone cluster and on local-cluster
	@$(BIN)/python -m pytest -q -m cluster tests/cluster $(ARGS)

site: java $(INSTALLED) ## build the docs site into build/site
	@rm -rf build/site && mkdir -p build
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/site

examples: java $(INSTALLED) test-shim ## run the example notebooks and the blocks of README and SQL reference as tests
	@$(BIN)/python -m pytest -q tests/docs/test_notebook.py "tests/docs/test_blocks.py::test_page[README.md]" \
	    "tests/docs/test_blocks.py::test_page[docs/sql.md]" $(ARGS)

notebook: java $(INSTALLED) ## run the example notebooks, and store them with their outputs
	@$(BIN)/python examples/store_notebook.py

fuzz: $(INSTALLED) ## try 100,000 random conditions on the planning of reads (ARGS="--seed 7 --count 1" repeats)
	@$(BIN)/python tests/support/planning_fuzz.py $(ARGS)

fuzz-readers: java $(INSTALLED) test-shim ## try 100,000 random conditions on the readers without Spark (ARGS="--spark" asks Spark, too)
	@$(BIN)/python tests/support/readers_fuzz.py $(ARGS)

test-mutations: SHARD ?= 1/1
test-mutations: java $(INSTALLED) test-shim ## put small faults into copies, and show that a test catches each (SHARD=1/3, ARGS="--only lease")
	@$(BIN)/python tests/support/mutations.py --shard $(SHARD) --workers $(WORKERS) $(ARGS)

COUNT ?= 500

fuzz-queries: java $(INSTALLED) test-shim ## compare random queries with and without the index (COUNT=500 SEED=7)
	@$(BIN)/python tests/oracle/fuzz_queries.py --count $(COUNT) $(if $(SEED),--seed $(SEED)) $(ARGS)

fuzz-joins: java $(INSTALLED) test-shim ## compare random joins with and without files skipped by their keys (COUNT=500 SEED=7)
	@$(BIN)/python tests/oracle/fuzz_joins.py --count $(COUNT) $(if $(SEED),--seed $(SEED)) $(ARGS)

fuzz-inputs: COUNT = 100000
fuzz-inputs: java $(INSTALLED) test-shim ## give 100,000 broken inputs to all readers (COUNT=1 SEED=7 repeats one; ARGS=--sql COUNT=1000: statements)
	@$(BIN)/python tests/inputs/run.py --count $(COUNT) $(if $(SEED),--seed $(SEED)) $(ARGS)

audit: java $(INSTALLED) ## write the bill of materials to build/sbom.json, and look for known vulnerabilities of all packages
	@$(BIN)/python tests/support/audit.py $(ARGS)

simulate: COUNT = 1000000
simulate: $(INSTALLED) ## run 1,000,000 histories of writers, services and maintenance under faults (COUNT=1 SEED=7 repeats one)
	@$(BIN)/python tests/simulation/run.py --count $(COUNT) $(if $(SEED),--seed $(SEED)) $(ARGS)

MINUTES ?= 10
KILLS ?= 10

test-faults: KILLS = 500
test-faults: SHARD ?= 1/1
test-faults: java $(INSTALLED) test-shim ## faults at every point of every operation, bad disks, kills (SHARD=1/4 KILLS=500; a second call goes on)
	@$(BIN)/python tests/faults/run.py --shard $(SHARD) --kills $(KILLS) $(ARGS)

soak: MINUTES = 60
soak: java $(INSTALLED) test-shim ## everything on one table at once, with other engines as oracles; nothing may grow (MINUTES=60)
	@$(BIN)/python tests/soak/soak.py --minutes $(MINUTES) $(ARGS)

soak-ingest: java $(INSTALLED) test-shim ## two plain writers without a pause, and the optimizer beside them (MINUTES=10)
	@$(BIN)/python tests/soak/ingest.py --minutes $(MINUTES) $(ARGS)

soak-merges: java $(INSTALLED) test-shim ## a writer of plain Delta merges beside the service (MINUTES=10)
	@$(BIN)/python tests/soak/plain_merges.py --minutes $(MINUTES) $(ARGS)

soak-replacements: java $(INSTALLED) test-shim ## a table is overwritten, restored and created anew beside its maintenance (MINUTES=10)
	@$(BIN)/python tests/soak/replacements.py --minutes $(MINUTES) $(ARGS)

soak-recreations: java $(INSTALLED) ## tables are removed and created again at the same place, beside the service (MINUTES=10)
	@$(BIN)/python tests/soak/recreations.py --minutes $(MINUTES) $(ARGS)

soak-statements: java $(INSTALLED) test-shim ## four attached writers beside the service and use.optimize (COUNT=10000)
	@$(BIN)/python tests/soak/statements.py --count $(COUNT) $(ARGS)

soak-fleet: java $(INSTALLED) test-shim ## two services share a budget, and one is killed again and again (KILLS=10)
	@$(BIN)/python tests/soak/fleet_services.py --kills $(KILLS) $(ARGS)

lint: java $(INSTALLED) ## check style, types, imports and formats
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --check; exit 1; }
	@$(BIN)/ruff format --check --quiet --line-length 88 $(PAGES)
	@$(BIN)/mypy --no-error-summary
	@mkdir -p build
	@$(BIN)/lint-imports > build/lint-imports.log || { cat build/lint-imports.log; exit 1; }
	@$(MAKE) scalafmt-check

format: java $(INSTALLED) ## write the formats and what can be fixed
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet
	@$(BIN)/ruff format --quiet --line-length 88 $(PAGES)
	@$(BIN)/python $(SHIM) --scalafmt write

bench: java $(INSTALLED) test-shim ## compare with Delta, Iceberg and Hudi: the same data, histories and budgets (30 minutes; ARGS=--help)
	@PYTHONPATH=bench $(BIN)/python -m peers.main $(ARGS)

bench-page: $(INSTALLED) ## write the recorded figures of `make bench` into docs/benchmark.md
	@PYTHONPATH=bench $(BIN)/python -m peers.page

bench-layout: java $(INSTALLED) ## compare layouts: plain, ZORDER, liquid clustering and ours (an hour on 2 cores)
	@$(BIN)/python bench/layout.py $(ARGS)

bench-planning: java $(INSTALLED) ## time the planning of queries over 100,000 files
	@$(BIN)/python bench/planning.py $(ARGS)

bench-engine: java $(INSTALLED) ## what small appends cost in the long run, against OPTIMIZE and ZORDER (an hour)
	@$(BIN)/python bench/engine.py $(ARGS)

bench-ingest: java $(INSTALLED) ## what reads and optimizations cost after 200 small appends, by story (hours; ARGS="--stories zero")
	@$(BIN)/python bench/ingest.py $(ARGS)

bench-stories: $(INSTALLED) ## the same stories without Spark, in minutes; then tables of up to 10 TB, and prices (an hour)
	@$(BIN)/python bench/ingest_simulation.py $(ARGS)
	@$(BIN)/python bench/size_simulation.py
	@$(BIN)/python bench/price_simulation.py

bench-fleet: $(INSTALLED) ## share a budget between 10,000 simulated tables, by policy (minutes; ARGS="--quick" takes seconds)
	@$(BIN)/python bench/fleet_simulation.py $(ARGS)
	@$(BIN)/python bench/fleet_picture.py

bench-long-log: java $(INSTALLED) ## load a table with 20,000 commits before and after its log is consolidated (minutes)
	@$(BIN)/python bench/long_log.py $(ARGS)

bench-intervals: $(INSTALLED) ## how often intervals of approximate answers miss, by distribution (ARGS="--repetitions 1000")
	@$(BIN)/python bench/interval_coverage.py $(ARGS)

bench-commands: java $(INSTALLED) ## compare commands with the start of a bare session (ten minutes)
	@$(BIN)/python bench/command_start.py $(ARGS)

bench-insights: java $(INSTALLED) ## what records of queries cost, and how long summaries take (minutes)
	@$(BIN)/python bench/insights.py $(ARGS)

bench-approximate: java $(INSTALLED) ## what answers within a tolerance read and take, against exact ones (minutes)
	@$(BIN)/python bench/approximate.py $(ARGS)

bench-small-files: java $(INSTALLED) ## merge 100,000 small files with 2 GB of heap, against OPTIMIZE (half an hour)
	@$(BIN)/python bench/small_files.py $(ARGS)

bench-statements: java $(INSTALLED) ## compare statements with and without their layout kept (ARGS="--rows 1000000")
	@$(BIN)/python bench/statements.py $(ARGS)

bench-star: java $(INSTALLED) ## the star schema benchmark with joins that skip files, without, and liquid clustering (ARGS="--scale 1")
	@$(BIN)/python bench/star_schema.py $(ARGS)

bench-tpch: java $(INSTALLED) ## the 22 queries of TPC-H on an indexed table and with liquid clustering (ARGS="--scale 1")
	@$(BIN)/python bench/tpch.py $(ARGS)

bench-merge: java $(INSTALLED) ## what a MERGE of 1,000 keys reads, with and without the keys of its source (minutes)
	@$(BIN)/python bench/merge_keys.py $(ARGS)

bench-fleet-tables: java $(INSTALLED) ## bytes that readers of 300 tables read, by who gets the budget (half an hour)
	@$(BIN)/python bench/fleet_tables.py --json bench/results/fleet_tables.json $(ARGS)

bench-diagnosis: java $(INSTALLED) ## what use-spark diagnose predicts, against what is read with the index (ten minutes)
	@$(BIN)/python bench/diagnosis.py $(ARGS)

bench-looks: java $(INSTALLED) ## what the looks of the service at many tables cost (minutes; ARGS="--tables 10000")
	@$(BIN)/python bench/looks.py $(ARGS)

bench-trees: $(INSTALLED) ## what an append and a group take in the driver of a table of up to 600,000 cubes (a minute)
	@$(BIN)/python bench/trees.py $(ARGS)

bench-size: java $(INSTALLED) ## a table of 1,000,000 files, 50 JDBC clients at once, two workers against one (an hour; ARGS="--only clients")
	@$(BIN)/python bench/size.py $(ARGS)

bench-lines: ## compare the lines of Spark: the layout and a small optimization (half an hour)
	@for line in $(LINES); do $(MAKE) environment LINE=$$line || exit 1; done
	@$(BIN)/python bench/lines.py $(ARGS)

dist: java $(INSTALLED) ## build the wheel and the sdist into dist/
	@rm -rf dist && mkdir -p build
	@$(BIN)/python -m build --outdir dist > build/dist.log 2>&1 || { cat build/dist.log; exit 1; }
	@ls dist

clean: ## remove what was built; .venv and downloads stay
	@rm -rf dist build/*.log build/.scalafmt jars-build/target jars-build/project/target jars-build/project/project
	@rm -rf sql_ext/jars .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@rm -rf spark-warehouse metastore_db derby.log
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean ## remove .venv and downloads too
	@rm -rf $(VENV) build

# ---------------------------------------------------------------------------------------------------------------- parts

java:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or later is needed: make PYTHON=...")'
	@$(PYTHON) $(SHIM) --check-java

$(VENV)/.created:
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# pyspark comes first, so that the shim is compiled against it and no build environment needs a second one.
$(VENV)/.spark: pyproject.toml catalog/jvm/spark_lines.py $(VENV)/.created
	@echo "installing Spark into $(VENV)"
	@$(PIP) install py4j importlib-metadata
	@$(PIP) install --no-deps $$($(PYTHON) catalog/jvm/spark_lines.py $(LINE) $(EDGE))
	@touch $@

environment: java $(INSTALLED)

# This asks the script each time, which starts nothing if the sources are those of the last build.
shim: $(VENV)/.spark | java
	@$(BIN)/python $(SHIM)

test-shim: $(VENV)/.spark | java
	@$(BIN)/python $(SHIM) --test-jar

$(INSTALLED): pyproject.toml hatch_build.py $(VENV)/.spark | shim
	@echo "installing use-spark and the tools into $(VENV)"
	@mkdir -p build
	@$(PIP) install --editable '.[dev]'
	@$(PIP) install --no-deps $$($(PYTHON) catalog/jvm/spark_lines.py $(LINE) $(EDGE))
	@touch $@

scalafmt-check: build/.scalafmt
	@:

build/.scalafmt: jars-build/.scalafmt.conf jars-build/build.sbt $(shell find jars-build/src -name '*.scala' 2>/dev/null) | $(VENV)/.spark
	@$(BIN)/python $(SHIM) --scalafmt check
	@mkdir -p build
	@touch $@
