/*
 * Fuzzing: readers of files are given bytes that nobody vouches for, and Lua's side is called with
 * whatever comes. A target is a function; what holds of every one of them is looked after here.
 * Whatever the bytes are: no tensor and no memory is left behind, and never was more taken than in
 * proportion to the input. A target adds what holds of its format, by fuzz_claim.
 *
 * One program holds all of them and goes by the name it is called by (main.c). `make fuzz` builds
 * it with clang's libFuzzer and runs each for a while; inputs that once failed are in corpus/, and
 * tests/test_corpus.c runs them in every build.
 *
 * Checksums, which a fuzzer can't guess, count as right in its build: io_checksum_is.
 */
#ifndef EDDY_FUZZ_H
#define EDDY_FUZZ_H

#include "io/archive.h"

typedef struct fuzz_target {
    const char *name;
    void (*run)(const uint8_t *data, size_t size); /* NULL: fuzz_format of `format` */
    const archive_format *format;
    int64_t factor; /* of memory to the input's size, beyond a few megabytes */
    int changes;    /* of every input in corpus/ are tried by the test */
} fuzz_target;

/* All targets, *count of them: those listed in fuzz.c, and one for each other archive format. */
const fuzz_target *fuzz_targets(int *count);

/* Runs a target on an input in a scope of its own. */
void fuzz_run(const fuzz_target *target, const uint8_t *data, size_t size);

/* ---- For targets ----------------------------------------------------------------------------- */

/* What must hold; else the process ends, saying what did not. */
void fuzz_claim(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the call gave something; if it gave nothing an error must be kept, which is forgotten. */
bool fuzz_given(const void *something, const char *call);

/* Memory that the input may have asked for rightfully, for a tensor that was read whole. */
void fuzz_allow(int64_t bytes);

/* The path, until the next call, of a file of that name with these bytes, in a folder of this
 * process. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t size);
const char *fuzz_folder(void);

/* Opens it as an archive, asks for all there is in it, and compares what ways of asking say. */
void fuzz_archive(const char *path);

/* The same of the input as a file of the format's ending. */
void fuzz_format(const archive_format *format, const uint8_t *data, size_t size);

/* ---- Targets --------------------------------------------------------------------------------- */

void fuzz_bundle(const uint8_t *data, size_t size);
void fuzz_csv(const uint8_t *data, size_t size);
void fuzz_idx(const uint8_t *data, size_t size);
void fuzz_keras(const uint8_t *data, size_t size);
void fuzz_lua(const uint8_t *data, size_t size);
void fuzz_npy(const uint8_t *data, size_t size);
void fuzz_objects(const uint8_t *data, size_t size);
void fuzz_state(const uint8_t *data, size_t size);

#endif
