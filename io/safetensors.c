/*
 * safetensors: the length of the header in 64 bits; the header, a JSON object; the elements,
 * little-endian and row-major.
 *
 *     {"__metadata__": {"key": "text"},
 *      "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
 *
 * The format requires that the header begins with "{", that names are unique, and that the tensors,
 * by their offsets, cover the rest of the file without gap or overlap. All this is checked when the
 * file is opened. The header is read into memory of at most the file's size, and names stay in it,
 * where they are decoded.
 *
 * Elements are mapped if they are aligned, else read. The machine is assumed to be little-endian.
 */
#include "io/archive.h"
#include "io/json.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are taken as they lie");

enum { HEADER_LIMIT = 100000000, PIECE = 1 << 20 };

/* Dtypes in the format's own order, which is also that of their alignment. */
typedef struct kind {
    const char *name;
    io_dtype dtype;
    int bits; /* in the file: elements of fewer than eight are packed */
} kind;

static const kind kinds[] = {
    {"BOOL", IO_BOOL, 8},
    {"F4", IO_FLOAT4_E2M1FN, 4},
    {"F6_E2M3", IO_FLOAT6_E2M3, 6},
    {"F6_E3M2", IO_FLOAT6_E3M2, 6},
    {"U8", IO_UINT8, 8},
    {"I8", IO_INT8, 8},
    {"F8_E5M2", IO_FLOAT8_E5M2, 8},
    {"F8_E4M3", IO_FLOAT8_E4M3FN, 8},
    {"F8_E8M0", IO_FLOAT8_E8M0, 8},
    {"F8_E4M3FNUZ", IO_FLOAT8_E4M3FNUZ, 8},
    {"F8_E5M2FNUZ", IO_FLOAT8_E5M2FNUZ, 8},
    {"I16", IO_INT16, 16},
    {"U16", IO_UINT16, 16},
    {"F16", IO_FLOAT16, 16},
    {"BF16", IO_BFLOAT16, 16},
    {"I32", IO_INT32, 32},
    {"U32", IO_UINT32, 32},
    {"F32", IO_FLOAT32, 32},
    {"C64", IO_COMPLEX64, 64},
    {"F64", IO_FLOAT64, 64},
    {"I64", IO_INT64, 64},
    {"U64", IO_UINT64, 64},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char metadata_name[] = "__metadata__";

/* The bytes of so many elements: false if they overflow or are not whole bytes. Factors are
 * multiplied in order, zeros included, as in the reference. */
static bool count_bytes(const kind *k, int rank, const int64_t *shape, int64_t *bytes)
{
    int64_t bits = 1;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(bits, shape[i], &bits)) return false;
    if (__builtin_mul_overflow(bits, k->bits, &bits) || bits % 8) return false;
    *bytes = bits / 8;
    return true;
}

/* ---- The file -------------------------------------------------------------------------------- */

typedef struct member {
    const char *name;
    size_t name_size;
    const kind *kind;
    int rank;
    int64_t *shape;
    int64_t begin, end; /* in the file */
} member;

typedef struct pair {
    const char *key, *text;
    size_t key_size;
} pair;

typedef struct safetensors {
    ed_object object;
    io_file file;
    ed_buffer *map;
    char *header; /* holds the names and metadata */
    int64_t header_size;
    int64_t count, pair_count;
    member *members;
    pair *pairs;
    int64_t *shapes; /* of all members, one after the other */
    int64_t shapes_used;
} safetensors;

static const char opening[] = "archive_open";

static void safetensors_destroy(void *object)
{
    safetensors *s = object;
    if (s->map) memory_buffer_release(s->map);
    io_close(&s->file);
    memory_free(s->header);
    memory_free(s->members);
    memory_free(s->pairs);
    memory_free(s->shapes);
    memory_free(s);
}

static const object_class safetensors_class = {.name = "safetensors",
                                               .destroy = safetensors_destroy};

__attribute__((format(printf, 2, 3))) static bool file_damaged(const safetensors *s,
                                                               const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return ed_fail(ED_DATA_LOSS, "%s: %s: %s", opening, s->file.path, what), false;
}

static bool read_raw_header(safetensors *s)
{
    uint64_t size;
    if (s->file.size < 8) return file_damaged(s, "the file is too short for a safetensors header");
    if (!io_read_at(&s->file, 0, &size, 8)) return false;
    if (size > HEADER_LIMIT)
        return file_damaged(s, "the header has %" PRIu64 " bytes; at most %d are allowed", size,
                            HEADER_LIMIT);
    if ((int64_t)size > s->file.size - 8)
        return file_damaged(s, "unexpected end of file in its header of %" PRIu64 " bytes", size);
    s->header_size = (int64_t)size;
    s->header = memory_alloc(size);
    return s->header && io_read_at(&s->file, 8, s->header, size);
}

