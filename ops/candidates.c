/*
 * Candidate samplers: a few of many classes, for the losses of sampled_losses.c.
 */
#include "ops/execute.h"
#include "ops/generator.h"
#include "ops/plain_random.h"
#include "ops/random_attrs.h"
#include <math.h>
#include <string.h>

#define SAMPLER_ATTRS(FIELD, T)                                                                    \
    FIELD(T, INT, num_sampled, 1, ED_AT_LEAST(1), "number of classes that are drawn")              \
    FIELD(T, INT, range_max, 1, ED_AT_LEAST(1), "number of classes")                               \
    FIELD(T, BOOL, unique, true, ED_ANY, "no class comes twice")                                   \
    DRAW_ATTR(FIELD, T)
ED_OPTIONS(sampler_attrs, SAMPLER_ATTRS);

#define UNIGRAM_ATTRS(FIELD, T)                                                                    \
    FIELD(T, INT, num_sampled, 1, ED_AT_LEAST(1), "number of classes that are drawn")              \
    FIELD(T, BOOL, unique, true, ED_ANY, "no class comes twice")                                   \
    FIELD(T, FLOAT, distortion, 1, ED_FINITE, "the power to which each weight is taken")           \
    FIELD(T, INT, num_reserved_ids, 0, ED_AT_LEAST(0), "first classes, which are never drawn")     \
    DRAW_ATTR(FIELD, T)
ED_OPTIONS(unigram_attrs, UNIGRAM_ATTRS);

typedef struct candidates candidates;

/* How a sampler draws a class by a uniform number, and the probability of one. */
typedef struct sampler {
    int64_t (*draw)(const candidates *c, double unit);
    double (*probability)(const candidates *c, int64_t class);
} sampler;

/* What a call draws of. */
struct candidates {
    const sampler *by;
    int64_t range, num_sampled;
    bool unique;
    const ed_draw *draw;
    int64_t reserved;   /* with weights: the first classes, which have none */
    const double *sums; /* the weights of class reserved, of it and the next, ... */
};

static int64_t draw_uniform(const candidates *c, double unit)
{
    return (int64_t)(unit * (double)c->range) % c->range;
}
static double uniform_probability(const candidates *c, int64_t class)
{
    (void)class;
    return 1 / (double)c->range;
}
static int64_t draw_log_uniform(const candidates *c, double unit)
{
    return ((int64_t)exp(unit * log1p((double)c->range)) - 1) % c->range;
}
static double log_uniform_probability(const candidates *c, int64_t class)
{
    return log1p(1 / ((double)class + 1)) / log1p((double)c->range);
}

/* The first class whose sum is above the number's share of all. */
static int64_t draw_unigram(const candidates *c, double unit)
{
    int64_t low = 0, high = c->range - c->reserved - 1;
    const double wanted = unit * c->sums[high];
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (c->sums[middle] > wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return c->reserved + low;
}
static double unigram_probability(const candidates *c, int64_t class)
{
    const int64_t i = class - c->reserved, last = c->range - c->reserved - 1;
    return i < 0 ? 0 : (c->sums[i] - (i ? c->sums[i - 1] : 0)) / c->sums[last];
}

static const sampler uniform_sampler = {draw_uniform, uniform_probability},
                     log_uniform_sampler = {draw_log_uniform, log_uniform_probability},
                     unigram_sampler = {draw_unigram, unigram_probability};

static bool check_number(const ed_call *call, int64_t num_sampled, bool unique, int64_t range)
{
    return !unique || num_sampled <= range ||
           ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "num_sampled is %lld, but there are only %lld different classes; "
                        "with unique = false a class may come more than once",
                        (long long)num_sampled, (long long)range);
}

static bool make_outputs(ed_call *call, int64_t num_sampled)
{
    const ed_tensor *x = call->inputs[0];
    return ed_call_output(call, 0, ED_INT64, 1, &num_sampled) &&
           ed_call_output(call, 1, ED_FLOAT32, x->rank, x->shape) &&
           ed_call_output(call, 2, ED_FLOAT32, 1, &num_sampled);
}

