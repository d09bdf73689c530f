#include "ops/ops.h"
#include "optim/optimizer.h"
#include <math.h>

enum { ROWS, COLUMNS, VELOCITY };

static bool is_factored(const ed_tensor *v)
{
    return v->rank >= 2;
}

static bool adafactor_has(const ed_optimizer *o, int slot, const ed_tensor *v)
{
    (void)o;
    return slot == VELOCITY || is_factored(v);
}

/* Zeros; of rows and columns without the axis over which is averaged. */
static ed_tensor *adafactor_initial(const ed_optimizer *o, int slot, const ed_tensor *v)
{
    (void)o;
    if (slot == VELOCITY) return optim_full(v, 0);
    ed_tensor shape = {.dtype = v->dtype, .rank = (uint8_t)(v->rank - 1)};
    for (int d = 0; d < shape.rank; d++) shape.shape[d] = v->shape[d];
    if (slot == COLUMNS) shape.shape[v->rank - 2] = v->shape[v->rank - 1];
    return optim_full(&shape, 0);
}

static ed_tensor *rms(ed_tensor *x)
{
    return ed_sqrt(ed_reduce_mean(ed_square(x)));
}

/* beta a + (1 - beta) b */
static ed_tensor *mixed(ed_tensor *a, ed_tensor *b, double beta)
{
    return ed_add(ed_mul(a, beta), ed_mul(b, 1 - beta));
}

static bool adafactor_velocity(optim_whole *x, ed_tensor *squares, double beta)
{
    if (!is_factored(x->variable)) {
        x->slots[VELOCITY] = mixed(x->slots[VELOCITY], squares, beta);
        return x->slots[VELOCITY];
    }
    ed_tensor *r = mixed(x->slots[ROWS], ed_reduce_mean(squares, .axis = ED_AXES(-1)), beta);
    ed_tensor *c = mixed(x->slots[COLUMNS], ed_reduce_mean(squares, .axis = ED_AXES(-2)), beta);
    ed_tensor *share = ed_div(r, ed_reduce_mean(r, .axis = ED_AXES(-1), .keepdims = true));
    x->slots[ROWS] = r;
    x->slots[COLUMNS] = c;
    x->slots[VELOCITY] = ed_mul(ed_expand_dims(share, -1), ed_expand_dims(c, -2));
    return r && c && x->slots[VELOCITY];
}

static bool adafactor_whole(const ed_optimizer *optimizer, optim_whole *x)
{
    const ed_optimizer_adafactor_options *o = optim_options(optimizer);
    const double least = 1 / sqrt((double)x->step);
    const double rate = optim_number(x->variable->dtype, fmin(x->rate, least));
    const double beta = 1 - pow((double)x->step, o->beta_2_decay);
    if (!adafactor_velocity(x, ed_add(ed_square(x->g), o->epsilon_1), beta)) return false;
    ed_tensor *step = ed_div(x->g, ed_sqrt(x->slots[VELOCITY]));
    step = ed_div(step, ed_maximum(ed_div(rms(step), o->clip_threshold), 1.0));
    x->w = ed_sub(x->w, ed_mul(step, ed_mul(ed_maximum(rms(x->w), o->epsilon_2), rate)));
    return x->w;
}

OPTIMIZER(adafactor, ADAFACTOR, "steps by the mean squares of rows and columns",
          .slots = {"r", "c", "velocity"}, .together = 3, .lists = {"_r", "_c", "_v"},
          .keeps_places = true, .has = adafactor_has, .initial = adafactor_initial,
          .whole = adafactor_whole)
