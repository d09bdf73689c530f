# Eddy. `make` builds, `make test` tests, `make demo` learns digits; `make help` lists the rest.
# Settings: all can be given on the command line, e.g. `make CC=clang SAN=address,undefined V=1`.
CC      = gcc
PREFIX  = /usr/local
BUILD   = build
OPT     = -O3
SAN     =
V       =
DATA    =

VERSION := 0.1.0
SOVERSION := 0

# Every mode has a folder of its own for its objects.
MODE := $(notdir $(CC))$(if $(SAN),-$(subst $(comma),-,$(SAN)))
comma := ,
OBJ  := $(BUILD)/$(MODE)

CONFIG := $(BUILD)/config.mk
ifneq ($(filter-out clean help format,$(or $(MAKECMDGOALS),all)),)
include $(CONFIG)
endif

FLOORS   := tensor ops/kernels ops autodiff optim nn data
SOURCES  := $(wildcard $(addsuffix /*.c,$(FLOORS)))
SIMD     := $(filter %.simd.c,$(SOURCES))
MACHINE  := $(shell uname -m)
ISAS     := baseline $(if $(filter x86_64,$(MACHINE)),avx2 avx512)
OBJECTS  := $(SOURCES:%.c=$(OBJ)/%.o) $(foreach isa,$(ISAS),$(SIMD:%.simd.c=$(OBJ)/%.$(isa).o))
TESTS    := $(wildcard tests/test_*.c)
PROGRAMS := $(TESTS:%.c=$(OBJ)/%) $(patsubst %.c,$(OBJ)/%,$(wildcard bench/bench_*.c))

WARN     := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-psabi -Werror=implicit
CFLAGS   = $(OPT) -g
ALL_CFLAGS = -std=gnu11 $(WARN) -fPIC -fvisibility=hidden -fopenmp -fno-math-errno -fno-trapping-math -ffp-contract=off \
             -I. $(DEPS_CFLAGS) $(CFLAGS) $(SANFLAGS) $(SIMDFLAGS) -MMD -MP
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer -DEDDY_SANITIZED)
LIBS     = $(DEPS_LIBS) -lm -lpthread

# What a *.simd.c file is compiled with for each instruction set; see ops/kernels/isa.h.
ISA_baseline := -DISA=baseline
ISA_avx2     := -DISA=avx2 -mavx2 -mfma -mf16c
ISA_avx512   := -DISA=avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512

Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)')

.PHONY: all lib test demo bench install clean help format check
.SECONDARY:
all: lib

lib: $(OBJ)/libeddy.a $(OBJ)/libeddy.so

$(CONFIG): tools/setup.sh
	$(Q)CC='$(CC)' tools/setup.sh $@

$(OBJ)/%.o: %.c
	$(call say,CC      $<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

define isa_rule
$$(OBJ)/%.$(1).o: SIMDFLAGS := $$(ISA_$(1)) -Wno-unused-function
$$(OBJ)/%.$(1).o: %.simd.c
	$$(call say,CC      $$< [$(1)])
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -c $$< -o $$@
endef
$(foreach isa,$(ISAS),$(eval $(call isa_rule,$(isa))))

# One relocatable object whose private names are made local: the archive exports what the header declares, nothing else.
$(OBJ)/libeddy.a: $(OBJECTS)
	$(call say,AR      $@)
	$(Q)rm -f $@
	$(Q)ld -r -o $(OBJ)/eddy.o $^
	$(Q)objcopy --localize-hidden $(OBJ)/eddy.o
	$(Q)ar rcs $@ $(OBJ)/eddy.o

$(OBJ)/libeddy.so: $(OBJECTS)
	$(call say,LD      $@)
	$(Q)$(CC) -shared -fopenmp $(SANFLAGS) -Wl,-soname,libeddy.so.$(SOVERSION) -o $@ $^ $(LIBS)

# Tests and benches see the private names too: they are linked with the objects themselves.
$(OBJ)/tests/%: tests/%.c $(OBJECTS)
	$(call say,CC      $<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(CMOCKA_CFLAGS) -o $@ $< $(OBJECTS) $(LIBS) $(CMOCKA_LIBS)

$(OBJ)/bench/%: bench/%.c $(OBJECTS)
	$(call say,CC      $<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $< $(OBJECTS) $(LIBS)

clean:
	rm -rf $(BUILD)

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

-include $(shell test -d $(OBJ) && find $(OBJ) -name '*.d')
