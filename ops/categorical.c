/*
 * Classes drawn from logits: the sums of e^logit up to each class, among which a uniform number
 * times the whole is looked up. Sample i of all takes uniform number i of the stream.
 *
 * The sums are first approximations (ops/kernels/laws.h). Where a number falls nearer to one than
 * their error, its row is done again with the C library's exp, from class to class.
 */
#include "ops/generator.h"
#include "ops/kernels/laws.h"
#include "ops/plain_random.h"
#include "ops/random_attrs.h"
#include "ops/stateless.h"
#include "tensor/threads.h"
#include <math.h>

#define CATEGORICAL_ATTRS(FIELD, T)                                                                \
    FIELD(T, INT, num_samples, -1, ED_AT_LEAST(0), "of each row")                                  \
    ED_STATELESS_CATEGORICAL_OPTIONS(FIELD, T)
#define CATEGORICAL_DRAW_ATTRS(FIELD, T) CATEGORICAL_ATTRS(FIELD, T) DRAW_ATTR(FIELD, T)
ED_OPTIONS(categorical_attrs, CATEGORICAL_ATTRS);
ED_OPTIONS(categorical_draw_attrs, CATEGORICAL_DRAW_ATTRS);

/* The state of the seed, or, of an op without one, of its generator. */
static bool draw_state(const ed_call *call, philox *p)
{
    if (call->n_inputs > 1) return stateless_seed(call, 1, p);
    *p = random_philox(((const categorical_draw_attrs *)call->attrs)->draw.state);
    return true;
}

static bool categorical_infer(ed_call *call)
{
    const categorical_attrs *a = call->attrs;
    const ed_tensor *x = call->inputs[0];
    if (a->dtype != ED_INT32 && a->dtype != ED_INT64)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "dtype must be int32 or int64, got %s",
                            ed_dtype_name(a->dtype));
    if (x->rank != 2 || (x->shape[1] == 0 && x->shape[0] && a->num_samples))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "logits must have shape [batch, classes] with a class, got %s",
                            text_of_tensor(x).s);
    return (call->n_inputs < 2 || stateless_check(call, 1)) &&
           ed_call_output(call, 0, a->dtype, 2, (const int64_t[]){x->shape[0], a->num_samples});
}

/* The sums of e^(logit - largest) up to each class of a row; the last one, 0 if no logit is
 * finite. */
static double sum_classes(const ed_tensor *x, int64_t row, double *sums)
{
    const int64_t n = x->shape[1];
    double largest = -INFINITY, total = 0;
    for (int64_t j = 0; j < n; j++) {
        const double logit = sums[j] = dtype_load(x->dtype, x->data, row * n + j);
        if (isfinite(logit)) largest = fmax(largest, logit);
    }
    for (int64_t j = 0; j < n; j++) {
        if (isfinite(sums[j])) total += exp(sums[j] - largest);
        sums[j] = total;
    }
    return total;
}

/* The first class whose sum is above x, which the last one's is; without a branch that depends on
 * x. */
static int64_t class_above(const double *sums, int64_t n, double x)
{
    int64_t low = 0;
    for (int64_t half; n > 1; n -= half) {
        half = n / 2;
        low += half & -(int64_t)(sums[low + half - 1] <= x);
    }
    return low;
}

typedef struct drawing {
    const ed_call *call;
    philox p;
    double *sums;   /* of the classes, for each worker */
    int64_t room;   /* of each */
    int64_t failed; /* the first row without a finite logit */
} drawing;

/* The samples of a row by these sums; false if one falls within that share of the whole from a sum,
 * unless it is 0. */
static bool draw_by(const drawing *d, int64_t row, const double *sums, double total, double slack)
{
    enum { UNITS = 256 };
    const ed_tensor *y = d->call->outputs[0];
    const int64_t classes = d->call->inputs[0]->shape[1], samples = y->shape[1];
    double units[UNITS + 1]; /* two to a step of the counter */
    for (int64_t at = row * samples, end = at + samples, n; at < end; at += n) {
        const int64_t odd = at % 2;
        philox p = d->p;
        n = end - at < UNITS ? end - at : UNITS;
        philox_skip(&p, (uint64_t)(at / 2));
        philox_uniform_f64(&p, n + odd, units, 0, 1);
        for (int64_t i = 0; i < n; i++) {
            const double x = units[i + odd] * total;
            const int64_t class = class_above(sums, classes, x);
            const double below = class ? sums[class - 1] : -INFINITY;
            if (slack > 0 && !(x < sums[class] - slack * total && x > below + slack * total))
                return false;
            if (y->dtype == ED_INT64)
                ((int64_t *)y->data)[at + i] = class;
            else
                ((int32_t *)y->data)[at + i] = (int32_t) class;
        }
    }
    return true;
}

