/* The parts of a training: what compile gave the model, where batches come from, histories,
 * callbacks. */
#ifndef EDDY_MODEL_CORE_H
#define EDDY_MODEL_CORE_H

#include "model/model.h"
#include "nn/layer_core.h"
#include "train/train.h"

/* ---- compile.c ------------------------------------------------------------------------------- */

/* A metric of one output. */
typedef struct measured {
    ed_metric *metric;
    int64_t output;
    bool weighted; /* by the rows' weights */
} measured;

/* What ed_model_compile gave a layer, which holds it as `compiled`. */
typedef struct compiled {
    ed_object object;
    ed_optimizer *optimizer;
    ed_loss **losses; /* one for each output; NULL: none */
    double *loss_weights;
    int64_t n_losses;   /* outputs */
    int64_t n_reported; /* values of losses beside the whole one: of each if there are several */
    measured *metrics;
    int64_t n_metrics, capacity;

    /* Of the values that callbacks and histories get: the loss; with several outputs the loss of
     * each; the metrics; then all of that again with "val_" before the name. */
    char **names;
    int64_t n_values; /* half of them */
    bool named;       /* by the names of the outputs' layers, which a first call shows */

    int running; /* trainings and evaluations: no metric can be added */

    /* Of the present epoch: the sum of the batches' losses, each times its rows; the rows. */
    double loss, rows;
    double *output_losses; /* with several outputs: the same of each */
} compiled;

/* The compiled part of a model; NULL, with an error that begins with `who`, if there is none. */
compiled *model_compiled(const char *who, const ed_layer *model);

/* The loss and metrics of nothing yet. */
bool model_reset(compiled *c);

/* Names the values by the layers that made these outputs. */
bool model_name_outputs(compiled *c, const ed_layer *model, const ed_list *outputs);

/* ---- source.c -------------------------------------------------------------------------------- */

/* Where batches come from: tensors of the same number of rows, or a dataset. */
typedef struct source {
    const ed_list *x, *y;     /* y NULL: none */
    ed_tensor *sample_weight; /* [rows]; NULL: none */
    ed_dataset *dataset;      /* instead of x and y */
    ed_dataset *given;        /* the program's; `dataset` may be the same at another position */
    int64_t first, rows, batch, steps;
    bool shuffle;
    ed_draw draw;     /* of the present epoch's order, if `shuffle` */
    ed_tensor *order; /* of the present epoch; retained; NULL: as they are */
    bool resumed;     /* the dataset's position is that of a checkpoint of this training */
} source;

/* One batch; what it has belongs to the open scope. */
typedef struct batch {
    const ed_list *x, *y;
    ed_tensor *sample_weight, *first_weight; /* of all outputs; of the first, with its classes' */
    int64_t rows;
} batch;

bool source_is_dataset(const void *data);

/* `data` as a tensor, NULL too; false, with an error, if it is anything else. */
bool source_tensor(const char *who, const char *what, void *data, ed_tensor **to);

/* A source of x and y as ed_model_fit takes them; false, with an error. `steps` 0: all batches. */
bool source_begin(source *s, const char *who, void *x, void *y, void *sample_weight,
                  int64_t batch_size, int64_t steps);
void source_end(source *s);

/* For passes that are no training: batches come from a position of the pass's own, so that a
 * dataset's loop that is going on, a program's or a training's, is not disturbed. */
bool source_apart(source *s);

/* The order of the next epoch; or, by the draw that there was, of an epoch to go on with. */
bool source_epoch(source *s);
bool source_resume(source *s);

/* After a validation: a dataset's next batch is the first of an epoch. */
bool source_finish(const source *s);

/* Batch `step` of the epoch; false, with an error, on failure; b->x NULL: a dataset's end. */
bool source_batch(const source *s, int64_t step, batch *b);

/* ---- history.c ------------------------------------------------------------------------------- */

/* A new history without epochs, which belongs to the scope. */
ed_history *history_new(void);

/* Begins the next epoch; notes a value of it. */
bool history_epoch(ed_history *h);
bool history_note(ed_history *h, const char *name, double value);

/* Gives the values their names, which may have changed. */
bool history_rename(ed_history *h, char *const *names);

/* Makes it one of so many epochs and names, as yet without values. */
bool history_resize(ed_history *h, int64_t epochs, char *const *names, int64_t count);

/* Names the values to a checkpoint. */
void history_track(ed_history *h, ed_tracker *t);

/* ---- callback.c ------------------------------------------------------------------------------ */

/* A kind of callback: its state is zero at first. */
typedef struct callback_class {
    ed_kind kind;
    size_t state_size;
    bool (*function)(const void *options, void *state, ed_training *training);
    void (*destroy)(void *state);
    void (*track)(void *state, ed_tracker *t); /* what checkpoints of a training save; NULL: none */
    bool saves;                                /* it saves the others: it is told after them */
} callback_class;

