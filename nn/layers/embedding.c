#include "nn/layer_core.h"
#include "ops/ops.h"

/* ---- Embedding ------------------------------------------------------------------------------- */

static bool is_integer(ed_dtype dtype)
{
    return dtype != ED_BOOL && !ed_dtype_is_float(dtype);
}

static bool embedding_accepts(const ed_layer *layer, const ed_tensor *x)
{
    if (is_integer(x->dtype)) return true;
    return layer_fail(layer, ED_INVALID_ARGUMENT,
                      "the input must be integers, the numbers of rows, got %s (ed_cast converts)",
                      text_of_tensor(x).s);
}

static bool embedding_build(ed_layer *layer, const ed_layer_call *call)
{
    const ed_layer_embedding_options *o = layer_options(layer);
    if (!embedding_accepts(layer, call->inputs[0])) return false;
    return ed_layer_add_weight(
        layer, "embeddings", ED_SHAPE(o->input_dim, o->output_dim),
        .dtype = o->dtype ? o->dtype : ED_FLOAT32,
        .initializer = o->embeddings_initializer ?: ed_initializer_random_uniform(),
        .regularizer = o->embeddings_regularizer, .constraint = o->embeddings_constraint);
}

static bool embedding_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_embedding_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (!embedding_accepts(layer, x)) return false;
    if (x->dtype != ED_INT32 && x->dtype != ED_INT64) x = ed_cast(x, ED_INT32);
    if (!x || !ed_layer_return(call, ed_gather(layer->weights[0], x))) return false;
    return !o->mask_zero || ed_layer_return_mask(call, 0, ed_not_equal(x, 0));
}

LAYER(embedding, EMBEDDING, 2, "rows of a table by their number: [...] to [..., output_dim]",
      .build = embedding_build, .forward = embedding_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(embedding, EMBEDDING, .input_dim = 5,
                                                   .output_dim = 3, .dtype = ED_FLOAT64),
                                .inputs = {{2, {2, 4}, .below = 5}},
                                .n_inputs = 1},
                               {.options = OPTIONS(embedding, EMBEDDING, .input_dim = 4,
                                                   .output_dim = 2, .mask_zero = true,
                                                   .dtype = ED_FLOAT64),
                                .inputs = {{1, {6}, .below = 4}},
                                .n_inputs = 1}))

/* ---- Masking --------------------------------------------------------------------------------- */

static bool masking_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_masking_options *o = layer_options(layer);
    ed_tensor *x = call->inputs[0];
    if (x->rank < 2 || x->dtype == ED_BOOL)
        return layer_fail(layer, ED_INVALID_ARGUMENT,
                          "the input must be numbers of rank >= 2, [batch, ..., features], got %s",
                          text_of_tensor(x).s);
    ed_tensor *keep =
        ed_reduce_any(ed_not_equal(x, o->mask_value), .axis = ED_AXES(-1), .keepdims = true);
    return ed_layer_return(call, ed_where(keep, x, 0)) &&
           ed_layer_return_mask(call, 0, ed_squeeze(keep, .axis = ED_AXES(-1)));
}

LAYER(masking, MASKING, 0, "steps whose features are all mask_value are 0 and masked",
      .forward = masking_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(masking, MASKING, .mask_value = 2),
                                .inputs = {{3, {2, 3, 4}}},
                                .n_inputs = 1}))
