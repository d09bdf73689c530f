/*
 * Losses of many classes by a sample of them: the candidate samplers, and compositions of what they
 * give.
 */
#include "ops/execute.h"
#include "ops/generator.h"
#include "ops/random_attrs.h"
#include <math.h>
#include <string.h>

/* ---- Candidate samplers ---------------------------------------------------------------------- */

#define SAMPLER_ATTRS(FIELD, T)                                                                    \
    FIELD(T, INT, num_sampled, 1, ED_AT_LEAST(1), "number of classes that are drawn")              \
    FIELD(T, INT, range_max, 1, ED_AT_LEAST(1), "number of classes")                               \
    FIELD(T, BOOL, unique, true, ED_ANY, "no class comes twice")                                   \
    DRAW_ATTR(FIELD, T)
ED_OPTIONS(sampler_attrs, SAMPLER_ATTRS);

/* How a sampler draws a class by a uniform number, and the probability of one. */
typedef struct sampler {
    int64_t (*draw)(double unit, int64_t range);
    double (*probability)(double class, int64_t range);
} sampler;

static int64_t draw_uniform(double unit, int64_t range)
{
    return (int64_t)(unit * (double)range) % range;
}
static double uniform_probability(double class, int64_t range)
{
    (void)class;
    return 1 / (double)range;
}
static int64_t draw_log_uniform(double unit, int64_t range)
{
    return ((int64_t)exp(unit * log1p((double)range)) - 1) % range;
}
static double log_uniform_probability(double class, int64_t range)
{
    return log1p(1 / (class + 1)) / log1p((double)range);
}

static const sampler uniform_sampler = {draw_uniform, uniform_probability},
                     log_uniform_sampler = {draw_log_uniform, log_uniform_probability};

static bool sampler_infer(ed_call *call)
{
    const sampler_attrs *a = call->attrs;
    const ed_tensor *x = call->inputs[0];
    if (a->unique && a->num_sampled > a->range_max)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "there are no %lld different ones of %lld",
                            (long long)a->num_sampled, (long long)a->range_max);
    return ed_call_output(call, 0, ED_INT64, 1, &a->num_sampled) &&
           ed_call_output(call, 1, ED_FLOAT32, x->rank, x->shape) &&
           ed_call_output(call, 2, ED_FLOAT32, 1, &a->num_sampled);
}

/* A set of classes: open addresses, empty ones -1. */
typedef struct class_set {
    int64_t *places;
    uint64_t mask;
} class_set;

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

/* Draws the classes; the number of tries, 0 without memory. */
static double draw_classes(const ed_call *call, int64_t *classes)
{
    const sampler_attrs *a = call->attrs;
    const sampler *by = call->op->extra;
    philox p = random_philox(a->draw.state);
    uint64_t room = 16;
    while (room < 2 * (uint64_t)a->num_sampled) room *= 2;
    class_set set = {memory_alloc(room * sizeof *set.places), room - 1};
    double tries = 0, units[2];
    if (!set.places) return 0;
    memset(set.places, -1, room * sizeof *set.places);
    for (int64_t n = 0; n < a->num_sampled; tries++) {
        if (fmod(tries, 2) == 0) {
            philox_uniform_f64(&p, 2, units, 0, 1);
            philox_skip(&p, 1);
        }
        const int64_t class = by->draw(units[(int)fmod(tries, 2)], a->range_max);
        if (!a->unique || add_class(&set, class)) classes[n++] = class;
    }
    memory_free(set.places);
    return tries;
}

/* How often a class is expected after so many tries, as TensorFlow estimates it. */
static double expected(const ed_call *call, double class, double tries)
{
    const sampler_attrs *a = call->attrs;
    const double p = ((const sampler *)call->op->extra)->probability(class, a->range_max);
    const bool again = a->unique && tries > (double)a->num_sampled; /* some were drawn again */
    return again ? -expm1(tries * log1p(-p)) : p * (double)a->num_sampled;
}

