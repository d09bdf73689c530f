/* bitcast: the same bytes as elements of another dtype. */
#include "ops/execute.h"
#include "ops/ops.h"
#include <string.h>

#define BITCAST_ATTRS(FIELD, T) FIELD(T, DTYPE, dtype, ED_INT32, ED_ANY, "of the result")
ED_OPTIONS(bitcast_attrs, BITCAST_ATTRS);

/* The plan is x's dtype: the reference gets x in float64. */
static bool bitcast_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const ed_dtype to = ((const bitcast_attrs *)call->attrs)->dtype;
    int64_t shape[ED_MAX_RANK + 1];
    int rank = x->rank;
    if (to <= ED_DTYPE_NONE || to >= ED_DTYPE_COUNT || to == ED_BOOL)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "dtype must be that of numbers, which bool is not");
    const size_t from_size = dtype_size(x->dtype), to_size = dtype_size(to);
    const int64_t ratio =
        (int64_t)(from_size > to_size ? from_size / to_size : to_size / from_size);
    memcpy(shape, x->shape, (size_t)rank * sizeof *shape);
    if (from_size > to_size) {
        if (rank == ED_MAX_RANK)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "x must have rank < %d for a smaller dtype, got %s", ED_MAX_RANK,
                                text_of_tensor(x).s);
        shape[rank++] = ratio;
    } else if (from_size < to_size) {
        if (rank == 0 || shape[rank - 1] != ratio)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "x is %s; for %s its last dimension must be %lld",
                                text_of_tensor(x).s, ed_dtype_name(to), (long long)ratio);
        rank--;
    }
    *(ed_dtype *)ed_call_plan(call, sizeof(ed_dtype)) = x->dtype;
    return ed_call_output(call, 0, to, rank, shape);
}

static bool bitcast_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    if (x->size) memcpy(call->outputs[0]->data, x->data, (size_t)x->size * dtype_size(x->dtype));
    return true;
}

/* Byte by byte, an element of the result at a time. */
static bool bitcast_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const ed_dtype from = *(const ed_dtype *)call->plan;
    const ed_dtype to = ((const bitcast_attrs *)call->attrs)->dtype;
    const size_t from_size = dtype_size(from), to_size = dtype_size(to);
    for (int64_t i = 0; i < y->size; i++) {
        char bytes[sizeof(double)], element[sizeof(double)];
        for (size_t k = 0; k < to_size; k++) {
            const size_t at = (size_t)i * to_size + k;
            dtype_store(from, element, 0, ((const double *)x->data)[at / from_size]);
            bytes[k] = element[at % from_size];
        }
        ((double *)y->data)[i] = dtype_load(to, bytes, 0);
    }
    return true;
}

#define TO(type) .attrs = ED_ATTRS(BITCAST_ATTRS, bitcast_attrs, .dtype = type)

ED_OP(bitcast) = {
    .name = "bitcast",
    .doc = "the same bytes as elements of another dtype",
    .operands = {{"x", ED_SET_ALL & ~ED_SET_BOOL, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(BITCAST_ATTRS, bitcast_attrs),
    .infer = bitcast_infer,
    .batch = ed_batch_first,
    .kernel = bitcast_kernel,
    .no_gradient = "bits don't change gradually",
    .reference = bitcast_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}, TO(ED_UINT8)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 2)}, TO(ED_INT64)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 5)}, TO(ED_INT32)}),
};

ed_tensor *ed_bitcast(ed_tensor *x, ed_dtype dtype)
{
    return CALL_OP(bitcast, ED_ATTRS(BITCAST_ATTRS, bitcast_attrs, .dtype = dtype), x);
}
