/* The parts of a training: what compile gave the model, where batches come from, histories,
 * callbacks. */
#ifndef EDDY_MODEL_CORE_H
#define EDDY_MODEL_CORE_H

#include "model/model.h"
#include "nn/layer_core.h"

/* ---- compile.c ------------------------------------------------------------------------------- */

/* A metric of one output. */
typedef struct measured {
    ed_metric *metric;
    int64_t output;
    char *name; /* in histories */
} measured;

/* What ed_model_compile gave a layer, which holds it as `compiled`. */
typedef struct compiled {
    ed_object object;
    ed_optimizer *optimizer;
    ed_loss **losses; /* one for each output */
    double *loss_weights;
    int64_t n_losses;
    measured *metrics;
    int64_t n_metrics, capacity;

    /* Of the present epoch: the sum of the batches' losses, each times its rows; the rows. */
    double loss, rows;
} compiled;

/* The compiled part of a model; NULL, with an error that begins with `who`, if there is none. */
compiled *model_compiled(const char *who, const ed_layer *model);

/* The loss and metrics of nothing yet. */
bool model_reset(compiled *c);

/* ---- source.c -------------------------------------------------------------------------------- */

/* Where batches come from: tensors of the same number of rows, or a dataset. */
typedef struct source {
    const ed_list *x, *y;     /* y NULL: none */
    ed_tensor *sample_weight; /* [rows]; NULL: none */
    ed_dataset *dataset;      /* instead of x and y */
    int64_t first, rows, batch, steps;
    ed_generator *generator; /* of the order, if `shuffle` */
    bool shuffle;
    ed_tensor *order; /* of the present epoch; retained; NULL: as they are */
} source;

/* One batch; what it has belongs to the open scope. */
typedef struct batch {
    const ed_list *x, *y;
    ed_tensor *sample_weight;
    int64_t rows;
} batch;

/* A source of x and y as ed_model_fit takes them; false, with an error. `steps` 0: all batches. */
bool source_begin(source *s, const char *who, void *x, void *y, ed_tensor *sample_weight,
                  int64_t batch_size, int64_t steps);
void source_end(source *s);

/* The order of the next epoch. */
bool source_epoch(source *s);

/* Batch `step` of the epoch; false, with an error, on failure; b->x NULL: a dataset's end. */
bool source_batch(const source *s, int64_t step, batch *b);

/* ---- history.c ------------------------------------------------------------------------------- */

/* A new history without epochs, which belongs to the scope. */
ed_history *history_new(void);

/* Begins the next epoch; notes a value of it. */
bool history_epoch(ed_history *h);
bool history_note(ed_history *h, const char *name, double value);

/* ---- callback.c ------------------------------------------------------------------------------ */

/* A kind of callback: its state is zero at first. */
typedef struct callback_class {
    ed_kind kind;
    size_t state_size;
    bool (*function)(const void *options, void *state, ed_training *training);
    void (*destroy)(void *state);
} callback_class;

/* Creates a callback: kind.make of all kinds. */
void *callback_make(const ed_kind *kind, const void *options);

/* Calls all callbacks of the list with the event; false, with an error, if one failed. */
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

/* ---- progress.c ------------------------------------------------------------------------------ */

/* What verbose 1 and 2 show on standard error. */
typedef struct progress {
    int verbose;
    bool terminal;
    double began, shown; /* seconds: of the epoch; of the last line */
} progress;

void progress_tell(progress *p, const ed_training *training);

#endif
