/* The updates of Adamax and Nadam, for one float type. */

/* m += (g - m)(1 - beta_1); u = max(beta_2 u, |g|); w -= rate m / (correction (u + epsilon)) */
static void TYPED(adamax_update)(const optim_part *p)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict ms = p->slots[MOMENTUM], *restrict us = p->slots[NORM];
    const NUMBER rate = (NUMBER)p->numbers[RATE], epsilon = (NUMBER)p->numbers[EPSILON];
    const NUMBER c1 = (NUMBER)p->numbers[ONE_MINUS_BETA_1], beta_2 = (NUMBER)p->numbers[BETA_2];
    const NUMBER correction = (NUMBER)p->numbers[CORRECTION];
    OPTIM_EACH(i, p, sizeof *w)
    {
        const NUMBER size = g[i] < 0 ? -g[i] : g[i], before = beta_2 * us[i];
        const NUMBER u = us[i] = before < size ? size : before;
        const NUMBER m = ms[i] += (g[i] - ms[i]) * c1;
        w[i] -= rate * m / (correction * (u + epsilon));
    }
}

/* m += (g - m)(1 - beta_1); v += (g g - v)(1 - beta_2);
 * w -= rate (of_mean m + of_gradient g) / (sqrt(v / correction) + epsilon) */
static void TYPED(nadam_update)(const optim_part *p)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict ms = p->slots[MOMENTUM], *restrict vs = p->slots[VELOCITY];
    const NUMBER rate = (NUMBER)p->numbers[RATE], epsilon = (NUMBER)p->numbers[EPSILON];
    const NUMBER c1 = (NUMBER)p->numbers[ONE_MINUS_BETA_1];
    const NUMBER c2 = (NUMBER)p->numbers[ONE_MINUS_BETA_2];
    const NUMBER correction = (NUMBER)p->numbers[CORRECTION];
    const NUMBER of_mean = (NUMBER)p->numbers[OF_MEAN];
    const NUMBER of_gradient = (NUMBER)p->numbers[OF_GRADIENT];
    OPTIM_EACH(i, p, sizeof *w)
    {
        const NUMBER m = ms[i] += (g[i] - ms[i]) * c1;
        const NUMBER v = vs[i] += (g[i] * g[i] - vs[i]) * c2;
        w[i] -= (of_mean * m + of_gradient * g[i]) * rate /
                (TYPED(number_sqrt)(v / correction) + epsilon);
    }
}

#undef TYPE
