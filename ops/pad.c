#include "ops/shape.h"
#include "tensor/copy.h"
#include "tensor/threads.h"
#include <string.h>

/* What surrounds or repeats elements: tile, pad. They place boxes of elements into a larger one. */

/* ---- tile ------------------------------------------------------------------------------------ */

#define TILE_ATTRS(FIELD, T) FIELD(T, INTS, multiples, ED_NO_LIST, ED_REQUIRED, "one for each axis")
ED_OPTIONS(tile_attrs, TILE_ATTRS);

static bool tile_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    int rank;
    if (!shape_of_attr(call, "multiples", ((const tile_attrs *)call->attrs)->multiples, &rank,
                       shape))
        return false;
    if (rank != x->rank)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "multiples %s must have one number for each axis of %s",
                            text_of_ints(shape, rank).s, text_of_tensor(x).s);
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "multiples must be >= 0, got %lld for axis %lld",
                                (long long)shape[i], text_nth(i));
        if (__builtin_mul_overflow(shape[i], x->shape[i], &shape[i])) return shape_too_large(call);
    }
    return ed_call_output(call, 0, x->dtype, rank, shape);
}

/* y seen as [multiple, extent, multiple, extent, ...], into which x is copied with strides of 0 for
 * the multiples. */
static bool tile_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    int64_t shape[COPY_MAX_RANK], from[COPY_MAX_RANK], to[COPY_MAX_RANK];
    if (y->size == 0) return true;
    for (int i = 0; i < x->rank; i++) {
        shape[2 * i] = y->shape[i] / x->shape[i];
        from[2 * i] = 0;
        to[2 * i] = x->shape[i] * y->strides[i];
        shape[2 * i + 1] = x->shape[i];
        from[2 * i + 1] = x->strides[i];
        to[2 * i + 1] = y->strides[i];
    }
    copy_box(dtype_size(x->dtype), 2 * x->rank, shape, x->data, from, y->data, to);
    return true;
}

/* Axis by axis from the front: dy seen as [before, multiple, behind], summed over the multiple. */
static bool tile_gradient(const ed_gradient_call *g)
{
    ed_ints multiples = ((const tile_attrs *)g->attrs)->multiples, shape = g->shapes[0];
    ed_tensor *sum = g->dy[0];
    int64_t before = 1;
    for (int64_t i = 0; sum && i < shape.count; i++) {
        if (multiples.values[i] != 1) {
            int64_t behind = shape.values[i];
            for (int64_t j = i + 1; j < shape.count; j++)
                behind *= shape.values[j] * multiples.values[j];
            sum = shape_sum_axis(ed_reshape(sum, ED_SHAPE(before, multiples.values[i], behind)), 1);
        }
        before *= shape.values[i];
    }
    g->dx[0] = ed_reshape(sum, shape);
    return true;
}

static int64_t tile_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    int64_t from[ED_MAX_RANK];
    (void)call;
    for (int i = 0; i < x->rank; i++) from[i] = at[i] % x->shape[i];
    return shape_number(x, from);
}

static bool tile_plain(const ed_call *call)
{
    return shape_plain(call, tile_source, 0);
}

static ed_list *tile_batch(const ed_batch_call *call)
{
    const ed_ints given = ((const tile_attrs *)call->attrs)->multiples;
    int64_t multiples[ED_MAX_RANK + 1] = {1};
    for (int64_t i = 0; i < given.count; i++) multiples[i + 1] = given.values[i];
    return ed_batch_result(ed_tile(call->batches[0], (ed_ints){multiples, given.count + 1}));
}

