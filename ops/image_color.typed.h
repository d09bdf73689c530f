/* Pixels of image_color.c for one float type. */

static void TYPED(rgb_to_hsv_pixels)(const NUMBER *x, NUMBER *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++, x += 3, y += 3) {
        const NUMBER r = x[0], g = x[1], b = x[2];
        if (r != r || g != g || b != b) {
            y[0] = y[1] = y[2] = (NUMBER)NAN;
            continue;
        }
        const NUMBER most = r > g ? (r > b ? r : b) : (g > b ? g : b);
        const NUMBER least = r < g ? (r < b ? r : b) : (g < b ? g : b);
        const NUMBER range = most - least;
        const NUMBER from = r == most ? g - b : g == most ? b - r : r - g;
        const NUMBER third = r == most ? 0 : g == most ? (NUMBER)(1.0 / 3) : (NUMBER)(2.0 / 3);
        const NUMBER hue = range > 0 ? from / (6 * range) + third : 0;
        y[0] = hue < 0 ? hue + 1 : hue;
        y[1] = most > 0 ? range / most : 0;
        y[2] = most;
    }
}

static inline NUMBER TYPED(held)(NUMBER x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static void TYPED(hsv_to_rgb_pixels)(const NUMBER *x, NUMBER *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++, x += 3, y += 3) {
        const NUMBER h = 6 * x[0], s = x[1], v = x[2];
        const NUMBER r = TYPED(held)((h < 3 ? 3 - h : h - 3) - 1),
                     g = TYPED(held)(2 - (h < 2 ? 2 - h : h - 2)),
                     b = TYPED(held)(2 - (h < 4 ? 4 - h : h - 4));
        y[0] = ((1 - s) + s * r) * v;
        y[1] = ((1 - s) + s * g) * v;
        y[2] = ((1 - s) + s * b) * v;
    }
}

#undef TYPE
