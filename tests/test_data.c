/* Where batches come from: IDX files of every type, plain and compressed, files that lie, datasets
 * and their order. */
#include "data/data.h"
#include "tensor/core.h"
#include "tests/skip.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

static char path[64], dir[64];

static void write_plain(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void write_zipped(const void *bytes, size_t n, const char *mode)
{
    gzFile f = gzopen(path, mode);
    assert_non_null(f);
    if (n) assert_int_equal(gzwrite(f, bytes, (unsigned)n), n);
    gzclose(f);
}

/* Refused with a sentence that names the file. */
static void refused_at_any_cost(const char *why)
{
    ed_memory before = ed_memory_stats();
    assert_null(ed_read_idx(path));
    assert_true(ed_failed());
    if (!strstr(ed_error(), why) || !strstr(ed_error(), path))
        fail_msg("said '%s', expected '%s'", ed_error(), why);
    ed_clear_error();
    assert_int_equal(ed_memory_stats().live_bytes, before.live_bytes);
}

/* And without memory that would matter. */
static void refused(const char *why)
{
    int64_t before = ed_memory_stats().live_bytes;
    ed_memory_reset_peak();
    refused_at_any_cost(why);
    assert_true(ed_memory_stats().peak_bytes - before < 200000);
}

static ed_tensor *accepted(void)
{
    ed_tensor *t = ed_read_idx(path);
    if (!t) fail_msg("%s", ed_error());
    return t;
}

/* Ended without an error, and nobody holds anything. */
static int check_end(void **state)
{
    (void)state;
    if (ed_failed()) print_message("left: %s\n", ed_error());
    return ed_failed() || ed_memory_stats().live_tensors != 0;
}

/* ---- IDX ------------------------------------------------------------------------------------- */

static void types(void **state)
{
    (void)state;
    ED_SCOPE;
    static const unsigned char header[] = {0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1};
    static const struct {
        int type, width;
        ed_dtype dtype;
        unsigned char bytes[16];
    } cases[] = {
        {0x08, 1, ED_UINT8, {7, 255}},
        {0x09, 1, ED_INT32, {7, 255}},
        {0x0b, 2, ED_INT32, {0, 7, 255, 255}},
        {0x0c, 4, ED_INT32, {0, 0, 0, 7, 255, 255, 255, 255}},
        {0x0d, 4, ED_FLOAT32, {0x40, 0xe0, 0, 0, 0xbf, 0x80, 0, 0}},
        {0x0e, 8, ED_FLOAT64, {0x40, 0x1c, 0, 0, 0, 0, 0, 0, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0}},
    };
    for (int zipped = 0; zipped < 2; zipped++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            unsigned char file[sizeof header + 16];
            size_t n = (size_t)cases[i].width * 2;
            memcpy(file, header, sizeof header);
            memcpy(file + sizeof header, cases[i].bytes, n);
            file[2] = (unsigned char)cases[i].type;
            if (zipped)
                write_zipped(file, sizeof header + n, "wb");
            else
                write_plain(file, sizeof header + n);
            ed_tensor *t = accepted();
            assert_int_equal(ed_dtype_of(t), cases[i].dtype);
            assert_int_equal(ed_rank(t), 2);
            assert_int_equal(ed_dim(t, 0), 2);
            assert_int_equal(ed_dim(t, 1), 1);
            assert_true(dtype_load(t->dtype, t->data, 0) == 7);
            assert_true(dtype_load(t->dtype, t->data, 1) == (cases[i].type == 8 ? 255 : -1));
        }
}

/* The widening in place. */
static void widening(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 1000 };
    static unsigned char file[8 + 2 * N] = {0, 0, 9, 1, 0, 0, N >> 8, N & 255};
    for (int i = 0; i < 2 * N; i++) file[8 + i] = (unsigned char)(i * 37 >> 1);
    write_plain(file, 8 + N);
    const int32_t *x = ed_data(accepted());
    for (int i = 0; i < N; i++) assert_int_equal(x[i], (int8_t)file[8 + i]);
    file[2] = 11;
    write_plain(file, 8 + 2 * N);
    x = ed_data(accepted());
    for (int i = 0; i < N; i++)
        assert_int_equal(x[i], (int16_t)(file[8 + 2 * i] << 8 | file[9 + 2 * i]));
}

