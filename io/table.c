#include "io/table.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/snappy.h"
#include <string.h>

/* A handle may refer only to a block in the file after the block before: so all blocks together
 * unpack to at most the file's size times snappy's ratio. */

enum {
    TRAILER = 5, /* after a block: type, checksum */
    FOOTER = 48, /* two handles, zeros, the magic number */
    MAGIC = 8,
    BLOCK_SIZE = 262144, /* a block of this size is ended */
    INTERVAL = 16,
};

enum { RAW, SNAPPY };

static const uint8_t magic[MAGIC] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};

/* ---- Reading --------------------------------------------------------------------------------- */

static bool table_damaged(const table *t, const char *what)
{
    ed_fail(ED_DATA_LOSS, "%s: %s: %s", t->who, t->path, what);
    return false;
}

/* The block of a handle, its checksum verified. `from` is the first byte it may occupy. */
static bool read_block(const table *t, io_cursor *handle, size_t from, io_span *block, int *type)
{
    uint64_t offset = io_varint(handle), size = io_varint(handle), room = t->size - FOOTER;
    if (!io_ok(handle) || offset < from || offset > room || size > room - offset ||
        room - offset - size < TRAILER)
        return table_damaged(t,
                             "the index is damaged: a block is out of bounds or overlaps another");
    const uint8_t *data = t->file + offset;
    io_cursor trailer = io_cursor_on(data + size, TRAILER);
    *block = (io_span){data, size};
    *type = io_u8(&trailer);
    if (!io_checksum_is(io_crc32c_mask(io_crc32c(0, data, size + 1)), io_u32(&trailer)))
        return table_damaged(t, "the index is damaged: the checksum of a block does not match");
    if (*type > SNAPPY)
        return table_damaged(t, "the index has a block with an unknown compression");
    return true;
}

/* Removes the restarts from a block's end. */
static bool trim_restarts(const table *t, io_span *block)
{
    if (block->size < 8) return table_damaged(t, "the index is damaged: a block is too short");
    io_cursor end = io_cursor_on(block->data + block->size - 4, 4);
    uint64_t restarts = io_u32(&end), room = (block->size - 4) / 4;
    if (!restarts || restarts > room)
        return table_damaged(t, "the index is damaged: a block is too short for its restarts");
    block->size -= 4 + 4 * restarts;
    return true;
}

static bool unpack(const table *t, io_span *block, uint8_t *to, size_t size)
{
    if (!snappy_unpack(*block, to, size))
        return table_damaged(t, "the index is damaged: a block can't be unpacked");
    *block = (io_span){to, size};
    return true;
}

/* The unpacked size of a block: at least one restart and the number of restarts. */
static bool packed_size(const table *t, io_span block, size_t *size)
{
    if (snappy_size(block, size) && *size >= 8) return true;
    return table_damaged(t, "the index is damaged: a block can't be unpacked");
}

/* The index block: an unpacked one directly, a packed one unpacked into *memory. */
static bool read_index_block(table *t, io_span *index, uint8_t **memory)
{
    io_cursor footer = io_cursor_on(t->file + t->size - FOOTER, FOOTER - MAGIC);
    int type;
    size_t size;
    io_varint(&footer); /* the metaindex, which is empty, is skipped */
    io_varint(&footer);
    if (!read_block(t, &footer, 0, index, &type)) return false;
    if (type == SNAPPY) {
        if (!packed_size(t, *index, &size)) return false;
        *memory = memory_alloc(size);
        if (!*memory || !unpack(t, index, *memory, size)) return false;
    }
    return trim_restarts(t, index);
}

/* Counts the blocks, and the unpacked size of the packed ones. */
static bool measure(const table *t, const table *index, int64_t *count, size_t *packed)
{
    table_walk w = {.table = index};
    size_t end = 0;
    bool fine = true;
    while (fine && table_next(&w)) {
        io_cursor handle = io_cursor_on(w.value.data, w.value.size);
        io_span block;
        int type;
        size_t size = 0;
        fine = read_block(t, &handle, end, &block, &type);
        if (fine && type == SNAPPY) fine = packed_size(t, block, &size);
        if (fine) end = (size_t)(block.data - t->file) + block.size + TRAILER;
        *packed += size;
        ++*count;
    }
    fine &= !w.failed;
    table_walk_end(&w);
    return fine;
}

