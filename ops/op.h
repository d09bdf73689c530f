/*
 * What an operation is. One definition holds everything: name, signature, attributes, shape rule,
 * kernel, gradient, a plain reference, samples for the checks. Built-in ops and a user's own
 * (ed_op_register) have the same rights.
 *
 * Every call goes through the dispatcher, ed_execute: resolve the operands, check their dtypes,
 * infer (which makes the outputs), run the kernel, notify the listeners (tapes, profilers).
 *
 * An op may also write: operands that are variables, which the dispatcher lets the kernel change.
 */
#ifndef EDDY_OPS_OP_H
#define EDDY_OPS_OP_H

#include "tensor/schema.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

enum { ED_MAX_OPERANDS = 8 }; /* that are declared; the last one may come many times */

/* Sets of dtypes, for operands. */
enum {
    ED_SET_FLOAT = 1 << ED_FLOAT32 | 1 << ED_FLOAT64,
    ED_SET_INDEX = 1 << ED_INT32 | 1 << ED_INT64,
    ED_SET_NUMBER = ED_SET_FLOAT | ED_SET_INDEX | 1 << ED_UINT8,
    ED_SET_BOOL = 1 << ED_BOOL,
    ED_SET_HALF = 1 << ED_FLOAT16 | 1 << ED_BFLOAT16,
    ED_SET_STORAGE = ED_SET_HALF | 1 << ED_INT8 | 1 << ED_INT16 | 1 << ED_UINT16 | 1 << ED_UINT32 |
                     1 << ED_UINT64,
    ED_SET_ALL = ED_SET_NUMBER | ED_SET_BOOL | ED_SET_STORAGE
};

/* An operand of an op. Operands of the same type letter must agree in dtype; letter 0 agrees with
 * none. */
typedef struct ed_operand {
    const char *name; /* as messages and bindings call it */
    unsigned dtypes;  /* a set of dtypes */
    char type;        /* 'T', 'I', ... or 0 */
    bool saved;       /* the gradient function gets its value */
    bool early;       /* infer or compose reads its elements: the description of a model, which has
                       * none, can't have such a call */
    bool writes;      /* it is a variable that the kernel changes; such operands come first */
    bool optional;    /* it may be absent, with all operands after it, which are optional too */
    const char *no_gradient; /* why the op's gradient is not that of this float operand: asking for
                              * it is an error */
} ed_operand;

/* A result of an op: .results = ED_RESULTS({.name = "y"}, {.name = "mean", .saved = true}). */
typedef struct ed_result {
    const char *name; /* as bindings call it */
    bool saved;       /* the gradient function gets its value */
    /* It is there for the gradient function alone: nothing flows back from it, and bindings do not
     * return it. Such results come last. */
    bool kept;
} ed_result;

/* The results of a definition / of one without any. */
#define ED_RESULTS(...) ((const ed_result[]){__VA_ARGS__, {0}})
#define ED_NO_RESULTS   ((const ed_result[]){{0}})

/* ---- Calls ----------------------------------------------------------------------------------- */

/* The definition of an op, see "Definitions" below. */
typedef struct ed_op ed_op;

/* One call on its way through the dispatcher. */
typedef struct ed_call {
    const ed_op *op;            /* the definition */
    const void *attrs;          /* never NULL for an op that has attributes */
    int n_inputs, n_outputs;    /* how many there are */
    ed_tensor *const *operands; /* as the caller gave them: variables and plain numbers */
    ed_tensor **inputs;         /* values: no variables, no weak numbers */
    ed_tensor **outputs;        /* made by infer */
    void *plan;                 /* what infer computed and the kernel needs: ed_call_plan */

    /*
     * The first so many inputs are written: as many as the definition says; of an op with
     * ED_OP_VARIADIC whose last operand is written, all, unless infer sets another number. Infer
     * sees their present values. For the kernel each is the value that its variable has from then
     * on, held by nobody else and contiguous, to be changed where it lies. A kernel fails, if at
     * all, before it changes anything.
     */
    int n_writes;
    bool ready;                /* infer made the outputs complete (views): no kernel is run */
    struct ed_call_room *room; /* the dispatcher's */
    void *drawn; /* its copy of the attributes, with the state drawn; NULL: nothing was */
} ed_call;

