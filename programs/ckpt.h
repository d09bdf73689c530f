/*
 * eddy-ckpt, a program for files of named tensors: what its commands share.
 *
 * A command gets the arguments of the command line and returns the exit code. Errors are the
 * library's: the first one is kept, and a command that continues prints it by `complain`. Tensors
 * are streamed: a command has at most one in memory.
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
    const char *given; /* as the user gave it */
    char *path;        /* the file that was opened: for a folder, the checkpoint in it */
    ed_archive *archive;
    int64_t count;
} ckpt_file;

/* Opens what ed_archive_open takes, or the checkpoint in a folder. false with an error; call
 * close in either case. */
bool ckpt_open(ckpt_file *file, const char *given);
void ckpt_close(ckpt_file *file);

/* The bundle of a file that is one, for its strings: tensor i is its entry i. NULL for other
 * files. */
const bundle *ckpt_bundle(const ckpt_file *file);

/* The number of elements; -1 if it overflows. */
int64_t ckpt_elements(const archive_item *item);

/* Indices of tensors in a file, a block of memory_alloc. */
typedef struct ckpt_places {
    int64_t *at, count;
} ckpt_places;

/* The tensors that any of the patterns matches (all if there are none). A pattern is a tensor's
 * whole name, or a glob in which * matches slashes too. ED_NOT_FOUND for a pattern that matches
 * nothing. */
bool ckpt_select(const ckpt_file *file, char *const *patterns, int count, ckpt_places *places);

/* ---- Numbers --------------------------------------------------------------------------------- */

/* Elements as float64 numbers. A complex element is two numbers. 64-bit integers beyond 2^53 are
 * rounded. */
typedef struct ckpt_numbers {
    io_dtype dtype;
    size_t width; /* bytes of one number */
    int64_t count;
} ckpt_numbers;

/* false for dtypes without numbers: strings, and those that are packed below a byte. */
bool ckpt_numbers_of(const archive_item *item, ckpt_numbers *numbers);

/* Reads n numbers from `from`, of any alignment; at most CKPT_BLOCK. */
enum { CKPT_BLOCK = 2048 };
void ckpt_decode(const ckpt_numbers *numbers, const uint8_t *from, size_t n, double *to);

/* Streams an item in blocks of 1 to CKPT_BLOCK numbers. `take` may be NULL, and so may `digest`,
 * which gets all bytes. */
typedef void ckpt_take(void *user, const uint8_t *from, size_t n);
bool ckpt_stream(const archive_item *item, const ckpt_numbers *numbers, ckpt_take *take, void *user,
                 io_digester *digest);

/* ---- Strings --------------------------------------------------------------------------------- */

/* Prints the kept error on stderr and clears it. */
void ckpt_complain(void);

/* Prints a string from a file: control characters, backslashes and bytes that are not UTF-8
 * become \n, \x1b and so on, so that a file can't control a terminal. */
void ckpt_print_text(FILE *to, const void *text, size_t size);
void ckpt_print_word(FILE *to, const char *word);

/* Prints a tensor's name; that of a .npy has none. */
void ckpt_print_name(FILE *to, const char *name);

/* "[32, 784]"; memory_free frees it. NULL if memory is short. */
char *ckpt_shape_text(const archive_item *item);

/* Prints the object graph of a bundle as a tree. */
bool ckpt_print_graph(ckpt_file *file);

#endif
