/* A bitonic network for one type of unsigned numbers; ops/sort.simd.c says how. */
#define KEYS          TYPED(keys)
#define keys_u32      vu32
#define keys_u64      vu64
#define LANES         (VECTOR_BYTES / (int)sizeof(NUMBER))
#define LEAST(a, b)   TYPED(SORT_LEAST)(a, b)
#define MOST(a, b)    TYPED(SORT_MOST)(a, b)
#define SWAPPED(v, c) TYPED(SORT_SWAPPED)(v, c)

/* Lanes whose number has the bit `bit` take the larger of their own and that at number ^ c. */
#define UPPER_LANES(bit)                                                                           \
    (((bit) == 1   ? 0xaaaa                                                                        \
      : (bit) == 2 ? 0xcccc                                                                        \
      : (bit) == 4 ? 0xf0f0                                                                        \
                   : 0xff00) &                                                                     \
     ((1 << LANES) - 1))
#define COMPARE_LANES(v, c, bit)                                                                   \
    do {                                                                                           \
        const KEYS other = SWAPPED(v, c);                                                          \
        v = TYPED(SORT_UPPER)(UPPER_LANES(bit), LEAST(v, other), MOST(v, other));                  \
    } while (0)

/* A bitonic vector in order. */
VECTOR_INLINE KEYS TYPED(merge_lanes)(KEYS v)
{
#if SORT_LANES_16
    COMPARE_LANES(v, 8, 8);
#endif
    COMPARE_LANES(v, 4, 4);
    COMPARE_LANES(v, 2, 2);
    COMPARE_LANES(v, 1, 1);
    return v;
}

/* Any vector in order. */
VECTOR_INLINE KEYS TYPED(sort_lanes)(KEYS v)
{
    COMPARE_LANES(v, 1, 1);
    COMPARE_LANES(v, 3, 2);
    COMPARE_LANES(v, 1, 1);
    COMPARE_LANES(v, 7, 4);
    COMPARE_LANES(v, 2, 2);
    COMPARE_LANES(v, 1, 1);
#if SORT_LANES_16
    COMPARE_LANES(v, 15, 8);
    COMPARE_LANES(v, 4, 4);
    COMPARE_LANES(v, 2, 2);
    COMPARE_LANES(v, 1, 1);
#endif
    return v;
}

VECTOR_INLINE void TYPED(compare)(KEYS *a, KEYS *b)
{
    const KEYS least = LEAST(*a, *b);
    *b = MOST(*a, *b);
    *a = least;
}

/* Eight bitonic vectors in order, in registers. */
VECTOR_INLINE void TYPED(merge_eight)(KEYS *v)
{
    KEYS x[8];
    for (int i = 0; i < 8; i++) x[i] = v[i];
    for (int half = 4; half; half /= 2)
        for (int i = 0; i < 8; i++)
            if (!(i & half)) TYPED(compare)(&x[i], &x[i + half]);
    for (int i = 0; i < 8; i++) v[i] = TYPED(merge_lanes)(x[i]);
}

/* The first n of 2 half bitonic vectors in order. */
static void TYPED(merge_vectors)(KEYS *v, int64_t n, int64_t half)
{
    for (; half > 4 || (half && n < 8); half /= 2) {
        for (int64_t i = 0; i + half < n; i++) TYPED(compare)(&v[i], &v[i + half]);
        if (n <= half) continue;
        TYPED(merge_vectors)(v + half, n - half, half / 2);
        n = half;
    }
    if (n == 8)
        TYPED(merge_eight)(v);
    else
        for (int64_t i = 0; i < n; i++) v[i] = TYPED(merge_lanes)(v[i]);
}

/* The sorted first `half` of n vectors and the sorted rest in order: the first step compares with
 * the rest turned around. */
VECTOR_INLINE void TYPED(merge_sorted)(KEYS *v, int64_t n, int64_t half)
{
    for (int64_t i = 2 * half - n; i < half; i++) {
        KEYS *a = &v[i], *b = &v[2 * half - 1 - i];
        const KEYS turned = SWAPPED(*b, LANES - 1), most = MOST(*a, turned);
        *a = LEAST(*a, turned);
        *b = SWAPPED(most, LANES - 1);
    }
    TYPED(merge_vectors)(v, half, half / 2);
    TYPED(merge_vectors)(v + half, n - half, half / 2);
}

static bool TYPED(sort_network)(NUMBER *items, int64_t n)
{
    enum { MOST_BYTES = 16384 };
    KEYS v[MOST_BYTES / sizeof(KEYS)];
    if (n > MOST_BYTES / (int64_t)sizeof(NUMBER)) return false;
    const int64_t vectors = (n + LANES - 1) / LANES;
    memset(&v[vectors - 1], 0xff, sizeof *v);
    memcpy(v, items, (size_t)n * sizeof *items);
    for (int64_t i = 0; i < vectors; i++) v[i] = TYPED(sort_lanes)(v[i]);
    for (int64_t half = 1; half < vectors; half *= 2)
        for (int64_t i = 0; i + half < vectors; i += 2 * half)
            TYPED(merge_sorted)(v + i, vectors - i < 2 * half ? vectors - i : 2 * half, half);
    memcpy(items, v, (size_t)n * sizeof *items);
    return true;
}

#undef KEYS
#undef LANES
#undef LEAST
#undef MOST
#undef SWAPPED
#undef UPPER_LANES
#undef COMPARE_LANES
#undef SORT_LANES_16
#undef TYPE
