#include "model/model_core.h"
#include "ops/ops.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* One training or evaluation: where its batches come from, and what callbacks are told. */
typedef struct run {
    ed_layer *model;
    compiled *compiled;
    source source;
    ed_objects callbacks;
    ed_tensor *class_weight;
    bool training;
    progress progress;
    ed_training told;
    const char **names; /* of told */
    double *values;
} run;

/* ---- One batch ------------------------------------------------------------------------------- */

static bool check_outputs(const run *r, const ed_list *outputs, const ed_list *y)
{
    const int64_t n = r->compiled->n_losses;
    if (outputs->size != n)
        return layer_fail(r->model, ED_INVALID_ARGUMENT,
                          "the model has %lld outputs and %lld losses", (long long)outputs->size,
                          (long long)n);
    if (!y || y->size != n)
        return layer_fail(r->model, ED_INVALID_ARGUMENT, "got %lld tensors y for %lld losses",
                          y ? (long long)y->size : 0LL, (long long)n);
    return true;
}

/* The factor of each row by its label. */
static ed_tensor *weights_of_classes(const run *r, ed_tensor *y)
{
    if (y->rank == 2 && y->shape[1] > 1) y = ed_argmax(y, .axis = 1);
    if (y && y->rank == 2) y = ed_squeeze(y, .axis = ED_AXES(1));
    return y ? ed_gather(r->class_weight, ed_cast(y, ED_INT64)) : NULL;
}

static ed_tensor *sample_weights(const run *r, const batch *b, int64_t output)
{
    ed_tensor *w = b->sample_weight;
    if (!r->class_weight || output) return w;
    ed_tensor *by_class = weights_of_classes(r, b->y->items[0]);
    return w && by_class ? ed_mul(w, by_class) : by_class;
}

/* The loss of the outputs and of the layers. */
static ed_tensor *total_loss(const run *r, const batch *b, const ed_list *outputs,
                             const ed_list *masks)
{
    ed_tensor *total = NULL;
    for (int64_t i = 0; i < outputs->size; i++) {
        ed_tensor *w = sample_weights(r, b, i);
        if (ed_failed()) return NULL;
        ed_tensor *loss = ed_loss_compute(r->compiled->losses[i], b->y->items[i], outputs->items[i],
                                          .sample_weight = w, .mask = masks->items[i]);
        if (loss && loss->rank) loss = ed_reduce_sum(loss);
        if (r->compiled->loss_weights[i] != 1) loss = ed_mul(loss, r->compiled->loss_weights[i]);
        total = total ? ed_add(total, loss) : loss;
        if (!total) return NULL;
    }
    const ed_list *penalties = ed_layer_losses(r->model);
    for (int64_t i = 0; total && penalties && i < penalties->size; i++)
        total = ed_add(total, ed_cast(penalties->items[i], total->dtype));
    return penalties ? total : NULL;
}

static bool measure(const run *r, const batch *b, const ed_list *outputs, const ed_tensor *loss)
{
    compiled *c = r->compiled;
    const double value = ed_item(loss);
    if (ed_failed()) return false;
    c->loss += value * (double)b->rows;
    c->rows += (double)b->rows;
    for (int64_t i = 0; i < c->n_metrics; i++) {
        const int64_t k = c->metrics[i].output;
        if (!ed_metric_compare(c->metrics[i].metric, b->y->items[k], outputs->items[k]))
            return false;
    }
    return true;
}

static ed_tensor *forward(run *r, const batch *b, ed_list **outputs)
{
    ed_list *masks;
    *outputs = ed_forward_list(
        r->model, (ed_list *)b->x,
        &(const ed_forward_options){.training = r->training, .output_masks = &masks});
    if (!*outputs || !check_outputs(r, *outputs, b->y)) return NULL;
    return total_loss(r, b, *outputs, masks);
}

static bool one_batch(run *r, const batch *b)
{
    ed_list *outputs;
    if (!r->training) {
        const ed_tensor *loss = forward(r, b, &outputs);
        return loss && measure(r, b, outputs, loss);
    }
    ed_tape *tape = ed_tape_begin();
    ed_tensor *loss = forward(r, b, &outputs);
    return loss && ed_minimize(r->compiled->optimizer, tape, loss, r->model) &&
           measure(r, b, outputs, loss);
}

