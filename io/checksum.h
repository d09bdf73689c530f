/* Checksums of written data: CRC-32C, as in TensorFlow's files, by the processor's instruction
 * if it has one, and XXH3-128. */
#ifndef EDDY_IO_CHECKSUM_H
#define EDDY_IO_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a computed checksum equals the one in a file: all readers use this. A fuzzer would
 * never find a matching one, so builds for fuzzing (make fuzz) accept all. */
static inline bool io_checksum_is(uint64_t found, uint64_t stored)
{
#ifdef EDDY_FUZZING
    stored = found;
#endif
    return found == stored;
}

/* crc extended by `size` bytes; the initial value is 0. Extending by one part and then by the
 * rest gives the crc of the whole. */
uint32_t io_crc32c(uint32_t crc, const void *data, size_t size);

/* The same without the instruction. */
uint32_t io_crc32c_plain(uint32_t crc, const void *data, size_t size);

/* The crc of the whole from those of the first part and of the rest, which has `rest_size`
 * bytes. */
uint32_t io_crc32c_join(uint32_t first, uint32_t rest, size_t rest_size);

/* The masked form that files store / the reverse. */
static inline uint32_t io_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static inline uint32_t io_crc32c_unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
}

/* XXH3-128 of bytes that come in pieces. A plain value: nothing to free. */
typedef struct io_digest {
    uint64_t low, high;
} io_digest;

typedef struct io_digester io_digester; /* xxHash's state; memory_free frees it */

io_digester *io_digest_begin(void); /* NULL if memory is short */
void io_digest_add(io_digester *d, const void *data, size_t size);
io_digest io_digest_end(const io_digester *d);
io_digest io_digest_of(const void *data, size_t size);

/* 32 hexadecimal digits and a 0, high half first, as xxhsum -H128 prints it. */
void io_digest_text(io_digest digest, char text[33]);

#endif
