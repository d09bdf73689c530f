/*
 * Samples of distributions whose parameters are tensors, from a seed that is an operand or from a
 * generator, with TensorFlow's streams: sample number k of all of a call begins at a step of the
 * stream of its own and takes as many numbers as it needs, in float64. Blocks of two numbers are
 * used last one first. Most samples are drawn many at a time (ops/kernels/laws.h); the laws here
 * say what they are, and draw those that are left.
 *
 * Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. Hormann, "The
 * transformed rejection method for generating Poisson random variables", 1993, and "The generation
 * of binomial random variates", 1993.
 */
#include "ops/distributions.h"
#include "ops/elementwise.h"
#include "ops/generator.h"
#include "ops/stateless.h"
#include "tensor/threads.h"
#include <math.h>
#include <string.h>

/* ---- Streams --------------------------------------------------------------------------------- */

typedef struct stream {
    philox at;
    double units[2], normals[2];
    int units_left, normals_left;
} stream;

/* Where sample k begins, each having `steps` of the counter. */
static stream stream_at(const philox *p, int64_t k, int64_t steps)
{
    stream s = {.at = *p};
    philox_skip(&s.at, (uint64_t)k * (uint64_t)steps);
    return s;
}

static double next_unit(stream *s)
{
    if (!s->units_left) {
        philox_two_uniforms(&s->at, s->units);
        philox_skip(&s->at, 1);
        s->units_left = 2;
    }
    return s->units[--s->units_left];
}

static double next_normal(stream *s)
{
    if (!s->normals_left) {
        philox_two_normals(&s->at, s->normals);
        philox_skip(&s->at, 1);
        s->normals_left = 2;
    }
    return s->normals[--s->normals_left];
}

/* ---- Laws ------------------------------------------------------------------------------------ */

/* Below 2^63, the largest number of float64. */
#define LARGEST 0x1.fffffffffffffp62

static double gamma_law(const philox *p, int64_t k, const double *parameters)
{
    const double alpha = parameters[0];
    stream s = stream_at(p, k, LAWS_STEPS);
    if (alpha == 1) return -log1p(-next_unit(&s));
    /* Below 1: the sample for alpha + 1, times a uniform number to the power of 1 / alpha. */
    const double d = alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
    for (;;) {
        const double x = next_normal(&s), root = 1 + c * x;
        if (root <= 0) continue;
        const double v = root * root * root, u = next_unit(&s);
        if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v)))
            return alpha < 1 ? d * v * pow(next_unit(&s), 1 / alpha) : d * v;
    }
}

/* How many uniform numbers can be multiplied before the product is at most e^-mean. */
static double poisson_small(stream *s, double mean)
{
    const double bound = exp(-mean);
    double count = 0;
    for (double product = next_unit(s); product > bound; product *= next_unit(s)) count++;
    return count;
}

static double poisson_law(const philox *p, int64_t k, const double *parameters)
{
    const double mean = parameters[0];
    int sign;
    stream s = stream_at(p, k, LAWS_STEPS);
    if (mean < LAWS_FEW) return poisson_small(&s, mean);
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    const double inverse = 1.1239 + 1.1328 / (b - 3.4), box = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = next_unit(&s) - 0.5, v = next_unit(&s), near = 0.5 - fabs(u);
        const double n = floor((2 * a / near + b) * u + mean + 0.43);
        if (near >= 0.07 && v <= box) return n;
        if (n < 0 || (near < 0.013 && v > near)) continue;
        if (log(v * inverse / (a / (near * near) + b)) <=
            -mean + n * log(mean) - lgamma_r(n + 1, &sign))
            return n;
    }
}

/* How many geometric waiting times fit into the trials. */
static double binomial_small(stream *s, double trials, double prob)
{
    double waited = 0, count = 0;
    for (;; count++) {
        waited += ceil(log(next_unit(s)) / log1p(-prob));
        if (waited > trials) return count;
    }
}

