/*
 * dynamic_partition: slices sorted into several tensors by numbers. Infer counts the slices of each
 * partition in pieces of x, which says how large the parts are and where in them each piece begins;
 * so the pieces are moved at once, each slice straight to its place.
 */
#include "ops/batch.h"
#include "ops/index.h"
#include "ops/ops.h"
#include "tensor/hard.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include <string.h>

#define PARTS_ATTRS(FIELD, T) FIELD(T, INT, num_partitions, 1, ED_AT_LEAST(0), "how many there are")
ED_OPTIONS(parts_attrs, PARTS_ATTRS);

enum {
    PIECE = HARD(3, 1 << 15), /* slices of a piece, at least */
    NUMBERS = HARD(2, 128)    /* of partitions, which are read at once */
};

/* How x is cut: the plan. Pieces are no smaller than there are parts, so counts are few. */
typedef struct cutting {
    const ed_tensor *partitions; /* contiguous: infer's, then the kernel's */
    int64_t parts, each, pieces; /* each: slices of a piece */
    int64_t counts[];            /* [pieces, parts]: the slices; then the place of the first */
} cutting;

static int64_t piece_end(const cutting *c, int64_t piece)
{
    const int64_t end = (piece + 1) * c->each;
    return end < c->partitions->size ? end : c->partitions->size;
}

/* ---- Counts ---------------------------------------------------------------------------------- */

static void count_pieces(int64_t first, int64_t last, int worker, void *user)
{
    cutting *c = user;
    int64_t room[NUMBERS];
    (void)worker;
    for (int64_t piece = first; piece < last; piece++) {
        int64_t *counts = c->counts + piece * c->parts;
        const int64_t end = piece_end(c, piece);
        memset(counts, 0, (size_t)c->parts * sizeof *counts);
        for (int64_t at = piece * c->each; at < end; at += NUMBERS) {
            const int64_t n = end - at < NUMBERS ? end - at : NUMBERS;
            const int64_t *numbers = index_some(c->partitions, at, n, room);
            for (int64_t i = 0; i < n; i++) counts[numbers[i]]++;
        }
    }
}

/* Makes places of the counts of one part; how many slices it has. */
static int64_t places_of(cutting *c, int64_t part)
{
    int64_t place = 0;
    for (int64_t piece = 0; piece < c->pieces; piece++) {
        int64_t *count = &c->counts[piece * c->parts + part];
        const int64_t n = *count;
        *count = place;
        place += n;
    }
    return place;
}

static bool cut_pieces(ed_call *call, const ed_tensor *partitions, int64_t parts)
{
    const int64_t n = partitions->size, each = parts > PIECE ? parts : PIECE;
    const int64_t pieces = (n + each - 1) / each;
    if (!index_check(call, partitions, parts)) return false;
    cutting *c = ed_call_plan(call, sizeof *c + (size_t)(pieces * parts) * sizeof *c->counts);
    if (!c) return false;
    c->partitions = partitions;
    c->parts = parts;
    c->each = each;
    c->pieces = pieces;
    const bool outer = threads_may_stop(false); /* what nobody counted would be no place */
    threads_run(pieces, 1, count_pieces, c);
    threads_may_stop(outer);
    return true;
}

static bool partition_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    ed_tensor *partitions = call->inputs[1];
    const int64_t parts = ((const parts_attrs *)call->attrs)->num_partitions;
    const int leading = partitions->rank;
    int64_t shape[ED_MAX_RANK + 1];
    if (leading > x->rank ||
        memcmp(x->shape, partitions->shape, (size_t)leading * sizeof *shape) != 0 ||
        (!leading && x->rank == ED_MAX_RANK))
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "partitions is %s; it must have the leading axes of %s",
                            text_of_tensor(partitions).s, text_of_tensor(x).s);
    ed_tensor *packed = tensor_contiguous(partitions);
    bool ok = packed && ed_call_outputs(call, parts) && cut_pieces(call, packed, parts);
    ed_release(packed);
    memcpy(shape + 1, x->shape + leading, (size_t)(x->rank - leading) * sizeof *shape);
    for (int part = 0; ok && part < parts; part++) {
        shape[0] = places_of(call->plan, part);
        ok = ed_call_output(call, part, x->dtype, 1 + x->rank - leading, shape);
    }
    return ok;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

typedef struct moving {
    const cutting *cut;
    const char *x;
    size_t bytes; /* of a slice */
    char **next;  /* [pieces, parts]: where the next slice goes */
} moving;

#define MOVE_AS(type)                                                                              \
    for (int64_t i = 0; i < n; i++) memcpy(to[i], x + (size_t)i * sizeof(type), sizeof(type));     \
    break

/* n slices, one behind the other, each to its place. */
static void move_slices(const char *x, size_t bytes, int64_t n, char *const *to)
{
    switch (bytes) {
    case 1: MOVE_AS(uint8_t);
    case 2: MOVE_AS(uint16_t);
    case 4: MOVE_AS(uint32_t);
    case 8: MOVE_AS(uint64_t);
    default:
        for (int64_t i = 0; i < n; i++) memcpy(to[i], x + (size_t)i * bytes, bytes);
    }
}

