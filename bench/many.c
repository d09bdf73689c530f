/*
 * What must grow no faster than the number of things: operands of one op, outputs of one, objects
 * of a scope, layers of a model. A time is that for one of them, so that 100,000 beside 2,000 show
 * what is not linear.
 */
#include "bench/bench.h"
#include <stdlib.h>

/* x[0]: `n[0]` rows of ones, of four elements; list: the same as tensors. */
static void make(workload *w)
{
    w->x[0] = ed_ones(ED_SHAPE(w->n[0], 4));
    w->list = ed_unstack(w->x[0]);
}

/* The gradient by all rows of what takes the list, ending in their concatenation. */
static ed_tensor *by_rows(workload *w, ed_tensor *(*f)(ed_list *rows))
{
    ed_tape *tape = ed_tape_begin();
    for (int64_t i = 0; i < w->n[0]; i++) ed_watch(tape, ed_list_get(w->list, i));
    return ed_list_get(ed_gradient(tape, f(w->list), w->list), -1);
}

static ed_tensor *concat_list(ed_list *rows)
{
    return ed_concat(rows);
}

static ed_tensor *concat(workload *w)
{
    return ed_concat(w->list);
}

static ed_tensor *concat_gradient(workload *w)
{
    return by_rows(w, concat_list);
}

static ed_tensor *stack(workload *w)
{
    return ed_stack(w->list);
}

static ed_tensor *unstack(workload *w)
{
    return ed_list_get(ed_unstack(w->x[0]), -1);
}

/* Each part is used, as each step of a recurrent cell uses one. */
static ed_tensor *unstack_gradient(workload *w)
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, w->x[0]);
    return ed_gradient(tape, ed_stack(ed_unstack(w->x[0])), w->x[0]);
}

/* The last one alone. */
static ed_tensor *unstack_one_gradient(workload *w)
{
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, w->x[0]);
    return ed_index(ed_gradient(tape, ed_list_get(ed_unstack(w->x[0]), -1), w->x[0]), -1);
}

/* The oldest first, which is the farthest from the top of the stack of objects. */
static ed_tensor *keep(workload *w)
{
    ed_tensor **made = malloc((size_t)w->n[0] * sizeof *made);
    if (!made) abort();
    {
        ED_SCOPE;
        for (int64_t i = 0; i < w->n[0]; i++) made[i] = ed_scalar(1.0);
        for (int64_t i = 0; i < w->n[0]; i++) ed_keep(made[i]);
    }
    ed_tensor *last = made[w->n[0] - 1];
    free(made);
    return last;
}

static ed_tensor *sequential(workload *w)
{
    ed_layer **layers = malloc((size_t)w->n[0] * sizeof *layers);
    if (!layers) abort();
    for (int64_t i = 0; i < w->n[0]; i++) layers[i] = ed_layer_flatten();
    ed_layer *model = ed_layer_sequential_of(NULL, layers, w->n[0]);
    free(layers);
    return model ? ed_scalar(1.0) : NULL;
}

static ed_tensor *concat_all(ed_list *inputs, void *user)
{
    (void)user;
    return ed_concat(inputs);
}

static ed_list *slices(ed_list *inputs, ed_tensor *y, ed_tensor *dy, void *user)
{
    (void)y, (void)user;
    return ed_unstack(ed_reshape(dy, ED_SHAPE(ed_list_size(inputs), -1)));
}

static ed_tensor *recomputed(ed_list *rows)
{
    return ed_recompute(concat_all, rows, NULL, NULL);
}

static ed_tensor *recompute_gradient(workload *w)
{
    return by_rows(w, recomputed);
}

static ed_tensor *with_own_gradient(ed_list *rows)
{
    return ed_custom_gradient(concat_all, slices, rows, NULL, NULL);
}

static ed_tensor *custom_gradient(workload *w)
{
    return by_rows(w, with_own_gradient);
}

static void check(workload *w, ed_tensor *y)
{
    (void)w;
    bench_near("the last element", bench_at(y, ed_size(y) - 1), 1, 0);
}

void bench_many(void)
{
    static const struct {
        const char *name;
        ed_tensor *(*run)(workload *w);
    } all[] = {{"concat", concat},
               {"concat_grad", concat_gradient},
               {"stack", stack},
               {"unstack", unstack},
               {"unstack_grad", unstack_gradient},
               {"unstack_one_grad", unstack_one_gradient},
               {"keep", keep},
               {"sequential", sequential},
               {"recompute_grad", recompute_gradient},
               {"custom_gradient", custom_gradient}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int n = 2000; n <= 100000; n *= 50) {
            workload w = {BENCH_CALLS, .calls = n, .make = make, .run = all[i].run, .check = check};
            w.n[0] = n;
            bench_add(w, "%s_%d", all[i].name, n);
        }
}
