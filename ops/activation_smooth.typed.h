/* Values of smooth activations, for one float type. */

/*
 * mish: with p = e^x, tanh(softplus(x)) is n / (n + 2) for n = p (p + 2), that is 1 - g for
 * g = 2 / (n + 2), and also p (1 - h) for h = p (p + 1) / (n + 2), which does not cancel for small
 * p. There p is (1 + m) 2^k, so that one factor 1 + (m - h (1 + m)) is left. 0 x is NaN where x is
 * infinite.
 */
VECTOR_INLINE VECTOR TYPED(vmish)(VECTOR x)
{
    const VECTOR low = TYPED(vgreater)(TYPED(vset)(-MISH_END), x), zero = TYPED(vset)(0);
    const VECTOR between = TYPED(vlesser)(TYPED(vset)(MISH_ONE), low);
    VECTOR k, m = vexp_parts(between, zero, &k);
    const VECTOR power = 1 + m, p = vscale_down(power, k), two = TYPED(vset)(2);
    const MASK below = x < (NUMBER)-0.25;
    const VECTOR rest = vselect(below, p * (p + 1), two) / vfma(p, p + 2, two);
    const VECTOR small = vscale_down(vfma(low, vfma(-rest, power, m), low), k);
    return vcopysign(vselect(below, vfma(zero, x, small), vfma(-between, rest, x)), x);
}

/* tanh_shrink: up to 1.5, where x - tanh x cancels, it is x^3 P(x^2 - 1.125), with what rounding
 * lost in a second part. */
VECTOR_INLINE VECTOR TYPED(vtanh_shrink)(VECTOR x)
{
    const VECTOR near = vselect(vabs(x) < (NUMBER)1.5, x, TYPED(vset)(0)), square = near * near;
    const VECTOR cube = near * square, p = shrink_polynomial(square - (NUMBER)1.125);
    const VECTOR rest = vfma(near, vrest(near, near, square), vrest(near, square, cube));
    const VECTOR product = cube * p, lost = vfma(rest, p, vrest(cube, p, product));
    const VECTOR y = vselect(vabs(x) < (NUMBER)1.5, product + lost, x - vtanh(x));
    return vcopysign(y, x);
}

/*
 * squareplus: (x + h) / 2 with h = sqrt(x^2 + c^2), which for x < 0 is part / d for part = (c /
 * 2)^2, d = (h - x) / 2. What the quotient and the difference lost is put back, with the quotient
 * by `part` in place of 1 / d.
 */
VECTOR_INLINE VECTOR TYPED(vsquareplus)(VECTOR x, VECTOR c)
{
    const VECTOR part = (NUMBER)0.25 * c * c, zero = TYPED(vset)(0);
    const VECTOR inverse = 1 / TYPED(vgreater)(part, TYPED(vset)(SMOOTH_LEAST));
    const VECTOR half = (NUMBER)0.5 * vhypot(x, c), own = (NUMBER)0.5 * x, d = half - own;
    const VECTOR y = part / d, lost = vrest(y, d, part) + y * ((half - d) - own);
    const VECTOR below = vfma(vselect(d < INFINITY, -lost, zero), y * inverse, y);
    return vselect(x < 0, below, own + half);
}

#undef TYPE
