/* scaled_dot_product_attention: see attention.h; its gradient is in attention_gradient.c. */
#include "ops/attention.h"
#include "ops/generator.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

/* ---- Shapes ---------------------------------------------------------------------------------- */

static bool leading_agree(const ed_tensor *a, const ed_tensor *b, int n)
{
    return a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)n * sizeof *a->shape);
}

static bool shapes_agree(const ed_tensor *query, const ed_tensor *key, const ed_tensor *value)
{
    const int r = query->rank;
    if (r < 2 || !leading_agree(query, key, r > 3 ? r - 3 : 0) || !leading_agree(key, value, r - 1))
        return false;
    if (query->shape[r - 1] != key->shape[r - 1]) return false;
    if (r == 2) return true;
    const int64_t heads = query->shape[r - 3], fewer = key->shape[r - 3];
    return heads == fewer || (fewer > 0 && heads > 0 && heads % fewer == 0);
}

/* Whether the mask broadcasts to the scores. */
static bool mask_fits(const ed_tensor *query, const ed_tensor *key, const ed_tensor *mask)
{
    const int r = query->rank;
    if (mask->rank > r) return false;
    for (int i = 1; i <= mask->rank; i++) {
        const int64_t size = mask->shape[mask->rank - i];
        if (size != 1 && size != (i == 1 ? key->shape[r - 2] : query->shape[r - i])) return false;
    }
    return true;
}

bool attention_plan(ed_call *call, const ed_tensor *query, const ed_tensor *key,
                    const ed_tensor *value, const ed_tensor *mask)
{
    const attention_attrs *o = call->attrs;
    if (!shapes_agree(query, key, value))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "query must be [..., heads, targets, size], key [..., heads, sources, "
                            "size], value [..., heads, sources, values], with as many heads or a "
                            "divisor of them: query is %s, key is %s, value is %s",
                            text_of_tensor(query).s, text_of_tensor(key).s,
                            text_of_tensor(value).s);
    if (mask && !mask_fits(query, key, mask))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "mask must broadcast to [..., heads, targets, sources]: mask is %s, "
                            "query is %s, key is %s",
                            text_of_tensor(mask).s, text_of_tensor(query).s, text_of_tensor(key).s);
    attention *a = ed_call_plan(call, sizeof *a);
    if (!a) return false;
    const int r = query->rank;
    *a = (attention){.heads = 1,
                     .group = 1,
                     .targets = query->shape[r - 2],
                     .sources = key->shape[r - 2],
                     .size = query->shape[r - 1],
                     .values = value->shape[r - 1],
                     .rows = o->is_causal ? ATTENTION_CAUSAL_ROWS : ATTENTION_ROWS};
    for (int i = 0; i < r - 2; i++) a->heads *= query->shape[i];
    if (r > 2 && key->shape[r - 3]) a->group = query->shape[r - 3] / key->shape[r - 3];
    a->scale = o->scale != 0 ? o->scale : 1 / sqrt(a->size > 1 ? (double)a->size : 1);
    if (mask)
        a->mask = mask->dtype == ED_BOOL      ? MASK_BOOL
                  : mask->dtype == ED_FLOAT32 ? MASK_F32
                                              : MASK_F64;
    return true;
}

static const ed_tensor *given_mask(const ed_call *call)
{
    return call->n_inputs > 3 ? call->inputs[3] : NULL;
}

static bool attention_infer(ed_call *call)
{
    const ed_tensor *query = call->inputs[0], *value = call->inputs[2];
    const int r = query->rank;
    int64_t shape[ED_MAX_RANK];
    if (!attention_plan(call, query, call->inputs[1], value, given_mask(call))) return false;
    memcpy(shape, query->shape, sizeof shape);
    shape[r - 1] = value->shape[r - 1];
    for (int i = 1; i < 4; i++)
        if (!ed_call_output(call, i, query->dtype, r - 1, shape)) return false;
    return ed_call_output(call, 0, query->dtype, r, shape);
}

/* ---- What both kernels need ------------------------------------------------------------------ */

