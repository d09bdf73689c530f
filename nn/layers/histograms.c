#include "nn/layers/augment.h"
#include "ops/ops.h"

/*
 * equalization, contrast_limited_adaptive_histogram_equalization. How many values are at most i,
 * for each i, is found in the sorted values: no table of all values times all bins is made.
 */

static const augment_range bytes = {0, 255};

static const double sample_range[] = {-1, 1};

/* How many of the values [..., n], from 0 to bins - 1, are at most 0, 1, ... bins - 1. */
static ed_tensor *cumulative(ed_tensor *values, int64_t bins)
{
    int64_t shape[ED_MAX_RANK];
    if (!values) return NULL;
    const ed_ints sizes = {shape, values->rank};
    for (int i = 0; i < values->rank; i++) shape[i] = values->shape[i];
    shape[values->rank - 1] = bins;
    ed_tensor *all = ed_broadcast_to(ed_range(0, bins, .dtype = ED_INT32), sizes);
    return ed_searchsorted(ed_sort(ed_cast(values, ED_INT32)), all, .side = "right");
}

/* ---- equalization ---------------------------------------------------------------------------- */

static bool equalization_init(ed_layer *layer)
{
    const ed_layer_equalization_options *o = layer_options(layer);
    return augment_values(layer, o->value_range, ed_layer_state(layer));
}

/* The new value of each bin, [channels, bins], of the old values' bins [channels, n]. */
static ed_tensor *lookup_table(ed_tensor *places, int64_t bins, ed_dtype dtype)
{
    ed_tensor *counts = cumulative(places, bins);
    if (!counts) return NULL;
    ed_tensor *none = ed_equal(counts, 0);
    ed_tensor *least = ed_reduce_min(ed_where(none, places->shape[1], counts), .axis = ED_AXES(-1),
                                     .keepdims = true);
    ed_tensor *others = ed_sub(places->shape[1], least);
    ed_tensor *divisor = ed_maximum(others, 1);
    ed_tensor *table =
        ed_div(ed_cast(ed_mul(ed_sub(counts, least), 255), dtype), ed_cast(divisor, dtype));
    return ed_clip(ed_round(table), 0, 255);
}

static ed_tensor *equalized(ed_tensor *x, int64_t bins)
{
    const int64_t channels = x->shape[x->rank - 1], n = channels ? x->size / channels : 0;
    if (!n) return x;
    ed_tensor *rows = ed_transpose(ed_reshape(x, ED_SHAPE(n, channels)));
    ed_tensor *counted = ed_clip(ed_div(ed_mul(rows, (double)(bins - 1)), 255.0), 0, bins - 1.0);
    ed_tensor *table = lookup_table(ed_floor(counted), bins, x->dtype);
    ed_tensor *at = ed_clip(ed_mul(ed_div(rows, 255.0), (double)(bins - 1)), 0, bins - 1.0);
    ed_tensor *y = ed_gather(table, ed_cast(at, ED_INT32), .axis = 1, .batch_dims = 1);
    ed_tensor *first = ed_floor(counted);
    ed_tensor *flat = ed_equal(ed_reduce_min(first, .axis = ED_AXES(-1), .keepdims = true),
                               ed_reduce_max(first, .axis = ED_AXES(-1), .keepdims = true));
    y = ed_transpose(ed_where(flat, rows, y));
    return y ? ed_reshape(y, ((ed_ints){x->shape, x->rank})) : NULL;
}

static bool equalization_forward(ed_layer *layer, ed_layer_call *call)
{
    const ed_layer_equalization_options *o = layer_options(layer);
    const augment_range *values = ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (!call->training) return ed_layer_return(call, x);
    ed_tensor *y = augment_in_range(x, *values, bytes);
    y = y ? equalized(y, o->bins) : NULL;
    return ed_layer_return(call, y ? augment_in_range(y, bytes, *values) : NULL);
}

LAYER(equalization, EQUALIZATION, 0, "in training all values of pixels become equally frequent",
      .state_size = sizeof(augment_range), .init = equalization_init,
      .forward = equalization_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(equalization, EQUALIZATION, .bins = 4,
                                                   .value_range = {sample_range, 2}),
                                .inputs = {{4, {2, 2, 3, 2}}},
                                .n_inputs = 1}))

