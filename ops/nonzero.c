/*
 * nonzero. How many results it has depends on the elements, so it is a composition, which makes its
 * output itself: blocks of a mask are counted, then each block writes its indices where those of
 * the blocks before it end. 64 elements become the bits of a word, of which only those that are set
 * are looked at: no branch depends on a single element.
 */
#include "ops/index.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include <string.h>

enum { NONZERO_BLOCK = HARD(64, 1 << 16), NONZERO_WORD = 64 };

/* The mask's elements, in words also as bits, and how many of the blocks' are true: first of each,
 * then of all before it. */
typedef struct nonzero_work {
    const ed_tensor *mask;
    uint64_t *words;
    int64_t *counts; /* one more than there are blocks */
    int64_t *to;
} nonzero_work;

/* Where the elements, or with `unit` NONZERO_WORD the words, of the blocks before this one end. */
static int64_t nonzero_end(const nonzero_work *w, int64_t blocks, int64_t unit)
{
    const int64_t end = blocks * NONZERO_BLOCK;
    return ((end < w->mask->size ? end : w->mask->size) + unit - 1) / unit;
}

/* The bits of the n <= NONZERO_WORD elements from `mask` on; *count grows by those that are set. */
static inline uint64_t nonzero_bits(const uint8_t *mask, int64_t n, int64_t *count)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7f, ones = 0x0101010101010101,
                   spread = 0x0002040810204081; /* puts bit 7 of byte i at 56 + i */
    uint64_t bits = 0, sums = 0;
    for (int64_t i = 0; i < n; i += 8) {
        uint64_t eight = 0;
        memcpy(&eight, mask + i, n - i < 8 ? (size_t)(n - i) : 8);
        eight = (((eight & low) + low) | eight) & ~low; /* bit 7 of a byte: it is not 0 */
        bits |= eight * spread >> 56 << i;
        sums += eight >> 7;
    }
    *count += (int64_t)(sums * ones >> 56);
    return bits;
}

static void nonzero_count(int64_t first, int64_t last, int worker, void *user)
{
    const nonzero_work *w = user;
    const uint8_t *mask = (const uint8_t *)w->mask->data;
    (void)worker;
    for (int64_t block = first; block < last; block++) {
        const int64_t end = nonzero_end(w, block + 1, 1);
        int64_t i = block * NONZERO_BLOCK, count = 0;
        for (; i + NONZERO_WORD <= end; i += NONZERO_WORD)
            w->words[i / NONZERO_WORD] = nonzero_bits(mask + i, NONZERO_WORD, &count);
        if (i < end) w->words[i / NONZERO_WORD] = nonzero_bits(mask + i, end - i, &count);
        w->counts[block + 1] = count;
    }
}

/* The indices of the elements `begin` + i for the bits i, in a tensor of one axis. */
static int64_t *nonzero_flat(uint64_t bits, int64_t begin, int64_t *to)
{
    for (; bits; bits &= bits - 1) *to++ = begin + __builtin_ctzll(bits);
    return to;
}

/* Where a walk through a tensor of several axes is: the line's indices, its first element, and the
 * first one behind it. */
typedef struct nonzero_line {
    int64_t at[ED_MAX_RANK], begin, end;
} nonzero_line;

static int64_t *nonzero_indices(const ed_tensor *x, nonzero_line *line, uint64_t bits,
                                int64_t begin, int64_t *to)
{
    const int rank = x->rank;
    for (; bits; bits &= bits - 1) {
        const int64_t i = begin + __builtin_ctzll(bits);
        if (i >= line->end) {
            int64_t number = i / x->shape[rank - 1];
            line->begin = number * x->shape[rank - 1];
            line->end = line->begin + x->shape[rank - 1];
            for (int d = rank - 2; d >= 0; number /= x->shape[d--])
                line->at[d] = number % x->shape[d];
        }
        for (int d = 0; d < rank - 1; d++) *to++ = line->at[d];
        *to++ = i - line->begin;
    }
    return to;
}

static void nonzero_fill(int64_t first, int64_t last, int worker, void *user)
{
    const nonzero_work *w = user;
    const ed_tensor *x = w->mask;
    nonzero_line line = {.end = 0};
    int64_t *to = w->to + w->counts[first] * x->rank;
    (void)worker;
    for (int64_t i = first * (NONZERO_BLOCK / NONZERO_WORD); i < nonzero_end(w, last, NONZERO_WORD);
         i++)
        to = x->rank == 1 ? nonzero_flat(w->words[i], i * NONZERO_WORD, to)
                          : nonzero_indices(x, &line, w->words[i], i * NONZERO_WORD, to);
}

/* Its elements as truth values, contiguous, which the scope holds. */
static const ed_tensor *as_mask(ed_tensor *x)
{
    if (ed_dtype_of(x) != ED_BOOL) x = ed_cast(x, ED_BOOL);
    return x ? scope_give(tensor_contiguous(tensor_read(x))) : NULL;
}

/* The indices; NULL without memory. */
static ed_tensor *nonzero_run(nonzero_work *w, int64_t blocks)
{
    const bool outer = threads_may_stop(false); /* the counts say where to write */
    threads_run(blocks, 1, nonzero_count, w);
    for (int64_t i = 0; i < blocks; i++) w->counts[i + 1] += w->counts[i];
    ed_tensor *y =
        scope_give(tensor_new(ED_INT64, 2, ((int64_t[]){w->counts[blocks], w->mask->rank})));
    if (y) w->to = (int64_t *)y->data;
    if (y && y->size) /* a scalar's index has no numbers */
        threads_run(blocks, 1, nonzero_fill, w);
    threads_may_stop(outer);
    return y;
}

static bool nonzero_compose(ed_call *call)
{
    ed_tensor *x = call->inputs[0];
    nonzero_work w = {.mask = as_mask(x)};
    if (!w.mask) return false;
    const int64_t blocks = (w.mask->size + NONZERO_BLOCK - 1) / NONZERO_BLOCK;
    w.counts = memory_zalloc((size_t)(blocks + 1) * sizeof *w.counts);
    w.words = memory_alloc((size_t)nonzero_end(&w, blocks, NONZERO_WORD) * sizeof *w.words);
    ed_tensor *y = w.counts && w.words ? nonzero_run(&w, blocks) : NULL;
    memory_free(w.words);
    memory_free(w.counts);
    return ed_call_result(call, 0, y);
}

static bool nonzero_reference(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0];
    double *to = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < x->size; i++) {
        int64_t rest = i;
        if (((const double *)x->data)[i] == 0) continue;
        for (int d = x->rank - 1; d >= 0; rest /= x->shape[d--])
            to[d] = (double)(rest % x->shape[d]);
        to += x->rank;
    }
    return true;
}

ED_OP(nonzero) = {
    .name = "nonzero",
    .doc = "the indices [n, rank] of the elements that are true or not 0",
    .operands = {{"x", ED_SET_ALL, .early = true}},
    .compose = nonzero_compose,
    .no_gradient = "its result is an integer",
    .reference = nonzero_reference,
    .samples = ED_SAMPLES({.inputs = {ED_SAMPLE_IN(-1, 1, 5)}},
                          {.inputs = {ED_SAMPLE_IN(0, 1, 2, 3, 7)}}),
};

ed_tensor *ed_nonzero(ed_tensor *x)
{
    return CALL_OP(nonzero, NULL, x);
}
