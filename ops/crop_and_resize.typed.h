/* The loops of crop_and_resize.c for one float type. */

/* A pixel between four of them, a and b above, c and d below; u and v are the weights of what is
 * to the right and below. Those of weight 0 do not count, whatever they are. */
static inline void TYPED(crop_pixel)(const NUMBER *const *from, NUMBER u, NUMBER v, NUMBER *to,
                                     const int64_t channels)
{
    const NUMBER *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    for (int64_t k = 0; k < channels; k++) {
        const NUMBER above = u > 0 ? (1 - u) * a[k] + u * b[k] : a[k];
        const NUMBER below = v <= 0 ? 0 : u > 0 ? (1 - u) * c[k] + u * d[k] : c[k];
        to[k] = v > 0 ? (1 - v) * above + v * below : above;
    }
}

/* The columns of box n. */
static void TYPED(crop_columns)(const cropping *p, int64_t n, crop_column *columns)
{
    const NUMBER *box = (const NUMBER *)p->boxes + 4 * n;
    for (int64_t j = 0; j < p->crop[1]; j++) {
        const double at = box_place((double)box[1], (double)box[3], j, p->crop[1], p->image[2]);
        crop_column *to = columns + j;
        to->inside = box_pixels(at, p->image[2], p->nearest, to->at, &to->weight);
    }
}

/* Row `row` of crop number n, which has these columns. */
static void TYPED(crop_row)(const cropping *p, int64_t n, int64_t row, const crop_column *columns)
{
    const NUMBER *box = (const NUMBER *)p->boxes + 4 * n;
    const int64_t height = p->image[1], width = p->image[2], channels = p->image[3];
    NUMBER *to = (NUMBER *)p->to + (n * p->crop[0] + row) * p->crop[1] * channels;
    int64_t down[2];
    double weight = 0;
    const bool inside =
        box_pixels(box_place((double)box[0], (double)box[2], row, p->crop[0], height), height,
                   p->nearest, down, &weight);
    const NUMBER v = (NUMBER)weight;
    const NUMBER *image = (const NUMBER *)p->from + p->of[n] * height * width * channels;
    const NUMBER *above = image + down[0] * width * channels,
                 *below = image + down[1] * width * channels;
    for (int64_t j = 0; j < p->crop[1]; j++, to += channels) {
        const crop_column *at = columns + j;
        if (!at->inside || !inside) {
            for (int64_t c = 0; c < channels; c++) to[c] = (NUMBER)p->otherwise;
            continue;
        }
        const int64_t left = at->at[0] * channels, right = at->at[1] * channels;
        const NUMBER *const from[] = {above + left, above + right, below + left, below + right};
        if (channels == 3)
            TYPED(crop_pixel)(from, (NUMBER)at->weight, v, to, 3);
        else
            TYPED(crop_pixel)(from, (NUMBER)at->weight, v, to, channels);
    }
}

#undef TYPE
