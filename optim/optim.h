/*
 * How variables are updated: optimizers with Keras' formulas and defaults, and clipping. An update
 * of all variables is one pass over memory. A variable whose value somebody else holds (a
 * tape, a view) gets a fresh buffer; others are updated in place.
 */
#ifndef EDDY_OPTIM_H
#define EDDY_OPTIM_H

#include "autodiff/autodiff.h"

#pragma GCC visibility push(default)

typedef struct ed_optimizer ed_optimizer;

/* At most one of the three kinds of clipping; 0 means none. */
typedef struct ed_clipping {
    double value;       /* each element into -value..value */
    double norm;        /* each gradient to a 2-norm of at most that */
    double global_norm; /* all gradients together to a 2-norm of at most that */
} ed_clipping;

/* v = momentum v - lr g; w += v; nesterov: w += momentum v - lr g. Without momentum: w -= lr g. */
typedef struct ed_optimizer_sgd_options {
    double learning_rate; /* default 0.01 */
    double momentum;      /* default 0 */
    bool nesterov;
    double weight_decay; /* w -= w weight_decay lr first; default 0 */
    ed_clipping clip;
} ed_optimizer_sgd_options;
#define ed_optimizer_sgd(...)                                                                      \
    ED_WITH(ed_optimizer_sgd_with(&ed_options_), ed_optimizer_sgd_options, .learning_rate = 0.01,  \
            ##__VA_ARGS__)
ed_optimizer *ed_optimizer_sgd_with(const ed_optimizer_sgd_options *options);

/*
 * m += (g - m)(1 - beta_1); v += (g^2 - v)(1 - beta_2); w -= alpha m / (sqrt(v) + epsilon), alpha =
 * lr sqrt(1 - beta_2^t) / (1 - beta_1^t); amsgrad: the largest v so far in place of v.
 */
typedef struct ed_optimizer_adam_options {
    double learning_rate, beta_1, beta_2, epsilon; /* default 0.001, 0.9, 0.999, 1e-7 */
    bool amsgrad;
    double weight_decay;
    ed_clipping clip;
} ed_optimizer_adam_options;
#define ed_optimizer_adam(...)                                                                     \
    ED_WITH(ed_optimizer_adam_with(&ed_options_), ed_optimizer_adam_options,                       \
            .learning_rate = 0.001, .beta_1 = 0.9, .beta_2 = 0.999, .epsilon = 1e-7,               \
            ##__VA_ARGS__)
ed_optimizer *ed_optimizer_adam_with(const ed_optimizer_adam_options *options);

/* s = rho s + (1 - rho) g^2; step = lr g / sqrt(d + epsilon), d = s or, centered, s - (mean of
 * g)^2; with momentum b = momentum b + step; w -= b. */
typedef struct ed_optimizer_rmsprop_options {
    double learning_rate, rho, momentum, epsilon; /* default 0.001, 0.9, 0, 1e-7 */
    bool centered;
    double weight_decay;
    ed_clipping clip;
} ed_optimizer_rmsprop_options;
#define ed_optimizer_rmsprop(...)                                                                  \
    ED_WITH(ed_optimizer_rmsprop_with(&ed_options_), ed_optimizer_rmsprop_options,                 \
            .learning_rate = 0.001, .rho = 0.9, .epsilon = 1e-7, ##__VA_ARGS__)
ed_optimizer *ed_optimizer_rmsprop_with(const ed_optimizer_rmsprop_options *options);

/*
 * One step: gradients and variables in the same order; a NULL gradient leaves its variable alone.
 * Slots are made at a variable's first step. Fails if lists differ in length, a gradient differs
 * from its variable in shape or dtype, a variable comes twice, or all gradients are NULL; then
 * nothing has changed.
 */
bool ed_apply_gradients(ed_optimizer *optimizer, ed_list *gradients, ed_list *variables);

/* ed_gradient of the loss on the tape, then ed_apply_gradients. */
bool ed_minimize(ed_optimizer *optimizer, ed_tape *tape, ed_tensor *loss, ed_list *variables);

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
