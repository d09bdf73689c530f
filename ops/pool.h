/*
 * Largest and mean values of windows over images: what max_pool.c and avg_pool.c, the ops, share
 * with pool.simd.c, the loops.
 */
#ifndef EDDY_OPS_POOL_H
#define EDDY_OPS_POOL_H

#include "ops/convolution.h"
#include "ops/window.h"

/* pooled is the windows' values, image and x images. Of equal cells the first is the largest, and a
 * NaN is larger than any number. */
typedef enum pool_kind {
    POOL_MAX,          /* pooled = the largest cell of x */
    POOL_MAX_SCATTER,  /* image = the sum of what lies where x has its largest cell: of pooled */
    POOL_MAX_GATHER,   /* pooled = the cell of image where x has its largest; 0 without cells */
    POOL_MEAN,         /* pooled = the mean of the cells of x; 0 without cells */
    POOL_MEAN_SCATTER, /* image = for each cell the sum of its windows' pooled / number of cells */
    POOL_KINDS
} pool_kind;

/* Computes that for a call whose plan is the windows. The tensors are contiguous and of one dtype;
 * what a kind has no use for is NULL. */
void pool_run(const ed_call *call, pool_kind kind, const ed_tensor *x, const ed_tensor *image,
              const ed_tensor *pooled);

/* Attributes of avg_pool2d's gradient: the pooling's, and the images' shape. */
#define POOL_GRADIENT_ATTRS(FIELD, T)                                                              \
    ED_POOL2D_OPTIONS(FIELD, T)                                                                    \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_ANY, "of the images")
ED_OPTIONS(pool_gradient_attrs, POOL_GRADIENT_ATTRS);

/* A call's options; its attributes are those of pooling or of avg_pool2d's gradient. */
ed_pool2d_options pool_options(const void *attrs);

/* Whether the images of a call have their channels first. */
bool pool_channels_first(const ed_call *call);

/* The windows over images of that shape, which become the call's plan, and the shape of their
 * values. false with an error kept. */
bool pool_plan(ed_call *call, const int64_t *image, int64_t pooled[4]);

/* For a call with images as operand 0: the plan, and output 0 for the windows' values. */
bool pool_infer(ed_call *call);

/* Checks that operand 0 is images, that t has that shape. */
bool pool_is_images(const ed_call *call);
bool pool_same_shape(const ed_call *call, const char *name, const ed_tensor *t,
                     const int64_t *shape);

/* Samples of both. */
#define POOL_WITH(...) .attrs = ED_ATTRS(ED_POOL2D_OPTIONS, ed_pool2d_options, __VA_ARGS__)
#define POOL_SAMPLES(IN)                                                                           \
    ED_SAMPLES(                                                                                    \
        {.inputs = {IN(-2, 2, 2, 4, 6, 3)}},                                                       \
        {.inputs = {IN(-2, 2, 1, 5, 4, 2)}, POOL_WITH(.padding = "SAME")},                         \
        {.inputs = {IN(-2, 2, 1, 6, 5, 2)},                                                        \
         POOL_WITH(.window = ED_SAMPLE_INTS(3, 2), .strides = ED_SAMPLE_INTS(1, 2),                \
                   .padding = "SAME")},                                                            \
        {.inputs = {IN(-2, 2, 2, 5, 5, 1)},                                                        \
         POOL_WITH(.window = ED_SAMPLE_INTS(3, 3), .strides = ED_SAMPLE_INTS(2, 1))},              \
        {.inputs = {IN(-2, 2, 1, 2, 2, 2)}, POOL_WITH(.window = ED_SAMPLE_INTS(3, 3))},            \
        {.inputs = {IN(-2, 2, 1, 2, 7, 5)},                                                        \
         POOL_WITH(.window = ED_SAMPLE_INTS(2, 3), .strides = ED_SAMPLE_INTS(1),                   \
                   .dilations = ED_SAMPLE_INTS(2, 1), .padding = "EXPLICIT",                       \
                   .explicit_paddings = ED_SAMPLE_INTS(1, 0, 2, 1), .data_format = "NCHW")})

#endif