static bool sampler_infer(ed_call *call)
{
    const sampler_attrs *a = call->attrs;
    return check_number(call, a->num_sampled, a->unique, a->range_max) &&
           make_outputs(call, a->num_sampled);
}

/* A set of classes: open addresses, empty ones -1. */
typedef struct class_set {
    int64_t *places;
    uint64_t mask;
} class_set;

/* An empty set with room for n classes. */
static bool make_set(int64_t n, class_set *set)
{
    uint64_t room = 16;
    while (room < 2 * (uint64_t)n) room *= 2;
    *set = (class_set){memory_alloc(room * sizeof *set->places), room - 1};
    if (set->places) memset(set->places, -1, room * sizeof *set->places);
    return set->places;
}

/* Whether the class is new; it is in the set then. */
static bool add_class(class_set *set, int64_t class)
{
    uint64_t at = (uint64_t) class * 0x9e3779b97f4a7c15u >> 20;
    for (;; at++) {
        int64_t *place = &set->places[at & set->mask];
        if (*place == class) return false;
        if (*place < 0) return *place = class, true;
    }
}

/* So many draws that gave nothing new are an error: a weight may be too small to be ever drawn. */
static const double most_vain = 0x1p24;

/* Draws the classes; the number of tries, 0 with an error on failure. */
static double draw_classes(const ed_call *call, const candidates *c, int64_t *classes)
{
    philox p = random_philox(c->draw->state);
    class_set set = {0};
    double tries = 0, units[2];
    int64_t n = 0;
    if (c->unique && !make_set(c->num_sampled, &set)) return 0;
    for (; n < c->num_sampled && !(c->sums && tries - (double)n > most_vain); tries++) {
        if (fmod(tries, 2) == 0) {
            philox_two_uniforms(&p, units);
            philox_skip(&p, 1);
        }
        const int64_t class = c->by->draw(c, units[(int)fmod(tries, 2)]);
        if (!c->unique || add_class(&set, class)) classes[n++] = class;
    }
    memory_free(set.places);
    if (n == c->num_sampled) return tries;
    ed_call_fail(
        call, ED_INVALID_ARGUMENT,
        "%.0f draws gave no more than %lld different classes: the weights of the others are 0 or "
        "too small",
        tries, (long long)n);
    return 0;
}

/* How often a class is expected after so many tries, as TensorFlow estimates it. */
static double expected(const candidates *c, int64_t class, double tries)
{
    const double p = c->by->probability(c, class);
    const bool again = c->unique && tries > (double)c->num_sampled; /* some were drawn again */
    return again ? -expm1(tries * log1p(-p)) : p * (double)c->num_sampled;
}

static bool check_classes(const ed_call *call, int64_t range)
{
    const ed_tensor *x = call->inputs[0];
    for (int64_t i = 0; i < x->size; i++) {
        const double class = dtype_load(x->dtype, x->data, i);
        if (class < 0 || class >= (double)range)
            return ed_call_fail(call, ED_OUT_OF_RANGE,
                                "true_classes[%lld], counted flat, is %.0f; it must be in 0..%lld",
                                (long long)i, class, (long long)range - 1);
    }
    return true;
}

static bool run_sampler(ed_call *call, const candidates *c)
{
    const ed_tensor *x = call->inputs[0];
    int64_t *classes = ed_call_data(call, 0);
    float *true_count = ed_call_data(call, 1), *sampled_count = ed_call_data(call, 2);
    const double tries = check_classes(call, c->range) ? draw_classes(call, c, classes) : 0;
    if (tries == 0) return false;
    for (int64_t i = 0; i < x->size; i++)
        true_count[i] = (float)expected(c, (int64_t)dtype_load(x->dtype, x->data, i), tries);
    for (int64_t i = 0; i < c->num_sampled; i++)
        sampled_count[i] = (float)expected(c, classes[i], tries);
    return true;
}

static candidates candidates_of(const ed_call *call)
{
    const sampler_attrs *a = call->attrs;
    return (candidates){.by = call->op->extra,
                        .range = a->range_max,
                        .num_sampled = a->num_sampled,
                        .unique = a->unique,
                        .draw = &a->draw};
}

