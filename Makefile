# Build, test and install.  `make help` lists the targets.

VERSION := 0.1.0
PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build
CC      ?= cc

bindir = $(DESTDIR)$(PREFIX)/bin
libdir = $(DESTDIR)$(PREFIX)/lib
includedir = $(DESTDIR)$(PREFIX)/include
mandir = $(DESTDIR)$(PREFIX)/share/man
docdir = $(DESTDIR)$(PREFIX)/share/doc/libtrace
datadir = $(DESTDIR)$(PREFIX)/share/libtrace
bashdir = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
zshdir = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
fishdir = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wpointer-arith \
	-Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wundef -Werror
CPPFLAGS += -D_GNU_SOURCE -I. -I$(BUILD) -DTR_VERSION='"$(VERSION)"'
CFLAGS ?= -O2 -g
# Dependencies that hold however the build directory is written.
DEPFLAGS = -MMD -MP -MT '$(@:$(BUILD)/%=$$(BUILD)/%)'
TR_CFLAGS = -std=gnu11 $(WARN) -pthread $(DEPFLAGS)
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=all

# libarchive is loaded when it is needed: store/libarchive.h.
PKGS := zlib jansson libxxhash nettle libelf libdw
DEFLATE := $(shell pkg-config --exists libdeflate 2>/dev/null && echo libdeflate)
ifneq ($(DEFLATE),)
CPPFLAGS += -DHAVE_LIBDEFLATE=1
PKGS += libdeflate
endif
LIBS = $(shell pkg-config --libs $(PKGS)) -lZydis -pthread

TOOLS := trace-record trace-replay trace-dump trace-diff trace-verify trace-pack
GEN := $(BUILD)/libtrace/model/tables.c
LIB_SRC := $(wildcard libtrace/*/*.c)
LIB_ASM := $(wildcard libtrace/*/*.S)
# Code for traced programs: one block of position-independent bytes.
CALLS := $(BUILD)/libtrace/intercept/calls.o
CALLS_OBJ := $(patsubst %,$(BUILD)/libtrace/intercept/inject/%.o,enter call xsave end)
CALLS_CFLAGS = -std=gnu11 $(WARN) -O2 -ffreestanding -fno-builtin -fpie \
	-fno-stack-protector -fno-asynchronous-unwind-tables -fno-jump-tables \
	-mgeneral-regs-only -fcf-protection=none $(DEPFLAGS)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(LIB_ASM:%.S=$(BUILD)/%.o) \
	$(GEN:.c=.o) $(CALLS)
