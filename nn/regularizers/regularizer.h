/* The structure of regularizers: a kind is one function (norms.c). */
#ifndef EDDY_NN_REGULARIZER_H
#define EDDY_NN_REGULARIZER_H

#include "nn/nn.h"
#include "tensor/schema_core.h"

/* A kind of regularizer; the function gets a float tensor and gives a scalar. */
typedef struct regularizer_class {
    ed_kind kind;
    ed_tensor *(*function)(const void *options, ed_tensor *x);
} regularizer_class;

/* Creates a regularizer: kind.make of all kinds. */
void *regularizer_make(const ed_kind *kind, const void *options);

/* The definition of a kind from its list of options; the first `needed` are required arguments. The
 * body that follows is that of the function. */
#define REGULARIZER(symbol, SYMBOL, needed, text)                                                  \
    FUNCTION_KIND(regularizer, symbol, ED_REGULARIZER_##SYMBOL##_OPTIONS, needed, text,            \
                  ed_tensor *, ed_tensor *x)

#endif
