/*
 * Winograd's convolution and its gradients beside the direct ones: how near they come to the exact
 * results, that both have inf and NaN in the same places, and that neither threads nor a refused
 * allocation leave a trace. Here it computes whatever it can, however small.
 */
#include "autodiff/autodiff.h"
#include "ops/conv_gemm.h"
#include "ops/kernels/isa.h"
#include "ops/ops.h"
#include "tests/asserts.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Images [n, h, w, in], the kernel's out, and cells of padding: top, bottom, left, right; what the
 * dilations are beyond 1. */
typedef struct problem {
    int64_t x[4], out, pads[4], more[2];
} problem;

static const problem problems[] = {
    {{1, 4, 4, 1}, 1, {0, 0, 0, 0}},           {{2, 5, 7, 3}, 2, {1, 1, 1, 1}},
    {{1, 3, 3, 16}, 33, {0, 0, 0, 0}},         {{3, 6, 4, 37}, 17, {1, 0, 0, 1}},
    {{1, 1, 2, 5}, 8, {1, 1, 1, 1}},           {{2, 9, 10, 8}, 70, {3, 2, 4, 0}},
    {{2, 13, 13, 32}, 64, {0, 0, 0, 0}},       {{1, 12, 15, 65}, 31, {1, 1, 1, 1}},
    {{2, 9, 11, 17}, 5, {2, 2, 2, 2}, {1, 1}}, {{1, 8, 5, 3}, 18, {0, 0, 2, 1}, {1, 0}},
    {{3, 7, 19, 4}, 33, {1, 3, 3, 0}, {0, 2}}, {{2, 25, 14, 16}, 9, {0, 4, 5, 7}, {2, 4}},
    {{1, 2, 3, 6}, 7, {9, 8, 8, 8}, {7, 6}},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

/* The dilation along an axis; and all as an option, in `room`. */
static int64_t dilation(const problem *p, int axis)
{
    return 1 + p->more[axis];
}

static ed_ints dilations(const problem *p, int64_t room[2])
{
    for (int d = 0; d < 2; d++) room[d] = dilation(p, d);
    return (ed_ints){room, 2};
}

/* The operands of a problem, and what comes of them. */
typedef struct operands {
    ed_tensor *x, *kernel, *dy;
} operands;

typedef struct outcome {
    ed_tensor *of[3]; /* y, dx, dkernel */
} outcome;

static const char *const names[] = {"conv2d", "the input's gradient", "the kernel's gradient"};

/* With channels first, of images turned there and back. */
static ed_tensor *to_first(ed_tensor *x, bool first)
{
    return first ? ed_contiguous(ed_transpose(x, .perm = ED_AXES(0, 3, 1, 2))) : x;
}

static ed_tensor *to_last(ed_tensor *x, bool first)
{
    return first ? ed_contiguous(ed_transpose(x, .perm = ED_AXES(0, 2, 3, 1))) : x;
}

static bool first; /* whether channels come first */

static outcome run(const problem *p, operands o, conv_winograd_use use)
{
    int64_t apart[2];
    conv_winograd_set(use);
    o.x = to_first(o.x, first), o.dy = to_first(o.dy, first);
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, o.x);
    ed_watch(tape, o.kernel);
    ed_tensor *y =
        ed_conv2d(o.x, o.kernel, .padding = "EXPLICIT", .explicit_paddings = {p->pads, 4},
                  .dilations = dilations(p, apart), .data_format = first ? "NCHW" : "NHWC");
    ed_list *d =
        ed_gradient(tape, y, ed_list_of(o.x, o.kernel), .output_gradients = ed_list_of(o.dy));
    conv_winograd_set(CONV_WINOGRAD_WHERE_FASTER);
    if (!d) return (outcome){{NULL}};
    return (outcome){{to_last(y, first), to_last(ed_list_get(d, 0), first), ed_list_get(d, 1)}};
}

static ed_ints shape_of_dy(const problem *p, int64_t shape[4])
{
    shape[0] = p->x[0], shape[3] = p->out;
    for (int d = 0; d < 2; d++)
        shape[1 + d] = p->x[1 + d] + p->pads[2 * d] + p->pads[2 * d + 1] - 2 * dilation(p, d);
    return (ed_ints){shape, 4};
}

static operands make(const problem *p, ed_tensor *(*numbers)(ed_ints shape, ed_generator *g))
{
    int64_t dy[4];
    ed_generator *g = ed_generator_from_seed(5);
    return (operands){numbers((ed_ints){p->x, 4}, g), numbers(ED_SHAPE(3, 3, p->x[3], p->out), g),
                      numbers(shape_of_dy(p, dy), g)};
}

static operands cast(operands o, ed_dtype dtype)
{
    return (operands){ed_cast(o.x, dtype), ed_cast(o.kernel, dtype), ed_cast(o.dy, dtype)};
}

/* ---- How near to the exact results ----------------------------------------------------------- */

static ed_tensor *normal(ed_ints shape, ed_generator *g)
{
    return ed_random_normal(shape, .generator = g);
}

static ed_tensor *positive(ed_ints shape, ed_generator *g)
{
    return ed_random_uniform(shape, .low = 0.5, .generator = g);
}

/* Near 1 and -1, taking turns: sums cancel. */
static ed_tensor *alternating(ed_ints shape, ed_generator *g)
{
    ed_tensor *x = ed_random_uniform(shape, .low = 0.9, .high = 1.1, .generator = g);
    ed_tensor *i = ed_reshape(ed_range(0, (double)ed_size(x)), shape);
    return ed_mul(x, ed_sub(1.0, ed_mul(2.0, ed_cast(ed_floor_mod(i, 2), ED_FLOAT32))));
}

/* Of magnitudes from 1e-6 to 1e6 beside each other. */
static ed_tensor *of_all_sizes(ed_ints shape, ed_generator *g)
{
    ed_tensor *exponent = ed_random_uniform(shape, .low = -14, .high = 14, .generator = g);
    return ed_mul(ed_random_normal(shape, .generator = g), ed_exp(exponent));
}

/* Numbers by tile and channel. */
typedef struct by_tile {
    int64_t tiles[2], channels;
    double *sums;
} by_tile;

/* Where the i-th tile along an axis begins, and the tile that has a cell. */
static int64_t begin_of(const problem *p, int axis, int64_t i)
{
    const int64_t d = dilation(p, axis);
    return i / d * 2 * d + i % d;
}

static int64_t tile_of(const problem *p, int axis, int64_t cell)
{
    const int64_t d = dilation(p, axis);
    return cell / (2 * d) * d + cell % d;
}

/* The tiles of so many cells. */
static int64_t tiles_of(const problem *p, int axis, int64_t cells)
{
    int64_t most = 0;
    for (int64_t i = 0; i < cells; i++)
        most = tile_of(p, axis, i) >= most ? tile_of(p, axis, i) + 1 : most;
    return most;
}

/* The sums of |x| over the n x n cells of each tile, the first beginning `before` the image. */
static by_tile sums_of_tiles(const problem *p, ed_tensor *x, const int64_t tiles[2], int n,
                             const int64_t before[2])
{
    const int64_t *s = ed_shape(x).values;
    by_tile t = {{tiles[0], tiles[1]}, s[3], NULL};
    t.sums = calloc((size_t)(s[0] * tiles[0] * tiles[1] * s[3]), sizeof *t.sums);
    const double *data = ed_data(x);
    for (int64_t i = 0; i < s[0] * tiles[0] * tiles[1]; i++)
        for (int cell = 0; cell < n * n; cell++) {
            const int64_t h =
                begin_of(p, 0, i / tiles[1] % tiles[0]) - before[0] + cell / n * dilation(p, 0);
            const int64_t w = begin_of(p, 1, i % tiles[1]) - before[1] + cell % n * dilation(p, 1);
            if (h < 0 || h >= s[1] || w < 0 || w >= s[2]) continue;
            const int64_t image = i / tiles[1] / tiles[0];
            for (int64_t c = 0; c < s[3]; c++)
                t.sums[i * s[3] + c] += fabs(data[((image * s[1] + h) * s[2] + w) * s[3] + c]);
        }
    return t;
}

/* The sums of |kernel| over its taps: [in, out], or [out, in]. */
static double *sums_of_taps(ed_tensor *kernel, bool turned)
{
    ed_tensor *sums = ed_reduce_sum(ed_abs(kernel), .axis = ED_AXES(0, 1));
    if (turned) sums = ed_contiguous(ed_transpose(sums));
    double *copy = malloc((size_t)ed_size(sums) * sizeof *copy);
    memcpy(copy, ed_data(sums), (size_t)ed_size(sums) * sizeof *copy);
    return copy;
}

