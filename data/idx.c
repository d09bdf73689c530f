/*
 * IDX, the format of MNIST: bytes 0, 0, type, rank; the sizes as big-endian 32-bit integers; the
 * elements in row-major order, big-endian. Plain or gzip-compressed.
 *
 * The sizes in the header are not trusted beyond what the file can hold. For a plain file its size
 * is exact. For a compressed one, more than USUAL times its size is believed only after all data
 * was inflated and counted. So a short file whose header claims gigabytes costs little.
 *
 * source_read hides the compression: a file that begins as gzip is inflated (several members are
 * one stream, as in gzip), any other is read as it is.
 */
#include "data/data.h"
#include "tensor/core.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum type { UINT8 = 0x08, INT8 = 0x09, INT16 = 0x0b, INT32 = 0x0c, FLOAT32 = 0x0d, FLOAT64 = 0x0e };

struct header {
    enum type type;
    int rank; /* 1 ... ED_MAX_RANK */
    int64_t shape[ED_MAX_RANK];
    int64_t size; /* bytes of data */
};

enum { BUFFER = 1 << 15, USUAL = 8 };

struct source {
    const char *path;
    int file;
    bool zipped, at_end;
    z_stream z; /* next_in and avail_in: the unread part of the buffer, compressed or not */
    unsigned char buffer[BUFFER], sink[BUFFER];
};

/* All errors but out of memory go through this function. */
__attribute__((format(printf, 3, 4))) static bool
idx_fail(const struct source *s, ed_error_code code, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return ed_fail(code, "read_idx: %s: %s", s->path, what), false;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void *zip_allocate(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return memory_alloc((size_t)count * size);
}

static void zip_release(void *unused, void *memory)
{
    (void)unused;
    memory_free(memory);
}

/* Fills the empty buffer; at_end when the file has no more. */
static bool refill(struct source *s)
{
    ssize_t n;
    do n = read(s->file, s->buffer, BUFFER);
    while (n < 0 && errno == EINTR);
    if (n < 0) return idx_fail(s, ED_IO, "%s", strerror(errno));
    s->z.next_in = s->buffer;
    s->z.avail_in = (unsigned)n;
    s->at_end = n == 0;
    return true;
}

/* The first bytes tell whether the file is compressed. */
static bool source_open(struct source *s)
{
    struct stat file;
    /* Opening a pipe must not block. */
    s->file = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->file < 0)
        return idx_fail(s, errno == ENOENT ? ED_NOT_FOUND : ED_IO, "%s", strerror(errno));
    if (fstat(s->file, &file)) return idx_fail(s, ED_IO, "%s", strerror(errno));
    if (!S_ISREG(file.st_mode)) return idx_fail(s, ED_IO, "not a regular file");
    if (!refill(s)) return false;
    if (s->z.avail_in < 2 || s->buffer[0] != 0x1f || s->buffer[1] != 0x8b) return true;
    s->z.zalloc = zip_allocate;
    s->z.zfree = zip_release;
    if (inflateInit2(&s->z, 15 + 16) != Z_OK) return idx_fail(s, ED_OUT_OF_MEMORY, "out of memory");
    s->zipped = true;
    return true;
}

static bool source_rewind(struct source *s)
{
    if (lseek(s->file, 0, SEEK_SET) < 0) return idx_fail(s, ED_IO, "%s", strerror(errno));
    if (s->zipped) inflateReset(&s->z);
    return refill(s);
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
        /* After the end of a member there is another member or nothing. */
        if (!s->z.avail_in && !refill(s)) return false;
        if (s->at_end) return true;
        return inflateReset(&s->z) == Z_OK;
    }
    if (state == Z_OK || state == Z_BUF_ERROR) return true;
    if (state == Z_MEM_ERROR) return idx_fail(s, ED_OUT_OF_MEMORY, "out of memory");
    return idx_fail(s, ED_DATA_LOSS, "damaged gzip data%s%s", s->z.msg ? ": " : "",
                    s->z.msg ? s->z.msg : "");
}

/* Reads up to want bytes; *got is less only at the end of the data. */
static bool source_read(struct source *s, unsigned char *out, size_t want, size_t *got)
{
    for (*got = 0; *got < want && !s->at_end;) {
        size_t n = 0;
        if (!s->z.avail_in && !refill(s)) return false;
        if (s->at_end && s->zipped)
            return idx_fail(s, ED_DATA_LOSS, "unexpected end of the gzip data");
        if (s->zipped) {
            if (!copy_zipped(s, out + *got, want - *got, &n)) return false;
        } else {
            n = copy_plain(s, out + *got, want - *got);
        }
        *got += n;
    }
    return true;
}

/* ---- The format ------------------------------------------------------------------------------ */

static int width(unsigned type)
{
    switch (type) {
    case UINT8:
    case INT8: return 1;
    case INT16: return 2;
    case INT32:
    case FLOAT32: return 4;
    case FLOAT64: return 8;
    default: return 0;
    }
}

