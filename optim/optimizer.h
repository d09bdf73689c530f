/*
 * The structure of optimizers. A kind of optimizer is one file (adam.simd.c is an example): a
 * class, and the inner loop that updates a range of one variable's elements, compiled for each
 * instruction set. The rest is common to all, in optimizer.c: checks, slots, clipping, weight
 * decay, threads.
 *
 * The inner loop gets gradients that are clipped and weights that are decayed. For that, the driver
 * divides the range into strips that fit the L1 cache and prepares each just before the inner loop
 * runs over it. So memory is passed over once, and inner loops need no variants.
 */
#ifndef EDDY_OPTIM_OPTIMIZER_H
#define EDDY_OPTIM_OPTIMIZER_H

#include "ops/kernels/isa.h"
#include "optim/optim.h"
#include "tensor/schema_core.h"
#include "tensor/typed.h"
#include "track/graph.h"

enum { OPTIM_SLOTS = 3, OPTIM_NUMBERS = 8 };

/* A range of one variable: n elements of gradient, weights, and those slots that are in use. */
typedef struct optim_part {
    int64_t n;
    const void *g;
    void *w, *slots[OPTIM_SLOTS];
    const double *numbers; /* filled by the class's `numbers` */
} optim_part;

typedef void (*optim_update)(ed_dtype dtype, const optim_part *part);

/* A kind of optimizer. */
typedef struct optim_class {
    ed_kind kind;
    const char *slots[OPTIM_SLOTS];
    const char
        *lists[OPTIM_SLOTS]; /* name of the list of all such slots in Keras 3's checkpoints */
    const char *legacy[OPTIM_SLOTS];         /* name of the slot in Keras 2's */
    const char *constants[4];                /* options that Keras 2's checkpoints have */
    unsigned (*in_use)(const void *options); /* which slots: bit i is slot i; NULL: all */
    int together; /* ed_optimizer_variables lists the first `together` slots variable by variable,
                     then the others slot by slot */
    optim_update update[ISA_COUNT];

    /*
     * Computes the coefficients of step `step` (1, 2, ...) for variables of a dtype, rounded to
     * that dtype: once for each step, not for each element.
     */
    void (*numbers)(const ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double *numbers);
} optim_class;

/* A variable and its slots. */
typedef struct optim_entry {
    ed_tensor *variable;
    ed_tensor *slots[OPTIM_SLOTS]; /* variables too; NULL where not in use */
} optim_entry;

/* One variable in the present step; its pieces are first_piece and those after it. Of indexed
 * slices g has one after the other, and w and its slots are whole. */
typedef struct optim_job {
    optim_part part; /* its n is that of g */
    ed_dtype dtype;
    int64_t piece;          /* elements of g in each piece, of slices a multiple of `width` */
    const int64_t *indices; /* of the slices; NULL: g has all elements */
    int64_t width;          /* elements of a slice */
    int64_t first_piece;
    double scale; /* of clipping by norm */
} optim_job;

/* The first options of all kinds. */
typedef struct optim_common {
    uint32_t mark_;
    double learning_rate, weight_decay, clipnorm, clipvalue, global_clipnorm;
    bool lazy;
} optim_common;

struct ed_optimizer {
    made_object made;
    const optim_class *class;
    optim_common *common; /* in its options, with the present learning rate */
    unsigned slots;       /* which of the class's slots are in use: bit i is slot i */
    int64_t iterations;

    optim_entry *entries; /* in the order of the variables' first steps */
    int64_t *index;       /* finds the entry of a variable, see entries.c */
    optim_job *jobs;      /* of the present step */
    int64_t n_entries, capacity, job_capacity;
    graph_wait wait; /* a checkpoint's values for slots that don't exist yet */
};

/*
 * The entry of a variable; NULL if it has none. *hint, 0 at first, is the entry that is tried
 * first: steps usually have the variables in the same order.
 */
optim_entry *optim_find(const ed_optimizer *o, const ed_tensor *v, int64_t *hint);

/* Appends an entry with its slots; NULL on failure, when a part of it may exist. */
optim_entry *optim_add(ed_optimizer *o, ed_tensor *v);

/* Removes all entries but the first `left`. */
void optim_drop_entries(ed_optimizer *o, int64_t left);

/* Names what a checkpoint saves of the optimizer; the values that wait for it (track.c). */
void optim_track(void *optimizer, ed_tracker *t);
struct graph_wait *optim_wait(void *optimizer);

/*
 * The checkpoint's value for a slot of the newest entry's variable: *initial, with a reference for
 * the caller, NULL if no value waits; and its node. false, with an error, if the value has another
 * dtype or shape.
 */
bool optim_waiting(const ed_optimizer *o, int slot, const ed_tensor *v, ed_tensor **initial,
                   int *node);

/* A step failed: the values of the slots that it created, from that entry on, wait again. */
void optim_unmade(const ed_optimizer *o, int64_t first);

/* Creates an optimizer: kind.make of all kinds. */
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
    static const optim_class symbol##_class = {                                                    \
        .kind = SCHEMA_KIND(optimizer, symbol, text, 0, optim_make), __VA_ARGS__};                 \
    SCHEMA_KIND_END(optimizer, symbol)

/* A number rounded to the dtype. */
static inline double optim_number(ed_dtype dtype, double value)
{
    return dtype == ED_FLOAT32 ? (float)value : value;
}

/* How a strip is prepared: g scale, clipped to -limit..limit; then w -= w decay rate. */
typedef struct optim_preparation {
    double scale, limit; /* 1 and INFINITY: unchanged */
    double decay, rate;  /* decay 0: none */
} optim_preparation;

ISA_DECLARE(void, optim_prepare, ed_dtype dtype, const optim_preparation *how, int64_t n,
            const void *g, void *w, void *prepared);

/* The sum of n squares in float64, the same bits for every instruction set. */
ISA_DECLARE(double, optim_squares, ed_dtype dtype, int64_t n, const void *g);

/* The update of a range: OPTIM_LOOPS(adam_update) defines ISA_NAME(adam_update) from
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
