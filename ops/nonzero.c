/*
 * nonzero, boolean_mask. How many results there are depends on the elements: blocks of a mask are
 * counted, then each block writes its indices or elements where those of the blocks before it end.
 * 64 elements become the bits of a word, of which only those that are set are looked at: no branch
 * depends on a single element.
 */
#include "ops/index.h"
#include "ops/ops.h"
#include "tensor/threads.h"
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    NONZERO_BLOCK = HARD(64, 1 << 16),
    NONZERO_WORD = 64,
    NONZERO_ABREAST = 4 /* places of a block that are read at a time: memory gives more so */
};

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
static inline uint64_t nonzero_some(const uint8_t *mask, int64_t n, int64_t *count)
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

/* Those of a whole word. */
static inline uint64_t nonzero_bits(const uint8_t *mask, int64_t *count)
{
#if defined(__SSE2__)
    const __m128i zero = _mm_setzero_si128();
    __m128i zeros = zero; /* in each byte how many of four are 0, negated */
    uint64_t bits = 0;
    for (int i = 0; i < NONZERO_WORD; i += 16) {
        const __m128i is = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(mask + i)), zero);
        zeros = _mm_add_epi8(zeros, is);
        bits |= (uint64_t)_mm_movemask_epi8(is) << i;
    }
    const __m128i sums = _mm_sad_epu8(_mm_sub_epi8(zero, zeros), zero);
    *count += NONZERO_WORD - _mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_srli_si128(sums, 8)));
    return ~bits;
#else
    return nonzero_some(mask, NONZERO_WORD, count);
#endif
}

/* The words of n elements; how many of these are true. */
static int64_t nonzero_words(const uint8_t *mask, int64_t n, uint64_t *words)
{
    const int64_t whole = n / NONZERO_WORD, apart = whole / NONZERO_ABREAST;
    int64_t count = 0, i = 0;
    for (; i < apart; i++)
        for (int64_t k = i; k < NONZERO_ABREAST * apart; k += apart)
            words[k] = nonzero_bits(mask + k * NONZERO_WORD, &count);
    for (i *= NONZERO_ABREAST; i < whole; i++)
        words[i] = nonzero_bits(mask + i * NONZERO_WORD, &count);
    i *= NONZERO_WORD;
    if (i < n) words[whole] = nonzero_some(mask + i, n - i, &count);
    return count;
}

static void nonzero_count(int64_t first, int64_t last, int worker, void *user)
{
    const nonzero_work *w = user;
    const uint8_t *mask = (const uint8_t *)w->mask->data;
    (void)worker;
    for (int64_t block = first; block < last; block++) {
        const int64_t begin = block * NONZERO_BLOCK;
        w->counts[block + 1] = nonzero_words(mask + begin, nonzero_end(w, block + 1, 1) - begin,
                                             w->words + begin / NONZERO_WORD);
    }
}

/* The indices of the elements `begin` + i for the bits i, in a tensor of one axis. */
static int64_t *nonzero_flat(uint64_t bits, int64_t begin, int64_t *to)
{
    for (; bits; bits &= bits - 1) *to++ = begin + __builtin_ctzll(bits);
    return to;
}

/* The same where there is room for NONZERO_WORD numbers: eight are written at a time, as if there
 * were so many, so that no branch depends on how many there are, mostly. */
static int64_t *nonzero_eights(uint64_t bits, int64_t begin, int64_t *to)
{
    const uint64_t fives = 0x5555555555555555, threes = 0x3333333333333333,
                   nibbles = 0x0f0f0f0f0f0f0f0f, last = (uint64_t)1 << 63;
    const uint64_t pairs = bits - (bits >> 1 & fives);
    const uint64_t fours = (pairs & threes) + (pairs >> 2 & threes);
    const int64_t count = (int64_t)(((fours + (fours >> 4)) & nibbles) * (nibbles / 15) >> 56);
    for (int64_t i = 0; i < count; i += 8)
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            to[i + j] = begin + __builtin_ctzll(bits | last);
            bits &= bits - 1;
        }
    return to + count;
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
    const int64_t *end = w->to + w->counts[last] * x->rank;
    int64_t i = first * (NONZERO_BLOCK / NONZERO_WORD);
    (void)worker;
    for (; x->rank == 1 && end - to >= NONZERO_WORD; i++)
        to = nonzero_eights(w->words[i], i * NONZERO_WORD, to);
    for (; i < nonzero_end(w, last, NONZERO_WORD); i++)
        to = x->rank == 1 ? nonzero_flat(w->words[i], i * NONZERO_WORD, to)
                          : nonzero_indices(x, &line, w->words[i], i * NONZERO_WORD, to);
}

