# Each target sets up what it needs, on a machine that has only Python >= 3.11, make and apt; a second run does not.
# The environment is .venv, or .venv-NAME where PYTHON=NAME names another interpreter; a stamp in it says which extras
# were installed from the present pyproject.toml.

PYTHON  ?= python3
# Debian packages of the engines that `make test` and `make bench` start by themselves.
SERVERS ?= etcd-server redis-server postgresql pgbouncer mariadb-server zookeeper prometheus spin gcc libc6-dev faketime strace iproute2 iptables chromium chromium-driver
SEEDS   ?= 2000
# Random sequences of requests that `make likeness` plays to each simulated server and to the real one.
ROUNDS  ?= 500
# Workers that share the tests: most of a test is waiting for a real ttl to pass, so there are more than cores
# (tests/support/spread.py keeps those apart that compute).
WORKERS ?= 6
# The same where they compute.
JOBS    ?= 3
# More words for pytest, the simulator or the benchmark: make test ARGS="-k fence -x"
ARGS    ?=

venv := .venv$(if $(filter-out python3,$(PYTHON)),-$(subst /,-,$(patsubst /%,%,$(PYTHON))))
bin := $(venv)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test pythons check coverage proofs bench sim likeness partitions torture release generate format clean servers

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(venv)/.ready-cli  ## a paused holder wakes up and writes: once unfenced, once fenced (under a minute)
	@$(bin)/holdfast demo

test: $(venv)/.ready-dev servers proofs  ## all tests, on every engine (ARGS="-k fence" for some), and the proofs
	@$(bin)/python tools/tests $(WORKERS) $(ARGS)

pythons: $(venv)/.ready-dev  ## the tests that need no server, on every other Python that is claimed and found
	@tools/pythons $$($(bin)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')

proofs: servers  ## the Promela model of Redlock with tokens: sound variants hold, broken ones fail
	@$(PYTHON) proofs/check.py --jobs 2

check: $(venv)/.ready-dev  ## ruff, mypy --strict and the rules of the house: rooms, names, the map
	@$(bin)/ruff check .
	@$(bin)/ruff format --check .
	@$(bin)/python tools/unasync.py --check
	@$(bin)/python tools/messages.py --check
	@$(bin)/mypy src tests $(wildcard bench) examples/lockd/holdfast_lockd
	@$(bin)/pyrefly check --summary=none
	@$(bin)/pytest -q tests/test_rooms.py tests/test_house.py tests/test_architecture.py

coverage: $(venv)/.ready-dev  ## which lines the tests without a server reach, by room; fails below the floor
	@$(bin)/python tools/coverage $(JOBS) $(ARGS)

bench: $(venv)/.ready-bench servers  ## holdfast, its peers and the bare engine, as ratios of one run
	@$(bin)/python -m bench $(ARGS)

sim: $(venv)/.ready-cli  ## the simulator, SEEDS=2000 for the core and each engine (ENGINE=zookeeper); replay one: SEED=1234
	@$(bin)/python -m holdfast_sim $(if $(SEED),--seed $(SEED) $(if $(ENGINE),--engine $(ENGINE)),--engine $(or $(ENGINE),all) --seeds $(SEEDS)) $(ARGS)

likeness: $(venv)/.ready-dev servers  ## simulated servers against real ones, ROUNDS=500 random sequences for each
	@LIKENESS_ROUNDS=$(ROUNDS) $(bin)/pytest -n $(JOBS) --timeout 7200 tests/likeness $(ARGS)

partitions: $(venv)/.ready-dev  ## 50 processes share 1024 shards; one joins, leaves, is killed, is stopped (ARGS="--processes 8")
	@$(bin)/python -m bench.partition_group $(ARGS)

torture: $(venv)/.ready-dev servers  ## real faults on every engine, 10 minutes each (ARGS="redis --minutes 1")
	@$(bin)/holdfast torture $(ARGS)

release: $(venv)/.ready-release  ## build and check what would be uploaded, in an empty environment; uploads nothing
	@PATH="$(CURDIR)/$(bin):$$PATH" tools/release

generate: $(venv)/.ready-dev  ## write the thread versions of asyncio modules, and the messages of docs/troubleshooting.md
	@$(bin)/python tools/unasync.py
	@$(bin)/python tools/messages.py

format: generate  ## put the code into the house's format
	@$(bin)/ruff check --fix-only --quiet .
	@$(bin)/ruff format .

clean:  ## remove the environment and all caches
	@rm -rf .venv .venv-* build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find src tests $(wildcard bench) -name __pycache__ -type d -prune -exec rm -rf {} +

servers:
	@tools/servers $(SERVERS)

$(venv)/.ready-cli: extras := cli
$(venv)/.ready-dev: extras := dev
$(venv)/.ready-release: extras := release
$(venv)/.ready-bench: extras := cli,mysql,postgresql,redis,bench
$(venv)/.ready-%: pyproject.toml tools/venv
	@VENV=$(venv) PYTHON=$(PYTHON) tools/venv $(extras)
	@touch $@