enum {
    GEMM_ROOM = 1 << 20,    /* more than gemm_piece needs */
    HEAD_WORK = HARD(1, 32) /* scores that are worth a second thread, in 1024 */
};

static int64_t wider(const attention *a)
{
    return a->size > a->values ? a->size : a->values;
}

attention_room attention_room_of(const attention_work *w, int worker)
{
    enum { SCORES = ATTENTION_ROWS * ATTENTION_COLUMNS };
    attention_room room;
    room.gemm = w->scratch + w->each * (size_t)worker;
    room.scores = room.gemm + GEMM_ROOM;
    room.others = room.scores + SCORES * w->element;
    room.rescale = room.others + SCORES * w->element;
    room.product = room.rescale + ATTENTION_ROWS * w->element;
    room.keep = (uint8_t *)room.product + (size_t)(ATTENTION_COLUMNS * wider(w->a)) * w->element;
    room.zeros = room.keep + SCORES;
    return room;
}

bool attention_run(attention_work *w, int64_t parts,
                   void (*range)(int64_t first, int64_t last, int worker, void *user))
{
    static const attention_loops *const tables[ISA_COUNT] = ISA_TABLE(attention_table);
    enum { SCORES = ATTENTION_ROWS * ATTENTION_COLUMNS };
    const attention *a = w->a;
    const double work = (double)a->heads * (double)a->targets * (double)a->sources;
    const int count = threads_count();
    w->wide = w->query->dtype == ED_FLOAT64;
    w->element = w->wide ? 8 : 4;
    w->loops = &tables[isa_level][w->query->dtype];
    size_t numbers, bytes;
    if (__builtin_mul_overflow((size_t)wider(a), ATTENTION_COLUMNS, &numbers) ||
        __builtin_add_overflow(numbers, 2 * SCORES + ATTENTION_ROWS, &numbers) ||
        __builtin_mul_overflow(numbers, w->element, &bytes) ||
        __builtin_add_overflow(bytes, GEMM_ROOM + SCORES + 16 * ATTENTION_COLUMNS, &bytes))
        return ed_fail(ED_OUT_OF_MEMORY, "attention: the heads are too large"), false;
    w->each = (bytes + 63) / 64 * 64;
    w->scratch = memory_alloc(w->each * (size_t)count);
    if (!w->scratch) return false;
    threads_run_among(count, parts, work < HEAD_WORK * 1024 ? parts : 1, range, w);
    memory_free(w->scratch);
    return true;
}

const char *attention_head(const attention_work *w, const ed_tensor *x, int64_t head, int64_t group)
{
    const ed_tensor *query = w->query;
    int64_t at = 0;
    for (int d = query->rank - 3; d >= 0; d--) {
        const int64_t i = head % query->shape[d], mine = d - (query->rank - x->rank);
        head /= query->shape[d];
        if (mine < 0 || x->shape[mine] == 1) continue;
        at += (d == query->rank - 3 ? i / group : i) * x->strides[mine];
    }
    return x->data + at * (int64_t)dtype_size(x->dtype);
}

attention_matrix attention_of(const ed_tensor *x, const char *head)
{
    const int64_t size = (int64_t)dtype_size(x->dtype);
    return (attention_matrix){(char *)head, x->strides[x->rank - 2] * size,
                              x->strides[x->rank - 1] * size};
}

attention_matrix attention_turned(attention_matrix x)
{
    return (attention_matrix){x.data, x.column, x.row};
}

void attention_product(const attention_work *w, const attention_room *room, int64_t m, int64_t n,
                       int64_t k, attention_matrix a, attention_matrix b, char *c, int64_t c_row)
{
    const gemm_job job = {.wide = w->wide,
                          .m = m,
                          .n = n,
                          .k = k,
                          .a = a.data,
                          .b = b.data,
                          .c = c,
                          .a_row = a.row,
                          .a_col = a.column,
                          .b_row = b.row,
                          .b_col = b.column,
                          .c_row = c_row};
    if (m > 0 && n > 0) ISA_CALL(gemm_piece)(&job, room->gemm);
}

