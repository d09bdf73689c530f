/*
 * A zip file is read from its end: the end record has the length of the directory before it. The
 * directory's entries have the offsets of the members. The local header before a member's bytes is
 * only compared with its entry.
 *
 *     local header | name | extra | bytes ...    for each member
 *     entry | name | extra | comment             for each member: the directory
 *     ZIP64 end record | its locator             if numbers are too large
 *     end record | comment
 *
 * Offsets count from the intended position of the first member: bytes before it shift all of them.
 */
#include "io/zip.h"
#include "io/checksum.h"
#ifndef EDDY_WITHOUT_BZIP2
#include <bzlib.h>
#endif
#ifndef EDDY_WITHOUT_LZMA
#include <lzma.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { LOCAL = 0x04034b50, ENTRY = 0x02014b50, ENDING = 0x06054b50 };
enum { ENDING_64 = 0x06064b50, LOCATOR_64 = 0x07064b50 };
enum { LOCAL_SIZE = 30, ENTRY_SIZE = 46, ENDING_SIZE = 22, ENDING_64_SIZE = 56, LOCATOR_SIZE = 20 };
enum { STORED = 0, DEFLATED = 8, BZIP2 = 12, LZMA = 14 };
enum { ENCRYPTED = 1, UTF8 = 1 << 11 };
enum { INPUT = 1 << 16, MOST_AT_ONCE = 1 << 30 };

/* ---- The directory --------------------------------------------------------------------------- */

static bool zip_fail(const io_file *f, const char *what)
{
    return ed_fail(ED_DATA_LOSS, "%s: %s: %s", f->who, f->path, what), false;
}

