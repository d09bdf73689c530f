/* Elements and rows by their indices, by masks; embeddings with gradients. */
#include "bench/bench.h"

enum { CLASSES = 100, LABELS = 65536, ROWS = 100000, WIDTH = 64, TAKEN = 16384, SIDE = 4096 };

typedef struct row {
    const char *name;
    double bytes; /* read and written */
    void (*make)(workload *w);
    ed_tensor *(*run)(workload *w);
    double (*want)(const workload *w, int64_t k); /* element k of the result */
} row;

static void make_labels(workload *w)
{
    w->x[1] = bench_indices(LABELS, CLASSES, ED_INT32);
}

static ed_tensor *one_hot(workload *w)
{
    return ed_one_hot(w->x[1], CLASSES);
}

static double one_hot_want(const workload *w, int64_t k)
{
    return k % CLASSES == (int64_t)bench_at(w->x[1], k / CLASSES);
}

static void make_matrix(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(SIDE, SIDE));
    w->x[1] = ed_reshape(bench_indices(SIDE * 256, SIDE, ED_INT32), ED_SHAPE(SIDE, 256));
}

static ed_tensor *take_along(workload *w)
{
    return ed_take_along_axis(w->x[0], w->x[1], .axis = 1);
}

static double take_along_want(const workload *w, int64_t k)
{
    return bench_at(w->x[0], k / 256 * SIDE + (int64_t)bench_at(w->x[1], k));
}

/* A table x[0] of rows, the indices x[1] of some. */
static void make_table(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(ROWS, WIDTH));
    w->x[1] = bench_indices(TAKEN, ROWS, ED_INT32);
    w->list = ed_list_of(w->x[0]);
}

static ed_tensor *gather(workload *w)
{
    return ed_gather(w->x[0], w->x[1]);
}

static double gather_want(const workload *w, int64_t k)
{
    return bench_at(w->x[0], (int64_t)bench_at(w->x[1], k / WIDTH) * WIDTH + k % WIDTH);
}

/* ---- Those whose results are checked as a whole ---- */

static void make_mask(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(M16));
    w->x[1] = ed_greater(w->x[0], w->n[0] ? 1.6 : 0);
}

static ed_tensor *mask(workload *w)
{
    return ed_boolean_mask(w->x[0], w->x[1]);
}

static ed_tensor *nonzero(workload *w)
{
    return ed_nonzero(w->x[1]);
}

static void check_mask(workload *w, ed_tensor *y)
{
    int64_t n = 0;
    for (int64_t i = 0; i < M16; i++) {
        if (!bench_at(w->x[1], i)) continue;
        if (n % 1000 == 0)
            bench_near("an element", bench_at(y, n), w->n[0] ? (double)i : bench_at(w->x[0], i), 0);
        n++;
    }
    bench_claim(ed_size(y) == n, "there are as many elements as the mask has");
}

static void make_scatter(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(M1));
    w->x[1] = bench_indices(M1, M1, ED_INT32);
    w->x[2] = ed_variable(ed_zeros(ED_SHAPE(M1)));
}

static ed_tensor *scatter_add(workload *w)
{
    return ed_scatter_add(w->x[2], w->x[1], w->x[0]);
}

static void check_scatter(workload *w, ed_tensor *y)
{
    (void)y;
    for (int64_t place = 0; place < M1; place += M1 / 8) {
        double sum = 0;
        for (int64_t i = 0; i < M1; i++)
            if (bench_at(w->x[1], i) == (double)place) sum += bench_at(w->x[0], i);
        bench_near("a sum", bench_at(ed_value(w->x[2]), place), sum, 1e-5);
    }
}

/* ---- Elements by the numbers x[1] of their groups, n[0] of them ---- */

static void make_groups(workload *w)
{
    w->x[0] = bench_numbers(ED_SHAPE(M1));
    w->x[1] = bench_indices(M1, w->n[0], ED_INT32);
}

static ed_tensor *segment_sum(workload *w)
{
    return ed_unsorted_segment_sum(w->x[0], w->x[1], w->n[0]);
}

static ed_tensor *partition(workload *w)
{
    return ed_list_get(ed_dynamic_partition(w->x[0], w->x[1], w->n[0]), 0);
}

