/*
 * Every kind beside what Keras computes: outputs, gradients, state, to 1e-6 of an array's largest
 * magnitude in float32 and to 1e-10 in float64. tests/reference/README.md says how cases are added.
 *
 *     test_reference [family [kind...]]
 *
 * The folder is tests/reference, or what EDDY_REFERENCE names.
 */
#include "eddy.h"
#include "tests/asserts.h"
#include "tests/folders.h"
#include "tests/reference.h"
#include <math.h>
#include <stdio.h>

static int n_words; /* of the command line: family, kinds */
static char **words;

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
    if (c->differences) return;
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
    const json *operands = json_get(update, "operands"), *weight = json_get(update, "weight");
    if (json_kind_of(weight) != JSON_NULL) reference_differs(c, "no metric takes weights yet");
    ed_tensor *x = reference_tensor(c, json_at(operands, 0));
    if (json_count(operands) == 1)
        ed_metric_update(metric, x);
    else
        ed_metric_compare(metric, x, reference_tensor(c, json_at(operands, 1)));
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
        ed_tensor *result =
            ed_cast(ed_scalar(ed_metric_result(metric), .dtype = ED_FLOAT64), dtype);
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
        char name[16];
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

/* A family: what a case of it is compared by. */
static const struct family {
    const char *name;
    void (*run)(reference_case *c);
} families[] = {
    {"activation", run_activation}, {"initializer", run_initializer}, {"layer", run_layer},
    {"metric", run_metric},         {"optimizer", run_optimizer},
};

/* Kinds without a file, and why. */
static const struct {
    const char *family, *kind, *why;
} exceptions[] = {
    {"initializer", "glorot_normal", "random"},    {"initializer", "glorot_uniform", "random"},
    {"initializer", "he_normal", "random"},        {"initializer", "he_uniform", "random"},
    {"initializer", "lecun_normal", "random"},     {"initializer", "lecun_uniform", "random"},
    {"initializer", "random_normal", "random"},    {"initializer", "random_uniform", "random"},
    {"initializer", "truncated_normal", "random"}, {"initializer", "variance_scaling", "random"},
};

static const char *reference_folder(void)
{
    const char *given = getenv("EDDY_REFERENCE");
    return given ? given : "tests/reference";
}

/* Whether the command line asks for it. */
static bool wanted(const char *family, const char *kind)
{
    if (n_words > 0 && strcmp(words[0], family) != 0) return false;
    for (int i = 1; i < n_words; i++)
        if (!strcmp(words[i], kind)) return true;
    return n_words < 2;
}

/* All cases of a kind; returns how many differ. */
static int64_t run_kind(const struct family *family, const char *kind, double worst[2])
{
    reference_file *file = reference_open(reference_folder(), family->name, kind);
    assert_non_null(file);
    int64_t bad = 0;
    for (int64_t i = 0; i < reference_count(file); i++) {
        ED_SCOPE;
        reference_case c;
        reference_get(file, i, &c);
        family->run(&c);
        if (ed_failed()) reference_differs(&c, "error");
        bad += c.differences > 0;
        double *w = &worst[!strcmp(json_text(json_get(c.json, "floatx")), "float64")];
        *w = fmax(*w, c.worst);
    }
    reference_close(file);
    return bad;
}

static void run_family(void **state)
{
    const struct family *family = *state;
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/%s", reference_folder(), family->name);
    struct dirent **entries;
    const int n = scandir(folder, &entries, is_shown, alphasort);
    if (n < 0) fail_msg("%s is not there: the test runs in the project's folder", folder);
    int64_t bad = 0;
    double worst[2] = {0, 0};
    for (int i = 0; i < n; i++) {
        char *ending = strstr(entries[i]->d_name, ".npz");
        if (ending) *ending = 0;
        if (ending && wanted(family->name, entries[i]->d_name))
            bad += run_kind(family, entries[i]->d_name, worst);
        free(entries[i]);
    }
    free(entries);
    print_message("%s: largest relative errors %.1e (float32), %.1e (float64)\n", family->name,
                  worst[0], worst[1]);
    if (bad) fail_msg("%s: %lld cases differ", family->name, (long long)bad);
}

/* ---- Nothing is left out --------------------------------------------------------------------- */

static bool has_file(const char *family, const char *kind)
{
    reference_file *file = reference_open(reference_folder(), family, kind);
    if (file) reference_close(file);
    return file;
}

static const char *exception(const char *family, const char *kind)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (!strcmp(exceptions[i].family, family) && !strcmp(exceptions[i].kind, kind))
            return exceptions[i].why;
    return NULL;
}

/* Whether the kind has a file or an exception, not both. */
static bool accounted(const char *family, const char *kind)
{
    const bool has = has_file(family, kind);
    const char *why = exception(family, kind);
    if (!has) print_message("no reference of %s %s: %s\n", family, kind, why ? why : "WHY?");
    if (has && why) print_error("%s %s is an exception and has a file\n", family, kind);
    return has == !why;
}

/* ed_activate knows no list of its names but that in its message. */
static int64_t activations_left_out(void)
{
    ED_SCOPE;
    int64_t bad = 0;
    ed_activate(ed_scalar(1.0), "?");
    char list[2000];
    const char *begin = strstr(ed_error(), "the activations are ");
    assert_non_null(begin);
    snprintf(list, sizeof list, "%s", begin + strlen("the activations are "));
    ed_clear_error();
    for (char *name = strtok(list, ", "); name; name = strtok(NULL, ", "))
        bad += !accounted("activation", name);
    return bad;
}

static void nothing_is_left_out(void **state)
{
    (void)state;
    int64_t bad = n_words ? 0 : activations_left_out();
    for (int i = 0; i < ed_kind_count(); i++)
        if (wanted(ed_kind_at(i)->family, ed_kind_at(i)->name))
            bad += !accounted(ed_kind_at(i)->family, ed_kind_at(i)->name);
    if (bad) fail_msg("%lld kinds have no reference", (long long)bad);
}

int main(int argc, char **argv)
{
    enum { FAMILIES = sizeof families / sizeof *families };
    struct CMUnitTest tests[FAMILIES + 1];
    int n = 0;
    n_words = argc - 1;
    words = argv + 1;
    for (int i = 0; i < FAMILIES; i++)
        if (!n_words || !strcmp(words[0], families[i].name))
            tests[n++] = (struct CMUnitTest){.name = families[i].name,
                                             .test_func = run_family,
                                             .teardown_func = check_end,
                                             .initial_state = (void *)&families[i]};
    tests[n++] = (struct CMUnitTest){.name = "nothing is left out",
                                     .test_func = nothing_is_left_out,
                                     .teardown_func = check_end};
    return _cmocka_run_group_tests("reference", tests, (size_t)n, NULL, NULL);
}
