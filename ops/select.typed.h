/* Keys of elements for one type: unsigned numbers in their order, NaN after all; and back. */

static inline uint64_t TYPED(select_key)(NUMBER x)
{
#if FLOATING
    const double wide = (double)x + 0; /* -0 and 0 are equal */
    uint64_t bits;
    memcpy(&bits, &wide, sizeof bits);
    return wide != wide ? UINT64_MAX : bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
#else
    return (uint64_t)x ^ (uint64_t)1 << 63;
#endif
}

static inline __attribute__((unused)) NUMBER TYPED(select_value)(uint64_t key)
{
#if FLOATING
    const uint64_t bits = key >> 63 ? key ^ (uint64_t)1 << 63 : ~key;
    double wide;
    memcpy(&wide, &bits, sizeof wide);
    return (NUMBER)wide;
#else
    return (NUMBER)(key ^ (uint64_t)1 << 63);
#endif
}
