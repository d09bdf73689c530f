/*
 * fmod on vectors for one float type: a - trunc(a / b) b, exact, with the sign of a.
 *
 * With x = |a|, y = |b| and q the whole number next to x / y, x - q y is a number of the type: a
 * multiple of the last place of x or y, and little more than half of y. So it is computed without
 * any rounding, and one y puts right what is negative. That holds below a limit, up to which all
 * whole numbers are told apart.
 *
 * A larger quotient leaves by its leading digits first: what a quotient rounded to the type leaves
 * is a number of the type too.
 */

/* x - q y for such a q: without fused multiply-add float32 takes float64, and float64 the products
 * of a q of 26 bits and the halves of y. */
VECTOR_INLINE VECTOR TYPED(fmod_rest)(VECTOR x, VECTOR y, VECTOR q)
{
#if defined(VECTOR_FMA)
    return vfma(-q, y, x);
#else
    if (sizeof(NUMBER) == 8) return (x - q * vhead(y)) - q * (y - vhead(y));
    const vf32 from = (vf32)x, factor = (vf32)q, by = (vf32)y;
    return (VECTOR)halves_f32(half_f64(from, 0) - half_f64(factor, 0) * half_f64(by, 0),
                              half_f64(from, 1) - half_f64(factor, 1) * half_f64(by, 1));
#endif
}

/* FMOD_DIGITS: of a quotient from the limit on, a whole number. */
#if defined(VECTOR_FMA)
#define FMOD_LIMIT     ((NUMBER)(sizeof(NUMBER) == 4 ? 0x1p22 : 0x1p51))
#define FMOD_DIGITS(q) vrint(q)
#else
#define FMOD_LIMIT     ((NUMBER)(sizeof(NUMBER) == 4 ? 0x1p22 : 0x1p26))
#define FMOD_DIGITS(q) (sizeof(NUMBER) == 4 ? vrint(q) : vhead(q))
#endif

/* From x, or what a large quotient left of it, which may be negative. */
VECTOR_INLINE VECTOR TYPED(fmod_last)(VECTOR rest, VECTOR y, VECTOR quotient, VECTOR a)
{
    const NUMBER magic = (NUMBER)(sizeof(NUMBER) == 4 ? 0x1.8p23 : 0x1.8p52);
    const VECTOR r = TYPED(fmod_rest)(rest, y, (quotient + magic) - magic);
    return vsign(r + (VECTOR)((MASK)y & (MASK)(r < 0)), a);
}

/* The leading digits of a large quotient, and, one by one, the lanes where there is no finite one
 * or b is infinite. */
static __attribute__((noinline)) VECTOR TYPED(fmod_far)(VECTOR a, VECTOR b)
{
    const VECTOR y = vabs(b);
    VECTOR rest = vabs(a), quotient = rest / y;
    for (;;) {
        const MASK large = (vabs(quotient) >= FMOD_LIMIT) & (vabs(quotient) < INFINITY);
        if (!vbits(large)) break;
        rest = vselect(large, TYPED(fmod_rest)(rest, y, FMOD_DIGITS(quotient)), rest);
        quotient = rest / y;
    }
    VECTOR result = TYPED(fmod_last)(rest, y, quotient, a);
    const MASK done = (vabs(quotient) < FMOD_LIMIT) & (y < INFINITY);
    for (int i = 0; i < VECTOR_LANES; i++)
        if (!done[i]) result[i] = TYPED(number_fmod)(a[i], b[i]);
    return result;
}

VECTOR_INLINE VECTOR TYPED(vfmod)(VECTOR a, VECTOR b)
{
    const VECTOR x = vabs(a), y = vabs(b), quotient = x / y;
    const VECTOR r = TYPED(fmod_last)(x, y, quotient, a);
    const MASK near = (quotient < FMOD_LIMIT) & (y < INFINITY);
    if (__builtin_expect(vall(near), 1)) return r;
    return TYPED(fmod_far)(a, b);
}

#undef FMOD_LIMIT
#undef FMOD_DIGITS
#undef TYPE
