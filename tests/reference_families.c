/*
 * What is done with a case of each family: the object is made, called as Keras' was, and compared.
 * A new family is a function here and a line in the table at the end; record.py has the other side.
 */
#include "eddy.h"
#include "tests/reference.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* ---- Layers ---------------------------------------------------------------------------------- */

/* Calls the layer as the case does. */
static ed_list *call_layer(const reference_case *c, ed_layer *layer, ed_list *inputs, bool training,
                           ed_list **output_masks)
{
    ed_list *masks = reference_tensors(c, "masks");
    return ed_forward(layer, inputs, .training = training, .masks = masks,
                      .output_masks = output_masks);
}

static const char *leaf(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Gives the weights Keras' values; whether they are the same ones in the same order. */
static bool set_weights(reference_case *c, ed_layer *layer)
{
    const json *weights = json_get(c->json, "weights");
    ed_list *all = ed_layer_variables(layer);
    if (ed_list_size(all) != json_count(weights))
        reference_differs(c, "%lld weights, expected %lld", (long long)ed_list_size(all),
                          (long long)json_count(weights));
    for (int64_t i = 0; i < ed_list_size(all) && i < json_count(weights); i++) {
        const json *weight = json_at(weights, i);
        ed_tensor *v = ed_list_get(all, i);
        const char *name = json_text(json_get(weight, "name"));
        if (strcmp(leaf(name), leaf(ed_variable_name(v))) != 0)
            reference_differs(c, "weight %lld is %s, expected %s", (long long)i,
                              ed_variable_name(v), name);
        else if (ed_variable_is_trainable(v) != json_bool(json_get(weight, "trainable")))
            reference_differs(c, "%s is trainable or is not", name);
        else if (!ed_assign(v, reference_tensor(c, json_get(weight, "value"))))
            reference_differs(c, "%s", name);
    }
    return !c->differences;
}

/* "output 1"; with the name of a weight, "gradient of mlp/dense/kernel". */
static const char *what_of(const char *what, int64_t i, const json *weight)
{
    static char text[300];
    if (weight)
        snprintf(text, sizeof text, "%s %s", what, json_text(json_get(weight, "name")));
    else
        snprintf(text, sizeof text, "%s %lld", what, (long long)i);
    return text;
}

/* Compares a list with arrays of the case. */
static void compare_list(reference_case *c, const char *what, ed_list *got, const json *expected)
{
    const int64_t n = json_count(expected);
    if (!ed_failed() && ed_list_size(got) != n)
        reference_differs(c, "%s: %lld, expected %lld", what, (long long)ed_list_size(got),
                          (long long)n);
    for (int64_t i = 0; i < n && !c->differences; i++)
        reference_compare(c, what_of(what, i, NULL), ed_list_get(got, i), json_at(expected, i));
}

static ed_list *floats_of(ed_list *list, ed_tape *watching)
{
    ed_tensor *some[64];
    int64_t n = 0;
    for (int64_t i = 0; i < ed_list_size(list) && i < 64; i++) {
        ed_tensor *t = ed_list_get(list, i);
        const bool is_float = ed_dtype_of(t) == ED_FLOAT32 || ed_dtype_of(t) == ED_FLOAT64;
        if (is_float) some[n++] = watching ? ed_watch(watching, t) : t;
    }
    return ed_list_make(some, n);
}

static void compare_gradients(reference_case *c, ed_tape *tape, ed_list *outputs, ed_list *inputs,
                              ed_layer *layer)
{
    ed_list *trained = ed_layer_trainable_variables(layer);
    ed_list *sources = ed_list_concat(floats_of(inputs, NULL), trained);
    if (!ed_list_size(sources) || !ed_list_size(floats_of(outputs, NULL))) return;
    ed_list *cotangents = reference_tensors(c, "cotangents");
    ed_list *gradients =
        ed_gradient(tape, floats_of(outputs, NULL), sources, .output_gradients = cotangents);
    const json *of_inputs = json_get(c->json, "input_gradients");
    const json *weights = json_get(c->json, "weights");
    int64_t n = 0;
    for (int64_t i = 0; i < json_count(of_inputs); i++)
        reference_compare(c, what_of("gradient of input", i, NULL), ed_list_get(gradients, n++),
                          json_at(of_inputs, i));
    for (int64_t i = 0; i < json_count(weights); i++)
        if (json_get(json_at(weights, i), "gradient"))
            reference_compare(c, what_of("gradient of", i, json_at(weights, i)),
                              ed_list_get(gradients, n++),
                              json_get(json_at(weights, i), "gradient"));
}

/* What the constraints make of the weights. */
static void compare_constraints(reference_case *c, ed_layer *layer)
{
    const json *weights = json_get(c->json, "weights");
    ed_list *all = ed_layer_variables(layer);
    for (int64_t i = 0; i < json_count(weights); i++) {
        const json *expected = json_get(json_at(weights, i), "constrained");
        ed_tensor *v = ed_list_get(all, i);
        ed_constraint *constraint = ed_variable_constraint(v);
        if (!constraint != !expected)
            reference_differs(c, "%s has a constraint or has none", ed_variable_name(v));
        else if (expected)
            reference_compare(c, what_of("constrained", i, json_at(weights, i)),
                              ed_constrain(constraint, v), expected);
    }
}

/* Weights that are not trained, after two calls with .training. */
static void compare_state(reference_case *c, ed_layer *layer)
{
    const json *batches = json_get(c->json, "training_inputs");
    if (!batches || !set_weights(c, layer)) return;
    for (int64_t i = 0; i < json_count(batches); i++) {
        ed_tensor *inputs[8];
        const int64_t n = json_count(json_at(batches, i));
        assert_true(n <= 8);
        for (int64_t k = 0; k < n; k++)
            inputs[k] = reference_tensor(c, json_at(json_at(batches, i), k));
        call_layer(c, layer, ed_list_make(inputs, n), true, NULL);
    }
    compare_list(c, "state", ed_layer_non_trainable_variables(layer), json_get(c->json, "state"));
}

static void run_layer(reference_case *c)
{
    ed_layer *layer = reference_object(c);
    if (!layer) return;
    ed_list *inputs = reference_tensors(c, "inputs"), *masks = NULL;
    call_layer(c, layer, inputs, false, NULL); /* creates the weights */
    if (ed_failed()) {
        reference_differs(c, "the first call");
        return;
    }
    if (!set_weights(c, layer)) return;
    ed_tape *tape = ed_tape_begin();
    floats_of(inputs, tape);
    ed_list *outputs =
        call_layer(c, layer, inputs, json_bool(json_get(c->json, "training")), &masks);
    ed_tape_stop(tape);
    compare_list(c, "output", outputs, json_get(c->json, "outputs"));
    const json *output_masks = json_get(c->json, "output_masks");
    if (output_masks && json_kind_of(output_masks) == JSON_ARRAY)
        compare_list(c, "mask of output", masks, output_masks);
    if (json_get(c->json, "losses"))
        compare_list(c, "loss", ed_layer_losses(layer), json_get(c->json, "losses"));
    if (c->differences) return;
    compare_constraints(c, layer);
    compare_gradients(c, tape, outputs, inputs, layer);
    compare_state(c, layer);
}

/* ---- Functions of one tensor ----------------------------------------------------------------- */

/* The output for the case's input and its gradient; `f` gets the object of the case. */
static void compare_function(reference_case *c, void *object,
                             ed_tensor *(*f)(ed_tensor *x, void *object))
{
    ed_tensor *x = reference_tensor(c, json_get(c->json, "input"));
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = f(ed_watch(tape, x), object);
    if (!reference_compare(c, "output", y, json_get(c->json, "output"))) return;
    const json *gradient = json_get(c->json, "gradient");
    if (!gradient) return;
    ed_tensor *cotangent = reference_tensor(c, json_get(c->json, "cotangent"));
    reference_compare(c, "gradient",
                      ed_gradient(tape, y, x, .output_gradients = ed_list_of(cotangent)), gradient);
}

static ed_tensor *activate(ed_tensor *x, void *name)
{
    return ed_activate(x, name);
}

static void run_activation(reference_case *c)
{
    const json *object = json_get(c->json, "object");
    compare_function(c, (void *)json_text(json_get(object, "class_name")), activate);
}

static ed_tensor *regularize(ed_tensor *x, void *regularizer)
{
    return ed_regularize(regularizer, x);
}

static void run_regularizer(reference_case *c)
{
    ed_regularizer *regularizer = reference_object(c);
    if (regularizer) compare_function(c, regularizer, regularize);
}

static ed_tensor *constrain(ed_tensor *w, void *constraint)
{
    return ed_constrain(constraint, w);
}

static void run_constraint(reference_case *c)
{
    ed_constraint *constraint = reference_object(c);
    if (constraint) compare_function(c, constraint, constrain);
}

/* ---- Losses ---------------------------------------------------------------------------------- */

/* The loss, reduced, and its gradient. */
static void run_loss(reference_case *c)
{
    ed_loss *loss = reference_object(c);
    if (!loss) return;
    ed_tensor *y_true = reference_tensor(c, json_get(c->json, "y_true"));
    ed_tensor *y_pred = reference_tensor(c, json_get(c->json, "input"));
    ed_tensor *weight = reference_tensor(c, json_get(c->json, "sample_weight"));
    ed_tensor *mask = reference_tensor(c, json_get(c->json, "mask"));
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, y_pred);
    ed_tensor *value = ed_loss_compute(loss, y_true, y_pred, .sample_weight = weight, .mask = mask);
    if (!reference_compare(c, "output", value, json_get(c->json, "output"))) return;
    ed_tensor *cotangent = reference_tensor(c, json_get(c->json, "cotangent"));
    ed_tensor *gradient =
        ed_gradient(tape, value, y_pred, .output_gradients = ed_list_of(cotangent));
    reference_compare(c, "gradient", gradient, json_get(c->json, "gradient"));
}

/* ---- Schedules ------------------------------------------------------------------------------- */

static void run_schedule(reference_case *c)
{
    ed_schedule *schedule = reference_object(c);
    if (!schedule) return;
    const json *steps = json_get(c->json, "steps"), *output = json_get(c->json, "output");
    ed_tensor *expected = reference_tensor(c, output);
    double rates[64];
    assert_true(json_count(steps) <= 64);
    for (int64_t i = 0; i < json_count(steps); i++)
        rates[i] = ed_schedule_at(schedule, json_int(json_at(steps, i)));
    ed_tensor *got = ed_constant(rates, ED_SHAPE(json_count(steps)));
    reference_compare(c, "output", ed_cast(got, ed_dtype_of(expected)), output);
}

/* ---- Initializers ---------------------------------------------------------------------------- */

static void run_initializer(reference_case *c)
{
    ed_initializer *initializer = reference_object(c);
    if (!initializer) return;
    const json *output = json_get(c->json, "output");
    ed_tensor *expected = reference_tensor(c, output);
    ed_tensor *got = ed_initialize(initializer, ed_shape(expected), ed_dtype_of(expected));
    reference_compare(c, "output", got, output);
}

/* ---- Metrics --------------------------------------------------------------------------------- */

static void update_metric(reference_case *c, ed_metric *metric, const json *update)
{
    const json *operands = json_get(update, "operands");
    ed_tensor *x = reference_tensor(c, json_at(operands, 0));
    ed_tensor *weight = reference_tensor(c, json_get(update, "weight"));
    if (json_count(operands) == 1)
        ed_metric_update(metric, x, .sample_weight = weight);
    else
        ed_metric_compare(metric, x, reference_tensor(c, json_at(operands, 1)),
                          .sample_weight = weight);
}

