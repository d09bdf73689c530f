#include "ops/index.h"
#include "ops/shape.h"
#include "ops/sort.h"
#include "tensor/threads.h"
#include "tensor/typed.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * sort, argsort, top_k. Elements become unsigned keys in their order, which are sorted digit by
 * digit (radix sort), least significant first: stable, and no comparison is made. Digits that are
 * the same everywhere are passed over.
 *
 * Where the instruction set has vectors for it (ops/sort.simd.c), numbers are sorted by quicksort
 * instead, unless so many have so few digits that these are quicker, and few of them by a network
 * of comparisons. Neither is stable, but equal keys are alike, and keys with indices all different.
 * Should one part after the other be far from half, the radix sort takes over: no order of the
 * elements makes it slow. With AVX-512 long lines are parted in four at a time, which moves their
 * items half as often; those of a line that one thread sorts are made in the first such pass.
 *
 * Short lines are shared out among the threads. Of a long one each thread sorts a share of the
 * keys, so that no two write to the same place: a sample says which keys make shares of about the
 * same size, the items of each are counted, and each thread takes what is its own of all items.
 */

enum {
    SORT_VERY_FEW = HARD(1, 12),                /* items for which no network is started */
    SORT_QUICK = HARD(256, SORT_NETWORK_BYTES), /* more bytes are parted by size */
    SORT_QUARTERED = HARD(64, 1 << 12),         /* more are parted in four, if vectors can */
    SORT_SOME = 256,                            /* elements that become items at a time; a sample */
    SORT_FEW = 48,                              /* items that are put in order one by one */
    SORT_NARROW = HARD(64, 1 << 12),            /* below so many a digit has 8 bits, else 11 */
    SORT_ALONE = HARD(256, 1 << 16),            /* from so many on a line is for all threads */
    SORT_SHARES = 16,
    SORT_SAMPLE = HARD(8, 256), /* items for each share */
    SORT_NARROW_BITS = 8,
    SORT_NARROW_DIGITS = 4, /* counted at once: all of 32 bits */
    TOP_ROWS =
        HARD(2, 256) /* elements of a group whose maximum helps to find top_k's first bound */
};

/* Room for a line, its items in two or four places and counts for each share; and a line at work.
 */
typedef struct sorting {
    void *items;
    const sort_converter *convert;
    const sort_vectors *vectors; /* for items of 4 and 8 bytes */
    const top_loops *top;
    int64_t *counts;
    size_t counted; /* counts that a share has */
    int n_shares;   /* one: no other thread helps */
    int64_t n;
    void *from, *to;
    int lowest; /* bit of the keys */
    const sort_work *work;
    const void *elements;     /* of the line */
    threads_range make, read; /* items of elements; results, of items in order, or NULL */
    void *result;             /* the line of those */
    bool quarters;            /* items are parted in four; there are four rooms */
    void *in_order;           /* where those shall lie then */
    sort_share shares[SORT_SHARES];
} sorting;

typedef uint32_t sort_item_u32;
typedef uint64_t sort_item_u64;

/* The groups of elements whose maxima give top_k's first bound: so few that the room for items
 * holds their keys twice. */
static int64_t top_groups(const sort_work *w)
{
    return (2 * w->k + TOP_BLOCK - 1) / TOP_BLOCK * TOP_BLOCK;
}

static int64_t *sort_counts(const sorting *s, int64_t share)
{
    return s->counts + share * (int64_t)s->counted;
}

/* Where a part of a line begins, which has as many equal parts as there are shares. */
static int64_t sort_border(const sorting *s, int64_t part)
{
    return s->n / s->n_shares * part + (part < s->n % s->n_shares ? part : s->n % s->n_shares);
}

/* Whether one thread sorts a line of n items. */
static bool sort_is_alone(const sorting *s, int64_t n)
{
    return n < SORT_ALONE || s->n_shares == 1;
}

/* The items of a room for n of them, in which each share's have a gap behind them. */
static int64_t sort_room(int64_t n)
{
    return n + SORT_SHARES * SORT_GAP;
}

/* How often n items may be parted. */
static int sort_depth(int64_t n)
{
    const int enough = 2 * (64 - __builtin_clzll((uint64_t)n | 1));
    return HARD(1, 0) ? 1 : enough;
}

