/*
 * lstm, gru, simple_rnn and their cells: what walks over their steps, the op "recurrent_walk"
 * (recurrent.h), and its gradient.
 */
#include "ops/recurrent.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* ---- The op that walks ----------------------------------------------------------------------- */

#define RECURRENCE_ATTRS(FIELD, T)                                                                 \
    FIELD(T, INT, cell, 0, ED_BETWEEN(0, 2), "0: lstm, 1: gru, 2: rnn")
ED_OPTIONS(recurrence_attrs, RECURRENCE_ATTRS);

static const int64_t part_count[] = {4, 3, 1}, gate_count[] = {4, 4, 1};

static bool is_shape(const ed_tensor *x, ed_ints shape)
{
    return x->rank == shape.count &&
           !memcmp(x->shape, shape.values, (size_t)x->rank * sizeof *x->shape);
}

/* The plan from the recurrent kernel and a tensor [batch, time, ...]. */
static recurrence *plan_of(ed_call *call, const ed_tensor *kernel, const ed_tensor *steps)
{
    const recurrence_attrs *o = call->attrs;
    recurrence *r = ed_call_plan(call, sizeof *r);
    if (!r) return NULL;
    if (kernel->rank != 2 || steps->rank != 3 ||
        kernel->shape[0] > INT64_MAX / part_count[o->cell] ||
        kernel->shape[1] != kernel->shape[0] * part_count[o->cell]) {
        ed_call_fail(call, ED_INVALID_ARGUMENT,
                     "recurrent_kernel must be [units, %lld units]: it is %s, z is %s",
                     (long long)part_count[o->cell], text_of_tensor(kernel).s,
                     text_of_tensor(steps).s);
        return NULL;
    }
    *r = (recurrence){.cell = (recurrent_cell)o->cell,
                      .batch = steps->shape[0],
                      .time = steps->shape[1],
                      .units = kernel->shape[0],
                      .columns = kernel->shape[1],
                      .gates = kernel->shape[0] * gate_count[o->cell]};
    return r;
}

static bool fails(const ed_call *call, int i, ed_ints shape)
{
    if (i >= call->n_inputs || is_shape(call->inputs[i], shape)) return false;
    ed_call_fail(call, ED_INVALID_ARGUMENT, "%s must be %s, got %s", call->op->operands[i].name,
                 text_of_ints(shape.values, shape.count).s, text_of_tensor(call->inputs[i]).s);
    return true;
}

static bool recurrence_infer(ed_call *call)
{
    const ed_tensor *z = call->inputs[IN_Z];
    const recurrence *r = plan_of(call, call->inputs[IN_KERNEL], z);
    if (!r) return false;
    const bool lstm = r->cell == CELL_LSTM;
    const int64_t b = r->batch, t = r->time, u = r->units, none[] = {0, t, u};
    const int64_t state[] = {b, u}, states[] = {b, t, u}, gates[] = {b, t, r->gates};
    if (fails(call, IN_Z, ED_SHAPE(b, t, r->columns)) || fails(call, IN_STATE, ED_SHAPE(b, u)) ||
        fails(call, IN_EXTRA, lstm ? ED_SHAPE(b, u) : ED_SHAPE(r->columns)) ||
        fails(call, IN_MASK, ED_SHAPE(b, t)))
        return false;
    return ed_call_output(call, OUT_Y, z->dtype, 3, states) &&
           ed_call_output(call, OUT_H, z->dtype, 2, state) &&
           ed_call_output(call, OUT_C, z->dtype, 2, lstm ? state : (const int64_t[]){0, u}) &&
           ed_call_output(call, OUT_GATES, z->dtype, 3, gates) &&
           ed_call_output(call, OUT_STATES, z->dtype, 3, states) &&
           ed_call_output(call, OUT_CELLS, z->dtype, 3, lstm ? states : none);
}

static double plain_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Unit i of a row's step: p of each part, from the states before. */
static double plain_product(const recurrence *r, const ed_call *call, const double *h, int64_t part,
                            int64_t i)
{
    const double *kernel = (const double *)call->inputs[IN_KERNEL]->data;
    double sum = 0;
    for (int64_t k = 0; k < r->units; k++)
        sum += h[k] * kernel[k * r->columns + part * r->units + i];
    return sum;
}