/* The contents of the end record. */
typedef struct ending {
    int64_t at; /* the offset of the end of the directory */
    uint64_t size, offset;
} ending;

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint16_t u16_at(const uint8_t *p)
{
    uint16_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

/* The last offset in the tail of the file where an end record fits; -1: none. */
static int64_t find_ending(const uint8_t *tail, int64_t size)
{
    for (int64_t i = size - ENDING_SIZE; i >= 0; i--)
        if (u32_at(tail + i) == ENDING && i + ENDING_SIZE + u16_at(tail + i + 20) <= size) return i;
    return -1;
}

/* The ZIP64 end record, if its locator is directly before the ordinary one. */
static bool read_ending_64(const io_file *f, ending *e)
{
    uint8_t bytes[ENDING_64_SIZE + LOCATOR_SIZE];
    if (e->at < (int64_t)sizeof bytes) return true;
    if (!io_read_at(f, e->at - (int64_t)sizeof bytes, bytes, sizeof bytes)) return false;
    if (u32_at(bytes + ENDING_64_SIZE) != LOCATOR_64) return true;
    if (u32_at(bytes) != ENDING_64) return zip_fail(f, "the ZIP64 end record is damaged");
    memcpy(&e->size, bytes + 40, 8);
    memcpy(&e->offset, bytes + 48, 8);
    e->at -= (int64_t)sizeof bytes;
    return true;
}

static bool read_ending(const io_file *f, ending *e)
{
    int64_t most = ENDING_SIZE + UINT16_MAX, size = f->size < most ? f->size : most, at = -1;
    uint8_t *tail = memory_alloc((size_t)size);
    if (!tail) return false;
    bool good = io_read_at(f, f->size - size, tail, (size_t)size);
    if (good) {
        at = find_ending(tail, size);
        good = at >= 0 || zip_fail(f, "not a zip archive, or truncated");
    }
    if (good) *e = (ending){f->size - size + at, u32_at(tail + at + 12), u32_at(tail + at + 16)};
    memory_free(tail);
    if (!good || !read_ending_64(f, e)) return false;
    return e->size <= (uint64_t)e->at || zip_fail(f, "its directory extends beyond the file");
}

/* A size or offset that ZIP64 stores in the extra field, in the order of the calls. */
static uint64_t large(io_cursor *extra, uint32_t plain)
{
    return plain == UINT32_MAX && extra->at ? io_u64(extra) : plain;
}

/* The ZIP64 field of the extra field; an empty cursor at NULL if there is none. */
static io_cursor find_extra(io_span extra)
{
    io_cursor c = io_cursor_on(extra.data, extra.size);
    while (io_more(&c)) {
        uint16_t kind = io_u16(&c);
        io_span field = io_take(&c, io_u16(&c));
        if (kind == 1 && io_ok(&c)) return io_cursor_on(field.data, field.size);
    }
    return (io_cursor){0};
}

/* An entry; if it is damaged, the cursor has failed. */
static zip_member read_entry(io_cursor *c, int64_t moved)
{
    zip_member m = {0};
    if (io_u32(c) != ENTRY) c->failed = true;
    io_take(c, 4);
    m.flags = io_u16(c);
    m.method = io_u16(c);
    io_take(c, 4);
    m.crc = io_u32(c);
    uint32_t packed = io_u32(c), size = io_u32(c);
    uint16_t name = io_u16(c), extra = io_u16(c), comment = io_u16(c);
    io_take(c, 8);
    uint32_t header = io_u32(c);
    m.name = io_take(c, name);
    io_cursor extra_64 = find_extra(io_take(c, extra));
    io_take(c, comment);
    m.size = (int64_t)large(&extra_64, size);
    m.packed = (int64_t)large(&extra_64, packed);
    uint64_t offset = large(&extra_64, header);
    if (m.method == STORED) m.size = m.packed;
    if (extra_64.failed || m.size < 0 || m.packed < 0 ||
        __builtin_add_overflow((int64_t)offset, moved, &m.header) || m.header < 0)
        c->failed = true;
    return m;
}

static bool read_entries(const io_file *f, zip_directory *d, const ending *e)
{
    int64_t begin = e->at - (int64_t)e->size, room = (int64_t)e->size / ENTRY_SIZE;
    d->bytes = memory_alloc(e->size);
    d->members = memory_alloc((size_t)room * sizeof *d->members);
    if (!d->bytes || !d->members || !io_read_at(f, begin, d->bytes, e->size)) return false;
    io_cursor c = io_cursor_on(d->bytes, e->size);
    while (io_more(&c)) {
        zip_member m = read_entry(&c, (int64_t)((uint64_t)begin - e->offset));
        if (io_ok(&c)) d->members[d->count++] = m;
    }
    return io_ok(&c) || zip_fail(f, "its directory is damaged");
}

static int by_place(const void *a, const void *b)
{
    const zip_member *x = *(zip_member *const *)a, *y = *(zip_member *const *)b;
    return x->header != y->header ? (x->header > y->header) - (x->header < y->header)
                                  : (x > y) - (x < y);
}

/* Sets the end of each member. */
static bool find_ends(zip_directory *d, int64_t end)
{
    zip_member **order = memory_alloc((size_t)d->count * sizeof *order);
    if (!order) return false;
    for (int64_t i = 0; i < d->count; i++) order[i] = &d->members[i];
    qsort(order, (size_t)d->count, sizeof *order, by_place);
    for (int64_t i = d->count; i-- > 0; end = order[i]->header) order[i]->end = end;
    memory_free(order);
    return true;
}

bool zip_open(const io_file *file, zip_directory *directory)
{
    ending e;
    *directory = (zip_directory){0};
    if (read_ending(file, &e) && read_entries(file, directory, &e) &&
        find_ends(directory, e.at - (int64_t)e.size))
        return true;
    zip_close(directory);
    return false;
}

void zip_close(zip_directory *directory)
{
    memory_free(directory->bytes);
    memory_free(directory->members);
    *directory = (zip_directory){0};
}

/* ---- Members --------------------------------------------------------------------------------- */

/* A compression method. `step` converts input to at most `room` bytes of output and sets `ended`
 * at the end; false, with *fault, if the data are damaged. */
typedef struct codec {
    bool (*begin)(zip_stream *s, zip_fault *fault);
    bool (*step)(zip_stream *s, uint8_t *to, size_t room, size_t *got, zip_fault *fault);
    void (*end)(zip_stream *s);
} codec;

struct zip_stream {
    const io_file *file;
    const codec *codec; /* NULL before the beginning */
    int64_t place;
    int64_t at, packed; /* the next compressed byte in the file; how many are left */
    int64_t left;       /* number of uncompressed bytes left */
    uint32_t crc, wanted;
    bool ended, checked;
    union {
        z_stream deflated;
#ifndef EDDY_WITHOUT_BZIP2
        bz_stream bzip2;
#endif
#ifndef EDDY_WITHOUT_LZMA
        lzma_stream lzma;
#endif
    };
    uint8_t *next; /* the unread input */
    size_t unread;
    uint8_t input[INPUT];
};

static bool zip_damaged(zip_fault *fault, const char *what)
{
    *fault = (zip_fault){ED_DATA_LOSS, what};
    return false;
}

static bool unknown(zip_fault *fault, const char *what)
{
    *fault = (zip_fault){ED_UNIMPLEMENTED, what};
    return false;
}

/* Refills the empty input; it stays empty at the end of the compressed bytes. */
static bool refill(zip_stream *s)
{
    s->next = s->input;
    s->unread = (size_t)(s->packed < INPUT ? s->packed : INPUT);
    if (!io_read_at(s->file, s->at, s->input, s->unread)) return false;
    s->at += (int64_t)s->unread;
    s->packed -= (int64_t)s->unread;
    return true;
}

/* ---- Stored */

static bool stored_begin(zip_stream *s, zip_fault *fault)
{
    (void)s, (void)fault;
    return true;
}

static bool stored_step(zip_stream *s, uint8_t *to, size_t room, size_t *got, zip_fault *fault)
{
    (void)fault;
    *got = (int64_t)room < s->packed ? room : (size_t)s->packed;
    if (!io_read_at(s->file, s->at, to, *got)) return false;
    s->at += (int64_t)*got;
    s->packed -= (int64_t)*got;
    return true;
}

static void stored_end(zip_stream *s)
{
    (void)s;
}

/* ---- Deflated */

static void *deflated_allocate(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return memory_alloc((size_t)count * size);
}

static void give_back(void *unused, void *memory)
{
    (void)unused;
    memory_free(memory);
}

static bool deflated_begin(zip_stream *s, zip_fault *fault)
{
    (void)fault;
    s->deflated = (z_stream){.zalloc = deflated_allocate, .zfree = give_back};
    return inflateInit2(&s->deflated, -MAX_WBITS) == Z_OK;
}

static bool deflated_step(zip_stream *s, uint8_t *to, size_t room, size_t *got, zip_fault *fault)
{
    z_stream *z = &s->deflated;
    z->next_in = s->next;
    z->avail_in = (unsigned)s->unread;
    z->next_out = to;
    z->avail_out = (unsigned)room;
    int state = inflate(z, Z_NO_FLUSH);
    s->next = z->next_in;
    s->unread = z->avail_in;
    *got = room - z->avail_out;
    s->ended = state == Z_STREAM_END;
    if (state == Z_OK || state == Z_BUF_ERROR || s->ended) return true;
    return state != Z_MEM_ERROR && zip_damaged(fault, "its deflated data are damaged");
}

static void deflated_end(zip_stream *s)
{
    inflateEnd(&s->deflated);
}

/* ---- bzip2 */

#ifndef EDDY_WITHOUT_BZIP2

static void *bzip2_allocate(void *unused, int count, int size)
{
    (void)unused;
    return memory_alloc((size_t)count * (size_t)size);
}

static bool bzip2_begin(zip_stream *s, zip_fault *fault)
{
    (void)fault;
    s->bzip2 = (bz_stream){.bzalloc = bzip2_allocate, .bzfree = give_back};
    return BZ2_bzDecompressInit(&s->bzip2, 0, 0) == BZ_OK;
}

static bool bzip2_step(zip_stream *s, uint8_t *to, size_t room, size_t *got, zip_fault *fault)
{
    bz_stream *z = &s->bzip2;
    z->next_in = (char *)s->next;
    z->avail_in = (unsigned)s->unread;
    z->next_out = (char *)to;
    z->avail_out = (unsigned)room;
    int state = BZ2_bzDecompress(z);
    s->next = (uint8_t *)z->next_in;
    s->unread = z->avail_in;
    *got = room - z->avail_out;
    s->ended = state == BZ_STREAM_END;
    if (state == BZ_OK || s->ended) return true;
    return state != BZ_MEM_ERROR && zip_damaged(fault, "its bzip2 data are damaged");
}

static void bzip2_end(zip_stream *s)
{
    BZ2_bzDecompressEnd(&s->bzip2);
}

#endif

/* ---- LZMA */

#ifndef EDDY_WITHOUT_LZMA

static void *lzma_allocate(void *unused, size_t count, size_t size)
{
    size_t bytes;
    (void)unused;
    return memory_mul(count, size, &bytes) ? memory_alloc(bytes) : NULL;
}

static const lzma_allocator lzma_memory = {lzma_allocate, give_back, NULL};

/* The decoder allocates memory of the dictionary's claimed size. Not more of it is used than
 * there are bytes of output, and a byte of input becomes at most about 7000 bytes of output. */
static void bound_dictionary(lzma_options_lzma *options, const zip_stream *s)
{
    enum { RATIO = 8192 };
    int64_t bound = s->packed < UINT32_MAX / RATIO ? s->packed * RATIO : UINT32_MAX;
    if (bound > s->left) bound = s->left;
    if (bound < LZMA_DICT_SIZE_MIN) bound = LZMA_DICT_SIZE_MIN;
    if (options->dict_size > bound) options->dict_size = (uint32_t)bound;
}

/* Two bytes of version, two of the length of the properties, the properties, the data. */
static bool lzma_begin(zip_stream *s, zip_fault *fault)
{
    enum { HEAD = 4, PROPERTIES = 5 };
    if (!refill(s)) return false;
    if (s->unread < HEAD + PROPERTIES || u16_at(s->next + 2) != PROPERTIES)
        return zip_damaged(fault, "its LZMA properties are damaged");
    lzma_filter filters[] = {{.id = LZMA_FILTER_LZMA1}, {.id = LZMA_VLI_UNKNOWN}};
    lzma_ret state = lzma_properties_decode(&filters[0], &lzma_memory, s->next + HEAD, PROPERTIES);
    if (state == LZMA_MEM_ERROR) return false;
    if (state != LZMA_OK) return zip_damaged(fault, "its LZMA properties are damaged");
    bound_dictionary(filters[0].options, s);
    s->next += HEAD + PROPERTIES;
    s->unread -= HEAD + PROPERTIES;
    s->lzma = (lzma_stream)LZMA_STREAM_INIT;
    s->lzma.allocator = &lzma_memory;
    state = lzma_raw_decoder(&s->lzma, filters);
    memory_free(filters[0].options);
    if (state == LZMA_OK) return true;
    lzma_end(&s->lzma);
    return state != LZMA_MEM_ERROR && zip_damaged(fault, "its LZMA properties are damaged");
}

static bool lzma_step(zip_stream *s, uint8_t *to, size_t room, size_t *got, zip_fault *fault)
{
    lzma_stream *z = &s->lzma;
    z->next_in = s->next;
    z->avail_in = s->unread;
    z->next_out = to;
    z->avail_out = room;
    lzma_ret state = lzma_code(z, LZMA_RUN);
    s->next = (uint8_t *)z->next_in;
    s->unread = z->avail_in;
    *got = room - z->avail_out;
    s->ended = state == LZMA_STREAM_END;
    if (state == LZMA_OK || state == LZMA_BUF_ERROR || s->ended) return true;
    return state != LZMA_MEM_ERROR && zip_damaged(fault, "its LZMA data are damaged");
}

static void lzma_finish(zip_stream *s)
{
    lzma_end(&s->lzma);
}

#endif

/* ---- All of them */

static const codec *codec_of(unsigned method)
{
    static const codec stored = {stored_begin, stored_step, stored_end},
                       deflated = {deflated_begin, deflated_step, deflated_end};
#ifndef EDDY_WITHOUT_BZIP2
    static const codec bzip2 = {bzip2_begin, bzip2_step, bzip2_end};
#endif
#ifndef EDDY_WITHOUT_LZMA
    static const codec lzma = {lzma_begin, lzma_step, lzma_finish};
#endif
    switch (method) {
    case STORED: return &stored;
    case DEFLATED: return &deflated;
#ifndef EDDY_WITHOUT_BZIP2
    case BZIP2: return &bzip2;
#endif
#ifndef EDDY_WITHOUT_LZMA
    case LZMA: return &lzma;
#endif
    default: return NULL;
    }
}

/* Why a method has no codec. */
static const char *no_codec(unsigned method)
{
    if (method == BZIP2) return "it is compressed by bzip2, which this build of Eddy lacks";
    if (method == LZMA) return "it is compressed by LZMA, which this build of Eddy lacks";
    return "its compression method is not supported";
}

/* Skips the local header, which must match the member's entry. */
static bool find_place(zip_stream *s, const zip_member *m, zip_fault *fault)
{
    static const char wrong[] = "its local header is damaged or belongs to another member";
    int64_t named = m->header + LOCAL_SIZE + (int64_t)m->name.size;
    if (m->header > m->end || named > m->end) return zip_damaged(fault, wrong);
    uint8_t *local = s->input;
    if (!io_read_at(s->file, m->header, local, LOCAL_SIZE)) return false;
    uint16_t name = u16_at(local + 26), extra = u16_at(local + 28);
    if (u32_at(local) != LOCAL || name != m->name.size) return zip_damaged(fault, wrong);
    if (!io_read_at(s->file, m->header + LOCAL_SIZE, local, name)) return false;
    if (name && memcmp(local, m->name.data, name) != 0) return zip_damaged(fault, wrong);
    s->place = s->at = named + extra;
    if (s->at > m->end || m->packed > m->end - s->at)
        return zip_damaged(fault, "it overlaps another member or extends beyond the file");
    return true;
}

zip_stream *zip_begin(const io_file *file, const zip_member *member, zip_fault *fault)
{
    *fault = (zip_fault){0};
    const codec *method = codec_of(member->method);
    if (!method) return unknown(fault, no_codec(member->method)), NULL;
    if (member->flags & ENCRYPTED) return unknown(fault, "it is encrypted"), NULL;
    zip_stream *s = memory_alloc(sizeof *s);
    if (!s) return NULL;
    s->file = file;
    s->codec = NULL;
    s->packed = member->packed;
    s->left = member->size;
    s->crc = 0;
    s->wanted = member->crc;
    s->ended = s->checked = false;
    s->unread = 0;
    if (find_place(s, member, fault) && method->begin(s, fault)) {
        s->codec = method;
        return s;
    }
    zip_end(s);
    return NULL;
}

/* One step forward, input provided. */
static bool step(zip_stream *s, uint8_t *to, size_t room, size_t *got, zip_fault *fault)
{
    bool stored = s->codec->step == stored_step;
    if (!stored && !s->unread && !refill(s)) return false;
    bool last = !s->unread;
    if (!s->codec->step(s, to, room, got, fault)) return false;
    if (!*got && !s->ended && (last || stored))
        return zip_damaged(fault, "unexpected end of its compressed data");
    s->crc = (uint32_t)crc32(s->crc, to, (unsigned)*got);
    s->left -= (int64_t)*got;
    return true;
}

bool zip_read(zip_stream *s, void *to, size_t want, size_t *got, zip_fault *fault)
{
    *fault = (zip_fault){0};
    for (*got = 0; *got < want && s->left && !s->ended;) {
        size_t room = want - *got, n = 0;
        if ((int64_t)room > s->left) room = (size_t)s->left;
        if (room > MOST_AT_ONCE) room = MOST_AT_ONCE;
        if (!step(s, (uint8_t *)to + *got, room, &n, fault)) return false;
        *got += n;
    }
    if (s->checked || (s->left && !s->ended)) return true;
    s->checked = true;
    return io_checksum_is(s->crc, s->wanted) ||
           zip_damaged(fault, "its checksum does not match: the data are damaged");
}

int64_t zip_place(const zip_stream *s)
{
    return s->place;
}

void zip_end(zip_stream *s)
{
    if (s && s->codec) s->codec->end(s);
    memory_free(s);
}

/* ---- Writing --------------------------------------------------------------------------------- */

enum { ALIGNMENT = 64, PADDING = 0xd935, JANUARY_1980 = 0x21, OLD = 20, LARGE = 45 };
enum { UNIX = 3, READABLE = 0100644 }; /* tools take the names' UTF-8 for such only from Unix */

zip_writer zip_write_on(io_writer *file)
{
    return (zip_writer){.file = file, .limit = UINT32_MAX};
}

static bool write_buffer(io_writer *file, io_buffer *b)
{
    bool good = !b->failed && io_write(file, b->data, b->size);
    io_buffer_free(b);
    return good;
}

static bool is_ascii(const char *name)
{
    for (; *name; name++)
        if (*name & 0x80) return false;
    return true;
}

/* What local header and entry have in common, from the version that is needed to read it. */
static void put_common(io_buffer *b, const char *name, int64_t size, uint32_t crc, int64_t limit,
                       bool is_large)
{
    uint32_t said = size >= limit ? UINT32_MAX : (uint32_t)size;
    io_put_u16(b, is_large ? LARGE : OLD);
    io_put_u16(b, is_ascii(name) ? 0 : UTF8);
    io_put_u16(b, STORED);
    io_put_u16(b, 0);
    io_put_u16(b, JANUARY_1980);
    io_put_u32(b, crc);
    io_put_u32(b, said);
    io_put_u32(b, said);
    io_put_u16(b, (uint16_t)strlen(name));
}

/* The local header, padded so that the member itself begins at a multiple of the alignment. */
static void put_local(io_buffer *b, const zip_writer *w, const char *name, int64_t size,
                      uint32_t crc)
{
    bool is_large = size >= w->limit;
    int64_t begin = io_written(w->file) + LOCAL_SIZE + (int64_t)strlen(name) + (is_large ? 20 : 0);
    int padding = (int)(-begin & (ALIGNMENT - 1));
    if (padding && padding < 6) padding += ALIGNMENT;
    io_put_u32(b, LOCAL);
    put_common(b, name, size, crc, w->limit, is_large);
    io_put_u16(b, (uint16_t)(padding + (is_large ? 20 : 0)));
    io_put(b, name, strlen(name));
    if (is_large) {
        io_put_u16(b, 1);
        io_put_u16(b, 16);
        io_put_u64(b, (uint64_t)size);
        io_put_u64(b, (uint64_t)size);
    }
    if (!padding) return;
    io_put_u16(b, PADDING);
    io_put_u16(b, (uint16_t)(padding - 4));
    io_put_u16(b, ALIGNMENT);
    for (int i = 6; i < padding; i++) io_put_u8(b, 0);
}

static void put_entry(io_buffer *b, const zip_writer *w, const char *name, int64_t size,
                      uint32_t crc)
{
    int64_t offset = io_written(w->file);
    int extra = (size >= w->limit ? 16 : 0) + (offset >= w->limit ? 8 : 0);
    io_put_u32(b, ENTRY);
    io_put_u16(b, UNIX << 8 | (extra ? LARGE : OLD));
    put_common(b, name, size, crc, w->limit, extra);
    io_put_u16(b, (uint16_t)(extra ? extra + 4 : 0));
    io_put_u16(b, 0);
    io_put_u16(b, 0);
    io_put_u16(b, 0);
    io_put_u32(b, (uint32_t)READABLE << 16);
    io_put_u32(b, offset >= w->limit ? UINT32_MAX : (uint32_t)offset);
    io_put(b, name, strlen(name));
    if (!extra) return;
    io_put_u16(b, 1);
    io_put_u16(b, (uint16_t)extra);
    if (size >= w->limit) {
        io_put_u64(b, (uint64_t)size);
        io_put_u64(b, (uint64_t)size);
    }
    if (offset >= w->limit) io_put_u64(b, (uint64_t)offset);
}

bool zip_add(zip_writer *w, const char *name, int64_t size, uint32_t crc)
{
    io_buffer local = {0};
    put_entry(&w->directory, w, name, size, crc);
    put_local(&local, w, name, size, crc);
    w->count++;
    return write_buffer(w->file, &local);
}

static void put_ending_64(io_buffer *b, int64_t count, int64_t size, int64_t begin)
{
    io_put_u32(b, ENDING_64);
    io_put_u64(b, ENDING_64_SIZE - 12);
    io_put_u16(b, LARGE);
    io_put_u16(b, LARGE);
    io_put_u32(b, 0);
    io_put_u32(b, 0);
    io_put_u64(b, (uint64_t)count);
    io_put_u64(b, (uint64_t)count);
    io_put_u64(b, (uint64_t)size);
    io_put_u64(b, (uint64_t)begin);
    io_put_u32(b, LOCATOR_64);
    io_put_u32(b, 0);
    io_put_u64(b, (uint64_t)(begin + size));
    io_put_u32(b, 1);
}

bool zip_finish(zip_writer *w)
{
    io_buffer *b = &w->directory;
    int64_t begin = io_written(w->file), size = (int64_t)b->size;
    bool many = w->count >= UINT16_MAX, is_large = size >= w->limit, far = begin >= w->limit;
    if (many || is_large || far) put_ending_64(b, w->count, size, begin);
    io_put_u32(b, ENDING);
    io_put_u16(b, 0);
    io_put_u16(b, 0);
    io_put_u16(b, many ? UINT16_MAX : (uint16_t)w->count);
    io_put_u16(b, many ? UINT16_MAX : (uint16_t)w->count);
    io_put_u32(b, is_large ? UINT32_MAX : (uint32_t)size);
    io_put_u32(b, far ? UINT32_MAX : (uint32_t)begin);
    io_put_u16(b, 0);
    return write_buffer(w->file, b);
}
