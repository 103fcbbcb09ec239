# plimsoll. `make help` lists the targets. Meson and Ninja do the work; this file only remembers
# the commands. Every target first sees to what it needs (tools/install-deps.sh).
SHELL := /bin/bash
.DEFAULT_GOAL := help

BUILD ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
SEEDS ?= 2000
FIRST ?= 1
DEPS := tools/install-deps.sh

.PHONY: help configured build run examples test sim sim-planted e2e compare bench fuzz lint format check-format docs install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

# Not a target for people: the packages, and a configured build directory.
configured:
	@$(DEPS) build
	@test -f $(BUILD)/build.ninja || { echo "configuring $(BUILD)"; \
		log=$$(meson setup $(BUILD) --prefix=$(PREFIX) 2>&1) || { echo "$$log"; exit 1; }; }

build: configured ## build/plimsoll, the library, the tests
	@ninja -C $(BUILD)

run: configured ## the playground's guided tour: a fleet that breaks and heals (minutes)
	@ninja -C $(BUILD) plimsoll
	@$(BUILD)/plimsoll up --tour --clusters 2

examples: configured ## evaluate and explain the example snapshots
	@ninja -C $(BUILD) plimsoll
	@tools/run-examples.sh $(BUILD)/plimsoll

test: build ## build, run all tests, print "N passed, N failed"
	@$(DEPS) test
	@tools/test.sh $(BUILD)

sim: configured ## run SEEDS (2000) simulated worlds from seed FIRST (1); SIM_ARGS for more
	@ninja -C $(BUILD) tests/sim/plimsoll-sim
	@$(BUILD)/tests/sim/plimsoll-sim --seeds $(SEEDS) --first $(FIRST) $(SIM_ARGS)

sim-planted: configured ## the simulator against mistakes planted on purpose (minutes)
	@tools/sim-planted.sh

e2e: build ## the suite on real API servers, built once (minutes)
	@$(DEPS) test
	@PLIMSOLL=$(abspath $(BUILD)/plimsoll) python3 tests/e2e/suite.py

compare: build ## ours beside Cluster API's own manager, one table (minutes)
	@$(DEPS) test
	@PLIMSOLL=$(abspath $(BUILD)/plimsoll) python3 tests/e2e/compare.py $(COMPARE_ARGS)

bench: build ## measure; prints numbers (BENCH_ARGS="--json FILE" for machines)
	@tools/run-bench.sh $(BUILD) $(BENCH_ARGS)

fuzz: ## run each fuzz target for FUZZ_SECONDS (60)
	@$(DEPS) fuzz
	@tools/run-fuzz.sh $(FUZZ_SECONDS)

lint: ## format, clang-tidy, cppcheck, shellcheck, include arrows
	@$(DEPS) lint
	@status=0; $(MAKE) --no-print-directory check-format || status=1; \
		tools/lint.sh || status=1; exit $$status

format: ## rewrite the sources with clang-format
	@$(DEPS) lint
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

check-format: ## fail where clang-format would change something
	@$(DEPS) lint
	@git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format --dry-run -Werror

docs: build ## rewrite the generated documents (docs/tables.md, docs/man, docs/img)
	@tools/gen-docs.sh $(BUILD)/plimsoll docs

install: build ## install below PREFIX (/usr/local), honours DESTDIR
	@meson configure $(BUILD) --prefix=$(PREFIX)
	@meson install -C $(BUILD)

clean: ## remove what was built
	@rm -rf build build-fuzz build-lint build-planted
