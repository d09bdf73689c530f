/*
 * lstm, gru, simple_rnn and their cells: a product for all inputs and the walk of recurrent.c, or,
 * where a tape records within another and for gru without reset_after, public ops step by step.
 */
#include "ops/ops.h"
#include "ops/recurrent.h"
#include <math.h>
#include <string.h>

/* ---- What a call says ------------------------------------------------------------------------ */

/* The operands of a layer's call, NULL where they are absent, in the order [batch, time, ...] and
 * that of the walk. */
typedef struct layer {
    recurrent_cell cell;
    bool after; /* of gru: reset_after */
    int64_t batch, time, units, columns;
    ed_tensor *x, *kernel, *recurrent, *bias, *h, *c, *mask;
} layer;

static const int64_t parts_of[] = {4, 3, 1};

/* Which operand is which; c of lstm alone. */
enum { X, KERNEL, RECURRENT, BIAS, STATE, CELLS };

static ed_tensor *operand_or_null(const ed_call *call, int i)
{
    return i < call->n_inputs ? call->inputs[i] : NULL;
}

static bool has(const ed_tensor *x, ed_ints shape)
{
    if (!x) return true;
    if (ed_rank(x) != shape.count) return false;
    for (int i = 0; i < shape.count; i++)
        if (ed_dim(x, i) != shape.values[i]) return false;
    return true;
}

static bool refuse_shape(const ed_call *call, int i, const char *expected)
{
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "%s must be %s: it is %s, inputs are %s, "
                        "recurrent_kernel is %s",
                        call->op->operands[i].name, expected, text_of_tensor(call->inputs[i]).s,
                        text_of_tensor(call->inputs[X]).s,
                        text_of_tensor(call->inputs[RECURRENT]).s);
}

/* Fills in the sizes and checks every shape. */
static bool check_layer(const ed_call *call, layer *l, bool time_major)
{
    const ed_tensor *r = l->recurrent;
    const int64_t n = parts_of[l->cell], last = l->cell == CELL_LSTM ? 6 : 5;
    if (ed_rank(l->x) != 3) return refuse_shape(call, X, "[batch, time, features]");
    if (ed_rank(r) != 2 || ed_dim(r, 0) > INT64_MAX / n || ed_dim(r, 1) != n * ed_dim(r, 0))
        return refuse_shape(call, RECURRENT,
                            n == 4   ? "[units, 4 units]"
                            : n == 3 ? "[units, 3 units]"
                                     : "[units, units]");
    l->units = ed_dim(r, 0);
    l->columns = ed_dim(r, 1);
    l->batch = ed_dim(l->x, time_major ? 1 : 0);
    l->time = ed_dim(l->x, time_major ? 0 : 1);
    if (!has(l->kernel, ED_SHAPE(ed_dim(l->x, 2), l->columns)))
        return refuse_shape(call, KERNEL, "[features, columns of recurrent_kernel]");
    const bool two = l->cell == CELL_GRU && l->after;
    if (two ? !has(l->bias, ED_SHAPE(2, l->columns)) : !has(l->bias, ED_SHAPE(l->columns)))
        return refuse_shape(
            call, BIAS, two ? "[2, columns of recurrent_kernel]" : "[columns of recurrent_kernel]");
    if (!has(l->h, ED_SHAPE(l->batch, l->units)))
        return refuse_shape(call, STATE, "[batch, units]");
    if (!has(l->c, ED_SHAPE(l->batch, l->units)))
        return refuse_shape(call, CELLS, "[batch, units]");
    if (time_major ? has(l->mask, ED_SHAPE(l->time, l->batch))
                   : has(l->mask, ED_SHAPE(l->batch, l->time)))
        return true;
    return refuse_shape(call, (int)last, "[batch, time]");
}

static ed_tensor *in_order_of_steps(ed_tensor *x, bool time_major, bool backwards)
{
    if (!x) return NULL;
    if (time_major)
        x = ed_rank(x) == 3 ? ed_transpose(x, .perm = ED_AXES(1, 0, 2)) : ed_transpose(x);
    return backwards ? ed_reverse(x, ED_AXES(1)) : x;
}

