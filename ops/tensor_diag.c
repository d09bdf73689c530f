/*
 * Diagonals of tensors, y[i, j, i, j] = x[i, j], and the transpose of matrices: compositions.
 */
#include "ops/matrices.h"
#include "ops/ops.h"
#include <string.h>

/* ---- tensor_diag ----------------------------------------------------------------------------- */

static bool tensor_diag_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    const ed_ints shape = ed_shape(x);
    int64_t twice[ED_MAX_RANK];
    if (2 * shape.count > ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have at most rank %d, got %s",
                            ED_MAX_RANK / 2, text_of_ints(shape.values, shape.count).s);
    for (int d = 0; d < 2 * shape.count; d++) twice[d] = shape.values[d % shape.count];
    ed_tensor *y = ed_diag(ed_reshape(x, ED_INTS(ed_size(x))));
    return ed_call_result(call, 0, ed_reshape(y, (ed_ints){twice, 2 * shape.count}));
}

static bool tensor_diag_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    memset(y->data, 0, (size_t)y->size * sizeof(double));
    for (int64_t i = 0; i < x->size; i++)
        ((double *)y->data)[i * (x->size + 1)] = ((const double *)x->data)[i];
    return true;
}

ED_OP(tensor_diag) = {
    .name = "tensor_diag",
    .doc = "y[i, ..., i, ...] = x[i, ...], 0 elsewhere",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    .compose = tensor_diag_compose,
    .reference = tensor_diag_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3)}}, {.inputs = {ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *ed_tensor_diag(ed_tensor *x)
{
    return CALL_OP(tensor_diag, NULL, x);
}

/* ---- tensor_diag_part ------------------------------------------------------------------------ */

static bool tensor_diag_part_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    const ed_ints shape = ed_shape(x);
    const int half = shape.count / 2;
    int64_t n = 1;
    if (shape.count % 2 ||
        memcmp(shape.values, shape.values + half, (size_t)half * sizeof *shape.values) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the second half of x's axes must be as the first, got %s",
                            text_of_ints(shape.values, shape.count).s);
    for (int d = 0; d < half; d++) n *= shape.values[d];
    ed_tensor *y = ed_diag_part(ed_reshape(x, ED_INTS(n, n)));
    return ed_call_result(call, 0, ed_reshape(y, (ed_ints){shape.values, half}));
}

static bool tensor_diag_part_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    for (int64_t i = 0; i < y->size; i++)
        ((double *)y->data)[i] = ((const double *)x->data)[i * (y->size + 1)];
    return true;
}

ED_OP(tensor_diag_part) = {
    .name = "tensor_diag_part",
    .doc = "y[i, ...] = x[i, ..., i, ...]",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    .compose = tensor_diag_part_compose,
    .reference = tensor_diag_part_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 3)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2)}}),
};

ed_tensor *ed_tensor_diag_part(ed_tensor *x)
{
    return CALL_OP(tensor_diag_part, NULL, x);
}

/* ---- matrix_transpose ------------------------------------------------------------------------ */

static bool matrix_transpose_compose(ed_call *call)
{
    return matrix_check(call, 0) && ed_call_result(call, 0, matrix_transpose(call->inputs[0]));
}

static bool matrix_transpose_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    const int64_t m = matrix_rows(y), n = matrix_columns(y);
    for (int64_t e = 0; e < y->size; e++) {
        const int64_t from = (e / n / m * n + e % n) * m + e / n % m;
        ((double *)y->data)[e] = ((const double *)call->inputs[0]->data)[from];
    }
    return true;
}

ED_OP(matrix_transpose) = {
    .name = "matrix_transpose",
    .doc = "the last two axes change places",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    .compose = matrix_transpose_compose,
    .reference = matrix_transpose_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 2)}}),
};

ed_tensor *ed_matrix_transpose(ed_tensor *x)
{
    return CALL_OP(matrix_transpose, NULL, x);
}
