#include "nn/layers/categories.h"
#include "ops/fingerprint.h"
#include "ops/ops.h"
#include <string.h>

/* hashing, hashed_crossing. */

bool categories_salt(const ed_layer *layer, ed_ints salt, int64_t *key)
{
    if (salt.values && salt.count != 1 && salt.count != 2)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "salt must be one integer or two, got %lld",
                          (long long)salt.count);
    for (int64_t i = 0; salt.values && i < 2; i++) key[i] = salt.values[i < salt.count ? i : 0];
    return true;
}

bool categories_one(const ed_layer *layer, const char *name, ed_ints value)
{
    return !value.values || value.count == 1 ||
           layer_fail(layer, ED_INVALID_ARGUMENT, "%s must be one integer, got %lld", name,
                      (long long)value.count);
}

/* ---- hashing --------------------------------------------------------------------------------- */

static bool hashing_init(ed_layer *layer)
{
    const ed_layer_hashing_options *o = layer_options(layer);
    return categories_one(layer, "mask_value", o->mask_value) &&
           categories_salt(layer, o->salt, ed_layer_state(layer));
}

static bool hashing_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_hashing_options *o = layer_options(layer);
    const int64_t *key = ed_layer_state(layer);
    if (call->inputs[0]->dtype == ED_BOOL)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "the input must be numbers, got %s",
                          text_of_tensor(call->inputs[0]).s);
    const bool masks = o->mask_value.values && o->num_bins > 1;
    ed_tensor *x = ed_cast(ed_stop_gradient(call->inputs[0]), ED_INT64);
    ed_tensor *y =
        x ? fingerprint_buckets(x, o->num_bins - masks, (ed_ints){o->salt.values ? key : NULL, 2})
          : NULL;
    if (y && masks) y = ed_where(ed_equal(x, o->mask_value.values[0]), 0, ed_add(y, 1));
    if (y && strcmp(o->output_mode, "int") != 0)
        y = categories_encoded(o->output_mode, y, o->num_bins, NULL, categories_dtype(layer));
    return ed_layer_return(call, y);
}

LAYER(hashing, HASHING, 1, "the number of the bin that integers are hashed to",
      .state_size = 2 * sizeof(int64_t), .init = hashing_init, .forward = hashing_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(hashing, HASHING, .num_bins = 4,
                                                   .output_mode = "one_hot", .dtype = ED_FLOAT64),
                                .inputs = {{2, {2, 3}, .below = 9}},
                                .n_inputs = 1},
                               {.options = OPTIONS(hashing, HASHING, .num_bins = 4,
                                                   .mask_value = ED_SAMPLE_INTS(3),
                                                   .salt = ED_SAMPLE_INTS(133),
                                                   .output_mode = "count", .dtype = ED_FLOAT64),
                                .inputs = {{2, {2, 3}, .below = 9}},
                                .n_inputs = 1}))

/* ---- hashed_crossing ------------------------------------------------------------------------- */

static bool hashed_crossing_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_hashed_crossing_options *o = layer_options(layer);
    const ed_tensor *first = call->inputs[0];
    if (first->rank > 2 || (first->rank == 2 && first->shape[1] != 1))
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the inputs must be scalars, [batch] or [batch, 1], got %s",
                          text_of_tensor(first).s);
    ed_tensor **inputs = ed_scope_alloc((size_t)call->n_inputs * sizeof *inputs);
    if (!inputs) return false;
    for (int i = 0; i < call->n_inputs; i++) {
        ed_tensor *x = call->inputs[i];
        if (x->dtype == ED_BOOL || ed_dtype_is_float(x->dtype))
            return layer_fail(layer, ED_INVALID_ARGUMENT, "the inputs must be integers, got %s",
                              text_of_tensor(x).s);
        if (!(inputs[i] = ed_cast(x, ED_INT64))) return false;
    }
    ed_tensor *y = fingerprint_cross(inputs, call->n_inputs, o->num_bins);
    if (y && strcmp(o->output_mode, "int") != 0)
        y = categories_encoded(o->output_mode, y, o->num_bins, NULL, categories_dtype(layer));
    return ed_layer_return(call, y);
}

LAYER(hashed_crossing, HASHED_CROSSING, 1, "the number of the bin that integers are hashed to",
      .min_inputs = 2, .max_inputs = -1, .forward = hashed_crossing_forward,
      .samples = LAYER_SAMPLES(
          {.options = OPTIONS(hashed_crossing, HASHED_CROSSING, .num_bins = 5,
                              .output_mode = "one_hot", .dtype = ED_FLOAT64),
           .inputs = {{1, {3}, .below = 9}, {1, {3}, .below = 5}},
           .n_inputs = 2},
          {.options = OPTIONS(hashed_crossing, HASHED_CROSSING, .num_bins = 3,
                              .output_mode = "one_hot", .dtype = ED_FLOAT64),
           .inputs = {{2, {3, 1}, .below = 9}, {2, {3, 1}, .below = 5}, {2, {3, 1}, .below = 2}},
           .n_inputs = 3}))