/* What Stirling's formula lacks of log k!. */
static double stirling_tail(double k)
{
    if (k <= 9) return laws_stirling[(int)k];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

static double binomial_large(stream *s, double trials, double prob)
{
    const double deviation = sqrt(trials * prob * (1 - prob)), b = 1.15 + 2.53 * deviation;
    const double a = -0.0873 + 0.0248 * b + 0.01 * prob, c = trials * prob + 0.5;
    const double box = 0.92 - 4.2 / b, odds = prob / (1 - prob);
    const double alpha = (2.83 + 5.1 / b) * deviation, m = floor((trials + 1) * prob);
    for (;;) {
        const double u = next_unit(s) - 0.5, v = next_unit(s), near = 0.5 - fabs(u);
        const double k = floor((2 * a / near + b) * u + c);
        if (near >= 0.07 && v <= box) return k;
        if (k < 0 || k > trials) continue;
        const double bound = (m + 0.5) * log((m + 1) / (odds * (trials - m + 1))) +
                             (trials + 1) * log((trials - m + 1) / (trials - k + 1)) +
                             (k + 0.5) * log(odds * (trials - k + 1) / (k + 1)) + stirling_tail(m) +
                             stirling_tail(trials - m) - stirling_tail(k) -
                             stirling_tail(trials - k);
        if (log(v * alpha / (a / (near * near) + b)) <= bound) return k;
    }
}

/* For the less probable of success and failure. */
static double binomial_law(const philox *p, int64_t k, const double *parameters)
{
    const double trials = parameters[0], prob = parameters[1];
    if (trials == 0 || prob == 0) return 0;
    if (prob == 1) return trials;
    const double rare = prob <= 0.5 ? prob : 1 - prob;
    const bool large = trials * rare >= LAWS_FEW;
    stream s = stream_at(p, k, large ? LAWS_STEPS : LAWS_FEW_STEPS);
    const double count =
        large ? binomial_large(&s, trials, rare) : binomial_small(&s, trials, rare);
    return prob <= 0.5 ? count : trials - count;
}

/* Of these two sample k is made of the k-th uniform number alone. */
static double unit_number(const philox *p, int64_t k)
{
    double units[2];
    philox at = *p;
    philox_skip(&at, (uint64_t)k / 2);
    philox_two_uniforms(&at, units);
    return units[k % 2];
}

static double exponential_law(const philox *p, int64_t k, const double *parameters)
{
    return -log1p(-unit_number(p, k)) / parameters[0];
}

static double bernoulli_law(const philox *p, int64_t k, const double *parameters)
{
    return unit_number(p, k) < parameters[0];
}

/* ---- Distributions --------------------------------------------------------------------------- */

/* A count beyond the integers of the dtype is the largest one. */
static void held_count(ed_dtype dtype, int n, double *values)
{
    if (dtype != ED_INT32 && dtype != ED_INT64) return;
    const double largest = dtype == ED_INT32 ? INT32_MAX : LARGEST;
    for (int i = 0; i < n; i++) values[i] = values[i] < largest ? values[i] : largest;
}

/* What is positive does not become 0. */
static void held_positive(ed_dtype dtype, int n, double *values)
{
    const double least = dtype == ED_FLOAT32 ? 0x1p-126 : 0x1p-1022;
    for (int i = 0; i < n; i++) values[i] = values[i] > least ? values[i] : least;
}

#define FINITE 0x1.fffffffffffffp1023
#define POSITIVE                                                                                   \
    {                                                                                              \
        true, 0, FINITE, "it must be > 0 and finite"                                               \
    }
#define AT_LEAST_0                                                                                 \
    {                                                                                              \
        false, 0, FINITE, "it must be >= 0 and finite"                                             \
    }
#define ANY_FINITE                                                                                 \
    {                                                                                              \
        false, -FINITE, FINITE, "it must be finite"                                                \
    }
#define ANY_NUMBER                                                                                 \
    {                                                                                              \
        false, -INFINITY, INFINITY, "it must be a number"                                          \
    }
#define IN_0_1                                                                                     \
    {                                                                                              \
        false, 0, 1, "it must be in 0..1"                                                          \
    }

#define MANY(law) ISA_TABLE(laws_##law)
const distribution
    distribution_gamma = {gamma_law, MANY(gamma), false, held_positive, 1, {POSITIVE}},
    distribution_exponential = {exponential_law, MANY(exponential), false, held_positive, 1,
                                {POSITIVE}},
    distribution_poisson = {poisson_law, MANY(poisson), true, held_count, 1, {AT_LEAST_0}},
    distribution_bernoulli = {bernoulli_law, MANY(bernoulli), true, held_count, 1, {IN_0_1}},
    distribution_binomial = {binomial_law,        MANY(binomial), true, held_count, 2,
                             {AT_LEAST_0, IN_0_1}},
    distribution_truncated = {.n = 4, .ranges = {ANY_FINITE, POSITIVE, ANY_NUMBER, ANY_NUMBER}};

/* ---- Calls ----------------------------------------------------------------------------------- */

static const distribution *distribution_of(const ed_call *call)
{
    return call->op->extra;
}

static bool has_seed(const ed_call *call)
{
    return call->n_inputs > distribution_of(call)->n;
}

/* The state from which a call draws: of the seed behind the parameters, or of its generator. */
static bool draw_state(const ed_call *call, philox *p)
{
    const distribution *of = distribution_of(call);
    if (has_seed(call)) return stateless_seed(call, of->n, p);
    const ed_draw *draw = of->counts ? &((const count_attrs *)call->attrs)->draw
                                     : &((const gamma_attrs *)call->attrs)->draw;
    *p = random_philox(draw->state);
    return true;
}

static bool parameters_shape(const ed_call *call, distribution_batch *b)
{
    b->rank = 0;
    for (int k = 0; k < distribution_of(call)->n; k++) {
        const distribution_batch before = *b;
        const ed_tensor *x = call->inputs[k];
        if (!ops_broadcast(before.rank, before.shape, x->rank, x->shape, &b->rank, b->shape))
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "parameters %s and %s do not broadcast",
                                text_of_tensor(call->inputs[k - 1]).s, text_of_tensor(x).s);
    }
    return true;
}

