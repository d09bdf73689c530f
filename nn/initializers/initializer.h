/*
 * The structure of initializers. A kind is one definition, alone in a file or with its kin
 * (initializer_constant.c has the shortest):
 *
 *     INITIALIZER(ones, ONES, 0, "all 1")
 *     {
 *         (void)options;
 *         return ed_ones(d.shape, .dtype = d.dtype);
 *     }
 *
 * The rest is common to all, in initializer.c: creation, checks, distributions.
 */
#ifndef EDDY_NN_INITIALIZER_H
#define EDDY_NN_INITIALIZER_H

#include "nn/nn.h"
#include "ops/ops.h"
#include "tensor/schema_core.h"

/* The tensor that is asked for. */
typedef struct initializer_draw {
    ed_ints shape;
    ed_dtype dtype;
    int64_t seed;            /* for the distributions below; -1: the generator */
    ed_generator *generator; /* NULL: the process's */
} initializer_draw;

/* A kind of initializer; the function gets a shape and dtype that were checked. */
typedef struct initializer_class {
    ed_kind kind;
    ed_tensor *(*function)(const void *options, initializer_draw d);
} initializer_class;

/* Creates an initializer: kind.make of all kinds. */
void *initializer_make(const ed_kind *kind, const void *options);

/* The definition of a kind from its list of options; the first `needed` are required arguments. The
 * body that follows is that of the function. */
#define INITIALIZER(symbol, SYMBOL, needed, text)                                                  \
    FUNCTION_KIND(initializer, symbol, ED_INITIALIZER_##SYMBOL##_OPTIONS, needed, text,            \
                  ed_tensor *, initializer_draw d)

/* ---- Distributions --------------------------------------------------------------------------- */

/* Uniform in [low, high); normal; normal, truncated at 2 standard deviations, stddev being that
 * before truncation. */
ed_tensor *initializer_uniform(initializer_draw d, double low, double high);
ed_tensor *initializer_normal(initializer_draw d, double mean, double stddev);
ed_tensor *initializer_truncated(initializer_draw d, double mean, double stddev);

#endif