static bool layer_of(const ed_call *call, recurrent_cell cell, bool after, bool time_major,
                     bool backwards, layer *l)
{
    const bool lstm = cell == CELL_LSTM;
    *l = (layer){.cell = cell,
                 .after = after,
                 .x = call->inputs[X],
                 .kernel = call->inputs[KERNEL],
                 .recurrent = call->inputs[RECURRENT],
                 .bias = operand_or_null(call, BIAS),
                 .h = operand_or_null(call, STATE),
                 .c = lstm ? operand_or_null(call, CELLS) : NULL,
                 .mask = operand_or_null(call, lstm ? CELLS + 1 : CELLS)};
    if (!check_layer(call, l, time_major)) return false;
    l->x = in_order_of_steps(l->x, time_major, backwards);
    l->mask = in_order_of_steps(l->mask, time_major, backwards);
    const ed_dtype dtype = ed_dtype_of(call->inputs[X]);
    if (!l->h) l->h = ed_zeros(ED_SHAPE(l->batch, l->units), .dtype = dtype);
    if (lstm && !l->c) l->c = ed_zeros(ED_SHAPE(l->batch, l->units), .dtype = dtype);
    return true;
}

/* ---- Two ways to walk ------------------------------------------------------------------------ */

/* The biases of inputs and, where there is one, of states. */
static void biases(const layer *l, ed_tensor **of_inputs, ed_tensor **of_states)
{
    *of_inputs = l->bias;
    *of_states = NULL;
    if (l->cell != CELL_GRU || !l->after || !l->bias) return;
    ed_list *both = ed_unstack(l->bias);
    *of_inputs = both ? ed_list_get(both, 0) : NULL;
    *of_states = both ? ed_list_get(both, 1) : NULL;
}

static ed_tensor *projected(const layer *l, ed_tensor *bias)
{
    return bias ? ed_linear(l->x, l->kernel, bias, NULL) : ed_matmul(l->x, l->kernel);
}

/* By the op that walks: y, h, c. */
static bool walk_at_once(const layer *l, ed_tensor **y)
{
    ed_tensor *of_inputs, *of_states, *outputs[OUTPUTS];
    biases(l, &of_inputs, &of_states);
    ed_tensor *z = projected(l, of_inputs), *extra = l->c;
    if (l->cell != CELL_LSTM)
        extra = of_states ? of_states : ed_zeros(ED_SHAPE(l->columns), .dtype = ed_dtype_of(l->x));
    if (!recurrence_call(l->cell, z, l->recurrent, l->h, extra, l->mask, outputs)) return false;
    for (int i = 0; i < 3; i++) y[i] = outputs[i];
    return true;
}

/* New h and c of one step from its z. */
static void public_step(const layer *l, ed_tensor *z, ed_tensor *bias, ed_tensor **h, ed_tensor **c)
{
    ed_tensor *p = l->cell == CELL_GRU && !l->after ? NULL : ed_matmul(*h, l->recurrent);
    if (p && bias) p = ed_add(p, bias);
    if (l->cell == CELL_LSTM) {
        ed_list *g = ed_split(ed_add(z, p), 4, .axis = 1);
        if (!g) return;
        ed_tensor *forget = ed_sigmoid(ed_list_get(g, 1));
        ed_tensor *new = ed_mul(ed_sigmoid(ed_list_get(g, 0)), ed_tanh(ed_list_get(g, 2)));
        *c = ed_add(ed_mul(forget, *c), new);
        *h = ed_mul(ed_sigmoid(ed_list_get(g, 3)), ed_tanh(*c));
        return;
    }
    if (l->cell == CELL_RNN) {
        *h = ed_tanh(ed_add(z, p));
        return;
    }
    const ed_ints sizes = ED_SHAPE(2 * l->units, l->units);
    ed_list *of_kernel = ed_split_sizes(l->recurrent, sizes, .axis = 1);
    ed_list *of_z = ed_split(z, 3, .axis = 1), *of_p = NULL;
    if (!of_kernel || !of_z) return;
    if (!l->after) p = ed_matmul(*h, ed_list_get(of_kernel, 0));
    if (!(of_p = ed_split(p, l->after ? 3 : 2, .axis = 1))) return;
    ed_tensor *update = ed_sigmoid(ed_add(ed_list_get(of_z, 0), ed_list_get(of_p, 0)));
    ed_tensor *reset = ed_sigmoid(ed_add(ed_list_get(of_z, 1), ed_list_get(of_p, 1)));
    ed_tensor *q = l->after ? ed_mul(reset, ed_list_get(of_p, 2))
                            : ed_matmul(ed_mul(reset, *h), ed_list_get(of_kernel, 1));
    ed_tensor *new = ed_tanh(ed_add(ed_list_get(of_z, 2), q));
    *h = ed_add(ed_mul(update, *h), ed_mul(ed_sub(1.0, update), new));
}

