/* What all archive formats share: the list of formats, recognising a file's format, names and
 * indices, and the public functions. */
#include "io/archive.h"
#include <stdlib.h>
#include <string.h>

struct ed_archive {
    ed_object object;
    const archive_format *format;
    void *file; /* the format's own object */
    int64_t count;
    const char **names; /* as programs see them, by index */
    int64_t *order;     /* indices, sorted by name */
    char *escaped;      /* the escaped names of those that contain a 0, one after the other */
};

/* ---- The list of formats --------------------------------------------------------------------- */

extern const archive_format *const __start_ed_formats[] __attribute__((visibility("hidden")));
extern const archive_format *const __stop_ed_formats[] __attribute__((visibility("hidden")));

const archive_format *const *archive_formats(int *count)
{
    *count = (int)(__stop_ed_formats - __start_ed_formats);
    return __start_ed_formats;
}

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n > m && !strcmp(path + n - m, end);
}

const archive_format *archive_format_by_ending(const char *path)
{
    int n;
    const archive_format *const *formats = archive_formats(&n);
    for (int i = 0; i < n; i++)
        if (ends_in(path, formats[i]->ending)) return formats[i];
    return NULL;
}

const archive_format *archive_format_by_name(const char *name)
{
    int n;
    const archive_format *const *formats = archive_formats(&n);
    for (int i = 0; i < n; i++)
        if (!strcmp(formats[i]->name, name)) return formats[i];
    return NULL;
}

char *archive_format_names(const char *separator)
{
    int n;
    const archive_format *const *formats = archive_formats(&n);
    io_buffer names = {0};
    for (int i = 0; i < n; i++) io_put_format(&names, "%s%s", i ? separator : "", formats[i]->name);
    io_put_u8(&names, 0);
    if (!names.failed) return (char *)names.data;
    io_buffer_free(&names);
    return NULL;
}

/* Sets the error that begins with `what` and ends with the list of formats; returns NULL. */
static void *fail_listing(ed_error_code code, const char *what)
{
    char *names = archive_format_names(", ");
    if (names && what) ed_fail(code, "%s%s", what, names);
    memory_free(names);
    return NULL;
}

const archive_format *archive_format_find(const char *who, const char *path, const char *name)
{
    const archive_format *format =
        name ? archive_format_by_name(name) : archive_format_by_ending(path);
    if (format) return format;
    char *what =
        name ? io_text("%s: unknown format '%.40s': must be one of ", who, name)
             : io_text("%s: %s: the format is not known from the ending: set format to one of ",
                       who, path);
    fail_listing(ED_INVALID_ARGUMENT, what);
    memory_free(what);
    return NULL;
}

/* The path for the format's `write` and `open`: without the ending if it is a prefix. memory_free
 * frees it. */
static char *own_path(const archive_format *format, const char *path)
{
    size_t n = strlen(path);
    if (format->prefix && ends_in(path, format->ending)) n -= strlen(format->ending);
    return io_text("%.*s", (int)n, path);
}

char *archive_file_path(const archive_format *format, const char *path)
{
    bool whole = !format->prefix || ends_in(path, format->ending);
    return io_text("%s%s", path, whole ? "" : format->ending);
}

/* ---- Recognising a file's format ------------------------------------------------------------- */

static bool read_glimpse(const char *path, archive_glimpse *g)
{
    io_file file;
    if (!io_open(&file, "archive_open", path)) return false;
    int64_t first = file.size < 9 ? file.size : 9, last = file.size < 8 ? 0 : 8;
    bool good = io_read_at(&file, 0, g->first, (size_t)first) &&
                io_read_at(&file, file.size - last, g->last, (size_t)last);
    io_close(&file);
    return good;
}

/* The format that is most sure of the file. A format whose paths are prefixes recognises its
 * files by their ending too. */
static const archive_format *recognised(const char *path)
{
    archive_glimpse glimpse = {{0}, {0}};
    if (!read_glimpse(path, &glimpse)) return NULL;
    int n;
    const archive_format *const *formats = archive_formats(&n), *best = NULL;
    archive_match sure = ARCHIVE_OTHER;
    for (int i = 0; i < n; i++) {
        if (formats[i]->prefix && !ends_in(path, formats[i]->ending)) continue;
        archive_match match = formats[i]->recognises(&glimpse);
        if (match > sure) sure = match, best = formats[i];
    }
    if (best) return best;
    char *what =
        io_text("archive_open: %s: the format of the file is not known: must be one of ", path);
    fail_listing(ED_DATA_LOSS, what);
    memory_free(what);
    return NULL;
}

