/*
 * The structure of metrics. A metric is a few named variables, float64, zero at first. An update
 * computes by public ops, which no tape hears, a tensor to be added to each; one op, metric_add,
 * then adds all of them at once, so that an update happens as a whole or not at all and listeners
 * see it. The result is a function of the variables.
 *
 * A kind says how (average.c has the shortest):
 *
 *     MEAN_METRIC       by the samples' values, whose mean is the result; variables total, count
 *     METRIC            by `increments` and `result`
 *     METRIC_OP, .fast  by an op of total, count and operands, when nothing is weighted
 */
#ifndef EDDY_NN_METRIC_H
#define EDDY_NN_METRIC_H

#include "nn/losses/loss.h"
#include "nn/nn.h"
#include "ops/execute.h"
#include "tensor/schema_core.h"
#include "track/graph.h"

enum { METRIC_VARIABLES = 5 };

/* One update. */
typedef struct metric_call {
    const char *who;     /* the metric's name, for messages */
    const void *options; /* of its kind */
    ed_tensor *y_true;   /* or the values, of metrics that do not compare */
    ed_tensor *y_pred;
    ed_tensor *weight;                       /* float64; NULL: not given */
    ed_tensor *increments[METRIC_VARIABLES]; /* what is added to each variable */
} metric_call;

/* A kind of metric. The functions but one of `values` and `increments` may be NULL. */
typedef struct metric_class {
    ed_kind kind;
    bool compares;                           /* y_true and y_pred; else values */
    loss_operands operands;                  /* what is made of them before */
    const char *variables[METRIC_VARIABLES]; /* names, up to a NULL */
    bool late; /* the variables have the shapes of the first increments; else `shape` says it */

    /* The shape of all variables; returns the rank. NULL: 0. */
    int (*shape)(const void *options, int64_t *shape);
    /* Whether the options fit each other; false with an error that begins with `who`. */
    bool (*check)(const char *who, const void *options);
    /* The samples' values. */
    ed_tensor *(*values)(const void *options, ed_tensor *y_true, ed_tensor *y_pred);
    /* Which of the values count in updates with weights; in others all do, as in Keras. */
    bool (*counts)(const void *options, ed_tensor *y_true, ed_tensor *values, ed_tensor **mask);
    /* Fills call->increments by public ops. */
    bool (*increments)(metric_call *call);
    /* By public ops; NULL: total / count, 0 of nothing. */
    ed_tensor *(*result)(const void *options, ed_tensor *const *variables);
    const ed_op *fast;        /* of the variables and operands */
    const ed_sample *samples; /* operands, and options as attributes, for the checks */
} metric_class;

/* Creates a metric: kind.make of all kinds. */
void *metric_make(const ed_kind *kind, const void *options);

/* The definition of a kind from its list of options; the first `needed` are required arguments.
 * Then fields of metric_class. */
#define METRIC(symbol, SYMBOL, needed, text, ...)                                                  \
    ED_SCHEMA(symbol, ED_METRIC_##SYMBOL##_OPTIONS, ed_metric_##symbol##_options);                 \
    static const metric_class symbol##_class = {                                                   \
        .kind = SCHEMA_KIND(metric, symbol, text, needed, metric_make), __VA_ARGS__};              \
    SCHEMA_KIND_END(metric, symbol)

/* Of one that compares and is the mean of the samples' values; the body that follows computes them
 * from options, y_true and y_pred. */
