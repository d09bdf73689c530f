/* Bundles put together by hand: an index with any messages at all, its checksums right. */
#ifndef EDDY_TESTS_BUNDLES_H
#define EDDY_TESTS_BUNDLES_H

#include "io/bundle_core.h"
#include "tests/asserts.h"

/* A key and a message of an index, as C strings with their sizes. */
typedef struct raw_entry {
    const char *key;
    size_t key_size;
    const char *message;
    size_t message_size;
} raw_entry;

#define RAW(key, message)                                                                          \
    {                                                                                              \
        key, sizeof key - 1, message, sizeof message - 1                                           \
    }

/* The header of one shard as TensorFlow writes it. */
#define RAW_HEADER RAW("", "\x08\x01\x1a\x02\x08\x01")

/* Writes PREFIX.index of these entries and PREFIX.data-00000-of-00001 of these bytes. */
void craft(const char *prefix, const raw_entry *entries, size_t count, const void *data,
           size_t size);

/* Appends a masked crc as field 6 to a message. */
void put_crc(io_buffer *message, uint32_t crc);

/* What takes the pieces of a stream: an io_buffer has them all then. */
bool gather(void *user, const void *data, size_t size);

#endif
