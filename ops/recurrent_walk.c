/* The walks of recurrent layers over time, there and back: see recurrent.h. */
#include "ops/kernels/gemm.h"
#include "ops/kernels/gemm_piece.h"
#include "ops/recurrent.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <string.h>

enum { CHUNK = 32, CHUNK_WORK = HARD(1, 1 << 16) }; /* rows; multiply-adds worth a thread */

/* A walk, as the threads share it. All tensors are contiguous. */
typedef struct walk {
    const recurrence *r;
    const recurrent_loops *loops;
    const ed_tensor *const *in;
    ed_tensor *const *out;
    const uint8_t *mask; /* [batch, time] or NULL */
    bool wide;
    int64_t size;  /* bytes of a number */
    char *packed;  /* the recurrent kernel, or its transpose, in panels */
    int64_t panel; /* bytes of a row of a panel */
    char *scratch; /* of all workers */
    size_t each;   /* bytes of a worker's */
    int workers;
} walk;

/* A chunk of rows: its states and one step's numbers, CHUNK rows each. */
typedef struct chunk {
    int64_t first, rows;
    char *h, *c, *carried, *back, *product;
} chunk;

/* Of a call whose mask, if there is one, is that operand. */
static walk walk_of(const ed_call *call, ed_dtype dtype, int mask)
{
    return (walk){.r = call->plan,
                  .in = (const ed_tensor *const *)call->inputs,
                  .out = call->outputs,
                  .mask = call->n_inputs > mask ? (const uint8_t *)call->inputs[mask]->data : NULL,
                  .size = (int64_t)dtype_size(dtype),
                  .wide = dtype == ED_FLOAT64};
}

/* Packs B[k,n], whose strides are in bytes, and makes the workers' scratch. */
static bool walk_begin(walk *w, int64_t k, int64_t n, const char *b, int64_t row, int64_t column)
{
    static const recurrent_loops *const tables[ISA_COUNT] = ISA_TABLE(recurrent_table);
    int64_t tile_rows, tile;
    ISA_CALL(gemm_tile)(w->wide, &tile_rows, &tile);
    w->loops = &tables[isa_level][w->wide ? ED_FLOAT64 : ED_FLOAT32];
    w->panel = tile * w->size;
    const int64_t panels = (n + tile - 1) / tile;
    w->each = (size_t)(CHUNK * (4 * w->r->units + w->r->columns) * w->size + 64) / 64 * 64;
    w->packed = memory_alloc((size_t)(panels * k * w->panel + 1));
    w->workers = threads_count();
    w->scratch = memory_alloc(w->each * (size_t)w->workers);
    if (!w->packed || !w->scratch) return false;
    if (k && n) ISA_CALL(gemm_pack)(w->wide, k, n, b, row, column, w->packed, k * w->panel);
    return true;
}

static void walk_end(walk *w)
{
    memory_free(w->packed);
    memory_free(w->scratch);
}

static bool walk_run(walk *w, threads_range range)
{
    const recurrence *r = w->r;
    const int64_t chunks = (r->batch + CHUNK - 1) / CHUNK;
    const double work = (double)r->batch * (double)r->units * (double)(r->columns + 8);
    threads_run_among(w->workers, chunks, work * (double)r->time < CHUNK_WORK ? chunks : 1, range,
                      w);
    return true;
}

static chunk chunk_of(const walk *w, int64_t i, int worker)
{
    const int64_t states = CHUNK * w->r->units * w->size, first = i * CHUNK;
    char *at = w->scratch + w->each * (size_t)worker;
    const int64_t left = w->r->batch - first;
    return (chunk){.first = first,
                   .rows = left < CHUNK ? left : CHUNK,
                   .h = at,
                   .c = at + states,
                   .carried = at + 2 * states,
                   .back = at + 3 * states,
                   .product = at + 4 * states};
}

/* C[rows,n] = (add: C +) A[rows,k] B, dense, with the packed B. */
static void product(const walk *w, bool add, int64_t rows, int64_t n, int64_t k, const char *a,
                    char *c)
{
    static const int64_t zero = 0;
    const gemm_runs_job job = {.wide = w->wide,
                               .add = add,
                               .m = rows,
                               .n = n,
                               .k = k,
                               .runs = 1,
                               .a_runs = &zero,
                               .b_runs = &zero,
                               .a = a,
                               .b = w->packed,
                               .c = c,
                               .a_row = k * w->size,
                               .a_col = w->size,
                               .b_row = w->panel,
                               .b_panel = k * w->panel,
                               .c_row = n * w->size,
                               .c_col = w->wide ? 8 : 4};
    if (rows > 0 && n > 0 && k > 0) ISA_CALL(gemm_runs)(&job);
}

