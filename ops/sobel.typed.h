/* The loop of sobel_edges for one float type. */

/* The filters at elements e to e + some of a row, whose pixels have neighbours `left` and `right`
 * elements away; a vector at most. */
VECTOR_INLINE void TYPED(sobel_some)(const sobel_row *r, int64_t e, int64_t some, int64_t left,
                                     int64_t right)
{
    const NUMBER *up = (const NUMBER *)r->up + e, *here = (const NUMBER *)r->here + e,
                 *down = (const NUMBER *)r->down + e;
    const VECTOR up_left = lanes_some(up + left, some, 0),
                 up_right = lanes_some(up + right, some, 0);
    const VECTOR down_left = lanes_some(down + left, some, 0),
                 down_right = lanes_some(down + right, some, 0);
    const VECTOR middle = lanes_some(down, some, 0) - lanes_some(up, some, 0);
    const VECTOR level = lanes_some(here + right, some, 0) - lanes_some(here + left, some, 0);
    const VECTOR dy = (down_left - up_left) + 2 * middle + (down_right - up_right);
    const VECTOR dx = (up_right - up_left) + 2 * level + (down_right - down_left);
    const VECTOR first = TYPED(STRIDED)(FIRST)(dy, dx), second = TYPED(STRIDED)(SECOND)(dy, dx);
    NUMBER *y = (NUMBER *)r->y + 2 * e;
    if (r->stream && some == VECTOR_LANES) {
        vstream(y, first);
        vstream(y + VECTOR_LANES, second);
    } else {
        lanes_put(y, first, 2 * some);
        if (2 * some > VECTOR_LANES) lanes_put(y + VECTOR_LANES, second, 2 * some - VECTOR_LANES);
    }
}

/* A row, cut where vectors begin: those that hold a part of the first or the last pixel are cut
 * there, too. */
static void TYPED(sobel_edges)(const sobel_row *r)
{
    const int64_t n = r->width * r->channels, c = r->channels;
    for (int64_t e = 0, next; e < n; e = next) {
        const bool first = e < c, last = e >= n - c;
        const int64_t end = first ? c : last ? n : n - c;
        next = (e / VECTOR_LANES + 1) * VECTOR_LANES;
        if (next > end) next = end;
        TYPED(sobel_some)(r, e, next - e, first ? c : -c, last ? -c : c);
        for (; !first && !last && next + VECTOR_LANES <= end; next += VECTOR_LANES)
            TYPED(sobel_some)(r, next, VECTOR_LANES, -c, c);
    }
    if (r->stream) vstream_end();
}

#undef TYPE
