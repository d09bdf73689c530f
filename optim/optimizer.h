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
#include <math.h>

/* The slots of a variable: those of the class, then those that the common options ask for. */
enum { OPTIM_OWN = 3, OPTIM_AVERAGE = OPTIM_OWN, OPTIM_SUM, OPTIM_SLOTS, OPTIM_NUMBERS = 12 };

/* A range of one variable: n elements of gradient, weights, and those slots that are in use. */
typedef struct optim_part {
    int64_t n, left;        /* left: of the variable, from the range's first on */
    const void *g, *source; /* source: where g, which may be a copy that was prepared, comes from */
    void *w, *slots[OPTIM_SLOTS];
    const double *numbers; /* filled by the class's `numbers` */
} optim_part;

typedef void (*optim_update)(ed_dtype dtype, const optim_part *part);

/* One variable in the step of a class that needs all of it at once: the gradient, clipped, the
 * decayed value and the slots, of which the class makes the next ones by public ops. */
typedef struct optim_whole {
    const ed_tensor *variable;
    ed_tensor *g, *w, *slots[OPTIM_OWN];
    double rate; /* the learning rate, rounded to the dtype */
    double decay;
    int64_t step;
} optim_whole;

/* A kind of optimizer. */
typedef struct optim_class {
    ed_kind kind;
    const char *slots[OPTIM_OWN];
    const char *lists[OPTIM_OWN];  /* name of the list of all such slots in Keras 3's checkpoints */
    const char *legacy[OPTIM_OWN]; /* name of the slot in Keras 2's */
    bool keeps_places;             /* Keras numbers slots that a variable lacks, too */
    const char *constants[6];      /* options that Keras 2's checkpoints have */
    unsigned (*in_use)(const void *options); /* which slots: bit i is slot i; NULL: all */
    int together; /* ed_optimizer_variables lists the first `together` slots variable by variable,
                     then the others slot by slot */

    /* May be NULL. The first value of a slot, with a reference for the caller; NULL on failure.
     * Without it: zeros of the variable's shape. */
    ed_tensor *(*initial)(const ed_optimizer *optimizer, int slot, const ed_tensor *variable);

    /* May be NULL, and is of those that are `whole` only: whether the variable has the slot. */
    bool (*has)(const ed_optimizer *optimizer, int slot, const ed_tensor *variable);

    /* Either `update` and `numbers`, or `whole`. */
    optim_update update[ISA_COUNT];

    /*
     * Computes the coefficients of step `step` (1, 2, ...) for variables of a dtype, rounded to
     * that dtype: once for each step and learning rate, not for each element.
     */
    void (*numbers)(ed_optimizer *optimizer, ed_dtype dtype, int64_t step, double rate,
                    double *numbers);

    /* Replaces w and the slots; false, with an error, on failure. */
    bool (*whole)(const ed_optimizer *optimizer, optim_whole *x);

    /* May be NULL. The weight decay of a variable, if it is not the option. */
    double (*decay)(const ed_optimizer *optimizer, const ed_tensor *variable);
    bool own_decay; /* `whole` applies it */

    /* May be NULL. What Keras has beside the slots, under the name `scalar`: a number after so many
     * steps that follows from the options. */
    double (*scalar_at)(const ed_optimizer *optimizer, int64_t steps);
    const char *scalar;
} optim_class;

/* What a program has set for one variable. */
typedef struct optim_setting {
    ed_tensor *variable;
    double multiplier; /* of the learning rate */
    bool undecayed;
} optim_setting;

/* A variable and its slots. */
typedef struct optim_entry {
    ed_tensor *variable;
    double multiplier;             /* of the learning rate */
    double decay;                  /* 0: none */
    ed_tensor *slots[OPTIM_SLOTS]; /* variables too; NULL where not in use */
} optim_entry;

/* One variable in the present step; its pieces are first_piece and those after it. Of indexed
 * slices g has one after the other, and w and its slots are whole. */
typedef struct optim_job {
    optim_part part; /* its n and left are those of g */
    ed_dtype dtype;
    int64_t piece;          /* elements of g in each piece, of slices a multiple of `width` */
    const int64_t *indices; /* of the slices, see ops_slices_chains; NULL: g has all elements */
    const int64_t *next;    /* slices with the same index */
    int64_t width;          /* elements of a slice */
    int64_t first_piece;
    double scale; /* of clipping by norm, and of the loss */
    double multiplier, decay;
    double numbers[OPTIM_NUMBERS]; /* if the multiplier is not 1 */
} optim_job;