/* ---- Epochs ---------------------------------------------------------------------------------- */

static bool tell(run *r, ed_training_event event)
{
    r->told.event = event;
    progress_tell(&r->progress, &r->told);
    return callback_tell(r->callbacks, &r->told, event);
}

/* What was measured so far: the loss, then the metrics. */
static bool gather_values(run *r)
{
    const compiled *c = r->compiled;
    r->values[0] = c->rows ? c->loss / c->rows : 0;
    for (int64_t i = 0; i < c->n_metrics; i++) {
        r->values[i + 1] = ed_metric_result(c->metrics[i].metric);
        if (ed_failed()) return false;
    }
    r->told.count = c->n_metrics + 1;
    return true;
}

/* Whether anybody hears of batches. */
static bool is_heard(const run *r)
{
    return r->callbacks.count || r->progress.verbose;
}

static bool one_step(run *r, int64_t step, bool *more)
{
    ED_SCOPE;
    batch b;
    r->told.step = step;
    if (!source_batch(&r->source, step, &b)) return false;
    if (!(*more = b.x != NULL)) return true;
    return tell(r, r->training ? ED_BATCH_BEGIN : ED_TEST_BATCH_BEGIN) && one_batch(r, &b) &&
           (!is_heard(r) || gather_values(r)) &&
           tell(r, r->training ? ED_BATCH_END : ED_TEST_BATCH_END);
}

static bool all_steps(run *r)
{
    if (!model_reset(r->compiled) || !source_epoch(&r->source)) return false;
    r->told.count = 0;
    r->told.steps = r->source.steps;
    bool more = true;
    for (int64_t step = 0; more && step < r->source.steps && !r->told.stop; step++) {
        if (one_step(r, step, &more)) continue;
        error_append(" (epoch %lld, batch %lld)", text_nth(r->told.epoch), text_nth(step));
        return false;
    }
    return gather_values(r);
}

static bool run_begin(run *r, const char *who, ed_layer *model, ed_objects callbacks,
                      int64_t verbose)
{
    if (!(r->compiled = model_compiled(who, model)) || !callback_check(who, callbacks))
        return false;
    if (!ed_scope_hold(r->compiled)) return false; /* a callback may compile the model again */
    const size_t n = (size_t)r->compiled->n_metrics + 1;
    r->model = model;
    r->callbacks = callbacks;
    r->names = ed_scope_alloc(n * sizeof *r->names);
    r->values = ed_scope_alloc(n * sizeof *r->values);
    if (!r->names || !r->values) return false;
    r->names[0] = "loss";
    for (size_t i = 1; i < n; i++) r->names[i] = r->compiled->metrics[i - 1].name;
    r->told = (ed_training){.model = model, .names = r->names, .values = r->values};
    r->progress = (progress){.verbose = (int)verbose};
    return true;
}

/* ---- Evaluation ------------------------------------------------------------------------------ */

static bool evaluate(run *r)
{
    return tell(r, ED_TEST_BEGIN) && all_steps(r) && tell(r, ED_TEST_END);
}

static bool note_all(ed_history *h, const run *r, const char *head)
{
    for (int64_t i = 0; i <= r->compiled->n_metrics; i++) {
        char name[300];
        snprintf(name, sizeof name, "%s%s", head, r->names[i]);
        if (!history_note(h, name, r->values[i])) return false;
    }
    return true;
}

ed_history *ed_model_evaluate_with(ed_layer *model, void *x, void *y, const ed_evaluate_options *o)
{
    if (!(o = CHECKED_OPTIONS("model_evaluate", ED_EVALUATE_OPTIONS, o))) return NULL;
    ED_SCOPE;
    run r = {.training = false};
    ed_history *h = history_new();
    if (!h || !run_begin(&r, "model_evaluate", model, o->callbacks, o->verbose)) return NULL;
    if (!source_begin(&r.source, "model_evaluate", x, y, o->sample_weight, o->batch_size, o->steps))
        return NULL;
    r.told.epochs = 1;
    const bool ok = evaluate(&r) && history_epoch(h) && note_all(h, &r, "");
    source_end(&r.source);
    return ok ? ed_keep(h) : NULL;
}

/* ---- Prediction ------------------------------------------------------------------------------ */

/* Puts the outputs of one batch among the parts of each output; the first batch makes the list,
 * whose reference is the caller's. */
