/*
 * eddy-ckpt diff: tensors are paired by name. Two numbers are equal if |a - b| <= A + R max(|a|,
 * |b|); NaN equals NaN, an infinity only itself. Tensors without numbers, such as strings, are
 * compared byte by byte.
 *
 * A tensor of the first file is read into memory, that of the second file is streamed.
 */
#include "programs/ckpt.h"
#include <fnmatch.h>
#include <math.h>
#include <string.h>

/* ---- Numbers --------------------------------------------------------------------------------- */

struct comparison {
    const ckpt_options *options;
    const ckpt_numbers *numbers;
    const uint8_t *at, *end; /* the rest of the first tensor */
    int64_t differing, unpaired_nans;
    double absolute, relative; /* the largest */
};

/* |a - b|, exact for 64-bit integers: in float64 neighbours would be equal. */
static double distance(io_dtype dtype, const uint8_t *p, const uint8_t *q, double a, double b)
{
    if (dtype != IO_INT64 && dtype != IO_UINT64) return a == b ? 0 : fabs(a - b);
    uint64_t x, y, sign = dtype == IO_INT64 ? 1ull << 63 : 0;
    memcpy(&x, p, sizeof x);
    memcpy(&y, q, sizeof y);
    x ^= sign; /* maps the order of signed integers to that of unsigned ones */
    y ^= sign;
    return (double)(x > y ? x - y : y - x);
}

static void compare_numbers(struct comparison *c, double a, double b, double apart)
{
    if (isnan(a) || isnan(b)) {
        bool both = isnan(a) && isnan(b);
        c->unpaired_nans += !both;
        c->differing += !both;
        return;
    }
    double size = fmax(fabs(a), fabs(b));
    bool close = apart <= c->options->atol + c->options->rtol * size;
    if (!apart || (close && isfinite(size))) return;
    c->differing++;
    c->absolute = fmax(c->absolute, apart);
    c->relative = fmax(c->relative, isinf(apart) ? INFINITY : apart / size);
}

static void compare_block(void *user, const uint8_t *from, size_t n)
{
    struct comparison *c = user;
    size_t width = c->numbers->width, left = (size_t)(c->end - c->at) / width;
    const uint8_t *first = c->at;
    if (n > left) n = left;
    c->at += n * width;
    if (!memcmp(first, from, n * width)) return;
    double a[CKPT_BLOCK], b[CKPT_BLOCK];
    ckpt_decode(c->numbers, first, n, a);
    ckpt_decode(c->numbers, from, n, b);
    for (size_t i = 0; i < n; i++)
        compare_numbers(
            c, a[i], b[i],
            distance(c->numbers->dtype, first + i * width, from + i * width, a[i], b[i]));
}

static void print_comparison(const char *name, const struct comparison *c)
{
    ckpt_print_name(stdout, name);
    printf(": %lld of %lld differ", (long long)c->differing, (long long)c->numbers->count);
    if (c->differing > c->unpaired_nans)
        printf(", by at most %.7g, relative %.7g", c->absolute, c->relative);
    if (c->unpaired_nans) printf(", %lld in being NaN", (long long)c->unpaired_nans);
    putchar('\n');
}

/* ---- Elements -------------------------------------------------------------------------------- */

static bool keep(void *user, const void *data, size_t size)
{
    io_buffer *elements = user;
    io_put(elements, data, size);
    return !elements->failed;
}

/* The rest of the elements of a tensor like that. */
struct rest {
    io_span of;
    bool differ;
};

static bool compare_bytes(void *user, const void *data, size_t size)
{
    struct rest *rest = user;
    size_t n = size < rest->of.size ? size : rest->of.size;
    rest->differ |= n < size || (n && memcmp(rest->of.data, data, n));
    rest->of.data += n;
    rest->of.size -= n;
    return true;
}

enum verdict { SAME, DIFFERENT, NOT_COMPARED, TROUBLE };

static enum verdict compare_elements(const ckpt_options *options, io_span first,
                                     const archive_item *second)
{
    ckpt_numbers numbers;
    bool known =
        ckpt_numbers_of(second, &numbers) && first.size == (size_t)numbers.count * numbers.width;
    if (!known) {
        struct rest rest = {first, false};
        if (!archive_stream(second, compare_bytes, &rest)) return TROUBLE;
        if (!rest.differ && !rest.of.size) return SAME;
        ckpt_print_name(stdout, second->name);
        puts(": the elements differ");
        return DIFFERENT;
    }
    struct comparison c = {options, &numbers, .at = first.data, .end = first.data + first.size};
    if (!ckpt_stream(second, &numbers, compare_block, &c, NULL)) return TROUBLE;
    if (c.differing) print_comparison(second->name, &c);
    return c.differing ? DIFFERENT : SAME;
}

/* Allocates memory for all elements at once: a growing buffer would need twice as much. Sizes
 * beyond any machine are refused; memory that is not written takes no RAM. */