/* Larger than every buffer, in one gzip member and in two. */
static void large(void **state)
{
    (void)state;
    enum { N = 300000 };
    static unsigned char file[8 + N];
    memcpy(file, (unsigned char[8]){0, 0, 8, 1, 0, N >> 16, N >> 8 & 255, N & 255}, 8);
    for (int i = 0; i < N; i++) file[8 + i] = (unsigned char)(i * 2654435761u >> 13);
    for (int kind = 0; kind < 3; kind++) {
        if (kind == 0) write_plain(file, sizeof file);
        if (kind == 1) write_zipped(file, sizeof file, "wb");
        if (kind == 2) {
            write_zipped(file, 100000, "wb");
            write_zipped(file + 100000, sizeof file - 100000, "ab");
        }
        ED_SCOPE;
        ed_tensor *t = accepted();
        assert_int_equal(ed_size(t), N);
        assert_memory_equal(ed_data(t), file + 8, N);
    }
}

static void damaged(void **state)
{
    (void)state;
    static const unsigned char good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 99};
    unsigned char file[200];
    enum { SIZE = 18 };

    for (size_t n = 0; n < SIZE; n++) { /* every truncation */
        const char *why = n < 4    ? "not an IDX file"
                          : n < 12 ? "end of file in the header"
                                   : "the file has";
        write_plain(good, n);
        refused(why);
        write_zipped(good, n, "wb");
        refused(why);
    }
    write_plain(good, SIZE + 1);
    refused("unexpected data after");
    write_zipped(good, SIZE + 1, "wb");
    refused("unexpected data after");

    struct {
        int at;
        unsigned char byte;
        const char *why;
    } changes[] = {{0, 1, "not an IDX file"}, {1, 8, "not an IDX file"}, {2, 0, "element type"},
                   {2, 10, "0x0a"},           {3, 0, "got 0"},           {3, 9, "got 9"},
                   {7, 0, "has size 0"},      {4, 255, "the file has"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(file, good, SIZE);
        file[changes[i].at] = changes[i].byte;
        write_plain(file, SIZE);
        refused(changes[i].why);
    }

    memset(file, 255, sizeof file); /* 2^32 - 1 in each of eight dimensions */
    memcpy(file, (unsigned char[4]){0, 0, 14, 8}, 4);
    write_plain(file, sizeof file);
    refused("too large");
    file[3] = 1; /* 32 GiB */
    write_plain(file, sizeof file);
    refused("the file has");

    unlink(path);
    refused("No such file");
}

static void damaged_gzip(void **state)
{
    (void)state;
    static unsigned char good[4008] = {0, 0, 8, 1, 0, 0, 15, 160};
    unsigned char file[8000];
    for (int i = 0; i < 4000; i++) good[8 + i] = (unsigned char)(i * i >> 5);
    write_zipped(good, sizeof good, "wb");
    FILE *f = fopen(path, "rb");
    size_t n = fread(file, 1, sizeof file - 1, f);
    fclose(f);
    for (size_t cut = 2; cut < n; cut++) {
        write_plain(file, cut);
        refused("");
    }
    for (size_t at = 0; at < n; at++) {
        ED_SCOPE; /* a flipped bit is noticed or changes nothing */
        file[at] ^= 16;
        write_plain(file, n);
        ed_tensor *t = ed_read_idx(path);
        assert_true(!t == ed_failed());
        if (t) assert_memory_equal(ed_data(t), good + 8, 4000);
        ed_clear_error();
        file[at] ^= 16;
    }
    file[n] = 'x';
    write_plain(file, n + 1);
    refused("gzip");
}

/* Compressed far beyond the usual: counted first, then read if it is true. */
static void dense_gzip(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 3 << 20 };
    unsigned char *file = calloc(N + 9, 1);
    memcpy(file, (unsigned char[8]){0, 0, 8, 1, 0, N >> 16, 0, 0}, 8);
    write_zipped(file, N + 8, "wb");
    const uint8_t *read = ed_data(accepted());
    for (int i = 0; i < N; i++) assert_int_equal(read[i], 0);
    write_zipped(file, N + 9, "wb");
    refused_at_any_cost("unexpected data after");
    write_zipped(file, N + 7, "wb");
    refused("the file has 3145727");
    file[4] = 255; /* 4 GiB */
    write_zipped(file, N + 8, "wb");
    refused("the file has 3145728");
    free(file);
}