/* ---- The header ------------------------------------------------------------------------------ */

static bool text_is(io_span found, const char *word)
{
    return found.size == strlen(word) && !memcmp(found.data, word, found.size);
}

/* Skips the next object; returns the number of its members. */
static int64_t count_members(io_json *j)
{
    int64_t n = 0;
    io_json_take(j, '{');
    for (; io_json_member(j, n, '}'); n++) {
        io_json_skip_key(j);
        io_json_skip(j);
    }
    return n;
}

static bool read_metadata(safetensors *s, io_json *j)
{
    if (s->pairs) return io_json_fail(j, "duplicate metadata");
    io_json ahead = *j;
    int64_t room = io_json_next(j) == '{' ? count_members(&ahead) : 0;
    s->pairs = memory_alloc((size_t)room * sizeof *s->pairs);
    if (!s->pairs) return false;
    if (io_json_null(j)) return true;
    io_json_take(j, '{');
    for (int64_t n = 0; io_json_member(j, n, '}'); n++) {
        io_span key, value;
        if (!io_json_text(j, &key) || !io_json_take(j, ':') || !io_json_text(j, &value)) break;
        s->pairs[s->pair_count++] = (pair){(char *)key.data, (char *)value.data, key.size};
    }
    return !j->wrong;
}

static bool read_dtype(safetensors *s, io_json *j, member *m)
{
    io_span found;
    if (!io_json_text(j, &found)) return false;
    for (const kind *k = kinds; k < kinds + KINDS; k++)
        if (text_is(found, k->name)) return m->kind = k, true;
    return file_damaged(s, "tensor '%.200s' has the unknown dtype '%.40s'", m->name, found.data);
}

/* Appends the sizes to those of the tensors before: all numbers were counted, so there is room. */
static bool read_shape(safetensors *s, io_json *j, member *m)
{
    m->shape = s->shapes + s->shapes_used;
    io_json_take(j, '[');
    for (; io_json_member(j, m->rank, ']'); m->rank++) {
        uint64_t extent;
        if (!io_json_unsigned(j, &extent)) break;
        if (extent > INT64_MAX) return io_json_fail(j, "a dimension exceeds 63 bits");
        s->shapes[s->shapes_used++] = (int64_t)extent;
    }
    return !j->wrong;
}

/* Converts the header's offsets, which count from its end, to the file's. */
static bool read_offsets(const safetensors *s, io_json *j, member *m)
{
    int64_t base = 8 + s->header_size;
    uint64_t begin, end, room = (uint64_t)(s->file.size - base);
    if (!io_json_take(j, '[') || !io_json_unsigned(j, &begin) || !io_json_take(j, ',') ||
        !io_json_unsigned(j, &end))
        return false;
    if (io_json_next(j) != ']') return io_json_fail(j, "expected two offsets");
    j->at++;
    if (begin > end || end > room)
        return file_damaged(s,
                            "tensor '%.200s' has invalid data_offsets [%" PRIu64 ", %" PRIu64
                            "] for %" PRIu64 " bytes of elements",
                            m->name, begin, end, room);
    m->begin = base + (int64_t)begin;
    m->end = base + (int64_t)end;
    return true;
}

static bool read_member(safetensors *s, io_json *j, io_span name)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    member *m = &s->members[s->count++];
    *m = (member){.name = (char *)name.data, .name_size = name.size};
    int seen = 0;
    bool good = io_json_take(j, '{');
    for (int64_t n = 0; good && io_json_member(j, n, '}'); n++) {
        io_span field;
        if (!io_json_text(j, &field) || !io_json_take(j, ':')) return false;
        int which = text_is(field, "dtype")          ? DTYPE
                    : text_is(field, "shape")        ? SHAPE
                    : text_is(field, "data_offsets") ? OFFSETS
                                                     : 0;
        if (seen & which) return io_json_fail(j, "duplicate field");
        seen |= which;
        good = which == DTYPE     ? read_dtype(s, j, m)
               : which == SHAPE   ? read_shape(s, j, m)
               : which == OFFSETS ? read_offsets(s, j, m)
                                  : io_json_skip(j);
    }
    if (!good || j->wrong) return false;
    if (seen != ALL) return io_json_fail(j, "dtype, shape or data_offsets is missing");
    int64_t bytes;
    if (!count_bytes(m->kind, m->rank, m->shape, &bytes))
        return file_damaged(
            s, "the size of tensor '%.200s' overflows or is not a number of whole bytes", m->name);
    if (bytes != m->end - m->begin)
        return file_damaged(s, "tensor '%.200s' has %lld bytes, but its shape requires %lld",
                            m->name, (long long)(m->end - m->begin), (long long)bytes);
    return true;
}

static bool read_members(safetensors *s, io_json *j)
{
    io_json_take(j, '{');
    for (int64_t n = 0; io_json_member(j, n, '}'); n++) {
        io_span name;
        if (!io_json_text(j, &name) || !io_json_take(j, ':')) return false;
        if (!(text_is(name, metadata_name) ? read_metadata(s, j) : read_member(s, j, name)))
            return false;
    }
    return io_json_end(j);
}

static bool wrong_at(const safetensors *s, const io_json *j)
{
    return file_damaged(s, "byte %td of its header: %s", j->at - j->begin, j->wrong);
}

/* Counts first, so that allocations are limited by the file's size. */
static bool parse_header(safetensors *s)
{
    if (!s->header_size || *s->header != '{')
        return file_damaged(s, "not a safetensors file: its header does not begin with '{'");
    io_json j = io_json_on(s->header, (size_t)s->header_size), ahead = j;
    int64_t room = count_members(&ahead);
    if (!io_json_end(&ahead)) return wrong_at(s, &ahead);
    s->members = memory_alloc((size_t)room * sizeof *s->members);
    s->shapes = memory_alloc((size_t)ahead.numbers * sizeof *s->shapes);
    if (!s->members || !s->shapes) return false;
    return read_members(s, &j) || (j.wrong && wrong_at(s, &j));
}

/* ---- Checks of all members together ---------------------------------------------------------- */

static int by_text(const void *a, size_t size_a, const void *b, size_t size_b)
{
    int order = memcmp(a, b, size_a < size_b ? size_a : size_b);
    return order ? order : (size_a > size_b) - (size_a < size_b);
}

static int by_member_name(const void *a, const void *b)
{
    const member *x = *(const member *const *)a, *y = *(const member *const *)b;
    return by_text(x->name, x->name_size, y->name, y->name_size);
}

static int by_place(const void *a, const void *b)
{
    const member *x = *(const member *const *)a, *y = *(const member *const *)b;
    int order = (x->begin > y->begin) - (x->begin < y->begin);
    return order ? order : (x->end > y->end) - (x->end < y->end);
}

static int by_key(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    return by_text(x->key, x->key_size, y->key, y->key_size);
}

static bool keys_differ(safetensors *s)
{
    qsort(s->pairs, (size_t)s->pair_count, sizeof *s->pairs, by_key);
    for (int64_t i = 1; i < s->pair_count; i++)
        if (!by_key(&s->pairs[i - 1], &s->pairs[i]))
            return file_damaged(s, "duplicate key '%.200s' in the metadata", s->pairs[i].key);
    return true;
}

static bool names_differ(const safetensors *s, const member **order)
{
    qsort(order, (size_t)s->count, sizeof *order, by_member_name);
    for (int64_t i = 1; i < s->count; i++)
        if (!by_member_name(&order[i - 1], &order[i]))
            return file_damaged(s, "two tensors have the name '%.200s'", order[i]->name);
    return true;
}

/* Each tensor must begin where the one before it ends. */
static bool cover_the_file(const safetensors *s, const member **order)
{
    int64_t covered = 8 + s->header_size;
    qsort(order, (size_t)s->count, sizeof *order, by_place);
    for (int64_t i = 0; i < s->count; covered = order[i++]->end)
        if (order[i]->begin != covered)
            return file_damaged(s, "tensor '%.200s' %s the one before it", order[i]->name,
                                order[i]->begin < covered ? "overlaps" : "leaves a gap after");
    return covered == s->file.size || file_damaged(s, "%lld bytes at its end belong to no tensor",
                                                   (long long)(s->file.size - covered));
}

