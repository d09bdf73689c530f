/* Values, and a program with two of them, for tests of what is saved and restored. */
#ifndef EDDY_TESTS_PROGRAM_H
#define EDDY_TESTS_PROGRAM_H

#include "tests/asserts.h"
#include "train/train.h"

/* A variable of n of this value. */
static inline ed_tensor *floats(int64_t n, double value)
{
    ED_SCOPE;
    return ed_keep(ed_variable(ed_full(ED_SHAPE(n), value), .name = "v"));
}

static inline double first(const ed_tensor *v)
{
    return *(const float *)ed_data(v);
}

/* Two rows of three numbers, and a step of a layer on them. */
static inline ed_tensor *some_input(void)
{
    return ed_constant(ED_VALUES(float, 1, -2, 3, 4, 5, -6), ED_SHAPE(2, 3));
}

static inline void train_layer(ed_layer *layer, ed_optimizer *o)
{
    ED_SCOPE;
    ed_tape *tape = ed_tape_begin();
    ed_tensor *y = ed_forward(layer, some_input(), .training = true);
    ed_minimize(o, tape, ed_reduce_mean(ed_square(y)), layer);
}

typedef struct program {
    ed_tensor *v; /* float32[2] */
    int64_t step;
    ed_checkpoint *checkpoint;
} program;

/* Stays where it is: its counter is part of the checkpoint. */
static inline void program_begin(program *p)
{
    p->v = ed_variable(ed_zeros(ED_SHAPE(2)), .name = "v");
    p->step = 0;
    p->checkpoint = ed_checkpoint("v", p->v, "step", ed_counter(&p->step));
    assert_fine();
}

static inline void program_set(program *p, double v)
{
    ED_SCOPE;
    ed_assign(p->v, ed_constant(((float[]){(float)v, (float)v / 2}), ED_SHAPE(2)));
    assert_fine();
}

static inline double program_value(const program *p)
{
    float v[2];
    assert_true(ed_copy_to(p->v, v, 2));
    assert_true(v[1] == v[0] / 2);
    return v[0];
}

/* A manager that no scope holds. */
#define managing(...)                                                                              \
    ({                                                                                             \
        ED_SCOPE;                                                                                  \
        ed_checkpoint_manager *made = ed_retain(ed_checkpoint_manager(__VA_ARGS__));               \
        assert_fine();                                                                             \
        made;                                                                                      \
    })

#endif
