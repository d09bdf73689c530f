#include "tests/checks.h"
#include "ops/ops.h"
#include <math.h>

/*
 * Calls as one: what the op's batch function makes of operands that differ from call to call is
 * what the calls make one after the other, bit by bit where the kernels' order of sums allows it.
 */

enum { CALLS = 3 };

/* The operand, and a batch of it whose values differ but keep their kind: reordered along the first
 * axis where that is harmless, else the same for all calls. */
static ed_tensor *batch_of(ed_tensor *x, bool reorder)
{
    ed_tensor *const slices[CALLS] = {
        x, reorder && x->rank ? ed_roll(x, ED_INTS(1), ED_AXES(0)) : x, x};
    return ed_stack(ed_list_make(slices, CALLS));
}

static bool close_to(const ed_tensor *a, const ed_tensor *b)
{
    if (a->dtype != b->dtype || !tensor_same_shape(a, b)) return false;
    const double *p = ed_as_doubles(a), *q = ed_as_doubles(b);
    for (int64_t i = 0; p && q && i < a->size; i++) {
        const double scale = fmax(fabs(p[i]), fabs(q[i]));
        if (p[i] != q[i] && !(isnan(p[i]) && isnan(q[i])) &&
            !(fabs(p[i] - q[i]) <= 1e-10 * fmax(1, scale)))
            return false;
    }
    return p && q;
}

static void compare_batches(findings *f, const ed_list *y, const ed_list *expected, unsigned which)
{
    if (!EXPECT(f, y->size == expected->size, "a batch has %lld outputs, expected %lld",
                (long long)y->size, (long long)expected->size))
        return;
    for (int64_t i = 0; i < y->size; i++) {
        const ed_tensor *a = y->items[i], *b = expected->items[i];
        EXPECT(f, close_to(a, b), "operands %#x differ: output %lld is %s, unlike one by one, %s",
               which, (long long)i, text_of_tensor(a).s, text_of_tensor(b).s);
    }
}

/* The operands in the set `which` differ. */
static void check_set(findings *f, const trial *t, unsigned which)
{
    ED_SCOPE;
    ed_list *outputs = trial_run(t);
    ed_tensor *batches[ED_MAX_OPERANDS] = {NULL};
    const bool reorder = f->op->batch == ed_batch_broadcast || f->op->batch == ed_batch_reduction;
    for (int i = 0; outputs && i < t->n; i++)
        if (which & 1u << i && !(batches[i] = batch_of(t->x[i], reorder))) return;
    if (!outputs) return ed_clear_error();
    const ed_batch_call call = {.op = t->op,
                                .attrs = t->attrs,
                                .n = CALLS,
                                .n_inputs = t->n,
                                .n_outputs = (int)outputs->size,
                                .inputs = t->x,
                                .batches = batches,
                                .outputs = outputs->items};
    ed_list *expected = ed_batch_each(&call);
    if (!EXPECT(f, expected, "one by one: %s", ed_error())) return ed_clear_error();
    ed_list *y = f->op->batch(&call);
    if (EXPECT(f, y, "operands %#x differ: %s", which, ed_error()))
        compare_batches(f, y, expected, which);
    ed_clear_error();
}

void check_batch(findings *f)
{
    trial t;
    if (!f->op->batch || f->op->compose) return;
    for (int s = 0; trial_begin(f, &t, s, ED_FLOAT64); s++) {
        ED_SCOPE;
        if (!trial_fill(&t) || t.n > 4) continue;
        for (unsigned which = 1; which < 1u << t.n; which++) check_set(f, &t, which);
        ed_clear_error();
    }
}
