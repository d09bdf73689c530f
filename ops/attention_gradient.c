/*
 * The gradient of attention, in two ways: an op that goes over the blocks of the scores, and public
 * ops on the whole matrix, which tapes can record.
 */
#include "ops/attention.h"
#include "ops/ops.h"
#include "tensor/memory.h"
#include <math.h>
#include <string.h>

/* ---- The op ---------------------------------------------------------------------------------- */

enum { DY = 3, LARGEST, SUM, DELTA, MASK };

static const ed_tensor *mask_given(const ed_call *call)
{
    return call->n_inputs > MASK ? call->inputs[MASK] : NULL;
}

static bool gradient_shapes(const ed_call *call)
{
    const ed_tensor *q = call->inputs[0], *v = call->inputs[2], *dy = call->inputs[DY];
    const int r = q->rank;
    if (dy->rank != r || memcmp(dy->shape, q->shape, (size_t)(r - 1) * sizeof *q->shape) ||
        dy->shape[r - 1] != v->shape[r - 1])
        return false;
    for (int i = LARGEST; i <= DELTA; i++) {
        const ed_tensor *t = call->inputs[i];
        if (t->rank != r - 1 || memcmp(t->shape, q->shape, (size_t)(r - 1) * sizeof *q->shape))
            return false;
    }
    return true;
}

static bool gradient_infer(ed_call *call)
{
    if (!attention_plan(call, call->inputs[0], call->inputs[1], call->inputs[2], mask_given(call)))
        return false;
    if (!gradient_shapes(call))
        return ed_call_fail(
            call, ED_INVALID_ARGUMENT,
            "dy must have the shape of the result, largest, sum and delta that "
            "without the last axis: dy is %s, largest is %s, sum is %s, delta is %s",
            text_of_tensor(call->inputs[DY]).s, text_of_tensor(call->inputs[LARGEST]).s,
            text_of_tensor(call->inputs[SUM]).s, text_of_tensor(call->inputs[DELTA]).s);
    for (int i = 0; i < 3; i++) {
        const ed_tensor *x = call->inputs[i];
        if (!ed_call_output(call, i, x->dtype, x->rank, x->shape)) return false;
    }
    return true;
}

/* One head of query, or of what belongs to one: rows from `at` on, dense. */
typedef struct dense {
    char *data;
    int64_t line;
} dense;

static dense head_of(const attention_work *w, ed_tensor *y, int64_t head, int64_t rows, int64_t n)
{
    const int64_t line = n * (int64_t)w->element;
    return (dense){y->data + head * rows * line, line};
}

/* A B of `rows` rows is y[at..] if it is the first there, and added to it else. */
static void add_product(const attention_work *w, const attention_room *room, int64_t rows,
                        int64_t k, attention_matrix a, attention_matrix b, dense y, int64_t at,
                        bool first)
{
    const int64_t n = y.line / (int64_t)w->element;
    char *const to = y.data + at * y.line;
    attention_product(w, room, rows, n, k, a, b, first ? to : room->product, y.line);
    if (!first) w->loops->add(rows * n, room->product, to);
}

static attention_matrix rows_from(attention_matrix x, int64_t row)
{
    return (attention_matrix){x.data + row * x.row, x.row, x.column};
}

/* What one block adds to the three gradients. `first`: the block is the first of its columns, and
 * sets their gradients of key and value. Column 0, which every row sees, comes first and sets that
 * of query. */