/* Says how many outputs the call has, 0 or more, of which none is made yet: for the infer of an op
 * with ED_OP_MANY_OUTPUTS. false on failure. */
bool ed_call_outputs(ed_call *call, int64_t n);

/* Makes output i: a new tensor with uninitialised elements. false on failure. For infer. */
bool ed_call_output(ed_call *call, int i, ed_dtype dtype, int rank, const int64_t *shape);

/* Makes output i a view of input `of`, offset and strides in elements, and the call ready. false on
 * failure. For infer. */
bool ed_call_view(ed_call *call, int i, int of, int rank, const int64_t *shape,
                  const int64_t *strides, int64_t offset);

/*
 * Memory for what infer computes and the kernel needs, of any size, aligned for any type and
 * uninitialised: call->plan from here on, freed with the call. Up to ED_SMALL_PLAN bytes cost
 * nothing and never fail; NULL without memory for more. For infer.
 */
void *ed_call_plan(ed_call *call, size_t bytes);
enum { ED_SMALL_PLAN = 128 };

/* Keeps an error that begins with the op's name; always false, so that infer and kernel may return
 * it. */
bool ed_call_fail(const ed_call *call, ed_error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Gives output i a value, of which the call holds a reference; of a variable its present one. false
 * on failure, and for NULL. For compose. */
bool ed_call_result(ed_call *call, int i, ed_tensor *value);

/* The elements of an output, for writing. For kernels. */
void *ed_call_data(ed_call *call, int output);

/*
 * Gives the variable that is operand i a value of its dtype and shape, which is not copied if it is
 * contiguous: inputs[i] from here on. For kernels of ops with ED_OP_REPLACES. false on failure.
 */
bool ed_call_replace(ed_call *call, int i, ed_tensor *value);

/* ---- Gradients ------------------------------------------------------------------------------- */

/*
 * What a gradient function is given, and where it puts its results: for each input i with needs[i]
 * it sets dx[i] to a tensor of the input's shape and dtype, made by public ops from dy, inputs and
 * outputs, so that a tape can record it in turn.
 */
typedef struct ed_gradient_call {
    const ed_op *op;           /* the definition */
    const void *attrs;         /* those of the call */
    int n_inputs, n_outputs;   /* how many there are */
    ed_tensor *const *inputs;  /* those that are `saved`; others NULL */
    ed_tensor *const *outputs; /* likewise */
    ed_tensor *const *dy; /* one an output; NULL where nothing flows back (never for an only one) */
    ed_tensor **dx;       /* one an input: the results, NULL at first */
    const bool *needs;    /* whether the gradient by an input is wanted */
    const ed_ints *shapes;  /* of the inputs */
    const ed_dtype *dtypes; /* of the inputs */
    bool spends; /* nobody asks for dy afterwards: the library's functions may write into it */
} ed_gradient_call;

/* ---- Batches --------------------------------------------------------------------------------- */

/*
 * Calls of one op that run as one, as ed_vectorized_map and jacobians need them. They differ in
 * some operands, whose values for all calls lie one after the other along a new first axis.
 */
typedef struct ed_batch_call {
    const ed_op *op;           /* the definition */
    const void *attrs;         /* of each call */
    int64_t n;                 /* calls */
    int n_inputs, n_outputs;   /* of each call */
    ed_tensor *const *inputs;  /* of one call; those that differ have a shape, but no elements */
    ed_tensor *const *batches; /* [n, ...] of those that differ; NULL: all calls have the input */
    ed_tensor *const *outputs; /* of one call: shapes without elements */
} ed_batch_call;

/*
 * What a definition may have as `batch`. Each returns the outputs, [n, ...], or NULL with an error.
 *
 * ed_batch_broadcast: leading axes of the operands broadcast, as of elementwise ops and matmul.
 * ed_batch_first: the first operand may have any leading axes, of which only attributes of type
 * AXIS and AXES tell, and the others are for all of them; where those differ, one call after the
 * other.
 * ed_batch_axes: all operands have the same rank, and nothing tells of an axis but the attributes
 * of type AXIS and AXES. ed_batch_reduction: the same, and AXES that are not given are all axes.
 * ed_batch_each: one call after the other, which is always right.
 */
ed_list *ed_batch_broadcast(const ed_batch_call *call);
ed_list *ed_batch_first(const ed_batch_call *call);
ed_list *ed_batch_axes(const ed_batch_call *call);
ed_list *ed_batch_reduction(const ed_batch_call *call);
ed_list *ed_batch_each(const ed_batch_call *call);

/* The only output as what a function like these returns: a list of it; NULL, with an error, for
 * NULL. */
ed_list *ed_batch_result(ed_tensor *output);

/* ---- Samples --------------------------------------------------------------------------------- */

/* How the checks make an operand: shape, and values drawn evenly from low..high. */
typedef struct ed_sample_input {
    bool given;                 /* false ends the operands */
    int rank;                   /* of the operand */
    int64_t shape[ED_MAX_RANK]; /* its sizes */
    double low, high;           /* the range of its values */
    bool distinct;   /* no two closer than a tenth of the mean distance: for ops that compare */
    double diagonal; /* added to the diagonals of matrices, times their shorter size: no matrix is
                      * near a singular one, and symmetric ones are positive definite */
    bool symmetric;  /* matrices are symmetric, and stay so where differences are taken */
    bool sorted;     /* lines along the last axis ascend, NaN last */
    bool banded;     /* the rows of a matrix are diagonals: it is the middle one that is added to */
} ed_sample_input;

/* ED_SAMPLE_IN(low, high, sizes...), e.g. ED_SAMPLE_IN(-2, 2, 3, 4); ED_DISTINCT_IN likewise.
 * Indices: low and high are integers, both included. */
#define ED_SAMPLE_IN(lo, hi, ...)                                                                  \
    {                                                                                              \
        .given = true, .rank = sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1,          \
        .shape = {__VA_ARGS__}, .low = (lo), .high = (hi)                                          \
    }
#define ED_DISTINCT_IN(lo, hi, ...)                                                                \
    {                                                                                              \
        .given = true, .rank = sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1,          \
        .shape = {__VA_ARGS__}, .low = (lo), .high = (hi), .distinct = true                        \
    }

/* Lines that ascend: low, high, sizes. */
#define ED_SORTED_IN(lo, hi, ...)                                                                  \
    {                                                                                              \
        .given = true, .rank = sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1,          \
        .shape = {__VA_ARGS__}, .low = (lo), .high = (hi), .sorted = true                          \
    }

/* Square or other matrices with a strong diagonal / symmetric positive definite ones: sizes. */
#define ED_MATRICES_IN(...)                                                                        \
    {                                                                                              \
        .given = true, .rank = sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1,          \
        .shape = {__VA_ARGS__}, .low = -1, .high = 1, .diagonal = 1                                \
    }
#define ED_DEFINITE_IN(...)                                                                        \
    {                                                                                              \
        .given = true, .rank = sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1,          \
        .shape = {__VA_ARGS__}, .low = -1, .high = 1, .diagonal = 1, .symmetric = true             \
    }

/* Diagonals of matrices, [..., 3, n]: above the main one, the main one, which is strong, below. */
#define ED_DIAGONALS_IN(...)                                                                       \
    {                                                                                              \
        .given = true, .rank = sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1,          \
        .shape = {__VA_ARGS__}, .low = -1, .high = 1, .diagonal = 1, .banded = true                \
    }

/* Inputs and attributes with which the checks call an op. */
typedef struct ed_sample {
    ed_sample_input inputs[ED_MAX_OPERANDS]; /* as many as are given */
    const void *attrs;                       /* NULL: the defaults */
    bool last;                               /* ends the array of samples */
} ed_sample;

/* The samples of a definition: ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}}). */
#define ED_SAMPLES(...) ((const ed_sample[]){__VA_ARGS__, {.last = true}})

/* The attributes of a sample: {.attrs = ED_ATTRS(LIST, T, .axis = 1)}. */
#define ED_ATTRS(LIST, T, ...) (&(const T)ED_COMPLETE(LIST, T, __VA_ARGS__))

/* A list in the attributes of a sample: ED_INTS is no constant expression, this is. */
#define ED_SAMPLE_INTS(...)                                                                        \
    {                                                                                              \
        (const int64_t[]){0, __VA_ARGS__} + 1,                                                     \
            sizeof((const int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t) - 1                        \
    }

/* ---- Definitions ----------------------------------------------------------------------------- */

/*
 * The attributes of a definition from a list of fields (tensor/schema.h), T being their structure,
 * ED_OPTIONS(T, LIST). The dispatcher refuses attributes that are not complete and values beyond
 * their limits, by name.
 */
#define ED_OP_ATTRS(LIST, T)                                                                       \
    .attrs = (const ed_field[])ED_FIELDS(LIST, T), .attrs_size = sizeof(T),                        \
    .defaults = ED_ATTRS(LIST, T, )

enum {
    ED_OP_CONTIGUOUS = 1,   /* the kernel needs contiguous inputs: the dispatcher copies others */
    ED_OP_VARIADIC = 2,     /* the last operand may come any number of times, at least once */
    ED_OP_INTERNAL = 4,     /* made by other ops (a gradient): no binding needs it */
    ED_OP_MANY_OUTPUTS = 8, /* infer says how many outputs there are, and `results` has the one that
                             * all of them are: ed_execute_list runs it */
    ED_OP_REPLACES =
        16,           /* the kernel gives what it writes new values, by ed_call_replace, instead of
                          * changing the ones they have */
    ED_OP_STOPS = 32, /* no gradient flows back, which is not an error: tapes pass it over */
    ED_OP_PREFERS_FLOATS = 64, /* languages whose numbers are floats give it no integers: their mean
                                * and their powers are rounded */
    ED_OP_KEEPS_INTEGERS = 128, /* languages whose numbers are floats leave operands of integers as
                                 * they are, beside attributes with a fraction too: images */
    ED_OP_FIRST_ORDER = 256,    /* its gradient has none of its own, which says why */
    ED_OP_READS_DY = 512,       /* its gradient function is not merely made of ops linear in dy, but
                                 * may look at its elements; so may any of the program's own ops */
    ED_OP_LAW_GRADIENT = 1024, /* its gradient is that of samples of the same probability, which the
                                 * draws themselves, made by rejection, do not follow */
};

/* One definition: its signature, attributes, functions and samples. */
struct ed_op {
    const char *name;                     /* as messages, listeners and bindings call it */
    const char *doc;                      /* one line of maths or effect */
    ed_operand operands[ED_MAX_OPERANDS]; /* up to one without a name */
    const ed_result *results;             /* ED_RESULTS; NULL: one, which is not saved */
    unsigned flags;                       /* ED_OP_CONTIGUOUS | ..., or 0 */

    /* The attributes, one plain C structure: where its fields lie (tensor/schema.h), for checks,
     * bindings, help and copies. */
    const ed_field *attrs; /* ended by a NULL name; NULL for none */
    size_t attrs_size;     /* bytes of the structure */
    const void *defaults;  /* what NULL attributes mean; NULL: all zero, of up to 512 bytes */

    /* Checks shapes and attributes and makes the outputs; false with an error kept. */
    bool (*infer)(ed_call *call);
    /* Fills the outputs; NULL for ops that only make views. */
    bool (*kernel)(ed_call *call);

    /*
     * In place of both: computes the outputs by public ops and gives them by ed_call_result; false
     * with an error kept. What it makes besides is released. Inputs that are variables come as
     * variables. Listeners hear the ops that it calls, so it needs no gradient function; they hear
     * the op itself if it has no_gradient.
     */
    bool (*compose)(ed_call *call);

    /* Exactly one of both, but for a composition: how to differentiate, or why that makes no
     * sense. */
    bool (*gradient)(const ed_gradient_call *call);
    const char *no_gradient; /* a sentence's end: "it updates a metric" */

    /* Many calls as one; NULL: ed_batch_each. */
    ed_list *(*batch)(const ed_batch_call *call);

    /* Of an op that draws: how many elements its generator moves on by, once infer has made the
     * outputs; NULL: those of the first output. */
    int64_t (*draws)(const ed_call *call);

    /*
     * The same by plain loops in float64, for the checks: all inputs are contiguous float64
     * (integers and bools too), and so are the outputs, already made. The plan is infer's.
     */
    bool (*reference)(const ed_call *call);
    /*
     * For results that are not unique, as eigenvectors are up to their signs: puts in the place of
     * the outputs what of them is, as many tensors, by public ops. The checks compare these, which
     * the reference fills, and differentiate them.
     */
    bool (*unique)(ed_tensor **outputs);
    const void *extra;        /* what a kernel that serves several ops needs to know of this one */
    const ed_sample *samples; /* ED_SAMPLES */
    const double *kinks;      /* where numeric differentiation must not be, ended by NaN */
    double tolerance;         /* relative, of numeric against taped gradients; 0 means 1e-6 */
};

/* ---- The dispatcher and the table ------------------------------------------------------------ */

/*
 * Runs an op on n inputs; attrs is the op's structure or NULL for its defaults. Fills `outputs`,
 * one for each of op->results, which belong to the scope. false on failure, all outputs NULL then.
 */
bool ed_execute(const ed_op *op, ed_tensor *const *inputs, int n, const void *attrs,
                ed_tensor **outputs);

/* The same for an op of one output, which it returns; of several, the first; of an op without
 * outputs, the first variable that it writes. */
ed_tensor *ed_call_op(const ed_op *op, ed_tensor *const *inputs, int n, const void *attrs);

/* The same for any op, also those with ED_OP_MANY_OUTPUTS: all outputs as a list, which alone holds
 * them. NULL on failure. */
ed_list *ed_execute_list(const ed_op *op, ed_tensor *const *inputs, int n, const void *attrs);

/* ---- Listeners ------------------------------------------------------------------------------- */

/*
 * Who is notified of every call of a thread: a profiler, a tracer; tapes are listeners too. Either
 * function may be NULL. An op that they call fails, and what they read of the call lives only as
 * long as it, but for tensors that they retain.
 */
typedef struct ed_listener {
    /* The operands are resolved and checked; infer comes next. */
    void (*before)(struct ed_listener *self, const ed_call *call);
    /* The call has succeeded, and variables are written. A call that fails gets none. */
    void (*after)(struct ed_listener *self, const ed_call *call);

    struct ed_listener *outer; /* the library's */
    int differentiates; /* how often what it hears is differentiated: 0, 1, in forward mode 2; if so,
                         * it hears nothing of a function that is so as a whole */
    bool hides;         /* what it hears is inside such a function */
    bool hears_hollow;  /* it hears of calls on tensors without elements, though it differentiates
                         * nothing; and nothing of such a function either */
} ed_listener;

/* Begins to notify a listener, as the thread's innermost, which is notified first; it stays where
 * it is in memory until ed_unlisten. false if it is NULL or listens already. */
bool ed_listen(ed_listener *listener);

/* Stops a listener wherever it stands among the thread's; false, without an error, if it is not one
 * of them. A function of a listener may do that, for any of them. */
bool ed_unlisten(ed_listener *listener);

/*
 * A copy of an op's attributes that stands by itself, its lists and strings included, with a
 * reference to each of its objects: for listeners that keep calls. NULL without memory.
 * ed_attrs_free frees it and releases the objects.
 */
void *ed_attrs_copy(const ed_op *op, const void *attrs);
void ed_attrs_free(const ed_op *op, void *copy);

/* Adds a user's op, which must stay where it is; fails on an incomplete definition or a name that
 * is taken. */
bool ed_op_register(const ed_op *op);

/* The op of that name; NULL, with an error, if there is none. */
const ed_op *ed_op_find(const char *name);

/* The number of ops, and op number i in the order of their names; NULL outside. */
int ed_op_count(void);
const ed_op *ed_op_at(int i);

/* A tensor's elements in row-major order in float64, for references and tests; belongs to the
 * scope. */
double *ed_as_doubles(const ed_tensor *tensor);

#pragma GCC visibility pop
#endif
