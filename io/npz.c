/*
 * .npz: a zip archive whose members are .npy files, named by their tensors with ".npy" appended.
 *
 * The members' headers are read when the archive is opened. A damaged member fails when it is read;
 * the others can be read. If several members have one name, the last counts. A member that is not a
 * .npy is shown as raw bytes.
 *
 * A stored member that is aligned is mapped, after its checksum was verified. Others are read and
 * unpacked into memory of the size in their header; if that is more than USUAL times the packed
 * size, they are first unpacked once to verify it.
 */
#include "io/npy.h"
#include "io/json.h"
#include "io/zip.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { USUAL = 8, PIECE = 1 << 16 };

static const char opening[] = "archive_open", suffix[] = ".npy";

typedef struct member {
    const zip_member *zip;
    char *name; /* without the suffix, with a 0 at its end */
    size_t name_size;
    zip_fault fault;   /* why it can't be read; a NULL text: it can */
    bool raw;          /* not a .npy: `bytes` bytes */
    int64_t bytes;     /* of a raw one */
    int64_t place;     /* the offset of its first byte in the file */
    npy_header header; /* of a .npy */
} member;

typedef struct npz {
    ed_object object;
    io_file file;
    ed_buffer *map;
    zip_directory zip;
    char *names;
    member *members;
    int64_t count;
} npz;

static void npz_destroy(void *object)
{
    npz *z = object;
    io_close(&z->file);
    zip_close(&z->zip);
    if (z->map) memory_buffer_release(z->map);
    memory_free(z->names);
    memory_free(z->members);
    memory_free(z);
}

static const object_class npz_class = {.name = "npz", .destroy = npz_destroy};

/* ---- Opening --------------------------------------------------------------------------------- */

/* Copies the names, which have no 0 at their end in the directory. */
static bool take_names(npz *z)
{
    size_t room = 0;
    for (int64_t i = 0; i < z->zip.count; i++) room += z->zip.members[i].name.size + 1;
    z->names = memory_alloc(room);
    z->members = memory_zalloc((size_t)z->zip.count * sizeof *z->members);
    if (!z->names || !z->members) return false;
    char *to = z->names;
    for (int64_t i = 0; i < z->zip.count; i++) {
        member *m = &z->members[i];
        io_span name = z->zip.members[i].name;
        size_t end = sizeof suffix - 1;
        m->zip = &z->zip.members[i];
        m->name = to;
        m->name_size = name.size;
        if (name.size) memcpy(to, name.data, name.size);
        if (name.size >= end && !memcmp(to + name.size - end, suffix, end)) m->name_size -= end;
        to[m->name_size] = 0;
        to += name.size + 1;
    }
    z->count = z->zip.count;
    return true;
}

/* Sorted by name; those of one name in the directory's order. */
static int by_member_name(const void *a, const void *b)
{
    const member *x = *(member *const *)a, *y = *(member *const *)b;
    size_t n = x->name_size < y->name_size ? x->name_size : y->name_size;
    int order = memcmp(x->name, y->name, n);
    if (order) return order;
    if (x->name_size != y->name_size) return x->name_size < y->name_size ? -1 : 1;
    return (x > y) - (x < y);
}

/* Removes members that are followed by another one of their name. */
static bool drop_repeated(npz *z)
{
    member **order = memory_alloc((size_t)z->count * sizeof *order);
    if (!order) return false;
    for (int64_t i = 0; i < z->count; i++) order[i] = &z->members[i];
    qsort(order, (size_t)z->count, sizeof *order, by_member_name);
    for (int64_t i = 1; i < z->count; i++) {
        member *before = order[i - 1];
        bool same = before->name_size == order[i]->name_size &&
                    !memcmp(before->name, order[i]->name, before->name_size);
        if (same) before->zip = NULL;
    }
    memory_free(order);
    int64_t kept = 0;
    for (int64_t i = 0; i < z->count; i++)
        if (z->members[i].zip) z->members[kept++] = z->members[i];
    z->count = kept;
    return true;
}

