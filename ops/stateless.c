/*
 * Random numbers from a seed that is an operand: compositions of the ops of random.c, which are
 * called with the state that TensorFlow makes of such a seed.
 */
#include "ops/stateless.h"
#include "ops/plain_random.h"
#include "ops/random_attrs.h"
#include <string.h>

/* ---- Seeds ----------------------------------------------------------------------------------- */

bool stateless_check(const ed_call *call, int i)
{
    const ed_tensor *seed = call->inputs[i];
    if (ed_rank(seed) == 1 && ed_dim(seed, 0) == 2) return true;
    return ed_call_fail(call, ED_INVALID_ARGUMENT, "seed must have shape [2], got %s",
                        text_of_tensor(seed).s);
}

bool stateless_seed(const ed_call *call, int i, philox *p)
{
    const ed_tensor *seed = tensor_read(call->inputs[i]);
    int64_t pair[2];
    for (int k = 0; k < 2; k++) {
        const int64_t at = k * seed->strides[0];
        pair[k] = seed->dtype == ED_INT32   ? ((const int32_t *)seed->data)[at]
                  : seed->dtype == ED_INT64 ? ((const int64_t *)seed->data)[at]
                                            : (int64_t)((const double *)seed->data)[at];
    }
    *p = philox_from_stateless(pair[0], pair[1]);
    return true;
}

static ed_draw drawn_from(const philox *p)
{
    int64_t state[3];
    ed_draw draw = {.drawn = true};
    philox_to_state(p, state);
    memcpy(draw.state, state, sizeof state);
    return draw;
}

/* For references, whose inputs are float64: what input i is the seed of. */
static philox plain_seed(const ed_call *call, int i)
{
    const double *seed = (const double *)call->inputs[i]->data;
    return plain_from_stateless((int64_t)seed[0], (int64_t)seed[1]);
}

/* What the ops of random.c draw with, from the seed that is input i. */
static bool draw_from(const ed_call *call, int i, ed_draw *draw)
{
    philox p;
    if (!stateless_check(call, i) || !stateless_seed(call, i, &p)) return false;
    *draw = drawn_from(&p);
    return true;
}

#define SEED                                                                                       \
    {                                                                                              \
        "seed", ED_SET_INDEX, 'S', .early = true                                                   \
    }
#define NO_FLOATS "seeds are integers"

/* ---- Uniform and normal numbers -------------------------------------------------------------- */

#define SHAPE_ATTR(FIELD, T)              FIELD(T, INTS, shape, ED_NO_LIST, ED_REQUIRED, "of the result")
#define STATELESS_UNIFORM_ATTRS(FIELD, T) ED_RANDOM_UNIFORM_VALUES(FIELD, T) SHAPE_ATTR(FIELD, T)
#define STATELESS_NORMAL_ATTRS(FIELD, T)  ED_RANDOM_NORMAL_VALUES(FIELD, T) SHAPE_ATTR(FIELD, T)
ED_OPTIONS(stateless_uniform_attrs, STATELESS_UNIFORM_ATTRS);
ED_OPTIONS(stateless_normal_attrs, STATELESS_NORMAL_ATTRS);

static bool uniform_from(const ed_call *call, uniform_attrs *draws)
{
    const stateless_uniform_attrs *a = call->attrs;
    *draws = *ED_OPTIONS_FROM(ED_RANDOM_UNIFORM_VALUES, a, uniform_attrs, .shape = a->shape);
    return draw_from(call, 0, &draws->draw);
}

static bool normal_from(const ed_call *call, normal_attrs *draws)
{
    const stateless_normal_attrs *a = call->attrs;
    *draws = *ED_OPTIONS_FROM(ED_RANDOM_NORMAL_VALUES, a, normal_attrs, .shape = a->shape);
    return draw_from(call, 0, &draws->draw);
}

/* The reference of another op with these attributes, of which `draw` is to be filled in. */
static bool reference_of(const ed_op *op, const ed_call *call, const void *attrs, ed_draw *draw)
{
    const philox p = plain_seed(call, 0);
    ed_call with = *call;
    with.attrs = attrs;
    *draw = drawn_from(&p);
    return op->reference(&with);
}