static bool sampler_kernel(ed_call *call)
{
    const candidates c = candidates_of(call);
    return run_sampler(call, &c);
}

/* ---- The same by plain loops ----------------------------------------------------------------- */

/* What a class' probability is proportional to. */
static double plain_weight(const ed_call *call, const candidates *c, int64_t class)
{
    if (c->by == &uniform_sampler) return 1;
    if (c->by == &log_uniform_sampler) return log(((double)class + 2) / ((double)class + 1));
    const unigram_attrs *a = call->attrs;
    if (class < a->num_reserved_ids) return 0;
    const double weight = ((const double *)call->inputs[1]->data)[class - a->num_reserved_ids];
    return weight > 0 ? pow(weight, a->distortion) : 0;
}

/* The first class with which the weights' sum is above this number. */
static int64_t plain_class(const ed_call *call, const candidates *c, double wanted)
{
    double sum = 0;
    int64_t class = 0;
    while (class + 1 < c->range && (sum += plain_weight(call, c, class)) <= wanted) class ++;
    return class;
}

static bool is_among(const double *classes, int64_t n, int64_t class)
{
    for (int64_t i = 0; i < n; i++)
        if ((int64_t)classes[i] == class) return true;
    return false;
}

static bool run_reference(const ed_call *call, const candidates *c)
{
    const philox p = random_philox(c->draw->state);
    double *classes = (double *)call->outputs[0]->data, total = 0;
    for (int64_t i = 0; i < c->range; i++) total += plain_weight(call, c, i);
    int64_t tries = 0;
    for (int64_t n = 0; n < c->num_sampled; tries++) {
        const double unit = plain_uniform(ED_FLOAT64, p, (uint64_t)tries);
        const int64_t class = plain_class(call, c, unit * total);
        if (!c->unique || !is_among(classes, n, class)) classes[n++] = (double)class;
    }
    for (int k = 1; k < 3; k++)
        for (int64_t i = 0; i < call->outputs[k]->size; i++) {
            const double *of = k == 1 ? (const double *)call->inputs[0]->data : classes;
            const double share = plain_weight(call, c, (int64_t)of[i]) / total;
            ((double *)call->outputs[k]->data)[i] = c->unique && tries != c->num_sampled
                                                        ? 1 - pow(1 - share, (double)tries)
                                                        : share * (double)c->num_sampled;
        }
    return true;
}

static bool sampler_reference(const ed_call *call)
{
    const candidates c = candidates_of(call);
    return run_reference(call, &c);
}

#define SAMPLED(...)                                                                               \
    .attrs = ED_ATTRS(SAMPLER_ATTRS, sampler_attrs, .draw = {.drawn = true, .state = {1, 2, 3}},   \
                      __VA_ARGS__)
#define SAMPLER(symbol, by, text)                                                                  \
    ED_OP(symbol) = {                                                                              \
        .name = #symbol,                                                                           \
        .doc = text,                                                                               \
        .operands = {{"true_classes", ED_SET_INDEX, 'I'}},                                         \
        .results = ED_RESULTS({.name = "sampled"}, {.name = "true_expected_count"},                \
                              {.name = "sampled_expected_count"}),                                 \
        .flags = ED_OP_CONTIGUOUS,                                                                 \
        ED_OP_ATTRS(SAMPLER_ATTRS, sampler_attrs),                                                 \
        .infer = sampler_infer,                                                                    \
        .kernel = sampler_kernel,                                                                  \
        .no_gradient = "its numbers are drawn",                                                    \
        .reference = sampler_reference,                                                            \
        .extra = &by,                                                                              \
        .samples = ED_SAMPLES(                                                                     \
            {.inputs = {ED_SAMPLE_IN(0, 9, 3, 2)}, SAMPLED(.num_sampled = 4, .range_max = 10)},    \
            {.inputs = {ED_SAMPLE_IN(0, 9, 5)},                                                    \
             SAMPLED(.num_sampled = 15, .range_max = 10, .unique = false)})};                      \
    ed_tensor *ed_##symbol##_with(ed_tensor *true_classes, int64_t num_sampled, int64_t range_max, \
                                  ed_tensor **true_expected_count,                                 \
                                  ed_tensor **sampled_expected_count,                              \
                                  const ed_candidate_sampler_options *options)                     \
    {                                                                                              \
        options = OPTIONS_OR_DEFAULTS(ED_CANDIDATE_SAMPLER_OPTIONS, options);                      \
        return ops_call_into(&ed_op_##symbol, &true_classes, 1,                                    \
                             ED_ATTRS(SAMPLER_ATTRS, sampler_attrs, .num_sampled = num_sampled,    \
                                      .range_max = range_max, .unique = options->unique,           \
                                      .draw = {options->generator}),                               \
                             (ed_tensor * *const[]){true_expected_count, sampled_expected_count}); \
    }