/* Whether n items with keys of so many bits are sorted by comparing them. */
static bool sort_compares(const sort_vectors *v, int64_t n, int bits)
{
    const bool few_digits = bits <= SORT_WIDE_DIGITS * SORT_WIDE_BITS;
    return n > SORT_VERY_FEW && v->network && !(few_digits && n > v->most);
}

/* A line is about to be sorted; `same_size`: an item is as large as a result, so that items can be
 * in order where results go. */
static void sort_begin(sorting *s, const void *elements, threads_range make, void *result,
                       threads_range read, bool same_size)
{
    s->elements = elements, s->make = make;
    s->result = result, s->read = read;
    s->in_order = same_size && s->work->stride == 1 ? result : NULL;
}

/* Reads n items in order, which are those from `place` of the line on. */
static void sort_read(const sorting *s, const void *items, int64_t n, int64_t place)
{
    if (s->read)
        s->read(place, place + n, 0, &(sort_line){s->work, items, s->result, .place = place});
}

/* Makes of the counts of a digit's values the places of the first item of each. */
static void sort_places(int64_t *counts, int values)
{
    int64_t place = 0;
    for (int value = 0; value < values; value++) {
        const int64_t count = counts[value];
        counts[value] = place;
        place += count;
    }
}

/* Where the items of each share begin, and how many it has. */
static void split_places(sorting *s)
{
    int64_t begin = 0;
    for (int p = 0; p < s->n_shares; p++) {
        int64_t end = 0;
        for (int part = 0; part < s->n_shares; part++) end += sort_counts(s, part)[p];
        s->shares[p].begin = begin;
        s->shares[p].n = end - begin;
        begin = end;
    }
}

#define TYPE            u32
#define SORT_KEY(i)     (i)
#define SORT_BITS       32
#define SORT_MOST       UINT32_MAX
#define SORT_VECTORS(s) (&(s)->vectors[0])
#include "ops/sort_items.typed.h"
#define TYPE            u64
#define SORT_KEY(i)     (i)
#define SORT_BITS       64
#define SORT_MOST       UINT64_MAX
#define SORT_VECTORS(s) (&(s)->vectors[1])
#include "ops/sort_items.typed.h"
#define TYPE        pair
#define SORT_KEY(i) (i).key
#define SORT_BITS   64
#define SORT_MOST   UINT64_MAX
#include "ops/sort_items.typed.h"

#define TYPE f32
#include "ops/sort.typed.h"
#define TYPE i32
#include "ops/sort.typed.h"
#define TYPE u8
#include "ops/sort.typed.h"
#define TYPE f64
#include "ops/sort.typed.h"
#define TYPE i64
#include "ops/sort.typed.h"

#define BY_DTYPE(dtype, function, ...)                                                             \
    switch (dtype) {                                                                               \
    case ED_FLOAT32: function##_f32(__VA_ARGS__); break;                                           \
    case ED_FLOAT64: function##_f64(__VA_ARGS__); break;                                           \
    case ED_INT32: function##_i32(__VA_ARGS__); break;                                             \
    case ED_INT64: function##_i64(__VA_ARGS__); break;                                             \
    default: function##_u8(__VA_ARGS__);                                                           \
    }

/* ---- All lines ------------------------------------------------------------------------------- */

/* The lines of a call, and room for each thread that works on them. */
typedef struct sort_lines {
    const ed_call *call;
    sort_work work;
    int64_t lines;
    void (*line)(const struct sort_lines *all, sorting *s, int64_t line);
    sorting *rooms;
} sort_lines;

static void lines_range(int64_t first, int64_t last, int worker, void *user)
{
    const sort_lines *all = user;
    for (int64_t line = first; line < last; line++) all->line(all, &all->rooms[worker], line);
}

static const sort_vectors *sort_vectors_at_hand(void)
{
    static const sort_vectors *const vectors[ISA_COUNT] = ISA_TABLE(sort_vectors_table);
    return vectors[isa_level];
}

/* Whether lines of n items, of 4 or 8 bytes, with keys of so many bits are parted in four. */
static bool sort_quarters_pay(const sort_vectors *v, int64_t n, int bits)
{
    return n > SORT_QUARTERED && v->quarter && sort_compares(v, n, bits);
}

