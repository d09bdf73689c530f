/* The loops of crop_and_resize.c for one float type. */

/* Row `row` of crop number n. */
static void TYPED(crop_row)(const cropping *p, int64_t n, int64_t row)
{
    const NUMBER *box = (const NUMBER *)p->boxes + 4 * n;
    const int64_t height = p->image[1], width = p->image[2], channels = p->image[3];
    NUMBER *to = (NUMBER *)p->to + (n * p->crop[0] + row) * p->crop[1] * channels;
    int64_t down[2], across[2];
    double weight = 0;
    const bool inside =
        box_pixels(box_place((double)box[0], (double)box[2], row, p->crop[0], height), height,
                   p->nearest, down, &weight);
    const NUMBER v = (NUMBER)weight;
    const NUMBER *image = (const NUMBER *)p->from + p->of[n] * height * width * channels;
    for (int64_t j = 0; j < p->crop[1]; j++, to += channels) {
        const double place = box_place((double)box[1], (double)box[3], j, p->crop[1], width);
        if (!box_pixels(place, width, p->nearest, across, &weight) || !inside) {
            for (int64_t c = 0; c < channels; c++) to[c] = (NUMBER)p->otherwise;
            continue;
        }
        const NUMBER u = (NUMBER)weight;
        const NUMBER *a = image + (down[0] * width + across[0]) * channels,
                     *b = image + (down[0] * width + across[1]) * channels,
                     *c = image + (down[1] * width + across[0]) * channels,
                     *d = image + (down[1] * width + across[1]) * channels;
        for (int64_t k = 0; k < channels; k++) {
            const NUMBER above = u > 0 ? (1 - u) * a[k] + u * b[k] : a[k];
            const NUMBER below = v <= 0 ? 0 : u > 0 ? (1 - u) * c[k] + u * d[k] : c[k];
            to[k] = v > 0 ? (1 - v) * above + v * below : above;
        }
    }
}

#undef TYPE