/* Every allocation of reading may fail. */
static void no_memory(void **state)
{
    (void)state;
    static unsigned char file[200008] = {0, 0, 8, 1, 0, 3, 13, 64};
    for (int zipped = 0; zipped < 2; zipped++) {
        if (zipped)
            write_zipped(file, sizeof file, "wb");
        else
            write_plain(file, sizeof file);
        int n = 0;
        for (;; n++) {
            ED_SCOPE;
            ed_memory_fail_at(n, n % 2);
            ed_tensor *t = ed_read_idx(path);
            ed_memory_fail_at(-1, false);
            if (t) break;
            assert_int_equal(ed_error_kind(), ED_OUT_OF_MEMORY);
            ed_clear_error();
            assert_int_equal(ed_memory_stats().live_tensors, 0);
        }
        assert_true(n >= (zipped ? 3 : 2));
    }
}

static void names(void **state)
{
    (void)state;
    ED_SCOPE;
    char plain[sizeof path];
    strcpy(plain, path);
    strcat(path, ".gz");
    write_zipped((unsigned char[]){0, 0, 8, 1, 0, 0, 0, 1, 42}, 9, "wb");
    unlink(plain);
    assert_int_equal(ed_item(ed_read_idx(plain)), 42);
    unlink(path);
    strcpy(path, plain);
    assert_null(ed_read_idx(plain));
    assert_int_equal(ed_error_kind(), ED_NOT_FOUND);
    ed_clear_error();
    assert_null(ed_read_idx(NULL));
    assert_int_equal(ed_error_kind(), ED_INVALID_ARGUMENT);
    ed_clear_error();
    assert_null(ed_read_idx("/tmp"));
    assert_int_equal(ed_error_kind(), ED_IO);
    ed_clear_error();
}

/* ---- Datasets -------------------------------------------------------------------------------- */

enum { ROWS = 10 };

#define BATCHES(...)                                                                               \
    (&(const ed_dataset_options)ED_COMPLETE(ED_DATASET_OPTIONS, ed_dataset_options, __VA_ARGS__))

/* x[i] = [10 i, 10 i + 1], y[i] = i */
static ed_dataset *numbered(const ed_dataset_options *options)
{
    float x[2 * ROWS];
    int32_t y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        x[2 * i] = (float)(10 * i);
        x[2 * i + 1] = (float)(10 * i + 1);
        y[i] = i;
    }
    ed_dataset *set = ed_dataset_from_tensors_with(ed_constant(x, ED_SHAPE(ROWS, 2)),
                                                   ed_constant(y, ED_SHAPE(ROWS)), options);
    if (!set) fail_msg("%s", ed_error());
    return set;
}

/* One epoch's labels into order; returns the number of rows. Checks that rows go together. */
static int epoch(ed_dataset *set, int32_t order[ROWS])
{
    ed_tensor *x, *y;
    int n = 0;
    while (ed_dataset_next(set, &x, &y)) {
        assert_int_equal(ed_dim(x, 0), ed_dim(y, 0));
        const float *rows = ed_data(x);
        for (int i = 0; i < ed_dim(y, 0); i++) {
            order[n] = ((const int32_t *)ed_data(y))[i];
            assert_true(rows[2 * i] == (float)(10 * order[n]));
            assert_true(rows[2 * i + 1] == (float)(10 * order[n] + 1));
            n++;
        }
    }
    assert_null(x);
    assert_false(ed_failed());
    return n;
}

static void in_order(void **state)
{
    (void)state;
    ED_SCOPE;
    int32_t order[ROWS];
    ed_dataset *set = numbered(BATCHES(.batch = 4));
    assert_int_equal(ed_dataset_rows(set), ROWS);
    assert_int_equal(ed_dataset_batches(set), 3);
    for (int e = 0; e < 2; e++) {
        assert_int_equal(epoch(set, order), ROWS);
        for (int i = 0; i < ROWS; i++) assert_int_equal(order[i], i);
    }
    set = numbered(BATCHES(.batch = 4, .drop_remainder = true));
    assert_int_equal(ed_dataset_batches(set), 2);
    assert_int_equal(epoch(set, order), 8);
    assert_int_equal(epoch(set, order), 8);
    set = numbered(NULL);
    assert_int_equal(ed_dataset_batches(set), 1);
    assert_int_equal(epoch(set, order), ROWS);
    assert_int_equal(ed_size(ed_dataset_x(set)), 2 * ROWS);
    assert_int_equal(ed_size(ed_dataset_y(set)), ROWS);
}

