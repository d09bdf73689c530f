/*
 * What must grow no faster than the number of things: operands of one op, outputs of one, objects
 * of a scope, layers of a model. Each line is the time for one of them, so that a line of 100,000
 * beside one of 20,000 shows what is not linear.
 */
#include "bench/programs.h"
#include "eddy.h"

typedef struct many {
    int64_t count;
    ed_list *parts; /* `count` rows */
    ed_tensor *x;   /* the same as one tensor */
} many;

static void concat(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_concat(m->parts);
}

static void stack(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_stack(m->parts);
}

static void concat_back(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    for (int64_t i = 0; i < m->count; i++) ed_watch(tape, ed_list_get(m->parts, i));
    ed_gradient(tape, ed_concat(m->parts), m->parts);
}

static void unstack(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_unstack(m->x);
}

/* Each part is used, as each step of a recurrent cell uses one. */
static void unstack_back(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, m->x);
    ed_gradient(tape, ed_stack(ed_unstack(m->x)), m->x);
}

static void unstack_one_back(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, m->x);
    ed_gradient(tape, ed_list_get(ed_unstack(m->x), 0), m->x);
}

/* The oldest first, which is the farthest from the top of the stack of objects. */
static void keep(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_tensor **made = malloc((size_t)m->count * sizeof *made);
    {
        ED_SCOPE;
        for (int64_t i = 0; made && i < m->count; i++) made[i] = ed_scalar(1.0);
        for (int64_t i = 0; made && i < m->count; i++) ed_keep(made[i]);
    }
    free(made);
}

static void sequential(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_layer **layers = malloc((size_t)m->count * sizeof *layers);
    for (int64_t i = 0; layers && i < m->count; i++) layers[i] = ed_layer_flatten();
    if (layers) ed_layer_sequential_of(NULL, layers, m->count);
    free(layers);
}

static ed_tensor *concat_all(ed_list *inputs, void *user)
{
    (void)user;
    return ed_concat(inputs);
}

static ed_list *slices(ed_list *inputs, ed_tensor *y, ed_tensor *dy, void *user)
{
    (void)y;
    (void)user;
    return ed_unstack(ed_reshape(dy, ED_SHAPE(ed_list_size(inputs), -1)));
}

static void recompute_back(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    for (int64_t i = 0; i < m->count; i++) ed_watch(tape, ed_list_get(m->parts, i));
    ed_gradient(tape, ed_recompute(concat_all, m->parts, NULL, NULL), m->parts);
}

static void custom_gradient_back(void *user)
{
    const many *m = user;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    for (int64_t i = 0; i < m->count; i++) ed_watch(tape, ed_list_get(m->parts, i));
    ed_tensor *y = ed_custom_gradient(concat_all, slices, m->parts, NULL, NULL);
    ed_gradient(tape, y, m->parts);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void *m);
    } all[] = {
        {"concat", concat},
        {"stack", stack},
        {"concat_back", concat_back},
        {"unstack", unstack},
        {"unstack_back", unstack_back},
        {"unstack_one_back", unstack_one_back},
        {"keep", keep},
        {"sequential", sequential},
        {"recompute_back", recompute_back},
        {"custom_gradient_back", custom_gradient_back},
    };
    static const int64_t counts[] = {2, 200, 2000, 20000, 100000};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            char name[64];
            snprintf(name, sizeof name, "many.%s_%d", all[i].name, (int)counts[k]);
            if (!bench_wanted(argc, argv, name)) continue;
            ED_SCOPE;
            many m = {.count = counts[k], .x = ed_ones(ED_SHAPE(counts[k], 4))};
            m.parts = ed_unstack(m.x);
            bench_run(name, all[i].run, &m, (double)counts[k]);
        }
    return ed_failed() ? fprintf(stderr, "%s\n", ed_error()), 1 : 0;
}