/* ---- contrast_limited_adaptive_histogram_equalization ---------------------------------------- */

typedef ed_layer_contrast_limited_adaptive_histogram_equalization_options clahe_options;

typedef struct tiles {
    augment_range values;
    int64_t count[2], size[2]; /* along height and width; the size in pixels */
} tiles;

static bool clahe_init(ed_layer *layer)
{
    const clahe_options *o = layer_options(layer);
    tiles *t = ed_layer_state(layer);
    const ed_ints grid = o->tile_grid_size;
    if (grid.values && grid.count != 2)
        return layer_fail(layer, ED_INVALID_ARGUMENT, "tile_grid_size must be 2 numbers, got %lld",
                          (long long)grid.count);
    for (int i = 0; i < 2; i++) t->count[i] = grid.values ? grid.values[i] : 8;
    return augment_values(layer, o->value_range, &t->values);
}

/* The new value of each of 256 old ones, for each tile and channel: [batch, tiles, tiles, channels,
 * 256]. */
static ed_tensor *tile_tables(const tiles *t, ed_tensor *x, double clip_limit)
{
    const int64_t batch = x->shape[0], channels = x->shape[3], n = t->size[0] * t->size[1];
    ed_tensor *parts =
        ed_reshape(x, ED_SHAPE(batch, t->count[0], t->size[0], t->count[1], t->size[1], channels));
    parts = ed_transpose(parts, .perm = ED_AXES(0, 1, 3, 5, 2, 4));
    parts = ed_reshape(parts, ED_SHAPE(batch, t->count[0], t->count[1], channels, n));
    ed_tensor *counts = parts ? ed_cast(cumulative(ed_clip(parts, 0, 255), 256), x->dtype) : NULL;
    if (counts && clip_limit > 0) {
        const double limit = clip_limit * (double)n / 256;
        ed_tensor *before =
            ed_slice(counts, .begin = ED_INTS(0, 0, 0, 0, 0),
                     .end = ED_INTS(batch, t->count[0], t->count[1], channels, 255));
        before = ed_pad(before, .before = ED_INTS(0, 0, 0, 0, 1));
        ed_tensor *each = ed_sub(counts, before), *clipped = ed_clip(each, 0, limit);
        ed_tensor *more =
            ed_reduce_sum(ed_sub(each, clipped), .axis = ED_AXES(-1), .keepdims = true);
        counts = ed_cumsum(ed_add(clipped, ed_div(more, 256.0)), .axis = -1);
    }
    ed_tensor *least = ed_reduce_min(counts, .axis = ED_AXES(-1), .keepdims = true);
    ed_tensor *width = ed_sub((double)n, least);
    width = ed_where(ed_equal(width, 0.0), 1.0, width);
    return ed_clip(ed_div(ed_mul(ed_sub(counts, least), 255.0), width), 0, 255);
}

/* The tiles before and behind each pixel along an axis, int32 [n], and the share of the latter. */
static ed_tensor *tiles_around(int64_t n, int64_t size, int64_t count, ed_dtype dtype,
                               ed_tensor *tile[2])
{
    ed_tensor *at = ed_div(ed_sub(ed_range(0, n, .dtype = dtype), (double)size / 2), (double)size);
    ed_tensor *first = ed_floor(at);
    for (int i = 0; i < 2; i++)
        tile[i] = ed_cast(ed_clip(ed_add(first, (double)i), 0, (double)(count - 1)), ED_INT32);
    return ed_sub(at, first);
}

/* The new values by the tables of the tiles [height], [width]. */
static ed_tensor *looked_up(ed_tensor *tables, ed_tensor *pixels, ed_tensor *row, ed_tensor *column)
{
    const int64_t batch = pixels->shape[0], h = pixels->shape[1], w = pixels->shape[2],
                  channels = pixels->shape[3], across = tables->shape[2];
    ed_tensor *tile = ed_add(ed_mul(ed_reshape(row, ED_SHAPE(1, h, 1, 1)), (int32_t)across),
                             ed_reshape(column, ED_SHAPE(1, 1, w, 1)));
    ed_tensor *place =
        ed_add(ed_mul(tile, (int32_t)channels), ed_range(0, channels, .dtype = ED_INT32));
    place = ed_add(ed_mul(place, 256), pixels);
    ed_tensor *all = ed_reshape(tables, ED_SHAPE(batch, tables->size / (batch ? batch : 1)));
    ed_tensor *y = ed_gather(all, ed_reshape(place, ED_SHAPE(batch, h * w * channels)), .axis = 1,
                             .batch_dims = 1);
    return ed_reshape(y, ED_SHAPE(batch, h, w, channels));
}

