#include "model/model_core.h"
#include "model/signals.h"
#include "train/checkpoint.h"
#include "io/file.h"
#include <math.h>

/* Callbacks that save. They are told after the others, whose state they save too. */

/* ---- A folder of checkpoints ----------------------------------------------------------------- */

/* What saves a training's checkpoints. It exists while the training runs: the checkpoint has
 * `state` of ed_training, which is valid that long. */
typedef struct saver {
    ed_checkpoint_manager *manager; /* retained; NULL: no training runs */
    ed_checkpoint *checkpoint;      /* the manager's, which retains it */
    const char *folder;             /* of the callback's options */
    bool weights_only;
} saver;

static void saver_end(saver *s)
{
    ed_release(s->manager);
    s->manager = NULL;
}

static bool saver_begin(saver *s, const char *who, const char *folder, int64_t max_to_keep,
                        const ed_training *t)
{
    saver_end(s);
    if (!folder) return ed_fail(ED_INVALID_ARGUMENT, "%s: the folder is NULL", who);
    ED_SCOPE;
    s->folder = folder;
    s->checkpoint = s->weights_only ? ed_checkpoint("model", t->model)
                                    : ed_checkpoint("model", t->model, "training", t->state);
    if (!s->checkpoint) return false;
    s->manager =
        ed_retain(ed_checkpoint_manager(s->checkpoint, folder, .max_to_keep = max_to_keep));
    return s->manager;
}

static bool write_checkpoint(const saver *s, int64_t number)
{
    ED_SCOPE;
    return ed_manager_save(s->manager, .number = number, .weights_only = s->weights_only);
}

/* Whether batches are counted and this one is the last of `freq`; else, the end of an epoch. */
static bool is_due(const ed_training *t, int64_t freq)
{
    return freq ? t->event == ED_BATCH_END && t->global_step % freq == 0 : t->event == ED_EPOCH_END;
}

/* ---- model_checkpoint ------------------------------------------------------------------------ */

typedef struct model_checkpoint_state {
    saver saver;
    double best;
} model_checkpoint_state;

static void model_checkpoint_destroy(void *state)
{
    saver_end(&((model_checkpoint_state *)state)->saver);
}

static void model_checkpoint_track(void *state, ed_tracker *t)
{
    ed_track_float64(t, "best", &((model_checkpoint_state *)state)->best);
}

/* Whether this moment is to be saved: always, or if the monitored value has become better. *ok is
 * set to false, with an error, if there is no such value. */
static bool is_worth_it(const ed_callback_model_checkpoint_options *o, model_checkpoint_state *s,
                        const ed_training *t, bool *ok)
{
    double value;
    if (!o->save_best_only) return true;
    if (!(*ok = callback_monitored("model_checkpoint", t, o->monitor, &value))) return false;
    if (!callback_is_better(value, s->best, 0, callback_wants_more(o->mode, o->monitor)))
        return false;
    s->best = value;
    return true;
}

CALLBACK(model_checkpoint, MODEL_CHECKPOINT, 1, "saves checkpoints of the model and its training",
         .state_size = sizeof(model_checkpoint_state), .destroy = model_checkpoint_destroy,
         .track = model_checkpoint_track, .saves = true)
{
    const model_checkpoint_options *o = options;
    model_checkpoint_state *s = state;
    bool ok = true;
    if (training->event == ED_TRAIN_BEGIN) {
        s->best = o->initial_value_threshold;
        s->saver.weights_only = o->save_weights_only;
        return saver_begin(&s->saver, "model_checkpoint", o->folder, o->max_to_keep, training);
    }
    if (is_due(training, o->save_freq) && is_worth_it(o, s, training, &ok))
        return write_checkpoint(&s->saver,
                                o->save_freq ? training->global_step : training->epoch + 1);
    if (training->event == ED_TRAIN_END) saver_end(&s->saver);
    return ok;
}

/* ---- backup_and_restore ---------------------------------------------------------------------- */

typedef struct backup_and_restore_state {
    saver saver;
    bool caught; /* signals_catch was called */
} backup_and_restore_state;

static void backup_end(backup_and_restore_state *s)
{
    if (s->caught) signals_release();
    s->caught = false;
    saver_end(&s->saver);
}

static void backup_and_restore_destroy(void *state)
{
    backup_end(state);
}

/* Restores the newest checkpoint that is not damaged; true, with nothing changed, if there is
 * none. */
static bool restore_newest(const saver *s, ed_training *t)
{
    int64_t i = ed_manager_count(s->manager);
    while (i-- > 0) {
        ED_SCOPE;
        error_saved earlier;
        error_save(&earlier);
        const char *path = ed_manager_checkpoint(s->manager, i);
        if (path && training_restore(t, s->checkpoint, path))
            return error_restore(&earlier, false), true;
        const bool next = i > 0 && io_is_loss(ed_error_kind());
        error_restore(&earlier, next);
        if (next) continue;
        error_append(" (to start the training from scratch, remove %s)", s->folder);
        return false;
    }
    return true;
}

/* Saves, and ends the training if a signal asked for it. */
static bool back_up(const saver *s, bool asked)
{
    if (!write_checkpoint(s, -1)) return false;
    if (!asked) return true;
    return ed_fail(ED_CANCELLED,
                   "backup_and_restore: interrupted; the training is saved in %s and goes on from "
                   "there when the program is run again",
                   s->folder);
}

CALLBACK(backup_and_restore, BACKUP_AND_RESTORE, 1,
         "saves a training so that the program, run again, goes on with it",
         .state_size = sizeof(backup_and_restore_state), .destroy = backup_and_restore_destroy,
         .saves = true)
{
    const backup_and_restore_options *o = options;
    backup_and_restore_state *s = state;
    ed_training *t = training;
    const bool ends = t->event == ED_BATCH_END || t->event == ED_EPOCH_END;
    const bool later = t->stop && t->unfinished, asked = ends && s->caught && signals_came();
    if (t->event == ED_TRAIN_BEGIN) {
        backup_end(s);
        if (!saver_begin(&s->saver, "backup_and_restore", o->backup_dir,
                         o->double_checkpoint ? 2 : 1, t))
            return false;
        if ((s->caught = o->signals)) signals_catch();
        return restore_newest(&s->saver, t);
    }
    if (is_due(t, o->save_freq) || asked || (ends && later)) return back_up(&s->saver, asked);
    if (t->event != ED_TRAIN_END) return true;
    const bool over = s->saver.manager && !t->failed && !later && o->delete_checkpoint;
    const bool ok = !over || manager_clear(s->saver.manager);
    backup_end(s);
    return ok;
}
