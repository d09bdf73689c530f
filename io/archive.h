/*
 * What a format provides to be an archive, and what it is handed to be written. archive.c holds
 * what is common: the public functions of io.h, which format a file is, conversion.
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
    io_dtype dtype; /* IO_NONE: the format's own kind that no table knows; `foreign` says it */
    const char *foreign;
    int rank;
    const int64_t *shape;
    int64_t bytes; /* in the file */
} archive_entry;

/* A format. The functions work on its own object, made by `open`. */
typedef struct archive_format {
    const char *name;

    /* The opened file, an object with one reference that no scope holds; NULL
     * with the error kept. */
    void *(*open)(const char *path);
    int64_t (*count)(const void *self);
    archive_entry (*entry)(const void *self,
                           int64_t i); /* 0 <= i < count; texts live as long as self */

    /* Tensor i, owned by nobody yet. Called only where tensors have the dtype and the rank. */
    ed_tensor *(*tensor)(void *self, int64_t i);

    /* Hands the elements as they lie in row-major order, little-endian, piece by piece to `take`,
     * all checksums verified by the end: for digests and conversion. false as soon as `take` says
     * so. */
    bool (*stream)(void *self, int64_t i, bool (*take)(void *user, const void *data, size_t size),
                   void *user);

    /* Checks all that can be checked of tensor i; NULL: `stream` does, handed to nobody. */
    bool (*verify)(void *self, int64_t i);

    const char *(*metadata)(const void *self, const char *key); /* NULL: the format has none */
} archive_format;

extern const archive_format bundle_format, npz_format, npy_format, safetensors_format;

/* Something to be written under a name: a tensor, or the entry of an opened
 * archive (conversion). */
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

/* Entry i of an archive, to be written again under its name; its texts belong to the archive. */
archive_item archive_item_of(ed_archive *archive, int64_t i);

/* How errors call the item's dtype. */
const char *archive_item_dtype(const archive_item *item);

/* The format's own object behind an archive that is known to be of it. */
void *archive_file(const ed_archive *archive);

/* Whether no name comes twice; false with an error that begins with `who` and names the file. */
bool archive_names_differ(const char *who, const char *path, const archive_item *items,
                          int64_t count);

/* The item's elements, row-major, little-endian, piece by piece. */
bool archive_stream(const archive_item *item,
                    bool (*take)(void *user, const void *data, size_t size), void *user);

/* Writers. Each refuses by name what its format does not have: dtypes, and
 * names that come twice. */
bool npz_write(const char *path, const archive_item *items, int64_t count);
bool safetensors_write(const char *path, const archive_item *items, int64_t count);
bool bundle_write_items(const char *prefix, const archive_item *items, int64_t count);

/* A tensor's elements, row-major, piece by piece: contiguous ones as they lie, others packed strip
 * by strip into a block of at most a megabyte. */
bool io_stream_tensor(const ed_tensor *t, bool (*take)(void *user, const void *data, size_t size),
                      void *user);

#endif
