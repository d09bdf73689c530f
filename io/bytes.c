#include "io/bytes.h"
#include "tensor/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Reading --------------------------------------------------------------------------------- */

io_span io_take(io_cursor *c, size_t n)
{
    if (c->failed || n > (size_t)(c->end - c->at)) {
        c->failed = true;
        return (io_span){NULL, 0};
    }
    io_span taken = {c->at, n};
    if (n) c->at += n; /* an empty cursor may be at NULL */
    return taken;
}

/* A little-endian number of n <= 8 bytes. */
static uint64_t take_number(io_cursor *c, size_t n)
{
    io_span s = io_take(c, n);
    uint64_t value = 0;
    for (size_t i = s.size; i > 0; i--) value = value << 8 | s.data[i - 1];
    return value;
}

uint8_t io_u8(io_cursor *c)
{
    return (uint8_t)take_number(c, 1);
}

uint16_t io_u16(io_cursor *c)
{
    return (uint16_t)take_number(c, 2);
}

uint32_t io_u32(io_cursor *c)
{
    return (uint32_t)take_number(c, 4);
}

uint64_t io_u64(io_cursor *c)
{
    return take_number(c, 8);
}

uint64_t io_varint(io_cursor *c)
{
    uint64_t value = 0;
    const uint8_t *p = c->at;
    for (int shift = 0; !c->failed && p < c->end; shift += 7) {
        uint8_t byte = *p++;
        if (shift == 63 && byte > 1) break; /* the 64th bit is the last */
        value |= (uint64_t)(byte & 127) << shift;
        if (byte & 128) continue;
        c->at = p;
        return value;
    }
    c->failed = true;
    return 0;
}

io_span io_counted(io_cursor *c)
{
    const uint8_t *begin = c->at;
    uint64_t n = io_varint(c);
    io_span s = io_take(c, n);
    if (c->failed) c->at = begin;
    return s;
}

/* ---- Protocol buffers ------------------------------------------------------------------------ */

bool io_next_field(io_cursor *c, io_field *field)
{
    *field = (io_field){0};
    if (!io_more(c)) return false;
    const uint8_t *begin = c->at;
    uint64_t key = io_varint(c);
    field->number = (uint32_t)(key >> 3);
    field->type = key & 7;
    switch (field->type) {
    case IO_VARINT: field->value = io_varint(c); break;
    case IO_FIXED64: field->value = io_u64(c); break;
    case IO_BYTES: field->bytes = io_counted(c); break;
    case IO_FIXED32: field->value = io_u32(c); break;
    default: c->failed = true;
    }
    if (key > UINT32_MAX || !field->number) c->failed = true;
    if (!c->failed) return true;
    c->at = begin;
    *field = (io_field){0};
    return false;
}

/* ---- Writing --------------------------------------------------------------------------------- */

void io_buffer_free(io_buffer *b)
{
    memory_free(b->data);
    *b = (io_buffer){0};
}

/* Room for n more bytes: returns their address, NULL if memory is short. */
static uint8_t *make_buffer_room(io_buffer *b, size_t n)
{
    if (b->failed) return NULL;
    if (n > b->capacity - b->size) {
        size_t twice = b->capacity < HARD(1, 64) ? HARD(1, 64) : b->capacity * 2;
        size_t want = b->size + n < twice ? twice : b->size + n;
        uint8_t *data = n <= SIZE_MAX / 4 ? memory_grow(b->data, b->size, want) : NULL;
        b->failed = !data;
        if (!data) return NULL;
        b->data = data;
        b->capacity = want;
    }
    return b->data + b->size;
}

void io_put(io_buffer *b, const void *data, size_t size)
{
    uint8_t *to = size ? make_buffer_room(b, size) : NULL;
    if (!to) return;
    memcpy(to, data, size);
    b->size += size;
}

/* A number of n <= 8 bytes. */
static void put_number(io_buffer *b, uint64_t value, size_t n)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    io_put(b, bytes, n);
}

void io_put_u8(io_buffer *b, uint8_t value)
{
    put_number(b, value, 1);
}

void io_put_u16(io_buffer *b, uint16_t value)
{
    put_number(b, value, 2);
}

void io_put_u32(io_buffer *b, uint32_t value)
{
    put_number(b, value, 4);
}

void io_put_u64(io_buffer *b, uint64_t value)
{
    put_number(b, value, 8);
}

void io_put_varint(io_buffer *b, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; value > 127; value >>= 7) bytes[n++] = (uint8_t)(value | 128);
    bytes[n++] = (uint8_t)value;
    io_put(b, bytes, n);
}

void io_put_format(io_buffer *b, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    uint8_t *to = n > 0 ? make_buffer_room(b, (size_t)n + 1) : NULL;
    if (!to) return;
    va_start(arguments, format);
    vsnprintf((char *)to, (size_t)n + 1, format, arguments);
    va_end(arguments);
    b->size += (size_t)n;
}

void io_put_field_varint(io_buffer *b, uint32_t number, uint64_t value)
{
    io_put_varint(b, (uint64_t)number << 3 | IO_VARINT);
    io_put_varint(b, value);
}

void io_put_field_fixed32(io_buffer *b, uint32_t number, uint32_t value)
{
    io_put_varint(b, (uint64_t)number << 3 | IO_FIXED32);
    io_put_u32(b, value);
}

void io_put_field_bytes(io_buffer *b, uint32_t number, const void *data, size_t size)
{
    io_put_varint(b, (uint64_t)number << 3 | IO_BYTES);
    io_put_varint(b, size);
    io_put(b, data, size);
}