/* The gates of a unit, and its new h and c. */
static void plain_unit(const recurrence *r, const double *z, const double *p, const double *bias,
                       int64_t i, double *h, double *c, double *gates)
{
    const int64_t u = r->units;
    double g[4];
    if (r->cell == CELL_LSTM) {
        for (int k = 0; k < 4; k++)
            g[k] = k == 2 ? tanh(z[k * u + i] + p[k]) : plain_sigmoid(z[k * u + i] + p[k]);
        *c = g[1] * *c + g[0] * g[2];
        *h = g[3] * tanh(*c);
    } else if (r->cell == CELL_GRU) {
        for (int k = 0; k < 2; k++) g[k] = plain_sigmoid(z[k * u + i] + p[k] + bias[k * u + i]);
        g[3] = p[2] + bias[2 * u + i];
        g[2] = tanh(z[2 * u + i] + g[1] * g[3]);
        *h = g[0] * *h + (1 - g[0]) * g[2];
    } else {
        *h = g[0] = tanh(z[i] + p[0] + bias[i]);
    }
    for (int64_t k = 0; k < gate_count[r->cell]; k++) gates[k * u + i] = g[k];
}

/* Step number s of all rows'; h and c are the row's states, in the results. */
static void plain_step(const ed_call *call, int64_t s, double *h, double *c)
{
    const recurrence *r = call->plan;
    const int64_t u = r->units;
    double *out[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++) out[i] = (double *)call->outputs[i]->data;
    const double *z = (const double *)call->inputs[IN_Z]->data + s * r->columns;
    const double *extra = (const double *)call->inputs[IN_EXTRA]->data;
    double *y = out[OUT_Y] + s * u, *before = out[OUT_STATES] + s * u;
    double *gates = out[OUT_GATES] + s * r->gates;
    memcpy(before, h, (size_t)u * sizeof *h);
    if (c) memcpy(out[OUT_CELLS] + s * u, c, (size_t)u * sizeof *c);
    if (call->n_inputs > IN_MASK && ((const double *)call->inputs[IN_MASK]->data)[s] == 0) {
        memset(gates, 0, (size_t)r->gates * sizeof *gates);
        for (int64_t i = 0; i < u; i++) y[i] = s % r->time ? (y - u)[i] : 0;
        return;
    }
    for (int64_t i = 0; i < u; i++) {
        double p[4], unused;
        for (int64_t k = 0; k < part_count[r->cell]; k++)
            p[k] = plain_product(r, call, before, k, i);
        plain_unit(r, z, p, extra, i, h + i, c ? c + i : &unused, gates);
        y[i] = h[i];
    }
}

static bool recurrence_reference(const ed_call *call)
{
    const recurrence *r = call->plan;
    double *h = (double *)call->outputs[OUT_H]->data, *c = (double *)call->outputs[OUT_C]->data;
    const size_t bytes = (size_t)(r->batch * r->units) * sizeof *h;
    memcpy(h, call->inputs[IN_STATE]->data, bytes);
    if (r->cell == CELL_LSTM) memcpy(c, call->inputs[IN_EXTRA]->data, bytes);
    for (int64_t s = 0; s < r->batch * r->time; s++) {
        const int64_t at = s / r->time * r->units;
        plain_step(call, s, h + at, r->cell == CELL_LSTM ? c + at : NULL);
    }
    return true;
}

/* ---- Its gradient ---------------------------------------------------------------------------- */

static bool recurrence_back_infer(ed_call *call)
{
    const ed_tensor *kernel = call->inputs[BACK_KERNEL];
    const recurrence *r = plan_of(call, kernel, call->inputs[BACK_STATES]);
    if (!r) return false;
    const bool lstm = r->cell == CELL_LSTM, gru = r->cell == CELL_GRU;
    const int64_t b = r->batch, t = r->time, u = r->units;
    const int64_t z[] = {b, t, r->columns}, state[] = {b, u}, none[] = {0, u};
    if (fails(call, BACK_GATES, ED_SHAPE(b, t, r->gates)) ||
        fails(call, BACK_STATES, ED_SHAPE(b, t, u)) ||
        fails(call, BACK_CELLS, ED_SHAPE(lstm ? b : 0, t, u)) ||
        fails(call, BACK_DY, ED_SHAPE(b, t, u)) || fails(call, BACK_DH, ED_SHAPE(b, u)) ||
        fails(call, BACK_DC, ED_SHAPE(lstm ? b : 0, u)) || fails(call, BACK_MASK, ED_SHAPE(b, t)))
        return false;
    return ed_call_output(call, BACK_DZ, kernel->dtype, 3, z) &&
           ed_call_output(call, BACK_DKERNEL, kernel->dtype, 2, kernel->shape) &&
           ed_call_output(call, BACK_DSTATE, kernel->dtype, 2, state) &&
           ed_call_output(call, BACK_DCELL, kernel->dtype, 2, lstm ? state : none) &&
           ed_call_output(call, BACK_DPRODUCT, kernel->dtype, 3,
                          gru ? z : (const int64_t[]){0, t, r->columns});
}

