#include "io/bundle_core.h"
#include "tensor/threads.h"
#include <string.h>

/*
 * Reading elements of a bundle. Each piece that is read goes through the checks (checksum, digest)
 * while it is in the cache. Functions that find damage set *damage to a sentence and return false;
 * with *damage NULL an error is set (reading failed, no memory). So damaged digests can be ignored,
 * and all other damage becomes an error that names the bundle and the tensor.
 */

enum { PIECE = 1 << 19, SEVERAL_THREADS = HARD(1, 2 << 20) };

static const bundle_item *item_of(const bundle_entry *entry)
{
    return (const bundle_item *)entry;
}

/* Turns damage into an error. */
static bool told(const bundle *b, const bundle_item *item, const char *damage)
{
    return damage && bundle_fail(b, item, ED_DATA_LOSS, damage);
}

/* Fails for entries with damage. */
static bool readable(const bundle *b, const bundle_item *item)
{
    const char *damage = item->seen.damage;
    return !damage || bundle_fail(b, item, ED_DATA_LOSS, damage);
}

static bool has_any_size(const bundle_item *item)
{
    return item->seen.dtype == IO_STRING || item->seen.dtype == IO_VARIANT;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

/* The checks of an item's bytes so far. */
typedef struct checks {
    uint32_t crc;
    io_digester *digester; /* NULL: the item has no digest */
} checks;

static bool checks_begin(checks *c, const bundle_item *item)
{
    *c = (checks){0};
    if (item->digested) c->digester = io_digest_begin();
    return !item->digested || c->digester;
}

static void checks_add(checks *c, const void *data, size_t size)
{
    c->crc = io_crc32c(c->crc, data, size);
    if (c->digester) io_digest_add(c->digester, data, size);
}

static const char *checks_end(checks *c, const bundle_item *item)
{
    const char *damage = NULL;
    if (c->digester) {
        io_digest digest = io_digest_end(c->digester);
        if (!io_checksum_is(digest.low, item->digest.low) ||
            !io_checksum_is(digest.high, item->digest.high))
            damage = "the digest of its elements does not match";
    }
    if (!io_checksum_is(io_crc32c_mask(c->crc), item->crc))
        damage = "the checksum of its elements does not match";
    memory_free(c->digester);
    return damage;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* Swaps to the machine's byte order; a bool becomes 0 or 1, its only valid values in C. */
static void settle(const bundle *b, io_dtype dtype, uint8_t *data, size_t size)
{
    size_t part = (size_t)io_dtype_part(dtype);
    if (dtype == IO_BOOL)
        for (size_t i = 0; i < size; i++) data[i] = data[i] != 0;
    if (!b->swapped || part < 2) return;
    for (uint8_t *p = data; p < data + size; p += part)
        for (size_t i = 0; i < part / 2; i++) {
            uint8_t byte = p[i];
            p[i] = p[part - 1 - i];
            p[part - 1 - i] = byte;
        }
}

/* An unsliced tensor of numbers, by the calling thread alone. */
static bool read_in_turn(const bundle_item *item, uint8_t *to, const char **damage)
{
    checks c;
    size_t size = (size_t)item->size;
    if (!checks_begin(&c, item)) return false;
    bool fine = true;
    for (size_t at = 0; fine && at < size; at += PIECE) {
        size_t n = size - at < PIECE ? size - at : PIECE;
        fine = io_read_at(&item->shard->file, item->offset + (int64_t)at, to + at, n);
        if (fine) checks_add(&c, to + at, n);
    }
    const char *found = checks_end(&c, item);
    if (!fine) return false;
    *damage = found;
    return !found;
}

/* The same by several threads. Each thread reads its pieces and computes their crcs, which are
 * then combined. The digest must process the pieces in order: a thread that has read a piece
 * continues the digest as far as pieces are ready, unless another thread is doing so. */
typedef struct together {
    const bundle_item *item;
    uint8_t *to;
    int64_t pieces;
    uint32_t *crcs;
    bool *ready;
    io_digester *digester; /* NULL: the item has no digest */
    int64_t digested;      /* the number of pieces in the digest */
    bool digesting, failed;
} together;

static size_t piece_size(const together *t, int64_t i)
{
    size_t at = (size_t)i * PIECE, size = (size_t)t->item->size;
    return size - at < PIECE ? size - at : PIECE;
}

static bool next_is_ready(const together *t)
{
    int64_t next = __atomic_load_n(&t->digested, __ATOMIC_SEQ_CST);
    return next < t->pieces && __atomic_load_n(&t->ready[next], __ATOMIC_SEQ_CST);
}

/* A thread that finds another one at work leaves its piece to that one, which checks again after
 * it has stopped: so no piece is forgotten. */
static void digest_what_is_ready(together *t)
{
    while (next_is_ready(t) && !__atomic_exchange_n(&t->digesting, true, __ATOMIC_SEQ_CST)) {
        while (next_is_ready(t)) {
            int64_t i = t->digested;
            io_digest_add(t->digester, t->to + i * PIECE, piece_size(t, i));
            __atomic_store_n(&t->digested, i + 1, __ATOMIC_SEQ_CST);
        }
        __atomic_store_n(&t->digesting, false, __ATOMIC_SEQ_CST);
    }
}

static void read_pieces(int64_t first, int64_t last, int worker, void *user)
{
    together *t = user;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        uint8_t *to = t->to + i * PIECE;
        if (__atomic_load_n(&t->failed, __ATOMIC_RELAXED)) return;
        if (!io_try_read_at(&t->item->shard->file, t->item->offset + i * PIECE, to,
                            piece_size(t, i))) {
            __atomic_store_n(&t->failed, true, __ATOMIC_RELAXED);
            return;
        }
        t->crcs[i] = io_crc32c(0, to, piece_size(t, i));
        __atomic_store_n(&t->ready[i], true, __ATOMIC_SEQ_CST);
        if (t->digester) digest_what_is_ready(t);
    }
}

static bool read_together(const bundle_item *item, uint8_t *to, const char **damage)
{
    together t = {.item = item, .to = to, .pieces = (item->size + PIECE - 1) / PIECE};
    checks c;
    t.crcs = memory_alloc((size_t)t.pieces * sizeof *t.crcs);
    t.ready = memory_zalloc((size_t)t.pieces);
    bool fine = t.crcs && t.ready && checks_begin(&c, item);
    if (fine) {
        t.digester = c.digester;
        threads_run(t.pieces, 1, read_pieces, &t);
        for (int64_t i = 0; i < t.pieces && !t.failed; i++)
            c.crc = io_crc32c_join(c.crc, t.crcs[i], piece_size(&t, i));
        *damage = checks_end(&c, item);
    }
    memory_free(t.crcs);
    memory_free(t.ready);
    if (!fine) return false;
    /* A call that failed is repeated in this thread, to set the error. */
    return t.failed ? read_in_turn(item, to, damage) : !*damage;
}

/* An unsliced tensor of numbers, in the form of tensors. */
static bool read_numbers(const bundle *b, const bundle_item *item, uint8_t *to, const char **damage)
{
    bool fine = item->size < SEVERAL_THREADS ? read_in_turn(item, to, damage)
                                             : read_together(item, to, damage);
    if (fine) settle(b, item->seen.dtype, to, (size_t)item->size);
    return fine;
}

/* The same piece by piece. */
static bool stream_numbers(const bundle *b, const bundle_item *item, io_sink *take, void *user,
                           const char **damage)
{
    checks c;
    size_t size = (size_t)item->size;
    uint8_t *piece = memory_alloc(size < PIECE ? size : PIECE);
    if (!piece) return false;
    bool fine = checks_begin(&c, item), taken = true;
    for (size_t at = 0; fine && taken && at < size; at += PIECE) {
        size_t n = size - at < PIECE ? size - at : PIECE;
        fine = io_read_at(&item->shard->file, item->offset + (int64_t)at, piece, n);
        if (!fine) break;
        checks_add(&c, piece, n);
        settle(b, item->seen.dtype, piece, n);
        taken = take(user, piece, n);
    }
    const char *found = checks_end(&c, item);
    memory_free(piece);
    if (!fine || !taken) return false;
    *damage = found;
    return !found;
}

/* ---- Slices ---------------------------------------------------------------------------------- */

/* Marks `n` elements as covered; false if one is covered already. */
static bool cover(uint8_t *map, int64_t first, int64_t n)
{
    uint8_t twice = 0;
    for (int64_t i = first; i < first + n; i++) {
        uint8_t bit = (uint8_t)(1 << (i & 7));
        twice |= map[i >> 3] & bit;
        map[i >> 3] |= bit;
    }
    return !twice;
}

/* Copies the elements of a slice, row by row, to their positions in `to`. */
static bool place_slice(const bundle_entry *whole, const bundle_slice *slice, const uint8_t *from,
                        uint8_t *to, uint8_t *map)
{
    int last = whole->rank - 1;
    int64_t index[BUNDLE_MAX_RANK] = {0};
    int64_t width = whole->elements ? whole->bytes / whole->elements : 0;
    int64_t row = last < 0 ? 1 : slice->length[last];
    for (;;) {
        int64_t place = 0;
        for (int i = 0; i <= last; i++)
            place = place * whole->shape[i] + slice->start[i] + index[i];
        if (!cover(map, place, row)) return false;
        memcpy(to + place * width, from, (size_t)(row * width));
        from += row * width;
        int i = last - 1;
        while (i >= 0 && ++index[i] == slice->length[i]) index[i--] = 0;
        if (i < 0) return true;
    }
}

/* bundle_open has checked that the slices are within the tensor and have as many elements
 * together; so if none overlap, there are no gaps. */
static bool read_slices(const bundle *b, const bundle_item *whole, uint8_t *to, const char **damage)
{
    io_cursor message = io_cursor_on(whole->message.data, whole->message.size);
    bundle_slice slice;
    uint8_t *map = memory_zalloc((size_t)whole->seen.elements / 8 + 1);
    bool fine = map;
    for (int64_t i = 0; fine && bundle_next_slice(&message, &slice); i++) {
        const bundle_item *part = whole->parts[i];
        bundle_fit_slice(&whole->seen, &slice);
        if (!part->seen.bytes) continue;
        uint8_t *elements = memory_alloc((size_t)part->seen.bytes);
        fine = elements && read_numbers(b, part, elements, damage);
        if (fine && !place_slice(&whole->seen, &slice, elements, to, map)) {
            *damage = "its slices overlap";
            fine = false;
        }
        memory_free(elements);
    }
    memory_free(map);
    return fine;
}

/* ---- Strings and variants -------------------------------------------------------------------- */

/* The stored bytes of an item of any size, digest verified. */
static uint8_t *load(const bundle_item *item, const char **damage)
{
    size_t size = (size_t)item->size;
    uint8_t *data = memory_alloc(size);
    if (!data) return NULL;
    bool fine = io_read_at(&item->shard->file, item->offset, data, size);
    if (fine && item->digested) {
        io_digest digest = io_digest_of(data, size);
        if (!io_checksum_is(digest.low, item->digest.low) ||
            !io_checksum_is(digest.high, item->digest.high)) {
            *damage = "the digest of its elements does not match";
            fine = false;
        }
    }
    if (fine) return data;
    memory_free(data);
    return NULL;
}

uint32_t bundle_crc_length(uint32_t crc, uint64_t length, bool always_long)
{
    uint32_t brief = (uint32_t)length;
    /* The machine's byte order is that of the file. */
    if (always_long || length > UINT32_MAX) return io_crc32c(crc, &length, sizeof length);
    return io_crc32c(crc, &brief, sizeof brief);
}

/* Strings: their lengths, the checksum of these, the strings. Verifies all and sets the cursors
 * to the first length and the first string. */
static const char *check_strings(const bundle_item *item, const uint8_t *data, io_cursor *lengths,
                                 io_cursor *strings)
{
    io_cursor c = io_cursor_on(data, (size_t)item->size);
    uint32_t crc = 0;
    uint64_t sum = 0;
    bool overflow = false;
    *lengths = c;
    for (int64_t i = 0; i < item->seen.elements && io_ok(&c); i++) {
        uint64_t length = io_varint(&c);
        crc = bundle_crc_length(crc, length, false);
        overflow |= __builtin_add_overflow(sum, length, &sum);
    }
    io_span check = io_take(&c, 4);
    if (!io_ok(&c)) return "its lengths are damaged";
    io_cursor masked = io_cursor_on(check.data, check.size);
    if (!io_checksum_is(io_crc32c_mask(crc), io_u32(&masked)))
        return "the checksum of its lengths does not match";
    *strings = c;
    size_t rest = (size_t)(c.end - c.at);
    if (overflow || sum != rest) return "its lengths do not match its strings";
    crc = io_crc32c(crc, check.data, check.size);
    if (!io_checksum_is(io_crc32c_mask(io_crc32c(crc, c.at, rest)), item->crc))
        return "the checksum of its strings does not match";
    return NULL;
}

/* Variants: length, message and running checksum of each. */
static const char *check_variants(const bundle_item *item, const uint8_t *data)
{
    io_cursor c = io_cursor_on(data, (size_t)item->size);
    uint32_t crc = 0;
    for (int64_t i = 0; i < item->seen.elements && io_ok(&c); i++) {
        uint64_t length = io_varint(&c);
        io_span message = io_take(&c, length);
        crc = bundle_crc_length(crc, length, true);
        crc = io_crc32c(crc, message.data, message.size);
        io_span check = io_take(&c, 4);
        io_cursor masked = io_cursor_on(check.data, check.size);
        if (io_ok(&c) && !io_checksum_is(io_crc32c_mask(crc), io_u32(&masked)))
            return "the checksum of an element does not match";
        crc = io_crc32c(crc, check.data, check.size);
    }
    if (!io_ok(&c) || io_more(&c)) return "its lengths are damaged";
    return io_checksum_is(io_crc32c_mask(crc), item->crc)
               ? NULL
               : "the checksum of its elements does not match";
}

bool bundle_walk_strings(const bundle_item *item, bool (*visit)(void *user, io_span string),
                         void *user, const char **damage)
{
    io_cursor lengths, strings;
    uint8_t *data = load(item, damage);
    if (!data) return false;
    *damage = check_strings(item, data, &lengths, &strings);
    bool fine = !*damage;
    for (int64_t i = 0; fine && i < item->seen.elements; i++)
        fine = visit(user, io_take(&strings, io_varint(&lengths)));
    memory_free(data);
    return fine;
}

/* Strings or variants as they are stored, verified. */
static bool stream_stored(const bundle_item *item, io_sink *take, void *user, const char **damage)
{
    io_cursor lengths, strings;
    uint8_t *data = load(item, damage);
    if (!data) return false;
    *damage = item->seen.dtype == IO_STRING ? check_strings(item, data, &lengths, &strings)
                                            : check_variants(item, data);
    bool fine = !*damage && take(user, data, (size_t)item->size);
    memory_free(data);
    return fine;
}

/* ---- The interface --------------------------------------------------------------------------- */

static bool refuse_any_size(const bundle *b, const bundle_item *item)
{
    return !has_any_size(item) ||
           bundle_fail(b, item, ED_UNIMPLEMENTED, "strings and variants can't be read as numbers");
}

bool bundle_read(const bundle *b, const bundle_entry *entry, void *to)
{
    const bundle_item *item = item_of(entry);
    const char *damage = NULL;
    if (!readable(b, item) || !refuse_any_size(b, item)) return false;
    bool fine =
        item->slices ? read_slices(b, item, to, &damage) : read_numbers(b, item, to, &damage);
    return fine || told(b, item, damage);
}

ed_tensor *bundle_tensor(const bundle *b, const bundle_entry *entry)
{
    const bundle_item *item = item_of(entry);
    ed_dtype dtype = io_dtype_to(entry->dtype);
    if (!readable(b, item)) return NULL;
    if (!dtype)
        return ed_fail(ED_UNIMPLEMENTED,
                       "%s: %s: tensor '%.200s': its dtype %s is not supported by tensors", b->who,
                       b->prefix, entry->name, io_dtype_name(entry->dtype));
    if (entry->rank > ED_MAX_RANK)
        return ed_fail(ED_UNIMPLEMENTED,
                       "%s: %s: tensor '%.200s' has rank %d; tensors have at most %d", b->who,
                       b->prefix, entry->name, entry->rank, ED_MAX_RANK);
    ed_tensor *t = tensor_new(dtype, entry->rank, entry->shape);
    if (t && !bundle_read(b, entry, t->data)) {
        ed_release(t);
        return NULL;
    }
    return t;
}

bool bundle_stream(const bundle *b, const bundle_entry *entry, io_sink *take, void *user)
{
    const bundle_item *item = item_of(entry);
    const char *damage = NULL;
    if (!readable(b, item)) return false;
    if (has_any_size(item))
        return stream_stored(item, take, user, &damage) || told(b, item, damage);
    if (!item->slices) return stream_numbers(b, item, take, user, &damage) || told(b, item, damage);
    uint8_t *all = memory_alloc((size_t)entry->bytes);
    bool fine = all && bundle_read(b, entry, all) && take(user, all, (size_t)entry->bytes);
    memory_free(all);
    return fine;
}

static bool pass_over(void *user, const void *data, size_t size)
{
    (void)user, (void)data, (void)size;
    return true;
}

bool bundle_verify(const bundle *b, const bundle_entry *entry)
{
    return bundle_stream(b, entry, pass_over, NULL);
}

bool bundle_strings(const bundle *b, const bundle_entry *entry,
                    bool (*visit)(void *user, io_span string), void *user)
{
    const bundle_item *item = item_of(entry);
    const char *damage = NULL;
    if (!readable(b, item)) return false;
    if (entry->dtype != IO_STRING)
        return bundle_fail(b, item, ED_INVALID_ARGUMENT, "it is not a tensor of strings");
    return bundle_walk_strings(item, visit, user, &damage) || told(b, item, damage);
}

typedef struct one_string {
    int64_t wanted, seen;
    io_buffer *out;
} one_string;

static bool keep_string(void *user, io_span string)
{
    one_string *one = user;
    if (one->seen++ == one->wanted) io_put(one->out, string.data, string.size);
    return true;
}

bool bundle_string(const bundle *b, const bundle_entry *entry, int64_t i, io_buffer *out)
{
    one_string one = {.wanted = i, .out = out};
    if (!entry->damage && (i < 0 || i >= entry->elements))
        return bundle_fail(b, item_of(entry), ED_OUT_OF_RANGE, "the index is out of bounds");
    return bundle_strings(b, entry, keep_string, &one) && !out->failed;
}

bool bundle_digest(const bundle *b, const bundle_entry *entry, io_digest *digest)
{
    (void)b;
    const bundle_item *item = item_of(entry);
    if (item->digested) *digest = item->digest;
    return item->digested;
}
