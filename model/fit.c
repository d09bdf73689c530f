#include "model/model_core.h"
#include "ops/ops.h"
#include "optim/optimizer.h"
#include <string.h>

/* Epochs of training, each perhaps followed by an evaluation. f->at says where the next batch is:
 * a callback may have restored it from a checkpoint (model/state.c). */

/* ---- Before ---------------------------------------------------------------------------------- */

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
    f->test.source.steps = (s->rows - left) / s->batch + ((s->rows - left) % s->batch > 0);
    if (o->validation_steps && o->validation_steps < f->test.source.steps)
        f->test.source.steps = o->validation_steps;
    s->rows = left;
    s->steps = left / s->batch + (left % s->batch > 0);
    if (o->steps_per_epoch && o->steps_per_epoch < s->steps) s->steps = o->steps_per_epoch;
    return true;
}

static bool begin_validation(fit *f, ed_layer *model, const ed_fit_options *o)
{
    f->tests = o->validation_x || o->validation_split > 0;
    if (!o->validation_x && (o->validation_y || o->validation_sample_weight))
        return ed_fail(ED_INVALID_ARGUMENT, "model_fit: %s is given without validation_x",
                       o->validation_y ? "validation_y" : "validation_sample_weight");
    if (!f->tests) return true;
    if (o->validation_x && o->validation_split > 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "model_fit: give either validation_split or validation_x");
    if (!run_begin(&f->test, "model_fit", model, o->callbacks, 0)) return false;
    if (!o->validation_x) return split(f, o);
    const int64_t batch_size = source_is_dataset(o->validation_x) ? 0 : o->batch_size;
    return source_begin(&f->test.source, "model_fit: validation", o->validation_x, o->validation_y,
                        o->validation_sample_weight, batch_size, o->validation_steps) &&
           source_apart(&f->test.source);
}

static bool check_weights(const ed_fit_options *o)
{
    ed_tensor *w;
    if (!source_tensor("model_fit", "class_weight", o->class_weight, &w)) return false;
    if (w && (w->rank != 1 || !ed_dtype_is_float(w->dtype)))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "model_fit: class_weight must be floats [classes], got %s",
                       text_of_tensor(w).s);
    return true;
}

/* What the training run counts, and what callbacks may save of it. */
static bool begin_state(fit *f, const ed_fit_options *o)
{
    run *r = &f->train;
    r->training = true;
    r->class_weight = o->class_weight;
    r->source.shuffle = o->shuffle && !r->source.dataset;
    r->source.draw.generator = o->generator;
    r->told.epochs = o->epochs;
    r->done = &f->at.step;
    r->global_step = &f->at.global_step;
    r->restore = fit_restore;
    f->at.epoch = o->initial_epoch;
    f->values = ed_scope_alloc((size_t)(2 * r->compiled->n_values) * sizeof *f->values);
    return f->values && (r->told.state = fit_state(f));
}

static bool fit_begin(fit *f, ed_layer *model, void *x, void *y, const ed_fit_options *o)
{
    if (!(f->history = history_new()) || !check_weights(o)) return false;
    return run_begin(&f->train, "model_fit", model, o->callbacks, o->verbose) &&
           source_begin(&f->train.source, "model_fit", x, y, o->sample_weight, o->batch_size,
                        o->steps_per_epoch) &&
           begin_state(f, o) && begin_validation(f, model, o);
}

/* ---- Epochs ---------------------------------------------------------------------------------- */

/* Tells the end of an epoch with the values of both, which the history gets. */
static bool end_epoch(fit *f, bool tested)
{
    run *r = &f->train;
    const compiled *c = r->compiled;
    const int64_t n = c->n_values;
    memcpy(f->values, r->values, (size_t)n * sizeof *f->values);
    if (tested) memcpy(f->values + n, f->test.values, (size_t)n * sizeof *f->values);
    const ed_training before = r->told;
    r->told.values = f->values;
    r->told.count = tested ? 2 * n : n;
    f->at.epoch++;
    f->at.step = 0;
    bool ok = history_rename(f->history, c->names) && history_epoch(f->history);
    for (int64_t i = 0; ok && i < r->told.count; i++)
        ok = history_note(f->history, c->names[i], f->values[i]);
    ok = ok && run_tell(r, ED_EPOCH_END);
    r->told.values = before.values;
    r->told.count = before.count;
    return ok;
}

/* The next epoch, or the rest of one that a checkpoint began. */
static bool one_epoch(fit *f, int64_t freq)
{
    run *r = &f->train;
    const int64_t epoch = f->at.epoch, first = f->at.step;
    r->told.epoch = f->test.told.epoch = epoch;
    if (!run_tell(r, ED_EPOCH_BEGIN) || !run_steps(r, first, first > 0)) return false;
    if (r->told.stop && r->told.unfinished && f->at.step < r->source.steps) return true;
    /* The evaluation resets the metrics; what was measured is in r->values. */
    const bool tests = f->tests && (epoch + 1) % freq == 0;
    if (tests && !run_evaluate(&f->test)) return false;
    return end_epoch(f, tests);
}

/* At the end of a training, before callbacks hear it, the variables become their averages, if the
 * optimizer has any. */
static bool finish_averages(const run *r)
{
    ed_optimizer *optimizer = r->compiled->optimizer;
    if (!optimizer->common->use_ema || (r->told.stop && r->told.unfinished)) return true;
    return ed_optimizer_finalize_variable_values(optimizer);
}

static bool train(fit *f, const ed_fit_options *o)
{
    run *r = &f->train;
    bool ok = run_tell(r, ED_TRAIN_BEGIN);
    while (ok && f->at.epoch < o->epochs && (!r->told.stop || f->at.step))
        if (!(ok = one_epoch(f, o->validation_freq)) || r->told.stop) break;
    ok = ok && finish_averages(r);
    r->told.failed = !ok;
    return run_tell(r, ED_TRAIN_END) && ok;
}

ed_history *ed_model_fit_with(ed_layer *model, void *x, void *y, const ed_fit_options *options)
{
    if (!(options = CHECKED_OPTIONS("model_fit", ED_FIT_OPTIONS, options))) return NULL;
    ED_SCOPE;
    fit f = {.tests = false};
    const bool ok = fit_begin(&f, model, x, y, options) && train(&f, options);
    run_end(&f.train);
    run_end(&f.test);
    return ok ? ed_keep(f.history) : NULL;
}
