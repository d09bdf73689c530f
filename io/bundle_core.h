/* What the files of the bundle reader share: bundle.c creates these structures from the index,
 * bundle_read.c reads elements. */
#ifndef EDDY_IO_BUNDLE_CORE_H
#define EDDY_IO_BUNDLE_CORE_H

#include "io/bundle.h"
#include "io/table.h"

/* Fields of the index's messages. */
enum { HEADER_SHARDS = 1, HEADER_ENDIANNESS = 2, HEADER_VERSION = 3 };
enum { VERSION_PRODUCER = 1, VERSION_MIN_CONSUMER = 2, VERSION_BAD_CONSUMERS = 3 };
enum {
    ENTRY_DTYPE = 1,
    ENTRY_SHAPE = 2,
    ENTRY_SHARD = 3,
    ENTRY_OFFSET = 4,
    ENTRY_SIZE = 5,
    ENTRY_CRC = 6,
    ENTRY_SLICES = 7
};
enum { SHAPE_DIM = 2, DIM_SIZE = 1, SLICE_EXTENT = 1, EXTENT_START = 1, EXTENT_LENGTH = 2 };

/* A data file that entries refer to. */
typedef struct bundle_shard {
    int32_t number;
    bool there;
    io_file file;
} bundle_shard;

/* An entry with its private fields; `seen` is the first, so that a pointer to one converts to
 * the other. */
typedef struct bundle_item bundle_item;
struct bundle_item {
    bundle_entry seen;
    io_span message; /* the entry as in the index */
    int64_t offset, size;
    uint32_t crc; /* masked */
    int32_t shard_number;
    const bundle_shard *shard; /* NULL: none, or the file is missing */
    int64_t slices;            /* the number of other entries that have the elements */
    bundle_item **parts;       /* those; NULL if one is missing */
    bool is_slice;             /* not visible */
    bool digested;
    io_digest digest;
};

struct bundle {
    ed_object object;
    const char *who;
    char *prefix, *index; /* PREFIX and PREFIX.index */
    table table;
    bool swapped;  /* elements lie in the other byte order */
    bool complete; /* all shards are there */
    int32_t shard_count;
    int64_t item_count, shown_count, opened;
    bundle_item *items;  /* all, in the order of names */
    bundle_item **shown; /* those that are tensors */
    bundle_item **parts; /* of all sliced tensors */
    bundle_shard *shards;
    char *names;
    size_t names_size;
    int64_t *extents; /* of all shapes */
};

/* A part of a sliced tensor. A length of -1 is the whole size of the axis. */
typedef struct bundle_slice {
    int rank;
    int64_t start[BUNDLE_MAX_RANK], length[BUNDLE_MAX_RANK];
} bundle_slice;

/* The next slice in the message of a sliced entry; false at the end, or (check io_ok) if it is
 * damaged. */
bool bundle_next_slice(io_cursor *message, bundle_slice *slice);

/* Replaces lengths of -1 by the sizes; returns the number of elements of the slice, or -1 if it
 * is not within the tensor. */
int64_t bundle_fit_slice(const bundle_entry *whole, bundle_slice *slice);

/* Sets *product to the product of the sizes; false for a negative one, or if the product of
 * those that are not 0 overflows. */
bool bundle_count_elements(int rank, const int64_t *shape, int64_t *product);

/* bundle_strings, but damage of the tensor is written to *damage and is not an error. */
bool bundle_walk_strings(const bundle_item *item, bool (*visit)(void *user, io_span string),
                         void *user, const char **damage);

/* The crc of a string's or variant's length: as a number of 4 bytes, or of 8 if it does not fit. */
uint32_t bundle_crc_length(uint32_t crc, uint64_t length, bool always_long);

/* The number of shards that PREFIX's index says; 0 if there is no index, or a damaged one. false
 * for other failures. */
bool bundle_shards_at(const char *who, const char *prefix, int32_t *shards);

/* Keeps an error that names the bundle and the tensor; false. */
bool bundle_fail(const bundle *b, const bundle_item *item, ed_error_code code, const char *what);

#endif
