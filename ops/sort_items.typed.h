/*
 * Sorting of items, for one type of item: an unsigned key, or TYPE pair, a key with an index.
 * ops/sort.c says how.
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

/* How often each value of each of the next digits is there; both numbers are constants. */
static inline
    __attribute__((always_inline)) void TYPED(count_digits)(const ITEM *items, int64_t n, int shift,
                                                            int64_t *counts, const int digits,
                                                            const int bits)
{
    memset(counts, 0, ((size_t)digits << bits) * sizeof *counts);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = SORT_KEY(items[i]) >> shift;
#pragma GCC unroll 4
        for (int d = 0; d < digits; d++)
            counts[(d << bits) + (int64_t)(key >> d * bits & ((1u << bits) - 1))]++;
    }
}

static void TYPED(move_items)(const ITEM *from, ITEM *to, int64_t n, int shift, int bits,
                              int64_t *places)
{
    const uint64_t mask = (1u << bits) - 1;
    for (int64_t i = 0; i < n; i++) {
        const ITEM item = from[i];
        to[places[SORT_KEY(item) >> shift & mask]++] = item;
    }
}

/* Sorts by the bits from `shift` on, digit by digit; where the items are then, `items` or `room`.
 */
static ITEM *TYPED(sort_digits)(int64_t *counts, ITEM *items, ITEM *room, int64_t n, int shift)
{
    const bool narrow = n < SORT_NARROW;
    const int bits = narrow ? SORT_NARROW_BITS : SORT_WIDE_BITS;
    const int digits = narrow ? SORT_NARROW_DIGITS : SORT_WIDE_DIGITS;
    for (; shift < SORT_BITS; shift += digits * bits) {
        if (narrow)
            TYPED(count_digits)(items, n, shift, counts, SORT_NARROW_DIGITS, SORT_NARROW_BITS);
        else
            TYPED(count_digits)(items, n, shift, counts, SORT_WIDE_DIGITS, SORT_WIDE_BITS);
        for (int d = 0; d < digits; d++) {
            int64_t *places = counts + (d << bits);
            const uint64_t value = SORT_KEY(items[0]) >> (shift + d * bits) & ((1u << bits) - 1);
            if (places[value] == n) continue; /* all have this one */
            sort_places(places, 1 << bits);
            TYPED(move_items)(items, room, n, shift + d * bits, bits, places);
            ITEM *other = items;
            items = room;
            room = other;
        }
    }
    return items;
}

#if defined(SORT_VECTORS)
/*
 * Sorts n items, which are in `to` or in `room`, into `to`, and reads them as those from `place` of
 * the line on. Those below the pivot go to `to`, the others to `room`, where they have room enough
 * for what comes next: of either place what the one part leaves is as long as the other part. If
 * there are none below it, those that equal it are done. `depth` is how often parts may still be
 * parted.
 */
static void TYPED(sort_quickly)(const sorting *s, int64_t *counts, const ITEM *from, ITEM *to,
                                ITEM *room, int64_t n, int64_t place, int depth)
{
    const sort_vectors *v = SORT_VECTORS(s);
    if (n * (int64_t)sizeof *to <= SORT_QUICK) {
        v->network(from, to, n);
        sort_read(s, to, n, place);
        return;
    }
    if (depth == 0) {
        ITEM *items = from == to ? to : room;
        items = TYPED(sort_digits)(counts, items, from == to ? room : to, n, 0);
        if (items != to) memcpy(to, items, (size_t)n * sizeof *to);
        sort_read(s, to, n, place);
        return;
    }
    const uint64_t pivot = v->pivot(from, n);
    int64_t done = pivot ? v->part(from, to, room, n, pivot - 1) : 0;
    if (done) {
        TYPED(sort_quickly)(s, counts, to, to, room + n - done, done, place, depth - 1);
    } else {
        done = v->part(pivot ? room : from, to, room, n, pivot);
        sort_read(s, to, done, place);
    }
    TYPED(sort_quickly)(s, counts, room, to + done, room, n - done, place + done, depth - 1);
}

static void TYPED(sort_by_quarters)(const sorting *s, int64_t *counts, ITEM *from, ITEM *a, ITEM *b,
                                    int64_t n, int64_t place);

/* Two quarters go to either of two places, which have room for n items and SORT_GAP more. */
static sort_quarters TYPED(begin_quarters)(ITEM *a, ITEM *b, int64_t n)
{
    return (sort_quarters){.at = {a, a + n + SORT_GAP, b, b + n + SORT_GAP}};
}

/* Sorts the quarters of n items, one after the other. Where they came from, n items, is free now,
 * and behind the third quarter there is room for the first two. What is more than half of them,
 * many equal ones perhaps, is no work for quarters. */
