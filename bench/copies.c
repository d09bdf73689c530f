/* What moves elements and computes nothing: transposes, slices, joins, fills. */
#include "bench/bench.h"

enum { SIDE = 4096, BATCH = 32, CHANNELS = 64, IMAGE = 56 };

typedef struct row {
    const char *name;
    double bytes; /* read and written */
    void (*make)(workload *w);
    ed_tensor *(*run)(workload *w);
    double (*want)(const workload *w, int64_t k); /* element k of the result */
} row;

/* ---- Operands ---- */

static void make_square(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(SIDE, SIDE));
}

static void make_image(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(BATCH, CHANNELS, IMAGE, IMAGE));
}

static void make_image_full(workload *w)
{
    bench_fill_cache();
    make_image(w);
}

static void make_heads(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(8, 128, 4, 64));
}

static void make_tile(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(1024, 1024));
}

static void make_flat(workload *w)
{
    for (int i = 0; i < 4; i++) w->x[i] = bench_numbers(ED_SHAPE(SIDE / 4, SIDE));
}

static void make_tall(workload *w)
{
    for (int i = 0; i < 4; i++) w->x[i] = bench_numbers(ED_SHAPE(SIDE, SIDE / 4));
}

/* ---- What is timed ---- */

static ed_tensor *transpose(workload *w)
{
    return ed_contiguous(ed_transpose(w->x[0]));
}

static double transpose_want(const workload *w, int64_t k)
{
    return bench_at(w->x[0], k % SIDE * SIDE + k / SIDE);
}

static ed_tensor *to_nhwc(workload *w)
{
    return ed_contiguous(ed_transpose(w->x[0], .perm = ED_AXES(0, 2, 3, 1)));
}

static double to_nhwc_want(const workload *w, int64_t k)
{
    int64_t pixels = IMAGE * IMAGE, channel = k % CHANNELS, pixel = k / CHANNELS % pixels;
    return bench_at(w->x[0], (k / CHANNELS / pixels * CHANNELS + channel) * pixels + pixel);
}

static ed_tensor *heads(workload *w)
{
    return ed_contiguous(ed_transpose(w->x[0], .perm = ED_AXES(0, 2, 1, 3)));
}

static double heads_want(const workload *w, int64_t k)
{
    int64_t i = k % 64, token = k / 64 % 128, head = k / 64 / 128 % 4, batch = k / 64 / 128 / 4;
    return bench_at(w->x[0], ((batch * 128 + token) * 4 + head) * 64 + i);
}

static ed_tensor *zeros(workload *w)
{
    (void)w;
    return ed_zeros(ED_SHAPE(M16));
}

static double zeros_want(const workload *w, int64_t k)
{
    return (void)w, (void)k, 0;
}

static ed_tensor *full(workload *w)
{
    (void)w;
    return ed_full(ED_SHAPE(M16), 1.5);
}

static double full_want(const workload *w, int64_t k)
{
    return (void)w, (void)k, 1.5;
}

static ed_tensor *concat_rows(workload *w)
{
    return ed_concat(ed_list_of(w->x[0], w->x[1], w->x[2], w->x[3]));
}

static double concat_rows_want(const workload *w, int64_t k)
{
    return bench_at(w->x[k / (M16 / 4)], k % (M16 / 4));
}

static ed_tensor *concat_columns(workload *w)
{
    return ed_concat(ed_list_of(w->x[0], w->x[1], w->x[2], w->x[3]), .axis = 1);
}

static double concat_columns_want(const workload *w, int64_t k)
{
    int64_t i = k / SIDE, j = k % SIDE;
    return bench_at(w->x[j / (SIDE / 4)], i * (SIDE / 4) + j % (SIDE / 4));
}

static ed_tensor *slice(workload *w)
{
    return ed_contiguous(
        ed_slice(w->x[0], .begin = ED_INTS(0, 1), .end = ED_INTS(SIDE, 1 + SIDE / 2)));
}

static double slice_want(const workload *w, int64_t k)
{
    return bench_at(w->x[0], k / (SIDE / 2) * SIDE + 1 + k % (SIDE / 2));
}

static ed_tensor *every_other(workload *w)
{
    return ed_contiguous(ed_slice(w->x[0], .step = ED_INTS(1, 2)));
}

static double every_other_want(const workload *w, int64_t k)
{
    return bench_at(w->x[0], 2 * k);
}

static ed_tensor *pad(workload *w)
{
    ed_ints one = ED_INTS(0, 0, 1, 1);
    return ed_pad(w->x[0], .before = one, .after = one);
}

static double pad_want(const workload *w, int64_t k)
{
    enum { PADDED = IMAGE + 2 };
    int64_t i = k / PADDED % PADDED - 1, j = k % PADDED - 1;
    if (i < 0 || j < 0 || i >= IMAGE || j >= IMAGE) return 0;
    return bench_at(w->x[0], (k / PADDED / PADDED * IMAGE + i) * IMAGE + j);
}

static ed_tensor *tile(workload *w)
{
    return ed_tile(w->x[0], ED_INTS(4, 4));
}

static double tile_want(const workload *w, int64_t k)
{
    return bench_at(w->x[0], k / SIDE % 1024 * 1024 + k % 1024);
}

static const double square = 4.0 * SIDE * SIDE, image = 4.0 * BATCH * CHANNELS * IMAGE * IMAGE;

static void check(workload *w, ed_tensor *y)
{
    const row *r = w->row;
    BENCH_SPREAD(k, ed_size(y)) bench_near("an element", bench_at(y, k), r->want(w, k), 0);
}

void bench_copy(void)
{
    static const row rows[] = {
        {"transpose_4096x4096", 2 * square, make_square, transpose, transpose_want},
        {"nchw_to_nhwc_32x64x56x56", 2 * image, make_image, to_nhwc, to_nhwc_want},
        {"nchw_to_nhwc_32x64x56x56_full_cache", 2 * image, make_image_full, to_nhwc, to_nhwc_want},
        {"heads_8x128x4x64", 8.0 * 8 * 128 * 4 * 64, make_heads, heads, heads_want},
        {"zeros_16M", square, NULL, zeros, zeros_want},
        {"full_16M", square, NULL, full, full_want},
        {"concat_axis0_4x1024x4096", 2 * square, make_flat, concat_rows, concat_rows_want},
        {"concat_axis1_4x4096x1024", 2 * square, make_tall, concat_columns, concat_columns_want},
        {"slice_columns_4096x4096", square, make_square, slice, slice_want},
        {"every_other_column_4096x4096", square, make_square, every_other, every_other_want},
        {"pad_32x64x56x56", 2 * image, make_image, pad, pad_want},
        {"tile_4x4_1024x1024", 1.0625 * square, make_tile, tile, tile_want},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        workload w = {BENCH_BYTES,   r->bytes,       .make = r->make,
                      .run = r->run, .check = check, .row = r};
        bench_add(w, "%s", r->name);
    }
}
