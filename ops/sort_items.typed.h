/*
 * Stable sorting of items, for one type of item: an unsigned key, or TYPE pair, a key with an
 * index. Least significant digit first; digits that are the same everywhere are passed over.
 */
#define ITEM TYPED(sort_item)

static void TYPED(sort_few)(ITEM *items, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const ITEM item = items[i];
        int64_t j = i;
        for (; j > 0 && SORT_KEY(items[j - 1]) > SORT_KEY(item); j--) items[j] = items[j - 1];
        items[j] = item;
    }
}

/* How often a piece's items have each value of the next digits; both numbers are constants. */
static inline
    __attribute__((always_inline)) void TYPED(count_digits)(const sorting *s, int64_t piece,
                                                            const int digits, const int bits)
{
    const ITEM *items = s->from;
    const int64_t end = sort_border(s, piece + 1);
    const int shift = s->shift;
    int64_t *counts = sort_counts(s, piece, 0);
    memset(counts, 0, ((size_t)digits << bits) * sizeof *counts);
    for (int64_t i = sort_border(s, piece); i < end; i++) {
        const uint64_t key = SORT_KEY(items[i]) >> shift;
#pragma GCC unroll 4
        for (int d = 0; d < digits; d++)
            counts[(d << bits) + (int64_t)(key >> d * bits & ((1u << bits) - 1))]++;
    }
}

static void TYPED(count_range)(int64_t first, int64_t last, int worker, void *user)
{
    const sorting *s = user;
    (void)worker;
    for (int64_t p = first; p < last; p++)
        if (s->bits == SORT_NARROW_BITS)
            (s->digits == 1 ? TYPED(count_digits)(s, p, 1, SORT_NARROW_BITS)
                            : TYPED(count_digits)(s, p, SORT_NARROW_DIGITS, SORT_NARROW_BITS));
        else
            (s->digits == 1 ? TYPED(count_digits)(s, p, 1, SORT_WIDE_BITS)
                            : TYPED(count_digits)(s, p, SORT_WIDE_DIGITS, SORT_WIDE_BITS));
}

static void TYPED(move_range)(int64_t first, int64_t last, int worker, void *user)
{
    const sorting *s = user;
    const int shift = s->shift + s->digit * s->bits;
    const uint64_t mask = (1u << s->bits) - 1;
    (void)worker;
    for (int64_t p = first; p < last; p++) {
        const ITEM *from = s->from;
        ITEM *to = s->to;
        int64_t *places = sort_counts(s, p, s->digit);
        const int64_t end = sort_border(s, p + 1);
        for (int64_t i = sort_border(s, p); i < end; i++) {
            const ITEM item = from[i];
            to[places[SORT_KEY(item) >> shift & mask]++] = item;
        }
    }
}

/* Sorts by the bits from `shift` on; where the items are then, `items` or `room`. */
static ITEM *TYPED(sort_items)(sorting *s, ITEM *items, ITEM *room, int64_t n, int shift)
{
    if (n <= SORT_FEW) {
        TYPED(sort_few)(items, n);
        return items;
    }
    sort_begin(s, n);
    for (s->shift = shift; s->shift < SORT_BITS; s->shift += s->digits * s->bits) {
        s->from = items;
        threads_run(s->pieces, 1, TYPED(count_range), s);
        for (s->digit = 0; s->digit < s->digits; s->digit++) {
            if (!sort_places(s)) continue;
            s->from = items;
            s->to = room;
            threads_run(s->pieces, 1, TYPED(move_range), s);
            ITEM *other = items;
            items = room;
            room = other;
        }
    }
    return items;
}

#undef ITEM
#undef SORT_KEY
#undef SORT_BITS
#undef TYPE
