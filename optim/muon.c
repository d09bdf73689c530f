#include "ops/ops.h"
#include "optim/optimizer.h"
#include <math.h>
#include <string.h>
#include <strings.h>

enum { MOMENTUM, VELOCITY };

/* Whether the name has a part of the list in it, parts being separated by commas. */
static bool is_listed(const char *name, const char *parts)
{
    for (const char *at = parts; at && *at;) {
        const size_t n = strcspn(at, ",");
        for (const char *c = name; n && *c; c++)
            if (!strncmp(c, at, n)) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static bool is_embedding(const char *name)
{
    static const char word[] = "embedding";
    for (; *name; name++)
        if (!strncasecmp(name, word, sizeof word - 1)) return true;
    return false;
}

static bool uses_adam(const ed_optimizer *optimizer, const ed_tensor *v)
{
    const ed_optimizer_muon_options *o = optim_options(optimizer);
    const char *name = ed_variable_name(v);
    return v->rank != 2 || (o->exclude_embeddings && is_embedding(name)) ||
           is_listed(name, o->exclude_layers);
}

static bool muon_has(const ed_optimizer *o, int slot, const ed_tensor *v)
{
    return slot == MOMENTUM || uses_adam(o, v);
}

static double muon_decay(const ed_optimizer *optimizer, const ed_tensor *v)
{
    const ed_optimizer_muon_options *o = optim_options(optimizer);
    return uses_adam(optimizer, v) ? o->adam_weight_decay : o->weight_decay;
}

/* a += (b - a) share */
static ed_tensor *closer(ed_tensor *a, ed_tensor *b, double share)
{
    return ed_add(a, ed_mul(ed_sub(b, a), share));
}

static bool adam_step(const ed_optimizer_muon_options *o, optim_whole *x)
{
    const ed_dtype dtype = x->variable->dtype;
    const double rate = optim_number(dtype, x->rate * o->adam_lr_ratio);
    const double alpha =
        optim_number(dtype, rate * sqrt(optim_complement(dtype, o->adam_beta_2, x->step)) /
                                optim_complement(dtype, o->adam_beta_1, x->step));
    ed_tensor *m = closer(x->slots[MOMENTUM], x->g, 1 - o->adam_beta_1);
    ed_tensor *v = closer(x->slots[VELOCITY], ed_square(x->g), 1 - o->adam_beta_2);
    x->w = ed_sub(x->w, ed_div(ed_mul(m, alpha), ed_add(ed_sqrt(v), o->epsilon)));
    x->slots[MOMENTUM] = m;
    x->slots[VELOCITY] = v;
    return x->w;
}

/* Nearly the orthogonal matrix that is nearest to x, by Newton-Schulz iterations. */
static ed_tensor *orthogonal(const ed_optimizer_muon_options *o, ed_tensor *x)
{
    const bool tall = x->shape[0] > x->shape[1];
    if (tall) x = ed_transpose(x);
    x = ed_div(x, ed_add(ed_sqrt(ed_reduce_sum_square(x)), 1e-7));
    for (int64_t i = 0; i < o->ns_steps; i++) {
        ed_tensor *a = ed_matmul(x, x, .transpose_b = true);
        ed_tensor *b = ed_add(ed_mul(a, o->muon_b), ed_matmul(ed_mul(a, o->muon_c), a));
        x = ed_add(ed_mul(x, o->muon_a), ed_matmul(b, x));
    }
    return tall ? ed_transpose(x) : x;
}

static bool muon_whole(const ed_optimizer *optimizer, optim_whole *x)
{
    const ed_optimizer_muon_options *o = optim_options(optimizer);
    if (uses_adam(optimizer, x->variable)) return adam_step(o, x);
    ed_tensor *m =
        ed_add(x->slots[MOMENTUM], ed_add(x->g, ed_mul(x->slots[MOMENTUM], o->momentum - 1)));
    ed_tensor *way = m && o->nesterov ? ed_add(x->g, ed_mul(m, o->momentum)) : m;
    if (!way) return false;
    const double larger = (double)(way->shape[0] > way->shape[1] ? way->shape[0] : way->shape[1]);
    const double scale = o->rms_rate > 0 ? sqrt(larger) * o->rms_rate : 1;
    x->w = ed_sub(x->w, ed_mul(ed_mul(orthogonal(o, way), x->rate), scale));
    x->slots[MOMENTUM] = m;
    return x->w;
}

OPTIMIZER(muon, MUON, "orthogonal steps for matrices, Adam for other variables",
          .slots = {"momentum", "velocity"}, .together = 2,
          .lists = {"momentums", "adam_velocities"}, .has = muon_has, .decay = muon_decay,
          .whole = muon_whole)
