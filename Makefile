# SPDX-License-Identifier: Apache-2.0
# neoset: everything is built out of tree, below build/. `make help` lists the targets.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# --- where and how ---------------------------------------------------------------------------------------------
# SAN=address,undefined  build with sanitizers        CC=clang  build with another compiler
# VARIANT=crash          with crash points and planted bugs (tests)
# VARIANT=planted        with planted bugs (simulation)    VARIANT=nojournal  with a journal that does nothing (bench)
ifeq ($(origin CC),default)
CC := gcc
endif
comma := ,
FLAVOUR := $(notdir $(CC))$(if $(SAN),-$(subst $(comma),+,$(SAN)))$(if $(VARIANT),-$(VARIANT))
BUILD := build/$(FLAVOUR)
PREFIX ?= /usr/local
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

PACKAGES := libuv libcurl sqlite3 libcjson yaml-0.1 libcrypto libmicrohttpd
WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wundef -Wstrict-prototypes -Wmissing-prototypes \
            -Wpointer-arith -Wwrite-strings -Wvla -Wnull-dereference -Werror
CPPFLAGS += -D_GNU_SOURCE -Isrc -Itools -I$(BUILD)/gen
CFLAGS ?= -O2 -g
ALL_CFLAGS = -std=gnu17 $(WARNINGS) -fno-strict-aliasing -fstack-protector-strong $(CFLAGS) $(SAN_FLAGS) $(VARIANT_FLAGS) \
             $(PACKAGE_CFLAGS)
PACKAGE_CFLAGS := $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null | sed 's/-I/-isystem /g')
LDLIBS := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -lm -lpthread
LDFLAGS += -Wl,--as-needed
# -Wnull-dereference follows paths that sanitizer instrumentation makes up.
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-null-dereference)
VARIANT_FLAGS := $(if $(filter crash,$(VARIANT)),-DNEOSET_CRASH_POINTS) $(if $(filter nojournal,$(VARIANT)),-DNEOSET_NO_JOURNAL) \
                 $(if $(filter planted crash,$(VARIANT)),-DPLANTED)

