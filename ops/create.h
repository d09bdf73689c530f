/* Making tensors. ops.h says what holds for all. */
#ifndef EDDY_OPS_CREATE_H
#define EDDY_OPS_CREATE_H

#include "ops/op.h"
#include "tensor/tensor.h"

#pragma GCC visibility push(default)

/* Options of ed_zeros, ed_ones and ed_linspace. */
#define ED_CREATE_OPTIONS(FIELD, T) FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
ED_OPTIONS(ed_create_options, ED_CREATE_OPTIONS);

/* All 0 / all 1, of any dtype. */
ed_tensor *ed_zeros_with(ed_ints shape, const ed_create_options *options);
ed_tensor *ed_ones_with(ed_ints shape, const ed_create_options *options);

/* All `value`, a number or a tensor of rank 0. */
#define ED_FULL_OPTIONS(FIELD, T)                                                                  \
    FIELD(T, DTYPE, dtype, ED_DTYPE_NONE, ED_ANY, "default: the value's; of a C number float32")
ED_OPTIONS(ed_full_options, ED_FULL_OPTIONS);
ed_tensor *ed_full_with(ed_ints shape, ed_tensor_like *value, const ed_full_options *options);

/* Zeros / ones of x's shape and dtype. */
ed_tensor *ed_zeros_like(ed_tensor_like *x);
ed_tensor *ed_ones_like(ed_tensor_like *x);

/* The identity [rows, columns] (columns: default rows), ones on the diagonal. */
#define ED_EYE_OPTIONS(FIELD, T)                                                                   \
    FIELD(T, INT, columns, -1, ED_AT_LEAST(-1), "default, -1: as many as rows")                    \
    FIELD(T, DTYPE, dtype, ED_FLOAT32, ED_ANY, "of the result")
ED_OPTIONS(ed_eye_options, ED_EYE_OPTIONS);
ed_tensor *ed_eye_with(int64_t rows, const ed_eye_options *options);

/*
 * start, start + delta, ... up to but without limit, as many as ceil((limit - start) / delta).
 * Default dtype: if all three are integers, int32 or (up to 2^53) int64; else float32. Fails for
 * delta 0, NaN, or more elements than memory holds.
 */
#define ED_RANGE_OPTIONS(FIELD, T)                                                                 \
    FIELD(T, FLOAT, delta, 1, ED_FINITE, "from each number to the next; not 0")                    \
    FIELD(T, DTYPE, dtype, ED_DTYPE_NONE, ED_ANY,                                                  \
          "default: int32 or int64 if all three are integers, else float32")
ED_OPTIONS(ed_range_options, ED_RANGE_OPTIONS);
ed_tensor *ed_range_with(double start, double limit, const ed_range_options *options);

/* num evenly spaced numbers from start to stop, both included; float32 or float64. num 0 gives an
 * empty tensor. */
ed_tensor *ed_linspace_with(double start, double stop, int64_t num,
                            const ed_create_options *options);

/*
 * Points skip + 1, ... skip + num_results of the Sobol sequence in dim dimensions, which fill the
 * unit cube more evenly than random ones: [num_results, dim], float32 or float64. TensorFlow's
 * numbers, made with the direction numbers of Joe and Kuo (2008). At most 1867 dimensions, and
 * 2^31 - 1 points.
 */
#define ED_SOBOL_SAMPLE_OPTIONS(FIELD, T)                                                          \
    FIELD(T, INT, skip, 0, ED_AT_LEAST(0), "points that are left out first")                       \
    ED_CREATE_OPTIONS(FIELD, T)
ED_OPTIONS(ed_sobol_sample_options, ED_SOBOL_SAMPLE_OPTIONS);
ed_tensor *ed_sobol_sample_with(int64_t dim, int64_t num_results,
                                const ed_sobol_sample_options *options);

#pragma GCC visibility pop
#endif
