/*
 * Bytes from and for files, for readers that trust nothing: a cursor that never reads past its end,
 * and a growing buffer. Numbers are little-endian; varints are protocol buffers'.
 *
 * A cursor that failed stays failed: reads return 0 and change nothing, so a parser may continue
 * and check io_ok once, before it uses the result.
 */
#ifndef EDDY_IO_BYTES_H
#define EDDY_IO_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range of bytes in memory of others. */
typedef struct io_span {
    const uint8_t *data;
    size_t size;
} io_span;

/* ---- Reading --------------------------------------------------------------------------------- */

typedef struct io_cursor {
    const uint8_t *at, *end;
    bool failed;
} io_cursor;

static inline io_cursor io_cursor_on(const void *data, size_t size)
{
    return (io_cursor){data, size ? (const uint8_t *)data + size : data, false};
}

static inline bool io_ok(const io_cursor *c)
{
    return !c->failed;
}

/* Whether there is more to read; false after a failure. */
static inline bool io_more(const io_cursor *c)
{
    return !c->failed && c->at < c->end;
}

/* The next n bytes; moves the cursor past them. {NULL, 0} if there are fewer. */
io_span io_take(io_cursor *c, size_t n);

uint8_t io_u8(io_cursor *c);
uint16_t io_u16(io_cursor *c);
uint32_t io_u32(io_cursor *c);
uint64_t io_u64(io_cursor *c);

/* At most ten bytes; fails if it exceeds 64 bits. */
uint64_t io_varint(io_cursor *c);

/* A varint length and as many bytes. */
io_span io_counted(io_cursor *c);

/* ---- Protocol buffers ------------------------------------------------------------------------ */

enum { IO_VARINT = 0, IO_FIXED64 = 1, IO_BYTES = 2, IO_FIXED32 = 5 };

/* One field of a message. */
typedef struct io_field {
    uint32_t number;
    int type;       /* IO_VARINT ... */
    uint64_t value; /* of a varint or fixed number */
    io_span bytes;  /* of IO_BYTES */
} io_field;

/* The next field of the message; false at its end and if it is damaged (check io_ok). Groups,
 * which are obsolete, count as damage. */
bool io_next_field(io_cursor *c, io_field *field);

/* Receives bytes piece by piece; false stops the caller, which then returns false. */
typedef bool io_sink(void *user, const void *data, size_t size);

/* ---- Writing --------------------------------------------------------------------------------- */

/* A growing buffer; {0} is an empty one. After an allocation failed it stays failed, and what is
 * put is dropped. */
typedef struct io_buffer {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
} io_buffer;

void io_buffer_free(io_buffer *b);
void io_put(io_buffer *b, const void *data, size_t size);
void io_put_u8(io_buffer *b, uint8_t value);
void io_put_u16(io_buffer *b, uint16_t value);
void io_put_u32(io_buffer *b, uint32_t value);
void io_put_u64(io_buffer *b, uint64_t value);
void io_put_varint(io_buffer *b, uint64_t value);
void io_put_format(io_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fields of a message: written even if the value is the default; callers omit those. */
void io_put_field_varint(io_buffer *b, uint32_t number, uint64_t value);
void io_put_field_fixed32(io_buffer *b, uint32_t number, uint32_t value);
void io_put_field_bytes(io_buffer *b, uint32_t number, const void *data, size_t size);

#endif
