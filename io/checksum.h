/*
 * Checksums of what is written: CRC-32C, as TensorFlow's files have it, by the processor's own
 * instruction where there is one, and XXH3's 128 bits.
 */
#ifndef EDDY_IO_CHECKSUM_H
#define EDDY_IO_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether a checksum worked out is the one a file has stored: every reader asks here. A fuzzer
 * would never get behind one, so what is built for it (make fuzz) takes them all for right.
 */
static inline bool io_checksum_is(uint64_t found, uint64_t stored)
{
#ifdef EDDY_FUZZING
    stored = found;
#endif
    return found == stored;
}

/* crc extended by `size` bytes; begins at 0. The crc of a part and then of the rest is that of the
 * whole. */
uint32_t io_crc32c(uint32_t crc, const void *data, size_t size);

/* The same without the instruction. */
uint32_t io_crc32c_plain(uint32_t crc, const void *data, size_t size);

/* The crc of a whole of its parts': of the first, and of the rest, which has `rest_size` bytes. */
uint32_t io_crc32c_join(uint32_t first, uint32_t rest, size_t rest_size);

/* As files store it / back. */
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

typedef struct io_digester io_digester; /* xxHash's state; memory_free gives it back */

io_digester *io_digest_begin(void); /* NULL without memory */
void io_digest_add(io_digester *d, const void *data, size_t size);
io_digest io_digest_end(const io_digester *d);
io_digest io_digest_of(const void *data, size_t size);

/* 32 hexadecimal digits and a 0, high half first, as xxhsum -H128 prints it. */
void io_digest_text(io_digest digest, char text[33]);

#endif