static void block_gradient(const attention_work *w, const attention_room *room, int64_t head,
                           int64_t row, int64_t column, bool first)
{
    const attention *a = w->a;
    const int64_t size = (int64_t)w->element, line = ATTENTION_COLUMNS * size;
    const int64_t of = head / a->group, at = (head * a->targets + row) * size;
    const attention_block b = attention_block_at(w, room, head, row, column);
    const attention_matrix q =
        rows_from(attention_of(w->query, attention_head(w, w->query, head, 1)), row);
    const attention_matrix k =
        rows_from(attention_of(w->key, attention_head(w, w->key, head, a->group)), column);
    const attention_matrix v =
        rows_from(attention_of(w->value, attention_head(w, w->value, head, a->group)), column);
    const attention_matrix dy =
        rows_from(attention_of(w->dy, attention_head(w, w->dy, head, 1)), row);
    const attention_matrix p = {room->scores, line, size}, ds = {room->others, line, size};
    attention_product(w, room, b.rows, b.columns, a->size, q, attention_turned(k), p.data, line);
    w->loops->probabilities(&b, p.data, w->largest->data + at, w->sum->data + at);
    attention_product(w, room, b.rows, b.columns, a->values, dy, attention_turned(v), ds.data,
                      line);
    w->loops->gradient(&b, p.data, ds.data, w->delta->data + at);
    add_product(w, room, b.rows, b.columns, ds, k,
                head_of(w, w->outputs[0], head, a->targets, a->size), row, column == 0);
    add_product(w, room, b.columns, b.rows, attention_turned(ds), q,
                head_of(w, w->outputs[1], of, a->sources, a->size), column, first);
    add_product(w, room, b.columns, b.rows, attention_turned(p), dy,
                head_of(w, w->outputs[2], of, a->sources, a->values), column, first);
}

/* The gradients of key and value in one block of columns, from the heads of query that share it. */
static void column_gradient(const attention_work *w, const attention_room *room, int64_t key_head,
                            int64_t column)
{
    const attention *a = w->a;
    /* The first block of rows sets its columns of the two gradients, later ones add to them. Later
     * rows see more columns where they see up to themselves: those begin as zeros. */
    const int64_t begin = w->o->is_causal ? column : 0, left = a->sources - column;
    const int64_t all = left < ATTENTION_COLUMNS ? left : ATTENTION_COLUMNS;
    const int64_t seen = attention_columns(w, begin, column), first = key_head * a->group;
    for (int i = 1; i < 3; i++) {
        const dense y =
            head_of(w, w->outputs[i], key_head, a->sources, i == 1 ? a->size : a->values);
        memset(y.data + (column + seen) * y.line, 0, (size_t)((all - seen) * y.line));
    }
    for (int64_t head = first; head < first + a->group; head++)
        for (int64_t row = begin; row < a->targets; row += a->rows)
            block_gradient(w, room, head, row, column, head == first && row == begin);
}

static void gradient_heads(int64_t first, int64_t last, int worker, void *user)
{
    const attention_work *w = user;
    const attention_room room = attention_room_of(w, worker);
    for (int64_t of = first; of < last; of++)
        for (int64_t column = 0; column < w->a->sources; column += ATTENTION_COLUMNS)
            column_gradient(w, &room, of, column);
}

static bool gradient_kernel(ed_call *call)
{
    attention_work w = {.a = call->plan,
                        .o = call->attrs,
                        .query = call->inputs[0],
                        .key = call->inputs[1],
                        .value = call->inputs[2],
                        .mask = mask_given(call),
                        .outputs = call->outputs,
                        .dy = call->inputs[DY]};
    if (!w.a->targets || !w.a->sources) { /* however many heads there are */
        for (int i = 0; i < 3; i++)
            memset(call->outputs[i]->data, 0,
                   (size_t)call->outputs[i]->size * dtype_size(w.query->dtype));
        return true;
    }
    ed_tensor *largest = tensor_contiguous(call->inputs[LARGEST]);
    ed_tensor *sum = tensor_contiguous(call->inputs[SUM]);
    ed_tensor *delta = tensor_contiguous(call->inputs[DELTA]);
    w.largest = largest, w.sum = sum, w.delta = delta;
    const bool ok =
        largest && sum && delta && attention_run(&w, w.a->heads / w.a->group, gradient_heads);
    ed_release(largest);
    ed_release(sum);
    ed_release(delta);
    return ok;
}