static void shuffled(void **state)
{
    (void)state;
    ED_SCOPE;
    int32_t first[ROWS], second[ROWS], again[ROWS];
    const ed_dataset_options *options = BATCHES(.batch = 3, .shuffle = true, .seed = 5);
    ed_dataset *set = numbered(options), *same = numbered(options);
    assert_int_equal(epoch(set, first), ROWS);
    assert_int_equal(epoch(set, second), ROWS);
    assert_memory_not_equal(first, second, sizeof first);
    int seen = 0;
    for (int i = 0; i < ROWS; i++) seen |= 1 << first[i];
    assert_int_equal(seen, (1 << ROWS) - 1);
    epoch(same, again);
    assert_memory_equal(first, again, sizeof first);

    ed_tensor *x; /* a batch of the second epoch, then on to the third */
    assert_true(ed_dataset_next(same, &x, NULL));
    assert_true(ed_dataset_rewind(same));
    epoch(same, again);
    epoch(set, first);
    assert_memory_equal(first, again, sizeof first);

    assert_true(ed_dataset_next(same, &x, NULL)); /* the same by a loop that begins */
    assert_true(ed_dataset_begin(same));
    assert_true(ed_dataset_begin(same));
    epoch(set, first);
    epoch(set, first);
    epoch(same, again);
    assert_memory_equal(first, again, sizeof first);

    ed_set_seed(1); /* orders of the process's source */
    const ed_dataset_options *from_source = BATCHES(.batch = 3, .shuffle = true);
    epoch(numbered(from_source), first);
    epoch(numbered(from_source), second);
    ed_set_seed(1);
    epoch(numbered(from_source), again);
    assert_memory_not_equal(first, second, sizeof first);
    assert_memory_equal(first, again, sizeof first);
}

/* A batch stays what it was for whoever holds it. */
static void lending(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x, *y;
    ed_dataset *set = numbered(BATCHES(.batch = 5, .shuffle = true, .seed = 1));
    assert_true(ed_dataset_next(set, &x, &y));
    float before[10], after[10];
    ed_retain(x);
    ed_copy_to(x, before, 10);
    assert_true(ed_dataset_next(set, NULL, &y));
    ed_copy_to(x, after, 10);
    assert_memory_equal(before, after, sizeof before);
    ed_release(x);
    ed_fail(ED_INVALID_ARGUMENT, "some error");
    assert_false(ed_dataset_next(set, &x, &y));
    ed_clear_error();
}

/* Large enough for threads: the same rows as in order. */
static void many_rows(void **state)
{
    (void)state;
    ED_SCOPE;
    enum { N = 3000, WIDE = 200 };
    float *x = malloc(N * WIDE * sizeof *x);
    int32_t *y = malloc(N * sizeof *y);
    for (int i = 0; i < N * WIDE; i++) x[i] = (float)i;
    for (int i = 0; i < N; i++) y[i] = i;
    ed_dataset *set =
        ed_dataset_from_tensors(ed_constant(x, ED_SHAPE(N, WIDE)), ed_constant(y, ED_SHAPE(N)),
                                .batch = N, .shuffle = true, .seed = 2);
    ed_tensor *bx, *by;
    assert_true(ed_dataset_next(set, &bx, &by));
    const int32_t *rows = ed_data(by);
    const float *got = ed_data(bx);
    for (int i = 0; i < N; i++)
        assert_memory_equal(got + i * WIDE, x + rows[i] * WIDE, WIDE * sizeof *x);
    free(x), free(y);
}

