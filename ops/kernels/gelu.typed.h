/* The functions that ops/kernels/gelu.h lists, for one float type. */

/* |x|, at most `end`; NaN stays. */
VECTOR_INLINE VECTOR TYPED(gelu_size)(VECTOR x, NUMBER end)
{
    return TYPED(vlesser)(TYPED(vset)(end), vabs(x));
}

/* max(x, 0) with the sign of x's zero, less the tail a Q(a). */
VECTOR_INLINE VECTOR TYPED(gelu_less)(VECTOR x, VECTOR tail)
{
    return TYPED(vgreater)(TYPED(vset)((NUMBER)-0.0), x) - tail;
}

/* x (1 + m) 2^n */
VECTOR_INLINE VECTOR TYPED(gelu_scale)(VECTOR x, VECTOR m, VECTOR n)
{
    return vscale_down(vfma(x, m, x), n);
}

/* e^(-a^2 / 2 - lost) = (1 + m) 2^n; returns m. Without fused multiply-add a product of half
 * mantissas is the exact part of the square. */
VECTOR_INLINE VECTOR TYPED(gelu_power)(VECTOR a, VECTOR lost, VECTOR *n)
{
    const VECTOR half = TYPED(vset)((NUMBER)-0.5);
#if defined(VECTOR_FMA)
    const VECTOR square = a * a;
    return vexp_parts(half * square, vfma(half, vrest(a, a, square), -lost), n);
#else
    const VECTOR head = vhead(a);
    return vexp_parts(half * head * head, half * (a - head) * (a + head) - lost, n);
#endif
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
    const VECTOR d = a + 4, u = 1 / d;
    const VECTOR lost = vrest(u, d, TYPED(vset)(1)) + u * (a - (d - 4));
    *m = TYPED(gelu_power)(a, lost, n);
    const VECTOR t = vfma(8 * u, lost, 1 - 8 * u);
    return u * vfma(t, gelu_polynomial(t), TYPED(vset)(GELU_FIRST));
}

/*
 * a Q(a) = w P(t) (1 + m) 2^n with w = a / (a + 4) and t = 2 w - 1. What the quotient and the sum
 * lost, `off`, and what the rounding of P(t) and of the product lost go into `low`.
 */
VECTOR_INLINE VECTOR TYPED(gelu_by_power)(VECTOR x)
{
    const VECTOR a = TYPED(gelu_size)(x, GELU_END);
    const VECTOR first = TYPED(vset)(GELU_FIRST), first_low = TYPED(vset)(GELU_FIRST_LOW);
    const VECTOR d = a + 4, w = a / d;
    const VECTOR off = vfma(w, a - (d - 4), vrest(w, d, a)) * ((NUMBER)0.25 - (NUMBER)0.25 * w);
    VECTOR n, m = TYPED(gelu_power)(a, TYPED(vset)(0), &n);
    const VECTOR t = vfma(off, TYPED(vset)(-2), 2 * w - 1), r = gelu_polynomial(t);
    const VECTOR p = vfma(t, r, first), y = w * p;
#if defined(VECTOR_FMA)
    const VECTOR p_low = vfma(t, r, first - p) + first_low;
#else
    const VECTOR product = t * r,
                 p_low = (product + (first - p)) + (vrest(t, r, product) + first_low);
#endif
    const VECTOR low = vfma(w, p_low, vrest(w, p, y)) - off * p;
    return TYPED(gelu_less)(x, vscale_down(y + vfma(y, m, low * (1 + m)), n));
}

VECTOR_INLINE VECTOR TYPED(gelu_slope_by_power)(VECTOR x)
{
    const VECTOR a = TYPED(gelu_size)(x, GELU_END);
    VECTOR m, n, r = TYPED(gelu_parts)(a, &m, &n);
    const VECTOR p = vfma(TYPED(vset)((NUMBER)-ONE_BY_ROOT_2_PI), a, r);
    const VECTOR low = TYPED(gelu_scale)(p, m, n);
    return vselect(x < 0, low, 1 - low);
}

/*
 * v + low = c + c d b^2. Each factor is a head of half a mantissa, so that products of heads are
 * exact, and a rest.
 */
VECTOR_INLINE void TYPED(gelu_tanh_factor)(VECTOR b, VECTOR *v, VECTOR *low)
{
    const VECTOR square = vhead(b * b), rest = vrest(b, b, square);
    const VECTOR c = TYPED(vset)(TANH_C), c_low = TYPED(vset)(TANH_C_LOW);
    const VECTOR cd = TYPED(vset)(TANH_CD), cd_low = TYPED(vset)(TANH_CD_LOW);
    *v = vhead(vfma(cd, square, c));
    *low = vfma(cd + cd_low, rest, vfma(cd_low, square, c_low)) + vfma(cd, square, c - *v);
}

