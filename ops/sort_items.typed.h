/*
 * Stable sorting of items, for one type of item: an unsigned key, or TYPE pair, a key with an
 * index. Least significant byte first; bytes that are the same everywhere are passed over.
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

static void TYPED(count_range)(int64_t first, int64_t last, int worker, void *user)
{
    sorting *s = user;
    (void)worker;
    for (int64_t p = first; p < last; p++) {
        const ITEM *items = s->from;
        int64_t *counts = s->counts[p];
        memset(counts, 0, sizeof s->counts[p]);
        for (int64_t i = sort_border(s, p); i < sort_border(s, p + 1); i++)
            counts[SORT_KEY(items[i]) >> s->shift & 255]++;
    }
}

static void TYPED(move_range)(int64_t first, int64_t last, int worker, void *user)
{
    sorting *s = user;
    (void)worker;
    for (int64_t p = first; p < last; p++) {
        const ITEM *from = s->from;
        ITEM *to = s->to;
        int64_t *places = s->counts[p];
        for (int64_t i = sort_border(s, p); i < sort_border(s, p + 1); i++)
            to[places[SORT_KEY(from[i]) >> s->shift & 255]++] = from[i];
    }
}

/* Sorts by the bits from `shift` on; where the items are then, `items` or `room`. */
static ITEM *TYPED(sort_items)(sorting *s, ITEM *items, ITEM *room, int64_t n, int shift)
{
    if (n <= SORT_FEW) {
        TYPED(sort_few)(items, n);
        return items;
    }
    s->n = n;
    s->pieces = n < SORT_ALONE ? 1 : s->most_pieces;
    for (s->shift = shift; s->shift < SORT_BITS; s->shift += 8) {
        s->from = items;
        s->to = room;
        threads_run(s->pieces, 1, TYPED(count_range), s);
        if (!sort_places(s)) continue;
        threads_run(s->pieces, 1, TYPED(move_range), s);
        ITEM *other = items;
        items = room;
        room = other;
    }
    return items;
}

#undef ITEM
#undef SORT_KEY
#undef SORT_BITS
#undef TYPE