/* The size of that shape, with which the output's ends; 0 if the output is empty. */
static int64_t batch_size(const distribution_batch *b, const ed_tensor *y)
{
    int64_t size = y->size > 0;
    for (int d = 0; size && d < b->rank; d++) size *= b->shape[d];
    return size;
}

static bool infer_samples(ed_call *call, ed_ints shape, ed_dtype dtype)
{
    distribution_batch *b = ed_call_plan(call, sizeof *b);
    if (!b || (has_seed(call) && !stateless_check(call, call->n_inputs - 1)) ||
        !parameters_shape(call, b))
        return false;
    if (!shape.values) shape = (ed_ints){b->shape, b->rank};
    if (shape.count > ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "shape must have rank <= %d, got rank %lld",
                            ED_MAX_RANK, (long long)shape.count);
    if (shape.count < b->rank || (b->rank && memcmp(shape.values + shape.count - b->rank, b->shape,
                                                    (size_t)b->rank * sizeof *b->shape)))
        return ed_call_fail(
            call, ED_INVALID_ARGUMENT, "shape is %s; it must end with the parameters' shape %s",
            text_of_ints(shape.values, (int)shape.count).s, text_of_ints(b->shape, b->rank).s);
    if (!ed_call_output(call, 0, dtype, (int)shape.count, shape.values)) return false;
    b->size = batch_size(b, call->outputs[0]);
    return true;
}

bool distribution_infer(ed_call *call)
{
    const ed_stateless_gamma_options *o = call->attrs;
    return infer_samples(call, o->shape, call->inputs[0]->dtype);
}

bool distribution_infer_counts(ed_call *call)
{
    const ed_stateless_count_options *o = call->attrs;
    if (o->dtype != ED_INT32 && o->dtype != ED_INT64 && o->dtype != ED_FLOAT32 &&
        o->dtype != ED_FLOAT64)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "dtype must be int32, int64, float32 or float64, got %s",
                            ed_dtype_name(o->dtype));
    return infer_samples(call, o->shape, o->dtype);
}

static bool in_range(const range_of *r, double value)
{
    return (value > r->low || (value == r->low && !r->above_low)) && value <= r->high;
}