/* The gradients of a unit's z and p from those of h and c, which become those before the step. */
static void plain_back_unit(const recurrence *r, const double *g, double h, double c, double *dh,
                            double *dc, double *dz, double *dp)
{
    const double d = *dh;
    if (r->cell == CELL_LSTM) {
        const double t = tanh(g[1] * c + g[0] * g[2]), s = *dc + d * g[3] * (1 - t * t);
        dz[0] = s * g[2] * g[0] * (1 - g[0]);
        dz[1] = s * c * g[1] * (1 - g[1]);
        dz[2] = s * g[0] * (1 - g[2] * g[2]);
        dz[3] = d * t * g[3] * (1 - g[3]);
        *dc = s * g[1];
        *dh = 0;
    } else if (r->cell == CELL_GRU) {
        dz[2] = d * (1 - g[0]) * (1 - g[2] * g[2]);
        dz[0] = d * (h - g[2]) * g[0] * (1 - g[0]);
        dz[1] = dz[2] * g[3] * g[1] * (1 - g[1]);
        *dh = d * g[0];
    } else {
        dz[0] = d * (1 - g[0] * g[0]);
        *dh = 0;
    }
    memcpy(dp, dz, 4 * sizeof *dp);
    if (r->cell == CELL_GRU) dp[2] = dz[2] * g[1];
}

/* Step number s: dh and dc are the row's, dp has room for a step. */
static void plain_back_step(const ed_call *call, int64_t s, double *dh, double *dc, double *dp)
{
    const recurrence *r = call->plan;
    const int64_t u = r->units, n = r->columns, parts = part_count[r->cell];
    const double *in[BACK_DC + 1];
    double *out[BACK_OUTPUTS];
    for (int i = 0; i <= BACK_DC; i++) in[i] = (const double *)call->inputs[i]->data;
    for (int i = 0; i < BACK_OUTPUTS; i++) out[i] = (double *)call->outputs[i]->data;
    for (int64_t i = 0; i < u; i++) {
        double g[4] = {0}, z[4] = {0}, p[4] = {0}, unused = 0;
        for (int64_t k = 0; k < gate_count[r->cell]; k++)
            g[k] = in[BACK_GATES][s * r->gates + k * u + i];
        plain_back_unit(r, g, in[BACK_STATES][s * u + i], dc ? in[BACK_CELLS][s * u + i] : 0,
                        dh + i, dc ? dc + i : &unused, z, p);
        for (int64_t k = 0; k < parts; k++) {
            out[BACK_DZ][s * n + k * u + i] = z[k];
            dp[k * u + i] = p[k];
            if (r->cell == CELL_GRU) out[BACK_DPRODUCT][s * n + k * u + i] = p[k];
        }
    }
    for (int64_t i = 0; i < u; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += dp[j] * in[BACK_KERNEL][i * n + j];
        dh[i] += sum;
    }
}

/* The sum over all steps of states^T dp. */
static void plain_kernel_gradient(const ed_call *call)
{
    const recurrence *r = call->plan;
    const double *states = (const double *)call->inputs[BACK_STATES]->data;
    const int which = r->cell == CELL_GRU ? BACK_DPRODUCT : BACK_DZ;
    const double *dp = (const double *)call->outputs[which]->data;
    double *y = (double *)call->outputs[BACK_DKERNEL]->data;
    for (int64_t i = 0; i < r->units; i++)
        for (int64_t j = 0; j < r->columns; j++) {
            double sum = 0;
            for (int64_t s = 0; s < r->batch * r->time; s++)
                sum += states[s * r->units + i] * dp[s * r->columns + j];
            y[i * r->columns + j] = sum;
        }
}

