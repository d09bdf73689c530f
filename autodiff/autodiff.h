/*
 * The tape: what was computed from the watched tensors is recorded, and walked backwards once to
 * give gradients.
 *
 *     ed_tape   *tape = ed_tape_begin();
 *     ed_tensor *loss = ed_reduce_mean(ed_square(ed_sub(ed_matmul(x, w), y)));
 *     ed_tensor *dw   = ed_gradient(tape, loss, w);
 *
 * A tape watches every trainable variable that an op reads while it records, and what ed_watch
 * names. Gradients are made of ops, so a tape around another tape records the inner one's gradient:
 * second and higher derivatives. What a gradient needs is held as it was when it was recorded:
 * assigning a variable later does not change it. Ops none of whose operands is watched are not
 * recorded and save nothing.
 */
#ifndef EDDY_AUTODIFF_H
#define EDDY_AUTODIFF_H

#include "ops/ops.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

typedef struct ed_tape ed_tape;

typedef struct ed_tape_options {
    bool persistent; /* gradients may be asked more than once; what was recorded lives as long as
                        the tape */
    bool ignore_accessed_variables; /* watch only what ed_watch names */
} ed_tape_options;

/* A tape that records from now on, in this thread, until it is stopped, consumed or released. */
#define ed_tape_begin(...) ed_tape_begin_with(&(ed_tape_options){__VA_ARGS__})
ed_tape *ed_tape_begin_with(const ed_tape_options *options);

/* Stops recording / goes on recording on the same tape. Both fail if that is so already. */
bool ed_tape_stop(ed_tape *tape);
bool ed_tape_resume(ed_tape *tape);

/* Forgets everything recorded and watched and goes on recording; fails if the tape doesn't record,
 * and inside a gradient function. */
bool ed_tape_reset(ed_tape *tape);

/* Watches a tensor or variable from here on; of a float dtype, or it fails; so does a plain number.
 * Returns x. */
ed_tensor *ed_watch(ed_tape *tape, ed_tensor *x);

/* The variables watched so far, in the order in which they were made; a
 * consumed tape still knows. */
ed_list *ed_tape_watched_variables(const ed_tape *tape);

typedef struct ed_gradient_options {
    ed_list *output_gradients; /* what flows into each target: a number, or a tensor of its dtype
                                  that broadcasts to its shape; default ones */
    bool unconnected_zeros;    /* zeros, not NULL, for a source that does not lead to any target */
} ed_gradient_options;

/*
 * The gradient of the target with respect to the source: a tensor of the source's shape for one
 * source; a list, in the sources' order, for a list of sources. Several targets (a list) are
 * summed. A source may be any tensor that the tape saw, a target among them; given twice, it gets
 * its whole gradient twice. A variable's gradient is the sum over all its reads, whatever was
 * assigned between. NULL (in a list: a NULL entry) for a source that leads to no target, without an
 * error. A tape that is not persistent is consumed: it stops recording and gives up what it held,
 * bit by bit as it goes; asking it again fails. A persistent one that still records, records the
 * gradient too. Fails when the way from a source to the target passes an op that has no gradient
 * (the message names it), and for targets of other dtypes than floats. Arguments that are refused
 * don't consume the tape.
 */
#define ed_gradient(tape, target, source, ...)                                                     \
    _Generic((source), ed_list *                                                                   \
             : ed_gradient_list, default                                                           \
             : ed_gradient_tensor)(tape, ED_AS_LIST(target), source,                               \
                                   &(ed_gradient_options){__VA_ARGS__})
ed_tensor *ed_gradient_tensor(ed_tape *tape, ed_list *targets, ed_tensor *source,
                              const ed_gradient_options *options);
ed_list *ed_gradient_list(ed_tape *tape, ed_list *targets, ed_list *sources,
                          const ed_gradient_options *options);

/* Of a list itself, of a tensor a list of that one. */
#define ED_AS_LIST(x) _Generic((x), ed_list * : ed_list_itself, default : ed_list_of_one)(x)
ed_list *ed_list_itself(ed_list *list);
ed_list *ed_list_of_one(ed_tensor *tensor);

/* d target[i] / d source[j]: shape target.shape + source.shape; the tape must be persistent. NULL,
 * without an error, if unconnected. */
ed_tensor *ed_jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source);

/*
 * The same row by row, for target [batch, ...] whose row b depends on source [batch, ...]'s row b
 * alone: shape [batch] + target.shape[1:] + source.shape[1:]. Unconnected: zeros. The tape must be
 * persistent.
 */
ed_tensor *ed_batch_jacobian(ed_tape *tape, ed_tensor *target, ed_tensor *source);

/* A function of tensors, for what follows: returns a tensor; NULL, with an
 * error kept, on failure. */
typedef ed_tensor *(*ed_function)(ed_list *inputs, void *user);

/* The product of f's Hessian at the inputs with the vectors (of the inputs' shapes): a list; f
 * returns a scalar. */
ed_list *ed_hessian_vector_product(ed_function f, ed_list *inputs, ed_list *vectors, void *user);

/*
 * Custom gradient: returns f(inputs, user), and on the way back calls gradient with the inputs (the
 * variables' values of then), the output and what flows into it; it returns one gradient for each
 * input, NULL entries allowed. f's own ops are not recorded; gradient's are, by outer tapes. Fails
 * when f reads a trainable variable, or a tensor that a tape tracks, which is none of its inputs:
 * its gradient would be lost. user must live as long as the tape: release(user), if given, is
 * called once, when nobody needs it any more, also when the call fails.
 */
typedef ed_list *(*ed_gradient_function)(ed_list *inputs, ed_tensor *output, ed_tensor *dy,
                                         void *user);
ed_tensor *ed_custom_gradient(ed_function f, ed_gradient_function gradient, ed_list *inputs,
                              void *user, void (*release)(void *user));

/*
 * f(inputs, user) without keeping what happens inside: the way back runs f again, on the variables'
 * values of the first time and with the same random numbers, and leaves the variables as they were
 * (also those that f assigns, if it reads them). Memory for time. Variables and tracked tensors
 * that f reads beside its inputs get their gradient too. user and release as above.
 */
ed_tensor *ed_recompute(ed_function f, ed_list *inputs, void *user, void (*release)(void *user));

/* ---- The gradient checker -------------------------------------------------------------------- */

typedef struct ed_check_options {
    double step;       /* of the central difference, times max(1, |x|); default 6e-6 */
    double rtol, atol; /* default 1e-6 and 1e-8 */
    bool second_order; /* check the gradient's gradient too */
    int64_t limit; /* look at so many elements of each tensor, evenly spread; default 0: at all */
} ed_check_options;

/*
 * Compares the tape's gradients of f at the inputs (float64) with finite differences, element by
 * element of the Jacobian. true if all agree. *report, unless NULL, is a text (of the scope) that
 * names the worst element: which input and output element, both values, their difference. Inputs
 * of integers and bool are passed on as they are; other floats are refused. Choose inputs away from
 * kinks. When f fails, or returns anything but float64, the result is false and the error is kept.
 */
#define ed_check_gradient(f, inputs, user, report, ...)                                            \
    ED_WITH(ed_check_gradient_with(f, inputs, user, report, &ed_options_), ed_check_options,       \
            .step = 6e-6, .rtol = 1e-6, .atol = 1e-8, ##__VA_ARGS__)
bool ed_check_gradient_with(ed_function f, ed_list *inputs, void *user, const char **report,
                            const ed_check_options *options);

#pragma GCC visibility pop
#endif
