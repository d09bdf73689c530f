#include "nn/layer_core.h"
#include "ops/ops.h"
#include <string.h>

typedef struct spectral {
    ed_layer *inner;     /* the child */
    ed_tensor *kernel;   /* the child's */
    ed_tensor *vector_u; /* the layer's */
} spectral;

static bool spectral_normalization_init(ed_layer *layer)
{
    const ed_layer_spectral_normalization_options *o = layer_options(layer);
    spectral *s = ed_layer_state(layer);
    if (!o->layer)
        return ed_fail(ED_INVALID_ARGUMENT, "spectral_normalization: layer is not given");
    return (s->inner = ed_layer_add_child(layer, o->layer));
}

/* The child's weight that is divided; NULL, with an error, if it has none. */
static ed_tensor *find_kernel(const ed_layer *layer, const ed_layer *inner)
{
    for (int64_t i = 0; i < inner->n_weights; i++) {
        const char *name = layer_leaf(inner->weights[i]);
        if (!strcmp(name, "kernel") || !strcmp(name, "embeddings")) return inner->weights[i];
    }
    return layer_fail(layer, ED_INVALID_ARGUMENT, "%s has no weight 'kernel' or 'embeddings'",
                      ed_layer_name(inner));
}

static bool spectral_normalization_build(ed_layer *layer, const ed_layer_call *call)
{
    spectral *s = ed_layer_state(layer);
    const ed_tensor *x = call->inputs[0];
    if (!s->inner->built && !ed_layer_build(s->inner, ed_shape(x), .dtype = x->dtype)) return false;
    if (!(s->kernel = find_kernel(layer, s->inner))) return false;
    ed_initializer *draws = ed_initializer_truncated_normal(.stddev = 0.02);
    s->vector_u =
        ed_layer_add_weight(layer, "vector_u", ED_SHAPE(1, ed_dim(s->kernel, -1)),
                            .dtype = s->kernel->dtype, .initializer = draws, .trainable = false);
    return s->vector_u;
}

/* x as a unit vector; of zeros it is zeros. */
static ed_tensor *unit(ed_tensor *x)
{
    return ed_l2_normalize(x, .epsilon = 1e-14);
}

/* Divides the kernel by its norm and keeps u. A kernel of zeros stays. */
static bool divide(const spectral *s, int64_t power_iterations)
{
    ED_SCOPE;
    ed_tensor *w = ed_stop_gradient(ed_value(s->kernel)), *u = ed_value(s->vector_u), *v = NULL;
    ed_tensor *matrix = ed_reshape(w, ED_SHAPE(-1, ed_dim(w, -1)));
    for (int64_t i = 0; i < power_iterations; i++) {
        v = unit(ed_matmul(u, matrix, .transpose_b = true));
        u = unit(ed_matmul(v, matrix));
    }
    ed_tensor *sigma = ed_matmul(ed_matmul(v, matrix), u, .transpose_b = true);
    ed_tensor *divided = ed_div(w, ed_reshape(sigma, ED_SHAPE()));
    ed_tensor *some = ed_reduce_any(ed_not_equal(w, 0.0));
    if (!divided || !some) return false;
    if (!*(const bool *)ed_data(some)) return true;
    return ed_assign(s->kernel, divided) && ed_assign(s->vector_u, u);
}

static bool spectral_normalization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_spectral_normalization_options *o = layer_options(layer);
    const spectral *s = ed_layer_state(layer);
    if (call->training && !divide(s, o->power_iterations)) return false;
    ed_layer_call inner = {
        .n_inputs = 1, .inputs = call->inputs, .masks = call->masks, .training = call->training};
    bool ok = layer_call(s->inner, &inner);
    for (int i = 0; ok && i < inner.n_outputs; i++) {
        ok = ed_layer_return(call, inner.outputs[i]);
        if (ok && inner.output_masks[i]) ok = ed_layer_return_mask(call, i, inner.output_masks[i]);
    }
    layer_call_end(&inner);
    return ok;
}

LAYER(spectral_normalization, SPECTRAL_NORMALIZATION, 1,
      "a layer whose kernel is divided by its spectral norm in training",
      .state_size = sizeof(spectral), .init = spectral_normalization_init,
      .build = spectral_normalization_build, .forward = spectral_normalization_forward,
      .track = layer_track_inner)
