/* SGD's update, for one float type. */

/* w -= g rate; with momentum v = v mu - g rate and w += v, or w += v mu - g rate (nesterov). */
static void TYPED(sgd_update)(const optim_part *p)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict vs = p->slots[MOMENTUM];
    const NUMBER rate = (NUMBER)p->numbers[RATE], mu = (NUMBER)p->numbers[MU];
    if (!vs)
        for (int64_t i = 0; i < p->n; i++) w[i] -= g[i] * rate;
    else if (p->numbers[NESTEROV] != 0)
        OPTIM_EACH(i, p, sizeof *w)
        {
            const NUMBER step = g[i] * rate;
            vs[i] = vs[i] * mu - step;
            w[i] += vs[i] * mu - step;
        }
    else
        OPTIM_EACH(i, p, sizeof *w)
        {
            vs[i] = vs[i] * mu - g[i] * rate;
            w[i] += vs[i];
        }
}

#undef TYPE