/* Creates a callback: kind.make of all kinds. */
void *callback_make(const ed_kind *kind, const void *options);

/* Calls all callbacks of the list with the event, those that save last; false, with an error, if
 * one failed. */
bool callback_tell(ed_objects callbacks, ed_training *training, ed_training_event event);

/* Whether each object is a callback; false, with an error that begins with `who`. */
bool callback_check(const char *who, ed_objects callbacks);

/* The definition of a kind from its list of options; the first `needed` are required arguments. The
 * body that follows is that of the function; `state` is a symbol_state. */
#define CALLBACK(symbol, SYMBOL, needed, text, ...)                                                \
    typedef ed_callback_##symbol##_options symbol##_options;                                       \
    static bool symbol##_function(const void *options, void *state, ed_training *training);        \
    ED_SCHEMA(symbol, ED_CALLBACK_##SYMBOL##_OPTIONS, symbol##_options);                           \
    static const callback_class symbol##_class = {                                                 \
        .kind = SCHEMA_KIND(callback, symbol, text, needed, callback_make),                        \
        .function = symbol##_function,                                                             \
        __VA_ARGS__};                                                                              \
    SCHEMA_KIND_END(callback, symbol)                                                              \
    static bool symbol##_function(const void *options, void *state, ed_training *training)

/* Whether more of a monitored value is better, by the mode or, if it is "auto", by the name. */
bool callback_wants_more(const char *mode, const char *monitor);

/* Whether `value` is better than `best` by more than `by`; any value is better than NaN. */
bool callback_is_better(double value, double best, double by, bool more);

/* The monitored value; false, with an error, if the epoch has none of that name. */
bool callback_monitored(const char *who, const ed_training *t, const char *monitor, double *value);

/* ---- progress.c ------------------------------------------------------------------------------ */

/* What verbose 1 and 2 show on standard error. */
typedef struct progress {
    int verbose;
    bool terminal;
    double began, shown; /* seconds: of the epoch; of the last line */
} progress;

void progress_tell(progress *p, const ed_training *training);

/* Seconds from some moment on. */
double progress_clock(void);

/* ---- run.c ----------------------------------------------------------------------------------- */

/* One training or evaluation: where its batches come from, and what callbacks are told. */
typedef struct run {
    ed_layer *model;
    compiled *compiled;
    source source;
    ed_objects callbacks;
    ed_tensor *class_weight;
    bool training;
    int64_t *done, *global_step; /* of a training: batches of this epoch, of all; to be counted */
    progress progress;
    ed_training told;
    double *values; /* of told */
    bool (*restore)(struct run *r, ed_checkpoint *checkpoint, const char *path);
} run;

/* Begins and ends a run; without an end after a beginning that failed. */
bool run_begin(run *r, const char *who, ed_layer *model, ed_objects callbacks, int64_t verbose);
void run_end(run *r);

/* Tells all who hear. */
bool run_tell(run *r, ed_training_event event);

/* All batches of an epoch; with `first`, those from that one on: the others were done before. */
bool run_steps(run *r, int64_t first, bool goes_on);

/* The batches of an evaluation. */
bool run_evaluate(run *r);

/* ---- fit.c, state.c -------------------------------------------------------------------------- */

/* How far a training is. */
typedef struct position {
    int64_t epoch, step;  /* the next ones */
    int64_t global_step;  /* batches trained */
    int64_t stopped;      /* a callback ended it */
    int64_t noted, names; /* epochs and names of the history */
} position;

/* A fit: the training, and the evaluation that follows epochs. */
typedef struct fit {
    run train, test;
    bool tests;
    position at;
    double rate; /* of the optimizer; NaN: by a schedule */
    ed_history *history;
    double *values; /* what callbacks hear at an epoch's end: those of both */
} fit;

/* Names for a checkpoint what all trainings have: the learning rate, which the optimizer's own
 * entry rounds, random numbers, callbacks. */
void training_track(run *r, const ed_optimizer *optimizer, double *rate, ed_tracker *t);

/* The callbacks' sizes and "position" first, so that there is room; then everything. */
bool training_read_sizes(ed_checkpoint *checkpoint, const char *path);
bool training_read(ed_checkpoint *checkpoint, const char *path, ed_optimizer *optimizer,
                   const double *rate);

/* What a checkpoint saves of a fit; run.restore of its training. */
ed_trackable *fit_state(fit *f);
bool fit_restore(run *r, ed_checkpoint *checkpoint, const char *path);

/*
 * Restores a training, whose callbacks these are told, from a checkpoint of ("model", "training"),
 * the latter t->state. false with an error.
 */
bool training_restore(ed_training *t, ed_checkpoint *checkpoint, const char *path);

#endif