static ed_tensor *mixed(ed_tensor *a, ed_tensor *b, ed_tensor *share)
{
    return ed_add(ed_mul(a, ed_sub(1.0, share)), ed_mul(b, share));
}

static ed_tensor *tile_by_tile(tiles *t, ed_tensor *x, double clip_limit)
{
    const int64_t h = x->shape[1], w = x->shape[2];
    for (int i = 0; i < 2; i++)
        t->size[i] = x->shape[1 + i] / t->count[i] + (x->shape[1 + i] % t->count[i] > 0);
    const int64_t below = t->size[0] * t->count[0] - h, right = t->size[1] * t->count[1] - w;
    if (below > h || right > w)
        return ed_fail(ED_INVALID_ARGUMENT, "clahe: %lld x %lld tiles are too many for %s",
                       (long long)t->count[0], (long long)t->count[1], text_of_tensor(x).s);
    x = ed_pad(x, .after = ED_INTS(0, below, right, 0), .mode = "SYMMETRIC");
    if (!x) return NULL;
    ed_tensor *tables = tile_tables(t, x, clip_limit), *rows[2], *columns[2];
    ed_tensor *down = tiles_around(x->shape[1], t->size[0], t->count[0], x->dtype, rows);
    ed_tensor *across = tiles_around(x->shape[2], t->size[1], t->count[1], x->dtype, columns);
    ed_tensor *pixels = ed_cast(ed_clip(x, 0, 255), ED_INT32);
    if (!tables || !down || !across || !pixels) return NULL;
    across = ed_reshape(across, ED_SHAPE(1, 1, x->shape[2], 1));
    down = ed_reshape(down, ED_SHAPE(1, x->shape[1], 1, 1));
    ed_tensor *y[2];
    for (int i = 0; i < 2; i++)
        y[i] = mixed(looked_up(tables, pixels, rows[i], columns[0]),
                     looked_up(tables, pixels, rows[i], columns[1]), across);
    return ed_slice(mixed(y[0], y[1], down), .begin = ED_INTS(0, 0, 0, 0),
                    .end = ED_INTS(x->shape[0], h, w, x->shape[3]));
}

static bool clahe_forward(ed_layer *layer, ed_layer_call *call)
{
    const clahe_options *o = layer_options(layer);
    tiles t = *(const tiles *)ed_layer_state(layer);
    ed_tensor *x = call->inputs[0];
    if (!augment_accepts(layer, x)) return false;
    if (x->size == 0) return ed_layer_return(call, x);
    ed_tensor *y = augment_in_range(x, t.values, bytes);
    y = y ? augment_batch(y) : NULL;
    y = y ? augment_like(tile_by_tile(&t, y, o->clip_limit), x) : NULL;
    return ed_layer_return(call, y ? augment_in_range(y, bytes, t.values) : NULL);
}

LAYER(contrast_limited_adaptive_histogram_equalization,
      CONTRAST_LIMITED_ADAPTIVE_HISTOGRAM_EQUALIZATION, 0,
      "the values of pixels in each tile become equally frequent, up to a limit",
      .kind.short_name = "clahe", .state_size = sizeof(tiles), .init = clahe_init,
      .forward = clahe_forward,
      .samples = LAYER_SAMPLES({.options = OPTIONS(contrast_limited_adaptive_histogram_equalization,
                                                   CONTRAST_LIMITED_ADAPTIVE_HISTOGRAM_EQUALIZATION,
                                                   .tile_grid_size = ED_SAMPLE_INTS(2, 2),
                                                   .value_range = {sample_range, 2}),
                                .inputs = {{4, {2, 3, 5, 2}}},
                                .n_inputs = 1}))
