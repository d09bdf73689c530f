/* Loops of functions of several steps that are no single expression, for one float type. */

/* `loop` of three operands for a result past the caches. */
static void TYPED(stream3)(elementwise_loop loop, int64_t n, const void *const *in,
                           const int *steps, void *out)
{
    const size_t sizes[] = {sizeof(NUMBER), sizeof(NUMBER), sizeof(NUMBER)};
    loop_streamed(loop, 3, sizes, sizeof(NUMBER), n, in, steps, out, NULL);
}

/* Three operands that adjoin, or each with its step. */
VECTOR_INLINE void TYPED(loop3)(int64_t n, const void *const *in, const int *steps, void *out,
                                NUMBER (*f)(NUMBER a, NUMBER b, NUMBER c))
{
    const NUMBER *restrict from_a = in[0], *restrict from_b = in[1], *restrict from_c = in[2];
    NUMBER *restrict to = out;
    if (steps[0] && steps[1] && steps[2]) {
        for (int64_t i = 0; i < n; i++) to[i] = f(from_a[i], from_b[i], from_c[i]);
    } else if (steps[0] && steps[1]) {
        const NUMBER c = *from_c;
        for (int64_t i = 0; i < n; i++) to[i] = f(from_a[i], from_b[i], c);
    } else {
        for (int64_t i = 0; i < n; i++)
            to[i] = f(from_a[i * steps[0]], from_b[i * steps[1]], from_c[i * steps[2]]);
    }
}

VECTOR_INLINE NUMBER TYPED(fma_at)(NUMBER a, NUMBER b, NUMBER c)
{
    return TYPED(number_fma)(a, b, c);
}

VECTOR_INLINE NUMBER TYPED(lerp_at)(NUMBER a, NUMBER b, NUMBER weight)
{
    const NUMBER d = b - a;
    return weight < (NUMBER)0.5 ? a + weight * d : b - d * (1 - weight);
}

static void TYPED(fma)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    if (stream)
        TYPED(stream3)(TYPED(fma), n, in, steps, out);
    else
        TYPED(loop3)(n, in, steps, out, TYPED(fma_at));
}

static void TYPED(lerp)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    if (stream)
        TYPED(stream3)(TYPED(lerp), n, in, steps, out);
    else
        TYPED(loop3)(n, in, steps, out, TYPED(lerp_at));
}

/* The bits of a, as a number, and one: less on the way to 0, which is where b is above a negative a
 * or below another one, more otherwise. From 0 on it is the smallest number with the sign of b. */
VECTOR_INLINE VECTOR TYPED(nextafter_of)(VECTOR a, VECTOR b)
{
    const MASK down = (MASK)(a > b) ^ (MASK)(a < 0);
    const VECTOR least = vsign((VECTOR)((MASK_BITS){0} + 1), b);
    const VECTOR y = vselect(a == 0, least, (VECTOR)((MASK_BITS)a + (MASK_BITS)(down | 1)));
    return vselect((MASK)(a < b) | (MASK)(a > b), y, vselect(a == b, b, a + b));
}

static void TYPED(sinc_slope)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    const NUMBER *restrict from = in[0];
    NUMBER *restrict to = out;
    const int order = SINC_ORDER;
    for (int64_t i = 0; i < n; i++) to[i] = (NUMBER)sinc_slope_of((double)from[i], order);
}

static void TYPED(nan_to_num)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    if (stream) {
        LOOP_STREAMED_SAME(TYPED(nan_to_num), 1);
        return;
    }
    const ed_nan_to_num_options *o = attrs;
    const NUMBER *restrict from = in[0];
    NUMBER *restrict to = out;
    const NUMBER nan = (NUMBER)o->nan;
    const NUMBER high = o->posinf == o->posinf ? (NUMBER)o->posinf : NUMBER_MAX;
    const NUMBER low = o->neginf == o->neginf ? (NUMBER)o->neginf : -NUMBER_MAX;
    for (int64_t i = 0; i < n; i++) {
        const NUMBER x = from[i];
        to[i] = x != x ? nan : x > NUMBER_MAX ? high : x < -NUMBER_MAX ? low : x;
    }
}

#undef TYPE