/* Runs all lines, each with two rooms for so many items of `item` bytes, or four for quarters. */
static bool run_lines(sort_lines *all, int64_t items, size_t item, bool quarters)
{
    const int threads = threads_count();
    const int workers = all->lines < threads ? (int)all->lines : threads;
    static const sort_converter *const converters[ISA_COUNT] = ISA_TABLE(sort_converters);
    static const top_loops *const tops[ISA_COUNT] = ISA_TABLE(top_loops_table);
    all->rooms = memory_zalloc((size_t)workers * sizeof *all->rooms);
    bool ok = all->rooms;
    for (int i = 0; ok && i < workers; i++) {
        sorting *s = &all->rooms[i];
        s->work = &all->work;
        s->convert = &converters[isa_level][all->call->inputs[0]->dtype];
        s->vectors = sort_vectors_at_hand();
        s->quarters = quarters;
        s->top = &tops[isa_level][all->call->inputs[0]->dtype];
        s->n_shares = all->lines >= threads ? 1 : threads < SORT_SHARES ? threads : SORT_SHARES;
        s->counted = items < SORT_NARROW ? SORT_NARROW_DIGITS << SORT_NARROW_BITS
                                         : SORT_WIDE_DIGITS << SORT_WIDE_BITS;
        s->items = memory_alloc((size_t)sort_room(items) * item * (quarters ? 4 : 2));
        s->counts = memory_alloc((size_t)s->n_shares * s->counted * sizeof *s->counts);
        ok = s->items && s->counts;
    }
    const bool outer = threads_may_stop(false); /* items that were not moved would be no indices */
    if (ok)
        threads_run_among(workers, all->lines, 1 + OPS_PARALLEL_WORK / 8 / all->work.n, lines_range,
                          all);
    threads_may_stop(outer);
    for (int i = 0; all->rooms && i < workers; i++) {
        memory_free(all->rooms[i].items);
        memory_free(all->rooms[i].counts);
    }
    memory_free(all->rooms);
    return ok;
}

/* ---- sort and argsort ------------------------------------------------------------------------ */

static bool sort_axis(const ed_call *call, int *axis)
{
    const ed_tensor *x = call->inputs[0];
    if (x->rank == 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT, "x must have rank >= 1, got %s",
                            text_of_tensor(x).s);
    return ops_axis(call, ((const ed_sort_options *)call->attrs)->axis, x->rank, axis);
}

static bool sort_infer(ed_call *call)
{
    int axis;
    return sort_axis(call, &axis) && ops_infer_like(call);
}

static bool argsort_infer(ed_call *call)
{
    int axis;
    const ed_tensor *x = call->inputs[0];
    return sort_axis(call, &axis) && ed_call_output(call, 0, ED_INT64, x->rank, x->shape);
}

/* The first element of a line. */
static int64_t first_of_line(const sort_work *w, int64_t line)
{
    return line / w->stride * w->stride * w->n + line % w->stride;
}

static void one_sort(const sort_lines *all, sorting *s, int64_t line)
{
    const ed_tensor *x = all->call->inputs[0], *y = all->call->outputs[0];
    const int64_t begin = first_of_line(&all->work, line) * (int64_t)dtype_size(x->dtype);
    BY_DTYPE(x->dtype, sort_one, s, x->data + begin, y->data + begin)
}

static void one_argsort(const sort_lines *all, sorting *s, int64_t line)
{
    const ed_tensor *x = all->call->inputs[0], *y = all->call->outputs[0];
    const int64_t begin = first_of_line(&all->work, line);
    BY_DTYPE(x->dtype, argsort_one, s, x->data + begin * (int64_t)dtype_size(x->dtype),
             (int64_t *)y->data + begin)
}