bool distribution_check(const ed_call *call)
{
    const distribution *of = distribution_of(call);
    for (int k = 0; k < of->n; k++) {
        const ed_tensor *x = call->inputs[k];
        const range_of *r = &of->ranges[k];
        for (int64_t i = 0; i < x->size; i++) {
            const double value = dtype_load(x->dtype, x->data, i);
            if (in_range(r, value)) continue;
            return ed_call_fail(call, ED_INVALID_ARGUMENT, "%s[%lld], counted flat, is %g; %s",
                                call->op->operands[k].name, (long long)i, value, r->text);
        }
    }
    return true;
}

double distribution_parameter(const ed_tensor *x, const distribution_batch *b, int64_t i)
{
    int64_t offset = 0, step = 1;
    for (int d = 1; d <= x->rank; d++) {
        if (x->shape[x->rank - d] > 1) offset += i % b->shape[b->rank - d] * step;
        step *= x->shape[x->rank - d];
        i /= b->shape[b->rank - d];
    }
    return dtype_load(x->dtype, x->data, offset);
}

typedef struct sampling {
    const ed_call *call;
    philox p;
    char *y;
    int64_t samples;   /* of each set of parameters */
    bool out_of_range; /* some parameter is */
} sampling;

/* Samples k to k + n - 1, each with parameters of its own. */
static void sample_block(const distribution *of, ed_dtype dtype, const philox *p, int64_t k, int n,
                         const double *const *parameters, double *y)
{
    int left[LAWS_MOST], n_left = n;
    const bool by_many = of->counts || dtype == ED_FLOAT32;
    if (by_many) n_left = of->many[isa_level](p, k, n, parameters, y, left);
    for (int j = 0; j < n_left; j++) {
        const int i = by_many ? left[j] : j;
        const double own[2] = {parameters[0][i], of->n > 1 ? parameters[1][i] : 0};
        y[i] = of->sample(p, k + i, own);
    }
    of->held(dtype, n, y);
}

/* A parameter of samples k to k + n - 1, and the last one again up to a multiple of LAWS_UNIT. */
static void load_parameter(const sampling *s, const ed_tensor *x, int64_t k, int n, double *to)
{
    const distribution_batch *b = s->call->plan;
    int64_t set = k / s->samples, left = s->samples - k % s->samples;
    if (s->samples == 1 && x->size == b->size) {
        const float *narrow = (const float *)x->data + k;
        const double *wide = (const double *)x->data + k;
        if (x->dtype == ED_FLOAT32)
            for (int i = 0; i < n; i++) to[i] = narrow[i];
        else
            for (int i = 0; i < n; i++) to[i] = wide[i];
    } else {
        for (int i = 0; i < n; set++, left = s->samples) {
            const int end = left < n - i ? i + (int)left : n;
            const double value = distribution_parameter(x, b, set);
            while (i < end) to[i++] = value;
        }
    }
    for (int i = n; i % LAWS_UNIT; i++) to[i] = to[n - 1];
}

static bool all_in_range(const range_of *r, int n, const double *values)
{
    int out = 0;
    for (int i = 0; i < n; i++) out |= !in_range(r, values[i]);
    return !out;
}

/* Writes numbers that the dtype holds, `step` elements apart. */
#define WRITE(type)                                                                                \
    if (step == 1)                                                                                 \
        for (int i = 0; i < n; i++) ((type *)y)[i] = (type)values[i];                              \
    else                                                                                           \
        for (int i = 0; i < n; i++) ((type *)y)[i * step] = (type)values[i];                       \
    break
static void write_values(ed_dtype dtype, int n, const double *values, char *y, int64_t step)
{
    switch (dtype) {
    case ED_FLOAT32: WRITE(float);
    case ED_FLOAT64: WRITE(double);
    case ED_INT32: WRITE(int32_t);
    default: WRITE(int64_t);
    }
}

