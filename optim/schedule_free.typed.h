/* The update of schedule-free AdamW, for one float type. */

/* v += (g g - v)(1 - beta_2); x = (w - (1 - beta_1) z) / beta_1;
 * z -= rate g / (sqrt(v / correction) + epsilon); x = (1 - share) x + share z;
 * w = (1 - beta_1) z + beta_1 x */
static void TYPED(schedule_free_update)(const optim_part *p)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict zs = p->slots[MOMENTUM], *restrict vs = p->slots[VELOCITY];
    const NUMBER rate = (NUMBER)p->numbers[RATE], epsilon = (NUMBER)p->numbers[EPSILON];
    const NUMBER beta_1 = (NUMBER)p->numbers[BETA_1], c1 = (NUMBER)p->numbers[ONE_MINUS_BETA_1];
    const NUMBER c2 = (NUMBER)p->numbers[ONE_MINUS_BETA_2];
    const NUMBER correction = (NUMBER)p->numbers[CORRECTION], share = (NUMBER)p->numbers[SHARE];
    OPTIM_EACH(i, p, sizeof *w)
    {
        const NUMBER v = vs[i] += (g[i] * g[i] - vs[i]) * c2;
        const NUMBER before = (w[i] - c1 * zs[i]) / beta_1;
        const NUMBER z = zs[i] -= rate * g[i] / (TYPED(number_sqrt)(v / correction) + epsilon);
        const NUMBER x = (1 - share) * before + share * z;
        w[i] = c1 * z + beta_1 * x;
    }
}

#undef TYPE
