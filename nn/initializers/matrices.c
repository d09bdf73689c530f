#include "nn/initializers/initializer.h"

/* Q of the QR decomposition of normal numbers, its columns with the signs that make R's diagonal
 * positive: so each orthogonal matrix is as likely as any other. */
INITIALIZER(orthogonal, ORTHOGONAL, 0, "an orthogonal matrix")
{
    const orthogonal_options *o = options;
    if (d.shape.count < 2)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "orthogonal: the rank of shape must be at least 2, got %lld",
                       (long long)d.shape.count);
    int64_t rows = 1;
    for (int64_t i = 0; i < d.shape.count - 1; i++) rows *= d.shape.values[i];
    const int64_t columns = d.shape.values[d.shape.count - 1];
    const bool wide = rows < columns;
    const int64_t flat[] = {wide ? columns : rows, wide ? rows : columns};
    const ed_ints shape = d.shape;
    d.shape = (ed_ints){flat, 2};
    d.seed = o->seed;
    d.generator = o->generator;
    ed_tensor *r, *q = ed_qr(initializer_normal(d, 0, 1), &r);
    if (!q) return NULL;
    ed_tensor *signs =
        ed_sub(ed_mul(ed_cast(ed_greater_equal(ed_diag_part(r), 0.0), d.dtype), 2.0), 1.0);
    q = ed_mul(q, signs);
    return ed_mul(ed_reshape(wide ? ed_transpose(q) : q, shape), o->gain);
}

INITIALIZER(identity, IDENTITY, 0, "the identity matrix")
{
    const identity_options *o = options;
    if (d.shape.count != 2)
        return ed_fail(ED_INVALID_ARGUMENT, "identity: the rank of shape must be 2, got %lld",
                       (long long)d.shape.count);
    return ed_mul(ed_eye(d.shape.values[0], .columns = d.shape.values[1], .dtype = d.dtype),
                  o->gain);
}
