#include "ops/reduce_plan.h"
#include "tensor/threads.h"
#include <string.h>

typedef struct fold {
    reduce_plan plan;
    const reduce_loops *loops;
    char *y, *mean;
    char *states; /* of all items' pieces, where there are several */
    size_t state_bytes;
    char *scratch; /* `each` bytes for a worker, where rows are folded */
    size_t each;
} fold;

/* Elements first..first+n-1 of an item's outputs, one block, into a state. */
static void fold_block(const fold *f, const reduce_item *it, int64_t first, int64_t n, void *state,
                       void *scratch)
{
    const reduce_plan *p = &f->plan;
    if (p->by_rows) {
        const void *rows[REDUCE_BLOCK];
        reduce_find_rows(p, it->x, first, n, rows);
        f->loops->rows(rows, n, it->width, state, scratch);
    } else if (p->adjoin) {
        f->loops->groups(it->x + first * (int64_t)p->element, p->line_stride, it->width, n, 0,
                         state);
    } else {
        char buffer[REDUCE_BLOCK * sizeof(double)] __attribute__((aligned(64)));
        const char *from = reduce_fetch(p, it->x, first, n, buffer);
        for (int64_t i = 1; i < it->width; i++) {
            char *to = buffer + i * n * (int64_t)p->element;
            const void *at =
                reduce_fetch(p, it->x + i * p->line_stride * (int64_t)p->element, first, n, to);
            if (i == 1 && from != buffer) memcpy(buffer, from, (size_t)n * p->element);
            if (at != to) memcpy(to, at, (size_t)n * p->element);
            from = buffer;
        }
        f->loops->groups(from, n, it->width, n, 0, state);
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

static void finish(const fold *f, const reduce_item *it, const void *state)
{
    const reduce_plan *p = &f->plan;
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

/*
 * Merges what can be of n states, of blocks 0..blocks-1, which together have `count` elements, the
 * last of them of `last` blocks; all of them if there will be no more. Returns how many are left.
 */
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
static void fold_many(const fold *f, const char *x, int64_t blocks, char *state)
{
    const size_t element = f->plan.element;
    char left[2 * REDUCE_MANY * sizeof(double)] __attribute__((aligned(64))), right[sizeof left];
    f->loops->groups(x, REDUCE_BLOCK, blocks, REDUCE_BLOCK, f->plan.ahead, left);
    for (int64_t each = 1; each < blocks; each *= 2) {
        const int64_t pairs = blocks / each / 2;
        for (int half = 0; half < 2; half++) {
            const char *from = left + (size_t)(half * reduce_step(2 * pairs)) * element;
            const size_t to = (size_t)(half * reduce_step(pairs)) * element;
            reduce_copy_run(right + to, from + element, pairs, 2, element);
            reduce_copy_run(left + to, from, pairs, 2, element);
        }
        f->loops->merge(left, right, pairs, each * REDUCE_BLOCK, each * REDUCE_BLOCK);
    }
    memcpy(state, left, f->state_bytes);
}

/* How many whole blocks fold_many is to have of `left` elements: a power of 2, so that they are a
 * part of the tree; 1: that it is not for them. */
static int64_t how_many(const reduce_plan *p, const reduce_item *it, int64_t left)
{
    int64_t blocks = p->adjoin && it->width == 1 ? REDUCE_MANY : 1;
    while (blocks > 1 && blocks * REDUCE_BLOCK > left) blocks /= 2;
    return blocks;
}

/* One piece of an item: to its state among all, or, if it is the only one, to the output. */
static void fold_piece(const fold *f, int64_t number, char *scratch)
{
    char near[NEAR_BYTES] __attribute__((aligned(64)));
    const reduce_plan *p = &f->plan;
    char *states = scratch ? scratch : near, *rest = states + ROW_STATES * f->state_bytes;
    int64_t first = number % p->pieces * p->piece, count = p->layout.count - first, n = 0;
    reduce_item it = reduce_find_item(p, number / p->pieces);
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
    const reduce_plan *p = &f->plan;
    reduce_item it = reduce_find_item(p, number);
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

/* States of `total` pieces and the workers' scratch; false without memory. */
static bool make_states(fold *f, int64_t total, int workers)
{
    const reduce_plan *p = &f->plan;
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
    reduce_plan *p = &f.plan;
    reduce_make_layout(&p->layout, x, mask);
    if (p->layout.outputs == 0) return true;
    if (p->layout.count == 0) {
        fill_empty(kind, x->dtype, p->layout.outputs, y, mean);
        return true;
    }
    const bool twice = kind == REDUCE_VARIANCE || kind == REDUCE_STD || kind == REDUCE_LOGSUMEXP;
    reduce_make_plan(p, x, mask, twice);
    int64_t total = p->items * p->pieces, pieces = reduce_grain(x, total);
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
