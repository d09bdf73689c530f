/* The elements of a line become keys, or keys with indices, and back, for one type of element. */
#include "ops/sort_keys.typed.h"

/* The keys of elements first..last-1, and back; a constant stride lets the compiler use vectors. */
VECTOR_INLINE void TYPED(make_keys_of)(const sort_line *l, int64_t first, int64_t last,
                                       int64_t stride, bool descending)
{
    const NUMBER *x = l->from;
    const int64_t place = l->place;
    KEY_ITEM *keys = l->to;
    for (int64_t i = first; i < last; i++)
        keys[i - place] = TYPED(value_key)(x[i * stride], descending);
}

VECTOR_INLINE void TYPED(read_keys_of)(const sort_line *l, int64_t first, int64_t last,
                                       int64_t stride, bool descending)
{
    const KEY_ITEM *keys = l->from;
    const int64_t place = l->place;
    NUMBER *y = l->to;
    for (int64_t i = first; i < last; i++)
        y[i * stride] = TYPED(of_key)(keys[i - place], descending);
}

/* The keys with their indices, and these alone. */
VECTOR_INLINE void TYPED(make_pairs_of)(const sort_line *l, int64_t first, int64_t last,
                                        int64_t stride, bool descending)
{
    const NUMBER *x = l->from;
    const int64_t place = l->place;
    PAIR_ITEM *items = l->to;
    for (int64_t i = first; i < last; i++)
        items[i - place] = PAIR_MAKE(TYPED(key_of)(x[i * stride], descending), i);
}

VECTOR_INLINE void TYPED(read_pairs_of)(const sort_line *l, int64_t first, int64_t last,
                                        int64_t stride, bool descending)
{
    const PAIR_ITEM *items = l->from;
    const int64_t place = l->place;
    int64_t *y = l->to;
    (void)descending;
    for (int64_t i = first; i < last; i++) y[i * stride] = PAIR_INDEX(items[i - place]);
}

/* One of them as the threads share it. */
VECTOR_INLINE void TYPED(convert)(const sort_line *l, int64_t first, int64_t last,
                                  void (*f)(const sort_line *, int64_t, int64_t, int64_t, bool))
{
    const int64_t stride = l->work->stride;
    if (stride != 1)
        f(l, first, last, stride, l->work->descending);
    else if (l->work->descending)
        f(l, first, last, 1, true);
    else
        f(l, first, last, 1, false);
}

static void TYPED(make_keys)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    TYPED(convert)(user, first, last, TYPED(make_keys_of));
}

static void TYPED(read_keys)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    TYPED(convert)(user, first, last, TYPED(read_keys_of));
}

static void TYPED(make_pairs)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    TYPED(convert)(user, first, last, TYPED(make_pairs_of));
}

static void TYPED(read_pairs)(int64_t first, int64_t last, int worker, void *user)
{
    (void)worker;
    TYPED(convert)(user, first, last, TYPED(read_pairs_of));
}

#undef TYPE
