/*
 * stateless_parameterized_truncated_normal: normal numbers between bounds that are tensors, by
 * rejection (Robert, "Simulation of truncated normal variables", 1995), with TensorFlow's numbers.
 * All come from one stream, one set of parameters after the other: what a number is depends on how
 * many were refused before it, so threads can't share the work.
 */
#include "ops/distributions.h"
#include "ops/execute.h"
#include "ops/plain_random.h"
#include "ops/stateless.h"
#include "tensor/typed.h"

/* What is accepted or refused: normal numbers where the bounds are wide and around the mean, and
 * else uniform ones or, far from the mean, exponential ones. */
typedef enum proposal { NORMALS, UNIFORMS, EXPONENTIALS } proposal;

enum { ROUNDS = 64, MOST_MISSES = 1000 };

#define TYPE f32
#include "ops/truncated_normal.typed.h"
#define TYPE f64
#include "ops/truncated_normal.typed.h"

/* ---- The kernel ------------------------------------------------------------------------------ */

static bool check_bounds(const ed_call *call, int64_t set, const double *p)
{
    if (p[2] < p[3] && (isfinite(p[2]) || isfinite(p[3]))) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "minval %g and maxval %g of set %lld of parameters; minval must be less, "
                        "and one of them finite",
                        p[2], p[3], (long long)set);
}

static bool truncated_kernel(ed_call *call)
{
    const distribution_batch *b = call->plan;
    const ed_tensor *y = call->outputs[0];
    char *data = ed_call_data(call, 0);
    philox at;
    if (!distribution_check(call) || !stateless_seed(call, 4, &at)) return false;
    for (int64_t set = 0; set < b->size; set++) {
        const int64_t n = y->size / b->size;
        double p[4];
        for (int k = 0; k < 4; k++) p[k] = distribution_parameter(call->inputs[k], b, set);
        if (!check_bounds(call, set, p)) return false;
        if (y->dtype == ED_FLOAT32 ? truncated_fill_f32(p, &at, n, b->size, (float *)data + set)
                                   : truncated_fill_f64(p, &at, n, b->size, (double *)data + set))
            continue;
        return ed_call_fail(call, ED_FAILED_PRECONDITION,
                            "no number from %g to %g among %d; mean %g, stddev %g", p[2], p[3],
                            (int)MOST_MISSES, p[0], p[1]);
    }
    return true;
}

/* ---- The reference --------------------------------------------------------------------------- */

/* Steps of a counter, whose numbers are drawn one by one in the call's dtype. */
typedef struct plain_stream {
    ed_dtype dtype;
    philox p;
    uint64_t step; /* the next one */
    uint64_t each; /* numbers of a step */
} plain_stream;

/* The candidates of the next round; returns how many. */
static int plain_round(plain_stream *s, proposal from, double low, double high, double *z,
                       bool *fits)
{
    const double rate = (low + sqrt(low * low + 4)) / 2;
    const uint64_t first = s->step * s->each, each = s->each;
    s->step += from == UNIFORMS ? 2 : 1;
    for (uint64_t i = 0; from == NORMALS && i < each; i++) {
        z[i] = plain_normal(s->dtype, s->p, first + i);
        fits[i] = z[i] >= low && z[i] <= high;
    }
    for (uint64_t i = 0; from == UNIFORMS && i < each; i++) {
        z[i] = low + (high - low) * plain_uniform(s->dtype, s->p, first + i);
        fits[i] = plain_uniform(s->dtype, s->p, first + each + i) <=
                  exp((low < 0 ? 0 : low * low) / 2 - z[i] * z[i] / 2);
    }
    for (uint64_t i = 0; from == EXPONENTIALS && i < each / 2; i++) {
        z[i] = low - log(plain_uniform(s->dtype, s->p, first + 2 * i)) / rate;
        const double off = low < rate ? rate - z[i] : low - rate;
        fits[i] =
            z[i] < high && plain_uniform(s->dtype, s->p, first + 2 * i + 1) <= exp(-off * off / 2);
    }
    return (int)(from == EXPONENTIALS ? each / 2 : each);
}

