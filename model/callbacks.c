#include "model/model_core.h"
#include "ops/ops.h"
#include <math.h>
#include <string.h>

/* Callbacks that watch the loss or a metric at the end of each epoch. */

/* ---- Better values --------------------------------------------------------------------------- */

bool callback_wants_more(const char *mode, const char *monitor)
{
    static const char *const ends[] = {"acc", "accuracy", "auc", "precision", "recall", "f1_score"};
    if (strcmp(mode, "auto") != 0) return !strcmp(mode, "max");
    const size_t length = strlen(monitor);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t n = strlen(ends[i]);
        if (length >= n && !strcmp(monitor + length - n, ends[i])) return true;
    }
    return false;
}

bool callback_is_better(double value, double best, double by, bool more)
{
    if (isnan(value)) return false;
    return isnan(best) || (more ? value > best + by : value < best - by);
}

bool callback_monitored(const char *who, const ed_training *t, const char *monitor, double *value)
{
    for (int64_t i = 0; i < t->count; i++)
        if (!strcmp(t->names[i], monitor)) return *value = t->values[i], true;
    char known[256] = "";
    for (int64_t i = 0; i < t->count; i++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, i ? ", %s" : "%s", t->names[i]);
    }
    return ed_fail(ED_NOT_FOUND, "%s: the epoch has no value named %s; it has %s", who, monitor,
                   known);
}

/* ---- Early stopping -------------------------------------------------------------------------- */

typedef struct early_stopping_state {
    double best;
    int64_t waited;
    ed_layer *model;
    ed_list *weights; /* of the best epoch, as variables; retained */
    int64_t size;     /* of these, as a checkpoint has it */
} early_stopping_state;

static void early_stopping_destroy(void *state)
{
    ed_release(((early_stopping_state *)state)->weights);
}

static bool keep_weights(early_stopping_state *s)
{
    const ed_list *weights = ed_layer_get_weights(s->model);
    ed_list *kept = weights ? scope_give(list_new(weights->size)) : NULL;
    for (int64_t i = 0; kept && i < weights->size; i++)
        if (!(kept->items[i] = ed_retain(ed_variable(weights->items[i])))) return false;
    if (!kept) return false;
    ed_release(s->weights);
    s->weights = ed_retain(kept);
    s->size = kept->size;
    return true;
}

/* A restore reads the size first: then there are weights to be read. */
static void early_stopping_track(void *state, ed_tracker *t)
{
    early_stopping_state *s = state;
    ed_track_int64(t, "size", &s->size);
    ed_track_float64(t, "best", &s->best);
    ed_track_int64(t, "waited", &s->waited);
    if (s->weights || (s->size && keep_weights(s))) ed_track(t, "best_weights", s->weights);
}

static bool look_at_epoch(const ed_callback_early_stopping_options *o, early_stopping_state *s,
                          ed_training *t)
{
    double value;
    if (t->epoch < o->start_from_epoch) return true;
    if (!callback_monitored("early_stopping", t, o->monitor, &value)) return false;
    const bool more = callback_wants_more(o->mode, o->monitor);
    if (o->restore_best_weights && !s->weights && !keep_weights(s)) return false;
    s->waited++;
    if (callback_is_better(value, s->best, o->min_delta, more)) {
        s->best = value;
        if (o->restore_best_weights && !keep_weights(s)) return false;
        if (callback_is_better(value, o->baseline, o->min_delta, more)) s->waited = 0;
        return true;
    }
    if (s->waited >= o->patience && t->epoch > 0) t->stop = true;
    return true;
}

CALLBACK(early_stopping, EARLY_STOPPING, 0, "ends a training that no longer gets better",
         .state_size = sizeof(early_stopping_state), .destroy = early_stopping_destroy,
         .track = early_stopping_track)
{
    const early_stopping_options *o = options;
    early_stopping_state *s = state;
    if (training->event == ED_TRAIN_BEGIN) {
        ed_release(s->weights);
        *s = (early_stopping_state){.best = NAN, .model = training->model};
    }
    if (training->event == ED_EPOCH_END) return look_at_epoch(o, s, training);
    if (training->event == ED_TRAIN_END && s->weights && !training->failed)
        return ed_layer_set_weights(training->model, s->weights);
    return true;
}

