/*
 * sort, argsort, top_k, nonzero, boolean_mask and unique of many elements: values of plain loops,
 * with any number of threads. What the definitions promise is checked for all ops alike in
 * test_ops.c.
 */
#include "eddy.h"
#include "tensor/core.h"
#include "tests/asserts.h"
#include <math.h>
#include <stdlib.h>

/* The next of a row of numbers that look random. */
static uint32_t next_number(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* ---- Where a mask is true -------------------------------------------------------------------- */

/* Of n elements those are true for which a number below `of` is 0. */
static ed_tensor *mask_of(int64_t n, uint32_t of)
{
    uint64_t state = 1;
    ed_tensor *mask = scope_give(tensor_new(ED_BOOL, 1, &n));
    for (int64_t i = 0; i < n; i++) mask->data[i] = next_number(&state) % of == 0;
    return mask;
}

/* The indices in a shape whose last axis is `width`, one after the other. */
static void check_indices(ed_tensor *mask, int64_t width)
{
    const int64_t height = mask->size / width;
    ed_tensor *y = ed_nonzero(ed_reshape(mask, ED_SHAPE(height, width)));
    if (!y) fail_msg("%s", ed_error());
    const int64_t *at = ed_data(y), *end = at + ed_size(y);
    for (int64_t i = 0; i < mask->size; i++) {
        if (!mask->data[i]) continue;
        assert_true(at < end && at[0] == i / width && at[1] == i % width);
        at += 2;
    }
    assert_ptr_equal(at, end);
}

/* Of elements of that dtype, in [2, n, width] along axis 1. */
static void check_elements(ed_tensor *mask, ed_dtype dtype, int64_t width)
{
    const int64_t n = mask->size;
    ed_tensor *x = ed_floor_mod(ed_range(0, (double)(2 * n * width), .dtype = ED_INT64), 251);
    x = ed_reshape(ed_cast(x, dtype), ED_SHAPE(2, n, width));
    ed_tensor *y = ed_boolean_mask(x, mask, .axis = 1);
    if (!y) fail_msg("%s", ed_error());
    const double *v = ed_as_doubles(y), *end = v + ed_size(y);
    for (int64_t i = 0; i < 2 * n; i++)
        for (int64_t j = 0; mask->data[i % n] && j < width; j++)
            assert_true(v < end && *v++ == (double)((i * width + j) % 251));
    assert_ptr_equal(v, end);
}

static void masks(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 63, 64, 65, 1000, 65536 + 7, 3 * 65536 + 64};
    static const uint32_t shares[] = {1, 2, 70, 1u << 30};
    const int threads = ed_num_threads();
    for (int t = 1; t <= 3; t++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
                ED_SCOPE;
                ed_set_num_threads(t);
                ed_tensor *mask = mask_of(sizes[k], shares[s]);
                check_elements(mask, s % 2 ? ED_FLOAT32 : ED_FLOAT64, 1);
                check_elements(mask, t % 2 ? ED_UINT8 : ED_FLOAT16, 1);
                check_elements(mask, ED_FLOAT32, t);
                check_indices(mask, sizes[k] ? sizes[k] : 1);
                if (sizes[k] == 1000) check_indices(mask, 5);
            }
    ed_set_num_threads(threads);
}

/* ---- In order -------------------------------------------------------------------------------- */

static const double *compared; /* the elements whose indices are sorted */
static bool descends;

/* By value, NaN last, then by index. */
static int compare(const void *a, const void *b)
{
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const double x = compared[i], y = compared[j];
    if (isnan(x) != isnan(y)) return isnan(x) ? 1 : -1;
    if (x < y) return descends ? 1 : -1;
    if (x > y) return descends ? -1 : 1;
    return i < j ? -1 : 1;
}

