/*
 * Optimizers, which update variables, with the formulas and defaults of Keras; gradient clipping.
 *
 *     ed_optimizer *adam = ed_optimizer_adam(.learning_rate = 0.01);
 *     ed_tape *tape = ed_tape_begin();
 *     ed_tensor *loss = ...;
 *     ed_minimize(adam, tape, loss, model);
 *
 * Variables are float32 or float64. A variable is updated in place; if a tape or a view still holds
 * its old value, it gets a new buffer. Options are named and checked as those of layers (nn/nn.h).
 */
#ifndef EDDY_OPTIM_H
#define EDDY_OPTIM_H

#include "autodiff/autodiff.h"
#include "optim/constraints.h"
#include "optim/schedules.h"
#include "tensor/schema.h"

#pragma GCC visibility push(default)

/* A rule for updating variables, and its slots for them. */
typedef struct ed_optimizer ed_optimizer;

/*
 * Options of all optimizers. In the formulas: w the variable, g its gradient after clipping, lr the
 * learning rate, t the number of the step (1, 2, ...), products without a sign.
 *
 * At most one kind of clipping may be given (0: none): clipnorm limits the 2-norm of each gradient,
 * clipvalue each element to -clipvalue..clipvalue, global_clipnorm the 2-norm of all gradients
 * together. Weight decay is decoupled (AdamW): w -= w weight_decay lr before the step.
 *
 * A gradient of indexed slices (ed_indexed_slices), as an embedding's, costs what its slices touch
 * where that is the same: in SGD without momentum and weight decay. Otherwise it means zeros
 * elsewhere, for which slots decay and variables move; with `lazy` these stay as they are, as in
 * TensorFlow's LazyAdam.
 */
#define ED_OPTIMIZER_COMMON(FIELD, T, rate)                                                        \
    FIELD(T, FLOAT, learning_rate, rate, ED_AT_LEAST(0), "step size")                              \
    FIELD(T, FLOAT, weight_decay, 0, ED_AT_LEAST(0),                                               \
          "w -= w weight_decay learning_rate before each step")                                    \
    FIELD(T, FLOAT, clipnorm, 0, ED_BETWEEN(0, __builtin_inf()),                                   \
          "maximum 2-norm of each gradient")                                                       \
    FIELD(T, FLOAT, clipvalue, 0, ED_BETWEEN(0, __builtin_inf()),                                  \
          "maximum absolute value of an element")                                                  \
    FIELD(T, FLOAT, global_clipnorm, 0, ED_BETWEEN(0, __builtin_inf()),                            \
          "maximum 2-norm of all gradients together")                                              \
    FIELD(T, BOOL, lazy, false, ED_ANY, "what indexed slices leave out stays as it is")

/* Gradient descent: w -= lr g. With momentum: v = momentum v - lr g; w += v; with nesterov: w +=
 * momentum v - lr g. Slot: momentum (v). */
#define ED_OPTIMIZER_SGD_OPTIONS(FIELD, T)                                                         \
    ED_OPTIMIZER_COMMON(FIELD, T, 0.01)                                                            \
    FIELD(T, FLOAT, momentum, 0, ED_BETWEEN(0, 1), "decay of the velocity; 0: none")               \
    FIELD(T, BOOL, nesterov, false, ED_ANY, "Nesterov momentum")
ED_KIND(optimizer, sgd, ED_OPTIMIZER_SGD_OPTIONS);

/*
 * Adam: m += (g - m)(1 - beta_1); v += (g^2 - v)(1 - beta_2); w -= alpha m / (sqrt(v) + epsilon)
 * with alpha = lr sqrt(1 - beta_2^t) / (1 - beta_1^t). With amsgrad, the maximum of v over all
 * steps is used in place of v. Kingma and Ba, 2015.
 */
#define ED_OPTIMIZER_ADAM_OPTIONS(FIELD, T)                                                        \
    ED_OPTIMIZER_COMMON(FIELD, T, 0.001)                                                           \
    FIELD(T, FLOAT, beta_1, 0.9, ED_FROM(0, 1), "decay of the mean of gradients, m")               \
    FIELD(T, FLOAT, beta_2, 0.999, ED_FROM(0, 1), "decay of the mean of squares, v")               \
    FIELD(T, FLOAT, epsilon, 1e-7, ED_AT_LEAST(0), "added to sqrt(v)")                             \
    FIELD(T, BOOL, amsgrad, false, ED_ANY, "use the maximum of v over all steps")
