/* The range and the order of indices, for one type. */

/* Of v[first..last-1]; that v[first] is at least the one before counts, too. */
index_order ISA_NAME(TYPED(index_order))(const NUMBER *v, int64_t first, int64_t last);
index_order ISA_NAME(TYPED(index_order))(const NUMBER *v, int64_t first, int64_t last)
{
    enum { BLOCK = 1024 }; /* that stays in the first cache for the second loop */
    NUMBER largest = -1, least = 0, falls = 0;
    for (int64_t begin = first; begin < last; begin += BLOCK) {
        const int64_t end = last - begin < BLOCK ? last : begin + BLOCK;
        for (int64_t i = begin; i < end; i++) {
            largest = v[i] > largest ? v[i] : largest;
            least = v[i] < least ? v[i] : least;
        }
        for (int64_t i = begin ? begin : 1; i < end; i++) falls |= v[i] < v[i - 1];
    }
    return (index_order){largest, least, !falls};
}

/* The largest of n, n > 0. */
int64_t ISA_NAME(TYPED(index_largest))(const NUMBER *v, int64_t n);
int64_t ISA_NAME(TYPED(index_largest))(const NUMBER *v, int64_t n)
{
    NUMBER largest = v[0];
    for (int64_t i = 1; i < n; i++) largest = v[i] > largest ? v[i] : largest;
    return largest;
}

#undef TYPE
