/* The update of FTRL, for one float type. */

/* With a power of 1/2, the usual one, powers are roots. With a rate of 0 there is nothing to do. */
static inline
    __attribute__((always_inline)) void TYPED(ftrl_step)(const optim_part *p, const bool root)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict ns = p->slots[ACCUMULATOR],
                     *restrict zs = p->slots[LINEAR];
    const NUMBER rate = (NUMBER)p->numbers[RATE], power = (NUMBER)p->numbers[POWER];
    const NUMBER l1 = (NUMBER)p->numbers[L1], twice_l2 = (NUMBER)p->numbers[TWICE_L2];
    const NUMBER twice_shrinkage = (NUMBER)p->numbers[TWICE_SHRINKAGE];
    OPTIM_EACH(i, p, sizeof *w)
    {
        const NUMBER n = ns[i] + g[i] * g[i];
        const NUMBER after = root ? TYPED(number_sqrt)(n) : TYPED(number_pow)(n, power);
        const NUMBER before = root ? TYPED(number_sqrt)(ns[i]) : TYPED(number_pow)(ns[i], power);
        const NUMBER z = zs[i] += g[i] + twice_shrinkage * w[i] - (after - before) / rate * w[i];
        const NUMBER limited = z > l1 ? l1 : z < -l1 ? -l1 : z;
        w[i] = (limited - z) / (after / rate + twice_l2);
        ns[i] = n;
    }
}

static void TYPED(ftrl_update)(const optim_part *p)
{
    if (p->numbers[RATE] == 0) return;
    if (p->numbers[POWER] == 0.5)
        TYPED(ftrl_step)(p, true);
    else
        TYPED(ftrl_step)(p, false);
}

#undef TYPE
