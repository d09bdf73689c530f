/*
 * Minimization of a whole loss, not of batches: L-BFGS with a line search.
 *
 *     static ed_tensor *loss(void *model)
 *     {
 *         return ed_reduce_mean(ed_square(ed_sub(ed_forward(model, x), y)));
 *     }
 *     ed_tensor *least = ed_lbfgs(loss, model, model, NULL, .max_iter = 100);
 */
#ifndef EDDY_OPTIM_LBFGS_H
#define EDDY_OPTIM_LBFGS_H

#include "optim/optim.h"

#pragma GCC visibility push(default)

/* The loss of the variables' present values, a float scalar; NULL, with an error, ends the
 * minimization. The same values must give the same loss: nothing random, no batches. */
typedef ed_tensor *(*ed_objective)(void *user);

/* Options of ed_lbfgs; names and defaults as in PyTorch, but for history_size (100 there) and
 * line_search (none there). */
#define ED_LBFGS_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, FLOAT, learning_rate, 1, ED_ABOVE(0), "first step tried in each iteration")           \
    FIELD(T, INT, max_iter, 20, ED_AT_LEAST(1), "most iterations")                                 \
    FIELD(T, INT, max_eval, 0, ED_AT_LEAST(0), "calls after which it ends; 0: 1.25 max_iter")      \
    FIELD(T, FLOAT, tolerance_grad, 1e-7, ED_AT_LEAST(0), "least of the largest |gradient|")       \
    FIELD(T, FLOAT, tolerance_change, 1e-9, ED_AT_LEAST(0), "least change of loss and variables")  \
    FIELD(T, INT, history_size, 10, ED_AT_LEAST(1), "steps that shape the next one")               \
    FIELD(T, CHOICE, line_search, "strong_wolfe", ED_ONE_OF("strong_wolfe", "none"),               \
          "how far to go; \"none\": learning_rate")
ED_OPTIONS(ed_lbfgs_options, ED_LBFGS_OPTIONS);

/* What ed_lbfgs did. */
typedef struct ed_lbfgs_report {
    int64_t iterations, evaluations; /* steps; calls of the loss */
    double loss, gradient;           /* at the end: the loss, the largest |gradient| */
    bool converged;                  /* a tolerance ended it */
} ed_lbfgs_report;

/*
 * Changes variables so that the loss becomes least, and returns that: a float64 scalar. `trained`
 * says which, as for ed_minimize: a layer, a list, one variable, or NULL, those that the loss's
 * first call uses. max_eval is looked at after each iteration, in which a line search may call the
 * loss 25 times. *report, unless report is NULL, is filled also on failure. Constraints of
 * variables are not applied. The history of steps ends with the call; it takes 16 bytes times
 * history_size for each element. Fails as the loss does, or if it is no float scalar, if there are
 * no variables, if the first loss is not finite, or after ed_interrupt; the variables are then
 * those of the last step that was finished. Nocedal and Wright, Numerical Optimization, 2006,
 * chapters 3 and 7.
 */
ed_tensor *ed_lbfgs_with(ed_objective loss, void *user, void *trained, ed_lbfgs_report *report,
                         const ed_lbfgs_options *options);
#define ed_lbfgs(loss, user, trained, report, ...)                                                 \
    ED_WITH_OPTIONS(ed_lbfgs_with(loss, user, ED_TRAINED_(trained), report, &ed_options_),         \
                    ED_LBFGS_OPTIONS, ed_lbfgs_options,                                            \
                    __VA_ARGS__ ED_OPTIONAL_(0, ##__VA_ARGS__))

#pragma GCC visibility pop
#endif
