/*
 * What conv2d's forward pass and its two gradients, all products of matrices, have in common: how
 * images lie in memory, the axes of a plane of results, and work for threads.
 */
#ifndef EDDY_OPS_CONV_GEMM_H
#define EDDY_OPS_CONV_GEMM_H

#include "ops/conv.h"
#include "ops/kernels/gemm_piece.h"
#include <math.h>

/* Bytes from one image, row, cell or channel of a cell to the next. */
typedef struct conv_layout {
    int64_t image, row, cell, channel;
} conv_layout;

/* A convolution and how it is computed. */
typedef struct conv {
    window w;
    bool wide;
    int64_t size, in, out; /* bytes of an element; channels of the group at work */
    int64_t all_in, all_out, groups;
    conv_layout in_images, out_images;
    char *x, *k, *y;
    int64_t tile, panel;   /* columns of the register tile, and their bytes */
    int64_t panels, depth; /* of the packed kernel: panels, and steps in each */
    char *packed;
    const char *bias; /* of the group, or NULL; once the kernel is packed, of whole panels */
    bool relu;
    size_t lines; /* bytes of scratch for a band's lines; 0: x is read where it lies */
} conv;

static inline int64_t conv_min(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static inline int64_t conv_max(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* Quotients rounded up and down, for y > 0. */
static inline int64_t conv_ceil(int64_t x, int64_t y)
{
    return x >= 0 ? (x + y - 1) / y : -(-x / y);
}

static inline int64_t conv_floor(int64_t x, int64_t y)
{
    return -conv_ceil(-x, y);
}

/* A call, its operands being those of group 0; then those of group i. */
conv conv_begin(const conv_call *call);
conv conv_group(const conv *all, int64_t i);

/* The convolution from y to x that the gradient of the input is where strides are 1, with the
 * kernel turned by 180 degrees: c's k, packed or not, is not turned here. */
conv conv_turned(const conv *c);

/* Runs each group by itself. */
bool conv_each_group(const conv *all, bool (*run)(conv c));

/* How many of `units` pieces of work a thread takes at a time: all if a second one doesn't pay. */
int64_t conv_grain(const conv *c, int64_t units);

/* Rows a band has, if images have so many. */
int64_t conv_band_rows(const conv *c, int64_t rows);

/* The gradient of a group's input of few channels, see conv_fold.c. */
bool conv_gradient_input_folded(conv c);

/* Decides whether x is read from lines, see conv_lines.c. Returns the rows of outputs that a band
 * then has, `rows` or fewer. */
int64_t conv_lines_begin(conv *c, int64_t rows);

/* Copies what output rows [begin, end) read to `to`, rows of padding left out. Returns the
 * convolution of that. */
conv conv_lines(const conv *c, int64_t image, int64_t begin, int64_t end, char *to);

/* Whether the kernel, of all groups, has no inf and no NaN. */
bool conv_kernel_is_finite(const conv *c);

/* Where conv_winograd.c is used: EDDY_WINOGRAD=0 in the environment says nowhere; tests say. */
typedef enum {
    CONV_WINOGRAD_NEVER,
    CONV_WINOGRAD_WHERE_FASTER,
    CONV_WINOGRAD_ALWAYS, /* wherever it can be */
} conv_winograd_use;
void conv_winograd_set(conv_winograd_use to);

/*
 * The error of a result that conv_winograd computes is at most so many times 2^-24, for float64
 * 2^-53, of the sum over n channels of (the sum of |x| over the 4x4 cells of its tile) (the sum of
 * |kernel| over its taps); x being dy where dx is computed. Of the kernel's gradient: of the sum
 * over n tiles of (the sum of |x| over 4x4 cells) (the sum of |dy| over 2x2). Numbers of very
 * different sizes come near it, as they do when windows are summed directly; others stay below 2.
 */
static inline double conv_winograd_bound(int64_t n)
{
    return 4 + sqrt((double)n) / 4;
}

/* Whether conv_winograd is to compute the forward pass or, `back`, the gradient of the input; the
 * kernel's gradient as the forward pass. */
bool conv_winograd_suits(const conv *c, bool back);

/* Computes it. marks[image][2 d rows], d being the dilation, becomes 1 where one of the results may
 * be wrong, because a number near them is inf or NaN. */
bool conv_winograd(const conv *c, bool back, char *marks);

/* Computes the gradient of the kernel; `finite` says whether it is. If not, it may be wrong. */
bool conv_winograd_kernel(const conv *c, bool *finite);

/* A window of one cell that visits every cell, without padding. */
bool conv_is_pointwise(const window *w);

/* For a pointwise one: each image as one row. */
void conv_flatten(conv *c);

/* Whether each image's channels are the last axis. */
static inline bool conv_channels_last(const conv *c)
{
    return c->in_images.channel == c->size && c->out_images.channel == c->size;
}

/* The error of a size that cannot be said. */
bool conv_too_large(void);

/* Scratch of each thread that works: two lists of `entries` numbers, then `more` bytes. */
typedef struct conv_crew {
    int count;
    size_t each;
    char *scratch;
} conv_crew;
bool conv_crew_open(conv_crew *crew, int64_t entries, size_t more);

static inline void *conv_crew_scratch(const conv_crew *crew, int worker)
{
    return crew->scratch + crew->each * (size_t)worker;
}

/*
 * One axis of a class of results: position t < positions takes tap q < taps, which is kernel index
 * `index + q index_step`, from source cell `base + q base_step + t step`, if that is one of the
 * `limit` cells there are.
 */
typedef struct conv_axis {
    int64_t positions, step, limit;
    int64_t taps, index, index_step, base, base_step;
} conv_axis;

/* Of the convolution along axis d. */
conv_axis conv_axis_forward(const window *w, int d);

/* Image cells phase, phase + stride, ..., whose taps are those by which an output reads them. */
conv_axis conv_axis_backward(const window *w, int d, int64_t phase);

/* The taps *begin <= q < *end that position t has. */
void conv_axis_clip(const conv_axis *a, int64_t t, int64_t *begin, int64_t *end);

/* The positions *begin <= t < *end that have all taps. */
void conv_axis_interior(const conv_axis *a, int64_t *begin, int64_t *end);

#endif
