# Build, test and install.  `make help` lists the targets.

VERSION := 0.1.0
PREFIX  ?= /usr/local
BUILD   ?= build
CC      ?= cc

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wold-style-definition -Wpointer-arith \
	-Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wundef -Werror
CPPFLAGS += -D_GNU_SOURCE -I. -I$(BUILD) -DTR_VERSION='"$(VERSION)"'
CFLAGS ?= -O2 -g
TR_CFLAGS := -std=gnu11 $(WARN) -pthread -MMD -MP

PKGS := zlib jansson libarchive libxxhash libcrypto libelf
DEFLATE := $(shell pkg-config --exists libdeflate 2>/dev/null && echo libdeflate)
ifneq ($(DEFLATE),)
CPPFLAGS += -DHAVE_LIBDEFLATE=1
PKGS += libdeflate
endif
LIBS = $(shell pkg-config --libs $(PKGS)) -lZydis -pthread

TOOLS := trace-record trace-replay trace-dump trace-diff trace-verify trace-pack
GEN := $(BUILD)/libtrace/model/tables.c
LIB_SRC := $(wildcard libtrace/*/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(GEN:.c=.o)
CLI_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard cmd/cli/*.c))
LIB := $(BUILD)/libtrace.a

all: $(TOOLS:%=$(BUILD)/bin/%)

$(BUILD)/bin/%: $(BUILD)/cmd/%.o $(CLI_OBJ) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(LIB): $(LIB_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TR_CFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/%.o: $(BUILD)/%.c
	$(CC) $(CPPFLAGS) $(TR_CFLAGS) $(CFLAGS) -c -o $@ $<

$(GEN): formats/syscalls.tbl formats/ioctls.tbl formats/flags.tbl libtrace/model/generate.awk
	@mkdir -p $(@D)
	awk -f libtrace/model/generate.awk formats/flags.tbl formats/ioctls.tbl formats/syscalls.tbl > $@.tmp
	mv $@.tmp $@

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all clean
.SECONDARY:
