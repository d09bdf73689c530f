/* sort, argsort and top_k of a line, for one type of element. */
#include "ops/sort_keys.typed.h"

/* A line of elements sorted. */
static void TYPED(sort_one)(const sort_work *w, sorting *s, const void *from, void *to)
{
    KEY_ITEM *keys = s->items;
    threads_run(w->n, SORT_ALONE, s->convert->make_keys, &(sort_line){w, from, keys});
    keys = KEY_SORT(s, keys, keys + w->n, w->n, 0);
    threads_run(w->n, SORT_ALONE, s->convert->read_keys, &(sort_line){w, keys, to});
}

/* The indices that sort a line. */
static void TYPED(argsort_one)(const sort_work *w, sorting *s, const void *from, void *to)
{
    PAIR_ITEM *items = s->items;
    threads_run(w->n, SORT_ALONE, s->convert->make_pairs, &(sort_line){w, from, items});
    items = PAIR_SORT(s, items, items + w->n, w->n, PAIR_SHIFT);
    threads_run(w->n, SORT_ALONE, s->convert->read_pairs, &(sort_line){w, items, to});
}

/*
 * The k best of a line: candidates are gathered, those that are better than the k-th best so far;
 * whenever their room is full, they are sorted and the best k stay.
 */
static void TYPED(top_one)(const sort_work *w, sorting *s, const void *from, void *values,
                           int64_t *indices)
{
    const NUMBER *x = from;
    PAIR_ITEM *items = s->items;
    NUMBER *y = values;
    KEY limit = ~(KEY)0;
    NUMBER least = 0; /* what the limit stands for */
    bool limited = false;
    int64_t count = 0, i = 0;
    while (i < w->n) {
        if (limited && i + 16 < w->n) { /* mostly none of many; the last ones end in a sort */
            int better = 0;
            for (int j = 0; j < 16; j++) better |= x[i + j] > least;
            if (!better) {
                i += 16;
                continue;
            }
        }
        const int64_t end = i + 16 < w->n ? i + 16 : w->n;
        for (; i < end; i++) {
            const KEY key = TYPED(key_of)(x[i], true);
            if (!limited || key < limit) items[count++] = PAIR_MAKE(key, i);
        }
        if (count + 16 < w->room && i < w->n) continue;
        PAIR_ITEM *sorted = PAIR_SORT(s, items, (PAIR_ITEM *)s->items + w->room, count, PAIR_SHIFT);
        if (count > w->k) count = w->k;
        if (sorted != items) memcpy(items, sorted, (size_t)count * sizeof *items);
        if (count < w->k || !count) continue;
        limit = PAIR_KEY(items[count - 1]);
        least = x[PAIR_INDEX(items[count - 1])];
        limited = !isnan((double)least);
    }
    for (int64_t j = 0; j < w->k; j++) {
        indices[j] = PAIR_INDEX(items[j]);
        y[j] = x[indices[j]];
    }
}

#undef TYPE
