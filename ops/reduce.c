#include "ops/reduce.h"
#include "tensor/threads.h"
#include <string.h>

/*
 * The driver. Outputs are cut in items that lie along one kept dimension, the line; an item's
 * elements are walked in one of two ways:
 *
 *     by groups   each output's elements adjoin in memory (or are gathered block by block):
 *                 the sums of a matrix' rows
 *     by rows     neighbouring outputs' elements adjoin, so whole rows are folded at a time:
 *                 the sums of its columns
 *
 * and in pieces of fixed size, so that few outputs of many elements keep all threads busy too.
 */

/* ---- Layout ---------------------------------------------------------------------------------- */

/*
 * A tensor as a reduction sees it: the dimensions that stay and those that go, each list in logical
 * order, neighbours that memory joins merged, sizes of 1 dropped.
 */
typedef struct layout {
    int n_kept, n_gone;
    int64_t kept[ED_MAX_RANK], kept_strides[ED_MAX_RANK];
    int64_t gone[ED_MAX_RANK], gone_strides[ED_MAX_RANK];
    int64_t outputs, count;
} layout;

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

/* The layout of x for the dimensions in `mask`. */
static void make_layout(layout *l, const ed_tensor *x, unsigned mask)
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

typedef struct plan {
    layout layout;
    const char *x;
    size_t element;
    bool by_rows, adjoin; /* adjoin: by groups, and no gathering */
    int line; /* the kept dimension along which an item's outputs lie; -1: there is one output */
    int64_t line_extent, line_stride, line_apart; /* apart: of its outputs */
    int64_t width, chunks, items;
    int64_t piece, pieces; /* elements of one output that are folded by one thread, and how many
                              times that is */
} plan;

/* A piece is a power of 2 of blocks: its tree is part of the whole's, so the way it is cut changes
 * no bit. */
enum { GROUP_PIECE = 64 * REDUCE_BLOCK, ROW_PIECE = 4 * REDUCE_BLOCK };

/*
 * The way through memory. Gathered groups fit the gathering's buffer; groups of several blocks come
 * one at a time, since the state of each would be far from its neighbour's elements.
 */
static void make_plan(plan *p, const ed_tensor *x, unsigned mask)
{
    layout *l = &p->layout;
    make_layout(l, x, mask);
    p->x = x->data;
    p->element = dtype_size(x->dtype);
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
        p->width = REDUCE_WIDTH_BYTES / (int64_t)(p->element < 4 ? 4 : p->element);
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

/* An item's first element and first output, and how many outputs it has. */
typedef struct item {
    const char *x;
    int64_t output, width;
} item;

static item find_item(const plan *p, int64_t number)
{
    const layout *l = &p->layout;
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
    return (item){p->x + offset * (int64_t)p->element, output, left < p->width ? left : p->width};
}

/* ---- Walking the dimensions that go ---------------------------------------------------------- */

/* A position among the elements of one output. */
typedef struct walk {
    const layout *layout;
    int64_t at[ED_MAX_RANK], offset;
} walk;

static void walk_to(walk *w, const layout *l, int64_t element)
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
    const layout *l = w->layout;
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

static void copy_run(char *to, const char *from, int64_t n, int64_t stride, size_t element)
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

/* n elements of the output at x from number `first` on: where they lie if they adjoin, else
 * gathered in `to`. */
static const void *fetch(const plan *p, const char *x, int64_t first, int64_t n, char *to)
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
        copy_run(to + (size_t)done * element, x + w.offset * (int64_t)element, run, stride,
                 element);
        walk_on(&w, run);
        done += run;
    }
    return to;
}

/* The addresses of rows first..first+n-1 at x. */
static void find_rows(const plan *p, const char *x, int64_t first, int64_t n, const void **rows)
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

/* ---- Folding --------------------------------------------------------------------------------- */

typedef struct fold {
    plan plan;
    const reduce_loops *loops;
    char *y, *mean;
    char *states; /* of all items' pieces, where there are several */
    size_t state_bytes;
    char *scratch; /* `each` bytes for a worker, where rows are folded */
    size_t each;
} fold;

