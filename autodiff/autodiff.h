/*
 * The tape records what is computed from watched tensors; a backward pass over it computes
 * gradients.
 *
 *     ed_tape   *tape = ed_tape_begin();
 *     ed_tensor *loss = ed_reduce_mean(ed_square(ed_sub(ed_matmul(x, w), y)));
 *     ed_tensor *dw   = ed_gradient(tape, loss, w);
 *
 * A tape watches every trainable variable that an op reads while it records, and the tensors given
 * to ed_watch. Gradients are computed by ops, so a tape around another tape records the inner one's
 * gradient: second and higher derivatives. The tape keeps the values that gradients need: assigning
 * a variable later does not change them. Ops without a watched operand are not recorded and save
 * nothing.
 */
#ifndef EDDY_AUTODIFF_H
#define EDDY_AUTODIFF_H

#include "ops/ops.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* A record of calls of ops. */
typedef struct ed_tape ed_tape;

/* Options of a tape; zero: not given. */
typedef struct ed_tape_options {
    bool persistent; /* allows several gradients; what was recorded lives as long as the tape */
    bool ignore_accessed_variables; /* watch only the tensors given to ed_watch */
} ed_tape_options;

/* A tape that records the ops of this thread until it is stopped, consumed or released. */
ed_tape *ed_tape_begin_with(const ed_tape_options *options);
#define ed_tape_begin(...) ed_tape_begin_with(ED_GIVEN_(ed_tape_options, __VA_ARGS__))

/* Stops recording; fails if the tape is not recording. */
bool ed_tape_stop(ed_tape *tape);

/* Resumes recording; fails if the tape is recording. */
bool ed_tape_resume(ed_tape *tape);

/* Discards everything recorded and watched and continues recording; fails if the tape is not
 * recording, and inside a gradient function. */
bool ed_tape_reset(ed_tape *tape);

/* Watches a tensor or variable from now on. Returns x. Fails for dtypes other than floats and for
 * plain numbers. */
ed_tensor *ed_watch(ed_tape *tape, ed_tensor *x);

/* The variables watched so far, in the order of their creation; also of a consumed tape. */
ed_list *ed_tape_watched_variables(const ed_tape *tape);

/* Options of a gradient; zero: not given. */
typedef struct ed_gradient_options {
    ed_list *output_gradients; /* the gradient of each target: a number, or a tensor of its dtype
                                  that broadcasts to its shape; default ones */
    bool unconnected_zeros;    /* zeros, not NULL, for a source that no target depends on */
} ed_gradient_options;

/*
 * The gradient of the target with respect to the source: a tensor of the source's shape for one
 * source; a list, in the sources' order, for a list of sources. Several targets (a list) are
 * summed. A source may be any tensor that the tape recorded, also a target; one given twice gets
 * its whole gradient twice. A variable's gradient is the sum over all its reads, also if it was
 * assigned in between. NULL (in a list: a NULL entry), without an error, for a source that no
 * target depends on. A tape that is not persistent is consumed: it stops recording and releases
 * what it saved during the backward pass; a second gradient fails. A persistent one that still
 * records, records the gradient too. Fails if the path from a source to a target contains an op
 * without a gradient (the message names it), and for targets that are not floats. Invalid arguments
 * don't consume the tape.
 */