/* Results after each update; after a reset; after the last update alone. */
static void run_metric(reference_case *c)
{
    ed_metric *metric = reference_object(c);
    if (!metric) return;
    const json *updates = json_get(c->json, "updates"), *results = json_get(c->json, "results");
    const int64_t n = json_count(updates);
    assert_int_equal(json_count(results), n + 2);
    for (int64_t i = 0; i < n + 2 && !c->differences; i++) {
        if (i == n)
            ed_metric_reset(metric);
        else
            update_metric(c, metric, json_at(updates, i < n ? i : n - 1));
        const json *expected = json_at(results, i);
        const ed_dtype dtype = ed_dtype_of(reference_tensor(c, expected));
        ed_tensor *result = ed_cast(ed_metric_result_tensor(metric), dtype);
        reference_compare(c, what_of("result", i, NULL), result, expected);
    }
}

/* ---- Optimizers ------------------------------------------------------------------------------ */

static ed_list *make_variables(reference_case *c)
{
    ed_list *initial = reference_tensors(c, "variables");
    ed_tensor *variables[8];
    assert_true(ed_list_size(initial) <= 8);
    for (int64_t i = 0; i < ed_list_size(initial); i++) {
        char name[24];
        snprintf(name, sizeof name, "v%lld", (long long)i);
        variables[i] = ed_variable(ed_list_get(initial, i), .name = name);
    }
    return ed_list_make(variables, ed_list_size(initial));
}