ED_OP(tile) = {
    .name = "tile",
    .doc = "x repeated multiples[i] times along axis i",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    ED_OP_ATTRS(TILE_ATTRS, tile_attrs),
    .infer = tile_infer,
    .batch = tile_batch,
    .kernel = tile_kernel,
    .gradient = tile_gradient,
    .reference = tile_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
         .attrs = ED_ATTRS(TILE_ATTRS, tile_attrs, .multiples = ED_SAMPLE_INTS(2, 3))},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 1, 2)},
         .attrs = ED_ATTRS(TILE_ATTRS, tile_attrs, .multiples = ED_SAMPLE_INTS(1, 4, 2))},
        {.inputs = {ED_SAMPLE_IN(-2, 2)},
         .attrs = ED_ATTRS(TILE_ATTRS, tile_attrs, .multiples = ED_SAMPLE_INTS())}),
};

ed_tensor *ed_tile(ed_tensor *x, ed_ints multiples)
{
    return CALL_OP(tile, ED_ATTRS(TILE_ATTRS, tile_attrs, .multiples = multiples), x);
}

/* ---- pad ------------------------------------------------------------------------------------- */

static bool check_padding(const ed_call *call, const char *name, ed_ints list)
{
    const ed_tensor *x = call->inputs[0];
    if (!list.values) return true;
    if (list.count > x->rank)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "%s %s must have at most one number for each axis of %s", name,
                            text_of_ints(list.values, list.count).s, text_of_tensor(x).s);
    for (int64_t i = 0; i < list.count; i++)
        if (list.values[i] < 0)
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "%s must be >= 0, got %s (ed_slice removes elements)", name,
                                text_of_ints(list.values, list.count).s);
    return true;
}

static int64_t padding(ed_ints list, int i)
{
    return list.values && i < list.count ? list.values[i] : 0;
}

/* What lies beyond the ends of an axis: a value, or elements of the axis. */
typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_SYMMETRIC, PAD_EDGE } pad_mode;

static pad_mode mode_of(const ed_pad_options *options)
{
    return options->mode[0] == 'R'   ? PAD_REFLECT
           : options->mode[0] == 'S' ? PAD_SYMMETRIC
           : options->mode[0] == 'E' ? PAD_EDGE
                                     : PAD_CONSTANT;
}

/* The index in an axis of n to which index i, from before 0 to beyond n, leads. */
static int64_t continued(pad_mode mode, int64_t i, int64_t n)
{
    if (mode == PAD_EDGE) return i < 0 ? 0 : i < n ? i : n - 1;
    const int64_t twice = mode == PAD_REFLECT;
    return i < 0 ? -i - 1 + twice : i < n ? i : 2 * n - 1 - twice - i;
}

/* A mode needs elements to continue with. */
static bool check_mode(const ed_call *call, const ed_pad_options *options)
{
    const ed_tensor *x = call->inputs[0];
    const pad_mode mode = mode_of(options);
    for (int i = 0; mode != PAD_CONSTANT && i < x->rank; i++) {
        const int64_t n = x->shape[i], before = padding(options->before, i),
                      after = padding(options->after, i), most = before > after ? before : after;
        if (mode == PAD_EDGE ? most && !n : most > (mode == PAD_REFLECT && n ? n - 1 : n))
            return ed_call_fail(call, ED_INVALID_ARGUMENT,
                                "mode %s can add at most %lld elements at an end of axis %lld of "
                                "%s, got %lld",
                                options->mode, (long long)(mode == PAD_REFLECT && n ? n - 1 : n),
                                text_nth(i), text_of_tensor(x).s, (long long)most);
    }
    return true;
}

static bool pad_infer(ed_call *call)
{
    const ed_pad_options *options = call->attrs;
    const ed_tensor *x = call->inputs[0];
    int64_t shape[ED_MAX_RANK];
    if (!check_padding(call, "before", options->before) ||
        !check_padding(call, "after", options->after) || !check_mode(call, options))
        return false;
    if (!dtype_holds(x->dtype, options->value))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the value %.17g cannot be represented as %s", options->value,
                            ed_dtype_name(x->dtype));
    for (int i = 0; i < x->rank; i++)
        if (__builtin_add_overflow(padding(options->before, i), padding(options->after, i),
                                   &shape[i]) ||
            __builtin_add_overflow(shape[i], x->shape[i], &shape[i]))
            return shape_too_large(call);
    return ed_call_output(call, 0, x->dtype, x->rank, shape);
}

