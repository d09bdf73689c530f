#include "ops/reduce_plan.h"
#include <string.h>

/* A piece is a power of 2 of blocks: its tree is part of the whole's, so the way it is cut changes
 * no bit. */
enum { GROUP_PIECE = REDUCE_MANY * REDUCE_BLOCK, ROW_PIECE = 4 * REDUCE_BLOCK };

/* Of a row that is read once much is read at a time, for memory's sake, if so many items are left
 * to share out; if a block is read twice, little, so that it stays in the cache. Each column is
 * folded for itself, so that this changes no bit either. */
enum { NARROW_BYTES = REDUCE_WIDTH_BYTES / 4, WIDE_ITEMS = 8 };

enum {
    FAR_BYTES = HARD(0, 8 << 20), /* of x that is not in the nearer caches */
    AHEAD_BYTES = 12 << 10,       /* by which it is prefetched then */
};

/* ---- Layout ---------------------------------------------------------------------------------- */

/* Appends a dimension to a list, joined with the last if memory does. */
static void append(int *n, int64_t *extents, int64_t *strides, int64_t extent, int64_t stride)
{
    if (extent == 1) return;
    if (*n && strides[*n - 1] == extent * stride)
        extents[*n - 1] *= extent;
    else
        extents[(*n)++] = extent;
    strides[*n - 1] = stride;
}

void reduce_make_layout(reduce_layout *l, const ed_tensor *x, unsigned mask)
{
    l->n_kept = l->n_gone = 0;
    l->outputs = l->count = 1;
    for (int d = 0; d < x->rank; d++) {
        if (mask & 1u << d) {
            append(&l->n_gone, l->gone, l->gone_strides, x->shape[d], x->strides[d]);
            l->count *= x->shape[d];
        } else {
            append(&l->n_kept, l->kept, l->kept_strides, x->shape[d], x->strides[d]);
            l->outputs *= x->shape[d];
        }
    }
}

/* How many outputs that lie side by side an item has. */
static int64_t row_width(const reduce_plan *p, bool twice)
{
    const int64_t element = p->element < 4 ? 4 : (int64_t)p->element;
    const int64_t wide = REDUCE_WIDTH_BYTES / element;
    const int64_t items =
        p->layout.outputs / wide * ((p->layout.count + ROW_PIECE - 1) / ROW_PIECE);
    return twice || items < WIDE_ITEMS ? NARROW_BYTES / element : wide;
}

/*
 * The way through memory. Gathered groups fit the gathering's buffer; groups of several blocks come
 * one at a time, since the state of each would be far from its neighbour's elements.
 */
void reduce_make_plan(reduce_plan *p, const ed_tensor *x, unsigned mask, bool twice)
{
    reduce_layout *l = &p->layout;
    reduce_make_layout(l, x, mask);
    p->x = x->data;
    p->element = dtype_size(x->dtype);
    p->ahead = x->size * (int64_t)p->element >= FAR_BYTES ? AHEAD_BYTES : 0;
    p->adjoin = !l->n_gone || (l->n_gone == 1 && l->gone_strides[0] == 1);
    p->line = l->n_kept - 1;
    p->by_rows = false;
    for (int d = 0; d < l->n_kept && l->n_gone && l->gone_strides[l->n_gone - 1] != 1; d++)
        if (l->kept_strides[d] == 1) {
            p->by_rows = true;
            p->line = d;
        }
    p->line_extent = p->line < 0 ? 1 : l->kept[p->line];
    p->line_stride = p->line < 0 ? 0 : l->kept_strides[p->line];
    p->line_apart = 1;
    for (int d = p->line + 1; d < l->n_kept; d++) p->line_apart *= l->kept[d];
    if (p->by_rows)
        p->width = row_width(p, twice);
    else if (l->count > REDUCE_BLOCK)
        p->width = 1;
    else
        p->width = p->adjoin || l->count <= 8 ? 64 : REDUCE_BLOCK / l->count;
    if (p->width > p->line_extent) p->width = p->line_extent;
    p->chunks = (p->line_extent + p->width - 1) / p->width;
    p->items = l->outputs / p->line_extent * p->chunks;
    p->piece = p->by_rows ? ROW_PIECE : GROUP_PIECE;
    p->pieces = (l->count + p->piece - 1) / p->piece;
}

