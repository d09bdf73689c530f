/* Loops of elementwise arithmetic that are no single expression, for one type. */

/* ---- Powers and remainders ------------------------------------------------------------------- */

#if !FLOATING
/* By squaring; b >= 0, and for what is refused before anything. */
LOOP_HELPER NUMBER TYPED(pow_of)(NUMBER a, NUMBER b)
{
    UNSIGNED y = 1, square = (UNSIGNED)a;
    for (UNSIGNED left = (UNSIGNED)b; left; left >>= 1) {
        if (left & 1) y = (UNSIGNED)(y * square);
        square = (UNSIGNED)(square * square);
    }
    return (NUMBER)y;
}
#else
/* The remainder is exact, however large the quotient; with the sign of b, a zero's too. */
VECTOR_INLINE VECTOR TYPED(floor_mod_of)(VECTOR a, VECTOR b)
{
    const VECTOR rest = vfmod(a, b), other = (VECTOR)((MASK)(rest < 0) ^ (MASK)(b < 0));
    const VECTOR zero = vcopysign(TYPED(vset)(0), b);
    return vselect(rest == 0, zero, rest + (VECTOR)((MASK)b & (MASK)other));
}
#endif

/* ---- Clipping -------------------------------------------------------------------------------- */

/* The bounds among the numbers of the type: for integers those within, held within the type. */
#if FLOATING
#define CLIP_LOW(attrs)  (NUMBER)(attrs)->low
#define CLIP_HIGH(attrs) (NUMBER)(attrs)->high
#else
#define CLIP_LOW(attrs)  (NUMBER) clip_integer(ceil((attrs)->low), NUMBER_MIN, NUMBER_MAX)
#define CLIP_HIGH(attrs) (NUMBER) clip_integer(floor((attrs)->high), NUMBER_MIN, NUMBER_MAX)
#endif

static void TYPED(clip)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    if (stream) {
        LOOP_STREAMED_SAME(TYPED(clip), 1);
        return;
    }
    const NUMBER *restrict from = in[0];
    NUMBER *restrict to = out;
    const NUMBER low = CLIP_LOW((const clip_attrs *)attrs);
    const NUMBER high = CLIP_HIGH((const clip_attrs *)attrs);
    for (int64_t i = 0; i < n; i++) {
        const NUMBER x = from[i];
        to[i] = x > high ? high : x < low ? low : x;
    }
}

#if FLOATING
/* a where b is within the bounds, else 0. */
static void TYPED(clip_gradient)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    if (stream) {
        LOOP_STREAMED_SAME(TYPED(clip_gradient), 2);
        return;
    }
    const NUMBER *restrict from_a = in[0], *restrict from_b = in[1];
    NUMBER *restrict to = out;
    const NUMBER low = CLIP_LOW((const clip_attrs *)attrs);
    const NUMBER high = CLIP_HIGH((const clip_attrs *)attrs);
    if (steps[0] && steps[1]) {
        for (int64_t i = 0; i < n; i++) {
            const NUMBER a = from_a[i], b = from_b[i];
            to[i] = b >= low && b <= high ? a : 0;
        }
    } else if (steps[0]) {
        const bool within = *from_b >= low && *from_b <= high;
        for (int64_t i = 0; i < n; i++) {
            const NUMBER a = from_a[i];
            to[i] = within ? a : 0;
        }
    } else {
        const NUMBER a = *from_a;
        for (int64_t i = 0; i < n; i++) {
            const NUMBER b = from_b[i];
            to[i] = b >= low && b <= high ? a : 0;
        }
    }
}
#endif

#undef CLIP_LOW
#undef CLIP_HIGH
#undef TYPE