#define ed_gradient(tape, target, source, ...)                                                     \
    ED_AT(_Generic((source), ed_list *                                                             \
                   : ed_gradient_list, default                                                     \
                   : ed_gradient_tensor)(tape, ED_AS_LIST(target), source,                         \
                                         ED_GIVEN_(ed_gradient_options, __VA_ARGS__)               \
                                             ED_OPTIONAL_(0, ##__VA_ARGS__)))

/* ed_gradient for one source. */
ed_tensor *ed_gradient_tensor(ed_tape *tape, ed_list *targets, ed_tensor *source,
                              const ed_gradient_options *options);

/* ed_gradient for a list of sources. */
ed_list *ed_gradient_list(ed_tape *tape, ed_list *targets, ed_list *sources,
                          const ed_gradient_options *options);

/* The targets of ed_gradient as a list: a list unchanged, a tensor as a list of one. */
#define ED_AS_LIST(x) _Generic((x), ed_list * : ed_list_itself, default : ed_list_of_one)(x)

/* Returns the list. */
ed_list *ed_list_itself(ed_list *list);

/* A list of this tensor alone; NULL for NULL. */
ed_list *ed_list_of_one(ed_tensor *tensor);

/* Options of a jacobian; zero: not given. */
typedef struct ed_jacobian_options {
    bool unconnected_zeros; /* zeros, not NULL, for a source that the target does not depend on */
} ed_jacobian_options;

/*
 * d target[i] / d source[j]: shape target.shape + source.shape; for a list of sources, a list. One
 * backward pass for each element of the target, whatever the number of sources; the tape must be
 * persistent. NULL (in a list: a NULL entry), without an error, if unconnected.
 */
ed_tensor *ed_jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source);
#define ed_jacobian(tape, target, source, ...)                                                     \
    ED_AT(_Generic((source), ed_list *                                                             \
                   : ed_jacobian_list, default                                                     \
                   : ed_jacobian_with)(tape, target, source,                                       \
                                       ED_GIVEN_(ed_jacobian_options, __VA_ARGS__)                 \
                                           ED_OPTIONAL_(0, ##__VA_ARGS__)))

/* ed_jacobian for one source. */
ed_tensor *ed_jacobian_with(ed_tape *tape, ed_tensor *target, ed_tensor *source,
                            const ed_jacobian_options *options);

/* ed_jacobian for a list of sources. */
ed_list *ed_jacobian_list(ed_tape *tape, ed_tensor *target, ed_list *sources,
                          const ed_jacobian_options *options);

/*
 * The same row by row, for target [batch, ...] whose row b depends on source [batch, ...]'s row b
 * alone: shape [batch] + target.shape[1:] + source.shape[1:]; for a list of sources, a list. One
 * backward pass for each element of the target's row. Unconnected: zeros. The tape must be
 * persistent.
 */
ed_tensor *ed_batch_jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source);
#define ed_batch_jacobian(tape, target, source)                                                    \
    ED_AT(_Generic((source), ed_list *                                                             \
                   : ed_batch_jacobian_list, default                                               \
                   : ed_batch_jacobian)(tape, target, source))

/* ed_batch_jacobian for a list of sources. */
ed_list *ed_batch_jacobian_list(ed_tape *tape, ed_tensor *target, ed_list *sources);

/* A function of tensors: returns a tensor; NULL, with an error kept, on failure. */
typedef ed_tensor *(*ed_function)(ed_list *inputs, void *user);

/* The product of f's Hessian at the inputs with vectors of the inputs' shapes: a list. f must
 * return a scalar. */
ed_list *ed_hessian_vector_product(ed_function f, ed_list *inputs, ed_list *vectors, void *user);

/* ---- Forward mode ---------------------------------------------------------------------------- */

/*
 * Computes the product of a Jacobian with a vector (JVP), the derivative in one direction, without
 * a backward pass over the whole: tangents of the primals become tangents of what is computed from
 * them.
 *
 *     ed_forward_accumulator *acc = ed_forward_accumulator_begin(ed_list_of(x), ed_list_of(dx));
 *     ed_tensor *y = f(x);
 *     ed_tensor *dy = ed_forward_jvp(acc, y);
 *
 * It records the ops of this thread, as a tape does, until it is stopped or released. A tangent is
 * computed, once, when it is asked for: each op on the way costs its gradient's gradient, which is
 * its derivative, and nothing else is computed. All ops with a gradient that can be differentiated
 * have it. Around a tape it sees the tape's gradient: the JVP of a gradient is the Hessian's
 * product. Inside a tape, or another accumulator, that records when a JVP is asked for, this can be
 * differentiated in turn.
 */
typedef struct ed_forward_accumulator ed_forward_accumulator;

/* Begins to record; a tangent for each primal, a tensor or variable: a number, or a tensor of its
 * dtype that broadcasts to its shape. No primal may be given twice. */
ed_forward_accumulator *ed_forward_accumulator_begin(ed_list *primals, ed_list *tangents);

/* Stops recording; fails if it is stopped already. */
bool ed_forward_accumulator_stop(ed_forward_accumulator *accumulator);

/* Options of a JVP; zero: not given. */
typedef struct ed_jvp_options {
    bool unconnected_zeros; /* zeros, not NULL, for a target that depends on no primal */
} ed_jvp_options;

/*
 * The tangent of a target, of its shape: the Jacobian by the primals times their tangents. For a
 * list, a list. NULL (in a list: a NULL entry), without an error, for a target that depends on no
 * primal. Fails if the path from a primal to the target contains an op without a gradient.
 */
#define ed_forward_jvp(accumulator, target, ...)                                                   \
    ED_AT(_Generic((target), ed_list *                                                             \
                   : ed_forward_jvp_list, default                                                  \
                   : ed_forward_jvp_tensor)(accumulator, target,                                   \
                                            ED_GIVEN_(ed_jvp_options, __VA_ARGS__)                 \
                                                ED_OPTIONAL_(0, ##__VA_ARGS__)))

/* ed_forward_jvp for one target. */
ed_tensor *ed_forward_jvp_tensor(ed_forward_accumulator *accumulator, ed_tensor *target,
                                 const ed_jvp_options *options);

/* ed_forward_jvp for a list of targets. */
ed_list *ed_forward_jvp_list(ed_forward_accumulator *accumulator, ed_list *targets,
                             const ed_jvp_options *options);

/* The tangent of f(primals, user); *value, unless NULL, becomes the value. Zeros if that depends on
 * no primal. */
ed_tensor *ed_jvp(ed_function f, ed_list *primals, ed_list *tangents, void *user,
                  ed_tensor **value);

/* ---- Functions with gradients of their own --------------------------------------------------- */

/*
 * The gradient of such a function: a list of one gradient for each input, NULL entries allowed.
 * inputs are those of the call (of variables their values at that time), output is its result, dy
 * the gradient of the output.
 */
typedef ed_list *(*ed_gradient_function)(ed_list *inputs, ed_tensor *output, ed_tensor *dy,
                                         void *user);

/*
 * Custom gradient: returns f(inputs, user); the backward pass calls `gradient`. f's own ops are not
 * recorded; those of `gradient` are, by outer tapes. Fails if f reads a trainable variable, or a
 * tensor that a tape tracks, that is not one of its inputs: its gradient would be lost. user must
 * live as long as the tape: release(user), if given, is called once when it is no longer needed,
 * also if the call fails.
 */
ed_tensor *ed_custom_gradient(ed_function f, ed_gradient_function gradient, ed_list *inputs,
                              void *user, void (*release)(void *user));

/* Functions of several results: a list of tensors; NULL, with an error kept, on failure. */
typedef ed_list *(*ed_list_function)(ed_list *inputs, void *user);

/* The gradient of such a function, as above; of outputs that nothing flows back through, dy has
 * zeros. */
typedef ed_list *(*ed_list_gradient_function)(ed_list *inputs, ed_list *outputs, ed_list *dy,
                                              void *user);

/* ed_custom_gradient of a function of several results. */
ed_list *ed_custom_gradient_list(ed_list_function f, ed_list_gradient_function gradient,
                                 ed_list *inputs, void *user, void (*release)(void *user));

/*
 * f(inputs, user) without keeping intermediate results: the backward pass runs f again, on the
 * variables' values of the first run and with the same random numbers, and leaves the variables
 * unchanged (also those that f assigns, if it reads them). This trades time for memory. Variables
 * and tracked tensors that f reads besides its inputs get their gradient too. user and release as
 * above.
 */
ed_tensor *ed_recompute(ed_function f, ed_list *inputs, void *user, void (*release)(void *user));

/* ---- The gradient checker -------------------------------------------------------------------- */

/* Options of ed_check_gradient. */
#define ED_CHECK_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, FLOAT, step, 6e-6, ED_ABOVE(0), "of the central difference, times max(1, |x|)")       \
    FIELD(T, FLOAT, rtol, 1e-6, ED_AT_LEAST(0), "allowed difference, relative")                    \
    FIELD(T, FLOAT, atol, 1e-8, ED_AT_LEAST(0), "allowed difference, absolute")                    \
    FIELD(T, BOOL, second_order, false, ED_ANY, "check the gradient's gradient too")               \
    FIELD(T, INT, limit, 0, ED_AT_LEAST(0),                                                        \
          "check so many elements of each tensor, evenly spread; 0: all")
ED_OPTIONS(ed_check_options, ED_CHECK_OPTIONS);

/*
 * Compares the tape's gradients of f at the inputs (float64) with finite differences, element by
 * element of the Jacobian. true if all agree. *report, if report is not NULL, becomes a string of
 * the scope that describes the worst element: its input and output element, both values, their
 * difference. Integer and bool inputs are passed unchanged; other floats are an error. Choose
 * inputs away from kinks. If f fails, or returns another dtype than float64, the result is false
 * and the error is kept.
 */
bool ed_check_gradient_with(ed_function f, ed_list *inputs, void *user, const char **report,
                            const ed_check_options *options);
#define ed_check_gradient(f, inputs, user, report, ...)                                            \
    ED_WITH_OPTIONS(ed_check_gradient_with(f, inputs, user, report, &ed_options_),                 \
                    ED_CHECK_OPTIONS, ed_check_options, ##__VA_ARGS__)

#pragma GCC visibility pop
#endif
