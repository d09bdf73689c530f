/* The functions that ops/kernels/gelu.h lists, for one float type. */

/* |x|, at most `end`; NaN stays. */
VECTOR_INLINE VECTOR TYPED(gelu_size)(VECTOR x, NUMBER end)
{
    return TYPED(vlesser)(TYPED(vset)(end), vabs(x));
}

/* max(x, 0) with the sign of x's zero, less the tail a Q(a). */
VECTOR_INLINE VECTOR TYPED(gelu_less)(VECTOR x, VECTOR tail)
{
    return vselect(x < 0, TYPED(vset)((NUMBER)-0.0), x) - tail;
}

/* x (1 + m) 2^n */
VECTOR_INLINE VECTOR TYPED(gelu_scale)(VECTOR x, VECTOR m, VECTOR n)
{
    return vscale(vfma(x, m, x), n);
}

/*
 * Q(a) = r (1 + m) 2^n for gelu; returns r, which is u P(t) where u stands for 1 / (a + 4).
 *
 * The error of u, relative to it, is what the quotient lost, u d - 1, and the sum, u (a - (d - 4)).
 * The polynomial takes it into its argument t = 1 - 8 u (1 - lost), and the power of e the factor
 * 1 - lost.
 */
VECTOR_INLINE VECTOR TYPED(gelu_parts)(VECTOR a, VECTOR *m, VECTOR *n)
{
    const VECTOR d = a + 4, u = 1 / d, head = vhead(a), half = (NUMBER)-0.5 * head;
    const VECTOR lost = vrest(u, d, TYPED(vset)(1)) + u * (a - (d - 4));
    *m = vexp_parts(half * head, (NUMBER)-0.5 * (a - head) * (a + head) - lost, n);
    return u * gelu_polynomial(vfma(8 * u, lost, 1 - 8 * u));
}

VECTOR_INLINE VECTOR TYPED(vgelu)(VECTOR x)
{
    const VECTOR a = TYPED(gelu_size)(x, GELU_END);
    VECTOR m, n, r = TYPED(gelu_parts)(a, &m, &n);
    return TYPED(gelu_less)(x, TYPED(gelu_scale)(a * r, m, n));
}

VECTOR_INLINE VECTOR TYPED(vgelu_slope)(VECTOR x)
{
    const VECTOR a = TYPED(gelu_size)(x, GELU_END);
    VECTOR m, n, r = TYPED(gelu_parts)(a, &m, &n);
    const VECTOR p = vfma(TYPED(vset)((NUMBER)-ONE_BY_ROOT_2_PI), a, r);
    const VECTOR low = TYPED(gelu_scale)(p, m, n);
    return vselect(x < 0, low, 1 - low);
}

/*
 * e^-u = (1 + m) 2^n for u = a v, v = c + c d a^2; returns m. Each factor is a head of half a
 * mantissa, so that products of heads are exact, and a rest.
 */
VECTOR_INLINE VECTOR TYPED(gelu_tanh_parts)(VECTOR a, VECTOR *n)
{
    const VECTOR head = vhead(a), square = vhead(a * a), rest = vrest(a, a, square);
    const VECTOR c = TYPED(vset)(TANH_C), c_low = TYPED(vset)(TANH_C_LOW);
    const VECTOR cd = TYPED(vset)(TANH_CD), cd_low = TYPED(vset)(TANH_CD_LOW);
    const VECTOR v = vhead(vfma(cd, square, c));
    VECTOR low = vfma(cd + cd_low, rest, vfma(cd_low, square, c_low));
    low += vfma(cd, square, c - v);
    return vexp_parts(-head * v, -vfma(a, low, (a - head) * v), n);
}

VECTOR_INLINE VECTOR TYPED(vgelu_tanh)(VECTOR x)
{
    const VECTOR a = TYPED(gelu_size)(x, GELU_TANH_END);
    VECTOR n, m = TYPED(gelu_tanh_parts)(a, &n);
    return TYPED(gelu_less)(x, TYPED(gelu_scale)(a / (1 + vscale(1 + m, n)), m, n));
}

/* With d = 1 + e^-u, Q(a) = e^-u / d and p(a) = e^-u u'(a) / d^2. */
VECTOR_INLINE VECTOR TYPED(vgelu_tanh_slope)(VECTOR x)
{
    const VECTOR a = TYPED(gelu_size)(x, GELU_TANH_END);
    VECTOR n, m = TYPED(gelu_tanh_parts)(a, &n);
    const VECTOR d = 1 + vscale(1 + m, n), c = TYPED(vset)((NUMBER)ROOT_8_BY_PI);
    const VECTOR inner = vfma((NUMBER)(3 * ROOT_8_BY_PI * CUBIC) * a, a, c);
    const VECTOR low = TYPED(gelu_scale)(vfma(-a, inner, d) / (d * d), m, n);
    return vselect(x < 0, low, 1 - low);
}

#undef TYPE