/* To where samples k to k + n - 1 belong. */
static void write_block(const sampling *s, int64_t k, int n, const double *values)
{
    const ed_dtype dtype = s->call->outputs[0]->dtype;
    const int64_t size = ((const distribution_batch *)s->call->plan)->size;
    const int64_t width = (int64_t)ed_dtype_size(dtype);
    int64_t set = k / s->samples, sample = k % s->samples;
    if (s->samples == 1) {
        write_values(dtype, n, values, s->y + k * width, 1);
        return;
    }
    for (int i = 0, count; i < n; i += count, set++, sample = 0) {
        count = s->samples - sample < n - i ? (int)(s->samples - sample) : n - i;
        write_values(dtype, count, values + i, s->y + (sample * size + set) * width, size);
    }
}

/* Numbers k of the samples go over all samples of one set of parameters, then the next. */
static void sample_range(int64_t first, int64_t last, int worker, void *user)
{
    sampling *s = user;
    const distribution *of = distribution_of(s->call);
    double a[LAWS_MOST], b[LAWS_MOST], y[LAWS_MOST], *const parameters[2] = {a, b};
    (void)worker;
    for (int64_t k = first; k < last; k += LAWS_MOST) {
        const int n = last - k < LAWS_MOST ? (int)(last - k) : LAWS_MOST;
        bool ok = true;
        for (int i = 0; i < of->n; i++) {
            load_parameter(s, s->call->inputs[i], k, n, parameters[i]);
            ok = ok && all_in_range(&of->ranges[i], n, parameters[i]);
        }
        if (!ok) {
            __atomic_store_n(&s->out_of_range, true, __ATOMIC_RELAXED);
            return;
        }
        sample_block(of, s->call->outputs[0]->dtype, &s->p, k, n, (const double *const *)parameters,
                     y);
        write_block(s, k, n, y);
    }
}

bool distribution_kernel(ed_call *call)
{
    const distribution_batch *b = call->plan;
    const int64_t n = call->outputs[0]->size;
    sampling s = {.call = call, .y = ed_call_data(call, 0), .samples = b->size ? n / b->size : 0};
    if ((!n && !distribution_check(call)) || !draw_state(call, &s.p)) return false;
    threads_run(n, HARD(1, 2 * LAWS_MOST), sample_range, &s);
    return !s.out_of_range || distribution_check(call);
}

int64_t distribution_binomial_draws(const ed_call *call)
{
    const distribution_batch *b = call->plan;
    return b->size ? 50 * call->outputs[0]->size + 150 * b->size : 0;
}

/*
 * Element by element from the parameters broadcast to the output. The law itself is the kernel's:
 * it is compared with TensorFlow's numbers (tests/test_random.c).
 */
bool distribution_reference(const ed_call *call)
{
    const distribution *of = distribution_of(call);
    const ed_tensor *y = call->outputs[0];
    const ed_dtype dtype =
        of->counts ? ((const ed_stateless_count_options *)call->attrs)->dtype : ED_FLOAT64;
    distribution_batch b;
    philox p;
    if (!parameters_shape(call, &b) || !draw_state(call, &p)) return false;
    b.size = batch_size(&b, y);
    for (int64_t i = 0; i < y->size; i++) {
        double parameters[2];
        for (int k = 0; k < of->n; k++)
            parameters[k] = distribution_parameter(call->inputs[k], &b, i % b.size);
        const int64_t k = i % b.size * (y->size / b.size) + i / b.size;
        double value = of->sample(&p, k, parameters);
        of->held(dtype, 1, &value);
        ((double *)y->data)[i] = value;
    }
    return true;
}

/* ---- Gradients ------------------------------------------------------------------------------- */

extern const ed_op ed_op_random_gamma_slope;

bool distribution_gamma_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, ed_mul(g->dy[0], CALL_OP(random_gamma_slope, NULL, g->inputs[0], g->outputs[0])));
    return true;
}

bool distribution_exponential_gradient(const ed_gradient_call *g)
{
    GIVE(g, 0, ed_neg(ed_mul(g->dy[0], ed_div(g->outputs[0], g->inputs[0]))));
    return true;
}

/* ---- Definitions ----------------------------------------------------------------------------- */

#define SEED                                                                                       \
    {                                                                                              \
        "seed", ED_SET_INDEX, 'S'                                                                  \
    }