reduce_item reduce_find_item(const reduce_plan *p, int64_t number)
{
    const reduce_layout *l = &p->layout;
    int64_t chunk = number % p->chunks, rest = number / p->chunks, first = chunk * p->width;
    int64_t offset = first * p->line_stride, output = first * p->line_apart, apart = 1;
    for (int d = l->n_kept - 1; d >= 0; d--) {
        if (d != p->line) {
            int64_t at = d == 0 || (d == 1 && p->line == 0) ? rest : rest % l->kept[d];
            rest /= l->kept[d];
            offset += at * l->kept_strides[d];
            output += at * apart;
        }
        apart *= l->kept[d];
    }
    int64_t left = p->line_extent - first;
    return (reduce_item){p->x + offset * (int64_t)p->element, output,
                         left < p->width ? left : p->width};
}

/* ---- Walking the dimensions that go ---------------------------------------------------------- */

/* A position among the elements of one output. */
typedef struct walk {
    const reduce_layout *layout;
    int64_t at[ED_MAX_RANK], offset;
} walk;

static void walk_to(walk *w, const reduce_layout *l, int64_t element)
{
    w->layout = l;
    w->offset = 0;
    for (int d = l->n_gone - 1; d >= 0; d--) {
        w->at[d] = d ? element % l->gone[d] : element;
        element = d ? element / l->gone[d] : 0;
        w->offset += w->at[d] * l->gone_strides[d];
    }
}

/* How many elements are left of the innermost dimension, whose stride is *stride. */
static int64_t walk_run(const walk *w, int64_t *stride)
{
    int last = w->layout->n_gone - 1;
    *stride = last < 0 ? 0 : w->layout->gone_strides[last];
    return last < 0 ? 1 : w->layout->gone[last] - w->at[last];
}

/* On by n elements, at most what walk_run said. */
static void walk_on(walk *w, int64_t n)
{
    const reduce_layout *l = w->layout;
    int d = l->n_gone - 1;
    if (d < 0) return;
    w->at[d] += n;
    w->offset += n * l->gone_strides[d];
    for (; d > 0 && w->at[d] == l->gone[d]; d--) {
        w->offset += l->gone_strides[d - 1] - l->gone[d] * l->gone_strides[d];
        w->at[d] = 0;
        w->at[d - 1]++;
    }
}

void reduce_copy_run(char *to, const char *from, int64_t n, int64_t stride, size_t element)
{
    if (stride == 1) {
        memcpy(to, from, (size_t)n * element);
        return;
    }
#define COPY(type)                                                                                 \
    for (int64_t i = 0; i < n; i++) ((type *)to)[i] = ((const type *)from)[i * stride];            \
    break
    switch (element) {
    case 1: COPY(uint8_t);
    case 4: COPY(uint32_t);
    default: COPY(uint64_t);
    }
#undef COPY
}

const void *reduce_fetch(const reduce_plan *p, const char *x, int64_t first, int64_t n, char *to)
{
    const size_t element = p->element;
    if (p->adjoin) return x + first * (int64_t)element;
    walk w;
    int64_t stride;
    walk_to(&w, &p->layout, first);
    if (walk_run(&w, &stride) >= n && stride == 1) return x + w.offset * (int64_t)element;
    for (int64_t done = 0; done < n;) {
        int64_t run = walk_run(&w, &stride);
        if (run > n - done) run = n - done;
        reduce_copy_run(to + (size_t)done * element, x + w.offset * (int64_t)element, run, stride,
                        element);
        walk_on(&w, run);
        done += run;
    }
    return to;
}

void reduce_find_rows(const reduce_plan *p, const char *x, int64_t first, int64_t n,
                      const void **rows)
{
    const int64_t element = (int64_t)p->element;
    walk w;
    walk_to(&w, &p->layout, first);
    for (int64_t done = 0; done < n;) {
        int64_t stride, run = walk_run(&w, &stride);
        if (run > n - done) run = n - done;
        const char *row = x + w.offset * element;
        for (int64_t i = 0; i < run; i++) rows[done + i] = row + i * stride * element;
        walk_on(&w, run);
        done += run;
    }
}

int64_t reduce_grain(const ed_tensor *x, int64_t total)
{
    return x->size <= OPS_PARALLEL_WORK ? total : 1 + OPS_PARALLEL_WORK / 4 * total / x->size;
}
