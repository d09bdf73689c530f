/*
 * How variables are updated: optimizers with Keras' formulas and defaults, and clipping. An update
 * of all variables is one pass over memory. A variable whose value somebody else holds (a
 * tape, a view) gets a fresh buffer; others are updated in place.
 */
#ifndef EDDY_OPTIM_H
#define EDDY_OPTIM_H

#include "autodiff/autodiff.h"
#include "tensor/schema.h"

#pragma GCC visibility push(default)

typedef struct ed_optimizer ed_optimizer;

/*
 * What all optimizers have. Clipping is by at most one of the three: each gradient to a 2-norm of at
 * most clipnorm, each element into -clipvalue..clipvalue, or all gradients together to a 2-norm of at
 * most global_clipnorm; 0 means none.
 */
#define ED_OPTIMIZER_COMMON(FIELD, T, rate)                                                        \
    FIELD(T, FLOAT, learning_rate, rate, ED_AT_LEAST(0), "size of a step")                         \
    FIELD(T, FLOAT, weight_decay, 0, ED_AT_LEAST(0), "w -= w weight_decay learning_rate first")    \
    FIELD(T, FLOAT, clipnorm, 0, ED_BETWEEN(0, __builtin_inf()), "maximum norm of a gradient")     \
    FIELD(T, FLOAT, clipvalue, 0, ED_BETWEEN(0, __builtin_inf()), "maximum size of an element")    \
    FIELD(T, FLOAT, global_clipnorm, 0, ED_BETWEEN(0, __builtin_inf()), "maximum norm of all")

/* v = momentum v - lr g; w += v; nesterov: w += momentum v - lr g. Without momentum: w -= lr g. */
#define ED_OPTIMIZER_SGD_OPTIONS(FIELD, T)                                                         \
    ED_OPTIMIZER_COMMON(FIELD, T, 0.01)                                                            \
    FIELD(T, FLOAT, momentum, 0, ED_BETWEEN(0, 1), "share of the last step that goes on")          \
    FIELD(T, BOOL, nesterov, false, ED_ANY, "look ahead by the momentum")
ED_OPTIONS(ed_optimizer_sgd_options, ED_OPTIMIZER_SGD_OPTIONS);
#define ed_optimizer_sgd(...)                                                                      \
    ED_WITH_OPTIONS(ed_optimizer_sgd_with(&ed_options_), ED_OPTIMIZER_SGD_OPTIONS,                 \
                    ed_optimizer_sgd_options, __VA_ARGS__)
ed_optimizer *ed_optimizer_sgd_with(const ed_optimizer_sgd_options *options);

/*
 * m += (g - m)(1 - beta_1); v += (g^2 - v)(1 - beta_2); w -= alpha m / (sqrt(v) + epsilon), alpha =
 * lr sqrt(1 - beta_2^t) / (1 - beta_1^t); amsgrad: the maximum of all v so far in place of v.
 */
#define ED_OPTIMIZER_ADAM_OPTIONS(FIELD, T)                                                        \
    ED_OPTIMIZER_COMMON(FIELD, T, 0.001)                                                           \
    FIELD(T, FLOAT, beta_1, 0.9, ED_FROM(0, 1), "decay of the mean of gradients")                  \
    FIELD(T, FLOAT, beta_2, 0.999, ED_FROM(0, 1), "decay of the mean of their squares")            \
    FIELD(T, FLOAT, epsilon, 1e-7, ED_AT_LEAST(0), "added to the root")                            \
    FIELD(T, BOOL, amsgrad, false, ED_ANY, "divide by the maximum of v so far")
ED_OPTIONS(ed_optimizer_adam_options, ED_OPTIMIZER_ADAM_OPTIONS);
#define ed_optimizer_adam(...)                                                                     \
    ED_WITH_OPTIONS(ed_optimizer_adam_with(&ed_options_), ED_OPTIMIZER_ADAM_OPTIONS,               \
                    ed_optimizer_adam_options, __VA_ARGS__)
ed_optimizer *ed_optimizer_adam_with(const ed_optimizer_adam_options *options);

/* s = rho s + (1 - rho) g^2; step = lr g / sqrt(d + epsilon), d = s or, centered, s - (mean of
 * g)^2; with momentum b = momentum b + step; w -= b. */
#define ED_OPTIMIZER_RMSPROP_OPTIONS(FIELD, T)                                                     \
    ED_OPTIMIZER_COMMON(FIELD, T, 0.001)                                                           \
    FIELD(T, FLOAT, rho, 0.9, ED_BETWEEN(0, 1), "decay of the mean of squares")                    \
    FIELD(T, FLOAT, momentum, 0, ED_BETWEEN(0, 1), "share of the last step that goes on")          \
    FIELD(T, FLOAT, epsilon, 1e-7, ED_AT_LEAST(0), "added below the root")                         \
    FIELD(T, BOOL, centered, false, ED_ANY, "divide by the variance of gradients")
ED_OPTIONS(ed_optimizer_rmsprop_options, ED_OPTIMIZER_RMSPROP_OPTIONS);
#define ed_optimizer_rmsprop(...)                                                                  \
    ED_WITH_OPTIONS(ed_optimizer_rmsprop_with(&ed_options_), ED_OPTIMIZER_RMSPROP_OPTIONS,         \
                    ed_optimizer_rmsprop_options, __VA_ARGS__)
ed_optimizer *ed_optimizer_rmsprop_with(const ed_optimizer_rmsprop_options *options);

/*
 * One step: gradients and variables in the same order; a NULL gradient leaves its variable alone.
 * Slots are made at a variable's first step. Fails if lists differ in length, a gradient differs
 * from its variable in shape or dtype, a variable comes twice, or all gradients are NULL; then
 * nothing has changed.
 */
bool ed_apply_gradients(ed_optimizer *optimizer, ed_list *gradients, ed_list *variables);

/*
 * ed_gradient of the loss on the tape, then ed_apply_gradients to what is trained: a layer's
 * trainable variables, a list of variables, a variable, or (NULL) those that the tape watched. A
 * layer is looked into here, when the loss has been made, so one expression may do both.
 */
bool ed_minimize(ed_optimizer *optimizer, ed_tape *tape, ed_tensor *loss, void *trained);
#define ed_minimize(optimizer, tape, loss, trained)                                                \
    ed_minimize(optimizer, tape, loss, ED_TRAINED_(trained))

/* clang-format off */
#define ED_TRAINED_(trained)                                                                       \
    _Generic((trained), struct ed_layer *: (trained), ed_list *: (trained),                        \
        ed_tensor *: (trained), void *: (trained))
/* clang-format on */

/* The number of steps made; the learning rate, and setting it (finite, not negative). */
int64_t ed_optimizer_iterations(const ed_optimizer *optimizer);
double ed_optimizer_learning_rate(const ed_optimizer *optimizer);
bool ed_optimizer_set_learning_rate(ed_optimizer *optimizer, double learning_rate);

/* The optimizer's slot variables (not trainable), named <variable name with _ for />_<slot>, in
 * Keras' order. */
ed_list *ed_optimizer_variables(const ed_optimizer *optimizer);

/* t c / max(norm, c), norm over all elements; safe at 0. */
ed_tensor *ed_clip_by_norm(ed_tensor *t, double clip_norm);

/*
 * All tensors times c / max(global norm, c), the global norm being the root of the sum of all
 * squares; NULL entries pass. A norm that is not finite makes all NaN. *global_norm, unless NULL,
 * is given the norm (0-d).
 */
ed_list *ed_clip_by_global_norm(ed_list *list, double clip_norm, ed_tensor **global_norm);

#pragma GCC visibility pop
#endif
