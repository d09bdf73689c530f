/*
 * Division of integers, rounded towards 0 and down, for one type. A divisor of 0 was refused; what
 * comes out for it is of no account. The smallest integer by -1, which has no quotient, is taken as
 * a negation, which wraps.
 *
 * It is done in floats that hold all numbers at hand, so that the compiler makes vectors of it: the
 * whole number next to a times 1 / b, which has an error below 1/4, leaves a remainder of less than
 * |b|, either sign; one b at most is missing. Of int64 these are the numbers within 2^50; a strip
 * with others is divided one by one.
 */

#define REAL          TYPED(real)
#define real_u8       float
#define real_i32      double
#define real_i64      double
#define REAL_BITS     TYPED(real_bits)
#define real_bits_u8  uint32_t
#define real_bits_i32 uint64_t
#define real_bits_i64 uint64_t
#define REAL_MAGIC    ((REAL)(sizeof(REAL) == 4 ? 0x1.8p23 : 0x1.8p52))

/* Numbers and whole floats: the magic number has them in its lowest bits. */
LOOP_HELPER REAL TYPED(to_real)(NUMBER x)
{
    REAL y = REAL_MAGIC;
    REAL_BITS bits;
    if (sizeof(NUMBER) < sizeof(REAL)) return (REAL)x;
    memcpy(&bits, &y, sizeof bits);
    bits += (REAL_BITS)x;
    memcpy(&y, &bits, sizeof y);
    return y - REAL_MAGIC;
}

LOOP_HELPER NUMBER TYPED(from_real)(REAL x)
{
    REAL y = REAL_MAGIC;
    REAL_BITS bits, none;
    memcpy(&none, &y, sizeof none);
    y += x;
    memcpy(&bits, &y, sizeof bits);
    return (NUMBER)(bits - none);
}

/* The whole number next to a / b, and what it leaves. */
LOOP_HELPER REAL TYPED(nearest)(REAL a, REAL b, REAL *rest)
{
    const REAL quotient = (a * (1 / b) + REAL_MAGIC) - REAL_MAGIC;
    *rest = a - quotient * b;
    return quotient;
}

LOOP_HELPER NUMBER TYPED(near_truncatediv_of)(NUMBER a, NUMBER b)
{
    REAL rest, x = TYPED(to_real)(a), y = TYPED(to_real)(b), q = TYPED(nearest)(x, y, &rest);
    const REAL back = (x < 0) != (y < 0) ? -1 : 1;
    return TYPED(from_real)(rest * x < 0 ? q - back : q);
}

LOOP_HELPER NUMBER TYPED(near_truncatemod_of)(NUMBER a, NUMBER b)
{
    REAL rest, x = TYPED(to_real)(a), y = TYPED(to_real)(b);
    TYPED(nearest)(x, y, &rest);
    const REAL more = (x < 0) != (y < 0) ? -y : y;
    return TYPED(from_real)(rest * x < 0 ? rest + more : rest);
}

LOOP_HELPER NUMBER TYPED(near_floor_div_of)(NUMBER a, NUMBER b)
{
    REAL rest, x = TYPED(to_real)(a), y = TYPED(to_real)(b), q = TYPED(nearest)(x, y, &rest);
    return TYPED(from_real)(rest * y < 0 ? q - 1 : q);
}

LOOP_HELPER NUMBER TYPED(near_floor_mod_of)(NUMBER a, NUMBER b)
{
    REAL rest, x = TYPED(to_real)(a), y = TYPED(to_real)(b);
    TYPED(nearest)(x, y, &rest);
    return TYPED(from_real)(rest * y < 0 ? rest + y : rest);
}

#if defined(FAR)
LOOP_HELPER NUMBER TYPED(truncatediv_of)(NUMBER a, NUMBER b)
{
    return b == 0 || b == -1 ? (NUMBER)(0 - (UNSIGNED)a) : a / b;
}

LOOP_HELPER NUMBER TYPED(truncatemod_of)(NUMBER a, NUMBER b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

LOOP_HELPER NUMBER TYPED(floor_div_of)(NUMBER a, NUMBER b)
{
    if (b == 0 || b == -1) return (NUMBER)(0 - (UNSIGNED)a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

LOOP_HELPER NUMBER TYPED(floor_mod_of)(NUMBER a, NUMBER b)
{
    if (b == 0 || b == -1) return 0;
    const NUMBER rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Whether n numbers are within 2^50. */
LOOP_HELPER bool TYPED(all_near)(int64_t n, const NUMBER *x)
{
    UNSIGNED bits = 0;
    for (int64_t i = 0; i < n; i++) bits |= (UNSIGNED)x[i] + ((UNSIGNED)1 << 50);
    return bits >> 51 == 0;
}

/* loop2 by strips, each by one of two functions. */
VECTOR_INLINE void TYPED(loop2_near)(int64_t n, const void *const *in, const int *steps, void *out,
                                     NUMBER (*near)(NUMBER a, NUMBER b),
                                     NUMBER (*far)(NUMBER a, NUMBER b))
{
    for (int64_t first = 0; first < n; first += LOOP_STRIP) {
        const int64_t count = n - first < LOOP_STRIP ? n - first : LOOP_STRIP;
        const NUMBER *a = (const NUMBER *)in[0] + first * steps[0];
        const NUMBER *b = (const NUMBER *)in[1] + first * steps[1];
        const void *const from[] = {a, b};
        if (TYPED(all_near)(steps[0] ? count : 1, a) && TYPED(all_near)(steps[1] ? count : 1, b))
            loop2_i64_i64(count, from, steps, (NUMBER *)out + first, near);
        else
            loop2_i64_i64(count, from, steps, (NUMBER *)out + first, far);
    }
}
#undef FAR
#endif

#undef REAL
#undef REAL_BITS
#undef REAL_MAGIC
#undef TYPE
