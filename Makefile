# Eddy. `make` builds, `make test` tests, `make demo` learns digits; `make help` lists the rest.
# Settings, all to be given on the command line: make CC=clang SAN=address,undefined V=1 test
CC     = gcc
# The C++ compiler, for the tests; the library needs none.
CXX    = $(patsubst cc,c++,$(subst gcc,g++,$(subst clang,clang++,$(CC))))
PREFIX = /usr/local
BUILD  = build
# Kernels and what every call of an op passes through take -O3 for -O2.
OPT    = -O2
# Sanitizers, comma-separated; a folder of objects of their own.
SAN    =
# 1: the test build that hurts (tensor/hard.h); a folder of objects of its own too.
HARD   =
# 0: without what reads .npz files that are compressed by LZMA, by bzip2.
LZMA   =
BZIP2  =
# 0: without HDF5, which .keras files take; it is left out too where its package is missing.
HDF5   =
# The instruction sets of x86-64 that are built: 'baseline' or 'baseline avx2'; empty: avx512 too.
ISAS   =
# 1: show the commands.
V      =
# Folder with MNIST in IDX form, for the demo.
DATA   =
# The programs that `make test` runs: ONLY='test_shape test_ops'; empty: all.
ONLY   =
# What `make test` runs the programs by; where CC compiles for another machine, its qemu.
EMULATOR =
# The compiler of programs that the build itself runs, where CC compiles for another machine.
HOST_CC  = $(CC)
# How long `make fuzz` runs each target.
SECONDS = 60
# Where make install-module puts eddy.so for Lua.
MODULE_DIR = $(PREFIX)/lib/lua/5.4
# Python with tensorflow and safetensors, for interop; empty: looked for.
PEERS  =

# As many jobs at a time as there are cores, unless -j says how many.
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif

# Said in tensor/version.h alone. While the major version is 0, a minor one may change the ABI, so
# that the library's soname has both.
version    = $(shell sed -n 's/^\#define ED_VERSION_$(1) //p' tensor/version.h)
SOVERSION := $(call version,MAJOR).$(call version,MINOR)
VERSION   := $(SOVERSION).$(call version,PATCH)