#define SEED_IN ED_SAMPLE_IN(-9, 9, 2)

/* y with the density y^(alpha - 1) e^-y / Gamma(alpha) */
ED_OP(stateless_gamma) = {
    .name = "stateless_gamma",
    .doc = "numbers of the gamma distribution with concentration alpha and rate 1, from a seed",
    .operands = {{"alpha", ED_SET_FLOAT, 'T', .saved = true}, SEED},
    .results = ED_RESULTS({"y", .saved = true}),
    .flags = ED_OP_CONTIGUOUS | ED_OP_LAW_GRADIENT,
    ED_OP_ATTRS(ED_STATELESS_GAMMA_OPTIONS, ed_stateless_gamma_options),
    .infer = distribution_infer,
    .kernel = distribution_kernel,
    .gradient = distribution_gamma_gradient,
    .reference = distribution_reference,
    .extra = &distribution_gamma,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0.3, 5, 3, 4), SEED_IN}},
                          {.inputs = {ED_SAMPLE_IN(0.3, 5, 3), SEED_IN},
                           .attrs = ED_ATTRS(ED_STATELESS_GAMMA_OPTIONS, ed_stateless_gamma_options,
                                             .shape = ED_SAMPLE_INTS(4, 2, 3))}),
};

ed_tensor *ed_stateless_gamma_with(ed_tensor *alpha, ed_tensor *seed,
                                   const ed_stateless_gamma_options *options)
{
    return CALL_OP(stateless_gamma, options, alpha, seed);
}

/* y = k with probability lam^k e^-lam / k! */
ED_OP(stateless_poisson) = {
    .name = "stateless_poisson",
    .doc = "numbers of the Poisson distribution with mean lam, from a seed",
    .operands = {{"lam", ED_SET_FLOAT, 'T'}, SEED},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_STATELESS_COUNT_OPTIONS, ed_stateless_count_options),
    .infer = distribution_infer_counts,
    .kernel = distribution_kernel,
    .no_gradient = "its numbers are counts",
    .reference = distribution_reference,
    .extra = &distribution_poisson,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 20, 3, 4), SEED_IN}},
                          {.inputs = {ED_SAMPLE_IN(0, 30, 3), SEED_IN},
                           .attrs = ED_ATTRS(ED_STATELESS_COUNT_OPTIONS, ed_stateless_count_options,
                                             .shape = ED_SAMPLE_INTS(200, 2, 3),
                                             .dtype = ED_FLOAT32)}),
};

ed_tensor *ed_stateless_poisson_with(ed_tensor *lam, ed_tensor *seed,
                                     const ed_stateless_count_options *options)
{
    return CALL_OP(stateless_poisson, options, lam, seed);
}

/* y = k with probability counts! / (k! (counts - k)!) probs^k (1 - probs)^(counts - k) */
ED_OP(stateless_binomial) = {
    .name = "stateless_binomial",
    .doc = "successes of so many trials with these probabilities, from a seed",
    .operands = {{"counts", ED_SET_FLOAT, 'T'}, {"probs", ED_SET_FLOAT, 'T'}, SEED},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_STATELESS_COUNT_OPTIONS, ed_stateless_count_options),
    .infer = distribution_infer_counts,
    .kernel = distribution_kernel,
    .no_gradient = "its numbers are counts",
    .reference = distribution_reference,
    .extra = &distribution_binomial,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 60, 3, 4), ED_SAMPLE_IN(0, 1, 4), SEED_IN}},
                          {.inputs = {ED_SAMPLE_IN(0, 60, 3, 1), ED_SAMPLE_IN(0, 1, 4), SEED_IN},
                           .attrs = ED_ATTRS(ED_STATELESS_COUNT_OPTIONS, ed_stateless_count_options,
                                             .shape = ED_SAMPLE_INTS(99, 3, 4),
                                             .dtype = ED_INT64)}),
};

ed_tensor *ed_stateless_binomial_with(ed_tensor *counts, ed_tensor *probs, ed_tensor *seed,
                                      const ed_stateless_count_options *options)
{
    return CALL_OP(stateless_binomial, options, counts, probs, seed);
}