/* Fills t->blocks, after measure has checked all. */
static bool gather(table *t, const table *index)
{
    table_walk w = {.table = index};
    uint8_t *to = t->unpacked;
    bool fine = true;
    while (fine && table_next(&w)) {
        io_cursor handle = io_cursor_on(w.value.data, w.value.size);
        uint64_t offset = io_varint(&handle), size = io_varint(&handle);
        io_span block = {t->file + offset, size};
        size_t full;
        if (block.data[size] == SNAPPY) {
            snappy_size(block, &full);
            fine = unpack(t, &block, to, full);
            to += full;
        }
        fine = fine && trim_restarts(t, &block);
        t->blocks[t->count++] = block;
    }
    fine &= !w.failed;
    table_walk_end(&w);
    return fine;
}

static bool read_blocks(table *t)
{
    io_span block;
    uint8_t *memory = NULL;
    int64_t count = 0;
    size_t packed = 0;
    bool fine = read_index_block(t, &block, &memory);
    if (fine) {
        table index = {.who = t->who, .path = t->path, .blocks = &block, .count = 1};
        fine = measure(t, &index, &count, &packed) &&
               (t->blocks = memory_alloc((size_t)count * sizeof *t->blocks)) &&
               (!packed || (t->unpacked = memory_alloc(packed))) && gather(t, &index);
    }
    memory_free(memory);
    return fine;
}

bool table_open(table *t, const char *who, const char *path)
{
    *t = (table){.who = who, .path = path};
    if (!io_read_file(who, path, SIZE_MAX, &t->file, &t->size)) return false;
    bool fine;
    if (t->size < FOOTER || memcmp(t->file + t->size - MAGIC, magic, MAGIC))
        fine = table_damaged(t, "not the index of a bundle, or truncated");
    else
        fine = read_blocks(t);
    if (!fine) table_close(t);
    return fine;
}

void table_close(table *t)
{
    memory_free(t->blocks);
    memory_free(t->unpacked);
    memory_free(t->file);
    *t = (table){0};
}

