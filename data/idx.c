/*
 * The reader trusts nothing but bytes it has seen: memory grows with the data that arrives, so a
 * short file with a header of gigabytes costs a short read. Bytes come from source_read, which
 * hides the compression: a file that starts as gzip does goes through inflate (members in a row are
 * one stream, as gzip has it), any other comes as it is.
 */
#include "data/idx.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER = 1 << 15, FIRST = 1 << 16 };

struct source {
    const char *path;
    idx_resize *resize;
    char *error;
    size_t room;
    int file;
    bool zipped, at_end;
    z_stream z; /* next_in and avail_in say what of the buffer is unread, zipped or not */
    unsigned char buffer[BUFFER];
};

/* Every complaint is made here. */
__attribute__((format(printf, 2, 3))) static bool fail(struct source *s, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (s->room) snprintf(s->error, s->room, "idx: %s: %s", s->path, what);
    return false;
}

/* ---- bytes ---- */

static void *zip_allocate(void *resize, unsigned count, unsigned size)
{
    return ((struct source *)resize)->resize(NULL, (size_t)count * size);
}

static void zip_release(void *resize, void *memory)
{
    ((struct source *)resize)->resize(memory, 0);
}

/* Fills the empty buffer; at_end when the file has no more. */
static bool refill(struct source *s)
{
    ssize_t n;
    do n = read(s->file, s->buffer, BUFFER);
    while (n < 0 && errno == EINTR);
    if (n < 0) return fail(s, "%s", strerror(errno));
    s->z.next_in = s->buffer;
    s->z.avail_in = (unsigned)n;
    s->at_end = n == 0;
    return true;
}

static bool source_open(struct source *s)
{
    s->file = open(s->path, O_RDONLY | O_CLOEXEC);
    if (s->file < 0) return fail(s, "%s", strerror(errno));
    if (!refill(s)) return false;
    if (s->z.avail_in < 2 || s->buffer[0] != 0x1f || s->buffer[1] != 0x8b) return true;
    s->z.zalloc = zip_allocate;
    s->z.zfree = zip_release;
    s->z.opaque = s;
    if (inflateInit2(&s->z, 15 + 16) != Z_OK) return fail(s, "out of memory");
    s->zipped = true;
    return true;
}

static void source_close(struct source *s)
{
    if (s->zipped) inflateEnd(&s->z);
    if (s->file >= 0) close(s->file);
}

static size_t copy_plain(struct source *s, unsigned char *out, size_t want)
{
    size_t n = s->z.avail_in < want ? s->z.avail_in : want;
    memcpy(out, s->z.next_in, n);
    s->z.next_in += n;
    s->z.avail_in -= (unsigned)n;
    return n;
}

/* Inflates what it can; false when the compressed data is damaged. */
static bool copy_zipped(struct source *s, unsigned char *out, size_t want, size_t *got)
{
    unsigned room = want < 1u << 30 ? (unsigned)want : 1u << 30;
    s->z.next_out = out;
    s->z.avail_out = room;
    int state = inflate(&s->z, Z_NO_FLUSH);
    *got = room - s->z.avail_out;
    if (state == Z_STREAM_END) {
        /* Behind a member's end there is another member or nothing. */
        if (!s->z.avail_in && !refill(s)) return false;
        if (s->at_end) return true;
        return inflateReset(&s->z) == Z_OK;
    }
    if (state == Z_OK || state == Z_BUF_ERROR) return true;
    if (state == Z_MEM_ERROR) return fail(s, "out of memory");
    return fail(s, "damaged gzip data%s%s", s->z.msg ? ": " : "", s->z.msg ? s->z.msg : "");
}

/* Reads up to want bytes; *got is less only at the end of the data. */
static bool source_read(struct source *s, unsigned char *out, size_t want, size_t *got)
{
    for (*got = 0; *got < want && !s->at_end;) {
        size_t n = 0;
        if (!s->z.avail_in && !refill(s)) return false;
        if (s->at_end && s->zipped) return fail(s, "the gzip data ends early");
        if (s->zipped) {
            if (!copy_zipped(s, out + *got, want - *got, &n)) return false;
        } else {
            n = copy_plain(s, out + *got, want - *got);
        }
        *got += n;
    }
    return true;
}

/* ---- the format ---- */

static size_t type_size(unsigned type)
{
    switch (type) {
    case IDX_UINT8:
    case IDX_INT8: return 1;
    case IDX_INT16: return 2;
    case IDX_INT32:
    case IDX_FLOAT32: return 4;
    case IDX_FLOAT64: return 8;
    default: return 0;
    }
}

static bool read_header(struct source *s, struct idx *idx)
{
    unsigned char head[4], size[4];
    size_t got, bytes;
    if (!source_read(s, head, 4, &got)) return false;
    if (got < 4 || head[0] || head[1]) return fail(s, "this is no IDX file");
    bytes = type_size(head[2]);
    if (!bytes) return fail(s, "unknown element type 0x%02x", head[2]);
    if (head[3] < 1 || head[3] > IDX_DIMS)
        return fail(s, "%d dimensions, expected 1 to %d", head[3], IDX_DIMS);
    idx->type = (enum idx_type)head[2];
    idx->ndim = head[3];
    for (int i = 0; i < idx->ndim; i++) {
        if (!source_read(s, size, 4, &got)) return false;
        if (got < 4) return fail(s, "the file ends inside its header");
        idx->shape[i] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (!idx->shape[i]) return fail(s, "dimension %d has size 0", i);
        if (__builtin_mul_overflow(bytes, (size_t)idx->shape[i], &bytes) || bytes > PTRDIFF_MAX)
            return fail(s, "the sizes in the header are too large");
    }
    idx->size = bytes;
    return true;
}

static bool read_data(struct source *s, struct idx *idx)
{
    size_t have = 0, room = 0, got;
    unsigned char beyond;
    while (have < idx->size) {
        if (have == room) {
            room = room < FIRST ? FIRST : 2 * room; /* no overflow: room < size <= PTRDIFF_MAX */
            if (room > idx->size) room = idx->size;
            void *data = s->resize(idx->data, room);
            if (!data) return fail(s, "out of memory");
            idx->data = data;
        }
        if (!source_read(s, idx->data + have, room - have, &got)) return false;
        have += got;
        if (have < room)
            return fail(s, "the header asks for %zu bytes of data, the file has %zu", idx->size,
                        have);
    }
    if (!source_read(s, &beyond, 1, &got)) return false;
    return got == 0 || fail(s, "the file goes on after its %zu bytes of data", idx->size);
}

static void swap_bytes(struct idx *idx)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    size_t width = type_size(idx->type);
    for (unsigned char *p = idx->data, *end = p + idx->size; width > 1 && p < end; p += width)
        for (size_t i = 0; i < width / 2; i++) {
            unsigned char byte = p[i];
            p[i] = p[width - 1 - i];
            p[width - 1 - i] = byte;
        }
#else
    (void)idx;
#endif
}

bool idx_read(const char *path, idx_resize *resize, struct idx *idx, char *error, size_t room)
{
    struct source s = {.path = path, .resize = resize, .error = error, .room = room, .file = -1};
    *idx = (struct idx){0};
    bool good = source_open(&s) && read_header(&s, idx) && read_data(&s, idx);
    source_close(&s);
    if (good) {
        swap_bytes(idx);
    } else {
        if (idx->data) resize(idx->data, 0);
        *idx = (struct idx){0};
    }
    return good;
}
