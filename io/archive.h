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
    int64_t bytes;
} archive_entry;

/* A format. The functions work on its own object, made by `open`. */
typedef struct archive_format {
    const char *name;

    /* The opened file, an object with one reference that no scope holds; NULL with the error kept. */
    void *(*open)(const char *path);
    int64_t (*count)(const void *self);
    archive_entry (*entry)(const void *self, int64_t i); /* 0 <= i < count; texts live as long as self */

    /* Tensor i, owned by nobody yet. */
    ed_tensor *(*tensor)(void *self, int64_t i);

    /* Hands the elements as they lie in row-major order, little-endian, piece by piece to `take`, all
     * checksums verified by the end: for digests and conversion. false as soon as `take` says so. */
    bool (*stream)(void *self, int64_t i, bool (*take)(void *user, const void *data, size_t size),
                   void *user);

    const char *(*metadata)(const void *self, const char *key); /* NULL: the format has none */
} archive_format;

extern const archive_format bundle_format, npz_format, npy_format, safetensors_format;

/* Something to be written under a name: a tensor, or the entry of an opened archive (conversion). */
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

/* The item's elements, row-major, little-endian, piece by piece. */
bool archive_stream(const archive_item *item, bool (*take)(void *user, const void *data, size_t size),
                    void *user);

/* Writers; each refuses dtypes that its format does not know, by name. */
bool npz_write(const char *path, const archive_item *items, int64_t count);
bool safetensors_write(const char *path, const archive_item *items, int64_t count);
bool bundle_write_items(const char *prefix, const archive_item *items, int64_t count);

/* A tensor's elements, row-major, piece by piece: contiguous ones as they lie, others packed strip
 * by strip into a block of at most a megabyte. */
bool io_stream_tensor(const ed_tensor *t, bool (*take)(void *user, const void *data, size_t size),
                      void *user);

#endif
