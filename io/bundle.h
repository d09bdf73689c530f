/*
 * TensorFlow's tensor bundle V2: PREFIX.index, a sorted table of names (LevelDB's), and
 * PREFIX.data-SSSSS-of-NNNNN, the tensors' bytes. These files handle bytes and names; the meaning
 * of the names in a checkpoint is in train/.
 *
 * Besides TensorFlow's checksums (CRC-32C for each tensor and each block of the index) a bundle
 * written here has one more entry, the string tensor BUNDLE_DIGESTS, which TensorFlow ignores. Each
 * of its elements is a line as `xxhsum -H128` prints it: XXH3-128 of a tensor's stored bytes as 32
 * hexadecimal digits, two spaces, the tensor's name; one line for each other tensor, in the order
 * of names. It is an ordinary entry: it is counted and found, and has no digest itself. A tensor
 * without a line, or a bundle without lines or with invalid ones, has only TensorFlow's checksums.
 */
#ifndef EDDY_IO_BUNDLE_H
#define EDDY_IO_BUNDLE_H

#include "io/bytes.h"
#include "io/checksum.h"
#include "io/dtype.h"
#include "io/file.h"

#define BUNDLE_GRAPH   "_CHECKPOINTABLE_OBJECT_GRAPH"
#define BUNDLE_DIGESTS "_EDDY_XXH3_128"

enum { BUNDLE_MAX_RANK = 254 };

typedef struct bundle bundle;

/* A named tensor of a bundle, from its index. Slices of a sliced tensor are not separate
 * entries: the tensor is read as a whole. Of an entry with damage only the name is valid;
 * reading it fails with that message, while other entries can be read. */
typedef struct bundle_entry {
    const char *name; /* ends in a 0; if it contains a 0, name_size is larger */
    size_t name_size;
    const char *damage; /* the entry's damage as a sentence; NULL: none */
    io_dtype dtype;
    int rank;             /* 0 to BUNDLE_MAX_RANK, which tensors do not support */
    const int64_t *shape; /* checked: no negative size, the product fits */
    int64_t elements;
    int64_t bytes; /* of the elements; of strings and variants: as stored */
} bundle_entry;

/*
 * Opens PREFIX and reads its index whole, every block's checksum verified, names sorted and without
 * repetition. ED_NOT_FOUND if there is no index; ED_DATA_LOSS for a damaged one; ED_UNIMPLEMENTED
 * for one that asks for newer readers. Each entry is compared with its shard; what is wrong there
 * (a missing shard, an extent beyond its end, an absurd shape) is the entry's damage and no
 * failure. `who`, a text that stays, begins errors. The bundle is an object: ed_release gives it up
 * (no scope holds it). It keeps its files open, so replacing or removing them changes nothing for
 * it. Where another process replaces the bundle meanwhile, index and shards are of the same one.
 */
bundle *bundle_open(const char *who, const char *prefix);

int64_t bundle_count(const bundle *b);
const bundle_entry *bundle_at(const bundle *b, int64_t i);          /* in the order of names */
const bundle_entry *bundle_find(const bundle *b, const char *name); /* NULL: none; no error */
const char *bundle_prefix(const bundle *b);
int bundle_shards(const bundle *b);

/* Whether all of its shards were there, also those that no entry names. */
bool bundle_is_complete(const bundle *b);

/*
 * Reads the elements, row-major, in the machine's byte order, to `to`, which has entry->bytes
 * bytes; verifies the checksum and, if there is one, the digest of what was read. Large tensors are
 * read by several threads. ED_DATA_LOSS names the tensor; the contents of `to` are then undefined.
 * Not for strings and variants.
 */
bool bundle_read(const bundle *b, const bundle_entry *entry, void *to);

/* The same into a new tensor of an Eddy dtype; the caller owns the reference. ED_UNIMPLEMENTED
 * for a dtype or rank that tensors don't support. */
ed_tensor *bundle_tensor(const bundle *b, const bundle_entry *entry);

/* Passes the elements to `take` piece by piece, numbers as by bundle_read, strings and variants
 * as they are stored; everything is verified at the end. false if `take` returns false. */
bool bundle_stream(const bundle *b, const bundle_entry *entry, io_sink *take, void *user);

/* Appends element i of a string tensor to `out`; verifies its checksum. */
bool bundle_string(const bundle *b, const bundle_entry *entry, int64_t i, io_buffer *out);

/* Visits all elements of a string tensor in order; everything is verified before the first one.
 * false if `visit` returns false. A string is valid during the call. */
bool bundle_strings(const bundle *b, const bundle_entry *entry,
                    bool (*visit)(void *user, io_span string), void *user);

/* Verifies an entry of any dtype: checksum and, if there is one, digest. */
bool bundle_verify(const bundle *b, const bundle_entry *entry);

/* The digest that was written with it; false, without an error, if there is none. */
bool bundle_digest(const bundle *b, const bundle_entry *entry, io_digest *digest);

/* ---- Writing --------------------------------------------------------------------------------- */

typedef struct bundle_writer bundle_writer;

/* Begins PREFIX in a folder that is made if it is missing. NULL on failure. Names may
 * come in any order. */
bundle_writer *bundle_create(const char *who, const char *prefix);

/* Appends a tensor, strided views strip by strip without a copy of the whole. Names must not be
 * empty or BUNDLE_DIGESTS, which bundle_finish adds; a duplicate name fails here or in
 * bundle_finish. After a failure all further calls return false. */
bool bundle_add(bundle_writer *w, const char *name, const ed_tensor *tensor);

/* Appends elements in the machine's byte order: for dtypes that tensors don't support. */
bool bundle_add_raw(bundle_writer *w, const char *name, io_dtype dtype, int rank,
                    const int64_t *shape, const void *data, size_t size);

/* Appends a tensor of strings; rank 0: a scalar. */
bool bundle_add_strings(bundle_writer *w, const char *name, int rank, const int64_t *shape,
                        const io_span *strings, int64_t count);

/* Writes the digests and the index, data before index, each fsynced, renamed, folder fsynced. Frees
 * the writer in any case; on failure nothing of the bundle is left and an older one of the same
 * prefix is as it was. An older one is replaced at once, by the rename of the index: at every
 * moment the prefix is the older or the new one, whole. If only the last fsync of the folder fails,
 * the new one is there, and after a power cut perhaps the older one. Temporary files that a killed
 * process left of the prefix are removed. */
bool bundle_finish(bundle_writer *w);

/* Discards the bundle. NULL is allowed. */
void bundle_discard(bundle_writer *w);

/* Removes PREFIX's index, then its shards: all existing files PREFIX.index and
 * PREFIX.data-*-of-*. */
bool bundle_remove(const char *who, const char *prefix);

#endif