/* The worst error of y, or of dx, by its tile's scale. */
static double worst_of_tiles(const problem *p, ed_tensor *got, ed_tensor *want, const by_tile *t,
                             const double *taps)
{
    const int64_t *s = ed_shape(want).values, out = s[3];
    const double *g = ed_data(got), *w = ed_data(want);
    double worst = 0;
    for (int64_t i = 0; i < ed_size(want); i++) {
        const int64_t row = i / out / s[2] % s[1], column = i / out % s[2];
        const int64_t image = i / out / s[2] / s[1];
        const int64_t line = image * t->tiles[0] + tile_of(p, 0, row);
        const double *sums = t->sums + (line * t->tiles[1] + tile_of(p, 1, column)) * t->channels;
        double scale = DBL_MIN;
        for (int64_t c = 0; c < t->channels; c++) scale += sums[c] * taps[c * out + i % out];
        worst = fmax(worst, fabs(g[i] - w[i]) / scale);
    }
    return worst;
}

/* The same of dkernel, whose scale is a sum over all tiles. */
static double worst_of_kernel(ed_tensor *got, ed_tensor *want, int64_t tiles, const by_tile *x,
                              const by_tile *dy)
{
    const int64_t out = dy->channels;
    const double *g = ed_data(got), *w = ed_data(want);
    double worst = 0;
    for (int64_t i = 0; i < ed_size(want); i++) {
        double scale = DBL_MIN;
        for (int64_t t = 0; t < tiles; t++)
            scale += x->sums[t * x->channels + i / out % x->channels] * dy->sums[t * out + i % out];
        worst = fmax(worst, fabs(g[i] - w[i]) / scale);
    }
    return worst;
}

/*
 * The worst errors of the three, each by its bound, that is by the largest that its result could be
 * if neither signs nor places within a tile mattered.
 */
static void measure(const problem *p, operands exact, const outcome *got, double worst[3])
{
    const outcome want = run(p, exact, CONV_WINOGRAD_NEVER);
    const int64_t before[2] = {p->pads[0], p->pads[2]}, none[2] = {0};
    const int64_t turned[2] = {2 * dilation(p, 0) - before[0], 2 * dilation(p, 1) - before[1]};
    const int64_t *y = ed_shape(want.of[0]).values, *x = ed_shape(want.of[1]).values;
    const int64_t of_y[2] = {tiles_of(p, 0, y[1]), tiles_of(p, 1, y[2])};
    const int64_t of_x[2] = {tiles_of(p, 0, x[1]), tiles_of(p, 1, x[2])};
    by_tile patches = sums_of_tiles(p, exact.x, of_y, 4, before);
    by_tile back = sums_of_tiles(p, exact.dy, of_x, 4, turned);
    by_tile dy = sums_of_tiles(p, exact.dy, of_y, 2, none);
    double *taps = sums_of_taps(exact.kernel, false), *over = sums_of_taps(exact.kernel, true);
    ed_tensor *wide[3];
    for (int i = 0; i < 3; i++) wide[i] = ed_cast(got->of[i], ED_FLOAT64);
    assert_fine();
    const int64_t tiles = y[0] * of_y[0] * of_y[1];
    worst[0] = worst_of_tiles(p, wide[0], want.of[0], &patches, taps) / conv_winograd_bound(x[3]);
    worst[1] = worst_of_tiles(p, wide[1], want.of[1], &back, over) / conv_winograd_bound(y[3]);
    worst[2] =
        worst_of_kernel(wide[2], want.of[2], tiles, &patches, &dy) / conv_winograd_bound(tiles);
    free(patches.sums), free(back.sums), free(dy.sums), free(taps), free(over);
}

static const struct {
    const char *name;
    ed_tensor *(*numbers)(ed_ints shape, ed_generator *g);
} kinds[] = {{"normal", normal},
             {"positive", positive},
             {"alternating", alternating},
             {"of all sizes", of_all_sizes}};