/* The places of some slices are found before any of these is moved: behind a write to a place that
 * is just being read, the next place would wait until it is known (3.7 ns a slice for 2.1). */
static void move_pieces(int64_t first, int64_t last, int worker, void *user)
{
    const moving *m = user;
    const cutting *c = m->cut;
    int64_t room[NUMBERS];
    char *to[NUMBERS];
    (void)worker;
    for (int64_t piece = first; piece < last; piece++) {
        const int64_t end = piece_end(c, piece);
        char **next = m->next + piece * c->parts;
        for (int64_t at = piece * c->each; at < end; at += NUMBERS) {
            const int64_t n = end - at < NUMBERS ? end - at : NUMBERS;
            const int64_t *numbers = index_some(c->partitions, at, n, room);
            for (int64_t i = 0; i < n; i++) {
                to[i] = next[numbers[i]];
                next[numbers[i]] += m->bytes;
            }
            move_slices(m->x + (size_t)at * m->bytes, m->bytes, n, to);
        }
    }
}

static bool partition_kernel(ed_call *call)
{
    cutting *c = call->plan;
    const ed_tensor *x = call->inputs[0];
    c->partitions = call->inputs[1];
    if (!x->size) return true;
    const size_t bytes = (size_t)(x->size / c->partitions->size) * dtype_size(x->dtype);
    moving m = {.cut = c, .x = x->data, .bytes = bytes};
    m.next = memory_alloc((size_t)(c->pieces * c->parts) * sizeof *m.next);
    if (!m.next) return false;
    for (int64_t piece = 0; piece < c->pieces; piece++)
        for (int64_t part = 0; part < c->parts; part++) {
            const int64_t at = piece * c->parts + part;
            m.next[at] = call->outputs[part]->data + (size_t)c->counts[at] * bytes;
        }
    threads_run(c->pieces, 1, move_pieces, &m);
    memory_free(m.next);
    return true;
}

/* ---- The op ---------------------------------------------------------------------------------- */

/* dx = the parts' gradients put together again, where their slices came from. */
static bool partition_gradient(const ed_gradient_call *g)
{
    const ed_ints shape = ed_shape(g->inputs[1]);
    ed_tensor *numbers = ed_range(0, (double)ed_size(g->inputs[1]), .dtype = ED_INT64);
    ed_list *places = ed_dynamic_partition(ed_reshape(numbers, shape), g->inputs[1], g->n_outputs);
    ed_list *parts = scope_give(list_new(g->n_outputs));
    if (!places || !parts) return false;
    int64_t rest[ED_MAX_RANK + 1];
    const int64_t rank = 1 + g->shapes[0].count - shape.count;
    memcpy(rest + 1, g->shapes[0].values + shape.count, (size_t)(rank - 1) * sizeof *rest);
    for (int part = 0; part < g->n_outputs; part++) {
        ed_tensor *dy = g->dy[part];
        rest[0] = ed_size(places->items[part]);
        if (!dy) dy = ed_zeros(((ed_ints){rest, rank}), .dtype = g->dtypes[0]);
        parts->items[part] = ed_retain(dy);
        if (!dy) return false;
    }
    g->dx[0] = ed_reshape(ed_dynamic_stitch(places, parts), g->shapes[0]);
    return true;
}

/* An x for each call has them as a further axis of its slices. */
static ed_list *partition_batch(const ed_batch_call *call)
{
    return batch_last(call, 1);
}

static bool partition_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *partitions = call->inputs[1];
    const int64_t each = partitions->size ? x->size / partitions->size : 0;
    for (int k = 0; k < call->n_outputs; k++) {
        double *to = (double *)call->outputs[k]->data;
        for (int64_t i = 0; i < partitions->size; i++)
            for (int64_t j = 0; j < each; j++)
                if (((const double *)partitions->data)[i] == k)
                    *to++ = ((const double *)x->data)[i * each + j];
    }
    return true;
}

#define PARTS(n) ED_ATTRS(PARTS_ATTRS, parts_attrs, .num_partitions = n)

ED_OP(dynamic_partition) = {
    .name = "dynamic_partition",
    .doc = "the slices of x by their partition, one tensor for each",
    .operands = {{"x", ED_SET_ALL, 'T'},
                 {"partitions", ED_SET_INDEX, 'I', .saved = true, .early = true}},
    .flags = ED_OP_CONTIGUOUS | ED_OP_MANY_OUTPUTS,
    .results = ED_RESULTS({.name = "part"}),
    ED_OP_ATTRS(PARTS_ATTRS, parts_attrs),
    .infer = partition_infer,
    .batch = partition_batch,
    .kernel = partition_kernel,
    .gradient = partition_gradient,
    .reference = partition_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 6, 2), ED_SAMPLE_IN(0, 2, 6)}, .attrs = PARTS(3)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4), ED_SAMPLE_IN(0, 1, 2, 4)}, .attrs = PARTS(2)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3), ED_SAMPLE_IN(0, 0)}}),
};

ed_list *ed_dynamic_partition(ed_tensor *x, ed_tensor *partitions, int64_t num_partitions)
{
    return ed_execute_list(&ed_op_dynamic_partition, (ed_tensor *[]){x, partitions}, 2,
                           PARTS(num_partitions));
}
