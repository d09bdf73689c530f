#include "io/bundle_core.h"
#include <stdlib.h>
#include <string.h>

/*
 * Opening a bundle: its index becomes an array of items in the order of names. The index is read
 * twice, to measure and to fill, so that each array is allocated once. A tensor in an old
 * checkpoint may be divided into slices; each is an entry with a key made of name, offsets and
 * sizes (at the end of this file), which is found here and then not visible.
 *
 * The entries are compared with their shards here, so readers need not check them.
 */

enum { FORMAT_VERSION = 1 };

/* A key is stored as its difference from the one before, so names may take more memory than the
 * index; but beyond this ratio it is an attack. */
enum { NAMES_GROWTH = 32, NAMES_LEAST = 1 << 20 };

enum { DIGEST_DIGITS = 32, DIGEST_GAP = 2 };

bool bundle_fail(const bundle *b, const bundle_item *item, ed_error_code code, const char *what)
{
    ed_fail(code, "%s: %s: tensor '%.200s': %s", b->who, b->prefix, item->seen.name, what);
    return false;
}

static bool index_fail(const bundle *b, ed_error_code code, const char *what)
{
    ed_fail(code, "%s: %s.index: %s", b->who, b->prefix, what);
    return false;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static bool bytes_are(const io_field *field, uint32_t number, int type)
{
    return field->number == number && field->type == type;
}

static io_cursor inside(io_span message)
{
    return io_cursor_on(message.data, message.size);
}

/* Whether the list, packed or a single number, contains FORMAT_VERSION. */
static bool refuses_us(const io_field *field)
{
    if (field->type == IO_VARINT) return field->value == FORMAT_VERSION;
    io_cursor packed = inside(field->bytes);
    bool found = false;
    while (field->type == IO_BYTES && io_more(&packed)) {
        uint64_t version = io_varint(&packed);
        found |= io_ok(&packed) && version == FORMAT_VERSION;
    }
    return found;
}

static bool read_version(const bundle *b, io_span message)
{
    io_cursor c = inside(message);
    io_field field;
    bool refused = false;
    while (io_next_field(&c, &field)) {
        if (bytes_are(&field, VERSION_MIN_CONSUMER, IO_VARINT))
            refused |= (int32_t)field.value > FORMAT_VERSION;
        if (field.number == VERSION_BAD_CONSUMERS) refused |= refuses_us(&field);
    }
    if (!io_ok(&c)) return index_fail(b, ED_DATA_LOSS, "its header is damaged");
    return !refused || index_fail(b, ED_UNIMPLEMENTED, "it requires a newer reader");
}

static bool read_index_header(bundle *b, io_span message)
{
    io_cursor c = inside(message);
    io_field field;
    while (io_next_field(&c, &field)) {
        if (bytes_are(&field, HEADER_SHARDS, IO_VARINT)) b->shard_count = (int32_t)field.value;
        /* 1 is big-endian; any other number means little-endian. */
        if (bytes_are(&field, HEADER_ENDIANNESS, IO_VARINT)) b->swapped = (int32_t)field.value == 1;
        if (bytes_are(&field, HEADER_VERSION, IO_BYTES) && !read_version(b, field.bytes))
            return false;
    }
    return io_ok(&c) || index_fail(b, ED_DATA_LOSS, "its header is damaged");
}

/* Appends the sizes of a shape to those of the entry; returns the error, NULL: none. With
 * `extents` NULL they are only counted. */
static const char *read_shape(io_span message, bundle_entry *entry, int64_t *extents)
{
    io_cursor c = inside(message);
    io_field field, part;
    while (io_next_field(&c, &field)) {
        if (!bytes_are(&field, SHAPE_DIM, IO_BYTES)) continue;
        io_cursor dim = inside(field.bytes);
        int64_t size = 0;
        while (io_next_field(&dim, &part))
            if (bytes_are(&part, DIM_SIZE, IO_VARINT)) size = (int64_t)part.value;
        if (!io_ok(&dim)) return "its shape is damaged";
        if (entry->rank == BUNDLE_MAX_RANK) return "its rank is too high";
        if (extents) extents[entry->rank] = size;
        entry->rank++;
    }
    return io_ok(&c) ? NULL : "its shape is damaged";
}

/* Reads an entry's message; fields may be in any order, unknown ones are ignored. */
static void read_item(bundle_item *item, int64_t *extents)
{
    bundle_entry *seen = &item->seen;
    io_cursor c = inside(item->message);
    io_field field;
    while (!seen->damage && io_next_field(&c, &field)) {
        if (bytes_are(&field, ENTRY_DTYPE, IO_VARINT)) seen->dtype = (io_dtype)(int32_t)field.value;
        if (bytes_are(&field, ENTRY_SHAPE, IO_BYTES))
            seen->damage = read_shape(field.bytes, seen, extents);
        if (bytes_are(&field, ENTRY_SHARD, IO_VARINT)) item->shard_number = (int32_t)field.value;
        if (bytes_are(&field, ENTRY_OFFSET, IO_VARINT)) item->offset = (int64_t)field.value;
        if (bytes_are(&field, ENTRY_SIZE, IO_VARINT)) item->size = (int64_t)field.value;
        if (bytes_are(&field, ENTRY_CRC, IO_FIXED32)) item->crc = (uint32_t)field.value;
        item->slices += bytes_are(&field, ENTRY_SLICES, IO_BYTES);
    }
    if (!io_ok(&c)) seen->damage = "its entry in the index is damaged";
}

/* ---- Items ----------------------------------------------------------------------------------- */

typedef struct sizes {
    int64_t items, extents, slices;
    size_t names;
} sizes;

/* Visits the entries after the header; with `fill` false it only measures. */
static bool walk_index(bundle *b, sizes *n, bool fill)
{
    table_walk w = {.table = &b->table};
    size_t most = NAMES_GROWTH * b->table.size + NAMES_LEAST;
    bool fine = table_next(&w);
    if (!fine && !w.failed) index_fail(b, ED_DATA_LOSS, "it is empty: the header is missing");
    if (fine && w.key.size) fine = index_fail(b, ED_DATA_LOSS, "its header is missing");
    fine = fine && (fill || read_index_header(b, w.value));
    while (fine && table_next(&w)) {
        bundle_item counted = {.message = w.value}, *item = fill ? &b->items[n->items] : &counted;
        *item = counted;
        read_item(item, fill ? b->extents + n->extents : NULL);
        if (fill) {
            item->seen.shape = b->extents + n->extents;
            item->parts = b->parts + n->slices;
            item->seen.name = memcpy(b->names + n->names, w.key.data, w.key.size);
            item->seen.name_size = w.key.size;
            b->names[n->names + w.key.size] = 0;
        }
        n->items++;
        n->extents += item->seen.rank;
        n->slices += item->slices;
        n->names += w.key.size + 1;
        fine = n->names <= most || index_fail(b, ED_DATA_LOSS, "its names are too long");
    }
    fine &= !w.failed;
    table_walk_end(&w);
    return fine;
}

/* Zeroed memory for `count` elements, at least one. */
static void *array(int64_t count, size_t size)
{
    size_t bytes;
    if (!memory_mul(count ? (size_t)count : 1, size, &bytes)) bytes = SIZE_MAX;
    return memory_zalloc(bytes);
}

static bool read_items(bundle *b)
{
    sizes n = {0}, again = {0};
    if (!walk_index(b, &n, false)) return false;
    b->items = array(n.items, sizeof *b->items);
    b->shown = array(n.items, sizeof *b->shown);
    b->parts = array(n.slices, sizeof *b->parts);
    b->names = array((int64_t)n.names, 1);
    b->extents = array(n.extents, sizeof *b->extents);
    if (!b->items || !b->shown || !b->parts || !b->names || !b->extents) return false;
    if (!walk_index(b, &again, true)) return false;
    b->item_count = n.items;
    b->names_size = n.names;
    return true;
}

/* ---- Shards ---------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    int32_t x = ((const bundle_shard *)a)->number, y = ((const bundle_shard *)b)->number;
    return (x > y) - (x < y);
}

/* Opens the shard's file if it exists. */
static bool open_shard(const bundle *b, bundle_shard *shard)
{
    char *path =
        io_text("%s.data-%05d-of-%05d", b->prefix, (int)shard->number, (int)b->shard_count);
    if (!path) return false;
    bool exists = io_exists(path);
    shard->there = exists && io_open(&shard->file, b->who, path);
    memory_free(path);
    return shard->there || !exists;
}

/* Whether all shards are there, also those that no entry names. */
static bool find_all_shards(bundle *b)
{
    b->complete = true;
    for (int i = 0; i < b->shard_count && b->complete; i++) {
        char *path = io_text("%s.data-%05d-of-%05d", b->prefix, i, (int)b->shard_count);
        if (!path) return false;
        b->complete = io_exists(path);
        memory_free(path);
    }
    return true;
}

/* Opens every shard that entries name. */
static bool open_shards(bundle *b)
{
    int64_t named = 0;
    b->shards = array(b->item_count, sizeof *b->shards);
    if (!b->shards) return false;
    for (int64_t i = 0; i < b->item_count; i++) {
        int32_t number = b->items[i].shard_number;
        bool known = named && b->shards[named - 1].number == number;
        if (!known && number >= 0 && number < b->shard_count) b->shards[named++].number = number;
    }
    qsort(b->shards, (size_t)named, sizeof *b->shards, by_number);
    for (int64_t i = 0; i < named; i++) {
        if (i && b->shards[i].number == b->shards[b->opened - 1].number) continue;
        bundle_shard *shard = &b->shards[b->opened++];
        shard->number = b->shards[i].number;
        if (!open_shard(b, shard)) return false;
    }
    for (int64_t i = 0; i < b->item_count; i++) {
        bundle_shard key = {.number = b->items[i].shard_number};
        const bundle_shard *shard =
            bsearch(&key, b->shards, (size_t)b->opened, sizeof key, by_number);
        if (shard && shard->there) b->items[i].shard = shard;
    }
    return true;
}

/* ---- Checking entries ------------------------------------------------------------------------ */

bool bundle_count_elements(int rank, const int64_t *shape, int64_t *product)
{
    bool empty = false;
    *product = 1;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0) return false;
        if (shape[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(*product, shape[i], product))
            return false;
    }
    if (empty) *product = 0;
    return true;
}