CLI_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard cmd/cli/*.c))
# Archives, so that a tool has in it only what it uses.
LIB := $(BUILD)/libtrace.a
CLI := $(BUILD)/cmd/cli.a
BINS := $(TOOLS:%=$(BUILD)/bin/%)
# The headers that libtrace/trace.h includes, and so its users need.
PUBLIC_HEADERS := libtrace/trace.h $(addprefix libtrace/,base/buf.h \
	base/error.h base/json.h base/sha256.h base/table.h format/check.h \
	format/event.h format/manifest.h format/reader.h model/canon.h \
	model/compare.h model/describe.h model/paths.h model/redact.h \
	model/syscalls.h record/record.h replay/inspect.h replay/replay.h \
	store/archive.h store/have.h store/open.h store/prune.h)
COMPLETIONS := $(foreach t,$(TOOLS),$(BUILD)/completions/bash/$(t) \
	$(BUILD)/completions/zsh/_$(t) $(BUILD)/completions/fish/$(t).fish)
UNITS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/%,$(wildcard tests/fuzz/*.c))
WORKLOADS := $(patsubst tests/workloads/%.c,$(BUILD)/workloads/%,$(wildcard tests/workloads/*.c)) \
	$(BUILD)/workloads/async_loops-O0 $(BUILD)/workloads/async_loops-O3 \
	$(BUILD)/workloads/spins-O0 $(BUILD)/workloads/spins-O3
DEPS := $(BUILD)/.have-dependencies
# For targets whose output should not drown in compiler lines.
QUIET_MAKE = $(MAKE) -s --no-print-directory \
	$(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

all: $(BINS) $(COMPLETIONS) ## build the six tools, the library, completions

$(BUILD)/bin/%: $(BUILD)/cmd/%.o $(CLI) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(LIB): $(LIB_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(CLI): $(CLI_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/%.o: %.c | $(DEPS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TR_CFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/%.o: %.S | $(DEPS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TR_CFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/%.o: $(BUILD)/%.c | $(DEPS)
	$(CC) $(CPPFLAGS) $(TR_CFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/libtrace/intercept/inject/%.o: libtrace/intercept/inject/%.c | $(DEPS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CALLS_CFLAGS) -c -o $@ $<

$(CALLS): $(CALLS_OBJ)
	$(LD) -r -o $@.tmp $(CALLS_OBJ)
	@# Data beside the code would not be where the code is placed.
	@! objdump -h $@.tmp | grep -E ' \.(rodata|data|bss)[^ ]* +0*[1-9a-f]' || \
		{ echo 'libtrace/intercept/inject has data' >&2; exit 1; }
	@! nm -u $@.tmp | grep . || \
		{ echo 'libtrace/intercept/inject needs a library' >&2; exit 1; }
	objcopy --rename-section .text=.rodata.calls,alloc,load,readonly,data,contents $@.tmp $@

$(GEN): formats/syscalls.tbl formats/ioctls.tbl formats/flags.tbl libtrace/model/generate.awk
	@mkdir -p $(@D)
	awk -f libtrace/model/generate.awk formats/flags.tbl formats/ioctls.tbl formats/syscalls.tbl > $@.tmp
	mv $@.tmp $@

# Completions follow from the tools' own option tables.
$(BUILD)/completions/bash/%: $(BUILD)/bin/% completions/generate
	@mkdir -p $(@D)
	$< --dump-options | awk -v shell=bash -f completions/generate > $@.tmp
	mv $@.tmp $@

$(BUILD)/completions/zsh/_%: $(BUILD)/bin/% completions/generate
	@mkdir -p $(@D)
	$< --dump-options | awk -v shell=zsh -f completions/generate > $@.tmp
	mv $@.tmp $@

$(BUILD)/completions/fish/%.fish: $(BUILD)/bin/% completions/generate
	@mkdir -p $(@D)
	$< --dump-options | awk -v shell=fish -f completions/generate > $@.tmp
	mv $@.tmp $@

# Say in one line what is missing before the first compiler error does.
$(DEPS): tests/setup.sh
	@sh tests/setup.sh --probe
	@mkdir -p $(@D)
	@touch $@

deps: ## install what building needs (apt)
	@sh tests/setup.sh build

check-deps: ## install what building and testing need (apt)
	@sh tests/setup.sh build check

$(BUILD)/tests/%: tests/unit/%.c $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TR_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LIB) $(LIBS)

$(BUILD)/tests/%: tests/fuzz/%.c $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TR_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< $(LIB) $(LIBS)

WORKLOAD_FLAGS = -D_GNU_SOURCE -std=gnu11 -O2 -g -Wall -Wextra -pthread \
	$(DEPFLAGS)

$(BUILD)/workloads/%: tests/workloads/%.c | $(DEPS)
	@mkdir -p $(@D)
	$(CC) $(WORKLOAD_FLAGS) -o $@ $<

$(BUILD)/workloads/async_loops-O0 $(BUILD)/workloads/async_loops-O3: \
$(BUILD)/workloads/async_loops-O%: tests/workloads/async_loops.c | $(DEPS)
	@mkdir -p $(@D)
	$(CC) $(WORKLOAD_FLAGS) -O$* -o $@ $<

$(BUILD)/workloads/spins-O0 $(BUILD)/workloads/spins-O3: \
$(BUILD)/workloads/spins-O%: tests/workloads/spins.c | $(DEPS)
	@mkdir -p $(@D)
	$(CC) $(WORKLOAD_FLAGS) -O$* -o $@ $<

units: $(UNITS) $(BUILD)/tests/alter $(FUZZERS) ## build the C unit tests

workloads: $(WORKLOADS) ## build the programs that tests record

sanitized: ## build the tools and the C unit tests with ASan and UBSan
	$(MAKE) BUILD=$(BUILD)/asan CFLAGS='$(SANITIZE)' all units

# What they find goes to tests/fuzz/corpus, which the tests read.
FUZZ_SECONDS ?= 60
fuzz: ## build the fuzzers (clang) and run each for FUZZ_SECONDS
	$(MAKE) BUILD=$(BUILD)/fuzz CC=clang LDFLAGS=-fsanitize=fuzzer \
		CFLAGS='$(SANITIZE) -fsanitize=fuzzer-no-link -DFUZZING_ENGINE' \
		$(FUZZERS:$(BUILD)/%=$(BUILD)/fuzz/%)
	for f in $(FUZZERS:$(BUILD)/tests/fuzz_%=%); do \
		mkdir -p $(BUILD)/fuzz/found/$$f && cd $(BUILD)/fuzz/found && \
		../tests/fuzz_$$f -max_total_time=$(FUZZ_SECONDS) -timeout=20 \
			$$f $(CURDIR)/tests/fuzz/corpus/$$f || exit 1; cd $(CURDIR); done

check: ## install what is missing, build, run the tests
	@sh tests/setup.sh build check
	@+$(QUIET_MAKE) all units workloads
	@+$(QUIET_MAKE) sanitized
	@BUILD='$(BUILD)' tests/run.sh

check-long: ## record and replay many programs; check with --no-intercept
	@sh tests/setup.sh build check long
	@+$(QUIET_MAKE) all units workloads
	@BUILD='$(BUILD)' tests/run.sh long stops

check-all: ## check and check-long: every test
	@sh tests/setup.sh build check long
	@+$(QUIET_MAKE) all units workloads
	@+$(QUIET_MAKE) sanitized
	@BUILD='$(BUILD)' tests/run.sh unit sanitized lint bats long stops

demo: ## install what is missing, build, show the tools at work
	@sh tests/setup.sh build demo
	@+$(QUIET_MAKE) all
	@BUILD='$(BUILD)' tests/demo.sh

lint: all ## check scripts, manuals, layering, options against manuals
	@BUILD='$(BUILD)' tests/lint.sh

bench: all workloads $(BUILD)/tests/alter ## measure against native runs
	@BUILD='$(BUILD)' tests/bench/run

$(BUILD)/libtrace.pc: Makefile
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' \
		'Name: libtrace' \
		'Description: record and replay of program executions' \
		'Version: $(VERSION)' \
		'Requires: $(PKGS)' \
		'Cflags: -I$${prefix}/include' \
		'Libs: -L$${prefix}/lib -ltrace -lZydis -pthread' > $@

install: all $(BUILD)/libtrace.pc ## install below DESTDIR/PREFIX
	install -d $(bindir) $(libdir)/pkgconfig $(docdir) $(datadir) \
		$(mandir)/man1 $(mandir)/man3 $(mandir)/man5 $(mandir)/man7 \
		$(bashdir) $(zshdir) $(fishdir)
	install -m 755 $(BINS) $(bindir)
	install -m 644 $(LIB) $(libdir)
	install -m 644 $(BUILD)/libtrace.pc $(libdir)/pkgconfig
	for h in $(PUBLIC_HEADERS); do \
		install -D -m 644 $$h $(includedir)/$$h || exit 1; done
	for s in 1 3 5 7; do \
		install -m 644 man/*.$$s $(mandir)/man$$s || exit 1; done
	install -m 644 $(BUILD)/completions/bash/* $(bashdir)
	install -m 644 $(BUILD)/completions/zsh/* $(zshdir)
	install -m 644 $(BUILD)/completions/fish/* $(fishdir)
	for f in README.md formats/*.md; do \
		[ ! -f $$f ] || install -m 644 $$f $(docdir) || exit 1; done
	install -m 644 formats/*.json formats/magic $(datadir)
	install -d $(datadir)/forensics
	install -m 644 tests/forensics/*.jq $(datadir)/forensics

uninstall: ## remove what install put there
	rm -f $(TOOLS:%=$(bindir)/%) $(libdir)/libtrace.a \
		$(libdir)/pkgconfig/libtrace.pc $(TOOLS:%=$(bashdir)/%) \
		$(TOOLS:%=$(zshdir)/_%) $(TOOLS:%=$(fishdir)/%.fish)
	for s in 1 3 5 7; do for m in man/*.$$s; do \
		rm -f $(mandir)/man$$s/$${m#man/}; done; done
	rm -rf $(includedir)/libtrace $(docdir) $(datadir)

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' Makefile

clean: ## remove everything that was built
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all deps check-deps units workloads sanitized fuzz check check-long \
	check-all demo lint bench install uninstall help clean
.SECONDARY:
.DELETE_ON_ERROR:
