/*
 * .npy: the magic number, a version, the length of the header in 16 or 32 bits, the header, the
 * elements.
 *
 *     \x93NUMPY 1 0 118 0 {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n
 *
 * The header is a Python literal: a dictionary with exactly these keys in any order; the last one
 * counts if a key is repeated. It is parsed, including comments and digits with underscores, but
 * never evaluated. `descr` is a string that names the element type, or the list of a structured
 * type's fields, which is only skipped.
 */
#include "io/npy.h"
#include "tensor/copy.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are taken as they lie");

enum { PIECE = 1 << 20 }; /* a multiple of every dtype's size */

static const char magic[] = "\x93NUMPY";
enum { MAGIC = sizeof magic - 1 };

/* ---- Element types --------------------------------------------------------------------------- */

static const struct {
    const char *code;
    io_dtype dtype;
} codes[] = {
    {"f4", IO_FLOAT32},   {"f8", IO_FLOAT64},     {"f2", IO_FLOAT16}, {"i1", IO_INT8},
    {"i2", IO_INT16},     {"i4", IO_INT32},       {"i8", IO_INT64},   {"u1", IO_UINT8},
    {"u2", IO_UINT16},    {"u4", IO_UINT32},      {"u8", IO_UINT64},  {"b1", IO_BOOL},
    {"c8", IO_COMPLEX64}, {"c16", IO_COMPLEX128}, {"?", IO_BOOL},
};
enum { CODES = sizeof codes / sizeof *codes };

static io_dtype dtype_of_code(const char *code)
{
    for (int i = 0; i < CODES; i++)
        if (!strcmp(codes[i].code, code)) return codes[i].dtype;
    return IO_NONE;
}

/* "float32": NumPy's name, without a mark of the byte order. */
static io_dtype dtype_of_name(const char *name)
{
    for (int i = 0; i < CODES; i++)
        if (!strcmp(io_dtype_name(codes[i].dtype), name)) return codes[i].dtype;
    return IO_NONE;
}

/* The size after the letter of a foreign type; -1 if that is not a number. */
static int64_t size_behind(const char *code, int64_t most)
{
    if (!code[1]) return 0;
    char *end;
    long long size = strtoll(code + 1, &end, 10);
    return code[1] >= '0' && code[1] <= '9' && !*end && size <= most ? size : -1;
}

/* Types that tensors don't support: strings, raw bytes, dates, long doubles, objects. */
static bool take_foreign(const char *code, npy_header *h)
{
    int unit = 1;
    if (strchr("SaV", *code)) {
        h->item = size_behind(code, INT32_MAX);
    } else if (*code == 'U') {
        unit = 4;
        h->item = 4 * size_behind(code, INT32_MAX / 4);
    } else if (!strncmp(code, "M8", 2) || !strncmp(code, "m8", 2)) {
        h->item = unit = 8;
    } else if (!strcmp(code, "f16") || !strcmp(code, "c32")) {
        unit = 16;
        h->item = *code == 'c' ? 32 : 16;
    } else if (!strcmp(code, "O") || !strcmp(code, "O8") || !strcmp(code, "O4")) {
        snprintf(h->foreign, sizeof h->foreign, "object");
        h->opaque = true;
        return true;
    } else {
        return false;
    }
    if (h->swapped > 1) h->swapped = unit;
    return h->item >= 0;
}

/* A descr that is a string. Programs write bfloat16 as '<V2'; '|V2' is raw bytes. */
static const char *take_type(const char *descr, npy_header *h)
{
    static const char unknown[] = "its descr is not a NumPy dtype";
    bool marked = *descr && strchr("<>=|", *descr);
    const char *code = descr + marked;
    if (!*code) return unknown;
    snprintf(h->foreign, sizeof h->foreign, "%s", descr);
    h->dtype = strcmp(descr, "<V2") ? dtype_of_code(code) : IO_BFLOAT16;
    if (!h->dtype && !marked) h->dtype = dtype_of_name(code);
    h->swapped = *descr == '>' ? 2 : 1;
    if (!h->dtype) return take_foreign(code, h) ? NULL : unknown;
    h->item = io_dtype_bits(h->dtype) / 8;
    if (h->swapped > 1) h->swapped = io_dtype_part(h->dtype);
    return NULL;
}

/* ---- Python's literals ----------------------------------------------------------------------- */