static bool idx_read_header(struct source *s, struct header *h)
{
    unsigned char head[4], size[4];
    size_t got;
    if (!source_read(s, head, 4, &got)) return false;
    if (got < 4 || head[0] || head[1]) return idx_fail(s, ED_DATA_LOSS, "not an IDX file");
    if (!width(head[2])) return idx_fail(s, ED_DATA_LOSS, "unknown element type 0x%02x", head[2]);
    if (head[3] < 1 || head[3] > ED_MAX_RANK)
        return idx_fail(s, ED_DATA_LOSS, "rank must be 1 to %d, got %d", ED_MAX_RANK, head[3]);
    *h = (struct header){.type = head[2], .rank = head[3], .size = width(head[2])};
    for (int i = 0; i < h->rank; i++) {
        if (!source_read(s, size, 4, &got)) return false;
        if (got < 4) return idx_fail(s, ED_DATA_LOSS, "unexpected end of file in the header");
        h->shape[i] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (!h->shape[i]) return idx_fail(s, ED_DATA_LOSS, "dimension %d has size 0", i);
        if (__builtin_mul_overflow(h->size, h->shape[i], &h->size))
            return idx_fail(s, ED_DATA_LOSS, "the sizes in the header are too large");
    }
    return true;
}

static bool too_short(const struct source *s, const struct header *h, int64_t count)
{
    return idx_fail(s, ED_DATA_LOSS, "the header claims %lld bytes of data, but the file has %lld",
                    (long long)h->size, (long long)count);
}

static bool too_long(const struct source *s, const struct header *h)
{
    return idx_fail(s, ED_DATA_LOSS, "unexpected data after the %lld bytes that the header claims",
                    (long long)h->size);
}

/* Inflates everything once to count it, and returns to the first byte of data. */
static bool count_data(struct source *s, const struct header *h)
{
    struct header again;
    int64_t count = 0;
    for (size_t got = BUFFER; got == BUFFER && count <= h->size; count += (int64_t)got)
        if (!source_read(s, s->sink, BUFFER, &got)) return false;
    if (count < h->size) return too_short(s, h, count);
    return source_rewind(s) && idx_read_header(s, &again);
}

/* Whether memory may be allocated for the size in the header. */
static bool check_claim(struct source *s, const struct header *h)
{
    struct stat file;
    if (fstat(s->file, &file)) return idx_fail(s, ED_IO, "%s", strerror(errno));
    if (s->zipped) return h->size / USUAL <= file.st_size || count_data(s, h);
    int64_t count = (int64_t)file.st_size - 4 - 4 * h->rank;
    return count >= h->size || too_short(s, h, count);
}

static void swap_bytes(unsigned char *p, int64_t size, int each)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (unsigned char *end = p + size; each > 1 && p < end; p += each)
        for (int i = 0; i < each / 2; i++) {
            unsigned char byte = p[i];
            p[i] = p[each - 1 - i];
            p[each - 1 - i] = byte;
        }
#else
    (void)p, (void)size, (void)each;
#endif
}

/* Converts int8 and int16 to int32 in place: the elements were read to the end of the tensor's
 * memory, so each is read before its bytes are overwritten. */
static void widen(enum type type, const unsigned char *from, int32_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int16_t element;
        memcpy(&element, from + i * width(type), (size_t)width(type));
        to[i] = type == INT8 ? (int8_t)from[i] : element;
    }
}

static ed_tensor *read_tensor(struct source *s, const struct header *h)
{
    static const uint8_t dtypes[] = {
        [UINT8] = ED_UINT8, [INT8] = ED_INT32,      [INT16] = ED_INT32,
        [INT32] = ED_INT32, [FLOAT32] = ED_FLOAT32, [FLOAT64] = ED_FLOAT64};
    ed_dtype dtype = dtypes[h->type];
    ed_tensor *t = tensor_new(dtype, h->rank, h->shape);
    if (!t) return NULL;
    int64_t room = t->size * (int64_t)dtype_size(dtype);
    unsigned char *data = (unsigned char *)t->data + (room - h->size), beyond;
    size_t got, more;
    if (!source_read(s, data, (size_t)h->size, &got) ||
        (got < (size_t)h->size && !too_short(s, h, (int64_t)got)) ||
        !source_read(s, &beyond, 1, &more) || (more && !too_long(s, h))) {
        ed_release(t);
        return NULL;
    }
    swap_bytes(data, h->size, width(h->type));
    if (h->type == INT8 || h->type == INT16) widen(h->type, data, (int32_t *)t->data, t->size);
    return t;
}

static ed_tensor *read_file(const char *path)
{
    struct source *s = memory_zalloc(sizeof *s);
    struct header h;
    ed_tensor *t = NULL;
    if (!s) return NULL;
    s->path = path;
    s->file = -1;
    if (source_open(s) && idx_read_header(s, &h) && check_claim(s, &h)) t = read_tensor(s, &h);
    source_close(s);
    memory_free(s);
    return scope_give(t);
}

ed_tensor *ed_read_idx(const char *path)
{
    if (NULL_GIVEN("read_idx", path)) return NULL;
    size_t length = strlen(path);
    if (access(path, F_OK) && length < 4096) {
        char zipped[4096 + 4];
        memcpy(zipped, path, length);
        memcpy(zipped + length, ".gz", 4);
        if (!access(zipped, F_OK)) return read_file(zipped);
    }
    return read_file(path);
}