/* Its elements as truth values, contiguous, which the scope holds. */
static const ed_tensor *as_mask(ed_tensor *x)
{
    if (ed_dtype_of(x) != ED_BOOL) x = ed_cast(x, ED_BOOL);
    return x ? scope_give(tensor_contiguous(tensor_read(x))) : NULL;
}

/* Fills words and counts, of which counts[0] is 0. */
static void nonzero_find(nonzero_work *w, int64_t blocks)
{
    const bool outer = threads_may_stop(false); /* the counts say where to write */
    threads_run(blocks, 1, nonzero_count, w);
    threads_may_stop(outer);
    for (int64_t i = 0; i < blocks; i++) w->counts[i + 1] += w->counts[i];
}

/* The indices; NULL without memory. */
static ed_tensor *nonzero_run(nonzero_work *w, int64_t blocks)
{
    const bool outer = threads_may_stop(false);
    nonzero_find(w, blocks);
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

/* ---- boolean_mask ---------------------------------------------------------------------------- */

/* The plan: x is [before, masked, behind], slices of `bytes` bytes; found: where the mask is true,
 * which infer says. The mask that infer looked at is gone by then: the kernel puts its own there.
 */
typedef struct masking {
    nonzero_work found;
    int axis;
    int64_t before, blocks;
    size_t bytes;
    const char *x;
    char *y;
} masking;

/* Finds where the mask is true: words and counts are parts of the plan. */
static masking *masking_plan(ed_call *call, const ed_tensor *mask)
{
    const nonzero_work shape = {.mask = mask};
    const int64_t blocks = (mask->size + NONZERO_BLOCK - 1) / NONZERO_BLOCK;
    const int64_t words = nonzero_end(&shape, blocks, NONZERO_WORD);
    masking *m = ed_call_plan(call, sizeof *m + (size_t)(blocks + 1 + words) * sizeof(int64_t));
    if (!m) return NULL;
    *m = (masking){.found = shape, .blocks = blocks};
    m->found.counts = (int64_t *)(m + 1);
    m->found.words = (uint64_t *)(m->found.counts + blocks + 1);
    m->found.counts[0] = 0;
    nonzero_find(&m->found, blocks);
    return m;
}

static bool boolean_mask_infer(ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *mask = call->inputs[1];
    int64_t shape[ED_MAX_RANK];
    int axis, rank = 0;
    if (!ops_axis(call, ((const ed_boolean_mask_options *)call->attrs)->axis, x->rank, &axis))
        return false;
    if (mask->rank < 1 || mask->rank > x->rank - axis ||
        memcmp(mask->shape, x->shape + axis, (size_t)mask->rank * sizeof *shape) != 0)
        return ed_call_fail(call, ED_INVALID_ARGUMENT,
                            "the mask is %s; it must have the sizes of x, %s, from axis %lld on",
                            text_of_tensor(mask).s, text_of_tensor(x).s, text_nth(axis));
    ed_tensor *packed = tensor_contiguous(call->inputs[1]);
    masking *m = packed ? masking_plan(call, packed) : NULL;
    ed_release(packed);
    if (!m) return false;
    m->axis = axis;
    m->before = index_product(x->shape, 0, axis);
    m->bytes = (size_t)index_product(x->shape, axis + mask->rank, x->rank) * dtype_size(x->dtype);
    for (int i = 0; i < axis; i++) shape[rank++] = x->shape[i];
    shape[rank++] = m->found.counts[m->blocks];
    for (int i = axis + mask->rank; i < x->rank; i++) shape[rank++] = x->shape[i];
    return ed_call_output(call, 0, x->dtype, rank, shape);
}

/* The `count` slices whose bits are set in words, from x to adjoining places. Of many small ones
 * each is written, and the next behind it or over it, without a branch, as long as there is room;
 * of few those are looked for. `bytes` is a constant where it matters. */
static inline __attribute__((always_inline)) void take_some(const uint64_t *found, int64_t words,
                                                            const size_t bytes, const char *x,
                                                            char *to, int64_t count)
{
    const size_t word = NONZERO_WORD * bytes;
    const bool many = bytes <= 8 && count > words * (NONZERO_WORD / 8);
    const char *const end = to + (size_t)count * bytes;
    int64_t i = 0;
    for (; many && i < words && (size_t)(end - to) > word; i++, x += word)
        for (size_t k = 0; k < NONZERO_WORD; k++) {
            memcpy(to, x + k * bytes, bytes);
            to += (found[i] >> k & 1) * bytes;
        }
    for (; i < words; i++, x += word)
        for (uint64_t bits = found[i]; bits; bits &= bits - 1, to += bytes)
            memcpy(to, x + (size_t)__builtin_ctzll(bits) * bytes, bytes);
}

static void take_slices(const uint64_t *found, int64_t words, size_t bytes, const char *x, char *to,
                        int64_t count)
{
    switch (bytes) {
    case 1: take_some(found, words, 1, x, to, count); break;
    case 2: take_some(found, words, 2, x, to, count); break;
    case 4: take_some(found, words, 4, x, to, count); break;
    case 8: take_some(found, words, 8, x, to, count); break;
    default: take_some(found, words, bytes, x, to, count);
    }
}

/* Blocks of all planes, one plane after the other. */
static void masking_range(int64_t first, int64_t last, int worker, void *user)
{
    const masking *m = user;
    const int64_t *counts = m->found.counts, block_words = NONZERO_BLOCK / NONZERO_WORD;
    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t plane = i / m->blocks, block = i % m->blocks, word = block * block_words;
        const int64_t words = nonzero_end(&m->found, block + 1, NONZERO_WORD) - word;
        const char *x = m->x + (size_t)(plane * m->found.mask->size) * m->bytes;
        char *y = m->y + (size_t)(plane * counts[m->blocks]) * m->bytes;
        take_slices(m->found.words + word, words, m->bytes,
                    x + (size_t)(block * NONZERO_BLOCK) * m->bytes,
                    y + (size_t)counts[block] * m->bytes, counts[block + 1] - counts[block]);
    }
}