/* By public ops, step by step. */
static bool walk_by_steps(const layer *l, ed_tensor **y)
{
    ed_tensor *of_inputs, *of_states, *h = l->h, *c = l->c;
    biases(l, &of_inputs, &of_states);
    ed_list *z = ed_unstack(projected(l, of_inputs), .axis = 1), *all = ed_list_make(NULL, 0);
    ed_list *mask = l->mask ? ed_unstack(l->mask, .axis = 1) : NULL;
    ed_tensor *last = ed_zeros_like(h);
    if (!z || !all || (l->mask && !mask)) return false;
    for (int64_t t = 0; t < l->time; t++) {
        ed_tensor *new_h = h, *new_c = c;
        public_step(l, ed_list_get(z, t), of_states, &new_h, &new_c);
        ed_tensor *m = mask ? ed_expand_dims(ed_list_get(mask, t), 1) : NULL;
        last = m ? ed_where(m, new_h, last) : new_h;
        h = m ? ed_where(m, new_h, h) : new_h;
        if (c) c = m ? ed_where(m, new_c, c) : new_c;
        if (!last || !(all = ed_list_concat(all, ed_list_make(&last, 1)))) return false;
    }
    y[0] = l->time ? ed_stack(all, .axis = 1)
                   : ed_zeros(ED_SHAPE(l->batch, 0, l->units), .dtype = ed_dtype_of(h));
    y[1] = h;
    y[2] = c;
    return true;
}

static bool compose_layer(ed_call *call, recurrent_cell cell, bool after, bool time_major,
                          bool backwards)
{
    layer l;
    ed_tensor *y[3];
    if (!layer_of(call, cell, after, time_major, backwards, &l)) return false;
    const bool steps = ops_differentiated() > 1 || (cell == CELL_GRU && !after);
    if (!(steps ? walk_by_steps(&l, y) : walk_at_once(&l, y))) return false;
    if (time_major) y[0] = ed_transpose(y[0], .perm = ED_AXES(1, 0, 2));
    for (int i = 0; i < call->n_outputs; i++)
        if (!ed_call_result(call, i, y[i])) return false;
    return true;
}

/* ---- The reference --------------------------------------------------------------------------- */

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* One call's numbers: where a step's inputs, mask and result are. */
typedef struct plain {
    const ed_call *call;
    recurrent_cell cell;
    bool after, time_major, backwards;
    int64_t batch, time, units, features, columns;
    double *h, *c, *y;
} plain;

static const double *numbers(const plain *p, int i)
{
    return i < p->call->n_inputs ? (const double *)p->call->inputs[i]->data : NULL;
}

static int64_t layer_place(const plain *p, int64_t b, int64_t t)
{
    return p->time_major ? t * p->batch + b : b * p->time + t;
}

/* sum over k of x[k] w[k, column] */
static double dot(const double *x, const double *w, int64_t n, int64_t columns, int64_t column)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += x[k] * w[k * columns + column];
    return sum;
}

/* Unit i of a part of one step: projections of the inputs and of h, with their biases. */
static double of_inputs(const plain *p, const double *x, int64_t part, int64_t i)
{
    const double *bias = numbers(p, BIAS);
    const int64_t j = part * p->units + i;
    return dot(x, numbers(p, KERNEL), p->features, p->columns, j) + (bias ? bias[j] : 0);
}

