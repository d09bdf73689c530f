/* eddy-ckpt convert: tensors are copied from file to file as bytes, also of dtypes that tensors
 * don't support. What the other format can't store is left out, with a message. */
#include "programs/ckpt.h"
#include "train/object_graph.h"
#include <string.h>
#include <sys/stat.h>

/* The format of --to, or of OUT's ending; a path without a known ending is a bundle's prefix. */
static const archive_format *format_of(const char *path, const char *name)
{
    if (!name && !archive_format_by_ending(path)) name = "bundle";
    return archive_format_find("convert", path, name);
}

/* ---- The tensors to write -------------------------------------------------------------------- */

/* Items whose names are blocks of memory_alloc. */
struct items {
    archive_item *at;
    int64_t count;
};

static void free_items(struct items *items)
{
    for (int64_t i = 0; i < items->count; i++) memory_free((void *)items->at[i].name);
    memory_free(items->at);
}

/* Why a tensor can't be converted; NULL if it can. */
static const char *hindrance(const ckpt_options *options, const archive_item *item,
                             const archive_format *format)
{
    bool strings = item->dtype == IO_STRING;
    if (item->dtype == IO_NONE) return "only its own format has this dtype";
    if (item->dtype == IO_VARIANT || item->dtype == IO_RESOURCE)
        return "only TensorFlow can read its contents";
    if (strings && !format->strings) return "the format has no strings";
    if (strings && options->strip && !strcmp(item->name, BUNDLE_GRAPH))
        return "it has the names of keys that --strip removes";
    return NULL;
}

static char *new_name(const ckpt_options *options, const ckpt_file *in, const char *name)
{
    size_t n = strlen(name), suffix = strlen(VALUE_SUFFIX);
    bool strip = options->strip && n > suffix && !strcmp(name + n - suffix, VALUE_SUFFIX);
    if (*name) return io_text("%.*s", (int)(strip ? n - suffix : n), name);
    /* The tensor of a .npy gets the file's name. */
    const char *file = io_name_of(in->path), *dot = strrchr(file, '.');
    return io_text("%.*s", dot && dot > file ? (int)(dot - file) : (int)strlen(file), file);
}

static void note_left_out(const archive_item *item, const char *why)
{
    fputs("eddy-ckpt: left out: ", stderr);
    ckpt_print_name(stderr, item->name);
    fprintf(stderr, ": %s\n", why);
}

static bool gather(const ckpt_options *options, const ckpt_file *in, const ckpt_places *places,
                   const archive_format *format, struct items *items)
{
    items->at = memory_alloc(((size_t)places->count + 1) * sizeof *items->at);
    for (int64_t i = 0; i < places->count && items->at; i++) {
        archive_item item = archive_item_of(in->archive, places->at[i]);
        /* Of a damaged entry only the damage is known. */
        if (item.dtype == IO_NONE && !ed_archive_verify(in->archive, places->at[i])) return false;
        const char *why = hindrance(options, &item, format);
        bool made_anew = ckpt_bundle(in) && !strcmp(item.name, BUNDLE_DIGESTS);
        if (why && !made_anew) note_left_out(&item, why);
        if (why || made_anew) continue;
        if (!(item.name = new_name(options, in, item.name))) return false;
        items->at[items->count++] = item;
    }
    if (items->at && !items->count)
        return ed_fail(ED_INVALID_ARGUMENT, "convert: %s: no tensor is left to write", in->given);
    if (items->at && format->single && items->count > 1)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "convert: format %s holds one tensor, got %lld; choose one by --match",
                       format->name, (long long)items->count);
    return items->at;
}

/* ---- The output file ------------------------------------------------------------------------- */

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Whether OUT may be written. It must not be the input, which would be lost if a tensor is
 * damaged. */
static bool may_write(const ckpt_options *options, const ckpt_file *in, const char *out)
{
    struct stat status;
    char *input = archive_file_path(archive_format_of(in->archive), in->path);
    bool itself = input && same_file(input, out);
    memory_free(input);
    if (!input) return false;
    if (itself) return ed_fail(ED_INVALID_ARGUMENT, "convert: %s is both input and output", out);
    if (options->force || lstat(out, &status)) return true;
    return ed_fail(ED_INVALID_ARGUMENT, "convert: %s exists; --force overwrites it", out);
}

static bool write_items(const ckpt_options *options, const ckpt_file *in, const char *out,
                        const archive_format *format, const struct items *items)
{
    char *file = archive_file_path(format, out);
    bool right = file && may_write(options, in, file) &&
                 archive_write_items("convert", format, out, items->at, items->count);
    memory_free(file);
    return right;
}

int ckpt_convert(const ckpt_options *options, char **words, int count)
{
    ED_SCOPE;
    (void)count;
    ckpt_file in;
    ckpt_places places = {NULL, 0};
    struct items items = {NULL, 0};
    char *match = (char *)options->match;
    const archive_format *format = format_of(words[1], options->to);
    bool right = ckpt_open(&in, words[0]) && format &&
                 ckpt_select(&in, &match, match ? 1 : 0, &places) &&
                 gather(options, &in, &places, format, &items) &&
                 write_items(options, &in, words[1], format, &items);
    if (!right) ckpt_complain();
    free_items(&items);
    memory_free(places.at);
    ckpt_close(&in);
    return right ? EXIT_SAME : EXIT_TROUBLE;
}