static void bad_datasets(void **state)
{
    (void)state;
    ED_SCOPE;
    ed_tensor *x = ed_constant(((float[]){1, 2, 3}), ED_SHAPE(3)), *out;
    ed_tensor *two = ed_constant(((float[]){1, 2}), ED_SHAPE(2));
    assert_null(ed_dataset_from_tensors(x, two));
    assert_non_null(strstr(ed_error(), "float32[3]"));
    assert_non_null(strstr(ed_error(), "float32[2]"));
    ed_clear_error();
    assert_null(ed_dataset_from_tensors(NULL, x));
    ed_clear_error();
    assert_null(ed_dataset_from_tensors(x, NULL));
    ed_clear_error();
    assert_null(ed_dataset_from_tensors(x, ed_constant(((float[]){1}), ED_SHAPE())));
    ed_clear_error();
    assert_null(ed_dataset_from_tensors(x, x, .batch = -1));
    ed_clear_error();
    assert_null(ed_dataset_from_tensors(x, x, .pixels = true));
    assert_non_null(strstr(ed_error(), "x must be uint8"));
    ed_clear_error();
    assert_false(ed_dataset_next(NULL, &out, &out));
    ed_clear_error();
    assert_false(ed_dataset_rewind(NULL));
    ed_clear_error();
    assert_null(ed_dataset_x(NULL));
    ed_clear_error();
    assert_null(ed_dataset_y(NULL));
    ed_clear_error();
    assert_int_equal(ed_dataset_rows(NULL), 0);
    assert_int_equal(ed_dataset_batches(NULL), 0);
    ed_dataset *empty =
        ed_dataset_from_tensors(ed_constant(((float[]){0}), ED_SHAPE(0, 3)),
                                ed_constant(((float[]){0}), ED_SHAPE(0)), .shuffle = true);
    assert_non_null(empty);
    assert_int_equal(ed_dataset_batches(empty), 0);
    assert_false(ed_dataset_next(empty, &out, NULL));
    assert_false(ed_failed());
}

static void batches_without_memory(void **state)
{
    (void)state;
    static const int32_t labels[ROWS];
    static const float numbers[2 * ROWS];
    int n = 0;
    for (bool done = false; !done; n++) {
        ED_SCOPE;
        ed_tensor *x, *y;
        ed_memory_fail_at(n, false);
        ed_dataset *set = ed_dataset_from_tensors(ed_constant(numbers, ED_SHAPE(ROWS, 2)),
                                                  ed_constant(labels, ED_SHAPE(ROWS)), .batch = 7,
                                                  .shuffle = true, .seed = 3);
        bool both = ed_dataset_next(set, &x, &y) && ed_dataset_next(set, &x, &y);
        done = !ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        assert_true(done ? both : ed_failed());
        ed_clear_error();
    }
    assert_true(n > 5);
}

/* ---- MNIST ----------------------------------------------------------------------------------- */

static void write_part(const char *name, const void *bytes, size_t n)
{
    char kept[sizeof path];
    strcpy(kept, path);
    snprintf(path, sizeof path, "%.30s/%.30s", dir, name);
    if (strstr(name, ".gz"))
        write_zipped(bytes, n, "wb");
    else
        write_plain(bytes, n);
    strcpy(path, kept);
}

static void mnist(void **state)
{
    (void)state;
    ED_SCOPE;
    static const char *const parts[] = {"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte",
                                        "train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
    unsigned char images[16 + 5 * 6] = {0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 3};
    unsigned char labels[8 + 5] = {0, 0, 8, 1, 0, 0, 0, 5, 9, 8, 7, 6, 5};
    for (int i = 0; i < 30; i++) images[16 + i] = (unsigned char)(i * 8 + 15);
    assert_int_equal(mkdir(dir, 0700), 0);
    write_part(parts[0], images, sizeof images);
    write_part(parts[1], labels, sizeof labels);
    write_part(parts[2], images, sizeof images);
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        ed_tensor *x, *y;
        ed_dataset *set = ed_dataset_mnist("test", .dir = dir, .batch = 2, .shuffle = shuffle);
        if (!set) fail_msg("%s", ed_error());
        assert_int_equal(ed_dataset_batches(set), 3);
        int n = 0;
        while (ed_dataset_next(set, &x, &y)) {
            assert_int_equal(ed_dtype_of(x), ED_FLOAT32);
            assert_int_equal(ed_dtype_of(y), ED_INT32);
            assert_int_equal(ed_rank(x), 3);
            const float *pixels = ed_data(x);
            for (int i = 0; i < ed_dim(x, 0); i++, n++) {
                int row = 9 - ((const int32_t *)ed_data(y))[i];
                for (int j = 0; j < 6; j++)
                    assert_true(pixels[6 * i + j] == (float)images[16 + 6 * row + j] / 255);
            }
        }
        assert_int_equal(n, 5);
        assert_int_equal(ed_dtype_of(ed_dataset_x(set)), ED_FLOAT32);
        assert_true(((const float *)ed_data(ed_dataset_x(set)))[30 - 1] == 247 / 255.0f);
        assert_int_equal(ed_size(ed_dataset_y(set)), 5);
    }
    assert_null(ed_dataset_mnist("train", .dir = dir)); /* without labels */
    assert_non_null(strstr(ed_error(), "train-labels-idx1-ubyte"));
    ed_clear_error();
    write_part(parts[3], images, sizeof images);
    assert_null(ed_dataset_mnist("train", .dir = dir));
    assert_non_null(strstr(ed_error(), "images must be uint8"));
    ed_clear_error();
    assert_null(ed_dataset_mnist("validation", .dir = dir));
    ed_clear_error();
    assert_null(ed_dataset_mnist("train"));
    ed_clear_error();
    assert_null(ed_dataset_mnist(NULL, .dir = dir));
    ed_clear_error();
    for (int i = 0; i < 4; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%s", dir, parts[i]);
        unlink(name);
    }
    rmdir(dir);
}

