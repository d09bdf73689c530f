/*
 * Formats of files of named tensors ("archives"). A format is one definition, in one file:
 *
 *     ARCHIVE_FORMAT(npz_format) = {.name = "npz", .ending = ".npz", .recognises = ..., ...};
 *
 * The linker gathers the definitions, so nothing else names them: ed_archive_open asks each of them
 * whether a file is its own, ed_archive_write finds one by its name or by the path's ending, and
 * eddy-ckpt, the fuzz targets and error messages list them. archive.c holds what all formats share.
 */
#ifndef EDDY_IO_ARCHIVE_H
#define EDDY_IO_ARCHIVE_H

#include "io/checksum.h"
#include "io/dtype.h"
#include "io/file.h"
#include "io/io.h"

/* A tensor of an archive. */
typedef struct archive_entry {
    const char *name; /* ends in a 0; a name with a 0 inside has a longer name_size */
    size_t name_size;
    io_dtype dtype; /* IO_NONE: a dtype that only this format has, named by `foreign` */
    const char *foreign;
    int rank;
    const int64_t *shape;
    int64_t bytes; /* in the file */
} archive_entry;

/* Something to be written under a name: a tensor, or an entry of an open archive (conversion). */
typedef struct archive_item {
    const char *name;
    io_dtype dtype;
    int rank;
    const int64_t *shape;
    int64_t bytes;
    const ed_tensor *tensor; /* its elements, or (NULL) entry `index` of `from` */
    ed_archive *from;
    int64_t index;
} archive_item;

/* The first bytes of a file and its last eight; zeros where it has fewer. */
typedef struct archive_glimpse {
    uint8_t first[9], last[8];
} archive_glimpse;

/* How sure a format is of a file: by a magic number, or by something weaker. */
typedef enum archive_match { ARCHIVE_OTHER, ARCHIVE_LIKELY, ARCHIVE_CERTAIN } archive_match;

/* A format. The functions for reading work on its own object, made by `open`. */
typedef struct archive_format {
    const char *name;   /* "npz" */
    const char *ending; /* ".npz": of the files' names */
    bool prefix;        /* a path names several files: its file is the path and `ending` */
    bool single;        /* a file holds exactly one tensor, which has no name */
    bool strings;       /* a file can hold tensors of strings */

    archive_match (*recognises)(const archive_glimpse *glimpse);

    /* The opened file, an object with one reference that no scope holds; NULL with the error
     * kept. */
    void *(*open)(const char *path);
    int64_t (*count)(const void *self);

    /* 0 <= i < count; strings live as long as self. */
    archive_entry (*entry)(const void *self, int64_t i);

    /* Tensor i, owned by nobody yet. Called only where tensors have the dtype and the rank. */
    ed_tensor *(*tensor)(void *self, int64_t i);

    /* Passes the elements as they are stored, row-major, little-endian, piece by piece to `take`,
     * all checksums verified by the end: for digests and conversion. */
    bool (*stream)(void *self, int64_t i, io_sink *take, void *user);

    /* Checks all that can be checked of tensor i; NULL: `stream` does, its bytes dropped. */
    bool (*verify)(void *self, int64_t i);

    const char *(*metadata)(const void *self, const char *key); /* NULL: the format has none */

    /* Writes the items, whose names differ. Refuses by name what the format does not have, such as
     * dtypes. `who` begins errors. */
    bool (*write)(const char *who, const char *path, const archive_item *items, int64_t count);
} archive_format;

/* Begins a format's definition. */
#define ARCHIVE_FORMAT(symbol)                                                                     \
    static const archive_format symbol;                                                            \
    static const archive_format *const symbol##_entry                                              \
        __attribute__((used, section("ed_formats"), aligned(sizeof(void *)))) = &symbol;           \
    static const archive_format symbol

/* ---- The list of formats --------------------------------------------------------------------- */

/* All formats, *count of them. */
const archive_format *const *archive_formats(int *count);

/* The format of a name, or, with a NULL name, of the path's ending. NULL with an error of `who`
 * that lists the formats. */
const archive_format *archive_format_find(const char *who, const char *path, const char *name);

/* The same; NULL, without an error, if there is none. */
const archive_format *archive_format_by_name(const char *name);
const archive_format *archive_format_by_ending(const char *path);

/* The formats' names: "bundle, npy, npz, safetensors"; memory_free gives it back. */
char *archive_format_names(const char *separator);

/* The path that the format's `write` and `open` take: without the ending, where it is a prefix; and
 * the file whose existence means that the archive exists. memory_free gives them back. */
char *archive_path(const archive_format *format, const char *path);
char *archive_file_path(const archive_format *format, const char *path);

/* ---- Reading and writing items --------------------------------------------------------------- */

/* Entry i of an archive, to be written again under its name; its strings belong to the archive. */
archive_item archive_item_of(ed_archive *archive, int64_t i);

/* The item's dtype as error messages name it. */
const char *archive_item_dtype(const archive_item *item);

/* The archive's format, and its own object. */
const archive_format *archive_format_of(const ed_archive *archive);
void *archive_file(const ed_archive *archive);

/* Passes the item's elements, row-major, little-endian, piece by piece. */
bool archive_stream(const archive_item *item, io_sink *take, void *user);

/* Writes items of any kind; `who` begins errors. */
bool archive_write_items(const char *who, const archive_format *format, const char *path,
                         const archive_item *items, int64_t count);

/* The item of a tensor, or of a variable's present value. */
archive_item archive_item_of_tensor(const char *name, const ed_tensor *tensor);

/* A tensor's elements, row-major, piece by piece: contiguous ones as they are stored, others packed
 * strip by strip into a block of at most a megabyte. */
bool io_stream_tensor(const ed_tensor *t, io_sink *take, void *user);

#endif
