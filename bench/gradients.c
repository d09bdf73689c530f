/* Workloads with gradients: forward, and back from a random gradient of the result. */
#include "bench/bench.h"

static ed_list *differentiate(workload *w)
{
    ed_tape *tape = ed_tape_begin();
    for (int64_t i = 0; i < ed_list_size(w->list); i++) ed_watch(tape, ed_list_get(w->list, i));
    return ed_gradient(tape, w->forward(w), w->list, .output_gradients = ed_list_of(w->dy));
}

ed_tensor *bench_gradients(workload *w)
{
    return ed_list_get(differentiate(w), 0);
}

void bench_gradients_make(workload *w)
{
    ed_tensor *y;
    {
        ED_SCOPE;
        y = ed_keep(w->forward(w));
    }
    w->dy = bench_numbers(ed_shape(y));
}

static double product(ed_tensor *a, ed_tensor *b)
{
    double sum = 0;
    a = ed_contiguous(a), b = ed_contiguous(b); /* whose elements ed_data does not have to copy */
    for (int64_t i = 0; i < ed_size(a); i++) sum += bench_at(a, i) * bench_at(b, i);
    return sum;
}

/* sum(forward * dy) with x[i] moved by step along the direction. */
static double moved(workload *w, int i, ed_tensor *direction, double step)
{
    ED_SCOPE;
    ed_tensor *x = w->x[i];
    w->x[i] = ed_add(x, ed_mul(direction, step));
    double value = product(w->forward(w), w->dy);
    w->x[i] = x;
    return value;
}

void bench_gradients_check(workload *w)
{
    const double h = 1e-3;
    ed_list *gradients = differentiate(w);
    for (int i = 0; i < ed_list_size(w->list) && i < 6; i++) {
        ed_tensor *dx = ed_list_get(gradients, i);
        if (ed_list_get(w->list, i) != w->x[i] || ed_failed()) return;
        ed_tensor *direction = bench_numbers(ed_shape(w->x[i]));
        double slope = (moved(w, i, direction, h) - moved(w, i, direction, -h)) / (2 * h);
        double scale = sqrt(product(dx, dx)) + 1e-9;
        bench_near("the slope in units of the gradient", slope / scale,
                   product(dx, direction) / scale, 0.03);
    }
}