/* A parser that stays failed after a failure; `wrong` is the error. */
typedef struct literal {
    const char *at, *end;
    const char *wrong;
    bool longs; /* digits may end in L: Python 2 */
} literal;

static bool wrong(literal *l, const char *what)
{
    if (!l->wrong) l->wrong = what;
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next character that is not white space or comment, 0 at the end. */
static char next(literal *l)
{
    while (l->at < l->end && (is_space(*l->at) || *l->at == '#'))
        if (*l->at++ == '#')
            while (l->at < l->end && *l->at != '\n') l->at++;
    return l->at < l->end && !l->wrong ? *l->at : 0;
}

/* Takes that character, if it is next. */
static bool skip(literal *l, char c)
{
    if (next(l) != c) return false;
    l->at++;
    return true;
}

/* Skips a quoted string; escapes are not decoded. */
static bool take_text(literal *l, io_span *found)
{
    char quote = next(l);
    if (quote != '\'' && quote != '"') return wrong(l, "expected a string in its header");
    const char *from = ++l->at;
    while (l->at < l->end && *l->at != quote) l->at += *l->at == '\\' ? 2 : 1;
    if (l->at >= l->end) return wrong(l, "unterminated string in its header");
    *found = (io_span){(const uint8_t *)from, (size_t)(l->at++ - from)};
    return true;
}

static bool npy_is(io_span s, const char *word)
{
    return s.size == strlen(word) && !memcmp(s.data, word, s.size);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

/* 24, 0x18, 2_4, 24L. */
static bool take_whole(literal *l, int64_t *value)
{
    static const char bad[] = "its shape must be a tuple of non-negative integers";
    int base = 10;
    next(l);
    if (l->end - l->at > 2 && *l->at == '0') {
        char letter = l->at[1] | 0x20;
        base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
        if (base != 10) l->at += 2;
    }
    const char *from = l->at;
    for (*value = 0; l->at < l->end; l->at++) {
        if (*l->at == '_' && l->at > from && l->at[-1] != '_') continue;
        int digit = digit_of(*l->at);
        if (digit >= base) break;
        if (__builtin_mul_overflow(*value, base, value) ||
            __builtin_add_overflow(*value, digit, value))
            return wrong(l, "its shape is too large");
    }
    if (l->at == from || l->at[-1] == '_') return wrong(l, bad);
    if (base == 10 && *from == '0' && *value) return wrong(l, bad);
    if (l->longs && l->at < l->end && *l->at == 'L') l->at++;
    return true;
}

/* (), (3,), (2, 3): parentheses around a single number are not a tuple. */
static bool take_shape(literal *l, npy_header *h)
{
    h->rank = 0;
    if (!skip(l, '(')) return wrong(l, "its shape is not a tuple");
    bool comma = true;
    while (comma && next(l) != ')') {
        if (h->rank == NPY_MAX_RANK) return wrong(l, "its rank is higher than NumPy allows");
        if (!take_whole(l, &h->shape[h->rank++])) return false;
        comma = skip(l, ',');
    }
    if (!skip(l, ')')) return wrong(l, "its shape must be a tuple of non-negative integers");
    return h->rank != 1 || comma || wrong(l, "its shape is not a tuple");
}

static bool take_order(literal *l, npy_header *h)
{
    char first = next(l);
    const char *word = first == 'T' ? "True" : "False";
    size_t n = strlen(word);
    if ((size_t)(l->end - l->at) < n || memcmp(l->at, word, n) != 0)
        return wrong(l, "its fortran_order must be True or False");
    l->at += n;
    h->fortran = first == 'T';
    return true;
}

/* Skips a list of fields to its closing bracket, also if there are objects among them. */
static bool take_fields(literal *l, npy_header *h)
{
    int depth = 0;
    do {
        char c = next(l);
        io_span name;
        if (!c) return wrong(l, "its descr is unterminated");
        if (c == '\'' || c == '"') {
            if (!take_text(l, &name)) return false;
            continue;
        }
        depth += (c == '[' || c == '(') - (c == ']' || c == ')');
        l->at++;
    } while (depth);
    snprintf(h->foreign, sizeof h->foreign, "structured");
    h->opaque = true;
    h->dtype = IO_NONE;
    h->item = 0;
    h->swapped = 1;
    return true;
}

static bool take_descr(literal *l, npy_header *h)
{
    io_span descr;
    char name[sizeof h->foreign];
    h->opaque = false;
    h->item = 0;
    if (next(l) == '[') return take_fields(l, h);
    if (!take_text(l, &descr)) return false;
    if (descr.size >= sizeof name || memchr(descr.data, 0, descr.size))
        return wrong(l, "its descr is not a NumPy dtype");
    memcpy(name, descr.data, descr.size);
    name[descr.size] = 0;
    const char *bad = take_type(name, h);
    return !bad || wrong(l, bad);
}

/* One `key: value`; *have records the keys that were found. */
static bool take_pair(literal *l, npy_header *h, unsigned *have)
{
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    io_span key;
    if (!take_text(l, &key)) return false;
    if (!skip(l, ':')) return wrong(l, "its header is not a dictionary");
    if (npy_is(key, "descr")) return *have |= DESCR, take_descr(l, h);
    if (npy_is(key, "fortran_order")) return *have |= ORDER, take_order(l, h);
    if (npy_is(key, "shape")) return *have |= SHAPE, take_shape(l, h);
    return wrong(l, "its header has a key other than descr, fortran_order and shape");
}

static bool take_dictionary(literal *l, npy_header *h)
{
    unsigned have = 0;
    if (!skip(l, '{')) return wrong(l, "its header is not a dictionary");
    for (bool comma = true; next(l) != '}'; comma = skip(l, ',')) {
        if (!comma) return wrong(l, "its header is not a dictionary");
        if (!take_pair(l, h, &have)) return false;
    }
    l->at++;
    if (next(l) || l->at < l->end) return wrong(l, "unexpected data after its header's dictionary");
    return have == 7 || wrong(l, "its header lacks one of descr, fortran_order and shape");
}

/* ---- The header ------------------------------------------------------------------------------ */

bool npy_begins(const void *data, size_t size)
{
    return size >= MAGIC && !memcmp(data, magic, MAGIC);
}

/* Versions 1.0, 2.0, 3.0: the first has a length of 16 bits, the others of 32 bits. */
const char *npy_measure(const uint8_t *first, size_t n, size_t *size)
{
    if (!npy_begins(first, n)) return "not a .npy file";
    if (n < NPY_FIRST) return "unexpected end of file in its header";
    if (first[6] < 1 || first[6] > 3 || first[7]) return "its version is not 1.0, 2.0 or 3.0";
    size_t before = first[6] == 1 ? 10 : 12, length = first[8] | (size_t)first[9] << 8;
    if (first[6] > 1) length |= (size_t)first[10] << 16 | (size_t)first[11] << 24;
    if (length > NPY_MAX_HEADER - NPY_FIRST) return "its header is longer than 10000 bytes";
    *size = before + length < NPY_FIRST ? NPY_FIRST : before + length;
    return NULL;
}

/* The size of the elements in bytes; 0 if any axis has size 0, whatever the others are. */
static const char *count_bytes(npy_header *h)
{
    static const char large[] = "its shape is too large";
    h->bytes = h->opaque ? 0 : h->item;
    for (int i = 0; i < h->rank; i++)
        if (!h->shape[i]) return h->bytes = 0, NULL;
    for (int i = 0; i < h->rank; i++)
        if (__builtin_mul_overflow(h->bytes, h->shape[i], &h->bytes)) return large;
    return h->bytes > INT64_MAX / 2 ? large : NULL;
}

const char *npy_parse(const uint8_t *data, size_t size, npy_header *h)
{
    size_t measured;
    const char *bad = npy_measure(data, size, &measured);
    if (bad) return bad;
    if (size < measured) return "unexpected end of file in its header";
    literal l = {(const char *)data + (data[6] == 1 ? 10 : 12), (const char *)data + measured, NULL,
                 data[6] < 3};
    memset(h, 0, sizeof *h);
    h->size = (int64_t)measured;
    return take_dictionary(&l, h) ? count_bytes(h) : l.wrong;
}

void *npy_refuse(const char *what, const npy_header *h)
{
    if (io_dtype_to(h->dtype))
        return ed_fail(ED_UNIMPLEMENTED, "%s has rank %d; tensors have at most %d", what, h->rank,
                       ED_MAX_RANK);
    if (h->dtype)
        return ed_fail(ED_UNIMPLEMENTED, "%s has the dtype %s, which tensors don't support", what,
                       io_dtype_name(h->dtype));
    if (!strcmp(h->foreign, "object"))
        return ed_fail(ED_UNIMPLEMENTED,
                       "%s has objects as elements: pickled code, which is never loaded", what);
    return ed_fail(ED_UNIMPLEMENTED, "%s has NumPy's dtype %s, which tensors don't support", what,
                   h->foreign);
}

archive_entry npy_entry(const npy_header *h)
{
    return (archive_entry){.dtype = h->dtype,
                           .foreign = h->foreign,
                           .rank = h->rank,
                           .shape = h->shape,
                           .bytes = h->bytes};
}

/* ---- Tensors --------------------------------------------------------------------------------- */

/* For bool any byte except 0 is true, which requires a copy. */
bool npy_lies_well(const npy_header *h, int64_t place)
{
    return h->swapped == 1 && h->bytes && h->dtype != IO_BOOL && place % h->item == 0;
}

/* A view that turns `base`, the elements in the file's order, into the tensor. */
static ed_tensor *turned(const npy_header *h, const ed_tensor *base)
{
    int64_t strides[ED_MAX_RANK], step = 1;
    tensor_row_major(h->rank, h->shape, strides);
    for (int i = 0; h->fortran && h->bytes && i < h->rank; step *= h->shape[i++]) strides[i] = step;
    return tensor_view(base, h->rank, h->shape, strides, 0);
}

ed_tensor *npy_view(const npy_header *h, ed_buffer *map, int64_t place)
{
    /* The base of the view is on the stack: it is not used after this. */
    ed_tensor base = {
        .buffer = map, .data = (char *)map->data + place, .dtype = (uint8_t)io_dtype_to(h->dtype)};
    return turned(h, &base);
}

ed_tensor *npy_room(const npy_header *h)
{
    return tensor_new(io_dtype_to(h->dtype), h->rank, h->shape);
}

static void reverse_parts(void *data, int64_t size, int part)
{
    uint8_t *p = data;
    for (uint8_t *end = p + size; part > 1 && p < end; p += part)
        for (int i = 0; i < part / 2; i++) {
            uint8_t byte = p[i];
            p[i] = p[part - 1 - i];
            p[part - 1 - i] = byte;
        }
}

ed_tensor *npy_settle(const npy_header *h, ed_tensor *t)
{
    reverse_parts(t->data, h->bytes, h->swapped);
    if (h->dtype == IO_BOOL)
        for (int64_t i = 0; i < t->size; i++) t->data[i] = t->data[i] != 0;
    if (!h->fortran || h->rank < 2) return t;
    ed_tensor *view = turned(h, t);
    ed_release(t);
    return view;
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* In the file's order, piece by piece. */
static bool stream_straight(const npy_header *h, bool (*read)(void *from, void *to, size_t size),
                            void *from, io_sink *take, void *user)
{
    int64_t bytes = h->bytes, piece = bytes < PIECE ? bytes : PIECE;
    uint8_t *block = memory_alloc((size_t)piece);
    bool good = block;
    for (int64_t n; good && bytes; bytes -= n) {
        n = bytes < piece ? bytes : piece;
        good = read(from, block, (size_t)n);
        if (good) reverse_parts(block, n, h->swapped);
        good = good && take(user, block, (size_t)n);
    }
    memory_free(block);
    return good;
}

/* The axes of a transposition, in elements of `unit` bytes: `from` in Fortran order, `to` in C
 * order; larger elements have an additional last axis. Returns the rank. */
static int fortran_box(const npy_header *h, int unit, int64_t *shape, int64_t *from, int64_t *to)
{
    int rank = 0;
    int64_t step = h->item / unit;
    for (int i = 0; i < h->rank; i++) {
        if (h->shape[i] == 1) continue;
        if (rank == COPY_MAX_RANK - 1) return -1;
        from[rank] = step;
        shape[rank++] = h->shape[i];
        step *= h->shape[i];
    }
    from[rank] = 1;
    shape[rank++] = h->item / unit;
    tensor_row_major(rank, shape, to);
    return rank;
}

/* Fortran order must be read whole before it can be passed on in C order. */
static bool stream_turned(const npy_header *h, bool (*read)(void *from, void *to, size_t size),
                          void *from, io_sink *take, void *user)
{
    int64_t shape[COPY_MAX_RANK], steps[COPY_MAX_RANK], row_major[COPY_MAX_RANK];
    int unit = 8;
    while (h->item % unit) unit /= 2;
    int rank = fortran_box(h, unit, shape, steps, row_major);
    if (rank < 0)
        return ed_fail(ED_UNIMPLEMENTED, "the rank of an array in Fortran order is too high");
    uint8_t *all = memory_alloc((size_t)h->bytes), *block = memory_alloc((size_t)h->bytes);
    bool good = all && block && read(from, all, (size_t)h->bytes);
    if (good) {
        copy_box((size_t)unit, rank, shape, all, steps, block, row_major);
        reverse_parts(block, h->bytes, h->swapped);
        good = take(user, block, (size_t)h->bytes);
    }
    memory_free(all);
    memory_free(block);
    return good;
}

bool npy_stream(const npy_header *h, bool (*read)(void *from, void *to, size_t size), void *from,
                io_sink *take, void *user)
{
    bool turned_round = h->fortran && h->rank > 1 && h->bytes && !h->opaque;
    return turned_round ? stream_turned(h, read, from, take, user)
                        : stream_straight(h, read, from, take, user);
}

/* ---- A file ---------------------------------------------------------------------------------- */

/* One tensor, as an archive. */
typedef struct npy {
    ed_object object;
    io_file file;
    ed_buffer *map;
    npy_header header;
} npy;

static void npy_destroy(void *object)
{
    npy *f = object;
    io_close(&f->file);
    if (f->map) memory_buffer_release(f->map);
    memory_free(f);
}

static const object_class npy_class = {.name = "npy", .destroy = npy_destroy};

static bool npy_damaged(const npy *f, const char *what)
{
    return ed_fail(ED_DATA_LOSS, "%s: %s: %s", f->file.who, f->file.path, what), false;
}

static bool npy_read_header(npy *f)
{
    uint8_t head[NPY_MAX_HEADER];
    size_t n = (size_t)(f->file.size < NPY_MAX_HEADER ? f->file.size : NPY_MAX_HEADER), size;
    if (!io_read_at(&f->file, 0, head, n)) return false;
    const char *bad = npy_measure(head, n, &size);
    if (!bad) bad = npy_parse(head, n < size ? n : size, &f->header);
    if (bad) return npy_damaged(f, bad);
    int64_t there = f->file.size - f->header.size;
    if (f->header.opaque) f->header.bytes = there;
    return f->header.bytes <= there || npy_damaged(f, "unexpected end of file in its elements");
}

static npy *open_as(const char *who, const char *path)
{
    npy *f = object_new(&npy_class, sizeof *f);
    if (!f) return NULL;
    f->file.descriptor = -1;
    if (io_open(&f->file, who, path) && npy_read_header(f) && (f->map = io_map(&f->file))) return f;
    ed_release(f);
    return NULL;
}

static void *npy_open(const char *path)
{
    return open_as("archive_open", path);
}

static int64_t npy_count(const void *self)
{
    (void)self;
    return 1;
}

static archive_entry npy_archive_entry(const void *self, int64_t i)
{
    (void)i;
    archive_entry e = npy_entry(&((const npy *)self)->header);
    e.name = "";
    return e;
}

static void *npy_refuse_file(const npy *f)
{
    char what[300];
    snprintf(what, sizeof what, "%s: %.200s: the array", f->file.who, f->file.path);
    return npy_refuse(what, &f->header);
}

static ed_tensor *npy_tensor(void *self, int64_t i)
{
    const npy *f = self;
    const npy_header *h = &f->header;
    (void)i;
    if (!io_dtype_to(h->dtype) || h->rank > ED_MAX_RANK) return npy_refuse_file(f);
    if (npy_lies_well(h, h->size))
        return io_is_whole(&f->file) ? npy_view(h, f->map, h->size) : NULL;
    ed_tensor *t = npy_room(h);
    if (!t) return NULL;
    if (io_read_at(&f->file, h->size, t->data, (size_t)h->bytes)) return npy_settle(h, t);
    ed_release(t);
    return NULL;
}

typedef struct reader {
    const io_file *file;
    int64_t at;
} reader;

static bool read_on(void *user, void *to, size_t size)
{
    reader *r = user;
    if (!io_read_at(r->file, r->at, to, size)) return false;
    r->at += (int64_t)size;
    return true;
}

static bool npy_archive_stream(void *self, int64_t i, io_sink *take, void *user)
{
    const npy *f = self;
    (void)i;
    if (!strcmp(f->header.foreign, "object")) return npy_refuse_file(f);
    reader r = {&f->file, f->header.size};
    return npy_stream(&f->header, read_on, &r, take, user);
}

ed_tensor *ed_read_npy(const char *path)
{
    if (NULL_GIVEN("read_npy", path)) return NULL;
    npy *f = open_as("read_npy", path);
    ed_tensor *t = f ? npy_tensor(f, 0) : NULL;
    ed_release(f);
    return scope_give(t);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static const char *code_of(io_dtype dtype)
{
    if (dtype == IO_BFLOAT16) return "V2";
    for (int i = 0; i < CODES; i++)
        if (codes[i].dtype == dtype) return codes[i].code;
    return NULL;
}

/* NumPy reserves space after the dictionary so that the first size can grow to 21 digits in
 * place, then pads by 1 to 64 bytes, the last of which is a newline. */
bool npy_put_header(io_buffer *b, io_dtype dtype, int rank, const int64_t *shape)
{
    enum { BEFORE = 10, ALIGNMENT = 64, DIGITS = 21 };
    const char *code = code_of(dtype);
    if (!code) return false;
    size_t begin = b->size;
    io_put(b, magic, MAGIC);
    io_put(b, "\1\0\0\0", 4);
    io_put_format(b, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                  io_dtype_bits(dtype) == 8 ? '|' : '<', code);
    for (int i = 0; i < rank; i++) io_put_format(b, i ? ", %lld" : "%lld", (long long)shape[i]);
    io_put_format(b, rank == 1 ? ",), }" : "), }");
    if (rank) io_put_format(b, "%*s", DIGITS - snprintf(NULL, 0, "%lld", (long long)shape[0]), "");
    size_t size = b->size - begin + 1;
    io_put_format(b, "%*s\n", (int)(ALIGNMENT - size % ALIGNMENT), "");
    if (b->failed) return false;
    size = b->size - begin - BEFORE;
    b->data[begin + 8] = (uint8_t)size;
    b->data[begin + 9] = (uint8_t)(size >> 8);
    return true;
}

/* Where a file's elements are written, and how many bytes were. */
typedef struct npy_writer {
    io_writer *file;
    int64_t bytes;
} npy_writer;

static bool write_piece(void *user, const void *data, size_t size)
{
    npy_writer *w = user;
    w->bytes += (int64_t)size;
    return io_write(w->file, data, size);
}

static bool write_array(npy_writer *w, const io_buffer *header, const archive_item *item)
{
    return io_write(w->file, header->data, header->size) && archive_stream(item, write_piece, w);
}

/* The header is written before the file is begun, and the bytes are counted before the rename. */
static bool npy_write(const char *who, const char *path, const archive_item *items, int64_t count)
{
    (void)count; /* it is 1 */
    if (items->rank > NPY_MAX_RANK)
        return ed_fail(ED_UNIMPLEMENTED, "%s: %s: its rank is higher than NumPy allows", who, path);
    io_buffer header = {0};
    npy_writer w = {NULL, 0};
    bool known = npy_put_header(&header, items->dtype, items->rank, items->shape);
    if (!known && !header.failed)
        ed_fail(ED_UNIMPLEMENTED, "%s: %s: NumPy has no dtype %s", who, path,
                archive_item_dtype(items));
    bool good = known && (w.file = io_create(who, path)) && write_array(&w, &header, items);
    io_buffer_free(&header);
    if (good && w.bytes != items->bytes)
        good = ed_fail(ED_UNIMPLEMENTED, "%s: %s: NumPy packs elements of %s differently", who,
                       path, archive_item_dtype(items));
    if (good) return io_commit(w.file, true);
    io_discard(w.file);
    return false;
}

bool ed_write_npy(const char *path, ed_tensor *tensor)
{
    if (NULL_GIVEN("write_npy", path, tensor)) return false;
    archive_item item = archive_item_of_tensor("", tensor);
    return npy_write("write_npy", path, &item, 1);
}

/* ---- The format ------------------------------------------------------------------------------ */

static archive_match npy_recognises(const archive_glimpse *g)
{
    return npy_begins(g->first, sizeof g->first) ? ARCHIVE_CERTAIN : ARCHIVE_OTHER;
}

ARCHIVE_FORMAT(npy_format) = {.name = "npy",
                              .ending = ".npy",
                              .single = true,
                              .recognises = npy_recognises,
                              .open = npy_open,
                              .count = npy_count,
                              .entry = npy_archive_entry,
                              .tensor = npy_tensor,
                              .stream = npy_archive_stream,
                              .write = npy_write};