static bool check_members(safetensors *s)
{
    if (s->pairs && !keys_differ(s)) return false;
    const member **order = memory_alloc((size_t)s->count * sizeof *order);
    if (!order) return false;
    for (int64_t i = 0; i < s->count; i++) order[i] = &s->members[i];
    bool good = names_differ(s, order) && cover_the_file(s, order);
    memory_free(order);
    return good;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void *safetensors_open(const char *path)
{
    safetensors *s = object_new(&safetensors_class, sizeof *s);
    if (!s) return NULL;
    s->file.descriptor = -1;
    if (io_open(&s->file, opening, path) && read_raw_header(s) && parse_header(s) &&
        check_members(s) && (s->map = io_map(&s->file)))
        return s;
    ed_release(s);
    return NULL;
}

static int64_t safetensors_count(const void *self)
{
    return ((const safetensors *)self)->count;
}

static archive_entry safetensors_entry(const void *self, int64_t i)
{
    const member *m = &((const safetensors *)self)->members[i];
    return (archive_entry){.name = m->name,
                           .name_size = m->name_size,
                           .dtype = m->kind->dtype,
                           .rank = m->rank,
                           .shape = m->shape,
                           .bytes = m->end - m->begin};
}

static const char *safetensors_metadata(const void *self, const char *key)
{
    const safetensors *s = self;
    pair wanted = {.key = key, .key_size = strlen(key)};
    const pair *found =
        s->pair_count ? bsearch(&wanted, s->pairs, (size_t)s->pair_count, sizeof *s->pairs, by_key)
                      : NULL;
    return found ? found->text : NULL;
}

/* A view of the mapping: its base is on the stack, as it is not used after this. */
static ed_tensor *mapped(const safetensors *s, const member *m, ed_dtype dtype)
{
    ed_tensor base = {
        .buffer = s->map, .data = (char *)s->map->data + m->begin, .dtype = (uint8_t)dtype};
    int64_t strides[ED_MAX_RANK];
    tensor_row_major(m->rank, m->shape, strides);
    return tensor_view(&base, m->rank, m->shape, strides, 0);
}

/* A copy; any byte except 0 is true. */
static ed_tensor *copied(const safetensors *s, const member *m, ed_dtype dtype)
{
    ed_tensor *t = tensor_new(dtype, m->rank, m->shape);
    if (!t) return NULL;
    if (!io_read_at(&s->file, m->begin, t->data, (size_t)(m->end - m->begin))) {
        ed_release(t);
        return NULL;
    }
    if (dtype == ED_BOOL)
        for (int64_t i = 0; i < t->size; i++) t->data[i] = t->data[i] != 0;
    return t;
}

static ed_tensor *safetensors_tensor(void *self, int64_t i)
{
    const safetensors *s = self;
    const member *m = &s->members[i];
    ed_dtype dtype = io_dtype_to(m->kind->dtype);
    bool direct = m->end > m->begin && dtype != ED_BOOL && m->begin % (m->kind->bits / 8) == 0;
    if (!direct) return copied(s, m, dtype);
    return io_is_whole(&s->file) ? mapped(s, m, dtype) : NULL;
}

/* Read, not mapped: a disk failure is then an error, not a signal. */
static bool safetensors_stream(void *self, int64_t i, io_sink *take, void *user)
{
    const safetensors *s = self;
    const member *m = &s->members[i];
    int64_t size = m->end - m->begin, piece = size < PIECE ? size : PIECE;
    char *block = memory_alloc((size_t)piece);
    if (!block) return false;
    bool good = true;
    for (int64_t at = m->begin; good && at < m->end; at += piece) {
        size_t n = (size_t)(m->end - at < piece ? m->end - at : piece);
        good = io_read_at(&s->file, at, block, n) && take(user, block, n);
    }
    memory_free(block);
    return good;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static const kind *kind_of(const archive_item *item)
{
    for (const kind *k = kinds; k < kinds + KINDS; k++)
        if (k->dtype == item->dtype) return k;
    return NULL;
}

/* Largest alignment first, then by name: so each tensor is aligned, as in the reference. */
static int by_kind(const void *a, const void *b)
{
    const archive_item *x = *(const archive_item *const *)a, *y = *(const archive_item *const *)b;
    const kind *j = kind_of(x), *k = kind_of(y);
    return j != k ? (j < k) - (j > k) : strcmp(x->name, y->name);
}

/* The beginning of errors of writing. */
typedef struct target {
    const char *who, *path;
} target;

static bool refuse_item(const target *to, const archive_item *item, const char *why)
{
    return ed_fail(ED_INVALID_ARGUMENT, "%s: %s: tensor '%.200s': %s", to->who, to->path,
                   item->name, why);
}

static bool may_be_written(const target *to, const archive_item *item)
{
    const kind *k = kind_of(item);
    if (!k)
        return ed_fail(ED_UNIMPLEMENTED, "%s: %s: tensor '%.200s': safetensors has no dtype %s",
                       to->who, to->path, item->name, archive_item_dtype(item));
    int64_t bytes;
    if (!count_bytes(k, item->rank, item->shape, &bytes) || bytes != item->bytes)
        return refuse_item(to, item, "safetensors packs its elements differently");
    if (!strcmp(item->name, metadata_name)) return refuse_item(to, item, "the name is reserved");
    return io_is_utf8(item->name, strlen(item->name)) ||
           refuse_item(to, item, "its name is not UTF-8");
}

static void put_entry(io_buffer *b, const archive_item *item, int64_t *offset)
{
    if (b->size > 8 + 1) io_put_u8(b, ',');
    io_put_json_text(b, item->name);
    io_put_format(b, ":{\"dtype\":\"%s\",\"shape\":[", kind_of(item)->name);
    for (int i = 0; i < item->rank; i++)
        io_put_format(b, "%s%lld", i ? "," : "", (long long)item->shape[i]);
    io_put_format(b, "],\"data_offsets\":[%lld,%lld]}", (long long)*offset,
                  (long long)(*offset + item->bytes));
    *offset += item->bytes;
}

/* The length and the header, padded with spaces so that the elements begin at a multiple of 8. */
static bool put_header(io_buffer *b, const target *to, const archive_item **order, int64_t count)
{
    int64_t offset = 0;
    io_put_u64(b, 0);
    io_put_u8(b, '{');
    for (int64_t i = 0; i < count; i++) put_entry(b, order[i], &offset);
    io_put_u8(b, '}');
    while (!b->failed && b->size % 8) io_put_u8(b, ' ');
    if (b->failed) return false;
    uint64_t size = b->size - 8;
    if (size > HEADER_LIMIT)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: %s: the header takes %" PRIu64 " bytes; at most %d are allowed",
                       to->who, to->path, size, HEADER_LIMIT);
    memcpy(b->data, &size, 8);
    return true;
}

/* Takes exactly the number of bytes in the header. */
typedef struct sink {
    io_writer *file;
    int64_t left;
} sink;

static bool take_bytes(void *user, const void *data, size_t size)
{
    sink *s = user;
    s->left -= (int64_t)size;
    return s->left >= 0 && io_write(s->file, data, size);
}

static bool write_item(io_writer *file, const target *to, const archive_item *item)
{
    sink s = {file, item->bytes};
    if (archive_stream(item, take_bytes, &s) && !s.left) return true;
    return refuse_item(to, item, "the number of its bytes does not match its shape");
}

static bool write_file(const target *to, const archive_item **order, int64_t count)
{
    io_buffer header = {0};
    io_writer *file = NULL;
    bool good = put_header(&header, to, order, count) && (file = io_create(to->who, to->path)) &&
                io_write(file, header.data, header.size);
    io_buffer_free(&header);
    for (int64_t i = 0; good && i < count; i++) good = write_item(file, to, order[i]);
    if (good) return io_commit(file, true);
    io_discard(file);
    return false;
}

static bool safetensors_write(const char *who, const char *path, const archive_item *items,
                              int64_t count)
{
    const target to = {who, path};
    for (int64_t i = 0; i < count; i++)
        if (!may_be_written(&to, &items[i])) return false;
    const archive_item **order = memory_alloc((size_t)count * sizeof *order);
    if (!order) return false;
    for (int64_t i = 0; i < count; i++) order[i] = &items[i];
    qsort(order, (size_t)count, sizeof *order, by_kind);
    bool good = write_file(&to, order, count);
    memory_free(order);
    return good;
}

/* ---- The format ------------------------------------------------------------------------------ */

/* There is no magic number, only the '{' after the header's length. */
static archive_match safetensors_recognises(const archive_glimpse *g)
{
    return g->first[8] == '{' ? ARCHIVE_LIKELY : ARCHIVE_OTHER;
}

ARCHIVE_FORMAT(safetensors_format) = {.name = "safetensors",
                                      .ending = ".safetensors",
                                      .recognises = safetensors_recognises,
                                      .open = safetensors_open,
                                      .count = safetensors_count,
                                      .entry = safetensors_entry,
                                      .tensor = safetensors_tensor,
                                      .stream = safetensors_stream,
                                      .metadata = safetensors_metadata,
                                      .write = safetensors_write};
