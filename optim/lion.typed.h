/* Lion's update, for one float type. */

/* w -= rate sign(m beta_1 + g (1 - beta_1)), of which 0 and NaN stay; m = m beta_2 +
 * g (1 - beta_2) */
static void TYPED(lion_update)(const optim_part *p)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict ms = p->slots[MOMENTUM];
    const NUMBER rate = (NUMBER)p->numbers[RATE], beta_1 = (NUMBER)p->numbers[BETA_1];
    const NUMBER c1 = (NUMBER)p->numbers[ONE_MINUS_BETA_1], beta_2 = (NUMBER)p->numbers[BETA_2];
    const NUMBER c2 = (NUMBER)p->numbers[ONE_MINUS_BETA_2];
    OPTIM_EACH(i, p, sizeof *w)
    {
        const NUMBER way = ms[i] * beta_1 + g[i] * c1;
        w[i] -= rate * (way > 0 ? 1 : way < 0 ? -1 : way);
        ms[i] = ms[i] * beta_2 + g[i] * c2;
    }
}

#undef TYPE
