/* The structure of constraints: a kind is one function (constraints.c). */
#ifndef EDDY_OPTIM_CONSTRAINT_H
#define EDDY_OPTIM_CONSTRAINT_H

#include "optim/optim.h"
#include "tensor/schema_core.h"

/* A kind of constraint; the function gets a float tensor. */
typedef struct constraint_class {
    ed_kind kind;
    ed_tensor *(*function)(const void *options, ed_tensor *w);
} constraint_class;

/* Creates a constraint: kind.make of all kinds. */
void *constraint_make(const ed_kind *kind, const void *options);

/* The definition of a kind from its list of options; the first `needed` are required arguments. The
 * body that follows is that of the function. */
#define CONSTRAINT(symbol, SYMBOL, needed, text)                                                   \
    FUNCTION_KIND(constraint, symbol, ED_CONSTRAINT_##SYMBOL##_OPTIONS, needed, text, ed_tensor *, \
                  ed_tensor *w)

#endif