SAMPLER(uniform_candidate_sampler, uniform_sampler, "classes that are equally probable")
SAMPLER(log_uniform_candidate_sampler, log_uniform_sampler,
        "classes c with probability log((c + 2) / (c + 1)) / log(range_max + 1)")

/* ---- Classes with weights -------------------------------------------------------------------- */

static int64_t unigram_range(const ed_call *call)
{
    const unigram_attrs *a = call->attrs;
    int64_t range;
    return __builtin_add_overflow(a->num_reserved_ids, call->inputs[1]->size, &range) ? -1 : range;
}

static bool unigram_infer(ed_call *call)
{
    const unigram_attrs *a = call->attrs;
    const ed_tensor *weights = call->inputs[1];
    if (weights->rank != 1 || !weights->size || unigram_range(call) < 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "unigrams must be [classes], got %s",
                            text_of_tensor(weights).s);
    return check_number(call, a->num_sampled, a->unique, weights->size) &&
           make_outputs(call, a->num_sampled);
}

/* The running sums of the weights; NULL with an error. To be freed. */
static double *sum_weights(const ed_call *call)
{
    const unigram_attrs *a = call->attrs;
    const ed_tensor *weights = call->inputs[1];
    double *sums = memory_alloc((size_t)weights->size * sizeof *sums), sum = 0;
    int64_t possible = 0;
    for (int64_t i = 0; sums && i < weights->size; i++) {
        const double weight = dtype_load(weights->dtype, weights->data, i), before = sum;
        sum += weight > 0 ? pow(weight, a->distortion) : 0;
        if (!(weight >= 0 && isfinite(sum))) {
            ed_call_fail(call, ED_INVALID_ARGUMENT,
                         "unigrams[%lld] is %g; weights must be finite and >= 0, and so must their "
                         "sum",
                         (long long)i, weight);
            memory_free(sums);
            return NULL;
        }
        sums[i] = sum;
        possible += sum > before;
    }
    if (!sums || possible >= (a->unique ? a->num_sampled : 1)) return sums;
    if (possible)
        ed_call_fail(call, ED_INVALID_ARGUMENT,
                     "num_sampled is %lld, but only %lld weights are above 0; draw fewer, or with "
                     "unique = false",
                     (long long)a->num_sampled, (long long)possible);
    else
        ed_call_fail(call, ED_INVALID_ARGUMENT, "unigrams are all 0: no class can be drawn");
    memory_free(sums);
    return NULL;
}

static candidates weighted_of(const ed_call *call, const double *sums)
{
    const unigram_attrs *a = call->attrs;
    return (candidates){.by = &unigram_sampler,
                        .range = unigram_range(call),
                        .num_sampled = a->num_sampled,
                        .unique = a->unique,
                        .draw = &a->draw,
                        .reserved = a->num_reserved_ids,
                        .sums = sums};
}

static bool unigram_kernel(ed_call *call)
{
    double *sums = sum_weights(call);
    const candidates c = weighted_of(call, sums);
    const bool ok = sums && run_sampler(call, &c);
    memory_free(sums);
    return ok;
}

static bool unigram_reference(const ed_call *call)
{
    const candidates c = weighted_of(call, NULL);
    return run_reference(call, &c);
}

#define UNIGRAMS(...)                                                                              \
    .attrs = ED_ATTRS(UNIGRAM_ATTRS, unigram_attrs, .draw = {.drawn = true, .state = {1, 2, 3}},   \
                      __VA_ARGS__)