/* What target number i, of all heads', adds; s and ds have room for its scores. */
static void plain_target(const ed_call *call, const ed_tensor *kept, int64_t i, double *s,
                         double *ds)
{
    const attention *a = call->plan;
    const attention_attrs *o = call->attrs;
    const int64_t head = i / a->targets, of = head / a->group * a->sources;
    const double *in[DELTA + 1];
    double *out[3];
    for (int k = 0; k <= DELTA; k++) in[k] = (const double *)call->inputs[k]->data;
    for (int k = 0; k < 3; k++) out[k] = (double *)call->outputs[k]->data;
    attention_plain_scores(call, in[0], in[1], mask_given(call), head, i % a->targets, s);
    for (int64_t j = 0; j < a->sources; j++) {
        const double k = kept ? ((const double *)kept->data)[i * a->sources + j] : 1;
        const double m = in[LARGEST][i];
        const bool unseen = m == -INFINITY || (o->is_causal && j > i % a->targets);
        const double p = unseen ? 0 : exp(s[j] - m) * (1 / in[SUM][i]);
        double dp = 0;
        for (int64_t e = 0; e < a->values; e++) {
            dp += in[DY][i * a->values + e] * in[2][(of + j) * a->values + e];
            out[2][(of + j) * a->values + e] += (k != 0 ? p * k : 0) * in[DY][i * a->values + e];
        }
        ds[j] = p * ((k != 0 ? dp * k : 0) - in[DELTA][i]) * a->scale;
        for (int64_t e = 0; e < a->size; e++) {
            out[0][i * a->size + e] += ds[j] * in[1][(of + j) * a->size + e];
            out[1][(of + j) * a->size + e] += ds[j] * in[0][i * a->size + e];
        }
    }
}

static bool gradient_reference(const ed_call *call)
{
    const attention *a = call->plan;
    const ed_tensor *kept = attention_kept(a, call->attrs, ED_FLOAT64);
    double *s = memory_alloc((size_t)a->sources * 2 * sizeof *s);
    for (int i = 0; i < 3; i++)
        memset(call->outputs[i]->data, 0, (size_t)call->outputs[i]->size * sizeof *s);
    for (int64_t i = 0; s && i < a->heads * a->targets; i++)
        plain_target(call, kept, i, s, s + a->sources);
    memory_free(s);
    return s != NULL;
}

#define GIVEN(...)    ED_SAMPLE_IN(-2, 2, __VA_ARGS__)
#define POSITIVE(...) ED_SAMPLE_IN(1, 3, __VA_ARGS__)

ED_OP(attention_gradient) = {
    .name = "attention_gradient",
    .doc = "the gradients of attention by query, key and value",
    .operands = {{"query", ED_SET_FLOAT, 'T'},
                 {"key", ED_SET_FLOAT, 'T'},
                 {"value", ED_SET_FLOAT, 'T'},
                 {"dy", ED_SET_FLOAT, 'T'},
                 {"largest", ED_SET_FLOAT, 'T'},
                 {"sum", ED_SET_FLOAT, 'T'},
                 {"delta", ED_SET_FLOAT, 'T'},
                 {"mask", ED_SET_FLOAT | ED_SET_BOOL, 0, .optional = true}},
    .results = ED_RESULTS({.name = "dquery"}, {.name = "dkey"}, {.name = "dvalue"}),
    .flags = ED_OP_INTERNAL,
    ED_OP_ATTRS(ATTENTION_ATTRS, attention_attrs),
    .infer = gradient_infer,
    .kernel = gradient_kernel,
    .no_gradient = "where tapes record, attention's gradient is made of public ops",
    .reference = gradient_reference,
    .samples = ED_SAMPLES({.inputs = {GIVEN(2, 3, 4), GIVEN(2, 5, 4), GIVEN(2, 5, 6),
                                      GIVEN(2, 3, 6), POSITIVE(2, 3), POSITIVE(2, 3), GIVEN(2, 3)},
                           .attrs = ATTENTION(.draw = DRAWN)},
                          {.inputs = {GIVEN(4, 3, 2), GIVEN(2, 5, 2), GIVEN(2, 5, 1),
                                      GIVEN(4, 3, 1), POSITIVE(4, 3), POSITIVE(4, 3), GIVEN(4, 3),
                                      GIVEN(4, 1, 5)},
                           .attrs = ATTENTION(.is_causal = true, .draw = DRAWN)},
                          {.inputs = {GIVEN(3, 4), GIVEN(5, 4), GIVEN(5, 2), GIVEN(3, 2),
                                      POSITIVE(3), POSITIVE(3), GIVEN(3)},
                           .attrs = ATTENTION(.scale = 0.05, .dropout_rate = 0.4, .draw = DRAWN)}),
};

