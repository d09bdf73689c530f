/* The loops of betainc, which has three operands, and of igamma_derivative, which has an attribute,
 * for one float type. */

static void TYPED(betainc)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    const NUMBER *from[] = {in[0], in[1], in[2]};
    VECTOR x[3];
    for (int k = 0; k < 3; k++) x[k] = TYPED(vset)(*from[k]);
    for (int64_t i = 0; i < n; i += VECTOR_LANES) {
        const int64_t left = n - i;
        for (int k = 0; k < 3; k++)
            if (steps[k])
                x[k] = left >= VECTOR_LANES ? vload(from[k] + i) : vload_part(from[k] + i, left);
        const VECTOR y = TYPED(vbetainc)(x[0], x[1], x[2]);
        if (left < VECTOR_LANES)
            vstore_part((NUMBER *)out + i, y, left);
        else if (stream)
            vstream((NUMBER *)out + i, y);
        else
            vstore((NUMBER *)out + i, y);
    }
}

static void TYPED(igamma_derivative)(LOOP_ARGUMENTS)
{
    LOOP_USED;
    const NUMBER *from_a = in[0], *from_x = in[1];
    NUMBER *to = out;
    for (int64_t i = 0; i < n; i++)
        to[i] = (NUMBER)special_igamma_derivative(IGAMMA_ORDER, (double)from_a[i * steps[0]],
                                                  (double)from_x[i * steps[1]]);
}

#undef TYPE
