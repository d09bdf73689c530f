/* Adam's update, for one float type. */

/*
 * m += (g - m)(1 - beta_1); v += (g g - v)(1 - beta_2); w -= m alpha / (sqrt(v) + epsilon). The
 * operations are in Keras' order, not fused or reordered, so each instruction set gives the same
 * bits as Keras.
 */
static inline
    __attribute__((always_inline)) void TYPED(adam_step)(const optim_part *p, const bool amsgrad)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict ms = p->slots[MOMENTUM];
    NUMBER *restrict vs = p->slots[VELOCITY], *restrict hats = p->slots[VELOCITY_HAT];
    const NUMBER alpha = (NUMBER)p->numbers[ALPHA], epsilon = (NUMBER)p->numbers[EPSILON];
    const NUMBER c1 = (NUMBER)p->numbers[ONE_MINUS_BETA_1];
    const NUMBER c2 = (NUMBER)p->numbers[ONE_MINUS_BETA_2];
    OPTIM_EACH(i, p, sizeof *w)
    {
        const NUMBER m = ms[i] + (g[i] - ms[i]) * c1;
        const NUMBER v = vs[i] + (g[i] * g[i] - vs[i]) * c2;
        NUMBER bound = v;
        if (amsgrad) hats[i] = bound = hats[i] < v ? v : hats[i];
        ms[i] = m;
        vs[i] = v;
        w[i] -= m * alpha / (TYPED(number_sqrt)(bound) + epsilon);
    }
}

static void TYPED(adam_update)(const optim_part *p)
{
    if (p->slots[VELOCITY_HAT])
        TYPED(adam_step)(p, true);
    else
        TYPED(adam_step)(p, false);
}

#undef TYPE