/* ---- Public ops ------------------------------------------------------------------------------ */

/* The call's tensors as [heads of key, heads that share one, rows, size]. */
typedef struct views {
    int64_t of, group, targets, sources;
    ed_tensor *query, *key, *value, *dy;
} views;

static int64_t product(ed_ints shape, int64_t n)
{
    int64_t size = 1;
    for (int64_t i = 0; i < n; i++) size *= shape.values[i];
    return size;
}

static views views_of(const ed_gradient_call *g)
{
    const ed_ints q = g->shapes[0], k = g->shapes[1], v = g->shapes[2];
    const int64_t r = q.count, of = product(k, r - 2), heads = product(q, r - 2);
    views x = {.of = of,
               .group = r > 2 && k.values[r - 3] ? q.values[r - 3] / k.values[r - 3] : 1,
               .targets = q.values[r - 2],
               .sources = k.values[r - 2]};
    const int64_t size = q.values[r - 1], values = v.values[r - 1], of_query = heads / x.group;
    x.query = ed_reshape(g->inputs[0], ED_SHAPE(of_query, x.group, x.targets, size));
    x.key = ed_reshape(g->inputs[1], ED_SHAPE(of, 1, x.sources, size));
    x.value = ed_reshape(g->inputs[2], ED_SHAPE(of, 1, x.sources, values));
    const ed_ints shape = ED_SHAPE(of_query, x.group, x.targets, values);
    x.dy = g->dy[0] ? ed_reshape(g->dy[0], shape) : ed_zeros(shape, .dtype = g->dtypes[0]);
    return x;
}

static ed_ints scores_of(const views *x)
{
    static __thread int64_t shape[4];
    shape[0] = x->of, shape[1] = x->group, shape[2] = x->targets, shape[3] = x->sources;
    return (ed_ints){shape, 4};
}

/* The mask as [heads of key, heads that share one, targets, sources]. */
static ed_tensor *whole_mask(const ed_gradient_call *g, const views *x)
{
    int64_t shape[ED_MAX_RANK];
    const ed_ints q = g->shapes[0];
    memcpy(shape, q.values, (size_t)q.count * sizeof *shape);
    shape[q.count - 1] = x->sources;
    return ed_reshape(ed_broadcast_to(g->inputs[3], (ed_ints){shape, q.count}), scores_of(x));
}

static ed_tensor *probabilities(const ed_gradient_call *g, const views *x, double scale)
{
    const attention_attrs *o = g->attrs;
    ed_tensor *s = ed_mul(ed_matmul(x->query, x->key, .transpose_b = true), scale);
    if (g->n_inputs > 3) {
        ed_tensor *mask = whole_mask(g, x);
        s = g->dtypes[3] == ED_BOOL ? ed_where(mask, s, -INFINITY)
                                    : ed_add(s, ed_cast(mask, g->dtypes[0]));
    }
    if (o->is_causal) {
        ed_tensor *rows = ed_range(0, (double)x->targets, .dtype = ED_INT64);
        ed_tensor *columns = ed_range(0, (double)x->sources, .dtype = ED_INT64);
        s = ed_where(ed_greater_equal(ed_expand_dims(rows, 1), columns), s, -INFINITY);
    }
    if (!x->sources) return s;
    ed_tensor *m = ed_stop_gradient(ed_reduce_max(s, .axis = ED_AXES(-1), .keepdims = true));
    m = ed_where(ed_equal(m, -INFINITY), 0.0, m);
    ed_tensor *e = ed_exp(ed_sub(s, m));
    ed_tensor *sum = ed_reduce_sum(e, .axis = ED_AXES(-1), .keepdims = true);
    return ed_div(e, ed_where(ed_equal(sum, 0.0), 1.0, sum));
}

