/* The k-th smallest element, for one type. */

#include "ops/select.typed.h"

#if FLOATING
#define LOWEST  (-(NUMBER)INFINITY)
#define HIGHEST ((NUMBER)INFINITY)
#else
#define LOWEST  NUMBER_MIN
#define HIGHEST NUMBER_MAX
#endif

/* The element number *kth of n sorted ones without NaN; *kth is then its number among its equals.
 * room: for n keys. Of many, only those near it by a sample become keys. */
static NUMBER TYPED(quantile_select)(const NUMBER *x, int64_t n, int64_t *kth, uint64_t *room)
{
    uint64_t sample[SELECT_SAMPLE];
    if (n >= SELECT_FROM) {
        for (int i = 0; i < SELECT_SAMPLE; i++)
            sample[i] = TYPED(select_key)(x[n / SELECT_SAMPLE * i]);
        const select_range near = select_near(sample, n, *kth);
        const NUMBER low = near.low == 0 ? LOWEST : TYPED(select_value)(near.low);
        const NUMBER high = near.high == UINT64_MAX ? HIGHEST : TYPED(select_value)(near.high);
        char *const some = (char *)room;
        int64_t left = 0, less = 0;
        for (int64_t i = 0; i < n; i++) {
            memcpy(some + left * (int64_t)sizeof *x, x + i, sizeof *x);
            left += (x[i] >= low) & (x[i] <= high);
            less += x[i] < low;
        }
        if (*kth >= less && *kth < less + left) {
            *kth -= less;
            for (int64_t i = left - 1; i >= 0; i--) {
                NUMBER value;
                memcpy(&value, some + i * (int64_t)sizeof value, sizeof value);
                room[i] = TYPED(select_key)(value);
            }
            return TYPED(select_value)(select_by_bytes(room, left, kth, room));
        }
    }
    for (int64_t i = 0; i < n; i++) room[i] = TYPED(select_key)(x[i]);
    return TYPED(select_value)(select_by_bytes(room, n, kth, room));
}

/* Whether x is `value`, or both are NaN. */
static inline int TYPED(quantile_is)(NUMBER x, NUMBER value)
{
#if FLOATING
    return x == value || (x != x && value != value);
#else
    return x == value;
#endif
}

/* Where the n elements have `value`, or NaN, for the time number `time`, from 0; -1 if nowhere. */
static int64_t TYPED(quantile_find)(const NUMBER *x, int64_t n, NUMBER value, int64_t time)
{
    for (int64_t i = 0; i < n; i += QUANTILE_SOME) {
        const int64_t some = n - i < QUANTILE_SOME ? n - i : QUANTILE_SOME;
        int count = 0;
        for (int64_t k = i; k < i + some; k++) count += TYPED(quantile_is)(x[k], value);
        if (time >= count) {
            time -= count;
            continue;
        }
        for (;; i++)
            if (TYPED(quantile_is)(x[i], value) && time-- == 0) return i;
    }
    return -1;
}

/* The smallest of n elements above `value`; HIGHEST if there is none. */
static NUMBER TYPED(quantile_above)(const NUMBER *x, int64_t n, NUMBER value)
{
    NUMBER least = HIGHEST;
    for (int64_t i = 0; i < n; i++) least = x[i] > value && x[i] < least ? x[i] : least;
    return least;
}

/* Flat indices of the elements of both ranks in the row of n that begins at `first`. */
static void TYPED(quantile_row)(const void *all, int64_t first, int64_t n,
                                const quantile_attrs *attrs, uint64_t *room, int64_t *const *to)
{
    const NUMBER *x = (const NUMBER *)all + first;
    int64_t time = attrs->low, low = -1, high = -1;
#if FLOATING
    low = high = TYPED(quantile_find)(x, n, (NUMBER)NAN, 0);
#endif
    if (low < 0) {
        const NUMBER value = TYPED(quantile_select)(x, n, &time, room);
        low = high = TYPED(quantile_find)(x, n, value, time);
        if (attrs->high > attrs->low) {
            high = TYPED(quantile_find)(x + low + 1, n - low - 1, value, 0); /* once more */
            high = high >= 0 ? low + 1 + high
                             : TYPED(quantile_find)(x, n, TYPED(quantile_above)(x, n, value), 0);
        }
    }
    *to[0] = first + low;
    *to[1] = first + high;
}

#undef LOWEST
#undef HIGHEST
#undef TYPE