static void results_are_near_the_exact_ones(void **state)
{
    (void)state;
    const int before = isa_level;
    double most[3] = {0};
    for (int isa = 0; isa_set(isa); isa++)
        for (int i = 0; i < PROBLEMS; i++)
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
                ED_SCOPE;
                double worst[3];
                const operands o = make(&problems[i], kinds[k].numbers);
                const outcome got = run(&problems[i], o, CONV_WINOGRAD_ALWAYS);
                measure(&problems[i], cast(o, ED_FLOAT64), &got, worst);
                for (int d = 0; d < 3; d++) {
                    most[d] = fmax(most[d], worst[d]);
                    if (worst[d] <= 0x1p-24) continue;
                    fail_msg("%s of problem %d, %s numbers, %s: %g of the bound", names[d], i,
                             kinds[k].name, isa_name(isa), worst[d] * 0x1p24);
                }
            }
    isa_set(before);
    for (int d = 0; d < 3; d++)
        print_message("%s: at most %.2f of the bound\n", names[d], most[d] * 0x1p24);
}

static void float64_is_nearer_still(void **state)
{
    (void)state;
    for (int i = 0; i < PROBLEMS; i++) {
        ED_SCOPE;
        double worst[3];
        const operands o = cast(make(&problems[i], normal), ED_FLOAT64);
        const outcome got = run(&problems[i], o, CONV_WINOGRAD_ALWAYS);
        measure(&problems[i], o, &got, worst);
        for (int d = 0; d < 3; d++) assert_true(worst[d] <= 2 * 0x1p-53);
    }
}

static ed_tensor *integers(ed_ints shape, ed_generator *g)
{
    return ed_floor(ed_random_uniform(shape, .low = -8, .high = 9, .generator = g));
}

static void small_integers_are_exact(void **state)
{
    (void)state;
    for (int i = 0; i < PROBLEMS; i++) {
        ED_SCOPE;
        const operands o = make(&problems[i], integers);
        const outcome got = run(&problems[i], o, CONV_WINOGRAD_ALWAYS);
        const outcome want = run(&problems[i], o, CONV_WINOGRAD_NEVER);
        assert_fine();
        for (int d = 0; d < 3; d++)
            assert_true(ed_item(ed_reduce_max(ed_abs(ed_sub(got.of[d], want.of[d])))) == 0);
    }
}

/* ---- inf and NaN ----------------------------------------------------------------------------- */

/* Both are finite, or the same. */
static void assert_alike(const char *name, ed_tensor *got, ed_tensor *want)
{
    assert_fine();
    const float *g = ed_data(got), *w = ed_data(want);
    for (int64_t i = 0; i < ed_size(want); i++)
        if (isfinite(w[i]) ? !isfinite(g[i]) : isnan(w[i]) ? !isnan(g[i]) : g[i] != w[i])
            fail_msg("%s: element %lld is %g, not %g", name, (long long)i, (double)g[i],
                     (double)w[i]);
}

/* A tensor like x, one of its elements being `number`. */
static ed_tensor *with(ed_tensor *x, int64_t i, float number)
{
    float *copy = malloc((size_t)ed_size(x) * sizeof *copy);
    memcpy(copy, ed_data(x), (size_t)ed_size(x) * sizeof *copy);
    copy[i] = number;
    ed_tensor *y = ed_constant_of(ED_FLOAT32, copy, ed_shape(x));
    free(copy);
    return y;
}

static void assert_places(const problem *p, operands o)
{
    const outcome got = run(p, o, CONV_WINOGRAD_ALWAYS), want = run(p, o, CONV_WINOGRAD_NEVER);
    for (int d = 0; d < 3; d++) assert_alike(names[d], got.of[d], want.of[d]);
}

static void inf_and_nan_are_where_they_were(void **state)
{
    (void)state;
    static const float numbers[] = {INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX};
    for (int i = 0; i < PROBLEMS; i++)
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            ED_SCOPE;
            const problem *p = &problems[i];
            const operands o = make(p, alternating);
            operands some = o;
            const int64_t at[] = {0, ed_size(o.x) / 2, ed_size(o.x) - 1};
            for (int place = 0; place < 3; place++) {
                some.x = with(o.x, at[place], numbers[k]);
                assert_places(p, some);
            }
            some = o, some.kernel = with(o.kernel, ed_size(o.kernel) / 2, numbers[k]);
            assert_places(p, some);
            some = o, some.dy = with(o.dy, ed_size(o.dy) - 1, numbers[k]);
            assert_places(p, some);
        }
}

static ed_tensor *largest(ed_ints shape, ed_generator *g)
{
    return ed_mul(positive(shape, g), (double)FLT_MAX);
}

