/*
 * Elements at other positions: roll, rot90, meshgrid, ensure_shape. Most are compositions of views,
 * which copy once, or not at all.
 */
#include "ops/shape.h"
#include <string.h>

/* ---- roll ------------------------------------------------------------------------------------ */

#define ROLL_ATTRS(FIELD, T)                                                                       \
    FIELD(T, INTS, shift, ED_NO_LIST, ED_REQUIRED, "by how much along each axis")                  \
    FIELD(T, AXES, axis, ED_NO_LIST, ED_REQUIRED, "which; one named twice rolls by the sum")
ED_OPTIONS(roll_attrs, ROLL_ATTRS);

/* shift within 0..n-1 */
static int64_t wrapped(int64_t shift, int64_t n)
{
    return n ? (shift % n + n) % n : 0;
}

static ed_tensor *roll_axis(ed_tensor *x, int axis, int64_t shift)
{
    const int64_t n = ed_dim(x, axis), sizes[] = {n - wrapped(shift, n), wrapped(shift, n)};
    if (!sizes[1]) return x;
    const ed_list *parts = ed_split_sizes(x, ((ed_ints){sizes, 2}), .axis = axis);
    return ed_concat(ed_list_of(ed_list_get(parts, 1), ed_list_get(parts, 0)), .axis = axis);
}

static bool roll_compose(ed_call *call)
{
    const roll_attrs *attrs = call->attrs;
    ed_tensor *x = call->inputs[0];
    if (!attrs->shift.values || !attrs->axis.values || attrs->shift.count != attrs->axis.count)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "shift and axis must have one number for each other, got %lld and %lld",
                            (long long)attrs->shift.count, (long long)attrs->axis.count);
    for (int64_t i = 0; x && i < attrs->axis.count; i++) {
        int axis;
        if (!ops_axis(call, attrs->axis.values[i], ed_rank(x), &axis)) return false;
        x = roll_axis(x, axis, attrs->shift.values[i]);
    }
    return ed_call_result(call, 0, x);
}

static int64_t roll_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    const roll_attrs *attrs = call->attrs;
    int64_t from[ED_MAX_RANK];
    memcpy(from, at, sizeof from);
    for (int64_t i = 0; i < attrs->axis.count; i++) {
        const int d = tensor_axis(attrs->axis.values[i], x->rank);
        from[d] = wrapped(from[d] - attrs->shift.values[i] % x->shape[d], x->shape[d]);
    }
    return shape_number(x, from);
}

static bool roll_plain(const ed_call *call)
{
    return shape_plain(call, roll_source, 0);
}

#define ROLLED(s, a) ED_ATTRS(ROLL_ATTRS, roll_attrs, .shift = s, .axis = a)

ED_OP(roll) = {
    .name = "roll",
    .doc = "elements moved on along axes; those behind the end come first",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(ROLL_ATTRS, roll_attrs),
    .compose = roll_compose,
    .reference = roll_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = ROLLED(ED_SAMPLE_INTS(1), ED_SAMPLE_INTS(-1))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 5)},
                           .attrs = ROLLED(ED_SAMPLE_INTS(-4, 7, 1), ED_SAMPLE_INTS(2, 0, 2))}),
};

ed_tensor *ed_roll(ed_tensor *x, ed_ints shift, ed_ints axis)
{
    return CALL_OP(roll, ROLLED(shift, axis), x);
}

/* ---- rot90 ----------------------------------------------------------------------------------- */