/* Which of n scores from number `first` on dropout keeps. Philox gives four numbers at a step. */
static void draw_kept(const attention_attrs *o, uint64_t first, int64_t n, float *zeros,
                      uint8_t *all, uint8_t *keep)
{
    philox p = random_philox(o->draw.state);
    const int64_t skip = (int64_t)(first % 4);
    philox_skip(&p, first / 4);
    philox_dropout_f32(&p, n + skip, o->dropout_rate, zeros, zeros, all);
    memcpy(keep, all + skip, (size_t)n);
}

static int64_t smaller(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

int64_t attention_columns(const attention_work *w, int64_t row, int64_t column)
{
    const attention *a = w->a;
    const int64_t columns = smaller(ATTENTION_COLUMNS, a->sources - column);
    if (!w->o->is_causal) return columns;
    return row < a->targets ? smaller(columns, row + a->rows - column) : 0;
}

attention_block attention_block_at(const attention_work *w, const attention_room *room,
                                   int64_t head, int64_t row, int64_t column)
{
    const attention *a = w->a;
    const ed_tensor *mask = w->mask;
    attention_block b = {.rows = smaller(a->rows, a->targets - row),
                         .columns = attention_columns(w, row, column),
                         .stride = ATTENTION_COLUMNS,
                         .row = row,
                         .column = column,
                         .kind = a->mask,
                         .scale = a->scale,
                         .causal = w->o->is_causal};
    if (mask) {
        const int r = mask->rank;
        b.mask = attention_head(w, mask, head, 1);
        b.mask_row = r > 1 && mask->shape[r - 2] != 1 ? mask->strides[r - 2] : 0;
        b.mask_column = r > 0 && mask->shape[r - 1] != 1 ? mask->strides[r - 1] : 0;
    }
    if (w->o->dropout_rate == 0) return b;
    float zeros[ATTENTION_COLUMNS + 4] = {0};
    for (int64_t i = 0; i < b.rows; i++)
        draw_kept(w->o, (uint64_t)((head * a->targets + row + i) * a->sources + column), b.columns,
                  zeros, room->zeros, room->keep + i * b.columns);
    b.keep = room->keep;
    b.factor = 1 / (1 - w->o->dropout_rate);
    return b;
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* Rows of one head: y, the largest scores and the sums. */
static void attend_rows(const attention_work *w, const attention_room *room, int64_t head,
                        int64_t row)
{
    const attention *a = w->a;
    const int64_t size = (int64_t)w->element, line = ATTENTION_COLUMNS * size;
    const attention_matrix query = attention_of(w->query, attention_head(w, w->query, head, 1));
    const attention_matrix key = attention_of(w->key, attention_head(w, w->key, head, a->group));
    const attention_matrix value =
        attention_of(w->value, attention_head(w, w->value, head, a->group));
    const int64_t at = head * a->targets + row, rows = smaller(a->rows, a->targets - row);
    char *y = w->outputs[0]->data + at * a->values * size;
    char *largest = w->outputs[2]->data + at * size, *sum = w->outputs[3]->data + at * size;
    for (int64_t i = 0; i < rows; i++) dtype_store(w->query->dtype, largest, i, -INFINITY);
    memset(sum, 0, (size_t)(rows * size));
    if (!a->sources) memset(y, 0, (size_t)(rows * a->values * size));
    for (int64_t column = 0; column < a->sources; column += ATTENTION_COLUMNS) {
        if (w->o->is_causal && column >= row + rows) break;
        const attention_block b = attention_block_at(w, room, head, row, column);
        attention_matrix q = query, k = attention_turned(key), v = value;
        q.data += row * query.row;
        k.data += column * key.row;
        v.data += column * value.row;
        attention_product(w, room, rows, b.columns, a->size, q, k, room->scores, line);
        w->loops->exponentials(&b, room->scores, largest, sum, room->rescale);
        const attention_matrix p = {room->scores, line, size};
        attention_product(w, room, rows, a->values, b.columns, p, v, column ? room->product : y,
                          a->values * size);
        if (column) w->loops->join(rows, a->values, room->rescale, room->product, y);
    }
    w->loops->finish(rows, a->values, largest, sum, y, w->outputs[1]->data + at * size);
}

static int64_t row_blocks(const attention *a)
{
    return (a->targets + a->rows - 1) / a->rows;
}

static void attend(int64_t first, int64_t last, int worker, void *user)
{
    const attention_work *w = user;
    const attention_room room = attention_room_of(w, worker);
    const int64_t blocks = row_blocks(w->a);
    for (int64_t i = first; i < last; i++)
        attend_rows(w, &room, i / blocks, i % blocks * w->a->rows);
}

static bool attention_kernel(ed_call *call)
{
    attention_work w = {.a = call->plan,
                        .o = call->attrs,
                        .query = call->inputs[0],
                        .key = call->inputs[1],
                        .value = call->inputs[2],
                        .mask = given_mask(call),
                        .outputs = call->outputs};
    return attention_run(&w, w.a->heads * row_blocks(w.a), attend);
}

/* ---- The reference --------------------------------------------------------------------------- */

/* Element [head, target, source] of the mask, contiguous and in float64, which is broadcast. */
static double plain_mask(const ed_call *call, const ed_tensor *mask, int64_t head, int64_t target,
                         int64_t source)
{
    const ed_tensor *query = call->inputs[0];
    int64_t at = 0, step = 1, index = source;
    for (int i = 1; i <= mask->rank; i++) {
        if (i == 2) index = target;
        if (i > 2) {
            index = head % query->shape[query->rank - i];
            head /= query->shape[query->rank - i];
        }
        if (mask->shape[mask->rank - i] != 1) at += index * step;
        step *= mask->shape[mask->rank - i];
    }
    return ((const double *)mask->data)[at];
}

void attention_plain_scores(const ed_call *call, const double *query, const double *key,
                            const ed_tensor *mask, int64_t head, int64_t target, double *scores)
{
    const attention *a = call->plan;
    const attention_attrs *o = call->attrs;
    query += (head * a->targets + target) * a->size;
    key += head / a->group * a->sources * a->size;
    for (int64_t j = 0; j < a->sources; j++) {
        scores[j] = 0;
        for (int64_t e = 0; e < a->size; e++) scores[j] += query[e] * key[j * a->size + e];
        scores[j] *= a->scale;
        const double m = mask ? plain_mask(call, mask, head, target, j) : 0;
        if (a->mask == MASK_BOOL)
            scores[j] = m != 0 ? scores[j] : -INFINITY;
        else
            scores[j] += m;
        if (o->is_causal && j > target) scores[j] = -INFINITY;
    }
}

ed_tensor *attention_kept(const attention *a, const attention_attrs *o, ed_dtype dtype)
{
    const int64_t shape[] = {a->heads, a->targets, a->sources};
    if (o->dropout_rate == 0) return NULL;
    ed_tensor *y = scope_give(tensor_new(dtype, 3, shape));
    ed_tensor *drawn = scope_give(tensor_new(ED_FLOAT32, 3, shape));
    if (!y || !drawn) return NULL;
    const philox p = random_philox(o->draw.state);
    float *k = (float *)drawn->data;
    for (int64_t i = 0; i < y->size; i++) k[i] = 1;
    philox_dropout_f32(&p, y->size, o->dropout_rate, k, k, NULL);
    for (int64_t i = 0; i < y->size; i++)
        dtype_store(dtype, y->data, i, k[i] != 0 ? 1 / (1 - o->dropout_rate) : 0);
    return y;
}

static bool attention_reference(const ed_call *call)
{
    const attention *a = call->plan;
    const double *value = (const double *)call->inputs[2]->data;
    double *y = (double *)call->outputs[0]->data, *l = (double *)call->outputs[1]->data;
    double *largest = (double *)call->outputs[2]->data, *sums = (double *)call->outputs[3]->data;
    const ed_tensor *kept = attention_kept(a, call->attrs, ED_FLOAT64);
    double *s = memory_alloc((size_t)a->sources * sizeof *s);
    for (int64_t i = 0; s && i < a->heads * a->targets; i++) {
        const double *v = value + i / a->targets / a->group * a->sources * a->values;
        double m = -INFINITY, sum = 0;
        attention_plain_scores(call, (const double *)call->inputs[0]->data,
                               (const double *)call->inputs[1]->data, given_mask(call),
                               i / a->targets, i % a->targets, s);
        for (int64_t j = 0; j < a->sources; j++) m = s[j] > m || isnan(s[j]) ? s[j] : m;
        for (int64_t j = 0; j < a->sources; j++) sum += s[j] = m == -INFINITY ? 0 : exp(s[j] - m);
        for (int64_t e = 0; e < a->values; e++) {
            double total = 0;
            for (int64_t j = 0; j < a->sources; j++) {
                const double k = kept ? ((const double *)kept->data)[i * a->sources + j] : 1;
                total += (k != 0 ? s[j] * k : 0) * v[j * a->values + e];
            }
            y[i * a->values + e] = sum == 0 ? 0 : total / sum;
        }
        l[i] = m + log(sum);
        largest[i] = m;
        sums[i] = sum;
    }
    memory_free(s);
    return s != NULL;
}

/* ---- The op ---------------------------------------------------------------------------------- */

#define QUERIES(...) ED_SAMPLE_IN(-2, 2, __VA_ARGS__)

/* attention: p = softmax(scale q k^T + mask), y = p v; dv = p^T dy, ds = p (dy v^T - dy y),
 * dq = scale ds k, dk = scale ds^T q */
ED_OP(scaled_dot_product_attention) = {
    .name = "scaled_dot_product_attention",
    .doc = "softmax(scale query key^T + mask) value, for each head",
    .operands = {{"query", ED_SET_FLOAT, 'T', .saved = true},
                 {"key", ED_SET_FLOAT, 'T', .saved = true},
                 {"value", ED_SET_FLOAT, 'T', .saved = true},
                 {"mask", ED_SET_FLOAT | ED_SET_BOOL, 0, .saved = true, .optional = true}},
    .results = ED_RESULTS({.name = "y", .saved = true}, {.name = "logsumexp"},
                          {.name = "largest", .saved = true, .kept = true},
                          {.name = "sum", .saved = true, .kept = true}),
    ED_OP_ATTRS(ATTENTION_ATTRS, attention_attrs),
    .infer = attention_infer,
    .kernel = attention_kernel,
    .gradient = attention_gradient,
    .reference = attention_reference,
    .samples = ED_SAMPLES({.inputs = {QUERIES(2, 3, 4), QUERIES(2, 5, 4), QUERIES(2, 5, 6)},
                           .attrs = ATTENTION(.draw = DRAWN)},
                          {.inputs = {QUERIES(2, 4, 3, 2), QUERIES(2, 2, 5, 2), QUERIES(2, 2, 5, 3),
                                      QUERIES(2, 1, 3, 5)},
                           .attrs = ATTENTION(.draw = DRAWN)},
                          {.inputs = {QUERIES(5, 3), QUERIES(4, 3), QUERIES(4, 2), QUERIES(1, 4)},
                           .attrs = ATTENTION(.scale = 0.5, .is_causal = true, .draw = DRAWN)},
                          {.inputs = {QUERIES(2, 3, 4), QUERIES(2, 5, 4), QUERIES(2, 5, 4),
                                      QUERIES(5)},
                           .attrs = ATTENTION(.dropout_rate = 0.4, .draw = DRAWN)}),
};

ed_tensor *ed_scaled_dot_product_attention_with(ed_tensor *query, ed_tensor *key, ed_tensor *value,
                                                ed_tensor *mask, ed_tensor **logsumexp,
                                                const ed_attention_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_ATTENTION_OPTIONS, options);
    const ed_op *op = &ed_op_scaled_dot_product_attention;
    const bool drops = options->dropout_rate != 0;
    const void *attrs = ED_OPTIONS_FROM(ED_ATTENTION_VALUES, options, attention_attrs,
                                        .draw = {options->generator, .drawn = !drops});
    return ops_call_into(op, (ed_tensor *const[]){query, key, value, mask}, mask ? 4 : 3, attrs,
                         (ed_tensor * *const[]){logsumexp, NULL, NULL});
}
