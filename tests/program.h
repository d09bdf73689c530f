/* A program with two values, for tests of what is saved and restored. */
#ifndef EDDY_TESTS_PROGRAM_H
#define EDDY_TESTS_PROGRAM_H

#include "tests/asserts.h"
#include "train/train.h"

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
