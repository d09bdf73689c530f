/*
 * LevelDB's sorted table, the format of a bundle's index: keys in the order of their bytes, each
 * with a value.
 *
 *     | block | ... | block | metaindex, empty | index: a key and a handle per block | footer |
 *
 * Each block is followed by its type (0 raw, 1 snappy) and the checksum of both. In a block a key
 * is stored as the length of the prefix it shares with the key before, and the rest; each 16th is
 * stored whole (a restart), and the offsets of the restarts are at the block's end.
 */
#ifndef EDDY_IO_TABLE_H
#define EDDY_IO_TABLE_H

#include "io/bytes.h"

/* ---- Reading --------------------------------------------------------------------------------- */

/* A table in memory, blocks verified and unpacked. */
typedef struct table {
    const char *who, *path; /* the caller's, for errors */
    uint8_t *file, *unpacked;
    size_t size;
    io_span *blocks; /* the entries of the blocks, without restarts */
    int64_t count;
} table;

/* Reads the whole file and verifies the blocks that hold entries. false with an error:
 * ED_NOT_FOUND, ED_DATA_LOSS, ...; then there is nothing to close. */
bool table_open(table *t, const char *who, const char *path);
void table_close(table *t);

/* An iteration over all entries: {.table = t} is before the first one. */
typedef struct table_walk {
    const table *table;
    int64_t block; /* the next one */
    io_cursor at;  /* in the present one */
    io_buffer key; /* of the present entry */
    io_span value; /* valid as long as the table */
    bool begun, failed;
} table_walk;

/* Moves to the next entry; false at the end and, with an error and `failed` set, if the table is
 * damaged: keys must ascend. A duplicate entry with the same value counts once. */
bool table_next(table_walk *w);
void table_walk_end(table_walk *w);

/* ---- Writing --------------------------------------------------------------------------------- */

typedef struct table_block {
    io_buffer entries, restarts, last_key;
    int count, interval; /* entries; one in `interval` is a restart */
} table_block;

/* A table that is being written, byte for byte as TensorFlow does; {0} is an empty one. */
typedef struct table_writer {
    io_buffer file;
    table_block data, index;
    io_buffer last_key; /* of the block that is not in the index yet */
    uint64_t offset, size;
    bool pending; /* there is such a block: offset and size */
} table_writer;

/* Adds an entry; keys must ascend. */
void table_add(table_writer *w, io_span key, io_span value);

/* Completes w->file; false if memory is short. */
bool table_end(table_writer *w);
void table_writer_free(table_writer *w);

#endif
