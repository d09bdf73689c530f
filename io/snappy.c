#include "io/snappy.h"
#include <string.h>

/*
 * A varint, the unpacked size; then tags, each followed by its bytes. The low two bits of a tag are
 * its kind; its other bits and the bytes after it are a length and, for a copy, the distance back
 * to the bytes that are repeated:
 *
 *     0  literal   length - 1 in six bits; from 60 on in the 1 ... 4 bytes that follow
 *     1  copy      length - 4 in three bits, distance in three bits and a byte
 *     2  copy      length - 1 in six bits, distance in two bytes
 *     3  copy      length - 1 in six bits, distance in four bytes
 */

/* The highest ratio: 64 bytes for 3. */
enum { MOST_GROWTH = 22 };

bool snappy_size(io_span packed, size_t *size)
{
    io_cursor c = io_cursor_on(packed.data, packed.size);
    uint64_t claim = io_varint(&c);
    *size = (size_t)claim;
    return io_ok(&c) && claim / MOST_GROWTH <= packed.size;
}

static uint32_t little_endian(io_cursor *c, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint32_t)io_u8(c) << 8 * i;
    return value;
}

static size_t literal_length(io_cursor *c, uint8_t tag)
{
    size_t length = tag >> 2;
    return (length < 60 ? length : little_endian(c, (int)length - 59)) + (size_t)1;
}

bool snappy_unpack(io_span packed, uint8_t *to, size_t size)
{
    io_cursor c = io_cursor_on(packed.data, packed.size);
    io_varint(&c);
    size_t done = 0;
    while (io_more(&c)) {
        uint8_t tag = io_u8(&c);
        int kind = tag & 3;
        if (kind == 0) {
            io_span literal = io_take(&c, literal_length(&c, tag));
            if (!io_ok(&c) || literal.size > size - done) return false;
            memcpy(to + done, literal.data, literal.size);
            done += literal.size;
            continue;
        }
        size_t length = kind == 1 ? 4 + (size_t)(tag >> 2 & 7) : 1 + (size_t)(tag >> 2);
        size_t back =
            kind == 1 ? (size_t)(tag >> 5) << 8 | io_u8(&c) : little_endian(&c, kind == 2 ? 2 : 4);
        if (!io_ok(&c) || !back || back > done || length > size - done) return false;
        /* Byte by byte: source and destination may overlap. */
        for (size_t end = done + length; done < end; done++) to[done] = to[done - back];
    }
    return io_ok(&c) && done == size;
}
