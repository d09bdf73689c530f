/*
 * A bitonic network, and the steps of quicksort above it, for one type of unsigned numbers;
 * ops/sort.simd.c says how.
 */
#define KEYS              TYPED(keys)
#define keys_u32          vu32
#define keys_u64          vu64
#define LANES             (VECTOR_BYTES / (int)sizeof(NUMBER))
#define LEAST(a, b)       TYPED(SORT_LEAST)(a, b)
#define MOST(a, b, least) TYPED(SORT_MOST)(a, b, least)
#define SWAPPED(v, c)     TYPED(SORT_SWAPPED)(v, c)
#define BLOCK             (LANES * LANES)

/* Lanes whose number has the bit `bit` take the larger of two, the others the smaller one. The two
 * are often a lane's own and that at number ^ c. */
#define UPPER_LANES(bit)                                                                           \
    (((bit) == 1   ? 0xaaaa                                                                        \
      : (bit) == 2 ? 0xcccc                                                                        \
      : (bit) == 4 ? 0xf0f0                                                                        \
                   : 0xff00) &                                                                     \
     ((1 << LANES) - 1))
#define UPPER_MOST(bit, a, b) TYPED(SORT_UPPER_MOST)(UPPER_LANES(bit), LEAST(a, b), a, b)
#define COMPARE_LANES(v, c, bit)                                                                   \
    do {                                                                                           \
        const KEYS other = SWAPPED(v, c);                                                          \
        v = UPPER_MOST(bit, v, other);                                                             \
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
    *b = MOST(*a, *b, least);
    *a = least;
}

/* ---- A block: as many vectors as they have lanes --------------------------------------------- */

/* Compares each of so many rows without the bit `bit` in its number with that at number ^ c. */
VECTOR_INLINE void TYPED(compare_rows)(KEYS *x, const int rows, const int c, const int bit)
{
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        if (!(i & bit)) TYPED(compare)(&x[i], &x[i ^ c]);
}

/* Rows of 2 bit that are bitonic, in order, column by column. */
VECTOR_INLINE void TYPED(merge_columns)(KEYS *x, const int rows, const int bit)
{
    if (bit >= 8) TYPED(compare_rows)(x, rows, 8, 8);
    if (bit >= 4) TYPED(compare_rows)(x, rows, 4, 4);
    if (bit >= 2) TYPED(compare_rows)(x, rows, 2, 2);
    TYPED(compare_rows)(x, rows, 1, 1);
}

/* Each column of any block in order. */
VECTOR_INLINE void TYPED(sort_columns)(KEYS *x)
{
    TYPED(compare_rows)(x, LANES, 1, 1);
    TYPED(compare_rows)(x, LANES, 3, 2);
    TYPED(merge_columns)(x, LANES, 1);
    TYPED(compare_rows)(x, LANES, 7, 4);
    TYPED(merge_columns)(x, LANES, 2);
#if SORT_LANES_16
    TYPED(compare_rows)(x, LANES, 15, 8);
    TYPED(merge_columns)(x, LANES, 4);
#endif
}

/* Columns whose number has the bit `bit` against those at number ^ c turned around: the larger ones
 * to the former. Of one row and that which is as far from the end, and of all rows. */
#define COMPARE_TURNED(v, w, c, bit)                                                               \
    do {                                                                                           \
        const KEYS of_v = SWAPPED(v, c), of_w = SWAPPED(w, c);                                     \
        v = UPPER_MOST(bit, v, of_w);                                                              \
        w = UPPER_MOST(bit, w, of_v);                                                              \
    } while (0)
#define COMPARE_COLUMNS(x, c, bit)                                                                 \
    _Pragma("GCC unroll 8") for (int i = 0; i < LANES / 2; i++)                                    \
        COMPARE_TURNED(x[i], x[LANES - 1 - i], c, bit);
#define COMPARE_ALL_LANES(x, c)                                                                    \
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) COMPARE_LANES(x[i], c, c);

/* A step of turning a block over: what is in the columns with the bit c and the rows without it
 * changes places with what is in the rows with it and the columns without it. */
#define TURN_OVER(x, c)                                                                            \
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) if (!(i & (c)))                       \
    {                                                                                              \
        const KEYS a = x[i], b = x[i + (c)];                                                       \
        x[i] = TYPED(SORT_UPPER)(UPPER_LANES(c), a, SWAPPED(b, c));                                \
        x[i + (c)] = TYPED(SORT_UPPER)(UPPER_LANES(c), SWAPPED(a, c), b);                          \
    }

/* Any block in order: first its columns, then pairs of columns as one, and so on; at the end
 * columns become rows. */