static bool boolean_mask_kernel(ed_call *call)
{
    masking *m = call->plan;
    m->found.mask = call->inputs[1];
    m->x = call->inputs[0]->data;
    m->y = call->outputs[0]->data;
    const int64_t pieces = m->before * m->blocks, size = call->inputs[0]->size;
    if (call->outputs[0]->size)
        threads_run(pieces, 1 + OPS_PARALLEL_WORK / 4 * pieces / size, masking_range, m);
    return true;
}

/* dx = dy where the mask is true, 0 elsewhere. */
static bool boolean_mask_gradient(const ed_gradient_call *g)
{
    const int axis =
        tensor_axis(((const ed_boolean_mask_options *)g->attrs)->axis, (int)g->shapes[0].count);
    ed_tensor *places = ed_flatten(ed_nonzero(ed_flatten(g->inputs[1])));
    g->dx[0] =
        ed_reshape(index_sum(g->dy[0], places, axis, 0, ed_size(g->inputs[1])), g->shapes[0]);
    return true;
}

/* An x for each call has one axis more in front. */
static ed_list *boolean_mask_batch(const ed_batch_call *call)
{
    const int64_t axis = ((const ed_boolean_mask_options *)call->attrs)->axis;
    if (call->batches[1]) return ed_batch_each(call);
    return ed_batch_result(
        ed_boolean_mask(call->batches[0], call->inputs[1], .axis = axis < 0 ? axis : axis + 1));
}

static bool boolean_mask_plain(const ed_call *call)
{
    const ed_tensor *x = call->inputs[0], *mask = call->inputs[1];
    const int axis = tensor_axis(((const ed_boolean_mask_options *)call->attrs)->axis, x->rank);
    const int64_t before = index_product(x->shape, 0, axis),
                  behind = index_product(x->shape, axis + mask->rank, x->rank);
    double *to = (double *)call->outputs[0]->data;
    for (int64_t i = 0; i < before * mask->size; i++)
        for (int64_t j = 0; j < behind; j++)
            if (((const double *)mask->data)[i % mask->size] != 0)
                *to++ = ((const double *)x->data)[i * behind + j];
    return true;
}

#define MASKED(a) ED_ATTRS(ED_BOOLEAN_MASK_OPTIONS, ed_boolean_mask_options, .axis = a)

ED_OP(boolean_mask) = {
    .name = "boolean_mask",
    .doc = "the slices of x where the mask is true",
    .operands = {{"x", ED_SET_ALL, 'T'}, {"mask", ED_SET_BOOL, .saved = true, .early = true}},
    .flags = ED_OP_CONTIGUOUS,
    ED_OP_ATTRS(ED_BOOLEAN_MASK_OPTIONS, ed_boolean_mask_options),
    .infer = boolean_mask_infer,
    .batch = boolean_mask_batch,
    .kernel = boolean_mask_kernel,
    .gradient = boolean_mask_gradient,
    .reference = boolean_mask_plain,
    .samples = ED_SAMPLES(
        {.inputs = {ED_SAMPLE_IN(-2, 2, 5, 3), ED_SAMPLE_IN(0, 1, 5)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 3, 4), ED_SAMPLE_IN(0, 1, 3, 4)}},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 3, 4, 5), ED_SAMPLE_IN(0, 1, 3, 4)}, .attrs = MASKED(1)},
        {.inputs = {ED_SAMPLE_IN(-2, 2, 2, 4), ED_SAMPLE_IN(0, 1, 4)}, .attrs = MASKED(-1)}),
};

ed_tensor *ed_boolean_mask_with(ed_tensor *x, ed_tensor *mask,
                                const ed_boolean_mask_options *options)
{
    return CALL_OP(boolean_mask, options, x, mask);
}
