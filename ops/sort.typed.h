/* Keys of elements, for one type: unsigned numbers in the elements' order, NaN after all. */

#if FLOATING
#define NAN_KEY (~(KEY)0)
static inline KEY TYPED(key_of)(NUMBER x, bool descending)
{
    KEY bits;
    if (x != x) return NAN_KEY;
    x += 0; /* -0 and 0 are equal */
    memcpy(&bits, &x, sizeof bits);
    bits = bits & SIGN ? ~bits : bits | SIGN;
    return descending ? ~bits : bits;
}
static inline NUMBER TYPED(of_key)(KEY key, bool descending)
{
    NUMBER x;
    if (key == NAN_KEY) return NAN;
    key = descending ? ~key : key;
    key = key & SIGN ? key ^ SIGN : ~key;
    memcpy(&x, &key, sizeof x);
    return x;
}
#undef NAN_KEY
#else
static inline KEY TYPED(key_of)(NUMBER x, bool descending)
{
    const KEY key = (KEY)x ^ SIGN;
    return descending ? ~key : key;
}
static inline NUMBER TYPED(of_key)(KEY key, bool descending)
{
    return (NUMBER)((descending ? ~key : key) ^ SIGN);
}
#endif

/* The keys of a line's elements first..last-1, and back. */
static void TYPED(make_keys)(int64_t first, int64_t last, int worker, void *user)
{
    const sort_line *l = user;
    const NUMBER *x = l->from;
    const int64_t stride = l->work->stride;
    const bool descending = l->work->descending;
    KEY_ITEM *keys = l->to;
    (void)worker;
    for (int64_t i = first; i < last; i++) keys[i] = TYPED(key_of)(x[i * stride], descending);
}

static void TYPED(read_keys)(int64_t first, int64_t last, int worker, void *user)
{
    const sort_line *l = user;
    const KEY_ITEM *keys = l->from;
    const int64_t stride = l->work->stride;
    const bool descending = l->work->descending;
    NUMBER *y = l->to;
    (void)worker;
    for (int64_t i = first; i < last; i++) y[i * stride] = TYPED(of_key)(keys[i], descending);
}

/* The keys with their indices, and these alone. */
static void TYPED(make_pairs)(int64_t first, int64_t last, int worker, void *user)
{
    const sort_line *l = user;
    const NUMBER *x = l->from;
    const int64_t stride = l->work->stride;
    const bool descending = l->work->descending;
    PAIR_ITEM *items = l->to;
    (void)worker;
    for (int64_t i = first; i < last; i++)
        items[i] = PAIR_MAKE(TYPED(key_of)(x[i * stride], descending), i);
}

static void TYPED(read_pairs)(int64_t first, int64_t last, int worker, void *user)
{
    const sort_line *l = user;
    const PAIR_ITEM *items = l->from;
    const int64_t stride = l->work->stride;
    int64_t *y = l->to;
    (void)worker;
    for (int64_t i = first; i < last; i++) y[i * stride] = PAIR_INDEX(items[i]);
}

/* A line of elements sorted. */
static void TYPED(sort_one)(const sort_work *w, sorting *s, const void *from, void *to)
{
    KEY_ITEM *keys = s->items;
    threads_run(w->n, SORT_ALONE, TYPED(make_keys), &(sort_line){w, from, keys});
    keys = KEY_SORT(s, keys, keys + w->n, w->n, 0);
    threads_run(w->n, SORT_ALONE, TYPED(read_keys), &(sort_line){w, keys, to});
}

/* The indices that sort a line. */
static void TYPED(argsort_one)(const sort_work *w, sorting *s, const void *from, void *to)
{
    PAIR_ITEM *items = s->items;
    threads_run(w->n, SORT_ALONE, TYPED(make_pairs), &(sort_line){w, from, items});
    items = PAIR_SORT(s, items, items + w->n, w->n, PAIR_SHIFT);
    threads_run(w->n, SORT_ALONE, TYPED(read_pairs), &(sort_line){w, items, to});
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

#undef KEY
#undef SIGN
#undef KEY_ITEM
#undef KEY_SORT
#undef PAIR_ITEM
#undef PAIR_SORT
#undef PAIR_MAKE
#undef PAIR_INDEX
#undef PAIR_KEY
#undef PAIR_SHIFT
#undef TYPE