/* ---- NaN ------------------------------------------------------------------------------------- */

/* The first variable that is not finite everywhere; NULL if there is none. */
static const ed_tensor *first_infinite(ed_layer *model)
{
    const ed_list *all = ed_layer_variables(model);
    for (int64_t i = 0; all && i < all->size; i++) {
        ED_SCOPE;
        ed_tensor *v = all->items[i];
        if (!ed_dtype_is_float(v->dtype)) continue;
        const ed_tensor *fine = ed_reduce_all(ed_is_finite(v));
        if (fine && !ed_item(fine)) return v;
    }
    return NULL;
}

CALLBACK(terminate_on_nan, TERMINATE_ON_NAN, 0, "ends a training whose loss is not finite")
{
    (void)options;
    (void)state;
    if (training->event != ED_BATCH_END || !training->count || isfinite(training->values[0]))
        return true;
    const ed_tensor *v = first_infinite(training->model);
    return ed_fail(ED_FAILED_PRECONDITION, "terminate_on_nan: the loss is %g%s%s",
                   training->values[0], v ? "; the first variable that is not finite is " : "",
                   v ? ed_variable_name(v) : "");
}

/* ---- Learning rates -------------------------------------------------------------------------- */

CALLBACK(learning_rate_scheduler, LEARNING_RATE_SCHEDULER, 1,
         "sets the learning rate of each epoch")
{
    const learning_rate_scheduler_options *o = options;
    (void)state;
    if (training->event != ED_EPOCH_BEGIN) return true;
    if (!o->schedule)
        return ed_fail(ED_INVALID_ARGUMENT, "learning_rate_scheduler: schedule is NULL");
    const double rate = ed_schedule_at(o->schedule, training->epoch);
    return ed_optimizer_set_learning_rate(training->optimizer, rate);
}

typedef struct reduce_lr_on_plateau_state {
    double best;
    int64_t waited, cooling;
} reduce_lr_on_plateau_state;

static void reduce_lr_on_plateau_track(void *state, ed_tracker *t)
{
    reduce_lr_on_plateau_state *s = state;
    ed_track_float64(t, "best", &s->best);
    ed_track_int64(t, "waited", &s->waited);
    ed_track_int64(t, "cooling", &s->cooling);
}

static bool reduce(const ed_callback_reduce_lr_on_plateau_options *o, ed_optimizer *optimizer)
{
    const double rate = ed_optimizer_learning_rate(optimizer);
    if (rate <= o->min_lr) return true;
    return ed_optimizer_set_learning_rate(optimizer, fmax(rate * o->factor, o->min_lr));
}

CALLBACK(reduce_lr_on_plateau, REDUCE_LR_ON_PLATEAU, 0,
         "reduces the learning rate when a value no longer gets better",
         .state_size = sizeof(reduce_lr_on_plateau_state), .track = reduce_lr_on_plateau_track)
{
    const reduce_lr_on_plateau_options *o = options;
    reduce_lr_on_plateau_state *s = state;
    double value;
    if (training->event == ED_TRAIN_BEGIN) *s = (reduce_lr_on_plateau_state){.best = NAN};
    if (training->event != ED_EPOCH_END) return true;
    if (!callback_monitored("reduce_lr_on_plateau", training, o->monitor, &value)) return false;
    if (s->cooling) {
        s->cooling--;
        s->waited = 0;
    }
    if (callback_is_better(value, s->best, o->min_delta,
                           callback_wants_more(o->mode, o->monitor))) {
        s->best = value;
        s->waited = 0;
    } else if (!s->cooling && ++s->waited >= o->patience) {
        s->cooling = o->cooldown;
        s->waited = 0;
        return reduce(o, training->optimizer);
    }
    return true;
}