/*
 * The output is written once and in order: before, what is inside, after, from the outermost axis
 * inwards. Axes without padding behind the last one that has some are one row, if x's elements
 * adjoin there.
 */
typedef struct padder {
    const ed_tensor *x, *y;
    const ed_pad_options *options;
    size_t element;
    int row;          /* the axis from which on everything is one row */
    int64_t row_size; /* its elements in x, */
    int64_t row_step; /* and their stride */
    uint64_t value;
} padder;

static void make_padder(padder *p, const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    *p = (padder){.x = x,
                  .y = y,
                  .options = call->attrs,
                  .element = dtype_size(x->dtype),
                  .row = x->rank - 1};
    dtype_store(x->dtype, &p->value, 0, p->options->value);
    p->row_size = x->shape[p->row];
    p->row_step = x->strides[p->row];
    while (p->row > 0 && x->shape[p->row] == y->shape[p->row] &&
           x->strides[p->row - 1] == p->row_size * p->row_step) {
        p->row--;
        p->row_size *= x->shape[p->row];
    }
}

static void pad_axis(const padder *p, int axis, const char *from, char *to);

/* Elements first..last-1 of the axis, of those that x has. */
static void pad_inside(const padder *p, int axis, int64_t first, int64_t last, const char *from,
                       char *to)
{
    int64_t element = (int64_t)p->element;
    if (axis == p->row) {
        int64_t each = p->row_size / p->x->shape[axis];
        copy_row(p->element, (last - first) * each, from + first * p->x->strides[axis] * element,
                 p->row_step, to + first * each * element, 1);
        return;
    }
    for (int64_t i = first; i < last; i++)
        pad_axis(p, axis + 1, from + i * p->x->strides[axis] * element,
                 to + i * p->y->strides[axis] * element);
}

static void pad_axis(const padder *p, int axis, const char *from, char *to)
{
    int64_t step = p->y->strides[axis], extent = p->x->shape[axis];
    int64_t before = padding(p->options->before, axis), after = padding(p->options->after, axis);
    char *inside = to + before * step * (int64_t)p->element;
    copy_fill_row(p->element, &p->value, to, before * step);
    pad_inside(p, axis, 0, extent, from, inside);
    copy_fill_row(p->element, &p->value, inside + extent * step * (int64_t)p->element,
                  after * step);
}

typedef struct pad_job {
    const padder *p;
    const char *from;
    char *to;
} pad_job;

static void pad_range(int64_t first, int64_t last, int worker, void *user)
{
    const pad_job *j = user;
    (void)worker;
    pad_inside(j->p, 0, first, last, j->from, j->to);
}

/* Output rows first..last-1, of the last axis, under a mode that continues x. */
static void continued_rows(int64_t first, int64_t last, int worker, void *user)
{
    const ed_call *call = user;
    const ed_pad_options *options = call->attrs;
    const ed_tensor *x = call->inputs[0], *y = call->outputs[0];
    const pad_mode mode = mode_of(options);
    const int64_t element = (int64_t)dtype_size(x->dtype);
    const int row = x->rank - 1;
    const int64_t n = x->shape[row], step = x->strides[row], before = padding(options->before, row);
    (void)worker;
    for (int64_t r = first; r < last; r++) {
        int64_t offset = 0, rest = r;
        for (int d = row - 1; d >= 0; d--) {
            const int64_t at = rest % y->shape[d] - padding(options->before, d);
            offset += continued(mode, at, x->shape[d]) * x->strides[d];
            rest /= y->shape[d];
        }
        const char *from = x->data + offset * element;
        char *to = y->data + r * y->shape[row] * element;
        for (int64_t i = -before; i < 0; i++, to += element)
            memcpy(to, from + continued(mode, i, n) * step * element, (size_t)element);
        copy_row((size_t)element, n, from, step, to, 1);
        to += n * element;
        for (int64_t i = n; i < y->shape[row] - before; i++, to += element)
            memcpy(to, from + continued(mode, i, n) * step * element, (size_t)element);
    }
}

