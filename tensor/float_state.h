/*
 * The processor's control of floating-point arithmetic, which belongs to a thread: rounding,
 * flushing of denormals to zero, traps. Results are to be the same for any number of threads, so
 * helpers work under the control of the thread whose work it is; and kernels divide by zero and
 * compute NaN where nobody reads it, so that they run without traps.
 */
#ifndef EDDY_TENSOR_FLOAT_STATE_H
#define EDDY_TENSOR_FLOAT_STATE_H

#include <stdint.h>

#if defined(__x86_64__)

enum {
    FLOAT_FLAGS = 0x3f,
    FLOAT_MASKS = 0x1f80
}; /* of MXCSR: what happened, what is not trapped */

static inline uint64_t float_state(void)
{
    return __builtin_ia32_stmxcsr();
}

static inline void float_set_state(uint64_t state)
{
    __builtin_ia32_ldmxcsr((uint32_t)state);
}

static inline uint64_t float_without_traps(uint64_t state)
{
    return (state | FLOAT_MASKS) & ~(uint64_t)FLOAT_FLAGS;
}

/* Switches traps off; returns the state for float_end, 0 if none was on. */
static inline uint64_t float_begin(void)
{
    const uint64_t state = float_state();
    if (__builtin_expect((state & FLOAT_MASKS) == FLOAT_MASKS, 1)) return 0;
    float_set_state(float_without_traps(state));
    return state;
}

#elif defined(__aarch64__)

enum { FLOAT_TRAPS = 0x9f00 }; /* of FPCR */

static inline uint64_t float_state(void)
{
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
}

static inline void float_set_state(uint64_t state)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(state));
}

static inline uint64_t float_without_traps(uint64_t state)
{
    return state & ~(uint64_t)FLOAT_TRAPS;
}

static inline uint64_t float_begin(void)
{
    const uint64_t state = float_state();
    if (__builtin_expect(!(state & FLOAT_TRAPS), 1)) return 0;
    float_set_state(float_without_traps(state));
    return state;
}

#else

static inline uint64_t float_state(void)
{
    return 0;
}

static inline void float_set_state(uint64_t state)
{
    (void)state;
}

static inline uint64_t float_without_traps(uint64_t state)
{
    return state;
}

static inline uint64_t float_begin(void)
{
    return 0;
}

#endif

static inline void float_end(uint64_t before)
{
    if (__builtin_expect(before != 0, 0)) float_set_state(before);
}

#endif
