/* Products of matrices: squares, those of layers, transposed operands, batches, by vectors. */
#include "bench/bench.h"

/* [batch, m, k] x [batch, k, n]; a letter of `transposed` for each operand that is stored so. */
typedef struct row {
    const char *name;
    int64_t batch, m, k, n;
    const char *transposed;
    ed_dtype dtype;
} row;

static const row rows[] = {
    {"mm_32", 1, 32, 32, 32},
    {"mm_64", 1, 64, 64, 64},
    {"mm_128", 1, 128, 128, 128},
    {"mm_256", 1, 256, 256, 256},
    {"mm_512", 1, 512, 512, 512},
    {"mm_1024", 1, 1024, 1024, 1024},
    {"mm_2048", 1, 2048, 2048, 2048},
    {"mm_512_ta", 1, 512, 512, 512, "a"},
    {"mm_512_tb", 1, 512, 512, 512, "b"},
    {"mm_512_ta_tb", 1, 512, 512, 512, "ab"},
    {"mm_256_double", 1, 256, 256, 256, "", ED_FLOAT64},
    {"mm_512_double", 1, 512, 512, 512, "", ED_FLOAT64},
    {"mm_1024_double", 1, 1024, 1024, 1024, "", ED_FLOAT64},
    {"mm_1x784x512", 1, 1, 784, 512},
    {"mm_1x784x512_tb", 1, 1, 784, 512, "b"},
    {"mm_32x784x512", 1, 32, 784, 512},
    {"mm_32x784x512_tb", 1, 32, 784, 512, "b"},
    {"mm_128x784x512", 1, 128, 784, 512},
    {"mm_128x784x512_tb", 1, 128, 784, 512, "b"},
    {"mm_5000x784x512", 1, 5000, 784, 512},
    {"mm_5000x784x512_tb", 1, 5000, 784, 512, "b"},
    {"bmm_64x128x128", 64, 128, 128, 128},
    {"bmm_64x128x128_tb", 64, 128, 128, 128, "b"},
    {"bmm_1024x16x16", 1024, 16, 16, 16},
    {"matvec_4096", 1, 4096, 4096, 1},
    {"matvec_4096_ta", 1, 4096, 4096, 1, "a"},
    {"vecmat_4096", 1, 1, 4096, 4096},
};

static bool transposed(const row *r, char operand)
{
    return r->transposed && strchr(r->transposed, operand);
}

/* An operand as stored, [batch, height, width] or the same transposed, without a batch of 1. */
static ed_tensor *stored(const row *r, int64_t height, int64_t width, bool swapped)
{
    int64_t shape[] = {r->batch, swapped ? width : height, swapped ? height : width};
    int from = r->batch == 1;
    ed_tensor *x = bench_numbers((ed_ints){shape + from, 3 - from});
    return r->dtype == ED_FLOAT64 ? ed_cast(x, ED_FLOAT64) : x;
}

static void make(workload *w)
{
    const row *r = w->row;
    w->x[0] = stored(r, r->m, r->k, transposed(r, 'a'));
    w->x[1] = stored(r, r->k, r->n, transposed(r, 'b'));
}

static ed_tensor *multiply(workload *w)
{
    const row *r = w->row;
    return ed_matmul(w->x[0], w->x[1], .transpose_a = transposed(r, 'a'),
                     .transpose_b = transposed(r, 'b'));
}

static double dot(const workload *w, int64_t b, int64_t i, int64_t j)
{
    const row *r = w->row;
    double sum = 0;
    for (int64_t k = 0; k < r->k; k++)
        sum +=
            bench_at(w->x[0],
                     b * r->m * r->k + (transposed(r, 'a') ? k * r->m + i : i * r->k + k)) *
            bench_at(w->x[1], b * r->k * r->n + (transposed(r, 'b') ? j * r->k + k : k * r->n + j));
    return sum;
}

