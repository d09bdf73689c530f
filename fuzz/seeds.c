/*
 * Makes inputs to begin with: fuzz_seeds TO FROM... looks for files in the folders FROM and among
 * those it makes itself, and puts what each target takes into TO/TARGET/.
 */
#include "data/data.h"
#include "fuzz/fuzz.h"
#include "io/bundle.h"
#include "io/table.h"
#include "train/train.h"
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

enum { LARGEST = 24 << 10, HASH_DIGITS = 33 };

static const char *to;

/* Under a name made of the content: the same input comes once. */
static void put_seed(const char *target, const void *data, size_t size)
{
    char path[512], digits[HASH_DIGITS];
    if (size > LARGEST) return;
    io_digest_text(io_digest_of(data, size), digits);
    snprintf(path, sizeof path, "%s/%s/%s", to, target, digits);
    fuzz_claim(io_write_file("seeds", path, data, size), "a seed can't be written");
}

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && !strcmp(path + n - m, end);
}

/* ---- Bundles --------------------------------------------------------------------------------- */

static void begin(io_buffer *b, int kind, const uint8_t *shard, size_t size)
{
    io_put_u8(b, (uint8_t)kind);
    io_put_u16(b, (uint16_t)size);
    io_put(b, shard, size);
}

/* The index taken apart; entries longer than a byte can say are left out. */
static void put_entries(io_buffer *b, const char *index)
{
    table t;
    if (!table_open(&t, "seeds", index)) {
        ed_clear_error();
        return;
    }
    table_walk w = {.table = &t};
    while (table_next(&w)) {
        if (w.key.size > 255 || w.value.size > 255) continue;
        io_put_u8(b, (uint8_t)w.key.size);
        io_put(b, w.key.data, w.key.size);
        io_put_u8(b, (uint8_t)w.value.size);
        io_put(b, w.value.data, w.value.size);
    }
    ed_clear_error();
    table_walk_end(&w);
    table_close(&t);
}

static void seed_objects(const char *prefix)
{
    io_buffer message = {0};
    bundle *b = bundle_open("seeds", prefix);
    const bundle_entry *e = b ? bundle_find(b, BUNDLE_GRAPH) : NULL;
    if (e && bundle_string(b, e, 0, &message)) put_seed("fuzz_objects", message.data, message.size);
    io_buffer_free(&message);
    ed_release(b);
    ed_clear_error();
}

static void seed_bundle(const char *index)
{
    char path[512], prefix[480];
    uint8_t *shard = NULL, *file = NULL;
    size_t shard_size = 0, file_size = 0;
    snprintf(prefix, sizeof prefix, "%.*s", (int)(strlen(index) - strlen(".index")), index);
    snprintf(path, sizeof path, "%s.data-00000-of-00001", prefix);
    if (!io_read_file("seeds", path, LARGEST, &shard, &shard_size)) ed_clear_error();
    io_buffer raw = {0}, entries = {0};
    if (io_read_file("seeds", index, LARGEST, &file, &file_size)) {
        begin(&raw, 0, shard, shard_size);
        io_put(&raw, file, file_size);
        put_seed("fuzz_bundle", raw.data, raw.size);
        begin(&entries, 1, shard, shard_size);
        put_entries(&entries, index);
        put_seed("fuzz_bundle", entries.data, entries.size);
        seed_objects(prefix);
    }
    ed_clear_error();
    io_buffer_free(&raw);
    io_buffer_free(&entries);
    memory_free(shard);
    memory_free(file);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void seed_file(const char *target, const char *path)
{
    uint8_t *data;
    size_t size;
    if (io_read_file("seeds", path, LARGEST, &data, &size)) {
        put_seed(target, data, size);
        memory_free(data);
    }
    ed_clear_error();
}

static void seed_archive(const char *path)
{
    char target[64];
    const archive_format *format = archive_format_by_ending(path);
    if (!format) return;
    snprintf(target, sizeof target, "fuzz_%s", format->name);
    seed_file(target, path);
}

static int visit(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    if (kind != FTW_F) return 0;
    if (ends_in(path, ".index"))
        seed_bundle(path);
    else
        seed_archive(path);
    if (ends_in(path, ".idx") || ends_in(path, ".idx.gz")) seed_file("fuzz_idx", path);
    if (!strncmp(path + where->base, "checkpoint", strlen("checkpoint")))
        seed_file("fuzz_state", path);
    return 0;
}

static void make_archives(const char *folder)
{
    char path[128];
    int n;
    const archive_format *const *formats = archive_formats(&n);
    ed_tensor *a = ed_random_normal(ED_SHAPE(2, 3)), *b = ed_zeros(ED_SHAPE(0, 4));
    for (int i = 0; i < n; i++) {
        if (!formats[i]->write) continue; /* its seeds are in a folder FROM */
        snprintf(path, sizeof path, "%s/archive%s", folder, formats[i]->ending);
        ed_named tensors = ED_NAMED("a", a, "b/c", b);
        if (formats[i]->single) tensors.count = 2;
        ed_archive_write(path, tensors);
    }
}

/* Something of every kind, in this process' folder. */
static void make_files(void)
{
    ED_SCOPE;
    static const uint8_t idx[] = {0, 0, 0x0b, 2, 0, 0, 0, 2, 0, 0, 0, 3,
                                  0, 1, 0,    2, 0, 3, 0, 4, 0, 5, 0, 6};
    char path[128];
    const char *folder = fuzz_folder();
    make_archives(folder);
    fuzz_file("m.idx", idx, sizeof idx);
    snprintf(path, sizeof path, "%s/m.idx.gz", folder);
    gzFile zipped = gzopen(path, "wb");
    fuzz_claim(gzwrite(zipped, idx, sizeof idx) == sizeof idx && !gzclose(zipped), "no gzip");
    snprintf(path, sizeof path, "%s/m", folder);
    ed_checkpoint_save(ed_checkpoint("v", ed_variable(ed_random_normal(ED_SHAPE(2, 3)))), path);
    fuzz_objects((const uint8_t *)"", 0); /* which leaves a program's checkpoint there */
    fuzz_claim(!ed_failed(), "the files can't be made");
}

int main(int count, char **arguments)
{
    fuzz_claim(count > 1, "usage: fuzz_seeds TO FROM...");
    to = arguments[1];
    int n;
    const fuzz_target *targets = fuzz_targets(&n);
    for (int i = 0; i < n; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", to, targets[i].name);
        fuzz_claim(io_make_folders("seeds", path), "no folder");
    }
    make_files();
    nftw(fuzz_folder(), visit, 16, FTW_PHYS);
    for (int i = 2; i < count; i++) nftw(arguments[i], visit, 16, FTW_PHYS);
    return 0;
}
