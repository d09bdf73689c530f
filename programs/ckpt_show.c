/* eddy-ckpt show: a few lines per tensor. Minimum, maximum, mean and standard deviation (of the
 * population: divided by n) are of the finite numbers; the others are counted. */
#include "programs/ckpt.h"
#include <math.h>
#include <string.h>

/* ---- Statistics ------------------------------------------------------------------------------ */

/* Mean and sum of squared differences from it are computed for each block of numbers and merged
 * (update of Chan, Golub and LeVeque): large means and long tensors lose no precision. */
struct statistics {
    const ckpt_numbers *numbers;
    int64_t finite, zeros, nans, infinities;
    double min, max, mean, squares;
};

static void merge(struct statistics *s, int64_t n, double mean, double squares)
{
    double all = (double)(s->finite + n), distance = s->finite ? mean - s->mean : 0;
    if (!s->finite) s->mean = mean;
    s->mean += distance * ((double)n / all);
    s->squares += squares + distance * distance * ((double)s->finite * (double)n / all);
    s->finite += n;
}

/* For numbers whose sum overflows. */
static double careful_mean(const double *x, size_t n)
{
    double mean = 0;
    for (size_t i = 0; i < n; i++) mean += x[i] / (double)(i + 1) - mean / (double)(i + 1);
    return mean;
}

static void take_block(void *user, const uint8_t *from, size_t count)
{
    struct statistics *s = user;
    double x[CKPT_BLOCK], sum = 0, squares = 0;
    size_t n = 0;
    ckpt_decode(s->numbers, from, count, x);
    for (size_t i = 0; i < count; i++) {
        s->nans += isnan(x[i]) != 0;
        s->infinities += isinf(x[i]) != 0;
        s->zeros += x[i] == 0;
        if (isfinite(x[i])) x[n++] = x[i];
    }
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        s->min = x[i] < s->min ? x[i] : s->min;
        s->max = x[i] > s->max ? x[i] : s->max;
    }
    double mean = sum / (double)(n ? n : 1);
    if (isinf(mean)) mean = careful_mean(x, n);
    for (size_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    if (n) merge(s, (int64_t)n, mean, squares);
}

static void print_statistics(const struct statistics *s, const char *dtype)
{
    bool whole = !strstr(dtype, "float") && !strstr(dtype, "complex");
    if (s->finite)
        printf(whole ? "  min %.0f, max %.0f, mean %.7g, stddev %.7g\n"
                     : "  min %.7g, max %.7g, mean %.7g, stddev %.7g\n",
               s->min, s->max, s->mean, sqrt(s->squares / (double)s->finite));
    printf("  %lld zero, %lld NaN, %lld infinite%s\n", (long long)s->zeros, (long long)s->nans,
           (long long)s->infinities,
           strstr(dtype, "complex") ? "; real and imaginary parts are counted apart" : "");
}

/* ---- Strings --------------------------------------------------------------------------------- */

enum { TEXTS = 10, LETTERS = 160 };

struct strings {
    int64_t printed, count;
    bool whole; /* given by name: all elements are shown, not only the first */
};

static bool print_string(void *user, io_span string)
{
    struct strings *s = user;
    if (!s->whole && s->printed == TEXTS) return true;
    size_t shown = s->whole || string.size <= LETTERS ? string.size : LETTERS;
    fputs("  \"", stdout);
    ckpt_print_text(stdout, string.data, shown);
    if (shown < string.size)
        printf("\"... (%zu bytes)\n", string.size);
    else
        fputs("\"\n", stdout);
    if (++s->printed == TEXTS && !s->whole && s->count > TEXTS)
        printf("  ... (%lld strings)\n", (long long)s->count);
    return true;
}

static bool print_strings(const bundle *b, const archive_item *item, bool whole)
{
    struct strings s = {.count = ckpt_elements(item), .whole = whole};
    return bundle_strings(b, bundle_at(b, item->index), print_string, &s);
}

static bool print_values(const archive_item *item)
{
    ED_SCOPE;
    if (!io_dtype_to(item->dtype) || item->rank > ED_MAX_RANK) return true;
    const char *values = ed_to_string(ed_archive_tensor(item->from, item->index));
    if (values) puts(values);
    return values;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static bool print_head(const archive_item *item, const char *dtype)
{
    char *shape = ckpt_shape_text(item);
    if (!shape) return false;
    ckpt_print_name(stdout, item->name);
    printf("\n  %s %s, %lld byte%s\n", dtype, shape, (long long)item->bytes,
           item->bytes == 1 ? "" : "s");
    memory_free(shape);
    return true;
}

static bool print_numbers(const archive_item *item, const char *dtype, bool digest)
{
    ckpt_numbers numbers;
    struct statistics s = {.numbers = &numbers, .min = INFINITY, .max = -INFINITY};
    bool known = ckpt_numbers_of(item, &numbers);
    io_digester *digester = digest ? io_digest_begin() : NULL;
    bool right = (!digest || digester) &&
                 ckpt_stream(item, &numbers, known ? take_block : NULL, &s, digester);
    if (right && known) print_statistics(&s, dtype);
    if (right && digest) {
        char digits[33];
        io_digest_text(io_digest_end(digester), digits);
        printf("  XXH3-128 %s\n", digits);
    }
    memory_free(digester);
    return right;
}

static bool show(const ckpt_options *options, ckpt_file *file, int64_t i, bool by_name)
{
    archive_item item = archive_item_of(file->archive, i);
    const char *dtype = ed_archive_dtype(file->archive, i);
    const bundle *strings = item.dtype == IO_STRING ? ckpt_bundle(file) : NULL;
    if (!print_head(&item, dtype)) return false;
    if (!print_numbers(&item, dtype, options->digest)) return false;
    return strings ? print_strings(strings, &item, by_name) : by_name ? print_values(&item) : true;
}

/* A damaged tensor is reported, and the next one shown. */
static bool show_all(const ckpt_options *options, ckpt_file *file, const ckpt_places *places,
                     char **words, int count)
{
    bool right = true;
    for (int64_t i = 0; i < places->count; i++) {
        bool by_name = false;
        const char *name = ed_archive_name(file->archive, places->at[i]);
        for (int w = 0; w < count; w++) by_name |= !strcmp(words[w], name);
        if (show(options, file, places->at[i], by_name)) continue;
        fflush(stdout);
        ckpt_complain();
        right = false;
    }
    return right;
}

int ckpt_show(const ckpt_options *options, char **words, int count)
{
    ED_SCOPE;
    ckpt_file file;
    ckpt_places places = {NULL, 0};
    bool right = ckpt_open(&file, words[0]) &&
                 (options->graph ? ckpt_print_graph(&file)
                                 : ckpt_select(&file, words + 1, count - 1, &places));
    if (!right) ckpt_complain();
    right = right && show_all(options, &file, &places, words + 1, count - 1);
    memory_free(places.at);
    ckpt_close(&file);
    return right ? EXIT_SAME : EXIT_TROUBLE;
}