static bool rot90_compose(ed_call *call)
{
    const ed_rot90_options *o = call->attrs;
    ed_tensor *x = call->inputs[0];
    const int rank = ed_rank(x), k = (int)wrapped(o->k, 4);
    int64_t perm[ED_MAX_RANK];
    int first = 0, second = 1;
    if (rank < 2 || (o->axes.values && o->axes.count != 2))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "x must have rank >= 2 and axes two entries,"
                            " got %s",
                            text_of_tensor(tensor_read(x)).s);
    if (o->axes.values && (!ops_axis(call, o->axes.values[0], rank, &first) ||
                           !ops_axis(call, o->axes.values[1], rank, &second)))
        return false;
    if (first == second)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "axes must differ, got %s",
                            text_of_places(o->axes.values, 2).s);
    for (int i = 0; i < rank; i++) perm[i] = i == first ? second : i == second ? first : i;
    const int64_t turned[] = {first, second};
    if (k == 2) x = ed_reverse(x, (ed_ints){turned, 2});
    if (k == 1) x = ed_reverse(x, (ed_ints){turned + 1, 1});
    if (k % 2) x = ed_transpose(x, .perm = {perm, rank});
    if (k == 3) x = ed_reverse(x, (ed_ints){turned + 1, 1});
    return ed_call_result(call, 0, x);
}

/* A quarter turn at a time: y[i, j] = x[j, n - 1 - i]. */
static int64_t rot90_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    const ed_rot90_options *o = call->attrs;
    const int a = o->axes.values ? tensor_axis(o->axes.values[0], x->rank) : 0;
    const int b = o->axes.values ? tensor_axis(o->axes.values[1], x->rank) : 1;
    const int k = (int)((o->k % 4 + 4) % 4);
    int64_t from[ED_MAX_RANK];
    memcpy(from, at, sizeof from);
    for (int turn = 0; turn < k; turn++) {
        const int64_t n = (k - 1 - turn) % 2 ? x->shape[a] : x->shape[b], i = from[a];
        from[a] = from[b];
        from[b] = n - 1 - i;
    }
    return shape_number(x, from);
}

static bool rot90_plain(const ed_call *call)
{
    return shape_plain(call, rot90_source, 0);
}

#define TURNED(...) ED_ATTRS(ED_ROT90_OPTIONS, ed_rot90_options, __VA_ARGS__)

ED_OP(rot90) = {
    .name = "rot90",
    .doc = "turned k times by 90 degrees, from the first to the second of two axes: a view",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(ED_ROT90_OPTIONS, ed_rot90_options),
    .compose = rot90_compose,
    .reference = rot90_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 2)}, .attrs = TURNED(.k = 2)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4)},
                           .attrs = TURNED(.k = -1, .axes = ED_SAMPLE_INTS(-1, 0))}),
};

ed_tensor *ed_rot90_with(ed_tensor *x, const ed_rot90_options *options)
{
    return CALL_OP(rot90, options, x);
}

/* ---- meshgrid -------------------------------------------------------------------------------- */

/* Along which axis of the results operand i lies: under "xy" the first two change places. */
static int mesh_axis(const void *attrs, int i, int n)
{
    const bool xy = !strcmp(((const ed_meshgrid_options *)attrs)->indexing, "xy");
    return xy && n > 1 && i < 2 ? 1 - i : i;
}

static bool meshgrid_infer(ed_call *call)
{
    const int n = call->n_inputs;
    int64_t shape[ED_MAX_RANK];
    if (n > ED_MAX_RANK)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "at most %d operands, got %d", ED_MAX_RANK,
                            n);
    for (int i = 0; i < n; i++) {
        const ed_tensor *x = call->inputs[i];
        if (x->rank > 1)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "operand %lld must have rank 0 or 1, got %s", text_nth(i),
                                text_of_tensor(x).s);
        shape[mesh_axis(call->attrs, i, n)] = x->size;
    }
    if (!ed_call_outputs(call, n)) return false;
    call->ready = true;
    for (int i = 0; i < n; i++) {
        const ed_tensor *x = call->inputs[i];
        int64_t strides[ED_MAX_RANK] = {0};
        strides[mesh_axis(call->attrs, i, n)] = x->rank ? x->strides[0] : 0;
        if (!ed_call_view(call, i, i, n, shape, strides, 0)) return false;
    }
    return true;
}