static double of_states(const plain *p, const double *h, int64_t part, int64_t i)
{
    const double *bias = p->cell == CELL_GRU && p->after ? numbers(p, BIAS) : NULL;
    const int64_t j = part * p->units + i;
    return dot(h, numbers(p, RECURRENT), p->units, p->columns, j) +
           (bias ? bias[p->columns + j] : 0);
}

static double plain_reset(const plain *p, const double *x, const double *h, int64_t i)
{
    return logistic(of_inputs(p, x, 1, i) + of_states(p, h, 1, i));
}

/* New h and c of unit i, from the h before; room for the units. */
static void plain_unit(const plain *p, const double *x, const double *h, double *room, int64_t i,
                       double *new_h, double *c)
{
    if (p->cell == CELL_LSTM) {
        double g[4];
        for (int k = 0; k < 4; k++) g[k] = of_inputs(p, x, k, i) + of_states(p, h, k, i);
        *c = logistic(g[1]) * *c + logistic(g[0]) * tanh(g[2]);
        *new_h = logistic(g[3]) * tanh(*c);
    } else if (p->cell == CELL_RNN) {
        *new_h = tanh(of_inputs(p, x, 0, i) + of_states(p, h, 0, i));
    } else {
        const double z = logistic(of_inputs(p, x, 0, i) + of_states(p, h, 0, i));
        double q = p->after ? plain_reset(p, x, h, i) * of_states(p, h, 2, i) : 0;
        if (!p->after) {
            for (int64_t k = 0; k < p->units; k++) room[k] = plain_reset(p, x, h, k) * h[k];
            q = of_states(p, room, 2, i);
        }
        *new_h = z * h[i] + (1 - z) * tanh(of_inputs(p, x, 2, i) + q);
    }
}

static void plain_row(const plain *p, int64_t b, double *before, double *room)
{
    const int64_t u = p->units;
    const double *mask = numbers(p, p->cell == CELL_LSTM ? CELLS + 1 : CELLS);
    double *h = p->h + b * u, unused = 0;
    for (int64_t s = 0; s < p->time; s++) {
        const int64_t t = p->backwards ? p->time - 1 - s : s;
        const double *x = numbers(p, X) + layer_place(p, b, t) * p->features;
        double *y = p->y + layer_place(p, b, s) * u;
        if (mask && mask[layer_place(p, b, t)] == 0) {
            for (int64_t i = 0; i < u; i++) y[i] = s ? p->y[layer_place(p, b, s - 1) * u + i] : 0;
            continue;
        }
        memcpy(before, h, (size_t)u * sizeof *h);
        for (int64_t i = 0; i < u; i++) {
            plain_unit(p, x, before, room, i, h + i, p->c ? p->c + b * u + i : &unused);
            y[i] = h[i];
        }
    }
}

static bool plain_layer(const ed_call *call, recurrent_cell cell, bool after, bool time_major,
                        bool backwards)
{
    const ed_tensor *x = call->inputs[X], *r = call->inputs[RECURRENT];
    const bool once = x->rank == 2; /* a cell, whose first result is h */
    plain p = {.call = call,
               .cell = cell,
               .after = after,
               .time_major = time_major,
               .backwards = backwards,
               .batch = x->shape[time_major ? 1 : 0],
               .time = once ? 1 : x->shape[time_major ? 0 : 1],
               .units = r->shape[0],
               .features = x->shape[x->rank - 1],
               .columns = r->shape[1],
               .y = (double *)call->outputs[0]->data,
               .h = (double *)call->outputs[once ? 0 : 1]->data};
    if (cell == CELL_LSTM) p.c = (double *)call->outputs[once ? 1 : 2]->data;
    const size_t bytes = (size_t)(p.batch * p.units) * sizeof(double);
    ed_tensor *room = scope_give(tensor_new(ED_FLOAT64, 1, (const int64_t[]){2 * p.units}));
    if (!room) return false;
    for (int i = 0; i < (p.c ? 2 : 1); i++) {
        double *to = i ? p.c : p.h;
        if (numbers(&p, STATE + i))
            memcpy(to, numbers(&p, STATE + i), bytes);
        else
            memset(to, 0, bytes);
    }
    for (int64_t b = 0; b < p.batch; b++)
        plain_row(&p, b, (double *)room->data, (double *)room->data + p.units);
    return true;
}

