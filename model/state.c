#include "model/model_core.h"
#include "optim/optimizer.h"
#include "train/checkpoint.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * What a checkpoint saves of a fit, so that another process goes on with the same bits: where it
 * is, the sums of the present epoch's loss and metrics, the draw of its order, generators,
 * datasets, callbacks and the history. The model, with its optimizer, has a name of its own.
 *
 * How many values the history has, and which callbacks keep weights, is known only from the file.
 * So a restore reads those numbers first, makes room, and then reads everything.
 */

/* ---- The position ---------------------------------------------------------------------------- */

enum { EPOCH, STEP, GLOBAL_STEP, STOPPED, NOTED, NAMES, ROWS, BATCH, ORDER, WORDS = ORDER + 3 };

static void get_position(const void *self, void *elements)
{
    const fit *f = self;
    const source *s = &f->train.source;
    const ed_training *t = &f->train.told;
    int64_t words[WORDS] = {
        [EPOCH] = f->at.epoch,
        [STEP] = f->at.step,
        [GLOBAL_STEP] = f->at.global_step,
        [STOPPED] = t->stop && !t->unfinished,
        [NOTED] = ed_history_epochs(f->history),
        [NAMES] = ed_history_count(f->history),
        [ROWS] = s->dataset ? ed_dataset_rows(s->dataset) : s->rows,
        [BATCH] = s->dataset ? 0 : s->batch,
    };
    memcpy(words + ORDER, s->draw.state, sizeof s->draw.state);
    memcpy(elements, words, sizeof words);
}

static const char *refuses_position(const void *self, const void *elements)
{
    int64_t own[WORDS];
    const int64_t *words = elements;
    get_position(self, own);
    if (words[EPOCH] < 0 || words[STEP] < 0 || words[GLOBAL_STEP] < 0 || words[NOTED] < 0 ||
        words[NOTED] > words[EPOCH] || words[NAMES] < 0 ||
        words[NAMES] > 2 * ((const fit *)self)->train.compiled->n_values)
        return "it is no position of a training of this model";
    if (words[STEP] && (words[ROWS] != own[ROWS] || words[BATCH] != own[BATCH]))
        return "it is within an epoch of other data: the number of rows or batch_size differs";
    return NULL;
}

static void set_position(void *self, const void *elements)
{
    fit *f = self;
    const int64_t *words = elements;
    f->at = (position){words[EPOCH],   words[STEP],  words[GLOBAL_STEP],
                       words[STOPPED], words[NOTED], words[NAMES]};
    memcpy(f->train.source.draw.state, words + ORDER, sizeof f->train.source.draw.state);
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void track_numbered(ed_tracker *t, const char *what, int64_t i, void *object)
{
    char name[48];
    snprintf(name, sizeof name, "%s_%lld", what, (long long)i + 1);
    ed_track(t, name, object);
}

/* The sums of the present epoch. */
static void track_sums(compiled *c, ed_tracker *t)
{
    ed_track_float64(t, "loss", &c->loss);
    ed_track_float64(t, "rows", &c->rows);
    for (int64_t i = 0; i < c->n_losses && c->n_losses > 1; i++) {
        char name[48];
        snprintf(name, sizeof name, "loss_%lld", (long long)i + 1);
        ed_track_float64(t, name, &c->output_losses[i]);
    }
    for (int64_t i = 0; i < c->n_metrics; i++) track_numbered(t, "metric", i, c->metrics[i].metric);
}

void training_track(run *r, const ed_optimizer *optimizer, double *rate, ed_tracker *t)
{
    const optim_common *common = optimizer ? optimizer->common : NULL;
    *rate = common && !common->schedule ? common->learning_rate : NAN;
    ed_track_float64(t, "learning_rate", rate);
    ed_track(t, "random", ed_default_generator());
    for (int64_t i = 0; i < r->callbacks.count; i++)
        track_numbered(t, "callback", i, r->callbacks.values[i]);
}

static void fit_track(void *self, ed_tracker *t)
{
    static const ed_state state = {ED_INT64,         WORDS,        get_position,
                                   refuses_position, set_position, 0};
    fit *f = self;
    run *r = &f->train;
    ed_track_state(t, "position", f, &state);
    training_track(r, r->compiled->optimizer, &f->rate, t);
    track_sums(r->compiled, t);
    if (r->source.draw.generator) ed_track(t, "generator", r->source.draw.generator);
    if (r->source.dataset) ed_track(t, "dataset", r->source.dataset);
    if (f->test.source.dataset && f->test.source.given != r->source.given)
        ed_track(t, "validation_dataset", f->test.source.dataset);
    history_track(f->history, t);
}

ed_trackable *fit_state(fit *f)
{
    static const ed_trackable_class class = {.name = "training", .track = fit_track};
    return ed_trackable_new(&class, f);
}

/* ---- Restoring ------------------------------------------------------------------------------- */

/* The model gets its weights, so that none of their values has to wait. Nothing is trained; what
 * that draws or reads is restored afterwards. */
static bool build(run *r)
{
    ED_SCOPE;
    batch b;
    source first = r->source;
    first.order = NULL;
    if (!source_epoch(&first) || !source_batch(&first, 0, &b)) return source_end(&first), false;
    const bool ok = b.x && ed_forward_list(r->model, (ed_list *)b.x, NULL);
    source_end(&first);
    return ok;
}

bool training_read_sizes(ed_checkpoint *checkpoint, const char *path)
{
    const ed_strings sizes = ED_STRINGS("training/position", "training/callback_*/size");
    return ed_checkpoint_restore(checkpoint, path, .partial = true, .only = sizes);
}

bool training_read(ed_checkpoint *checkpoint, const char *path, ed_optimizer *optimizer,
                   const double *rate)
{
    if (!ed_checkpoint_restore(checkpoint, path)) return false;
    return isnan(*rate) || !optimizer || optimizer->common->schedule ||
           ed_optimizer_set_learning_rate(optimizer, *rate);
}

bool fit_restore(run *r, ed_checkpoint *checkpoint, const char *path)
{
    fit *f = (fit *)((char *)r - offsetof(fit, train));
    if (!build(r) || !training_read_sizes(checkpoint, path) ||
        !history_resize(f->history, f->at.noted, r->compiled->names, f->at.names) ||
        !training_read(checkpoint, path, r->compiled->optimizer, &f->rate))
        return false;
    r->told.stop = f->at.stopped;
    r->source.resumed = true;
    return true;
}

bool training_restore(ed_training *t, ed_checkpoint *checkpoint, const char *path)
{
    ED_SCOPE;
    run *r = (run *)((char *)t - offsetof(run, told));
    return r->restore(r, checkpoint, path);
}