#define MEAN_METRIC(symbol, SYMBOL, text, ...)                                                     \
    typedef ed_metric_##symbol##_options symbol##_options;                                         \
    static ed_tensor *symbol##_values(const void *options, ed_tensor *y_true, ed_tensor *y_pred);  \
    METRIC(symbol, SYMBOL, 0, text, .compares = true, .variables = {"total", "count"},             \
           .values = symbol##_values, __VA_ARGS__)                                                 \
    static ed_tensor *symbol##_values(const void *options, ed_tensor *y_true, ed_tensor *y_pred)

/* One without options that is an expression of y_true and y_pred; further fields of metric_class
 * follow. */
#define PLAIN_METRIC(symbol, SYMBOL, text, samples_, expression, ...)                              \
    MEAN_METRIC(symbol, SYMBOL, text, .samples = samples_, ##__VA_ARGS__)                          \
    {                                                                                              \
        (void)options;                                                                             \
        return expression;                                                                         \
    }

/* ---- For increments -------------------------------------------------------------------------- */

/* What samples' values add to total and count: of values of rank 2 and more the mean of each
 * sample; weights are [batch] or have more of the values' axes. */
bool metric_add_mean(metric_call *call, ed_tensor *values);

/* The same for their sum. */
bool metric_add_sum(metric_call *call, ed_tensor *values);

ed_tensor *metric_float64(ed_tensor *x); /* x as float64 */

/* Weights for elements of x, [batch, ...] or fewer axes, with x's shape; NULL with an error. */
ed_tensor *metric_spread(const metric_call *call, const ed_tensor *x);

/* Makes the weights 0 where the mask, bool, is false; false with an error. */
bool metric_leave_out(metric_call *call, ed_tensor *mask);

/* ---- The object (metric.c) ------------------------------------------------------------------- */

struct ed_metric {
    made_object made;
    const metric_class *class;
    char *name;
    int n;                                  /* of variables that the class has */
    ed_tensor *variables[METRIC_VARIABLES]; /* NULL until made */
    graph_wait wait;
};

/* What a checkpoint saves of it (track.c). */
void metric_track(void *object, ed_tracker *t);
graph_wait *metric_wait(void *object);
/* The value that waits for variable i of the shape, retained; NULL if there is none, or with an
 * error, and then false. */
bool metric_waiting(const ed_metric *metric, int i, ed_ints shape, ed_tensor **value, int *node);

/* Makes variable i, of that shape, for which a value may wait. NULL with an error. */
ed_tensor *metric_new_variable(const ed_metric *metric, int i, ed_ints shape);

/* ---- Ops ------------------------------------------------------------------------------------- */

/* The definition of a fast metric's op, ed_op_metric_<symbol>. The fields that are left: operands,
 * infer, kernel, reference, samples. */
#define METRIC_OP(symbol, text, ...)                                                               \
    ED_OP(metric_##symbol) = {.name = "metric_" #symbol,                                           \
                              .doc = text,                                                         \
                              .results = ED_NO_RESULTS,                                            \
                              .flags = ED_OP_CONTIGUOUS | ED_OP_INTERNAL,                          \
                              .no_gradient = "it updates a metric",                                \
                              __VA_ARGS__}

/* The first two operands. The next are the values, or the labels and the predictions. */
#define METRIC_OPERANDS                                                                            \
    {"total", 1 << ED_FLOAT64, 'D', .writes = true},                                               \
    {                                                                                              \
        "count", 1 << ED_FLOAT64, 'D', .writes = true                                              \
    }

/* A sample of the op: METRIC_SAMPLE(ED_SAMPLE_IN(-2, 2, 3, 4)) has the operands after those two. */
#define METRIC_SAMPLE(...)                                                                         \
    {                                                                                              \
        .inputs = { ED_SAMPLE_IN(-2, 2), ED_SAMPLE_IN(0, 9), __VA_ARGS__ }                         \
    }

/* For infer: checks that total and count are scalars; false, with an error, if not. */
bool metric_infer(ed_call *call);

/* The same, and that labels and predictions have the same shape; or one of them [..., 1], where the
 * other one has [...], which Keras squeezes. */
bool metric_infer_same_shape(ed_call *call);

/* For kernels and references, last: the sum of all elements of x of those that it is for, which
 * become means of each sample, [batch, ...]. */
bool metric_add(const ed_call *call, double sum, const ed_tensor *x);

/* total += sum of variables and increments, all of them or none. */
extern const ed_op ed_op_metric_add, ed_op_metric_reset;

#endif
