/*
 * sort, argsort, nonzero and boolean_mask of many elements: values of plain loops, with any number
 * of threads. What the definitions promise is checked for all ops alike in test_ops.c.
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

static void check_elements(ed_tensor *mask)
{
    ed_tensor *x = ed_range(0, (double)mask->size, .dtype = ED_FLOAT64);
    ed_tensor *y = ed_boolean_mask(x, mask);
    if (!y) fail_msg("%s", ed_error());
    const double *v = ed_data(y), *end = v + ed_size(y);
    for (int64_t i = 0; i < mask->size; i++)
        if (mask->data[i]) assert_true(v < end && *v++ == (double)i);
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
                check_elements(mask);
                check_indices(mask, sizes[k] ? sizes[k] : 1);
                if (sizes[k] == 1000) check_indices(mask, 5);
            }
    ed_set_num_threads(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(masks, check_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