static void TYPED(sort_each_quarter)(const sorting *s, int64_t *counts, const sort_quarters *q,
                                     ITEM *from, ITEM *a, ITEM *b, int64_t n, int64_t place)
{
    ITEM *const begins[] = {a, q->at[1], b, q->at[3]};
    const int64_t third = (ITEM *)q->at[2] - b;
    const int64_t sizes[] = {(ITEM *)q->at[0] - a, a + n + SORT_GAP - (ITEM *)q->at[1], third,
                             b + n + SORT_GAP - (ITEM *)q->at[3]};
    for (int k = 0; k < 4; k++) {
        const int64_t size = sizes[k];
        ITEM *const begin = begins[k], *const to = (ITEM *)s->in_order + place;
        if (size > n / 2)
            TYPED(sort_quickly)(s, counts, begin, to, begin, size, place, sort_depth(size));
        else if (size > 0)
            TYPED(sort_by_quarters)(s, counts, begin, from, k < 2 ? b + third : a, size, place);
        place += size;
    }
}

/* Sorts n items, which are at `from`, to where those from `place` of the line on shall lie, and
 * reads them; a and b have room for them and SORT_GAP more each. */
static void TYPED(sort_by_quarters)(const sorting *s, int64_t *counts, ITEM *from, ITEM *a, ITEM *b,
                                    int64_t n, int64_t place)
{
    const sort_vectors *v = SORT_VECTORS(s);
    sort_quarters q = TYPED(begin_quarters)(a, b, n);
    if (n > SORT_QUARTERED) v->quartiles(from, n, &q);
    if (n > SORT_QUARTERED && q.last[0] < q.last[2]) {
        v->quarter(from, n, &q);
        TYPED(sort_each_quarter)(s, counts, &q, from, a, b, n, place);
    } else {
        ITEM *const to = (ITEM *)s->in_order + place;
        TYPED(sort_quickly)(s, counts, from, to, from, n, place, sort_depth(n));
    }
}

/* The same for all elements of a line, which become items on their way; `free` has room for n. */
static void TYPED(sort_elements)(const sorting *s, ITEM *free, ITEM *a, ITEM *b, int64_t n)
{
    const sort_vectors *v = SORT_VECTORS(s);
    sort_quarters q = TYPED(begin_quarters)(a, b, n);
    ITEM some[SORT_SOME];
    for (int64_t i = 0; i < SORT_SOME; i += SORT_GAP) {
        const int64_t first = (n - SORT_GAP) / (SORT_SOME / SORT_GAP - 1) * (i / SORT_GAP);
        s->make(first, first + SORT_GAP, 0,
                &(sort_line){s->work, s->elements, some + i, .place = first});
    }
    v->quartiles(some, SORT_SOME, &q);
    for (int64_t first = 0; first < n; first += SORT_SOME) {
        const int64_t last = first + SORT_SOME < n ? first + SORT_SOME : n;
        s->make(first, last, 0, &(sort_line){s->work, s->elements, some, .place = first});
        v->quarter(some, last - first, &q);
    }
    TYPED(sort_each_quarter)(s, s->counts, &q, free, a, b, n, 0);
}
#endif

/* Sorts by the bits from `shift` on, in one thread, and reads the items as those from `place` of
 * the line on; where they are then, `items` or `room`. */
static ITEM *TYPED(sort_alone)(const sorting *s, int64_t *counts, ITEM *items, ITEM *room,
                               int64_t n, int64_t place, int shift)
{
#if defined(SORT_VECTORS)
    if (sort_compares(SORT_VECTORS(s), n, SORT_BITS - shift)) {
        TYPED(sort_quickly)(s, counts, items, items, room, n, place, sort_depth(n));
        return items;
    }
#endif
    if (n > SORT_FEW)
        items = TYPED(sort_digits)(counts, items, room, n, shift);
    else
        TYPED(sort_few)(items, n);
    sort_read(s, items, n, place);
    return items;
}

/* ---- By all threads -------------------------------------------------------------------------- */

/* A sample says up to which key each share goes. */
static void TYPED(split_keys)(sorting *s)
{
    const int64_t n = s->n_shares * SORT_SAMPLE;
    const threads_range read = s->read; /* not of a sample */
    ITEM *sample = s->to;
    for (int64_t i = 0; i < n; i++) sample[i] = ((const ITEM *)s->from)[s->n / n * i];
    s->read = NULL;
    sample = TYPED(sort_alone)(s, s->counts, sample, sample + n, n, 0, 0);
    s->read = read;
    uint64_t first = 0;
    for (int64_t p = 0; p < s->n_shares; p++) {
        const bool rest = p + 1 == s->n_shares;
        s->shares[p].first = first;
        s->shares[p].last = rest ? SORT_MOST : SORT_KEY(sample[(p + 1) * SORT_SAMPLE - 1]);
        first = s->shares[p].last + 1;
    }
}