static bool truncated_reference(const ed_call *call)
{
    const distribution_batch *b = call->plan;
    const double *seed = (const double *)call->inputs[4]->data;
    const ed_tensor *y = call->outputs[0];
    plain_stream s = {.dtype = tensor_read(call->operands[0])->dtype,
                      .p = plain_from_stateless((int64_t)seed[0], (int64_t)seed[1])};
    s.each = s.dtype == ED_FLOAT64 ? 2 : 4;
    for (int64_t set = 0; set < b->size; set++) {
        double p[4], z[4];
        bool fits[4];
        for (int k = 0; k < 4; k++) p[k] = distribution_parameter(call->inputs[k], b, set);
        const double side = p[2] == -INFINITY || p[3] < p[0] ? -1 : 1;
        const double low = side * ((side < 0 ? p[3] : p[2]) - p[0]) / p[1],
                     high = side * ((side < 0 ? p[2] : p[3]) - p[0]) / p[1];
        const double root = sqrt(low * low + 4);
        const proposal from = (low < -1.3 && high >= 0) || (high > 1.3 && low <= 0) ? NORMALS
                              : high - low < 2 / (low + root) * exp(0.5 + low * (low - root) / 4)
                                  ? UNIFORMS
                                  : EXPONENTIALS;
        for (int64_t i = 0; i < y->size / b->size;) {
            const int candidates = plain_round(&s, from, low, high, z, fits);
            for (int k = 0; k < candidates && i < y->size / b->size; k++)
                if (fits[k]) ((double *)y->data)[i++ * b->size + set] = p[0] + side * p[1] * z[k];
        }
    }
    return true;
}

/* ---- Definition ------------------------------------------------------------------------------ */

#define SEED_IN ED_SAMPLE_IN(-9, 9, 2)

/* y with the density e^(-((y - mean) / stddev)^2 / 2) from minval to maxval, and 0 elsewhere */
ED_OP(stateless_parameterized_truncated_normal) = {
    .name = "stateless_parameterized_truncated_normal",
    .doc = "normal numbers of these means and stddevs from minvals to maxvals, from a seed",
    .operands = {{"means", ED_SET_FLOAT, 'T'},
                 {"stddevs", ED_SET_FLOAT, 'T'},
                 {"minvals", ED_SET_FLOAT, 'T'},
                 {"maxvals", ED_SET_FLOAT, 'T'},
                 {"seed", ED_SET_INDEX, 'S'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_STATELESS_GAMMA_OPTIONS, ed_stateless_gamma_options),
    .infer = distribution_infer,
    .kernel = truncated_kernel,
    .no_gradient = "it draws by rejection",
    .reference = truncated_reference,
    .extra = &distribution_truncated,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-1, 1, 3, 4), ED_SAMPLE_IN(0.5, 2, 4),
                                      ED_SAMPLE_IN(-3, 1), ED_SAMPLE_IN(1.5, 4, 3, 1), SEED_IN}},
                          {.inputs = {ED_SAMPLE_IN(-1, 1), ED_SAMPLE_IN(0.5, 2, 1),
                                      ED_SAMPLE_IN(2, 3, 3), ED_SAMPLE_IN(3.5, 9, 3), SEED_IN},
                           .attrs = ED_ATTRS(ED_STATELESS_GAMMA_OPTIONS, ed_stateless_gamma_options,
                                             .shape = ED_SAMPLE_INTS(4, 2, 3))}),
};

ed_tensor *ed_stateless_parameterized_truncated_normal_with(
    ed_tensor_like *means, ed_tensor_like *stddevs, ed_tensor_like *minvals,
    ed_tensor_like *maxvals, ed_tensor *seed, const ed_stateless_gamma_options *options)
{
    return CALL_OP(stateless_parameterized_truncated_normal, options, means, stddevs, minvals,
                   maxvals, seed);
}