/* Row number b; carried has room for the units, dp for a step. */
static void plain_back_row(const ed_call *call, int64_t b, double *carried, double *dp)
{
    const recurrence *r = call->plan;
    const int64_t u = r->units, n = r->columns;
    double *dh = (double *)call->outputs[BACK_DSTATE]->data + b * u;
    double *dc = r->cell == CELL_LSTM ? (double *)call->outputs[BACK_DCELL]->data + b * u : NULL;
    memcpy(dh, (const double *)call->inputs[BACK_DH]->data + b * u, (size_t)u * sizeof *dh);
    if (dc) memcpy(dc, (const double *)call->inputs[BACK_DC]->data + b * u, (size_t)u * sizeof *dc);
    memset(carried, 0, (size_t)u * sizeof *carried);
    for (int64_t s = (b + 1) * r->time - 1; s >= b * r->time; s--) {
        const double *dy = (const double *)call->inputs[BACK_DY]->data + s * u;
        const bool masked =
            call->n_inputs > BACK_MASK && ((const double *)call->inputs[BACK_MASK]->data)[s] == 0;
        for (int64_t i = 0; i < u; i++) {
            carried[i] += dy[i];
            if (!masked) dh[i] += carried[i], carried[i] = 0;
        }
        if (!masked) {
            plain_back_step(call, s, dh, dc, dp);
            continue;
        }
        for (int k = BACK_DZ; k <= BACK_DPRODUCT; k += BACK_DPRODUCT)
            if (call->outputs[k]->size)
                memset((double *)call->outputs[k]->data + s * n, 0, (size_t)n * sizeof *dh);
    }
}

static bool recurrence_back_reference(const ed_call *call)
{
    const recurrence *r = call->plan;
    const int64_t shape[] = {r->units + r->columns};
    ed_tensor *room = scope_give(tensor_new(ED_FLOAT64, 1, shape));
    if (!room) return false;
    for (int64_t b = 0; b < r->batch; b++)
        plain_back_row(call, b, (double *)room->data, (double *)room->data + r->units);
    plain_kernel_gradient(call);
    return true;
}

#define CELL(i)     ED_ATTRS(RECURRENCE_ATTRS, recurrence_attrs, .cell = i)
#define GIVEN(...)  ED_SAMPLE_IN(-2, 2, __VA_ARGS__)
#define GATES(...)  ED_SAMPLE_IN(0.1, 0.9, __VA_ARGS__)
#define KERNEL(...) ED_SAMPLE_IN(-0.2, 0.2, __VA_ARGS__) /* also large ones do not amplify */
#define TRUTH(...)  ED_SAMPLE_IN(0, 1, __VA_ARGS__)

ED_OP(recurrent_walk_gradient) = {
    .name = "recurrent_walk_gradient",
    .doc = "the walk back over the steps of a recurrent layer",
    .operands = {{"recurrent_kernel", ED_SET_FLOAT, 'T'},
                 {"gates", ED_SET_FLOAT, 'T'},
                 {"states", ED_SET_FLOAT, 'T'},
                 {"cells", ED_SET_FLOAT, 'T'},
                 {"dy", ED_SET_FLOAT, 'T'},
                 {"dh", ED_SET_FLOAT, 'T'},
                 {"dc", ED_SET_FLOAT, 'T'},
                 {"mask", ED_SET_BOOL, 0, .optional = true}},
    .results = ED_RESULTS({.name = "dz"}, {.name = "dkernel"}, {.name = "dstate"},
                          {.name = "dcell"}, {.name = "dproduct"}),
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(RECURRENCE_ATTRS, recurrence_attrs),
    .infer = recurrence_back_infer,
    .kernel = recurrent_backward,
    .no_gradient = "for higher derivatives compute the first one on a tape within another",
    .reference = recurrence_back_reference,
    .samples = ED_SAMPLES({.inputs = {KERNEL(3, 12), GATES(2, 4, 12), GIVEN(2, 4, 3),
                                      GIVEN(2, 4, 3), GIVEN(2, 4, 3), GIVEN(2, 3), GIVEN(2, 3)}},
                          {.inputs = {KERNEL(3, 12), GATES(2, 4, 12), GIVEN(2, 4, 3),
                                      GIVEN(2, 4, 3), GIVEN(2, 4, 3), GIVEN(2, 3), GIVEN(2, 3),
                                      TRUTH(2, 4)}},
                          {.inputs = {KERNEL(3, 9), GATES(2, 4, 12), GIVEN(2, 4, 3), GIVEN(0, 4, 3),
                                      GIVEN(2, 4, 3), GIVEN(2, 3), GIVEN(0, 3), TRUTH(2, 4)},
                           .attrs = CELL(1)},
                          {.inputs = {KERNEL(3, 3), GATES(2, 4, 3), GIVEN(2, 4, 3), GIVEN(0, 4, 3),
                                      GIVEN(2, 4, 3), GIVEN(2, 3), GIVEN(0, 3)},
                           .attrs = CELL(2)}),
};