# --- what ------------------------------------------------------------------------------------------------------
PROGRAMS := neoset-controller neoset-audit neosetctl
PROGRAM_SOURCES := $(PROGRAMS:%=src/cmd/%.c)
LIBRARY_SOURCES := $(filter-out $(PROGRAM_SOURCES),$(wildcard src/*/*.c src/*/*/*.c))
KUBESIM_SOURCES := $(filter-out tools/kubesim/main.c,$(wildcard tools/kubesim/*.c))
TEST_LIBRARY_SOURCES := $(wildcard tests/lib/*.c) tests/replay/trace.c
TEST_SOURCES := $(wildcard tests/unit/*/test_*.c tests/sim/test_*.c tests/power/test_*.c tests/hostile/test_*.c)
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
GENERATED := $(BUILD)/gen/journal_sql.h $(BUILD)/gen/resize_script.h $(BUILD)/gen/version.h
LIBRARY := $(BUILD)/libneoset.a
KUBESIM_LIBRARY := $(BUILD)/libkubesim.a
TEST_LIBRARY := $(BUILD)/libtest.a
PROGRAM_FILES := $(PROGRAMS:%=$(BUILD)/%) $(BUILD)/kubesim
TESTS := $(patsubst %.c,$(BUILD)/%,$(TEST_SOURCES))

.PHONY: all
all: $(PROGRAM_FILES) $(BUILD)/replay ## (start) build the programs (default)

.PHONY: tests
tests: $(TESTS) $(BUILD)/fake/kubectl $(BUILD)/crash-matrix $(BUILD)/sim $(BUILD)/story-sim ## (develop) build the tests

# Tests name what they share without a folder.
$(BUILD)/obj/tests/%.o: CPPFLAGS += -Itests/lib

$(BUILD)/obj/%.o: %.c $(GENERATED)
	@mkdir -p $(@D)
	@echo "  CC    $<$(if $(VARIANT)$(SAN), ($(FLAVOUR)))"
	@$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

define archive
	@mkdir -p $(@D)
	@rm -f $@
	@ar qcs $@ $^
endef
$(LIBRARY): $(call object,$(LIBRARY_SOURCES))
	$(archive)
$(KUBESIM_LIBRARY): $(call object,$(KUBESIM_SOURCES))
	$(archive)
$(TEST_LIBRARY): $(call object,$(TEST_LIBRARY_SOURCES))
	$(archive)

define link
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(ALL_CFLAGS) $(LDFLAGS) $(filter %.o %.a,$^) $(EXTRA_LIBS) $(LDLIBS) -o $@
endef
$(PROGRAMS:%=$(BUILD)/%): $(BUILD)/%: $(BUILD)/obj/src/cmd/%.o $(LIBRARY)
	$(link)
$(BUILD)/kubesim: $(call object,tools/kubesim/main.c) $(KUBESIM_LIBRARY) $(LIBRARY)
	$(link)
$(BUILD)/replay: $(call object,tests/replay/replay.c tests/replay/trace.c) $(LIBRARY)
	$(link)
$(BUILD)/quantity: $(call object,tests/volume/quantity.c tests/lib/quantity_table.c) $(LIBRARY)
	$(link)
$(BUILD)/sim: $(call object,$(filter-out tests/sim/test_%.c,$(wildcard tests/sim/*.c))) $(TEST_LIBRARY) $(KUBESIM_LIBRARY) $(LIBRARY)
	$(link)
$(BUILD)/story-sim: $(call object,tests/stories/sim.c) $(TEST_LIBRARY) $(KUBESIM_LIBRARY) $(LIBRARY)
	$(link)
$(BUILD)/fake/kubectl: $(call object,tests/volume/kubectl.c) $(LIBRARY)
	$(link)
$(BUILD)/crash-matrix: $(call object,$(wildcard tests/process/*.c)) $(LIBRARY)
	$(link)
$(TESTS): EXTRA_LIBS := -lcmocka -lssl
$(TESTS): $(BUILD)/%: $(BUILD)/obj/%.o $(TEST_LIBRARY) $(KUBESIM_LIBRARY) $(LIBRARY)
	$(link)

$(BUILD)/tests/sim/test_plants: $(call object,tests/sim/plants.c)

$(BUILD)/gen/journal_sql.h: tools/embed-sql $(wildcard migrations/*.sql schema/*.sql)
	@mkdir -p $(@D)
	@tools/embed-sql migrations > $@.new && mv $@.new $@

$(BUILD)/gen/resize_script.h: tools/embed-script src/volume/resize.sh src/volume/resize.jq
	@mkdir -p $(@D)
	@tools/embed-script --header resize_script src/volume/resize.sh > $@.new && mv $@.new $@

# Rewritten only when the version changed, so that a second `make` does nothing.
$(BUILD)/gen/version.h: FORCE
	@mkdir -p $(@D)
	@echo '#define NEOSET_VERSION "$(VERSION)"' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
FORCE:


-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

# --- checks ----------------------------------------------------------------------------------------------------
# What people type (check, demo, lint, bench, fuzz) first asks tools/deps for missing packages, then runs in a second make
# that finds them.
.PHONY: deps
deps: ## (develop) install what is missing (apt as root or with sudo), else print the line to type
	@tools/deps build

define with_deps
	@tools/deps $(1)
	@$(MAKE) --no-print-directory -j$(JOBS) $(2)
endef
JOBS ?= $(shell nproc)

.PHONY: check check-now
check: ## (start) build and run every test that needs no cluster and no root (SAN=address,undefined for sanitizers)
	$(call with_deps,build,check-now)
check-now: all tests $(if $(SAN)$(VARIANT),,crash-build)
	@tests/run --build $(BUILD) $(CHECK_ARGS)

.PHONY: crash-build nojournal-build
crash-build:
	@$(MAKE) --no-print-directory VARIANT=crash $(patsubst %,build/$(notdir $(CC))-crash/%,neoset-controller neosetctl story-sim)
nojournal-build:
	@$(MAKE) --no-print-directory VARIANT=nojournal build/$(notdir $(CC))-nojournal/neoset-controller

# The simulation: fresh seeds for MINUTES, and proof that it finds planted bugs. What breaks is replayed by its seed.
MINUTES ?= 1
.PHONY: sim soak planted
sim: $(BUILD)/sim ## (test) build the simulation (build/gcc/sim --help)
soak: ## (test) simulate fresh worlds for MINUTES=N, checking the invariants after every event
	$(call with_deps,build,sim)
	@$(BUILD)/sim --minutes $(MINUTES) $(SIM_ARGS)
planted: ## (test) show that the simulation finds each planted bug, and how many runs that took (PLANT=NAME: only this one)
	$(call with_deps,build,sim VARIANT=planted)
	@build/$(FLAVOUR)-planted/sim --planted $(if $(PLANT),--plant $(PLANT))

.PHONY: replay
replay: $(BUILD)/replay ## (test) run the completion rule over the traces of TRACES=DIR (default: those of a real kubelet)
	@$(BUILD)/replay $(or $(TRACES),tests/replay/traces)

.PHONY: quantity
quantity: $(BUILD)/quantity ## (test) hold our reading of sizes against TSV=FILE (default: what the reference implementation printed)
	@$(BUILD)/quantity $(or $(TSV),tests/volume/quantity.tsv)

.PHONY: lint
lint: ## (develop) floors, seam, formatting, clang-tidy, cppcheck, shellcheck, and a planted breach for each
	$(call with_deps,lint,lint-now)
lint-now: $(GENERATED)
	@tools/lint/all
	@tests/lint/run

.PHONY: format
format: ## (develop) let clang-format rewrite the sources
	@tools/lint/format --fix

.PHONY: demo
demo: ## (start) the main job on the embedded API server, the controller killed in the middle (CLUSTER=real: on a real one)
	$(call with_deps,build,all crash-build)
	@tools/demo $(if $(filter real,$(CLUSTER)),--real)

KUBERNETES ?= $(or $(NEOSET_E2E_KUBERNETES),1.36.3)
.PHONY: e2e e2e-node
e2e: ## (real) rollouts and stories on a real kube-apiserver, controller-manager and etcd (built once, several minutes; KUBERNETES="1.36.3 1.37.2": on both)
	$(call with_deps,build,all crash-build)
	@for version in $(KUBERNETES); do \
	    export NEOSET_E2E_KUBERNETES=$$version; \
	    for part in run adopt resize resize-killed; do tests/e2e/$$part; done; \
	    NEOSET_BUILD='$(abspath $(BUILD))' tests/stories/run --server real $(STORY); \
	done
e2e-node: ## (real) and on a real kubelet and containerd (root; says so and skips where it may not run; STORAGE=none|part of a story's name)
	$(call with_deps,build,all)
	@tests/e2e/run-node
	@tests/e2e/resize-node
	$(if $(filter none,$(STORAGE)),,@tests/e2e/storage-node $(STORAGE) || [ $$? = 77 ])
	@NEOSET_BUILD='$(abspath $(BUILD))' tests/stories/run --server node $(STORY)

.PHONY: stories
stories: ## (test) tell the stories of tests/stories in virtual time, then on kubesim (SERVER=sim|kubesim|real|node: on one; STORY=part of a name)
	$(call with_deps,build,all crash-build $(BUILD)/story-sim)
	@for server in $(or $(SERVER),sim kubesim); do NEOSET_BUILD='$(abspath $(BUILD))' tests/stories/run --server $$server $(STORY); done

.PHONY: crash-matrix
crash-matrix: ## (test) tell every story with the controller killed at each edge of each of its writes (STORY=part of a name)
	$(call with_deps,build,all crash-build)
	@NEOSET_BUILD='$(abspath $(BUILD))' tests/stories/crash-matrix $(STORY)

.PHONY: bench
bench: ## (measure) measure and print the figures as a table (SMOKE=1: small sizes, to see that it runs)
	$(call with_deps,build,all tests benches nojournal-build)
	@SMOKE=$(SMOKE) tests/bench/run --build $(BUILD)
.PHONY: bench-real
bench-real: ## (measure) the cost of a pod on a real control plane, beside kube-controller-manager's (SETS=200 REPLICAS=5)
	$(call with_deps,build,all benches)
	@NEOSET_BUILD=$(BUILD) SMOKE=$(SMOKE) tests/bench/real
	@NEOSET_BUILD=$(BUILD) tests/bench/apply

BENCH_SOURCES := $(wildcard tests/bench/*.c)
BENCHES := $(patsubst %.c,$(BUILD)/%,$(BENCH_SOURCES))
.PHONY: benches
benches: $(BENCHES)
$(BENCHES): $(BUILD)/%: $(BUILD)/obj/%.o $(TEST_LIBRARY) $(KUBESIM_LIBRARY) $(LIBRARY)
	$(link)

# Fuzzers: one program a floor, the parser chosen by FUZZ_MODE. FUZZ_SECONDS is for each parser.
FUZZ_SECONDS ?= 10
.PHONY: fuzz fuzzers
fuzz: ## (test) fuzz every parser for FUZZ_SECONDS (default 10) each, with clang
	$(call with_deps,lint,fuzz-now CC=clang SAN=fuzzer-no-link$(comma)address$(comma)undefined)
fuzz-now: $(patsubst %.c,$(BUILD)/%,$(FUZZ_SOURCES))
	@tests/fuzz/run --build $(BUILD) --seconds $(FUZZ_SECONDS)
$(patsubst %.c,$(BUILD)/%,$(FUZZ_SOURCES)): EXTRA_LIBS := -fsanitize=fuzzer
$(patsubst %.c,$(BUILD)/%,$(FUZZ_SOURCES)): $(BUILD)/%: $(BUILD)/obj/%.o $(LIBRARY)
	$(link)

# --- installing ------------------------------------------------------------------------------------------------
.PHONY: install uninstall
install: all ## (install) install below PREFIX (default /usr/local), honours DESTDIR
	@install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/neoset' '$(DESTDIR)$(PREFIX)/share/man/man1'
	@install -m 0755 $(PROGRAMS:%=$(BUILD)/%) '$(DESTDIR)$(PREFIX)/bin/'
	@ln -sf neosetctl '$(DESTDIR)$(PREFIX)/bin/kubectl-neoset'
	@install -m 0644 deploy/*.yaml '$(DESTDIR)$(PREFIX)/share/neoset/'
	@for program in $(PROGRAMS); do $(BUILD)/$$program --help-man > "$(BUILD)/$$program.1"; \
	    install -m 0644 "$(BUILD)/$$program.1" '$(DESTDIR)$(PREFIX)/share/man/man1/'; done
	@echo "installed below $(DESTDIR)$(PREFIX)"
uninstall: ## (install) remove what install put there
	@rm -f $(PROGRAMS:%='$(DESTDIR)$(PREFIX)/bin/%') '$(DESTDIR)$(PREFIX)/bin/kubectl-neoset' \
	    $(PROGRAMS:%='$(DESTDIR)$(PREFIX)/share/man/man1/%.1')
	@rm -rf '$(DESTDIR)$(PREFIX)/share/neoset'

.PHONY: clean
clean: ## (develop) remove everything that was built
	rm -rf build

# A target's words begin with the group that it is shown in.
HELP_GROUPS := start:first test:without_a_cluster real:real_servers measure:figures develop:to_work_on_it install:installing
.PHONY: help
help: ## (start) list the targets
	@for group in $(HELP_GROUPS); do \
	    echo "$${group#*:}:" | tr _ ' '; \
	    sed -nE "s/^([a-z][a-zA-Z0-9_-]*):.*## \($${group%%:*}\) (.*)/\1\t\2/p" $(MAKEFILE_LIST) | \
	        awk -F'\t' '{printf "  %-14s %s\n", $$1, $$2}'; \
	done
