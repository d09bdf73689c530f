/*
 * What an optimizer is made of. A kind of optimizer is one file (adam.simd.c is the pattern): its
 * options, a class, and the inner loop that updates a stretch of one variable, compiled for each
 * instruction set. All else is common and stands in optimizer.c: checks, slots, clipping, weight
 * decay, threads.
 *
 * An inner loop sees gradients as the step wants them: clipped already, and the weights decayed.
 * Where clipping or decay is asked for, the driver cuts the stretch into strips that stay in the
 * nearest cache and prepares each just before the loop runs over it, so memory is passed over once
 * and loops need no variants.
 */
#ifndef EDDY_OPTIM_OPTIMIZER_H
#define EDDY_OPTIM_OPTIMIZER_H

#include "ops/kernels/isa.h"
#include "optim/optim.h"
#include "tensor/schema_core.h"
#include "tensor/typed.h"
#include "track/graph.h"

enum { OPTIM_SLOTS = 3, OPTIM_NUMBERS = 8 };

/* A stretch of one variable: n elements of gradient, weights, and those slots that are in use. */
typedef struct optim_part {
    int64_t n;
    const void *g;
    void *w, *slots[OPTIM_SLOTS];
    const double *numbers; /* what the class's `numbers` filled in */
} optim_part;

typedef void (*optim_update)(ed_dtype dtype, const optim_part *part);

/* A kind of optimizer. */
typedef struct optim_class {
    ed_kind kind;
    const char *slots[OPTIM_SLOTS];
    const char *lists[OPTIM_SLOTS];  /* what Keras 3's checkpoints call all slots of that kind */
    const char *legacy[OPTIM_SLOTS]; /* what Keras 2's call the slot */
    const char *constants[4];        /* options that Keras 2's hold */
    unsigned (*in_use)(const void *options); /* which slots: bit i is slot i; NULL: all */
    int together; /* the first so many slots stand side by side for each variable; the others follow
                     as whole lists */
    optim_update update[ISA_COUNT];

    /*
     * The numbers of step `step` (1, 2, ...) for variables of a dtype, rounded to that dtype:
     * coefficients are worked out once a step, not once an element.
     */
    void (*numbers)(const ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double *numbers);
} optim_class;

/* What the optimizer knows of one variable. */
typedef struct optim_entry {
    ed_tensor *variable;
    ed_tensor *slots[OPTIM_SLOTS]; /* variables too; NULL where not in use */
} optim_entry;

/* One variable's part in the step being made; its pieces are first_piece and those that follow. */
typedef struct optim_job {
    optim_part part;
    ed_dtype dtype;
    int64_t first_piece;
    double scale; /* of clipping by norm */
} optim_job;

/* What the options of all kinds begin with. */
typedef struct optim_common {
    uint32_t mark_;
    double learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm;
} optim_common;

struct ed_optimizer {
    made_object made;
    const optim_class *class;
    optim_common *common; /* of its options; the learning rate is the present one */
    unsigned slots;       /* which of the class's slots are in use: bit i is slot i */
    int64_t iterations;

    optim_entry *entries; /* in the order of the variables' first steps */
    int64_t *index;       /* finds an entry by its variable, see entries.c */
    optim_job *jobs;      /* room for a step's */
    int64_t n_entries, capacity, job_capacity;
    graph_wait wait; /* a checkpoint's values for variables that had no step yet */
};

/*
 * The entry of a variable; NULL if it has none. Steps bring their variables in the same order each
 * time: *hint, 0 at first, is where the next one is looked for first.
 */
optim_entry *optim_find(const ed_optimizer *o, const ed_tensor *v, int64_t *hint);

/* A new entry with its slots, the last one; NULL on failure, when it may already be there. */
optim_entry *optim_add(ed_optimizer *o, ed_tensor *v);

/* Takes back all entries but the first `left`. */
void optim_drop_entries(ed_optimizer *o, int64_t left);

/* What the optimizer keeps, for checkpoints; where it waits for a checkpoint's values (track.c). */
void optim_track(void *optimizer, ed_tracker *t);
struct graph_wait *optim_wait(void *optimizer);

/*
 * What a checkpoint has for a slot of the newest entry's variable: *initial, with a reference for
 * the caller, NULL if nothing waits, and its place. false, with an error, if it does not fit.
 */
bool optim_waiting(const ed_optimizer *o, int slot, const ed_tensor *v, ed_tensor **initial,
                   int *place);

/* A step failed: the values of the slots it made, from that entry on, wait as before. */
void optim_unmade(const ed_optimizer *o, int64_t first);

/* Makes an optimizer: `make` of all kinds. */
void *optim_make(const ed_kind *kind, const void *options);

/* The options that an optimizer was made with. */
static inline const void *optim_options(const ed_optimizer *o)
{
    return o->made.options;
}

/* The definition of a kind of optimizer: OPTIMIZER(sgd, SGD, "one line", .slots = ...), from its
 * list of options in optim.h. */
#define OPTIMIZER(symbol, SYMBOL, text, ...)                                                       \
    ED_SCHEMA(symbol, ED_OPTIMIZER_##SYMBOL##_OPTIONS, ed_optimizer_##symbol##_options);           \
    static const optim_class symbol##_class = {.kind = {.family = "optimizer",                     \
                                                        .name = #symbol,                           \
                                                        .doc = text,                               \
                                                        .fields = symbol##_fields,                 \
                                                        .options_size = sizeof symbol##_defaults,  \
                                                        .defaults = &symbol##_defaults,            \
                                                        .make = optim_make},                       \
                                               __VA_ARGS__};                                       \
    SCHEMA_KIND(symbol, &symbol##_class.kind);                                                     \
    ed_optimizer *ed_optimizer_##symbol##_with(const ed_optimizer_##symbol##_options *options)     \
    {                                                                                              \
        return ed_make(&symbol##_class.kind, options);                                             \
    }

/* A number as Keras hands it to an operation on `dtype`: rounded to float32 first, whatever the
 * dtype. */
static inline double optim_float(double value)
{
    return (float)value;
}

/* The same rounded to the dtype alone. */
static inline double optim_number(ed_dtype dtype, double value)
{
    return dtype == ED_FLOAT32 ? (float)value : value;
}

/* How a strip is prepared: gradient g scale, held within -limit..limit; then w -= w decay rate. */
typedef struct optim_preparation {
    double scale, limit; /* 1 and INFINITY: as it is */
    double decay, rate;  /* decay 0: none */
} optim_preparation;

ISA_DECLARE(void, optim_prepare, ed_dtype dtype, const optim_preparation *how, int64_t n,
            const void *g, void *w, void *prepared);

/* The sum of n squares in float64, the same bits for every instruction set. */
ISA_DECLARE(double, optim_squares, ed_dtype dtype, int64_t n, const void *g);

/* The update of a stretch: OPTIM_LOOPS(adam_update) defines ISA_NAME(adam_update) from
 * TYPED(adam_update) of both float types. */
#define OPTIM_LOOPS(name)                                                                          \
    void ISA_NAME(name)(ed_dtype dtype, const optim_part *part)                                    \
    {                                                                                              \
        if (dtype == ED_FLOAT32)                                                                   \
            name##_f32(part);                                                                      \
        else                                                                                       \
            name##_f64(part);                                                                      \
    }

#endif