static void draw_rows(int64_t first, int64_t last, int worker, void *user)
{
    drawing *d = user;
    const ed_tensor *x = d->call->inputs[0];
    const int64_t classes = x->shape[1];
    double *sums = d->sums + worker * d->room;
    for (int64_t row = first; row < last; row++) {
        const char *logits = (const char *)x->data + row * classes * ed_dtype_size(x->dtype);
        const double total = ISA_CALL(laws_classes)(x->dtype == ED_FLOAT64, classes, logits, sums);
        if (total == 0) {
            int64_t before = d->failed;
            while (row < before &&
                   !__atomic_compare_exchange_n(&d->failed, &before, row, false, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED)) {}
            return;
        }
        if (draw_by(d, row, sums, total, 2 * LAWS_SUM_SLACK(classes))) continue;
        const double exact = sum_classes(x, row, sums);
        draw_by(d, row, sums, exact, 0);
    }
}

static bool categorical_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const int64_t rows = x->shape[0], classes = x->shape[1];
    const int workers = threads_count();
    drawing d = {.call = call, .failed = rows};
    if (!draw_state(call, &d.p)) return false;
    if (!y->size) return true;
    d.room = (classes + LAWS_UNIT - 1) / LAWS_UNIT * LAWS_UNIT;
    d.sums = memory_alloc((size_t)workers * (size_t)d.room * sizeof *d.sums);
    if (!d.sums) return false;
    const int64_t work = classes + y->shape[1];
    threads_run_among(workers, rows, HARD(1, work < 16384 ? 16384 / work + 1 : 1), draw_rows, &d);
    memory_free(d.sums);
    if (d.failed == rows) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "row %lld of logits has no finite element",
                        (long long)d.failed);
}

/* The class in whose part of the whole the number falls, from the first one on. */
static bool categorical_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const double *logits = (const double *)x->data;
    const int64_t n = x->shape[1];
    philox p;
    if (!draw_state(call, &p)) return false;
    for (int64_t i = 0; i < y->size; i++) {
        const double *row = logits + i / y->shape[1] * n;
        const double u = plain_uniform(ED_FLOAT64, p, (uint64_t)i);
        double largest = -INFINITY, total = 0;
        for (int64_t j = 0; j < n; j++)
            if (isfinite(row[j]) && row[j] > largest) largest = row[j];
        for (int64_t j = 0; j < n; j++) total += isfinite(row[j]) ? exp(row[j] - largest) : 0;
        double sum = 0;
        int64_t class = 0;
        for (; class < n; class ++) {
            sum += isfinite(row[class]) ? exp(row[class] - largest) : 0;
            if (sum > u * total) break;
        }
        ((double *)y->data)[i] = (double)class;
    }
    return true;
}

/* y = class i with probability e^logit[i] / sum of e^logit */
ED_OP(stateless_categorical) = {
    .name = "stateless_categorical",
    .doc = "classes [batch, num_samples] drawn from logits [batch, classes], from a seed",
    .operands = {{"logits", ED_SET_FLOAT, 'T'}, {"seed", ED_SET_INDEX, 'S'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(CATEGORICAL_ATTRS, categorical_attrs),
    .infer = categorical_infer,
    .kernel = categorical_kernel,
    .no_gradient = "its numbers are classes",
    .reference = categorical_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(-9, 9, 2)},
                           .attrs = ED_ATTRS(CATEGORICAL_ATTRS, categorical_attrs,
                                             .num_samples = 5)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 1, 9), ED_SAMPLE_IN(-9, 9, 2)},
                           .attrs = ED_ATTRS(CATEGORICAL_ATTRS, categorical_attrs, .num_samples = 8,
                                             .dtype = ED_INT32)}),
};

ed_tensor *ed_stateless_categorical_with(ed_tensor *logits, ed_tensor *seed, int64_t num_samples,
                                         const ed_stateless_categorical_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_STATELESS_CATEGORICAL_OPTIONS, options);
    return CALL_OP(stateless_categorical,
                   ED_OPTIONS_FROM(ED_STATELESS_CATEGORICAL_OPTIONS, options, categorical_attrs,
                                   .num_samples = num_samples),
                   logits, seed);
}

ED_OP(random_categorical) = {
    .name = "random_categorical",
    .doc = "classes [batch, num_samples] drawn from logits [batch, classes]",
    .operands = {{"logits", ED_SET_FLOAT, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(CATEGORICAL_DRAW_ATTRS, categorical_draw_attrs),
    .infer = categorical_infer,
    .kernel = categorical_kernel,
    .no_gradient = "its numbers are classes",
    .reference = categorical_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = ED_ATTRS(CATEGORICAL_DRAW_ATTRS, categorical_draw_attrs,
                                             .num_samples = 5,
                                             .draw = {.drawn = true, .state = {1, 2, 3}})}),
};

ed_tensor *ed_random_categorical_with(ed_tensor *logits, int64_t num_samples,
                                      const ed_random_categorical_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_RANDOM_CATEGORICAL_OPTIONS, options);
    return CALL_OP(random_categorical,
                   ED_OPTIONS_FROM(ED_STATELESS_CATEGORICAL_OPTIONS, options,
                                   categorical_draw_attrs, .num_samples = num_samples,
                                   .draw = {options->generator}),
                   logits);
}