/* Elements first..first+n-1 of an item's outputs, one block, into a state. */
static void fold_block(const fold *f, const item *it, int64_t first, int64_t n, void *state,
                       void *scratch)
{
    const plan *p = &f->plan;
    if (p->by_rows) {
        const void *rows[REDUCE_BLOCK];
        find_rows(p, it->x, first, n, rows);
        f->loops->rows(rows, n, it->width, state, scratch);
    } else if (p->adjoin) {
        f->loops->groups(it->x + first * (int64_t)p->element, p->line_stride, it->width, n, state);
    } else {
        char buffer[REDUCE_BLOCK * sizeof(double)] __attribute__((aligned(64)));
        const char *from = fetch(p, it->x, first, n, buffer);
        for (int64_t i = 1; i < it->width; i++) {
            char *to = buffer + i * n * (int64_t)p->element;
            const void *at =
                fetch(p, it->x + i * p->line_stride * (int64_t)p->element, first, n, to);
            if (i == 1 && from != buffer) memcpy(buffer, from, (size_t)n * p->element);
            if (at != to) memcpy(to, at, (size_t)n * p->element);
            from = buffer;
        }
        f->loops->groups(from, n, it->width, n, state);
    }
}

/* Merges n neighbouring states pairwise into the first; all but the last stand for `each` elements
 * of `count`. */
static void merge_all(const fold *f, char *states, int64_t n, int64_t width, int64_t each,
                      int64_t count)
{
    for (int64_t step = 1; step < n; step *= 2)
        for (int64_t i = 0; i + step < n; i += 2 * step) {
            int64_t right = count - (i + step) * each;
            if (right > step * each) right = step * each;
            f->loops->merge(states + (size_t)i * f->state_bytes,
                            states + (size_t)(i + step) * f->state_bytes, width, step * each,
                            right);
        }
}

static void finish(const fold *f, const item *it, const void *state)
{
    const plan *p = &f->plan;
    size_t offset = (size_t)it->output * p->element;
    f->loops->finish(state, it->width, p->layout.count, f->y + offset,
                     f->mean ? f->mean + offset : NULL, p->line_apart);
}

/*
 * A piece's blocks merge in the order of merge_all, but as soon as both of a pair are there, so
 * that few states exist at a time: of five blocks they are 0, 01, 01 2, 0123, 0123 4.
 */
enum {
    ROW_STATES = 3,    /* at most, of ROW_PIECE / REDUCE_BLOCK = 4 blocks */
    NEAR_BYTES = 3072, /* on the stack; of groups, 7 states of 64 blocks are at most 1792 */
};

/* Merges what can be of n states, of blocks 0..blocks-1, which together have `count` elements, the
 * last of them of `last` blocks; all of them if there will be no more. Returns how many are left. */
static int64_t merge_pairs(const fold *f, char *states, int64_t n, int64_t width, int64_t blocks,
                           int64_t last, int64_t count, bool all)
{
    for (int64_t left; n > 1; last += left, n--) {
        const int64_t before = blocks - last;
        left = before & -before;
        if (left != last && !all) break;
        char *right = states + (size_t)(n - 1) * f->state_bytes;
        f->loops->merge(right - f->state_bytes, right, width, left * REDUCE_BLOCK,
                        count - before * REDUCE_BLOCK);
    }
    return n;
}

/* Blocks of one output that adjoin, as groups side by side, and their states merged as above: so
 * the calls for a block, and the wait for its state, are those for many. */
enum { MANY = 16 };

static void fold_many(const fold *f, const char *x, int64_t blocks, char *state)
{
    const size_t element = f->plan.element, half = MANY * element;
    char left[2 * MANY * sizeof(double)] __attribute__((aligned(64))), right[sizeof left];
    f->loops->groups(x, REDUCE_BLOCK, blocks, REDUCE_BLOCK, left);
    for (int64_t each = 1; each < blocks; each *= 2) {
        const int64_t pairs = blocks / each / 2;
        for (size_t at = 0; at < 2 * half; at += half) {
            copy_run(right + at, left + at + element, pairs, 2, element);
            copy_run(left + at, left + at, pairs, 2, element);
        }
        f->loops->merge(left, right, pairs, each * REDUCE_BLOCK, each * REDUCE_BLOCK);
    }
    memcpy(state, left, f->state_bytes);
}

/* How many whole blocks fold_many is to have of `left` elements: a power of 2, so that they are a
 * part of the tree; 1: that it is not for them. */
static int64_t how_many(const plan *p, const item *it, int64_t left)
{
    int64_t blocks = p->adjoin && it->width == 1 ? MANY : 1;
    while (blocks > 1 && blocks * REDUCE_BLOCK > left) blocks /= 2;
    return blocks;
}