/* Each line of x, of n elements that lie `stride` apart, against the C library's sort. */
static void check_order(ed_tensor *x, int64_t n, int64_t stride, int64_t axis, bool descending)
{
    const char *direction = descending ? "DESCENDING" : "ASCENDING";
    ed_tensor *y = ed_sort(x, .axis = axis, .direction = direction);
    ed_tensor *at = ed_argsort(x, .axis = axis, .direction = direction);
    if (!y || !at) fail_msg("%s", ed_error());
    const double *from = ed_as_doubles(x), *got = ed_as_doubles(y);
    const int64_t *indices = ed_data(at);
    double *line = malloc((size_t)n * sizeof *line);
    int64_t *order = malloc((size_t)n * sizeof *order);
    compared = line;
    descends = descending;
    for (int64_t k = 0; k < x->size / n; k++) {
        const int64_t begin = k / stride * stride * n + k % stride;
        for (int64_t i = 0; i < n; i++) line[i] = from[begin + i * stride], order[i] = i;
        qsort(order, (size_t)n, sizeof *order, compare);
        for (int64_t i = 0; i < n; i++) {
            const double want = line[order[i]], have = got[begin + i * stride];
            assert_int_equal(indices[begin + i * stride], order[i]);
            assert_true(want == have || (isnan(want) && isnan(have)));
        }
    }
    free(order);
    free(line);
}

/* Random bits as elements: floats of all exponents, NaN, infinities and zeros among them. */
static ed_tensor *elements(ed_dtype dtype, int64_t n, uint64_t seed)
{
    ed_tensor *x = scope_give(tensor_new(dtype, 1, &n));
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = (uint64_t)next_number(&seed) << 33 ^ next_number(&seed);
        const double special[] = {NAN, INFINITY, -INFINITY, 0, -0.0};
        const double value = special[bits % 5];
        const bool plain = bits % 7;
        switch (dtype) {
        case ED_FLOAT32:
            ((float *)x->data)[i] = plain ? ldexpf((float)(int32_t)bits, -20) : (float)value;
            break;
        case ED_FLOAT64: ((double *)x->data)[i] = plain ? (double)(int64_t)bits : value; break;
        case ED_INT32: ((int32_t *)x->data)[i] = (int32_t)(bits >> 7); break;
        case ED_INT64: ((int64_t *)x->data)[i] = (int64_t)(bits << 1) >> bits % 60 / 5 * 5; break;
        default: ((uint8_t *)x->data)[i] = (uint8_t)bits;
        }
    }
    return x;
}

/* Lines of all lengths at which something else is done, alone, as rows and as columns. */
static void orders(void **state)
{
    (void)state;
    static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT64, ED_INT32, ED_INT64, ED_UINT8};
    static const int64_t lengths[] = {1,   2,   3,   12,  13,   16,   17,   48,   49,   112,  129,
                                      255, 300, 500, 700, 1000, 2048, 2049, 4096, 4097, 70001};
    const int threads = ed_num_threads();
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
            for (int t = 1; t <= 3; t++) {
                ED_SCOPE;
                const int64_t n = lengths[k];
                ed_set_num_threads(t);
                check_order(elements(dtypes[d], n, k), n, 1, 0, t == 2);
                if (n > 4096)
                    check_order(ed_reshape(elements(dtypes[d], 2 * n, k), ED_SHAPE(n, 2)), n, 2, 0,
                                t != 2);
                if (n > 1000) continue;
                ed_tensor *x = elements(dtypes[d], 6 * n, k);
                check_order(ed_reshape(x, ED_SHAPE(6, n)), n, 1, -1, t != 2);
                check_order(ed_reshape(x, ED_SHAPE(2, n, 3)), n, 3, 1, t == 2);
            }
    ed_set_num_threads(threads);
}

/* Elements that agree in all digits but one, or in all, and those that are in order already. */
static void plain_orders(void **state)
{
    (void)state;
    const int threads = ed_num_threads();
    for (int t = 1; t <= 3; t++) {
        ED_SCOPE;
        const int64_t n = 70000;
        ed_set_num_threads(t);
        ed_tensor *up = ed_range(0, (double)n, .dtype = ED_INT64);
        check_order(up, n, 1, 0, true);
        check_order(ed_mul(up, (double)((int64_t)1 << 32)), n, 1, 0, false);
        check_order(ed_floor_mod(up, 3), n, 1, 0, true);
        check_order(ed_zeros(ED_SHAPE(n)), n, 1, 0, true);
        assert_int_equal(ed_size(ed_sort(ed_zeros(ED_SHAPE(3, 0)))), 0);
        assert_int_equal(ed_size(ed_argsort(ed_zeros(ED_SHAPE(0, 3)), .axis = 0)), 0);
    }
    ed_set_num_threads(threads);
}

