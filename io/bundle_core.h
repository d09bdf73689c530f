/*
 * What the files of the bundle reader share: bundle.c makes these of the index, bundle_read.c reads
 * elements by them.
 */
#ifndef EDDY_IO_BUNDLE_CORE_H
#define EDDY_IO_BUNDLE_CORE_H

#include "io/bundle.h"
#include "io/table.h"

/* Fields of the index' messages. */
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

/* A file of data that entries name. */
typedef struct bundle_shard {
    int32_t number;
    bool there;
    io_file file;
} bundle_shard;

/* An entry with what its users don't see; `seen` stands first, so that one
 * is found by the other. */
typedef struct bundle_item bundle_item;
struct bundle_item {
    bundle_entry seen;
    io_span message; /* the entry as it stands in the index */
    int64_t offset, size;
    uint32_t crc; /* masked */
    int32_t shard_number;
    const bundle_shard *shard; /* NULL: none, or it is not there */
    int64_t slices;            /* the elements are in so many other entries */
    bundle_item **parts;       /* these; NULL where one is missing */
    bool is_slice;             /* not shown */
    bool digested;
    io_digest digest;
};

struct bundle {
    ed_object object;
    const char *who;
    char *prefix, *index; /* PREFIX and PREFIX.index */
    table table;
    bool swapped; /* elements lie in the other byte order */
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

/* A part of a sliced tensor. A length of -1 stands for the whole extent. */
typedef struct bundle_slice {
    int rank;
    int64_t start[BUNDLE_MAX_RANK], length[BUNDLE_MAX_RANK];
} bundle_slice;

/* The next slice that the message of a sliced entry names; false at the end, or (ask io_ok) where
 * it is damaged. */
bool bundle_next_slice(io_cursor *message, bundle_slice *slice);

/* Puts the extents in the place of lengths of -1; the slice's number of elements, or -1 if it does
 * not lie within the tensor. */
int64_t bundle_fit_slice(const bundle_entry *whole, bundle_slice *slice);

/* The product of the extents into *product; false for a negative one or an overflow of those that
 * are not 0. */
bool bundle_count_elements(int rank, const int64_t *shape, int64_t *product);

/* bundle_strings, but what is wrong with the tensor goes to *damage and is no error. */
bool bundle_walk_strings(const bundle_item *item, bool (*visit)(void *user, io_span string),
                         void *user, const char **damage);

/* The crc of a string's or variant's length: as a number of 4 bytes, of 8 if it needs them. */
uint32_t bundle_crc_length(uint32_t crc, uint64_t length, bool always_long);

/* Keeps an error that names the bundle and the tensor; false. */
bool bundle_fail(const bundle *b, const bundle_item *item, ed_error_code code, const char *what);

#endif