#define DRAWS(symbol, law)                                                                         \
    static bool stateless_##symbol##_compose(ed_call *call)                                        \
    {                                                                                              \
        law##_attrs draws;                                                                         \
        return law##_from(call, &draws) &&                                                         \
               ed_call_result(call, 0, ed_call_op(&ed_op_random_##symbol, NULL, 0, &draws));       \
    }                                                                                              \
    static bool stateless_##symbol##_reference(const ed_call *call)                                \
    {                                                                                              \
        law##_attrs draws;                                                                         \
        return law##_from(call, &draws) &&                                                         \
               reference_of(&ed_op_random_##symbol, call, &draws, &draws.draw);                    \
    }                                                                                              \
    ED_OP(stateless_##symbol)
#define STATELESS_UNIFORM(of, from, to, ...)                                                       \
    {                                                                                              \
        .inputs = {ED_SAMPLE_IN(-9, 9, 2)},                                                        \
        .attrs = ED_ATTRS(STATELESS_UNIFORM_ATTRS, stateless_uniform_attrs, .dtype = of,           \
                          .low = from, .high = to, .shape = ED_SAMPLE_INTS(__VA_ARGS__))           \
    }
#define STATELESS_NORMAL(of, mean_, stddev_, ...)                                                  \
    {                                                                                              \
        .inputs = {ED_SAMPLE_IN(-9, 9, 2)},                                                        \
        .attrs = ED_ATTRS(STATELESS_NORMAL_ATTRS, stateless_normal_attrs, .dtype = of,             \
                          .mean = mean_, .stddev = stddev_, .shape = ED_SAMPLE_INTS(__VA_ARGS__))  \
    }

/* y = u (high - low) + low, u uniform in [0, 1) */
DRAWS(uniform, uniform) = {
    .name = "stateless_uniform",
    .doc = "uniform numbers from a seed, low <= y < high",
    .operands = {SEED},
    ED_OP_ATTRS(STATELESS_UNIFORM_ATTRS, stateless_uniform_attrs),
    .compose = stateless_uniform_compose,
    .no_gradient = NO_FLOATS,
    .reference = stateless_uniform_reference,
    .samples = ED_SAMPLES(STATELESS_UNIFORM(ED_FLOAT32, 0, 1, 5, 7),
                          STATELESS_UNIFORM(ED_FLOAT64, -1, 2),
                          STATELESS_UNIFORM(ED_INT32, -3, 1000, 33)),
};

/* y = z stddev + mean, z normal */
DRAWS(normal, normal) = {
    .name = "stateless_normal",
    .doc = "normal numbers from a seed",
    .operands = {SEED},
    ED_OP_ATTRS(STATELESS_NORMAL_ATTRS, stateless_normal_attrs),
    .compose = stateless_normal_compose,
    .no_gradient = NO_FLOATS,
    .reference = stateless_normal_reference,
    .samples = ED_SAMPLES(STATELESS_NORMAL(ED_FLOAT32, 0, 1, 5, 7),
                          STATELESS_NORMAL(ED_FLOAT64, -1, 2, 3)),
};

/* y = z stddev + mean, z normal with |z| < 2 */
DRAWS(truncated_normal, normal) = {
    .name = "stateless_truncated_normal",
    .doc = "normal numbers less than 2 stddev off the mean, from a seed",
    .operands = {SEED},
    ED_OP_ATTRS(STATELESS_NORMAL_ATTRS, stateless_normal_attrs),
    .compose = stateless_truncated_normal_compose,
    .no_gradient = NO_FLOATS,
    .reference = stateless_truncated_normal_reference,
    .samples = ED_SAMPLES(STATELESS_NORMAL(ED_FLOAT32, 0, 1, 5, 7),
                          STATELESS_NORMAL(ED_FLOAT64, -1, 2, 3)),
};

ed_tensor *ed_stateless_uniform_with(ed_tensor *seed, ed_ints shape,
                                     const ed_stateless_uniform_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_STATELESS_UNIFORM_OPTIONS, options);
    return CALL_OP(
        stateless_uniform,
        ED_OPTIONS_FROM(ED_RANDOM_UNIFORM_VALUES, options, stateless_uniform_attrs, .shape = shape),
        seed);
}

ed_tensor *ed_stateless_normal_with(ed_tensor *seed, ed_ints shape,
                                    const ed_stateless_normal_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_STATELESS_NORMAL_OPTIONS, options);
    return CALL_OP(
        stateless_normal,
        ED_OPTIONS_FROM(ED_RANDOM_NORMAL_VALUES, options, stateless_normal_attrs, .shape = shape),
        seed);
}

ed_tensor *ed_stateless_truncated_normal_with(ed_tensor *seed, ed_ints shape,
                                              const ed_stateless_normal_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_STATELESS_NORMAL_OPTIONS, options);
    return CALL_OP(
        stateless_truncated_normal,
        ED_OPTIONS_FROM(ED_RANDOM_NORMAL_VALUES, options, stateless_normal_attrs, .shape = shape),
        seed);
}

/* ---- Shuffling ------------------------------------------------------------------------------- */

static bool permutation_from(const ed_call *call, permutation_attrs *draws)
{
    *draws = (permutation_attrs)ED_COMPLETE(PERMUTATION_ATTRS, permutation_attrs,
                                            .count = ed_dim(call->inputs[0], 0));
    return draw_from(call, 1, &draws->draw);
}

static bool stateless_shuffle_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    permutation_attrs draws;
    if (ed_rank(x) == 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 1, got %s",
                            text_of_tensor(x).s);
    if (!permutation_from(call, &draws)) return false;
    if (tensor_read(x)->size == 0) /* its rows may be more than memory holds */
        return ed_call_result(call, 0, ed_identity(x));
    return ed_call_result(call, 0,
                          ed_gather(x, ed_call_op(&ed_op_random_permutation, NULL, 0, &draws)));
}

