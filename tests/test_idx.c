/* The IDX reader: every type, plain and compressed, and files that lie. */
#include "data/idx.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <cmocka.h>

static char path[64];
static int live, calls, failing;
static size_t largest;

static void *resize(void *old, size_t size)
{
    if (!size) {
        live -= old != NULL;
        free(old);
        return NULL;
    }
    if (failing && ++calls >= failing) return NULL;
    if (size > largest) largest = size;
    void *new = realloc(old, size);
    live += new && !old;
    return new;
}

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

static void refused(const char *why)
{
    struct idx idx;
    char error[300] = "";
    largest = 0;
    assert_false(idx_read(path, resize, &idx, error, sizeof error));
    assert_int_equal(live, 0);
    assert_null(idx.data);
    assert_non_null(strstr(error, path));
    if (!strstr(error, why)) fail_msg("said '%s', expected '%s'", error, why);
}

static struct idx accepted(void)
{
    struct idx idx;
    char error[300] = "";
    if (!idx_read(path, resize, &idx, error, sizeof error)) fail_msg("%s", error);
    return idx;
}

static void drop(struct idx *idx)
{
    resize(idx->data, 0);
    assert_int_equal(live, 0);
}

static void types(void **state)
{
    (void)state;
    static const unsigned char header[] = {0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1};
    static const struct {
        int type, width;
        unsigned char bytes[16];
    } cases[] = {
        {IDX_UINT8, 1, {7, 255}},
        {IDX_INT8, 1, {7, 255}},
        {IDX_INT16, 2, {0, 7, 255, 255}},
        {IDX_INT32, 4, {0, 0, 0, 7, 255, 255, 255, 255}},
        {IDX_FLOAT32, 4, {0x40, 0xe0, 0, 0, 0xbf, 0x80, 0, 0}},
        {IDX_FLOAT64, 8, {0x40, 0x1c, 0, 0, 0, 0, 0, 0, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0}},
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
            struct idx idx = accepted();
            assert_int_equal(idx.type, cases[i].type);
            assert_int_equal(idx.ndim, 2);
            assert_int_equal(idx.shape[0], 2);
            assert_int_equal(idx.shape[1], 1);
            assert_int_equal(idx.size, n);
            double a = 0, b = 0;
            switch (idx.type) {
            case IDX_UINT8: a = idx.data[0], b = idx.data[1] - 256; break;
            case IDX_INT8: a = ((int8_t *)idx.data)[0], b = ((int8_t *)idx.data)[1]; break;
            case IDX_INT16: a = ((int16_t *)idx.data)[0], b = ((int16_t *)idx.data)[1]; break;
            case IDX_INT32: a = ((int32_t *)idx.data)[0], b = ((int32_t *)idx.data)[1]; break;
            case IDX_FLOAT32: a = ((float *)idx.data)[0], b = ((float *)idx.data)[1]; break;
            case IDX_FLOAT64: a = ((double *)idx.data)[0], b = ((double *)idx.data)[1]; break;
            }
            assert_true(a == 7 && b == -1);
            drop(&idx);
        }
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
        struct idx idx = accepted();
        assert_int_equal(idx.size, N);
        assert_memory_equal(idx.data, file + 8, N);
        drop(&idx);
    }
}

static void damaged(void **state)
{
    (void)state;
    static const unsigned char good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 99};
    unsigned char file[200];
    enum { SIZE = 18 };

    for (size_t n = 0; n < SIZE; n++) { /* every truncation */
        const char *why = n < 4 ? "no IDX" : n < 12 ? "inside its header" : "the file has";
        write_plain(good, n);
        refused(why);
        write_zipped(good, n, "wb");
        refused(why);
    }
    write_plain(good, SIZE + 1);
    refused("goes on after");
    write_zipped(good, SIZE + 1, "wb");
    refused("goes on after");

    struct {
        int at;
        unsigned char byte;
        const char *why;
    } changes[] = {{0, 1, "no IDX"},     {1, 8, "no IDX"},        {2, 0, "element type"},
                   {2, 10, "0x0a"},      {3, 0, "0 dimensions"},  {3, 9, "9 dimensions"},
                   {7, 0, "has size 0"}, {4, 255, "the file has"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        memcpy(file, good, SIZE);
        file[changes[i].at] = changes[i].byte;
        write_plain(file, SIZE);
        refused(changes[i].why);
        assert_true(largest <= 1 << 16);
    }

    memset(file, 255, sizeof file); /* 2^32 - 1 in each of eight dimensions */
    memcpy(file, (unsigned char[4]){0, 0, 14, 8}, 4);
    write_plain(file, sizeof file);
    refused("too large");
    file[3] = 1; /* 32 GiB */
    write_plain(file, sizeof file);
    refused("the file has");
    assert_true(largest <= 1 << 16);

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
    for (size_t at = 0; at < n;
         at++) { /* a flipped bit is noticed or changes nothing */
        struct idx idx;
        char error[300];
        file[at] ^= 16;
        write_plain(file, n);
        bool same = idx_read(path, resize, &idx, error, sizeof error);
        if (same) {
            assert_memory_equal(idx.data, good + 8, 4000);
            drop(&idx);
        }
        assert_int_equal(live, 0);
        file[at] ^= 16;
    }
    file[n] = 'x';
    write_plain(file, n + 1);
    refused("gzip");
}

static void no_memory(void **state)
{
    (void)state;
    static unsigned char file[200008] = {0, 0, 8, 1, 0, 3, 13, 64};
    for (int zipped = 0; zipped < 2; zipped++) {
        if (zipped)
            write_zipped(file, sizeof file, "wb");
        else
            write_plain(file, sizeof file);
        int refusals = 0;
        for (failing = 1;; failing++) {
            struct idx idx;
            char error[300] = "";
            calls = 0;
            bool good = idx_read(path, resize, &idx, error, sizeof error);
            if (good) {
                drop(&idx);
                break;
            }
            assert_non_null(strstr(error, "out of memory"));
            assert_int_equal(live, 0);
            refusals++;
        }
        failing = 0;
        assert_true(refusals >= 2);
    }
}

static int begin(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/eddy-idx-XXXXXX");
    int file = mkstemp(path);
    if (file >= 0) close(file);
    return file < 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types),        cmocka_unit_test(large),     cmocka_unit_test(damaged),
        cmocka_unit_test(damaged_gzip), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