static bool member_damaged(member *m, const char *what)
{
    m->fault = (zip_fault){ED_DATA_LOSS, what};
    return true;
}

/* Reads the member's header from its stream. Damage becomes its fault; false only for other
 * failures (memory, reading). */
static bool parse_head(member *m, zip_stream *s)
{
    uint8_t head[NPY_MAX_HEADER];
    size_t got, more = 0, size;
    if (!zip_read(s, head, NPY_FIRST, &got, &m->fault)) return m->fault.text;
    if (!npy_begins(head, got)) {
        m->raw = true;
        m->bytes = m->zip->size;
        return true;
    }
    const char *bad = npy_measure(head, got, &size);
    if (bad) return member_damaged(m, bad);
    if (!zip_read(s, head + got, size - got, &more, &m->fault)) return m->fault.text;
    bad = npy_parse(head, got + more, &m->header);
    if (bad) return member_damaged(m, bad);
    int64_t there = m->zip->size - m->header.size;
    if (m->header.opaque) m->header.bytes = there;
    return m->header.bytes <= there || member_damaged(m, "unexpected end of file in its elements");
}

static bool read_head(npz *z, member *m)
{
    zip_stream *s = zip_begin(&z->file, m->zip, &m->fault);
    if (!s) return m->fault.text;
    m->place = zip_place(s);
    bool good = parse_head(m, s);
    zip_end(s);
    return good;
}

static bool read_members(npz *z)
{
    if (!take_names(z) || !drop_repeated(z)) return false;
    for (int64_t i = 0; i < z->count; i++)
        if (!read_head(z, &z->members[i])) return false;
    return true;
}

static void *npz_open(const char *path)
{
    npz *z = object_new(&npz_class, sizeof *z);
    if (!z) return NULL;
    z->file.descriptor = -1;
    if (io_open(&z->file, opening, path) && zip_open(&z->file, &z->zip) && read_members(z) &&
        (z->map = io_map(&z->file)))
        return z;
    ed_release(z);
    return NULL;
}

static int64_t npz_count(const void *self)
{
    return ((const npz *)self)->count;
}

