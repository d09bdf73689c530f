/*
 * What is common to all formats of named tensors: which of them a file is, names and places, and
 * what a program may ask.
 */
#include "io/archive.h"
#include <stdlib.h>
#include <string.h>

struct ed_archive {
    ed_object object;
    const archive_format *format;
    void *file; /* the format's own object */
    int64_t count;
    const char **names; /* as the program sees them, by place */
    int64_t *order;     /* places in the order of names */
    char *escaped;      /* the names that had to be changed for that, one behind the other */
};

/* ---- Which format it is ---------------------------------------------------------------------- */

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n > m && !strcmp(path + n - m, end);
}

/* The first bytes of a file, and the last eight; zeros where it has none. */
typedef struct glimpse {
    unsigned char first[9], last[8];
} glimpse;

static bool look(const char *path, glimpse *g)
{
    io_file file;
    if (!io_open(&file, "archive_open", path)) return false;
    int64_t first = file.size < 9 ? file.size : 9, last = file.size < 8 ? 0 : 8;
    bool good = io_read_at(&file, 0, g->first, (size_t)first) &&
                io_read_at(&file, file.size - last, g->last, (size_t)last);
    io_close(&file);
    return good;
}

/* A zip archive, an empty one too; NumPy's magic; the table that an index is; the bracket behind a
 * length of 64 bits. */
static const archive_format *format_of(const char *path, const glimpse *g)
{
    static const unsigned char table[] = {0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb};
    if (ends_in(path, ".index") && !memcmp(g->last, table, 8)) return &bundle_format;
    if (!memcmp(g->first, "PK\3\4", 4) || !memcmp(g->first, "PK\5\6", 4)) return &npz_format;
    if (!memcmp(g->first, "\x93NUMPY", 6)) return &npy_format;
    if (g->first[8] == '{') return &safetensors_format;
    return ed_fail(ED_DATA_LOSS,
                   "archive_open: %s: this is neither safetensors nor .npz, .npy or the index of a "
                   "bundle",
                   path);
}

/* The file of its format, NULL with the error kept. A bundle is named by its prefix, behind which
 * there is no file, or by its index. */
static void *open_file(const char *path, const archive_format **format)
{
    void *file = NULL;
    char *index = io_text("%s.index", path);
    if (!index) return NULL;
    if (!io_exists(path) && io_exists(index)) {
        *format = &bundle_format;
        file = bundle_format.open(path);
    } else {
        glimpse g = {{0}, {0}};
        *format = look(path, &g) ? format_of(path, &g) : NULL;
        if (*format == &bundle_format)
            index[strlen(path) - strlen(".index")] = 0; /* now the prefix */
        if (*format) file = (*format)->open(*format == &bundle_format ? index : path);
    }
    memory_free(index);
    return file;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void destroy(void *object)
{
    ed_archive *archive = object;
    memory_free(archive->names);
    memory_free(archive->order);
    memory_free(archive->escaped);
    ed_release(archive->file);
    memory_free(archive);
}

static const object_class archive_class = {.name = "archive", .destroy = destroy};

static archive_entry entry_of(const ed_archive *archive, int64_t i)
{
    return archive->format->entry(archive->file, i);
}

/* Whether C would see less of the name than there is. */
static bool holds_zero(const archive_entry *entry)
{
    return memchr(entry->name, 0, entry->name_size);
}

/* Writes the name with \0 for each zero in it; behind its end. */
static char *put_escaped(char *to, const archive_entry *entry)
{
    for (size_t i = 0; i < entry->name_size; i++)
        if (entry->name[i])
            *to++ = entry->name[i];
        else
            *to++ = '\\', *to++ = '0';
    *to++ = 0;
    return to;
}

static bool take_names(ed_archive *archive)
{
    size_t room = 0, n = (size_t)archive->count;
    for (int64_t i = 0; i < archive->count; i++) {
        archive_entry entry = entry_of(archive, i);
        if (holds_zero(&entry)) room += 2 * entry.name_size + 1;
    }
    archive->names = memory_alloc(n * sizeof *archive->names);
    archive->order = memory_alloc(n * sizeof *archive->order);
    archive->escaped = memory_alloc(room);
    if (!archive->names || !archive->order || !archive->escaped) return false;
    char *to = archive->escaped;
    for (int64_t i = 0; i < archive->count; i++) {
        archive_entry entry = entry_of(archive, i);
        archive->names[i] = holds_zero(&entry) ? to : entry.name;
        if (archive->names[i] == to) to = put_escaped(to, &entry);
        archive->order[i] = i;
    }
    return true;
}

static int by_name(const void *a, const void *b, void *names)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    int order = strcmp(((const char **)names)[i], ((const char **)names)[j]);
    return order ? order : (i > j) - (i < j);
}