static int compare_keys(io_span a, io_span b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static bool walk_failed(table_walk *w, const char *what)
{
    w->failed = true;
    return what ? table_damaged(w->table, what) : false;
}

/* Reads one entry; *same if it is a duplicate of the one before. */
static bool read_entry(table_walk *w, bool *same)
{
    bool first = w->at.at == w->table->blocks[w->block - 1].data;
    io_span before = w->value;
    uint64_t shared = io_varint(&w->at), rest = io_varint(&w->at), value = io_varint(&w->at);
    io_span key = io_take(&w->at, rest);
    w->value = io_take(&w->at, value);
    if (!io_ok(&w->at) || shared > w->key.size || (first && shared))
        return walk_failed(w, "the index is damaged: an entry is invalid");
    int order = 1;
    if (w->begun) {
        io_span tail = {0};
        if (shared < w->key.size) tail = (io_span){w->key.data + shared, w->key.size - shared};
        order = compare_keys(key, tail);
    }
    *same = order == 0 && !compare_keys(before, w->value);
    if (order <= 0 && !*same)
        return walk_failed(w, "the index is damaged: its names are not in order");
    w->begun = true;
    if (*same) return true;
    w->key.size = shared;
    io_put(&w->key, key.data, key.size);
    return !w->key.failed || walk_failed(w, NULL);
}

bool table_next(table_walk *w)
{
    bool same = true;
    while (same) {
        while (!io_more(&w->at)) {
            if (w->failed || w->block == w->table->count) return false;
            io_span block = w->table->blocks[w->block++];
            w->at = io_cursor_on(block.data, block.size);
        }
        if (!read_entry(w, &same)) return false;
    }
    return true;
}

void table_walk_end(table_walk *w)
{
    io_buffer_free(&w->key);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void block_add(table_block *b, io_span key, io_span value)
{
    size_t shared = 0;
    if (b->count++ % b->interval == 0)
        io_put_u32(&b->restarts, (uint32_t)b->entries.size);
    else
        while (shared < key.size && shared < b->last_key.size &&
               key.data[shared] == b->last_key.data[shared])
            shared++;
    const uint8_t *rest = shared ? key.data + shared : key.data;
    io_put_varint(&b->entries, shared);
    io_put_varint(&b->entries, key.size - shared);
    io_put_varint(&b->entries, value.size);
    io_put(&b->entries, rest, key.size - shared);
    io_put(&b->entries, value.data, value.size);
    b->last_key.size = shared;
    io_put(&b->last_key, rest, key.size - shared);
}

static size_t block_size(const table_block *b)
{
    return b->entries.size + b->restarts.size + 4;
}

/* Appends the block with its restarts and trailer to the file, and clears it. */
static void block_write(table_writer *w, table_block *b)
{
    size_t start = w->file.size;
    if (!b->count) io_put_u32(&b->restarts, 0); /* even an empty block has a first restart */
    io_put(&w->file, b->entries.data, b->entries.size);
    io_put(&w->file, b->restarts.data, b->restarts.size);
    io_put_u32(&w->file, (uint32_t)(b->restarts.size / 4));
    w->offset = start;
    w->size = w->file.size - start;
    io_put_u8(&w->file, RAW);
    if (!w->file.failed)
        io_put_u32(&w->file,
                   io_crc32c_mask(io_crc32c(0, w->file.data + start, w->file.size - start)));
    b->entries.size = b->restarts.size = b->last_key.size = 0;
    b->count = 0;
}

static void put_handle(io_buffer *b, uint64_t offset, uint64_t size)
{
    io_put_varint(b, offset);
    io_put_varint(b, size);
}

/* Ends the data block; its key in the index depends on the first key of the next one. */
static void end_block(table_writer *w)
{
    if (!w->data.count) return;
    w->last_key.size = 0;
    io_put(&w->last_key, w->data.last_key.data, w->data.last_key.size);
    block_write(w, &w->data);
    w->pending = true;
}

/* Shortens `key` to one that is not less than it and less than `next`. */
static void separate(io_buffer *key, io_span next)
{
    size_t i = 0, most = key->size < next.size ? key->size : next.size;
    while (i < most && key->data[i] == next.data[i]) i++;
    if (i == most || key->data[i] == 0xff || key->data[i] + 1 >= next.data[i]) return;
    key->data[i]++;
    key->size = i + 1;
}

/* The same without `next`: a short one that is not less than it. */
static void succeed(io_buffer *key)
{
    for (size_t i = 0; i < key->size; i++)
        if (key->data[i] != 0xff) {
            key->data[i]++;
            key->size = i + 1;
            return;
        }
}

/* Adds the block that was ended last to the index; `next` is NULL after the last key. */
static void enter_block(table_writer *w, const io_span *next)
{
    if (!w->pending) return;
    io_buffer handle = {0};
    if (next)
        separate(&w->last_key, *next);
    else
        succeed(&w->last_key);
    put_handle(&handle, w->offset, w->size);
    block_add(&w->index, (io_span){w->last_key.data, w->last_key.size},
              (io_span){handle.data, handle.size});
    w->index.entries.failed |= handle.failed;
    io_buffer_free(&handle);
    w->pending = false;
}

void table_add(table_writer *w, io_span key, io_span value)
{
    w->data.interval = INTERVAL;
    w->index.interval = 1;
    if (key.size + value.size >= 2 * BLOCK_SIZE) end_block(w);
    enter_block(w, &key);
    block_add(&w->data, key, value);
    if (block_size(&w->data) >= BLOCK_SIZE) end_block(w);
}

bool table_end(table_writer *w)
{
    static const uint8_t zeros[FOOTER];
    table_block metaindex = {.interval = INTERVAL};
    io_buffer footer = {0};
    end_block(w);
    uint64_t offset = w->offset, size = w->size;
    block_write(w, &metaindex);
    put_handle(&footer, w->offset, w->size);
    w->offset = offset;
    w->size = size;
    enter_block(w, NULL);
    w->index.interval = 1;
    block_write(w, &w->index);
    put_handle(&footer, w->offset, w->size);
    io_put(&footer, zeros, FOOTER - MAGIC - footer.size);
    io_put(&footer, magic, MAGIC);
    io_put(&w->file, footer.data, footer.size);
    const io_buffer *buffers[] = {&footer,           &metaindex.restarts, &w->file,
                                  &w->data.entries,  &w->data.restarts,   &w->data.last_key,
                                  &w->index.entries, &w->index.restarts,  &w->index.last_key,
                                  &w->last_key};
    bool failed = false;
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) failed |= buffers[i]->failed;
    io_buffer_free(&footer);
    io_buffer_free(&metaindex.restarts);
    return !failed;
}

static void block_free(table_block *b)
{
    io_buffer_free(&b->entries);
    io_buffer_free(&b->restarts);
    io_buffer_free(&b->last_key);
}

void table_writer_free(table_writer *w)
{
    block_free(&w->data);
    block_free(&w->index);
    io_buffer_free(&w->last_key);
    io_buffer_free(&w->file);
}
