# SPDX-License-Identifier: Apache-2.0
# neoset: everything is built out of tree, below build/. `make help` lists the targets.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

# --- where and how ---------------------------------------------------------------------------------------------
# SAN=address,undefined  build with sanitizers        CC=clang  build with another compiler
# VARIANT=crash          with crash points (tests)    VARIANT=nojournal  with a journal that does nothing (bench)
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
             $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null | sed 's/-I/-isystem /g')
LDLIBS = $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -lm -lpthread
LDFLAGS += -Wl,--as-needed
# -Wnull-dereference follows paths that sanitizer instrumentation makes up.
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-null-dereference)
VARIANT_FLAGS := $(if $(filter crash,$(VARIANT)),-DNEOSET_CRASH_POINTS) $(if $(filter nojournal,$(VARIANT)),-DNEOSET_NO_JOURNAL)

# --- what ------------------------------------------------------------------------------------------------------
PROGRAMS := neoset-controller neoset-audit neosetctl
PROGRAM_SOURCES := $(PROGRAMS:%=src/cmd/%.c)
LIBRARY_SOURCES := $(filter-out $(PROGRAM_SOURCES),$(wildcard src/*/*.c))
KUBESIM_SOURCES := $(filter-out tools/kubesim/main.c,$(wildcard tools/kubesim/*.c))
TEST_LIBRARY_SOURCES := $(wildcard tests/lib/*.c)
TEST_SOURCES := $(wildcard tests/unit/*/test_*.c tests/sim/test_*.c tests/power/test_*.c tests/hostile/test_*.c)
FUZZ_SOURCES := $(wildcard tests/fuzz/fuzz_*.c)

object = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
GENERATED := $(BUILD)/gen/journal_sql.h $(BUILD)/gen/version.h
LIBRARY := $(BUILD)/libneoset.a
KUBESIM_LIBRARY := $(BUILD)/libkubesim.a
TEST_LIBRARY := $(BUILD)/libtest.a
PROGRAM_FILES := $(PROGRAMS:%=$(BUILD)/%) $(BUILD)/kubesim
TESTS := $(patsubst %.c,$(BUILD)/%,$(TEST_SOURCES))

.PHONY: all
all: $(PROGRAM_FILES) $(BUILD)/replay ## build the programs (default)

.PHONY: tests
tests: $(TESTS) ## build the tests

$(BUILD)/obj/%.o: %.c $(GENERATED)
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

define archive
	@mkdir -p $(@D)
	@rm -f $@
	@ar rcs $@ $^
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
$(BUILD)/replay: $(call object,tests/replay/replay.c) $(LIBRARY)
	$(link)
$(TESTS): EXTRA_LIBS := -lcmocka
$(TESTS): $(BUILD)/%: $(BUILD)/obj/%.o $(TEST_LIBRARY) $(KUBESIM_LIBRARY) $(LIBRARY)
	$(link)

$(BUILD)/gen/journal_sql.h: tools/embed-sql $(wildcard migrations/*.sql schema/*.sql)
	@mkdir -p $(@D)
	@tools/embed-sql migrations > $@.new && mv $@.new $@

# Rewritten only when the version changed, so that a second `make` does nothing.
$(BUILD)/gen/version.h: FORCE
	@mkdir -p $(@D)
	@echo '#define NEOSET_VERSION "$(VERSION)"' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
FORCE:


-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z][a-zA-Z0-9_-]*:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'