/* The format for which the path is the prefix of existing files; NULL: none. */
static const archive_format *format_of_prefix(const char *path)
{
    int n;
    const archive_format *const *formats = archive_formats(&n), *found = NULL;
    for (int i = 0; i < n && !found; i++) {
        char *file = formats[i]->prefix ? io_text("%s%s", path, formats[i]->ending) : NULL;
        if (file && io_exists(file)) found = formats[i];
        memory_free(file);
    }
    return found;
}

/* Opens the file; NULL with an error. */
static void *open_file(const char *path, const archive_format **format)
{
    *format = io_exists(path) ? NULL : format_of_prefix(path);
    if (!*format) *format = recognised(path);
    if (!*format) return NULL;
    char *own = own_path(*format, path);
    void *file = own ? (*format)->open(own) : NULL;
    memory_free(own);
    return file;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void archive_destroy(void *object)
{
    ed_archive *archive = object;
    memory_free(archive->names);
    memory_free(archive->order);
    memory_free(archive->escaped);
    ed_release(archive->file);
    memory_free(archive);
}

static const object_class archive_class = {.name = "archive", .destroy = archive_destroy};

static archive_entry entry_of(const ed_archive *archive, int64_t i)
{
    return archive->format->entry(archive->file, i);
}

/* Whether the name contains a 0, so that C would see only a part of it. */
static bool holds_zero(const archive_entry *entry)
{
    return memchr(entry->name, 0, entry->name_size);
}

/* Writes the name with \0 for each zero in it; returns the end. */
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

static int by_archive_name(const void *a, const void *b, void *names)
{
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    int order = strcmp(((const char **)names)[i], ((const char **)names)[j]);
    return order ? order : (i > j) - (i < j);
}

ed_archive *ed_archive_open(const char *path)
{
    if (NULL_GIVEN("archive_open", path)) return NULL;
    ed_archive *archive = object_new(&archive_class, sizeof *archive);
    if (!archive) return NULL;
    archive->file = open_file(path, &archive->format);
    if (archive->file) archive->count = archive->format->count(archive->file);
    if (!archive->file || !take_names(archive)) {
        ed_release(archive);
        return NULL;
    }
    qsort_r(archive->order, (size_t)archive->count, sizeof *archive->order, by_archive_name,
            archive->names);
    return scope_give(archive);
}

/* ---- Properties ------------------------------------------------------------------------------ */

/* Checks the index; one that counts from the end becomes one from the start. */
static bool find_index(const ed_archive *archive, const char *who, int64_t *i)
{
    if (NULL_GIVEN(who, archive)) return false;
    int64_t index = *i < 0 ? *i + archive->count : *i;
    if (index < 0 || index >= archive->count)
        return ed_fail(ED_OUT_OF_RANGE,
                       "%s: index %lld is out of bounds for an archive of %lld tensors", who,
                       (long long)*i, (long long)archive->count),
               false;
    *i = index;
    return true;
}

const char *ed_archive_format(const ed_archive *archive)
{
    if (NULL_GIVEN("archive_format", archive)) return NULL;
    return archive->format->name;
}

int64_t ed_archive_count(const ed_archive *archive)
{
    if (NULL_GIVEN("archive_count", archive)) return 0;
    return archive->count;
}

const char *ed_archive_name(const ed_archive *archive, int64_t i)
{
    return find_index(archive, "archive_name", &i) ? archive->names[i] : NULL;
}

int64_t ed_archive_find(const ed_archive *archive, const char *name)
{
    if (NULL_GIVEN("archive_find", archive, name)) return -1;
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
    if (!find_index(archive, "archive_dtype", &i)) return NULL;
    archive_entry entry = entry_of(archive, i);
    return dtype_text(&entry);
}

ed_ints ed_archive_shape(const ed_archive *archive, int64_t i)
{
    static const int64_t scalar;
    if (!find_index(archive, "archive_shape", &i)) return (ed_ints){0};
    archive_entry entry = entry_of(archive, i);
    return (ed_ints){entry.rank ? entry.shape : &scalar, entry.rank};
}

int64_t ed_archive_bytes(const ed_archive *archive, int64_t i)
{
    return find_index(archive, "archive_bytes", &i) ? entry_of(archive, i).bytes : 0;
}

const char *ed_archive_metadata(const ed_archive *archive, const char *key)
{
    if (NULL_GIVEN("archive_metadata", archive, key)) return NULL;
    return archive->format->metadata ? archive->format->metadata(archive->file, key) : NULL;
}

/* ---- Elements -------------------------------------------------------------------------------- */

static ed_tensor *read_tensor(const char *who, ed_archive *archive, int64_t i)
{
    archive_entry entry = entry_of(archive, i);
    if (entry.dtype != IO_NONE && !io_dtype_to(entry.dtype))
        return ed_fail(ED_UNIMPLEMENTED,
                       "%s: '%.200s' has the dtype %s, which tensors don't support", who,
                       archive->names[i], dtype_text(&entry));
    if (entry.rank > ED_MAX_RANK)
        return ed_fail(ED_UNIMPLEMENTED, "%s: '%.200s' has rank %d; tensors have at most %d", who,
                       archive->names[i], entry.rank, ED_MAX_RANK);
    return scope_give(archive->format->tensor(archive->file, i));
}

ed_tensor *ed_archive_tensor(ed_archive *archive, int64_t i)
{
    return find_index(archive, "archive_tensor", &i) ? read_tensor("archive_tensor", archive, i)
                                                     : NULL;
}

ed_tensor *ed_archive_get(ed_archive *archive, const char *name)
{
    if (NULL_GIVEN("archive_get", archive, name)) return NULL;
    int64_t i = ed_archive_find(archive, name);
    if (i < 0) return ed_fail(ED_NOT_FOUND, "archive_get: tensor '%.200s' not found", name);
    return read_tensor("archive_get", archive, i);
}

static bool drop(void *user, const void *data, size_t size)
{
    (void)user, (void)data, (void)size;
    return true;
}

bool ed_archive_verify(ed_archive *archive, int64_t i)
{
    if (!find_index(archive, "archive_verify", &i)) return false;
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
    if (!find_index(archive, "archive_digest", &i)) return NULL;
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

archive_item archive_item_of_tensor(const char *name, const ed_tensor *tensor)
{
    tensor = tensor_value(tensor);
    return (archive_item){.name = name,
                          .dtype = io_dtype_from(tensor->dtype),
                          .rank = tensor->rank,
                          .shape = tensor->shape,
                          .bytes = tensor->size * (int64_t)dtype_size(tensor->dtype),
                          .tensor = tensor};
}

const char *archive_item_dtype(const archive_item *item)
{
    return item->from ? ed_archive_dtype(item->from, item->index) : io_dtype_name(item->dtype);
}

const archive_format *archive_format_of(const ed_archive *archive)
{
    return archive->format;
}

void *archive_file(const ed_archive *archive)
{
    return archive->file;
}

bool archive_stream(const archive_item *item, io_sink *take, void *user)
{
    return item->tensor ? io_stream_tensor(item->tensor, take, user)
                        : item->from->format->stream(item->from->file, item->index, take, user);
}

static int by_item_name(const void *a, const void *b)
{
    return strcmp((*(const archive_item *const *)a)->name, (*(const archive_item *const *)b)->name);
}

static bool names_differ(const char *who, const char *path, const archive_item *items,
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
    return !twice || (ed_fail(ED_INVALID_ARGUMENT, "%s: %s: two tensors have the name '%.200s'",
                              who, path, twice),
                      false);
}

bool archive_write_items(const char *who, const archive_format *format, const char *path,
                         const archive_item *items, int64_t count)
{
    if (!format->write)
        return ed_fail(ED_UNIMPLEMENTED, "%s: %s: format %s can be read only", who, path,
                       format->name);
    if (format->single && count != 1)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: %s: format %s holds one tensor, got %lld", who,
                       path, format->name, (long long)count);
    char *own = own_path(format, path);
    bool good =
        own && names_differ(who, path, items, count) && format->write(who, own, items, count);
    memory_free(own);
    return good;
}

/* A name and a tensor as an item. */
static bool take_item(const void *name, const ed_tensor *tensor, int64_t i, archive_item *item)
{
    if (!name || !tensor)
        return ed_fail(ED_INVALID_ARGUMENT, "archive_write: the %s of tensor %lld is NULL",
                       name ? "value" : "name", (long long)i);
    if (!*(const char *)name)
        return ed_fail(ED_INVALID_ARGUMENT, "archive_write: the name of tensor %lld is empty",
                       (long long)i);
    if (!ed_as_tensor(tensor)) return false;
    *item = archive_item_of_tensor(name, tensor);
    return true;
}

bool ed_archive_write_with(const char *path, ed_named tensors, const ed_archive_options *options)
{
    if (NULL_GIVEN("archive_write", path)) return false;
    if (!tensors.values) return ed_fail(ED_INVALID_ARGUMENT, "archive_write: tensors is NULL");
    if (tensors.count < 0 || tensors.count % 2)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "archive_write: tensors must be pairs of name and tensor, got %lld values",
                       (long long)tensors.count);
    const archive_format *format =
        archive_format_find("archive_write", path, options ? options->format : NULL);
    if (!format) return false;
    int64_t count = tensors.count / 2;
    archive_item *items = memory_alloc((size_t)count * sizeof *items);
    bool good = items;
    for (int64_t i = 0; good && i < count; i++)
        good = take_item(tensors.values[2 * i], tensors.values[2 * i + 1], i, &items[i]);
    good = good && archive_write_items("archive_write", format, path, items, count);
    memory_free(items);
    return good;
}
