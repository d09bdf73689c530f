/*
 * Results that go past the caches have the bits of those that don't: of ops for which the parts
 * along the first axis do not know of each other, in every instruction set.
 */
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "tests/asserts.h"
#include "tensor/copy.h"

enum { PARTS = 3 };

typedef struct op_case {
    const char *name;
    ed_tensor *(*run)(ed_tensor *x);
    ed_dtype dtype;
    int64_t shape[3]; /* of a part */
} op_case;

static ed_tensor *cumsum_down(ed_tensor *x)
{
    return ed_cumsum(x, .axis = 1);
}
static ed_tensor *cumsum_up(ed_tensor *x)
{
    return ed_cumsum(x, .axis = 1, .reverse = true, .exclusive = true);
}
static ed_tensor *cumsum_along(ed_tensor *x)
{
    return ed_cumsum(x, .axis = -1);
}
static ed_tensor *cumsum_back(ed_tensor *x)
{
    return ed_cumsum(x, .axis = -1, .reverse = true);
}
static ed_tensor *cummin_up(ed_tensor *x)
{
    return ed_cummin(x, .axis = 1, .reverse = true);
}

static const op_case cases[] = {
    {"cumsum of columns", cumsum_down, ED_FLOAT32, {1, 1030, 1360}},
    {"cumsum of columns, doubles", cumsum_down, ED_FLOAT64, {2, 301, 1200}},
    {"cumsum of columns, backwards", cumsum_up, ED_FLOAT32, {1, 1030, 1360}},
    {"cumsum of columns, integers", cumsum_up, ED_INT32, {1, 1030, 1360}},
    {"cumsum of many columns", cumsum_down, ED_FLOAT32, {1, 70, 20000}},
    {"cumsum of rows", cumsum_along, ED_FLOAT32, {1, 1030, 1360}},
    {"cumsum of rows, doubles", cumsum_along, ED_FLOAT64, {1, 515, 1368}},
    {"cumsum of rows, backwards", cumsum_back, ED_FLOAT32, {1, 1030, 1360}},
    {"cumsum of rows, doubles backwards", cumsum_back, ED_FLOAT64, {1, 515, 1368}},
    {"cummin of bytes", cummin_up, ED_UINT8, {1, 2060, 2880}},
};

/* Of whole numbers around 0 that every dtype holds. */
static ed_tensor *numbers(const op_case *c)
{
    const int64_t *s = c->shape;
    ed_tensor *x = ed_random_uniform(ED_SHAPE(PARTS * s[0], s[1], s[2]), .low = -100, .high = 100);
    if (c->dtype == ED_UINT8) x = ed_abs(x);
    return ed_cast(x, c->dtype);
}

/* Part i of the first axis. */
static ed_tensor *part_of(ed_tensor *x, int64_t i)
{
    const int64_t n = ed_dim(x, 0) / PARTS;
    return ed_contiguous(ed_slice(x, .begin = ED_INTS(i * n), .end = ED_INTS((i + 1) * n)));
}

static void check(const op_case *c)
{
    ED_SCOPE;
    ed_tensor *x = numbers(c), *y = c->run(x);
    assert_fine();
    const int64_t bytes = ed_size(y) * ed_dtype_size(ed_dtype_of(y));
    if (bytes < COPY_FAR_BYTES) fail_msg("%s: the result is not large", c->name);
    for (int64_t i = 0; i < PARTS; i++) {
        ED_SCOPE;
        ed_tensor *part = part_of(x, i);
        assert_same_tensor(part_of(y, i), c->run(part));
    }
}

static void parts_of_large_results(void **state)
{
    (void)state;
    const int threads = ed_num_threads();
    for (int isa = 0; isa < ISA_COUNT; isa++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases && isa_set(isa); i++) {
            ed_set_num_threads(1 + (int)i % 3);
            check(&cases[i]);
        }
    ed_set_num_threads(threads);
    isa_set(isa_best());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_of_large_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
