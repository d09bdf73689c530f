#include "io/archive.h"
#include "io/bundle_core.h"
#include "tensor/threads.h"
#include <stdlib.h>
#include <string.h>

/*
 * Writing a bundle: tensors are written to the data file as they are added; their entries are
 * collected, sorted at the end and written as the index.
 *
 * All files are written and on disk before any gets its name. The data gets its name first and the
 * index last, the folder being synced after each: an index never names data that is not there.
 *
 * Names of data files hold their number, which the index says. A bundle has one; where it replaces
 * one that has one too, it has two, the second of them empty, so that the older one's data stays
 * until the rename of the index has made the new bundle valid:
 *
 *     x.index (1 shard)   x.data-00000-of-00001
 *     x.index (1 shard)   x.data-00000-of-00001   x.data-00000-of-00002   x.data-00001-of-00002
 *     x.index (2 shards)  x.data-00000-of-00001   x.data-00000-of-00002   x.data-00001-of-00002
 *     x.index (2 shards)                          x.data-00000-of-00002   x.data-00001-of-00002
 *
 * The next one has one again.
 */

enum { PIECE = 16 << 20, CACHED = 512 << 10 };

/* The positions of an entry's name and message in the writer's buffers. */
typedef struct written {
    size_t name, name_size, message, message_size;
    io_digest digest;
} written;

struct bundle_writer {
    const char *who;
    char *prefix;
    io_writer *data, *second, *index; /* second: the empty data file, NULL: not needed */
    int32_t older, shards;            /* data files of the older bundle, 0: none; of this one */
    io_buffer names, messages;
    written *entries;
    int64_t count, room;
    bool failed;
};

static bool writer_fail(bundle_writer *w, ed_error_code code, const char *name, const char *what)
{
    w->failed = true;
    ed_fail(code, "%s: %s: tensor '%.200s': %s", w->who, w->prefix, name, what);
    return false;
}

static bool check_prefix(const char *who, const char *prefix)
{
    if (NULL_GIVEN(who, prefix)) return false;
    return *io_name_of(prefix) ||
           ed_fail(ED_INVALID_ARGUMENT, "%s: prefix must end in a file name, got '%s'", who,
                   prefix);
}

bundle_writer *bundle_create(const char *who, const char *prefix)
{
    if (!check_prefix(who, prefix)) return NULL;
    bundle_writer *w = memory_zalloc(sizeof *w);
    if (!w) return NULL;
    w->who = who;
    w->prefix = text_copy(prefix);
    char *folder = io_folder_of(prefix);
    char *path = io_text("%s.data-00000-of-00001", prefix), *index = io_text("%s.index", prefix);
    if (w->prefix && folder && path && index && io_make_folders(who, folder))
        w->data = io_create_like(who, path, index);
    memory_free(folder);
    memory_free(path);
    memory_free(index);
    if (w->data) return w;
    bundle_discard(w);
    return NULL;
}

void bundle_discard(bundle_writer *w)
{
    if (!w) return;
    io_discard(w->data);
    io_discard(w->second);
    io_discard(w->index);
    io_buffer_free(&w->names);
    io_buffer_free(&w->messages);
    memory_free(w->entries);
    memory_free(w->prefix);
    memory_free(w);
}

/* ---- Elements -------------------------------------------------------------------------------- */

/* The state of a tensor that is being written. */
typedef struct sink {
    bundle_writer *writer;
    io_digester *digester;
    uint32_t crc;
    const uint8_t *piece; /* the present piece */
    size_t size;
    bool summed, tried,
        fine; /* whether the sums were computed; whether it was written; whether that succeeded */
} sink;

static size_t cached_size(const sink *s, size_t at)
{
    return s->size - at < CACHED ? s->size - at : CACHED;
}

/* The digest runs at the speed of memory; the crc, which is slower, then finds the bytes in the
 * cache. */
static void sum(sink *s, size_t at)
{
    io_digest_add(s->digester, s->piece + at, cached_size(s, at));
    s->crc = io_crc32c(s->crc, s->piece + at, cached_size(s, at));
}

