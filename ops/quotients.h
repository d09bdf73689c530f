/* Loops of divisions of integers, for the families that have some. */
#ifndef EDDY_OPS_QUOTIENTS_H
#define EDDY_OPS_QUOTIENTS_H

#include "ops/loops.h"

#ifdef ISA
#define TYPE i32
#include "ops/quotients.typed.h"
#define TYPE i64
#define FAR
#include "ops/quotients.typed.h"
#define TYPE u8
#include "ops/quotients.typed.h"

/* name_i32, name_i64 and name_u8 of a division, such as floor_div. */
#define LOOPS2_WHOLE(name)                                                                         \
    LOOP2(name, i32, i32, near_##name##_of_i32(a, b))                                              \
    static __attribute__((noinline)) void name##_i64(LOOP_ARGUMENTS)                               \
    {                                                                                              \
        LOOP_USED;                                                                                 \
        if (stream)                                                                                \
            LOOP_STREAMED(name##_i64, 2, i64, i64);                                                \
        else                                                                                       \
            loop2_near_i64(n, in, steps, out, near_##name##_of_i64, name##_of_i64);                \
    }                                                                                              \
    LOOP2(name, u8, u8, near_##name##_of_u8(a, b))
#else
#define LOOPS2_WHOLE(name)
#endif

#endif
