/* TensorFlow's bundle as an archive format. */
#include "io/archive.h"
#include "io/bundle.h"
#include <string.h>

static void *bundle_archive_open(const char *prefix)
{
    return bundle_open("archive_open", prefix);
}

static int64_t bundle_archive_count(const void *self)
{
    return bundle_count(self);
}

/* Of a damaged entry only the name is known. */
static archive_entry bundle_archive_entry(const void *self, int64_t i)
{
    const bundle_entry *e = bundle_at(self, i);
    if (e->damage)
        return (archive_entry){.name = e->name, .name_size = e->name_size, .foreign = "damaged"};
    return (archive_entry){.name = e->name,
                           .name_size = e->name_size,
                           .dtype = e->dtype,
                           .rank = e->rank,
                           .shape = e->shape,
                           .bytes = e->bytes};
}

static ed_tensor *bundle_archive_tensor(void *self, int64_t i)
{
    return bundle_tensor(self, bundle_at(self, i));
}

static bool bundle_archive_stream(void *self, int64_t i, io_sink *take, void *user)
{
    return bundle_stream(self, bundle_at(self, i), take, user);
}

static bool bundle_archive_verify(void *self, int64_t i)
{
    return bundle_verify(self, bundle_at(self, i));
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool collect(void *user, const void *data, size_t size)
{
    io_buffer *all = user;
    io_put(all, data, size);
    return !all->failed;
}

/* Elements of another archive, all at once, as the writer takes them. A bundle gives every element
 * whole bytes, which other formats don't. */
static bool add_elements(bundle_writer *w, const char *who, const char *prefix,
                         const archive_item *item)
{
    io_buffer all = {0};
    bool good = archive_stream(item, collect, &all);
    int64_t bits = io_dtype_bits(item->dtype);
    for (int i = 0; i < item->rank; i++)
        if (__builtin_mul_overflow(bits, item->shape[i], &bits)) bits = -1;
    if (good && bits != (int64_t)all.size * 8)
        good = ed_fail(ED_UNIMPLEMENTED,
                       "%s: %s: tensor '%.200s': a bundle packs elements of %s differently", who,
                       prefix, item->name, archive_item_dtype(item));
    good = good &&
           bundle_add_raw(w, item->name, item->dtype, item->rank, item->shape, all.data, all.size);
    io_buffer_free(&all);
    return good;
}

typedef struct strings {
    io_buffer bytes, sizes;
} strings;

static bool collect_string(void *user, io_span string)
{
    strings *s = user;
    io_put(&s->bytes, string.data, string.size);
    io_put_u64(&s->sizes, string.size);
    return !s->bytes.failed && !s->sizes.failed;
}

/* What was collected, string by string, once its memory stays where it is. */
static bool add_collected(bundle_writer *w, const archive_item *item, const strings *s)
{
    size_t count = s->sizes.size / sizeof(uint64_t);
    io_span *spans = memory_alloc(count * sizeof *spans);
    if (!spans) return false;
    io_cursor bytes = io_cursor_on(s->bytes.data, s->bytes.size);
    io_cursor sizes = io_cursor_on(s->sizes.data, s->sizes.size);
    for (size_t i = 0; i < count; i++) spans[i] = io_take(&bytes, io_u64(&sizes));
    bool good = bundle_add_strings(w, item->name, item->rank, item->shape, spans, (int64_t)count);
    memory_free(spans);
    return good;
}

/* The strings come from a bundle: no other format has them. */
static bool add_strings(bundle_writer *w, const archive_item *item)
{
    strings s = {{0}, {0}};
    const bundle *from = archive_file(item->from);
    bool good = bundle_strings(from, bundle_at(from, item->index), collect_string, &s) &&
                add_collected(w, item, &s);
    io_buffer_free(&s.bytes);
    io_buffer_free(&s.sizes);
    return good;
}

static bool add_item(bundle_writer *w, const char *who, const char *prefix,
                     const archive_item *item)
{
    if (item->tensor) return bundle_add(w, item->name, item->tensor);
    if (item->dtype == IO_STRING) return add_strings(w, item);
    if (io_dtype_bits(item->dtype)) return add_elements(w, who, prefix, item);
    return ed_fail(ED_UNIMPLEMENTED,
                   "%s: %s: tensor '%.200s' has the dtype %s, which can't be written", who, prefix,
                   item->name, archive_item_dtype(item));
}

static bool bundle_write(const char *who, const char *prefix, const archive_item *items,
                         int64_t count)
{
    bundle_writer *w = bundle_create(who, prefix);
    if (!w) return false;
    for (int64_t i = 0; i < count; i++)
        if (!add_item(w, who, prefix, &items[i])) {
            bundle_discard(w);
            return false;
        }
    return bundle_finish(w);
}

/* ---- The format ------------------------------------------------------------------------------ */

/* The index is a LevelDB table, whose magic number is at its end. */
static archive_match bundle_recognises(const archive_glimpse *g)
{
    static const uint8_t magic[] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};
    return memcmp(g->last, magic, sizeof magic) ? ARCHIVE_OTHER : ARCHIVE_CERTAIN;
}

ARCHIVE_FORMAT(bundle_format) = {.name = "bundle",
                                 .ending = ".index",
                                 .prefix = true,
                                 .strings = true,
                                 .recognises = bundle_recognises,
                                 .open = bundle_archive_open,
                                 .count = bundle_archive_count,
                                 .entry = bundle_archive_entry,
                                 .tensor = bundle_archive_tensor,
                                 .stream = bundle_archive_stream,
                                 .verify = bundle_archive_verify,
                                 .write = bundle_write};
