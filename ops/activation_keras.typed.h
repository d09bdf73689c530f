/* Loops of activations with several options, for one float type. */

static void TYPED(threshold)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    if (stream) {
        LOOP_STREAMED_SAME(TYPED(threshold), 1);
        return;
    }
    const NUMBER *restrict from = in[0];
    NUMBER *restrict to = out;
    const NUMBER threshold = (NUMBER)THRESHOLD_OF(attrs)->threshold;
    const NUMBER other = (NUMBER)THRESHOLD_OF(attrs)->default_value;
    for (int64_t i = 0; i < n; i++) {
        const NUMBER x = from[i];
        to[i] = x <= threshold ? other : x;
    }
}

static void TYPED(bounded_relu)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    if (stream) {
        LOOP_STREAMED_SAME(TYPED(bounded_relu), 1);
        return;
    }
    const ed_bounded_relu_options *o = attrs;
    const NUMBER *restrict from = in[0];
    NUMBER *restrict to = out;
    const NUMBER threshold = (NUMBER)o->threshold, most = (NUMBER)o->max_value;
    const NUMBER slope = (NUMBER)o->negative_slope;
    for (int64_t i = 0; i < n; i++) {
        const NUMBER x = from[i], bounded = x > most ? most : x;
        const NUMBER below = x == x && slope == 0 ? 0 : slope * (x - threshold);
        to[i] = x > threshold ? bounded : below;
    }
}

#undef TYPE