static bool has_any_size(io_dtype dtype)
{
    return dtype == IO_STRING || dtype == IO_VARIANT;
}

/* Bytes of an element; 0 for numbers that are not a dtype of TensorFlow. */
static int fixed_size(io_dtype dtype)
{
    bool known = (int)dtype > 0 && (int)dtype <= IO_FLOAT4_E2M1FN;
    return known ? io_dtype_bits(dtype) / 8 : 0;
}

/* Sets elements and bytes; returns the error, NULL: none. */
static const char *judge_shape(bundle_item *item)
{
    bundle_entry *e = &item->seen;
    if (!has_any_size(e->dtype) && !fixed_size(e->dtype)) return "its dtype is unknown";
    if (!bundle_count_elements(e->rank, e->shape, &e->elements)) return "its shape is invalid";
    if (has_any_size(e->dtype))
        e->bytes = item->size;
    else if (__builtin_mul_overflow(e->elements, fixed_size(e->dtype), &e->bytes))
        return "its shape is invalid";
    return NULL;
}

/* Finds the stored elements; returns the error, NULL: none. */
static const char *judge_extent(const bundle *b, const bundle_item *item)
{
    const bundle_entry *e = &item->seen;
    if (item->shard_number < 0 || item->shard_number >= b->shard_count)
        return "the index refers to a data file that the bundle does not have";
    if (!item->shard) return "its data file is missing";
    if (item->offset < 0 || item->size < 0 || item->offset > item->shard->file.size ||
        item->size > item->shard->file.size - item->offset)
        return "it extends beyond its data file";
    if (item->size != e->bytes) return "its size does not match its shape";
    /* A string takes at least one byte, its length; a variant a checksum too. */
    if (has_any_size(e->dtype) && e->elements > item->size)
        return "its shape has more elements than are stored";
    return NULL;
}

