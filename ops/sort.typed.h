/* sort, argsort and top_k of a line, for one type of element. */
#include "ops/sort_keys.typed.h"

/* A line of elements sorted. */
static void TYPED(sort_one)(sorting *s, const void *from, void *to)
{
    const bool same_size = sizeof(KEY_ITEM) == sizeof(NUMBER);
    sort_begin(s, from, s->convert->make_keys, to, s->convert->read_keys, same_size);
    KEY_LINE(s, 0);
}

/* The indices that sort a line. */
static void TYPED(argsort_one)(sorting *s, const void *from, void *to)
{
    const bool same_size = sizeof(PAIR_ITEM) == sizeof(int64_t);
    sort_begin(s, from, s->convert->make_pairs, to, s->convert->read_pairs, same_size);
    PAIR_LINE(s, PAIR_SHIFT);
}

/*
 * A key that at least k elements of a line reach: the k-th best of the maxima of groups of them.
 * The largest key if too many of these groups hold nothing but NaN.
 */
static KEY TYPED(top_bound)(sorting *s, const NUMBER *x)
{
    const sort_work *w = s->work;
    const int64_t groups = top_groups(w), rows = w->n / groups;
    NUMBER *maxima = (void *)((PAIR_ITEM *)s->items + w->room);
    KEY_ITEM *keys = s->items;
    s->top->maxima(x, rows < TOP_ROWS ? rows : TOP_ROWS, groups, maxima);
    for (int64_t g = 0; g < groups; g++) keys[g] = TYPED(key_of)(maxima[g], true);
    return KEY_SORT(s, keys, keys + groups, groups, 0)[w->k - 1];
}

/* The best k of a line's items, in order; the others go. */
static void TYPED(top_select)(sorting *s, top_items *all)
{
    const sort_work *w = s->work;
    PAIR_ITEM *items = all->items;
    PAIR_ITEM *sorted = PAIR_SORT(s, items, items + w->room, all->count, PAIR_SHIFT);
    if (all->count > w->k) all->count = w->k;
    if (sorted != items) memcpy(items, sorted, (size_t)all->count * sizeof *items);
}

/*
 * The k best of a line: candidates are gathered, those whose key is within a bound; whenever their
 * room is full, the best k stay, and the bound is what is better than the last of them. A first
 * bound of a line that is much longer than k comes from the maxima of groups. While no number but
 * the lowest is within reach, all elements are candidates, NaN too.
 */
static void TYPED(top_one)(sorting *s, const void *from, void *values, int64_t *indices)
{
    const sort_work *w = s->work;
    const NUMBER *x = from;
    NUMBER *y = values;
    const KEY all_numbers = TYPED(key_of)(KEY_LOWEST, true);
    KEY bound = w->n >= 4 * top_groups(w) ? TYPED(top_bound)(s, x) : all_numbers;
    top_items to = {.items = s->items, .room = w->room};
    PAIR_ITEM *items = to.items;
    for (int64_t i = 0; i < w->n;) {
        const NUMBER least = TYPED(of_key)(bound, true);
        if (bound < all_numbers)
            i = s->top->gather(x, i, w->n, &least, &to);
        else
            for (; i < w->n && to.count < to.room; i++)
                items[to.count++] = PAIR_MAKE(TYPED(key_of)(x[i], true), i);
        if (i == w->n) break;
        TYPED(top_select)(s, &to);
        bound = PAIR_KEY(items[w->k - 1]);
        if (bound-- == 0) break; /* nothing is better than all of these */
    }
    TYPED(top_select)(s, &to);
    for (int64_t j = 0; j < w->k; j++) {
        indices[j] = PAIR_INDEX(items[j]);
        y[j] = x[indices[j]];
    }
}

#undef TYPE