/* Summed over the heads that share one, in the shape of operand i. */
static ed_tensor *shared(const ed_gradient_call *g, ed_tensor *dx, int i)
{
    return ed_keep(ed_reshape(ed_reduce_sum(dx, .axis = ED_AXES(1)), g->shapes[i]));
}

static bool gradient_of_ops(const ed_gradient_call *g)
{
    ED_SCOPE;
    const attention_attrs *o = g->attrs;
    const views x = views_of(g);
    const int64_t size = g->shapes[0].values[g->shapes[0].count - 1];
    const double scale = o->scale != 0 ? o->scale : 1 / sqrt(size > 1 ? (double)size : 1);
    const attention a = {.heads = x.of * x.group, .targets = x.targets, .sources = x.sources};
    ed_tensor *kept = attention_kept(&a, o, g->dtypes[0]);
    if (kept) kept = ed_reshape(kept, scores_of(&x));
    ed_tensor *p = probabilities(g, &x, scale), *left = kept ? ed_mul(p, kept) : p;
    ed_tensor *dp = ed_matmul(x.dy, x.value, .transpose_b = true);
    if (kept) dp = ed_mul(dp, kept);
    ed_tensor *change =
        ed_sub(dp, ed_reduce_sum(ed_mul(dp, p), .axis = ED_AXES(-1), .keepdims = true));
    if (g->dy[1])
        change = ed_add(change, ed_reshape(g->dy[1], ED_SHAPE(x.of, x.group, x.targets, 1)));
    ed_tensor *ds = ed_mul(p, change), *scaled = ed_mul(ds, scale);
    if (g->needs[0]) g->dx[0] = ed_keep(ed_reshape(ed_matmul(scaled, x.key), g->shapes[0]));
    if (g->needs[1]) g->dx[1] = shared(g, ed_matmul(scaled, x.query, .transpose_a = true), 1);
    if (g->needs[2]) g->dx[2] = shared(g, ed_matmul(left, x.dy, .transpose_a = true), 2);
    if (g->n_inputs > 3 && g->needs[3]) {
        int64_t shape[ED_MAX_RANK];
        const ed_ints q = g->shapes[0];
        memcpy(shape, q.values, (size_t)q.count * sizeof *shape);
        shape[q.count - 1] = x.sources;
        ed_tensor *all = ed_cast(ed_reshape(ds, (ed_ints){shape, q.count}), g->dtypes[3]);
        g->dx[3] = ed_keep(ops_sum_to(all, g->shapes[3]));
    }
    return true;
}

bool attention_gradient(const ed_gradient_call *g)
{
    const bool masked = g->n_inputs > 3;
    if (ops_differentiated() || (masked && g->needs[3])) return gradient_of_ops(g);
    ED_SCOPE;
    ed_tensor *y = g->outputs[0];
    ed_tensor *dy = g->dy[0] ? g->dy[0] : ed_zeros_like(y);
    ed_tensor *delta = ed_reduce_sum(ed_mul(dy, y), .axis = ED_AXES(-1));
    if (g->dy[1]) delta = ed_sub(delta, g->dy[1]);
    ed_tensor *outputs[3], *const *x = g->inputs;
    ed_tensor *const operands[] = {x[0],          x[1],          x[2],  dy,
                                   g->outputs[2], g->outputs[3], delta, masked ? x[3] : NULL};
    if (!ed_execute(&ed_op_attention_gradient, operands, masked ? 8 : 7, g->attrs, outputs))
        return false;
    for (int i = 0; i < 3; i++)
        if (g->needs[i]) g->dx[i] = ed_keep(outputs[i]);
    return true;
}
