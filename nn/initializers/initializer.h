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
    ed_generator *generator; /* for the distributions below; NULL: the process's */
} initializer_draw;

/* A kind of initializer; `draw` gets a shape and dtype that were checked. */
typedef struct initializer_class {
    ed_kind kind;
    ed_tensor *(*draw)(const void *options, initializer_draw d);
} initializer_class;

/* Creates an initializer: kind.make of all kinds. */
void *initializer_make(const ed_kind *kind, const void *options);

/*
 * The definition of a kind from its list of options in nn.h; the first `needed` are required
 * arguments. The body that follows is that of draw(options, d), options being a <symbol>_options.
 */
#define INITIALIZER(symbol, SYMBOL, needed, text)                                                  \
    typedef ed_initializer_##symbol##_options symbol##_options;                                    \
    static ed_tensor *symbol##_draw(const void *options, initializer_draw d);                      \
    ED_SCHEMA(symbol, ED_INITIALIZER_##SYMBOL##_OPTIONS, symbol##_options);                        \
    static const initializer_class symbol##_class = {                                              \
        .kind = SCHEMA_KIND(initializer, symbol, text, needed, initializer_make),                  \
        .draw = symbol##_draw};                                                                    \
    SCHEMA_KIND_END(initializer, symbol)                                                           \
    static ed_tensor *symbol##_draw(const void *options, initializer_draw d)

/* ---- Distributions --------------------------------------------------------------------------- */

/* Uniform in [low, high); normal; normal, truncated at 2 standard deviations, stddev being that
 * before truncation. */
ed_tensor *initializer_uniform(initializer_draw d, double low, double high);
ed_tensor *initializer_normal(initializer_draw d, double mean, double stddev);
ed_tensor *initializer_truncated(initializer_draw d, double mean, double stddev);

#endif