static bool pad_continued(ed_call *call)
{
    const ed_tensor *y = call->outputs[0];
    if (!y->size) return true;
    const int64_t row = y->shape[y->rank - 1];
    threads_run(y->size / row, 1 + OPS_PARALLEL_WORK / row, continued_rows, call);
    return true;
}

/* Large ones are cut along the first axis that has something to cut; the axes before it are of
 * size 1 in x. */
static bool pad_kernel(ed_call *call)
{
    padder p;
    const ed_tensor *x = call->inputs[0];
    ed_tensor *y = call->outputs[0];
    int64_t element = (int64_t)dtype_size(x->dtype);
    if (x->rank && mode_of(call->attrs) != PAD_CONSTANT) return pad_continued(call);
    if (x->size == 0 || x->rank == 0) {
        uint64_t value = 0;
        dtype_store(x->dtype, &value, 0, ((const ed_pad_options *)call->attrs)->value);
        if (x->size == 0)
            copy_fill((size_t)element, &value, y->data, y->size);
        else
            memcpy(y->data, x->data, (size_t)element);
        return true;
    }
    make_padder(&p, call);
    if (y->size < OPS_PARALLEL_WORK || p.row == 0) {
        pad_axis(&p, 0, x->data, y->data);
        return true;
    }
    int64_t step = y->strides[0] * element, before = padding(p.options->before, 0) * step;
    copy_fill((size_t)element, &p.value, y->data, before / element);
    copy_fill((size_t)element, &p.value, y->data + before + x->shape[0] * step,
              padding(p.options->after, 0) * y->strides[0]);
    threads_run(x->shape[0], 1 + OPS_PARALLEL_WORK * x->shape[0] / y->size, pad_range,
                &(pad_job){&p, x->data, y->data + before});
    return true;
}

/* Elements first..end-1 of an axis. */
static ed_tensor *range_of(ed_tensor *x, int axis, int64_t first, int64_t end)
{
    int64_t begin[ED_MAX_RANK] = {0}, stop[ED_MAX_RANK];
    for (int i = 0; i < axis; i++) stop[i] = ED_END;
    begin[axis] = first;
    stop[axis] = end;
    return ed_slice(x, .begin = {begin, axis + 1}, .end = {stop, axis + 1});
}

/* sum, to which the dy of a border is added where its elements were taken from. */
static ed_tensor *folded(ed_tensor *sum, ed_tensor *border, pad_mode mode, int axis, bool front)
{
    const int64_t n = ed_dim(sum, axis), along = axis;
    int64_t before[ED_MAX_RANK] = {0}, after[ED_MAX_RANK] = {0};
    border = mode == PAD_EDGE ? ed_reduce_sum(border, .axis = {&along, 1}, .keepdims = true)
                              : ed_reverse(border, (ed_ints){&along, 1});
    if (!border) return NULL;
    const int64_t apart = mode == PAD_REFLECT, rest = n - ed_dim(border, axis) - apart;
    before[axis] = front ? apart : rest;
    after[axis] = front ? rest : apart;
    return ed_add(sum, ed_pad(border, .before = {before, axis + 1}, .after = {after, axis + 1}));
}

ed_tensor *shape_folded(ed_tensor *dy, const ed_pad_options *options, ed_ints shape)
{
    const pad_mode mode = mode_of(options);
    ed_tensor *dx = dy;
    for (int i = 0; dx && i < shape.count; i++) {
        const int64_t before = padding(options->before, i), after = padding(options->after, i);
        const int64_t n = shape.values[i];
        if (!before && !after) continue;
        ed_tensor *sum = range_of(dx, i, before, before + n);
        if (before) sum = folded(sum, range_of(dx, i, 0, before), mode, i, true);
        if (sum && after)
            sum = folded(sum, range_of(dx, i, before + n, before + n + after), mode, i, false);
        dx = sum;
    }
    return dx;
}