/* A number of a row that is hard for some way of sorting: organ pipes, saw teeth, few values, equal
 * ones with a single other, the largest keys, the smallest elements where a quicksort may look for
 * its pivot, and elements that move apart. */
static double hard_element(int kind, int64_t i, int64_t n)
{
    switch (kind) {
    case 0: return (double)(i < n / 2 ? i : n - i);
    case 1: return (double)(i % 97);
    case 2: return (double)(i * 7919 % 3);
    case 3: return i == n / 3 ? -1 : 5;
    case 4: return i % 2 ? NAN : INFINITY;
    case 5: return (double)(i % ((n - 16) / 15) < 16 ? i / 16 - n : i);
    default: return (double)(n - i) * (i % 2 ? 1 : -1);
    }
}

static void hard_orders(void **state)
{
    (void)state;
    static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT64};
    static const int64_t lengths[] = {1025, 1100, 5000, 40000, 66000};
    const int threads = ed_num_threads();
    for (int i = 0; i < 2 * 5 * 7; i++) {
        ED_SCOPE;
        const int64_t n = lengths[i / 2 % 5];
        ed_tensor *x = scope_give(tensor_new(ED_FLOAT64, 1, &n));
        for (int64_t j = 0; j < n; j++) ((double *)x->data)[j] = hard_element(i / 10, j, n);
        ed_set_num_threads(1 + i % 3);
        check_order(ed_cast(x, dtypes[i % 2]), n, 1, 0, i % 4 < 2);
    }
    ed_set_num_threads(threads);
}

/* The first of what argsort gives, with or without a rest behind blocks of 16 elements. */
static void the_largest(void **state)
{
    (void)state;
    static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT64, ED_INT32, ED_INT64, ED_UINT8};
    static const int64_t lengths[] = {1, 15, 16, 17, 4096, 4097, 65536};
    static const int64_t numbers[] = {1, 3, 50, 3000};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t i = 0; i < 7 * 4; i++) {
            ED_SCOPE;
            const int64_t n = lengths[i / 4], k = numbers[i % 4];
            if (k > n) continue;
            ed_tensor *x = elements(dtypes[d], n, i), *indices;
            ed_tensor *y = ed_top_k(x, k, &indices);
            ed_tensor *order = ed_argsort(x, .direction = "DESCENDING");
            if (!y || !order) fail_msg("%s", ed_error());
            assert_memory_equal(ed_data(indices), ed_data(order), (size_t)k * sizeof(int64_t));
            assert_memory_equal(ed_data(y), ed_data(ed_gather(x, indices)),
                                (size_t)k * ed_dtype_size(dtypes[d]));
        }
}

/* Lines of alike elements, and those with little else than NaN, infinities or the smallest numbers:
 * what is no number comes last, alike elements in their order. */
static void the_largest_of_hard_lines(void **state)
{
    (void)state;
    static const double patterns[][4] = {
        {1, 1, 1, 1},
        {NAN, NAN, NAN, NAN},
        {-INFINITY, -INFINITY, NAN, -INFINITY},
        {NAN, -INFINITY, NAN, -2},
        {INFINITY, INFINITY, NAN, 1},
        {-0.0, 0.0, -0.0, -1e-310},
    };
    static const ed_dtype dtypes[] = {ED_FLOAT32, ED_FLOAT64, ED_INT64};
    static const int64_t numbers[] = {1, 10, 100, 1021};
    enum { N = 1021, LINES = 3 };
    const int threads = ed_num_threads();
    for (int i = 0; i < 6 * 3 * 4; i++) {
        ED_SCOPE;
        const int64_t k = numbers[i % 4];
        const ed_dtype dtype = dtypes[i / 4 % 3];
        double values[LINES * N];
        for (int j = 0; j < LINES * N; j++) { /* the last of a line differ */
            values[j] = j % N > N - 4 && j >= N ? j % 7 - 4 : patterns[i / 12][j % 4];
            if (dtype == ED_INT64 && !isfinite(values[j])) values[j] = -0x1p63;
        }
        ed_tensor *x = ed_cast(ed_constant_of(ED_FLOAT64, values, ED_SHAPE(LINES, N)), dtype);
        ed_tensor *indices, *order = ed_argsort(x, .direction = "DESCENDING");
        ed_set_num_threads(1 + i % 3);
        if (!ed_top_k(x, k, &indices) || !order) fail_msg("%s", ed_error());
        assert_true(ed_all_close(indices, ed_slice(order, .end = ED_INTS(LINES, k)), 0, 0, NULL));
    }
    ed_set_num_threads(threads);
}