static bool sampler_kernel(ed_call *call)
{
    const sampler_attrs *a = call->attrs;
    const ed_tensor *x = call->inputs[0];
    int64_t *classes = ed_call_data(call, 0);
    float *true_count = ed_call_data(call, 1), *sampled_count = ed_call_data(call, 2);
    for (int64_t i = 0; i < x->size; i++) {
        const double class = dtype_load(x->dtype, x->data, i);
        if (class < 0 || class >= (double)a->range_max)
            return ed_call_fail(call, ED_OUT_OF_RANGE,
                                "true_classes[%lld], counted flat, is %.0f; it must be in 0..%lld",
                                (long long)i, class, (long long)a->range_max - 1);
    }
    const double tries = draw_classes(call, classes);
    if (tries == 0) return false;
    for (int64_t i = 0; i < x->size; i++)
        true_count[i] = (float)expected(call, dtype_load(x->dtype, x->data, i), tries);
    for (int64_t i = 0; i < a->num_sampled; i++)
        sampled_count[i] = (float)expected(call, (double)classes[i], tries);
    return true;
}

/* The drawn classes themselves are the kernel's: their frequencies are tested
 * (tests/test_random.c). */
static bool sampler_reference(const ed_call *call)
{
    const sampler_attrs *a = call->attrs;
    int64_t *classes = memory_alloc((size_t)a->num_sampled * sizeof *classes);
    const double tries = classes ? draw_classes(call, classes) : 0;
    for (int64_t i = 0; tries > 0 && i < a->num_sampled; i++)
        ((double *)call->outputs[0]->data)[i] = (double)classes[i];
    for (int k = 1; tries > 0 && k < 3; k++)
        for (int64_t i = 0; i < call->outputs[k]->size; i++) {
            const double class =
                k == 1 ? ((const double *)call->inputs[0]->data)[i] : (double)classes[i];
            const double p = ((const sampler *)call->op->extra)->probability(class, a->range_max);
            ((double *)call->outputs[k]->data)[i] = a->unique && tries != (double)a->num_sampled
                                                        ? 1 - pow(1 - p, tries)
                                                        : p * (double)a->num_sampled;
        }
    memory_free(classes);
    return tries > 0;
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

/* ---- Losses ---------------------------------------------------------------------------------- */

/* What both losses are given. */
typedef struct sampled_call {
    const char *name;
    ed_tensor *weights, *biases, *labels, *inputs, *sampled, *true_count, *sampled_count;
    int64_t batch, num_true, num_sampled;
} sampled_call;

static bool has_shape(const ed_tensor *x, int rank, int64_t first, int64_t second)
{
    return x && x->rank == rank && (first < 0 || x->shape[0] == first) &&
           (rank < 2 || second < 0 || x->shape[1] == second);
}

static const ed_tensor *value_of(ed_tensor *x)
{
    return x ? tensor_read(x) : NULL;
}

static bool check_call(sampled_call *c)
{
    const ed_tensor *w = value_of(c->weights), *labels = value_of(c->labels),
                    *inputs = value_of(c->inputs), *sampled = value_of(c->sampled);
    if (!w || !labels || !inputs || !sampled || !c->biases || !c->true_count || !c->sampled_count)
        return ed_fail(ED_INVALID_ARGUMENT, "%s: an operand is NULL", c->name), false;
    if (!has_shape(w, 2, -1, -1) || !has_shape(value_of(c->biases), 1, w->shape[0], -1) ||
        !has_shape(inputs, 2, -1, w->shape[1]) || !has_shape(labels, 2, inputs->shape[0], -1) ||
        !has_shape(sampled, 1, -1, -1) ||
        !has_shape(value_of(c->true_count), 2, labels->shape[0], labels->shape[1]) ||
        !has_shape(value_of(c->sampled_count), 1, sampled->shape[0], -1))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: weights are %s, biases %s, labels %s, inputs %s, sampled %s, expected "
                       "counts %s and %s; expected [classes, n], [classes], [batch, num_true], "
                       "[batch, n], [sampled], [batch, num_true] and [sampled]",
                       c->name, text_of_tensor(w).s, text_of_tensor(value_of(c->biases)).s,
                       text_of_tensor(labels).s, text_of_tensor(inputs).s,
                       text_of_tensor(sampled).s, text_of_tensor(value_of(c->true_count)).s,
                       text_of_tensor(value_of(c->sampled_count)).s),
               false;
    c->batch = labels->shape[0];
    c->num_true = labels->shape[1];
    c->num_sampled = sampled->shape[0];
    return true;
}

/* Logits less the logarithm of the expected count: of the true classes [batch, num_true], and of
 * the sampled ones [batch, sampled], very negative where they are true ones and `remove`. */