/* ---- The ops --------------------------------------------------------------------------------- */

static bool lstm_compose(ed_call *call)
{
    const ed_recurrent_options *o = call->attrs;
    return compose_layer(call, CELL_LSTM, false, o->time_major, o->go_backwards);
}
static bool lstm_reference(const ed_call *call)
{
    const ed_recurrent_options *o = call->attrs;
    return plain_layer(call, CELL_LSTM, false, o->time_major, o->go_backwards);
}

static bool gru_compose(ed_call *call)
{
    const ed_gru_options *o = call->attrs;
    return compose_layer(call, CELL_GRU, o->reset_after, o->time_major, o->go_backwards);
}
static bool gru_reference(const ed_call *call)
{
    const ed_gru_options *o = call->attrs;
    return plain_layer(call, CELL_GRU, o->reset_after, o->time_major, o->go_backwards);
}

static bool simple_rnn_compose(ed_call *call)
{
    const ed_recurrent_options *o = call->attrs;
    return compose_layer(call, CELL_RNN, false, o->time_major, o->go_backwards);
}
static bool simple_rnn_reference(const ed_call *call)
{
    const ed_recurrent_options *o = call->attrs;
    return plain_layer(call, CELL_RNN, false, o->time_major, o->go_backwards);
}

#define WALK(...)  ED_ATTRS(ED_RECURRENT_OPTIONS, ed_recurrent_options, __VA_ARGS__)
#define GRU(...)   ED_ATTRS(ED_GRU_OPTIONS, ed_gru_options, __VA_ARGS__)
#define GIVEN(...) ED_SAMPLE_IN(-1, 1, __VA_ARGS__)
#define TRUTH(...) ED_SAMPLE_IN(0, 1, __VA_ARGS__)
#define SMALL(...) ED_SAMPLE_IN(-0.2, 0.2, __VA_ARGS__) /* also large ones do not amplify */
#define WEIGHTS                                                                                    \
    {"inputs", ED_SET_FLOAT, 'T'}, {"kernel", ED_SET_FLOAT, 'T'},                                  \
        {"recurrent_kernel", ED_SET_FLOAT, 'T'}, {"bias", ED_SET_FLOAT, 'T', .optional = true},    \
    {                                                                                              \
        "initial_h", ED_SET_FLOAT, 'T', .optional = true                                           \
    }

ED_OP(lstm) = {
    .name = "lstm",
    .doc = "a layer of long short-term memory over all steps",
    .operands = {WEIGHTS,
                 {"initial_c", ED_SET_FLOAT, 'T', .optional = true},
                 {"mask", ED_SET_BOOL, 0, .optional = true}},
    .results = ED_RESULTS({.name = "y"}, {.name = "h"}, {.name = "c"}),
    ED_OP_ATTRS(ED_RECURRENT_OPTIONS, ed_recurrent_options),
    .compose = lstm_compose,
    .reference = lstm_reference,
    .samples = ED_SAMPLES({.inputs = {GIVEN(2, 3, 4), GIVEN(4, 8), GIVEN(2, 8)}},
                          {.inputs = {GIVEN(3, 2, 5), GIVEN(5, 4), GIVEN(1, 4), GIVEN(4),
                                      GIVEN(2, 1), GIVEN(2, 1), TRUTH(3, 2)},
                           .attrs = WALK(.go_backwards = true, .time_major = true)}),
};

ED_OP(gru) = {
    .name = "gru",
    .doc = "a layer of gated recurrent units over all steps",
    .operands = {WEIGHTS, {"mask", ED_SET_BOOL, 0, .optional = true}},
    .results = ED_RESULTS({.name = "y"}, {.name = "h"}),
    ED_OP_ATTRS(ED_GRU_OPTIONS, ed_gru_options),
    .compose = gru_compose,
    .reference = gru_reference,
    .samples = ED_SAMPLES({.inputs = {GIVEN(2, 3, 4), GIVEN(4, 6), GIVEN(2, 6)}},
                          {.inputs = {GIVEN(4, 3, 5), GIVEN(5, 3), GIVEN(1, 3), GIVEN(2, 3),
                                      GIVEN(4, 1), TRUTH(4, 3)},
                           .attrs = GRU(.go_backwards = true)},
                          {.inputs = {GIVEN(2, 4, 3), GIVEN(3, 3), GIVEN(1, 3), GIVEN(3),
                                      GIVEN(4, 1), TRUTH(2, 4)},
                           .attrs = GRU(.reset_after = false, .time_major = true)}),
};

