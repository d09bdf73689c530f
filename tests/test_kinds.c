/*
 * Every kind of object that is made from options, checked by its definition alone: its schema makes
 * sense; options beyond their limits are refused by name; an object rebuilt from its JSON gives the
 * same JSON. Layers are built and called in both modes on their samples, their gradients by inputs
 * and weights compared with finite differences, saved and restored; optimizers step, are saved,
 * restored, and step on to the same bits. Every allocation is refused in turn. A new kind needs
 * nothing here. test_losses.c and test_metrics.c do the same for losses and metrics.
 */
#include "eddy.h"
#include "tests/checks.h"
#include "tests/folders.h"
#include "tests/survives.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const ed_kind *kind; /* the one that is checked, for messages */

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (condition) break;                                                                      \
        printf("%s %s: ", kind->family, kind->name);                                               \
        printf(__VA_ARGS__);                                                                       \
        printf("; the error: %s\n", ed_error());                                                   \
        fail();                                                                                    \
    } while (0)

static void each_kind(const char *family, void (*check)(void))
{
    int checked = 0;
    for (int i = 0; i < ed_kind_count(); i++) {
        kind = ed_kind_at(i);
        if (family && strcmp(kind->family, family) != 0) continue;
        ed_clear_error();
        check();
        checked++;
    }
    assert_true(checked > 0);
}

static const ed_layer_class *layer_class(void)
{
    return (const ed_layer_class *)kind;
}

/* A value within the limits. */
static double good_value(const ed_limits *l)
{
    if (!l->bounded || (isinf(l->low) && isinf(l->high))) return 1;
    if (isinf(l->high)) return l->low + 1;
    return isinf(l->low) ? l->high - 1 : (l->low + l->high) / 2;
}

/* The defaults, with values for what is required. */
static const void *filled_defaults(void)
{
    static max_align_t filled[64];
    static const int64_t list[1] = {1};
    static const double numbers[4] = {1, 2, 3, 4};
    assert_true(kind->options_size <= sizeof filled);
    memcpy(filled, kind->defaults, kind->options_size);
    for (int i = 0; i < kind->required; i++) {
        const ed_field *f = &kind->fields[i];
        void *at = ED_FIELD_AT(f, filled);
        if (f->type == ED_FIELD_FLOAT) *(double *)at = good_value(&f->limits);
        if (f->type == ED_FIELD_INT) *(int64_t *)at = (int64_t)good_value(&f->limits);
        if (f->type == ED_FIELD_INTS) *(ed_ints *)at = (ed_ints){list, 1};
        if (f->type == ED_FIELD_FLOATS) *(ed_floats *)at = (ed_floats){numbers, i + 1};
        if (f->type == ED_FIELD_SCHEDULE) *(void **)at = ed_schedule_constant(1);
    }
    return filled;
}

/* Options that make something: the defaults, or those of the first sample. */
static const void *good_options(void)
{
    const ed_layer_sample *s = !strcmp(kind->family, "layer") ? layer_class()->samples : NULL;
    return s && s->options ? s->options : filled_defaults();
}

static void *copy_options(void)
{
    void *copy = malloc(kind->options_size);
    assert_non_null(copy);
    return memcpy(copy, good_options(), kind->options_size);
}

/* ---- All kinds ------------------------------------------------------------------------------- */

static bool takes_object(const ed_field *f)
{
    return f->type >= ED_FIELD_OBJECT;
}

static void schema_makes_sense(void)
{
    CHECK(kind->doc && *kind->doc, "no documentation");
    CHECK(kind->fields && kind->defaults && kind->make, "incomplete");
    int n = 0;
    for (const ed_field *f = kind->fields; f->name; f++, n++) {
        CHECK(f->doc && *f->doc, "%s: no documentation", f->name);
        CHECK(f->offset >= sizeof(uint32_t) && f->offset < kind->options_size, "%s: its place",
              f->name);
        for (const ed_field *g = kind->fields; g < f; g++)
            CHECK(strcmp(f->name, g->name) != 0, "%s comes twice", f->name);
        CHECK(!f->limits.bounded || f->limits.low <= f->limits.high, "%s: its limits", f->name);
        CHECK((f->type == ED_FIELD_CHOICE) == (f->limits.words != NULL), "%s: its words", f->name);
        if (!f->limits.otherwise) continue;
        CHECK(takes_object(f) && ed_kind_find(schema_family(f->type), f->limits.otherwise),
              "%s: there is no %s", f->name, f->limits.otherwise);
    }
    CHECK(kind->required >= 0 && kind->required <= n, "required options");
    CHECK(*(const uint32_t *)kind->defaults == ED_OPTIONS_MARK, "defaults without their mark");
    CHECK(ed_kind_find(kind->family, kind->name) == kind, "is not found by its name");
}

/* The call fails, with an error that names the field. */
static void expect_refusal(void *options, const char *name)
{
    ed_clear_error();
    CHECK(!ed_make(kind, options), "%s: a value beyond its limits is taken", name);
    CHECK(strstr(ed_error(), name), "%s: the error does not name it", name);
    ed_clear_error();
}