/* e^(b (v + low)) = (1 + m) 2^n for b = -a and that v + low; returns m. */
VECTOR_INLINE VECTOR TYPED(gelu_tanh_parts)(VECTOR b, VECTOR *n, VECTOR *v, VECTOR *low)
{
    const VECTOR head = vhead(b);
    TYPED(gelu_tanh_factor)(b, v, low);
    return vexp_parts(head * *v, vfma(b, *low, (b - head) * *v), n);
}

/*
 * x / d for d = 1 + e, e = (1 + m) 2^n, with the m for which x e / (1 + e) = x / d (1 + m) 2^n: it
 * takes what rounding d lost, with a line in place of 1 / d, of which few digits count.
 */
VECTOR_INLINE VECTOR TYPED(gelu_share)(VECTOR x, VECTOR *m, VECTOR n)
{
    const VECTOR power = 1 + *m, e = vscale_down(power, n), d = 1 + e;
    const VECTOR line = vfma(d, TYPED(vset)((NUMBER)-0.5), TYPED(vset)((NUMBER)1.457));
    *m = vfma((d - 1) - e, power * line, *m);
    return x / d;
}

VECTOR_INLINE VECTOR TYPED(gelu_tanh_by_power)(VECTOR x)
{
    const VECTOR b = -TYPED(gelu_size)(x, GELU_TANH_END);
    VECTOR n, v, low, m = TYPED(gelu_tanh_parts)(b, &n, &v, &low);
    const VECTOR share = TYPED(gelu_share)(b, &m, n);
    return TYPED(gelu_less)(x, -TYPED(gelu_scale)(share, m, n));
}

/* With e = e^-|x|, x / (1 + e), times e for x < 0. 0 x is NaN where x is infinite. */
VECTOR_INLINE VECTOR TYPED(silu_by_power)(VECTOR x)
{
    const VECTOR end = TYPED(vset)(-SILU_END), zero = TYPED(vset)(0);
    VECTOR n, m = vexp_parts(TYPED(vgreater)(end, -vabs(x)), zero, &n);
    const VECTOR share = TYPED(gelu_share)(TYPED(vgreater)(end, x), &m, n);
    return vselect(x < 0, vfma(zero, x, TYPED(gelu_scale)(share, m, n)), share);
}

/*
 * With a = |x| and e = e^-a = (1 + m) 2^n, (1 - a + e) e / (1 + e)^2 for x < 0, else 1 less that.
 * Where e is small, (1 + m) / (1 + e)^2 is 1 and a rest, whose rounding costs little.
 */
VECTOR_INLINE VECTOR TYPED(silu_slope_by_power)(VECTOR x)
{
    const VECTOR a = TYPED(gelu_size)(x, SILU_END);
    VECTOR n, m = vexp_parts(-a, TYPED(vset)(0), &n), power = 1 + m, e = vscale_down(power, n);
    const VECTOR more = e * (2 + e), inverse = 1 / (1 + more), part = (1 - a) + e;
    const VECTOR rest = vfma(-more * inverse, power, m);
    const VECTOR y =
        vselect(more < (NUMBER)0.375, vfma(part, rest, part), part * (inverse * power));
    const VECTOR low = vscale_down(y, n);
    return vselect(x < 0, low, 1 - low);
}

/* With e = e^-u, (1 - a u'(a) + e) e / (1 + e)^2 for x < 0, else 1 less that; a = -b and u'(a) is
 * 3 (v + low) - 2 c, of which 3 v - 2 c is exact. */
VECTOR_INLINE VECTOR TYPED(vgelu_tanh_slope)(VECTOR x)
{
    const VECTOR b = -TYPED(gelu_size)(x, GELU_TANH_END), three = TYPED(vset)(3);
    VECTOR n, v, low, m = TYPED(gelu_tanh_parts)(b, &n, &v, &low), e = vscale_down(1 + m, n);
    const VECTOR most = vfma(three, v, TYPED(vset)(-2 * TANH_C));
    const VECTOR less = vfma(three, low, TYPED(vset)(-2 * TANH_C_LOW));
    const VECTOR part = vfma(b, most, vfma(b, less, 1 + e));
    const VECTOR below = TYPED(gelu_scale)(part / vfma(e, 2 + e, TYPED(vset)(1)), m, n);
    return vselect(x < 0, below, 1 - below);
}

#undef TYPE