static bool continued_gradient(const ed_gradient_call *g)
{
    const bool half = ED_SET_HALF & 1u << g->dtypes[0];
    ed_tensor *dy = half ? ed_cast(g->dy[0], ED_FLOAT32) : g->dy[0];
    ed_tensor *dx = shape_folded(dy, g->attrs, g->shapes[0]);
    g->dx[0] = half ? ed_cast(dx, g->dtypes[0]) : dx;
    return true;
}

static bool pad_gradient(const ed_gradient_call *g)
{
    const ed_pad_options *options = g->attrs;
    if (mode_of(options) != PAD_CONSTANT) return continued_gradient(g);
    int rank = (int)g->shapes[0].count;
    int64_t begin[ED_MAX_RANK], end[ED_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        begin[i] = padding(options->before, i);
        end[i] = begin[i] + g->shapes[0].values[i];
    }
    g->dx[0] = ed_slice(g->dy[0], .begin = {begin, rank}, .end = {end, rank});
    return true;
}

static int64_t pad_source(const ed_call *call, const ed_tensor *x, const int64_t *at)
{
    const ed_pad_options *options = call->attrs;
    int64_t from[ED_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        const int64_t n = x->shape[i];
        from[i] = at[i] - padding(options->before, i);
        if (from[i] >= 0 && from[i] < n) continue;
        if (!strcmp(options->mode, "CONSTANT")) return -1;
        const int64_t end = from[i] < 0 ? 0 : n - 1, apart = end - from[i];
        from[i] = !strcmp(options->mode, "EDGE")      ? end
                  : !strcmp(options->mode, "REFLECT") ? end + apart
                                                      : end + apart - (apart > 0 ? 1 : -1);
    }
    return shape_number(x, from);
}

static bool pad_plain(const ed_call *call)
{
    return shape_plain(call, pad_source, ((const ed_pad_options *)call->attrs)->value);
}

#define PADDED(...) ED_ATTRS(ED_PAD_OPTIONS, ed_pad_options, __VA_ARGS__)

/* Nothing around the first axis, that of the calls. */
static ed_list *pad_batch(const ed_batch_call *call)
{
    ed_pad_options options = *(const ed_pad_options *)call->attrs;
    ed_ints *const lists[] = {&options.before, &options.after};
    int64_t values[2][ED_MAX_RANK + 1] = {{0}};
    for (int k = 0; k < 2; k++) {
        if (!lists[k]->values) continue;
        for (int64_t i = 0; i < lists[k]->count && i < ED_MAX_RANK; i++)
            values[k][i + 1] = lists[k]->values[i];
        *lists[k] = (ed_ints){values[k], lists[k]->count + 1};
    }
    return ed_batch_result(ed_pad_with(call->batches[0], &options));
}

ED_OP(pad) = {
    .name = "pad",
    .doc = "elements of a value around x",
    .operands = {{"x", ED_SET_ALL, 'T'}},
    ED_OP_ATTRS(ED_PAD_OPTIONS, ed_pad_options),
    .infer = pad_infer,
    .batch = pad_batch,
    .kernel = pad_kernel,
    .gradient = pad_gradient,
    .reference = pad_plain,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(1, 0),
                                           .after = ED_SAMPLE_INTS(2, 3), .value = 1)},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 2, 3)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(0, 2, 0))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 4)},
                           .attrs = PADDED(.after = ED_SAMPLE_INTS(1))},
                          {.inputs = {ED_SAMPLE_IN(-2, 2)}},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(2, 1),
                                           .after = ED_SAMPLE_INTS(1, 3), .mode = "REFLECT")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(3),
                                           .after = ED_SAMPLE_INTS(1, 3), .mode = "SYMMETRIC")},
                          {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3)},
                           .attrs = PADDED(.before = ED_SAMPLE_INTS(0, 5),
                                           .after = ED_SAMPLE_INTS(4, 1), .mode = "EDGE")}),
};

ed_tensor *ed_pad_with(ed_tensor *x, const ed_pad_options *options)
{
    return CALL_OP(pad, options, x);
}