static void check_groups(workload *w, ed_tensor *y)
{
    double want = 0, got = 0;
    for (int64_t i = 0; i < M1; i++)
        if (bench_at(w->x[1], i) == 0) want += bench_at(w->x[0], i);
    for (int64_t i = 0; i < (w->run == partition ? ed_size(y) : 1); i++) got += bench_at(y, i);
    bench_near("the sum of the first group", got, want, 1e-3);
}

static ed_tensor *unique(workload *w)
{
    ed_tensor *indices, *values = ed_unique(w->x[1], &indices, NULL);
    return indices ? values : NULL;
}

static void check_unique(workload *w, ed_tensor *y)
{
    bench_claim(ed_size(y) == w->n[0], "all groups are there");
    bench_near("the first", bench_at(y, 0), bench_at(w->x[1], 0), 0);
}

/* ---- The gradient of an embedding: slices, of which an optimizer's step touches no more ---- */

static void make_embedding(workload *w)
{
    make_table(w);
    w->x[2] = ed_variable(w->x[0]);
    w->dy = bench_numbers(ED_SHAPE(TAKEN, WIDTH));
    w->more = ed_optimizer_sgd(.learning_rate = 0.5);
}

static ed_tensor *embedding_step(workload *w)
{
    ed_tape *tape = ed_tape_begin();
    ed_list *variables = ed_list_of(w->x[2]);
    ed_list *gradients = ed_gradient(tape, ed_gather(w->x[2], w->x[1]), variables,
                                     .output_gradients = ed_list_of(w->dy));
    ed_apply_gradients((ed_optimizer *)w->more, gradients, variables);
    return w->x[2];
}

static void check_embedding(workload *w, ed_tensor *y)
{
    (void)y;
    int64_t place = (int64_t)bench_at(w->x[1], 7);
    for (int64_t j = 0; j < WIDTH; j++) {
        double want = bench_at(w->x[0], place * WIDTH + j);
        for (int64_t i = 0; i < TAKEN; i++)
            if (bench_at(w->x[1], i) == (double)place) want -= 0.5 * bench_at(w->dy, i * WIDTH + j);
        bench_near("a weight", bench_at(ed_value(w->x[2]), place * WIDTH + j), want, 1e-5);
    }
}

static void check(workload *w, ed_tensor *y)
{
    const row *r = w->row;
    BENCH_SPREAD(k, ed_size(y)) bench_near("an element", bench_at(y, k), r->want(w, k), 0);
}

void bench_indexing(void)
{
    static const row rows[] = {
        {"one_hot_65536_of_100", 4.0 * LABELS * (CLASSES + 1), make_labels, one_hot, one_hot_want},
        {"take_along_axis1_256_of_4096x4096", 16.0 * SIDE * 256, make_matrix, take_along,
         take_along_want},
        {"gather_16384_of_100000x64", 8.0 * TAKEN * WIDTH, make_table, gather, gather_want}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        workload w = {BENCH_BYTES,   r->bytes,       .make = r->make,
                      .run = r->run, .check = check, .row = r};
        bench_add(w, "%s", r->name);
    }
    workload w = {BENCH_BYTES, 7.0 * M16, .make = make_mask, .run = mask, .check = check_mask};
    bench_add(w, "boolean_mask_16M");
    w.amount = 1.8 * M16, w.run = nonzero, w.n[0] = true;
    bench_add(w, "nonzero_16M");
    w = (workload){BENCH_BYTES, 16.0 * M1, .make = make_scatter, .run = scatter_add,
                   .check = check_scatter};
    bench_add(w, "scatter_add_1M_into_1M");
    w = (workload){BENCH_UPDATED, 20.0 * TAKEN * WIDTH, .make = make_embedding,
                   .run = embedding_step, .check = check_embedding};
    bench_add(w, "embedding_sgd_16384_of_100000x64");
    w = (workload){BENCH_BYTES, 8.0 * M1, .make = make_groups, .check = check_groups};
    w.run = segment_sum, w.n[0] = 100;
    bench_add(w, "segment_sum_1M_into_100");
    w.run = partition, w.n[0] = 8, w.amount = 12.0 * M1;
    bench_add(w, "dynamic_partition_1M_into_8");
    w.run = unique, w.check = check_unique, w.n[0] = 10000;
    bench_add(w, "unique_1M_of_10000");
}