ED_OP(simple_rnn) = {
    .name = "simple_rnn",
    .doc = "a recurrent layer over all steps, h = tanh(x + h R)",
    .operands = {WEIGHTS, {"mask", ED_SET_BOOL, 0, .optional = true}},
    .results = ED_RESULTS({.name = "y"}, {.name = "h"}),
    ED_OP_ATTRS(ED_RECURRENT_OPTIONS, ed_recurrent_options),
    .compose = simple_rnn_compose,
    .reference = simple_rnn_reference,
    .samples = ED_SAMPLES({.inputs = {GIVEN(2, 3, 4), GIVEN(4, 2), SMALL(2, 2)}},
                          {.inputs = {GIVEN(2, 3, 4), GIVEN(4, 2), SMALL(2, 2), GIVEN(2),
                                      GIVEN(2, 2), TRUTH(2, 3)},
                           .attrs = WALK(.go_backwards = true)}),
};

static bool lstm_cell_compose(ed_call *call)
{
    ed_tensor **x = call->inputs, *h, *c;
    return ed_lstm(ed_expand_dims(x[X], 1), x[KERNEL], x[RECURRENT], x[BIAS], x[STATE], x[CELLS],
                   NULL, &h, &c) &&
           ed_call_result(call, 0, h) && ed_call_result(call, 1, c);
}
static bool lstm_cell_reference(const ed_call *call)
{
    return plain_layer(call, CELL_LSTM, false, false, false);
}

static bool gru_cell_compose(ed_call *call)
{
    const ed_gru_cell_options *o = call->attrs;
    ed_tensor **x = call->inputs, *h;
    return ed_gru(ed_expand_dims(x[X], 1), x[KERNEL], x[RECURRENT], x[BIAS], x[STATE], NULL, &h,
                  .reset_after = o->reset_after) &&
           ed_call_result(call, 0, h);
}
static bool gru_cell_reference(const ed_call *call)
{
    return plain_layer(call, CELL_GRU, ((const ed_gru_cell_options *)call->attrs)->reset_after,
                       false, false);
}

#define CELL_WEIGHTS                                                                               \
    {"inputs", ED_SET_FLOAT, 'T'}, {"kernel", ED_SET_FLOAT, 'T'},                                  \
        {"recurrent_kernel", ED_SET_FLOAT, 'T'}, {"bias", ED_SET_FLOAT, 'T'},                      \
    {                                                                                              \
        "h", ED_SET_FLOAT, 'T'                                                                     \
    }

ED_OP(lstm_cell) = {
    .name = "lstm_cell",
    .doc = "one step of lstm",
    .operands = {CELL_WEIGHTS, {"c", ED_SET_FLOAT, 'T'}},
    .results = ED_RESULTS({.name = "h"}, {.name = "c"}),
    .compose = lstm_cell_compose,
    .reference = lstm_cell_reference,
    .samples = ED_SAMPLES({.inputs = {GIVEN(3, 5), GIVEN(5, 8), GIVEN(2, 8), GIVEN(8), GIVEN(3, 2),
                                      GIVEN(3, 2)}}),
};

ED_OP(gru_cell) = {
    .name = "gru_cell",
    .doc = "one step of gru",
    .operands = {CELL_WEIGHTS},
    ED_OP_ATTRS(ED_GRU_CELL_OPTIONS, ed_gru_cell_options),
    .compose = gru_cell_compose,
    .reference = gru_cell_reference,
    .samples = ED_SAMPLES(
        {.inputs = {GIVEN(4, 5), GIVEN(5, 9), GIVEN(3, 9), GIVEN(2, 9), GIVEN(4, 3)}},
        {.inputs = {GIVEN(4, 5), GIVEN(5, 9), GIVEN(3, 9), GIVEN(9), GIVEN(4, 3)},
         .attrs = ED_ATTRS(ED_GRU_CELL_OPTIONS, ed_gru_cell_options, .reset_after = false)}),
};