static bool predict_batch(ed_layer *model, const source *s, int64_t step, ed_list **parts,
                          int64_t *n_outputs)
{
    ED_SCOPE;
    batch b;
    if (!source_batch(s, step, &b)) return false;
    if (!b.x) return true;
    const ed_list *outputs = ed_forward_list(model, (ed_list *)b.x, NULL);
    if (!outputs) return false;
    if (!*parts) {
        *n_outputs = outputs->size;
        if (!(*parts = list_new(s->steps * outputs->size))) return false;
    }
    if (outputs->size != *n_outputs)
        return layer_fail(model, ED_INVALID_ARGUMENT,
                          "the number of outputs changed from %lld to %lld", (long long)*n_outputs,
                          (long long)outputs->size);
    for (int64_t i = 0; i < outputs->size; i++)
        (*parts)->items[i * s->steps + step] = ed_retain(outputs->items[i]);
    return true;
}

ed_list *ed_model_predict_list_with(ed_layer *model, void *x, const ed_evaluate_options *o)
{
    if (!(o = CHECKED_OPTIONS("model_predict", ED_EVALUATE_OPTIONS, o))) return NULL;
    if (!model) return ed_fail(ED_INVALID_ARGUMENT, "model_predict: model is NULL");
    ED_SCOPE;
    source s;
    if (!source_begin(&s, "model_predict", x, NULL, NULL, o->batch_size, o->steps)) return NULL;
    ed_list *parts = NULL, *whole = NULL;
    int64_t n = 0;
    bool ok = source_epoch(&s);
    for (int64_t step = 0; ok && step < s.steps; step++)
        ok = predict_batch(model, &s, step, &parts, &n);
    scope_give(parts);
    if (ok) whole = scope_give(list_new(n));
    for (int64_t i = 0; whole && i < n; i++) {
        ed_tensor *joined = ed_concat(
            ed_list_make((ed_tensor *const *)parts->items + i * s.steps, s.steps), .axis = 0);
        if (!(whole->items[i] = ed_retain(joined))) whole = NULL;
    }
    source_end(&s);
    return ed_keep(whole);
}

ed_tensor *ed_model_predict_with(ed_layer *model, void *x, const ed_evaluate_options *options)
{
    ED_SCOPE;
    const ed_list *outputs = ed_model_predict_list_with(model, x, options);
    if (!outputs) return NULL;
    if (outputs->size != 1)
        return layer_fail(model, ED_INVALID_ARGUMENT,
                          "the model has %lld outputs; ed_model_predict_list returns all",
                          (long long)outputs->size);
    return ed_keep(scope_give(ed_retain(outputs->items[0])));
}

/* ---- Training -------------------------------------------------------------------------------- */

/* A fit: the training, and the evaluation that follows epochs. */
typedef struct fit {
    run train, test;
    bool tests;
    ed_history *history;
    const char **names; /* of what callbacks hear at an epoch's end: those of both */
    double *values;
} fit;

/* Takes the last rows of x and y from the training. */
static bool split(fit *f, const ed_fit_options *o)
{
    source *s = &f->train.source;
    if (s->dataset)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "model_fit: a dataset can't be split; give validation_x a dataset");
    const int64_t left = (int64_t)((double)s->rows * (1 - o->validation_split));
    if (left < 1 || left == s->rows)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "model_fit: validation_split %g leaves %lld of %lld rows for training",
                       o->validation_split, (long long)left, (long long)s->rows);
    f->test.source = *s;
    f->test.source.first = left;
    f->test.source.rows = s->rows - left;
    f->test.source.shuffle = false;
    f->test.source.steps = (s->rows - left + s->batch - 1) / s->batch;
    if (o->validation_steps && o->validation_steps < f->test.source.steps)
        f->test.source.steps = o->validation_steps;
    s->rows = left;
    s->steps = (left + s->batch - 1) / s->batch;
    if (o->steps_per_epoch && o->steps_per_epoch < s->steps) s->steps = o->steps_per_epoch;
    return true;
}