static void check(workload *w, ed_tensor *y)
{
    const row *r = w->row;
    int64_t last = r->batch * r->m * r->n - 1;
    for (int64_t s = 0; s < 50; s++) {
        int64_t at = s * last / 49, in = at % (r->m * r->n);
        bench_near("an element", bench_at(y, at), dot(w, at / (r->m * r->n), in / r->n, in % r->n),
                   1e-4);
    }
}

/* ---- A dense layer: relu(x w + b) ---- */

static void make_dense(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(w->n[0], 784));
    w->x[1] = bench_numbers(ED_SHAPE(784, 512));
    w->x[2] = bench_numbers(ED_SHAPE(512));
}

static ed_tensor *dense(workload *w)
{
    return ed_linear(w->x[0], w->x[1], w->x[2], "relu");
}

static void check_dense(workload *w, ed_tensor *y)
{
    for (int64_t at = 0; at < ed_size(y); at += ed_size(y) / 50) {
        double sum = bench_at(w->x[2], at % 512);
        for (int64_t k = 0; k < 784; k++)
            sum += bench_at(w->x[0], at / 512 * 784 + k) * bench_at(w->x[1], k * 512 + at % 512);
        bench_near("an element", bench_at(y, at), sum > 0 ? sum : 0, 1e-4);
    }
}

/* ---- What an einsum costs beyond its product ---- */

static ed_tensor *einsum(workload *w)
{
    return ed_einsum("...ij,...jk->...ik", ed_list_of(w->x[0], w->x[1]));
}

enum { BATCH = 8, STEPS = 128, HEADS = 4, DEPTH = 64 };

static void make_scores(workload *w)
{
    for (int i = 0; i < 2; i++) w->x[i] = bench_numbers(ED_SHAPE(BATCH, STEPS, HEADS, DEPTH));
}

static ed_tensor *scores(workload *w)
{
    return ed_einsum("bqhd,bkhd->bhqk", ed_list_of(w->x[0], w->x[1]));
}

static void check_scores(workload *w, ed_tensor *y)
{
    BENCH_SPREAD(at, BATCH * HEADS * STEPS * STEPS)
    {
        int64_t k = at % STEPS, q = at / STEPS % STEPS, h = at / STEPS / STEPS % HEADS,
                b = at / STEPS / STEPS / HEADS;
        double sum = 0;
        for (int64_t d = 0; d < DEPTH; d++)
            sum += bench_at(w->x[0], ((b * STEPS + q) * HEADS + h) * DEPTH + d) *
                   bench_at(w->x[1], ((b * STEPS + k) * HEADS + h) * DEPTH + d);
        bench_near("an element", bench_at(y, at), sum, 1e-4);
    }
}

void bench_product(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        double flops = 2.0 * (double)(r->batch * r->m * r->k * r->n);
        workload w = {r->dtype == ED_FLOAT64 ? BENCH_DOUBLE_FLOPS : BENCH_FLOPS,
                      flops,
                      .make = make,
                      .run = multiply,
                      .check = check,
                      .row = r};
        w.moved = (double)(r->batch * (r->m * r->k + r->k * r->n + r->m * r->n)) *
                  (double)ed_dtype_size(r->dtype ? r->dtype : ED_FLOAT32);
        bench_add(w, "%s", r->name);
        if (!strcmp(r->name, "bmm_64x128x128") || !strcmp(r->name, "mm_512")) {
            w.run = einsum;
            bench_add(w, "einsum_%s", r->name);
        }
    }
    workload attention = {BENCH_FLOPS, 2.0 * BATCH * HEADS * STEPS * STEPS * DEPTH,
                          .make = make_scores, .run = scores, .check = check_scores};
    bench_add(attention, "einsum_scores_8x128x4x64");
    workload w = {BENCH_FLOPS,        2.0 * 128 * 784 * 512, .run = dense,
                  .make = make_dense, .check = check_dense,  .n = {128}};
    bench_add(w, "dense_relu_128x784x512");
}
