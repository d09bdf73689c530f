/* eddy-ckpt ls: one line per tensor, with its name at the end, so that long names do not shift
 * columns. */
#include "programs/ckpt.h"
#include <stdlib.h>
#include <string.h>

struct line {
    const char *dtype, *name;
    char *shape;
    int64_t bytes;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct line *)a)->name, ((const struct line *)b)->name);
}

/* Largest first. */
static int by_size(const void *a, const void *b)
{
    int64_t x = ((const struct line *)a)->bytes, y = ((const struct line *)b)->bytes;
    return x < y ? 1 : x > y ? -1 : by_name(a, b);
}

static bool read_lines(const ckpt_file *file, const ckpt_places *places, struct line *lines)
{
    for (int64_t i = 0; i < places->count; i++) {
        archive_item item = archive_item_of(file->archive, places->at[i]);
        lines[i] = (struct line){ed_archive_dtype(file->archive, places->at[i]), item.name,
                                 ckpt_shape_text(&item), item.bytes};
        if (!lines[i].shape) return false;
    }
    return true;
}

/* A column has the width of its widest entry, except a few that are much wider. */
static int widest(int present, const char *word)
{
    int n = (int)strlen(word);
    return n > present && n <= 24 ? n : present;
}

static void print_total(int64_t count, int64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double large = (double)bytes / 1024;
    int unit = 0;
    for (; large >= 1024 && unit < 3; unit++) large /= 1024;
    printf("%lld tensor%s, %lld bytes", (long long)count, count == 1 ? "" : "s", (long long)bytes);
    if (bytes >= 1024) printf(" (%.1f %s)", large, units[unit]);
    putchar('\n');
}

static void print_lines(const struct line *lines, int64_t count)
{
    int dtype = 0, shape = 0, digits = 1;
    int64_t total = 0, most = 0;
    for (int64_t i = 0; i < count; i++) {
        dtype = widest(dtype, lines[i].dtype);
        shape = widest(shape, lines[i].shape);
        if (lines[i].bytes > most) most = lines[i].bytes;
        total += lines[i].bytes;
    }
    for (; most >= 10; most /= 10) digits++;
    for (int64_t i = 0; i < count; i++) {
        printf("%-*s  %-*s  %*lld  ", dtype, lines[i].dtype, shape, lines[i].shape, digits,
               (long long)lines[i].bytes);
        ckpt_print_name(stdout, lines[i].name);
        putchar('\n');
    }
    print_total(count, total);
}

static bool list(const ckpt_options *options, const ckpt_file *file, const ckpt_places *places)
{
    size_t count = (size_t)places->count;
    struct line *lines = memory_zalloc((count + 1) * sizeof *lines);
    bool right = lines && read_lines(file, places, lines);
    if (right && options->sort)
        qsort(lines, count, sizeof *lines, *options->sort == 's' ? by_size : by_name);
    if (right) print_lines(lines, places->count);
    for (size_t i = 0; i < count && lines; i++) memory_free(lines[i].shape);
    memory_free(lines);
    return right;
}

int ckpt_ls(const ckpt_options *options, char **words, int count)
{
    ED_SCOPE;
    (void)count;
    ckpt_file file;
    ckpt_places places = {NULL, 0};
    char *match = (char *)options->match;
    bool right = ckpt_open(&file, words[0]) && ckpt_select(&file, &match, match ? 1 : 0, &places) &&
                 list(options, &file, &places);
    if (!right) ckpt_complain();
    memory_free(places.at);
    ckpt_close(&file);
    return right ? EXIT_SAME : EXIT_TROUBLE;
}
