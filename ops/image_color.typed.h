/* The loops of colors for one float type. Those of a pixel are a lane of three vectors. */

VECTOR_INLINE void TYPED(rgb_to_hsv_of)(const VECTOR *x, VECTOR *y)
{
    const VECTOR r = x[0], g = x[1], b = x[2], zero = {0};
    const VECTOR most = vgreater(vgreater(r, g), b), least = vlesser(vlesser(r, g), b);
    const VECTOR range = most - least;
    const MASK is_r = r == most, is_g = g == most, none = (r != r) | (g != g) | (b != b);
    const VECTOR from = vselect(is_r, g - b, vselect(is_g, b - r, r - g));
    const VECTOR third = vselect(
        is_r, zero, vselect(is_g, vset(zero, (NUMBER)(1.0 / 3)), vset(zero, (NUMBER)(2.0 / 3))));
    const VECTOR hue = vselect(range > 0, from / (6 * range) + third, zero);
    const VECTOR nan = vset(zero, (NUMBER)NAN);
    y[0] = vselect(none, nan, vselect(hue < 0, hue + 1, hue));
    y[1] = vselect(none, nan, vselect(most > 0, range / most, zero));
    y[2] = vselect(none, nan, most);
}

/* x from 0 to 1. */
VECTOR_INLINE VECTOR TYPED(color_held)(VECTOR x)
{
    const VECTOR zero = {0};
    return vlesser(vset(zero, 1), vgreater(zero, x));
}

VECTOR_INLINE void TYPED(hsv_to_rgb_of)(const VECTOR *x, VECTOR *y)
{
    const VECTOR h = 6 * x[0], s = x[1], v = x[2];
    y[0] = ((1 - s) + s * TYPED(color_held)(vabs(h - 3) - 1)) * v;
    y[1] = ((1 - s) + s * TYPED(color_held)(2 - vabs(h - 2))) * v;
    y[2] = ((1 - s) + s * TYPED(color_held)(2 - vabs(h - 4))) * v;
}

VECTOR_INLINE void TYPED(color_vectors)(const color_map map, const color_work *p, const VECTOR *x,
                                        VECTOR *y)
{
    const NUMBER *m = p->TYPED(numbers);
    VECTOR hsv[3];
    if (map == COLOR_HSV) {
        TYPED(rgb_to_hsv_of)(x, y);
    } else if (map == COLOR_RGB) {
        TYPED(hsv_to_rgb_of)(x, y);
    } else if (map == COLOR_TIMES) {
        for (int k = 0; k < 3; k++)
            y[k] = vfma(x[2], vset(x[0], m[6 + k]), vfma(x[1], vset(x[0], m[3 + k]), x[0] * m[k]));
    } else {
        TYPED(rgb_to_hsv_of)(x, hsv);
        if (map == COLOR_HUE) {
            const VECTOR hue = hsv[0] + m[0];
            hsv[0] = hue - vfloor(hue);
        } else {
            hsv[1] = TYPED(color_held)(hsv[1] * m[0]);
        }
        TYPED(hsv_to_rgb_of)(hsv, y);
    }
}

/* n pixels; past the caches, these are whole vectors. */
VECTOR_INLINE void TYPED(color_pixels)(const color_map map, const color_work *p, const NUMBER *x,
                                       NUMBER *y, int64_t n)
{
    VECTOR from[3], to[3];
    for (; n >= VECTOR_LANES; n -= VECTOR_LANES, x += 3 * VECTOR_LANES, y += 3 * VECTOR_LANES) {
        TYPED(triples_load)(x, from);
        TYPED(color_vectors)(map, p, from, to);
        TYPED(triples_join)(to, from);
        for (int k = 0; k < 3; k++)
            if (p->stream)
                vstream(y + k * VECTOR_LANES, from[k]);
            else
                vstore(y + k * VECTOR_LANES, from[k]);
    }
    if (p->stream) vstream_end();
    if (!n) return;
    NUMBER room[3 * VECTOR_LANES] = {0};
    memcpy(room, x, (size_t)(3 * n) * sizeof *x);
    TYPED(triples_load)(room, from);
    TYPED(color_vectors)(map, p, from, to);
    TYPED(triples_join)(to, from);
    for (int k = 0; k < 3; k++) vstore(room + k * VECTOR_LANES, from[k]);
    memcpy(y, room, (size_t)(3 * n) * sizeof *y);
}

static void TYPED(color_hsv)(const color_work *p, const void *x, void *y, int64_t n)
{
    TYPED(color_pixels)(COLOR_HSV, p, x, y, n);
}

static void TYPED(color_rgb)(const color_work *p, const void *x, void *y, int64_t n)
{
    TYPED(color_pixels)(COLOR_RGB, p, x, y, n);
}

static void TYPED(color_times)(const color_work *p, const void *x, void *y, int64_t n)
{
    TYPED(color_pixels)(COLOR_TIMES, p, x, y, n);
}

static void TYPED(color_hue)(const color_work *p, const void *x, void *y, int64_t n)
{
    TYPED(color_pixels)(COLOR_HUE, p, x, y, n);
}

static void TYPED(color_saturation)(const color_work *p, const void *x, void *y, int64_t n)
{
    TYPED(color_pixels)(COLOR_SATURATION, p, x, y, n);
}

/* Products and sums, each rounded, in the order of a reduce_sum of three. */
VECTOR_INLINE VECTOR TYPED(grey_of)(const NUMBER *m, const VECTOR *x)
{
    return (x[0] * m[0] + x[2] * m[2]) + x[1] * m[1];
}

static void TYPED(color_grey)(const color_work *p, const void *pixels, void *to, int64_t n)
{
    const NUMBER *m = p->TYPED(numbers), *x = pixels;
    NUMBER *y = to;
    VECTOR c[3];
    for (; n >= VECTOR_LANES; n -= VECTOR_LANES, x += 3 * VECTOR_LANES, y += VECTOR_LANES) {
        TYPED(triples_load)(x, c);
        vstore(y, TYPED(grey_of)(m, c));
    }
    if (!n) return;
    NUMBER room[3 * VECTOR_LANES] = {0};
    memcpy(room, x, (size_t)(3 * n) * sizeof *x);
    TYPED(triples_load)(room, c);
    vstore_part(y, TYPED(grey_of)(m, c), n);
}

/* Each number three times. */
static void TYPED(color_spread)(const color_work *p, const void *numbers, void *pixels, int64_t n)
{
    const NUMBER *x = numbers;
    NUMBER *y = pixels;
    for (; n >= VECTOR_LANES; n -= VECTOR_LANES, x += VECTOR_LANES) {
        const VECTOR v = vload(x), same[3] = {v, v, v};
        VECTOR to[3];
        TYPED(triples_join)(same, to);
        for (int k = 0; k < 3; k++, y += VECTOR_LANES)
            if (p->stream)
                vstream(y, to[k]);
            else
                vstore(y, to[k]);
    }
    if (p->stream) vstream_end();
    for (int64_t i = 0; i < 3 * n; i++) y[i] = x[i / 3];
}

#undef TYPE
