/*
 * What the functions of sparse tensors share. The public ones put parts together; what depends on
 * the values are internal ops of plain tensors, which the checks of ops see.
 */
#ifndef EDDY_OPS_SPARSES_H
#define EDDY_OPS_SPARSES_H

#include "ops/ops.h"
#include "ops/shape.h"

struct ed_sparse_tensor {
    ed_object object;
    ed_tensor *indices; /* int64 [n, rank], contiguous, within the shape */
    ed_tensor *values;  /* [n], as it was given, so that tapes know it */
    bool ordered;       /* entries are in row-major order and distinct */
    int rank;
    int64_t shape[ED_MAX_RANK];
};

/* Operands of the ops. */
#define SPARSE_INDICES(word)                                                                       \
    {                                                                                              \
        word, 1 << ED_INT64, .early = true                                                         \
    }

/* The attribute that all ops have, a field of their lists. */
#define SPARSE_SHAPE(FIELD, T)                                                                     \
    FIELD(T, INTS, dense_shape, ED_NO_LIST, ED_ANY, "of the sparse tensor")

/* ed_sparse_tensor_of, with errors in the name of a function. */
ed_sparse_tensor *sparse_new(const char *who, ed_tensor *indices, ed_tensor *values, ed_ints shape);

/* Fails unless there are 0 to ED_MAX_RANK sizes, none is negative, and there are fewer than 2^63
 * elements, sizes of 0 taken as 1. */
bool sparse_check_shape(const char *who, ed_ints shape);

/* Fails unless these are the parts of a sparse tensor, the indices being int64 and contiguous.
 * *ordered, unless NULL: whether they are in row-major order and distinct. */
bool sparse_check(const char *who, const ed_tensor *indices, const ed_tensor *values, ed_ints shape,
                  bool *ordered);

/* The same for the operands `first` and `first` + 1 of a composition; *indices, a new reference for
 * the scope, is contiguous. */
bool sparse_operands(const ed_call *call, int first, ed_ints shape, ed_tensor **indices,
                     bool *ordered);

static inline ed_ints sparse_shape_of(const ed_sparse_tensor *x)
{
    return (ed_ints){x->shape, x->rank};
}

/* Index d of entry i. */
static inline int64_t sparse_at(const ed_tensor *indices, int64_t i, int64_t d)
{
    return ((const int64_t *)indices->data)[i * indices->shape[1] + d];
}

/* A new int64 tensor of the scope, [n] or, with a rank, [n, rank]. NULL without memory. */
ed_tensor *sparse_integers(int64_t n, int rank);
static inline int64_t *sparse_data(ed_tensor *t)
{
    return (int64_t *)t->data;
}

/* The row-major numbers of the elements, int64 [n], in a tensor with the axes from `begin` to
 * `end` - 1. */
ed_tensor *sparse_numbers(const ed_tensor *indices, const int64_t *shape, int begin, int end);

/* The indices, int64 [n, rank], of the elements of these numbers. */
ed_tensor *sparse_indices_of(const ed_tensor *numbers, ed_ints shape);

/* Whether no number is less than the one before. */
bool sparse_ascends(const ed_tensor *numbers);

/* Numbers the different ones among the numbers, int64 [n]: for each which of them it is, int64 [n],
 * and how many there are. */
ed_tensor *sparse_groups(ed_tensor *numbers, int64_t *count);

/* A sparse tensor with these indices and the values of x at `order`. */
ed_sparse_tensor *sparse_taken(const char *who, const ed_sparse_tensor *x, ed_tensor *indices,
                               ed_tensor *order, ed_ints shape);

/* The entries of x that are chosen. */
ed_sparse_tensor *sparse_chosen(const char *who, const ed_sparse_tensor *x, const bool *chosen);

/* Whether both have the same shape and the same indices in the same order; else an error. */
bool sparse_check_alike(const char *who, const ed_sparse_tensor *a, const ed_sparse_tensor *b);

/* Indices and values in row-major order. */
ed_sparse_tensor *sparse_in_order(const char *who, ed_tensor *indices, ed_tensor *values,
                                  ed_ints shape);

/* For references: the number in row-major order of entry i, of indices in float64. */
int64_t sparse_plain_number(const ed_tensor *indices, ed_ints shape, int64_t i);

#endif