static void TYPED(sort_block)(KEYS *v)
{
    KEYS x[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) x[i] = v[i];
    TYPED(sort_columns)(x);
    COMPARE_COLUMNS(x, 1, 1)
    TYPED(merge_columns)(x, LANES, LANES / 2);
    COMPARE_COLUMNS(x, 3, 2)
    COMPARE_ALL_LANES(x, 1)
    TYPED(merge_columns)(x, LANES, LANES / 2);
    COMPARE_COLUMNS(x, 7, 4)
    COMPARE_ALL_LANES(x, 2)
    COMPARE_ALL_LANES(x, 1)
    TYPED(merge_columns)(x, LANES, LANES / 2);
#if SORT_LANES_16
    COMPARE_COLUMNS(x, 15, 8)
    COMPARE_ALL_LANES(x, 4)
    COMPARE_ALL_LANES(x, 2)
    COMPARE_ALL_LANES(x, 1)
    TYPED(merge_columns)(x, LANES, LANES / 2);
    TURN_OVER(x, 8)
#endif
    TURN_OVER(x, 4)
    TURN_OVER(x, 2)
    TURN_OVER(x, 1)
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++) v[i] = x[i];
}

/* ---- Rows of vectors ------------------------------------------------------------------------- */

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
        const KEYS turned = SWAPPED(*b, LANES - 1), least = LEAST(*a, turned);
        const KEYS most = MOST(*a, turned, least);
        *a = least;
        *b = SWAPPED(most, LANES - 1);
    }
    TYPED(merge_vectors)(v, half, half / 2);
    TYPED(merge_vectors)(v + half, n - half, half / 2);
}

#if SORT_TABLES
/* ---- Tables: rows of vectors, a power of two of them and at least a block -------------------- */

/* As merge_columns, of all those rows that are `apart`. */
VECTOR_INLINE void TYPED(merge_apart)(KEYS *v, int64_t n, int64_t apart, const int rows)
{
    for (int64_t first = 0; first < n; first += rows * apart)
        for (int64_t at = first; at < first + apart; at++) {
            KEYS x[8];
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) x[i] = v[at + i * apart];
            TYPED(merge_columns)(x, rows, rows / 2);
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) v[at + i * apart] = x[i];
        }
}

/* Rows of 2 half that are bitonic, in order, column by column: up to eight at a time in registers,
 * the last of them neighbours. */
static void TYPED(merge_table)(KEYS *v, int64_t n, int64_t half)
{
    for (; half >= 32; half /= 8) TYPED(merge_apart)(v, n, half / 4, 8);
    if (half == 16) TYPED(merge_apart)(v, n, 8, 4);
    if (half == 8) TYPED(merge_apart)(v, n, 8, 2);
    TYPED(merge_apart)(v, n, 1, 8);
}

/* The columns of each two tables of `half` rows, which are in order, as one. */
static void TYPED(join_tables)(KEYS *v, int64_t n, int64_t half)
{
    for (int64_t first = 0; first < n; first += 2 * half)
        for (int64_t i = 0; i < half; i++)
            TYPED(compare)(&v[first + i], &v[first + 2 * half - 1 - i]);
    TYPED(merge_table)(v, n, half / 2);
}

/* So many columns of a table, which are in order one behind the other, and the next as many as one;
 * `columns` is a constant. */
VECTOR_INLINE void TYPED(join_columns)(KEYS *v, int64_t n, const int columns)
{
    for (int64_t i = 0; i < n / 2; i++) {
        KEYS a = v[i], b = v[n - 1 - i];
        if (columns == 1) COMPARE_TURNED(a, b, 1, 1);
        if (columns == 2) COMPARE_TURNED(a, b, 3, 2);
        if (columns == 4) COMPARE_TURNED(a, b, 7, 4);
        if (columns == 4) COMPARE_LANES(a, 2, 2);
        if (columns == 4) COMPARE_LANES(b, 2, 2);
        if (columns >= 2) COMPARE_LANES(a, 1, 1);
        if (columns >= 2) COMPARE_LANES(b, 1, 1);
        v[i] = a;
        v[n - 1 - i] = b;
    }
    TYPED(merge_table)(v, n, n / 2);
}

/* Any table in order, as a block is; at the end its blocks are turned over. */
static void TYPED(sort_table)(KEYS *v, int64_t n)
{
    KEYS rows[SORT_NETWORK_BYTES / sizeof(KEYS)], x[LANES];
    for (int64_t first = 0; first < n; first += LANES) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) x[i] = v[first + i];
        TYPED(sort_columns)(x);
#pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) rows[first + i] = x[i];
    }
    for (int64_t half = LANES; half < n; half *= 2) TYPED(join_tables)(rows, n, half);
    TYPED(join_columns)(rows, n, 1);
    TYPED(join_columns)(rows, n, 2);
    TYPED(join_columns)(rows, n, 4);
    for (int64_t first = 0; first < n; first += LANES) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) x[i] = rows[first + i];
        TURN_OVER(x, 4)
        TURN_OVER(x, 2)
        TURN_OVER(x, 1)
#pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) v[n / LANES * i + first / LANES] = x[i];
    }
}

/* A few vectors in order. */
static void TYPED(sort_few_rows)(KEYS *v, int64_t n)
{
    for (int64_t j = 0; j < n; j++) v[j] = TYPED(sort_lanes)(v[j]);
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t j = 0; j + half < n; j += 2 * half)
            TYPED(merge_sorted)(v + j, n - j < 2 * half ? n - j : 2 * half, half);
}

/* Any n vectors in order: a table of most of them and the rest, merged. Where little is missing, a
 * table is filled up, for which v has room. */
static void TYPED(sort_rows)(KEYS *v, int64_t n)
{
    int64_t table = LANES;
    if (n <= LANES / 2) {
        TYPED(sort_few_rows)(v, n);
        return;
    }
    while (table < n) table *= 2;
    if (table > LANES && n < table - table / 4) table /= 2;
    if (table == LANES)
        TYPED(sort_block)(v);
    else
        TYPED(sort_table)(v, table);
    if (n <= table) return;
    TYPED(sort_rows)(v + table, n - table);
    TYPED(merge_sorted)(v, n, table);
}
#else
/* Any n vectors in order. Blocks come first; a rest of more than half a block is one, too, for
 * which v has room. */
static void TYPED(sort_rows)(KEYS *v, int64_t n)
{
    int64_t i = 0;
    for (; n - i > LANES / 2; i += LANES) TYPED(sort_block)(v + i);
    for (int64_t j = i; j < n; j++) v[j] = TYPED(sort_lanes)(v[j]);
    for (int64_t half = 1; half < n; half *= 2)
        for (int64_t j = half < LANES ? i : 0; j + half < n; j += 2 * half)
            TYPED(merge_sorted)(v + j, n - j < 2 * half ? n - j : 2 * half, half);
}
#endif

/* Sorts n items of at most SORT_NETWORK_BYTES, from one place to another or to the same. */
static void TYPED(sort_network)(const void *from, void *to, int64_t n)
{
    KEYS v[SORT_NETWORK_BYTES / sizeof(KEYS)];
    int64_t filled = BLOCK;
    while (filled < n) filled *= 2;
    memcpy(v, from, (size_t)n * sizeof(NUMBER));
    memset((NUMBER *)v + n, 0xff, (size_t)(filled - n) * sizeof(NUMBER));
    TYPED(sort_rows)(v, (n + LANES - 1) / LANES);
    memcpy(to, v, (size_t)n * sizeof(NUMBER));
}

/* ---- Quicksort ------------------------------------------------------------------------------- */

/* A block of vectors out of all parts of n items, at least a vector. */
VECTOR_INLINE void TYPED(sort_sample)(const NUMBER *items, int64_t n, KEYS *v)
{
    for (int i = 0; i < LANES; i++) memcpy(&v[i], items + (n - LANES) / (LANES - 1) * i, sizeof *v);
}

/* About the median: that of the medians of a sample's columns. */
static uint64_t TYPED(sort_pivot)(const void *items, int64_t n)
{
    KEYS v[LANES];
    TYPED(sort_sample)(items, n, v);
    TYPED(sort_columns)(v);
    return TYPED(sort_lanes)(v[LANES / 2])[LANES / 2];
}

/* Items up to `most` go to the front of `low`, the others to that of `high`; how many are low. The
 * items come from one of the two places. */
static int64_t TYPED(sort_part)(const void *items, void *low_items, void *high_items, int64_t n,
                                uint64_t most)
{
    const NUMBER *from = items;
    NUMBER *low = low_items, *high = high_items;
    const KEYS bound = (NUMBER)most - (KEYS){0};
    int64_t lows = 0, highs = 0, i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        KEYS v[4]; /* read before anything is written, which may be to the same place */
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) memcpy(&v[j], from + i + j * LANES, sizeof *v);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const unsigned is_low = TYPED(SORT_UP_TO)(v[j], bound);
            const int count = __builtin_popcount(is_low);
            const KEYS packed_low = TYPED(SORT_PACKED)(v[j], is_low);
            const KEYS packed_high = TYPED(SORT_PACKED)(v[j], is_low ^ ((1u << LANES) - 1));
            memcpy(low + lows, &packed_low, sizeof packed_low);
            memcpy(high + highs, &packed_high, sizeof packed_high);
            lows += count;
            highs += LANES - count;
        }
    }
    for (; i < n; i++) {
        const NUMBER item = from[i];
        low[lows] = high[highs] = item;
        lows += item <= most;
        highs += item > most;
    }
    return lows;
}