/* The first options of all kinds. */
typedef struct optim_common {
    uint32_t mark_;
    double learning_rate;
    ed_schedule *schedule;
    double weight_decay, clipnorm, clipvalue, global_clipnorm;
    bool use_ema;
    double ema_momentum;
    int64_t ema_overwrite_frequency;
    double loss_scale_factor;
    bool dynamic_loss_scale;
    double initial_scale;
    int64_t dynamic_growth_steps, gradient_accumulation_steps;
    bool lazy;
} optim_common;

struct ed_optimizer {
    made_object made;
    const optim_class *class;
    optim_common *common; /* in its options, with the present learning rate */
    unsigned slots;       /* which slots are in use: bit i is slot i */
    int64_t iterations;   /* calls, of which gradient_accumulation_steps are one step */
    double scale;         /* of the loss, with dynamic_loss_scale */
    int64_t finite_steps; /* since the scale changed */
    double product;       /* nadam's, after product_steps */
    int64_t product_steps;
    bool swapped; /* the variables have their averages, the slots the variables' values */

    optim_entry *entries; /* in the order of the variables' first steps */
    int64_t *index;       /* finds the entry of a variable, see entries.c */
    optim_job *jobs;      /* of the present step */
    int64_t n_entries, capacity, job_capacity;
    graph_wait wait; /* a checkpoint's values for slots that don't exist yet */

    optim_setting *settings;
    char **undecayed; /* parts of the names of variables that are not decayed */
    int64_t n_settings, n_undecayed;
};

/* The setting of a variable; NULL if there is none. */
optim_setting *optim_setting_of(const ed_optimizer *o, const ed_tensor *v);

/* What an entry has of the settings, anew. */
void optim_take_settings(const ed_optimizer *o, optim_entry *e);

/* Gives up the settings. */
void optim_settings_end(ed_optimizer *o);

/* The learning rate of the next call; NaN, with an error, if the schedule fails. */
double optim_rate(const ed_optimizer *o);

/* The calls that make one step. */
static inline int64_t optim_calls(const ed_optimizer *o)
{
    return o->common->gradient_accumulation_steps > 1 ? o->common->gradient_accumulation_steps : 1;
}

/* The steps that are done, and whether the next call is one rather than only adds its gradients. */
static inline int64_t optim_steps(const ed_optimizer *o)
{
    return o->iterations / optim_calls(o);
}
static inline bool optim_steps_next(const ed_optimizer *o)
{
    return (o->iterations + 1) % optim_calls(o) == 0;
}

/* The loss is multiplied by this. */
static inline double optim_loss_scale(const ed_optimizer *o)
{
    const optim_common *c = o->common;
    return c->dynamic_loss_scale ? o->scale : c->loss_scale_factor > 0 ? c->loss_scale_factor : 1;
}

/* With dynamic_loss_scale, whether the gradients were finite changes the scale. */
void optim_note_finite(ed_optimizer *o, bool finite);

/* The variables that `trained` of ed_minimize means; NULL, with an error that begins with `who`. */
ed_list *optim_trained(const char *who, ed_tape *tape, void *trained);

/* How far the averages go this time towards the variables (ema), and whether the variables become
 * the averages. */
double optim_ema_momentum(const ed_optimizer *o);
bool optim_ema_overwrites(const ed_optimizer *o);

/* The pass over the jobs of a call, which takes the optimizer one iteration on; false, with an
 * error and nothing changed, on failure (pass.c). */
bool optim_pass(ed_optimizer *o, int64_t n_jobs);
int64_t optim_piece(int64_t width); /* elements of a piece whose slices have so many */

/* One call for variables, each with a gradient, of a class that is `whole` (whole.c). */
bool optim_apply_whole(ed_optimizer *o, const ed_list *gradients, optim_entry *const *entries,
                       int64_t n);

extern const object_class optim_object;

/* The name of a slot; of the list of such slots in Keras 3's files; of the slot in Keras 2's. */
const char *optim_slot_name(const ed_optimizer *o, int slot);
const char *optim_slot_list(const ed_optimizer *o, int slot);
const char *optim_slot_legacy(const ed_optimizer *o, int slot);

/*
 * The entry of a variable; NULL if it has none. *hint, 0 at first, is the entry that is tried
 * first: steps usually have the variables in the same order.
 */
