/*
 * Formats of files of named tensors ("archives"). A format is one definition, in one file:
 *
 *     ARCHIVE_FORMAT(npz_format) = {.name = "npz", .ending = ".npz", .recognises = ..., ...};
 *
 * The linker collects the definitions, so there is no list of them in the source: ed_archive_open
 * asks each format whether it recognises a file, ed_archive_write finds one by its name or by the
 * path's ending, and eddy-ckpt, the fuzz targets and error messages list them. archive.c has what
 * all formats share.
 */
#ifndef EDDY_IO_ARCHIVE_H
#define EDDY_IO_ARCHIVE_H

#include "io/checksum.h"
#include "io/dtype.h"
#include "io/file.h"
#include "io/io.h"

/* A tensor of an archive. */
typedef struct archive_entry {
    const char *name; /* ends in a 0; if it contains a 0, name_size is larger */
    size_t name_size;
    io_dtype dtype; /* IO_NONE: a dtype of this format only, named by `foreign` */
    const char *foreign;
    int rank;
    const int64_t *shape;
    int64_t bytes; /* in the file */
} archive_entry;

/* Something to write under a name: a tensor, or an entry of an open archive (conversion). */
typedef struct archive_item {
    const char *name;
    io_dtype dtype;
    int rank;
    const int64_t *shape;
    int64_t bytes;
    const ed_tensor *tensor; /* its elements; NULL: entry `index` of `from` */
    ed_archive *from;
    int64_t index;
} archive_item;

/* The first bytes of a file and its last eight; zeros if it has fewer. */
typedef struct archive_glimpse {
    uint8_t first[9], last[8];
} archive_glimpse;

/* How sure a format is that a file is its own: by a magic number, or by something weaker. */
typedef enum archive_match { ARCHIVE_OTHER, ARCHIVE_LIKELY, ARCHIVE_CERTAIN } archive_match;

/* A format. The functions for reading get the format's own object, which `open` returns. */
typedef struct archive_format {
    const char *name;   /* "npz" */
    const char *ending; /* ".npz": of the files' names */
    bool prefix;        /* a path names several files: the file is the path and `ending` */
    bool single;        /* a file holds exactly one tensor, which has no name */
    bool strings;       /* a file can hold tensors of strings */

    archive_match (*recognises)(const archive_glimpse *glimpse);

    /* Opens a file: an object with one reference, owned by the caller; NULL with an error. */
    void *(*open)(const char *path);
    int64_t (*count)(const void *self);

    /* 0 <= i < count; strings live as long as self. */
    archive_entry (*entry)(const void *self, int64_t i);

    /* Tensor i; the caller owns the reference. Called only if tensors support the dtype and
     * rank. */
    ed_tensor *(*tensor)(void *self, int64_t i);

    /* Passes the elements to `take` as they are stored, row-major, little-endian, piece by
     * piece; verifies all checksums. For digests and conversion. */
    bool (*stream)(void *self, int64_t i, io_sink *take, void *user);

    /* Verifies tensor i; NULL: by `stream`, whose bytes are dropped. */
    bool (*verify)(void *self, int64_t i);

    const char *(*metadata)(const void *self, const char *key); /* NULL: the format has none */

    /* Writes the items, whose names differ. Fails for what the format does not support, such as
     * dtypes. `who` begins errors. */
    bool (*write)(const char *who, const char *path, const archive_item *items, int64_t count);
} archive_format;

/* Begins the definition of a format. */
#define ARCHIVE_FORMAT(symbol)                                                                     \
    static const archive_format symbol;                                                            \
    static const archive_format *const symbol##_entry                                              \
        __attribute__((used, section("ed_formats"), aligned(sizeof(void *)))) = &symbol;           \
    static const archive_format symbol

/* ---- The list of formats --------------------------------------------------------------------- */

/* All formats, *count of them. */
const archive_format *const *archive_formats(int *count);

/* The format of that name, or, with a NULL name, of the path's ending. NULL, with an error of
 * `who` that lists the formats, if there is none. */
const archive_format *archive_format_find(const char *who, const char *path, const char *name);

/* The same; NULL, without an error, if there is none. */
const archive_format *archive_format_by_name(const char *name);
const archive_format *archive_format_by_ending(const char *path);

/* The names of the formats: "bundle, npy, npz, safetensors"; memory_free frees it. */
char *archive_format_names(const char *separator);

/* The path of the file that exists if the archive exists. memory_free frees it. */
char *archive_file_path(const archive_format *format, const char *path);

/* ---- Reading and writing items --------------------------------------------------------------- */

/* Entry i of an archive, to be written under its name; its strings belong to the archive. */
archive_item archive_item_of(ed_archive *archive, int64_t i);

/* The item's dtype for error messages. */
const char *archive_item_dtype(const archive_item *item);

/* The archive's format, and the format's own object. */
const archive_format *archive_format_of(const ed_archive *archive);
void *archive_file(const ed_archive *archive);

/* Passes the item's elements, row-major, little-endian, piece by piece. */
bool archive_stream(const archive_item *item, io_sink *take, void *user);

/* Writes items of any kind; `who` begins errors. */
bool archive_write_items(const char *who, const archive_format *format, const char *path,
                         const archive_item *items, int64_t count);

/* The item of a tensor, or of a variable's present value. */
archive_item archive_item_of_tensor(const char *name, const ed_tensor *tensor);

/* Passes a tensor's elements, row-major, piece by piece: contiguous ones directly, others packed
 * strip by strip into a buffer of at most a megabyte. */
bool io_stream_tensor(const ed_tensor *t, io_sink *take, void *user);

#endif