#if defined(VECTOR_AVX512)
_Static_assert(SORT_GAP >= LANES, "see sort_quarters");

static void TYPED(sort_quartiles)(const void *items, int64_t n, sort_quarters *q)
{
    KEYS v[LANES];
    TYPED(sort_sample)(items, n, v);
    TYPED(sort_block)(v);
    for (int k = 0; k < 3; k++) q->last[k] = v[LANES / 4 * (k + 1)][0];
}

static void TYPED(sort_quarter)(const void *items, int64_t n, sort_quarters *q)
{
    const NUMBER *from = items;
    NUMBER *first = q->at[0], *second = q->at[1], *third = q->at[2], *fourth = q->at[3];
    const KEYS last[] = {(NUMBER)q->last[0] - (KEYS){0}, (NUMBER)q->last[1] - (KEYS){0},
                         (NUMBER)q->last[2] - (KEYS){0}};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        KEYS v;
        memcpy(&v, from + i, sizeof v);
        const TYPED(sort_mask) one = TYPED(SORT_UP_TO)(v, last[0]),
                               two = TYPED(SORT_UP_TO)(v, last[1]),
                               three = TYPED(SORT_UP_TO)(v, last[2]);
        const int ones = __builtin_popcount(one), twos = __builtin_popcount(two) - ones,
                  threes = __builtin_popcount(three) - ones - twos,
                  fours = LANES - ones - twos - threes;
        const KEYS packed[] = {TYPED(SORT_PACKED)(v, one),
                               TYPED(SORT_PACKED)(v, TYPED(SORT_BUT)(two, one)),
                               TYPED(SORT_PACKED)(v, TYPED(SORT_BUT)(three, two)),
                               TYPED(SORT_PACKED)(v, TYPED(SORT_NOT)(three))};
        memcpy(first, &packed[0], sizeof v);
        memcpy(third, &packed[2], sizeof v);
        TYPED(SORT_STORE)(second - twos, twos, packed[1]);
        TYPED(SORT_STORE)(fourth - fours, fours, packed[3]);
        first += ones, second -= twos, third += threes, fourth -= fours;
    }
    for (; i < n; i++) {
        const NUMBER item = from[i];
        if (item <= q->last[0])
            *first++ = item;
        else if (item <= q->last[1])
            *--second = item;
        else if (item <= q->last[2])
            *third++ = item;
        else
            *--fourth = item;
    }
    q->at[0] = first, q->at[1] = second, q->at[2] = third, q->at[3] = fourth;
}
#endif

/* How many of n items are up to `most`. */
static int64_t TYPED(sort_count)(const void *items, int64_t n, uint64_t most)
{
    const NUMBER *from = items;
    const KEYS bound = (NUMBER)most - (KEYS){0};
    int64_t count = 0, i = 0;
    for (; i + LANES <= n; i += LANES) {
        KEYS v;
        memcpy(&v, from + i, sizeof v);
        count += __builtin_popcount(TYPED(SORT_UP_TO)(v, bound));
    }
    for (; i < n; i++) count += from[i] <= most;
    return count;
}

/* Appends to `to` those of n items that are a share's, while a vector of them has room; how many
 * items were looked at. */
static int64_t TYPED(sort_take)(const void *items, int64_t n, const sort_share *share, void **to,
                                const void *end)
{
    const NUMBER *from = items;
    NUMBER *taken = *to;
    const KEYS first = (NUMBER)share->first - (KEYS){0};
    const KEYS last = (NUMBER)(share->last - share->first) - (KEYS){0};
    int64_t i = 0;
    for (; i + LANES <= n && (const NUMBER *)end - taken >= LANES; i += LANES) {
        KEYS v;
        memcpy(&v, from + i, sizeof v);
        const unsigned own = TYPED(SORT_UP_TO)(v - first, last);
        const KEYS packed = TYPED(SORT_PACKED)(v, own);
        memcpy(taken, &packed, sizeof packed);
        taken += __builtin_popcount(own);
    }
    *to = taken;
    return i;
}

#undef KEYS
#undef LANES
#undef LEAST
#undef MOST
#undef SWAPPED
#undef UPPER_LANES
#undef UPPER_MOST
#undef COMPARE_LANES
#undef COMPARE_COLUMNS
#undef COMPARE_ALL_LANES
#undef TURN_OVER
#undef BLOCK
#undef COMPARE_TURNED
#undef SORT_TABLES
#undef SORT_LANES_16
#undef TYPE