static void refuse_number(const ed_field *f, double value)
{
    void *options = copy_options();
    int64_t list[1] = {(int64_t)value};
    if (f->type == ED_FIELD_FLOAT)
        *(double *)ED_FIELD_AT(f, options) = value;
    else if (f->type == ED_FIELD_INTS || f->type == ED_FIELD_AXES)
        *(ed_ints *)ED_FIELD_AT(f, options) = (ed_ints){list, 1};
    else if (f->type == ED_FIELD_FLOATS)
        *(ed_floats *)ED_FIELD_AT(f, options) = (ed_floats){&value, 1};
    else
        *(int64_t *)ED_FIELD_AT(f, options) = (int64_t)value;
    expect_refusal(options, f->name);
    free(options);
}

static void limits_hold(void)
{
    ED_SCOPE;
    for (const ed_field *f = kind->fields; f->name; f++) {
        const ed_limits *l = &f->limits;
        if (l->bounded && isfinite(l->low)) refuse_number(f, l->above_low ? l->low : l->low - 1);
        if (l->bounded && isfinite(l->high))
            refuse_number(f, l->below_high ? l->high : l->high + 1);
        if (l->bounded && (f->type == ED_FIELD_FLOAT || f->type == ED_FIELD_FLOATS))
            refuse_number(f, NAN);
        if (f->type != ED_FIELD_CHOICE && !takes_object(f)) continue;
        void *options = copy_options();
        ed_tensor *wrong = ed_scalar(1.0); /* an object of another family */
        if (f->type == ED_FIELD_CHOICE)
            *(const char **)ED_FIELD_AT(f, options) = "no such word";
        else if (f->type == ED_FIELD_LAYERS)
            *(ed_objects *)ED_FIELD_AT(f, options) = (ed_objects){(void *const *)&wrong, 1};
        else
            *(void **)ED_FIELD_AT(f, options) = wrong;
        if (f->type != ED_FIELD_OBJECT) expect_refusal(options, f->name);
        free(options);
    }
}

static void half_filled_is_refused(void)
{
    ED_SCOPE;
    void *options = copy_options();
    *(uint32_t *)options = 0;
    CHECK(!ed_make(kind, options), "options without their mark are taken");
    CHECK(strstr(ed_error(), "incomplete"), "the error does not say why");
    ed_clear_error();
    free(options);
}

/* Whether the kind makes something of its defaults. */
static bool has_defaults(void)
{
    ED_SCOPE;
    const bool made = ed_make(kind, filled_defaults());
    ed_clear_error();
    return made;
}