static void sum_all(sink *s)
{
    for (size_t at = 0; at < s->size; at += CACHED) sum(s, at);
}

static void write_all(sink *s)
{
    s->tried = true;
    s->fine = io_write(s->writer->data, s->piece, s->size);
}

static void sum_and_write_all(sink *s)
{
    s->tried = s->fine = true;
    for (size_t at = 0; s->fine && at < s->size; at += CACHED) {
        sum(s, at);
        s->fine = io_write(s->writer->data, s->piece + at, cached_size(s, at));
    }
}

/* Two tasks for each piece, done by any free thread; but only the caller, worker 0, writes,
 * since errors belong to a thread. */
static void work_on_piece(int64_t first, int64_t last, int worker, void *user)
{
    sink *s = user;
    if (last - first == 2)
        sum_and_write_all(s);
    else if (worker == 0 && !s->tried)
        write_all(s);
    else if (!__atomic_exchange_n(&s->summed, true, __ATOMIC_RELAXED))
        sum_all(s);
}

/* The sums of a large piece are computed while the system writes it. */
static bool put_bytes(void *user, const void *data, size_t size)
{
    sink *s = user;
    for (size_t at = 0; at < size; at += PIECE) {
        s->piece = (const uint8_t *)data + at;
        s->size = size - at < PIECE ? size - at : PIECE;
        s->tried = s->summed = false;
        threads_run(2, s->size > HARD(1, CACHED) ? 1 : 2, work_on_piece, s);
        if (!s->tried) write_all(s); /* other threads took both tasks before the caller */
        if (!s->fine) return false;
    }
    return true;
}

