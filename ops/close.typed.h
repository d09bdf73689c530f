/* Loops of comparisons with a tolerance, for one float type. */

static void TYPED(is_close)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    const NUMBER *from_a = in[0], *from_b = in[1];
    uint8_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = is_close_of((double)from_a[i * steps[0]], (double)from_b[i * steps[1]], attrs);
}

static void TYPED(approximate_equal)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    const NUMBER *from_a = in[0], *from_b = in[1];
    uint8_t *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] =
            approximate_equal_of((double)from_a[i * steps[0]], (double)from_b[i * steps[1]], attrs);
}

#undef TYPE
