/* The loops of attention, see attention.h. */
#include "ops/attention.h"

#ifdef ISA

#include "ops/kernels/lanes.h"

/* The columns that a row sees: the first ones of the block. */
static int64_t attention_seen(const attention_block *b, int64_t row)
{
    const int64_t seen = b->row + row + 1 - b->column;
    return b->causal && seen < b->columns ? seen : b->columns;
}

#define TYPE f32
#include "ops/attention.typed.h"
#define TYPE f64
#include "ops/attention.typed.h"

const attention_loops ISA_NAME(attention_table)[ED_DTYPE_COUNT] = {
    [ED_FLOAT32] = {attention_exponentials_f32, attention_join_f32, attention_finish_f32,
                    attention_probabilities_f32, attention_gradient_f32, attention_add_f32},
    [ED_FLOAT64] = {attention_exponentials_f64, attention_join_f64, attention_finish_f64,
                    attention_probabilities_f64, attention_gradient_f64, attention_add_f64}};

#endif
