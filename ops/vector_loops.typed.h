/*
 * Vector loops of one float type: f of every vector of one operand, of two operands, and of a
 * vector c that stays.
 *
 * A function like tanh is one chain of dependent operations, for which the machine waits most of
 * the time. So a turn of the loop takes VECTOR_TOGETHER vectors, and the compiler, told to order
 * what it compiles (-fschedule-insns), mixes their chains. What is left goes one vector at a time;
 * a partial vector at the end goes the same way as the others.
 *
 * A result that the caches would not hold goes past them: its lines need not be read from memory
 * first. What is read is prefetched then, since the machine itself stops at the end of a page.
 */

VECTOR_INLINE void TYPED(vector_prefetch)(const NUMBER *from)
{
    for (int at = 0; at < VECTOR_TOGETHER * VECTOR_BYTES; at += 64)
        __builtin_prefetch((const char *)from + VECTOR_AHEAD + at);
}

VECTOR_INLINE void TYPED(vector_loop1)(int64_t n, const NUMBER *from, NUMBER *to,
                                       VECTOR (*f)(VECTOR x, VECTOR c), VECTOR c, bool stream)
{
    enum { TURN = VECTOR_TOGETHER * VECTOR_LANES };
    int64_t i = 0;
    for (; i + TURN <= n; i += TURN) {
        VECTOR y[VECTOR_TOGETHER];
        UNROLL for (int k = 0; k < VECTOR_TOGETHER; k++) y[k] =
            f(vload(from + i + k * VECTOR_LANES), c);
        if (stream) {
            TYPED(vector_prefetch)(from + i);
            for (int k = 0; k < VECTOR_TOGETHER; k++) vstream(to + i + k * VECTOR_LANES, y[k]);
        } else {
            for (int k = 0; k < VECTOR_TOGETHER; k++) vstore(to + i + k * VECTOR_LANES, y[k]);
        }
    }
    for (int64_t left = n - i; left > 0; i += VECTOR_LANES, left -= VECTOR_LANES) {
        const VECTOR x = left >= VECTOR_LANES ? vload(from + i) : vload_part(from + i, left);
        const VECTOR y = f(x, c);
        if (left >= VECTOR_LANES)
            vstore(to + i, y);
        else
            vstore_part(to + i, y, left);
    }
}

/* An operand of step 0 is read from a vector that holds it in every lane. */
VECTOR_INLINE void TYPED(vector_loop2)(int64_t n, const void *const *in, const int *steps,
                                       NUMBER *to, VECTOR (*f)(VECTOR a, VECTOR b, VECTOR c),
                                       VECTOR c, bool stream)
{
    const VECTOR same[2] = {TYPED(vset)(*(const NUMBER *)in[0]),
                            TYPED(vset)(*(const NUMBER *)in[1])};
    const NUMBER *from_a = steps[0] ? in[0] : (const NUMBER *)&same[0];
    const NUMBER *from_b = steps[1] ? in[1] : (const NUMBER *)&same[1];
    const int64_t step_a = steps[0] * VECTOR_LANES, step_b = steps[1] * VECTOR_LANES;
    int64_t left = n;
    for (; left >= VECTOR_TOGETHER * VECTOR_LANES; left -= VECTOR_TOGETHER * VECTOR_LANES) {
        VECTOR y[VECTOR_TOGETHER];
        UNROLL for (int k = 0; k < VECTOR_TOGETHER; k++) y[k] =
            f(vload(from_a + k * step_a), vload(from_b + k * step_b), c);
        if (stream) {
            if (step_a) TYPED(vector_prefetch)(from_a);
            if (step_b) TYPED(vector_prefetch)(from_b);
            for (int k = 0; k < VECTOR_TOGETHER; k++) vstream(to + k * VECTOR_LANES, y[k]);
        } else {
            for (int k = 0; k < VECTOR_TOGETHER; k++) vstore(to + k * VECTOR_LANES, y[k]);
        }
        from_a += VECTOR_TOGETHER * step_a;
        from_b += VECTOR_TOGETHER * step_b;
        to += VECTOR_TOGETHER * VECTOR_LANES;
    }
    for (; left > 0; left -= VECTOR_LANES) {
        const VECTOR a = left >= VECTOR_LANES ? vload(from_a) : vload_part(from_a, left);
        const VECTOR b = left >= VECTOR_LANES ? vload(from_b) : vload_part(from_b, left);
        const VECTOR y = f(a, b, c);
        if (left >= VECTOR_LANES)
            vstore(to, y);
        else
            vstore_part(to, y, left);
        from_a += step_a;
        from_b += step_b;
        to += VECTOR_LANES;
    }
}

#undef TYPE