static bool begin_validation(fit *f, ed_layer *model, const ed_fit_options *o)
{
    f->tests = o->validation_x || o->validation_split > 0;
    if (!f->tests) return true;
    if (o->validation_x && o->validation_split > 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "model_fit: give either validation_split or validation_x");
    if (!run_begin(&f->test, "model_fit", model, o->callbacks, 0)) return false;
    if (!o->validation_x) return split(f, o);
    return source_begin(&f->test.source, "model_fit: validation", o->validation_x, o->validation_y,
                        NULL, o->batch_size, o->validation_steps);
}

static bool check_weights(const ed_fit_options *o)
{
    const ed_tensor *w = o->class_weight;
    if (w && (w->rank != 1 || !ed_dtype_is_float(w->dtype)))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "model_fit: class_weight must be floats [classes], got %s",
                       text_of_tensor(w).s);
    return true;
}

static bool fit_begin(fit *f, ed_layer *model, void *x, void *y, const ed_fit_options *o)
{
    if (!(f->history = history_new()) || !check_weights(o)) return false;
    if (!run_begin(&f->train, "model_fit", model, o->callbacks, o->verbose)) return false;
    if (!source_begin(&f->train.source, "model_fit", x, y, o->sample_weight, o->batch_size,
                      o->steps_per_epoch))
        return false;
    f->train.training = true;
    f->train.class_weight = o->class_weight;
    f->train.source.shuffle = o->shuffle && !f->train.source.dataset;
    f->train.source.generator = o->generator;
    f->train.told.epochs = o->epochs;
    if (!begin_validation(f, model, o)) return false;
    const size_t n = 2 * ((size_t)f->train.compiled->n_metrics + 1);
    f->names = ed_scope_alloc(n * sizeof *f->names);
    f->values = ed_scope_alloc(n * sizeof *f->values);
    if (!f->names || !f->values) return false;
    for (size_t i = 0; i < n; i++) {
        const char *name = f->train.names[i % (n / 2)];
        char *copy = i < n / 2 ? NULL : ed_scope_alloc(strlen(name) + sizeof "val_");
        if (i >= n / 2 && !copy) return false;
        if (copy) strcat(strcpy(copy, "val_"), name);
        f->names[i] = copy ? copy : name;
    }
    return true;
}

/* Tells the end of an epoch with the values of both, which the history gets. */
static bool end_epoch(fit *f, bool tested)
{
    run *r = &f->train;
    const int64_t n = r->compiled->n_metrics + 1;
    memcpy(f->values, r->values, (size_t)n * sizeof *f->values);
    if (tested) memcpy(f->values + n, f->test.values, (size_t)n * sizeof *f->values);
    const ed_training before = r->told;
    r->told.names = f->names;
    r->told.values = f->values;
    r->told.count = tested ? 2 * n : n;
    bool ok = history_epoch(f->history);
    for (int64_t i = 0; ok && i < r->told.count; i++)
        ok = history_note(f->history, f->names[i], f->values[i]);
    ok = ok && tell(r, ED_EPOCH_END);
    r->told.names = before.names;
    r->told.values = before.values;
    r->told.count = before.count;
    return ok;
}

static bool one_epoch(fit *f, int64_t epoch, int64_t freq)
{
    run *r = &f->train;
    r->told.epoch = f->test.told.epoch = epoch;
    if (!tell(r, ED_EPOCH_BEGIN) || !all_steps(r)) return false;
    /* The evaluation resets the metrics; what was measured is in r->values. */
    const bool tests = f->tests && (epoch + 1) % freq == 0;
    if (tests && !evaluate(&f->test)) return false;
    return end_epoch(f, tests);
}

static bool train(fit *f, const ed_fit_options *o)
{
    run *r = &f->train;
    bool ok = tell(r, ED_TRAIN_BEGIN);
    for (int64_t e = o->initial_epoch; ok && e < o->epochs && !r->told.stop; e++)
        ok = one_epoch(f, e, o->validation_freq);
    r->told.failed = !ok;
    return tell(r, ED_TRAIN_END) && ok;
}

ed_history *ed_model_fit_with(ed_layer *model, void *x, void *y, const ed_fit_options *options)
{
    if (!(options = CHECKED_OPTIONS("model_fit", ED_FIT_OPTIONS, options))) return NULL;
    ED_SCOPE;
    fit f = {.tests = false};
    const bool ok = fit_begin(&f, model, x, y, options) && train(&f, options);
    source_end(&f.train.source);
    source_end(&f.test.source);
    return ok ? ed_keep(f.history) : NULL;
}
