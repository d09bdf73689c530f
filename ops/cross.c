/* cross: a composition that broadcasts, and an op for vectors of one shape. */
#include "ops/ops.h"
#include "ops/shape.h"
#include "tensor/threads.h"
#include "tensor/typed.h"

/* The first n vectors: y = a x b. Integers wrap around. */
#define CROSS(type, wraps)                                                                         \
    static void cross_##type(int64_t n, const void *x, const void *z, void *to)                    \
    {                                                                                              \
        typedef number_##type number;                                                              \
        const number *restrict a = x, *restrict b = z;                                             \
        number *restrict y = to;                                                                   \
        for (int64_t i = 0; i < 3 * n; i += 3) {                                                   \
            const wraps a0 = (wraps)a[i], a1 = (wraps)a[i + 1], a2 = (wraps)a[i + 2];              \
            const wraps b0 = (wraps)b[i], b1 = (wraps)b[i + 1], b2 = (wraps)b[i + 2];              \
            y[i] = (number)(a1 * b2 - a2 * b1);                                                    \
            y[i + 1] = (number)(a2 * b0 - a0 * b2);                                                \
            y[i + 2] = (number)(a0 * b1 - a1 * b0);                                                \
        }                                                                                          \
    }
CROSS(f32, float)
CROSS(f64, double)
CROSS(i32, uint32_t)
CROSS(i64, uint64_t)
CROSS(u8, uint32_t)

static void cross_range(int64_t first, int64_t last, int worker, void *user)
{
    static void (*const loops[ED_DTYPE_COUNT])(int64_t, const void *, const void *, void *) = {
        [ED_FLOAT32] = cross_f32, [ED_FLOAT64] = cross_f64, [ED_INT32] = cross_i32,
        [ED_INT64] = cross_i64,   [ED_UINT8] = cross_u8,
    };
    const ed_call *call = user;
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0];
    const int64_t at = first * 3 * (int64_t)dtype_size(y->dtype);
    (void)worker;
    loops[y->dtype](last - first, a->data + at, b->data + at, y->data + at);
}

static bool vectors_kernel(ed_call *call)
{
    threads_run(call->outputs[0]->size / 3, OPS_PARALLEL_WORK / 3 + 1, cross_range, call);
    return true;
}

static bool mismatch(const ed_call *call)
{
    return ed_call_fail(call, ED_INVALID_ARGUMENT,
                        "the last axes must have size 3: a is %s, b is %s",
                        text_of_tensor(call->inputs[0]).s, text_of_tensor(call->inputs[1]).s);
}

static bool vectors_infer(ed_call *call)
{
    const ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    bool same = a->rank == b->rank && a->rank > 0 && a->shape[a->rank - 1] == 3;
    for (int d = 0; same && d < a->rank; d++) same = a->shape[d] == b->shape[d];
    return same ? ops_infer_like(call) : mismatch(call);
}

/* cross: da = b x dy, db = dy x a */
static bool vectors_gradient(const ed_gradient_call *g)
{
    if (g->needs[0]) g->dx[0] = ed_cross(g->inputs[1], g->dy[0]);
    if (g->needs[1]) g->dx[1] = ed_cross(g->dy[0], g->inputs[0]);
    return true;
}

/* The operand without the axis of the calls is broadcast. */
static ed_list *vectors_batch(const ed_batch_call *call)
{
    ed_tensor *x[2];
    for (int i = 0; i < 2; i++) x[i] = call->batches[i] ? call->batches[i] : call->inputs[i];
    return ed_batch_result(ed_cross(x[0], x[1]));
}

static bool cross_reference(const ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    for (int64_t e = 0; e < y->size; e++) {
        const double *a = (const double *)call->inputs[0]->data + e / 3 * 3;
        const double *b = (const double *)call->inputs[1]->data + e / 3 * 3;
        const int64_t i = (e + 1) % 3, j = (e + 2) % 3;
        ((double *)y->data)[e] = a[i] * b[j] - a[j] * b[i];
    }
    return true;
}

#define VECTORS                                                                                    \
    ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-2, 2, 3)}},                       \
               {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3), ED_SAMPLE_IN(-2, 2, 2, 3)}})

ED_OP(cross_vectors) = {
    .name = "cross_vectors",
    .doc = "cross products of vectors of one shape",
    .operands = {{"a", ED_SET_NUMBER, 'T', .saved = true},
                 {"b", ED_SET_NUMBER, 'T', .saved = true}},
    .flags = ED_OP_INTERNAL | ED_OP_CONTIGUOUS,
    .infer = vectors_infer,
    .batch = vectors_batch,
    .kernel = vectors_kernel,
    .gradient = vectors_gradient,
    .reference = cross_reference,
    .samples = VECTORS,
};

static bool cross_compose(ed_call *call)
{
    ed_tensor *a = call->inputs[0], *b = call->inputs[1];
    if (ed_rank(a) < 1 || ed_rank(b) < 1 || ed_dim(a, -1) != 3 || ed_dim(b, -1) != 3)
        return mismatch(call);
    int rank;
    int64_t extents[ED_MAX_RANK];
    if (!ops_broadcast(ed_rank(a), ed_shape(a).values, ed_rank(b), ed_shape(b).values, &rank,
                       extents))
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "a %s and b %s don't broadcast",
                            text_of_tensor(a).s, text_of_tensor(b).s);
    const ed_ints shape = {extents, rank};
    a = ed_broadcast_to(a, shape);
    b = ed_broadcast_to(b, shape);
    return ed_call_result(call, 0, CALL_OP(cross_vectors, NULL, a, b));
}

ED_OP(cross) = {
    .name = "cross",
    .doc = "cross products of vectors of three elements",
    .operands = {{"a", ED_SET_NUMBER, 'T'}, {"b", ED_SET_NUMBER, 'T'}},
    .compose = cross_compose,
    .reference = cross_reference,
    .samples = VECTORS,
};

ed_tensor *ed_cross(ed_tensor *a, ed_tensor *b)
{
    return CALL_OP(cross, NULL, a, b);
}