static archive_entry npz_entry(const void *self, int64_t i)
{
    const member *m = &((const npz *)self)->members[i];
    archive_entry e = npy_entry(&m->header);
    if (m->fault.text) e = (archive_entry){.foreign = "damaged"};
    if (m->raw)
        e = (archive_entry){.foreign = "bytes", .rank = 1, .shape = &m->bytes, .bytes = m->bytes};
    e.name = m->name;
    e.name_size = m->name_size;
    return e;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Sets the error of a fault; one without a text is set already. */
static bool member_fail(const npz *z, const member *m, zip_fault fault)
{
    if (fault.text)
        ed_fail(fault.code, "%s: %s: member '%.200s': %s", opening, z->file.path, m->name,
                fault.text);
    return false;
}

static bool fail_short(const npz *z, const member *m)
{
    return member_fail(z, m, (zip_fault){ED_DATA_LOSS, "unexpected end of file in its elements"});
}

static void *refuse_member(const npz *z, const member *m)
{
    char what[600];
    if (m->fault.text) return member_fail(z, m, m->fault), NULL;
    snprintf(what, sizeof what, "%s: %.300s: member '%.200s'", opening, z->file.path, m->name);
    if (!m->raw) return npy_refuse(what, &m->header);
    return ed_fail(ED_UNIMPLEMENTED, "%s is not a .npy file", what);
}

/* A member that is being read. */
typedef struct reader {
    const npz *z;
    const member *m;
    zip_stream *stream;
} reader;

static bool read_exactly(void *user, void *to, size_t size)
{
    reader *r = user;
    zip_fault fault;
    size_t got;
    if (!zip_read(r->stream, to, size, &got, &fault)) return member_fail(r->z, r->m, fault);
    return got == size || fail_short(r->z, r->m);
}

/* Skips `size` bytes, or all that are left; *passed is their number. */
static bool pass(reader *r, int64_t size, int64_t *passed)
{
    size_t got = 1;
    *passed = 0;
    uint8_t *sink = memory_alloc(PIECE);
    for (; sink && got && *passed < size; *passed += (int64_t)got) {
        size_t want = size - *passed < PIECE ? (size_t)(size - *passed) : PIECE;
        zip_fault fault;
        if (!zip_read(r->stream, sink, want, &got, &fault)) {
            memory_free(sink);
            return member_fail(r->z, r->m, fault);
        }
    }
    memory_free(sink);
    return sink != NULL;
}

/* At the first byte of the member / after its header. */
static bool begin(reader *r, const npz *z, const member *m)
{
    zip_fault fault;
    *r = (reader){z, m, zip_begin(&z->file, m->zip, &fault)};
    return r->stream || member_fail(z, m, fault);
}

static bool begin_elements(reader *r, const npz *z, const member *m)
{
    int64_t passed;
    return begin(r, z, m) && pass(r, m->header.size, &passed) &&
           (passed == m->header.size || fail_short(z, m));
}

/* Reads the rest, to verify the checksum, and ends. */
static bool finish(reader *r, bool good)
{
    int64_t passed;
    good = good && pass(r, INT64_MAX, &passed);
    zip_end(r->stream);
    return good;
}

/* Reads the whole member, to verify its checksum and its size. */
static bool check_member(const npz *z, const member *m)
{
    reader r;
    int64_t passed = 0;
    bool good = begin(&r, z, m) && pass(&r, INT64_MAX, &passed);
    zip_end(r.stream);
    if (!good) return false;
    return m->raw || passed >= m->header.size + m->header.bytes || fail_short(z, m);
}

static bool npz_verify(void *self, int64_t i)
{
    const npz *z = self;
    const member *m = &z->members[i];
    return m->fault.text ? member_fail(z, m, m->fault) : check_member(z, m);
}

/* Whether memory may be allocated for the size in the header. */
static bool check_claim(const npz *z, const member *m)
{
    return m->header.bytes / USUAL <= m->zip->packed || check_member(z, m);
}

static ed_tensor *unpacked(const npz *z, const member *m)
{
    reader r;
    if (!check_claim(z, m)) return NULL;
    ed_tensor *t = npy_room(&m->header);
    if (!t) return NULL;
    bool good = begin_elements(&r, z, m) && read_exactly(&r, t->data, (size_t)m->header.bytes);
    if (finish(&r, good)) return npy_settle(&m->header, t);
    ed_release(t);
    return NULL;
}

static ed_tensor *npz_tensor(void *self, int64_t i)
{
    const npz *z = self;
    const member *m = &z->members[i];
    if (m->fault.text || m->raw || !io_dtype_to(m->header.dtype)) return refuse_member(z, m);
    int64_t elements = m->place + m->header.size;
    bool stored = m->zip->method == 0;
    if (!stored || !npy_lies_well(&m->header, elements)) return unpacked(z, m);
    return check_member(z, m) && io_is_whole(&z->file) ? npy_view(&m->header, z->map, elements)
                                                       : NULL;
}

static bool npz_stream(void *self, int64_t i, io_sink *take, void *user)
{
    const npz *z = self;
    const member *m = &z->members[i];
    reader r;
    if (m->fault.text || !strcmp(m->header.foreign, "object")) return refuse_member(z, m);
    if (m->header.fortran && !check_claim(z, m)) return false;
    npy_header raw = {.bytes = m->bytes, .swapped = 1};
    bool good = m->raw ? begin(&r, z, m) : begin_elements(&r, z, m);
    good = good && npy_stream(m->raw ? &raw : &m->header, read_exactly, &r, take, user);
    return finish(&r, good);
}

/* ---- Writing --------------------------------------------------------------------------------- */

typedef struct npz_writer {
    const char *who, *path; /* for errors */
    zip_writer zip;
} npz_writer;

/* A member's bytes are passed twice: for the checksum, which precedes them, and to be written. */
typedef struct pass_over {
    uint32_t crc;
    int64_t bytes;
    io_writer *file; /* NULL the first time */
} pass_over;

static bool take_piece(void *user, const void *data, size_t size)
{
    pass_over *p = user;
    p->crc = (uint32_t)crc32_z(p->crc, data, size);
    p->bytes += (int64_t)size;
    return !p->file || io_write(p->file, data, size);
}

static bool go_over(const io_buffer *head, const archive_item *item, pass_over *p)
{
    return take_piece(p, head->data, head->size) && archive_stream(item, take_piece, p);
}

static bool refuse_item(const npz_writer *w, const archive_item *item, ed_error_code code,
                        const char *why, const char *what)
{
    return ed_fail(code, "%s: %s: tensor '%.200s': %s%s", w->who, w->path, item->name, why, what);
}

static bool write_member(npz_writer *w, const archive_item *item, const io_buffer *head,
                         const char *name)
{
    pass_over first = {0}, second = {.file = w->zip.file};
    if (!go_over(head, item, &first)) return false;
    if (first.bytes != (int64_t)head->size + item->bytes)
        return refuse_item(w, item, ED_UNIMPLEMENTED, "NumPy packs its elements differently", "");
    if (!zip_add(&w->zip, name, first.bytes, first.crc) || !go_over(head, item, &second))
        return false;
    return (first.crc == second.crc && first.bytes == second.bytes) ||
           refuse_item(w, item, ED_DATA_LOSS, "it changed while it was read", "");
}

static bool check_item(const npz_writer *w, const archive_item *item)
{
    size_t n = strlen(item->name);
    if (n > UINT16_MAX - sizeof suffix)
        return refuse_item(w, item, ED_INVALID_ARGUMENT, "its name is too long", "");
    if (!io_is_utf8(item->name, n))
        return refuse_item(w, item, ED_INVALID_ARGUMENT, "its name is not UTF-8", "");
    return item->rank <= NPY_MAX_RANK ||
           refuse_item(w, item, ED_UNIMPLEMENTED, "its rank is higher than NumPy allows", "");
}

static bool write_item(npz_writer *w, const archive_item *item)
{
    io_buffer head = {0};
    char *name = io_text("%s%s", item->name, suffix);
    bool good = name && check_item(w, item);
    if (good && !npy_put_header(&head, item->dtype, item->rank, item->shape))
        good = head.failed ? false
                           : refuse_item(w, item, ED_UNIMPLEMENTED, "NumPy has no dtype ",
                                         archive_item_dtype(item));
    good = good && write_member(w, item, &head, name);
    io_buffer_free(&head);
    memory_free(name);
    return good;
}

static bool npz_write(const char *who, const char *path, const archive_item *items, int64_t count)
{
    io_writer *file = io_create(who, path);
    if (!file) return false;
    npz_writer w = {who, path, zip_write_on(file)};
    bool good = true;
    for (int64_t i = 0; good && i < count; i++) good = write_item(&w, &items[i]);
    good = zip_finish(&w.zip) && good;
    if (good) return io_commit(file, true);
    io_discard(file);
    return false;
}

/* ---- The format ------------------------------------------------------------------------------ */

/* A zip archive, an empty one too. */
static archive_match npz_recognises(const archive_glimpse *g)
{
    bool zip = !memcmp(g->first, "PK\3\4", 4) || !memcmp(g->first, "PK\5\6", 4);
    return zip ? ARCHIVE_CERTAIN : ARCHIVE_OTHER;
}

ARCHIVE_FORMAT(npz_format) = {.name = "npz",
                              .ending = ".npz",
                              .recognises = npz_recognises,
                              .open = npz_open,
                              .count = npz_count,
                              .entry = npz_entry,
                              .tensor = npz_tensor,
                              .stream = npz_stream,
                              .verify = npz_verify,
                              .write = npz_write};