static bool sort_kernel(ed_call *call)
{
    const ed_sort_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const int axis = tensor_axis(o->axis, x->rank);
    sort_lines all = {.call = call, .line = call->op->extra ? one_argsort : one_sort};
    all.work = (sort_work){.n = x->shape[axis],
                           .stride = index_product(x->shape, axis + 1, x->rank),
                           .descending = *o->direction == 'D'};
    if (x->size == 0) return true;
    all.lines = x->size / all.work.n;
    if (call->op->extra && all.work.n > UINT32_MAX)
        return ed_call_fail(call, ED_UNIMPLEMENTED,
                            "x %s has more than 2^32 - 1 elements in a line", text_of_tensor(x).s);
    const bool wide = dtype_size(x->dtype) == 8, indices = call->op->extra;
    const size_t item = (wide ? 8 : 4) * (indices ? 2 : 1);
    return run_lines(&all, all.work.n, item,
                     item <= 8 && sort_quarters_pay(&sort_vectors_at_hand()[item / 8], all.work.n,
                                                    wide ? 64 : 32));
}

/* An element with its index, for references: compared by value, NaN last, then by index. */
typedef struct plain_item {
    double value;
    int64_t index;
    bool descending;
} plain_item;

static int plain_compare(const void *a, const void *b)
{
    const plain_item *x = a, *y = b;
    const double u = x->descending ? -x->value : x->value, v = y->descending ? -y->value : y->value;
    if (isnan(u) != isnan(v)) return isnan(u) ? 1 : -1;
    if (u != v && !isnan(u)) return u < v ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* The elements of a line, sorted; NULL without memory. */
static plain_item *plain_line(const double *from, int64_t n, int64_t step, bool descending)
{
    plain_item *items = memory_alloc((size_t)n * sizeof *items);
    for (int64_t i = 0; items && i < n; i++) items[i] = (plain_item){from[i * step], i, descending};
    if (items) qsort(items, (size_t)n, sizeof *items, plain_compare);
    return items;
}

static bool sort_plain(const ed_call *call)
{
    const ed_sort_options *o = call->attrs;
    const ed_tensor *x = call->inputs[0];
    const int axis = tensor_axis(o->axis, x->rank);
    const int64_t n = x->shape[axis], step = index_product(x->shape, axis + 1, x->rank);
    for (int64_t line = 0; x->size && line < x->size / n; line++) {
        const int64_t begin = line / step * step * n + line % step;
        double *to = (double *)call->outputs[0]->data + begin;
        plain_item *items =
            plain_line((const double *)x->data + begin, n, step, *o->direction == 'D');
        if (!items) return false;
        for (int64_t i = 0; i < n; i++)
            to[i * step] = call->op->extra ? (double)items[i].index : items[i].value;
        memory_free(items);
    }
    return true;
}

static bool sort_gradient(const ed_gradient_call *g)
{
    const ed_sort_options *o = g->attrs;
    ed_tensor *order = ed_argsort_with(g->inputs[0], o);
    g->dx[0] = order ? index_along_sum(g->dy[0], order, g->shapes[0], o->axis) : NULL;
    return true;
}

#define SORT_SAMPLES                                                                               \
    ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 3, 7)}},                                          \
               {.inputs = {ED_DISTINCT_IN(-2, 2, 5, 2)},                                           \
                .attrs = ED_ATTRS(ED_SORT_OPTIONS, ed_sort_options, .axis = 0,                     \
                                  .direction = "DESCENDING")})

ED_OP(sort) = {
    .name = "sort",
    .doc = "x sorted along an axis, NaN last",
    .operands = {{"x", ED_SET_NUMBER, 'T', .saved = true}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_SORT_OPTIONS, ed_sort_options),
    .infer = sort_infer,
    .batch = ed_batch_axes,
    .kernel = sort_kernel,
    .gradient = sort_gradient,
    .reference = sort_plain,
    .samples = SORT_SAMPLES,
};

ED_OP(argsort) = {
    .name = "argsort",
    .doc = "the indices that sort x along an axis, those of equal elements in their order",
    .operands = {{"x", ED_SET_NUMBER, 'T'}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_SORT_OPTIONS, ed_sort_options),
    .infer = argsort_infer,
    .batch = ed_batch_axes,
    .kernel = sort_kernel,
    .no_gradient = "its result is an integer",
    .reference = sort_plain,
    .extra = "indices",
    .samples = SORT_SAMPLES,
};

ed_tensor *ed_sort_with(ed_tensor *x, const ed_sort_options *options)
{
    return CALL_OP(sort, options, x);
}