/* What flows into a result, or zeros in its shape. */
static ed_tensor *flow(const ed_gradient_call *g, int i, ed_ints shape)
{
    return g->dy[i] ? g->dy[i] : ed_zeros(shape, .dtype = g->dtypes[0]);
}

static bool recurrence_back(const ed_gradient_call *g)
{
    ED_SCOPE;
    const recurrence_attrs *o = g->attrs;
    const int64_t *z = g->shapes[IN_Z].values, u = g->shapes[IN_STATE].values[1];
    const int64_t cells = o->cell == CELL_LSTM ? z[0] : 0;
    ed_tensor *outputs[BACK_OUTPUTS];
    ed_tensor *const operands[] = {g->inputs[IN_KERNEL],
                                   g->outputs[OUT_GATES],
                                   g->outputs[OUT_STATES],
                                   g->outputs[OUT_CELLS],
                                   flow(g, OUT_Y, ED_SHAPE(z[0], z[1], u)),
                                   flow(g, OUT_H, ED_SHAPE(z[0], u)),
                                   flow(g, OUT_C, ED_SHAPE(cells, u)),
                                   g->n_inputs > IN_MASK ? g->inputs[IN_MASK] : NULL};
    if (!ed_execute(&ed_op_recurrent_walk_gradient, operands, g->n_inputs > IN_MASK ? 8 : 7,
                    g->attrs, outputs))
        return false;
    ed_tensor *dp = outputs[o->cell == CELL_GRU ? BACK_DPRODUCT : BACK_DZ];
    if (g->needs[IN_Z]) g->dx[IN_Z] = ed_keep(outputs[BACK_DZ]);
    if (g->needs[IN_KERNEL]) g->dx[IN_KERNEL] = ed_keep(outputs[BACK_DKERNEL]);
    if (g->needs[IN_STATE]) g->dx[IN_STATE] = ed_keep(outputs[BACK_DSTATE]);
    if (g->needs[IN_EXTRA])
        g->dx[IN_EXTRA] = ed_keep(o->cell == CELL_LSTM ? outputs[BACK_DCELL]
                                                       : ed_reduce_sum(dp, .axis = ED_AXES(0, 1)));
    return true;
}

ED_OP(recurrent_walk) = {
    .name = "recurrent_walk",
    .doc = "the walk over the steps of a recurrent layer",
    .operands = {{"z", ED_SET_FLOAT, 'T'},
                 {"recurrent_kernel", ED_SET_FLOAT, 'T', .saved = true},
                 {"state", ED_SET_FLOAT, 'T'},
                 {"extra", ED_SET_FLOAT, 'T'},
                 {"mask", ED_SET_BOOL, 0, .saved = true, .optional = true}},
    .results = ED_RESULTS({.name = "y"}, {.name = "h"}, {.name = "c"},
                          {.name = "gates", .saved = true, .kept = true},
                          {.name = "states", .saved = true, .kept = true},
                          {.name = "cells", .saved = true, .kept = true}),
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS | ED_OP_FIRST_ORDER,
    ED_OP_ATTRS(RECURRENCE_ATTRS, recurrence_attrs),
    .infer = recurrence_infer,
    .kernel = recurrent_forward,
    .gradient = recurrence_back,
    .reference = recurrence_reference,
    .samples = ED_SAMPLES(
        {.inputs = {GIVEN(2, 4, 12), KERNEL(3, 12), GIVEN(2, 3), GIVEN(2, 3)}},
        {.inputs = {GIVEN(2, 4, 12), KERNEL(3, 12), GIVEN(2, 3), GIVEN(2, 3), TRUTH(2, 4)}},
        {.inputs = {GIVEN(2, 4, 9), KERNEL(3, 9), GIVEN(2, 3), GIVEN(9), TRUTH(2, 4)},
         .attrs = CELL(1)},
        {.inputs = {GIVEN(2, 4, 3), KERNEL(3, 3), GIVEN(2, 3), GIVEN(3)}, .attrs = CELL(2)}),
};

bool recurrence_call(recurrent_cell cell, ed_tensor *z, ed_tensor *kernel, ed_tensor *state,
                     ed_tensor *extra, ed_tensor *mask, ed_tensor **outputs)
{
    return ed_execute(&ed_op_recurrent_walk, (ed_tensor *const[]){z, kernel, state, extra, mask},
                      mask ? 5 : 4, CELL(cell), outputs);
}