/* ---- Different ones -------------------------------------------------------------------------- */

/* Numbers come in order, each stands for one value, and is counted. */
static void check_unique(ed_tensor *x)
{
    ed_tensor *indices, *counts, *values = ed_unique(x, &indices, &counts);
    if (!values) fail_msg("%s", ed_error());
    const double *from = ed_as_doubles(x), *v = ed_as_doubles(values);
    const int64_t *at = ed_data(indices), n = ed_size(values);
    int64_t *seen = calloc((size_t)n + 1, sizeof *seen), next = 0;
    for (int64_t i = 0; i < ed_size(x); i++) {
        assert_true(at[i] >= 0 && at[i] <= next && at[i] < n && v[at[i]] == from[i]);
        next += at[i] == next;
        seen[at[i]]++;
    }
    assert_int_equal(next, n);
    assert_memory_equal(seen, ed_data(counts), (size_t)n * sizeof *seen);
    const double *sorted = ed_as_doubles(ed_sort(values));
    for (int64_t i = 1; i < n; i++) assert_true(sorted[i] > sorted[i - 1]);
    free(seen);
}

static void different(void **state)
{
    (void)state;
    static const ed_dtype dtypes[] = {ED_INT32, ED_INT64, ED_UINT8, ED_FLOAT32};
    static const int64_t sizes[] = {1, 511, 70000, 200003}, ranges[] = {1, 90, 30000, 1 << 24};
    const int threads = ed_num_threads();
    for (int k = 0; k < 4 * 4 * 4 * 3; k++) {
        ED_SCOPE;
        uint64_t seed = (uint64_t)k;
        const ed_dtype dtype = dtypes[k % 4];
        const int64_t n = sizes[k / 4 % 4], range = ranges[k / 16 % 4];
        const bool bytes = dtype == ED_UINT8;
        ed_tensor *x = scope_give(tensor_new(ED_INT64, 1, &n));
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)x->data)[i] =
                100 + next_number(&seed) % (bytes && range > 150 ? 150 : range);
        ed_set_num_threads(1 + k / 64);
        check_unique(ed_cast(x, dtype));
        if (!bytes) check_unique(ed_cast(ed_sub(x, 110), dtype));
    }
    ed_set_num_threads(threads);
}

/* Sorting moves zeros and leaves their signs, -0 before 0. */
static void zeros_keep_their_sign(void **state)
{
    (void)state;
    static const double values[] = {0, -0.0, 1, -0.0, -3, 0, 0, -1e-30, -0.0};
    static const int64_t lengths[] = {2, 9, 40, 300, 5000, 100000};
    for (int i = 0; i < 6 * 2 * 2; i++) {
        ED_SCOPE;
        const int64_t n = lengths[i / 4];
        ed_tensor *x = ed_zeros(ED_SHAPE(n), .dtype = ED_FLOAT64);
        int64_t negative = 0;
        for (int64_t j = 0; j < n; j++) {
            ((double *)x->data)[j] = values[j % 9];
            negative += signbit(values[j % 9]) != 0;
        }
        x = ed_cast(x, i & 1 ? ED_FLOAT32 : ED_FLOAT64);
        const double *y =
            ed_as_doubles(ed_sort(x, .direction = i & 2 ? "DESCENDING" : "ASCENDING"));
        if (!y) fail_msg("%s", ed_error());
        for (int64_t j = 0; j < n; j++)
            assert_true((signbit(y[j]) != 0) == (i & 2 ? j >= n - negative : j < negative));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(masks, check_end),
        cmocka_unit_test_teardown(different, check_end),
        cmocka_unit_test_teardown(zeros_keep_their_sign, check_end),
        cmocka_unit_test_teardown(orders, check_end),
        cmocka_unit_test_teardown(plain_orders, check_end),
        cmocka_unit_test_teardown(hard_orders, check_end),
        cmocka_unit_test_teardown(the_largest, check_end),
        cmocka_unit_test_teardown(the_largest_of_hard_lines, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