/* One piece of an item: to its state among all, or, if it is the only one, to the output. */
static void fold_piece(const fold *f, int64_t number, char *scratch)
{
    char near[NEAR_BYTES] __attribute__((aligned(64)));
    const plan *p = &f->plan;
    char *states = scratch ? scratch : near, *rest = states + ROW_STATES * f->state_bytes;
    int64_t first = number % p->pieces * p->piece, count = p->layout.count - first, n = 0;
    item it = find_item(p, number / p->pieces);
    if (count > p->piece) count = p->piece;
    for (int64_t done = 0, blocks = 0; done < count;) {
        const int64_t many = how_many(p, &it, count - done), left = count - done;
        const int64_t size = many > 1 || left > REDUCE_BLOCK ? many * REDUCE_BLOCK : left;
        char *state = states + (size_t)n++ * f->state_bytes;
        if (many > 1)
            fold_many(f, it.x + (first + done) * (int64_t)p->element, many, state);
        else
            fold_block(f, &it, first + done, size, state, rest);
        blocks += many;
        done += size;
        n = merge_pairs(f, states, n, it.width, blocks, many, done, done == count);
    }
    if (f->states)
        memcpy(f->states + (size_t)number * f->state_bytes, states, f->state_bytes);
    else
        finish(f, &it, states);
}

static void finish_item(const fold *f, int64_t number)
{
    const plan *p = &f->plan;
    item it = find_item(p, number);
    char *states = f->states + (size_t)(number * p->pieces) * f->state_bytes;
    merge_all(f, states, p->pieces, it.width, p->piece, p->layout.count);
    finish(f, &it, states);
}

/* What nothing folds to. */
static void fill_empty(reduce_kind kind, ed_dtype dtype, int64_t outputs, void *y, void *mean)
{
    static const double nothing[REDUCE_KINDS] = {
        [REDUCE_SUM] = 0,
        [REDUCE_MEAN] = __builtin_nan(""),
        [REDUCE_PROD] = 1,
        [REDUCE_MAX] = 0, /* any; of numbers an error before this */
        [REDUCE_MIN] = 1, /* all */
        [REDUCE_VARIANCE] = __builtin_nan(""),
        [REDUCE_STD] = __builtin_nan(""),
        [REDUCE_LOGSUMEXP] = -__builtin_inf(),
    };
    for (int64_t i = 0; i < outputs; i++) {
        dtype_store(dtype, y, i, nothing[kind]);
        if (mean) dtype_store(dtype, mean, i, nothing[REDUCE_MEAN]);
    }
}

static void fold_range(int64_t first, int64_t last, int worker, void *user)
{
    const fold *f = user;
    char *scratch = f->scratch ? f->scratch + f->each * (size_t)worker : NULL;
    for (int64_t i = first; i < last; i++) fold_piece(f, i, scratch);
}

/* Pieces that a thread takes at a time: the whole if more threads don't pay. */
static int64_t grain(const ed_tensor *x, int64_t total)
{
    return x->size <= OPS_PARALLEL_WORK ? total : 1 + OPS_PARALLEL_WORK / 4 * total / x->size;
}

/* States of `total` pieces and the workers' scratch; false without memory. */
static bool make_states(fold *f, int64_t total, int workers)
{
    const plan *p = &f->plan;
    const size_t half = (size_t)reduce_step(p->width) * p->element;
    size_t bytes;
    f->state_bytes = 2 * half;
    f->each = ROW_STATES * f->state_bytes + REDUCE_SCRATCH * half;
    if (p->by_rows && f->each > NEAR_BYTES &&
        !(f->scratch = memory_alloc(f->each * (size_t)workers)))
        return false;
    return p->pieces == 1 ||
           (memory_mul((size_t)total, f->state_bytes, &bytes) && (f->states = memory_alloc(bytes)));
}

bool reduce_run(reduce_kind kind, const ed_tensor *x, unsigned mask, void *y, void *mean)
{
    fold f = {.loops = reduce_loops_for(kind, x->dtype), .y = y, .mean = mean};
    plan *p = &f.plan;
    make_layout(&p->layout, x, mask);
    if (p->layout.outputs == 0) return true;
    if (p->layout.count == 0) {
        fill_empty(kind, x->dtype, p->layout.outputs, y, mean);
        return true;
    }
    make_plan(p, x, mask);
    int64_t total = p->items * p->pieces, pieces = grain(x, total);
    int workers = pieces < total ? threads_count() : 1;
    bool ok = make_states(&f, total, workers);
    if (ok) threads_run_among(workers, total, pieces, fold_range, &f);
    for (int64_t i = 0; ok && f.states && i < p->items; i++) finish_item(&f, i);
    memory_free(f.scratch);
    memory_free(f.states);
    return ok;
}