optim_entry *optim_find(const ed_optimizer *o, const ed_tensor *v, int64_t *hint);

/* Appends an entry with its slots; NULL on failure, when a part of it may exist. */
optim_entry *optim_add(ed_optimizer *o, ed_tensor *v);

/* A tensor of the variable's shape and dtype, each element `value`, with a reference for the
 * caller; NULL on failure. */
ed_tensor *optim_full(const ed_tensor *v, double value);

/* Removes all entries but the first `left`. */
void optim_drop_entries(ed_optimizer *o, int64_t left);

/* Names what a checkpoint saves of the optimizer; the values that wait for it (track.c). */
void optim_track(void *optimizer, ed_tracker *t);
struct graph_wait *optim_wait(void *optimizer);

/*
 * The checkpoint's value for a slot of the newest entry's variable: *initial, with a reference for
 * the caller, NULL if no value waits; and its node. false, with an error, if the value has another
 * dtype or shape than `like`.
 */
bool optim_waiting(const ed_optimizer *o, int slot, const ed_tensor *v, const ed_tensor *like,
                   ed_tensor **initial, int *node);

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

/* 1 - base^step, computed in the dtype, as Keras does. */
static inline double optim_complement(ed_dtype dtype, double base, int64_t step)
{
    return dtype == ED_FLOAT32 ? 1 - powf((float)base, (float)step) : 1 - pow(base, (double)step);
}

/* How a strip is prepared: g scale, clipped to -limit..limit; then w -= w decay rate. */
typedef struct optim_preparation {
    double scale, limit; /* 1 and INFINITY: unchanged */
    double decay, rate;  /* decay 0: none */
} optim_preparation;

/* sum = g scale + sum, or, with `steps` above 0, the mean of so many: that / steps. */
ISA_DECLARE(void, optim_accumulate, ed_dtype dtype, double scale, double steps, int64_t n,
            const void *g, void *sum);

/* average = momentum average + (1 - momentum) w; then w = average if it `overwrites`. */
ISA_DECLARE(void, optim_average, ed_dtype dtype, double momentum, bool overwrites, int64_t n,
            void *w, void *average);

ISA_DECLARE(void, optim_prepare, ed_dtype dtype, const optim_preparation *how,
            const optim_part *part, void *prepared);

/* The sum of n squares in float64, the same bits for every instruction set. */
ISA_DECLARE(double, optim_squares, ed_dtype dtype, int64_t n, const void *g);

/*
 * OPTIM_EACH(i, part, size) goes over the elements of a part, of `size` bytes, strip by strip, and
 * asks for those that are OPTIM_AHEAD elements further: the processor foresees them too late where
 * roots and quotients keep it busy. What is shorter than that, as most rows of sparse gradients
 * are, is one strip.
 */
enum { OPTIM_STRIP = 64, OPTIM_AHEAD = HARD(64, 512) };

static inline void optim_ask(const optim_part *part, int64_t i, size_t size)
{
    if (i + OPTIM_AHEAD + OPTIM_STRIP > part->left) return;
    const size_t from = (size_t)(i + OPTIM_AHEAD) * size, end = from + OPTIM_STRIP * size;
    for (size_t at = from; at < end; at += 64) {
        __builtin_prefetch((const char *)part->source + at);
        __builtin_prefetch((const char *)part->w + at, 1);
    }
    for (int s = 0; s < OPTIM_OWN; s++)
        for (size_t at = from; part->slots[s] && at < end; at += 64)
            __builtin_prefetch((const char *)part->slots[s] + at, 1);
}

/* The elements of a strip. */
static inline int64_t optim_strip(const optim_part *part)
{
    return part->left < OPTIM_AHEAD + OPTIM_STRIP ? part->n : OPTIM_STRIP;
}

/* Asks for what is ahead; where the strip that begins at i ends. */
static inline int64_t optim_next_strip(const optim_part *part, int64_t i, int64_t strip,
                                       size_t size)
{
    optim_ask(part, i, size);
    return part->n - i < strip ? part->n : i + strip;
}

#define OPTIM_EACH(i, part, size)                                                                  \
    for (int64_t i##_strip = optim_strip(part), i##_at = 0; i##_at < (part)->n;                    \
         i##_at += i##_strip)                                                                      \
        for (int64_t i = i##_at, i##_end = optim_next_strip(part, i, i##_strip, size);             \
             i < i##_end; i++)

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