/* Calls `check` with the options of each sample, or with the defaults, if these do. */
static void each_options(void (*check)(const void *options))
{
    const bool is_layer = !strcmp(kind->family, "layer");
    const ed_layer_sample *s = is_layer ? layer_class()->samples : NULL;
    if (!s && has_defaults()) check(filled_defaults());
    for (; s && s->n_inputs; s++) check(s->options ? s->options : kind->defaults);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void rebuilt(const void *options)
{
    ED_SCOPE;
    void *made = ed_make(kind, options);
    const char *json = ed_to_json(made);
    CHECK(json, "no JSON");
    void *again = ed_from_json(json);
    CHECK(again, "%s: is not read", json);
    const char *second = ed_to_json(again);
    CHECK(second && !strcmp(json, second), "%s becomes %s", json, second ? second : "nothing");
    CHECK(ed_kind_of(again) == kind, "becomes another kind");
}

/* Every prefix of the JSON is refused, and so is each with a byte changed, or is read whole. */
static void damaged_json(const void *options)
{
    ED_SCOPE;
    char *json = strdup(ed_to_json(ed_make(kind, options)));
    for (size_t n = strlen(json); n-- > 0;) {
        ED_SCOPE;
        const char last = json[n];
        json[n] = 0;
        CHECK(!ed_from_json(json) && *ed_error(), "%s is read", json);
        ed_clear_error();
        json[n] = last ^ 1;
        if (!ed_from_json(json)) CHECK(*ed_error(), "%s is refused without a reason", json);
        ed_clear_error();
        json[n] = last;
    }
    free(json);
}

static void round_trip(void)
{
    each_options(rebuilt);
    each_options(damaged_json);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

enum { MOST_INPUTS = 4 };

/* The sample's inputs in float64: floats anew at each call, the same ones. */
static ed_list *make_inputs(const ed_layer_sample *s, ed_dtype dtype)
{
    ed_tensor *inputs[MOST_INPUTS];
    ed_generator *generator = ed_generator_from_seed(7);
    for (int i = 0; i < s->n_inputs; i++) {
        const ed_layer_input *in = &s->inputs[i];
        const ed_ints shape = {in->shape, in->rank};
        inputs[i] = in->below ? ed_random_uniform(shape, .dtype = ED_INT32, .low = 0,
                                                  .high = (double)in->below, .generator = generator)
                              : ed_random_uniform(shape, .dtype = dtype, .low = -1, .high = 1,
                                                  .generator = generator);
    }
    return ed_list_make(inputs, s->n_inputs);
}

/* Kinds that contain layers, which no constant can say. */
static ed_layer *make_bidirectional(void)
{
    return ed_layer_bidirectional(ed_layer_lstm(2, .return_sequences = true), .merge_mode = "sum");
}

static ed_layer *make_rnn(void)
{
    return ed_layer_rnn(ed_layer_gru_cell(2), .return_sequences = true);
}

static ed_layer *make_stacked(void)
{
    return ed_layer_stacked_rnn_cells(
        ED_OBJECTS(ed_layer_simple_rnn_cell(3), ed_layer_lstm_cell(2)));
}

static ed_layer *make_time_distributed(void)
{
    return ed_layer_time_distributed(ed_layer_dense(2, .activation = "tanh"));
}

static ed_layer *make_spectral_normalization(void)
{
    return ed_layer_spectral_normalization(ed_layer_dense(3));
}

static ed_layer *make_sequential(void)
{
    return ed_layer_sequential(NULL, ed_layer_dense(2, .activation = "tanh"), ed_layer_dense(1));
}

static const struct {
    const char *kind;
    ed_layer *(*make)(void);
    ed_layer_sample samples[2];
    bool changes_itself; /* a call in training changes what is trained: no differences are taken */
} containers[] = {
    {"bidirectional", make_bidirectional, {{.inputs = {{3, {2, 2, 3}}}, .n_inputs = 1}}},
    {"rnn", make_rnn, {{.inputs = {{3, {2, 2, 3}}}, .n_inputs = 1}}},
    {"stacked_rnn_cells", make_stacked, {{.inputs = {{2, {2, 3}}}, .n_inputs = 1}}},
    {"time_distributed", make_time_distributed, {{.inputs = {{3, {2, 2, 3}}}, .n_inputs = 1}}},
    {"spectral_normalization",
     make_spectral_normalization,
     {{.inputs = {{2, {3, 2}}}, .n_inputs = 1}},
     true},
    {"sequential", make_sequential, {{.inputs = {{2, {3, 2}}}, .n_inputs = 1}}},
};

static ed_layer *(*container)(void); /* that is checked; NULL: the sample says all */
static bool changes_itself;

static ed_layer *make_layer(const ed_layer_sample *s)
{
    return container ? container() : ed_make(kind, s->options);
}

/* The kind's samples; sets `container`. NULL: there are none. */
static const ed_layer_sample *samples_of_layer(void)
{
    container = NULL;
    changes_itself = false;
    if (layer_class()->samples) return layer_class()->samples;
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++) {
        if (strcmp(containers[i].kind, kind->name) != 0) continue;
        container = containers[i].make;
        changes_itself = containers[i].changes_itself;
        return containers[i].samples;
    }
    return NULL;
}

/* One number of all outputs: their sum, each element times a number of its own. */
static ed_tensor *measure(ed_layer *layer, ed_list *inputs, bool training)
{
    ed_set_seed(3); /* draws are the same each time */
    ed_list *outputs = ed_forward_list(layer, inputs, &(ed_forward_options){.training = training});
    ed_tensor *sum = NULL;
    for (int64_t i = 0; i < ed_list_size(outputs); i++) {
        ed_tensor *y = ed_list_get(outputs, i);
        ed_tensor *weights =
            ed_reshape(ed_linspace(0.5, 1.5, ed_size(y), .dtype = ed_dtype_of(y)), ed_shape(y));
        ed_tensor *part = ed_reduce_sum(ed_mul(y, weights));
        sum = sum ? ed_add(sum, part) : part;
    }
    return sum;
}

/* The central difference of the measure by element i of a variable. */
static double difference(ed_layer *layer, ed_list *inputs, bool training, ed_tensor *v, int64_t i)
{
    ED_SCOPE;
    const double step = 1e-6;
    const int64_t n = ed_size(v);
    ed_tensor *before = ed_value(v);
    ed_tensor *at = ed_reshape(
        ed_one_hot(ed_scalar((double)i, .dtype = ED_INT32), n, .dtype = ED_FLOAT64), ed_shape(v));
    ed_assign(v, ed_add(before, ed_mul(at, step)));
    const double above = ed_item(measure(layer, inputs, training));
    ed_assign(v, ed_sub(before, ed_mul(at, step)));
    const double below = ed_item(measure(layer, inputs, training));
    ed_assign(v, before);
    return (above - below) / (2 * step);
}

static void check_layer_gradient(ed_layer *layer, ed_list *inputs, bool training,
                                 ed_list *variables)
{
    ed_tape *tape = ed_tape_begin();
    ed_list *gradients =
        ed_gradient(tape, measure(layer, inputs, training), variables, .unconnected_zeros = true);
    CHECK(gradients, "no gradient, training %d", training);
    for (int64_t k = 0; k < ed_list_size(variables); k++) {
        ed_tensor *v = ed_list_get(variables, k);
        const double *got = ed_data(ed_list_get(gradients, k));
        for (int64_t i = 0; i < ed_size(v); i++) {
            const double wanted = difference(layer, inputs, training, v, i);
            CHECK(fabs(got[i] - wanted) <= 1e-6 * (1 + fabs(wanted)),
                  "training %d: element %lld of %s: the gradient is %.9g, the difference %.9g",
                  training, (long long)i, ed_variable_name(v), got[i], wanted);
        }
    }
}

/* The inputs as variables, where they are floats, and the layer's weights. */
static void gradients_of(const ed_layer_sample *s)
{
    ED_SCOPE;
    ed_layer *layer = make_layer(s);
    ed_list *values = make_inputs(s, ED_FLOAT64), *of = ed_list_make(NULL, 0);
    ed_tensor *inputs[MOST_INPUTS];
    for (int i = 0; i < s->n_inputs; i++) {
        inputs[i] = ed_list_get(values, i);
        if (s->inputs[i].below) continue;
        inputs[i] = ed_variable(inputs[i], .name = "input");
        of = ed_list_concat(of, ed_list_of(inputs[i]));
    }
    ed_list *given = ed_list_make(inputs, s->n_inputs);
    CHECK(measure(layer, given, false), "is not called");
    ed_list *weights = ed_layer_trainable_variables(layer);
    ed_clear_error(); /* a layer may have none */
    if (weights) of = ed_list_concat(of, weights);
    check_layer_gradient(layer, given, false, of);
    if (!changes_itself) check_layer_gradient(layer, given, true, of);
}

/* A layer that was trained gives the same outputs once it is restored, whether it had been called
 * or not. */
static void saved_and_restored(const ed_layer_sample *s)
{
    ED_SCOPE;
    ed_list *inputs = make_inputs(s, ED_FLOAT32);
    ed_layer *layer = make_layer(s), *late = make_layer(s), *built = make_layer(s);
    CHECK(measure(layer, inputs, true) && measure(built, inputs, false), "is not called");
    ed_tensor *wanted = measure(layer, inputs, false);
    const char *path = in_folder("layer");
    CHECK(ed_checkpoint_write(ed_checkpoint("layer", layer), path), "is not saved");
    CHECK(ed_checkpoint_read(ed_checkpoint("layer", built), path), "is not restored");
    CHECK(same_bits(wanted, measure(built, inputs, false)), "restored, it gives something else");
    CHECK(ed_checkpoint_read(ed_checkpoint("layer", late), path), "is not restored before a call");
    CHECK(same_bits(wanted, measure(late, inputs, false)), "restored late, it gives other values");
}

static bool make_and_call(const void *sample)
{
    ED_SCOPE;
    const ed_layer_sample *s = sample;
    ed_layer *layer = make_layer(s);
    ed_list *inputs = layer ? make_inputs(s, ED_FLOAT32) : NULL;
    ed_tape *tape = inputs ? ed_tape_begin() : NULL;
    ed_tensor *y = tape ? measure(layer, inputs, true) : NULL;
    return y && ed_gradient(tape, y, inputs) && ed_to_json(layer);
}

static void survives(bool (*run)(const void *), const void *what)
{
    survives_refusals(kind->name, run, what);
}

static void refuses_nonsense(const ed_layer_sample *s)
{
    ED_SCOPE;
    ed_layer *layer = make_layer(s);
    CHECK(!ed_forward(layer, (ed_tensor *)NULL), "NULL is taken");
    ed_clear_error();
    CHECK(!ed_forward_list(layer, ed_list_make(NULL, 0), NULL), "no input is taken");
    ed_clear_error();
    static const int64_t ones[ED_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int rank = 0; rank <= ED_MAX_RANK; rank++)
        for (int d = ED_FLOAT32; d < ED_DTYPE_COUNT; d++) {
            ED_SCOPE;
            ed_tensor *x = ed_zeros(((ed_ints){ones, rank}), .dtype = (ed_dtype)d);
            ed_layer *fresh = make_layer(s);
            if (!ed_forward(fresh, x))
                CHECK(*ed_error(), "%s is refused without a reason", ed_to_string(x));
            ed_clear_error();
        }
}

/* Weights and float outputs are of the layer's dtype where the inputs are not. */
static void takes_dtype(const ed_layer_sample *s)
{
    ED_SCOPE;
    const ed_field *field = NULL;
    for (const ed_field *f = kind->fields; f->name; f++)
        if (!strcmp(f->name, "dtype") && f->type == ED_FIELD_DTYPE) field = f;
    if (!field || container) return; /* layers inside have a dtype of their own */
    char *options = malloc(kind->options_size);
    assert_non_null(options);
    memcpy(options, s->options ? s->options : kind->defaults, kind->options_size);
    *(ed_dtype *)ED_FIELD_AT(field, options) = ED_FLOAT64;
    ed_layer *layer = ed_make(kind, options);
    ed_list *outputs = ed_forward_list(layer, make_inputs(s, ED_FLOAT32), NULL);
    CHECK(outputs, "with dtype = float64 and float32 inputs it is not called");
    ed_list *weights = ed_layer_variables(layer);
    ed_clear_error(); /* a layer may have none */
    ed_list *all = weights ? ed_list_concat(outputs, weights) : outputs;
    for (int64_t i = 0; i < ed_list_size(all); i++)
        CHECK(ed_dtype_of(ed_list_get(all, i)) != ED_FLOAT32,
              "with dtype = float64, output or weight %lld is float32", (long long)i);
    free(options);
}

static void check_layer(void)
{
    const ed_layer_sample *s = samples_of_layer();
    CHECK(s && s->n_inputs, "no samples");
    for (; s->n_inputs; s++) {
        gradients_of(s);
        saved_and_restored(s);
        refuses_nonsense(s);
        takes_dtype(s);
        survives(make_and_call, s);
    }
}

/* ---- Optimizers ------------------------------------------------------------------------------ */

typedef struct trained {
    ed_tensor *a, *b;
    ed_optimizer *optimizer;
} trained;

/* Options that all optimizers have. */
typedef struct common_set {
    bool use_ema, dynamic_loss_scale, schedule, constrained, settings;
    int64_t every, accumulated; /* ema_overwrite_frequency, gradient_accumulation_steps */
    double clipnorm;
} common_set;

static void set_option(void *options, const char *name, const void *value, size_t size)
{
    for (const ed_field *f = kind->fields; f->name; f++)
        if (!strcmp(f->name, name)) memcpy(ED_FIELD_AT(f, options), value, size);
}

/* `set` NULL: the defaults. */
static trained make_trained(const common_set *set)
{
    static const common_set none = {.accumulated = 1};
    if (!set) set = &none;
    void *options = copy_options();
    ed_schedule *schedule = set->schedule ? ed_schedule_exponential_decay(0.01, 2, 0.5) : NULL;
    set_option(options, "use_ema", &set->use_ema, sizeof set->use_ema);
    set_option(options, "dynamic_loss_scale", &set->dynamic_loss_scale, sizeof(bool));
    set_option(options, "ema_overwrite_frequency", &set->every, sizeof set->every);
    set_option(options, "gradient_accumulation_steps", &set->accumulated, sizeof(int64_t));
    set_option(options, "clipnorm", &set->clipnorm, sizeof set->clipnorm);
    set_option(options, "schedule", &schedule, sizeof schedule);
    trained t = {ed_variable(ed_linspace(-1, 1, 40), .name = "a"),
                 ed_variable(ed_ones(ED_SHAPE(3, 5)), .name = "b"), NULL};
    if (!set->schedule || schedule) t.optimizer = ed_make(kind, options);
    free(options);
    if (set->constrained) ed_variable_set_constraint(t.b, ed_constraint_unit_norm());
    if (set->settings && t.optimizer) {
        ed_optimizer_set_multiplier(t.optimizer, t.a, 0.5);
        ed_optimizer_exclude_names_from_weight_decay(t.optimizer, "b");
    }
    return t;
}

static bool step(const trained *t, int i)
{
    ED_SCOPE;
    ed_tensor *g = ed_random_normal(ED_SHAPE(40), .generator = ed_generator_from_seed((uint64_t)i));
    ed_tensor *h = ed_mul(t->b, 0.1 * i);
    return ed_apply_gradients(t->optimizer, ed_list_of(g, h), ed_list_of(t->a, t->b));
}

static ed_checkpoint *checkpoint_of(const trained *t)
{
    return ed_checkpoint("a", t->a, "b", t->b, "optimizer", t->optimizer);
}

static bool three_steps(const void *set)
{
    ED_SCOPE;
    const trained t = make_trained(set);
    if (!t.a || !t.b || !t.optimizer || ed_failed()) return false;
    for (int i = 1; i <= 3; i++)
        if (!step(&t, i)) return false;
    return ed_to_json(t.optimizer);
}

/* The state after each number of steps, restored, leads to the same bits. */
static void optimizer_restored(const common_set *set, int steps)
{
    ED_SCOPE;
    const trained first = make_trained(set), second = make_trained(set);
    for (int i = 1; i <= steps; i++) CHECK(step(&first, i), "a step fails");
    CHECK(ed_optimizer_iterations(first.optimizer) == steps, "steps are not counted");
    const char *path = in_folder("optimizer");
    CHECK(ed_checkpoint_write(checkpoint_of(&first), path), "is not saved");
    CHECK(ed_checkpoint_read(checkpoint_of(&second), path), "is not restored");
    for (int i = steps + 1; i <= steps + 3; i++)
        CHECK(step(&first, i) && step(&second, i), "a step after restoring fails");
    CHECK(same_bits(first.a, second.a) && same_bits(first.b, second.b),
          "steps after restoring give other values");
}

/* A step that fails for want of memory changes nothing, and the next one works. */
static void failed_steps(const common_set *set)
{
    ED_SCOPE;
    const trained t = make_trained(set);
    CHECK(step(&t, 1), "a step fails");
    for (int64_t n = 0;; n++) {
        ED_SCOPE;
        ed_tensor *a = ed_add(t.a, 0.0), *b = ed_add(t.b, 0.0);
        const int64_t before = ed_optimizer_iterations(t.optimizer);
        ed_memory_fail_at(n, false);
        const bool ok = step(&t, 2), failed = ed_memory_has_failed();
        ed_memory_fail_at(-1, false);
        ed_clear_error();
        CHECK(ok || (same_bits(a, t.a) && same_bits(b, t.b) &&
                     ed_optimizer_iterations(t.optimizer) == before),
              "a step that failed at allocation %lld changed something", (long long)n);
        if (!failed) return;
        CHECK(n < 100000, "never ends");
    }
}

static void check_optimizer(void)
{
    static const common_set sets[] = {
        {.accumulated = 1},
        {.accumulated = 1, .use_ema = true, .every = 2, .schedule = true},
        {.accumulated = 2, .use_ema = true, .clipnorm = 0.5, .constrained = true},
        {.accumulated = 1, .dynamic_loss_scale = true, .settings = true, .clipnorm = 1},
        {.accumulated = 3, .dynamic_loss_scale = true, .constrained = true},
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        optimizer_restored(&sets[i], 3);
        optimizer_restored(&sets[i], 4);
        survives(three_steps, &sets[i]);
        failed_steps(&sets[i]);
    }
}

/* ---- Initializers ---------------------------------------------------------------------------- */

static bool draw(const void *nothing)
{
    (void)nothing;
    ED_SCOPE;
    ed_initializer *initializer = ed_make(kind, NULL);
    return initializer && ed_initialize(initializer, ED_SHAPE(3, 4), ED_FLOAT64);
}

static void check_initializer(void)
{
    ED_SCOPE;
    ed_initializer *initializer = ed_make(kind, NULL);
    static const int64_t shape[] = {2, 3, 4, 5, 1};
    for (int rank = 0; rank <= 5; rank++)
        for (ed_dtype dtype = ED_FLOAT32; dtype <= ED_FLOAT64; dtype++) {
            ed_set_seed(1);
            ed_tensor *a = ed_initialize(initializer, (ed_ints){shape, rank}, dtype);
            ed_set_seed(1);
            ed_tensor *b = ed_initialize(initializer, (ed_ints){shape, rank}, dtype);
            if (!a && rank != 2) { /* some are for matrices */
                CHECK(strstr(ed_error(), "rank"), "rank %d is refused without a reason", rank);
                ed_clear_error();
                continue;
            }
            CHECK(a && b && ed_rank(a) == rank && ed_dtype_of(a) == dtype, "rank %d", rank);
            CHECK(!memcmp(ed_data(a), ed_data(b), (size_t)ed_size(a) * ed_dtype_size(dtype)),
                  "the same seed gives other values");
        }
    survives(draw, NULL);
}

/* ---- Schedules, constraints, regularizers ---------------------------------------------------- */

static bool make_schedule(const void *options)
{
    ED_SCOPE;
    ed_schedule *schedule = ed_make(kind, options);
    return schedule && !isnan(ed_schedule_at(schedule, 7)) && ed_to_json(schedule);
}

static void check_schedule(void)
{
    ED_SCOPE;
    ed_schedule *schedule = ed_make(kind, filled_defaults());
    CHECK(schedule, "is not made");
    for (int64_t step = 0; step < 100; step++) {
        const double rate = ed_schedule_at(schedule, step);
        CHECK(rate >= 0 && rate < 100, "step %lld: the rate is %g", (long long)step, rate);
    }
    CHECK(isfinite(ed_schedule_at(schedule, INT64_MAX)), "the last step has no rate");
    CHECK(isnan(ed_schedule_at(schedule, -1)) && ed_failed(), "a negative step is taken");
    ed_clear_error();
    survives(make_schedule, filled_defaults());
}

static bool constrain(const void *options)
{
    ED_SCOPE;
    ed_constraint *constraint = ed_make(kind, options);
    return constraint && ed_constrain(constraint, ed_ones(ED_SHAPE(3, 2)));
}

/* What is allowed stays, but for rounding. */
static void check_constraint(void)
{
    ED_SCOPE;
    ed_constraint *constraint = ed_make(kind, filled_defaults());
    for (ed_dtype dtype = ED_FLOAT32; dtype <= ED_FLOAT64; dtype++)
        for (int rank = 1; rank <= 4; rank++) {
            static const int64_t shape[] = {3, 2, 2, 5};
            ed_tensor *w = ed_random_normal(((ed_ints){shape, rank}), .dtype = dtype, .stddev = 9);
            ed_tensor *once = ed_constrain(constraint, w), *twice = ed_constrain(constraint, once);
            CHECK(twice && ed_dtype_of(once) == dtype && ed_rank(once) == rank, "rank %d", rank);
            CHECK(ed_item(ed_reduce_max(ed_abs(ed_sub(once, twice)))) < 1e-5,
                  "rank %d: %s, then %s", rank, ed_to_string(once), ed_to_string(twice));
        }
    CHECK(!ed_constrain(constraint, ed_zeros(ED_SHAPE(2), .dtype = ED_INT32)) && *ed_error(),
          "integers are taken");
    ed_clear_error();
    survives(constrain, filled_defaults());
}

static bool regularize(const void *options)
{
    ED_SCOPE;
    ed_regularizer *regularizer = ed_make(kind, options);
    ed_tensor *x = ed_linspace(0.5, 2, 6, .dtype = ED_FLOAT64);
    ed_tape *tape = x ? ed_tape_begin() : NULL;
    ed_tensor *matrix = tape && ed_watch(tape, x) ? ed_reshape(x, ED_SHAPE(3, 2)) : NULL;
    ed_tensor *y = matrix ? ed_regularize(regularizer, matrix) : NULL;
    return y && ed_gradient(tape, y, x);
}

static ed_tensor *penalty(ed_list *inputs, void *regularizer)
{
    return ed_regularize(regularizer, ed_list_get(inputs, 0));
}

/* A scalar of the dtype, from 0 on, whose gradient is right. */
static void check_regularizer(void)
{
    ED_SCOPE;
    ed_regularizer *regularizer = ed_make(kind, filled_defaults());
    for (ed_dtype dtype = ED_FLOAT32; dtype <= ED_FLOAT64; dtype++) {
        ed_tensor *x = ed_random_normal(ED_SHAPE(4, 3), .dtype = dtype);
        ed_tensor *y = ed_regularize(regularizer, x);
        CHECK(y && ed_rank(y) == 0 && ed_dtype_of(y) == dtype && ed_item(y) >= 0, "its value");
    }
    ed_set_seed(5);
    ed_list *x = ed_list_of(ed_random_normal(ED_SHAPE(4, 3), .dtype = ED_FLOAT64));
    const char *report;
    CHECK(ed_check_gradient(penalty, x, regularizer, &report), "the gradient: %s", report);
    survives(regularize, filled_defaults());
}

/* ---- Objects within objects ------------------------------------------------------------------ */

static void nested_json(void **state)
{
    (void)state;
    ED_SCOPE;
    kind = ed_kind_find("layer", "sequential");
    ed_layer *model = ed_layer_sequential(
        "net", ed_layer_flatten(),
        ed_layer_sequential("inner",
                            ed_layer_dense(3, .kernel_initializer = ed_initializer_constant(0.5))),
        ed_layer_dropout(0.25), ed_layer_dense(2, .activation = "relu", .name = "last"));
    ed_layer_add_child(model, ed_layer_activation("tanh")); /* added later, it is written too */
    const char *json = ed_to_json(model);
    ed_layer *again = ed_from_json(json);
    CHECK(again && !strcmp(json, ed_to_json(again)), "%s", json ? json : "no JSON");
    ed_tensor *x = ed_ones(ED_SHAPE(2, 2, 2));
    ed_set_seed(1);
    ed_tensor *a = ed_forward(model, x);
    ed_set_seed(1);
    CHECK(same_bits(a, ed_forward(again, x)), "the rebuilt model computes something else");
    CHECK(!strcmp(ed_variable_name(ed_list_get(ed_layer_variables(again), 0)),
                  "net/inner/dense/kernel"),
          "names differ");
}

static void strange_json(void **state)
{
    (void)state;
    ED_SCOPE;
    kind = ed_kind_find("layer", "dense");
    static const struct {
        const char *json, *error;
    } cases[] = {
        {"", "an object"},
        {"[]", ""},
        {"{}", "module, class_name and config"},
        {"{\"module\": \"layer\", \"class_name\": \"dens\", \"config\": {}}",
         "unknown layer \"dens\"; did you mean \"dense\"?"},
        {"{\"module\": \"layer\", \"class_name\": \"dense\", \"config\": {\"units\": 0}}",
         "units must be at least 1"},
        {"{\"module\": \"layer\", \"class_name\": \"dense\", \"config\": {\"unit\": 1}}",
         "no option 'unit'"},
        {"{\"module\": \"layer\", \"class_name\": \"dense\", \"config\": {\"units\": \"1\"}}",
         "units: expected an integer"},
        {"{\"module\": \"optimizer\", \"class_name\": \"sgd\", \"config\": "
         "{\"learning_rate\": null}}",
         "learning_rate: expected a number"},
        {"{\"module\": \"keras.layers\", \"class_name\": \"Dense\", \"config\": {\"units\": 1}}",
         "no family 'keras.layers'"},
        {"{\"module\": \"layer\", \"class_name\": \"dense\", \"config\": {\"units\": 1e99}}",
         "units"},
        {"{\"module\": \"layer\", \"class_name\": \"dense\", \"config\": {\"units\": 1, "
         "\"kernel_initializer\": {\"module\": \"layer\", \"class_name\": \"flatten\", "
         "\"config\": {}}}}",
         "expected an object of the family initializer, got the layer flatten"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(!ed_from_json(cases[i].json), "%s is read", cases[i].json);
        CHECK(*ed_error() && strstr(ed_error(), cases[i].error), "%s", cases[i].json);
        ed_clear_error();
    }
    /* Deep nesting ends in an error, not in the end of the stack. */
    enum { DEEP = 20000 };
    static const char open[] = "{\"module\": \"layer\", \"class_name\": \"sequential\", "
                               "\"config\": {\"layers\": [";
    char *deep = malloc(DEEP * sizeof open + 1), *at = deep;
    for (int i = 0; i < DEEP; i++) at = stpcpy(at, open);
    CHECK(!ed_from_json(deep) && *ed_error(), "nesting without end is read");
    ed_clear_error();
    free(deep);
}

/* What is written can be read, however deep, and what could not be read is not written. */
static void written_json_is_read(void **state)
{
    (void)state;
    ED_SCOPE;
    kind = ed_kind_find("layer", "sequential");
    ed_layer *net = ed_layer_conv2d(1, ED_INTS(2, 2));
    int levels = 0;
    for (const char *json; (json = ed_to_json(net)); levels++) {
        void *again = ed_from_json(json);
        CHECK(again && !strcmp(json, ed_to_json(again)), "%d levels: %s", levels, ed_error());
        net = ed_layer_sequential(NULL, net);
    }
    CHECK(levels > 30 && strstr(ed_error(), "nested"), "%d levels", levels);
    ed_clear_error();
    CHECK(!ed_to_json(ed_layer_dense(1, .name = "\xff")), "a name that is not UTF-8 is written");
    CHECK(strstr(ed_error(), "to_json: the option name is not UTF-8"), "%s", ed_error());
    ed_clear_error();
    CHECK(!ed_to_json(ed_layer_dropout(0.5, .generator = ed_generator_from_seed(1))), "written");
    CHECK(strstr(ed_error(), "got: generator"), "%s", ed_error());
    ed_clear_error();
}

/* ---- A program's kind ------------------------------------------------------------------------ */

#define MARKER_OPTIONS(FIELD, T)                                                                   \
    FIELD(T, OBJECT, count, NULL, ED_ANY, "a variable that counts what is destroyed")              \
    FIELD(T, INTS, steps, ED_NO_LIST, ED_ANY, "what is added to it")
ED_OPTIONS(marker_options, MARKER_OPTIONS);
ED_SCHEMA(marker, MARKER_OPTIONS, marker_options);

static bool marker_forward(ed_layer *layer, ed_layer_call *call)
{
    (void)layer;
    return ed_layer_return(call, call->inputs[0]);
}

static void marker_destroy(ed_layer *layer)
{
    const marker_options *o = ed_options_of(layer);
    ed_assign_add(o->count, ed_integer(o->steps.values[0]));
}

static const ed_layer_class marker_class = {.kind = {.family = "layer",
                                                     .name = "marker",
                                                     .doc = "returns its input",
                                                     .fields = marker_fields,
                                                     .options_size = sizeof(marker_options),
                                                     .defaults = &marker_defaults,
                                                     .make = ed_layer_make},
                                            .forward = marker_forward,
                                            .destroy = marker_destroy};

/* The options are there as long as the layer, its end included. */
static void destroy_sees_options(void **state)
{
    (void)state;
    ED_SCOPE;
    kind = &marker_class.kind;
    ed_tensor *count = ed_variable(ed_scalar(0));
    for (int i = 0; i < 3; i++) {
        ED_SCOPE;
        marker_options options = ED_NEW_OPTIONS(MARKER_OPTIONS, marker_options);
        options.count = count;
        options.steps = ED_INTS(7);
        CHECK(ed_make(&marker_class.kind, &options), "%s", ed_error());
    }
    CHECK(ed_item(count) == 21 && !ed_failed(), "%g: %s", ed_item(count), ed_error());
}

/* ---------------------------------------------------------------------------------------------- */

#define TEST(name, family, check)                                                                  \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        each_kind(family, check);                                                                  \
    }
TEST(schemas, NULL, schema_makes_sense)
TEST(limits, NULL, limits_hold)
TEST(half_filled, NULL, half_filled_is_refused)
TEST(json, NULL, round_trip)
TEST(layers, "layer", check_layer)
TEST(optimizers, "optimizer", check_optimizer)
TEST(initializers, "initializer", check_initializer)
TEST(schedules, "schedule", check_schedule)
TEST(constraints, "constraint", check_constraint)
TEST(regularizers, "regularizer", check_regularizer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemas),
        cmocka_unit_test(limits),
        cmocka_unit_test(half_filled),
        cmocka_unit_test(json),
        cmocka_unit_test(layers),
        cmocka_unit_test(optimizers),
        cmocka_unit_test(initializers),
        cmocka_unit_test(schedules),
        cmocka_unit_test(constraints),
        cmocka_unit_test(regularizers),
        cmocka_unit_test(nested_json),
        cmocka_unit_test(strange_json),
        cmocka_unit_test(written_json_is_read),
        cmocka_unit_test(destroy_sees_options),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