/* A sliced tensor's slices must exist, lie within it and have as many elements together as it
 * has; that they do not overlap is checked when they are read. */
static const char *judge_slices(const bundle *b, const bundle_item *whole)
{
    io_cursor message = inside(whole->message);
    bundle_slice slice;
    int64_t covered = 0, stored = 0;
    if (has_any_size(whole->seen.dtype))
        return "it is split into slices, which its dtype does not allow";
    for (int64_t i = 0; bundle_next_slice(&message, &slice); i++) {
        const bundle_item *part = whole->parts[i];
        int64_t elements = bundle_fit_slice(&whole->seen, &slice);
        if (elements < 0) return "one of its slices is out of bounds";
        if (!part) return "one of its slices is missing";
        if (part->seen.damage) return "one of its slices is damaged";
        if (part->slices || part->seen.dtype != whole->seen.dtype ||
            part->seen.elements != elements)
            return "one of its slices has a different dtype or shape";
        if (__builtin_add_overflow(covered, elements, &covered)) return "its slices overlap";
    }
    for (int64_t i = 0; i < b->opened; i++)
        if (b->shards[i].there) stored += b->shards[i].file.size;
    if (!io_ok(&message)) return "its slices are damaged";
    if (covered < whole->seen.elements) return "its slices leave a gap";
    if (covered > whole->seen.elements || whole->seen.bytes > stored) return "its slices overlap";
    return NULL;
}