/* ---- Functions ------------------------------------------------------------------------------- */

static ed_tensor *zeros_for(ed_tensor *inputs, ed_tensor *recurrent, bool bias, int64_t rows,
                            bool time_major)
{
    if (!inputs || !recurrent || ed_rank(recurrent) != 2 || ed_rank(inputs) < 2) return NULL;
    const ed_dtype dtype = ed_dtype_of(inputs);
    if (!bias)
        return ed_zeros(ED_SHAPE(ed_dim(inputs, time_major ? 1 : 0), ed_dim(recurrent, 0)),
                        .dtype = dtype);
    return rows == 2 ? ed_zeros(ED_SHAPE(2, ed_dim(recurrent, 1)), .dtype = dtype)
                     : ed_zeros(ED_SHAPE(ed_dim(recurrent, 1)), .dtype = dtype);
}

/* Runs an op; operands that are absent before others become zeros. */
static ed_tensor *run_layer(const ed_op *op, ed_tensor **in, int n, const void *attrs,
                            bool time_major, int64_t rows, ed_tensor **h, ed_tensor **c)
{
    ED_SCOPE;
    while (n > BIAS && !in[n - 1]) n--;
    for (int i = BIAS; i < n; i++)
        if (!in[i]) in[i] = zeros_for(in[X], in[RECURRENT], i == BIAS, rows, time_major);
    ed_tensor *y = ops_call_into(op, in, n, attrs, (ed_tensor * *const[]){h, c});
    if (h) ed_keep(*h);
    if (c) ed_keep(*c);
    return ed_keep(y);
}

ed_tensor *ed_lstm_with(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                        ed_tensor *bias, ed_tensor *initial_h, ed_tensor *initial_c,
                        ed_tensor *mask, ed_tensor **h, ed_tensor **c,
                        const ed_recurrent_options *options)
{
    ed_tensor *in[] = {inputs, kernel, recurrent_kernel, bias, initial_h, initial_c, mask};
    return run_layer(&ed_op_lstm, in, 7, options, options && options->time_major, 1, h, c);
}

ed_tensor *ed_gru_with(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                       ed_tensor *bias, ed_tensor *initial_h, ed_tensor *mask, ed_tensor **h,
                       const ed_gru_options *options)
{
    ed_tensor *in[] = {inputs, kernel, recurrent_kernel, bias, initial_h, mask};
    const bool after = !options || options->reset_after;
    return run_layer(&ed_op_gru, in, 6, options, options && options->time_major, after ? 2 : 1, h,
                     NULL);
}

ed_tensor *ed_simple_rnn_with(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                              ed_tensor *bias, ed_tensor *initial_h, ed_tensor *mask, ed_tensor **h,
                              const ed_recurrent_options *options)
{
    ed_tensor *in[] = {inputs, kernel, recurrent_kernel, bias, initial_h, mask};
    return run_layer(&ed_op_simple_rnn, in, 6, options, options && options->time_major, 1, h, NULL);
}

ed_tensor *ed_lstm_cell(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                        ed_tensor *bias, ed_tensor *h, ed_tensor *c, ed_tensor **new_c)
{
    ED_SCOPE;
    if (!bias) bias = zeros_for(inputs, recurrent_kernel, true, 1, false);
    ed_tensor *const in[] = {inputs, kernel, recurrent_kernel, bias, h, c};
    ed_tensor *y = ops_call_into(&ed_op_lstm_cell, in, 6, NULL, (ed_tensor * *const[]){new_c});
    if (new_c) ed_keep(*new_c);
    return ed_keep(y);
}

ed_tensor *ed_gru_cell_with(ed_tensor *inputs, ed_tensor *kernel, ed_tensor *recurrent_kernel,
                            ed_tensor *bias, ed_tensor *h, const ed_gru_cell_options *options)
{
    ED_SCOPE;
    const int64_t rows = !options || options->reset_after ? 2 : 1;
    if (!bias) bias = zeros_for(inputs, recurrent_kernel, true, rows, false);
    return ed_keep(CALL_OP(gru_cell, options, inputs, kernel, recurrent_kernel, bias, h));
}