/* MNIST itself, where EDDY_DATA names a folder that has it. */
static void real_mnist(void **state)
{
    (void)state;
    ED_SCOPE;
    const char *data = getenv("EDDY_DATA");
    char folder[4096];
    if (!data || snprintf(folder, sizeof folder, "%s/mnist", data) >= (int)sizeof folder ||
        access(folder, R_OK))
        skip_since("EDDY_DATA has no MNIST");
    static const struct {
        const char *split;
        int64_t rows, pixels;
        int counts[10];
    } known[] = {
        {"train", 60000, 1567298545, {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}},
        {"test", 10000, 264923200, {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}},
    };
    for (int k = 0; k < 2; k++) {
        ed_dataset *set =
            ed_dataset_mnist(known[k].split, .dir = folder, .batch = 1000, .shuffle = true);
        if (!set) fail_msg("%s", ed_error());
        assert_int_equal(ed_dataset_rows(set), known[k].rows);
        ed_tensor *x, *y;
        int64_t pixels = 0;
        int counts[10] = {0};
        while (ed_dataset_next(set, &x, &y)) {
            const float *p = ed_data(x);
            const int32_t *label = ed_data(y);
            for (int64_t i = 0; i < ed_size(x); i++) pixels += lround((double)p[i] * 255);
            for (int64_t i = 0; i < ed_size(y); i++) counts[label[i]]++;
        }
        assert_int_equal(pixels, known[k].pixels);
        assert_memory_equal(counts, known[k].counts, sizeof counts);
    }
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void write_text(const char *s)
{
    write_plain(s, strlen(s));
}

static void tables(void **state)
{
    (void)state;
    ED_SCOPE;
    write_text("\xef\xbb\xbf age , income,\"odd, \"\"name\"\"\"\r\n1,2.5,\"3\"\r\n\r\n 4 ,NA, "
               "1e3\n\n5,,-inf");
    ed_tensor *t = ed_read_csv(path);
    assert_non_null(t);
    assert_true(t->rank == 2 && t->shape[0] == 3 && t->shape[1] == 3 && t->dtype == ED_FLOAT32);
    const float *v = (const float *)t->data;
    assert_true(v[0] == 1 && v[1] == 2.5f && v[2] == 3 && v[3] == 4 && isnan(v[4]) && v[5] == 1000);
    assert_true(v[6] == 5 && isnan(v[7]) && v[8] == -INFINITY);
    const char *const *names = ed_read_csv_names(path);
    assert_string_equal(names[0], "age");
    assert_string_equal(names[1], "income");
    assert_string_equal(names[2], "odd, \"name\"");
    assert_null(names[3]);
    t = ed_read_csv(path, .columns = "\"odd, \"\"name\"\"\", age", .dtype = ED_FLOAT64);
    assert_true(t->shape[1] == 2 && ((double *)t->data)[2] == 1000 && ((double *)t->data)[3] == 4);
    t = ed_read_csv(path, .columns = "age", .dtype = ED_INT64);
    assert_true(t->shape[1] == 1 && ((int64_t *)t->data)[2] == 5);
    t = ed_read_csv(path, .columns = "income", .missing = 7);
    assert_true(((float *)t->data)[1] == 7 && ((float *)t->data)[2] == 7);

    write_text("1;2\r3;4\r");
    t = ed_read_csv(path, .header = false, .delimiter = ";", .columns = "2,1", .dtype = ED_UINT8);
    const uint8_t turned[] = {2, 1, 4, 3};
    assert_memory_equal(t->data, turned, sizeof turned);
    write_text("a\tb\n\t1\n");
    t = ed_read_csv(path, .delimiter = "\t");
    assert_true(isnan(((float *)t->data)[0]) && ((float *)t->data)[1] == 1);
    write_text("a,b");
    t = ed_read_csv(path);
    assert_true(t->shape[0] == 0 && t->shape[1] == 2);
}

static void refused_table(const char *content, const char *why, const ed_read_csv_options *options)
{
    write_text(content);
    const int64_t before = ed_memory_stats().live_bytes;
    {
        ED_SCOPE;
        assert_null(ed_read_csv_with(path, options));
    }
    if (!ed_failed() || !strstr(ed_error(), why))
        fail_msg("said '%s', expected '%s'", ed_error(), why);
    ed_clear_error();
    assert_int_equal(ed_memory_stats().live_bytes, before);
}

#define REFUSED_TABLE(text, why, ...)                                                              \
    refused_table(text, why,                                                                       \
                  &(const ed_read_csv_options)ED_COMPLETE(ED_READ_CSV_OPTIONS,                     \
                                                          ed_read_csv_options, __VA_ARGS__))

static void bad_tables(void **state)
{
    (void)state;
    REFUSED_TABLE("", "the file has no lines", .header = true);
    REFUSED_TABLE("a,b\n1,2\n\n3\n", "line 4: 1 fields, and 2 in the first line", .header = true);
    REFUSED_TABLE("a,b\n1,2\n1,x\n", "line 3: column \"b\": \"x\" is not a number", .header = true);
    REFUSED_TABLE("a\n0x10\n", "\"0x10\" is not a number", .header = true);
    REFUSED_TABLE("a\n1e\n", "\"1e\" is not a number", .header = true);
    REFUSED_TABLE("a\n1.5\n", "1.5 is no value of int32", .dtype = ED_INT32);
    REFUSED_TABLE("a,b\n1,\n", "no value; int32 has no NaN, so set .missing = 0",
                  .dtype = ED_INT32);
    REFUSED_TABLE("a\n\"1\n", "line 2: a quote is not closed", .header = true);
    REFUSED_TABLE("a\n\"1\"2\n", "something follows the closing quote", .header = true);
    REFUSED_TABLE("a,a\n1,2\n", "has two columns \"a\"", .columns = "a");
    REFUSED_TABLE("age,b\n1,2\n", "has no column \"aeg\"; did you mean \"age\"?", .columns = "aeg");
    REFUSED_TABLE("a\n", "delimiter must be one character", .delimiter = ";;");
    REFUSED_TABLE("a\n", "dtype is none", .dtype = ED_DTYPE_NONE);
    unlink(path);
    assert_null(ed_read_csv(path));
    assert_int_equal(ed_error_kind(), ED_NOT_FOUND);
    ed_clear_error();
}

static void tables_without_memory(void **state)
{
    (void)state;
    write_text("age,b\n1,2\n3,4\n");
    for (int64_t i = 0;; i++) {
        ED_SCOPE;
        ed_memory_fail_at(i, false);
        ed_tensor *t = ed_read_csv(path, .columns = "b,age");
        ed_memory_fail_at(-1, false);
        if (t) break;
        assert_true(ed_failed());
        ed_clear_error();
    }
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void assert_words(ed_strings words, ed_strings expected)
{
    assert_non_null(words.values);
    assert_int_equal(words.count, expected.count);
    for (int64_t i = 0; i < expected.count; i++)
        assert_string_equal(words.values[i], expected.values[i]);
}

static void columns_of_words(void **state)
{
    (void)state;
    ED_SCOPE;
    write_text("age,job,town\n1,baker,\"Bad \"\"X\"\"\"\n2,, Elm \n");
    assert_words(ed_read_csv_words(path, .columns = "job"), ED_STRINGS("baker", ""));
    assert_words(ed_read_csv_words(path, .columns = "town,age"),
                 ED_STRINGS("Bad \"X\"", "1", "Elm", "2"));
    write_text("a,b");
    assert_words(ed_read_csv_words(path), ED_STRINGS());
    assert_words(ed_read_csv_words(path, .header = false), ED_STRINGS("a", "b"));
    assert_null(ed_read_csv_words(path, .columns = "c").values);
    assert_non_null(strstr(ed_error(), "read_csv_words: "));
    assert_non_null(strstr(ed_error(), "has no column \"c\""));
    ed_clear_error();
    write_text("a,b\n1,2\n3\n");
    assert_null(ed_read_csv_words(path).values);
    assert_non_null(strstr(ed_error(), "line 3: 1 fields, and 2 in the first line"));
    ed_clear_error();
}

/* The order, the numbers and the words are those of Keras 3.15. */
static void words_as_integers(void **state)
{
    (void)state;
    ED_SCOPE;
    const ed_strings words = ED_STRINGS("b", "a", "c", "a", "d", "c", "B");
    const ed_strings known = ed_vocabulary(words);
    assert_words(known, ED_STRINGS("c", "a", "d", "b", "B"));
    assert_words(ed_vocabulary(words, .max_tokens = 2), ED_STRINGS("c", "a"));
    assert_words(ed_vocabulary(ED_STRINGS()), ED_STRINGS());
    ed_tensor *places = ed_string_lookup(ED_STRINGS("a", "zz", "c"), known);
    assert_true(
        ed_all_close(places, ed_constant(ED_VALUES(int64_t, 2, 0, 1), ED_SHAPE(3)), 0, 0, NULL));
    places = ed_string_lookup(ED_STRINGS("a", "c"), known, .num_oov_indices = 0);
    assert_true(
        ed_all_close(places, ed_constant(ED_VALUES(int64_t, 1, 0), ED_SHAPE(2)), 0, 0, NULL));
    assert_int_equal(ed_size(ed_string_lookup(ED_STRINGS(), known)), 0);
    assert_words(ed_split_words(" The Cat, sat.\tthe dog's\n ran_away! "),
                 ED_STRINGS("the", "cat", "sat", "the", "dogs", "ranaway"));
    assert_words(ed_split_words(" ?!"), ED_STRINGS());
    assert_words(ed_split_words("\xc3\x84 b"), ED_STRINGS("\xc3\x84", "b"));
}

#define REFUSED_WORDS(call, why)                                                                   \
    do {                                                                                           \
        assert_null(call);                                                                         \
        if (!strstr(ed_error(), why)) fail_msg("said '%s', expected '%s'", ed_error(), why);       \
        ed_clear_error();                                                                          \
    } while (0)

static void refused_words(void **state)
{
    (void)state;
    ED_SCOPE;
    const ed_strings known = ED_STRINGS("baker", "clerk"), none = {0};
    const ed_strings twice = ED_STRINGS("a", "b", "a"), hole = {(const char *[]){"a", NULL}, 2};
    REFUSED_WORDS(ed_string_lookup(ED_STRINGS("bakr"), known, .num_oov_indices = 0),
                  "the vocabulary has no \"bakr\"; did you mean \"baker\"?");
    REFUSED_WORDS(ed_string_lookup(known, twice), "\"a\" is in the vocabulary twice");
    REFUSED_WORDS(ed_string_lookup(none, known), "string_lookup: words has no array of strings");
    REFUSED_WORDS(ed_string_lookup(known, none),
                  "string_lookup: vocabulary has no array of strings");
    REFUSED_WORDS(ed_string_lookup(known, known, .num_oov_indices = 2), "num_oov_indices");
    REFUSED_WORDS(ed_vocabulary(hole).values, "words[1] is NULL");
    REFUSED_WORDS(ed_split_words(NULL).values, "split_words: text is NULL");
}

static void words_without_memory(void **state)
{
    (void)state;
    write_text("job\nbaker\nclerk\n");
    for (int64_t i = 0;; i++) {
        ED_SCOPE;
        ed_memory_fail_at(i, false);
        const ed_strings words = ed_read_csv_words(path);
        ed_tensor *t = words.values ? ed_string_lookup(words, ed_vocabulary(words)) : NULL;
        const bool split = t && ed_split_words("a b").values;
        ed_memory_fail_at(-1, false);
        if (split) break;
        assert_true(ed_failed());
        ed_clear_error();
    }
}

static int begin(void **state)
{
    (void)state;
    strcpy(path, "/tmp/eddy-XXXXXX");
    int file = mkstemp(path);
    if (file >= 0) close(file);
    snprintf(dir, sizeof dir, "%.40s.d", path);
    return file < 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, check_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(types),
        TEST(widening),
        TEST(large),
        TEST(damaged),
        TEST(damaged_gzip),
        TEST(dense_gzip),
        TEST(no_memory),
        TEST(names),
        TEST(in_order),
        TEST(shuffled),
        TEST(lending),
        TEST(many_rows),
        TEST(bad_datasets),
        TEST(batches_without_memory),
        TEST(mnist),
        TEST(real_mnist),
        TEST(tables),
        TEST(bad_tables),
        TEST(tables_without_memory),
        TEST(columns_of_words),
        TEST(words_as_integers),
        TEST(refused_words),
        TEST(words_without_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