double reduce_plain(bool product, const double *x, int64_t n)
{
    enum { LANES = 16 };
    double lane[LANES];
    for (int l = 0; l < LANES; l++) lane[l] = product;
    for (int64_t i = 0; i < n; i++)
        lane[i % LANES] = product ? lane[i % LANES] * x[i] : lane[i % LANES] + x[i];
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = product ? lane[l] * lane[l + half] : lane[l] + lane[l + half];
    return lane[0];
}

/* ---- The best of all ------------------------------------------------------------------------- */

typedef struct best {
    plan plan;
    const reduce_best_loops *loops;
    bool smallest;
    int64_t *y;
    char *values; /* of all items' pieces, `step` bytes each */
    int64_t *indices;
    size_t step;
} best;

/* The best of elements first..first+count-1 of one output: block by block, and then where in the
 * best block. */
static int64_t best_of_group(const best *b, const char *x, int64_t first, int64_t count,
                             void *value)
{
    char buffer[REDUCE_BLOCK * sizeof(double)] __attribute__((aligned(64)));
    int64_t block = 0;
    for (int64_t done = 0; done < count; done += REDUCE_BLOCK) {
        int64_t n = count - done < REDUCE_BLOCK ? count - done : REDUCE_BLOCK;
        double one; /* room for an element of any dtype */
        b->loops->value(fetch(&b->plan, x, first + done, n, buffer), n, b->smallest, &one);
        if (done && !b->loops->beats(&one, value, b->smallest)) continue;
        memcpy(value, &one, b->plan.element);
        block = done;
    }
    int64_t n = count - block < REDUCE_BLOCK ? count - block : REDUCE_BLOCK;
    int64_t at = b->loops->find(fetch(&b->plan, x, first + block, n, buffer), n, value);
    return at < 0 ? 0 : first + block + at;
}

static void best_piece(const best *b, int64_t number)
{
    const plan *p = &b->plan;
    int64_t first = number % p->pieces * p->piece, count = p->layout.count - first;
    item it = find_item(p, number / p->pieces);
    char *values = b->values + (size_t)number * b->step;
    int64_t *indices = b->indices + number * p->width;
    if (count > p->piece) count = p->piece;
    if (!p->by_rows) {
        for (int64_t i = 0; i < it.width; i++) {
            const char *x = it.x + i * p->line_stride * (int64_t)p->element;
            indices[i] = best_of_group(b, x, first, count, values + (size_t)i * p->element);
        }
        return;
    }
    const void *rows[REDUCE_BLOCK];
    for (int64_t done = 0; done < count; done += REDUCE_BLOCK) {
        int64_t n = count - done < REDUCE_BLOCK ? count - done : REDUCE_BLOCK;
        find_rows(p, it.x, first + done, n, rows);
        b->loops->rows(rows, n, it.width, done, b->smallest, values, indices);
    }
    b->loops->finish(values, it.width, indices);
    for (int64_t i = 0; i < it.width; i++) indices[i] += first;
}

/* The first of the best pieces. */
static void best_finish(const best *b, int64_t number)
{
    const plan *p = &b->plan;
    item it = find_item(p, number);
    for (int64_t i = 0; i < it.width; i++) {
        int64_t winner = number * p->pieces;
        for (int64_t k = winner + 1; k < (number + 1) * p->pieces; k++)
            if (b->loops->beats(b->values + (size_t)k * b->step + (size_t)i * p->element,
                                b->values + (size_t)winner * b->step + (size_t)i * p->element,
                                b->smallest))
                winner = k;
        b->y[it.output + i * p->line_apart] = b->indices[winner * p->width + i];
    }
}

static void best_range(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    for (int64_t i = first; i < last; i++) best_piece(user, i);
}

bool reduce_best(const ed_tensor *x, unsigned mask, bool smallest, int64_t *y)
{
    best b = {.loops = reduce_best_for(x->dtype), .smallest = smallest, .y = y};
    plan *p = &b.plan;
    if (x->size == 0) return true;
    make_plan(p, x, mask);
    int64_t total = p->items * p->pieces;
    b.step = (size_t)p->width * p->element;
    b.values = memory_alloc((size_t)total * b.step);
    b.indices = memory_alloc((size_t)(total * p->width) * sizeof *b.indices);
    bool ok = b.values && b.indices;
    if (ok) threads_run(total, grain(x, total), best_range, &b);
    for (int64_t i = 0; ok && i < p->items; i++) best_finish(&b, i);
    memory_free(b.values);
    memory_free(b.indices);
    return ok;
}
