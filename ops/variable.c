#include "ops/execute.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include <string.h>

/*
 * Variables that change by a value, and the end of a gradient's way. A variable that nobody else
 * holds changes in place: one pass over memory, no new tensor. One that is held (by a tape, a view)
 * becomes the sum in a buffer of its own, as any assignment does.
 */

/* v[i] += x[i], or -= x[i]; step 0: x[0] for all. v and x may be the same memory. Integers wrap
 * around. */
#define CHANGE(type)                                                                               \
    static void change_##type(type *v, const type *x, int64_t n, int step, bool less)              \
    {                                                                                              \
        if (less)                                                                                  \
            for (int64_t i = 0; i < n; i++) v[i] = (type)(v[i] - x[step ? i : 0]);                 \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) v[i] = (type)(v[i] + x[step ? i : 0]);                 \
    }
CHANGE(float)
CHANGE(double)
CHANGE(uint32_t)
CHANGE(uint64_t)
CHANGE(uint8_t)

static void change(ed_dtype dtype, void *v, const void *x, int64_t n, int step, bool less)
{
    switch (dtype) {
    case ED_FLOAT32: change_float(v, x, n, step, less); break;
    case ED_FLOAT64: change_double(v, x, n, step, less); break;
    case ED_INT32: change_uint32_t(v, x, n, step, less); break;
    case ED_INT64: change_uint64_t(v, x, n, step, less); break;
    default: change_uint8_t(v, x, n, step, less); break;
    }
}

/* The value as the variable's dtype, a tensor of one element or of the variable's shape,
 * contiguous; retained. NULL on failure. */
static ed_tensor *operand(const char *name, const ed_tensor *v, const ed_tensor *value)
{
    int rank;
    int64_t shape[ED_MAX_RANK];
    if (value->flags & TENSOR_WEAK) return number_as(value, v->dtype);
    if (value->dtype != v->dtype ||
        !ops_broadcast(v->rank, v->shape, value->rank, value->shape, &rank, shape) ||
        rank != v->rank || memcmp(shape, v->shape, (size_t)rank * sizeof *shape) != 0)
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: the variable %s is %s, the value %s, which doesn't broadcast to it",
                       name, ed_variable_name(v), text_of_tensor(v).s, text_of_tensor(value).s);
    if (value->size == 1 || value->size == v->size) return tensor_contiguous(value);
    ed_tensor *wide =
        tensor_read(ed_broadcast_to((ed_tensor *)value, (ed_ints){v->shape, v->rank}));
    return wide ? tensor_contiguous(wide) : NULL;
}

typedef struct changing {
    ed_dtype dtype;
    char *to;
    const char *from;
    int step;
    bool less;
} changing;

static void change_range(int64_t first, int64_t last, int worker, void *user)
{
    const changing *c = user;
    const int64_t at = first * (int64_t)dtype_size(c->dtype);
    (void)worker;
    change(c->dtype, c->to + at, c->step ? c->from + at : c->from, last - first, c->step, c->less);
}

static ed_tensor *assign_change(const char *name, ed_tensor *v, ed_tensor *value, bool less)
{
    if (!v || !value) return ed_fail(ED_INVALID_ARGUMENT, "%s: NULL given", name);
    if (!tensor_is_variable(v))
        return ed_fail(ED_INVALID_ARGUMENT, "%s: %s is no variable", name, text_of_tensor(v).s);
    if (!(ED_SET_NUMBER & 1u << v->dtype))
        return ed_fail(ED_INVALID_ARGUMENT,
                       "%s: the variable %s is %s; numbers to add are expected", name,
                       ed_variable_name(v), text_of_tensor(v).s);
    ED_SCOPE;
    ed_tensor *x = operand(name, v, tensor_read(value));
    /* A reference to the variable's own value would make it look held. */
    const bool itself = x && x == tensor_read(v);
    const int step = x && (x->size != 1 || v->size == 1);
    if (itself) ed_release(x);
    char *to = x ? variable_write(v, true) : NULL;
    const char *from = itself ? to : x ? x->data : NULL;
    if (to)
        threads_run(v->size, OPS_PARALLEL_WORK, change_range,
                    &(changing){v->dtype, to, from, step, less});
    if (!itself) ed_release(x);
    return to ? v : NULL;
}

ed_tensor *(ed_assign_add)(ed_tensor *v, ed_tensor *value)
{
    return assign_change("assign_add", v, value, false);
}

ed_tensor *(ed_assign_sub)(ed_tensor *v, ed_tensor *value)
{
    return assign_change("assign_sub", v, value, true);
}

/* ---- The end of a gradient's way ------------------------------------------------------------- */

/* A tensor of its own, which no tape has seen made. */
ed_tensor *ed_stop_gradient(ed_tensor *x)
{
    if (!x) return ed_fail(ED_INVALID_ARGUMENT, "stop_gradient: NULL given");
    const ed_tensor *value = tensor_read(x);
    if (value->flags & TENSOR_WEAK) return x;
    return scope_give(tensor_view(value, value->rank, value->shape, value->strides, 0));
}
