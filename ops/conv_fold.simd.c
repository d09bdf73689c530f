/* The loops of the input's gradient where channels are few, see conv_fold.h. */
#include "ops/conv_fold.h"

#ifdef ISA

#include "ops/kernels/strided.h"

/* The kernel rows [*first, *last) of output row oh that lie in rows [begin, end) of the image.
 * Returns the image's row that kernel row 0 has. */
VECTOR_INLINE int64_t fold_rows(const window *w, int64_t oh, int64_t begin, int64_t end,
                                int64_t *first, int64_t *last)
{
    const int64_t top = oh * w->stride[0] - w->before[0], step = w->dilation[0];
    *first = conv_min(conv_max(conv_ceil(begin - top, step), 0), w->extent[0]);
    *last = conv_min(conv_max(conv_ceil(end - top, step), *first), w->extent[0]);
    return top;
}

#define TYPE f32
#include "ops/conv_fold.typed.h"
#define TYPE f64
#include "ops/conv_fold.typed.h"

const fold_loops ISA_NAME(fold_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {fold_add_f32}, [ED_FLOAT64] = {fold_add_f64}};

#endif