comma := ,
space := $(subst x,,x x)
$(if $(word 2,$(BUILD)),$(error eddy: BUILD='$(BUILD)' has a space, which a target of make cannot have))
$(if $(word 2,$(OBJ)),$(error eddy: OBJ='$(OBJ)' has a space, which a target of make cannot have))
$(if $(findstring ',$(CC))$(findstring ",$(CC)),$(error eddy: CC=$(CC) has quotes, which a folder of objects cannot have))

WITHOUT := $(strip $(if $(filter 0,$(LZMA)),LZMA) $(if $(filter 0,$(BZIP2)),BZIP2) $(if $(filter 0,$(HDF5)),HDF5))

# A folder of objects for each compiler with its options ("ccache gcc -m64": ccache-gcc-m64) and for
# each kind of build.
CC_NAME := $(subst $(space)-,-,$(strip $(foreach w,$(CC),$(if $(filter -%,$(w)),$(subst /,_,$(w)),$(notdir $(w))))))
CC_NAME := $(subst =,_,$(subst :,_,$(subst $(comma),_,$(subst $(space),-,$(CC_NAME)))))
OBJ     := $(BUILD)/$(CC_NAME)$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(HARD),-hard)$(if $(WITHOUT),-without-$(subst $(space),-,$(WITHOUT)))$(if $(ISAS),-$(subst $(space),-,$(strip $(ISAS))))

# What the packages say of themselves: each goal needs those of its parts. Only `make deps`, and
# what begins with it, installs what is missing.
SETUP := CC='$(CC)' CXX='$(CXX)' tools/setup.sh
GOALS := $(filter-out clean help doc format deps ci-long fuzz objects,$(or $(MAKECMDGOALS),all))
PARTS := $(if $(GOALS),library)
NO_LUA := lib configure demo bench bench-check bench-instructions interop coverage accuracy $(if $(filter command%,$(origin LUA_CFLAGS)),module install-module)
PARTS += $(if $(filter-out $(NO_LUA),$(GOALS)),lua)
PARTS += $(if $(filter test test-programs,$(GOALS))$(findstring /tests/,$(GOALS)),tests)
ifneq ($(strip $(PARTS)),)
include $(PARTS:%=$(OBJ)/%.mk)
endif

# The folders of the library, lowest first: a file includes from its own folder and those before it.
FLOORS  := tensor track io ops/kernels ops autodiff optim nn data train model
SOURCES := $(wildcard $(addsuffix /*.c,$(FLOORS)) nn/*/*.c)
FAMILIES := create math activation linalg reduction array indexing sparse convolution normalization image losses sequence random variables
FAMILIES := $(FAMILIES:%=ops/%.h)
OPTIM_KINDS := optim/constraints.h optim/schedules.h optim/optim.h
NN_KINDS := nn/initializers.h nn/regularizers.h nn/layer.h $(patsubst %,nn/layers/%.h,core convolution pooling normalization regularization reshaping merging activations recurrent attention preprocessing augmentation) nn/losses.h nn/metrics.h
KINDS   := $(OPTIM_KINDS) $(NN_KINDS)
MODEL_KINDS := model/model.h
HEADERS := eddy.h tensor/version.h tensor/types.h tensor/schema.h tensor/tensor.h track/track.h io/io.h ops/op.h $(FAMILIES) ops/ops.h autodiff/autodiff.h autodiff/control.h $(KINDS) optim/lbfgs.h nn/graph.h nn/nn.h data/data.h train/train.h $(MODEL_KINDS)
CALLS   := $(OBJ)/include/eddy/ops/calls.h
MACROS  := $(CALLS) $(OBJ)/include/eddy/optim/kinds.h $(OBJ)/include/eddy/nn/kinds.h $(OBJ)/include/eddy/model/kinds.h
PUBLIC  := $(patsubst $(OBJ)/include/eddy/eddy.h,$(OBJ)/include/eddy.h,$(HEADERS:%=$(OBJ)/include/eddy/%)) \
           $(MACROS) $(CALLS)pp $(OBJ)/include/eddy/kinds.hpp $(OBJ)/include/eddy/places.h $(OBJ)/include/eddy/plain.h $(OBJ)/include/eddy.hpp

# A *.simd.c file is compiled once plainly and once for each instruction set; see ops/kernels/isa.h.
ALL_SETS     := $(strip baseline $(if $(filter x86_64-%,$(MACHINE)),avx2 avx512))
SETS         := $(or $(strip $(ISAS)),$(ALL_SETS))
$(if $(and $(MACHINE),$(subst x$(wordlist 1,$(words $(SETS)),$(ALL_SETS))x,,x$(SETS)x)),$(error eddy: ISAS='$(ISAS)' is not the beginning of '$(ALL_SETS)'))
ISA_baseline := -DISA=baseline
# At -O1 gcc leaves out the vzeroupper behind wide vectors unless it is told: all that runs after
# them, exp of the C library too, then takes up to thirty times as long on some processors.
WIDE         := -mavx2 -mfma -mf16c $(if $(CLANG),,-fexpensive-optimizations)
ISA_avx2     := -DISA=avx2 $(WIDE)
ISA_avx512   := -DISA=avx512 $(WIDE) -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512

simd_objects = $(1:%.c=$(OBJ)/%.o) $(foreach isa,$(SETS),$(patsubst %.simd.c,$(OBJ)/%.$(isa).o,$(filter %.simd.c,$(1))))

OBJECTS  := $(call simd_objects,$(SOURCES))

# Kernels take -O3 for -O2, and so does what every call of an op passes through. Families that move
# more than they compute would get larger by it, and no faster.
FAST    = $(OPT:-O2=-O3)
$(patsubst %,$(OBJ)/%.o,tensor/copy tensor/memory tensor/scope tensor/tensor ops/execute ops/distributions ops/elementwise ops/shape ops/slice ops/sort autodiff/gradient autodiff/tape lua/garbage lua/handle lua/ops ops/kernels/factor): SIMDFLAGS += $(FAST)
# The inner loop of a product or a maximum is a hundred bytes: where it begins in a cache line is worth up to 20 %.
$(OBJ)/ops/kernels/gemm.%.o $(OBJ)/ops/reduce.%.o: FAST = $(OPT:-O2=-O3) -falign-loops=64
# The sanitizers' tests spend much of their time in tiles of products, which -O1 makes twice as slow there.
$(OBJ)/ops/kernels/gemm_tile.%.o: FAST = $(if $(filter -O1,$(OPT)),-O2,$(OPT:-O2=-O3))
# Loops over vectors compute several at a time (ops/vector_loops.typed.h): mixed, their chains of operations take up to 30 % less.
$(patsubst %,$(OBJ)/ops/%.%.o,activation activation_keras compound log_cosh math quotients): FAST = $(OPT:-O2=-O3) $(if $(CLANG),,-fschedule-insns)
$(OBJ)/ops/cast.%.o $(OBJ)/ops/compare.%.o: FAST = $(OPT) $(if $(CLANG),,-ftree-vectorize -fvect-cost-model=dynamic)

TESTS    := $(patsubst %.c,$(OBJ)/%,$(if $(ONLY),$(ONLY:%=tests/%.c),$(wildcard tests/test_*.c)))
TEST_AID := $(call simd_objects,$(filter-out tests/test_%.c tests/shared_%.c,$(wildcard tests/*.c)))
EDDY_BENCH  := $(OBJ)/bench/eddy_bench
FIRST_STEPS := $(OBJ)/bench/first_step_static $(OBJ)/bench/first_step_shared
PROGRAM  := $(OBJ)/programs/eddy-ckpt
LUA_PART := $(patsubst %.c,$(OBJ)/%.o,$(wildcard lua/*.c))
LUA_ALL  := $(LUA_PART) $(patsubst %.c,$(OBJ)/%.o,$(wildcard lua/repl/*.c))
REPL     := $(OBJ)/lua/eddy
MODULE   := $(OBJ)/lua/eddy.so

WARN       := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-psabi -Wno-missing-field-initializers \
              $(if $(CLANG),-Wno-initializer-overrides,-Wno-override-init)
# Every function has a section, so that a program linked with --gc-sections has only what it uses.
CFLAGS      = $(OPT) $(DEBUG) -ffunction-sections -fdata-sections
# Of kernels and of what is sanitized debuggers know the lines: names of variables would take a third of the build's time.
DEBUG       = $(if $(SAN),-g1,-g)
# gcc 12 breaks down at plain -O1 over a vector selection whose comparison went elsewhere.
SANFLAGS   := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer -DEDDY_SANITIZED $(if $(CLANG),,-ftree-vrp))
ALL_CFLAGS  = -std=gnu11 -D_GNU_SOURCE $(WARN) -fPIC -fvisibility=hidden -fopenmp-simd -fno-math-errno -fno-trapping-math \
              -ffp-contract=off $(PLACES) -I. -I$(OBJ)/include/eddy $(DEPS_CFLAGS) $(CFLAGS) $(SANFLAGS) \
              $(if $(HARD),-DEDDY_HARD) $(if $(ISAS),-DISA_SETS=$(words $(SETS))) $(SIMDFLAGS)
LIBS        = $(DEPS_LIBS) -lm -lpthread
# Only programs' calls say where they stand (tensor/types.h).
PLACES      = -DEDDY_NO_PLACES
# Threads that used the library run its code when they end: dlclose must not take it away.
STAYS      := -Wl,-z,nodelete

Q    := $(if $(V),,@)
say   = $(if $(V),,@echo '  $(1)')

.PHONY: all lib objects configure deps test test-programs ci-long interop fuzz fuzz_program demo bench bench-check bench-instructions coverage accuracy module install install-module install-strip check doc format clean help
.SECONDARY:
all: lib $(PROGRAM) $(REPL) $(MODULE)

help:
	@echo 'make                      all of it: the library, eddy for Lua and its prompt, eddy-ckpt'
	@echo 'make lib                  the library alone: $(OBJ)/libeddy.a and .so'
	@echo 'make deps                 installs the packages that are missing, through apt; make demo and make test do it too'
	@echo 'make test                 builds and runs the tests (EDDY_DATA=dir: with MNIST from dir/mnist too)'
	@echo 'make test-programs        builds them alone, to be run elsewhere'
	@echo 'make ci-long              what takes hours: the thread sanitizer, clang, HARD=1, fuzzing'
	@echo 'make interop              files there and back with the TensorFlow, Keras, NumPy and safetensors of PEERS=python'
	@echo 'make fuzz [SECONDS=600]   readers of files against damaged ones, Lua against any calls, by clang with its libFuzzer'
	@echo 'make demo [DATA=dir]      trains a network on digits: MNIST from dir, or drawn ones'
	@echo 'make bench                times Eddy beside whichever of PyTorch, TensorFlow, JAX and NumPy are installed; ONLY=conv,mm QUICK=1 THREADS=2 PEERS=python JSON=file MARKDOWN=file'
	@echo 'make bench-check          which workloads became slower between OLD=file and NEW=file of make bench JSON=file; THRESHOLD=1.1'
	@echo 'make bench-instructions   counts the instructions of a few workloads by valgrind, against those recorded'
	@echo 'make check                layout, includes, exported names, comments of public declarations (with doxygen), mistakes that must not compile, odd compilers and missing packages, programs against an installation, by hand and by CMake, what luarocks makes'
	@echo 'make coverage             a table of all ops: dtypes, gradients, what the tests check; docs/ops.md is the same'
	@echo 'make accuracy             docs/accuracy.md: elementwise functions over all float32 numbers, some hours'
	@echo 'make doc                  HTML and man pages of the public headers, by doxygen; make install then installs them'
	@echo 'make install PREFIX=dir   headers, libraries, eddy.pc, eddy, eddy.so for Lua, eddy-ckpt; install-strip: without debug information'
	@echo 'settings: CC CXX OPT SAN=address,undefined HARD=1 LZMA=0 BZIP2=0 HDF5=0 ISAS=baseline ONLY=test_ops EMULATOR V=1 BUILD PREFIX PEERS SECONDS'

# ---- Building

lib: $(OBJ)/libeddy.a $(OBJ)/libeddy.so $(PUBLIC)

# The public headers as programs include them: eddy.h, beside it a folder with the others. They
# include each other by paths from their own place, so that no folder of a program's can come
# before, and are system headers, whose macros the compiler does not warn of.
$(OBJ)/include/eddy.h: TO = eddy/
$(OBJ)/include/eddy/%: TO = ../
$(OBJ)/include/eddy/nn/layers/%: TO = ../../
as_public = $(Q)mkdir -p $(@D) && awk '{ sub(/^\#include "/, "&$(TO)") } 1; /^\#define EDDY_([A-Z]+_)*H$$/ { print "\n\#pragma GCC system_header" }' $< > $@
$(OBJ)/include/eddy.h: eddy.h
	$(as_public)
$(OBJ)/include/eddy/%.h: %.h
	$(as_public)

# Made from the headers of ops: how they are called, from C with numbers and options by name, and from C++.
$(CALLS): $(FAMILIES) tools/calls.sh
	$(Q)mkdir -p $(@D) && tools/calls.sh c $(FAMILIES) > $@
$(CALLS)pp: $(FAMILIES) tools/calls.sh
	$(Q)mkdir -p $(@D) && tools/calls.sh cpp $(FAMILIES) > $@

# Made from the headers of kinds: how their objects are made.
$(OBJ)/include/eddy/optim/kinds.h: $(OPTIM_KINDS) tools/kinds.sh
	$(Q)mkdir -p $(@D) && tools/kinds.sh c $(OPTIM_KINDS) > $@
$(OBJ)/include/eddy/nn/kinds.h: $(NN_KINDS) tools/kinds.sh
	$(Q)mkdir -p $(@D) && tools/kinds.sh c $(NN_KINDS) > $@
$(OBJ)/include/eddy/model/kinds.h: $(MODEL_KINDS) tools/kinds.sh
	$(Q)mkdir -p $(@D) && tools/kinds.sh c $(MODEL_KINDS) > $@
$(OBJ)/include/eddy/kinds.hpp: $(KINDS) $(MODEL_KINDS) tools/kinds.sh
	$(Q)mkdir -p $(@D) && tools/kinds.sh cpp $(NN_KINDS) $(OPTIM_KINDS) $(MODEL_KINDS) > $@

# Made from the others: where calls stand (tensor/types.h), and what C++ must not see, macros that
# begin with ed_ and take arguments.
$(OBJ)/include/eddy/places.h: $(HEADERS) $(MACROS) tools/places.sh
	$(Q)mkdir -p $(@D) && tools/places.sh $(filter %.h,$^) > $@
$(OBJ)/include/eddy/plain.h: $(HEADERS) $(MACROS)
	$(Q)mkdir -p $(@D) && sed -n 's/^#define \(ed_[a-z0-9_]*\)(.*/#undef \1/p' $^ > $@
$(OBJ)/include/eddy.hpp: eddy.hpp
	$(Q)mkdir -p $(@D) && cp $< $@

$(OBJ)/library.mk $(OBJ)/lua.mk $(OBJ)/tests.mk: tools/setup.sh
	$(Q)$(SETUP) $(if $(filter demo test,$(GOALS)),--install) $(basename $(@F)) $@

# The library's objects alone, for a compiler whose libraries are not there: MACHINE and DEPS_CFLAGS
# are to be given.
objects: $(OBJECTS)

# For CMake: what the library needs is in $(OBJ)/library.mk.
configure: $(OBJ)/library.mk

deps:
	$(Q)for part in library lua tests; do $(SETUP) --install $$part $(OBJ)/$$part.mk || exit 1; done

$(OBJ)/io/zip.o $(OBJ)/tests/test_npy.o: SIMDFLAGS += $(WITHOUT:%=-DEDDY_WITHOUT_%)

$(OBJ)/io/hdf5.o $(OBJ)/tests/test_keras_file.o: SIMDFLAGS += $(HDF5_CFLAGS)

$(OBJ)/%.o: %.c | $(MACROS)
	$(call say,CC    $<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

define isa_rule
$$(OBJ)/%.$(1).o: DEBUG     = -g1
$$(OBJ)/%.$(1).o: SIMDFLAGS = $$(ISA_$(1)) $$(FAST) -Wno-unused-function -Wno-unused-const-variable
$$(OBJ)/%.$(1).o: %.simd.c | $$(MACROS)
	$$(call say,CC    $$< for $(1))
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -MMD -MP -c $$< -o $$@
endef
$(foreach isa,$(SETS),$(eval $(call isa_rule,$(isa))))

# One relocatable object whose private names are made local: the archive offers what the headers
# declare, nothing else. Sections of the same name, as two files' static functions have, stay apart
# (--unique), so that --gc-sections can drop one of them.
$(OBJ)/libeddy.a: $(OBJECTS)
	$(call say,AR    $@)
	$(Q)rm -f $@
	$(Q)$(LD) -r --unique -o $(OBJ)/eddy.o $(OBJECTS)
	$(Q)$(OBJCOPY) --localize-hidden $(OBJ)/eddy.o
	$(Q)$(AR) rcs $@ $(OBJ)/eddy.o
	$(Q)rm $(OBJ)/eddy.o

$(OBJ)/libeddy.so: $(OBJECTS) tools/eddy.map
	$(call say,LD    $@)
	$(Q)$(CC) -shared $(SANFLAGS) $(STAYS) -Wl,-soname,libeddy.so.$(SOVERSION) -Wl,--version-script=tools/eddy.map \
	    $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -o $@ $(OBJECTS) $(LIBS)
	$(Q)ln -sf libeddy.so $@.$(SOVERSION)

# What looks into files of tensors sees the private names too: dtypes that tensors lack, strings.
$(PROGRAM): $(patsubst %.c,$(OBJ)/%.o,$(wildcard programs/*.c)) $(OBJECTS)
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)

# Tests see the private names too: they share a library of the same objects in which nothing is
# hidden.
UNHIDDEN := $(OBJ)/tests/libeddy_unhidden.so
$(UNHIDDEN): $(OBJECTS) $(OBJ)/tests/shared_live.o $(OBJ)/tools/unhide
	$(call say,LD    $@)
	$(Q)mkdir -p $(@D)
	$(Q)$(LD) -r -o $(@:.so=.o) $(filter %.o,$^)
	$(Q)$(OBJ)/tools/unhide $(@:.so=.o)
	$(Q)$(CC) -shared $(SANFLAGS) -Wl,-Bsymbolic -Wl,-soname,$(@F) -o $@ $(@:.so=.o) $(LIBS)
	$(Q)rm $(@:.so=.o)
$(OBJ)/tools/unhide: tools/unhide.c
	$(Q)mkdir -p $(@D)
	$(Q)$(HOST_CC) -O1 -o $@ $<
$(OBJ)/tests/test_%: $(OBJ)/tests/test_%.o $(TEST_AID) $(UNHIDDEN)
	$(call say,LD    $@)
	$(Q)$(CC) -fopenmp -rdynamic $(SANFLAGS) -o $@ $(filter %.o,$^) $(UNHIDDEN) -Wl,-rpath,'$$ORIGIN' $(LIBS) $(CMOCKA_LIBS) -ldl

# What the op table says, with what the checks of ops count.
COVERAGE := $(OBJ)/tools/coverage
$(COVERAGE): $(OBJ)/tools/coverage.o $(filter $(OBJ)/tests/checks% $(OBJ)/tests/accuracy%,$(TEST_AID)) $(UNHIDDEN)
	$(call say,LD    $@)
	$(Q)$(CC) -fopenmp $(SANFLAGS) -o $@ $^ -Wl,-rpath,'$$ORIGIN/../tests' $(LIBS)

# Where OpenBLAS's products are ahead of ours, by size; not built by anything else.
$(OBJ)/tools/crossover: $(OBJ)/tools/crossover.o $(OBJECTS)
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)

# They may use the compiler's own threads; the library has its pool (tensor/threads.h).
$(OBJ)/tests/%.o: SIMDFLAGS += $(CMOCKA_CFLAGS) -fopenmp
$(OBJ)/ops/kernels/blas.o $(OBJ)/ops/kernels/lapack.o $(OBJ)/tests/test_blas.o $(OBJ)/tests/test_factor.o $(OBJ)/tools/crossover.o: SIMDFLAGS += $(BLAS_CFLAGS)

# What a test loads at run time; it finds the library in the program that loads it.
$(OBJ)/tests/shared_%.so: $(OBJ)/tests/shared_%.o
	$(call say,LD    $@)
	$(Q)$(CC) -shared $(SANFLAGS) -o $@ $< -lm
$(OBJ)/tests/test_user_op: $(OBJ)/tests/shared_softcap.so
$(OBJ)/tests/test_lua $(OBJ)/tests/test_null: $(OBJ)/libeddy.so
$(OBJ)/tests/test_eddy_ckpt: $(PROGRAM)

# All public functions, as a table that tests go through.
$(OBJ)/tests/functions_table.h: $(HEADERS) tools/calls.sh
	$(Q)mkdir -p $(@D) && tools/calls.sh table $(HEADERS) > $@
$(OBJ)/tests/functions.o: SIMDFLAGS += -I$(OBJ)
$(OBJ)/tests/functions.o: $(OBJ)/tests/functions_table.h
$(OBJ)/tests/test_bench: $(EDDY_BENCH)
$(OBJ)/tests/test_lua_examples: $(REPL)

# C++: each program by $(CXX), and by clang++ too where it is there, in the language of 2017 and of
# 2020; one of the four optimizes, which takes three times as long. Snippets of docs/cpp.md and
# README.md are programs too, one after the other.
CXX_OTHER := $(if $(SAN)$(findstring clang,$(CXX))$(findstring -linux-gnu-,$(CXX)),,$(notdir $(shell command -v clang++)))
CPP_17  := check first
CPP_20  := check first spirals manual readme
CPP_ALL :=
define cpp_rule
CPP_ALL += $$(patsubst %,$(OBJ)/tests/cpp/$(2)/%,$$(CPP_$(1)))
$(OBJ)/tests/cpp/$(2)/%: tests/cpp/%.cc $$(PUBLIC) $(OBJ)/libeddy.so
	$$(cpp_link) $(3) -std=c++$(1) $(4) $$(CPP_FLAGS)
$(OBJ)/tests/cpp/$(2)/%: examples/cpp/%.cc $$(PUBLIC) $(OBJ)/libeddy.so
	$$(cpp_link) $(3) -std=c++$(1) $(4) $$(CPP_FLAGS)
$(OBJ)/tests/cpp/$(2)/%: $(OBJ)/tests/cpp/%.cc $$(PUBLIC) $(OBJ)/libeddy.so
	$$(cpp_link) $(3) -std=c++$(1) $(4) $$(CPP_FLAGS)
endef
cpp_link  = $(if $(V),,@echo '  C++   $(@:$(OBJ)/%=%)';) mkdir -p $(@D) &&
CPP_FLAGS = -g -Wall -Wextra -pedantic -Wshadow -Werror $(SANFLAGS) -I$(OBJ)/include $< -o $@ -L$(OBJ) -leddy -Wl,-rpath,'$$ORIGIN/../../..'
$(foreach std,17 20,$(eval $(call cpp_rule,$(std),$(notdir $(lastword $(filter-out -%,$(CXX))))-$(std),$(CXX),$(if $(SAN)$(filter 17,$(std)),-O0,-O1))))
$(if $(CXX_OTHER),$(foreach std,17 20,$(eval $(call cpp_rule,$(std),$(CXX_OTHER)-$(std),$(CXX_OTHER),-O0))))
$(OBJ)/tests/test_cpp: $(CPP_ALL)
$(OBJ)/tests/cpp/manual.cc: docs/cpp.md
$(OBJ)/tests/cpp/readme.cc: README.md
$(OBJ)/tests/cpp/%.cc: tests/manual.awk
	$(Q)mkdir -p $(@D) && awk -v language=cpp -f $< $(filter %.md,$^) > $@

# C: the snippets of each page of the manual are a program too, as users build theirs; the test runs
# them, and the examples.
C_PAGES := $(patsubst %,$(OBJ)/tests/c/%,c debugging)
$(OBJ)/tests/c/%.c: docs/%.md tests/manual.awk
	$(Q)mkdir -p $(@D) && awk -v language=c -f $(word 2,$^) $< > $@
$(OBJ)/tests/c/%: $(OBJ)/tests/c/%.c $(PUBLIC) $(OBJ)/libeddy.so
	$(call say,C     $(@:$(OBJ)/%=%))
	$(Q)$(CC) -std=gnu11 -O1 -g -Wall -Wextra -Wshadow -Werror $(SANFLAGS) -I$(OBJ)/include $< -o $@ -L$(OBJ) -leddy -lm -lpthread -Wl,-rpath,'$$ORIGIN/../..'

# Lua: the module that a stock Lua loads, and the program, which is the module and a prompt. Symbols
# of Lua itself come from whoever loads the module.
$(OBJ)/lua/repl/%.o: SIMDFLAGS += $(EDIT_CFLAGS)
$(OBJ)/lua/%.o: SIMDFLAGS += $(LUA_CFLAGS)
$(OBJ)/lua/module.o: lua/prelude.lua
$(OBJ)/lua/help.o: lua/help.lua lua/help.txt
$(OBJ)/lua/plot.o: lua/plot.lua
$(OBJ)/lua/suggest.o: lua/suggest.lua
$(MODULE): $(LUA_PART) $(OBJECTS) lua/eddy.map
	$(call say,LD    $@)
	$(Q)$(CC) -shared $(SANFLAGS) $(STAYS) -Wl,--version-script=lua/eddy.map -o $@ $(filter %.o,$^) $(LIBS)
$(REPL): $(LUA_ALL) $(OBJECTS)
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -rdynamic -o $@ $^ $(LIBS) $(LUA_LIBS) $(EDIT_LIBS)

$(OBJ)/tests/test_repl $(OBJ)/tests/test_eddy: $(REPL)

# The tests of Lua's side have the module inside them.
$(OBJ)/tests/test_lua $(OBJ)/tests/test_ways: $(LUA_PART)
$(OBJ)/tests/test_unload: $(OBJ)/libeddy.so $(MODULE)
$(OBJ)/tests/test_lua $(OBJ)/tests/test_ways $(OBJ)/tests/test_unload: LIBS += $(LUA_LIBS)
$(OBJ)/tests/test_lua.o $(OBJ)/tests/test_ways.o $(OBJ)/tests/test_unload.o: SIMDFLAGS += $(LUA_CFLAGS)

$(OBJ)/tests/interop/interop: $(patsubst %,$(OBJ)/tests/%.o,interop/interop interop/kinds reference json) $(OBJECTS)
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(CMOCKA_LIBS) $(LIBS)

# The fuzz targets: run on what they once failed at by a test in every build, by libFuzzer in one of
# its own.
FUZZ_AID := $(patsubst %.c,$(OBJ)/%.o,$(filter-out fuzz/main.c fuzz/seeds.c,$(wildcard fuzz/*.c)))
$(OBJ)/tests/test_corpus $(OBJ)/tests/test_damage: $(FUZZ_AID) $(LUA_PART)
$(OBJ)/tests/test_corpus $(OBJ)/tests/test_damage $(OBJ)/fuzz/%: LIBS += $(LUA_LIBS)
$(OBJ)/fuzz/%.o: SIMDFLAGS += $(LUA_CFLAGS)
$(OBJ)/fuzz/fuzz_lua.o: fuzz/chunk.lua
# Kernels are not what is fuzzed, and take sanitizers minutes to compile.
$(if $(findstring fuzzer,$(SAN)),$(eval $(OBJ)/ops/%.o $(OBJ)/optim/%.o: SANFLAGS :=))
$(OBJ)/fuzz/fuzz: $(OBJ)/fuzz/main.o $(FUZZ_AID) $(LUA_PART) $(OBJECTS)
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)
$(OBJ)/fuzz/seeds: $(OBJ)/fuzz/seeds.o $(FUZZ_AID) $(LUA_PART) $(OBJECTS)
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)

# Eddy's side of make bench, and what its group process starts: programs as users build them.
BENCH_PARTS := $(patsubst %.c,$(OBJ)/%.o,$(filter-out bench/first_step.c,$(wildcard bench/*.c)))
$(BENCH_PARTS) $(OBJ)/bench/first_step.o: PLACES = -I$(OBJ)/include
$(BENCH_PARTS) $(OBJ)/bench/first_step.o: $(PUBLIC)
$(EDDY_BENCH): $(BENCH_PARTS) $(OBJ)/libeddy.a | $(FIRST_STEPS)
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
$(OBJ)/bench/first_step_static: $(OBJ)/bench/first_step.o $(OBJ)/libeddy.a
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
$(OBJ)/bench/first_step_shared: $(OBJ)/bench/first_step.o $(OBJ)/libeddy.so
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -o $@ $< -L$(OBJ) -leddy -Wl,-rpath,'$$ORIGIN/..'

# Examples are ordinary programs: the one header as it is installed, the shared library.
$(OBJ)/examples/%.o $(OBJ)/tests/test_place.o: PLACES = -I$(OBJ)/include
$(patsubst %.c,$(OBJ)/%.o,$(wildcard examples/*.c)) $(OBJ)/tests/test_place.o: $(PUBLIC)
EXAMPLE_AID := $(patsubst %.c,$(OBJ)/%.o,examples/digits.c examples/progress.c)
EXAMPLES    := $(filter-out $(EXAMPLE_AID:.o=),$(patsubst %.c,$(OBJ)/%,$(wildcard examples/*.c)))
$(OBJ)/tests/test_c: $(C_PAGES) $(EXAMPLES)
$(OBJ)/examples/%: $(OBJ)/examples/%.o $(EXAMPLE_AID) $(OBJ)/libeddy.so
	$(call say,LD    $@)
	$(Q)$(CC) $(SANFLAGS) -o $@ $(filter %.o,$^) -L$(OBJ) -leddy -Wl,-rpath,'$$ORIGIN/..' -lm -lpthread

# ---- Using

test-programs: $(TESTS) $(OBJ)/libeddy.so

test: test-programs
	$(Q)EMULATOR='$(EMULATOR)' tools/run_tests.sh '$(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS)))' $(TESTS)

ci-long:
	$(Q).ci/long

interop: $(OBJ)/tests/interop/interop
	$(Q)PEERS='$(PEERS)' tests/interop/run.sh $<

fuzz:
	$(Q)echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -fsanitize=fuzzer,address -x c - -o /dev/null 2> /dev/null || \
	    { echo 'eddy: fuzzing takes clang and its runtime: please install clang and libclang-rt-14-dev (Debian names)' >&2; exit 1; }
	$(Q)$(MAKE) CC=clang SAN=fuzzer-no-link,address,undefined OPT='-O1 -DEDDY_FUZZING' fuzz_program

fuzz_program: $(OBJ)/fuzz/fuzz $(OBJ)/fuzz/seeds
	$(Q)fuzz/run.sh $(OBJ)/fuzz $(SECONDS)

demo: $(OBJ)/examples/mnist
	$(Q)$(OBJ)/examples/mnist $(DATA)

bench: $(EDDY_BENCH)
	$(Q)PEERS='$(PEERS)' ONLY='$(ONLY)' bench/compare.py $<

bench-check:
	$(Q)bench/slower.py $(or $(OLD),$(error OLD=file NEW=file)) $(or $(NEW),$(error OLD=file NEW=file)) $(THRESHOLD)

bench-instructions: $(EDDY_BENCH)
	$(Q)bench/instructions.py $<

coverage: $(COVERAGE)
	$(Q)$(COVERAGE)

accuracy: $(OBJ)/tests/test_accuracy
	$(Q)EDDY_EXHAUSTIVE=1 EDDY_ACCURACY=docs/accuracy.md $<

check: $(OBJ)/libeddy.a $(OBJ)/libeddy.so $(EXAMPLES) $(COVERAGE)
	$(Q)tools/check.sh $(OBJ) $(FLOORS) programs lua
	$(Q)$(COVERAGE) | cmp -s - docs/ops.md || { echo 'check: docs/ops.md is not up to date: $(COVERAGE) > docs/ops.md' >&2; exit 1; }
	$(Q)awk -F' *[|] *' 'FNR == NR { rows[$$2] = 1 } FNR != NR && $$6 ~ /[0-9] \// && !($$2 in rows) { print "check: docs/accuracy.md has no row for " $$2; bad = 1 } END { exit bad }' docs/accuracy.md docs/ops.md >&2
	$(Q)CC='$(CC)' tools/check_mistakes.sh $(OBJ)/include
	$(Q)CC='$(CC)' CXX='$(CXX)' tools/check_install.sh "$(MAKE) BUILD=$(BUILD) CC='$(CC)'"
	$(Q)CC='$(CC)' tools/check_build.sh "$(MAKE) BUILD=$(BUILD) CC='$(CC)'" $(OBJ)
	$(Q)tools/check_cmake.sh "$(MAKE) BUILD=$(BUILD) CC='$(CC)'"
	$(Q)if command -v doxygen > /dev/null; then $(MAKE) doc > /dev/null && ! sed 's/^/check: /' $(DOC)/warnings | grep .; fi

# Where things go, as words of the shell.
AT         := '$(DESTDIR)$(PREFIX)'
AT_MODULE  := '$(DESTDIR)$(MODULE_DIR)'
fill_in     = sed -e 's|@PREFIX@|$(if $(filter /%,$(PREFIX)),,$(CURDIR)/)$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' \
              -e 's|@SOVERSION@|$(SOVERSION)|' -e 's|@LIBS@|$(LIBS)|'

install: lib $(PROGRAM) $(REPL) install-module
	install -d $(AT)/bin $(AT)/lib/pkgconfig $(AT)/lib/cmake/Eddy $(AT)/include
	cp -R $(OBJ)/include/. $(AT)/include
	install -m 755 $(PROGRAM) $(REPL) $(AT)/bin/
	install -m 644 $(OBJ)/libeddy.a $(AT)/lib/
	install -m 755 $(OBJ)/libeddy.so $(AT)/lib/libeddy.so.$(VERSION)
	ln -sf libeddy.so.$(VERSION) $(AT)/lib/libeddy.so.$(SOVERSION)
	ln -sf libeddy.so.$(SOVERSION) $(AT)/lib/libeddy.so
	$(fill_in) tools/eddy.pc.in > $(AT)/lib/pkgconfig/eddy.pc
	$(fill_in) tools/EddyConfig.cmake.in > $(AT)/lib/cmake/Eddy/EddyConfig.cmake
	$(fill_in) tools/EddyConfigVersion.cmake.in > $(AT)/lib/cmake/Eddy/EddyConfigVersion.cmake
	$(if $(wildcard $(DOC)/html),install -d $(AT)/share/doc/eddy $(AT)/share/man/man3 && cp -R $(DOC)/html $(AT)/share/doc/eddy/ && cp $(DOC)/man/man3/ed* $(DOC)/man/man3/ED* $(AT)/share/man/man3/)

# For luarocks, which says where its Lua is: LUA_CFLAGS=-Idir.
module: $(MODULE)

install-module: $(MODULE)
	install -d $(AT_MODULE)
	install -m 755 $(MODULE) $(AT_MODULE)/

# Without what only debuggers and profilers read: a fifth of the size.
install-strip: install
	$(STRIP) --strip-unneeded $(AT)/lib/libeddy.so.$(VERSION) $(AT_MODULE)/$(notdir $(MODULE)) \
	    $(AT)/bin/$(notdir $(PROGRAM)) $(AT)/bin/$(notdir $(REPL))
	$(STRIP) --strip-debug $(AT)/lib/libeddy.a

# HTML and man pages of the public headers.
DOC := $(OBJ)/doc
doc:
	$(Q)command -v doxygen > /dev/null || { echo 'eddy: the documentation takes doxygen: please install doxygen (Debian name)' >&2; exit 1; }
	$(Q)rm -rf $(DOC) && mkdir -p $(DOC)
	$(Q)(cat tools/Doxyfile; echo 'INPUT = $(HEADERS)'; echo 'OUTPUT_DIRECTORY = $(DOC)'; echo 'PROJECT_NUMBER = $(VERSION)'; echo 'WARN_LOGFILE = $(DOC)/warnings') | doxygen -
	$(Q)cd $(DOC)/man/man3 && sed -i 's|^\.so man3/\([a-z]*\.h\)|.so man3/eddy_\1|' ED* ed* && for page in *.h.3; do mv "$$page" "eddy_$$page"; done
	@echo '  DOC   $(DOC)/html/index.html'

format:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cc' '*.hpp')

clean:
	rm -rf $(BUILD)

-include $(shell test -d $(OBJ) && find $(OBJ) -name '*.d')