static bool meshgrid_gradient(const ed_gradient_call *g)
{
    for (int i = 0; i < g->n_inputs; i++) {
        int64_t shape[ED_MAX_RANK];
        if (!g->needs[i] || !g->dy[i]) continue;
        for (int d = 0; d < g->n_inputs; d++) shape[d] = 1;
        const int axis = mesh_axis(g->attrs, i, g->n_inputs);
        if (g->shapes[i].count) shape[axis] = g->shapes[i].values[0];
        ed_tensor *sum = shape_sum_to(g->dy[i], (ed_ints){shape, g->n_inputs});
        g->dx[i] = ed_reshape(sum, g->shapes[i]);
    }
    return true;
}

static bool meshgrid_plain(const ed_call *call)
{
    for (int k = 0; k < call->n_outputs; k++) {
        const ed_tensor *y = call->outputs[k];
        const int axis = mesh_axis(call->attrs, k, call->n_outputs);
        int64_t behind = 1;
        for (int d = axis + 1; d < y->rank; d++) behind *= y->shape[d];
        for (int64_t i = 0; i < y->size; i++)
            ((double *)y->data)[i] =
                ((const double *)call->inputs[k]->data)[i / behind % y->shape[axis]];
    }
    return true;
}

ED_OP(meshgrid) = {
    .name = "meshgrid",
    .doc = "each operand along an axis of its own, repeated along all others: views",
    .operands = SHAPE_OPERAND,
    .flags = ED_OP_VARIADIC | ED_OP_MANY_OUTPUTS,
    .results = ED_RESULTS({.name = "grid"}),
    ED_OP_ATTRS(ED_MESHGRID_OPTIONS, ed_meshgrid_options),
    .infer = meshgrid_infer,
    .gradient = meshgrid_gradient,
    .reference = meshgrid_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-2, 2, 4), ED_SAMPLE_IN(-2, 2, 2)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(-2, 2)},
         .attrs = ED_ATTRS(ED_MESHGRID_OPTIONS, ed_meshgrid_options, .indexing = "ij")}),
};

ed_list *ed_meshgrid_with(ed_list *list, const ed_meshgrid_options *options)
{
    if (!list) return ed_fail(ED_INVALID_ARGUMENT, "meshgrid: the list is NULL");
    return ed_execute_list(&ed_op_meshgrid, list->items, (int)list->size, options);
}

/* ---- ensure_shape ---------------------------------------------------------------------------- */

#define ENSURE_ATTRS(FIELD, T)                                                                     \
    FIELD(T, INTS, shape, ED_NO_LIST, ED_REQUIRED, "what x must have; -1: any size")
ED_OPTIONS(ensure_attrs, ENSURE_ATTRS);
#define ENSURED(...) ED_ATTRS(ENSURE_ATTRS, ensure_attrs, .shape = __VA_ARGS__)

static bool ensure_shape_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    int rank;
    if (!shape_of_attr(call, "shape", ((const ensure_attrs *)call->attrs)->shape, &rank, shape))
        return false;
    bool same = rank == x->rank;
    for (int i = 0; same && i < rank; i++) same = shape[i] == -1 || shape[i] == x->shape[i];
    if (!same)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have shape %s, got %s",
                            text_of_ints(shape, rank).s, text_of_tensor(x).s);
    return ed_call_view(call, 0, 0, rank, x->shape, x->strides, 0);
}

static bool ensure_shape_gradient(const ed_gradient_call *g)
{
    g->dx[0] = g->dy[0];
    return true;
}

static int64_t ensure_shape_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    (void)call;
    return shape_number(x, at);
}

static bool ensure_shape_plain(const ed_call *call)
{
    return shape_plain(call, ensure_shape_source, 0);
}

ED_OP(ensure_shape) = {
    .name = "ensure_shape",
    .doc = "x itself, or an error if it has another shape",
    .operands = SHAPE_OPERAND,
    ED_OP_ATTRS(ENSURE_ATTRS, ensure_attrs),
    .infer = ensure_shape_infer,
    .gradient = ensure_shape_gradient,
    .reference = ensure_shape_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = ENSURED(ED_SAMPLE_INTS(-1, 4))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2)}, .attrs = ENSURED(ED_SAMPLE_INTS())}),
};

ed_tensor *ed_ensure_shape(ed_tensor *x, ed_ints shape)
{
    return CALL_OP(ensure_shape, ENSURED(shape), x);
}
