/* The updates of Adagrad and Adadelta, for one float type. */

/* a += g g; w -= rate g / sqrt(a + epsilon) */
static void TYPED(adagrad_update)(const optim_part *p)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict as = p->slots[GRADS];
    const NUMBER rate = (NUMBER)p->numbers[RATE], epsilon = (NUMBER)p->numbers[EPSILON];
    OPTIM_EACH(i, p, sizeof *w)
    {
        const NUMBER a = as[i] += g[i] * g[i];
        w[i] -= rate * g[i] / TYPED(number_sqrt)(a + epsilon);
    }
}

/* a = rho a + (1 - rho) g g; step = sqrt(d + epsilon) g / sqrt(a + epsilon);
 * d = rho d + (1 - rho) step step; w -= rate step */
static void TYPED(adadelta_update)(const optim_part *p)
{
    const NUMBER *restrict g = p->g;
    NUMBER *restrict w = p->w, *restrict as = p->slots[GRADS], *restrict ds = p->slots[DELTAS];
    const NUMBER rate = (NUMBER)p->numbers[RATE], epsilon = (NUMBER)p->numbers[EPSILON];
    const NUMBER rho = (NUMBER)p->numbers[RHO], c = (NUMBER)p->numbers[ONE_MINUS_RHO];
    OPTIM_EACH(i, p, sizeof *w)
    {
        const NUMBER a = as[i] = rho * as[i] + c * (g[i] * g[i]);
        const NUMBER step =
            TYPED(number_sqrt)(ds[i] + epsilon) * g[i] / TYPED(number_sqrt)(a + epsilon);
        ds[i] = rho * ds[i] + c * (step * step);
        w[i] -= rate * step;
    }
}

#undef TYPE
