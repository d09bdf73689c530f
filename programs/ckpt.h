/*
 * eddy-ckpt, a program that looks into files of named tensors: what its commands share.
 *
 * Commands are given the words of the command line and return the exit code. Errors are the
 * library's: the first one is kept, and whoever goes on after it says it by `complain`. Tensors are
 * streamed: a command has at most one of them in memory.
 */
#ifndef EDDY_PROGRAMS_CKPT_H
#define EDDY_PROGRAMS_CKPT_H

#include "io/archive.h"
#include "io/bundle.h"
#include <stdio.h>

enum { EXIT_SAME = 0, EXIT_DIFFERENT = 1, EXIT_TROUBLE = 2 };

typedef struct ckpt_options {
    const char *match, *sort, *to; /* NULL: not given */
    double rtol, atol;
    bool digest, graph, strip, force;
} ckpt_options;

/* ---- Commands -------------------------------------------------------------------------------- */

int ckpt_ls(const ckpt_options *options, char **words, int count);
int ckpt_show(const ckpt_options *options, char **words, int count);
int ckpt_diff(const ckpt_options *options, char **words, int count);
int ckpt_verify(const ckpt_options *options, char **words, int count);
int ckpt_convert(const ckpt_options *options, char **words, int count);

/* ---- Files ----------------------------------------------------------------------------------- */

typedef struct ckpt_file {
    const char *given; /* what the user calls it */
    char *path;        /* what was opened: in a folder the checkpoint that was found */
    ed_archive *archive;
    int64_t count;
} ckpt_file;

/* Opens what ed_archive_open takes, or the checkpoint in a folder. false with the error kept; close
 * it in either case. */
bool ckpt_open(ckpt_file *file, const char *given);
void ckpt_close(ckpt_file *file);

/* What is behind a file that is a bundle, for its strings: tensor i is its entry i. NULL for other
 * files. */
const bundle *ckpt_bundle(const ckpt_file *file);

/* PREFIX for PREFIX.index, anything else as it is; memory_free gives it back. */
char *ckpt_prefix(const char *path);

/* Number of elements; -1 for what no memory could hold. */
int64_t ckpt_elements(const archive_item *item);

/* Places of tensors in a file, a block of memory_alloc. */
typedef struct ckpt_places {
    int64_t *at, count;
} ckpt_places;

/* Those that any of the patterns matches (all of them if there are none): a tensor's whole name, or
 * a glob in which * goes over slashes too. A pattern that matches nothing is ED_NOT_FOUND. */
bool ckpt_select(const ckpt_file *file, char *const *patterns, int count, ckpt_places *places);

/* ---- Numbers --------------------------------------------------------------------------------- */

/*
 * Elements as float64 numbers. A complex element is two numbers, its parts. 64-bit integers beyond
 * 2^53 are rounded.
 */
typedef struct ckpt_numbers {
    io_dtype dtype;
    size_t width; /* bytes of one number */
    int64_t count;
} ckpt_numbers;

/* false for what has no numbers: strings, and dtypes that are packed below a byte. */
bool ckpt_numbers_of(const archive_item *item, ckpt_numbers *numbers);

/* n numbers from `from`, of any alignment; at most CKPT_BLOCK. */
enum { CKPT_BLOCK = 2048 };
void ckpt_decode(const ckpt_numbers *numbers, const uint8_t *from, size_t n, double *to);

/* Streams an item in blocks of 1 to CKPT_BLOCK whole numbers. `take` may be NULL, and so may
 * `digest`, which gets every byte. */
typedef void ckpt_take(void *user, const uint8_t *from, size_t n);
bool ckpt_stream(const archive_item *item, const ckpt_numbers *numbers, ckpt_take *take, void *user,
                 io_digester *digest);

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Says the kept error on stderr and forgets it. */
void ckpt_complain(void);

/* A text from a file: control characters, backslashes and bytes that are not UTF-8 become \n,
 * \x1b and so on, so that nothing in a file can steer a terminal. */
void ckpt_print_text(FILE *to, const void *text, size_t size);
void ckpt_print_word(FILE *to, const char *word);

/* A tensor's name; that of a .npy has none. */
void ckpt_print_name(FILE *to, const char *name);

/* "[32, 784]"; memory_free gives it back. NULL without memory. */
char *ckpt_shape_text(const archive_item *item);

/* The object graph of a bundle as a tree. */
bool ckpt_print_graph(ckpt_file *file);

#endif