ed_archive *ed_archive_open(const char *path)
{
    if (!path) return ed_fail(ED_INVALID_ARGUMENT, "archive_open: the path is NULL");
    ed_archive *archive = object_new(&archive_class, sizeof *archive);
    if (!archive) return NULL;
    archive->file = open_file(path, &archive->format);
    if (archive->file) archive->count = archive->format->count(archive->file);
    if (!archive->file || !take_names(archive)) {
        ed_release(archive);
        return NULL;
    }
    qsort_r(archive->order, (size_t)archive->count, sizeof *archive->order, by_name,
            archive->names);
    return scope_give(archive);
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* Whether there is such a tensor; *i, perhaps counted from the end, becomes its place. */
static bool find_place(const ed_archive *archive, const char *who, int64_t *i)
{
    if (!archive) return ed_fail(ED_INVALID_ARGUMENT, "%s: the archive is NULL", who), false;
    int64_t place = *i < 0 ? *i + archive->count : *i;
    if (place < 0 || place >= archive->count)
        return ed_fail(ED_OUT_OF_RANGE, "%s: tensor %lld of an archive of %lld", who, (long long)*i,
                       (long long)archive->count),
               false;
    *i = place;
    return true;
}

const char *ed_archive_format(const ed_archive *archive)
{
    if (!archive) return ed_fail(ED_INVALID_ARGUMENT, "archive_format: the archive is NULL");
    return archive->format->name;
}

int64_t ed_archive_count(const ed_archive *archive)
{
    if (!archive) return ed_fail(ED_INVALID_ARGUMENT, "archive_count: the archive is NULL"), 0;
    return archive->count;
}

const char *ed_archive_name(const ed_archive *archive, int64_t i)
{
    return find_place(archive, "archive_name", &i) ? archive->names[i] : NULL;
}

int64_t ed_archive_find(const ed_archive *archive, const char *name)
{
    if (!archive || !name)
        return ed_fail(ED_INVALID_ARGUMENT, "archive_find: the %s is NULL",
                       archive ? "name" : "archive"),
               -1;
    int64_t low = 0, high = archive->count; /* the first that is not before the name */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (strcmp(archive->names[archive->order[middle]], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == archive->count || strcmp(archive->names[archive->order[low]], name)) return -1;
    return archive->order[low];
}

static const char *dtype_text(const archive_entry *entry)
{
    return entry->dtype == IO_NONE ? entry->foreign : io_dtype_name(entry->dtype);
}

const char *ed_archive_dtype(const ed_archive *archive, int64_t i)
{
    if (!find_place(archive, "archive_dtype", &i)) return NULL;
    archive_entry entry = entry_of(archive, i);
    return dtype_text(&entry);
}

ed_ints ed_archive_shape(const ed_archive *archive, int64_t i)
{
    static const int64_t scalar;
    if (!find_place(archive, "archive_shape", &i)) return (ed_ints){0};
    archive_entry entry = entry_of(archive, i);
    return (ed_ints){entry.rank ? entry.shape : &scalar, entry.rank};
}

int64_t ed_archive_bytes(const ed_archive *archive, int64_t i)
{
    return find_place(archive, "archive_bytes", &i) ? entry_of(archive, i).bytes : 0;
}

const char *ed_archive_metadata(const ed_archive *archive, const char *key)
{
    if (!archive || !key)
        return ed_fail(ED_INVALID_ARGUMENT, "archive_metadata: the %s is NULL",
                       archive ? "key" : "archive");
    return archive->format->metadata ? archive->format->metadata(archive->file, key) : NULL;
}

/* ---- Elements -------------------------------------------------------------------------------- */

static ed_tensor *read_tensor(const char *who, ed_archive *archive, int64_t i)
{
    archive_entry entry = entry_of(archive, i);
    if (entry.dtype != IO_NONE && !io_dtype_to(entry.dtype))
        return ed_fail(ED_UNIMPLEMENTED, "%s: '%.200s' is of %s, a dtype that tensors don't have",
                       who, archive->names[i], dtype_text(&entry));
    if (entry.rank > ED_MAX_RANK)
        return ed_fail(ED_UNIMPLEMENTED, "%s: '%.200s' has %d dimensions; tensors have at most %d",
                       who, archive->names[i], entry.rank, ED_MAX_RANK);
    return scope_give(archive->format->tensor(archive->file, i));
}

ed_tensor *ed_archive_tensor(ed_archive *archive, int64_t i)
{
    return find_place(archive, "archive_tensor", &i) ? read_tensor("archive_tensor", archive, i)
                                                     : NULL;
}

ed_tensor *ed_archive_get(ed_archive *archive, const char *name)
{
    if (!archive || !name)
        return ed_fail(ED_INVALID_ARGUMENT, "archive_get: the %s is NULL",
                       archive ? "name" : "archive");
    int64_t i = ed_archive_find(archive, name);
    if (i < 0) return ed_fail(ED_NOT_FOUND, "archive_get: there is no tensor '%.200s'", name);
    return read_tensor("archive_get", archive, i);
}

static bool drop(void *user, const void *data, size_t size)
{
    (void)user, (void)data, (void)size;
    return true;
}

bool ed_archive_verify(ed_archive *archive, int64_t i)
{
    if (!find_place(archive, "archive_verify", &i)) return false;
    const archive_format *format = archive->format;
    return format->verify ? format->verify(archive->file, i)
                          : format->stream(archive->file, i, drop, NULL);
}

static bool digest_piece(void *digester, const void *data, size_t size)
{
    io_digest_add(digester, data, size);
    return true;
}

const char *ed_archive_digest(ed_archive *archive, int64_t i)
{
    enum { DIGITS = 32 };
    if (!find_place(archive, "archive_digest", &i)) return NULL;
    io_digester *digester = io_digest_begin();
    if (!digester) return NULL;
    char *digits = NULL;
    if (archive->format->stream(archive->file, i, digest_piece, digester))
        digits = memory_alloc(DIGITS + 1);
    if (digits) io_digest_text(io_digest_end(digester), digits);
    memory_free(digester);
    return text_give(digits);
}

/* ---- Writing --------------------------------------------------------------------------------- */

archive_item archive_item_of(ed_archive *archive, int64_t i)
{
    archive_entry entry = entry_of(archive, i);
    return (archive_item){.name = archive->names[i],
                          .dtype = entry.dtype,
                          .rank = entry.rank,
                          .shape = entry.shape,
                          .bytes = entry.bytes,
                          .from = archive,
                          .index = i};
}

const char *archive_item_dtype(const archive_item *item)
{
    return item->from ? ed_archive_dtype(item->from, item->index) : io_dtype_name(item->dtype);
}

void *archive_file(const ed_archive *archive)
{
    return archive->file;
}

bool archive_stream(const archive_item *item,
                    bool (*take)(void *user, const void *data, size_t size), void *user)
{
    return item->tensor ? io_stream_tensor(item->tensor, take, user)
                        : item->from->format->stream(item->from->file, item->index, take, user);
}

static int by_item_name(const void *a, const void *b)
{
    return strcmp((*(const archive_item *const *)a)->name, (*(const archive_item *const *)b)->name);
}

bool archive_names_differ(const char *who, const char *path, const archive_item *items,
                          int64_t count)
{
    const archive_item **order = memory_alloc((size_t)count * sizeof *order);
    if (!order) return false;
    for (int64_t i = 0; i < count; i++) order[i] = &items[i];
    qsort(order, (size_t)count, sizeof *order, by_item_name);
    const char *twice = NULL;
    for (int64_t i = 1; i < count && !twice; i++)
        if (!by_item_name(&order[i - 1], &order[i])) twice = order[i]->name;
    memory_free(order);
    return !twice ||
           (ed_fail(ED_INVALID_ARGUMENT, "%s: %s: the name '%.200s' comes twice", who, path, twice),
            false);
}

/* A name and a tensor as an item, a variable being its present value. */
static bool take_item(const char *who, const void *name, const ed_tensor *tensor, int64_t i,
                      archive_item *item)
{
    if (!name || !tensor)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: the %s of tensor %lld is NULL", who,
                       name ? "value" : "name", (long long)i),
               false;
    if (!*(const char *)name)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: the name of tensor %lld is empty", who,
                       (long long)i),
               false;
    tensor = tensor_read(tensor);
    *item = (archive_item){.name = name,
                           .dtype = io_dtype_from(tensor->dtype),
                           .rank = tensor->rank,
                           .shape = tensor->shape,
                           .bytes = tensor->size * (int64_t)dtype_size(tensor->dtype),
                           .tensor = tensor};
    return true;
}

static bool write_all(const char *who, const char *path, const void *const *names_and_tensors,
                      int64_t count,
                      bool (*write)(const char *path, const archive_item *items, int64_t count))
{
    if (!path || !names_and_tensors)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: the %s NULL", who,
                       path ? "names and tensors are" : "path is"),
               false;
    if (count < 0 || count % 2)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: names and tensors come in pairs, not %lld of them",
                       who, (long long)count),
               false;
    archive_item *items = memory_alloc((size_t)count / 2 * sizeof *items);
    if (!items) return false;
    bool good = true;
    for (int64_t i = 0; good && i < count / 2; i++)
        good = take_item(who, names_and_tensors[2 * i], names_and_tensors[2 * i + 1], i, &items[i]);
    good =
        good && archive_names_differ(who, path, items, count / 2) && write(path, items, count / 2);
    memory_free(items);
    return good;
}

bool ed_write_npz_of(const char *path, const void *const *names_and_tensors, int64_t count)
{
    return write_all("write_npz", path, names_and_tensors, count, npz_write);
}

bool ed_write_safetensors_of(const char *path, const void *const *names_and_tensors, int64_t count)
{
    return write_all("write_safetensors", path, names_and_tensors, count, safetensors_write);
}
