/* Steps of optimizers alone, over large variables, many small ones, and those of a network. */
#include "bench/bench.h"
#include <stdlib.h>

typedef struct steps {
    ed_optimizer *optimizer;
    ed_list *gradients;
} steps;

typedef struct row {
    const char *name;
    double bytes; /* read and written for a parameter */
    ed_optimizer *(*make)(void);
    double (*change)(double g, double norm); /* of a parameter by the first step; norm: of all g */
} row;

static ed_optimizer *make_adam(void)
{
    return ed_optimizer_adam();
}

static double adam_change(double g, double norm)
{
    (void)norm;
    return 1e-3 * g / (fabs(g) + 1e-7 / sqrt(0.001));
}

static ed_optimizer *make_adamw(void)
{
    return ed_optimizer_adamw(.weight_decay = 0.01);
}

/* A parameter begins as its gradient. */
static double adamw_change(double g, double norm)
{
    return 0.01 * 1e-3 * g + adam_change(g, norm);
}

static ed_optimizer *make_clipped(void)
{
    return ed_optimizer_adam(.global_clipnorm = 1);
}

static double clipped_change(double g, double norm)
{
    return adam_change(norm > 1 ? g / norm : g, norm);
}

static ed_optimizer *make_sgd(void)
{
    return ed_optimizer_sgd(.learning_rate = 1e-3);
}

static double sgd_change(double g, double norm)
{
    return (void)norm, 1e-3 * g;
}

static ed_optimizer *make_momentum(void)
{
    return ed_optimizer_sgd(.learning_rate = 1e-3, .momentum = 0.9);
}

static ed_optimizer *make_rmsprop(void)
{
    return ed_optimizer_rmsprop();
}

static double rmsprop_change(double g, double norm)
{
    return (void)norm, 1e-3 * g / sqrt(0.1 * g * g + 1e-7);
}

static const row rows[] = {{"adam", 28, make_adam, adam_change},
                           {"adamw", 28, make_adamw, adamw_change},
                           {"adam_global_clipnorm", 32, make_clipped, clipped_change},
                           {"sgd", 12, make_sgd, sgd_change},
                           {"sgd_momentum", 20, make_momentum, sgd_change},
                           {"rmsprop", 20, make_rmsprop, rmsprop_change}};

/* ---- Variables, which begin as their gradients: n[0] of them with n[1] elements, or those of the
 * network on digits ---- */

static void make_variables(workload *w, steps *s)
{
    static const int64_t mlp[] = {784 * 512, 512, 512 * 10, 10};
    int64_t count = w->n[0] ? w->n[0] : 4;
    ed_tensor **all = malloc(2 * (size_t)count * sizeof *all);
    if (!all) abort();
    for (int64_t i = 0; i < count; i++) {
        all[i] = bench_numbers(ED_SHAPE(w->n[0] ? w->n[1] : mlp[i]));
        all[count + i] = ed_variable(all[i]);
    }
    s->gradients = ed_list_make(all, count);
    w->list = ed_list_make(all + count, count);
    free(all);
}

static void make(workload *w)
{
    const row *r = w->row;
    steps *s = malloc(sizeof *s);
    if (!s) abort();
    s->optimizer = r->make();
    make_variables(w, s);
    w->more = s;
}

static void drop(workload *w)
{
    free(w->more);
}

static ed_tensor *step(workload *w)
{
    const steps *s = w->more;
    ed_apply_gradients(s->optimizer, s->gradients, w->list);
    return NULL;
}

/* With an optimizer that has no slots yet. */
static ed_tensor *first_step(workload *w)
{
    const row *r = w->row;
    const steps *s = w->more;
    ed_apply_gradients(r->make(), s->gradients, w->list);
    return NULL;
}

static double norm_of(ed_list *list)
{
    double squares = 0;
    for (int64_t k = 0; k < ed_list_size(list); k++) {
        const ed_tensor *g = ed_list_get(list, k);
        for (int64_t i = 0; i < ed_size(g); i++) squares += bench_at(g, i) * bench_at(g, i);
    }
    return sqrt(squares);
}

static void check(workload *w, ed_tensor *y)
{
    (void)y;
    const row *r = w->row;
    const steps *s = w->more;
    double norm = norm_of(s->gradients);
    for (int64_t k = 0; k < ed_list_size(w->list); k++) {
        const ed_tensor *g = ed_list_get(s->gradients, k),
                        *value = ed_value(ed_list_get(w->list, k));
        BENCH_SPREAD(i, ed_size(g))
        bench_near("a parameter", bench_at(value, i),
                   bench_at(g, i) - r->change(bench_at(g, i), norm), 1e-6);
    }
}

/* ---- Clipping alone ---- */

static ed_tensor *clip(workload *w)
{
    const steps *s = w->more;
    return ed_list_get(ed_clip_by_global_norm(s->gradients, 1, NULL), 0);
}

static void check_clip(workload *w, ed_tensor *y)
{
    const steps *s = w->more;
    double norm = norm_of(s->gradients);
    BENCH_SPREAD(i, ed_size(y))
    bench_near("an element", bench_at(y, i), bench_at(ed_list_get(s->gradients, 0), i) / norm,
               1e-9);
}

void bench_optimizer(void)
{
    static const struct {
        const char *name;
        int64_t count, size;
        double parameters;
    } loads[] = {
        {"10M_in_1", 1, 10000000, 1e7}, {"10M_in_100", 100, 100000, 1e7}, {"mlp", 0, 0, 407050}};
    workload w = {BENCH_UPDATED, .make = make, .run = step, .check = check, .drop = drop};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int i = 0; i < 3; i++) {
            w.row = &rows[k], w.amount = rows[k].bytes * loads[i].parameters;
            w.n[0] = loads[i].count, w.n[1] = loads[i].size;
            bench_add(w, "%s_%s", rows[k].name, loads[i].name);
        }
    w = (workload){.make = make, .run = step, .check = check, .drop = drop, .row = &rows[0]};
    w.n[0] = 100000, w.n[1] = 1;
    bench_add(w, "adam_100000_of_1");
    w.run = first_step;
    bench_add(w, "adam_100000_of_1_first");
    w.unit = BENCH_BYTES, w.amount = 12e7, w.n[0] = 100, w.n[1] = 100000;
    w.run = clip, w.check = check_clip;
    bench_add(w, "clip_by_global_norm_10M_in_100");
}
