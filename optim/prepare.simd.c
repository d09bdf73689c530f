/* Clipping and weight decay of a strip, the sums of squares that clipping by norm needs, sums of
 * gradients, averages of variables. */
#include "optim/optimizer.h"
#include <math.h>

#ifdef ISA

#define TYPE f32
#include "optim/prepare.typed.h"
#define TYPE f64
#include "optim/prepare.typed.h"

void ISA_NAME(optim_prepare)(ed_dtype dtype, const optim_preparation *how, const optim_part *part,
                             void *prepared)
{
    if (dtype == ED_FLOAT32)
        prepare_strip_f32(how, part, prepared);
    else
        prepare_strip_f64(how, part, prepared);
}

double ISA_NAME(optim_squares)(ed_dtype dtype, int64_t n, const void *g)
{
    return dtype == ED_FLOAT32 ? prepare_squares_f32(n, g) : prepare_squares_f64(n, g);
}

void ISA_NAME(optim_accumulate)(ed_dtype dtype, double scale, double steps, int64_t n,
                                const void *g, void *sum)
{
    if (dtype == ED_FLOAT32)
        accumulate_strip_f32(scale, steps, n, g, sum);
    else
        accumulate_strip_f64(scale, steps, n, g, sum);
}

void ISA_NAME(optim_average)(ed_dtype dtype, double momentum, bool overwrites, int64_t n, void *w,
                             void *average)
{
    if (dtype == ED_FLOAT32)
        average_strip_f32(momentum, overwrites, n, w, average);
    else
        average_strip_f64(momentum, overwrites, n, w, average);
}

#endif
