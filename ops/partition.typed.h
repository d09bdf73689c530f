/* Keys of a line's elements, for one type: unsigned numbers in their order, NaN after all. */

static void TYPED(partition_keys)(const void *line, int64_t n, int64_t stride, uint64_t *keys)
{
    const NUMBER *x = line;
    for (int64_t i = 0; i < n; i++) {
#if FLOATING
        const double wide = (double)x[i * stride] + 0; /* -0 and 0 are equal */
        uint64_t bits;
        memcpy(&bits, &wide, sizeof bits);
        keys[i] = wide != wide ? UINT64_MAX : bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
#else
        keys[i] = (uint64_t)x[i * stride] ^ (uint64_t)1 << 63;
#endif
    }
}

#undef TYPE
