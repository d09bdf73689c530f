/*
 * TensorFlow's tensor bundle V2: PREFIX.index, a sorted table of names (LevelDB's), and
 * PREFIX.data-SSSSS-of-NNNNN, the tensors' bytes. This file knows bytes and names; what the names
 * mean in a checkpoint is train/'s.
 *
 * Beside TensorFlow's own checksums (CRC-32C for every tensor and every block of the index) a
 * bundle written here has an entry more, the string tensor BUNDLE_DIGESTS, which TensorFlow passes
 * over. Each of its elements is a line as `xxhsum -H128` prints it: XXH3-128 of a tensor's stored
 * bytes as 32 hexadecimal digits, two spaces, the tensor's name; a line for every other tensor, in
 * the order of names. It is an entry like others: it is counted and found, and has no digest
 * itself. A tensor that no line names, or a bundle without lines or with unreadable ones, has
 * TensorFlow's checksums.
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

/*
 * A named tensor of a bundle, as its index says. Slices of a sliced tensor are not entries of their
 * own: the tensor is read as one. Of an entry with damage only the name is to be believed; every
 * attempt to read it fails and says what is wrong with it, while the others can be read.
 */
typedef struct bundle_entry {
    const char *name; /* ends in a 0; a name with a 0 inside has a longer name_size */
    size_t name_size;
    const char *damage; /* what is wrong with the entry, NULL: nothing */
    io_dtype dtype;
    int rank;             /* 0 to BUNDLE_MAX_RANK: more than tensors have */
    const int64_t *shape; /* checked: no negative extent, the product fits */
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
 * it.
 */
bundle *bundle_open(const char *who, const char *prefix);

int64_t bundle_count(const bundle *b);
const bundle_entry *bundle_at(const bundle *b, int64_t i);          /* in the order of names */
const bundle_entry *bundle_find(const bundle *b, const char *name); /* NULL: none; no error */
const char *bundle_prefix(const bundle *b);
int bundle_shards(const bundle *b);

/*
 * The elements, row-major, in the machine's byte order, into `to` of entry->bytes bytes: checksum
 * and, where there is one, digest verified over what was read. Large tensors are read by several
 * threads. ED_DATA_LOSS names the tensor; `to` then holds anything. Not for strings and variants.
 */
bool bundle_read(const bundle *b, const bundle_entry *entry, void *to);

/* The same into a new tensor of an Eddy dtype, owned by nobody yet; ED_UNIMPLEMENTED for a dtype or
 * rank that tensors don't have. */
ed_tensor *bundle_tensor(const bundle *b, const bundle_entry *entry);

/* The elements as bundle_read gives them, strings and variants as they are stored, handed to `take`
 * piece by piece; everything verified by the end. false as soon as `take` says so. */
bool bundle_stream(const bundle *b, const bundle_entry *entry, io_sink *take, void *user);

/* Element i of a string tensor appended to `out`; its checksum verified. */
bool bundle_string(const bundle *b, const bundle_entry *entry, int64_t i, io_buffer *out);

/* All elements of a string tensor in order, verified before the first is seen; false as soon as
 * `visit` says so. A string is valid during the call. */
bool bundle_strings(const bundle *b, const bundle_entry *entry,
                    bool (*visit)(void *user, io_span string), void *user);

/* Verifies an entry of any dtype without keeping it: checksum, and digest where there is one. */
bool bundle_verify(const bundle *b, const bundle_entry *entry);

/* The digest that was written with it; false (no error) if there is none. */
bool bundle_digest(const bundle *b, const bundle_entry *entry, io_digest *digest);

/* ---- Writing --------------------------------------------------------------------------------- */

typedef struct bundle_writer bundle_writer;

/* Begins PREFIX, one shard, in a folder that is made if it is missing. NULL on failure. Names may
 * come in any order. */
bundle_writer *bundle_create(const char *who, const char *prefix);

/* Appends a tensor, strided views strip by strip without a copy of the whole. Names are not empty
 * and not BUNDLE_DIGESTS, which bundle_finish adds; one that came before is found at the latest by
 * bundle_finish. After a failure all further calls give false. */
bool bundle_add(bundle_writer *w, const char *name, const ed_tensor *tensor);

/* Elements as they are, in the machine's order: for dtypes that tensors don't have. */
bool bundle_add_raw(bundle_writer *w, const char *name, io_dtype dtype, int rank,
                    const int64_t *shape, const void *data, size_t size);

/* A tensor of strings; rank 0 for a scalar. */
bool bundle_add_strings(bundle_writer *w, const char *name, int rank, const int64_t *shape,
                        const io_span *strings, int64_t count);

/* Writes the digests and the index, data before index, each fsynced, renamed, folder fsynced. Frees
 * the writer in any case; on failure nothing of the bundle is left and an older one of the same
 * prefix is as it was (but for the instant between the two renames: see the .c file). */
bool bundle_finish(bundle_writer *w);

/* Gives it up. NULL is allowed. */
void bundle_discard(bundle_writer *w);

/* Removes PREFIX's index, then its shards: whatever of PREFIX.index and PREFIX.data-*-of-* is
 * there. */
bool bundle_remove(const char *who, const char *prefix);

#endif