static void both_logits(const sampled_call *c, bool remove, ed_tensor **true_logits,
                        ed_tensor **sampled_logits)
{
    const ed_dtype dtype = ed_dtype_of(c->inputs);
    ed_tensor *rows = ed_gather(c->weights, c->labels);
    ed_tensor *dots =
        ed_reduce_sum(ed_mul(rows, ed_expand_dims(c->inputs, 1)), .axis = ED_AXES(-1));
    *true_logits = ed_sub(ed_add(dots, ed_gather(c->biases, c->labels)),
                          ed_log(ed_cast(c->true_count, dtype)));
    ed_tensor *products =
        ed_matmul(c->inputs, ed_gather(c->weights, c->sampled), .transpose_b = true);
    ed_tensor *shift =
        ed_sub(ed_gather(c->biases, c->sampled), ed_log(ed_cast(c->sampled_count, dtype)));
    *sampled_logits = ed_add(products, shift);
    if (!remove) return;
    ed_tensor *hits = ed_reduce_any(
        ed_equal(ed_expand_dims(ed_cast(c->labels, ED_INT64), 2), ed_cast(c->sampled, ED_INT64)),
        .axis = ED_AXES(1));
    *sampled_logits = ed_add(*sampled_logits, ed_mul(ed_cast(hits, dtype), -(double)__FLT_MAX__));
}

ed_tensor *ed_sampled_softmax_loss_with(ed_tensor *weights, ed_tensor *biases, ed_tensor *labels,
                                        ed_tensor *inputs, ed_tensor *sampled,
                                        ed_tensor *true_expected_count,
                                        ed_tensor *sampled_expected_count,
                                        const ed_sampled_softmax_loss_options *options)
{
    ED_SCOPE;
    sampled_call c = {
        "sampled_softmax_loss", weights, biases, labels, inputs, sampled, true_expected_count,
        sampled_expected_count};
    ed_tensor *of_true, *of_sampled;
    options = OPTIONS_OR_DEFAULTS(ED_SAMPLED_SOFTMAX_LOSS_OPTIONS, options);
    if (!check_call(&c)) return NULL;
    both_logits(&c, options->remove_accidental_hits, &of_true, &of_sampled);
    ed_tensor *logits = ed_concat(ed_list_of(of_true, of_sampled), .axis = 1);
    if (!logits) return NULL;
    ed_tensor *part =
        ed_full(ED_INTS(c.batch, c.num_true), 1 / (double)c.num_true, .dtype = ed_dtype_of(logits));
    ed_tensor *zeros = ed_zeros(ED_INTS(c.batch, c.num_sampled), .dtype = ed_dtype_of(logits));
    ed_tensor *targets = ed_concat(ed_list_of(part, zeros), .axis = 1);
    return ed_keep(ed_softmax_cross_entropy(targets, logits));
}

ed_tensor *ed_nce_loss_with(ed_tensor *weights, ed_tensor *biases, ed_tensor *labels,
                            ed_tensor *inputs, ed_tensor *sampled, ed_tensor *true_expected_count,
                            ed_tensor *sampled_expected_count, const ed_nce_loss_options *options)
{
    ED_SCOPE;
    sampled_call c = {"nce_loss",
                      weights,
                      biases,
                      labels,
                      inputs,
                      sampled,
                      true_expected_count,
                      sampled_expected_count};
    ed_tensor *of_true, *of_sampled;
    options = OPTIONS_OR_DEFAULTS(ED_NCE_LOSS_OPTIONS, options);
    if (!check_call(&c)) return NULL;
    both_logits(&c, options->remove_accidental_hits, &of_true, &of_sampled);
    if (!of_true || !of_sampled) return NULL;
    ed_tensor *part = ed_full(ED_INTS(c.batch, c.num_true), 1 / (double)c.num_true,
                              .dtype = ed_dtype_of(of_true));
    ed_tensor *is = ed_sigmoid_cross_entropy(part, of_true);
    ed_tensor *is_not = ed_sigmoid_cross_entropy(ed_zeros_like(of_sampled), of_sampled);
    return ed_keep(
        ed_add(ed_reduce_sum(is, .axis = ED_AXES(1)), ed_reduce_sum(is_not, .axis = ED_AXES(1))));
}