static bool sink_begin(sink *s, bundle_writer *w)
{
    *s = (sink){.writer = w, .digester = io_digest_begin()};
    if (!s->digester) w->failed = true;
    return s->digester;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static void put_shape(io_buffer *message, int rank, const int64_t *shape)
{
    io_buffer dims = {0}, dim = {0};
    for (int i = 0; i < rank; i++) {
        dim.size = 0;
        if (shape[i]) io_put_field_varint(&dim, DIM_SIZE, (uint64_t)shape[i]);
        io_put_field_bytes(&dims, SHAPE_DIM, dim.data, dim.size);
    }
    io_put_field_bytes(message, ENTRY_SHAPE, dims.data, dims.size);
    message->failed |= dims.failed | dim.failed;
    io_buffer_free(&dims);
    io_buffer_free(&dim);
}

/* Numbers that are 0 are omitted; the shape is written even if it is empty. */
static void put_entry(io_buffer *message, io_dtype dtype, int rank, const int64_t *shape,
                      int64_t offset, int64_t size, uint32_t crc)
{
    io_put_field_varint(message, ENTRY_DTYPE, (uint64_t)dtype);
    put_shape(message, rank, shape);
    if (offset) io_put_field_varint(message, ENTRY_OFFSET, (uint64_t)offset);
    if (size) io_put_field_varint(message, ENTRY_SIZE, (uint64_t)size);
    if (crc) io_put_field_fixed32(message, ENTRY_CRC, crc);
}

static written *new_entry(bundle_writer *w)
{
    if (w->count == w->room) {
        int64_t room = 2 * w->room + HARD(1, 16);
        written *entries = memory_grow(w->entries, (size_t)w->room * sizeof *entries,
                                       (size_t)room * sizeof *entries);
        if (!entries) return NULL;
        w->entries = entries;
        w->room = room;
    }
    return &w->entries[w->count++];
}

/* Adds the entry of a tensor whose elements went through the sink; closes the sink. */
static bool sink_end(sink *s, bool fine, const char *name, io_dtype dtype, int rank,
                     const int64_t *shape, int64_t offset)
{
    bundle_writer *w = s->writer;
    written *entry = fine ? new_entry(w) : NULL;
    if (entry) {
        *entry = (written){.name = w->names.size, .message = w->messages.size};
        entry->digest = io_digest_end(s->digester);
        entry->name_size = strlen(name);
        io_put(&w->names, name, entry->name_size);
        put_entry(&w->messages, dtype, rank, shape, offset, io_written(w->data) - offset,
                  io_crc32c_mask(s->crc));
        entry->message_size = w->messages.size - entry->message;
    }
    memory_free(s->digester);
    w->failed |= !entry || w->names.failed || w->messages.failed;
    return !w->failed;
}

static bool may_add(bundle_writer *w, const char *name)
{
    if (!w || w->failed) return false;
    if (!name || !*name)
        return writer_fail(w, ED_INVALID_ARGUMENT, "", "the name must not be empty");
    if (!strcmp(name, BUNDLE_DIGESTS))
        return writer_fail(w, ED_INVALID_ARGUMENT, name, "the name is reserved");
    return true;
}

bool bundle_add(bundle_writer *w, const char *name, const ed_tensor *tensor)
{
    sink s;
    if (!may_add(w, name)) return false;
    if (!tensor) return writer_fail(w, ED_INVALID_ARGUMENT, name, "the tensor is NULL");
    int64_t offset = io_written(w->data);
    return sink_begin(&s, w) &&
           sink_end(&s, io_stream_tensor(tensor, put_bytes, &s), name, io_dtype_from(tensor->dtype),
                    tensor->rank, tensor->shape, offset);
}

bool bundle_add_raw(bundle_writer *w, const char *name, io_dtype dtype, int rank,
                    const int64_t *shape, const void *data, size_t size)
{
    sink s;
    int64_t elements, bytes;
    if (!may_add(w, name)) return false;
    int width = (int)dtype <= IO_FLOAT4_E2M1FN ? io_dtype_bits(dtype) / 8 : 0;
    if (!width) return writer_fail(w, ED_UNIMPLEMENTED, name, "bundles do not have its dtype");
    if (rank < 0 || rank > BUNDLE_MAX_RANK || !bundle_count_elements(rank, shape, &elements) ||
        __builtin_mul_overflow(elements, width, &bytes) || (uint64_t)bytes != size)
        return writer_fail(w, ED_INVALID_ARGUMENT, name, "its size does not match its shape");
    int64_t offset = io_written(w->data);
    return sink_begin(&s, w) &&
           sink_end(&s, put_bytes(&s, data, size), name, dtype, rank, shape, offset);
}

/* The lengths and their checksum, as stored; *crc is that of the numbers. */
static void put_lengths(io_buffer *out, const io_span *strings, int64_t count, uint32_t *crc)
{
    *crc = 0;
    for (int64_t i = 0; i < count; i++) {
        io_put_varint(out, strings[i].size);
        *crc = bundle_crc_length(*crc, strings[i].size, false);
    }
    io_put_u32(out, io_crc32c_mask(*crc));
}

/* Writes strings and sets the sink's checksum to that of the entry, which differs from that of
 * the bytes in the file: lengths count as numbers. */
static bool put_strings(sink *s, const io_span *strings, int64_t count)
{
    io_buffer lengths = {0};
    uint32_t crc, check;
    put_lengths(&lengths, strings, count, &crc);
    bool fine = !lengths.failed && put_bytes(s, lengths.data, lengths.size);
    check = io_crc32c_mask(crc);
    s->crc = io_crc32c(crc, &check, sizeof check);
    for (int64_t i = 0; fine && i < count; i++)
        fine = put_bytes(s, strings[i].data, strings[i].size);
    io_buffer_free(&lengths);
    return fine;
}

static bool add_strings(bundle_writer *w, const char *name, int rank, const int64_t *shape,
                        const io_span *strings, int64_t count)
{
    sink s;
    int64_t offset = io_written(w->data);
    return sink_begin(&s, w) &&
           sink_end(&s, put_strings(&s, strings, count), name, IO_STRING, rank, shape, offset);
}

bool bundle_add_strings(bundle_writer *w, const char *name, int rank, const int64_t *shape,
                        const io_span *strings, int64_t count)
{
    int64_t elements;
    if (!may_add(w, name)) return false;
    if (rank < 0 || rank > BUNDLE_MAX_RANK || !bundle_count_elements(rank, shape, &elements) ||
        elements != count)
        return writer_fail(w, ED_INVALID_ARGUMENT, name,
                           "the number of strings does not match its shape");
    return add_strings(w, name, rank, shape, strings, count);
}

/* ---- Removing -------------------------------------------------------------------------------- */

enum { ALL_SHARDS = -1 };

typedef struct shards_of {
    const char *who, *folder, *name;
    int64_t only, but; /* only of bundles of so many shards; but of so many. ALL_SHARDS: no limit */
} shards_of;

/* Whether what follows is a number of at least five digits and `end`; goes behind both. */
static bool pass_number(const char **at, const char *end, int64_t *number)
{
    size_t digits = strspn(*at, "0123456789"), size = strlen(end);
    if (digits < 5 || strncmp(*at + digits, end, size)) return false;
    *number = strtoll(*at, NULL, 10);
    *at += digits + size;
    return true;
}

static bool is_shard(const char *name, void *user)
{
    const shards_of *of = user;
    size_t size = strlen(of->name);
    int64_t shard, shards;
    if (strncmp(name, of->name, size) || strncmp(name + size, ".data-", 6)) return false;
    const char *rest = name + size + 6;
    if (!pass_number(&rest, "-of-", &shard) || !pass_number(&rest, "", &shards) || *rest)
        return false;
    return (of->only == ALL_SHARDS || shards == of->only) && shards != of->but;
}

static bool remove_shard(const char *name, void *user)
{
    const shards_of *of = user;
    if (!is_shard(name, user)) return true;
    char *path = io_text("%s/%s", of->folder, name);
    bool fine = path && io_remove(of->who, path);
    memory_free(path);
    return fine;
}

bool bundle_remove(const char *who, const char *prefix)
{
    if (!check_prefix(who, prefix)) return false;
    char *index = io_text("%s.index", prefix), *folder = io_folder_of(prefix);
    shards_of shards = {who, folder, io_name_of(prefix), ALL_SHARDS, ALL_SHARDS};
    bool fine = index && folder && io_remove(who, index) &&
                io_each_name(who, folder, remove_shard, &shards);
    memory_free(index);
    memory_free(folder);
    return fine;
}

/* ---- The end --------------------------------------------------------------------------------- */

static int by_entry_name(const void *a, const void *b, void *user)
{
    const written *x = a, *y = b;
    const uint8_t *names = user;
    size_t common = x->name_size < y->name_size ? x->name_size : y->name_size;
    int order = memcmp(names + x->name, names + y->name, common);
    return order ? order : (x->name_size > y->name_size) - (x->name_size < y->name_size);
}

static bool sort_entries(bundle_writer *w)
{
    if (!w->count) return true;
    qsort_r(w->entries, (size_t)w->count, sizeof *w->entries, by_entry_name, w->names.data);
    for (int64_t i = 1; i < w->count; i++) {
        const written *e = &w->entries[i];
        if (by_entry_name(e - 1, e, w->names.data)) continue;
        w->failed = true;
        ed_fail(ED_INVALID_ARGUMENT, "%s: %s: two tensors have the name '%.*s'", w->who, w->prefix,
                (int)(e->name_size < 200 ? e->name_size : 200),
                (const char *)w->names.data + e->name);
        return false;
    }
    return true;
}

/* The lines of all digests, in one buffer, and spans of the lines. */
static bool put_digest_lines(bundle_writer *w, io_buffer *lines, io_span *spans)
{
    for (int64_t i = 0; i < w->count; i++) {
        const written *e = &w->entries[i];
        char digits[33];
        io_digest_text(e->digest, digits);
        spans[i].size = 34 + e->name_size;
        io_put(lines, digits, 32);
        io_put(lines, "  ", 2);
        io_put(lines, w->names.data + e->name, e->name_size);
    }
    const uint8_t *at = lines->data;
    for (int64_t i = 0; !lines->failed && i < w->count; at += spans[i++].size) spans[i].data = at;
    return !lines->failed;
}

static bool add_digests(bundle_writer *w)
{
    if (!w->count) return true;
    io_buffer lines = {0};
    io_span *spans = memory_alloc((size_t)w->count * sizeof *spans);
    bool fine = spans && put_digest_lines(w, &lines, spans) &&
                add_strings(w, BUNDLE_DIGESTS, 1, (int64_t[]){w->count}, spans, w->count);
    io_buffer_free(&lines);
    memory_free(spans);
    return fine && sort_entries(w);
}

/* Little-endian, version 1. */
static bool write_index(bundle_writer *w)
{
    const uint8_t header[] = {0x08, (uint8_t)w->shards, 0x1a, 0x02, 0x08, 0x01};
    table_writer t = {0};
    table_add(&t, (io_span){(const uint8_t *)"", 0}, (io_span){header, sizeof header});
    for (int64_t i = 0; i < w->count; i++) {
        const written *e = &w->entries[i];
        table_add(&t, (io_span){w->names.data + e->name, e->name_size},
                  (io_span){w->messages.data + e->message, e->message_size});
    }
    bool fine = table_end(&t) && io_write(w->index, t.file.data, t.file.size);
    table_writer_free(&t);
    return fine;
}

/* Begins the second data file, and has the first one appear as one of two. */
static bool make_two(bundle_writer *w, const char *index)
{
    char *first = io_text("%s.data-00000-of-00002", w->prefix);
    char *second = io_text("%s.data-00001-of-00002", w->prefix);
    bool fine = first && second && io_appear_as(w->data, first) &&
                (w->second = io_create_like(w->who, second, index)) && io_seal(w->second);
    memory_free(first);
    memory_free(second);
    return fine;
}

/* All files, complete and on disk under temporary names. */
static bool seal_files(bundle_writer *w)
{
    char *index = io_text("%s.index", w->prefix);
    char *data = io_text("%s.data-00000-of-00001", w->prefix);
    bool fine = index && data && bundle_shards_at(w->who, w->prefix, &w->older) &&
                (w->index = io_create_like(w->who, index, index));
    w->shards = fine && w->older == 1 && io_exists(data) ? 2 : 1;
    fine = fine && (w->shards == 1 || make_two(w, index));
    memory_free(index);
    memory_free(data);
    return fine && write_index(w) && io_seal(w->data) && io_seal(w->index);
}

/* The file gets its name; the writer is used up in any case. */
static bool appear(io_writer **file)
{
    io_writer *w = *file;
    *file = NULL;
    return io_commit(w, false);
}

/* Whether a writer of this prefix makes files of that name. */
static bool is_own_file(const char *name, void *user)
{
    const bundle_writer *w = user;
    const char *own = io_name_of(w->prefix);
    size_t size = strlen(own);
    return !strncmp(name, own, size) &&
           (!strcmp(name + size, ".index") || !strncmp(name + size, ".data-", 6));
}

/* What the older bundle and killed writers left. The new one is complete without that: failures are
 * passed over, and met again by the next one. */
static void clean_up(bundle_writer *w, const char *folder)
{
    shards_of others = {w->who, folder, io_name_of(w->prefix), ALL_SHARDS, w->shards};
    if (w->older) io_remove_all(folder, is_shard, &others);
    io_sweep(folder, is_own_file, w);
}

/* After a failure: without an older bundle nothing stays. */
static void take_back(bundle_writer *w, const char *folder, bool indexed)
{
    shards_of new = {w->who, folder, io_name_of(w->prefix), w->shards, ALL_SHARDS};
    if (!w->older)
        bundle_remove(w->who, w->prefix);
    else if (!indexed)
        io_remove_all(folder, is_shard, &new);
}

/* Gives the files their names, and lets those of the data be on disk before the index' one. */
static bool commit(bundle_writer *w)
{
    char *folder = io_folder_of(w->prefix);
    bool fine = folder && (!w->second || appear(&w->second)) && appear(&w->data) &&
                io_sync_folder(w->who, folder);
    bool indexed = fine && appear(&w->index);
    fine = indexed && io_sync_folder(w->who, folder);
    if (fine)
        clean_up(w, folder);
    else if (folder)
        take_back(w, folder, indexed);
    memory_free(folder);
    return fine;
}

bool bundle_finish(bundle_writer *w)
{
    if (!w) return false;
    bool fine = !w->failed && sort_entries(w) && add_digests(w) && seal_files(w) && commit(w);
    bundle_discard(w);
    return fine;
}