static ed_tensor *nothing(ed_ints shape, ed_generator *g)
{
    (void)g;
    return ed_mul(ed_zeros(shape), (double)NAN);
}

/* Sums of large numbers that only the transforms make overflow; and nothing but NaN. */
static void large_numbers_do_not_overflow(void **state)
{
    (void)state;
    for (int i = 0; i < PROBLEMS; i++) {
        ED_SCOPE;
        const problem *p = &problems[i];
        for (int large = 0; large < 3; large++) {
            const operands o = make(p, largest);
            assert_places(p, (operands){large == 0 ? o.x : ed_mul(o.x, 1e-44),
                                        large == 1 ? o.kernel : ed_mul(o.kernel, 1e-44),
                                        large == 2 ? o.dy : ed_mul(o.dy, 1e-44)});
        }
        assert_places(p, make(p, nothing));
    }
}

/* The bias and relu see what the convolution gives, inf too. */
static void bias_and_relu_come_last(void **state)
{
    (void)state;
    for (int i = 0; i < PROBLEMS; i++)
        for (int relu = 0; relu < 2; relu++) {
            ED_SCOPE;
            const problem *p = &problems[i];
            const operands o = make(p, normal);
            ed_tensor *bias = normal(ED_SHAPE(p->out), ed_generator_from_seed(1));
            ed_tensor *x = to_first(o.x, first);
            const char *format = first ? "NCHW" : "NHWC";
            int64_t room[2];
            const ed_ints pads = {p->pads, 4}, apart = dilations(p, room);
            conv_winograd_set(CONV_WINOGRAD_ALWAYS);
            ed_tensor *y = ed_conv2d(x, o.kernel, .padding = "EXPLICIT", .explicit_paddings = pads,
                                     .dilations = apart, .data_format = format);
            ed_tensor *z = ed_conv2d_bias(
                x, o.kernel, bias, .padding = "EXPLICIT", .explicit_paddings = pads,
                .dilations = apart, .data_format = format, .activation = relu ? "relu" : "linear");
            conv_winograd_set(CONV_WINOGRAD_WHERE_FASTER);
            y = ed_add(y, first ? ed_reshape(bias, ED_SHAPE(-1, 1, 1)) : bias);
            assert_same_tensor(z, relu ? ed_relu(y) : y);
        }
}

/* ---- Threads and memory ---------------------------------------------------------------------- */

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    const int before = ed_num_threads();
    for (int i = 0; i < PROBLEMS; i++) {
        ED_SCOPE;
        outcome one = {{NULL}};
        const operands o = make(&problems[i], normal);
        for (int threads = 1; threads <= 3; threads++) {
            assert_true(ed_set_num_threads(threads));
            const outcome got = run(&problems[i], o, CONV_WINOGRAD_ALWAYS);
            if (threads == 1) one = got;
            for (int d = 0; d < 3; d++) assert_same_tensor(got.of[d], one.of[d]);
        }
    }
    assert_true(ed_set_num_threads(before));
}

/* With an inf, so that the direct way is taken, too. */
static bool attempt(void)
{
    ED_SCOPE;
    const problem *p = &problems[3];
    operands o = make(p, integers);
    if (!o.x || !o.kernel || !o.dy) return false;
    o.x = ed_mul(o.x, INFINITY);
    return o.x && run(p, o, CONV_WINOGRAD_ALWAYS).of[0] && !ed_failed();
}

static void allocations_that_fail(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        int64_t n = 0;
        while (!succeeds_without(n, all, attempt)) n++;
        assert_true(n > 20);
    }
}

static int channels_first(void **state)
{
    (void)state;
    first = true;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(results_are_near_the_exact_ones, check_end),
        cmocka_unit_test_teardown(float64_is_nearer_still, check_end),
        cmocka_unit_test_teardown(small_integers_are_exact, check_end),
        cmocka_unit_test_teardown(inf_and_nan_are_where_they_were, check_end),
        cmocka_unit_test_teardown(large_numbers_do_not_overflow, check_end),
        cmocka_unit_test_teardown(bias_and_relu_come_last, check_end),
        cmocka_unit_test_teardown(any_number_of_threads_gives_the_same_bits, check_end),
        cmocka_unit_test_teardown(allocations_that_fail, check_end),
    };
    return cmocka_run_group_tests_name("channels last", tests, NULL, NULL) +
           cmocka_run_group_tests_name("channels first", tests, channels_first, NULL);
}