static enum verdict compare_tensors(const ckpt_options *options, const archive_item *a,
                                    const archive_item *b)
{
    ckpt_numbers numbers;
    bool known = ckpt_numbers_of(a, &numbers);
    size_t room = known ? (size_t)numbers.count * numbers.width : (size_t)a->bytes;
    io_buffer elements = {memory_alloc(room + 1), 0, room + 1, false};
    enum verdict verdict = TROUBLE;
    if (elements.data && archive_stream(a, keep, &elements))
        verdict = compare_elements(options, (io_span){elements.data, elements.size}, b);
    io_buffer_free(&elements);
    return verdict;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static enum verdict other_kind(const ckpt_file *a, int64_t i, const archive_item *x,
                               const ckpt_file *b, int64_t j, const archive_item *y)
{
    char *shape = ckpt_shape_text(x), *other = ckpt_shape_text(y);
    if (shape && other) {
        ckpt_print_name(stdout, x->name);
        printf(": %s %s and %s %s\n", ed_archive_dtype(a->archive, i), shape,
               ed_archive_dtype(b->archive, j), other);
    }
    enum verdict verdict = shape && other ? DIFFERENT : TROUBLE;
    memory_free(shape);
    memory_free(other);
    return verdict;
}

/* A damaged entry has no dtype; reading it reports the damage. */
static bool has_dtype(const archive_item *item)
{
    return item->dtype != IO_NONE || ed_archive_verify(item->from, item->index);
}

static enum verdict compare_pair(const ckpt_options *options, ckpt_file *a, int64_t i, ckpt_file *b,
                                 int64_t j)
{
    archive_item x = archive_item_of(a->archive, i), y = archive_item_of(b->archive, j);
    if (!has_dtype(&x) || !has_dtype(&y)) return TROUBLE;
    bool alike = !strcmp(ed_archive_dtype(a->archive, i), ed_archive_dtype(b->archive, j)) &&
                 x.rank == y.rank &&
                 (!x.rank || !memcmp(x.shape, y.shape, (size_t)x.rank * sizeof *x.shape));
    return alike ? compare_tensors(options, &x, &y) : other_kind(a, i, &x, b, j, &y);
}

/* Strings that only a bundle can store are not missing in another format, nor are digests
 * anywhere. */
static enum verdict only_in(const ckpt_file *file, int64_t i, const ckpt_file *other)
{
    archive_item item = archive_item_of(file->archive, i);
    if (item.dtype == IO_STRING && ckpt_bundle(file) && !ckpt_bundle(other)) return NOT_COMPARED;
    printf("only in %s: ", file->given);
    ckpt_print_name(stdout, item.name);
    putchar('\n');
    return DIFFERENT;
}

static bool left_out(const ckpt_options *options, const char *name)
{
    return !strcmp(name, BUNDLE_DIGESTS) || (options->match && fnmatch(options->match, name, 0));
}

/* The number of tensors with each result. */
struct tally {
    int64_t of[TROUBLE + 1];
};

static void count_in(struct tally *tally, enum verdict verdict)
{
    tally->of[verdict]++;
    if (verdict != TROUBLE) return;
    fflush(stdout);
    ckpt_complain();
}

/* "1 tensor differs" */
static void print_count(int64_t count, const char *one, const char *many)
{
    printf("%lld %s", (long long)count, count == 1 ? one : many);
}

static int conclude(const struct tally *tally)
{
    int64_t same = tally->of[SAME], different = tally->of[DIFFERENT], trouble = tally->of[TROUBLE];
    if (different || trouble) {
        print_count(different, "tensor differs, ", "tensors differ, ");
        print_count(same, "is the same", "are the same");
    } else {
        print_count(same, "tensor, all the same", "tensors, all the same");
    }
    if (trouble) printf(", %lld can't be read", (long long)trouble);
    if (tally->of[NOT_COMPARED])
        printf("; %lld of strings not compared", (long long)tally->of[NOT_COMPARED]);
    putchar('\n');
    return trouble ? EXIT_TROUBLE : different ? EXIT_DIFFERENT : EXIT_SAME;
}

static int compare_files(const ckpt_options *options, ckpt_file *a, ckpt_file *b)
{
    struct tally tally = {{0}};
    for (int64_t i = 0; i < a->count; i++) {
        const char *name = ed_archive_name(a->archive, i);
        if (left_out(options, name)) continue;
        int64_t j = ed_archive_find(b->archive, name);
        count_in(&tally, j < 0 ? only_in(a, i, b) : compare_pair(options, a, i, b, j));
    }
    for (int64_t j = 0; j < b->count; j++) {
        const char *name = ed_archive_name(b->archive, j);
        if (!left_out(options, name) && ed_archive_find(a->archive, name) < 0)
            count_in(&tally, only_in(b, j, a));
    }
    return conclude(&tally);
}

int ckpt_diff(const ckpt_options *options, char **words, int count)
{
    ED_SCOPE;
    (void)count;
    ckpt_file a = {.given = NULL}, b = {.given = NULL};
    int code = EXIT_TROUBLE;
    if (ckpt_open(&a, words[0]) && ckpt_open(&b, words[1]))
        code = compare_files(options, &a, &b);
    else
        ckpt_complain();
    ckpt_close(&a);
    ckpt_close(&b);
    return code;
}