static void judge(bundle *b)
{
    for (int64_t i = 0; i < b->item_count; i++) {
        bundle_item *item = &b->items[i];
        if (!item->seen.damage) item->seen.damage = judge_shape(item);
        if (!item->seen.damage && !item->slices) item->seen.damage = judge_extent(b, item);
    }
    for (int64_t i = 0; i < b->item_count; i++) {
        bundle_item *item = &b->items[i];
        if (!item->seen.damage && item->slices) item->seen.damage = judge_slices(b, item);
        if (!item->is_slice) b->shown[b->shown_count++] = item;
    }
}

/* ---- Names ----------------------------------------------------------------------------------- */

static int compare_names(const bundle_entry *entry, const void *name, size_t size)
{
    size_t common = entry->name_size < size ? entry->name_size : size;
    int order = memcmp(entry->name, name, common);
    return order ? order : (entry->name_size > size) - (entry->name_size < size);
}

static bundle_item *find_item(const bundle *b, const void *name, size_t size)
{
    int64_t low = 0, high = b->item_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = compare_names(&b->items[middle].seen, name, size);
        if (!order) return &b->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* ---- Slices ---------------------------------------------------------------------------------- */

/*
 * A slice's key: 0, the tensor's name, its rank, and for each axis start and length, in an encoding
 * that keeps the order. Unsigned numbers are a length and as many bytes, high ones first; in names
 * 0 and 255 are escaped, and 0 1 ends them. A signed number of n bytes has 7 n bits, the highest
 * first and inverted; n is the number of leading ones, which are inverted too if the number is
 * negative.
 */

static void put_number(io_buffer *key, uint64_t number)
{
    int bytes = 0;
    while (bytes < 8 && number >> 8 * bytes) bytes++;
    io_put_u8(key, (uint8_t)bytes);
    while (bytes--) io_put_u8(key, (uint8_t)(number >> 8 * bytes));
}

static void put_name(io_buffer *key, const bundle_entry *entry)
{
    for (size_t i = 0; i < entry->name_size; i++) {
        uint8_t byte = (uint8_t)entry->name[i];
        io_put_u8(key, byte);
        if (byte == 0) io_put_u8(key, 0xff);
        if (byte == 0xff) io_put_u8(key, 0);
    }
    io_put_u8(key, 0);
    io_put_u8(key, 1);
}

static void put_signed(io_buffer *key, int64_t number)
{
    uint8_t bytes[10], sign = number < 0 ? 0xff : 0;
    int n = 1;
    uint64_t magnitude = (uint64_t)(number < 0 ? ~number : number);
    while (n < 10 && magnitude >> (7 * n - 1)) n++;
    bytes[0] = bytes[1] = sign;
    for (int i = 0; i < 8; i++) bytes[2 + i] = (uint8_t)((uint64_t)number >> 8 * (7 - i));
    uint16_t ones = (uint16_t)(0xffff0000u >> n);
    bytes[10 - n] ^= (uint8_t)(ones >> 8);
    if (n > 1) bytes[11 - n] ^= (uint8_t)ones;
    io_put(key, bytes + 10 - n, (size_t)n);
}

static void put_slice_key(io_buffer *key, const bundle_entry *whole, const bundle_slice *slice)
{
    key->size = 0;
    put_number(key, 0);
    put_name(key, whole);
    put_number(key, (uint64_t)slice->rank);
    for (int i = 0; i < slice->rank; i++) {
        put_signed(key, slice->start[i]);
        put_signed(key, slice->length[i]);
    }
}

/* Finds the slices by the keys they must have, so that no other tensor is taken for a slice
 * because of its name. Each key contains the tensor's name, so together they are not longer than
 * all names. */
static bool find_slices(bundle *b)
{
    io_buffer key = {0};
    size_t room = b->names_size;
    for (int64_t i = 0; i < b->item_count && !key.failed; i++) {
        bundle_item *whole = &b->items[i];
        io_cursor message = inside(whole->message);
        bundle_slice slice;
        if ((size_t)whole->slices > room / (whole->seen.name_size + 1)) {
            whole->seen.damage = "the index does not have all of its slices";
            continue;
        }
        room -= (size_t)whole->slices * (whole->seen.name_size + 1);
        for (int64_t k = 0; k < whole->slices && bundle_next_slice(&message, &slice); k++) {
            put_slice_key(&key, &whole->seen, &slice);
            whole->parts[k] = key.failed ? NULL : find_item(b, key.data, key.size);
            if (whole->parts[k]) whole->parts[k]->is_slice = true;
        }
    }
    io_buffer_free(&key);
    return !key.failed;
}

/* A start or length in a slice's message. */
static bool read_extent(io_span message, int64_t *start, int64_t *length)
{
    io_cursor c = inside(message);
    io_field field;
    *start = 0;
    *length = -1;
    while (io_next_field(&c, &field)) {
        if (bytes_are(&field, EXTENT_START, IO_VARINT)) *start = (int64_t)field.value;
        if (bytes_are(&field, EXTENT_LENGTH, IO_VARINT)) *length = (int64_t)field.value;
    }
    return io_ok(&c);
}

bool bundle_next_slice(io_cursor *message, bundle_slice *slice)
{
    io_field field, part;
    while (io_next_field(message, &field)) {
        if (!bytes_are(&field, ENTRY_SLICES, IO_BYTES)) continue;
        io_cursor c = inside(field.bytes);
        slice->rank = 0;
        while (io_next_field(&c, &part)) {
            if (!bytes_are(&part, SLICE_EXTENT, IO_BYTES)) continue;
            int i = slice->rank++;
            if (i == BUNDLE_MAX_RANK ||
                !read_extent(part.bytes, &slice->start[i], &slice->length[i]))
                c.failed = true;
        }
        message->failed = !io_ok(&c);
        return io_ok(&c);
    }
    return false;
}

int64_t bundle_fit_slice(const bundle_entry *whole, bundle_slice *slice)
{
    int64_t elements = 1;
    if (slice->rank != whole->rank) return -1;
    for (int i = 0; i < whole->rank; i++) {
        int64_t extent = whole->shape[i], *start = &slice->start[i], *length = &slice->length[i];
        if (*length == -1 && *start == 0) *length = extent;
        if (*start < 0 || *length < 0 || *start > extent || *length > extent - *start) return -1;
        if (__builtin_mul_overflow(elements, *length, &elements)) return -1;
    }
    return elements;
}

/* ---- Digests --------------------------------------------------------------------------------- */

static bool read_digits(const uint8_t *digits, uint64_t *number)
{
    *number = 0;
    for (int i = 0; i < DIGEST_DIGITS / 2; i++) {
        uint8_t c = digits[i];
        bool letter = c >= 'a' && c <= 'f';
        if (!letter && (c < '0' || c > '9')) return false;
        *number = *number << 4 | (uint64_t)(letter ? c - 'a' + 10 : c - '0');
    }
    return true;
}

/* An invalid line, or one of an unknown tensor, is ignored. */
static bool note_digest(void *user, io_span line)
{
    enum { NAME = DIGEST_DIGITS + DIGEST_GAP };
    io_digest digest;
    if (line.size < NAME || !read_digits(line.data, &digest.high) ||
        !read_digits(line.data + DIGEST_DIGITS / 2, &digest.low))
        return true;
    bundle_item *item = find_item(user, line.data + NAME, line.size - NAME);
    if (item) {
        item->digest = digest;
        item->digested = true;
    }
    return true;
}

/* Damaged digests are reported by verification; the tensors then have only the other checksums.
 * A file that can't be read, or lack of memory, is a failure. */
static bool read_digests(bundle *b)
{
    bundle_item *item = find_item(b, BUNDLE_DIGESTS, strlen(BUNDLE_DIGESTS));
    if (!item || item->seen.damage || item->seen.dtype != IO_STRING) return true;
    const char *damage = NULL;
    return bundle_walk_strings(item, note_digest, b, &damage) || damage;
}

/* ---- The bundle ------------------------------------------------------------------------------ */

static void bundle_destroy(void *object)
{
    bundle *b = object;
    for (int64_t i = 0; i < b->opened; i++)
        if (b->shards[i].there) io_close(&b->shards[i].file);
    table_close(&b->table);
    memory_free(b->shards);
    memory_free(b->items);
    memory_free(b->shown);
    memory_free(b->parts);
    memory_free(b->names);
    memory_free(b->extents);
    memory_free(b->index);
    memory_free(b->prefix);
    memory_free(b);
}

static const object_class class = {.name = "bundle", .destroy = bundle_destroy};

static bool read_index(bundle *b)
{
    return table_open(&b->table, b->who, b->index) && read_items(b) && open_shards(b) &&
           find_all_shards(b) && find_slices(b);
}

/* With *replaced, a writer was faster: what was read may be of two bundles. The index is held open
 * meanwhile, so that a file that replaces it is another one. */
static bool open_now(bundle *b, bool *replaced)
{
    io_file held;
    *replaced = false;
    if (!io_open(&held, b->who, b->index)) return false;
    bool fine = read_index(b);
    *replaced = !io_is_current(&held);
    io_close(&held);
    return fine;
}

static bundle *try_open(const char *who, const char *prefix, bool *replaced)
{
    bundle *b = object_new(&class, sizeof *b);
    *replaced = false;
    if (!b) return NULL;
    b->who = who;
    b->prefix = text_copy(prefix);
    b->index = b->prefix ? io_text("%s.index", prefix) : NULL;
    if (b->index && open_now(b, replaced)) {
        judge(b);
        if (read_digests(b)) return b;
    }
    ed_release(b);
    return NULL;
}

bundle *bundle_open(const char *who, const char *prefix)
{
    enum { ATTEMPTS = 1000 };
    if (NULL_GIVEN(who, prefix)) return NULL;
    error_saved earlier;
    error_save(&earlier);
    for (int i = 1;; i++) {
        bool replaced;
        bundle *b = try_open(who, prefix, &replaced);
        bool again = replaced && i < ATTEMPTS;
        error_restore(&earlier, again);
        if (!again) return b;
        ed_release(b);
        error_save(&earlier);
    }
}

bool bundle_shards_at(const char *who, const char *prefix, int32_t *shards)
{
    *shards = 0;
    error_saved earlier;
    error_save(&earlier);
    bundle b = {.who = who, .prefix = (char *)prefix, .index = io_text("%s.index", prefix)};
    bool fine = b.index && table_open(&b.table, who, b.index);
    table_walk w = {.table = &b.table};
    if (fine && table_next(&w) && !w.key.size && read_index_header(&b, w.value))
        *shards = b.shard_count;
    bool harmless = fine || io_is_loss(ed_error_kind());
    table_walk_end(&w);
    table_close(&b.table);
    memory_free(b.index);
    error_restore(&earlier, harmless);
    return harmless;
}

int64_t bundle_count(const bundle *b)
{
    return b->shown_count;
}

const bundle_entry *bundle_at(const bundle *b, int64_t i)
{
    return i >= 0 && i < b->shown_count ? &b->shown[i]->seen : NULL;
}

const bundle_entry *bundle_find(const bundle *b, const char *name)
{
    bundle_item *item = find_item(b, name, strlen(name));
    return item && !item->is_slice ? &item->seen : NULL;
}

const char *bundle_prefix(const bundle *b)
{
    return b->prefix;
}

int bundle_shards(const bundle *b)
{
    return b->shard_count;
}

bool bundle_is_complete(const bundle *b)
{
    return b->complete;
}
