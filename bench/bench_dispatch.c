/*
 * What an op costs beyond its arithmetic: small tensors, where nearly all the time is the
 * dispatcher's.
 */
#include "bench/programs.h"
#include "eddy.h"

enum { CHAIN = 1000 }; /* ops in a run */

static void adds(void *user)
{
    ed_tensor *x = user;
    ED_SCOPE;
    for (int i = 0; i < CHAIN; i++) ed_add(x, x);
}

static void recorded_adds(void *user)
{
    ed_tensor *x = user;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_watch(tape, x);
    for (int i = 0; i < CHAIN; i++) ed_add(x, x);
}

static void add_chain(void *user)
{
    ed_tensor *x = user;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = ed_watch(tape, x), *one = ed_value(x);
    for (int i = 0; i < CHAIN; i++) y = ed_add(y, one);
    ed_gradient(tape, y, x);
}

static void mul_chain(void *user)
{
    ed_tensor *x = user;
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = ed_watch(tape, x), *one = ed_ones_like(x);
    for (int i = 0; i < CHAIN; i++) y = ed_mul(y, one);
    ed_gradient(tape, y, x);
}

static void reshapes(void *user)
{
    ed_tensor *x = user;
    ED_SCOPE;
    for (int i = 0; i < CHAIN; i++) ed_reshape(x, ED_SHAPE(-1, 1));
}

static void slices(void *user)
{
    ed_tensor *x = user;
    ED_SCOPE;
    for (int i = 0; i < CHAIN; i++) ed_slice(x, .end = ED_INTS(1));
}

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        void (*run)(void *x);
        int64_t size;
    } all[] = {
        {"A.add_1_nograd", adds, 1},
        {"A.add_64_nograd", adds, 64},
        {"A.add_1_recorded", recorded_adds, 1},
        {"A.chain1000_1_fwd_bwd", add_chain, 1},
        {"A.chain1000_64_fwd_bwd", add_chain, 64},
        {"A.chain1000_mul_1_fwd_bwd", mul_chain, 1},
        {"A.view_64", reshapes, 64},
        {"A.slice_64", slices, 64},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        ED_SCOPE;
        ed_tensor *x = ed_ones(ED_SHAPE(all[i].size));
        if (bench_wanted(argc, argv, all[i].name)) bench_run(all[i].name, all[i].run, x, CHAIN);
    }
    return ed_failed() ? fprintf(stderr, "%s\n", ed_error()), 1 : 0;
}