ed_tensor *ed_argsort_with(ed_tensor *x, const ed_sort_options *options)
{
    return CALL_OP(argsort, options, x);
}

/* ---- top_k ----------------------------------------------------------------------------------- */

#define TOP_K_ATTRS(FIELD, T) FIELD(T, INT, k, 1, ED_AT_LEAST(0), "how many")
ED_OPTIONS(top_k_attrs, TOP_K_ATTRS);

static bool top_k_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t k = ((const top_k_attrs *)call->attrs)->k;
    int64_t shape[ED_MAX_RANK];
    if (x->rank == 0 || k > x->shape[x->rank - 1])
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "k is %lld; x is %s, whose last axis must have so many elements",
                            (long long)k, text_of_tensor(x).s);
    memcpy(shape, x->shape, sizeof shape);
    shape[x->rank - 1] = k;
    return ed_call_output(call, 0, x->dtype, x->rank, shape) &&
           ed_call_output(call, 1, ED_INT64, x->rank, shape);
}

static void one_top(const sort_lines *all, sorting *s, int64_t line)
{
    const ed_tensor *x = all->call->inputs[0];
    const int64_t element = (int64_t)dtype_size(x->dtype), to = line * all->work.k;
    char *values = all->call->outputs[0]->data + to * element;
    int64_t *indices = (int64_t *)all->call->outputs[1]->data + to;
    BY_DTYPE(x->dtype, top_one, s, x->data + line * all->work.n * element, values, indices)
}

static bool top_k_kernel(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t n = x->shape[x->rank - 1], k = ((const top_k_attrs *)call->attrs)->k;
    sort_lines all = {.call = call, .work = {.n = n, .stride = 1, .k = k}, .line = one_top};
    if (call->outputs[0]->size == 0) return true;
    if (n > UINT32_MAX)
        return ed_call_fail(call, ED_UNIMPLEMENTED,
                            "x %s has more than 2^32 - 1 elements in a line", text_of_tensor(x).s);
    all.lines = x->size / n;
    all.work.room = (k < n / 4 ? 2 * k : n) + HARD(TOP_BLOCK + 16, 256);
    return run_lines(&all, all.work.room, dtype_size(x->dtype) == 8 ? 16 : 8, false);
}

static bool top_k_gradient(const ed_gradient_call *g)
{
    if (g->dy[0]) g->dx[0] = index_along_sum(g->dy[0], g->outputs[1], g->shapes[0], -1);
    return true;
}

static bool top_k_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    const int64_t n = x->shape[x->rank - 1], k = ((const top_k_attrs *)call->attrs)->k;
    for (int64_t line = 0; k && line < x->size / n; line++) {
        plain_item *items = plain_line((const double *)x->data + line * n, n, 1, true);
        if (!items) return false;
        for (int64_t i = 0; i < k; i++) {
            ((double *)call->outputs[0]->data)[line * k + i] = items[i].value;
            ((double *)call->outputs[1]->data)[line * k + i] = (double)items[i].index;
        }
        memory_free(items);
    }
    return true;
}

#define TOP_K(n) ED_ATTRS(TOP_K_ATTRS, top_k_attrs, .k = n)

ED_OP(top_k) = {
    .name = "top_k",
    .doc = "the k largest elements along the last axis, and their indices",
    .operands = {{"x", ED_SET_NUMBER, 'T'}},
    .results = ED_RESULTS({.name = "values"}, {.name = "indices", .saved = true}),
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(TOP_K_ATTRS, top_k_attrs),
    .infer = top_k_infer,
    .batch = ed_batch_axes,
    .kernel = top_k_kernel,
    .gradient = top_k_gradient,
    .reference = top_k_plain,
    .samples = ED_SAMPLES({.inputs = {ED_DISTINCT_IN(-2, 2, 3, 7)}, .attrs = TOP_K(3)},
                          {.inputs = {ED_DISTINCT_IN(-2, 2, 5)}, .attrs = TOP_K(5)}),
};

ed_tensor *ed_top_k(ed_tensor *x, int64_t k, ed_tensor **indices)
{
    return ops_call_into(&ed_op_top_k, &x, 1, TOP_K(k), (ed_tensor * *const[]){indices});
}