/* A step of a row in a tensor [batch, time, n]. */
static char *step_of(const walk *w, const ed_tensor *x, int64_t n, int64_t row, int64_t t)
{
    return x->data + (row * w->r->time + t) * n * w->size;
}

/* Asks for a step of the row after row i of a chunk: they lie far from each other, and the machine
 * does not foresee what is that short. */
static void ask_for_next(const walk *w, const chunk *k, const ed_tensor *x, int64_t n, int64_t i,
                         int64_t t)
{
    if (i + 1 == k->rows || !x->size) return;
    const char *next = step_of(w, x, n, k->first + i + 1, t);
    for (int64_t at = 0; at < n * w->size; at += 64) __builtin_prefetch(next + at);
}

static bool takes_part(const walk *w, int64_t row, int64_t t)
{
    return !w->mask || w->mask[row * w->r->time + t];
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* One row's step behind the product with its state. */
static void step_forward(const walk *w, const chunk *k, int64_t i, int64_t t)
{
    const recurrence *r = w->r;
    const int64_t row = k->first + i, units = r->units;
    const size_t state = (size_t)(units * w->size);
    char *h = k->h + i * units * w->size, *c = k->c + i * units * w->size;
    char *y = step_of(w, w->out[OUT_Y], units, row, t);
    char *gates = step_of(w, w->out[OUT_GATES], r->gates, row, t);
    ask_for_next(w, k, w->in[IN_Z], r->columns, i, t);
    ask_for_next(w, k, w->out[OUT_GATES], r->gates, i, t);
    for (int o = OUT_STATES; o <= OUT_CELLS; o++) ask_for_next(w, k, w->out[o], units, i, t);
    ask_for_next(w, k, w->out[OUT_Y], units, i, t);
    memcpy(step_of(w, w->out[OUT_STATES], units, row, t), h, state);
    if (r->cell == CELL_LSTM) memcpy(step_of(w, w->out[OUT_CELLS], units, row, t), c, state);
    if (takes_part(w, row, t)) {
        w->loops->forward(r->cell, units, step_of(w, w->in[IN_Z], r->columns, row, t),
                          k->product + i * r->columns * w->size, h, c, gates);
        memcpy(y, h, state);
        return;
    }
    memset(gates, 0, (size_t)(r->gates * w->size));
    if (t)
        memcpy(y, y - state, state);
    else
        memset(y, 0, state);
}

static void forward_chunks(int64_t first, int64_t last, int worker, void *user)
{
    const walk *w = user;
    const recurrence *r = w->r;
    const int64_t state = r->units * w->size, line = r->columns * w->size;
    const bool lstm = r->cell == CELL_LSTM;
    for (int64_t n = first; n < last; n++) {
        const chunk k = chunk_of(w, n, worker);
        memcpy(k.h, w->in[IN_STATE]->data + k.first * state, (size_t)(k.rows * state));
        if (lstm) memcpy(k.c, w->in[IN_EXTRA]->data + k.first * state, (size_t)(k.rows * state));
        for (int64_t t = 0; t < r->time; t++) {
            for (int64_t i = 0; i < k.rows && !lstm; i++)
                memcpy(k.product + i * line, w->in[IN_EXTRA]->data, (size_t)line);
            product(w, !lstm, k.rows, r->columns, r->units, k.h, k.product);
            for (int64_t i = 0; i < k.rows; i++) step_forward(w, &k, i, t);
        }
        memcpy(w->out[OUT_H]->data + k.first * state, k.h, (size_t)(k.rows * state));
        if (lstm) memcpy(w->out[OUT_C]->data + k.first * state, k.c, (size_t)(k.rows * state));
    }
}

bool recurrent_forward(ed_call *call)
{
    const recurrence *r = call->plan;
    const ed_tensor *kernel = call->inputs[IN_KERNEL];
    walk w = walk_of(call, kernel->dtype, IN_MASK);
    const int64_t size = w.size;
    const bool ok = walk_begin(&w, r->units, r->columns, kernel->data, r->columns * size, size) &&
                    walk_run(&w, forward_chunks);
    walk_end(&w);
    return ok;
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* Adds what flows into a row's result of step t to dh, or carries it to the step whose result it
 * is. */
static bool take_dy(const walk *w, const chunk *k, int64_t i, int64_t t)
{
    const int64_t units = w->r->units, row = k->first + i;
    const char *dy = step_of(w, w->in[BACK_DY], units, row, t);
    char *dh = k->h + i * units * w->size, *carried = k->carried + i * units * w->size;
    if (!w->mask) {
        w->loops->add(units, dh, dy, dh);
        return true;
    }
    w->loops->add(units, carried, dy, carried);
    if (!takes_part(w, row, t)) return false;
    w->loops->add(units, dh, carried, dh);
    memset(carried, 0, (size_t)(units * w->size));
    return true;
}

static void step_backward(const walk *w, const chunk *k, int64_t i, int64_t t)
{
    const recurrence *r = w->r;
    const int64_t units = r->units, row = k->first + i, line = r->columns * w->size;
    char *dz = step_of(w, w->out[BACK_DZ], r->columns, row, t), *dp = k->product + i * line;
    const bool gru = r->cell == CELL_GRU;
    ask_for_next(w, k, w->out[BACK_DZ], r->columns, i, t);
    ask_for_next(w, k, w->in[BACK_GATES], r->gates, i, t);
    for (int o = BACK_STATES; o <= BACK_DY; o++) ask_for_next(w, k, w->in[o], units, i, t);
    if (take_dy(w, k, i, t)) {
        const char *c = r->cell == CELL_LSTM ? step_of(w, w->in[BACK_CELLS], units, row, t) : NULL;
        w->loops->backward(r->cell, units, step_of(w, w->in[BACK_GATES], r->gates, row, t),
                           step_of(w, w->in[BACK_STATES], units, row, t), c,
                           k->h + i * units * w->size, k->c + i * units * w->size, dz, dp);
        if (!gru) memcpy(dp, dz, (size_t)line);
    } else {
        memset(dz, 0, (size_t)line);
        memset(dp, 0, (size_t)line);
    }
    if (gru) memcpy(step_of(w, w->out[BACK_DPRODUCT], r->columns, row, t), dp, (size_t)line);
}

/* What flows through a step's product to the states before it; nothing to those that stayed. */
static void flow_back(const walk *w, const chunk *k, int64_t t)
{
    const recurrence *r = w->r;
    const int64_t state = r->units * w->size;
    if (!w->mask) {
        product(w, true, k->rows, r->units, r->columns, k->product, k->h);
        return;
    }
    memcpy(k->back, k->h, (size_t)(k->rows * state));
    product(w, true, k->rows, r->units, r->columns, k->product, k->back);
    for (int64_t i = 0; i < k->rows; i++)
        if (takes_part(w, k->first + i, t))
            memcpy(k->h + i * state, k->back + i * state, (size_t)state);
}

static void backward_chunks(int64_t first, int64_t last, int worker, void *user)
{
    const walk *w = user;
    const recurrence *r = w->r;
    const int64_t state = r->units * w->size;
    const bool lstm = r->cell == CELL_LSTM;
    for (int64_t n = first; n < last; n++) {
        const chunk k = chunk_of(w, n, worker);
        memcpy(k.h, w->in[BACK_DH]->data + k.first * state, (size_t)(k.rows * state));
        if (lstm) memcpy(k.c, w->in[BACK_DC]->data + k.first * state, (size_t)(k.rows * state));
        memset(k.carried, 0, (size_t)(k.rows * state));
        for (int64_t t = r->time - 1; t >= 0; t--) {
            for (int64_t i = 0; i < k.rows; i++) step_backward(w, &k, i, t);
            flow_back(w, &k, t);
        }
        memcpy(w->out[BACK_DSTATE]->data + k.first * state, k.h, (size_t)(k.rows * state));
        if (lstm) memcpy(w->out[BACK_DCELL]->data + k.first * state, k.c, (size_t)(k.rows * state));
    }
}

/* dR = states^T dp, over all rows and steps at once. */
static bool kernel_gradient(const walk *w)
{
    const recurrence *r = w->r;
    const ed_tensor *states = w->in[BACK_STATES], *y = w->out[BACK_DKERNEL];
    const ed_tensor *dp = w->out[r->cell == CELL_GRU ? BACK_DPRODUCT : BACK_DZ];
    const int64_t u = r->units, n = r->columns, rows = r->batch * r->time;
    if (w->wide)
        return gemm_f64(u, n, rows, (const double *)states->data, 1, u, (const double *)dp->data, n,
                        1, (double *)y->data, n, NULL);
    return gemm_f32(u, n, rows, (const float *)states->data, 1, u, (const float *)dp->data, n, 1,
                    (float *)y->data, n, NULL);
}

bool recurrent_backward(ed_call *call)
{
    const recurrence *r = call->plan;
    const ed_tensor *kernel = call->inputs[BACK_KERNEL];
    walk w = walk_of(call, kernel->dtype, BACK_MASK);
    const int64_t size = w.size;
    const bool ok = walk_begin(&w, r->columns, r->units, kernel->data, size, r->columns * size) &&
                    walk_run(&w, backward_chunks) && kernel_gradient(&w);
    walk_end(&w);
    return ok;
}
