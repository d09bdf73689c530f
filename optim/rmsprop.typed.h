/* RMSprop's update, for one float type. */

/*
 * s = rho s + (1 - rho) g g; centered: a = rho a + (1 - rho) g, d = s - a a, else d = s; step =
 * rate g / sqrt(d + epsilon); with momentum b = mu b + step, w -= b, else w -= step.
 */
static inline __attribute__((always_inline)) void TYPED(rmsprop_step)(const optim_part *p,
                                                                      const bool momentum,
                                                                      const bool centered)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict ss = p->slots[VELOCITY];
    NUMBER *restrict bs = p->slots[MOMENTUM], *restrict as = p->slots[AVERAGE];
    const NUMBER rate = (NUMBER)p->numbers[RATE], epsilon = (NUMBER)p->numbers[EPSILON];
    const NUMBER rho = (NUMBER)p->numbers[RHO], c = (NUMBER)p->numbers[ONE_MINUS_RHO];
    const NUMBER mu = (NUMBER)p->numbers[MU];
    OPTIM_EACH(i, p, sizeof *w)
    {
        NUMBER d = ss[i] = rho * ss[i] + c * (g[i] * g[i]);
        if (centered) {
            as[i] = rho * as[i] + c * g[i];
            d -= as[i] * as[i];
        }
        NUMBER step = rate * g[i] / TYPED(number_sqrt)(d + epsilon);
        if (momentum) bs[i] = step = mu * bs[i] + step;
        w[i] -= step;
    }
}

static void TYPED(rmsprop_update)(const optim_part *p)
{
    if (p->slots[MOMENTUM] && p->slots[AVERAGE])
        TYPED(rmsprop_step)(p, true, true);
    else if (p->slots[MOMENTUM])
        TYPED(rmsprop_step)(p, true, false);
    else if (p->slots[AVERAGE])
        TYPED(rmsprop_step)(p, false, true);
    else
        TYPED(rmsprop_step)(p, false, false);
}

#undef TYPE