static bool stateless_shuffle_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t n = x->shape[0], row = n ? x->size / n : 0;
    const philox p = plain_seed(call, 1);
    const permutation_attrs draws =
        ED_COMPLETE(PERMUTATION_ATTRS, permutation_attrs, .count = n, .draw = drawn_from(&p));
    if (!x->size) return true;
    ED_SCOPE;
    ed_tensor *order = ed_zeros(ED_INTS(n), .dtype = ED_FLOAT64);
    ed_call with = {.attrs = &draws, .n_outputs = 1, .outputs = &order};
    if (!order || !ed_op_random_permutation.reference(&with)) return false;
    for (int64_t i = 0; i < n; i++)
        memcpy((double *)call->outputs[0]->data + i * row,
               (const double *)x->data + (int64_t)((const double *)order->data)[i] * row,
               (size_t)row * sizeof(double));
    return true;
}

/* y = x[order] for an order of Fisher and Yates */
ED_OP(stateless_shuffle) = {
    .name = "stateless_shuffle",
    .doc = "x in a random order along its first axis, from a seed",
    .operands = {{"x", ED_SET_ALL, 'T'}, SEED},
    .compose = stateless_shuffle_compose,
    .reference = stateless_shuffle_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(-9, 9, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 9), ED_SAMPLE_IN(-9, 9, 2)}}),
};

ed_tensor *ed_stateless_shuffle(ed_tensor *x, ed_tensor *seed)
{
    return CALL_OP(stateless_shuffle, NULL, x, seed);
}

/* ---- Seeds from seeds ------------------------------------------------------------------------ */

/* Attributes that draw all bits of the dtype. */
static bool bits_from(const ed_call *call, ed_dtype dtype, ed_ints shape, uniform_attrs *draws)
{
    const double most = dtype == ED_INT32 ? 0x1p31 : 0x1p63;
    *draws = (uniform_attrs)ED_COMPLETE(UNIFORM_ATTRS, uniform_attrs, .dtype = dtype, .low = -most,
                                        .high = most, .shape = shape);
    return draw_from(call, 0, &draws->draw);
}

