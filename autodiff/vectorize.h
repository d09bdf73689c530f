/*
 * A function of slices, called once for all of them.
 *
 * The function is called with stand-ins: hollow tensors of the shape of a slice. What ops make of
 * them is noted, and no kernel runs. Then the notes are gone through in order, each call with the
 * values for all slices, by the batch function of its op (ops/op.h). The ops that do this are heard
 * by tapes, so gradients flow through the results.
 *
 * A function that reads elements, or that does with the stand-ins what can't be noted, can't be
 * called so; its errors are dropped, and the caller has to call it slice by slice.
 */
#ifndef EDDY_AUTODIFF_VECTORIZE_H
#define EDDY_AUTODIFF_VECTORIZE_H

#include "ops/execute.h"

typedef struct vectorized vectorized;

/* Begins to note; errors are silent until vectorized_stop. Belongs to the scope: one that is left
 * by longjmp ends it. NULL on failure. */
vectorized *vectorized_begin(int64_t n);

/* What stands for a slice of all [n, ...]; belongs to the scope, NULL on failure. */
ed_tensor *vectorized_slice(vectorized *v, ed_tensor *all);

/* Stops noting. Whether all went well; if not, the errors since the beginning are dropped, unless
 * memory was missing. */
bool vectorized_stop(vectorized *v);

/* The values of the results for all slices, [n, ...] each, those that are NULL being NULL: a list
 * of the scope, NULL with an error on failure. Once, after vectorized_stop. */
ed_list *vectorized_run(vectorized *v, const ed_list *results);

#endif
