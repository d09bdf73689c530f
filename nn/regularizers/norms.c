#include "nn/regularizers/regularizer.h"
#include "ops/ops.h"
#include <string.h>

static ed_tensor *sum_abs(ed_tensor *x, double factor)
{
    return ed_mul(ed_reduce_sum(ed_abs(x)), factor);
}

static ed_tensor *sum_squares(ed_tensor *x, double factor)
{
    return ed_mul(ed_reduce_sum_square(x), factor);
}

REGULARIZER(l1, L1, 0, "l1 sum(|x|)")
{
    return sum_abs(x, ((const l1_options *)options)->l1);
}

REGULARIZER(l2, L2, 0, "l2 sum(x^2)")
{
    return sum_squares(x, ((const l2_options *)options)->l2);
}

REGULARIZER(l1_l2, L1_L2, 0, "l1 sum(|x|) + l2 sum(x^2)")
{
    const l1_l2_options *o = options;
    return ed_add(sum_abs(x, o->l1), sum_squares(x, o->l2));
}

REGULARIZER(orthogonal, ORTHOGONAL, 0, "mean product of different rows or columns")
{
    const orthogonal_options *o = options;
    if (x->rank != 2)
        return ed_fail(ED_INVALID_ARGUMENT, "orthogonal: x must be a matrix, got %s",
                       text_of_tensor(x).s);
    const bool rows = !strcmp(o->mode, "rows");
    const int64_t n = x->shape[rows ? 0 : 1];
    ed_tensor *unit = ed_l2_normalize(x, .axis = ED_AXES(rows ? 1 : 0), .epsilon = 1e-14);
    ed_tensor *products = ed_matmul(unit, unit, .transpose_a = !rows, .transpose_b = rows);
    ed_tensor *others = ed_sub(1.0, ed_eye(n, .dtype = x->dtype));
    const double pairs = n > 1 ? (double)n * ((double)n - 1) / 2 : 1;
    return ed_mul(ed_reduce_sum(ed_abs(ed_mul(products, others))), o->factor * 0.5 / pairs);
}