ED_KIND(optimizer, adam, ED_OPTIMIZER_ADAM_OPTIONS);

/* RMSprop: s = rho s + (1 - rho) g^2; step = lr g / sqrt(s + epsilon); w -= step. With momentum:
 * b = momentum b + step; w -= b. Centered: a = rho a + (1 - rho) g, and s - a^2 in place of s. */
#define ED_OPTIMIZER_RMSPROP_OPTIONS(FIELD, T)                                                     \
    ED_OPTIMIZER_COMMON(FIELD, T, 0.001)                                                           \
    FIELD(T, FLOAT, rho, 0.9, ED_BETWEEN(0, 1), "decay of the mean of squares, s")                 \
    FIELD(T, FLOAT, momentum, 0, ED_BETWEEN(0, 1), "decay of the steps before; 0: none")           \
    FIELD(T, FLOAT, epsilon, 1e-7, ED_AT_LEAST(0), "added to s under the root")                    \
    FIELD(T, BOOL, centered, false, ED_ANY, "divide by the estimated variance, s - a^2")
ED_KIND(optimizer, rmsprop, ED_OPTIMIZER_RMSPROP_OPTIONS);

/*
 * One step: gradient i belongs to variable i; a NULL gradient leaves its variable unchanged. Slots
 * are created at a variable's first step. Fails if the lists differ in length, a gradient differs
 * from its variable in shape or dtype, a variable is listed twice, or all gradients are NULL; then
 * nothing has changed.
 */
bool ed_apply_gradients(ed_optimizer *optimizer, ed_list *gradients, ed_list *variables);

/*
 * ed_gradient of the loss, then ed_apply_gradients. `trained` says what is trained: a layer (its
 * trainable variables), a list of variables, one variable, or NULL (the variables that the tape
 * watched). A layer's variables are looked up during the call, so the loss may be computed in its
 * argument, even if that builds the layer. Consumes the tape unless it is persistent. Fails as
 * those two functions do; then the variables are unchanged.
 */
bool ed_minimize(ed_optimizer *optimizer, ed_tape *tape, ed_tensor *loss, void *trained);
#define ed_minimize(optimizer, tape, loss, trained)                                                \
    ED_AT(ed_minimize(optimizer, tape, loss, ED_TRAINED_(trained)))

/* clang-format off */
#define ED_TRAINED_(trained)                                                                       \
    _Generic((trained), struct ed_layer *: (trained), ed_list *: (trained),                        \
        ed_tensor *: (trained), void *: (trained))
/* clang-format on */

/* The number of steps so far; 0, with an error, for NULL. */
int64_t ed_optimizer_iterations(const ed_optimizer *optimizer);

/* The present learning rate; 0, with an error, for NULL. */
double ed_optimizer_learning_rate(const ed_optimizer *optimizer);

/* Sets the learning rate from the next step on; fails unless it is finite and not negative. */
bool ed_optimizer_set_learning_rate(ed_optimizer *optimizer, double learning_rate);

/* The slot variables (not trainable), in Keras' order, named <variable's name>_<slot> with each '/'
 * replaced by '_': "mlp_dense_kernel_momentum". A new list. */
ed_list *ed_optimizer_variables(const ed_optimizer *optimizer);

/* t clip_norm / max(norm, clip_norm), where norm is the 2-norm of all elements; a new tensor,
 * finite for norm 0. Float32 or float64; clip_norm > 0. */
ed_tensor *ed_clip_by_norm(ed_tensor *t, double clip_norm);

/*
 * A new list of each tensor times clip_norm / max(norm, clip_norm), where norm is the 2-norm of all
 * elements of all tensors; NULL entries remain NULL. If norm is not finite, all elements become
 * NaN. *global_norm, unless global_norm is NULL, is set to norm, a 0-d tensor.
 */
ed_list *ed_clip_by_global_norm(ed_list *list, double clip_norm, ed_tensor **global_norm);

#pragma GCC visibility pop

/* The macros, made from the lines ED_KIND by tools/kinds.sh. */
#include "optim/kinds.h"

#endif