#define SPLIT_ATTRS(FIELD, T) FIELD(T, INT, num, 2, ED_AT_LEAST(0), "number of new seeds")
ED_OPTIONS(split_attrs, SPLIT_ATTRS);

static bool stateless_split_compose(ed_call *call)
{
    const split_attrs *a = call->attrs;
    uniform_attrs draws;
    return bits_from(call, tensor_read(call->inputs[0])->dtype, ED_INTS(a->num, 2), &draws) &&
           ed_call_result(call, 0, ed_call_op(&ed_op_random_uniform, NULL, 0, &draws));
}

/* Integer i of the stream: of int32 one word, of int64 two. */
static double plain_integer(philox p, ed_dtype dtype, int64_t i)
{
    const uint64_t at = (uint64_t)i;
    if (dtype == ED_INT32) return (int32_t)plain_word(p, at);
    return (double)(int64_t)(plain_word(p, 2 * at) | (uint64_t)plain_word(p, 2 * at + 1) << 32);
}

/* References see float64 only; the dtype is that of the operand as it was given. */
static bool stateless_split_reference(const ed_call *call)
{
    double *y = (double *)call->outputs[0]->data;
    const ed_dtype dtype = tensor_read(call->operands[0])->dtype;
    const philox p = plain_seed(call, 0);
    for (int64_t i = 0; i < call->outputs[0]->size; i++) y[i] = plain_integer(p, dtype, i);
    return true;
}

/* y = the words of the seed's stream */
ED_OP(stateless_split) = {
    .name = "stateless_split",
    .doc = "new seeds [num, 2] from a seed",
    .operands = {SEED},
    ED_OP_ATTRS(SPLIT_ATTRS, split_attrs),
    .compose = stateless_split_compose,
    .no_gradient = NO_FLOATS,
    .reference = stateless_split_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-9, 9, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-9, 9, 2)},
                           .attrs = ED_ATTRS(SPLIT_ATTRS, split_attrs, .num = 5)}),
};

ed_tensor *ed_stateless_split(ed_tensor *seed, int64_t num)
{
    return CALL_OP(stateless_split, ED_ATTRS(SPLIT_ATTRS, split_attrs, .num = num), seed);
}

static bool stateless_fold_in_compose(ed_call *call)
{
    ed_tensor *data = call->inputs[1];
    const ed_ints one = ED_INTS(1); /* lives as long as the draws */
    uniform_attrs draws;
    if (ed_rank(data) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "data must have rank 0, got %s",
                            text_of_tensor(data).s);
    if (!bits_from(call, tensor_read(data)->dtype, one, &draws)) return false;
    ed_tensor *first = ed_call_op(&ed_op_random_uniform, NULL, 0, &draws);
    ed_tensor *both[] = {first, ed_reshape(data, one)};
    return ed_call_result(call, 0, ed_concat(ed_list_make(both, 2)));
}

static bool stateless_fold_in_reference(const ed_call *call)
{
    double *y = (double *)call->outputs[0]->data;
    y[0] = plain_integer(plain_seed(call, 0), tensor_read(call->operands[1])->dtype, 0);
    y[1] = *(const double *)call->inputs[1]->data;
    return true;
}

/* y = [a word of the seed's stream, data] */
ED_OP(stateless_fold_in) = {
    .name = "stateless_fold_in",
    .doc = "a new seed from a seed and a number",
    .operands = {SEED, {"data", ED_SET_INDEX, 'D'}},
    .compose = stateless_fold_in_compose,
    .no_gradient = NO_FLOATS,
    .reference = stateless_fold_in_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-9, 9, 2), ED_SAMPLE_IN(-9, 9)}}),
};

ed_tensor *ed_stateless_fold_in(ed_tensor *seed, ed_tensor *data)
{
    return CALL_OP(stateless_fold_in, NULL, seed, data);
}
