/* Clipping and weight decay of a strip, and the sums of squares that clipping by norm needs. */
#include "optim/optimizer.h"
#include <math.h>

#ifdef ISA

/* Comparisons are so written that a NaN stays. */
#define PREPARE(type)                                                                              \
    static void prepare_##type(const optim_preparation *how, int64_t n, const type *restrict g,    \
                               type *restrict w, type *restrict prepared)                          \
    {                                                                                              \
        const type scale = (type)how->scale, limit = (type)how->limit;                             \
        const type decay = (type)how->decay, rate = (type)how->rate;                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            type x = g[i] * scale;                                                                 \
            x = x > limit ? limit : x;                                                             \
            prepared[i] = x < -limit ? -limit : x;                                                 \
        }                                                                                          \
        if (decay != 0)                                                                            \
            for (int64_t i = 0; i < n; i++) w[i] -= w[i] * decay * rate;                           \
    }

PREPARE(float)
PREPARE(double)

void ISA_NAME(optim_prepare)(ed_dtype dtype, const optim_preparation *how, int64_t n, const void *g,
                             void *w, void *prepared)
{
    if (dtype == ED_FLOAT32)
        prepare_float(how, n, g, w, prepared);
    else
        prepare_double(how, n, g, w, prepared);
}

/*
 * Many running sums, element i belonging to number i mod LANES, so that additions need not wait for
 * each other and the width of the machine's vectors makes no difference.
 */
enum { LANES = 32 };

#define SQUARES(type)                                                                              \
    static double squares_##type(int64_t n, const type *g)                                         \
    {                                                                                              \
        double sums[LANES] = {0};                                                                  \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int j = 0; j < LANES; j++) sums[j] += (double)g[i + j] * (double)g[i + j];        \
        for (int j = 0; i + j < n; j++) sums[j] += (double)g[i + j] * (double)g[i + j];            \
        for (int half = LANES / 2; half > 0; half /= 2)                                            \
            for (int j = 0; j < half; j++) sums[j] += sums[j + half];                              \
        return sums[0];                                                                            \
    }

SQUARES(float)
SQUARES(double)

double ISA_NAME(optim_squares)(ed_dtype dtype, int64_t n, const void *g)
{
    return dtype == ED_FLOAT32 ? squares_float(n, g) : squares_double(n, g);
}

#endif
