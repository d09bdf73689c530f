/* The index of the best: of each item block by block, then where in the best block. */
#include "ops/reduce_plan.h"
#include "tensor/threads.h"
#include <string.h>

enum { BEST_ADJOINING = 8 * REDUCE_BLOCK };

typedef struct best {
    reduce_plan plan;
    const reduce_best_loops *loops;
    bool smallest;
    int64_t *y;
    char *values; /* of all items' pieces, `step` bytes each */
    int64_t *indices;
    size_t step;
} best;

/* What lies p->ahead bytes behind n adjoining elements, if x is far. Not inlined, the compiler
 * would take it for a function that does nothing. */
static inline __attribute__((always_inline)) void prefetch(const reduce_plan *p, const char *x,
                                                           int64_t n)
{
    const int64_t bytes = n * (int64_t)p->element;
    for (int64_t at = 0; p->ahead && p->adjoin && at < bytes; at += 64)
        __builtin_prefetch(x + p->ahead + at);
}

/* How many elements are looked at at once. Of many that adjoin the loops but for AVX-512's read two
 * places at a time, which takes the place of prefetches: 64 MB in 4.3 ms for 5.2. */
static int64_t best_block(const reduce_plan *p)
{
    return p->adjoin && isa_level != ISA_AVX512 ? BEST_ADJOINING : REDUCE_BLOCK;
}

/* The best of elements first..first+count-1 of one output: block by block, and then where in the
 * best block. */
static int64_t best_of_group(const best *b, const char *x, int64_t first, int64_t count,
                             void *value)
{
    char buffer[REDUCE_BLOCK * sizeof(double)] __attribute__((aligned(64)));
    const int64_t most = best_block(&b->plan);
    int64_t block = 0;
    for (int64_t done = 0; done < count; done += most) {
        int64_t n = count - done < most ? count - done : most;
        double one; /* room for an element of any dtype */
        if (most == REDUCE_BLOCK)
            prefetch(&b->plan, x + (first + done) * (int64_t)b->plan.element, n);
        b->loops->value(reduce_fetch(&b->plan, x, first + done, n, buffer), n, b->smallest, &one);
        if (done && !b->loops->beats(&one, value, b->smallest)) continue;
        memcpy(value, &one, b->plan.element);
        block = done;
    }
    int64_t n = count - block < most ? count - block : most;
    int64_t at = b->loops->find(reduce_fetch(&b->plan, x, first + block, n, buffer), n, value);
    return at < 0 ? 0 : first + block + at;
}

static void best_piece(const best *b, int64_t number)
{
    const reduce_plan *p = &b->plan;
    int64_t first = number % p->pieces * p->piece, count = p->layout.count - first;
    reduce_item it = reduce_find_item(p, number / p->pieces);
    char *values = b->values + (size_t)number * b->step;
    int64_t *indices = b->indices + number * p->width;
    if (count > p->piece) count = p->piece;
    if (p->adjoin && !p->by_rows && p->layout.count <= REDUCE_BLOCK) {
        b->loops->groups(it.x, p->line_stride, it.width, count, b->smallest, values, indices);
        return;
    }
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
        reduce_find_rows(p, it.x, first + done, n, rows);
        b->loops->rows(rows, n, it.width, done, b->smallest, values, indices);
    }
    b->loops->finish(values, it.width, indices);
    for (int64_t i = 0; i < it.width; i++) indices[i] += first;
}

/* The first of the best pieces. */
static void best_finish(const best *b, int64_t number)
{
    const reduce_plan *p = &b->plan;
    reduce_item it = reduce_find_item(p, number);
    if (p->pieces == 1 && p->line_apart == 1) {
        memcpy(b->y + it.output, b->indices + number * p->width, (size_t)it.width * sizeof *b->y);
        return;
    }
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
    reduce_plan *p = &b.plan;
    if (x->size == 0) return true;
    reduce_make_plan(p, x, mask, false);
    int64_t total = p->items * p->pieces;
    b.step = (size_t)p->width * p->element;
    b.values = memory_alloc((size_t)total * b.step);
    b.indices = memory_alloc((size_t)(total * p->width) * sizeof *b.indices);
    bool ok = b.values && b.indices;
    if (ok) threads_run(total, reduce_grain(x, total), best_range, &b);
    for (int64_t i = 0; ok && i < p->items; i++) best_finish(&b, i);
    memory_free(b.values);
    memory_free(b.indices);
    return ok;
}