static int64_t TYPED(count_up_to)(const sorting *s, const ITEM *items, int64_t n, uint64_t most)
{
    int64_t count = 0;
#if defined(SORT_VECTORS)
    if (SORT_VECTORS(s)->count) return SORT_VECTORS(s)->count(items, n, most);
#endif
    (void)s;
    for (int64_t i = 0; i < n; i++) count += SORT_KEY(items[i]) <= most;
    return count;
}

/* How many items of each part of the line go to a share and those before it. */
static void TYPED(split_count)(int64_t first, int64_t last, int worker, void *user)
{
    const sorting *s = user;
    (void)worker;
    for (int64_t part = first; part < last; part++) {
        const int64_t begin = sort_border(s, part), n = sort_border(s, part + 1) - begin;
        int64_t *counts = sort_counts(s, part);
        for (int64_t p = 0; p + 1 < s->n_shares; p++)
            counts[p] = TYPED(count_up_to)(s, (const ITEM *)s->from + begin, n, s->shares[p].last);
        counts[s->n_shares - 1] = n;
    }
}

/* Each share takes its items of all, in their order, by vectors where these can. Without branches,
 * which nobody could foresee; it ends with the last of its items, so that it writes nothing of the
 * next share. */
static void TYPED(split_take)(int64_t first, int64_t last, int worker, void *user)
{
    const sorting *s = user;
    (void)worker;
    for (int64_t p = first; p < last; p++) {
        const sort_share share = s->shares[p];
        const ITEM *from = s->from;
        void *to = (ITEM *)s->to + share.begin, *const end = (ITEM *)to + share.n;
#if defined(SORT_VECTORS)
        if (SORT_VECTORS(s)->take && share.n)
            from += SORT_VECTORS(s)->take(from, s->n, &share, &to, end);
#endif
        for (ITEM *next = to; next < (ITEM *)end; from++) {
            *next = *from;
            next += SORT_KEY(*from) - share.first <= share.last - share.first;
        }
    }
}

static void TYPED(split_sort)(int64_t first, int64_t last, int worker, void *user)
{
    const sorting *s = user;
    (void)worker;
    for (int64_t p = first; p < last; p++) {
        const sort_share share = s->shares[p];
        ITEM *items = (ITEM *)s->to + share.begin, *room = (ITEM *)s->from + share.begin;
#if defined(SORT_VECTORS)
        if (s->quarters) {
            ITEM *const more = (ITEM *)s->items + 2 * sort_room(s->n) + share.begin;
            TYPED(sort_by_quarters)
            (s, sort_counts(s, p), items, room + p * SORT_GAP, more + p * SORT_GAP, share.n,
             share.begin);
            continue;
        }
#endif
        const ITEM *done =
            TYPED(sort_alone)(s, sort_counts(s, p), items, room, share.n, share.begin, s->lowest);
        if (!s->read && done != items) memcpy(items, done, (size_t)share.n * sizeof *items);
    }
}

/* Sorts by the bits from `shift` on, and reads the items or, where nobody does, returns where they
 * are, `items` or `room`. */
static ITEM *TYPED(sort_items)(sorting *s, ITEM *items, ITEM *room, int64_t n, int shift)
{
    if (sort_is_alone(s, n)) return TYPED(sort_alone)(s, s->counts, items, room, n, 0, shift);
    s->n = n;
    s->from = items;
    s->to = room;
    s->lowest = shift;
    TYPED(split_keys)(s);
    threads_run(s->n_shares, 1, TYPED(split_count), s);
    split_places(s);
    threads_run(s->n_shares, 1, TYPED(split_take), s);
    threads_run(s->n_shares, 1, TYPED(split_sort), s);
    return room;
}

/* Sorts a line by the bits from `shift` on. */
static void TYPED(sort_line)(sorting *s, int shift)
{
    const int64_t n = s->work->n;
    ITEM *const items = s->items, *const room = items + sort_room(n);
#if defined(SORT_VECTORS)
    ITEM *const more = room + sort_room(n);
    if (s->quarters && !s->in_order) s->in_order = more + sort_room(n);
    if (s->quarters && sort_is_alone(s, n)) {
        TYPED(sort_elements)(s, more, items, room, n);
        return;
    }
#endif
    threads_run(n, SORT_ALONE, s->make, &(sort_line){s->work, s->elements, items, .place = 0});
    TYPED(sort_items)(s, items, room, n, shift);
}

#undef ITEM
#undef SORT_KEY
#undef SORT_BITS
#undef SORT_MOST
#undef SORT_VECTORS
#undef TYPE