ED_OP(fixed_unigram_candidate_sampler) = {
    .name = "fixed_unigram_candidate_sampler",
    .doc = "classes with probabilities proportional to unigrams^distortion",
    .operands = {{"true_classes", ED_SET_INDEX, 'I'}, {"unigrams", ED_SET_FLOAT}},
    .results = ED_RESULTS({.name = "sampled"}, {.name = "true_expected_count"},
                          {.name = "sampled_expected_count"}),
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(UNIGRAM_ATTRS, unigram_attrs),
    .infer = unigram_infer,
    .kernel = unigram_kernel,
    .no_gradient = "its numbers are drawn",
    .reference = unigram_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(0, 6, 3, 2), ED_SAMPLE_IN(1, 4, 6)},
                           UNIGRAMS(.num_sampled = 4, .num_reserved_ids = 1)},
                          {.inputs = {ED_SAMPLE_IN(0, 4, 5), ED_SAMPLE_IN(0.5, 4, 5)},
                           UNIGRAMS(.num_sampled = 9, .unique = false, .distortion = 0.75)}),
};

ed_tensor *ed_fixed_unigram_candidate_sampler_with(ed_tensor *true_classes, int64_t num_sampled,
                                                   ed_tensor *unigrams,
                                                   ed_tensor **true_expected_count,
                                                   ed_tensor **sampled_expected_count,
                                                   const ed_unigram_sampler_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_UNIGRAM_SAMPLER_OPTIONS, options);
    return ops_call_into(
        &ed_op_fixed_unigram_candidate_sampler, (ed_tensor *const[]){true_classes, unigrams}, 2,
        ED_ATTRS(UNIGRAM_ATTRS, unigram_attrs, .num_sampled = num_sampled,
                 .unique = options->unique, .distortion = options->distortion,
                 .num_reserved_ids = options->num_reserved_ids, .draw = {options->generator}),
        (ed_tensor * *const[]){true_expected_count, sampled_expected_count});
}

static void store(ed_tensor **to, ed_tensor *result)
{
    if (to) *to = result;
}

ed_tensor *ed_learned_unigram_candidate_sampler_with(ed_tensor *true_classes, int64_t num_sampled,
                                                     ed_tensor *counts,
                                                     ed_tensor **true_expected_count,
                                                     ed_tensor **sampled_expected_count,
                                                     const ed_candidate_sampler_options *options)
{
    options = OPTIONS_OR_DEFAULTS(ED_CANDIDATE_SAMPLER_OPTIONS, options);
    ed_tensor *sampled = ed_fixed_unigram_candidate_sampler(
        true_classes, num_sampled, counts, true_expected_count, sampled_expected_count,
        .unique = options->unique, .generator = options->generator);
    if (!sampled) return NULL;
    ED_SCOPE;
    ed_tensor *seen = ed_flatten(true_classes);
    ed_tensor *ones = seen ? ed_ones(ED_SHAPE(ed_size(seen)), .dtype = ed_dtype_of(counts)) : NULL;
    if (ones && ed_scatter_add(counts, seen, ones)) return sampled;
    store(true_expected_count, NULL);
    store(sampled_expected_count, NULL);
    return NULL;
}

ed_tensor *ed_all_candidate_sampler(ed_tensor *true_classes, int64_t num_sampled,
                                    ed_tensor **true_expected_count,
                                    ed_tensor **sampled_expected_count)
{
    store(true_expected_count, NULL);
    store(sampled_expected_count, NULL);
    if (NULL_GIVEN("all_candidate_sampler", true_classes)) return NULL;
    if (num_sampled < 1)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "all_candidate_sampler: num_sampled must be at least 1, got %lld",
                       (long long)num_sampled);
    ed_tensor *all = ed_range(0, (double)num_sampled, .dtype = ED_INT64);
    ed_tensor *of_true = ed_ones(ed_shape(true_classes)), *ones = ed_ones(ED_SHAPE(num_sampled));
    if (!all || !of_true || !ones) return NULL;
    store(true_expected_count, of_true);
    store(sampled_expected_count, ones);
    return all;
}