static void compare_slots(reference_case *c, ed_optimizer *optimizer)
{
    const json *slots = json_get(c->json, "slots");
    ed_list *got = ed_optimizer_variables(optimizer);
    if (ed_list_size(got) != json_count(slots))
        reference_differs(c, "%lld slots, expected %lld", (long long)ed_list_size(got),
                          (long long)json_count(slots));
    for (int64_t i = 0; i < json_count(slots) && i < ed_list_size(got); i++) {
        const char *name = json_text(json_get(json_at(slots, i), "name"));
        ed_tensor *slot = ed_list_get(got, i);
        if (strcmp(ed_variable_name(slot), name) != 0)
            reference_differs(c, "slot %lld is %s, expected %s", (long long)i,
                              ed_variable_name(slot), name);
        else
            reference_compare(c, name, slot, json_get(json_at(slots, i), "value"));
    }
}

static void run_optimizer(reference_case *c)
{
    ed_optimizer *optimizer = reference_object(c);
    if (!optimizer) return;
    ed_list *variables = make_variables(c);
    const json *steps = json_get(c->json, "steps");
    for (int64_t n = 0; n < json_count(steps) && !c->differences; n++) {
        const json *step = json_at(steps, n);
        ed_tensor *gradients[8];
        for (int64_t i = 0; i < ed_list_size(variables); i++)
            gradients[i] = reference_tensor(c, json_at(json_get(step, "gradients"), i));
        ed_list *list = ed_list_make_optional(gradients, ed_list_size(variables));
        ed_apply_gradients(optimizer, list, variables);
        char what[64];
        snprintf(what, sizeof what, "after step %lld, variable", (long long)n + 1);
        compare_list(c, what, variables, json_get(step, "values"));
        const double rate = json_number(json_get(step, "learning_rate"));
        if (fabs(ed_optimizer_learning_rate(optimizer) / rate - 1) > c->tolerance)
            reference_differs(c, "step %lld: learning rate %.17g, expected %.17g", (long long)n + 1,
                              ed_optimizer_learning_rate(optimizer), rate);
    }
    if (!c->differences) compare_slots(c, optimizer);
}

/* ---- All families ---------------------------------------------------------------------------- */

const reference_family reference_families[] = {
    {"activation", run_activation},
    {"constraint", run_constraint},
    {"initializer", run_initializer},
    {"layer", run_layer},
    {"loss", run_loss},
    {"metric", run_metric},
    {"optimizer", run_optimizer},
    {"regularizer", run_regularizer},
    {"schedule", run_schedule},
    {NULL, NULL},
};
